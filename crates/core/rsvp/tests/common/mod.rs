//! A small network for engines: links with delay and loss, routes with the fewest links, restarts and failures. Everything follows from
//! a seed.

#![allow(dead_code, reason = "each test uses a part")]

pub mod bed;

use cutline_rsvp::admission::ShareParams;
use cutline_rsvp::encapsulation::{Carrier, Encapsulation};
use cutline_rsvp::engine::{
    ArrivedMessage, Control, Datagram, Engine, EngineOutput, EngineParams, EngineStart, InterfaceConfig,
    InterfaceId, LocalSender, Reservation, Route, RouteKey, RsvpEvent, SessionView,
};
use cutline_rsvp::integrity::IntegrityConfig;
use cutline_rsvp::intserv::{Flowspec, Tspec};
use cutline_rsvp::message::MessageType;
use cutline_rsvp::object::{Sender, Session, Style};
use cutline_units::{Duration, Instant, RandomStream, Rate, Streams};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

pub const SECOND: Duration = Duration::from_secs(1);

/// One end of a link: a node and its interface.
type End = (usize, InterfaceId);

#[derive(Debug)]
pub struct Link {
    ends: [End; 2],
    pub delay: Duration,
    pub loss: f64,
    pub is_up: bool,
    /// Nodes without RSVP in it.
    pub hidden_hops: u8,
}

pub struct Node {
    pub engine: Engine,
    interfaces: Vec<InterfaceConfig>,
    asked: BTreeSet<RouteKey>,
    is_alive: bool,
    params: EngineParams,
    starts: u64,
}

/// A message that has crossed a link.
#[derive(Clone, Debug)]
pub struct Passed {
    pub at: Instant,
    pub from: usize,
    pub to: usize,
    pub datagram: Datagram,
}

pub struct World {
    pub now: Instant,
    pub nodes: Vec<Node>,
    pub links: Vec<Link>,
    pub groups: BTreeMap<IpAddr, Vec<usize>>,
    pub events: Vec<(Instant, usize, RsvpEvent)>,
    pub controls: Vec<(Instant, usize, Control)>,
    pub passed: Vec<Passed>,
    pub keeps_messages: bool,
    pub is_v6: bool,
    /// Nodes whose traffic control installs nothing.
    pub refuses: BTreeSet<usize>,
    in_flight: BTreeMap<(Instant, u64), (End, Datagram)>,
    sequence: u64,
    seed: u64,
    random: RandomStream,
}

impl World {
    pub fn new(seed: u64) -> Self {
        Self {
            now: Instant::ZERO,
            nodes: Vec::new(),
            links: Vec::new(),
            groups: BTreeMap::new(),
            events: Vec::new(),
            controls: Vec::new(),
            passed: Vec::new(),
            keeps_messages: false,
            is_v6: false,
            refuses: BTreeSet::new(),
            in_flight: BTreeMap::new(),
            sequence: 0,
            seed,
            random: Streams::new(seed).stream("world", "loss"),
        }
    }

    pub fn add_node(&mut self, params: EngineParams) -> usize {
        let index = self.nodes.len();
        let engine = self.start(index, 0, &params);
        let node = Node {
            engine,
            interfaces: Vec::new(),
            asked: BTreeSet::new(),
            is_alive: true,
            params,
            starts: 0,
        };
        self.nodes.push(node);
        index
    }

    fn start(&self, node: usize, starts: u64, params: &EngineParams) -> Engine {
        let random = Streams::new(self.seed).stream(&format!("node.{node}.{starts}"), "rsvp");
        let start =
            EngineStart { params: params.clone(), secret: [node as u8; 32], sequence: starts << 40, random };
        Engine::new(start).unwrap()
    }

    /// Joins two nodes with a link of this rate, all of which can be reserved. The addresses are `10.LINK.0.1` and `10.LINK.0.2`.
    pub fn join(&mut self, a: usize, b: usize, rate: Rate) -> usize {
        self.join_with(a, b, |address| {
            let share = ShareParams { share: 1.0, burst: Duration::from_secs(60), overhead: 0 };
            InterfaceConfig { share: Some(share), ..InterfaceConfig::new(address, rate) }
        })
    }

