//! Sieve in fixed point beside that of the crate `aqm`, with the same arrivals and dice.
//!
//! Virtual time is rounded to 1/16 B in C, so packets of different flows that are due at a border of two slots change places. Each such change moves V
//! by a packet for a moment, and with it f and p. So that one verdict that differs does not make two histories of one, the queue in C acts by the
//! verdicts of the crate, and is asked for its own. The rules: at most one verdict in a hundred differs, the sum of p is that of the crate's drops to 2 %,
//! and the fair share differs by less than 1 % on the mean. (One verdict in a thousand was the first rule, and three in a thousand were found.)
//!
//! The rates of the second test keep the share above 40 kB/s, where tau is longer than the time of four large packets. Below that, one packet moves f
//! by up to a quarter, and may sort the calendar again, which brings new flows nearer to V in one of both for as long as they wait.
//!
//! The same rules hold for a recorded trace of transfers, conferences and floods. Without floods it would have too few drops for their sum to be p's.

use crate::load::{Load, Offered, Recorded, record};
use crate::{PARITY, answers};
use cutline_aqm::{Arrival, Discipline as _, DropReason, Limit, Queue as _, Sieve, SieveParams, Verdict};
use cutline_bpf_parity::{fixed, float};
use cutline_units::{Hint, Instant, Rate, Streams, mix};
use std::fmt::Write as _;

/// The sets of a table of this memory, B: 149 of flows, and 26 of filters.
const MEMORY: u64 = 32_768;
const SETS: usize = 175;

struct Source {
    flow: u32,
    hint: u16,
    size: u32,
    rate: f64,
    next: f64,
    responds: bool,
    /// Packets until the flow ends and another begins; 0: never.
    packets: u32,
}

struct Case {
    name: &'static str,
    rates: &'static [(f64, u64)],
    limit: u32,
}

#[derive(Debug, Default)]
struct Outcome {
    verdicts: usize,
    early: usize,
    overflow: usize,
    differ: usize,
    waits_differ: usize,
    /// Mean of the relative difference of the fair share.
    share: f64,
    /// Sum of p of both over all packets.
    p: f64,
    departures: usize,
    /// Departures out of the crate's order.
    out_of_order: usize,
    /// Arrivals that C would have dropped because the queue is full.
    own_overflow: usize,
    pushed_out: (usize, usize),
}

/// Transfers that respond, calls, a flood that does not, and short flows.
struct Sources {
    all: Vec<Source>,
    seconds: f64,
    /// Number of the source whose packet was taken last.
    last: usize,
    /// Number of the next flow that begins.
    next_flow: u32,
}

impl Sources {
    /// Returns sources for so many seconds of a case.
    fn new(case: &Case, seconds: f64) -> Self {
        let mut random = Streams::new(6).stream(case.name, "sources");
        let load = case.rates[0].1 as f64;
        let mut sources = Vec::new();
        let mut add = |size, hint, rate, responds, packets| {
            let flow = mix(sources.len() as u64 + 99) as u32;
            sources.push(Source { flow, hint, size, rate, next: random.uniform() * 0.2, responds, packets });
        };
        (0..8).for_each(|number| add(1500, 16, load / 4.0, true, if number < 2 { 4000 } else { 0 }));
        (0..4).for_each(|number| add(200, [6, 16, 1, 9][number], 96_000.0, false, 0));
        (0..2).for_each(|_| add(700, 16, load / 6.0, false, 0));
        (0..6).for_each(|number| add(1000, 16, 400_000.0, true, 5 + 9 * number));
        Self { all: sources, seconds, last: 0, next_flow: 1 << 20 }
    }
}

impl Load for Sources {
    fn take(&mut self) -> Option<Offered> {
        let sources = &self.all;
        let next = (0..sources.len()).min_by(|a, b| sources[*a].next.total_cmp(&sources[*b].next));
        self.last = next.expect("there are sources");
        let Source { flow, hint, size, next: at, .. } = self.all[self.last];
        (at <= self.seconds).then_some(Offered { at, hint, size, flow })
    }

