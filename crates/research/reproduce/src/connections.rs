//! Runs a scenario whose datagram flows are applications over QoS sockets instead of plain ones: in the simulator, where the ends of
//! a connection are agents, or in the laboratory, where they are sockets. Both take the same descriptions of the connections.
//!
//! A flow over UDP with a constant bit rate becomes a QoS connection between the same hosts: messages of the same size, at a highest
//! rate that is the flow's. Its class is that of its specification and policies: audio has one rate, and its hint adapts; video may send
//! fewer messages, and its rate adapts; without a class any lower rate is accepted, and nothing adapts. The connection's measures take the place of the flow's in the rows.

use cutline_lab::Stack;
use cutline_quality::spec::{Builder, ConnectionSpecification, Measure as QosMeasure, Preset, Specification};
use cutline_quality::{Class, HintGoal, HintParams};
use cutline_results::{DistributionRow, RunResult};
use cutline_scenario::Scenario;
use cutline_scenario::spec::{ClassSpec, FlowGroupSpec};
use cutline_signal::frame::DATAGRAM_HEADER;
use cutline_signal::operation::OperationParams;
use cutline_signal::rate_control::{RateControl, TfrcParams};
use cutline_signal::renegotiation::Alternatives;
use cutline_signal::session::{Direction, Policies, SessionEvent, SessionParams};
use cutline_sim::measure::{DelayRecord, FlowInterval, FlowRecord};
use cutline_sim::qos::{EndRecord, Passage, QosConnection, QosLog, QosRecord};
use cutline_sim::{FlowOutcome, FlowSpec, Network, Simulation, SimulationOutcome, SimulationSettings};
use cutline_transport::app::{CbrParams, Params};
use cutline_transport::endpoint::TransportParams;
use cutline_units::{Duration, HintBits, Instant, Streams};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// Simulated time between two checks of the cancel flag.
const STEP: Duration = Duration::from_millis(100);
/// Loss of quality per lost share of the messages, if it counts: by the E-model with G.711 and concealment
/// the first per cent costs 3.8 of 100 (ITU-T G.107 equation 7-29 with Bpl = 25.1).
const LOSS_WEIGHT: f64 = 4.0;
/// Headers of a message on the wire: the session's, and those of UDP and IPv4.
const HEADERS: u64 = DATAGRAM_HEADER as u64 + 8 + 20;

/// Parameters of the sessions of an experiment, which a scenario file cannot express.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SessionSettings {
    /// Criterion for hints that adapt.
    pub hint: HintCriterion,
    /// True if a video accepts a weaker specification where its own cannot be kept.
    pub alternatives: bool,
    /// True if the rate of messages is fair to TCP: that of TFRC, if it is below the agreed one.
    pub fair_to_tcp: bool,
}

impl SessionSettings {
    /// One specification, at its agreed rate, with hints by the quality.
    pub const DEFAULT: Self = Self { hint: HintCriterion::Quality, alternatives: false, fair_to_tcp: false };

    /// The default with another criterion for hints.
    pub const fn with_hint(hint: HintCriterion) -> Self {
        Self { hint, ..Self::DEFAULT }
    }
}

/// Criterion for a hint that adapts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintCriterion {
    /// The quality Q(d, T), in which loss counts as lost throughput alone.
    Quality,
    /// The quality less the loss, weighted as the E-model does.
    QualityAndLoss,
    /// The quality, over intervals short enough for runs in real time. They suit a constant bit rate, whose loss and delay
    /// follow the hint at once.
    QualitySoon,
    /// The quality, as long as the loss is within the limit of the specification: a session's default.
    WithinLimit,
}

/// Simulates a scenario with a seed.
///
/// # Errors
/// When the scenario cannot be simulated, a flow over UDP cannot be a QoS connection, or the run was cancelled.
pub(crate) fn simulate(
    scenario: &Scenario,
    sessions: SessionSettings,
    seed: u64,
    cancel: &AtomicBool,
) -> Result<RunResult, String> {
    let mut network = silent_network(scenario, seed)?;
    let settings = scenario.settings(seed);
    let connections = connections(scenario, sessions, &network, Streams::new(seed))?;
    let connect = |(flow, connection): (usize, QosConnection)| {
        Ok((flow, connection.connect(&mut network).map_err(|error| error.to_string())?))
    };
    let logs: Vec<(usize, QosLog)> = connections.into_iter().map(connect).collect::<Result<_, String>>()?;
    let simulation = simulated(&network, &settings, cancel)?;
    let records = logs.iter().map(|(flow, log)| (*flow, log.take())).collect();
    Ok(rows(scenario, &network, simulation.finish(), &records, &settings))
}

