//! The laboratory with routers: each node of a scenario's graph is a network namespace, the kernel forwards, and links have their rate
//! and queue by HTB. Flows may have reservations (`QoSockets` section III).
//!
//! ```text
//! network   namespaces, addresses, routes
//! wire      the time that frames take on a link
//! control   rates, queues, reservations and counters of the links
//! agents    the nodes' RSVP agents
//! flows     the traffic: the generator's, and applications over QoS sockets
//! applications  real programs over gateways
//! shares    QoS sockets with shares of their hosts, and the hosts' resource managers
//! outcome   rates, losses, delays and jitters, in the tables of a simulation
//! ```
//!
//! Unlike in the other laboratory, routers and queues are the kernel's, so there are only those that it has: FIFO queues in bytes, and no
//! delay hints.

mod agents;
mod applications;
mod control;
mod flows;
mod network;
mod outcome;
mod shares;
mod wire;

pub use applications::{FRAMES_SHOWN, PSNR, Programs, SSIM};
pub use outcome::OFFERED;
pub use shares::Shares;

pub(crate) use flows::{Carried, connection, rate_of};
pub(crate) use outcome::connected;
pub(crate) use shares::ManagedStream;

use crate::timing::{Bounds, Busy, TimingMeasures};
use crate::{LabError, congestion};
use control::{LinkSamples, LinkShapers};
use cutline_results::{RunResult, TimingRow};
use cutline_scenario::Scenario;
use cutline_sim::measure::DelayRecord;
use cutline_sim::{Network, SimulationOutcome, SimulationSettings, Work};
use cutline_sys::namespace::sweep;
use cutline_sys::now;
use cutline_sys::reactor::wait;
use cutline_sys::thread::{SetOnPanic, joined};
use cutline_units::{Duration, Instant};
use flows::{Flows, Traffic};
use network::{Map, Nodes};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use wire::Wire;

/// Way in which reservations are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Signalling {
    /// Installed on every link before the traffic begins.
    #[default]
    None,
    /// Gateways ask the agent of their node, and agents reserve by RSVP. Reservations of other flows are installed.
    Rsvp,
}

/// Options of a run.
#[derive(Clone, Debug)]
pub struct LabOptions {
    /// The bounds of valid timing.
    pub bounds: Bounds,
    /// The largest allowed 99th percentile of the lateness of the generator's applications.
    pub lateness: Duration,
    /// Way in which reservations are made.
    pub signalling: Signalling,
    /// Shares of the flows with a specification; `None`: they have reservations.
    pub shares: Option<Shares>,
    /// The programs of flows that have one; `None`: the generator makes their traffic instead.
    pub programs: Option<Programs>,
}

impl Default for LabOptions {
    /// 1 ms for wires, and 2 ms for applications, an eighth of the time between two messages of a video. How busy the machine is does
    /// not count: wires run before everything else, and the effect of a busy machine on applications is measured.
    fn default() -> Self {
        Self {
            bounds: Bounds { busy: 1.0, ..Bounds::default() },
            lateness: Duration::from_millis(2),
            signalling: Signalling::None,
            shares: None,
            programs: None,
        }
    }
}

/// The time from the end of the set-up to the beginning of the scenario, for threads to start, and for programs.
const LEAD: Duration = Duration::from_millis(200);
const LEAD_OF_PROGRAMS: Duration = Duration::from_millis(2500);

/// Checks whether the laboratory with routers supports a scenario, without running it.
///
/// # Errors
/// The first feature that it does not have.
pub fn check(scenario: &Scenario) -> Result<(), LabError> {
    let map = Map::new(scenario)?;
    let network = scenario.network()?;
    congestion::check(scenario.nonempty_groups())?;
    Flows::new(scenario, &network, &map, (None, None), scenario.seed)?.check()
}