    fn respond(&mut self, passed: bool, stored: u32) {
        let stored = stored + u32::from(passed);
        let source = &mut self.all[self.last];
        let gap = f64::from(source.size) * 8.0 / source.rate;
        source.next += gap * (0.5 + 0.1 * f64::from(stored * 7 % 11));
        if source.responds {
            source.rate =
                if passed { source.rate + 400_000.0 * gap } else { (source.rate / 2.0).max(50_000.0) };
        }
        if source.packets > 0 && stored.is_multiple_of(source.packets) {
            (source.flow, source.rate) = (mix(self.next_flow.into()) as u32, 400_000.0);
            self.next_flow += 1;
        }
    }
}

/// A load with long pauses.
struct Paused<L> {
    load: L,
    /// Time between pauses, s.
    every: f64,
    /// Length of a pause, s.
    pause: f64,
}

impl<L: Load> Load for Paused<L> {
    fn take(&mut self) -> Option<Offered> {
        let offered = self.load.take()?;
        Some(Offered { at: offered.at + (offered.at / self.every).floor() * self.pause, ..offered })
    }

    fn respond(&mut self, passed: bool, stored: u32) {
        self.load.respond(passed, stored);
    }
}

/// Runs both.
fn compare(case: &Case, load: &mut impl Load) -> Outcome {
    let rate = Rate::from_bps(case.rates[0].1);
    let params = SieveParams { memory: MEMORY, ..SieveParams::default() };
    let mut queue = Sieve::build(&params, Limit::Packets(case.limit), false, rate).unwrap();
    let mut random = Streams::new(5).stream(case.name, "dice");
    let mut commands =
        format!("set shape_bps {}\nset limit_packets {}\nsieve 0 {SETS} 0\n", rate.as_bps(), case.limit);
    let (mut verdicts, mut shares, mut above, mut order, mut shed) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), 0);
    let (mut stored, mut free_at, mut bps, mut salt_at) = (0_u32, 0.0_f64, rate.as_bps(), 0.0);
    let mut rates = case.rates[1..].iter();
    let mut change = rates.next();
    while let Some(Offered { at, hint, size, flow }) = load.take() {
        while free_at <= at && queue.backlog().packets > 0 {
            let now = Instant::from_nanos((free_at * 1e9) as u64);
            let departure = queue.dequeue(now).unwrap();
            writeln!(commands, "sieve-dequeue {}", now.as_nanos()).unwrap();
            order.push(departure.packet);
            free_at += f64::from(departure.size) * 8.0 / bps as f64;
        }
        free_at = free_at.max(at);
        let now = Instant::from_nanos((at * 1e9) as u64);
        if let Some((_, to)) = change.filter(|(from, _)| at >= *from) {
            (bps, change) = (*to, rates.next());
            queue.set_rate(now, Rate::from_bps(bps));
            writeln!(commands, "set shape_bps {bps}\nsieve-change {}", now.as_nanos()).unwrap();
        }
        let mut ahead = random.clone();
        let mut salt = 0;
        if at >= salt_at {
            salt = (ahead.uniform() * (1_u64 << 53) as f64) as u64;
            salt_at = now.as_nanos() as f64 / 1e9 + 60.0;
        }
        let dice = fixed(ahead.uniform());
        let arrival = Arrival { flow, ..Arrival::new(size, Hint::from_level(hint)) };
        let before = queue.readings().sieve.unwrap().above.packets;
        let verdict = queue.enqueue(now, arrival, stored, &mut random);
        let verdict = match verdict {
            Verdict::Pass => 0,
            Verdict::Drop(DropReason::Early) => 1,
            Verdict::Drop(DropReason::Overflow) => 2,
            Verdict::Mark => panic!("nothing can be marked"),
        };
        while queue.shed().is_some() {
            shed += 1;
        }
        let readings = queue.readings().sieve.unwrap();
        writeln!(commands, "sieve-enqueue {} {hint} {size} {flow} {dice} {verdict} {salt}", now.as_nanos())
            .unwrap();
        verdicts.push(verdict);
        shares.push(readings.fair_share.as_bps() as f64);
        above.push(i128::from(readings.above.packets > before));
        load.respond(verdict == 0, stored);
        stored += u32::from(verdict == 0);
    }
    let answers = answers(&PARITY, case.name, &commands);
    assert_eq!(answers.len(), verdicts.len() + order.len());
    let outcome = judge(&answers, &verdicts, &shares, &above, &order);
    let outcome = Outcome { pushed_out: (shed, outcome.pushed_out.1), ..outcome };
    println!("{}: {outcome:?}", case.name);
    outcome
}

