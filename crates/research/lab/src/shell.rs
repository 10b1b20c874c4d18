//! A program of the user's in the emulated network: a shell, or any command, on the host where the scenario's first flow begins or
//! ends. Whatever IPv4 packets it and programs at the other end exchange cross the links and queues of the scenario, beside the scenario's
//! flows, in their real sizes.

use crate::hosts::{self, Hosts, INTERFACES};
use crate::links::Links;
use crate::reader::SINK_PORT;
use crate::run::{LEAD, check, or_stop};
use crate::timing::{Bounds, Busy};
use crate::traffic::plans;
use crate::tuning::Stack;
use crate::{Connections, LabError, NetworkSide};
use cutline_results::TimingRow;
use cutline_scenario::Scenario;
use cutline_sim::{FlowOutcome, FlowSpec, Network};
use cutline_sys::namespace::sweep;
use cutline_sys::signal::Forwarding;
use cutline_sys::thread::{SetOnPanic, joined};
use cutline_sys::{SysError, now};
use cutline_traffic::{Generator, Meter, MeterParams};
use cutline_transport::app::{CbrParams, Params};
use cutline_transport::endpoint::TransportParams;
use cutline_units::{Bytes, Duration, Rate, Streams};
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Options of a program that runs in the network.
#[derive(Clone, Copy, Debug)]
pub struct Shell {
    /// Side at which the program runs.
    pub side: NetworkSide,
    /// True if the scenario's flows send nothing.
    pub alone: bool,
    /// After this time it is killed.
    pub limit: Duration,
    /// The variant of Linux's TCP.
    pub stack: Stack,
}

/// Host at which a program runs.
#[derive(Clone, Debug)]
pub struct ProgramHost {
    /// The address of its host.
    pub address: Ipv4Addr,
    /// The address of the host at the other end.
    pub other: Ipv4Addr,
    /// The namespace of that host, for `ip netns exec`.
    pub other_namespace: String,
}

/// End of a program.
#[derive(Debug)]
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// True if the program was killed, because its time was over.
    pub is_killed: bool,
    /// Traffic of its packets in the network.
    pub traffic: Traffic,
    /// The timing of the network.
    pub timing: TimingRow,
}

/// Measurements of a program's packets on their way to the sinks, as those of any flow of the scenario.
#[derive(Clone, Copy, Debug)]
pub struct Traffic {
    /// Packets that arrived.
    pub received: u64,
    /// Packets dropped by queues or lost on links.
    pub dropped: u64,
    /// The bytes of the packets that arrived, with all headers.
    pub bytes: u64,
    /// The time that the mean rate is over: from the start of the network to the end of the program.
    pub time: Duration,
    /// The mean time that packets waited in queues; `None` if none arrived.
    pub queuing: Option<Duration>,
    /// The 99th percentile of it; `None` if the scenario keeps the delays of a group alone.
    pub queuing_p99: Option<Duration>,
}

impl Traffic {
    fn of(outcome: &FlowOutcome, time: Duration) -> Self {
        let record = &outcome.record;
        let queuing = record.queuing_sum.as_nanos().checked_div(record.received_packets);
        Self {
            received: record.received_packets,
            dropped: record.dropped_packets,
            bytes: record.delivered_bytes,
            time,
            queuing: queuing.map(Duration::from_nanos),
            queuing_p99: outcome.delays.as_ref().and_then(|delays| delays.queuing.quantile(0.99)),
        }
    }

    /// The mean rate of the packets that arrived, with all headers.
    pub fn rate(&self) -> Rate {
        let seconds = self.time.as_secs_f64();
        Rate::from_bps(if seconds > 0.0 { (self.bytes as f64 * 8.0 / seconds) as u64 } else { 0 })
    }
}

/// Interval of checks of the program.
const LOOK: std::time::Duration = std::time::Duration::from_millis(20);

