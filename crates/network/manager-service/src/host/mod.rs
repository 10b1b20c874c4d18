//! The manager with its sessions and flows.
//!
//! Requests and the time come in, replies come out ([`ManagedHost::reply`]). Changes are in the journal
//! ([`ManagedHost::commit`]) before replies are taken.

mod capacities;
mod classes;
mod requests;
mod routing;
mod sessions;
mod state;

use crate::access::AccessRules;
use crate::config::{ManagerSpec, PathKey};
use crate::error::ManagerServiceError;
use crate::kernel_classes::KernelClasses;
use crate::paths::{ClockWatch, PathSocket};
use crate::reserved::ReservedRates;
use crate::store::{Change, FlowPlace, Store};
use cutline_allocation::protocol::AllocationReply;
use cutline_manager::feedback::PathId;
use cutline_manager::resources::{
    AllocationEvent, ClientKey, FlowId, InterfaceIndex, ResourceStats, SchedulingClass, UserId, UserPolicy,
};
use cutline_manager::{Manager, ManagerOutput, ManagerStart};
use cutline_netlink::RouteLookup;
use cutline_params::ParameterError;
use cutline_sys::clock::unix_time;
use cutline_units::Instant;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Interval at which numbers of interfaces are looked up, and the state is written if paths have changed.
const SECOND: cutline_units::Duration = cutline_units::Duration::from_secs(1);
/// More numbers than the summaries of a host between two snapshots have.
const UNWRITTEN_NUMBERS: u64 = 1_000_000_000;
/// The highest number from which summaries begin.
const MOST_NUMBER: u64 = 1 << 63;

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
    /// Names of the interfaces that are not there.
    missing: BTreeSet<String>,
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
        let start = |least_number: u64| ManagerStart {
            resources: spec.resources.clone(),
            feedback: spec.feedback.clone(),
            capacities: spec.capacities.clone(),
            host: spec.host,
            number: unix_time().as_nanos().max(least_number),
        };
        let classed = stored.as_ref().map_or_else(Vec::new, |stored| stored.classed.clone());
        // Of a state that is not used, only the numbers of summaries count.
        let mut unused = earlier_boot;
        let restored = stored.and_then(|stored| match Manager::restore(now, start(0), &stored.manager) {
            Ok(manager) => Some((manager, stored)),
            Err(error) => {
                notices.push(format!("the state of the earlier resource manager is not used: {error}"));
                unused = Some(stored);
                None
            }
        });
        let least_number = unused.as_ref().map_or(0, |state| {
            state.manager.highest_number().saturating_add(UNWRITTEN_NUMBERS).min(MOST_NUMBER)
        });
        let paths = match spec.listen.filter(|_| spec.paths.iter().any(|path| !path.peers.is_empty())) {
            Some(listen) => Some(PathSocket::open(listen, keys, &spec.paths, spec.feedback.interval)?),
            None => None,
        };
        let (manager, stored) = match restored {
            Some((manager, stored)) => (manager, Some(stored)),
            None => (Manager::new(start(least_number))?, None),
        };
        let mut this = Self {
            manager,
            reserved: ReservedRates::default(),
            interfaces: BTreeMap::new(),
            missing: BTreeSet::new(),
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
        if let (Some(paths), Some(state)) = (&mut this.paths, unused) {
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

    /// Takes the next reply, with its session.
    pub fn reply(&mut self) -> Option<(ClientKey, AllocationReply)> {
        self.replies.pop_front()
    }

    /// Takes the notices for the log.
    pub fn notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }
}
