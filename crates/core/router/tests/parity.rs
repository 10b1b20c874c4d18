//! Arrivals at a link of the simulator, recorded and repeated as frames at the router: the same packets are
//! dropped and marked, and the others leave at the same nanosecond.

use crate::common::{Memory, ip_frame};
use cutline_aqm::{AqmSpec, DropReason, Limit, QueueSpec, TsqParams, Verdict};
use cutline_router::{Loss, Overhead, Shaper, ShaperParams};
use cutline_sim::{
    Distributions, Dumbbell, FlowSpec, Network, Observation, QueueEvent, SeenPacket, Simulation,
    SimulationSettings, Window,
};
use cutline_transport::endpoint::TransportParams;
use cutline_transport::{app, tcp, tfrc, udp};
use cutline_units::{Bytes, DscpPool2, Duration, Ecn, Hint, HintCodec, Instant, Rate, Streams};
use std::sync::Arc;

const SEED: u64 = 3;
const SECONDS: u64 = 8;
const RATE: Rate = Rate::from_bps(9_973_001);

/// A departure: which packet, when its sending began, and whether it was marked.
type Sending = (u32, Instant, bool);

fn queue(aqm: &str, tsq: bool) -> QueueSpec {
    QueueSpec {
        limit: Limit::Packets(120),
        ecn: true,
        aqm: AqmSpec::from_values(aqm, []).unwrap(),
        tsq: tsq.then(TsqParams::default),
        rate: RATE,
    }
}

/// TCP with and without ECN, TFRC and plain UDP, with hints from 1 to 16.
fn flows() -> Vec<(TransportParams, app::Params, u16)> {
    let tcp = |ecn| tcp::Params { mss: 1000, header_bytes: 0, ecn, ..tcp::Params::default() };
    let bulk = |ecn, hint| (TransportParams::Tcp(Arc::new(tcp(ecn))), app::Params::BULK, hint);
    let cbr = |kbps, size| app::CbrParams::new(Rate::from_kbps(kbps), Bytes::new(size));
    let udp = udp::Params { max_datagram: 1472, ..udp::Params::default() };
    vec![
        bulk(Ecn::Ect0, 16),
        bulk(Ecn::NotEct, 16),
        bulk(Ecn::Ect0, 12),
        bulk(Ecn::NotEct, 9),
        bulk(Ecn::NotEct, 16),
        (TransportParams::Tfrc(Arc::new(tfrc::Params::default())), app::Params::Cbr(cbr(1500, 700)), 6),
        (TransportParams::Udp(Arc::new(udp)), app::Params::Cbr(cbr(900, 333)), 1),
    ]
}

fn network(queue: &QueueSpec) -> Network {
    let access_rate = Rate::from_mbps(47);
    let drop_tail = |rate| QueueSpec::drop_tail(Limit::Packets(1000), rate);
    let dumbbell = Dumbbell {
        rate: RATE,
        delay: Duration::from_millis(5),
        access_rate,
        access_delay: Duration::from_millis(9),
        queue: queue.clone(),
        reverse_queue: drop_tail(RATE),
        access_queue: drop_tail(access_rate),
        rate_changes: Vec::new(),
        deliveries: None,
        impairments: cutline_sim::Impairments::default(),
    };
    let mut network = Network::new();
    let middle = dumbbell.lay(&mut network);
    let group = network.add_group("flows");
    for (number, (transport, app, hint)) in flows().into_iter().enumerate() {
        let pair = dumbbell.add_pair(&mut network, middle, number);
        let routes = [pair.route, pair.return_route];
        let flow = FlowSpec {
            hint: Hint::from_level(hint),
            start: (Instant::ZERO, Instant::ZERO + Duration::from_secs(1)),
            distributions: Distributions::PerGroup,
            ..FlowSpec::new(format!("flow.{number}"), group, routes, transport, app)
        };
        network.add_flow(flow).unwrap();
    }
    network.watch(middle.forward);
    network
}

fn record(queue: &QueueSpec) -> Vec<Observation> {
    let end = Instant::ZERO + Duration::from_secs(SECONDS);
    let settings = SimulationSettings {
        seed: SEED,
        duration: Duration::from_secs(SECONDS),
        window: Window { from: Instant::ZERO, until: end },
        interval: Duration::from_secs(1),
    };
    let mut simulation = Simulation::new(&network(queue), &settings).unwrap();
    simulation.advance(end);
    simulation.take_observations().collect()
}

