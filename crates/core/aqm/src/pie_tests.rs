//! The behaviour that RFC 8033 spells out.

use super::*;
use crate::DropReason;
use cutline_units::HintBits;

const RATE: Rate = Rate::from_mbps(8);

/// At 8 Mbit/s a packet of 1000 B is 1 ms.
fn packets(packets: u32) -> Backlog {
    Backlog { packets, bytes: u64::from(packets) * 1000 }
}

/// The RFC's choices, and the delay of waiting packets.
fn rfc() -> PieParams {
    PieParams {
        estimate: DelayEstimate::LinkRate,
        decay: Decay::BelowHalf,
        decay_share: 0.02,
        high_delay: None,
        derandomize: false,
        guard: Guard::LastUpdate,
        few: SmallBacklog::UpToTwo,
        mean_packet: 1000,
        ..PieParams::default()
    }
}

fn pie(params: PieParams) -> Pie {
    Pie::build(&params, RATE).expect("the parameters are allowed")
}

fn updates(n: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(15) * n
}

fn arrive(pie: &mut Pie, backlog: Backlog) -> f64 {
    pie.arrive(Instant::ZERO, Arrival::new(1000, HintBits::PAPER.largest()), backlog).get()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-12
}

#[test]
fn a_step_of_the_rfc() {
    // RFC 8033 section 4.2: (0.125 x 0.015 + 1.25 x 0.01) / 2.
    let mut pie = pie(rfc());
    (pie.vars.drop_prob, pie.vars.qdelay_old) = (0.05, 0.020);
    pie.advance(updates(1), packets(30));
    assert!(close(pie.vars.drop_prob, 0.057_187_5), "{}", pie.vars.drop_prob);
    assert!(close(pie.vars.qdelay_old, 0.030));
}

#[test]
fn steps_are_smaller_while_the_probability_is_small() {
    let table =
        [(0.0, 2048.0), (5e-6, 512.0), (5e-5, 128.0), (5e-4, 32.0), (5e-3, 8.0), (5e-2, 2.0), (0.1, 1.0)];
    for (p, expected) in table {
        assert_eq!(divisor(p), expected, "{p}");
    }
    let mut untuned = pie(PieParams { auto_tune: false, ..rfc() });
    untuned.advance(updates(1), packets(30));
    assert!(close(untuned.vars.drop_prob, 0.125 * 0.015 + 1.25 * 0.030));
}

#[test]
fn steps_are_at_most_two_per_cent_once_ten_are_dropped() {
    // RFC 8033 section 5.5.
    let mut pie = pie(rfc());
    pie.vars.drop_prob = 0.1;
    pie.advance(updates(1), packets(500));
    assert!(close(pie.vars.drop_prob, 0.12), "{}", pie.vars.drop_prob);
}

#[test]
fn the_probability_decays_once_the_queue_is_quiet() {
    let idle = DelayControlParams { alpha: 0.0, beta: 0.0, ..rfc().control };
    // RFC 8033 appendix B: 8 ms are more than half of 15 ms.
    let after = |params: PieParams, backlog: u32| {
        let mut pie = pie(PieParams { control: idle, ..params });
        (pie.vars.drop_prob, pie.vars.qdelay_old) = (0.5, f64::from(backlog) / 1000.0);
        pie.advance(updates(1), packets(backlog));
        pie.vars.drop_prob
    };
    assert_eq!([8, 7, 0].map(|backlog| after(rfc(), backlog)), [0.5, 0.49, 0.49]);
    // Linux, and RFC 8033 section 4.2.
    let linux = PieParams { decay: Decay::Empty, decay_share: PieParams::default().decay_share, ..rfc() };
    assert_eq!([7, 1, 0].map(|backlog| after(linux, backlog)), [0.5, 0.5, 0.492_187_5]);
}

#[test]
fn steps_are_larger_beyond_the_high_delay() {
    let after = |high_delay, backlog| {
        let mut pie = pie(PieParams { high_delay, ..rfc() });
        (pie.vars.drop_prob, pie.vars.qdelay_old) = (0.5, f64::from(backlog) / 1000.0);
        pie.advance(updates(1), packets(backlog));
        pie.vars.drop_prob
    };
    let high = PieParams::default().high_delay;
    // 0.125 x (250 - 15) ms is more than 0.02.
    assert!(close(after(high, 250), 0.52) && close(after(high, 251), 0.54) && close(after(None, 251), 0.52));
}

