//! The whole queue: the same arrivals and the same dice give the same verdicts and the same order.
//!
//! Sources halve their rate after a loss, so that the queue fills and drains as it does behind TCP. Other arrivals are recorded: those of the paper's
//! conferences and transfers.

use crate::arithmetic::pi2_settings;
use crate::load::{Load, Offered, Recorded, record};
use crate::{PARITY, answers};
use cutline_aqm::{
    Aqm, Ared, AredParams, Arrival, DelayEstimate, DropProbability, DropReason, Limit, NoEarlyDrop, Pi, Pi2,
    Pi2Params, PiParams, Queue, RedWorcester, RedWorcesterParams, Tsq, TsqParams, Verdict,
};
use cutline_bpf_parity::{fixed, float};
use cutline_units::{Duration, Hint, Instant, Probability, Rate, Streams};
use std::fmt::Write as _;
use std::sync::LazyLock;

const SECONDS: u64 = 40;

/// A source: its rate grows steadily, and is halved by a loss.
struct Source {
    hint: u16,
    size: u32,
    rate: f64,
    next: f64,
}

/// Rates of the link by time, s.
type Rates = &'static [(f64, u64)];

struct Case {
    name: &'static str,
    params: TsqParams,
    limit: Limit,
    rates: Rates,
    settings: String,
}

#[derive(Default)]
struct Outcome {
    passed: usize,
    early: usize,
    overflow: usize,
    largest_error: f64,
}

const STEADY: Rates = &[(0.0, 15_000_000)];

/// Sources of different sizes and hints.
struct Sources {
    sources: Vec<Source>,
    /// Number of the source whose packet was taken last.
    last: usize,
}

impl Sources {
    /// Returns forty sources, with these hints in turn.
    fn new(name: &str, hints: &[u16]) -> Self {
        let mut random = Streams::new(8).stream(name, "sources");
        let size = [1000, 1500, 200, 640];
        let each = |number: usize| Source {
            hint: hints[number % hints.len()],
            size: size[number % size.len()],
            rate: 400_000.0,
            next: random.uniform(),
        };
        Self { sources: (0..40).map(each).collect(), last: 0 }
    }
}

impl Load for Sources {
    fn take(&mut self) -> Option<Offered> {
        let sources = &self.sources;
        let next = (0..sources.len()).min_by(|a, b| sources[*a].next.total_cmp(&sources[*b].next));
        self.last = next.expect("there are sources");
        let Source { hint, size, next: at, .. } = self.sources[self.last];
        (at <= SECONDS as f64).then_some(Offered { at, hint, size, flow: 0 })
    }

    fn respond(&mut self, passed: bool, stored: u32) {
        let source = &mut self.sources[self.last];
        let gap = f64::from(source.size) * 8.0 / source.rate;
        source.next += gap * (0.5 + 1.5 * (f64::from(stored * 7 % 11) / 11.0));
        source.rate = if passed { source.rate + 150_000.0 * gap } else { (source.rate / 2.0).max(20_000.0) };
    }
}

