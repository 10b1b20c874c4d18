//! The manager with its sessions and flows.
//!
//! Requests and the time come in, replies come out ([`ManagedHost::reply`]). Changes are in the journal
//! ([`ManagedHost::commit`]) before replies are taken.

use crate::access::AccessRules;
use crate::config::{ManagedInterface, ManagerSpec, PathKey};
use crate::error::ManagerServiceError;
use crate::kernel_classes::{KernelClasses, WantedClasses};
use crate::paths::{ClockWatch, PathSocket};
use crate::reserved::{ReservedRates, protocol, selector};
use crate::store::{Change, FlowPlace, SessionRecord, Store, StoredState};
use cutline_allocation::protocol::{AllocationReply, AllocationRequest, FlowNeed, HeldFlow, VERSION};
use cutline_manager::feedback::{FlowEdges, PathId};
use cutline_manager::resources::{
    AdmissionAnswer, AllocationEvent, Capacities, CarrierKind, ClientKey, CpuShare, FlowId, FlowRequest,
    InterfaceCapacity, InterfaceIndex, MOST_CPU, MOST_RATE, ResourceKind, ResourceStats, SchedulingClass,
    Shortage, ShortageScope, UserId, UserPolicy,
};
use cutline_manager::{FlowRoute, Manager, ManagerOutput, ManagerStart};
use cutline_netlink::{KernelRoute, Question, RouteLookup};
use cutline_params::ParameterError;
use cutline_sys::clock::unix_time;
use cutline_sys::{SysError, interface};
use cutline_units::{Instant, Rate};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

/// Interval at which numbers of interfaces are looked up, and the state is written if paths have changed.
const SECOND: cutline_units::Duration = cutline_units::Duration::from_secs(1);
/// The most renewals of a client in a lease. Clients need four.
const RENEWALS: u64 = 16;
/// More numbers than the summaries of a host between two snapshots have.
const UNWRITTEN_NUMBERS: u64 = 1_000_000_000;
/// The highest number from which summaries begin.
const MOST_NUMBER: u64 = 1 << 63;
/// The unit of rates for which CPU time is stated, bit/s.
const GIGABIT: u128 = 1_000_000_000;

/// A session of a client.
#[derive(Debug)]
pub struct HostSession {
    pub token: String,
    pub user: UserId,
    /// The process; `None` while the client is not connected.
    pub pid: Option<u32>,
    /// Flows by the client's numbers.
    pub flows: BTreeMap<u64, FlowId>,
    /// End of the session, if its client does not come back.
    until: Option<Instant>,
    /// Earliest time at which its leases are renewed again.
    next_renewal: Instant,
}

/// The manager of this host.
#[derive(Debug)]
pub struct ManagedHost {
    pub manager: Manager,
    pub spec: ManagerSpec,
    reserved: ReservedRates,
    /// Names of the interfaces that are there.
    pub interfaces: BTreeMap<InterfaceIndex, String>,
    /// Classes of the kernel for their flows.
    pub kernel_classes: KernelClasses,
    pub sessions: BTreeMap<ClientKey, HostSession>,
    tokens: BTreeMap<String, ClientKey>,
    pub places: BTreeMap<FlowId, FlowPlace>,
    /// Missed deadlines of flows, as their clients report.
    pub missed: BTreeMap<FlowId, u64>,
    policies: BTreeMap<UserId, UserPolicy>,
    next_key: u64,
    store: Store,
    routes: Option<RouteLookup>,
    pub paths: Option<PathSocket>,
    clock: ClockWatch,
    pub taken_over: u64,
    replies: VecDeque<(ClientKey, AllocationReply)>,
    /// Changes since the last commit.
    changes: Vec<Change>,
    /// Counters at the last commit.
    committed_stats: ResourceStats,
    /// Flows that have changed since the last commit.
    touched: BTreeSet<FlowId>,
    /// True if a snapshot is to be written.
    is_stale: bool,
    /// Time of the next look at interfaces.
    next_second: Instant,
    /// Earliest time of the next snapshot.
    next_snapshot: Instant,
    notices: Vec<String>,
}

