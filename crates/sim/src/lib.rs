//! A discrete-event simulator of networks: any graph of links, each with a queue of the `aqm` crate in front of it,
//! and flows with the endpoints of the `transport` crate. Both directions are real: acknowledgements queue too.
//!
//! The queues and endpoints are the very objects that the router and the sockets run; the simulator only moves
//! handles and time. It is itself without a clock, input or output: a [`Network`] and [`Settings`] go in, an
//! [`Outcome`] comes out, and the same seed gives the same outcome to the last bit.
//!
//! ```text
//! network, dumbbell   what there is: nodes, links, flows, routes
//! engine              the event loop: moves packets, drives the endpoints
//!   calendar          what comes next
//!   wire, served      links: folded into arithmetic, or with an event per packet
//!   route             what an event or a packet comes to
//!   flow              a flow at work, in three parts
//!   packet            a packet and its header
//!   agent             programs at nodes that send each other messages, such as control planes
//!   adaptive          a flow whose hint follows what its receiver reports, as two agents
//! measure             histograms, interval series, records
//! watch               what a capture at a link would see
//! outside             flows whose ends are real hosts
//! outcome             what was found
//! ```

mod adaptive;
mod agent;
mod calendar;
mod dumbbell;
mod engine;
mod flow;
pub mod measure;
mod network;
mod outcome;
mod outside;
mod packet;
mod route;
mod served;
mod watch;
mod wire;

pub use adaptive::AdaptiveHint;
pub use agent::{Address, Agent, AgentSpec, Context, FlowCounts, Message, Outbound};
pub use calendar::{Calendar, Handle};
pub use dumbbell::{Bottleneck, Dumbbell, Pair};
pub use engine::{Settings, Simulation, run};
pub use measure::Window;
pub use network::{
    AgentEntry, Distributions, FlowSpec, GroupId, LinkId, LinkSpec, Network, NetworkError, NodeId,
};
pub use outcome::{BacklogOutcome, FlowOutcome, LinkOutcome, Outcome, Work};
pub use outside::{Fate, Injected, Left, Part};
pub use watch::{Event, Observation, SeenHeader, SeenPacket};
pub use wire::LinkCounts;
