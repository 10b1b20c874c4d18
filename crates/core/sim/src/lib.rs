//! A discrete-event simulator of networks: any graph of links, each with a queue of the `aqm` crate in front of it,
//! and flows with the endpoints of the `transport` crate. Both directions are real: acknowledgements queue too.
//!
//! The queues and endpoints are the same objects that the router and the sockets use. The simulator only moves handles and
//! time. It has no clock, input or output: a [`Network`] and [`SimulationSettings`] go in, an [`SimulationOutcome`] comes out. The same seed
//! gives the same outcome to the last bit.
//!
//! ```text
//! network, dumbbell   the description: nodes, links, flows, routes
//! id                  the numbers of its parts
//! engine              moves packets, calls the endpoints: in stages, or event by event
//!   calendar          the queue of events
//!   fifo_link         links that are folded into arithmetic
//!   queued_link       links with an event per packet
//!   transmitter       a rate that changes while a packet is on the wire
//!   deliveries        recorded times at which a link delivers
//!   aal5              packets in cells of ATM
//!   impairment        loss, reordering and jitter on the wire behind them
//!   route             routes and event tags
//!   paths             shortest paths of equal cost
//!   flow              the state of a flow, in three parts
//!   packet            a packet and its header
//!   messages          the bytes beside the packets between agents
//!   agent             programs at nodes that send each other messages, such as control planes
//!   adaptive          two agents that adapt a flow's hint to the reports of its receiver
//!   qos               QoS connections: the end system's protocols as agents
//!   managed           managers of hosts, which limit QoS connections
//!   rsvp              reservations: the engine of `rsvp` as an agent at hosts and routers
//! measure             histograms, interval series, records
//! watch               packets at a link, as a capture shows them
//! external            flows whose endpoints are real hosts
//! outcome             the result of a run
//! ```

mod aal5;
mod adaptive;
mod agent;
mod calendar;
mod deliveries;
mod dumbbell;
mod engine;
mod external;
mod fifo_link;
mod flow;
mod id;
pub mod impairment;
pub mod managed;
pub mod measure;
mod messages;
mod network;
mod outcome;
mod packet;
mod paths;
mod places;
pub mod qos;
mod queued_link;
mod route;
pub mod rsvp;
mod tight;
mod transmitter;
mod waiting;
mod watch;

pub use aal5::Aal5Params;
pub use adaptive::AdaptiveHint;
pub use agent::{Address, Agent, AgentMessage, AgentSpec, Context, FlowCounts, OutboundMessage};
pub use calendar::{Calendar, EventHandle};
pub use deliveries::{DELIVERY_BYTES, Deliveries};
pub use dumbbell::{Bottleneck, Dumbbell, Impairments, Pair};
pub use engine::{
    EndedShard, Mail, Shard, ShardPlan, Simulation, SimulationSettings, StageObstacle, StagePlan, run,
};
pub use external::{FinishedPacket, InjectedPacket, PacketOutcome, PacketRole};
pub use fifo_link::LinkCounts;
pub use id::{GroupId, LinkId, NodeId};
pub use impairment::ImpairmentParams;
pub use measure::Window;
pub use network::{AgentEntry, Distributions, FlowSpec, LinkSpec, Network, NetworkError, draw_start};
pub use outcome::{BacklogOutcome, FlowOutcome, LinkOutcome, SimulationOutcome, Work};
pub use paths::{EqualCostPaths, PathCount};
pub use watch::{Observation, QueueEvent, SeenHeader, SeenPacket};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