fn as_frame(packet: &SeenPacket, number: u32) -> Vec<u8> {
    const ECT0: u8 = 0b10;
    let dscp = DscpPool2.encode(packet.hint).unwrap();
    let ecn = if packet.ecn == Ecn::Ect0 { ECT0 } else { 0 };
    let mut frame = ip_frame(packet.size as usize, dscp.in_traffic_class(ecn), packet.flow.unwrap() as u8);
    frame[34..38].copy_from_slice(&number.to_be_bytes());
    frame
}

/// Takes the frames that have departed at `now`.
fn take(shaper: &mut Shaper, now: Instant, sendings: &mut Vec<Sending>) {
    let mut port = Memory { room: usize::MAX, ..Memory::default() };
    shaper.send(&mut port).unwrap();
    for frame in port.sent {
        let number = u32::from_be_bytes(*frame[34..].first_chunk().unwrap());
        sendings.push((number, now, frame[15] & 0b11 == 0b11));
    }
}

/// Everything that is due until `until`: in the simulator, too, a link becomes free before a packet of the same time arrives.
fn advance(shaper: &mut Shaper, until: Instant, sendings: &mut Vec<Sending>) {
    while shaper.deadline() <= until {
        let due = shaper.deadline();
        shaper.advance(due);
        take(shaper, due, sendings);
    }
}

fn route(queue: &QueueSpec, observations: &[Observation]) -> (Shaper, Vec<Sending>) {
    let params = ShaperParams { overhead: Overhead::Ip, ..ShaperParams::new(queue.clone()) };
    let mut shaper = Shaper::new(params, Streams::new(SEED).stream("r1->r2", "drop")).unwrap();
    let mut sendings = Vec::new();
    for Observation { at, number, event, packet, .. } in observations {
        if matches!(event, QueueEvent::Arrived(_)) {
            advance(&mut shaper, *at, &mut sendings);
            shaper.receive(*at, &as_frame(packet, *number as u32));
            take(&mut shaper, *at, &mut sendings);
        }
    }
    advance(&mut shaper, Instant::ZERO + Duration::from_secs(SECONDS), &mut sendings);
    (shaper, sendings)
}

fn drops(observations: &[Observation], reason: DropReason) -> u64 {
    let is_drop = |event| match event {
        QueueEvent::Arrived(Verdict::Drop(why)) | QueueEvent::Shed { reason: why, .. } => why == reason,
        _ => false,
    };
    observations.iter().filter(|observation| is_drop(observation.event)).count() as u64
}

fn assert_parity(aqm: &str, tsq: bool) {
    let queue = queue(aqm, tsq);
    let observations = record(&queue);
    let simulated: Vec<Sending> = observations
        .iter()
        .filter_map(|o| match o.event {
            QueueEvent::Departed { marked, .. } => Some((o.number as u32, o.at, marked)),
            _ => None,
        })
        .collect();
    let (shaper, routed) = route(&queue, &observations);
    assert!(simulated.len() > 8_000, "the link is busy: {}", simulated.len());
    for (ours, theirs) in routed.iter().zip(&simulated) {
        assert_eq!(ours, theirs, "{aqm}");
    }
    assert_eq!(routed.len(), simulated.len());
    for reason in DropReason::ALL {
        let lost = shaper.stats().lost(Loss::from(reason)).packets;
        assert_eq!(lost, drops(&observations, reason), "{aqm}: {}", reason.name());
    }
    let dropped = shaper.stats().dropped().packets;
    assert!(dropped > 30, "the trace must make the queue decide: {dropped} drops");
}

#[test]
fn drop_tail() {
    assert_parity("drop-tail", false);
}

#[test]
fn pi() {
    assert_parity("pi", false);
}

#[test]
fn red() {
    assert_parity("red", false);
}

#[test]
fn codel() {
    assert_parity("codel", false);
}

#[test]
fn fq_codel() {
    assert_parity("fq-codel", false);
}

#[test]
fn tsq_over_pi() {
    assert_parity("pi", true);
}

#[test]
fn tsq_over_pie() {
    assert_parity("pie", true);
}
