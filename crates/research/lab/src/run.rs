//! One run of a scenario.

use crate::congestion;
use crate::connections::{self, Arrived, Connections, Course, Listeners, Placement, Sent};
use crate::external_programs::{self, ExternalProgram, ExternalPrograms};
use crate::hosts::{self, Hosts, INTERFACES, MAX_FLOWS};
use crate::links::{Crossed, Links};
use crate::reader::SINK_PORT;
use crate::timing::{Bounds, Busy};
use crate::traffic::plans;
use crate::tuning::Stack;
use crate::{LabError, NetworkSide};
use cutline_results::{RunResult, TimingRow};
use cutline_scenario::Scenario;
use cutline_scenario::spec::FlowGroupSpec;
use cutline_sim::qos::QosRecord;
use cutline_sim::{FlowOutcome, Network, SimulationOutcome};
use cutline_sys::namespace::{self, sweep};
use cutline_sys::thread::{SetOnPanic, joined};
use cutline_sys::{SysError, now};
use cutline_traffic::{Generator, Meter, MeterParams, SenderReport, TrafficError, Window};
use cutline_transport::endpoint::{TransportCounts, TransportParams};
use cutline_units::{Duration, Hint, HintBits, Histogram, Instant, Streams};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};

/// Options of a run.
#[derive(Clone, Debug, Default)]
pub struct LabOptions {
    /// The variant of Linux's TCP.
    pub stack: Stack,
    /// The bounds of valid timing.
    pub bounds: Bounds,
    /// Programs in the place of flows.
    pub programs: Vec<ExternalProgram>,
}

impl LabOptions {
    /// Returns the version of results with these options, from the version of the program. Results with other options have another
    /// origin.
    pub fn version(&self, program: &str) -> String {
        let programs =
            self.programs.iter().map(|ExternalProgram { flow, command }| format!(" {flow}={command}"));
        format!("{program} {}{}", self.stack.label(), programs.collect::<String>())
    }
}

/// The time from the end of the set-up to the beginning of the scenario. The threads of the hosts start within it.
pub const LEAD: Duration = Duration::from_millis(100);

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
    Ok(measure(scenario, &Connections::new(), seed, options, cancel)?.rows(scenario))
}

/// Measurements of a run.
#[derive(Debug)]
pub struct RunMeasurements {
    /// The beginning of the scenario, on the scale of the times of connections' MIBs.
    pub zero: Instant,
    /// The scenario's network.
    pub network: Network,
    /// Measurements of the links. Of a flow that is a QoS connection they have measured nothing.
    pub outcome: SimulationOutcome,
    /// The timing of the run.
    pub timing: TimingRow,
    /// The QoS connections, by the indices of their flows.
    pub connections: BTreeMap<usize, MeasuredConnection>,
}

/// Measurements of a QoS connection.
#[derive(Clone, Debug)]
pub struct MeasuredConnection {
    /// Observations of both ends.
    pub record: QosRecord,
    /// Number of packets of the source, control messages included, with each hint on the links.
    pub hints: BTreeMap<Hint, u64>,
}

impl RunMeasurements {
    /// The rows of the result tables.
    pub fn rows(self, scenario: &Scenario) -> RunResult {
        let mut rows = scenario.rows(&self.network, &self.outcome);
        rows.timing.push(self.timing);
        rows
    }
}

