//! One run of a scenario.

use crate::LabError;
use crate::congestion;
use crate::hosts::{self, Hosts, INTERFACES, MAX_FLOWS};
use crate::links::Links;
use crate::reader::SINK_PORT;
use crate::timing::{Bounds, Busy, TimingMeasures};
use crate::traffic::plans;
use crate::tuning::Stack;
use cutline_results::RunResult;
use cutline_scenario::Scenario;
use cutline_sim::{FlowOutcome, Network, Outcome};
use cutline_sys::namespace::sweep;
use cutline_sys::{SysError, now};
use cutline_traffic::{Generator, Meter, MeterParams, SenderReport, TrafficError, Window};
use cutline_transport::endpoint::TransportCounts;
use cutline_units::{Duration, HintBits, Instant, Streams};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;

/// Options of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The variant of Linux's TCP.
    pub stack: Stack,
    /// The bounds of valid timing.
    pub bounds: Bounds,
}

/// The time from the end of the set-up to the beginning of the scenario. The threads of the hosts start within it.
const LEAD: Duration = Duration::from_millis(100);

/// Runs a scenario once, in real time. Setting `cancel` from another thread ends the run early.
///
/// # Errors
/// When the laboratory does not support the scenario, the process lacks a privilege, or the run was interrupted.
pub fn run(
    scenario: &Scenario,
    seed: u64,
    options: &Options,
    cancel: &AtomicBool,
) -> Result<RunResult, LabError> {
    check(scenario)?;
    sweep()?;
    let mut network = scenario.network()?;
    network.use_external_endpoints();
    let hosts = Hosts::create(network.flows(), options.stack)?;
    let before = Busy::now();
    let (mut outcome, mut timing, sent) =
        Experiment { scenario, network: &network, seed }.run(&hosts, cancel)?;
    if cancel.load(Ordering::Relaxed) {
        return Err(LabError::Interrupted);
    }
    let failed = sent.iter().filter(|report| report.error.is_some()).count() as u64;
    for (flow, report) in outcome.flows.iter_mut().zip(sent) {
        timing.sources.merge(&report.lateness);
        set_sender_counts(flow, report);
    }
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let machine = before.and_then(|before| Busy::now()?.since(before, cores));
    let mut result = scenario.rows(&network, &outcome);
    result.timing.push(timing.row(&options.bounds, scenario.duration, machine, failed));
    Ok(result)
}

/// A scenario, its network, and the seed of a run.
#[derive(Clone, Copy)]
struct Experiment<'e> {
    scenario: &'e Scenario,
    network: &'e Network,
    seed: u64,
}

impl Experiment<'_> {
    /// Runs sources, network and sinks, each on a separate thread, until the end of the scenario. If one fails, the others
    /// stop.
    fn run(
        self,
        hosts: &Hosts,
        cancel: &AtomicBool,
    ) -> Result<(Outcome, TimingMeasures, Vec<SenderReport>), LabError> {
        let settings = self.scenario.settings(self.seed);
        let since_zero = |at: Instant| at.saturating_since(Instant::ZERO);
        let window =
            Window { from: since_zero(settings.window.from), until: since_zero(settings.window.until) };
        let plans = plans(self.scenario, self.network, self.seed);
        let generator = Generator::new(plans, Streams::new(self.seed))?.with_window(window);
        let any_address = SocketAddr::from(([0, 0, 0, 0], SINK_PORT));
        let params = MeterParams { flows: self.network.flows().len() as u32, ..MeterParams::default() };
        let meter = hosts.sinks.within(|| Meter::bind(any_address, params))??;
        // The kernel needs some time to allocate the rings, so the links are created before the beginning is set.
        let links = hosts.network.within(|| Links::new(self.network, &settings, INTERFACES))??;
        let (zero, end) = (now() + LEAD, settings.duration);
        let stop = AtomicBool::new(false);
        let ended = || cancel.load(Ordering::Relaxed) || stop.load(Ordering::Relaxed);
        std::thread::scope(|scope| {
            let sinks = scope.spawn(|| or_stop(&stop, hosts.sinks.within(|| meter.run(zero, end, &stop))));
            let sources =
                scope.spawn(|| or_stop(&stop, hosts.sources.within(|| generator.run(zero, end, &stop))));
            // On a separate thread, because real-time scheduling is set for the whole thread.
            let result = joined(scope.spawn(|| links.run(zero, &ended)));
            if ended() || result.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
            let (sent, received) = (joined(sources), joined(sinks));
            let (outcome, timing) = result?;
            received?;
            Ok((outcome, timing, sent?))
        })
    }
}

/// Returns the result of a host's thread. If it is an error, stops the other threads.
fn or_stop<T>(stop: &AtomicBool, ended: Result<Result<T, TrafficError>, SysError>) -> Result<T, LabError> {
    let ended = ended.map_err(LabError::from).and_then(|ended| ended.map_err(LabError::from));
    if ended.is_err() {
        stop.store(true, Ordering::Relaxed);
    }
    ended
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    // A panic of a thread is a bug. It continues here with its message.
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Sets the counts that only the sender has.
fn set_sender_counts(flow: &mut FlowOutcome, report: SenderReport) {
    flow.transport = TransportCounts {
        retransmissions: report.retransmissions,
        timeouts: report.timeouts.unwrap_or(0),
        refused_bytes: report.refused_bytes,
    };
    if flow.responses.is_some() {
        flow.responses = Some(report.responses);
    }
}

/// Checks whether the laboratory supports a scenario, without running it.
///
/// # Errors
/// The first feature that only the simulator has.
pub fn check(scenario: &Scenario) -> Result<(), LabError> {
    if let Some(group) = scenario.flows.iter().find(|group| group.adaptive.is_some()) {
        return Err(LabError::OnlySimulated {
            flow: group.name.clone(),
            what: "a hint that adapts",
            instead: "set it to a level",
        });
    }
    let count = scenario.flow_count();
    if count > MAX_FLOWS as u64 {
        return Err(LabError::TooMany { count, max: MAX_FLOWS });
    }
    if scenario.hint_bits.levels() > HintBits::PAPER.levels() {
        return Err(LabError::WideHints { bits: scenario.hint_bits.get() });
    }
    let network = scenario.network()?;
    hosts::check(network.flows())?;
    congestion::check(&scenario.flows)?;
    for plan in plans(scenario, &network, scenario.seed) {
        plan.validate().map_err(TrafficError::from)?;
    }
    Ok(())
}
