//! Manager of a host: its resources, and the feedback of the paths that its flows take.
//!
//! ```text
//! requests, capacities -> ResourceManager -> events of flows
//!                               ^
//!                               | limits
//!      reports, messages -> PathFeedback (one for each path) -> messages to other hosts
//! ```
//!
//! A report of a flow renews its lease and feeds the prediction for its path. A limit of the path lowers the flow; the
//! promise of a real-time flow stays, so that it can be raised again.

mod snapshot;
#[cfg(test)]
mod tests;

pub use snapshot::{MANAGER_SNAPSHOT_VERSION, ManagedFlowRecord, ManagerSnapshot};

use crate::feedback::{
    FeedbackParams, FlowEdges, FlowReport, HostId, PathFeedback, PathFlow, PathId, PathOutput, PathStart,
    SummaryError,
};
use crate::resources::{
    AdmissionAnswer, AllocationEvent, Capacities, ClientKey, CpuShare, FlowAllocation, FlowId, FlowRequest,
    ResourceKind, ResourceManager, ResourceParams, UserId, UserPolicy,
};
use cutline_params::{ParameterError, Parameters as _};
use cutline_units::{Instant, Rate};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Initial values of a manager.
#[derive(Clone, Debug)]
pub struct ManagerStart {
    /// Parameters of the resource manager.
    pub resources: ResourceParams,
    /// Parameters of the feedback of all paths.
    pub feedback: FeedbackParams,
    /// Capacities of the host.
    pub capacities: Capacities,
    /// This host.
    pub host: HostId,
    /// A number above those of all summaries that this host has sent before, such as the time in nanoseconds since 1970.
    pub number: u64,
}

/// Place of a flow on a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowRoute {
    /// The path.
    pub path: PathId,
    /// Edges of the flow's region of operation.
    pub edges: FlowEdges,
}

/// Output of a manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManagerOutput {
    /// Notify a flow.
    Allocation(AllocationEvent),
    /// Send a message to the manager of another host.
    Send {
        /// The path that the message is about.
        path: PathId,
        /// The host.
        to: HostId,
        /// An encoded [`PathSummary`](crate::feedback::PathSummary).
        message: Vec<u8>,
    },
    /// Send a message to all peers of a path.
    Broadcast {
        /// The path that the message is about.
        path: PathId,
        /// An encoded [`PathSummary`](crate::feedback::PathSummary).
        message: Vec<u8>,
    },
    /// All flows of a path are at their minima, and it is still overloaded.
    Exhausted {
        /// The path.
        path: PathId,
    },
}

/// Manager of a host. After each call its owner takes outputs with [`Manager::poll`] until there are none.
#[derive(Clone, Debug)]
pub struct Manager {
    resources: ResourceManager,
    feedback: FeedbackParams,
    host: HostId,
    number: u64,
    paths: BTreeMap<PathId, PathFeedback>,
    routes: BTreeMap<FlowId, PathId>,
    outputs: VecDeque<ManagerOutput>,
}

impl Manager {
    /// A manager without flows and paths.
    ///
    /// # Errors
    /// When a parameter or a capacity is not allowed.
    pub fn new(start: ManagerStart) -> Result<Self, ParameterError> {
        let ManagerStart { resources, feedback, capacities, host, number } = start;
        feedback.validate()?;
        let resources = ResourceManager::new(resources, capacities)?;
        let (paths, routes, outputs) = (BTreeMap::new(), BTreeMap::new(), VecDeque::new());
        Ok(Self { resources, feedback, host, number, paths, routes, outputs })
    }

    /// Adds a path with the other hosts on it, or changes these.
    ///
    /// # Errors
    /// When a parameter is not allowed.
    pub fn set_path(
        &mut self,
        now: Instant,
        path: PathId,
        peers: &BTreeSet<HostId>,
    ) -> Result<(), ParameterError> {
        if !self.paths.contains_key(&path) {
            let (params, host, number) = (self.feedback.clone(), self.host, self.number);
            self.paths.insert(path, PathFeedback::new(now, PathStart { params, path, host, number })?);
        }
        if let Some(feedback) = self.paths.get_mut(&path) {
            feedback.set_peers(now, peers);
        }
        self.take(path);
        Ok(())
    }

    /// Removes a path. The limits of its flows are lifted.
    pub fn remove_path(&mut self, path: PathId) {
        self.paths.remove(&path);
        let flows: Vec<FlowId> =
            self.routes.iter().filter(|(_, its)| **its == path).map(|(flow, _)| *flow).collect();
        for flow in flows {
            self.routes.remove(&flow);
            self.resources.set_limit(flow, None);
        }
    }