/// As [`run`], with QoS connections in the place of some flows over UDP. Returns measurements instead of rows.
///
/// # Errors
/// As [`run`], and when the ends of a connection do not agree.
pub fn measure(
    scenario: &Scenario,
    connections: &Connections,
    seed: u64,
    options: &LabOptions,
    cancel: &AtomicBool,
) -> Result<RunMeasurements, LabError> {
    check_all(scenario, connections)?;
    let mut network = scenario.network()?;
    let programs = external_programs::find(&options.programs, &network)?;
    sweep()?;
    network.use_external_endpoints();
    let hosts = Hosts::create(network.flows(), connections, options.stack)?;
    let before = Busy::now();
    let experiment = Experiment { scenario, network: &network, connections, programs: &programs, seed };
    let Ran { zero, crossed, sent, records } = experiment.run(&hosts, cancel)?;
    let Crossed { mut outcome, mut timing, mut hints } = crossed;
    if cancel.load(Ordering::Relaxed) {
        return Err(LabError::Interrupted);
    }
    hosts.check()?;
    let failed = sent.iter().filter(|report| report.error.is_some()).count() as u64;
    for report in sent {
        timing.sources.merge(&report.lateness);
        set_sender_counts(&mut outcome.flows[report.flow as usize], report);
    }
    let mut measured = BTreeMap::new();
    for (flow, (record, lateness)) in records {
        timing.sources.merge(&lateness);
        let hints = hints.remove(&flow).unwrap_or_default();
        measured.insert(flow, MeasuredConnection { record, hints });
    }
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let machine = before.and_then(|before| Busy::now()?.since(before, cores));
    let timing = timing.row(&options.bounds, scenario.duration, machine, failed);
    Ok(RunMeasurements { zero, network, outcome, timing, connections: measured })
}

/// A scenario, its network, its QoS connections and programs, and the seed of a run.
#[derive(Clone, Copy)]
struct Experiment<'e> {
    scenario: &'e Scenario,
    network: &'e Network,
    connections: &'e Connections,
    programs: &'e ExternalPrograms<'e>,
    seed: u64,
}

/// Records of connections, with the lateness of their applications, by the indices of their flows.
type Records = BTreeMap<usize, (QosRecord, Histogram)>;

/// Observations of a run's threads.
struct Ran {
    zero: Instant,
    crossed: Crossed,
    sent: Vec<SenderReport>,
    records: Records,
}

impl Experiment<'_> {
    /// Runs sources, network and sinks, each on a separate thread, until the end of the scenario. If one fails, the others
    /// stop.
    fn run(self, hosts: &Hosts, cancel: &AtomicBool) -> Result<Ran, LabError> {
        let settings = self.scenario.settings(self.seed);
        let since_zero = |at: Instant| at.saturating_since(Instant::ZERO);
        let window =
            Window { from: since_zero(settings.window.from), until: since_zero(settings.window.until) };
        let Self { connections, programs, network, seed, .. } = self;
        let streams = Streams::new(seed);
        let mut plans = plans(self.scenario, network, connections, seed);
        plans.retain(|plan| !programs.contains_key(&(plan.id as usize)));
        let generator = Generator::new(plans, streams)?.with_window(window);
        let any_address = SocketAddr::from(([0, 0, 0, 0], SINK_PORT));
        let params = MeterParams { flows: network.flows().len() as u32, ..MeterParams::default() };
        let meter = hosts.sinks.within(|| Meter::bind(any_address, params))??;
        if !connections.is_empty() {
            // Otherwise it would keep the first run's namespace alive.
            cutline_socket::start().map_err(|error| SysError::new("a thread cannot be started", error))?;
        }
        let listeners = hosts.sinks.within(|| Listeners::bind(connections, &place))??;
        // The kernel needs some time to allocate the rings, so the links are created before the beginning is set.
        let links = hosts
            .network
            .within(|| Links::new(network, &settings, INTERFACES, connections.keys().copied().collect()))??;
        let links = programs.keys().fold(links, |links, flow| {
            let ends = [NetworkSide::Sources, NetworkSide::Sinks].map(|side| hosts::address(side, *flow));
            links.with_host_pair(*flow, ends, Some(network.flows()[*flow].hint))
        });
        let (zero, end) = (now() + LEAD, settings.duration);
        let stop = AtomicBool::new(false);
        let ended = || cancel.load(Ordering::Relaxed) || stop.load(Ordering::Relaxed);
        let course = Course { zero, end: zero + end, ended: &ended };
        std::thread::scope(|scope| {
            let _stop = SetOnPanic(&stop);
            let sinks = scope.spawn(|| or_stop(&stop, hosts.sinks.within(|| meter.run(zero, end, &stop))));
            let sources =
                scope.spawn(|| or_stop(&stop, hosts.sources.within(|| generator.run(zero, end, &stop))));
            let called = scope.spawn(|| or_stop(&stop, hosts.sinks.within(|| listeners.run(course))));
            let callers = scope.spawn(|| {
                or_stop(
                    &stop,
                    hosts.sources.within(|| connections::send(connections, &place, streams, course)),
                )
            });
            let program_threads = scope.spawn(|| {
                let ended = external_programs::run(programs, network, hosts, seed, course);
                stop.fetch_or(ended.is_err(), Ordering::Relaxed);
                ended
            });
            // On a separate thread, because real-time scheduling is set for the whole thread.
            let result = joined(scope.spawn(|| links.run(zero, &ended)));
            if ended() || result.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
            let (sent, received) = (joined(sources), joined(sinks));
            let (calls, called) = (joined(callers), joined(called));
            let programs = joined(program_threads);
            let crossed = result?;
            received?;
            programs?;
            Ok(Ran { zero, crossed, sent: sent?, records: records(connections, calls?, called?, course) })
        })
    }
}