impl ManagedHost {
    /// A manager that continues from the state of an earlier process, if there is one.
    ///
    /// # Errors
    /// When a setting is not allowed, or a socket cannot be opened.
    pub fn open(now: Instant, spec: ManagerSpec, keys: &[PathKey]) -> Result<Self, ManagerServiceError> {
        let mut store = Store::new(&spec.state);
        let mut notices = Vec::new();
        let loaded = store.load().unwrap_or_else(|why| {
            notices.push(format!("the state of the earlier resource manager is not used: {why}"));
            None
        });
        let (stored, earlier_boot) = match loaded {
            Some((state, true)) => (Some(state), None),
            Some((state, false)) => (None, Some(state)),
            None => (None, None),
        };
        let least_number = earlier_boot.as_ref().map_or(0, |state| {
            state.manager.highest_number().saturating_add(UNWRITTEN_NUMBERS).min(MOST_NUMBER)
        });
        let start = || ManagerStart {
            resources: spec.resources.clone(),
            feedback: spec.feedback.clone(),
            capacities: spec.capacities.clone(),
            host: spec.host,
            number: unix_time().as_nanos().max(least_number),
        };
        let classed = stored.as_ref().map_or_else(Vec::new, |stored| stored.classed.clone());
        let restored = stored.and_then(|stored| match Manager::restore(now, start(), &stored.manager) {
            Ok(manager) => Some((manager, stored)),
            Err(error) => {
                notices.push(format!("the state of the earlier resource manager is not used: {error}"));
                None
            }
        });
        let paths = match spec.listen.filter(|_| spec.paths.iter().any(|path| !path.peers.is_empty())) {
            Some(listen) => Some(PathSocket::open(listen, keys, &spec.paths, spec.feedback.interval)?),
            None => None,
        };
        let (manager, stored) = match restored {
            Some((manager, stored)) => (manager, Some(stored)),
            None => (Manager::new(start())?, None),
        };
        let mut this = Self {
            manager,
            reserved: ReservedRates::default(),
            interfaces: BTreeMap::new(),
            kernel_classes: KernelClasses::default(),
            sessions: BTreeMap::new(),
            tokens: BTreeMap::new(),
            places: BTreeMap::new(),
            missed: BTreeMap::new(),
            policies: BTreeMap::new(),
            next_key: 1,
            store,
            routes: RouteLookup::open().ok(),
            paths,
            clock: ClockWatch::new(now, unix_time()),
            taken_over: 0,
            replies: VecDeque::new(),
            changes: Vec::new(),
            committed_stats: ResourceStats::default(),
            touched: BTreeSet::new(),
            is_stale: true,
            next_second: now.saturating_add(SECOND),
            next_snapshot: now,
            notices,
            spec,
        };
        if let Some(stored) = stored {
            this.take_over(now, stored);
        }
        if let (Some(paths), Some(state)) = (&mut this.paths, earlier_boot) {
            paths.set_numbers(&state.numbers);
        }
        this.set_paths(now)?;
        this.set_capacities()?;
        this.kernel_classes.set_interfaces(&this.spec.interfaces);
        this.kernel_classes.remove_leftovers(&classed);
        this.settle(now);
        this.commit(now);
        Ok(this)
    }

    /// Takes sessions and flows over from an earlier process. Flows without a session end.
    fn take_over(&mut self, now: Instant, stored: StoredState) {
        self.next_key = stored.next_key;
        let until = Some(now.saturating_add(self.spec.resources.lease));
        for SessionRecord { key, token, user } in stored.sessions {
            self.next_key = self.next_key.max(key.0 + 1);
            self.tokens.insert(token.clone(), key);
            let flows = BTreeMap::new();
            let (pid, next_renewal) = (None, Instant::ZERO);
            self.sessions.insert(key, HostSession { token, user, pid, flows, until, next_renewal });
        }
        for (flow, place) in stored.places {
            let is_there = self.manager.resources().flow(flow).is_some_and(|its| its.client == place.key);
            if let (true, Some(session)) = (is_there, self.sessions.get_mut(&place.key)) {
                session.flows.insert(place.id, flow);
                self.places.insert(flow, place);
            }
        }
        let lost: Vec<(ClientKey, FlowId)> = {
            let all = self.manager.resources().flows().filter(|flow| !self.places.contains_key(flow));
            all.filter_map(|flow| Some((self.manager.resources().flow(flow)?.client, flow))).collect()
        };
        for (client, flow) in lost {
            self.manager.release(client, flow);
        }
        self.taken_over = self.places.len() as u64;
        if let Some(paths) = &mut self.paths {
            paths.set_numbers(&stored.numbers);
        }
        // Clients could not report meanwhile.
        self.manager.renew_all(now);
        if self.taken_over > 0 {
            let sessions = self.sessions.values().filter(|session| !session.flows.is_empty()).count();
            self.notices.push(format!(
                "the resource manager has restored {} flows of {sessions} clients",
                self.taken_over
            ));
        }
    }