    pub fn join_with(&mut self, a: usize, b: usize, config: impl Fn(IpAddr) -> InterfaceConfig) -> usize {
        let link = self.links.len();
        let ends = [(a, 1), (b, 2)].map(|(node, side)| {
            let (high, low) = ((link / 256) as u8, (link % 256) as u8);
            let address = if self.is_v6 {
                IpAddr::from([0x2001, 0xdb8, 0, link as u16, 0, 0, 0, u16::from(side)])
            } else {
                IpAddr::from([10, high, low, side])
            };
            let config = config(address);
            self.nodes[node].interfaces.push(config.clone());
            (node, self.nodes[node].engine.add_interface(config).unwrap())
        });
        let delay = Duration::from_millis(5);
        self.links.push(Link { ends, delay, loss: 0.0, is_up: true, hidden_hops: 0 });
        link
    }

    /// Changes the settings of one end of a link.
    pub fn set_interface(&mut self, node: usize, interface: u32, change: impl FnOnce(&mut InterfaceConfig)) {
        change(&mut self.nodes[node].interfaces[interface as usize - 1]);
        self.restart(node);
    }

    pub fn set_integrity(&mut self, integrity: &IntegrityConfig) {
        for node in 0..self.nodes.len() {
            for interface in &mut self.nodes[node].interfaces {
                interface.integrity = Some(integrity.clone());
            }
            self.restart(node);
        }
    }

    pub fn set_udp(&mut self, node: usize, encapsulation: Encapsulation) {
        self.set_interface(node, 1, |interface| interface.encapsulation = encapsulation);
    }

    /// The address of a node's interface.
    pub fn address(&self, node: usize, interface: u32) -> IpAddr {
        self.nodes[node].interfaces[interface as usize - 1].address
    }

    /// The node loses all that it knows.
    pub fn restart(&mut self, node: usize) {
        self.nodes[node].starts += 1;
        let mut engine = self.start(node, self.nodes[node].starts, &self.nodes[node].params);
        for interface in &self.nodes[node].interfaces {
            engine.add_interface(interface.clone()).unwrap();
        }
        self.nodes[node].engine = engine;
        self.nodes[node].asked.clear();
    }

    /// The node starts again with other parameters.
    pub fn set_params(&mut self, node: usize, params: EngineParams) {
        self.nodes[node].params = params;
        self.restart(node);
    }

    /// The node falls silent.
    pub fn vanish(&mut self, node: usize) {
        self.nodes[node].is_alive = false;
    }

    pub fn set_loss(&mut self, loss: f64) {
        self.links.iter_mut().for_each(|link| link.loss = loss);
    }

    /// A link fails or comes back, and routing tells every node.
    pub fn set_link(&mut self, link: usize, is_up: bool) {
        self.links[link].is_up = is_up;
        for node in 0..self.nodes.len() {
            for key in self.nodes[node].asked.clone() {
                self.answer(node, key);
            }
            self.collect(node);
        }
    }

    fn other_end(&self, end: End) -> Option<(usize, End)> {
        let at = self.links.iter().position(|link| link.ends.contains(&end))?;
        let [a, b] = self.links[at].ends;
        Some((at, if a == end { b } else { a }))
    }

    fn node_of(&self, address: IpAddr) -> Option<usize> {
        self.nodes
            .iter()
            .position(|node| node.interfaces.iter().any(|interface| interface.address == address))
    }

    /// The first ends of the shortest ways from every node to one.
    fn towards(&self, node: usize) -> BTreeMap<usize, End> {
        let mut first = BTreeMap::new();
        let mut border = VecDeque::from([node]);
        while let Some(reached) = border.pop_front() {
            for link in self.links.iter().filter(|link| link.is_up) {
                for (near, far) in [(0, 1), (1, 0)] {
                    let (near, far) = (link.ends[near], link.ends[far]);
                    if near.0 == reached && far.0 != node && !first.contains_key(&far.0) {
                        first.insert(far.0, far);
                        border.push_back(far.0);
                    }
                }
            }
        }
        first
    }

