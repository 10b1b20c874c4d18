//! Agents: messages cross the network's own links and queues, deadlines come when they are due.

use crate::common::{Plan, bulk};
use cutline_aqm::{Limit, QueueSpec};
use cutline_sim::{
    Address, Agent, AgentMessage, AgentSpec, Context, FlowSpec, LinkSpec, Network, NetworkError, NodeId,
    OutboundMessage, SimulationOutcome, SimulationSettings, Window, run,
};
use cutline_transport::app;
use cutline_transport::endpoint::TransportParams;
use cutline_units::{Bytes, Duration, Hint, Instant, RandomStream, Rate};
use std::sync::{Arc, Mutex};

/// Observations of a pinger: the time of each answer, and its round-trip time.
type Log = Arc<Mutex<Vec<(Instant, Duration)>>>;

/// Sends an echo request every so often, and notes how long the answer takes.
#[derive(Debug)]
struct Pinger {
    to: Address,
    every: Duration,
    size: u32,
    log: Log,
}

/// Answers a request with its own bytes.
#[derive(Debug)]
struct Echo;

struct PingerAtWork {
    to: Address,
    every: Duration,
    size: u32,
    log: Log,
    next: Instant,
}

impl AgentSpec for Pinger {
    fn build(&self, _address: Address, _random: RandomStream) -> Box<dyn Agent> {
        let Self { to, every, size, ref log } = *self;
        Box::new(PingerAtWork { to, every, size, log: Arc::clone(log), next: Instant::ZERO + every })
    }
}

impl Agent for PingerAtWork {
    fn on_message(&mut self, now: Instant, message: &AgentMessage, _context: &mut Context<'_>) {
        assert_eq!(message.from, self.to);
        let sent = Instant::from_nanos(u64::from_be_bytes((*message.payload).try_into().unwrap()));
        self.log.lock().unwrap().push((now, now - sent));
    }

    fn deadline(&self) -> Instant {
        self.next
    }

    fn on_deadline(&mut self, now: Instant, context: &mut Context<'_>) {
        assert_eq!(now, self.next, "a deadline comes when it is due");
        let payload = now.as_nanos().to_be_bytes().into();
        context.send(OutboundMessage { to: self.to, size: self.size, hint: Hint::LEAST_DELAY, payload });
        self.next = now + self.every;
    }
}

impl AgentSpec for Echo {
    fn build(&self, _address: Address, _random: RandomStream) -> Box<dyn Agent> {
        Box::new(Self)
    }
}

impl Agent for Echo {
    fn on_message(&mut self, _now: Instant, message: &AgentMessage, context: &mut Context<'_>) {
        let AgentMessage { from, payload, .. } = message.clone();
        context.send(OutboundMessage { to: from, size: 125, hint: Hint::LEAST_DELAY, payload });
    }

    fn deadline(&self) -> Instant {
        Instant::FAR_FUTURE
    }

