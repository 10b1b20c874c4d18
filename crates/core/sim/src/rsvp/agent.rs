//! The agent of a node.

use super::{HostAction, Rsvp, RsvpLog, RsvpSample, address_of};
use crate::agent::{Address, Agent, AgentMessage, Context, OutboundMessage};
use crate::id::NodeId;
use crate::network::Network;
use cutline_rsvp::encapsulation::Carrier;
use cutline_rsvp::engine::{
    ArrivedMessage, Datagram, Engine, EngineOutput, EngineStart, InterfaceConfig, InterfaceId, LocalSender,
    Route, RouteKey,
};
use cutline_units::{Hint, Instant, RandomStream, Rate, Streams};
use rand_core::Rng as _;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// The bytes of the header of IPv4, and of its option Router Alert.
const IP_HEADER: usize = 20;
const ROUTER_ALERT: usize = 4;
/// Length of the envelope before a message in the payload of a packet: TTL, source, destination.
const ENVELOPE: usize = 9;

pub(super) struct RsvpAgent {
    rsvp: Arc<Rsvp>,
    topology: Arc<Network>,
    address: Address,
    random: RandomStream,
    log: RsvpLog,
    engine: Engine,
    /// The next nodes, in the order of the interfaces.
    next_nodes: Vec<NodeId>,
    /// The routes that the engine has requested.
    asked: BTreeSet<RouteKey>,
    /// Routes that are not those of the topology.
    rerouted: BTreeMap<NodeId, NodeId>,
    next_action: usize,
    next_sample: Instant,
    starts: u64,
    is_alive: bool,
}

impl RsvpAgent {
    pub(super) fn new(
        rsvp: Arc<Rsvp>,
        topology: Arc<Network>,
        address: Address,
        mut random: RandomStream,
        log: RsvpLog,
    ) -> Self {
        let mut next_nodes: Vec<NodeId> = Vec::new();
        for link in topology.links().iter().filter(|link| link.from == address.node) {
            if !next_nodes.contains(&link.to) {
                next_nodes.push(link.to);
            }
        }
        let engine = engine(&rsvp, &topology, address.node, &next_nodes, 1, &mut random);
        let next_sample =
            if rsvp.sample.is_zero() { Instant::FAR_FUTURE } else { Instant::ZERO + rsvp.sample };
        let mut this = Self {
            rsvp,
            topology,
            address,
            random,
            log,
            engine,
            next_nodes,
            asked: BTreeSet::new(),
            rerouted: BTreeMap::new(),
            next_action: 0,
            next_sample,
            starts: 1,
            is_alive: true,
        };
        this.skip_to_own_action();
        this
    }

    fn skip_to_own_action(&mut self) {
        let rest = self.rsvp.actions[self.next_action..].iter();
        self.next_action += rest.take_while(|(_, node, _)| *node != self.address.node).count();
    }

    fn act(&mut self, now: Instant, action: HostAction) {
        // A mistake of an application is an error in the actions.
        const ALLOWED: &str = "the actions have values that are allowed";
        match action {
            HostAction::Send { session, sender, tspec } => {
                let route = self.route(RouteKey::to(session.destination));
                let Some((interface, next_hop)) = route.outgoing.first().copied() else { return };
                let local = LocalSender { sender, tspec, interface, next_hop, advertise: true };
                self.engine.send_path(now, session, &local).expect(ALLOWED);
            }
            HostAction::EndSend { session, sender } => self.engine.end_path(now, session, sender),
            HostAction::Reserve(session, wanted) => self.engine.reserve(now, session, wanted).expect(ALLOWED),
            HostAction::Release(session) => self.engine.release_reservation(now, session),
            HostAction::Restart => {
                self.starts += 1;
                self.engine = engine(
                    &self.rsvp,
                    &self.topology,
                    self.address.node,
                    &self.next_nodes,
                    self.starts,
                    &mut self.random,
                );
                self.asked.clear();
            }
            HostAction::Vanish => self.is_alive = false,
            HostAction::Reroute { destination, via } => {
                self.rerouted.insert(destination, via);
                for key in self.asked.clone() {
                    let route = self.route(key);
                    self.engine.set_route(now, key, &route);
                }
            }
        }
    }

    /// The route of packets to a node; none if they end here, or the node does not exist.
    fn route(&self, key: RouteKey) -> Route {
        let destination = match key.destination {
            IpAddr::V4(v4) => v4.to_bits().checked_sub(0x0a00_0001).map(NodeId),
            IpAddr::V6(_) => None,
        };
        let next = |to: NodeId| {
            let is_node =
                |node: NodeId| self.topology.links().iter().any(|link| link.from == node || link.to == node);
            let known = self.rerouted.get(&to).copied();
            known.or_else(|| {
                let links =
                    if is_node(to) { self.topology.route(self.address.node, to).ok()? } else { return None };
                links.first().map(|link| self.topology.link(*link).to)
            })
        };
        let next = destination.and_then(next);
        let at = next.and_then(|next| self.next_nodes.iter().position(|node| *node == next));
        let outgoing = at.map(|at| (InterfaceId(at as u32 + 1), Some(address_of(self.next_nodes[at]))));
        Route { incoming: None, outgoing: outgoing.into_iter().collect() }
    }

