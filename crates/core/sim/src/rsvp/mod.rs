//! RSVP in the simulator: an agent at every node of a network, with the engine of a daemon ([`cutline_rsvp::engine`]).
//!
//! Every link that leaves a node is an interface of its engine, with the link's rate. A message crosses the link as a packet: it waits in
//! the link's queue and may be dropped there. Requests of applications, and failures, are a list of [`HostAction`]s with their times.
//!
//! ```text
//! actions -> Engine -> messages -> links and queues -> Engine of the next node -> ...
//!               \                                         /
//!                events, samples -> RsvpLog <- events, samples
//! ```
//!
//! A node has one address for all of its links ([`address_of`]); routes are those with the fewest links, until an action changes one.
//! Both directions of a path need a link. Sizes on the wire include the header of IPv4, with Router Alert where a message has it.

mod agent;

use crate::agent::{Address, Agent, AgentSpec};
use crate::id::NodeId;
use crate::network::{Network, NetworkError};
use agent::RsvpAgent;
use cutline_params::{ParameterError, Parameters as _};
use cutline_rsvp::admission::ShareParams;
use cutline_rsvp::engine::{EngineParams, Reservation, RsvpEvent, Sizes, Stats};
use cutline_rsvp::intserv::Tspec;
use cutline_rsvp::object::{Sender, Session};
use cutline_units::{Duration, Instant, Probability, RandomStream, Rate, lock};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

/// RSVP at all nodes of a network.
#[derive(Clone, Debug)]
pub struct Rsvp {
    /// Parameters of each engine.
    pub params: EngineParams,
    /// Reservable share of each link.
    pub share: ShareParams,
    /// The port of the agents, below 2^31.
    pub port: u32,
    /// The probability that a message is lost on a link, beside drops of its queue.
    pub loss: Probability,
    /// Actions in the order of time.
    pub actions: Vec<(Instant, NodeId, HostAction)>,
    /// Interval between samples; [`Duration::ZERO`] for none.
    pub sample: Duration,
}

/// Action at a node.
#[derive(Clone, Debug)]
pub enum HostAction {
    /// An application sends.
    Send {
        /// The session.
        session: Session,
        /// The sender, whose address is that of the node.
        sender: Sender,
        /// Its traffic.
        tspec: Tspec,
    },
    /// End a sender.
    EndSend {
        /// The session.
        session: Session,
        /// The sender.
        sender: Sender,
    },
    /// An application reserves.
    Reserve(Session, Reservation),
    /// Release a reservation.
    Release(Session),
    /// The engine loses all that it knows.
    Restart,
    /// The node falls silent.
    Vanish,
    /// Packets to a node leave by the link to another one from now on.
    Reroute {
        /// Destination of the packets.
        destination: NodeId,
        /// The next node.
        via: NodeId,
    },
}

/// Log of all nodes. The simulation fills it.
#[derive(Clone, Debug, Default)]
pub struct RsvpLog(Arc<Mutex<RsvpRecord>>);

/// The content of an [`RsvpLog`].
#[derive(Clone, Debug, Default)]
pub struct RsvpRecord {
    /// Events of applications.
    pub events: Vec<(Instant, NodeId, RsvpEvent)>,
    /// The samples.
    pub samples: Vec<(Instant, NodeId, RsvpSample)>,
}

/// The state of a node at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct RsvpSample {
    /// Its counters.
    pub stats: Stats,
    /// Amounts of state.
    pub sizes: Sizes,
    /// Reserved rates of its links, by the next node.
    pub reserved: BTreeMap<NodeId, Rate>,
}

impl RsvpLog {
    /// Returns the records so far.
    pub fn read(&self) -> RsvpRecord {
        self.with(|record| record.clone())
    }

    fn with<T>(&self, read: impl FnOnce(&mut RsvpRecord) -> T) -> T {
        read(&mut lock(&self.0))
    }
}

impl RsvpRecord {
    /// Returns the last sample of a node.
    pub fn last(&self, node: NodeId) -> Option<&RsvpSample> {
        self.samples.iter().rev().find(|(_, at, _)| *at == node).map(|(_, _, sample)| sample)
    }
}

impl Default for Rsvp {
    fn default() -> Self {
        Self {
            params: EngineParams::default(),
            share: ShareParams::default(),
            port: 46,
            loss: Probability::ZERO,
            actions: Vec::new(),
            sample: Duration::ZERO,
        }
    }
}

/// Returns the address of a node: 10.0.0.1 for the first.
pub fn address_of(node: NodeId) -> IpAddr {
    Ipv4Addr::from_bits(0x0a00_0001 + node.0).into()
}

impl Rsvp {
    /// Adds an agent to every node that has links: `rsvp.NODE`. Links that are added later have none. Returns the log.
    ///
    /// # Errors
    /// When a parameter is not allowed, or an address is taken.
    pub fn connect(mut self, network: &mut Network) -> Result<RsvpLog, NetworkError> {
        let wrong = |error: ParameterError| NetworkError::Connection { connection: "rsvp".into(), error };
        self.params.validate().map_err(wrong)?;
        self.share.validate().map_err(wrong)?;
        self.actions.sort_by_key(|(at, _, _)| *at);
        let log = RsvpLog::default();
        let topology = Arc::new(network.clone());
        let mut nodes: Vec<NodeId> = network.links().iter().flat_map(|link| [link.from, link.to]).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let everything = Arc::new(self);
        for node in nodes {
            let name = format!("rsvp.{}", network.node_name(node));
            let spec =
                NodeSpec { rsvp: Arc::clone(&everything), topology: Arc::clone(&topology), log: log.clone() };
            network.add_agent(name, Address { node, port: everything.port }, Arc::new(spec))?;
        }
        Ok(log)
    }
}

#[derive(Debug)]
struct NodeSpec {
    rsvp: Arc<Rsvp>,
    topology: Arc<Network>,
    log: RsvpLog,
}

impl AgentSpec for NodeSpec {
    fn build(&self, address: Address, random: RandomStream) -> Box<dyn Agent> {
        self.log.with(|record| *record = RsvpRecord::default());
        Box::new(RsvpAgent::new(
            Arc::clone(&self.rsvp),
            Arc::clone(&self.topology),
            address,
            random,
            self.log.clone(),
        ))
    }
}