    fn on_deadline(&mut self, _now: Instant, _context: &mut Context<'_>) {}
}

const EVERY: Duration = Duration::from_millis(100);

fn at(node: NodeId, port: u32) -> Address {
    Address { node, port }
}

fn link(from: NodeId, to: NodeId) -> LinkSpec {
    let (rate, delay) = (Rate::from_mbps(1), Duration::from_millis(10));
    let queue = QueueSpec::drop_tail(Limit::Packets(100), rate);
    LinkSpec::new(from, to, rate, delay, queue)
}

/// `a - b - c`, both ways, 1 Mbit/s and 10 ms a link.
fn line() -> (Network, [NodeId; 3]) {
    let mut network = Network::new();
    let nodes = ["a", "b", "c"].map(|name| network.add_node(name));
    for pair in nodes.windows(2) {
        network.add_link(link(pair[0], pair[1]));
        network.add_link(link(pair[1], pair[0]));
    }
    (network, nodes)
}

fn ping(network: &mut Network, from: Address, to: Address, size: u32) -> Log {
    let log = Log::default();
    let pinger = Pinger { to, every: EVERY, size, log: Arc::clone(&log) };
    network.add_agent("pinger", from, Arc::new(pinger)).unwrap();
    log
}

fn simulate(network: &Network, seconds: u64) -> SimulationOutcome {
    let duration = Duration::from_secs(seconds);
    let window = Window { from: Instant::ZERO, until: Instant::ZERO + duration };
    run(network, &SimulationSettings { seed: 1, duration, window, interval: duration }).unwrap()
}

#[test]
fn a_message_takes_the_time_of_its_links() {
    let (mut network, [a, _, c]) = line();
    let log = ping(&mut network, at(a, 1), at(c, 7), 250);
    network.add_agent("echo", at(c, 7), Arc::new(Echo)).unwrap();
    let outcome = simulate(&network, 1);
    // Two links there with 2 ms and two back with 1 ms for the packet, and 10 ms each.
    let round_trip = Duration::from_millis(2 * (2 + 10) + 2 * (1 + 10));
    let expected: Vec<_> = (1..=9).map(|n| (Instant::ZERO + EVERY * n + round_trip, round_trip)).collect();
    assert_eq!(*log.lock().unwrap(), expected);
    assert_eq!(outcome.work.undeliverable, 0);
}

#[test]
fn messages_wait_in_queues_and_are_lost_there() {
    let rtts = |flows: usize| -> Vec<Duration> {
        let plan = Plan { flows: bulk(flows), ..Plan::scaled(20) };
        let mut network = plan.network();
        let [source, sink] = [network.flows()[0].route[0], network.flows()[0].return_route[0]]
            .map(|link| network.link(link).from);
        let log = ping(&mut network, at(source, 1), at(sink, 1), 1000);
        network.add_agent("echo", at(sink, 1), Arc::new(Echo)).unwrap();
        simulate(&network, 60);
        let log = log.lock().unwrap();
        log.iter().map(|(_, rtt)| *rtt).collect()
    };
    let (alone, among) = (rtts(1), rtts(20));
    assert!(among.len() < alone.len(), "{} of {} answers came", among.len(), alone.len());
    assert!(among.iter().max() > alone.iter().max(), "{:?} {:?}", among.iter().max(), alone.iter().max());
}

#[test]
fn agents_at_one_node_need_no_link() {
    let (mut network, [a, ..]) = line();
    let log = ping(&mut network, at(a, 1), at(a, 2), 100);
    network.add_agent("echo", at(a, 2), Arc::new(Echo)).unwrap();
    simulate(&network, 1);
    assert!(log.lock().unwrap().iter().all(|(_, rtt)| rtt.is_zero()));
    assert_eq!(log.lock().unwrap().len(), 10);
}

#[test]
fn messages_without_a_route_are_counted() {
    let (mut network, [a, _, c]) = line();
    let nobody = ping(&mut network, at(a, 1), at(c, 9), 100);
    let island = network.add_node("island");
    network.add_agent("echo", at(island, 1), Arc::new(Echo)).unwrap();
    let log = Log::default();
    let pinger = Pinger { to: at(island, 1), every: EVERY, size: 100, log: Arc::clone(&log) };
    network.add_agent("castaway", at(a, 2), Arc::new(pinger)).unwrap();
    let outcome = simulate(&network, 1);
    assert_eq!(outcome.work.undeliverable, 20);
    assert!(nobody.lock().unwrap().is_empty() && log.lock().unwrap().is_empty());
}

#[test]
fn an_address_has_one_agent() {
    let (mut network, [a, ..]) = line();
    network.add_agent("first", at(a, 1), Arc::new(Echo)).unwrap();
    let error = network.add_agent("second", at(a, 1), Arc::new(Echo)).unwrap_err();
    assert!(matches!(error, NetworkError::AddressTaken { .. }));
    assert_eq!(error.to_string(), "agent `second`: `first` is at port 1 of node `a` already");
}

#[test]
fn agents_on_other_links_change_nothing() {
    let outcome = |agents: bool| {
        let mut network = Plan { flows: bulk(5), ..Plan::scaled(20) }.network();
        let [left, right] = ["left", "right"].map(|name| network.add_node(name));
        network.add_link(link(left, right));
        network.add_link(link(right, left));
        if agents {
            ping(&mut network, at(left, 1), at(right, 1), 100);
            network.add_agent("echo", at(right, 1), Arc::new(Echo)).unwrap();
        }
        simulate(&network, 20).flows.into_iter().map(|flow| flow.record).collect::<Vec<_>>()
    };
    assert_eq!(outcome(true), outcome(false));
}

/// A flow crosses two links in a row, and agents send over the second one alone. The backlog there is the arrivals there.
#[test]
fn a_message_does_not_wait_for_packets_that_have_yet_to_come() {
    let delays = |every_link_is_served: bool| {
        let (mut network, [a, b, c]) = line();
        let log = ping(&mut network, at(b, 1), at(c, 1), 125);
        network.add_agent("echo", at(c, 1), Arc::new(Echo)).unwrap();
        let group = network.add_group("flows");
        let routes = [network.route(a, c).unwrap(), network.route(c, a).unwrap()];
        let app = app::CbrParams::new(Rate::from_kbps(800), Bytes::new(1000));
        let (transport, app) = (TransportParams::Udp(Arc::default()), app::Params::Cbr(app));
        let flow = FlowSpec::new("cbr", group, routes, transport, app);
        let flow = FlowSpec { hint: Hint::LEAST_DELAY, ..flow };
        network.add_flow(flow).unwrap();
        if every_link_is_served {
            network.keep_every_series();
        }
        simulate(&network, 10);
        log.lock().unwrap().clone()
    };
    assert_eq!(delays(false), delays(true));
}
