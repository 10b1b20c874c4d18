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

use crate::feedback::{
    FeedbackParams, FlowEdges, FlowReport, HostId, PathFeedback, PathFlow, PathFlowRecord, PathId,
    PathOutput, PathSnapshot, PathStart, SummaryError,
};
use crate::resources::{
    AdmissionAnswer, AllocationEvent, AllocationRecord, Capacities, ClientKey, CpuShare, FlowAllocation,
    FlowId, FlowRequest, ResourceKind, ResourceManager, ResourceParams, ResourceSnapshot, ResourceStats,
    SnapshotError, UserId, UserPolicy,
};
use cutline_params::{ParameterError, Parameters as _};
use cutline_units::{Instant, Rate};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Version of the format of [`ManagerSnapshot`]. A snapshot of another version is refused.
pub const MANAGER_SNAPSHOT_VERSION: u32 = 1;

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

/// State of a manager, for serde. Times are relative, and parameters are not in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManagerSnapshot {
    version: u32,
    resources: ResourceSnapshot,
    paths: Vec<PathSnapshot>,
    /// Flows with their paths.
    routes: BTreeMap<FlowId, u64>,
}

/// State of a flow and of its place on a path, for serde. A journal has those of flows that have changed since a
/// snapshot ([`ManagerSnapshot::update`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManagedFlowRecord {
    flow: AllocationRecord,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<(u64, PathFlowRecord)>,
}

impl ManagedFlowRecord {
    /// The flow.
    pub const fn id(&self) -> FlowId {
        self.flow.id()
    }

    /// The request, with the priority that counts.
    pub const fn request(&self) -> FlowRequest {
        self.flow.request()
    }
}

impl ManagerSnapshot {
    /// Adds a flow, or replaces its state by a later one. A path that is not in the snapshot is ignored.
    pub fn update(&mut self, record: ManagedFlowRecord) {
        let id = record.id();
        self.resources.update(record.flow);
        let Some((number, place)) = record.path else { return };
        if let Some(path) = self.paths.iter_mut().find(|path| path.path() == PathId(number)) {
            path.update(place);
            self.routes.insert(id, number);
        }
    }

    /// Removes a flow that has ended. Its number is not used again.
    pub fn remove(&mut self, flow: FlowId) {
        self.resources.remove(flow);
        self.routes.remove(&flow);
        for path in &mut self.paths {
            path.remove(flow);
        }
    }

    /// Returns the highest number of a summary and of a directive of this host; 0 without paths.
    pub fn highest_number(&self) -> u64 {
        self.paths.iter().map(PathSnapshot::highest_number).max().unwrap_or(0)
    }

    /// Replaces the counters by later ones.
    pub const fn set_stats(&mut self, stats: ResourceStats) {
        self.resources.set_stats(stats);
    }

    /// Flows with their requests, oldest first.
    pub fn flows(&self) -> impl Iterator<Item = (FlowId, FlowRequest)> {
        self.resources.flows()
    }
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