    fn set_paths(&mut self, now: Instant) -> Result<(), ParameterError> {
        let gone: Vec<PathId> = {
            let is_known = |path: &PathId| self.spec.paths.iter().any(|own| own.path == *path);
            self.manager.paths().filter(|path| !is_known(path)).collect()
        };
        for path in gone {
            self.manager.remove_path(path);
        }
        for path in &self.spec.paths {
            let peers = path.peers.iter().map(|peer| peer.host).collect();
            self.manager.set_path(now, path.path, &peers)?;
        }
        Ok(())
    }

    /// Sets the capacities, of the present interfaces, without RSVP's reservations.
    fn set_capacities(&mut self) -> Result<(), ParameterError> {
        let mut capacities = self.spec.capacities.clone();
        self.interfaces.clear();
        for ManagedInterface { name, rate, .. } in &self.spec.interfaces {
            let Ok(index) = interface::index(name) else { continue };
            let reserved = self.reserved.interfaces.get(name).copied().unwrap_or_default();
            let index = InterfaceIndex(index);
            capacities.interfaces.insert(index, InterfaceCapacity { rate: *rate, reserved });
            self.interfaces.insert(index, name.clone());
        }
        self.charge(capacities, None)
    }

    /// Sets capacities, and charges their interfaces for the flows whose rates no reservation holds. A flow that changes has another
    /// desired rate.
    fn charge(
        &mut self,
        capacities: Capacities,
        changing: Option<(FlowId, Rate)>,
    ) -> Result<(), ParameterError> {
        let held = self.held_flows(changing);
        let resources = self.manager.resources();
        let is_reserved = |flow: &FlowId| resources.flow(*flow).is_some_and(|its| its.is_reserved);
        let is_as_before = self.places.keys().all(|flow| is_reserved(flow) == held.contains(flow));
        if !is_as_before || capacities != *resources.capacities() {
            self.manager.set_reserved(capacities, &held)?;
            // Promises may be lower.
            self.is_stale = true;
        }
        Ok(())
    }

    /// Returns the flows whose desired rates are held by reservations, each by one of its own.
    fn held_flows(&self, changing: Option<(FlowId, Rate)>) -> BTreeSet<FlowId> {
        let mut held = BTreeSet::new();
        if self.reserved.flows.is_empty() {
            return held;
        }
        let mut used = BTreeSet::new();
        for (flow, place) in &self.places {
            let Some(request) = self.manager.resources().flow(*flow) else { continue };
            let Some((index, interface)) =
                request.interface.and_then(|index| self.interfaces.get_key_value(&index))
            else {
                continue;
            };
            let desired =
                changing.filter(|(changed, _)| changed == flow).map_or(request.desired, |(_, rate)| rate);
            let packets = selector(request.carrier, place.source, place.destination);
            if self.reserved.hold(interface, &packets, desired) && used.insert((*index, packets)) {
                held.insert(*flow);
            }
        }
        held
    }

    /// Takes the rates that reservations of RSVP hold.
    pub fn set_reserved(&mut self, reserved: ReservedRates) {
        self.reserved = reserved;
        self.update_capacities();
    }

    fn update_capacities(&mut self) {
        if let Err(error) = self.set_capacities() {
            self.notices.push(format!("the capacities stay as they are: {error}"));
        }
    }

    /// Takes other settings: those that can change while the manager runs.
    pub fn reconfigure(&mut self, spec: ManagerSpec) {
        self.spec = spec;
        // Groups of a user are known as long as a client is connected.
        let own = |user: &UserId| self.spec.access.users.iter().find(|rule| rule.id == user.0);
        let rules: Vec<(u32, UserPolicy)> =
            self.policies.keys().filter_map(own).map(|rule| (rule.id, rule.policy)).collect();
        self.set_policies(rules);
        self.kernel_classes.set_interfaces(&self.spec.interfaces);
        self.changes.push(Change::Classed(self.kernel_classes.names()));
        self.update_capacities();
    }

    /// Sets the policies of users, which the reader of the file has checked.
    pub fn set_policies(&mut self, policies: impl IntoIterator<Item = (u32, UserPolicy)>) {
        for (user, policy) in policies {
            let user = UserId(user);
            if self.policies.insert(user, policy) != Some(policy) {
                let _checked = self.manager.set_policy(user, policy);
                self.is_stale = true;
            }
        }
    }

    /// Weight of a user among users.
    pub fn weight_of(&self, user: UserId) -> u32 {
        self.policies.get(&user).copied().unwrap_or_default().weight
    }

    /// Rules by which users may use the manager.
    pub const fn access(&self) -> &AccessRules {
        &self.spec.access
    }