/// Compares the answers with the crate's verdicts, shares, packets behind others of their flow, and order of departure. Answers to departures have three
/// numbers, those to arrivals four or more.
fn judge(answers: &[Vec<i128>], verdicts: &[i128], shares: &[f64], above: &[i128], order: &[u32]) -> Outcome {
    let mut outcome = Outcome { verdicts: verdicts.len(), departures: order.len(), ..Outcome::default() };
    let arrivals = answers.iter().filter(|answer| answer.len() > 3);
    for (((answer, verdict), share), above) in arrivals.zip(verdicts).zip(shares).zip(above) {
        outcome.early += usize::from(*verdict == 1);
        outcome.overflow += usize::from(*verdict == 2);
        outcome.own_overflow += usize::from(answer[0] == 2);
        outcome.differ += usize::from(answer[0] != *verdict);
        outcome.waits_differ += usize::from(answer[3] != *above);
        outcome.share += (answer[2] as f64 / share - 1.0).abs() / verdicts.len() as f64;
        outcome.p += float(answer[1]);
        outcome.pushed_out.1 += answer.len() - 4;
    }
    let departures = answers.iter().filter(|answer| answer.len() == 3);
    outcome.out_of_order =
        departures.zip(order).filter(|(answer, number)| answer[0] != i128::from(**number)).count();
    outcome
}

/// The rules of the head of this file.
fn check(found: &Outcome) {
    assert!(found.differ * 100 <= found.verdicts, "{} verdicts of {} differ", found.differ, found.verdicts);
    let ratio = found.p / found.early as f64;
    assert!((ratio - 1.0).abs() < 0.02, "the sum of p is {ratio} of the drops");
    assert!(
        found.waits_differ * 100 <= found.verdicts && found.out_of_order * 4 <= found.departures,
        "{found:?}"
    );
    assert!(found.share < 0.01, "the fair share differs by {}", found.share);
}

#[test]
fn sieve_in_fixed_point_is_sieve() {
    let case = Case { name: "sieve", rates: &[(0.0, 20_000_000)], limit: 1000 };
    let found = compare(&case, &mut Sources::new(&case, 70.0));
    assert!(found.verdicts > 50_000 && found.early > 5000, "too little happens");
    check(&found);
}

#[test]
fn sieve_follows_changes_of_the_rate_alike() {
    const RATES: &[(f64, u64)] =
        &[(0.0, 40_000_000), (5.0, 20_000_000), (9.0, 80_000_000), (12.0, 30_000_000)];
    let case = Case { name: "sieve-rates", rates: RATES, limit: 2000 };
    let found = compare(&case, &mut Sources::new(&case, 20.0));
    assert!(found.verdicts > 20_000 && found.early > 5000, "too little happens");
    check(&found);
}

/// From one second on the rate is 60 Mbit/s for 30 ms and 6 Mbit/s for 70 ms, in turn.
#[test]
fn sieve_follows_a_rate_that_alternates_alike() {
    let turns = (10..200_u32).map(|turn| f64::from(turn) / 10.0);
    let rates = turns.flat_map(|at| [(at, 60_000_000), (at + 0.03, 6_000_000)]);
    let rates: Vec<_> = std::iter::once((0.0, 20_000_000)).chain(rates).collect();
    let case = Case { name: "sieve-alternates", rates: rates.leak(), limit: 2000 };
    let found = compare(&case, &mut Sources::new(&case, 20.0));
    assert!(found.verdicts > 10_000 && found.early > 500, "too little happens");
    check(&found);
}

