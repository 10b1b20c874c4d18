//! Managers of hosts in the simulator: the object of a daemon ([`cutline_manager::Manager`]) at the nodes of senders.
//!
//! A [`SimulatedHost`] is the manager of a node. QoS connections whose source is there may be managed
//! ([`QosConnection::managed`](crate::qos::QosConnection::managed)): they ask it for a flow, keep to the rate that it
//! grants, and report their deliveries. The managers of a path are agents that send each other summaries through the
//! network, where these wait in queues and may be lost.
//!
//! ```text
//! connection -- requests, reports -->  Manager  <-- summaries --> Manager of another node
//!      ^------------- rates ------------'
//! ```
//!
//! A connection and the manager of its node exchange nothing by the network, as on a real host.

use crate::agent::{Address, Agent, AgentMessage, AgentSpec, Context, OutboundMessage};
use crate::network::{Network, NetworkError};
use cutline_manager::feedback::{
    ControllerStats, FeedbackParams, FlowEdges, FlowReport, HostId, PathFeedback, PathId,
};
use cutline_manager::resources::{
    AllocationEvent, Capacities, CarrierKind, ClientKey, CpuShare, FlowId, FlowRequest, ResourceParams,
    SchedulingClass, UserId,
};
use cutline_manager::{FlowRoute, Manager, ManagerOutput, ManagerStart};
use cutline_params::{ParameterError, Parameters as _};
use cutline_units::{Hint, Instant, RandomStream, Rate, lock};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

/// The headers of UDP and IPv4, the number of the key, and the tag of a summary, bytes.
const SUMMARY_HEADERS: u32 = 8 + 20 + 9 + 32;

/// Description of the manager of a node.
#[derive(Clone, Debug)]
pub struct HostManager {
    /// Name of the agent.
    pub name: String,
    /// Address of the agent.
    pub address: Address,
    /// Number of the host on its path.
    pub host: HostId,
    /// The path that all flows take; `None` for none.
    pub path: Option<PathId>,
    /// The other hosts of the path.
    pub peers: BTreeMap<HostId, Address>,
    /// Capacities of the host.
    pub capacities: Capacities,
    /// Parameters of the resource manager.
    pub resources: ResourceParams,
    /// Parameters of the feedback.
    pub feedback: FeedbackParams,
    /// Hint of summaries.
    pub hint: Hint,
}

impl HostManager {
    /// The manager of a host without capacities, that is alone on a path. Summaries have the smallest hint.
    pub fn new(name: impl Into<String>, address: Address, host: HostId) -> Self {
        Self {
            name: name.into(),
            address,
            host,
            path: Some(PathId(0)),
            peers: BTreeMap::new(),
            capacities: Capacities::default(),
            resources: ResourceParams::default(),
            feedback: FeedbackParams::default(),
            hint: Hint::LEAST_DELAY,
        }
    }

    /// Adds the manager to a network. Returns the host, which connections of the node may have.
    ///
    /// # Errors
    /// When a parameter is not allowed, or the address is taken.
    pub fn add_to(self, network: &mut Network) -> Result<SimulatedHost, NetworkError> {
        let name = self.name.clone();
        self.validate().map_err(|error| NetworkError::Connection { connection: name.clone(), error })?;
        let (address, host) = (self.address, SimulatedHost(Arc::new(Mutex::new(State::new(self)))));
        network.add_agent(name, address, Arc::new(host.clone()))?;
        Ok(host)
    }

    fn validate(&self) -> Result<(), ParameterError> {
        self.capacities.validate()?;
        self.resources.validate()?;
        self.feedback.validate()
    }

    fn manager(&self) -> Manager {
        let start = ManagerStart {
            resources: self.resources.clone(),
            feedback: self.feedback.clone(),
            capacities: self.capacities.clone(),
            host: self.host,
            number: 0,
        };
        let mut manager = Manager::new(start).expect("the parameters were checked");
        if let Some(path) = self.path {
            let peers: BTreeSet<HostId> = self.peers.keys().copied().collect();
            manager.set_path(Instant::ZERO, path, &peers).expect("the parameters were checked");
        }
        manager
    }
}

/// Share that a connection requests from the manager of its node.
#[derive(Clone, Debug)]
pub struct ManagedShare {
    /// The host.
    pub host: SimulatedHost,
    /// The user who owns the connection.
    pub user: UserId,
    /// Class.
    pub class: SchedulingClass,
    /// Importance, 0 to 15.
    pub priority: u8,
    /// Weight among the flows of the user.
    pub weight: u32,
}

/// The manager of a node. Clones are the same one. It restarts with each simulation of its network; simulations of
/// one network at the same time would share it.
#[derive(Clone, Debug)]
pub struct SimulatedHost(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    spec: HostManager,
    manager: Manager,
    rates: BTreeMap<FlowId, Rate>,
    refused: u64,
    messages: u64,
}

impl State {
    fn new(spec: HostManager) -> Self {
        let manager = spec.manager();
        Self { manager, spec, rates: BTreeMap::new(), refused: 0, messages: 0 }
    }

