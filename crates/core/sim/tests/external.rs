//! External endpoints: packets of a simulation that are recorded where they enter, and injected again, have the same outcome.

use crate::common::{Plan, audio, bulk};
use cutline_aqm::Verdict;
use cutline_sim::{
    Deliveries, InjectedPacket, LinkId, Network, Observation, PacketOutcome, PacketRole, QueueEvent,
    SeenHeader, SeenPacket, Simulation, SimulationOutcome, SimulationSettings, Window,
};
use cutline_transport::endpoint::DataHeader;
use cutline_units::{Duration, Ecn, Instant, Rate};
use std::sync::Arc;

const SECONDS: u64 = 20;

fn settings() -> SimulationSettings {
    let at = |s| Instant::ZERO + Duration::from_secs(s);
    let window = Window { from: at(5), until: at(SECONDS - 1) };
    SimulationSettings {
        seed: 1,
        duration: Duration::from_secs(SECONDS),
        window,
        interval: Duration::from_millis(300),
    }
}

fn plan() -> Plan {
    let flows = [bulk(12), vec![audio(4); 3]].concat();
    Plan { flows, rate: Rate::from_mbps(2), ..Plan::paper(15) }
}

/// Returns the links by which the packets of all flows enter the network.
fn entries(network: &Network) -> Vec<LinkId> {
    network.flows().iter().flat_map(|flow| [flow.route[0], flow.return_route[0]]).collect()
}

/// Simulates both endpoints. Returns every packet that enters the network, and the outcome.
fn simulated() -> (Vec<Observation>, SimulationOutcome) {
    let mut network = plan().network();
    for link in entries(&network) {
        network.watch(link);
    }
    let mut simulation = Simulation::new(&network, &settings()).unwrap();
    simulation.advance(Instant::ZERO + Duration::from_secs(SECONDS));
    let arrived = |seen: &Observation| matches!(seen.event, QueueEvent::Arrived(_));
    let observations = simulation.take_observations().filter(arrived).collect();
    (observations, simulation.finish())
}

fn injected(key: u32, seen: &Observation) -> InjectedPacket {
    let packet = &seen.packet;
    let role = match packet.header {
        SeenHeader::Data(DataHeader::Tcp(segment)) => {
            PacketRole::Segment { seq: segment.seq, len: segment.len }
        }
        SeenHeader::Data(DataHeader::Tfrc(data)) => PacketRole::Datagram { len: data.len },
        _ => PacketRole::Return,
    };
    let SeenPacket { flow, size, hint, ecn, .. } = *packet;
    InjectedPacket { flow: flow.expect("no agent sends anything here"), role, size, hint, ecn, key }
}

#[test]
fn recorded_packets_have_the_same_outcome() {
    let (observations, inside) = simulated();
    assert!(observations.iter().all(|seen| seen.event == QueueEvent::Arrived(Verdict::Pass)));
    let mut network = plan().network();
    network.use_external_endpoints();
    let mut simulation = Simulation::new(&network, &settings()).unwrap();
    for (key, seen) in (0..).zip(&observations) {
        simulation.inject(seen.at, injected(key, seen));
    }
    simulation.advance(Instant::ZERO + Duration::from_secs(SECONDS));
    let finished: Vec<_> = simulation.take_finished().collect();
    let external = simulation.finish();

    for (flow, (inside, external)) in inside.flows.iter().zip(&external.flows).enumerate() {
        assert_eq!(inside.record, external.record, "flow {flow}");
        assert_eq!(inside.delays, external.delays, "flow {flow}");
    }
    for (link, (inside, external)) in inside.links.iter().zip(&external.links).enumerate() {
        assert_eq!(inside.counts, external.counts, "link {link}");
        let buckets = [inside.waits(), external.waits()].map(|waits| waits.buckets().collect::<Vec<_>>());
        assert_eq!(buckets[0], buckets[1], "link {link}");
        assert_eq!(inside.probability, external.probability, "link {link}");
    }
    assert!(finished.windows(2).all(|two| two[0].at <= two[1].at), "they leave in the order of time");
    let dropped =
        finished.iter().filter(|finished| finished.outcome == PacketOutcome::Dropped).count() as u64;
    let lost: u64 = external.flows.iter().map(|flow| flow.record.totals.dropped).sum();
    assert!(dropped == lost && dropped > 50, "{dropped} dropped, {lost} of them data");
    let mut keys: Vec<u32> = finished.iter().map(|finished| finished.key).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), finished.len(), "every packet leaves once");
    assert!(
        keys.len() <= observations.len() && observations.len() - keys.len() < 500,
        "the rest is under way"
    );
}

