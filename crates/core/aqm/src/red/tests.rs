//! Worked values of RED and its automatic settings.

use super::*;
use cutline_units::{Hint, HintBits, Streams};

const RATE: Rate = Rate::from_mbps(5);

fn hint() -> Hint {
    HintBits::PAPER.largest()
}

fn packets(packets: u32) -> Backlog {
    Backlog { packets, bytes: u64::from(packets) * 1000 }
}

fn red(params: RedParams) -> Red {
    Red::build(&params, RATE).expect("the test's parameters are allowed")
}

/// A law whose average is the queue itself.
fn without_memory() -> RedParams {
    RedParams { w_q: Some(1.0), ..RedParams::default() }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-12
}

fn arrive(red: &mut Red, size: u32, q: u32) -> f64 {
    red.arrive(Instant::ZERO, Arrival::new(size, hint()), packets(q)).get()
}

#[test]
fn the_probability_halfway_between_the_thresholds() {
    // Floyd and Jacobson 1993 eq. 3: 0.02 x (10 - 5) / (15 - 5).
    // Floyd and Jacobson 1993 eq. 4, for the 50th packet: 0.01 / (1 - 50 x 0.01).
    let mut red = red(without_memory());
    assert!(close(arrive(&mut red, 1000, 10), 0.01));
    red.core.vars.count = 49;
    assert!(close(arrive(&mut red, 1000, 10), 0.02));
    assert_eq!(red.probability().map(Probability::get), Some(0.01));
    assert_eq!(arrive(&mut red, 1000, 4), 0.0);
    assert_eq!(arrive(&mut red, 1000, 15), 1.0);
}

#[test]
fn gentle_red_rises_until_twice_the_threshold() {
    let mut red = red(RedParams { gentle: true, spacing: Spacing::None, ..without_memory() });
    // 0.02 + 0.98 x 7.5 / 15 has no whole q; at 18 packets: 0.02 + 0.98 x 3 / 15 = 0.216.
    assert!(close(arrive(&mut red, 1000, 18), 0.216));
    assert_eq!(arrive(&mut red, 1000, 30), 1.0);
}

#[test]
fn in_bytes_size_counts_twice() {
    let mut red = red(RedParams { mode: RedMode::Bytes, spacing: Spacing::None, ..without_memory() });
    // 10,000 B are 10 packets; a packet of 500 B is hit half as often.
    assert!(close(arrive(&mut red, 500, 10), 0.005));
    assert!(close(arrive(&mut red, 1500, 10), 0.015));
    assert_eq!(arrive(&mut red, 40, 15), 1.0, "beyond the slope everything is hit");
}

#[test]
fn the_average_follows_its_weight() {
    let mut red = red(RedParams::default());
    arrive(&mut red, 1000, 100);
    assert!(close(red.core.avg(), 0.2));
    arrive(&mut red, 1000, 100);
    assert!(close(red.core.avg(), 0.2 + 0.002 * 99.8));
}

#[test]
fn idle_time_counts_as_small_packets_that_could_have_passed() {
    let mut red = red(RedParams::default());
    red.core.vars.avg = 10.0;
    red.departed(Instant::ZERO, 1000, Instant::ZERO, packets(0));
    // The packet is on the wire for 1.6 ms; nine more packet times pass before the next arrival.
    let now = Instant::ZERO + Duration::from_micros(1600 * 10);
    red.arrive(now, Arrival::new(1000, hint()), packets(0));
    assert!((red.core.avg() - 10.0 * 0.998_f64.powi(10)).abs() < 1e-9, "{}", red.core.avg());
    // One that is dropped leaves the queue empty: the same idle time does not count again.
    red.arrive(now, Arrival::new(1000, hint()), packets(0));
    assert!((red.core.avg() - 10.0 * 0.998_f64.powi(11)).abs() < 1e-9, "{}", red.core.avg());
}