    /// Follows the manager's outputs, and sends its summaries.
    fn settle(&mut self, context: &mut Context<'_>) {
        while let Some(output) = self.manager.poll() {
            match output {
                ManagerOutput::Allocation(AllocationEvent::Revoked { flow, .. }) => {
                    self.rates.remove(&flow);
                }
                ManagerOutput::Allocation(event) => {
                    self.rates.insert(event.flow(), event.rate());
                }
                ManagerOutput::Send { to, message, .. } => {
                    if let Some(to) = self.spec.peers.get(&to).copied() {
                        self.send(to, &message, context);
                    }
                }
                ManagerOutput::Broadcast { message, .. } => {
                    for to in self.spec.peers.values().copied().collect::<Vec<_>>() {
                        self.send(to, &message, context);
                    }
                }
                ManagerOutput::Exhausted { .. } => {}
            }
        }
    }

    fn send(&mut self, to: Address, message: &[u8], context: &mut Context<'_>) {
        self.messages += 1;
        let size = message.len() as u32 + SUMMARY_HEADERS;
        context.send(OutboundMessage { to, size, hint: self.spec.hint, payload: message.into() });
    }
}

impl SimulatedHost {
    /// Locks the state. A thread that has panicked has left it whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }

    /// Counters of the decisions of this host as the coordinator of its path.
    pub fn stats(&self) -> ControllerStats {
        let state = self.lock();
        let path = state.spec.path.and_then(|path| state.manager.path(path));
        path.map(PathFeedback::stats).unwrap_or_default()
    }

    /// The host that coordinates the path, as far as this one knows.
    pub fn coordinator(&self) -> HostId {
        let state = self.lock();
        let path = state.spec.path.and_then(|path| state.manager.path(path));
        path.map_or(state.spec.host, PathFeedback::coordinator)
    }

    /// Number of summaries that were sent.
    pub fn messages(&self) -> u64 {
        self.lock().messages
    }

    /// Number of connections that were refused.
    pub fn refused(&self) -> u64 {
        self.lock().refused
    }

    /// Rates of the flows that are there.
    pub fn rates(&self) -> Vec<Rate> {
        self.lock().rates.values().copied().collect()
    }

    /// Requests a flow with these rates. Returns it, unless it is refused.
    pub(crate) fn admit(
        &self,
        now: Instant,
        share: &ManagedShare,
        (minimum, desired): (Rate, Rate),
        edges: FlowEdges,
        context: &mut Context<'_>,
    ) -> Option<FlowId> {
        let mut state = self.lock();
        let request = FlowRequest {
            user: share.user,
            client: ClientKey(0),
            class: share.class,
            carrier: CarrierKind::Datagrams,
            interface: None,
            is_reserved: false,
            desired,
            minimum,
            cpu: CpuShare::ZERO,
            priority: share.priority,
            weight: share.weight,
        };
        let route = state.spec.path.map(|path| FlowRoute { path, edges });
        let answer = state.manager.request(now, request, route);
        let flow = answer.ok().and_then(|answer| answer.flow());
        state.refused += u64::from(flow.is_none());
        state.settle(context);
        flow
    }

    /// The rate that a flow may use; `None` if it has none.
    pub(crate) fn rate(&self, flow: FlowId) -> Option<Rate> {
        self.lock().rates.get(&flow).copied()
    }

    /// Renews a flow, with a report if there is one.
    pub(crate) fn report(
        &self,
        now: Instant,
        flow: FlowId,
        report: Option<&FlowReport>,
        context: &mut Context<'_>,
    ) {
        let mut state = self.lock();
        match report {
            Some(report) => state.manager.report(now, ClientKey(0), flow, report),
            None => state.manager.renew(now, ClientKey(0), flow),
        };
        state.settle(context);
    }
}

impl AgentSpec for SimulatedHost {
    fn build(&self, _address: Address, _random: RandomStream) -> Box<dyn Agent> {
        let mut state = self.lock();
        *state = State::new(state.spec.clone());
        drop(state);
        Box::new(ManagerAgent(self.clone()))
    }
}

struct ManagerAgent(SimulatedHost);

impl Agent for ManagerAgent {
    fn on_message(&mut self, now: Instant, message: &AgentMessage, context: &mut Context<'_>) {
        let mut state = self.0.lock();
        // The node that a packet comes from is known for certain here, as a tag shows it on a real path.
        let from = state.spec.peers.iter().find(|(_, peer)| peer.node == message.from.node);
        if let (Some(host), Some(path)) = (from.map(|(host, _)| *host), state.spec.path) {
            // A summary that was overtaken by a later one is refused.
            let _stale = state.manager.receive(now, host, path, &message.payload);
        }
        state.settle(context);
    }

    fn deadline(&self) -> Instant {
        self.0.lock().manager.deadline()
    }

    fn on_deadline(&mut self, now: Instant, context: &mut Context<'_>) {
        let mut state = self.0.lock();
        state.manager.handle_deadline(now);
        state.settle(context);
    }
}
