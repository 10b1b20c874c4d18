//! RSVP at the nodes of a simulated network: its messages cross the network's own links and queues.

use cutline_aqm::{Limit, QueueSpec};
use cutline_rsvp::engine::{EngineParams, Reservation, RsvpEvent};
use cutline_rsvp::intserv::{Flowspec, Tspec};
use cutline_rsvp::object::{Sender, Session, Style, code};
use cutline_sim::rsvp::{HostAction, Rsvp, RsvpLog, RsvpRecord, address_of};
use cutline_sim::{LinkSpec, Network, NodeId, SimulationSettings, Window, run};
use cutline_units::{Duration, Instant, Probability, Rate};
use rustix::time::{ClockId, clock_gettime};

const SECOND: Duration = Duration::from_secs(1);
/// Share of a reservation of 100 kB/s, bit/s: 18 bytes of Ethernet's headers on packets of 200.
const SET: u64 = 872_000;

fn at(s: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(s)
}

fn join(network: &mut Network, a: NodeId, b: NodeId, rate: Rate) {
    for (from, to) in [(a, b), (b, a)] {
        let queue = QueueSpec::drop_tail(Limit::Packets(1000), rate);
        let delay = Duration::from_millis(5);
        network.add_link(LinkSpec::new(from, to, rate, delay, queue));
    }
}

/// `host - router - router - host`, and a second way between the routers over a third one.
fn network() -> (Network, [NodeId; 5]) {
    let mut network = Network::new();
    let nodes = ["a", "r1", "r2", "b", "r3"].map(|name| network.add_node(name));
    let [a, r1, r2, b, r3] = nodes;
    for (from, to) in [(a, r1), (r1, r2), (r2, b), (r1, r3), (r3, r2)] {
        join(&mut network, from, to, Rate::from_mbps(10));
    }
    (network, nodes)
}

fn session(destination: NodeId, port: u16) -> Session {
    Session { destination: address_of(destination), protocol: 17, port }
}

fn sender(node: NodeId) -> Sender {
    Sender::new(address_of(node), 5000)
}

fn tspec(rate: f32) -> Tspec {
    Tspec { peak: rate, min_policed: 200, ..Tspec::new(rate, 100.0) }
}

/// A sender at one node and a receiver at another one.
fn reserve(
    (from, to): (NodeId, NodeId),
    port: u16,
    rate: f32,
    start: Instant,
) -> [(Instant, NodeId, HostAction); 2] {
    let (session, sender, tspec) = (session(to, port), sender(from), tspec(rate));
    let flowspec = Flowspec::ControlledLoad(tspec);
    let wanted = Reservation { style: Style::FixedFilter, senders: vec![sender], flowspec, confirm: true };
    [
        (start, from, HostAction::Send { session, sender, tspec }),
        (start, to, HostAction::Reserve(session, wanted)),
    ]
}

fn simulate(network: &mut Network, rsvp: Rsvp, duration: Duration) -> RsvpRecord {
    let log: RsvpLog = rsvp.connect(network).unwrap();
    let window = Window { from: Instant::ZERO, until: Instant::ZERO + duration };
    let outcome =
        run(network, &SimulationSettings { seed: 1, duration, window, interval: duration }).unwrap();
    assert_eq!(outcome.work.undeliverable, 0);
    log.read()
}

/// Returns the reserved rates from each of these nodes to the next, at each sample.
fn reserved(record: &RsvpRecord, hops: &[(NodeId, NodeId)]) -> Vec<(f64, Vec<u64>)> {
    let mut rows = Vec::new();
    for (time, node, _) in record.samples.iter().filter(|(_, node, _)| *node == hops[0].0) {
        let at = |(from, to): &(NodeId, NodeId)| {
            let mut samples = record.samples.iter().filter(|(when, node, _)| when == time && node == from);
            samples.next().map_or(0, |(_, _, sample)| sample.reserved[to].as_bps())
        };
        rows.push((time.as_secs_f64(), hops.iter().map(at).collect()));
        assert_eq!(*node, hops[0].0);
    }
    rows
}

#[test]
fn a_reservation_is_set_up_over_the_networks_links() {
    let (mut network, [a, r1, r2, b, _]) = network();
    let rsvp =
        Rsvp { actions: reserve((a, b), 1, 100_000.0, at(1.0)).into(), sample: SECOND, ..Rsvp::default() };
    let record = simulate(&mut network, rsvp, SECOND * 100);
    let confirmed: Vec<_> =
        record.events.iter().filter(|(_, _, event)| matches!(event, RsvpEvent::Confirmed { .. })).collect();
    let [(when, node, _)] = confirmed[..] else { panic!("{confirmed:?}") };
    assert_eq!(*node, b);
    // A Path message, a Resv message and a confirmation over three links of 5 ms each, and their transmission.
    let took = when.as_secs_f64() - 1.0;
    assert!((0.045..0.048).contains(&took), "{took}");
    let rows = reserved(&record, &[(a, r1), (r1, r2), (r2, b)]);
    assert!(rows[1..].iter().all(|(_, row)| row[..] == [SET; 3]), "{rows:?}");
}