/// Runs a scenario once, in real time. Setting `cancel` from another thread ends the run early.
///
/// # Errors
/// When the laboratory does not support the scenario, the process lacks a privilege, or the run was interrupted.
pub fn run(
    scenario: &Scenario,
    seed: u64,
    options: &LabOptions,
    cancel: &AtomicBool,
) -> Result<RunResult, LabError> {
    check(scenario)?;
    sweep()?;
    let (map, network, settings) = (Map::new(scenario)?, scenario.network()?, scenario.settings(seed));
    let nodes = Nodes::create(&map)?;
    let mut control = LinkShapers::install(&nodes, &scenario.graph(), options.signalling)?;
    let given = (options.programs.as_ref(), options.shares);
    let mut flows = Flows::new(scenario, &network, &map, given, seed)?;
    flows.start_managers(&nodes)?;
    for reservation in flows.reservations(options.signalling)? {
        control.reserve(&reservation.links, &reservation.bucket, reservation.filter)?;
    }
    let wires = nodes.wires(&map, &scenario.graph())?;
    let traffic = Traffic::prepare(&flows, &nodes, &settings, &control)?;
    let lead = if flows.has_applications() { LEAD_OF_PROGRAMS } else { LEAD };
    let before = Busy::now();
    let (zero, stop) = (now() + lead, AtomicBool::new(false));
    let ended = || cancel.load(Ordering::Relaxed) || stop.load(Ordering::Relaxed);
    let (carried, samples, punctuality) = std::thread::scope(|scope| {
        let _stop = SetOnPanic(&stop);
        let carry = |wire: Wire| scope.spawn(|| wire.run(zero, &ended));
        let wires: Vec<_> = wires.into_iter().map(carry).collect();
        let samples = scope.spawn(|| sample(&mut control, zero, &settings, &ended));
        let carried = traffic.run(&nodes, zero, &stop, &ended);
        // The wires carry until all flows are over.
        stop.store(true, Ordering::Relaxed);
        let punctuality: Result<Vec<_>, LabError> = wires.into_iter().map(joined).collect();
        Ok::<_, LabError>((carried?, joined(samples)?, punctuality?))
    })?;
    if cancel.load(Ordering::Relaxed) {
        return Err(LabError::Interrupted);
    }
    nodes.check()?;
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let machine = before.and_then(|before| Busy::now()?.since(before, cores));
    let mut measures = TimingMeasures {
        sources: carried.lateness.clone(),
        missed: carried.overflowed,
        ..TimingMeasures::default()
    };
    for wire in &punctuality {
        measures.departure.merge(&wire.departure);
        measures.reading.merge(&wire.reading);
        measures.frames += wire.frames;
        measures.missed += wire.missed;
        measures.unsent += wire.unsent;
        measures.cpu += wire.cpu;
    }
    let timing = measures.row(&options.bounds, scenario.duration, machine, carried.failed);
    let timing = judge_lateness(timing, options.lateness);
    Ok(rows(scenario, &network, &settings, carried, &samples, timing))
}

/// Notes that applications wrote too late.
fn judge_lateness(timing: TimingRow, bound: Duration) -> TimingRow {
    let late = timing.source_lateness_p99_ms.filter(|late| *late > bound.as_millis_f64());
    let Some(late) = late else { return timing };
    let mut problems =
        vec![format!("1 % of the applications' writes were more than {late:.1} ms late (bound {bound})")];
    problems.extend(Some(timing.problem.to_string()).filter(|problem| !problem.is_empty()));
    TimingRow { timing_ok: false, problem: problems.join("; ").into(), ..timing }
}

