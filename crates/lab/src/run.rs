//! One run of a scenario.

use crate::LabError;
use crate::hosts::{self, Hosts, INTERFACES, MOST_FLOWS};
use crate::links::Links;
use crate::reader::SINK_PORT;
use crate::timing::{Bounds, Busy, Clocked};
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

/// How to run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Which of Linux's TCP.
    pub stack: Stack,
    /// What timing is good enough.
    pub bounds: Bounds,
}

/// From setting up to the scenario's beginning: the hosts' threads have started by then.
const LEAD: Duration = Duration::from_millis(100);

/// Runs a scenario once, in real time. `cancel`, set from elsewhere, ends it early.
///
/// # Errors
/// When the scenario is not for the laboratory, the process may not, or it was interrupted.
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
    let (mut outcome, mut clocked, sent) =
        Experiment { scenario, network: &network, seed }.run(&hosts, cancel)?;
    if cancel.load(Ordering::Relaxed) {
        return Err(LabError::Interrupted);
    }
    let failed = sent.iter().filter(|report| report.error.is_some()).count() as u64;
    for (flow, report) in outcome.flows.iter_mut().zip(sent) {
        clocked.sources.merge(&report.lateness);
        take_over(flow, report);
    }
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let machine = before.and_then(|before| Busy::now()?.since(before, cores));
    let mut result = scenario.rows(&network, &outcome);
    result.timing.push(clocked.row(&options.bounds, scenario.duration, machine, failed));
    Ok(result)
}

/// What a run is of.
#[derive(Clone, Copy)]
struct Experiment<'e> {
    scenario: &'e Scenario,
    network: &'e Network,
    seed: u64,
}

impl Experiment<'_> {
    /// Lets sources, network and sinks work, each on a thread of its own, until the scenario's end. Whatever fails first
    /// stops the others.
    fn run(
        self,
        hosts: &Hosts,
        cancel: &AtomicBool,
    ) -> Result<(Outcome, Clocked, Vec<SenderReport>), LabError> {
        let settings = self.scenario.settings(self.seed);
        let since_zero = |at: Instant| at.saturating_since(Instant::ZERO);
        let window =
            Window { from: since_zero(settings.window.from), until: since_zero(settings.window.until) };
        let plans = plans(self.scenario, self.network, self.seed);
        let generator = Generator::new(plans, Streams::new(self.seed))?.with_window(window);
        let everywhere = SocketAddr::from(([0, 0, 0, 0], SINK_PORT));
        let params = MeterParams { flows: self.network.flows().len() as u32, ..MeterParams::default() };
        let meter = hosts.sinks.within(|| Meter::bind(everywhere, params))??;
        // Their rings take the kernel some time.
        let links = hosts.network.within(|| Links::new(self.network, &settings, INTERFACES))??;
        let (zero, end) = (now() + LEAD, settings.duration);
        let stop = AtomicBool::new(false);
        let ended = || cancel.load(Ordering::Relaxed) || stop.load(Ordering::Relaxed);
        std::thread::scope(|scope| {
            let sinks = scope.spawn(|| or_stop(&stop, hosts.sinks.within(|| meter.run(zero, end, &stop))));
            let sources =
                scope.spawn(|| or_stop(&stop, hosts.sources.within(|| generator.run(zero, end, &stop))));
            // On a thread of its own, since it sets real-time scheduling until it ends.
            let found = joined(scope.spawn(|| links.run(zero, &ended)));
            if ended() || found.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
            let (sent, received) = (joined(sources), joined(sinks));
            let (outcome, clocked) = found?;
            received?;
            Ok((outcome, clocked, sent?))
        })
    }
}

/// What a host's thread has come to; if that is an error, the others need not go on.
fn or_stop<T>(stop: &AtomicBool, ended: Result<Result<T, TrafficError>, SysError>) -> Result<T, LabError> {
    let ended = ended.map_err(LabError::from).and_then(|ended| ended.map_err(LabError::from));
    if ended.is_err() {
        stop.store(true, Ordering::Relaxed);
    }
    ended
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    // A panic of a thread is a bug: it goes on here, with its message.
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// What only the sender knows.
fn take_over(flow: &mut FlowOutcome, report: SenderReport) {
    flow.transport = TransportCounts {
        retransmissions: report.retransmissions,
        timeouts: report.timeouts.unwrap_or(0),
        refused_bytes: report.refused_bytes,
    };
    if flow.responses.is_some() {
        flow.responses = Some(report.responses);
    }
}

/// Whether a scenario can be run here, as far as that can be told without running it.
///
/// # Errors
/// The first thing that only a simulation has.
pub fn check(scenario: &Scenario) -> Result<(), LabError> {
    if let Some(group) = scenario.flows.iter().find(|group| group.adaptive.is_some()) {
        return Err(LabError::OnlySimulated {
            flow: group.name.clone(),
            what: "a hint that adapts",
            instead: "give it a level",
        });
    }
    let count = scenario.flow_count();
    if count > MOST_FLOWS as u64 {
        return Err(LabError::TooMany { count, most: MOST_FLOWS });
    }
    if scenario.hint_bits.levels() > HintBits::PAPER.levels() {
        return Err(LabError::WideHints { bits: scenario.hint_bits.get() });
    }
    let network = scenario.network()?;
    hosts::check(network.flows())?;
    for plan in plans(scenario, &network, scenario.seed) {
        plan.validate().map_err(TrafficError::from)?;
    }
    Ok(())
}
