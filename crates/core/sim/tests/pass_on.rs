//! Routers in a row that subtract a packet's waiting time from its hint.

use crate::common::{Plan, audio, bulk};
use cutline_aqm::QueueSpec;
use cutline_sim::{
    FlowSpec, LinkId, LinkSpec, Network, Observation, QueueEvent, Simulation, SimulationSettings, Window, run,
};
use cutline_units::{Duration, Hint, HintBits, HintBudget, Instant, Rate};
use std::collections::BTreeMap;

const BUDGET: HintBudget = HintBudget { bits: HintBits::PAPER, step: HintBudget::STEP, largest: false };
const ROUTERS: usize = 2;

fn settings() -> SimulationSettings {
    let duration = Duration::from_secs(40);
    let window = Window { from: Instant::ZERO + Duration::from_secs(10), until: Instant::ZERO + duration };
    SimulationSettings { seed: 1, duration, window, interval: Duration::from_secs(1) }
}

/// Four audio conferences cross two congested links, each of which 12 transfers cross too; the links' ids are 0 and 1.
fn network(pass_on: Option<HintBudget>) -> Network {
    let template = Plan::scaled(12).network();
    let bottleneck = template.link(LinkId(0)).clone();
    let mut network = Network::new();
    let nodes: Vec<_> = (0..=ROUTERS).map(|router| network.add_node(format!("r{router}"))).collect();
    let middle: Vec<_> = (0..ROUTERS)
        .map(|i| {
            network.add_link(LinkSpec { from: nodes[i], to: nodes[i + 1], pass_on, ..bottleneck.clone() })
        })
        .collect();
    let fast = Rate::from_mbps(1000);
    let line = |network: &mut Network, from, to, ms| {
        let queue = QueueSpec::drop_tail(cutline_aqm::Limit::Packets(10_000), fast);
        let delay = Duration::from_millis(ms);
        network.add_link(LinkSpec::new(from, to, fast, delay, queue))
    };
    let back: Vec<_> = (0..ROUTERS).map(|i| line(&mut network, nodes[i + 1], nodes[i], 50)).collect();
    let group = network.add_group("flows");
    let add = |network: &mut Network, name: String, from: usize, to: usize, (transport, app, hint)| {
        let routes = [middle[from..to].to_vec(), back[from..to].iter().rev().copied().collect()];
        let start = (Instant::ZERO, Instant::ZERO + Duration::from_secs(1));
        let flow = FlowSpec { hint, start, ..FlowSpec::new(name, group, routes, transport, app) };
        network.add_flow(flow).expect("the plan is sound");
    };
    for i in 0..4 {
        add(&mut network, format!("audio.{i}"), 0, ROUTERS, audio(12));
    }
    for (i, flow) in bulk(12).into_iter().enumerate() {
        add(&mut network, format!("first.{i}"), 0, 1, flow.clone());
        add(&mut network, format!("second.{i}"), 1, 2, flow);
    }
    network
}

fn watch(mut network: Network) -> Vec<Observation> {
    (0..ROUTERS as u32).for_each(|link| network.watch(LinkId(link)));
    let mut simulation = Simulation::new(&network, &settings()).unwrap();
    simulation.advance(Instant::FAR_FUTURE);
    simulation.take_observations().collect()
}

/// A departing packet carries the rest of its hint to the next router; the largest hint stays.
#[test]
fn a_departing_packet_has_the_rest_of_its_hint() {
    let observations = watch(network(Some(BUDGET)));
    let mut second: BTreeMap<u16, u32> = BTreeMap::new();
    for seen in &observations {
        let hint = seen.packet.hint;
        match (seen.packet.flow.is_some_and(|flow| flow < 4), seen.link.0, seen.event) {
            (true, 0, QueueEvent::Departed { waited, .. }) => {
                assert_eq!(hint, BUDGET.after(Hint::from_level(12), waited));
            }
            (true, 1, QueueEvent::Arrived(_)) => *second.entry(hint.level()).or_default() += 1,
            (false, ..) => assert_eq!(hint.level(), 16),
            _ => {}
        }
    }
    assert!(second.len() > 5, "the levels at the second router: {second:?}");
}

#[test]
fn without_a_budget_the_hint_stays() {
    assert!(watch(network(None)).iter().all(|seen| [12, 16].contains(&seen.packet.hint.level())));
}

/// The packets arrive at the second router with smaller hints. They wait there less than at the first, and less than
/// without a budget.
#[test]
fn a_reduced_hint_shortens_the_wait_at_the_second_router() {
    let waited = |pass_on, link: u32| {
        let observations = watch(network(pass_on));
        let of = |seen: &Observation| match seen.event {
            QueueEvent::Departed { waited, .. }
                if seen.packet.flow.is_some_and(|flow| flow < 4) && seen.link.0 == link =>
            {
                Some(waited)
            }
            _ => None,
        };
        let waits: Vec<f64> = observations.iter().filter_map(of).map(Duration::as_secs_f64).collect();
        waits.iter().sum::<f64>() / waits.len() as f64
    };
    assert!(waited(Some(BUDGET), 1) < 0.8 * waited(None, 1));
    assert!(waited(Some(BUDGET), 1) < 0.8 * waited(Some(BUDGET), 0));
}

#[test]
fn every_packet_is_accounted_for() {
    let outcome = run(&network(Some(BUDGET)), &settings()).unwrap();
    let totals = outcome.flows.iter().map(|flow| flow.record.totals);
    let (sent, ended) =
        totals.fold((0, 0), |(sent, ended), flow| (sent + flow.sent, ended + flow.received + flow.dropped));
    assert_eq!(sent, ended + outcome.work.under_way);
}
