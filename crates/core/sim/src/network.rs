//! The network to simulate: nodes, links with their queues, and flows with their routes.
//!
//! A [`Network`] is a plain description that is checked while it is built; [`crate::run`] simulates it. Links are
//! unidirectional. Routes are static. They are given by the caller, or have the fewest links: among equal routes the one with
//! the link added earlier is taken, or each flow draws one ([`EqualCostPaths`](crate::EqualCostPaths)).

use crate::AdaptiveHint;
use crate::aal5::Aal5Params;
use crate::agent::{Address, AgentSpec};
use crate::deliveries::Deliveries;
use crate::id::{GroupId, LinkId, NodeId};
use crate::impairment::ImpairmentParams;
use crate::tight::push_tightly;
use cutline_aqm::QueueSpec;
use cutline_params::ParameterError;
use cutline_transport::app;
use cutline_transport::endpoint::TransportParams;
use cutline_units::{Duration, Hint, HintBits, HintBudget, Instant, Rate, Streams};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// A link from one node to another, with the queue in front of it.
#[derive(Clone, Debug)]
pub struct LinkSpec {
    /// The node at which it starts.
    pub from: NodeId,
    /// The node at which it ends.
    pub to: NodeId,
    /// Transmission rate.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Duration,
    /// The queue in front of it. Links that are added to a network one after the other share an equal description.
    pub queue: Arc<QueueSpec>,
    /// Changes of the rate, in the order of time.
    pub rate_changes: Vec<(Instant, Rate)>,
    /// The times at which the link delivers, in place of sending at its rate. The queue knows the rate nevertheless.
    pub deliveries: Option<Arc<Deliveries>>,
    /// Reduces a packet's hint by the time that it has waited here; `None` leaves the hint unchanged.
    pub pass_on: Option<HintBudget>,
    /// Loss, reordering and jitter on the wire behind the queue; `None` for a link without them.
    pub impairment: Option<Box<ImpairmentParams>>,
    /// True if to keep the queue's interval series.
    pub series: bool,
}

impl LinkSpec {
    /// A link of constant rate without impairments, whose queue keeps no series.
    pub fn new(
        from: NodeId,
        to: NodeId,
        rate: Rate,
        delay: Duration,
        queue: impl Into<Arc<QueueSpec>>,
    ) -> Self {
        Self {
            from,
            to,
            rate,
            delay,
            queue: queue.into(),
            rate_changes: Vec::new(),
            deliveries: None,
            pass_on: None,
            impairment: None,
            series: false,
        }
    }
}

/// Subjects whose delay distributions are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distributions {
    /// One set per flow, of up to some kilobytes each.
    PerFlow,
    /// One set for the whole group. The flow records means only.
    PerGroup,
}

/// A flow: an application, a transport protocol, a hint and a route through the network.
#[derive(Clone, Debug)]
pub struct FlowSpec {
    /// The flow's name; its random streams are derived from it.
    pub name: String,
    /// The group it belongs to.
    pub group: GroupId,
    /// The links that its data takes.
    pub route: Vec<LinkId>,
    /// The links that acknowledgements and feedback take.
    pub return_route: Vec<LinkId>,
    /// The number of the host that it comes from, if it shares one with other flows. Only queues that separate hosts see it.
    pub host: Option<u32>,
    /// The number of the tunnel that it is in. Queues see the flows of a tunnel as one, between the tunnel's ends, and no other hosts.
    pub tunnel: Option<u32>,
    /// The delay hint on every packet, acknowledgements included.
    pub hint: Hint,
    /// Adaptation of the hint; `None` for a constant hint.
    pub adaptive: Option<Arc<AdaptiveHint>>,
    /// The protocol.
    pub transport: TransportParams,
    /// The application.
    pub app: app::Params,
    /// The start time is drawn uniformly between these two.
    pub start: (Instant, Instant),
    /// The time at which the application stops writing.
    pub stop: Instant,
    /// True if to keep the flow's interval series.
    pub series: bool,
    /// Subjects whose distributions are recorded.
    pub distributions: Distributions,
}

/// The description of a network.
#[derive(Clone, Debug, Default)]
pub struct Network {
    nodes: Vec<String>,
    links: Vec<LinkSpec>,
    groups: Vec<String>,
    flows: Vec<FlowSpec>,
    agents: Vec<AgentEntry>,
    /// The indices of the flows whose arrivals agents can see.
    observed: BTreeSet<usize>,
    watched: BTreeSet<LinkId>,
    external_endpoints: bool,
    /// The links that carry packets in cells.
    cells: BTreeMap<LinkId, Aal5Params>,
}