/// Reads the counters of the links at the end of each interval.
fn sample(
    control: &mut LinkShapers,
    zero: Instant,
    settings: &SimulationSettings,
    ended: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<LinkSamples>, LabError> {
    const GLANCE: Duration = Duration::from_millis(50);
    let mut samples: Vec<LinkSamples> = Vec::new();
    let mut next = zero + settings.interval;
    while next <= zero + settings.duration && !ended() {
        let left = next.saturating_since(now());
        if !left.is_zero() {
            wait(&mut [], left.min(GLANCE))
                .map_err(|error| cutline_sys::SysError::new("a thread cannot wait", error))?;
            continue;
        }
        let counted = control.counted()?;
        samples.resize_with(counted.len(), LinkSamples::default);
        samples.iter_mut().zip(counted).for_each(|(link, counted)| link.0.push(counted));
        next += settings.interval;
    }
    Ok(samples)
}

pub(crate) fn rows(
    scenario: &Scenario,
    network: &Network,
    settings: &SimulationSettings,
    carried: Carried,
    samples: &[LinkSamples],
    timing: TimingRow,
) -> RunResult {
    let intervals = |at: Instant| (at.as_nanos() / settings.interval.as_nanos()) as usize;
    let window = intervals(settings.window.from)..intervals(settings.window.until);
    let none = LinkSamples::default();
    let links = network.links().iter().enumerate();
    let links = links.map(|(index, link)| {
        samples.get(index).unwrap_or(&none).outcome(link.rate, settings.interval, window.clone())
    });
    let outcome = SimulationOutcome {
        flows: carried.measured.iter().map(|measured| measured.outcome.clone()).collect(),
        groups: vec![DelayRecord::default(); scenario.flows.len()],
        links: links.collect(),
        work: Work::default(),
    };
    let mut rows = scenario.rows(network, &outcome);
    forget_queuing(&mut rows);
    outcome::add_offered(&mut rows, network.flows(), &carried.measured, settings);
    rows.distributions.extend(carried.extra);
    rows.timing.push(timing);
    rows
}

/// Removes the measurements of queuing, which this laboratory does not have.
fn forget_queuing(rows: &mut RunResult) {
    rows.flows.iter_mut().for_each(|row| row.queuing_mean_ms = None);
    rows.series.iter_mut().for_each(|row| row.queuing_mean_ms = None);
    rows.queue_series.iter_mut().for_each(|row| row.delay_mean_ms = None);
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use cutline_scenario::ScenarioFile;

    /// Two hosts and two routers, a video and a reference flow.
    pub const TESTBED: &str = "\
name = 'testbed'
duration = '6 s'
warm-up = '2 s'
interval = '500 ms'
[[node]]
name = 'ws1'
[[node]]
name = 'ws0'
[[node]]
name = 'r1'
[[node]]
name = 'r0'
[queue.line]
aqm = 'drop-tail'
limit = '116 KB'
[[link]]
from = 'ws1'
to = 'r1'
rate = '10 Mbit/s'
delay = '0 s'
queue = 'line'
[[link]]
name = 'line'
from = 'r1'
to = 'r0'
rate = '1500 kbit/s'
delay = '0 s'
queue = 'line'
[[link]]
from = 'r0'
to = 'ws0'
rate = '10 Mbit/s'
delay = '0 s'
queue = 'line'
[[flow]]
name = 'main'
from = 'ws1'
to = 'ws0'
transport = { protocol = 'udp' }
app = { kind = 'cbr', rate = '614400 bit/s', size = '1280 B' }
[flow.qos]
send = { min-rate = 60, max-rate = 80, peak-rate = 100, size = '1280 B', max-delay = '100 ms' }
[[flow]]
name = 'tg'
count = 2
from = 'ws1'
to = 'ws0'
transport = { protocol = 'udp' }
app = { kind = 'cbr', rate = '540 kbit/s', size = '1024 B' }
";

    pub fn scenario(text: &str) -> Scenario {
        let file = ScenarioFile::parse(text, "testbed.toml").unwrap_or_else(|errors| panic!("{errors}"));
        file.scenario().unwrap_or_else(|errors| panic!("{errors}"))
    }

    #[test]
    fn applications_that_write_late_are_a_problem() {
        let bound = Duration::from_millis(2);
        let row = |late| TimingRow { timing_ok: true, source_lateness_p99_ms: late, ..TimingRow::default() };
        assert!(
            judge_lateness(row(Some(1.9)), bound).timing_ok && judge_lateness(row(None), bound).timing_ok
        );
        let late = judge_lateness(TimingRow { problem: "lost".into(), ..row(Some(3.5)) }, bound);
        assert!(!late.timing_ok && late.problem.contains("3.5 ms late") && late.problem.ends_with("; lost"));
    }
}