/// Runs both, and compares each verdict, weight and departure. `law` is the Rust law that the settings configure in C.
fn compare(case: &Case, law: impl DropProbability, load: &mut impl Load) -> Outcome {
    let bits = u32::from(case.params.bits as u8);
    let rate = Rate::from_bps(case.rates[0].1);
    let mut queue = Tsq::new(&case.params, case.limit, false, rate, law).unwrap();
    let mut random = Streams::new(7).stream(case.name, "dice");
    let mut commands = format!(
        "{}set tsq.bits {bits}\nset tsq.l {}\nset shape_bps {}\n",
        case.settings,
        case.params.l.as_nanos(),
        rate.as_bps()
    );
    match case.limit {
        Limit::Packets(packets) => writeln!(commands, "set limit_packets {packets}"),
        Limit::Bytes(bytes) => writeln!(commands, "set limit_packets 100000\nset limit_bytes {bytes}"),
    }
    .unwrap();
    writeln!(commands, "tsq 0").unwrap();
    let (mut expected, mut probabilities) = (Vec::new(), Vec::new());
    let (mut stored, mut outcome, mut free_at, mut bps) =
        (0_i128, Outcome::default(), 0.0_f64, rate.as_bps());
    let mut rates = case.rates[1..].iter();
    let mut change = rates.next();
    while let Some(Offered { at, hint, size, .. }) = load.take() {
        // All that leaves before.
        while free_at <= at && queue.backlog().packets > 0 {
            let now = Instant::from_nanos((free_at * 1e9) as u64);
            let departure = queue.dequeue(now).unwrap();
            writeln!(commands, "dequeue {}", now.as_nanos()).unwrap();
            expected.push(vec![departure.packet]);
            free_at += f64::from(departure.size) * 8.0 / bps as f64;
        }
        free_at = free_at.max(at);
        let now = Instant::from_nanos((at * 1e9) as u64);
        if let Some((_, to)) = change.filter(|(from, _)| at >= *from) {
            (bps, change) = (*to, rates.next());
            queue.set_rate(now, Rate::from_bps(bps));
            writeln!(commands, "set shape_bps {bps}\nchange {}", now.as_nanos()).unwrap();
        }
        let dice = random.clone().uniform();
        let hint = Hint::from_level(hint);
        let offer = queue.offer(now, hint);
        let arrival = Arrival::new(size, hint);
        let verdict = queue.enqueue(now, arrival, stored, &mut random);
        writeln!(commands, "enqueue {} {} {size} {}", now.as_nanos(), hint.level(), fixed(dice)).unwrap();
        let number = match verdict {
            Verdict::Pass => 0,
            Verdict::Drop(DropReason::Early) => 1,
            Verdict::Drop(DropReason::Overflow) => 2,
            Verdict::Mark => panic!("nothing can be marked"),
        };
        let [weight, q, q_prime] =
            [offer.weight.as_nanos(), offer.q.as_nanos(), offer.q_prime.as_nanos()].map(i128::from);
        expected.push(vec![number, weight, q, q_prime]);
        probabilities.push(queue.probability().map_or(0.0, Probability::get));
        load.respond(number == 0, stored as u32);
        match number {
            0 => (stored, outcome.passed) = (stored + 1, outcome.passed + 1),
            1 => outcome.early += 1,
            _ => outcome.overflow += 1,
        }
    }
    let answers = answers(&PARITY, case.name, &commands);
    assert_eq!(answers.len(), expected.len());
    let mut probabilities = probabilities.into_iter();
    for (line, (answer, expected)) in answers.iter().zip(&expected).enumerate() {
        assert_eq!(answer[..expected.len()], expected[..], "{}, answer {line}", case.name);
        if answer.len() > 1 {
            let error = (float(answer[4]) - probabilities.next().unwrap()).abs();
            outcome.largest_error = outcome.largest_error.max(error);
        }
    }
    let Outcome { passed, early, overflow, largest_error } = outcome;
    println!(
        "{}: {passed} passed, {early} dropped early, {overflow} at the limit; largest error of p {largest_error:.1e}",
        case.name
    );
    outcome
}

fn pi(params: &PiParams) -> (Pi, String) {
    let period = Duration::from_secs_f64(1.0 / params.frequency).as_nanos();
    let q_ref = (params.q_ref * (1 << 20) as f64) as u64;
    let (a, b, mean_packet) = (fixed(params.a), fixed(params.b), params.mean_packet.unwrap_or_default());
    let settings = format!(
        "set law 1\nset pi.a {a}\nset pi.b {b}\nset pi.period {period}\nset pi.q_ref {q_ref}\nset pi.mean_packet {mean_packet}\n"
    );
    (Pi::build(params, Rate::from_mbps(15)).unwrap(), settings)
}

const ALL: &[u16] = &[16, 6, 1, 16, 12, 3, 16, 9];

