//! Drain times, charges and laws, beside those of the crate `aqm`.

use crate::{PARITY, answers};
use cutline_aqm::{
    Aqm, Backlog, DelayControlParams, DelayEstimate, DrainRate, DropProbability, Pi, Pi2, Pi2Params, PiParams,
};
use cutline_bpf_parity::{fixed, float};
use cutline_units::{Duration, Instant, Probability, RandomStream, Rate, Streams};
use std::fmt::Write as _;

/// A whole number below `end`, with as many small as large ones.
fn below(random: &mut RandomStream, end: u64) -> u64 {
    ((end as f64).powf(random.uniform()) - 1.0) as u64
}

/// The header promises whole ns, rounded down, for all rates of the interface and for up to 4 GB.
#[test]
fn drain_times_are_the_same() {
    let mut random = Streams::new(1).stream("drain", "times");
    let mut commands = String::new();
    let expected: Vec<i128> = (0..20_000)
        .map(|_| {
            let (bps, bytes) = (1000 + below(&mut random, 10_000_000_000_000), below(&mut random, 1 << 32));
            writeln!(commands, "drain {bps} {bytes}").unwrap();
            i128::from(DrainRate::new(Rate::from_bps(bps)).time(bytes).as_nanos())
        })
        .collect();
    let answers = answers(&PARITY, "drain", &commands);
    assert_eq!(answers.concat(), expected);
}

/// Ten full segments with time stamps, one byte more, a packet without payload, and one of which no size is known.
#[test]
fn segments_are_counted_by_length() {
    let commands = "segments 14546 66 1448\nsegments 14547 66 1448\nsegments 66 66 1448\nsegments 40 66 1448\nsegments 1000 66 0\n";
    let answers = answers(&PARITY, "segments", commands);
    assert_eq!(answers.concat(), [10, 11, 1, 1, 1]);
}

/// A stamp has 48 bits of the time: a wait across the end of them, one that has not begun, and the longest.
#[test]
fn waits_are_exact_for_39_hours() {
    const LONGEST: u64 = (1 << 47) - 1;
    let (end, late) = (1_u64 << 48, u64::MAX - 600);
    let waits = [(1000, 16, 1700), (1000, 1, 900), (end - 500, 6, end + 1000), (late, 6, 400)];
    let longest = [(5, 9, 5 + LONGEST), (5, 9, 6 + LONGEST)];
    let mut commands = String::new();
    for (now, level, at) in waits.into_iter().chain(longest) {
        writeln!(commands, "waited {now} {level} {at}").unwrap();
    }
    let answers = answers(&PARITY, "waited", &commands);
    let of_tsq: Vec<i128> = answers.iter().flat_map(|answer| [answer[0], answer[1]]).collect();
    let expected = [700, 16, 0, 1, 1500, 6, 1001, 6, i128::from(LONGEST), 9, 0, 9];
    assert_eq!(of_tsq, expected);
}

/// A packet of Sieve has 39 bits of its arrival, in units of 128 ns: the same waits, and the longest.
#[test]
fn waits_in_sieve_are_right_to_128_ns_for_nine_hours() {
    const LONGEST: u64 = (1 << 45) - 1;
    let (end, late) = (1_u64 << 46, u64::MAX - 600);
    let waits: [(u64, u64, u64, u64); 5] = [
        (1000, 16, 1700, 700),
        (1000, 1, 900, 0),
        (end - 500, 6, end + 1000, 1500),
        (late, 6, 400, 1001),
        (128, 9, 128 + LONGEST, LONGEST),
    ];
    let mut commands = String::new();
    for (now, level, at, _) in waits {
        writeln!(commands, "waited {now} {level} {at}").unwrap();
    }
    writeln!(commands, "waited 128 9 {}", 129 + LONGEST).unwrap();
    let answers = answers(&PARITY, "waited-sieve", &commands);
    for ((_, level, _, wait), answer) in waits.into_iter().zip(&answers) {
        assert!((0..128).contains(&(answer[2] - i128::from(wait))), "{wait}: {answer:?}");
        assert_eq!(answer[3], i128::from(level));
    }
    assert_eq!(answers[waits.len()][2..], [0, 9]);
}