    /// Begins or continues a session of a user's process. Returns its key and the greeting.
    ///
    /// # Errors
    /// When there are no random numbers, or the policy is not allowed.
    pub fn begin(
        &mut self,
        (user, pid): (u32, u32),
        policy: UserPolicy,
        token: Option<&str>,
    ) -> Result<(ClientKey, AllocationReply), SysError> {
        self.set_policies([(user, policy)]);
        let user = UserId(user);
        let known = token.and_then(|token| self.tokens.get(token)).copied();
        let known = known.filter(|key| self.sessions.get(key).is_some_and(|session| session.user == user));
        let key = match known {
            Some(key) => key,
            None => self.new_session(user)?,
        };
        let session = self.sessions.get_mut(&key).expect("the session is there");
        (session.pid, session.until) = (Some(pid), None);
        let (token, held) = (session.token.clone(), session.flows.clone());
        let flows = held
            .into_iter()
            .filter_map(|(id, flow)| Some(HeldFlow { id, rate_bps: self.manager.granted(flow)?.as_bps() }));
        let flows = flows.collect();
        let lease_ms = self.spec.resources.lease.as_nanos() / 1_000_000;
        Ok((key, AllocationReply::Welcome { version: VERSION, session: token, lease_ms, flows }))
    }

    fn new_session(&mut self, user: UserId) -> Result<ClientKey, SysError> {
        let bytes: [u8; 16] =
            cutline_sys::random().map_err(|error| SysError::new("cannot get random numbers", error))?;
        let token = format!("{:032x}", u128::from_be_bytes(bytes));
        let key = ClientKey(self.next_key);
        self.next_key += 1;
        self.tokens.insert(token.clone(), key);
        self.changes.push(Change::Session(SessionRecord { key, token: token.clone(), user }));
        let (pid, flows, until, next_renewal) = (None, BTreeMap::new(), None, Instant::ZERO);
        self.sessions.insert(key, HostSession { token, user, pid, flows, until, next_renewal });
        Ok(key)
    }

    /// Ends a session, whose client has gone. All of its flows end.
    pub fn end(&mut self, key: ClientKey) {
        let Some(session) = self.sessions.remove(&key) else { return };
        self.tokens.remove(&session.token);
        for flow in self.manager.release_client(key) {
            self.forget(flow);
        }
        self.changes.push(Change::End(key));
    }

    /// Forgets a flow that has ended at the manager.
    fn forget(&mut self, flow: FlowId) -> Option<FlowPlace> {
        self.kernel_classes.touch();
        let place = self.places.remove(&flow)?;
        if let Some(session) = self.sessions.get_mut(&place.key) {
            session.flows.remove(&place.id);
        }
        self.touched.remove(&flow);
        self.missed.remove(&flow);
        self.changes.push(Change::Gone(flow));
        Some(place)
    }

    /// Handles a request of a session; `hello` and `status` are handled elsewhere.
    pub fn handle(&mut self, now: Instant, key: ClientKey, request: &AllocationRequest) {
        match *request {
            AllocationRequest::Hello { .. } | AllocationRequest::Status {} => {}
            AllocationRequest::Admit { id, ref need } => self.admit(now, key, id, need),
            AllocationRequest::Change { id, desired_bps, minimum_bps, delay_ms, loss_percent } => {
                let edges = FlowEdges { delay: delay_ms, loss: loss_percent };
                self.change(now, key, id, (desired_bps, minimum_bps), edges);
            }
            AllocationRequest::Move { id, source } => self.move_flow(key, id, source),
            AllocationRequest::Report { id, report } => {
                if let Some(flow) = self.flow_of(key, id) {
                    self.manager.report(now, key, flow, &report.report());
                }
            }
            AllocationRequest::Missed { id, missed } => {
                if let Some(flow) = self.flow_of(key, id) {
                    self.missed.insert(flow, missed);
                }
            }
            AllocationRequest::Renew {} => {
                let Some(session) = self.sessions.get_mut(&key).filter(|its| now >= its.next_renewal) else {
                    return;
                };
                // A client with many flows could otherwise use all of the manager's time.
                session.next_renewal = now.saturating_add(self.spec.resources.lease / RENEWALS);
                for flow in session.flows.values() {
                    self.manager.renew(now, key, *flow);
                }
            }
            AllocationRequest::Release { id } => {
                if let Some(flow) = self.flow_of(key, id) {
                    self.manager.release(key, flow);
                    self.forget(flow);
                }
                self.replies.push_back((key, AllocationReply::Released { id }));
            }
        }
    }