/// The ends of the connection in the place of a flow.
fn place(flow: usize) -> Placement {
    Placement { source: hosts::source(flow), sink: hosts::qos_sink(flow), share: None, most: None }
}

/// Returns the result of a host's thread. If it is an error, stops the other threads.
pub fn or_stop<T, E: Into<LabError>>(
    stop: &AtomicBool,
    ended: Result<Result<T, E>, SysError>,
) -> Result<T, LabError> {
    let ended = ended.map_err(LabError::from).and_then(|ended| ended.map_err(Into::into));
    if ended.is_err() {
        stop.store(true, Ordering::Relaxed);
    }
    ended
}

/// Combines the records of both ends of each connection.
fn records(connections: &Connections, sent: Vec<Sent>, arrived: Vec<Arrived>, course: Course<'_>) -> Records {
    let both = connections.keys().zip(sent).zip(arrived);
    both.map(|((flow, mut sent), arrived)| {
        let lateness = std::mem::take(&mut sent.lateness);
        (*flow, (connections::record(sent, arrived, course), lateness))
    })
    .collect()
}

/// Sets the counts that only the sender has.
pub fn set_sender_counts(flow: &mut FlowOutcome, report: SenderReport) {
    flow.transport = TransportCounts {
        retransmissions: report.retransmissions,
        timeouts: report.timeouts.unwrap_or(0),
        refused_bytes: report.refused_bytes,
    };
    if flow.responses.is_some() {
        flow.responses = Some(Box::new(report.responses));
    }
}

/// Checks whether this process has the privileges of a laboratory.
///
/// # Errors
/// Missing requirement.
pub fn permitted() -> Result<(), LabError> {
    Ok(namespace::permitted()?)
}

/// Checks whether the laboratory supports a scenario, without running it.
///
/// # Errors
/// The first feature that only the simulator has.
pub fn check(scenario: &Scenario) -> Result<(), LabError> {
    check_all(scenario, &Connections::new())
}

/// As [`check`], with programs in the place of flows.
///
/// # Errors
/// As [`check`], and the first program that cannot be in the place of its flow.
pub fn check_with(scenario: &Scenario, programs: &[ExternalProgram]) -> Result<(), LabError> {
    check(scenario)?;
    external_programs::find(programs, &scenario.network()?).map(drop)
}

/// Checks that all groups have a number of flows.
///
/// # Errors
/// The first group with transfers that arrive at random.
pub(crate) fn check_counts(scenario: &Scenario) -> Result<(), LabError> {
    refuse(scenario, |group| group.arrivals.is_some(), "transfers that arrive at random", "set count and app")
}

