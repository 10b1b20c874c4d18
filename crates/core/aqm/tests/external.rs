//! AQMs of another crate, which this test is: registered, built by name, run, and held to the conformance suite.

use cutline_aqm::registry::{self, AqmDescription, ExternalAqm, Product};
use cutline_aqm::{
    Aqm, AqmSpec, Arrival, Backlog, Departure, Discipline, DropProbability, DropReason, Held, Limit, Queue,
    QueueCore, QueueSpec, QueueStats, Readings, Shed, TsqParams, Verdict, conformance, standing,
};
use cutline_params::{Parameter, ParameterError, ParameterKind, ParameterValue, Parameters, RegistryError};
use cutline_units::{Duration, Instant, Probability, RandomStream, Rate};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

const RATE: Rate = Rate::from_mbps(15);

/// Parameters of [`Step`].
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
struct StepParams {
    /// The queue up to which nothing is dropped.
    #[param(default = 50, range = (0, 10_000), unit = "packets", source = "this test")]
    threshold: u64,
    /// The probability beyond it.
    #[param(default = 0.2, range = (0.0, 1.0), source = "this test")]
    p: f64,
}

/// A law with one step: 0 up to a threshold, p beyond it.
#[derive(Clone, Copy, Debug)]
struct Step {
    params: StepParams,
    now: Probability,
}

impl Aqm for Step {
    type Params = StepParams;
    const NAME: &'static str = "test-step";
    const TITLE: &'static str = "Step";
    const SOURCE: &'static str = "this test";

    fn build(params: &StepParams, _rate: Rate) -> Result<Self, ParameterError> {
        params.validate()?;
        Ok(Self { params: *params, now: Probability::ZERO })
    }
}

impl DropProbability for Step {
    fn advance(&mut self, _now: Instant, _backlog: Backlog) {}

    fn arrive(&mut self, _now: Instant, _arrival: Arrival, backlog: Backlog) -> Probability {
        let is_beyond = u64::from(backlog.packets) > self.params.threshold;
        self.now = if is_beyond { Probability::clamped(self.params.p) } else { Probability::ZERO };
        self.now
    }

    fn probability(&self) -> Option<Probability> {
        Some(self.now)
    }

    fn readings(&self) -> Readings {
        Readings { target: Some(self.params.threshold as f64), ..Readings::default() }
    }

    fn reset(&mut self, _now: Instant) {
        self.now = Probability::ZERO;
    }
}

/// Parameters of [`Cliff`].
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
struct CliffParams {
    /// The longest queue.
    #[param(default = 200, range = (0, 10_000), unit = "packets", source = "this test")]
    edge: u64,
}

/// A law whose probability is 0 or 1.
#[derive(Clone, Copy, Debug)]
struct Cliff {
    edge: u64,
    now: Probability,
}

impl Aqm for Cliff {
    type Params = CliffParams;
    const NAME: &'static str = "test-cliff";
    const TITLE: &'static str = "Cliff";
    const SOURCE: &'static str = "this test";

    fn build(params: &CliffParams, _rate: Rate) -> Result<Self, ParameterError> {
        params.validate()?;
        Ok(Self { edge: params.edge, now: Probability::ZERO })
    }

    fn standing_delay(params: &CliffParams, _limit: Limit, rate: Rate) -> Option<Duration> {
        Some(standing::packets(params.edge as f64, rate))
    }

    fn moderate_params() -> CliffParams {
        CliffParams { edge: 100 }
    }
}

impl DropProbability for Cliff {
    fn advance(&mut self, _now: Instant, _backlog: Backlog) {}

    fn arrive(&mut self, _now: Instant, _arrival: Arrival, backlog: Backlog) -> Probability {
        self.now = if u64::from(backlog.packets) >= self.edge { Probability::ONE } else { Probability::ZERO };
        self.now
    }

    fn probability(&self) -> Option<Probability> {
        Some(self.now)
    }