    fn flow_of(&self, key: ClientKey, id: u64) -> Option<FlowId> {
        self.sessions.get(&key)?.flows.get(&id).copied()
    }

    fn refuse(&mut self, key: ClientKey, id: u64, reason: String) {
        self.replies.push_back((key, AllocationReply::Refused { id, reason }));
    }

    fn admit(&mut self, now: Instant, key: ClientKey, id: u64, need: &FlowNeed) {
        let Some(session) = self.sessions.get(&key) else { return };
        let user = session.user;
        if session.flows.contains_key(&id) {
            return self.refuse(
                key,
                id,
                format!("id = {id}: allowed is a number that no flow of the client has"),
            );
        }
        if let Some(why) = self.foreign_source(need.source) {
            return self.refuse(key, id, why);
        }
        let interface = self.interface_of(need);
        let (desired, minimum) = self.rates(need.carrier, interface, (need.desired_bps, need.minimum_bps));
        let is_reserved = interface.is_some_and(|index| self.is_held(index, need, desired));
        let request = FlowRequest {
            user,
            client: key,
            class: need.class,
            carrier: need.carrier,
            interface,
            is_reserved,
            desired,
            minimum,
            cpu: self.cpu(need.carrier, desired),
            priority: need.priority,
            weight: need.weight,
        };
        let route = self.path_of(need).map(|path| FlowRoute { path, edges: need.edges() });
        let answer = self.manager.request(now, request, route);
        match answer {
            Ok(answer) => {
                if let Some(flow) = answer.flow() {
                    let (source, destination) = (need.source, need.destination);
                    self.places.insert(flow, FlowPlace { key, id, source, destination });
                    if let Some(session) = self.sessions.get_mut(&key) {
                        session.flows.insert(id, flow);
                    }
                    self.touched.insert(flow);
                }
                self.answer(key, id, &answer, desired);
            }
            Err(error) => self.refuse(key, id, error.to_string()),
        }
    }

    fn change(&mut self, now: Instant, key: ClientKey, id: u64, rates: (Option<u64>, u64), edges: FlowEdges) {
        let Some(flow) = self.flow_of(key, id) else {
            return self.refuse(
                key,
                id,
                format!("id = {id}: allowed is the number of a flow that the client has"),
            );
        };
        let Some(FlowRequest { carrier, interface, is_reserved, .. }) =
            self.manager.resources().flow(flow).copied()
        else {
            return;
        };
        let (desired, minimum) = self.rates(carrier, interface, rates);
        if is_reserved {
            if let Some(shortage) = self.shortage_without_reservation(flow, desired, minimum) {
                let why = self.in_words(&shortage);
                return self.refuse(key, id, why);
            }
            let capacities = self.manager.resources().capacities().clone();
            // They are the present ones, which are allowed.
            let _is_charged = self.charge(capacities, Some((flow, desired)));
        }
        let cpu = self.cpu(carrier, desired);
        match self.manager.change(now, key, flow, (desired, minimum, cpu), edges) {
            Ok(answer) => {
                self.touched.insert(flow);
                self.answer(key, id, &answer, desired);
            }
            Err(error) => self.refuse(key, id, error.to_string()),
        }
    }

    /// Returns the shortage at the interface of a flow whose reservation does not hold another desired rate. Without it the charge for the flow
    /// would lower others.
    fn shortage_without_reservation(
        &mut self,
        flow: FlowId,
        desired: Rate,
        minimum: Rate,
    ) -> Option<Shortage> {
        if self.held_flows(Some((flow, desired))).contains(&flow) {
            return None;
        }
        let found = self.manager.allocation(flow)?;
        let index = found.request.interface?;
        let resources = self.manager.resources();
        let InterfaceCapacity { rate, reserved } = *resources.capacities().interfaces.get(&index)?;
        let resource = ResourceKind::Interface(index);
        let promisable = (rate.as_bps() as f64 * resources.params().committed_share) as u64;
        let left = promisable.saturating_sub(reserved.as_bps()).saturating_sub(resources.committed(resource));
        let needed = found.promised.max(minimum).as_bps();
        (needed > left).then_some(Shortage { resource, scope: ShortageScope::Host, needed, left })
    }