/// Checks that a real network can carry the transports of all groups.
///
/// # Errors
/// The first group whose transport is only simulated.
pub(crate) fn check_transports(scenario: &Scenario) -> Result<(), LabError> {
    let is_simulated = |params: &TransportParams| {
        !matches!(params, TransportParams::Tcp(_)) && params.datagram_format().is_none()
    };
    let instead = "use `cutline run`, or another protocol";
    refuse(scenario, |group| is_simulated(&group.transport.params), "its transport", instead)
}

/// Checks that no group is in a tunnel, which only the simulator has.
///
/// # Errors
/// The first group in a tunnel.
pub(crate) fn check_tunnels(scenario: &Scenario) -> Result<(), LabError> {
    refuse(scenario, |group| group.tunnel.is_some(), "a tunnel", "use `cutline run`, or remove `tunnel`")
}

/// Refuses the first group with a feature that only the simulator has.
fn refuse(
    scenario: &Scenario,
    has_feature: impl Fn(&FlowGroupSpec) -> bool,
    what: &'static str,
    instead: &'static str,
) -> Result<(), LabError> {
    match scenario.nonempty_groups().find(|group| has_feature(group)) {
        Some(group) => Err(LabError::OnlySimulated { flow: group.name.clone(), what, instead }),
        None => Ok(()),
    }
}

fn check_all(scenario: &Scenario, connections: &Connections) -> Result<(), LabError> {
    scenario.check_without_routers()?;
    refuse(scenario, |group| group.adaptive.is_some(), "a hint that adapts", "set it to a level")?;
    check_counts(scenario)?;
    check_transports(scenario)?;
    check_tunnels(scenario)?;
    let count = scenario.flow_count();
    if count > MAX_FLOWS as u64 {
        return Err(LabError::TooMany { count, max: MAX_FLOWS });
    }
    if scenario.hint_bits.levels() > HintBits::PAPER.levels() {
        return Err(LabError::WideHints { bits: scenario.hint_bits.get() });
    }
    let network = scenario.network()?;
    connections::check(connections, network.flows())?;
    hosts::check(network.flows(), connections)?;
    congestion::check(scenario.nonempty_groups())?;
    for plan in plans(scenario, &network, connections, scenario.seed) {
        plan.validate().map_err(TrafficError::from)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_scenario::ScenarioFile;

    #[test]
    fn a_transport_of_simulations_is_refused() {
        let text = "name = 'atm'\nduration = '10 s'\n[dumbbell]\nrate = '1 Mbit/s'\ndelay = '10 ms'\n\
                    access-rate = '10 Mbit/s'\naccess-delay = '1 ms'\n\
                    queue = { aqm = 'drop-tail', limit = '10 packets' }\n\
                    [[flow]]\nname = 'blocks'\napp = { kind = 'bulk' }\ntransport = { protocol = 'abr' }\n";
        let scenario = ScenarioFile::parse(text, "atm.toml").unwrap().scenario().unwrap();
        assert_eq!(
            check(&scenario).unwrap_err().to_string(),
            "flow `blocks`: its transport is not available in the laboratory; use `cutline run`, or another protocol"
        );
    }

    #[test]
    fn a_tunnel_is_refused() {
        let text = "name = 'vpn'\nduration = '10 s'\n[dumbbell]\nrate = '1 Mbit/s'\ndelay = '10 ms'\n\
                    access-rate = '10 Mbit/s'\naccess-delay = '1 ms'\n\
                    queue = { aqm = 'fq-codel', limit = '10 packets' }\n\
                    [[flow]]\nname = 'inside'\ntunnel = 'vpn'\napp = { kind = 'bulk' }\ntransport = { protocol = 'tcp' }\n";
        let scenario = ScenarioFile::parse(text, "vpn.toml").unwrap().scenario().unwrap();
        assert_eq!(
            check(&scenario).unwrap_err().to_string(),
            "flow `inside`: a tunnel is not available in the laboratory; use `cutline run`, or remove `tunnel`"
        );
    }
}