#[test]
fn tsq_over_pi_decides_alike() {
    let gains = PiParams { a: 2e-4, b: 1.99e-4, ..PiParams::default() };
    let (law, settings) = pi(&gains);
    let case = Case {
        name: "tsq-pi",
        params: TsqParams::default(),
        limit: Limit::Packets(800),
        rates: STEADY,
        settings,
    };
    let found = compare(&case, law, &mut Sources::new(case.name, ALL));
    assert!(found.passed > 20_000 && found.early > 300, "too little happens");
    assert!(found.largest_error < 1e-12, "{}", found.largest_error);
}

#[test]
fn a_queue_of_two_bits_limited_in_bytes_decides_alike() {
    let (law, settings) =
        pi(&PiParams { a: 2e-4, b: 1.9e-4, q_ref: 150.0, mean_packet: Some(1000), ..PiParams::default() });
    let params = TsqParams { bits: 2, l: Duration::from_millis(100), ..TsqParams::default() };
    let case = Case { name: "tsq-bytes", params, limit: Limit::Bytes(150_000), rates: STEADY, settings };
    let found = compare(&case, law, &mut Sources::new(case.name, &[4, 1, 2, 4, 3]));
    assert!(found.passed > 20_000 && found.early > 20 && found.overflow > 20, "too little happens");
}

/// Weights that would fall are raised, and cursors that are too far go back.
#[test]
fn changes_of_the_rate_are_followed_alike() {
    const RATES: Rates =
        &[(0.0, 15_000_000), (6.0, 4_000_000), (9.0, 30_000_000), (12.0, 2_000_000), (20.0, 15_000_000)];
    let (law, settings) = pi(&PiParams { a: 2e-4, b: 1.99e-4, ..PiParams::default() });
    let case = Case {
        name: "tsq-rates",
        params: TsqParams::default(),
        limit: Limit::Packets(600),
        rates: RATES,
        settings,
    };
    let found = compare(&case, law, &mut Sources::new(case.name, ALL));
    assert!(found.passed > 15_000 && found.early > 300, "too little happens");
}

#[test]
fn a_queue_without_a_law_only_overflows() {
    let case = Case {
        name: "tsq-none",
        params: TsqParams::default(),
        limit: Limit::Packets(50),
        rates: STEADY,
        settings: "set law 0\n".to_owned(),
    };
    let found = compare(&case, NoEarlyDrop, &mut Sources::new(case.name, ALL));
    assert!(found.early == 0 && found.overflow > 100, "too little happens");
}

/// A queue that is empty for seconds misses updates.
#[test]
fn tsq_over_pi2_decides_alike() {
    const RATES: Rates = &[(0.0, 15_000_000), (10.0, 80_000_000), (14.0, 8_000_000)];
    let control = Pi2Params::default().control;
    let params = Pi2Params { estimate: DelayEstimate::LinkRate, ..Pi2Params::default() };
    let settings = pi2_settings(&control);
    let law = Pi2::build(&params, Rate::from_mbps(15)).unwrap();
    let case = Case {
        name: "tsq-pi2",
        params: TsqParams::default(),
        limit: Limit::Packets(800),
        rates: RATES,
        settings,
    };
    let found = compare(&case, law, &mut Sources::new(case.name, ALL));
    assert!(found.passed > 20_000 && found.early > 1000, "too little happens");
    assert!(found.largest_error < 1e-8, "{}", found.largest_error);
}

fn red_settings(params: &RedWorcesterParams) -> String {
    let AredParams { red, adaptation } = &params.ared;
    let w_q = red.w_q.unwrap();
    let length = |packets: Option<f64>| (packets.unwrap() * (1 << 20) as f64) as u64;
    let mut settings = format!(
        "set law 3\nset red.min_th {}\nset red.max_th {}\nset red.mean_packet {}\nset red.gentle {}\nset red.interval {}\n",
        length(red.min_th),
        length(red.max_th),
        red.mean_packet,
        u8::from(red.gentle),
        adaptation.interval.as_nanos()
    );
    let alpha = adaptation.alpha.unwrap_or_default();
    for (name, value) in [
        ("max_p", red.max_p),
        ("w_q", w_q),
        ("ln_keep", -(-w_q).ln_1p()),
        ("w_t", params.w_t),
        ("alpha", alpha),
        ("beta", adaptation.beta),
        ("range", adaptation.range),
        ("floor", adaptation.floor),
        ("ceiling", adaptation.ceiling),
    ] {
        writeln!(settings, "set red.{name} {}", fixed(value)).unwrap();
    }
    for level in 1..=16 {
        writeln!(settings, "set red.delay.{level} {}", (params.step * level).as_nanos()).unwrap();
    }
    settings
}

