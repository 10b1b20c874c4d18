//! An AQM of another crate in a scenario file: registered, read, simulated, and refused like one of ours.

use cutline_aqm::{Aqm, Arrival, Backlog, DropProbability, registry};
use cutline_params::{ParameterError, Parameters, RegistryError};
use cutline_scenario::{Scenario, ScenarioFile};
use cutline_units::{Instant, Probability, Rate};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

/// Parameters of [`Ramp`].
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
struct RampParams {
    /// The queue at which every packet is dropped.
    #[param(default = 2000.0, range = (1.0, 1e6), unit = "packets", source = "this test")]
    full: f64,
}

/// A law that rises with the queue.
#[derive(Clone, Copy, Debug)]
struct Ramp {
    full: f64,
    p: Probability,
}

impl Aqm for Ramp {
    type Params = RampParams;
    const NAME: &'static str = "test-ramp";
    const TITLE: &'static str = "Ramp";
    const SOURCE: &'static str = "this test";

    fn build(params: &RampParams, _rate: Rate) -> Result<Self, ParameterError> {
        params.validate()?;
        Ok(Self { full: params.full, p: Probability::ZERO })
    }
}

impl DropProbability for Ramp {
    fn advance(&mut self, _now: Instant, _backlog: Backlog) {}

    fn arrive(&mut self, _now: Instant, _arrival: Arrival, backlog: Backlog) -> Probability {
        self.p = Probability::clamped(f64::from(backlog.packets) / self.full);
        self.p
    }

    fn probability(&self) -> Option<Probability> {
        Some(self.p)
    }

    fn reset(&mut self, _now: Instant) {
        self.p = Probability::ZERO;
    }
}

fn scenario(queue: &str) -> String {
    static OUTCOME: OnceLock<Result<(), RegistryError>> = OnceLock::new();
    assert_eq!(*OUTCOME.get_or_init(registry::register_law::<Ramp>), Ok(()), "the registration");
    format!(
        "name = \"ramp\"\nduration = \"20 s\"\nwarm-up = \"5 s\"\n\n[dumbbell]\nrate = \"8 Mbit/s\"\n\
         delay = \"20 ms\"\naccess-rate = \"50 Mbit/s\"\naccess-delay = \"5 ms\"\nqueue = {queue}\n\n\
         [[flow]]\nname = \"bulk\"\ncount = 10\nclass = \"none\"\ntransport = {{ protocol = \"tcp\" }}\n\
         app = {{ kind = \"bulk\" }}\n"
    )
}

/// Returns a simulation's results of the queue with the law: its mean, packets, and the mean of its
/// probability.
fn simulated(queue: &str) -> (f64, f64) {
    let file = ScenarioFile::parse(&scenario(queue), "ramp.toml").expect("it is TOML");
    let scenario = file.scenario().unwrap_or_else(|problems| panic!("{problems}"));
    let result = scenario.simulate(1, &AtomicBool::new(false)).expect("it can be simulated");
    let queue = result.queues.iter().find(|queue| &*queue.aqm == "test-ramp").expect("the queue has a row");
    assert!(queue.utilisation > 0.9, "ten flows fill the link: {}", queue.utilisation);
    (queue.backlog_mean_packets, queue.probability_mean.expect("it has a probability"))
}

fn refusal(queue: &str) -> String {
    let file = ScenarioFile::parse(&scenario(queue), "ramp.toml").expect("it is TOML");
    file.scenario().map(|_: Scenario| ()).expect_err("it should be refused").to_string()
}

#[test]
fn a_scenario_uses_it_by_name_with_its_parameters() {
    for tsq in ["false", "true"] {
        let queue = |full| {
            format!(
                "{{ aqm = \"test-ramp\", limit = \"400 packets\", full = \"{full} packets\", tsq = {tsq} }}"
            )
        };
        let (short, p) = simulated(&queue(500));
        let (long, _) = simulated(&queue(5000));
        assert!((p - short / 500.0).abs() < 0.3 * p, "p is the queue over `full`: {p} at {short} packets");
        assert!(long > 1.5 * short, "a flatter ramp has a longer queue: {long} and {short} packets");
    }
}

#[test]
fn errors_are_those_of_built_in_code() {
    let wrong = refusal("{ aqm = \"test-ramp\", limit = \"400 packets\", full = \"0 packets\" }");
    let ours = refusal("{ aqm = \"pi\", limit = \"400 packets\", q-ref = \"-1 packets\" }");
    let expected = "is not allowed: expected a number of packets such as \"800 packets\", from";
    let range =
        "1 to 1000000 packets or a duration such as \"50 ms\" (ns, us, ms, s, min, h), from 0 ns to 100 s";
    assert!(wrong.ends_with(&format!("{expected} {range}")), "{wrong}");
    assert!(ours.contains(expected), "{ours}");
    let unknown = refusal("{ aqm = \"test-ramp\", limit = \"400 packets\", ful = 3 }");
    assert!(unknown.contains("ful") && unknown.contains("full"), "{unknown}");
    let unknown = refusal("{ aqm = \"test-rampe\", limit = \"400 packets\" }");
    assert!(unknown.contains("did you mean") && unknown.contains("\"test-ramp\""), "{unknown}");
}
