//! Agents: programs at nodes that send messages to each other through the network, as control planes do.
//!
//! An [`Agent`] is sans-IO: a message or its deadline comes in, messages and the next deadline go out. It runs here
//! unchanged from a daemon or a socket. A message is bytes; on its way it is a packet like any other: it waits in the
//! queues of the links that lead to its address, and may be dropped there.
//!
//! An agent may look at what the ends of flows have counted ([`Context::counts`]) and set a flow's hint: it stands for the
//! part of an end system that does so. The first agents are in [`crate::adaptive`].

use crate::flow::{Background, Sending};
use crate::network::NodeId;
use cutline_units::{Duration, Hint, Instant, RandomStream};
use std::fmt::Debug;
use std::sync::Arc;

/// Where an agent is: a node, and a number that tells it from the other agents there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The node.
    pub node: NodeId,
    /// The number. Those from 2^31 on belong to flows whose hint adapts.
    pub port: u32,
}

/// A message from one agent to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Who has sent it.
    pub from: Address,
    /// Who it is for.
    pub to: Address,
    /// What it says.
    pub payload: Arc<[u8]>,
}

/// A message that an agent sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outbound {
    /// Who it is for. Without an agent there, or without links that lead there, it is lost and counted.
    pub to: Address,
    /// What it takes on the wire, headers included, bytes; at least 1.
    pub size: u32,
    /// Its delay hint.
    pub hint: Hint,
    /// What it says.
    pub payload: Arc<[u8]>,
}

/// A program at a node.
///
/// It is called with a message, or once its deadline has come. After each call the engine asks for the deadline again.
pub trait Agent: Send {
    /// A message has arrived.
    fn on_message(&mut self, now: Instant, message: &Message, context: &mut Context<'_>);

    /// When [`Agent::on_deadline`] is to be called; [`Instant::FAR_FUTURE`] if never.
    fn deadline(&self) -> Instant;

    /// The deadline has come.
    fn on_deadline(&mut self, now: Instant, context: &mut Context<'_>);
}

/// What makes an agent: a network is a description, and may be simulated many times.
pub trait AgentSpec: Debug + Send + Sync {
    /// The agent at an address, before its first call. Its random numbers come from `random`.
    fn build(&self, address: Address, random: RandomStream) -> Box<dyn Agent>;
}

/// What the ends of a flow have counted since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounts {
    /// Data packets that have left the source.
    pub sent: u64,
    /// Data packets that have reached the sink. This and what follows stays zero unless the flow is
    /// [observed](crate::Network::observe).
    pub received: u64,
    /// Payload bytes that the application at the sink has got.
    pub delivered_bytes: u64,
    /// The sum of the one-way delays of the packets received.
    pub one_way: Duration,
}

/// What an agent can see and do while it is called.
pub struct Context<'s> {
    pub(crate) sending: &'s [Sending],
    pub(crate) background: &'s [Background],
    pub(crate) actions: &'s mut Vec<Action>,
}

/// What an agent has done; it takes effect when the call is over.
#[derive(Debug)]
pub(crate) enum Action {
    Send(Outbound),
    SetHint { flow: usize, hint: Hint, centre: Hint },
}

impl Context<'_> {
    /// Sends a message.
    pub fn send(&mut self, message: Outbound) {
        debug_assert!(message.size > 0, "a message takes at least a byte on the wire");
        self.actions.push(Action::Send(message));
    }

    /// What the ends of a flow have counted; `flow` is an index into [`crate::Network::flows`].
    pub fn counts(&self, flow: usize) -> FlowCounts {
        let received = self.background[flow].observed.as_deref().copied().unwrap_or_default();
        FlowCounts { sent: self.sending[flow].record.total(), ..received }
    }

    /// The hint that the packets of a flow have.
    pub fn hint(&self, flow: usize) -> Hint {
        self.sending[flow].hint
    }

    /// Sets the hint that the packets of a flow have from now on, acknowledgements included. `centre` is the hint that
    /// this one may be a trial around; it is recorded beside it.
    pub fn set_hint(&mut self, flow: usize, hint: Hint, centre: Hint) {
        self.actions.push(Action::SetHint { flow, hint, centre });
    }
}