/// TSQ eq. 5 as exactly as floating point can: p', and the ratio of the delays.
fn charge(p: f64, l: u64, q: u64, q_prime: u64) -> (f64, f64) {
    let ratio = (l + q) as f64 / (l + q_prime) as f64;
    ((ratio * ratio * p).min(1.0), ratio)
}

/// The header promises 2^-21 p' + 2^-60 (1 + r), where r is the ratio of the delays.
#[test]
fn the_charge_is_wrong_by_less_than_a_two_millionth() {
    let mut random = Streams::new(2).stream("charge", "delays");
    let mut commands = String::new();
    let mut expected = Vec::new();
    for round in 0..20_000 {
        let l = 1_000_000 + below(&mut random, 999_000_000);
        let q = below(&mut random, (1 << 40) - 1_000_000_000);
        let q_prime = below(&mut random, q + 1);
        let p = if round % 10 == 0 { below(&mut random, 1 << 60) } else { fixed(random.uniform().powi(6)) };
        writeln!(commands, "set tsq.l {l}\ncharge {p} {q} {q_prime}").unwrap();
        expected.push(charge(float(p.into()), l, q, q_prime));
    }
    let answers = answers(&PARITY, "charge", &commands).concat();
    let mut largest: f64 = 0.0;
    for (answer, (expected, ratio)) in answers.into_iter().map(float).zip(expected) {
        let error = (answer - expected).abs();
        assert!(
            error <= expected * 0.5_f64.powi(21) + (1.0 + ratio) * 0.5_f64.powi(60),
            "{answer} for {expected}"
        );
        largest = largest.max(error / expected.max(1e-6));
    }
    println!("largest error of p' above 1e-6, as a part of it: {largest:.2e}");
}

#[test]
fn the_paper_s_charge_is_bounded_where_a_bound_is_set() {
    let (p, root) = (fixed(1e-3), (10.0_f64.sqrt() * (1 << 23) as f64) as u64);
    let commands = format!(
        "set tsq.l 40000000\ncharge {p} 400000000 25000000\nset tsq.ratio_root {root}\ncharge {p} 400000000 25000000\n"
    );
    let answers = answers(&PARITY, "bounded", &commands).concat();
    // TSQ eq. 5: (440 / 65)^2 = 45.8
    assert!((float(answers[0]) - 0.045_822_5).abs() < 1e-6, "{}", float(answers[0]));
    assert!((float(answers[1]) - 0.01).abs() < 1e-8, "{}", float(answers[1]));
}

/// Lengths of a queue at times: a walk with long pauses and with steps that are shorter than a sample.
fn walk(seed: u64, steps: usize) -> Vec<(u64, Backlog)> {
    let mut random = Streams::new(seed).stream("walk", "steps");
    let (mut now, mut packets) = (0, 0.0_f64);
    (0..steps)
        .map(|step| {
            now += if step % 1000 == 999 { 50_000_000_000 } else { below(&mut random, 40_000_000) };
            packets = (packets + 60.0 * (random.uniform() - 0.49)).clamp(0.0, 900.0);
            let packets = packets as u32;
            (now, Backlog { packets, bytes: u64::from(packets) * 1000 + u64::from(packets % 7) })
        })
        .collect()
}

/// Returns p of a law, and of the same law in fixed point, after each reading of the backlog.
fn probabilities(
    name: &str,
    mut law: impl DropProbability,
    rate: Rate,
    settings: &str,
    readings: &[(u64, Backlog)],
) -> Vec<(f64, f64)> {
    let mut commands = format!("{settings}set shape_bps {}\ntsq 0\n", rate.as_bps());
    let mut expected = Vec::new();
    for (now, backlog) in readings {
        writeln!(commands, "law {now} {} {}", backlog.packets, backlog.bytes).unwrap();
        law.advance(Instant::from_nanos(*now), *backlog);
        expected.push(law.probability().map_or(0.0, Probability::get));
    }
    let answers = answers(&PARITY, name, &commands).concat();
    assert_eq!(answers.len(), expected.len());
    expected.into_iter().zip(answers.into_iter().map(float)).collect()
}