fn red_params() -> RedWorcesterParams {
    let mut params = RedWorcesterParams::default();
    let red = &mut params.ared.red;
    (red.min_th, red.max_th, red.w_q) = (Some(40.0), Some(240.0), Some(0.002));
    params
}

/// The rate falls and rises, and the link is idle between packets at first and at the end.
const MUCH_AND_LITTLE: Rates =
    &[(0.0, 15_000_000), (12.0, 6_000_000), (20.0, 200_000_000), (30.0, 15_000_000)];

fn compare_red(name: &'static str, law: impl DropProbability, params: &RedWorcesterParams) {
    let case = Case {
        name,
        params: TsqParams::default(),
        limit: Limit::Packets(800),
        rates: MUCH_AND_LITTLE,
        settings: red_settings(params),
    };
    let found = compare(&case, law, &mut Sources::new(case.name, ALL));
    assert!(found.passed > 20_000 && found.early > 500, "too little happens");
    assert!(found.largest_error < 1e-7, "{}", found.largest_error);
}

#[test]
fn tsq_over_red_worcester_decides_alike() {
    let params = red_params();
    compare_red("tsq-redw", RedWorcester::build(&params, Rate::from_mbps(15)).unwrap(), &params);
}

/// A target that does not move is Adaptive RED's.
#[test]
fn tsq_over_adaptive_red_decides_alike() {
    let mut params = RedWorcesterParams { w_t: 0.0, ..red_params() };
    params.ared.adaptation.alpha = Some(0.05);
    compare_red("tsq-ared", Ared::build(&params.ared, Rate::from_mbps(15)).unwrap(), &params);
}

/// Arrivals of the paper's section 4.4: 25 audio conferences and 75 transfers for 40 s, through TSQ over PI.
static CONFERENCES: LazyLock<Vec<Offered>> = LazyLock::new(|| {
    record("tsq/mixed.toml", &[("flow.audio.count", "25"), ("flow.bulk.count", "75"), ("duration", "40 s")])
});

/// Compares on the recorded arrivals.
fn compare_recorded(name: &'static str, law: impl DropProbability, settings: String) -> Outcome {
    let case =
        Case { name, params: TsqParams::default(), limit: Limit::Packets(800), rates: STEADY, settings };
    let found = compare(&case, law, &mut Recorded::new(&CONFERENCES));
    assert!(found.passed > 50_000 && found.early > 300, "too little happens");
    found
}

#[test]
fn tsq_over_pi_decides_alike_on_a_recorded_trace() {
    let (law, settings) = pi(&PiParams::default());
    let found = compare_recorded("recorded-pi", law, settings);
    assert!(found.largest_error < 1e-12, "{}", found.largest_error);
}

#[test]
fn tsq_over_pi2_decides_alike_on_a_recorded_trace() {
    let params = Pi2Params { estimate: DelayEstimate::LinkRate, ..Pi2Params::default() };
    let law = Pi2::build(&params, Rate::from_mbps(15)).unwrap();
    let found = compare_recorded("recorded-pi2", law, pi2_settings(&params.control));
    assert!(found.largest_error < 1e-8, "{}", found.largest_error);
}

#[test]
fn tsq_over_red_worcester_decides_alike_on_a_recorded_trace() {
    let params = red_params();
    let law = RedWorcester::build(&params, Rate::from_mbps(15)).unwrap();
    let found = compare_recorded("recorded-redw", law, red_settings(&params));
    assert!(found.largest_error < 1e-7, "{}", found.largest_error);
}