/// Runs the program that `command` returns in the network of a scenario, until it ends. Signals to this process are passed on to it.
///
/// # Errors
/// When the laboratory does not support the scenario, the process lacks a privilege, or the program cannot be started.
pub fn shell(
    scenario: &Scenario,
    options: &Shell,
    command: impl FnOnce(&ProgramHost) -> Command,
) -> Result<Ended, LabError> {
    check(scenario)?;
    sweep()?;
    // Flows continue until the program ends, and all that it sends is measured.
    let scenario = Scenario {
        duration: options.limit,
        warm_up: Duration::ZERO,
        measure_until: options.limit,
        ..scenario.clone()
    };
    let mut network = scenario.network()?;
    let connections = Connections::new();
    let plans = (!options.alone).then(|| plans(&scenario, &network, &connections, scenario.seed));
    let program_flow = add_program_flow(&mut network)?;
    network.use_external_endpoints();
    let hosts = Hosts::create(network.flows(), &connections, options.stack)?;
    let addresses = [NetworkSide::Sources, NetworkSide::Sinks].map(|side| hosts::address(side, program_flow));
    let settings = scenario.settings(scenario.seed);
    let generator = plans.map(|plans| Generator::new(plans, Streams::new(scenario.seed))).transpose()?;
    let params = MeterParams { flows: program_flow as u32, ..MeterParams::default() };
    let bind = || Meter::bind(SocketAddr::from(([0, 0, 0, 0], SINK_PORT)), params);
    let meter = generator.is_some().then(|| hosts.sinks.within(bind)).transpose()?.transpose()?;
    let links = hosts.network.within(|| Links::new(&network, &settings, INTERFACES, Vec::new()))??;
    let links = links.with_host_pair(program_flow, addresses, None);
    let host = ProgramHost {
        address: addresses[options.side as usize],
        other: addresses[options.side.other() as usize],
        other_namespace: hosts.host(options.side.other()).name().to_owned(),
    };
    let mut command = command(&host);
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |what: &str| format!("{program}: {what}");
    let before = Busy::now();
    let signals = Forwarding::prepare().map_err(|error| SysError::new("signals cannot be caught", error))?;
    let mut child = signals.start(&mut command, |command| {
        let spawned = hosts.host(options.side).within(|| command.spawn())?;
        spawned.map_err(|error| SysError::new(failed("cannot be started"), error))
    })?;
    let (start, zero) = (now(), now() + LEAD);
    let (stop, end) = (AtomicBool::new(false), settings.duration);
    let is_stopped = || stop.load(Ordering::Relaxed);
    let (waited, crossed) = std::thread::scope(|scope| {
        let _stop = SetOnPanic(&stop);
        let sinks = meter
            .map(|meter| scope.spawn(|| or_stop(&stop, hosts.sinks.within(|| meter.run(zero, end, &stop)))));
        let sources = generator.map(|generator| {
            scope.spawn(|| or_stop(&stop, hosts.sources.within(|| generator.run(zero, end, &stop))))
        });
        let crossing = scope.spawn(|| {
            let _stop = SetOnPanic(&stop);
            let crossed = links.run(zero, &is_stopped);
            // Without a network there is nothing to wait for.
            stop.store(true, Ordering::Relaxed);
            crossed
        });
        let waited = loop {
            match child.try_wait() {
                Ok(None) if is_stopped() => {
                    break child.kill().and_then(|()| child.wait()).map(|status| (status, true));
                }
                Ok(None) => std::thread::park_timeout(LOOK),
                Ok(Some(status)) => break Ok((status, false)),
                Err(error) => break Err(error),
            }
        };
        signals.stop();
        stop.store(true, Ordering::Relaxed);
        let ended =
            [sources.map(|thread| joined(thread).map(drop)), sinks.map(|thread| joined(thread).map(drop))];
        let failed = ended.into_iter().flatten().find_map(Result::err);
        (waited, failed.map_or_else(|| joined(crossing), Err))
    });
    let (status, is_killed) = waited.map_err(|error| SysError::new(failed("cannot be waited for"), error))?;
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let machine = before.and_then(|before| Busy::now()?.since(before, cores));
    let crossed = crossed?;
    hosts.check()?;
    let timing = crossed.timing.row(&Bounds::default(), now().saturating_since(start), machine, 0);
    let traffic = Traffic::of(&crossed.outcome.flows[program_flow], now().saturating_since(zero));
    Ok(Ended { status, is_killed, traffic, timing })
}

/// Adds the flow of the program, beside the scenario's first one. Returns its index.
fn add_program_flow(network: &mut Network) -> Result<usize, LabError> {
    const NAME: &str = "shell";
    let index = network.flows().len();
    let Some(first) = network.flows().first() else {
        return Err(LabError::OnlySimulated {
            flow: NAME.to_owned(),
            what: "a network without a flow",
            instead: "give it one: the program runs at its ends",
        });
    };
    // Its transport sets no attributes of routes: the program's sockets are as it makes them. Its application never runs.
    let flow = FlowSpec {
        name: NAME.to_owned(),
        transport: TransportParams::Udp(Arc::default()),
        app: Params::Cbr(CbrParams::new(Rate::from_kbps(128), Bytes::new(160))),
        adaptive: None,
        ..first.clone()
    };
    network.add_flow(flow)?;
    Ok(index)
}
