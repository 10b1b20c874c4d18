//! Agents: programs at nodes that send messages to each other through the network, as control planes do.
//!
//! An [`Agent`] is sans-IO: its input is a message or its deadline, its output are messages and the next deadline. The same
//! agent can run in a daemon or in a socket without change. A message is a sequence of bytes. It crosses the network as a
//! packet: it waits in the queues of the links that lead to its address, and may be dropped there.
//!
//! An agent may read the counters of a flow's endpoints ([`Context::counts`]) and set a flow's hint. It represents the part
//! of an end system that does so. The first agents are in [`crate::adaptive`].

use crate::id::NodeId;
use cutline_units::{Duration, Hint, Instant, RandomStream};
use std::fmt::Debug;
use std::sync::Arc;

/// The address of an agent: a node, and a port number that distinguishes the agents at the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The node.
    pub node: NodeId,
    /// The port number. Numbers from 2^31 on belong to flows with an adaptive hint.
    pub port: u32,
}

/// A message from one agent to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentMessage {
    /// The sender's address.
    pub from: Address,
    /// The receiver's address.
    pub to: Address,
    /// Its content.
    pub payload: Arc<[u8]>,
}

/// A message that an agent sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboundMessage {
    /// The receiver's address. If no agent is there, or no links lead there, the message is lost and counted.
    pub to: Address,
    /// Size on the wire, headers included, bytes; at least 1, and less than 16 MiB.
    pub size: u32,
    /// Its delay hint.
    pub hint: Hint,
    /// Its content.
    pub payload: Arc<[u8]>,
}

/// A program at a node.
///
/// The engine calls it when a message arrives and when its deadline is due. After each call the engine reads the deadline
/// again.
pub trait Agent: Send {
    /// Handles a message that has arrived.
    fn on_message(&mut self, now: Instant, message: &AgentMessage, context: &mut Context<'_>);

    /// Returns the time at which [`Agent::on_deadline`] is to be called; [`Instant::FAR_FUTURE`] if never.
    fn deadline(&self) -> Instant;

    /// Handles the deadline.
    fn on_deadline(&mut self, now: Instant, context: &mut Context<'_>);
}

/// A specification from which an agent is built. A network is a description and may be simulated many times.
pub trait AgentSpec: Debug + Send + Sync {
    /// Builds the agent at an address. It takes its random numbers from `random`.
    fn build(&self, address: Address, random: RandomStream) -> Box<dyn Agent>;
}

/// The counters of a flow's endpoints since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounts {
    /// Data packets that have left the source.
    pub sent: u64,
    /// Data packets that have reached the sink. This counter and the following ones stay zero unless the flow is
    /// [observed](crate::Network::observe).
    pub received: u64,
    /// Payload bytes delivered to the application at the sink.
    pub delivered_bytes: u64,
    /// The sum of the one-way delays of the packets received.
    pub one_way: Duration,
}

/// Read access of a [`Context`] to the flows.
pub(crate) trait ReadFlows {
    /// Returns the counters of a flow's endpoints.
    fn counts(&self, flow: usize) -> FlowCounts;

    /// Returns the current hint of a flow's packets.
    fn hint(&self, flow: usize) -> Hint;
}

/// Access of an agent to the simulation during a call.
pub struct Context<'s> {
    pub(crate) flows: &'s dyn ReadFlows,
    pub(crate) actions: &'s mut Vec<HostAction>,
}

/// An action of an agent, which takes effect after the call.
#[derive(Debug)]
pub(crate) enum HostAction {
    Send(OutboundMessage),
    SetHint { flow: usize, hint: Hint, centre: Hint },
}

impl Context<'_> {
    /// Sends a message.
    pub fn send(&mut self, message: OutboundMessage) {
        debug_assert!(message.size > 0, "a message takes at least a byte on the wire");
        self.actions.push(HostAction::Send(message));
    }

    /// Returns the counters of a flow's endpoints; `flow` is an index into [`crate::Network::flows`].
    pub fn counts(&self, flow: usize) -> FlowCounts {
        self.flows.counts(flow)
    }

    /// Returns the current hint of a flow's packets.
    pub fn hint(&self, flow: usize) -> Hint {
        self.flows.hint(flow)
    }

    /// Sets the hint of a flow's packets from now on, acknowledgements included. `centre` is the hint around which this one
    /// may be a trial; it is recorded as well.
    pub fn set_hint(&mut self, flow: usize, hint: Hint, centre: Hint) {
        self.actions.push(HostAction::SetHint { flow, hint, centre });
    }
}