    fn route(&self, node: usize, key: RouteKey) -> Route {
        let step = |end: End| {
            let other = self.other_end(end).map(|(_, (other, interface))| self.address(other, interface.0));
            (end.1, other)
        };
        match key.source.and_then(|source| self.node_of(source)) {
            None => {
                let outgoing =
                    self.node_of(key.destination).and_then(|to| self.towards(to).get(&node).copied());
                Route { incoming: None, outgoing: outgoing.map(step).into_iter().collect() }
            }
            Some(source) => {
                let back = self.towards(source);
                let mut outgoing = BTreeSet::new();
                for member in self.groups.get(&key.destination).into_iter().flatten() {
                    let mut at = *member;
                    while let Some(end) = back.get(&at) {
                        let Some((_, parent)) = self.other_end(*end) else { break };
                        if parent.0 == node {
                            outgoing.insert(parent);
                        }
                        at = parent.0;
                    }
                }
                let outgoing = outgoing.into_iter().map(step).collect();
                Route { incoming: back.get(&node).map(|end| end.1), outgoing }
            }
        }
    }

    fn answer(&mut self, node: usize, key: RouteKey) {
        let route = self.route(node, key);
        self.nodes[node].engine.set_route(self.now, key, &route);
    }

    /// Takes the output of a node.
    pub fn collect(&mut self, node: usize) {
        while let Some(output) = self.nodes[node].engine.poll() {
            match output {
                EngineOutput::Send(datagram) => self.send(node, datagram),
                EngineOutput::Control(Control::Add(flow) | Control::Modify(flow))
                    if self.refuses.contains(&node) =>
                {
                    self.nodes[node].engine.revoke(self.now, flow.handle, false);
                }
                EngineOutput::Control(control) => self.controls.push((self.now, node, control)),
                EngineOutput::AskRoute(key) => {
                    self.nodes[node].asked.insert(key);
                    self.answer(node, key);
                }
                EngineOutput::ForgetRoute(key) => {
                    self.nodes[node].asked.remove(&key);
                }
                EngineOutput::Event(event) => self.events.push((self.now, node, event)),
            }
        }
    }

    fn send(&mut self, node: usize, datagram: Datagram) {
        let Some((at, end)) = self.other_end((node, datagram.interface)) else { return };
        if self.keeps_messages {
            let passed = Passed { at: self.now, from: node, to: end.0, datagram: datagram.clone() };
            self.passed.push(passed);
        }
        let link = &self.links[at];
        if !self.nodes[node].is_alive || !link.is_up || self.random.uniform() < link.loss {
            return;
        }
        self.sequence += 1;
        let datagram = Datagram { ttl: datagram.ttl.saturating_sub(link.hidden_hops), ..datagram };
        self.in_flight.insert((self.now + link.delay, self.sequence), (end, datagram));
    }

    /// Gives a message to a node, also one that no node has sent.
    pub fn deliver(&mut self, (node, interface): End, datagram: &Datagram) {
        if !self.nodes[node].is_alive {
            return;
        }
        let Datagram { source, destination, carrier, ttl, ref bytes, .. } = *datagram;
        let ttl = (carrier == Carrier::Raw).then_some(ttl);
        let arrival = ArrivedMessage { interface, source, destination, ttl, carrier, bytes };
        self.nodes[node].engine.receive(self.now, &arrival);
        self.collect(node);
    }

    pub fn run(&mut self, duration: Duration) {
        let until = self.now + duration;
        loop {
            let arrival = self.in_flight.first_key_value().map_or(Instant::FAR_FUTURE, |((at, _), _)| *at);
            let alive = self.nodes.iter().enumerate().filter(|(_, node)| node.is_alive);
            let due = alive
                .map(|(at, node)| (node.engine.deadline(), at))
                .min()
                .unwrap_or((Instant::FAR_FUTURE, 0));
            if arrival.min(due.0) > until {
                break;
            }
            self.now = self.now.max(arrival.min(due.0));
            if arrival <= due.0 {
                let (_, (end, datagram)) = self.in_flight.pop_first().unwrap();
                self.deliver(end, &datagram);
            } else {
                self.nodes[due.1].engine.handle_deadline(self.now);
                self.collect(due.1);
            }
        }
        self.now = until;
    }

    pub fn engine(&mut self, node: usize) -> &mut Engine {
        &mut self.nodes[node].engine
    }

    pub fn watch(&mut self, node: usize, session: Session, is_watched: bool) {
        let now = self.now;
        self.engine(node).watch(now, session, is_watched).unwrap();
    }