#[test]
fn the_guard_uses_the_latest_delay() {
    let offered = |guard, qdelay_old| {
        let mut pie = pie(PieParams { guard, max_burst: Duration::ZERO, ..rfc() });
        (pie.vars.drop_prob, pie.vars.qdelay_old) = (0.19, qdelay_old);
        arrive(&mut pie, packets(30))
    };
    assert_eq!(offered(Guard::LastUpdate, 0.007), 0.0);
    assert_eq!(offered(Guard::Latest, 0.007), 0.19, "30 packets are 30 ms");
}

#[test]
fn small_packets_are_dropped_less_in_byte_mode() {
    let offered = |bytemode, size| {
        let mut pie = pie(PieParams { bytemode, max_burst: Duration::ZERO, ..rfc() });
        pie.vars.drop_prob = 0.5;
        let arrival = Arrival::new(size, HintBits::PAPER.largest());
        pie.arrive(Instant::ZERO, arrival, packets(30)).get()
    };
    assert_eq!([100, 1000, 1500].map(|size| offered(true, size)), [0.05, 0.5, 0.5]);
    assert_eq!([100, 1000, 1500].map(|size| offered(false, size)), [0.5; 3]);
}

#[test]
fn a_burst_passes_for_150_ms() {
    // RFC 8033 section 4.4.
    let mut pie = pie(PieParams { auto_tune: false, ..rfc() });
    pie.advance(updates(9), packets(100));
    assert!(pie.vars.drop_prob > 0.0);
    assert_eq!(arrive(&mut pie, packets(100)), 0.0, "135 ms after the burst began");
    pie.advance(updates(10), packets(100));
    assert!(arrive(&mut pie, packets(100)) > 0.0, "150 ms after");
    // Quiet long enough, it has its allowance back.
    pie.advance(updates(2000), packets(0));
    assert_eq!(pie.vars, Vars::new(&pie.params));
}

#[test]
fn a_short_queue_has_no_drops() {
    // RFC 8033 section 4.1.
    let mut pie = pie(PieParams { max_burst: Duration::ZERO, ..rfc() });
    (pie.vars.drop_prob, pie.vars.qdelay_old) = (0.5, 0.1);
    assert_eq!([2, 3].map(|waiting| arrive(&mut pie, packets(waiting))), [0.0, 0.5]);
    pie.params.few = SmallBacklog::BelowTwo;
    assert_eq!([1, 2].map(|waiting| arrive(&mut pie, packets(waiting))), [0.0, 0.5], "as in Linux");
    (pie.vars.drop_prob, pie.vars.qdelay_old) = (0.19, 0.007);
    assert_eq!(arrive(&mut pie, packets(30)), 0.0, "less than half the target, less than 20 %");
    pie.vars.drop_prob = 0.2;
    assert_eq!(arrive(&mut pie, packets(30)), 0.2);
}

#[test]
fn packets_are_marked_below_ten_per_cent_alone() {
    // RFC 8033 section 5.1.
    let mut pie = pie(rfc());
    pie.vars.drop_prob = 0.099;
    assert!(pie.may_mark());
    pie.vars.drop_prob = 0.1;
    assert!(!pie.may_mark());
}

#[test]
fn derandomized_drops_are_neither_close_nor_far() {
    // RFC 8033 section 5.4.
    let params = PieParams { derandomize: true, max_burst: Duration::ZERO, ..rfc() };
    assert!(PieParams::default().derandomize, "Linux does it");
    let mut pie = pie(params);
    (pie.vars.drop_prob, pie.vars.qdelay_old) = (0.125, 0.1);
    let offered: Vec<f64> = (0..68).map(|_| arrive(&mut pie, packets(30))).collect();
    assert!(offered[..6].iter().all(|&p| p == 0.0), "6 x 0.125 < 0.85");
    assert!(offered[6..67].iter().all(|&p| p == 0.125));
    assert_eq!(offered[67], 1.0, "68 x 0.125 = 8.5");
    pie.judged(
        Instant::ZERO,
        Arrival::new(1, HintBits::PAPER.largest()),
        Verdict::Drop(DropReason::Overflow),
    );
    assert_eq!(arrive(&mut pie, packets(30)), 0.0);
}

#[test]
fn late_calls_have_the_results_of_punctual_ones() {
    let (mut late, mut punctual) = (pie(rfc()), pie(rfc()));
    for (step, backlog) in [0, 40, 90, 90, 5, 0, 0, 60].into_iter().enumerate() {
        let (from, to) = (step as u64 * 40, (step as u64 + 1) * 40);
        ((from + 1)..=to).for_each(|n| punctual.advance(updates(n), packets(backlog)));
        late.advance(updates(to), packets(backlog));
        assert_eq!((late.vars, late.clock), (punctual.vars, punctual.clock), "after {backlog} packets");
    }
    assert!(late.vars.drop_prob > 0.0, "the comparison is of something");
}