/// Returns the network of a scenario whose flows over UDP keep their hosts and their rows, and send nothing.
///
/// # Errors
/// When the scenario cannot be simulated.
pub(crate) fn silent_network(scenario: &Scenario, seed: u64) -> Result<Network, String> {
    let mut silent = scenario.clone();
    silent
        .flows
        .iter_mut()
        .filter(|group| is_connection(group))
        .for_each(|group| group.stop = Some(Duration::ZERO));
    silent.network_of(seed).map_err(|error| error.to_string())
}

/// Simulates a network until the end of the run.
///
/// # Errors
/// When the network cannot be simulated, or the run was cancelled.
pub(crate) fn simulated(
    network: &Network,
    settings: &SimulationSettings,
    cancel: &AtomicBool,
) -> Result<Simulation, String> {
    let mut simulation = Simulation::new(network, settings).map_err(|error| error.to_string())?;
    let (mut now, end) = (Instant::ZERO, Instant::ZERO + settings.duration);
    while now < end {
        if cancel.load(Ordering::Relaxed) {
            return Err("interrupted".to_owned());
        }
        now = (now + STEP).min(end);
        simulation.advance(now);
    }
    Ok(simulation)
}

/// Measures a scenario in the laboratory with a seed.
///
/// # Errors
/// When the laboratory does not support the scenario, a flow over UDP cannot be a QoS connection, or the run was interrupted.
pub(crate) fn measure(
    scenario: &Scenario,
    sessions: SessionSettings,
    stack: Stack,
    seed: u64,
    cancel: &AtomicBool,
) -> Result<RunResult, String> {
    let network = scenario.network_of(seed).map_err(|error| error.to_string())?;
    let connections = connections(scenario, sessions, &network, Streams::new(seed))?;
    let options = cutline_lab::LabOptions { stack, ..cutline_lab::LabOptions::default() };
    let measured = cutline_lab::measure(scenario, &connections, seed, &options, cancel);
    let cutline_lab::RunMeasurements { network, outcome, timing, connections, .. } =
        measured.map_err(|error| error.to_string())?;
    let records = connections.into_iter().map(|(flow, measured)| (flow, measured.record)).collect();
    let mut rows = rows(scenario, &network, outcome, &records, &scenario.settings(seed));
    rows.timing.push(timing);
    Ok(rows)
}

/// Rows of a run, with the records of connections in the places of their flows.
pub(crate) fn rows(
    scenario: &Scenario,
    network: &Network,
    mut outcome: SimulationOutcome,
    records: &BTreeMap<usize, QosRecord>,
    settings: &SimulationSettings,
) -> RunResult {
    for (flow, record) in records {
        replace(&mut outcome.flows[*flow], record, settings);
    }
    let mut rows = scenario.rows(network, &outcome);
    let name = |flow: &usize| network.flows()[*flow].name.as_str();
    forget_queuing(&mut rows, &records.keys().map(name).collect::<Vec<_>>());
    for (flow, record) in records {
        rows.distributions.extend(reported(name(flow), record));
    }
    rows
}

fn is_connection(group: &FlowGroupSpec) -> bool {
    matches!(group.transport.params, TransportParams::Udp(_))
}

/// The connections of a scenario, by the indices of their flows: one for each flow over UDP.
pub(crate) fn connections(
    scenario: &Scenario,
    sessions: SessionSettings,
    network: &Network,
    streams: Streams,
) -> Result<BTreeMap<usize, QosConnection>, String> {
    let group = |flow: &FlowSpec| &scenario.flows[flow.group.0 as usize];
    let flows = network.flows().iter().enumerate().filter(|(_, flow)| is_connection(group(flow)));
    flows
        .map(|(index, flow)| Ok((index, connection((group(flow), flow), sessions, network, streams)?)))
        .collect()
}