    fn reset(&mut self, _now: Instant) {
        self.now = Probability::ZERO;
    }
}

/// Parameters of [`Lifo`].
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
struct LifoParams {
    /// Largest age of a packet; older ones are shed.
    #[param(default = Duration::from_millis(100), range = (Duration::from_millis(1), Duration::from_secs(1)),
        source = "this test")]
    patience: Duration,
}

/// Last in, first out; packets that have waited too long are shed.
#[derive(Clone, Debug)]
struct Lifo<P> {
    patience: Duration,
    stack: Vec<Held<P>>,
    core: QueueCore<P>,
}

impl<P: Copy> Discipline for Lifo<P> {
    type Params = LifoParams;
    const NAME: &'static str = "test-lifo";
    const TITLE: &'static str = "Last in, first out";
    const SOURCE: &'static str = "this test";

    fn build(params: &LifoParams, limit: Limit, ecn: bool, _rate: Rate) -> Result<Self, ParameterError> {
        params.validate()?;
        Ok(Self { patience: params.patience, stack: Vec::new(), core: QueueCore::new(limit, ecn) })
    }
}

impl<P: Copy> Queue<P> for Lifo<P> {
    fn enqueue(&mut self, now: Instant, arrival: Arrival, packet: P, _: &mut RandomStream) -> Verdict {
        let size = arrival.size;
        if !self.core.admits(size) {
            return self.core.count_arrival(Verdict::Drop(DropReason::Overflow), size);
        }
        self.stack.push(Held { packet, size, arrived: now, may_mark: false });
        self.core.count_arrival(Verdict::Pass, size)
    }

    fn dequeue(&mut self, now: Instant) -> Option<Departure<P>> {
        let oldest_fine = now - self.patience.min(now - Instant::ZERO);
        let late = self.stack.partition_point(|held| held.arrived < oldest_fine);
        self.stack.drain(..late).for_each(|held| self.core.count_shed(held, DropReason::Early));
        let held = self.stack.pop()?;
        Some(self.core.count_departure(held.leave(false)))
    }

    fn shed(&mut self) -> Option<Shed<P>> {
        self.core.next_shed()
    }

    fn backlog(&self) -> Backlog {
        self.core.backlog
    }

    fn readings(&self) -> Readings {
        Readings { average: Some(f64::from(self.core.backlog.packets)), ..Readings::default() }
    }

    fn reset(&mut self, _now: Instant, discard: &mut dyn FnMut(P)) {
        self.stack.drain(..).for_each(|held| self.core.count_flushed(held, discard));
    }

    fn stats(&self) -> &QueueStats {
        &self.core.stats
    }
}

/// A law whose description is data, as one of another language would be: p rises by `slope` a packet.
#[derive(Debug)]
struct Line {
    parameters: Vec<&'static Parameter>,
}

impl Line {
    fn new() -> Self {
        let slope = Parameter {
            name: "slope",
            unit: "per packet",
            kind: ParameterKind::Number { least: 0.0, most: 1.0 },
            optional: false,
            on: None,
            required: false,
            default: ParameterValue::Number(0.002),
            source: "this test",
            doc: "How much the probability rises with each packet.",
        };
        Self { parameters: vec![Box::leak(Box::new(slope))] }
    }
}

/// The law that [`Line`] builds.
#[derive(Clone, Debug)]
struct LineLaw {
    slope: f64,
    now: Probability,
}

impl DropProbability for LineLaw {
    fn advance(&mut self, _now: Instant, _backlog: Backlog) {}

    fn arrive(&mut self, _now: Instant, _arrival: Arrival, backlog: Backlog) -> Probability {
        self.now = Probability::clamped(self.slope * f64::from(backlog.packets));
        self.now
    }

    fn probability(&self) -> Option<Probability> {
        Some(self.now)
    }

    fn reset(&mut self, _now: Instant) {
        self.now = Probability::ZERO;
    }
}

