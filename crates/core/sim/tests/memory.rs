//! The memory of a simulation, by flow. A program of its own, for its allocator.

#![expect(unsafe_code, reason = "a global allocator cannot be written without")]

mod common;

use common::Plan;
use cutline_sim::{Distributions, Simulation, SimulationSettings, Window};
use cutline_units::{Duration, Instant};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts bytes in use, and leaves the work to the system's allocator.
struct Counting;

/// Bytes in use by a thread, and the most that were in use since the last call of `take_most`.
#[derive(Clone, Copy)]
struct Bytes {
    now: isize,
    most: isize,
}

thread_local! {
    /// Of this thread: the test harness has threads of its own.
    static BYTES: Cell<Bytes> = const { Cell::new(Bytes { now: 0, most: 0 }) };
}

/// Counts a block as glibc does, with its header and rounded up.
fn note(layout: Layout, sign: isize) {
    let block = (layout.size() + 8).next_multiple_of(16).max(32);
    let Bytes { now, most } = BYTES.get();
    let now = now + sign * block.cast_signed();
    BYTES.set(Bytes { now, most: most.max(now) });
}

// SAFETY: every call is passed on unchanged to `System`, which keeps the trait's contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout, 1);
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        note(layout, -1);
        // SAFETY: `block` came from `System.alloc` or `System.realloc` with this layout.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Large blocks are moved as pages, so the old and the new one are not in use at the same time.
        note(layout, -1);
        // SAFETY: the caller keeps the contract of `realloc`, so that `size` and the alignment are those of a layout.
        note(unsafe { Layout::from_size_align_unchecked(size, layout.align()) }, 1);
        // SAFETY: `block` came from `System.alloc` or `System.realloc` with this layout.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes of each flow of the papers' dumbbell: at the end of a run, and the most since the set-up.
fn bytes_per_flow(flows: usize, seconds: u64, distributions: Distributions) -> [isize; 2] {
    let network = Plan { tsq: false, distributions, ..Plan::scaled(flows) }.network();
    let duration = Duration::from_secs(seconds);
    let window = Window { from: Instant::ZERO + duration / 5, until: Instant::ZERO + duration };
    let settings = SimulationSettings { seed: 1, duration, window, interval: Duration::from_millis(300) };
    let before = BYTES.get().now;
    let mut simulation = Simulation::new(&network, &settings).expect("the papers' network is sound");
    let set_up = BYTES.get().now;
    BYTES.set(Bytes { now: set_up, most: set_up });
    simulation.advance(Instant::ZERO + duration);
    let Bytes { now, most } = BYTES.get();
    [now - before, most - before].map(|bytes| bytes / flows.cast_signed())
}

#[test]
fn a_flow_takes_little_memory() {
    for (distributions, limits) in
        [(Distributions::PerGroup, [1870, 2170]), (Distributions::PerFlow, [2520, 2770])]
    {
        let bytes = bytes_per_flow(1000, 5, distributions);
        let fits = bytes.iter().zip(limits).all(|(bytes, limit)| *bytes <= limit);
        assert!(
            fits,
            "{distributions:?}: {bytes:?} B at the end of the run and at most, allowed are {limits:?}"
        );
    }
}
