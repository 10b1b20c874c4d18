//! A queue that has held its largest backlog allocates no more. A binary of its own, for its allocator.

#![expect(unsafe_code, reason = "a global allocator cannot be written without")]

mod support;

use cutline_aqm::{AqmSpec, Limit, Queue, QueueSpec, TsqParams, registry};
use cutline_units::{Duration, Hint, Rate};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use support::Link;

/// Counts, and leaves the work to the system's allocator.
struct Counting;

thread_local! {
    /// Of this thread: the test harness has threads of its own.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed on unchanged to `System`, which keeps the trait's contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: `block` came from `System.alloc` above with this layout.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Overload at hints that change from round to round, then silence; no sent packet is kept.
fn round(link: &mut Link<cutline_aqm::AnyQueue<u32>>) {
    link.shed.clear();
    for i in 0..4000_u32 {
        let hint = 1 + (i * 31 % 16) as u16;
        let verdict = link.arrive(1000, hint, false);
        std::hint::black_box(verdict);
        link.wait(Duration::from_micros(400));
        link.sent.clear();
    }
    link.wait(Duration::from_secs(1));
    link.sent.clear();
}

#[test]
fn a_warm_queue_allocates_nothing() {
    let rate = Rate::from_mbps(15);
    for about in registry::describe() {
        for tsq in [None, Some(TsqParams::default())].into_iter().take(1 + usize::from(about.takes_tsq)) {
            let aqm = AqmSpec::from_values(about.name, []).unwrap();
            let spec = QueueSpec { limit: Limit::Packets(300), ecn: false, aqm, tsq, rate };
            let mut link = Link::new(spec.build().unwrap(), rate);
            link.sent.reserve(10_000);
            link.shed.reserve(10_000);
            // Every lane has held the limit once.
            for hint in 1..=16 {
                (0..400).for_each(|packet| {
                    let arrival = cutline_aqm::Arrival::new(1000, Hint::from_level(hint));
                    link.queue.enqueue(link.now, arrival, packet, &mut link.random);
                    while link.queue.shed().is_some() {}
                });
                while link.queue.dequeue(link.now).is_some() {}
                while link.queue.shed().is_some() {}
                link.now += Duration::from_secs(1);
            }
            // The lanes have given back what the first filling took, and have grown to what the longest rounds need.
            (0..12).for_each(|_| round(&mut link));
            let before = ALLOCATIONS.get();
            (0..3).for_each(|_| round(&mut link));
            assert_eq!(ALLOCATIONS.get() - before, 0, "{} {tsq:?}", about.name);
            assert!(link.queue.stats().dequeued.packets > 10_000, "the rounds pass packets: {}", about.name);
        }
    }
    assert!(ALLOCATIONS.get() > 0, "the counter counts");
}