fn connection(
    (group, flow): (&FlowGroupSpec, &FlowSpec),
    sessions: SessionSettings,
    network: &Network,
    streams: Streams,
) -> Result<QosConnection, String> {
    let refuse = |what: &str| Err(format!("flow `{}`: a QoS connection needs {what}", flow.name));
    let Params::Cbr(CbrParams { rate, size, .. }) = group.app else {
        return refuse("a constant bit rate");
    };
    let best = rate.as_bps() as f64 / (8.0 * size.get() as f64);
    let builder = match group.class {
        ClassSpec::Audio => from_preset(Preset::Audio, best),
        ClassSpec::Video => from_preset(Preset::Video, best),
        ClassSpec::None => Specification::builder().rates(1.0, best, best).coerce_all(),
        _ => return refuse("the class audio or video, or none"),
    };
    let send = builder.size(size).build().map_err(|error| error.to_string())?;
    let policies = policies(&group.class, sessions, &send)?;
    let ends = (network.link(flow.route[0]).from, network.link(flow.return_route[0]).from);
    let tfrc = || RateControl::Tfrc(TfrcParams::default());
    let rate_control = if sessions.fair_to_tcp { tfrc() } else { RateControl::Agreed };
    Ok(QosConnection {
        params: SessionParams { policies, rate_control, ..SessionParams::default() },
        hint: flow.hint,
        start: flow.start_with(streams),
        stop: group.stop.map_or(Instant::FAR_FUTURE, |stop| Instant::ZERO + stop),
        ..QosConnection::new(&flow.name, ends, send)
    })
}

/// The specification of a preset with another best rate, in messages/s.
fn from_preset(preset: Preset, best: f64) -> Builder {
    let needs = preset.specification();
    let [least, usual, peak] =
        [needs.min_rate, needs.max_rate, needs.peak_rate].map(Option::unwrap_or_default);
    // Audio has one rate. The peak is in the same proportion as the preset's.
    let least = if least < usual { least.min(best) } else { best };
    needs.change().rates(least, best, best * peak / usual)
}

/// The policies of an application by its class: the hint of audio adapts, and the rate of video.
fn policies(class: &ClassSpec, sessions: SessionSettings, send: &Specification) -> Result<Policies, String> {
    Ok(match class {
        ClassSpec::Audio => {
            Policies { adapt_hint: Some((Class::Audio, hint_params(sessions.hint))), ..Policies::default() }
        }
        ClassSpec::Video => Policies {
            adapt_rate: Some(OperationParams::default()),
            renegotiate: sessions.alternatives.then(|| weaker(send)).transpose()?,
            ..Policies::default()
        },
        _ => Policies::default(),
    })
}

/// The alternative to a specification: at most its lowest rate, at least a quarter of it.
fn weaker(than: &Specification) -> Result<Alternatives, String> {
    let most = than.min_rate.unwrap_or_default();
    let send = than.clone().change().rates(most / 4.0, most, most).build();
    let send = send.map_err(|error| error.to_string())?;
    let specifications = vec![ConnectionSpecification { send, ..ConnectionSpecification::default() }];
    Ok(Alternatives { specifications, ..Alternatives::default() })
}

/// The parameters of the controller of a hint.
fn hint_params(criterion: HintCriterion) -> HintParams {
    let hint = HintParams { goal: HintGoal::Quality, ..HintParams::new(HintBits::PAPER) };
    match criterion {
        HintCriterion::Quality => hint,
        HintCriterion::QualityAndLoss => HintParams { loss_weight: LOSS_WEIGHT, ..hint },
        HintCriterion::QualitySoon => {
            HintParams { settle: Duration::from_secs(1), measure: Duration::from_secs(3), ..hint }
        }
        HintCriterion::WithinLimit => HintParams { goal: HintGoal::WithinLimit, ..hint },
    }
}