    /// The state of a flow as data; `None` if there is no such flow.
    pub fn record(&mut self, now: Instant, flow: FlowId) -> Option<ManagedFlowRecord> {
        let path =
            self.routes.get(&flow).and_then(|path| Some((path.0, self.paths.get(path)?.record(now, flow)?)));
        Some(ManagedFlowRecord { flow: self.resources.record(now, flow)?, path })
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

    /// The state as data.
    pub fn snapshot(&mut self, now: Instant) -> ManagerSnapshot {
        ManagerSnapshot {
            version: MANAGER_SNAPSHOT_VERSION,
            resources: self.resources.snapshot(now),
            paths: self.paths.values().map(|path| path.snapshot(now)).collect(),
            routes: self.routes.iter().map(|(flow, path)| (*flow, path.0)).collect(),
        }
    }

    /// A manager that continues from a snapshot, with the same accounts, rates, leases, limits and events that were not
    /// taken. The capacities are those of the snapshot, and `start` gives the rest.
    ///
    /// # Errors
    /// When the version is another one, or a value is not allowed.
    pub fn restore(
        now: Instant,
        start: ManagerStart,
        snapshot: &ManagerSnapshot,
    ) -> Result<Self, SnapshotError> {
        if snapshot.version != MANAGER_SNAPSHOT_VERSION {
            return Err(SnapshotError::Version(snapshot.version));
        }
        let ManagerStart { resources, feedback, host, number, .. } = start;
        feedback.validate()?;
        let resources = ResourceManager::restore(now, resources, &snapshot.resources)?;
        let mut this = Self {
            resources,
            feedback,
            host,
            number,
            paths: BTreeMap::new(),
            routes: BTreeMap::new(),
            outputs: VecDeque::new(),
        };
        for state in &snapshot.paths {
            let restored = PathFeedback::restore(now, this.feedback.clone(), number, state)?;
            this.paths.insert(state.path(), restored);
        }
        for (flow, path) in &snapshot.routes {
            if this.resources.flow(*flow).is_some() && this.paths.contains_key(&PathId(*path)) {
                this.routes.insert(*flow, PathId(*path));
            }
        }
        for path in this.paths.keys().copied().collect::<Vec<_>>() {
            this.take(path);
        }
        Ok(this)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feedback::PathSummary;
    use crate::resources::{
        AllocationCause, CarrierKind, InterfaceCapacity, InterfaceIndex, ResourceKind, SchedulingClass,
    };
    use cutline_signal::monitor::{Delivery, Spread};
    use cutline_units::{Bytes, Duration};

    const PATH: PathId = PathId(1);
    const INTERVAL: Duration = Duration::from_millis(500);

    fn start() -> ManagerStart {
        let interface = InterfaceCapacity { rate: Rate::from_mbps(100), reserved: Rate::ZERO };
        ManagerStart {
            resources: ResourceParams::default(),
            feedback: FeedbackParams::default(),
            capacities: Capacities {
                interfaces: [(InterfaceIndex(1), interface)].into(),
                ..Capacities::default()
            },
            host: HostId(1),
            number: 0,
        }
    }

    fn request(class: SchedulingClass, priority: u8, mbps: u64) -> FlowRequest {
        FlowRequest {
            user: UserId(1),
            client: ClientKey(1),
            class,
            carrier: CarrierKind::Datagrams,
            interface: Some(InterfaceIndex(1)),
            is_reserved: false,
            desired: Rate::from_mbps(mbps),
            minimum: Rate::from_mbps(1),
            cpu: CpuShare::ZERO,
            priority,
            weight: 1,
        }
    }

    const ROUTE: FlowRoute =
        FlowRoute { path: PATH, edges: FlowEdges { delay: Some((0.0, 100.0)), loss: None } };

    fn report(now: Instant, rate: Rate, delay_ms: u64) -> FlowReport {
        let delay = Duration::from_millis(delay_ms);
        let bytes = rate.bytes_in(INTERVAL).get();
        let spread = Spread { mean: delay, quantile: delay, worst: delay };
        let delivery = Delivery {
            since: now - INTERVAL,
            until: now,
            sent: 100,
            messages: 100,
            bytes,
            delay: Some(spread),
            ..Delivery::default()
        };
        FlowReport { delivery, backlog: Bytes::ZERO }
    }

    /// A manager with a real-time flow of high priority and a time-shared one of low, and reports of calm.
    fn calm() -> (Manager, [FlowId; 2], Instant) {
        let mut manager = Manager::new(start()).unwrap();
        let mut now = Instant::from_nanos(1_000_000_000);
        manager.set_path(now, PATH, &BTreeSet::new()).unwrap();
        let mut admit = |class, priority, mbps| {
            manager.request(now, request(class, priority, mbps), Some(ROUTE)).unwrap().flow().unwrap()
        };
        let flows = [admit(SchedulingClass::RealTime, 12, 20), admit(SchedulingClass::TimeShared, 2, 40)];
        for _ in 0..20 {
            now += INTERVAL;
            feed(&mut manager, now, flows, 20);
        }
        (manager, flows, now)
    }

    /// Reports both flows with their rates and a delay.
    fn feed(manager: &mut Manager, now: Instant, flows: [FlowId; 2], delay_ms: u64) -> Vec<ManagerOutput> {
        // Present deliveries were sent before flows are lowered now.
        for (flow, rate) in flows.map(|flow| (flow, manager.granted(flow).unwrap())) {
            assert!(manager.report(now, ClientKey(1), flow, &report(now, rate, delay_ms)));
        }
        manager.handle_deadline(now);
        std::iter::from_fn(|| manager.poll()).collect()
    }

    /// QUANTA section 5, global monitoring: the delay grows, and the flow of low priority is lowered before the edge of 100 ms.
    #[test]
    fn a_path_that_fills_lowers_the_flow_of_low_priority() {
        let (mut manager, flows, mut now) = calm();
        let mut outputs = Vec::new();
        for delay in [30, 40, 50, 60, 70] {
            now += INTERVAL;
            outputs.extend(feed(&mut manager, now, flows, delay));
            if !outputs.is_empty() {
                break;
            }
        }
        assert!(now > Instant::from_nanos(12_000_000_000), "it takes some reports: {now}");
        let lowered: Vec<&AllocationEvent> = outputs
            .iter()
            .filter_map(|output| match output {
                ManagerOutput::Allocation(event) => Some(event),
                _ => None,
            })
            .collect();
        let [AllocationEvent::Lowered { flow, from, to, cause }] = lowered[..] else { panic!("{outputs:?}") };
        assert_eq!((*flow, *cause, *from), (flows[1], AllocationCause::Path, Rate::from_mbps(40)));
        // 0.85 of 60 are 51: 31 for the second one.
        assert!((Rate::from_kbps(30_900)..=Rate::from_kbps(31_100)).contains(to), "{to}");
        assert_eq!(manager.granted(flows[0]), Some(Rate::from_mbps(20)));
        assert!(manager.release(ClientKey(1), flows[1]));
        assert_eq!(manager.path(PATH).unwrap().limit_of(flows[1]), None);
    }

    #[test]
    fn a_restart_keeps_accounts_and_limits() {
        let (mut manager, flows, mut now) = calm();
        for delay in [30, 40, 50, 60, 70] {
            now += INTERVAL;
            feed(&mut manager, now, flows, delay);
        }
        let text = serde_json::to_string(&manager.snapshot(now)).unwrap();
        let later = Instant::from_nanos(77);
        let restored = Manager::restore(later, start(), &serde_json::from_str(&text).unwrap());
        let mut restored = restored.unwrap();
        for flow in flows {
            assert_eq!(restored.granted(flow), manager.granted(flow));
            assert_eq!(
                restored.path(PATH).unwrap().limit_of(flow),
                manager.path(PATH).unwrap().limit_of(flow)
            );
        }
        let kind = ResourceKind::Interface(InterfaceIndex(1));
        assert_eq!(restored.resources().committed(kind), manager.resources().committed(kind));
        assert_eq!(restored.poll(), None, "flows keep what they have");
        // The path is calm again, and the flow gets its rate back.
        let mut now = later + Duration::from_secs(1);
        for _ in 0..200 {
            now += INTERVAL;
            feed(&mut restored, now, flows, 20);
        }
        assert_eq!(restored.granted(flows[1]), Some(Rate::from_mbps(40)));
        let other = text.replacen("\"version\":1", "\"version\":9", 1);
        let error = Manager::restore(later, start(), &serde_json::from_str(&other).unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "version = 9: allowed is 1");
    }

    /// A journal of flows that have changed leads from one snapshot to the next.
    #[test]
    fn a_snapshot_with_the_records_of_changed_flows_is_a_later_snapshot() {
        let (mut manager, flows, now) = calm();
        let mut snapshot = manager.snapshot(now);
        let third = manager.request(now, request(SchedulingClass::TimeShared, 3, 5), Some(ROUTE)).unwrap();
        let third = third.flow().unwrap();
        let rates = (Rate::from_mbps(12), Rate::from_mbps(2), CpuShare::ZERO);
        manager.change(now, ClientKey(1), flows[0], rates, ROUTE.edges).unwrap();
        assert!(manager.release(ClientKey(1), flows[1]));
        while manager.poll().is_some() {}
        for flow in [flows[0], third] {
            let text = serde_json::to_string(&manager.record(now, flow).unwrap()).unwrap();
            snapshot.update(serde_json::from_str(&text).unwrap());
        }
        assert_eq!(manager.record(now, flows[1]), None);
        snapshot.remove(flows[1]);
        snapshot.set_stats(*manager.resources().stats());
        let later = Manager::restore(now, start(), &snapshot).unwrap();
        assert_eq!(later.resources().stats(), manager.resources().stats());
        let mut expected = manager.snapshot(now);
        let mut found = later.clone().snapshot(now);
        let blank = |snapshot: &mut ManagerSnapshot| {
            let mut value = serde_json::to_value(&*snapshot).unwrap();
            value["paths"][0]["number"] = 0.into();
            value["paths"][0]["epoch"] = 0.into();
            value
        };
        assert_eq!(blank(&mut found), blank(&mut expected));
        assert_eq!(later.path_of(third), Some(PATH));
    }

    /// A host that has started with a clock in the past sends higher numbers once its clock is right.
    #[test]
    fn numbers_of_summaries_can_be_raised() {
        let mut manager = Manager::new(start()).unwrap();
        let mut now = Instant::ZERO;
        manager.set_path(now, PATH, &[HostId(2)].into()).unwrap();
        let numbers = |manager: &mut Manager, now: Instant| {
            manager.handle_deadline(now);
            let mut numbers = Vec::new();
            while let Some(output) = manager.poll() {
                if let ManagerOutput::Broadcast { message, .. } = output {
                    numbers.push(PathSummary::decode(&message).unwrap().number);
                }
            }
            numbers
        };
        for (raised, next) in [(0, 1), (1000, 1001), (5, 1002)] {
            manager.raise_numbers(raised);
            now += INTERVAL;
            assert_eq!(numbers(&mut manager, now), [next]);
        }
        assert_eq!(manager.snapshot(now).highest_number(), 1002);
        // A path that is added later begins there, too.
        manager.set_path(now, PathId(2), &[HostId(2)].into()).unwrap();
        now += INTERVAL;
        assert_eq!(numbers(&mut manager, now), [1003, 1001]);
    }

    #[test]
    fn a_flow_that_is_revoked_leaves_its_path() {
        let (mut manager, flows, now) = calm();
        let now = now + Duration::from_secs(60);
        manager.handle_deadline(now);
        let mut revoked = 0;
        while let Some(output) = manager.poll() {
            revoked +=
                u32::from(matches!(output, ManagerOutput::Allocation(AllocationEvent::Revoked { .. })));
        }
        assert_eq!(revoked, 2);
        assert!(!manager.report(now, ClientKey(1), flows[0], &report(now, Rate::ZERO, 1)));
        assert!(manager.snapshot(now).routes.is_empty());
        let unknown = Some(FlowRoute { path: PathId(9), ..ROUTE });
        let error = manager.request(now, request(SchedulingClass::RealTime, 1, 1), unknown).unwrap_err();
        assert_eq!(error.to_string(), "path = 9: allowed is a path that was added");
        let odd = FlowRoute { edges: FlowEdges { delay: Some((5.0, f64::NAN)), loss: None }, ..ROUTE };
        let error = manager.request(now, request(SchedulingClass::RealTime, 1, 1), Some(odd)).unwrap_err();
        assert_eq!(error.to_string(), "delay = NaN: allowed is the best, which is 5, to 3600000 ms");
    }

    /// A path's limits are computed from what the host can carry.
    #[test]
    fn capacities_bound_what_flows_are_lowered_from() {
        let (mut manager, flows, mut now) = calm();
        let interface = InterfaceCapacity { rate: Rate::from_mbps(30), reserved: Rate::ZERO };
        let smaller =
            Capacities { interfaces: [(InterfaceIndex(1), interface)].into(), ..Capacities::default() };
        manager.set_capacities(smaller).unwrap();
        assert_eq!(manager.resources().ceiling(flows[1]), Some(Rate::from_mbps(30)));
        for delay in [30, 40, 50, 60, 70] {
            now += INTERVAL;
            feed(&mut manager, now, flows, delay);
        }
        let limit = manager.path(PATH).unwrap().limit_of(flows[1]).unwrap();
        assert!(limit < Rate::from_mbps(30), "{limit}");
        let all: u64 = flows.map(|flow| manager.granted(flow).unwrap().as_bps()).iter().sum();
        assert!(all <= 30_000_000, "{all}");
    }

    #[test]
    fn a_path_that_is_removed_lifts_its_limits() {
        let (mut manager, flows, mut now) = calm();
        for delay in [30, 40, 50, 60, 70] {
            now += INTERVAL;
            feed(&mut manager, now, flows, delay);
        }
        assert!(manager.granted(flows[1]) < Some(Rate::from_mbps(40)));
        manager.remove_path(PATH);
        assert_eq!(manager.granted(flows[1]), Some(Rate::from_mbps(40)));
    }
}
