//! The behaviour that RFC 8033 spells out.

use super::*;
use cutline_units::HintBits;

const RATE: Rate = Rate::from_mbps(8);

/// At 8 Mbit/s a packet of 1000 B is 1 ms.
fn packets(packets: u32) -> Backlog {
    Backlog { packets, bytes: u64::from(packets) * 1000 }
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
    let mut pie = pie(PieParams::default());
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
    let mut untuned = pie(PieParams { auto_tune: false, ..PieParams::default() });
    untuned.advance(updates(1), packets(30));
    assert!(close(untuned.vars.drop_prob, 0.125 * 0.015 + 1.25 * 0.030));
}

#[test]
fn steps_are_at_most_two_per_cent_once_ten_are_dropped() {
    // RFC 8033 section 5.5.
    let mut pie = pie(PieParams::default());
    pie.vars.drop_prob = 0.1;
    pie.advance(updates(1), packets(500));
    assert!(close(pie.vars.drop_prob, 0.12), "{}", pie.vars.drop_prob);
}

#[test]
fn the_probability_decays_once_the_queue_is_short() {
    let idle = DelayControlParams { alpha: 0.0, beta: 0.0, ..PieParams::default().control };
    let mut pie = pie(PieParams { control: idle, ..PieParams::default() });
    pie.vars.drop_prob = 0.5;
    pie.advance(updates(1), packets(7));
    assert!(close(pie.vars.drop_prob, 0.49));
    pie.advance(updates(2), packets(8));
    assert!(close(pie.vars.drop_prob, 0.49), "8 ms are more than half of 15 ms");
}

#[test]
fn a_burst_passes_for_150_ms() {
    // RFC 8033 section 4.4.
    let mut pie = pie(PieParams { auto_tune: false, ..PieParams::default() });
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
    let mut pie = pie(PieParams { max_burst: Duration::ZERO, ..PieParams::default() });
    (pie.vars.drop_prob, pie.vars.qdelay_old) = (0.5, 0.1);
    assert_eq!(arrive(&mut pie, packets(2)), 0.0, "two packets");
    assert_eq!(arrive(&mut pie, packets(3)), 0.5);
    (pie.vars.drop_prob, pie.vars.qdelay_old) = (0.19, 0.007);
    assert_eq!(arrive(&mut pie, packets(30)), 0.0, "less than half the target, less than 20 %");
    pie.vars.drop_prob = 0.2;
    assert_eq!(arrive(&mut pie, packets(30)), 0.2);
}

#[test]
fn packets_are_marked_below_ten_per_cent_alone() {
    // RFC 8033 section 5.1.
    let mut pie = pie(PieParams::default());
    pie.vars.drop_prob = 0.099;
    assert!(pie.may_mark());
    pie.vars.drop_prob = 0.1;
    assert!(!pie.may_mark());
}

#[test]
fn derandomized_drops_are_neither_close_nor_far() {
    // RFC 8033 section 5.4.
    let params = PieParams { derandomize: true, max_burst: Duration::ZERO, ..PieParams::default() };
    let mut pie = pie(params);
    (pie.vars.drop_prob, pie.vars.qdelay_old) = (0.125, 0.1);
    let offered: Vec<f64> = (0..68).map(|_| arrive(&mut pie, packets(30))).collect();
    assert!(offered[..6].iter().all(|&p| p == 0.0), "6 x 0.125 < 0.85");
    assert!(offered[6..67].iter().all(|&p| p == 0.125));
    assert_eq!(offered[67], 1.0, "68 x 0.125 = 8.5");
    pie.judged(Instant::ZERO, Arrival::new(1, HintBits::PAPER.largest()), Verdict::Drop(DropReason::Early));
    assert_eq!(arrive(&mut pie, packets(30)), 0.0);
}

#[test]
fn late_calls_give_what_punctual_ones_do() {
    let (mut late, mut punctual) = (pie(PieParams::default()), pie(PieParams::default()));
    for (step, backlog) in [0, 40, 90, 90, 5, 0, 0, 60].into_iter().enumerate() {
        let (from, to) = (step as u64 * 40, (step as u64 + 1) * 40);
        ((from + 1)..=to).for_each(|n| punctual.advance(updates(n), packets(backlog)));
        late.advance(updates(to), packets(backlog));
        assert_eq!((late.vars, late.clock), (punctual.vars, punctual.clock), "after {backlog} packets");
    }
    assert!(late.vars.drop_prob > 0.0, "the comparison is of something");
}