#[test]
fn control_packets_cross_the_links_and_are_not_data() {
    let mut network = plan().network();
    network.use_external_endpoints();
    let mut simulation = Simulation::new(&network, &settings()).unwrap();
    let hint = network.flows()[0].hint;
    let syn = InjectedPacket { flow: 0, role: PacketRole::Control, size: 40, hint, ecn: Ecn::NotEct, key: 7 };
    simulation.inject(Instant::ZERO, syn);
    assert!(simulation.next_event() > Instant::ZERO, "it is on its way");
    simulation.advance(Instant::ZERO + Duration::from_secs(1));
    let finished: Vec<_> = simulation.take_finished().collect();
    assert_eq!((finished.len(), finished[0].key), (1, 7));
    // Two access links of 50 ms, 50 Mbit/s, and the bottleneck of 50 ms, 2 Mbit/s: 40 B take 6.4 us and 160 us.
    let expected = Duration::from_millis(150) + Duration::from_nanos(2 * 6_400 + 160_000);
    assert_eq!(finished[0].at, Instant::ZERO + expected);
    // A packet that is injected late enters now.
    simulation.inject(Instant::ZERO, InjectedPacket { role: PacketRole::Return, ..syn });
    simulation.advance(Instant::ZERO + Duration::from_secs(2));
    let back: Vec<_> = simulation.take_finished().collect();
    assert_eq!(back[0].at, Instant::ZERO + Duration::from_secs(1) + expected);
    assert_eq!(simulation.finish().flows[0].record.totals.sent, 0);
}

/// The laboratory's packets cross such links: the rest of a packet that is on the wire continues at the new rate.
#[test]
fn an_injected_packet_does_not_keep_the_rate_of_its_start() {
    let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
    let changes = vec![(at(1_000), Rate::from_bps(2400)), (at(2_000), Rate::from_mbps(12))];
    let mut network = Plan { rate: Rate::from_mbps(12), rate_changes: changes, ..Plan::paper(1) }.network();
    network.use_external_endpoints();
    let mut simulation = Simulation::new(&network, &settings()).unwrap();
    let role = PacketRole::Datagram { len: 1472 };
    let hint = network.flows()[0].hint;
    simulation
        .inject(at(1_500), InjectedPacket { flow: 0, role, size: 1500, hint, ecn: Ecn::NotEct, key: 7 });
    simulation.advance(at(5_000));
    let finished: Vec<_> = simulation.take_finished().collect();
    assert_eq!(finished.len(), 1);
    // Access links of 50 Mbit/s take 240 us and 50 ms; the bottleneck sends 449.76 ms at 2400 bit/s, the other 10920.576 bits in 910 us.
    let expected = at(2_000 + 100) + Duration::from_nanos(910_048 + 240_000);
    assert_eq!(finished[0].at, expected);
}

/// A laboratory's link that follows a record of deliveries: each packet leaves at a recorded time.
#[test]
fn injected_packets_leave_at_the_recorded_deliveries() {
    let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
    // Restarts each 900 ms: the deliveries after 1550 ms are at 1800, 1900, and two at 2200.
    let deliveries = Some(Arc::new(Deliveries::new(vec![100, 400, 400, 900])));
    let mut network = Plan { deliveries, ..Plan::paper(1) }.network();
    network.use_external_endpoints();
    let mut simulation = Simulation::new(&network, &settings()).unwrap();
    let role = PacketRole::Datagram { len: 1472 };
    let hint = network.flows()[0].hint;
    for key in 0..4 {
        let packet = InjectedPacket { flow: 0, role, size: 1500, hint, ecn: Ecn::NotEct, key };
        simulation.inject(at(1_500), packet);
    }
    simulation.advance(at(1_799));
    assert_eq!(simulation.take_finished().count(), 0);
    simulation.advance(at(5_000));
    let finished: Vec<_> = simulation.take_finished().map(|packet| (packet.key, packet.at)).collect();
    // The bottleneck takes 50 ms, and the access link at its other end 240 us and 50 ms; two packets of one delivery time queue there.
    let arrival = |ms: u64, packets: u64| at(ms + 100) + Duration::from_nanos(packets * 240_000);
    let expected = [arrival(1_800, 1), arrival(1_900, 1), arrival(2_200, 1), arrival(2_200, 2)];
    assert_eq!(finished, (0..).zip(expected).collect::<Vec<_>>());
}
