//! Running agents: their messages become packets, and their deadlines become events.

use super::EventLoop;
use crate::agent::{
    Address, Agent, AgentMessage, Context, FlowCounts, HostAction, OutboundMessage, ReadFlows,
};
use crate::calendar::EventHandle;
use crate::engine::endpoints::Endpoints as _;
use crate::flow::{Background, Sending};
use crate::id::LinkId;
use crate::messages::Messages;
use crate::network::Network;
use crate::packet::Packet;
use crate::route::{EventKind, Hop};
use cutline_transport::LazyTimer;
use cutline_units::{Hint, Instant};
use std::collections::BTreeMap;

/// All agents, and their messages in transit.
#[derive(Default)]
pub(crate) struct Agents {
    members: Vec<Member>,
    by_address: BTreeMap<Address, usize>,
    /// The beginnings of the routes between two agents; `None` if no links lead there.
    routes: BTreeMap<(usize, usize), Option<Begin>>,
    pub(super) messages: Messages,
    /// The network in which routes are searched; `None` without agents.
    network: Option<Box<Network>>,
    /// Number of messages without a destination.
    pub(crate) undeliverable: u64,
}

struct Member {
    address: Address,
    /// `None` while the agent is called.
    agent: Option<Box<dyn Agent>>,
    /// The event of its deadline.
    timer: LazyTimer,
}

/// The beginning of a message's path.
#[derive(Clone, Copy)]
enum Begin {
    /// At the beginning of a route.
    Route(u32),
    /// Both agents are at the same node, so the message crosses no link.
    Here,
}

/// Read access of agents to the flows.
struct FlowsRead<'s> {
    sending: &'s [Sending],
    background: &'s [Option<Box<Background>>],
}

impl ReadFlows for FlowsRead<'_> {
    fn counts(&self, flow: usize) -> FlowCounts {
        let background = self.background.get(flow).and_then(Option::as_ref);
        let rare = background.and_then(|background| background.rare.as_ref());
        let received = rare.and_then(|rare| rare.observed).unwrap_or_default();
        FlowCounts { sent: self.sending[flow].record.total(), ..received }
    }

    fn hint(&self, flow: usize) -> Hint {
        self.sending[flow].hint
    }
}

impl EventLoop {
    /// Sets up a network's agents, after its flows.
    pub(super) fn add_agents(&mut self, network: &Network) {
        for entry in network.agents() {
            let random = self.parts.streams.stream(&entry.name, "agent");
            let agent = entry.agent.build(entry.address, random);
            let index = self.add_agent(entry.address, agent);
            self.arm_agent(index);
        }
        if !self.agents.members.is_empty() {
            self.agents.network = Some(Box::new(network.clone()));
        }
    }

    /// Adds an agent. The caller arms its deadline after everything else is set up.
    pub(super) fn add_agent(&mut self, address: Address, agent: Box<dyn Agent>) -> usize {
        let index = self.agents.members.len();
        let taken = self.agents.by_address.insert(address, index);
        assert!(taken.is_none(), "a network refuses a second agent at {address:?}");
        self.agents.members.push(Member { address, agent: Some(agent), timer: LazyTimer::default() });
        index
    }

    /// Sets the links that messages from one agent to another take.
    pub(super) fn add_agent_route(&mut self, from: usize, to: usize, links: &[LinkId]) {
        let route = self.parts.add_route(links, Hop::new(EventKind::Agent, to));
        self.agents.routes.insert((from, to), Some(Begin::Route(route)));
    }

    /// Handles a message that reaches an agent, or an agent's deadline.
    #[cold]
    pub(super) fn reach_agent(&mut self, now: Instant, handle: EventHandle, index: usize) {
        self.calendar.release(handle);
        match self.agents.messages.take(handle) {
            Some(message) => {
                self.call_agent(index, now, |agent, context| agent.on_message(now, &message, context));
            }
            None if self.agents.members[index].timer.take(now) => {
                self.call_agent(index, now, |agent, context| {
                    if agent.deadline() <= now {
                        agent.on_deadline(now, context);
                    }
                });
            }
            None => {}
        }
    }

    fn call_agent(
        &mut self,
        index: usize,
        now: Instant,
        call: impl FnOnce(&mut dyn Agent, &mut Context<'_>),
    ) {
        let mut agent = self.agents.members[index].agent.take().expect("an agent does not call itself");
        let mut actions = Vec::new();
        let flows = FlowsRead { sending: &self.parts.sending, background: &self.parts.background };
        let mut context = Context { flows: &flows, actions: &mut actions };
        call(&mut *agent, &mut context);
        self.agents.members[index].agent = Some(agent);
        for action in actions {
            match action {
                HostAction::Send(outbound) => self.send_message(now, index, outbound),
                HostAction::SetHint { flow, hint, centre } => self.set_hint(now, flow, hint, centre),
            }
        }
        self.arm_agent(index);
    }

    pub(super) fn arm_agent(&mut self, index: usize) {
        let member = &mut self.agents.members[index];
        let deadline = member.agent.as_ref().map_or(Instant::FAR_FUTURE, |agent| agent.deadline());
        if let Some(at) = member.timer.set(deadline) {
            self.schedule_timer(at, EventKind::Agent, index);
        }
    }

    fn send_message(&mut self, now: Instant, from: usize, outbound: OutboundMessage) {
        let OutboundMessage { to, size, hint, payload } = outbound;
        assert!(
            size < Packet::SIZE_LIMIT,
            "a message of {size} B is too large: allowed are less than 16 MiB"
        );
        let begin = self.agents.by_address.get(&to).copied().and_then(|to| {
            let begin = self.begin(from, to)?;
            Some((to, begin))
        });
        let Some((index, begin)) = begin else {
            self.agents.undeliverable += 1;
            return;
        };
        let handle = self.calendar.allocate();
        let message = AgentMessage { from: self.agents.members[from].address, to, payload };
        self.agents.messages.put(handle, message);
        match begin {
            Begin::Route(position) => {
                self.send(now, handle, Packet::without_header(size, position, hint));
            }
            Begin::Here => {
                *self.calendar.payload_mut(handle) = Packet::without_header(size, 0, hint);
                self.calendar.schedule(now, handle, Hop::new(EventKind::Agent, index).tag());
            }
        }
    }

    /// Returns the beginning of the path from one agent to another. The route is searched once.
    fn begin(&mut self, from: usize, to: usize) -> Option<Begin> {
        if let Some(begin) = self.agents.routes.get(&(from, to)) {
            return *begin;
        }
        let [source, sink] = [from, to].map(|index| self.agents.members[index].address.node);
        let begin = if source == sink {
            Some(Begin::Here)
        } else {
            let network = self.agents.network.as_deref().expect("there are agents, so there is a network");
            let links = network.route(source, sink).ok();
            links.map(|links| Begin::Route(self.parts.add_route(&links, Hop::new(EventKind::Agent, to))))
        };
        self.agents.routes.insert((from, to), begin);
        begin
    }

    fn set_hint(&mut self, now: Instant, flow: usize, hint: Hint, centre: Hint) {
        self.parts.sending[flow].hint = hint;
        self.parts.receiving[flow].hint = hint;
        self.parts.rare_of(flow).centre = Some(centre);
        if let Some(Some(series)) = self.parts.series.get_mut(flow) {
            series.adapted(now, hint, centre);
        }
    }
}