    /// Decides on a flow, and adds it to its path.
    ///
    /// # Errors
    /// When a value is not allowed, or there is no such path. A lack of resources is an answer.
    pub fn request(
        &mut self,
        now: Instant,
        request: FlowRequest,
        route: Option<FlowRoute>,
    ) -> Result<AdmissionAnswer, ParameterError> {
        if let Some(FlowRoute { path, edges }) = route {
            edges.validate()?;
            if !self.paths.contains_key(&path) {
                return Err(ParameterError::new("path", path, "a path that was added"));
            }
        }
        let answer = self.resources.request(now, request)?;
        if let (Some(flow), Some(route)) = (answer.flow(), route) {
            self.routes.insert(flow, route.path);
            self.set_on_path(now, flow, route)?;
        }
        Ok(answer)
    }

    /// Changes rates and CPU time of a flow, and renews its lease. `edges` are those of its region from now on; they
    /// are ignored if it has no path.
    ///
    /// # Errors
    /// When a value is not allowed, or the client holds no such flow.
    pub fn change(
        &mut self,
        now: Instant,
        client: ClientKey,
        flow: FlowId,
        rates: (Rate, Rate, CpuShare),
        edges: FlowEdges,
    ) -> Result<AdmissionAnswer, ParameterError> {
        edges.validate()?;
        let answer = self.resources.change(now, client, flow, rates)?;
        if let (Some(path), Some(flow)) = (self.routes.get(&flow).copied(), answer.flow()) {
            self.set_on_path(now, flow, FlowRoute { path, edges })?;
        }
        Ok(answer)
    }

    fn set_on_path(&mut self, now: Instant, flow: FlowId, route: FlowRoute) -> Result<(), ParameterError> {
        let FlowRoute { path, edges } = route;
        let most = self.resources.ceiling(flow);
        let (Some(request), Some(feedback), Some(most)) =
            (self.resources.flow(flow), self.paths.get_mut(&path), most)
        else {
            return Ok(());
        };
        let FlowRequest { user, minimum, priority, .. } = *request;
        let most = most.max(minimum);
        feedback.set_flow(now, flow, PathFlow { user, most, minimum, priority, edges })?;
        self.take(path);
        Ok(())
    }

    /// Takes a client's report of a flow, which renews its lease. Returns whether the client holds the flow.
    pub fn report(&mut self, now: Instant, client: ClientKey, flow: FlowId, report: &FlowReport) -> bool {
        if !self.resources.renew(now, client, flow) {
            return false;
        }
        if let Some(path) = self.routes.get(&flow).copied() {
            if let Some(feedback) = self.paths.get_mut(&path) {
                feedback.report(now, flow, report);
            }
            self.take(path);
        }
        true
    }

    /// Renews the lease of a flow without a report. Returns whether the client holds the flow.
    pub fn renew(&mut self, now: Instant, client: ClientKey, flow: FlowId) -> bool {
        self.resources.renew(now, client, flow)
    }

    /// Ends a flow at its client's request. Returns whether the client held it.
    pub fn release(&mut self, client: ClientKey, flow: FlowId) -> bool {
        let was_held = self.resources.release(client, flow);
        if was_held {
            self.leave(flow);
        }
        was_held
    }

    /// Ends all flows of a client that has died or left. Returns the flows.
    pub fn release_client(&mut self, client: ClientKey) -> Vec<FlowId> {
        let flows = self.resources.release_client(client);
        for flow in &flows {
            self.leave(*flow);
        }
        flows
    }

    /// Changes the capacities of the host.
    ///
    /// # Errors
    /// When a capacity is not allowed; then nothing changes.
    pub fn set_capacities(&mut self, capacities: Capacities) -> Result<(), ParameterError> {
        self.resources.set_capacities(capacities)?;
        self.take_ceilings();
        Ok(())
    }

    /// Changes the capacities of the host, and states the flows whose rates reservations of RSVP hold.
    ///
    /// # Errors
    /// When a capacity is not allowed; then nothing changes.
    pub fn set_reserved(
        &mut self,
        capacities: Capacities,
        flows: &BTreeSet<FlowId>,
    ) -> Result<(), ParameterError> {
        self.resources.set_reserved(capacities, flows)?;
        self.take_ceilings();
        Ok(())
    }

    /// Passes the largest rates that the host can carry of its flows to the feedback of their paths.
    fn take_ceilings(&mut self) {
        for (flow, path) in &self.routes {
            if let (Some(feedback), Some(most)) = (self.paths.get_mut(path), self.resources.ceiling(*flow)) {
                feedback.set_most(*flow, most);
            }
        }
        for path in self.paths.keys().copied().collect::<Vec<_>>() {
            self.take(path);
        }
    }