    fn answer(&mut self, key: ClientKey, id: u64, answer: &AdmissionAnswer, desired: Rate) {
        let reply = match answer {
            AdmissionAnswer::Admitted { .. } => {
                AllocationReply::Admitted { id, rate_bps: desired.as_bps(), reduced: None }
            }
            AdmissionAnswer::Reduced { rate, shortage, .. } => {
                let reduced = Some(self.in_words(shortage));
                AllocationReply::Admitted { id, rate_bps: rate.as_bps(), reduced }
            }
            AdmissionAnswer::Refused(shortage) => {
                AllocationReply::Refused { id, reason: self.in_words(shortage) }
            }
        };
        self.replies.push_back((key, reply));
    }

    /// A shortage in words, with the name of an interface.
    fn in_words(&self, shortage: &Shortage) -> String {
        let Shortage { resource, scope, needed, left } = shortage;
        let whose = match scope {
            ShortageScope::Host => "",
            ShortageScope::User => "the user's share of ",
        };
        let unit = resource.unit();
        format!("{whose}{} is exhausted: {needed} {unit} needed, {left} left", self.name_of(*resource))
    }

    /// A resource in words.
    pub fn name_of(&self, resource: ResourceKind) -> String {
        match resource {
            ResourceKind::Interface(index) => {
                let name = self.interfaces.get(&index).cloned();
                format!("interface {}", name.unwrap_or_else(|| index.to_string()))
            }
            other => other.to_string(),
        }
    }

    /// The highest useful rate, at most the host's capacity, and the minimum.
    fn rates(
        &self,
        carrier: CarrierKind,
        interface: Option<InterfaceIndex>,
        (desired, minimum): (Option<u64>, u64),
    ) -> (Rate, Rate) {
        let Capacities { tcp, datagrams, combined, interfaces, .. } = self.manager.resources().capacities();
        let own = match carrier {
            CarrierKind::Tcp => tcp,
            CarrierKind::Datagrams => datagrams,
        };
        let of_interface = interface.and_then(|index| interfaces.get(&index)).map(|its| its.rate);
        let ceiling = [*own, *combined, of_interface].into_iter().flatten().fold(MOST_RATE, Rate::min);
        let minimum = Rate::from_bps(minimum);
        let desired = desired.map_or(ceiling, |desired| Rate::from_bps(desired).min(ceiling.max(minimum)));
        (desired.max(minimum), minimum)
    }

    /// CPU time of a flow, if it is limited.
    fn cpu(&self, carrier: CarrierKind, rate: Rate) -> CpuShare {
        if self.spec.capacities.cpu.is_none() {
            return CpuShare::ZERO;
        }
        let [tcp, datagrams] = self.spec.cpu_per_gbit;
        let cost = match carrier {
            CarrierKind::Tcp => tcp,
            CarrierKind::Datagrams => datagrams,
        };
        let millionths = u128::from(cost.as_millionths()) * u128::from(rate.as_bps()) / GIGABIT;
        CpuShare::from_millionths(u64::try_from(millionths).unwrap_or(u64::MAX)).min(MOST_CPU)
    }

    /// Returns why a flow is refused whose packets are not those of this host: classes of the kernel would serve packets that this host forwards
    /// for another one.
    fn foreign_source(&mut self, source: SocketAddr) -> Option<String> {
        let address = source.ip().to_canonical();
        let has_classes = self.spec.interfaces.iter().any(|interface| interface.has_classes);
        // No host forwards packets with a link-local source, and that of frames below IP need not be an address of IP.
        let is_own = address.is_unspecified() || link_local_zone(source).is_some();
        let routes = self.routes.as_mut().filter(|_| has_classes && !is_own)?;
        let is_local = matches!(routes.route(Question::from(address)), Ok(KernelRoute::Local));
        (!is_local).then(|| format!("source = {source}: allowed is an address of this host"))
    }

    /// Takes another source of a flow, whose connection was made again. The flow keeps its promise and its interface.
    fn move_flow(&mut self, key: ClientKey, id: u64, source: SocketAddr) {
        let Some(flow) = self.flow_of(key, id) else { return };
        if let Some(why) = self.foreign_source(source) {
            return self.refuse(key, id, why);
        }
        if let Some(place) = self.places.get_mut(&flow).filter(|place| place.source != source) {
            place.source = source;
            self.touched.insert(flow);
            self.kernel_classes.touch();
        }
    }