/// Returns the largest difference between p of a law and that of the same law in fixed point.
fn largest_difference(name: &str, law: impl DropProbability, rate: Rate, settings: &str) -> f64 {
    let pairs = probabilities(name, law, rate, settings, &walk(3, 20_000));
    assert!(pairs.iter().filter(|(p, _)| *p > 0.0 && *p < 1.0).count() > 5000, "{name} is at a bound");
    let largest = pairs.iter().map(|(expected, answer)| (answer - expected).abs()).fold(0.0, f64::max);
    println!("{name}: largest error of p {largest:.2e}");
    largest
}

fn pi_settings(params: &PiParams) -> String {
    let period = Duration::from_secs_f64(1.0 / params.frequency).as_nanos();
    let q_ref = (params.q_ref * (1 << 20) as f64) as u64;
    let (a, b, mean_packet) = (fixed(params.a), fixed(params.b), params.mean_packet.unwrap_or_default());
    format!(
        "set law 1\nset pi.a {a}\nset pi.b {b}\nset pi.period {period}\nset pi.q_ref {q_ref}\nset pi.mean_packet {mean_packet}\n"
    )
}

/// 20,000 readings over some 20 minutes. The header promises 2^-58 + 2^-60 |q - qref| for each sample.
#[test]
fn pi_in_fixed_point_is_pi() {
    for (name, params) in [
        ("pi-paper", PiParams { q_ref: 200.0, ..PiParams::default() }),
        (
            "pi-bytes",
            PiParams { a: 2e-5, b: 1.9e-5, q_ref: 300.0, mean_packet: Some(1000), ..PiParams::default() },
        ),
    ] {
        let law = Pi::build(&params, Rate::from_mbps(15)).unwrap();
        let largest = largest_difference(name, law, Rate::from_mbps(15), &pi_settings(&params));
        assert!(largest < 1e-9, "{name}: {largest}");
    }
}

/// Returns the commands that choose PI2. The gains are per nanosecond in the kernel.
pub fn pi2_settings(control: &DelayControlParams) -> String {
    let per_ns = |gain: f64| fixed(gain * 1e-9);
    format!(
        "set law 2\nset pi2.alpha {}\nset pi2.beta {}\nset pi2.target {}\nset pi2.t_update {}\n",
        per_ns(control.alpha),
        per_ns(control.beta),
        control.target.as_nanos(),
        control.t_update.as_nanos()
    )
}

#[test]
fn pi2_in_fixed_point_is_pi2() {
    let control = DelayControlParams { target: Duration::from_millis(200), ..Pi2Params::default().control };
    let params = Pi2Params { control, estimate: DelayEstimate::LinkRate, ..Pi2Params::default() };
    let settings = pi2_settings(&control);
    let law = Pi2::build(&params, Rate::from_mbps(15)).unwrap();
    let largest = largest_difference("pi2", law, Rate::from_mbps(15), &settings);
    assert!(largest < 1e-7, "{largest}");
}

/// Gains whose terms are far above 1 in one update: a queue that fills, stays and empties. Neither of two large terms hides the other.
#[test]
fn terms_above_one_do_not_hide_each_other() {
    let bytes = [1000, 400_000, 400_000, 380_000, 0, 0];
    let readings: Vec<(u64, Backlog)> = (1..)
        .map(|step| step * 40_000_000)
        .zip(bytes.map(|bytes| Backlog { packets: (bytes / 1000) as u32, bytes }))
        .collect();
    let slow = Rate::from_kbps(100);
    let control = Pi2Params::default().control;
    let params = Pi2Params { control, estimate: DelayEstimate::LinkRate, ..Pi2Params::default() };
    let pi2 = Pi2::build(&params, slow).unwrap();
    let strong = PiParams { a: 0.02, b: 0.0199, q_ref: 50.0, ..PiParams::default() };
    let pi = Pi::build(&strong, slow).unwrap();
    for (name, pairs) in [
        ("pi2-slow", probabilities("pi2-slow", pi2, slow, &pi2_settings(&control), &readings)),
        ("pi-strong", probabilities("pi-strong", pi, slow, &pi_settings(&strong), &readings)),
    ] {
        assert!(pairs.iter().any(|(p, _)| *p > 0.9), "{name} never rises: {pairs:?}");
        for (expected, answer) in &pairs {
            assert!((expected - answer).abs() < 1e-6, "{name}: {pairs:?}");
        }
    }
}