    /// Sets the policy for a user.
    ///
    /// # Errors
    /// When a value is not allowed.
    pub fn set_policy(&mut self, user: UserId, policy: UserPolicy) -> Result<(), ParameterError> {
        self.resources.set_policy(user, policy)
    }

    /// Takes a message of the manager of `host`, which the owner has authenticated.
    ///
    /// # Errors
    /// When it is no summary of that host on a path that was added, or not newer than an earlier one. Then it changes nothing.
    pub fn receive(
        &mut self,
        now: Instant,
        host: HostId,
        path: PathId,
        message: &[u8],
    ) -> Result<(), SummaryError> {
        let feedback = self.paths.get_mut(&path).ok_or(SummaryError::Path(path))?;
        feedback.receive_from(now, host, message)?;
        self.take(path);
        Ok(())
    }

    /// Raises the numbers of the next summaries above `number`, as after the clock was set forward ([`PathFeedback::raise_number`]).
    pub fn raise_numbers(&mut self, number: u64) {
        self.number = self.number.max(number);
        for path in self.paths.values_mut() {
            path.raise_number(number);
        }
    }

    /// The time at which [`Manager::handle_deadline`] is to be called; [`Instant::FAR_FUTURE`] if never.
    pub fn deadline(&self) -> Instant {
        let paths = self.paths.values().map(PathFeedback::deadline);
        paths.fold(self.resources.deadline(), Instant::min)
    }

    /// Handles a due deadline.
    pub fn handle_deadline(&mut self, now: Instant) {
        self.resources.handle_deadline(now);
        for path in self.paths.keys().copied().collect::<Vec<_>>() {
            if let Some(feedback) = self.paths.get_mut(&path) {
                feedback.handle_deadline(now);
            }
            self.take(path);
        }
    }

    /// Takes the next output.
    pub fn poll(&mut self) -> Option<ManagerOutput> {
        if let Some(event) = self.resources.poll() {
            if let AllocationEvent::Revoked { flow, .. } = event {
                self.leave(flow);
            }
            return Some(ManagerOutput::Allocation(event));
        }
        self.outputs.pop_front()
    }

    /// The resource manager.
    pub const fn resources(&self) -> &ResourceManager {
        &self.resources
    }

    /// Returns the state of a flow; `None` if there is no such flow.
    pub fn allocation(&mut self, flow: FlowId) -> Option<FlowAllocation> {
        self.resources.allocation(flow)
    }

    /// The amount of a resource that flows may use now, in its unit.
    pub fn in_use(&mut self, resource: ResourceKind) -> u64 {
        self.resources.in_use(resource)
    }

    /// The path of a flow; `None` if it has none.
    pub fn path_of(&self, flow: FlowId) -> Option<PathId> {
        self.routes.get(&flow).copied()
    }

    /// The paths that were added.
    pub fn paths(&self) -> impl Iterator<Item = PathId> {
        self.paths.keys().copied()
    }

    /// The rate that a flow may use; `None` if there is no such flow.
    pub fn granted(&mut self, flow: FlowId) -> Option<Rate> {
        self.resources.granted(flow)
    }

    /// The feedback of a path; `None` if it was not added.
    pub fn path(&self, path: PathId) -> Option<&PathFeedback> {
        self.paths.get(&path)
    }

    /// Renews all leases, as after an interruption in which clients could not report.
    pub fn renew_all(&mut self, now: Instant) {
        self.resources.renew_all(now);
    }

    /// Takes a flow off its path.
    fn leave(&mut self, flow: FlowId) {
        if let Some(feedback) = self.routes.remove(&flow).and_then(|path| self.paths.get_mut(&path)) {
            feedback.remove_flow(flow);
        }
    }

    /// Takes the outputs of a path.
    fn take(&mut self, path: PathId) {
        let Some(feedback) = self.paths.get_mut(&path) else { return };
        while let Some(output) = feedback.poll() {
            match output {
                PathOutput::Send { to, message } => {
                    self.outputs.push_back(ManagerOutput::Send { path, to, message });
                }
                PathOutput::Broadcast { message } => {
                    self.outputs.push_back(ManagerOutput::Broadcast { path, message });
                }
                PathOutput::Exhausted => self.outputs.push_back(ManagerOutput::Exhausted { path }),
                PathOutput::Limit { flow, limit } => {
                    self.resources.set_limit(flow, limit);
                }
            }
        }
    }
}