    /// The managed interface by which the kernel's route leads now.
    fn interface_of(&mut self, need: &FlowNeed) -> Option<InterfaceIndex> {
        let routes = self.routes.as_mut().filter(|_| !self.interfaces.is_empty())?;
        let (source, destination) = (need.source.ip().to_canonical(), need.destination.ip().to_canonical());
        let source =
            (!source.is_unspecified() && source.is_ipv4() == destination.is_ipv4()).then_some(source);
        let transport = Some((protocol(need.carrier), (need.source.port(), need.destination.port())));
        let mark = self.spec.route_mark;
        let outgoing = link_local_zone(need.destination);
        let question = Question { source, transport, mark, outgoing, ..Question::from(destination) };
        let index = match (routes.route(question), outgoing) {
            (Ok(KernelRoute::Local), _) => return None,
            // Frames below IP need no route.
            (_, Some(zone)) => zone,
            (Ok(KernelRoute::Leaves(hop)), None) => hop.interface,
            _ => return None,
        };
        let index = InterfaceIndex(index);
        self.interfaces.contains_key(&index).then_some(index)
    }

    /// Returns whether a reservation holds the desired rate of a new flow, and of no other flow.
    fn is_held(&self, interface: InterfaceIndex, need: &FlowNeed, desired: Rate) -> bool {
        let Some(name) = self.interfaces.get(&interface) else { return false };
        let packets = selector(need.carrier, need.source, need.destination);
        let is_other = |(flow, place): (&FlowId, &FlowPlace)| {
            (place.source, place.destination) == (need.source, need.destination)
                && self.manager.resources().flow(*flow).is_some_and(|its| its.is_reserved)
        };
        self.reserved.hold(name, &packets, desired) && !self.places.iter().any(is_other)
    }

    /// The path with the longest prefix of the destination.
    fn path_of(&self, need: &FlowNeed) -> Option<PathId> {
        let address = need.destination.ip();
        let all = self.spec.paths.iter().flat_map(|path| {
            let its = path.destinations.iter().filter(|prefix| prefix.contains(address));
            its.map(|prefix| (prefix.bits(), path.path))
        });
        all.max_by_key(|(bits, _)| *bits).map(|(_, path)| path)
    }

    /// Receives summaries of other hosts.
    pub fn receive_summaries(&mut self, now: Instant) {
        let Some(paths) = &mut self.paths else { return };
        for arrived in paths.receive(now) {
            if self.manager.receive(now, arrived.host, arrived.path, &arrived.message).is_err() {
                paths.note_refused(arrived.path);
            }
        }
    }

    /// The time at which [`ManagedHost::handle_deadline`] is to be called.
    pub fn deadline(&self) -> Instant {
        let snapshot = if self.is_stale { self.next_snapshot } else { Instant::FAR_FUTURE };
        self.manager.deadline().min(self.next_second).min(snapshot).min(self.kernel_classes.deadline())
    }

    /// Handles a due deadline.
    pub fn handle_deadline(&mut self, now: Instant) {
        if now >= self.manager.deadline() {
            self.manager.handle_deadline(now);
        }
        if now >= self.next_second {
            self.next_second = now.saturating_add(SECOND);
            self.update_capacities();
            if self.clock.is_set_forward(now, unix_time()) {
                self.manager.raise_numbers(unix_time().as_nanos());
            }
            // Limits and numbers of paths are in snapshots alone.
            self.is_stale |= self.paths.is_some() || !self.spec.paths.is_empty() && !self.places.is_empty();
            let is_over = |session: &HostSession| session.until.is_some_and(|until| now >= until);
            let over: Vec<ClientKey> =
                self.sessions.iter().filter(|(_, session)| is_over(session)).map(|(key, _)| *key).collect();
            for key in over {
                self.end(key);
            }
        }
    }

    /// Takes the manager's outputs.
    pub fn settle(&mut self, now: Instant) {
        debug_assert!(now > Instant::ZERO, "the clock runs");
        while let Some(output) = self.manager.poll() {
            match output {
                ManagerOutput::Allocation(event) => self.notify(event),
                ManagerOutput::Send { path, to, message } => {
                    if let Some(paths) = &mut self.paths {
                        paths.send(path, Some(to), &message);
                    }
                }
                ManagerOutput::Broadcast { path, message } => {
                    if let Some(paths) = &mut self.paths {
                        paths.send(path, None, &message);
                    }
                }
                ManagerOutput::Exhausted { path } => {
                    self.notices
                        .push(format!("path {path}: all flows are at their minima, and it is overloaded"));
                }
            }
        }
        self.update_classes(now);
    }

    /// Makes the classes of the kernel as the flows need them.
    fn update_classes(&mut self, now: Instant) {
        let mut classes = std::mem::take(&mut self.kernel_classes);
        classes.update(now, || self.wanted_classes());
        self.notices.extend(classes.notices());
        self.kernel_classes = classes;
    }