    /// An application sends by interface 1 of its node.
    pub fn send_path(&mut self, node: usize, session: Session, tspec: Tspec) -> Sender {
        let sender = Sender::new(self.address(node, 1), 5000);
        let local = LocalSender { sender, tspec, interface: InterfaceId(1), next_hop: None, advertise: true };
        let now = self.now;
        self.engine(node).send_path(now, session, &local).unwrap();
        self.collect(node);
        sender
    }

    pub fn reserve(&mut self, node: usize, session: Session, style: Style, senders: &[Sender], rate: f32) {
        let wanted = Reservation { style, senders: senders.to_vec(), flowspec: load(rate), confirm: true };
        let now = self.now;
        self.engine(node).reserve(now, session, wanted).unwrap();
        self.collect(node);
    }

    pub fn release(&mut self, node: usize, session: Session) {
        let now = self.now;
        self.engine(node).release_reservation(now, session);
        self.collect(node);
    }

    pub fn end_path(&mut self, node: usize, session: Session, sender: Sender) {
        let now = self.now;
        self.engine(node).end_path(now, session, sender);
        self.collect(node);
    }

    /// Returns the reserved rate at a node's interface, bytes per second.
    pub fn reserved(&self, node: usize, interface: u32) -> u64 {
        self.nodes[node].engine.share(InterfaceId(interface)).unwrap().reserved().as_bps() / 8
    }

    pub fn sent(&self, kind: MessageType) -> u64 {
        self.nodes.iter().filter_map(|node| node.engine.stats().sent.get(&kind)).sum()
    }

    /// No node remembers a session, and nothing is reserved.
    pub fn assert_empty(&self) {
        for (at, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.is_alive) {
            let sizes = node.engine.sizes();
            assert_eq!(
                (
                    sizes.sessions,
                    sizes.paths,
                    sizes.reservations,
                    sizes.controls,
                    sizes.routes,
                    sizes.accounted
                ),
                (0, 0, 0, 0, 0, 0),
                "node {at}"
            );
            for interface in 1..=node.interfaces.len() as u32 {
                assert_eq!(self.reserved(at, interface), 0, "node {at}, interface {interface}");
            }
        }
    }

    /// The budgets of every node have counted the state of neighbours.
    pub fn assert_accounted(&self) {
        for (at, node) in self.nodes.iter().enumerate() {
            let states = |view: SessionView| {
                view.senders.iter().filter(|sender| sender.previous.is_some()).count()
                    + view.reservations.iter().filter(|its| its.next.is_some()).count()
            };
            let states: usize = node.engine.sessions().map(states).sum();
            assert_eq!(node.engine.sizes().accounted, states, "node {at}");
        }
    }

    pub fn confirmations(&self, node: usize) -> usize {
        self.events
            .iter()
            .filter(|(_, at, event)| *at == node && matches!(event, RsvpEvent::Confirmed { .. }))
            .count()
    }

    pub fn resv_errors(&self, node: usize) -> Vec<(u8, u16)> {
        let errors =
            self.events.iter().filter(|(_, at, _)| *at == node).filter_map(|(_, _, event)| match event {
                RsvpEvent::ResvError { error, .. } => Some((error.code, error.value)),
                _ => None,
            });
        errors.collect()
    }
}

pub fn load(rate: f32) -> Flowspec {
    Flowspec::ControlledLoad(tspec(rate))
}

pub fn tspec(rate: f32) -> Tspec {
    Tspec { peak: rate, min_policed: 100, ..Tspec::new(rate, 1000.0) }
}

pub fn session(destination: IpAddr, port: u16) -> Session {
    Session { destination, protocol: 17, port }
}

/// A host, routers and a host in a row. Interface 1 of a router is towards the first host.
pub fn line(seed: u64, routers: usize, params: &EngineParams) -> World {
    line_of(World::new(seed), routers, params)
}

pub fn line_of(mut world: World, routers: usize, params: &EngineParams) -> World {
    let nodes: Vec<usize> = (0..routers + 2).map(|_| world.add_node(params.clone())).collect();
    for pair in nodes.windows(2) {
        world.join(pair[0], pair[1], Rate::from_mbps(10));
    }
    world
}
