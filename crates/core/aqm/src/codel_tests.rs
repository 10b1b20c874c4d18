//! The behaviour that RFC 8289 spells out, on a queue whose packets have all waited long.

use super::*;
use cutline_units::{HintBits, Streams};

fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn codel(ecn: bool) -> CoDel<u32> {
    let rate = Rate::from_mbps(8);
    CoDel::build(&CoDelParams::default(), Limit::Packets(100_000), ecn, rate)
        .expect("the defaults are allowed")
}

fn fill(codel: &mut CoDel<u32>, at: Instant, packets: u32, ecn_capable: bool) {
    let mut random = Streams::new(1).stream("codel", "drop");
    let arrival = Arrival { ecn_capable, ..Arrival::new(1000, HintBits::PAPER.largest()) };
    for packet in 0..packets {
        codel.enqueue(at, arrival, packet, &mut random);
    }
}

/// A packet leaves every millisecond from `from` on. Returns the times at which packets were shed, ms.
fn drops(codel: &mut CoDel<u32>, from: u64, to: u64) -> Vec<u64> {
    let mut drops = Vec::new();
    for at in from..to {
        codel.dequeue(ms(at));
        while codel.shed().is_some() {
            drops.push(at);
        }
    }
    drops
}

#[test]
fn the_interval_between_drops_shrinks() {
    // RFC 8289 section 5.6.
    let mut codel = codel(false);
    fill(&mut codel, ms(0), 3000, false);
    // Above the target from 5 ms on; the first drop comes 100 ms later, the next after 100 / sqrt(count) each.
    let expected = [105.0, 205.0, 275.7, 333.4, 383.4, 428.2, 469.0, 506.8, 542.1];
    let drops = drops(&mut codel, 0, 550);
    assert_eq!(drops.len(), expected.len(), "{drops:?}");
    for (at, due) in drops.iter().zip(expected) {
        assert!((0.0..1.01).contains(&(*at as f64 - due)), "{at} ms, due at {due}");
    }
    assert_eq!(codel.stats().dropped(DropReason::Early).packets, 9);
}

#[test]
fn newton_takes_a_few_drops() {
    let mut control = Control { count: 1, ..Control::NEW };
    let params = CoDelParams { root: Root::Newton, ..CoDelParams::default() };
    let mut interval = |count| {
        control.count = count;
        control.step_root();
        control.next_after(ms(0), &params).saturating_since(ms(0)).as_secs_f64() * 1e3
    };
    let found = [2, 3, 4, 5, 6].map(&mut interval);
    for (found, expected) in found.into_iter().zip([50.0, 56.25, 48.78, 44.15, 40.41]) {
        assert!((found - expected).abs() < 0.02, "{found}");
    }
    for count in 7..10_000 {
        let (found, exact) = (interval(count), 100.0 / f64::from(count).sqrt());
        assert!((found / exact - 1.0).abs() < 0.03, "{count}: {found} {exact}");
    }
    // A count that rises at once is more than a step can follow.
    assert!((interval(1_000_000) / 0.1 - 1.0).abs() > 0.5);
}

#[test]
fn a_queue_that_was_short_within_the_interval_has_no_drops() {
    let mut codel = codel(false);
    fill(&mut codel, ms(0), 90, false);
    assert_eq!(drops(&mut codel, 0, 90), [0; 0]);
    fill(&mut codel, ms(90), 90, false);
    assert_eq!(drops(&mut codel, 90, 180), [0; 0], "each burst is gone before 100 ms are over");
}

#[test]
fn one_packet_left_is_none_too_many() {
    // RFC 8289 section 5.6.
    let mut codel = codel(false);
    for at in 0..50 {
        // One packet more than leaves; each waits 20 ms, but at most 1500 B wait behind it.
        fill(&mut codel, ms(at * 20), if at == 0 { 2 } else { 1 }, false);
        codel.dequeue(ms(at * 20));
        assert_eq!(codel.shed(), None);
    }
}

#[test]
fn dropping_resumes_near_its_last_count() {
    // RFC 8289 section 5.5.
    let mut codel = codel(false);
    fill(&mut codel, ms(0), 700, false);
    let first = drops(&mut codel, 0, 600).len() as u32;
    assert!(first > 8 && codel.control.dropping);
    // A packet of no sojourn time ends it; soon after, the queue is long again.
    codel.reset(ms(600), &mut |_| ());
    codel.control = Control { count: first, last_count: 1, drop_next: ms(590), ..Control::NEW };
    fill(&mut codel, ms(600), 700, false);
    drops(&mut codel, 600, 706);
    assert_eq!(codel.control.count, first - 1, "count - last_count");
    // Long after, it begins with one.
    codel.reset(ms(3000), &mut |_| ());
    codel.control = Control { count: first, last_count: 1, drop_next: ms(590), ..Control::NEW };
    fill(&mut codel, ms(3000), 700, false);
    drops(&mut codel, 3000, 3106);
    assert_eq!(codel.control.count, 1);
}

#[test]
fn packets_that_can_be_marked_are_marked_at_the_same_times() {
    let mut codel = codel(true);
    fill(&mut codel, ms(0), 3000, true);
    let marked: Vec<u64> =
        (0..550).filter(|&at| codel.dequeue(ms(at)).is_some_and(|sent| sent.marked)).collect();
    assert_eq!(marked, [105, 205, 276, 334, 384, 429, 469, 507, 543]);
    assert_eq!((codel.shed(), codel.stats().marked.packets), (None, 9));
}