    /// Returns the classes of the kernel as the flows need them: a real-time flow counts with its rate, a time-shared one with its promise,
    /// because the rest of its rate is not promised. Packets have one class: a flow that names those of another flow adds nothing, and
    /// real-time flows come first.
    fn wanted_classes(&mut self) -> WantedClasses {
        let mut flows = Vec::with_capacity(self.places.len());
        for (flow, place) in &self.places {
            let Some(found) = self.manager.allocation(*flow) else { continue };
            let Some(index) = found.request.interface else { continue };
            let packets = selector(found.request.carrier, place.source, place.destination);
            flows.push(match found.request.class {
                SchedulingClass::RealTime => (0, index, packets, found.granted),
                SchedulingClass::TimeShared => (1, index, packets, found.promised),
            });
        }
        // Within a class they stay in the order of their admission.
        flows.sort_by_key(|(class, ..)| *class);
        let (mut wanted, mut seen) = (WantedClasses::new(), BTreeSet::new());
        for (class, index, packets, rate) in flows {
            let Some(name) = self.interfaces.get(&index) else { continue };
            if packets.check().is_ok() && seen.insert((index, packets)) {
                let class = &mut wanted.entry(name.clone()).or_default()[class];
                class.packets.insert(packets);
                class.rate = Rate::from_bps(class.rate.as_bps() + rate.as_bps());
            }
        }
        wanted
    }

    fn notify(&mut self, event: AllocationEvent) {
        self.kernel_classes.touch();
        let flow = event.flow();
        if let AllocationEvent::Revoked { cause, .. } = event {
            if let Some(FlowPlace { key, id, .. }) = self.forget(flow) {
                self.replies.push_back((key, AllocationReply::Revoked { id, cause }));
            }
            return;
        }
        let Some(FlowPlace { key, id, .. }) = self.places.get(&flow).copied() else { return };
        let (before, cause) = match event {
            AllocationEvent::Lowered { from, cause, .. } | AllocationEvent::Raised { from, cause, .. } => {
                (Some(from.as_bps()), cause)
            }
            _ => (None, cutline_manager::resources::AllocationCause::Request),
        };
        // The rate of a real-time flow is a promise, and those of time-shared ones follow from the others.
        if self.manager.resources().flow(flow).is_some_and(|its| its.class == SchedulingClass::RealTime) {
            self.touched.insert(flow);
        }
        let rate_bps = event.rate().as_bps();
        self.replies.push_back((key, AllocationReply::Rate { id, before_bps: before, rate_bps, cause }));
    }

    /// Writes the changes into the journal, or a snapshot if it is time.
    pub fn commit(&mut self, now: Instant) {
        for flow in std::mem::take(&mut self.touched) {
            if let (Some(place), Some(record)) = (self.places.get(&flow), self.manager.record(now, flow)) {
                self.changes.push(Change::Flow(Box::new(record), *place));
            }
        }
        let mut changes = std::mem::take(&mut self.changes);
        let stats = *self.manager.resources().stats();
        if std::mem::replace(&mut self.committed_stats, stats) != stats {
            changes.push(Change::Counters(stats));
        }
        self.is_stale |= self.store.note_changes(&changes);
        if self.is_stale && now >= self.next_snapshot {
            self.is_stale = false;
            self.next_snapshot = now.saturating_add(SECOND);
            let state = self.state(now);
            self.store.replace(state);
        }
        self.notices.extend(self.store.problem());
    }

    /// Writes a snapshot, as at the end of the process.
    pub fn save(&mut self, now: Instant) {
        let state = self.state(now);
        self.store.replace(state);
    }

    fn state(&mut self, now: Instant) -> StoredState {
        let session = |(key, session): (&ClientKey, &HostSession)| SessionRecord {
            key: *key,
            token: session.token.clone(),
            user: session.user,
        };
        StoredState {
            next_key: self.next_key,
            manager: self.manager.snapshot(now),
            sessions: self.sessions.iter().map(session).collect(),
            places: self.places.iter().map(|(flow, place)| (*flow, *place)).collect(),
            numbers: self.paths.as_ref().map(PathSocket::numbers).unwrap_or_default(),
            classed: self.kernel_classes.names(),
        }
    }

    /// Takes the next reply, with its session.
    pub fn reply(&mut self) -> Option<(ClientKey, AllocationReply)> {
        self.replies.pop_front()
    }

    /// Takes the notices for the log.
    pub fn notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }
}

/// Returns the interface of a link-local address of IPv6, which is in its zone; `None` for other addresses.
fn link_local_zone(address: SocketAddr) -> Option<u32> {
    match address {
        SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() => Some(v6.scope_id()).filter(|zone| *zone > 0),
        _ => None,
    }
}