impl ExternalAqm for Line {
    fn describe(&self) -> AqmDescription {
        let parameters = self.parameters.clone();
        AqmDescription { name: "test-line", title: "Line", source: "this test", parameters, takes_tsq: true }
    }

    fn build(
        &self,
        values: &[(&'static str, ParameterValue)],
        _limit: Limit,
        _ecn: bool,
        _rate: Rate,
    ) -> Result<Product, ParameterError> {
        let ParameterValue::Number(slope) = values[0].1 else {
            unreachable!("it has been checked to be a number")
        };
        Ok(Product::Law(Box::new(LineLaw { slope, now: Probability::ZERO })))
    }
}

/// Registers all of them, once in this process. If that fails, each test fails with the reason.
fn registered() {
    static OUTCOME: OnceLock<Result<(), RegistryError>> = OnceLock::new();
    let outcome = OUTCOME.get_or_init(|| {
        registry::register_law::<Step>()?;
        registry::register_law::<Cliff>()?;
        registry::register_discipline::<Lifo<u32>>()?;
        registry::register(Box::new(Line::new()))?;
        registry::register_law::<Moody>()?;
        registry::register_discipline::<Twice>()
    });
    assert_eq!(*outcome, Ok(()), "the registration");
}

fn spec<'v>(name: &str, values: impl IntoIterator<Item = (&'v str, ParameterValue)>) -> AqmSpec {
    registered();
    AqmSpec::from_values(name, values).expect("the test's parameters are allowed")
}

fn queue(aqm: AqmSpec, tsq: Option<TsqParams>) -> QueueSpec {
    QueueSpec { limit: Limit::Packets(400), ecn: false, aqm, tsq, rate: RATE }
}

#[test]
fn external_aqms_pass_the_conformance_suite() {
    for name in ["test-step", "test-cliff", "test-lifo", "test-line"] {
        conformance::check(&spec(name, []));
    }
    let graded = ["test-step", "test-cliff", "test-lifo"].map(conformance::is_graded);
    assert_eq!(graded, [Some(true), Some(false), None]);
    let moderate = AqmSpec::moderate("test-cliff").unwrap().values();
    assert_eq!(moderate, [("edge", ParameterValue::Count(100))], "the law chooses");
}

#[test]
fn a_law_of_another_crate_has_a_standing_delay() {
    let standing = |name, values: &[(&str, ParameterValue)]| {
        queue(spec(name, values.iter().cloned()), None).standing_delay()
    };
    // 10 packets of 1500 B at 15 Mbit/s.
    assert_eq!(
        standing("test-cliff", &[("edge", ParameterValue::Count(10))]),
        Some(Duration::from_millis(8))
    );
    assert_eq!(standing("test-line", &[]), None, "it does not say");
}

#[test]
fn external_aqms_are_listed_after_ours() {
    registered();
    let names: Vec<_> = registry::describe().into_iter().map(|about| about.name).collect();
    let at = names.iter().position(|name| *name == "test-lifo").expect("it is listed");
    assert!(names[..at].contains(&"pi"), "{names:?}");
    assert_eq!(names[at..at + 2], ["test-lifo", "test-line"], "in the order of the names");
}

#[test]
fn a_law_by_name_drops_beyond_its_step() {
    let aqm =
        spec("test-step", [("threshold", ParameterValue::Count(10)), ("p", ParameterValue::Number(1.0))]);
    assert_eq!(aqm.values(), [("threshold", ParameterValue::Count(10)), ("p", ParameterValue::Number(1.0))]);
    let mut link = conformance::link(&queue(aqm, None));
    // One goes to the link, eleven wait, and the next one finds more than ten.
    link.arrive_many(12, 16);
    assert_eq!(link.queue.backlog().packets, 11);
    assert_eq!(link.arrive(1000, 16, false), Verdict::Drop(DropReason::Early));
    assert_eq!(link.queue.probability(), Some(Probability::ONE));
    assert_eq!(link.queue.readings().target, Some(10.0));
}