    fn collect(&mut self, now: Instant, context: &mut Context<'_>) {
        while let Some(output) = self.engine.poll() {
            match output {
                EngineOutput::Send(datagram) => self.send(&datagram, context),
                EngineOutput::AskRoute(key) => {
                    self.asked.insert(key);
                    let route = self.route(key);
                    self.engine.set_route(now, key, &route);
                }
                EngineOutput::ForgetRoute(key) => drop(self.asked.remove(&key)),
                EngineOutput::Event(event) => {
                    self.log.with(|record| record.events.push((now, self.address.node, event)));
                }
                // The links of the simulator do not police.
                EngineOutput::Control(_) => {}
            }
        }
    }

    fn send(&mut self, datagram: &Datagram, context: &mut Context<'_>) {
        let Some(next) = self.next_nodes.get(datagram.interface.0 as usize - 1) else { return };
        if !self.is_alive || self.random.chance(self.rsvp.loss) {
            return;
        }
        let mut payload = vec![datagram.ttl];
        for address in [datagram.source, datagram.destination] {
            let IpAddr::V4(v4) = address else { return };
            payload.extend(v4.octets());
        }
        payload.extend(&datagram.bytes);
        let size = IP_HEADER + if datagram.router_alert { ROUTER_ALERT } else { 0 } + datagram.bytes.len();
        let to = Address { node: *next, port: self.address.port };
        context.send(OutboundMessage {
            to,
            size: size as u32,
            hint: Hint::LEAST_DELAY,
            payload: payload.into(),
        });
    }

    fn sample(&self, now: Instant) {
        let reserved = self.next_nodes.iter().enumerate().filter_map(|(at, node)| {
            self.engine.share(InterfaceId(at as u32 + 1)).map(|share| (*node, share.reserved()))
        });
        let sample = RsvpSample {
            stats: self.engine.stats().clone(),
            sizes: self.engine.sizes(),
            reserved: reserved.collect(),
        };
        self.log.with(|record| record.samples.push((now, self.address.node, sample)));
    }

    fn next_own_action(&self) -> Option<&(Instant, NodeId, HostAction)> {
        self.rsvp.actions.get(self.next_action)
    }
}

/// Builds a node's engine, with an interface for each of its links.
fn engine(
    rsvp: &Rsvp,
    topology: &Network,
    node: NodeId,
    next_nodes: &[NodeId],
    starts: u64,
    random: &mut RandomStream,
) -> Engine {
    let mut secret = [0; 32];
    random.fill_bytes(&mut secret);
    // Another stream for each start, so that neighbours see another epoch.
    let own = Streams::new(random.next_u64()).stream("engine", "rsvp");
    let start = EngineStart { params: rsvp.params.clone(), secret, sequence: starts << 48, random: own };
    let mut engine = Engine::new(start).expect("the parameters have been checked");
    for next in next_nodes {
        let link = topology.links().iter().find(|link| link.from == node && link.to == *next);
        let rate = link.map_or(Rate::ZERO, |link| link.rate);
        let config = InterfaceConfig {
            share: Some(rsvp.share.clone()),
            ..InterfaceConfig::new(address_of(node), rate)
        };
        engine.add_interface(config).expect("the share has been checked");
    }
    engine
}

impl Agent for RsvpAgent {
    fn on_message(&mut self, now: Instant, message: &AgentMessage, context: &mut Context<'_>) {
        let at = self.next_nodes.iter().position(|node| *node == message.from.node);
        let (Some(at), Some((envelope, bytes))) = (at, message.payload.split_first_chunk::<ENVELOPE>())
        else {
            return;
        };
        if !self.is_alive {
            return;
        }
        let [ttl, addresses @ ..] = *envelope;
        let [source, destination] = [0, 4].map(|at| {
            let octets: [u8; 4] = std::array::from_fn(|byte| addresses[at + byte]);
            IpAddr::from(Ipv4Addr::from(octets))
        });
        let arrival = ArrivedMessage {
            interface: InterfaceId(at as u32 + 1),
            source,
            destination,
            ttl: Some(ttl),
            carrier: Carrier::Raw,
            bytes,
        };
        self.engine.receive(now, &arrival);
        self.collect(now, context);
    }

    fn deadline(&self) -> Instant {
        let action = self.next_own_action().map_or(Instant::FAR_FUTURE, |(at, _, _)| *at);
        let engine = if self.is_alive { self.engine.deadline() } else { Instant::FAR_FUTURE };
        action.min(engine).min(self.next_sample)
    }

    fn on_deadline(&mut self, now: Instant, context: &mut Context<'_>) {
        while let Some((at, _, action)) = self.next_own_action()
            && *at <= now
        {
            let action = action.clone();
            self.next_action += 1;
            self.skip_to_own_action();
            self.act(now, action);
            self.collect(now, context);
        }
        if self.is_alive {
            self.engine.handle_deadline(now);
            self.collect(now, context);
        }
        if self.next_sample <= now {
            self.next_sample = now + self.rsvp.sample;
            self.sample(now);
        }
    }
}