#[test]
fn faults_are_survived_in_the_simulator() {
    let (mut network, [a, r1, r2, b, r3]) = network();
    let mut actions: Vec<_> = reserve((a, b), 1, 100_000.0, at(1.0)).into();
    actions.push((at(100.5), r1, HostAction::Restart));
    actions.push((at(200.5), r1, HostAction::Reroute { destination: b, via: r3 }));
    actions.push((at(400.5), b, HostAction::Vanish));
    let rsvp = Rsvp { actions, sample: SECOND, loss: Probability::new(0.02).unwrap(), ..Rsvp::default() };
    let record = simulate(&mut network, rsvp, SECOND * 701);
    let rows = reserved(&record, &[(r1, r2), (r1, r3), (r3, r2), (r2, b)]);
    let row = |s: usize| {
        let (time, row) = &rows[s - 1];
        assert_eq!(*time, s as f64);
        row.clone()
    };
    assert_eq!(row(100), [SET, 0, 0, SET]);
    assert_eq!(row(101), [0, 0, 0, SET], "the router has restarted");
    assert_eq!(row(200), [SET, 0, 0, SET], "and has its state back");
    assert_eq!(row(210), [0, SET, SET, SET], "the reservation follows the route");
    assert_eq!(row(400), [0, SET, SET, SET]);
    assert_eq!(row(700), [0; 4], "the receiver has vanished");
}

#[test]
fn a_full_link_refuses_a_reservation() {
    let (mut network, [a, _, _, b, _]) = network();
    // 7.5 of 10 Mbit/s can be reserved.
    let mut actions = Vec::new();
    for port in 1..=10 {
        actions.extend(reserve((a, b), port, 100_000.0, at(1.0 + 0.1 * f64::from(port))));
    }
    let record = simulate(&mut network, Rsvp { actions, ..Rsvp::default() }, SECOND * 10);
    let is_refused = |event: &RsvpEvent| matches!(event, RsvpEvent::ResvError { error, .. } if error.code == code::ADMISSION);
    let count =
        |is: &dyn Fn(&RsvpEvent) -> bool| record.events.iter().filter(|(_, _, event)| is(event)).count();
    assert_eq!(count(&|event| matches!(event, RsvpEvent::Confirmed { .. })), 8);
    assert!(count(&is_refused) >= 2);
}

/// The processor time of this thread.
fn processor_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// The memory of this process, kB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Many reservations through one router between two hosts; prints their cost.
fn many(count: u16, refresh_reduction: bool, loss: f64) -> RsvpRecord {
    let mut network = Network::new();
    let [a, r, b] = ["a", "r", "b"].map(|name| network.add_node(name));
    join(&mut network, a, r, Rate::from_mbps(1000));
    join(&mut network, r, b, Rate::from_mbps(1000));
    // A thousand a second.
    let mut actions = Vec::new();
    for port in 1..=count {
        actions.extend(reserve((a, b), port, 5_000.0, at(1.0 + f64::from(port) * 0.001)));
    }
    let params = EngineParams { refresh_reduction, ..EngineParams::default() };
    let loss = Probability::new(loss).unwrap();
    let (duration, sample) = (SECOND * 251, SECOND * 50);
    let rsvp = Rsvp { params, actions: actions.clone(), sample, loss, ..Rsvp::default() };
    let (memory, processor) = (resident(), processor_time());
    let record = simulate(&mut network, rsvp, duration);
    let (memory, processor) = (resident().saturating_sub(memory), processor_time() - processor);
    let mut latencies: Vec<f64> = Vec::new();
    for (when, _, event) in &record.events {
        if let RsvpEvent::Confirmed { session, .. } = event {
            latencies.push(when.as_secs_f64() - 1.0 - f64::from(session.port) * 0.001);
        }
    }
    latencies.sort_by(f64::total_cmp);
    let of_router = |s: f64| {
        let mut samples = record.samples.iter().filter(|(when, node, _)| *node == r && *when == at(s));
        samples.next().map(|(_, _, sample)| sample.clone()).unwrap()
    };
    let (first, last) = (of_router(100.0), of_router(250.0));
    let sent = last.stats.sent_messages() - first.stats.sent_messages();
    let bytes = last.stats.sent_bytes - first.stats.sent_bytes;
    let percentile =
        |p: f64| latencies.get((latencies.len() as f64 * p) as usize).map_or(f64::NAN, |s| s * 1e3);
    println!(
        "{count} reservations, refresh reduction {refresh_reduction}, loss {loss:?}: set up {}, confirmed {}, \
         latency median {:.1} ms, 99th {:.1} ms; in steady state the router sends {:.1} messages/s, {:.0} bytes/s; \
         memory of three nodes and the simulator {} kB, processor {processor:.2} s for 250 s",
        last.sizes.controls,
        latencies.len(),
        percentile(0.5),
        percentile(0.99),
        sent as f64 / 150.0,
        bytes as f64 / 150.0,
        memory,
    );
    assert_eq!(last.sizes.controls, usize::from(count), "all are set up");
    record
}

/// RFC 2961: in the steady state summaries, and a whole message every twenty periods, cost a fifteenth of the messages.
#[test]
fn many_reservations_cost_little_with_summaries() {
    let rate = |refresh_reduction| {
        let record = many(1000, refresh_reduction, 0.0);
        let sent = |s: f64| {
            let samples = record.samples.iter().filter(|(when, _, _)| *when == at(s));
            samples.map(|(_, _, sample)| sample.stats.sent_messages()).sum::<u64>()
        };
        (sent(250.0) - sent(100.0)) as f64 / 150.0
    };
    let (plain, reduced) = (rate(false), rate(true));
    // 1000 sessions, two hops, two directions, every 30 s.
    assert!((125.0..142.0).contains(&plain), "{plain}");
    assert!(reduced < plain / 15.0, "{reduced} of {plain}");
}

/// Ten thousand, the measure of the scale.
#[test]
#[ignore = "takes minutes: make validate-rsvp runs it; a thousand are tested above"]
fn ten_thousand_reservations() {
    for (refresh_reduction, loss) in [(false, 0.0), (true, 0.0), (false, 0.1), (true, 0.1)] {
        many(10_000, refresh_reduction, loss);
    }
}