/// An agent and its address.
#[derive(Clone, Debug)]
pub struct AgentEntry {
    /// The agent's name; its random stream is derived from it.
    pub name: String,
    /// Its address.
    pub address: Address,
    /// The specification from which it is built.
    pub agent: Arc<dyn AgentSpec>,
}

/// Reason why a network cannot be simulated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NetworkError {
    /// No sequence of links leads from the one node to the other.
    #[error("no links lead from node `{from}` to node `{to}`")]
    NoRoute {
        /// The name of the first node.
        from: String,
        /// The name of the last node.
        to: String,
    },
    /// A flow from a node to itself, which crosses no link.
    #[error("flow `{flow}`: its route is empty; a flow must cross at least one link")]
    EmptyRoute {
        /// The flow's name.
        flow: String,
    },
    /// A queue that cannot be built.
    #[error("link `{link}`: {error}")]
    Queue {
        /// The link's name.
        link: String,
        /// The error.
        error: ParameterError,
    },
    /// A parameter of a link's impairment is outside its range.
    #[error("link `{link}`: impairment: {error}")]
    Impairment {
        /// The link's name.
        link: String,
        /// The error.
        error: ParameterError,
    },
    /// A parameter of a flow's transport or application is outside its range.
    #[error("flow `{flow}`: {error}")]
    Flow {
        /// The flow's name.
        flow: String,
        /// The error.
        error: ParameterError,
    },
    /// A parameter of a flow's adaptive hint is outside its range.
    #[error("flow `{flow}`: hint: {error}")]
    Hint {
        /// The flow's name.
        flow: String,
        /// The error.
        error: ParameterError,
    },
    /// Two agents have the same address.
    #[error("agent `{agent}`: `{other}` is at port {port} of node `{node}` already")]
    AddressTaken {
        /// The agent's name.
        agent: String,
        /// The name of the agent that has this address.
        other: String,
        /// The node's name.
        node: String,
        /// The port.
        port: u32,
    },
    /// A parameter of a QoS connection is outside its range.
    #[error("connection `{connection}`: {error}")]
    Connection {
        /// The connection's name.
        connection: String,
        /// The error.
        error: ParameterError,
    },
    /// An application that its transport cannot carry.
    #[error("flow `{flow}`: {app} cannot be sent over {transport}; use TCP{or_tfrc}")]
    Unsuited {
        /// The flow's name.
        flow: String,
        /// The application.
        app: &'static str,
        /// The transport.
        transport: &'static str,
        /// An alternative, as the end of the sentence.
        or_tfrc: &'static str,
    },
}

/// Returns the start time of a flow between the first and the last one, in the run with these random streams.
pub fn draw_start(flow: &str, (first, last): (Instant, Instant), streams: Streams) -> Instant {
    let share = if first == last { 0.0 } else { streams.stream(flow, "start").uniform() };
    first + last.saturating_since(first).mul_f64(share)
}

impl FlowSpec {
    /// Returns a flow with the largest hint that starts at time zero and does not stop. Its host is its own. It keeps its own distributions, and
    /// no series. The routes are those of its data and of its acknowledgements.
    pub fn new(
        name: impl Into<String>,
        group: GroupId,
        [route, return_route]: [Vec<LinkId>; 2],
        transport: TransportParams,
        app: app::Params,
    ) -> Self {
        Self {
            name: name.into(),
            group,
            route,
            return_route,
            host: None,
            tunnel: None,
            hint: HintBits::PAPER.largest(),
            adaptive: None,
            transport,
            app,
            start: (Instant::ZERO, Instant::ZERO),
            stop: Instant::FAR_FUTURE,
            series: false,
            distributions: Distributions::PerFlow,
        }
    }

    /// Returns the flow's start time in the run with these random streams.
    pub fn start_with(&self, streams: Streams) -> Instant {
        draw_start(&self.name, self.start, streams)
    }