#[test]
fn tsq_works_on_a_law_of_another_crate() {
    let aqm = spec("test-line", [("slope", ParameterValue::Number(0.001))]);
    let mut link = conformance::link(&queue(aqm, Some(TsqParams::default())));
    let mut hits = [0_u32; 2];
    for i in 0..20_000_u32 {
        let jumps = i % 4 == 0;
        let hit = link.arrive(1000, if jumps { 1 } else { 16 }, false) != Verdict::Pass;
        hits[usize::from(jumps)] += u32::from(hit);
        link.wait(Duration::from_micros(480));
    }
    let [bulk, jumping] = [f64::from(hits[0]) / 15_000.0, f64::from(hits[1]) / 5_000.0];
    assert!(bulk > 0.02 && jumping > 1.3 * bulk, "{jumping} against {bulk}");
}

#[test]
fn a_discipline_by_name_keeps_its_order_and_its_readings() {
    let mut link = conformance::link(&queue(spec("test-lifo", []), None));
    link.arrive_many(4, 16);
    // Every method is passed on, also those that a queue need not have.
    assert_eq!(link.queue.readings().average, Some(3.0));
    link.drain();
    let sent: Vec<u32> = link.sent.iter().map(|(_, departure)| departure.packet).collect();
    assert_eq!(sent, [0, 3, 2, 1], "the first one found the link idle");
}

#[test]
fn handles_of_any_type_come_back_from_a_discipline_of_another_crate() {
    let spec = queue(spec("test-lifo", []), None);
    let mut queue = spec.build::<&str>().expect("the specification is allowed");
    let mut random = cutline_units::Streams::new(1).stream("queue", "drop");
    let arrival = Arrival::new(1000, cutline_units::Hint::LEAST_DELAY);
    for packet in ["first", "second"] {
        queue.enqueue(Instant::ZERO, arrival, packet, &mut random);
    }
    let mut copy = queue.clone();
    assert_eq!(queue.dequeue(Instant::ZERO).map(|departure| departure.packet), Some("second"));
    // A second later the first one has lost its patience.
    let late = Instant::ZERO + Duration::from_secs(1);
    assert!(queue.dequeue(late).is_none());
    assert_eq!(queue.shed().map(|shed| shed.packet), Some("first"));
    let mut flushed = Vec::new();
    copy.reset(Instant::ZERO, &mut |packet| flushed.push(packet));
    assert_eq!(flushed, ["first", "second"], "the copy has packets of its own");
}

#[test]
fn refusals_are_those_of_our_own() {
    let refused = |name, values: Vec<(&str, ParameterValue)>| {
        AqmSpec::from_values(name, values).unwrap_err().to_string()
    };
    registered();
    assert_eq!(
        refused("test-step", vec![("p", ParameterValue::Number(2.0))]),
        "p = 2: allowed is a number from 0 to 1"
    );
    assert_eq!(
        refused("test-line", vec![("slop", ParameterValue::Number(0.1))]),
        "slop = 0.1: allowed is one of the names slope; did you mean slope?"
    );
    let unknown = refused("test-lifoo", vec![]);
    assert!(unknown.ends_with("did you mean test-lifo?") && unknown.contains("pi, "), "{unknown}");
    let tsq =
        queue(spec("test-lifo", []), Some(TsqParams::default())).build::<u32>().unwrap_err().to_string();
    assert!(tsq.starts_with("tsq = true: allowed is false with test-lifo"), "{tsq}");
}

/// PI's name.
#[derive(Debug)]
struct Pi;

impl ExternalAqm for Pi {
    fn describe(&self) -> AqmDescription {
        AqmDescription { name: "pi", title: "Mine", source: "mine", parameters: vec![], takes_tsq: true }
    }