/// Eight transfers, two conferences and two floods of 9 Mbit/s, recorded through Sieve.
#[test]
fn sieve_decides_alike_on_a_recorded_trace() {
    let settings = [
        ("duration", "30 s"),
        ("dumbbell.rate", "20 Mbit/s"),
        ("queue.sieve.rtt", "100 ms"),
        ("flow.bulk.count", "8"),
        ("flow.audio.count", "2"),
        ("flow.flood.count", "2"),
        ("flow.flood.app.rate", "9 Mbit/s"),
    ];
    let trace = record("sieve/floods.toml", &settings);
    let case = Case { name: "sieve-recorded", rates: &[(0.0, 20_000_000)], limit: 800 };
    let found = compare(&case, &mut Recorded::new(&trace));
    assert!(found.verdicts > 50_000 && found.early > 5000, "too little happens");
    check(&found);
}

/// In 40 days virtual time goes on by 8.6 * 10^12 B, so the epoch of the stored times has to move each time.
#[test]
fn sieve_continues_alike_after_long_pauses() {
    let case = Case { name: "sieve-pauses", rates: &[(0.0, 20_000_000)], limit: 1000 };
    let load = Sources::new(&case, 20.0);
    let found = compare(&case, &mut Paused { load, every: 7.0, pause: 40.0 * 86_400.0 });
    assert!(found.verdicts > 15_000 && found.early > 1500, "too little happens");
    check(&found);
}

/// Returns the due times of packets of four flows at 100 Gbit/s, in the order of their departures and counted from the first one, and their flows. The
/// first packets come so many ns after one that comes alone.
fn dues_after(pause: u64) -> Vec<(i128, i128)> {
    const FLOWS: u64 = 4;
    const PACKETS: u64 = 600;
    let mut commands =
        "set shape_bps 100000000000\nset limit_packets 1000\nsieve 0 175 7\nsieve-enqueue 1 16 1500 9 0 0 7\nsieve-dequeue 2\n"
            .to_owned();
    for number in 0..PACKETS {
        let (now, flow) = (pause + 100 * number, number % FLOWS);
        writeln!(commands, "sieve-enqueue {now} 16 9000 {flow} 0 0 7").unwrap();
    }
    for number in 0..PACKETS {
        writeln!(commands, "sieve-dequeue {}", pause + 100 * PACKETS + 720 * number).unwrap();
        // They cross the epoch while others wait.
        let (now, flow) = (pause + 100 * PACKETS + 720 * number + 1, number % FLOWS);
        writeln!(commands, "sieve-enqueue {now} 16 9000 {flow} 0 0 7").unwrap();
    }
    let answers = answers(&PARITY, "sieve-epoch", &commands);
    let left: Vec<_> = answers.iter().filter(|answer| answer.len() == 3).skip(1).collect();
    assert_eq!(left.len() as u64, PACKETS);
    left.iter().map(|answer| (answer[2] - left[0][2], (answer[0] - 1) % i128::from(FLOWS))).collect()
}

/// The floor is 2^42 B after the epoch 352 s after the start, when 2^42 B and the share that is kept, 1.9 * 10^9 B, could have left.
#[test]
fn packets_that_wait_keep_their_times_when_the_epoch_moves() {
    const MOVES: u64 = 351_993_720_000;
    let expected = dues_after(100_000_000_000);
    for step in 0..30 {
        let found = dues_after(MOVES - 600_000 + 25_000 * step);
        for ((due, flow), (expected_due, expected_flow)) in found.iter().zip(&expected) {
            // Whole bytes of times that have parts of bytes.
            assert!(flow == expected_flow && (due - expected_due).abs() <= 1, "{step}: {due} of {flow}");
        }
    }
}