    fn check(&self) -> Result<(), NetworkError> {
        let flow = || self.name.clone();
        let checked = self.transport.validate().and_then(|()| self.app.validate());
        checked.map_err(|error| NetworkError::Flow { flow: flow(), error })?;
        let hint = self.adaptive.as_ref().map_or(Ok(()), |adaptive| adaptive.validate());
        hint.map_err(|error| NetworkError::Hint { flow: flow(), error })?;
        let (transport, app) = (self.transport.title(), &self.app);
        if app.needs_reliability() && !self.transport.is_reliable() {
            let app = "an application that waits for every byte";
            return Err(NetworkError::Unsuited { flow: flow(), app, transport, or_tfrc: "" });
        }
        if app.is_endless() && !self.transport.adapts() {
            let app = "bulk data";
            return Err(NetworkError::Unsuited { flow: flow(), app, transport, or_tfrc: " or TFRC" });
        }
        Ok(())
    }
}

impl Network {
    /// Creates an empty network.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a node.
    pub fn add_node(&mut self, name: impl Into<String>) -> NodeId {
        push_tightly(&mut self.nodes, name.into());
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// Adds a unidirectional link.
    pub fn add_link(&mut self, mut link: LinkSpec) -> LinkId {
        if let Some(last) = self.links.last()
            && last.queue == link.queue
        {
            link.queue = Arc::clone(&last.queue);
        }
        push_tightly(&mut self.links, link);
        LinkId(self.links.len() as u32 - 1)
    }

    /// Adds a group of flows.
    pub fn add_group(&mut self, name: impl Into<String>) -> GroupId {
        self.groups.push(name.into());
        GroupId(self.groups.len() as u32 - 1)
    }

    /// Adds a flow.
    ///
    /// # Errors
    /// When one of its routes is empty, a parameter is out of its range, or the transport cannot carry the application.
    pub fn add_flow(&mut self, flow: FlowSpec) -> Result<(), NetworkError> {
        if flow.route.is_empty() || flow.return_route.is_empty() {
            return Err(NetworkError::EmptyRoute { flow: flow.name });
        }
        flow.check()?;
        for pair in [&flow.route, &flow.return_route] {
            let joined = pair.windows(2).all(|two| self.link(two[0]).to == self.link(two[1]).from);
            assert!(joined, "the links of a route must follow each other");
        }
        push_tightly(&mut self.flows, flow);
        Ok(())
    }

    /// Adds an agent.
    ///
    /// # Errors
    /// When another agent has its address.
    pub fn add_agent(
        &mut self,
        name: impl Into<String>,
        address: Address,
        agent: Arc<dyn AgentSpec>,
    ) -> Result<(), NetworkError> {
        let name = name.into();
        if let Some(other) = self.agents.iter().find(|other| other.address == address) {
            return Err(NetworkError::AddressTaken {
                agent: name,
                other: other.name.clone(),
                node: self.node_name(address.node).into(),
                port: address.port,
            });
        }
        self.agents.push(AgentEntry { name, address, agent });
        Ok(())
    }

    /// Counts the arrivals of a flow, so that agents can see them. `flow` is its index in the order of adding.
    pub fn observe(&mut self, flow: usize) {
        self.observed.insert(flow);
    }

    /// Returns whether agents can see the arrivals of a flow.
    pub fn is_observed(&self, flow: usize) -> bool {
        self.observed.contains(&flow)
    }

    /// Returns all agents in the order of adding, without those of adaptive hints.
    pub fn agents(&self) -> &[AgentEntry] {
        &self.agents
    }

    /// Returns the route with the fewest links; among equal routes the one with the link added earlier.
    ///
    /// # Errors
    /// When no route exists.
    pub fn route(&self, from: NodeId, to: NodeId) -> Result<Vec<LinkId>, NetworkError> {
        let mut outgoing = vec![Vec::new(); self.nodes.len()];
        for (id, link) in self.links.iter().enumerate() {
            outgoing[link.from.0 as usize].push(LinkId(id as u32));
        }
        let mut reached_by = vec![None; self.nodes.len()];
        let mut border = VecDeque::from([from]);
        while let Some(node) = border.pop_front() {
            for &link in &outgoing[node.0 as usize] {
                let next = self.link(link).to;
                if next != from && reached_by[next.0 as usize].is_none() {
                    reached_by[next.0 as usize] = Some(link);
                    border.push_back(next);
                }
            }
        }
        let mut route = Vec::new();
        let mut node = to;
        while node != from {
            let no_route =
                || NetworkError::NoRoute { from: self.node_name(from).into(), to: self.node_name(to).into() };
            let link = reached_by[node.0 as usize].ok_or_else(no_route)?;
            route.push(link);
            node = self.link(link).from;
        }
        route.reverse();
        Ok(route)
    }

    /// Returns a link's description.
    pub fn link(&self, id: LinkId) -> &LinkSpec {
        &self.links[id.0 as usize]
    }

    /// Returns the numbers of all links.
    pub fn link_ids(&self) -> impl Iterator<Item = LinkId> + use<> {
        (0..self.links.len() as u32).map(LinkId)
    }

    /// Lets a link carry its packets in cells of ATM.
    pub fn set_cells(&mut self, id: LinkId, aal5: Aal5Params) {
        self.cells.insert(id, aal5);
    }

    /// Returns the cells of a link; `None` if it carries packets as they are.
    pub fn cells(&self, id: LinkId) -> Option<&Aal5Params> {
        self.cells.get(&id)
    }

    /// Gives a link an impairment, in place of the one that it has.
    pub fn impair(&mut self, id: LinkId, impairment: ImpairmentParams) {
        self.links[id.0 as usize].impairment = Some(Box::new(impairment));
    }

    /// Makes every link keep an interval series. Such links are simulated with an event per packet.
    pub fn keep_every_series(&mut self) {
        self.links.iter_mut().for_each(|link| link.series = true);
    }

    /// Watches a link: [`crate::Simulation::take_observations`] reports every packet there. A watched link is simulated with
    /// an event per packet, which changes no result.
    pub fn watch(&mut self, id: LinkId) {
        assert!((id.0 as usize) < self.links.len(), "only a link that exists can be watched");
        self.watched.insert(id);
    }

    /// Returns whether a link is watched.
    pub fn is_watched(&self, id: LinkId) -> bool {
        self.watched.contains(&id)
    }

    /// Makes the endpoints of all flows external: the caller [injects](crate::Simulation::inject) their packets. Adaptive
    /// hints keep their initial value.
    pub fn use_external_endpoints(&mut self) {
        self.external_endpoints = true;
    }

    /// Returns whether the endpoints of all flows are external.
    pub fn has_external_endpoints(&self) -> bool {
        self.external_endpoints
    }

    /// Returns all links in the order of adding.
    pub fn links(&self) -> &[LinkSpec] {
        &self.links
    }

    /// Returns all flows in the order of adding.
    pub fn flows(&self) -> &[FlowSpec] {
        &self.flows
    }

    /// Returns the names of the groups.
    pub fn groups(&self) -> &[String] {
        &self.groups
    }

    /// Returns the number of nodes.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Returns a node's name.
    pub fn node_name(&self, id: NodeId) -> &str {
        &self.nodes[id.0 as usize]
    }

    /// Returns a link's name: `from->to`.
    pub fn link_name(&self, id: LinkId) -> String {
        let link = self.link(id);
        format!("{}->{}", self.node_name(link.from), self.node_name(link.to))
    }

    /// Returns for every link whether all its packets are known to come from the same other link. With agents it is not known: their
    /// messages may take any route. Nor is the order known behind a link that reorders; such a link counts as several.
    pub(crate) fn fed_by_one_link(&self) -> Vec<bool> {
        #[derive(Clone, Copy, PartialEq)]
        enum Feeder {
            Nobody,
            Link(LinkId),
            Several,
        }
        if !self.agents.is_empty() {
            return vec![false; self.links.len()];
        }
        let mut feeders = vec![Feeder::Nobody; self.links.len()];
        for route in self.flows.iter().flat_map(|flow| [&flow.route, &flow.return_route]) {
            feeders[route[0].0 as usize] = Feeder::Several;
            for two in route.windows(2) {
                let feeder = &mut feeders[two[1].0 as usize];
                let reorders = |params: &ImpairmentParams| !params.keeps_order();
                *feeder = match *feeder {
                    _ if self.link(two[0]).impairment.as_deref().is_some_and(reorders) => Feeder::Several,
                    Feeder::Nobody => Feeder::Link(two[0]),
                    Feeder::Link(link) if link == two[0] => Feeder::Link(link),
                    _ => Feeder::Several,
                };
            }
        }
        feeders.iter().map(|feeder| matches!(feeder, Feeder::Link(_))).collect()
    }
}
