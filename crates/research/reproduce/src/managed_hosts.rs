//! Hosts with resource managers in the simulator (QUANTA section 5): the managers of a path lower flows gracefully before these leave their
//! regions of operation.
//!
//! A flow over UDP with a specification becomes a QoS connection that has a share of its source's host. Every host with such flows has a
//! manager, and all managers belong to one path: they exchange summaries through the network of the scenario. Flows are time-shared, each of a
//! user of its own, with the priorities 0, 4, 8 and 12 in turns.

use crate::connections::{rows, silent_network, simulated};
use cutline_manager::feedback::{FeedbackParams, HostId};
use cutline_manager::resources::{SchedulingClass, UserId};
use cutline_quality::spec::Specification;
use cutline_results::{DistributionRow, RunResult};
use cutline_scenario::Scenario;
use cutline_signal::negotiation::NegotiationParams;
use cutline_signal::session::SessionParams;
use cutline_sim::managed::{HostManager, ManagedShare, SimulatedHost};
use cutline_sim::qos::{QosConnection, QosRecord};
use cutline_sim::{Address, Network, NodeId, SimulationSettings};
use cutline_transport::endpoint::TransportParams;
use cutline_units::{Duration, Instant, Streams};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

/// Names of values in the table of distributions, which are the path's: each of its flows has them.
const IN_REGION: &str = "flows_in_region_percent";
const LOWERED: &str = "lowered_per_hour";

/// Port of the managers, and that of the first connection.
const MANAGER_PORT: u32 = 9;
const FIRST_PORT: u32 = 100;
/// Priorities of the flows of a host, in turns.
const PRIORITIES: [u8; 4] = [0, 4, 8, 12];
/// Intervals in which a flow is inside its region or not.
const HALF_SECOND: Duration = Duration::from_millis(500);
/// The end of a run, whose messages may be under way when it is over.
const TAIL: Duration = Duration::from_secs(2);

/// Simulates a scenario with a seed.
///
/// # Errors
/// When the scenario cannot be simulated, a flow over UDP has no specification, or the run was cancelled.
pub(crate) fn simulate(
    scenario: &Scenario,
    feedback: &FeedbackParams,
    seed: u64,
    cancel: &AtomicBool,
) -> Result<RunResult, String> {
    let mut network = silent_network(scenario, seed)?;
    let settings = scenario.settings(seed);
    let connections = connections(scenario, &network, Streams::new(seed))?;
    let hosts = add_hosts(&mut network, &connections, feedback)?;
    let mut flows_of: BTreeMap<NodeId, usize> = BTreeMap::new();
    let (mut specifications, mut logs) = (Vec::new(), Vec::new());
    for (number, (flow, connection)) in connections.into_iter().enumerate() {
        let before = flows_of.entry(connection.source).or_default();
        let share = ManagedShare {
            host: hosts[&connection.source].clone(),
            user: UserId(*before as u32),
            class: SchedulingClass::TimeShared,
            priority: PRIORITIES[*before % PRIORITIES.len()],
            weight: 1,
        };
        *before += 1;
        specifications.push(connection.send.clone());
        let connection =
            QosConnection { port: FIRST_PORT + number as u32, managed: Some(share), ..connection };
        logs.push((flow, connection.connect(&mut network).map_err(|error| error.to_string())?));
    }
    let simulation = simulated(&network, &settings, cancel)?;
    let records: BTreeMap<usize, QosRecord> = logs.iter().map(|(flow, log)| (*flow, log.take())).collect();
    let lowered: u64 = hosts.values().map(|host| host.stats().lowered).sum();
    let mut rows = rows(scenario, &network, simulation.finish(), &records, &settings);
    let inside = share_inside(specifications.iter().zip(records.values()), &settings);
    let hours = settings.duration.as_secs_f64() / 3600.0;
    for flow in records.keys() {
        let name = &network.flows()[*flow].name;
        rows.distributions
            .extend(inside.map(|inside| DistributionRow::single(name, IN_REGION, 100.0 * inside)));
        rows.distributions.push(DistributionRow::single(name, LOWERED, lowered as f64 / hours));
    }
    Ok(rows)
}

/// Returns the connections of a scenario, by the indices of their flows: one for each flow over UDP.
///
/// # Errors
/// The first flow over UDP without a specification of its rate and size.
pub(crate) fn connections(
    scenario: &Scenario,
    network: &Network,
    streams: Streams,
) -> Result<BTreeMap<usize, QosConnection>, String> {
    // Packets back to the hosts may be lost, and with them answers of negotiations.
    let patient =
        NegotiationParams { first_timeout: Duration::from_millis(1500), give_up: Duration::from_secs(40) };
    let mut all = BTreeMap::new();
    for (index, flow) in network.flows().iter().enumerate() {
        let group = &scenario.flows[flow.group.0 as usize];
        if !matches!(group.transport.params, TransportParams::Udp(_)) {
            continue;
        }
        let send = group.qos.as_ref().map(|qos| qos.specification.send.clone());
        let send = send.filter(|send| send.max_rate.is_some());
        let send = send.ok_or_else(|| {
            format!("flow `{}`: a managed connection needs [flow.qos.send] with max-rate and size", flow.name)
        })?;
        let ends = (network.link(flow.route[0]).from, network.link(flow.return_route[0]).from);
        let connection = QosConnection {
            params: SessionParams { negotiation: patient.clone(), ..SessionParams::default() },
            sample: Duration::from_secs(3600),
            hint: flow.hint,
            start: flow.start_with(streams),
            stop: group.stop.map_or(Instant::FAR_FUTURE, |stop| Instant::ZERO + stop),
            ..QosConnection::new(&flow.name, ends, send)
        };
        all.insert(index, connection);
    }
    Ok(all)
}