/// Returns the frequency of each gap between hits while p_b is 0.02; the first gap is left out.
fn gaps(spacing: Spacing) -> Vec<u32> {
    let mut red = red(RedParams { max_p: 0.04, spacing, ..without_memory() });
    let mut random = Streams::new(1).stream("red", "drop");
    let (mut gaps, mut gap, mut hits) = (vec![0; 201], 0, 0);
    for _ in 0..1_000_000 {
        gap += 1;
        let hit = random.chance(Probability::clamped(arrive(&mut red, 1000, 10)));
        red.judged(Instant::ZERO, Arrival::new(1000, hint()), Verdict::from_hit(hit, false));
        if hit {
            gaps[usize::min(gap, 200)] += u32::from(hits > 0);
            (gap, hits) = (0, hits + 1);
        }
    }
    gaps
}

#[test]
fn gaps_are_uniform() {
    let gaps = gaps(Spacing::Uniform);
    // The mean of 1..49 is 25 packets: 40,000 hits; each gap 816 times, give or take 28.
    let hits: u32 = gaps.iter().sum();
    assert!((40_000.0 - f64::from(hits)).abs() < 600.0, "{hits}");
    assert!(gaps[1..=49].iter().all(|&n| (676..=956).contains(&n)), "{gaps:?}");
    assert_eq!(gaps[50..].iter().sum::<u32>(), 0);
}

#[test]
fn the_first_gap_reaches_one_packet_further() {
    let mut red = red(RedParams { max_p: 0.04, ..without_memory() });
    let offered: Vec<f64> = (0..50).map(|_| arrive(&mut red, 1000, 10)).collect();
    assert!(close(offered[0], 0.02) && close(offered[1], 0.02 / 0.98) && close(offered[48], 0.5));
    assert!(close(offered[49], 1.0), "the 50th is hit for certain: {offered:?}");
}

#[test]
fn waiting_hits_within_the_second_stretch() {
    let gaps = gaps(Spacing::Wait);
    assert_eq!(gaps[..50].iter().sum::<u32>() + gaps[100..].iter().sum::<u32>(), 0);
    // 13,423 hits; each gap 268 times, give or take 16.
    assert!(gaps[50..=99].iter().all(|&n| (188..=348).contains(&n)), "{gaps:?}");
}

#[test]
fn automatic_settings() {
    let red = red(RedParams { min_th: None, max_th: None, w_q: None, ..RedParams::default() });
    // Adaptive RED 2001 section 5: 625 packets/s. Adaptive RED 2001 section 6: 5 ms are 3.1 packets, and 5 is the least.
    assert!((red.core.w_q - 0.001_598_721).abs() < 1e-9, "{}", red.core.w_q);
    assert_eq!((red.core.slope.min_th, red.core.slope.max_th), (5.0, 15.0));
    let mut fast = red;
    fast.set_rate(Instant::ZERO, Rate::from_mbps(100));
    assert!(close(fast.core.slope.min_th, 31.25) && close(fast.core.slope.max_th, 93.75));
}

#[test]
fn thresholds_in_the_wrong_order_are_refused() {
    let refused = |params: RedParams| Red::build(&params, RATE).unwrap_err().to_string();
    let params = RedParams { min_th: Some(20.0), ..RedParams::default() };
    assert_eq!(refused(params), "max-th = 15: allowed is more than min-th = 20");
    let params = RedParams { min_th: None, ..RedParams::default() };
    assert_eq!(refused(params), "max-th = 15: allowed is set together with min-th, or not at all");
    assert!(Red::build(&RedParams { max_th: None, ..params }, RATE).is_ok());
}

#[test]
fn ns_2_does_not_drop_the_first_packet_or_those_of_a_short_queue() {
    let mut red = red(RedParams { variant: RedVariant::Ns2, w_q: Some(0.5), ..RedParams::default() });
    // Averages of 10: p_b = 0.01, and the first, though it counts, is spared.
    red.core.vars.avg = 10.0;
    assert_eq!(arrive(&mut red, 1000, 10), 0.0);
    assert!(close(arrive(&mut red, 1000, 10), 0.01 / (1.0 - 2.0 * 0.01)));
    // One is waiting: the average of 5.5 does not matter, and what follows is a first one again.
    assert_eq!(arrive(&mut red, 1000, 1), 0.0);
    red.core.vars.avg = 10.0;
    assert_eq!(arrive(&mut red, 1000, 10), 0.0);
    // Beyond the slope everything is hit that finds two waiting.
    red.core.vars = Vars::new(Instant::ZERO);
    red.core.vars.avg = 40.0;
    assert_eq!(arrive(&mut red, 1000, 2), 1.0);
}