    fn build(
        &self,
        _values: &[(&'static str, ParameterValue)],
        _limit: Limit,
        _ecn: bool,
        _rate: Rate,
    ) -> Result<Product, ParameterError> {
        unreachable!("it cannot be registered")
    }
}

#[test]
fn a_name_is_given_once() {
    registered();
    let twice = registry::register_law::<Step>().unwrap_err();
    assert_eq!(twice, RegistryError::Taken("test-step".to_owned()));
    let ours = registry::register(Box::new(Pi)).unwrap_err();
    assert_eq!(ours, RegistryError::Taken("pi".to_owned()));
}

/// A law that breaks the rules: it draws from a counter that all its copies share.
#[derive(Clone, Copy, Debug)]
struct Moody;

static MOOD: AtomicU64 = AtomicU64::new(0);

impl Aqm for Moody {
    type Params = cutline_aqm::drop_tail::DropTailParams;
    const NAME: &'static str = "test-moody";
    const TITLE: &'static str = "Moody";
    const SOURCE: &'static str = "this test";

    fn build(_params: &Self::Params, _rate: Rate) -> Result<Self, ParameterError> {
        Ok(Self)
    }
}

impl DropProbability for Moody {
    fn advance(&mut self, _now: Instant, _backlog: Backlog) {}

    fn arrive(&mut self, _now: Instant, _arrival: Arrival, _backlog: Backlog) -> Probability {
        let mood = MOOD.fetch_add(1, Ordering::Relaxed);
        Probability::clamped(if mood.is_multiple_of(1009) { 1.0 } else { 0.0 })
    }

    fn probability(&self) -> Option<Probability> {
        Some(Probability::ZERO)
    }

    fn reset(&mut self, _now: Instant) {}
}

/// A discipline that breaks the rules: it hands out its first packet twice.
#[derive(Clone, Debug)]
struct Twice {
    lifo: Lifo<u32>,
    first: Option<Departure<u32>>,
}

impl Discipline for Twice {
    type Params = LifoParams;
    const NAME: &'static str = "test-twice";
    const TITLE: &'static str = "Twice";
    const SOURCE: &'static str = "this test";

    fn build(params: &LifoParams, limit: Limit, ecn: bool, rate: Rate) -> Result<Self, ParameterError> {
        Ok(Self { lifo: Lifo::build(params, limit, ecn, rate)?, first: None })
    }
}

impl Queue<u32> for Twice {
    fn enqueue(&mut self, now: Instant, arrival: Arrival, packet: u32, random: &mut RandomStream) -> Verdict {
        self.lifo.enqueue(now, arrival, packet, random)
    }

    fn dequeue(&mut self, now: Instant) -> Option<Departure<u32>> {
        match self.first {
            None => {
                self.first = self.lifo.dequeue(now);
                self.first
            }
            first => first,
        }
    }

    fn backlog(&self) -> Backlog {
        self.lifo.backlog()
    }

    fn reset(&mut self, now: Instant, discard: &mut dyn FnMut(u32)) {
        self.lifo.reset(now, discard);
    }

    fn stats(&self) -> &QueueStats {
        self.lifo.stats()
    }
}

/// Returns the text of a failed check.
fn failure(check: fn(&AqmSpec), name: &'static str) -> String {
    let aqm = spec(name, []);
    let panic = catch_unwind(AssertUnwindSafe(|| check(&aqm))).expect_err("the check should fail");
    panic.downcast_ref::<String>().expect("it fails with a message").clone()
}

#[test]
fn a_failing_check_prints_the_first_difference_and_not_the_trace() {
    let message = failure(conformance::the_same_seed_gives_the_same_run, "test-moody");
    assert!(message.len() < 500, "{} bytes", message.len());
    let expected =
        "test-moody, without ECN, limit Packets(400): verdicts and probabilities of two runs differ in ";
    assert!(message.starts_with(expected), "{message}");
    assert!(message.contains("places, first in place ") && message.contains("Drop(Early)"), "{message}");
}

#[test]
fn a_discipline_that_hands_out_a_packet_twice_is_caught() {
    let message = failure(conformance::packets_are_conserved, "test-twice");
    assert_eq!(message, "test-twice hands out packet 0, which it does not hold");
}
