//! Every application and every congestion control of this crate passes the conformance suite, and the suite finds the
//! faults of others.

use cutline_params::{ParameterValue, Parameters, RegistryError, conformance::required};
use cutline_transport::app::{
    self, Application, Params, Recorded, TraceParams, TrafficSource, Write, register_application,
};
use cutline_transport::conformance;
use cutline_transport::tcp::{
    self, Acked, Algorithm, CongestionAlgorithm, CongestionControl, NoParams, Window,
    register_congestion_control,
};
use cutline_units::{Distribution, Duration, Instant, RandomStream};
use std::panic::catch_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

#[test]
fn every_application_conforms() {
    for about in app::describe().into_iter().filter(|about| !about.name.starts_with("test-")) {
        let examples = Params::from_values(about.name, required(&about.parameters));
        conformance::check_application(&examples.unwrap_or_else(|error| panic!("{}: {error}", about.name)));
    }
    let drawn = |name, mut values: Vec<(&'static str, ParameterValue)>, random: Distribution| {
        let size = if name == "request-response" { "object" } else { "size" };
        values.push((size, ParameterValue::Distribution(random)));
        conformance::check_application(&Params::from_values(name, values).unwrap());
    };
    let bounded = Distribution::Pareto { minimum: 100.0, shape: 1.2, maximum: Some(9000.0) };
    drawn(
        "files",
        vec![("think-time", ParameterValue::Distribution(Distribution::Exponential { mean: 0.3 }))],
        bounded,
    );
    drawn(
        "request-response",
        vec![("embedded", ParameterValue::Distribution(Distribution::Fixed(3.0)))],
        bounded,
    );
    drawn("poisson", vec![("rate", ParameterValue::Count(300_000))], bounded);
}

#[test]
fn a_recorded_trace_conforms_but_for_its_name() {
    let at = Duration::from_millis;
    let messages = [(0, 100), (0, 200), (30, 160)].map(|(ms, bytes)| Recorded { at: at(ms), bytes });
    let trace = Params::Trace(TraceParams { messages: messages.into(), repeat: Some(at(20)) });
    conformance::a_source_writes_as_described(&trace);
    conformance::nothing_happens_before_the_deadline(&trace);
    conformance::the_same_seed_gives_the_same_writes(&trace);
    conformance::a_copy_of_a_source_behaves_as_the_original(&trace);
}

#[test]
fn every_congestion_control_conforms() {
    for about in tcp::congestion_controls().into_iter().filter(|about| !about.name.starts_with("test-")) {
        conformance::check_congestion_control(&Algorithm::from_values(about.name, []).unwrap());
    }
}

/// A source with a flaw.
#[derive(Clone, Debug)]
struct Flawed<const FLAW: u8> {
    deadline: Instant,
}

#[derive(Clone, Debug, PartialEq, Parameters)]
struct Nothing {}

const STUCK: u8 = 0;
const EMPTY: u8 = 1;
const EAGER: u8 = 2;

impl<const FLAW: u8> Application for Flawed<FLAW> {
    type Params = Nothing;
    const NAME: &'static str = ["test-stuck", "test-empty", "test-eager"][FLAW as usize];
    const TITLE: &'static str = "Flawed";
    const SOURCE: &'static str = "this test";

    fn start(_params: &Nothing, at: Instant, _random: &mut RandomStream) -> Self {
        Self { deadline: at }
    }
}

impl<const FLAW: u8> TrafficSource for Flawed<FLAW> {
    fn deadline(&self) -> Instant {
        self.deadline
    }

    fn poll(&mut self, now: Instant, random: &mut RandomStream) -> Option<Write> {
        if FLAW == EAGER {
            random.uniform();
        }
        if now < self.deadline || (FLAW == STUCK && now > Instant::from_nanos(2_000_000_000)) {
            return None;
        }
        self.deadline += Duration::from_millis(10);
        Some(Write::Bytes(if FLAW == EMPTY { 0 } else { 9 }))
    }
}

/// Returns the suite's complaint about a flaw.
fn complaint(check: impl FnOnce() + std::panic::UnwindSafe) -> String {
    let panic = catch_unwind(check).expect_err("the suite should refuse it");
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn the_suite_finds_flawed_applications() {
    register_application::<Flawed<STUCK>>().unwrap();
    register_application::<Flawed<EMPTY>>().unwrap();
    register_application::<Flawed<EAGER>>().unwrap();
    let check =
        |name| complaint(move || conformance::check_application(&Params::from_values(name, []).unwrap()));
    assert!(check("test-stuck").contains("nothing is due, but the deadline is"), "{}", check("test-stuck"));
    assert!(check("test-empty").contains("0 B at 1 s"), "{}", check("test-empty"));
    assert!(check("test-eager").contains("before the deadline"), "{}", check("test-eager"));
}

/// A control with a flaw.
#[derive(Clone, Debug)]
struct Wrong<const FLAW: u8>;

const STARVED: u8 = 0;
const GREEDY: u8 = 1;
const FORGETFUL: u8 = 2;

static CALLS: AtomicU64 = AtomicU64::new(0);

impl<const FLAW: u8> CongestionAlgorithm for Wrong<FLAW> {
    type Params = NoParams;
    const NAME: &'static str = ["test-starved", "test-greedy", "test-forgetful"][FLAW as usize];
    const TITLE: &'static str = "Wrong";
    const SOURCE: &'static str = "this test";

    fn begin(_params: &NoParams, _tcp: &tcp::Params) -> Self {
        Self
    }
}

impl<const FLAW: u8> CongestionControl for Wrong<FLAW> {
    fn avoid(&mut self, window: &mut Window, _acked: &Acked, mss: u64) {
        let more = if FLAW == FORGETFUL { CALLS.fetch_add(1, Ordering::Relaxed) % 97 } else { mss / 10 };
        window.cwnd += more;
    }

    fn congested(&mut self, window: &Window, flight: u64, mss: u64) -> u64 {
        match FLAW {
            STARVED => flight / 2,
            GREEDY => window.cwnd + mss,
            _ => (flight / 2).max(2 * mss),
        }
    }
}

/// Registers the wrong controls, once.
fn register_wrong() {
    static OUTCOME: OnceLock<Result<(), RegistryError>> = OnceLock::new();
    let outcome = OUTCOME.get_or_init(|| {
        register_congestion_control::<Wrong<STARVED>>()?;
        register_congestion_control::<Wrong<GREEDY>>()?;
        register_congestion_control::<Wrong<FORGETFUL>>()
    });
    assert_eq!(*outcome, Ok(()), "the registration");
}

#[test]
fn the_suite_finds_flawed_congestion_controls() {
    register_wrong();
    let check = |name| {
        complaint(move || conformance::check_congestion_control(&Algorithm::from_values(name, []).unwrap()))
    };
    assert!(check("test-starved").contains("allowed is from two segments"), "{}", check("test-starved"));
    assert!(check("test-greedy").contains("to the window"), "{}", check("test-greedy"));
    assert!(
        check("test-forgetful").contains("two runs of the same events differ"),
        "{}",
        check("test-forgetful")
    );
}

#[test]
fn the_sender_keeps_a_wrong_control_within_bounds() {
    // Whatever it answers, a transfer ends.
    register_wrong();
    conformance::a_transfer_arrives_whole(&Algorithm::from_values("test-starved", []).unwrap());
}