/// An account counts 65,535 packets that wait. The next one is dropped as by a full queue.
#[test]
fn an_account_has_at_most_65_535_packets() {
    let mut commands = format!("set shape_bps 1000000000\nset limit_packets 70000\nsieve 0 {SETS} 7\n");
    let last = (1_u64 << 60) - 1;
    for number in 0..65_536 {
        writeln!(commands, "sieve-enqueue {} 16 1500 3 {last} 0 7", 100 * (number + 1)).unwrap();
    }
    let answers = answers(&PARITY, "sieve-account", &commands);
    let full: Vec<bool> = answers.iter().map(|answer| answer[0] == 2).collect();
    assert_eq!((full.len(), full.iter().position(|is_full| *is_full)), (65_536, Some(65_535)));
}

/// The calendar has twelve bits of a node's number. Those above are in nodes.
#[test]
fn a_queue_of_70_000_packets_keeps_all_of_them_in_the_order_of_their_flows() {
    const PACKETS: i128 = 70_000;
    const FLOWS: i128 = 4;
    let mut commands = format!("set shape_bps 1000000000\nset limit_packets {PACKETS}\nsieve 0 {SETS} 7\n");
    for number in 0..PACKETS {
        writeln!(commands, "sieve-enqueue {} 16 1500 {} 0 0 7", 100 * (number + 1), number % FLOWS).unwrap();
    }
    for number in 0..PACKETS {
        writeln!(commands, "sieve-dequeue {}", 10_000_000 + 12_000 * number).unwrap();
    }
    let answers = answers(&PARITY, "sieve-long", &commands);
    let left: Vec<i128> = answers.iter().filter(|answer| answer.len() == 3).map(|answer| answer[0]).collect();
    for flow in 0..FLOWS {
        let of_flow = left.iter().copied().filter(|number| number % FLOWS == flow);
        assert!(of_flow.eq((0..PACKETS).filter(|number| number % FLOWS == flow)), "flow {flow}");
    }
}

/// A verdict that differs here drops the newcomer in the place of a packet that is due almost at the same time.
#[test]
fn a_full_sieve_pushes_out_alike() {
    let case = Case { name: "sieve-full", rates: &[(0.0, 20_000_000)], limit: 60 };
    let found = compare(&case, &mut Sources::new(&case, 20.0));
    assert!(found.overflow > 500 && found.pushed_out.0 > 500, "too little happens");
    assert_eq!(found.pushed_out.0, found.pushed_out.1);
    let ratio = found.own_overflow as f64 / found.overflow as f64;
    assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
}

/// Returns the probabilities, 2^-60, of a flow's second burst, 40 s after its first, of which packet 100 is dropped or not.
fn prices_of_a_second_burst(is_dropped: bool) -> Vec<i128> {
    const PACKETS: u64 = 400;
    const PAUSE: u64 = 40_000_000_000;
    let mut commands = format!("set shape_bps 20000000\nset limit_packets 1000\nsieve 0 {SETS} 7\n");
    for begin in [1, PAUSE] {
        for number in 0..PACKETS {
            let verdict = u8::from(is_dropped && begin == 1 && number == 100);
            writeln!(commands, "sieve-enqueue {} 16 1500 3 0 {verdict} 7", begin + 1000 * number).unwrap();
        }
        for number in 0..PACKETS {
            writeln!(commands, "sieve-dequeue {}", begin + 600_000 * (number + 1)).unwrap();
        }
    }
    let answers = answers(&PARITY, "sieve-warning", &commands);
    answers.iter().filter(|answer| answer.len() > 3).skip(PACKETS as usize).map(|answer| answer[1]).collect()
}

/// A drop warns the flow for two round trips. The time is stored in 16 bits, which wrap after 69 s.
#[test]
fn a_warning_of_long_ago_does_not_return() {
    let free = prices_of_a_second_burst(false);
    assert!(free.last() > Some(&0), "the burst is too short to have a price");
    assert_eq!(prices_of_a_second_burst(true), free);
}