/// Puts a connection's record in the place of a flow's outcome.
fn replace(outcome: &mut FlowOutcome, record: &QosRecord, settings: &SimulationSettings) {
    let last_hint = record.source.events.iter().rev().find_map(|(_, event)| match event {
        SessionEvent::Hint(hint) => Some(*hint),
        _ => None,
    });
    outcome.hint = last_hint.unwrap_or(outcome.hint);
    let mut counts = FlowRecord::default();
    let mut delays = DelayRecord::default();
    let count = (settings.duration.as_nanos()).div_ceil(settings.interval.as_nanos());
    let mut series = vec![FlowInterval::default(); count as usize];
    let interval = |at: Instant| (at.as_nanos() / settings.interval.as_nanos()) as usize;
    let mut last_delay = None;
    let mut under_way: Vec<Instant> = Vec::new();
    for message in &record.messages {
        counts.totals.sent += 1;
        let is_measured = settings.window.contains(message.sent);
        counts.sent_packets += u64::from(is_measured);
        let size = u64::from(message.bytes) + HEADERS;
        counts.sent_bytes += u64::from(is_measured) * size;
        if let Some(open) = series.get_mut(interval(message.sent)) {
            open.sent_packets += 1;
            open.sent_bytes += size;
        }
        let (Some(arrived), Some(delay)) = (message.arrived, message.delay()) else {
            under_way.push(message.sent);
            continue;
        };
        // Messages sent before this one that have not arrived are lost.
        for lost in under_way.drain(..) {
            counts.totals.dropped += 1;
            counts.dropped_packets += u64::from(settings.window.contains(lost));
            series.get_mut(interval(lost)).into_iter().for_each(|open| open.dropped += 1);
        }
        counts.totals.received += 1;
        let change = last_delay.replace(delay).map(|last: Duration| last.abs_diff(delay));
        if settings.window.contains(arrived) {
            counts.received_packets += 1;
            counts.delivered_bytes += u64::from(message.bytes);
            counts.one_way_sum += delay;
            delays.one_way.record(delay);
            if let Some(change) = change {
                delays.ipdv.record(change);
            }
        }
        if let Some(open) = series.get_mut(interval(arrived)) {
            open.packets += 1;
            open.delivered_bytes += u64::from(message.bytes);
            open.one_way_ns += delay.as_nanos();
            open.ipdv_ns += change.map_or(0, Duration::as_nanos);
        }
    }
    set_hints(&mut series, outcome, record, settings);
    (outcome.record, outcome.delays) = (counts, outcome.delays.is_some().then(|| Box::new(delays)));
    outcome.series = outcome.series.is_some().then_some(series);
}

/// Sets the hint at the end of each interval.
fn set_hints(
    series: &mut [FlowInterval],
    outcome: &FlowOutcome,
    record: &QosRecord,
    settings: &SimulationSettings,
) {
    let first = record.source.mibs.first().and_then(|mib| mib.hint).unwrap_or(outcome.hint);
    let mut hints = record.source.events.iter().filter_map(|(at, event)| match event {
        SessionEvent::Hint(hint) => Some((*at, *hint)),
        _ => None,
    });
    let (mut hint, mut next) = (first, hints.next());
    for (number, open) in (1..).zip(series) {
        let end = Instant::ZERO + settings.interval * number;
        while let Some((_, changed)) = next.filter(|(at, _)| *at < end) {
            (hint, next) = (changed, hints.next());
        }
        open.hint = Some(hint);
    }
}

/// Returns the time from the arrival of the first message that is later than agreed on, beyond the error of
/// the clocks, until each end learns of the violation.
fn reported(flow: &str, record: &QosRecord) -> Vec<DistributionRow> {
    let limit = record.sink.events.iter().find_map(|(_, event)| match event {
        SessionEvent::Agreed(agreed) => agreed.receive.effective.max_delay,
        _ => None,
    });
    let clock = record.sink.mibs.last().and_then(|mib| mib.clock);
    let (Some(limit), Some(clock)) = (limit, clock) else { return Vec::new() };
    let is_late = |message: &&Passage| message.delay().is_some_and(|delay| delay > limit + clock.error);
    let Some(late) = record.messages.iter().find(is_late).and_then(|message| message.arrived) else {
        return Vec::new();
    };
    let reported = |quantity: &str, end: &EndRecord, of: Direction| {
        let is_it = |event: &SessionEvent| matches!(event, SessionEvent::Violated(direction, violation) if *direction == of && violation.measure == QosMeasure::Delay);
        let (at, _) = end.events.iter().find(|(at, event)| *at >= late && is_it(event))?;
        let after = at.saturating_since(late).as_millis_f64();
        Some(DistributionRow::single(flow, quantity, after))
    };
    let ends = [
        reported("receiver_told_ms", &record.sink, Direction::Receive),
        reported("sender_told_ms", &record.source, Direction::Send),
    ];
    ends.into_iter().flatten().collect()
}

/// The waiting times of connections' packets are not measured.
fn forget_queuing(rows: &mut RunResult, connections: &[&str]) {
    for row in rows.flows.iter_mut().filter(|row| connections.contains(&&*row.flow)) {
        row.queuing_mean_ms = None;
    }
    for row in rows.series.iter_mut().filter(|row| connections.contains(&&*row.flow)) {
        row.queuing_mean_ms = None;
    }
}