/// Adds the managers of the connections' hosts to a network: they are those of one path.
fn add_hosts(
    network: &mut Network,
    connections: &BTreeMap<usize, QosConnection>,
    feedback: &FeedbackParams,
) -> Result<BTreeMap<NodeId, SimulatedHost>, String> {
    let nodes: BTreeSet<NodeId> = connections.values().map(|connection| connection.source).collect();
    let addresses: BTreeMap<HostId, Address> = (0..)
        .zip(&nodes)
        .map(|(number, node)| (HostId(number), Address { node: *node, port: MANAGER_PORT }))
        .collect();
    let mut hosts = BTreeMap::new();
    for (id, address) in &addresses {
        let mut peers = addresses.clone();
        peers.remove(id);
        let name = format!("manager.{}", network.node_name(address.node));
        let manager =
            HostManager { peers, feedback: feedback.clone(), ..HostManager::new(name, *address, *id) };
        let host = manager.add_to(network).map_err(|error| error.to_string())?;
        hosts.insert(address.node, host);
    }
    Ok(hosts)
}

/// Returns the share of the half seconds of all flows, from the warm-up on, in which every message that was sent then arrived within the
/// longest delay of its flow's specification. A flow that sends nothing in a half second is not counted then. `None` without messages.
fn share_inside<'r>(
    flows: impl Iterator<Item = (&'r Specification, &'r QosRecord)>,
    settings: &SimulationSettings,
) -> Option<f64> {
    let (from, until) = (settings.window.from, Instant::ZERO + settings.duration.saturating_sub(TAIL));
    let (mut inside, mut all) = (0_usize, 0_usize);
    for (send, record) in flows {
        let longest = send.max_delay.unwrap_or(Duration::MAX);
        let mut halves: BTreeMap<u64, bool> = BTreeMap::new();
        for message in record.messages.iter().filter(|message| (from..until).contains(&message.sent)) {
            let is_well = message.arrived.is_some_and(|at| at.saturating_since(message.sent) <= longest);
            *halves.entry(message.sent.as_nanos() / HALF_SECOND.as_nanos()).or_insert(true) &= is_well;
        }
        all += halves.len();
        inside += halves.values().filter(|is_well| **is_well).count();
    }
    (all > 0).then(|| inside as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study;
    use cutline_sim::Window;
    use cutline_sim::qos::Passage;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn a_half_second_is_inside_if_all_of_its_messages_arrive_in_time() {
        let settings = SimulationSettings {
            seed: 1,
            duration: Duration::from_secs(5),
            window: Window { from: at(1000), until: at(5000) },
            interval: Duration::from_secs(1),
        };
        let send = Specification { max_delay: Some(Duration::from_millis(20)), ..Specification::default() };
        let message = |sent: u64, delay: Option<u64>| Passage {
            made: at(sent),
            sent: at(sent),
            arrived: delay.map(|delay| at(sent + delay)),
            bytes: 1000,
        };
        // Before the warm-up, two in time, one late, none, one lost, and in the last two seconds.
        let messages = vec![
            message(900, Some(90)),
            message(1100, Some(20)),
            message(1200, Some(1)),
            message(1600, Some(21)),
            message(2700, None),
            message(3100, None),
        ];
        let record = QosRecord { messages, ..QosRecord::default() };
        assert_eq!(share_inside([(&send, &record)].into_iter(), &settings), Some(1.0 / 3.0));
        assert_eq!(share_inside([(&send, &QosRecord::default())].into_iter(), &settings), None);
    }

    #[test]
    fn the_bottleneck_of_the_study_halves_from_five_quarters_of_the_demand() {
        let study = study("quanta").unwrap();
        let scenario = |id: &str| {
            let experiment = study.experiments.iter().find(|experiment| experiment.id == id).unwrap();
            experiment.scenario_file(false).unwrap().expand().unwrap().swap_remove(0).scenario
        };
        for (id, changes, last_at) in
            [("halving", 20, 50_000), ("halving-at-once", 1, 31_000), ("stable", 0, 0)]
        {
            let network = silent_network(&scenario(id), 1).unwrap();
            let flows = connections(&scenario(id), &network, Streams::new(1)).unwrap();
            // The messages of a managed connection have 49 B of headers.
            let demand: f64 = flows.values().map(|flow| flow.send.max_rate.unwrap() * 1049.0 * 8.0).sum();
            let line = network.links().iter().find(|link| network.node_name(link.to) == "sink").unwrap();
            assert_eq!((flows.len(), line.rate.as_bps()), (8, (1.25 * demand) as u64), "{id}");
            assert_eq!(line.rate_changes.len(), changes, "{id}");
            if let Some((when, rate)) = line.rate_changes.last() {
                assert_eq!((*when, rate.as_bps()), (at(last_at), (0.625 * demand) as u64), "{id}");
            }
        }
    }
}
