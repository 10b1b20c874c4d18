//! Watched links: the observations equal the counters, and watching changes nothing.

use crate::common::{Plan, audio, bulk};
use cutline_aqm::{AqmSpec, DropReason, Verdict, registry};
use cutline_sim::{
    LinkId, Observation, QueueEvent, SeenHeader, Simulation, SimulationOutcome, SimulationSettings, Window,
    run,
};
use cutline_transport::endpoint::{DataHeader, ReplyHeader};
use cutline_units::{Duration, Instant, Rate};
use std::collections::BTreeSet;

const FORWARD: LinkId = LinkId(0);
const BACK: LinkId = LinkId(1);

fn settings() -> SimulationSettings {
    let duration = Duration::from_secs(12);
    let window = Window { from: Instant::ZERO, until: Instant::ZERO + duration };
    SimulationSettings { seed: 1, duration, window, interval: Duration::from_millis(300) }
}

/// A crowded bottleneck with a queue of each kind.
fn plans() -> impl Iterator<Item = Plan> {
    registry::describe().into_iter().map(|about| Plan {
        aqm: Some(AqmSpec::from_values(about.name, []).unwrap()),
        flows: [bulk(20), vec![audio(6); 4]].concat(),
        rate: Rate::from_mbps(3),
        tsq: about.takes_tsq,
        ..Plan::paper(20)
    })
}

/// Runs with both directions of the bottleneck watched.
fn watch(plan: &Plan) -> (Vec<Observation>, SimulationOutcome) {
    let mut network = plan.network();
    network.watch(FORWARD);
    network.watch(BACK);
    let mut simulation = Simulation::new(&network, &settings()).unwrap();
    let mut observations = Vec::new();
    for second in 1..=12 {
        simulation.advance(Instant::ZERO + Duration::from_secs(second));
        observations.extend(simulation.take_observations());
    }
    (observations, simulation.finish())
}

fn count(observations: &[Observation], link: LinkId, what: impl Fn(QueueEvent) -> bool) -> u64 {
    observations.iter().filter(|seen| seen.link == link && what(seen.event)).count() as u64
}

#[test]
fn observations_agree_with_the_counters() {
    for plan in plans() {
        let (observations, outcome) = watch(&plan);
        for (link, found) in [FORWARD, BACK].into_iter().zip(&outcome.links) {
            let count = |what: &dyn Fn(QueueEvent) -> bool| count(&observations, link, what);
            let refused = |reason| count(&|event| event == QueueEvent::Arrived(Verdict::Drop(reason)));
            let shed =
                |why| count(&|event| matches!(event, QueueEvent::Shed { reason, .. } if reason == why));
            let dropped = |reason| refused(reason) + shed(reason);
            let (early, full) = (dropped(DropReason::Early), dropped(DropReason::Overflow));
            assert_eq!(
                count(&|event| matches!(event, QueueEvent::Arrived(_))),
                found.counts.arrived,
                "{:?}",
                plan.aqm
            );
            assert_eq!(
                count(&|event| matches!(event, QueueEvent::Departed { .. })),
                found.counts.sent,
                "{:?}",
                plan.aqm
            );
            assert_eq!(
                (early + full, full),
                (found.counts.dropped, found.counts.overflowed),
                "{:?}",
                plan.aqm
            );
        }
        assert!(outcome.links[0].counts.dropped > 0, "{:?} drops nothing", plan.aqm);
    }
}

#[test]
fn a_packet_arrives_once_and_departs_or_is_dropped_once() {
    for plan in plans() {
        let (observations, _) = watch(&plan);
        let mut waiting = BTreeSet::new();
        let mut arrived = [0, 0];
        let mut last = Instant::ZERO;
        for seen in &observations {
            assert!(seen.at >= last, "observations come in the order of time");
            last = seen.at;
            let key = (seen.link, seen.number);
            match seen.event {
                QueueEvent::Arrived(verdict) => {
                    arrived[seen.link.0 as usize] += 1;
                    assert_eq!(seen.number, arrived[seen.link.0 as usize]);
                    if !matches!(verdict, Verdict::Drop(_)) {
                        waiting.insert(key);
                    }
                }
                QueueEvent::Departed { .. } | QueueEvent::Shed { .. } => {
                    assert!(waiting.remove(&key), "{:?}: {seen:?} is not in the queue", plan.aqm);
                }
            }
        }
    }
}

#[test]
fn the_sojourn_times_are_those_of_the_link() {
    let (observations, outcome) = watch(&Plan::paper(20));
    let waits = observations.iter().filter_map(|seen| match (seen.link, seen.event) {
        (FORWARD, QueueEvent::Departed { waited, .. }) => Some(waited.as_nanos()),
        _ => None,
    });
    let mean = waits.clone().sum::<u64>() / waits.count() as u64;
    assert_eq!(Some(Duration::from_nanos(mean)), outcome.links[0].waits().mean());
}

#[test]
fn data_takes_the_route_and_acknowledgements_the_return_route() {
    let plan = Plan { flows: [bulk(3), vec![audio(6)]].concat(), ..Plan::paper(4) };
    let (observations, _) = watch(&plan);
    for seen in &observations {
        let back = matches!(seen.packet.header, SeenHeader::Reply(_));
        assert_eq!(seen.link == BACK, back, "{seen:?}");
        let tfrc = matches!(
            seen.packet.header,
            SeenHeader::Data(DataHeader::Tfrc(_)) | SeenHeader::Reply(ReplyHeader::Tfrc(_))
        );
        assert_eq!((seen.packet.flow == Some(3), seen.packet.hint.level() == 6), (tfrc, tfrc), "{seen:?}");
    }
}

#[test]
fn watching_packets_changes_no_result() {
    for plan in plans().take(4) {
        let (_, watched) = watch(&plan);
        let plain = run(&plan.network(), &settings()).unwrap();
        for (one, other) in watched.flows.iter().zip(&plain.flows) {
            assert_eq!((one.record, &one.delays), (other.record, &other.delays), "{:?}", plan.aqm);
        }
        for (one, other) in watched.links.iter().zip(&plain.links) {
            assert_eq!(
                (one.counts, one.waits().mean()),
                (other.counts, other.waits().mean()),
                "{:?}",
                plan.aqm
            );
        }
    }
}
