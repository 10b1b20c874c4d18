//! Resource manager of a host (QUANTA section 5, resource allocation and global resource control).
//!
//! [`Capacities`] are those of the host: the ceilings that were measured for TCP, for datagrams and for both together,
//! CPU time, and the rates of its interfaces without RSVP's reservations. A [`FlowRequest`] gets an
//! [`AdmissionAnswer`]: admitted, admitted with less, or refused, with the [`Shortage`] that is the reason.
//!
//! - *Real-time* flows get hard shares. A request takes from the promisable part ([`ResourceParams::committed_share`]
//!   of each capacity), and at most the user's part of that ([`ResourceParams::user_share`]). No later request
//!   takes it away.
//! - *Time-shared* flows get their minimum for certain, which is a promise like a real-time flow's, and share the rest
//!   by weighted max-min fairness: among users first, then among the flows of each (`fill.rs`). Linux' HTB divides
//!   in the same way, with the minimum as `rate` and the rest by `quantum`.
//!
//! A flow's charges are its rate at its carrier's ceiling, at the ceiling of both and at its interface, and the CPU
//! time for that rate. All accounts are in whole numbers, so exactly the taken amount is returned. Nothing is
//! ever over-committed: neither the rates that the manager has decided on nor, since events that take come before those
//! that give, the rates that flows were notified of.
//!
//! Example: 100 Mbit/s, of which 75 may be promised, and 37.5 to one user. A video with 20 to 40 Mbit/s gets 37.5. Two
//! users' downloads share the rest, 62.5: 31.25 each, rounded down to 6 binary digits 30.9.
//!
//! # Clients that lie, are stuck or die
//!
//! A flow's weight and priority count among the flows of its user alone, up to [`UserPolicy`]; the user's promises and
//! flows are limited. A flow that is not reported for [`ResourceParams::lease`] is revoked
//! ([`ResourceManager::renew`]), and the flows of a client that has died are released at once
//! ([`ResourceManager::release_client`]).
//!
//! # Capacities that shrink
//!
//! Real-time flows are lowered towards their minima until promises fit into the promisable part: first those of users
//! that hold more than their part, then in the owner's order ([`LoweringOrder`]), one after the other. Flows are
//! revoked only where minima exceed the whole capacity, in the same order. When there is room again, flows are raised
//! in the reverse order.

mod capacity;
mod degrade;
mod events;
mod fill;
mod ledger;
mod params;
mod request;
mod sharing;
mod snapshot;

pub use capacity::{
    Capacities, CarrierKind, CpuShare, InterfaceCapacity, InterfaceIndex, MOST_CPU, MOST_INTERFACES,
    MOST_RATE, ResourceKind,
};
pub use events::{AllocationCause, AllocationEvent};
pub use params::{LoweringOrder, ResourceParams};
pub use request::{
    AdmissionAnswer, ClientKey, FlowId, FlowRequest, HIGHEST_PRIORITY, MOST_WEIGHT, SchedulingClass,
    Shortage, ShortageScope, UserId, UserPolicy,
};
pub use snapshot::{AllocationRecord, RESOURCE_SNAPSHOT_VERSION, ResourceSnapshot, SnapshotError};

use cutline_params::{ParameterError, Parameters as _};
use cutline_units::{Instant, Rate};
use fill::CPU;
use ledger::{Ledger, Places, add, subtract};
use sharing::SharePosition;
use slab::Slab;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Counters of a resource manager.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceStats {
    /// Requests that were admitted with the desired rate.
    pub admitted: u64,
    /// Requests that were admitted with less.
    pub reduced: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Flows whose client released them, or died.
    pub released: u64,
    /// Flows that were revoked because capacities shrank.
    pub revoked: u64,
    /// Flows that were revoked because their lease had expired.
    pub expired: u64,
}

/// Allocation of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowAllocation {
    /// The request, with the priority that counts.
    pub request: FlowRequest,
    /// The rate that it may use.
    pub granted: Rate,
    /// The rate that others cannot take: the admitted rate of a real-time flow, the minimum of a time-shared one.
    pub promised: Rate,
    /// Limit of its path; `None` if there is none.
    pub limit: Option<Rate>,
    /// Resource that limits the share of a time-shared flow; `None` if it has all that it may use.
    pub limited_by: Option<ResourceKind>,
    /// End of its lease, if it is not renewed.
    pub lease: Instant,
}

/// Event that a flow is to be notified by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notice {
    None,
    Fall,
    Rise,
}

/// A flow that was admitted.
#[derive(Clone, Debug)]
struct Flow {
    id: FlowId,
    request: FlowRequest,
    places: Places,
    /// Promise, bit/s: the rate of a real-time flow, the minimum of a time-shared one.
    committed: u64,
    /// Limit of the path's feedback, bit/s.
    limit: u64,
    /// Rate that it may use, bit/s.
    granted: u64,
    /// Rate that it was notified of.
    reported: Option<u64>,
    notice: Notice,
    cause: AllocationCause,
    /// Cause of the next change of its share, if it is not that of all shares.
    own_cause: Option<AllocationCause>,
    /// The resource that limits its share.
    limited_by: Option<usize>,
    lease: Instant,
}

impl Flow {
    /// The most that it may use, bit/s.
    fn most(&self) -> u64 {
        self.limited(self.request.desired.as_bps())
    }

    /// A rate within the limit. A limit below the minimum counts as the minimum.
    fn limited(&self, bps: u64) -> u64 {
        bps.min(self.limit.max(self.minimum()))
    }

    fn minimum(&self) -> u64 {
        self.request.minimum.as_bps()
    }

    fn is_real_time(&self) -> bool {
        self.request.class == SchedulingClass::RealTime
    }

    fn charges(&self, bps: u64) -> impl Iterator<Item = (usize, u64)> + use<> {
        self.places.charges(&self.request, bps)
    }

    /// The charge at a place.
    fn charge(&self, place: usize, bps: u64) -> u64 {
        self.charges(bps).find(|(used, _)| *used == place).map_or(0, |(_, amount)| amount)
    }

    /// The highest rate with this charge at a place, at most the desired one.
    fn bps_with(&self, place: usize, amount: u64) -> u64 {
        if place == CPU { self.request.bps_with(amount) } else { amount.min(self.request.desired.as_bps()) }
    }
}

/// A user with flows.
#[derive(Clone, Debug, Default)]
struct User {
    flows: u32,
    /// Promises by place.
    committed: Vec<u64>,
    /// Time-shared flows, in the order in which their demands are met.
    sharers: BTreeSet<SharePosition>,
}

/// Resource manager of a host. After each call its owner takes events with [`ResourceManager::poll`] until there are none.
#[derive(Clone, Debug)]
pub struct ResourceManager {
    params: ResourceParams,
    capacities: Capacities,
    ledger: Ledger,
    flows: Slab<Flow>,
    by_id: BTreeMap<FlowId, usize>,
    users: BTreeMap<UserId, User>,
    policies: BTreeMap<UserId, UserPolicy>,
    clients: BTreeMap<ClientKey, BTreeSet<FlowId>>,
    leases: BTreeSet<(Instant, FlowId)>,
    /// Real-time flows with less than they desire, in the order in which flows are lowered.
    below: BTreeSet<LoweringKey>,
    /// Cause of changes of shares, if they have to be computed.
    stale: Option<AllocationCause>,
    falls: BTreeSet<FlowId>,
    rises: BTreeSet<FlowId>,
    revoked: VecDeque<AllocationEvent>,
    next: FlowId,
    stats: ResourceStats,
}

/// Place in the order of lowering: the rank of the owner's order, then the newest first.
type LoweringKey = (u64, Reverse<FlowId>);

impl ResourceManager {
    /// A manager without flows.
    ///
    /// # Errors
    /// When a parameter or a capacity is not allowed.
    pub fn new(params: ResourceParams, capacities: Capacities) -> Result<Self, ParameterError> {
        params.validate()?;
        capacities.validate()?;
        Ok(Self {
            ledger: Ledger::new(&params, &capacities, &BTreeSet::new()),
            params,
            capacities,
            flows: Slab::new(),
            by_id: BTreeMap::new(),
            users: BTreeMap::new(),
            policies: BTreeMap::new(),
            clients: BTreeMap::new(),
            leases: BTreeSet::new(),
            below: BTreeSet::new(),
            stale: None,
            falls: BTreeSet::new(),
            rises: BTreeSet::new(),
            revoked: VecDeque::new(),
            next: FlowId(1),
            stats: ResourceStats::default(),
        })
    }

    /// Sets the policy for a user. Promises to flows that exist stay; limits hold for later requests, and priorities of
    /// flows that exist stay.
    ///
    /// # Errors
    /// When a value is not allowed.
    pub fn set_policy(&mut self, user: UserId, policy: UserPolicy) -> Result<(), ParameterError> {
        policy.validate()?;
        self.policies.insert(user, policy);
        self.share_anew(AllocationCause::Share);
        Ok(())
    }

    /// Decides on a flow. Its lease begins now.
    ///
    /// # Errors
    /// When a value is not allowed. A lack of resources is an [`AdmissionAnswer::Refused`].
    pub fn request(&mut self, now: Instant, request: FlowRequest) -> Result<AdmissionAnswer, ParameterError> {
        let places = self.check(&request)?;
        if let Some(shortage) = self.flow_budget(request.user) {
            self.stats.refused += 1;
            return Ok(AdmissionAnswer::Refused(shortage));
        }
        let policy = self.policy(request.user);
        let request = FlowRequest { priority: request.priority.min(policy.priority_limit), ..request };
        let flow = Flow {
            id: self.next,
            request,
            places,
            committed: 0,
            limit: u64::MAX,
            granted: 0,
            reported: None,
            notice: Notice::None,
            cause: AllocationCause::Request,
            own_cause: None,
            limited_by: None,
            lease: now.saturating_add(self.params.lease),
        };
        let (committed, shortage) = match self.fit(&flow) {
            Ok(fit) => fit,
            Err(shortage) => {
                self.stats.refused += 1;
                return Ok(AdmissionAnswer::Refused(shortage));
            }
        };
        self.next = FlowId(self.next.0 + 1);
        let slot = self.insert(flow, committed);
        let answer = self.answer(slot, shortage);
        match answer {
            AdmissionAnswer::Admitted { .. } => self.stats.admitted += 1,
            _ => self.stats.reduced += 1,
        }
        Ok(answer)
    }

    /// Changes the rates and the CPU time of a flow, and renews its lease. If the answer is a refusal, the flow keeps
    /// its allocation.
    ///
    /// # Errors
    /// When a value is not allowed, or the client holds no such flow.
    pub fn change(
        &mut self,
        now: Instant,
        client: ClientKey,
        flow: FlowId,
        (desired, minimum, cpu): (Rate, Rate, CpuShare),
    ) -> Result<AdmissionAnswer, ParameterError> {
        let Some(slot) = self.slot_of(client, flow) else {
            return Err(ParameterError::new("flow", flow, "the number of a flow that the client holds"));
        };
        let request = FlowRequest { desired, minimum, cpu, ..self.flows[slot].request };
        request.validate()?;
        self.renew(now, client, flow);
        self.uncount(slot);
        let before = self.flows[slot].clone();
        self.flows[slot].request = request;
        let fit = self.fit(&self.flows[slot]);
        let (committed, answer) = match fit {
            Ok((committed, shortage)) => (committed, Ok(shortage)),
            Err(shortage) => {
                let committed = before.committed;
                self.flows[slot] = before;
                (committed, Err(shortage))
            }
        };
        self.count(slot, committed);
        match answer {
            Ok(shortage) => {
                self.flows[slot].own_cause = Some(AllocationCause::Request);
                self.set_real_time(slot, AllocationCause::Request);
                self.freed(AllocationCause::Share);
                Ok(self.answer(slot, shortage))
            }
            Err(shortage) => {
                self.stats.refused += 1;
                Ok(AdmissionAnswer::Refused(shortage))
            }
        }
    }

    /// Renews the lease of a flow that a client reports. Returns whether the client holds the flow.
    pub fn renew(&mut self, now: Instant, client: ClientKey, flow: FlowId) -> bool {
        let Some(slot) = self.slot_of(client, flow) else { return false };
        let lease = now.saturating_add(self.params.lease);
        self.leases.remove(&(self.flows[slot].lease, flow));
        self.leases.insert((lease, flow));
        self.flows[slot].lease = lease;
        true
    }

    /// Renews all leases, as after an interruption in which clients could not report.
    pub fn renew_all(&mut self, now: Instant) {
        let lease = now.saturating_add(self.params.lease);
        self.leases = self.by_id.keys().map(|flow| (lease, *flow)).collect();
        for (_, flow) in &mut self.flows {
            flow.lease = lease;
        }
    }

    /// Ends a flow at its client's request; there is no event for it. Returns whether the client held the flow.
    pub fn release(&mut self, client: ClientKey, flow: FlowId) -> bool {
        let Some(slot) = self.slot_of(client, flow) else { return false };
        self.remove(slot);
        self.stats.released += 1;
        self.freed(AllocationCause::Share);
        true
    }

    /// Ends all flows of a client that has died or left; there are no events for them. Returns the flows.
    pub fn release_client(&mut self, client: ClientKey) -> Vec<FlowId> {
        let flows: Vec<FlowId> = self.clients.get(&client).into_iter().flatten().copied().collect();
        for flow in &flows {
            self.remove(self.by_id[flow]);
        }
        self.stats.released += flows.len() as u64;
        if !flows.is_empty() {
            self.freed(AllocationCause::Share);
        }
        flows
    }

    /// Changes the capacities. Flows are lowered, revoked or raised, as described in the module's documentation.
    ///
    /// # Errors
    /// When a capacity is not allowed; then nothing changes.
    pub fn set_capacities(&mut self, capacities: Capacities) -> Result<(), ParameterError> {
        capacities.validate()?;
        self.capacities = capacities;
        self.recount();
        self.degrade();
        self.freed(AllocationCause::Capacity);
        Ok(())
    }

    /// Changes the capacities, as [`ResourceManager::set_capacities`] does, and states the flows whose rates reservations of RSVP
    /// hold, within [`InterfaceCapacity::reserved`]: all others are charged at their interfaces.
    ///
    /// # Errors
    /// When a capacity is not allowed; then nothing changes.
    pub fn set_reserved(
        &mut self,
        capacities: Capacities,
        flows: &BTreeSet<FlowId>,
    ) -> Result<(), ParameterError> {
        capacities.validate()?;
        // The accounts are made again below, without the charges of before.
        for (_, flow) in &mut self.flows {
            flow.request.is_reserved = flows.contains(&flow.id);
        }
        self.set_capacities(capacities)
    }

    /// Limits a flow's rate, because its path cannot carry more ([`crate::feedback`]); `None` lifts the limit. A
    /// limit below the minimum counts as the minimum. A real-time flow keeps its promise meanwhile, and time-shared
    /// flows use the difference. Returns whether there is such a flow.
    pub fn set_limit(&mut self, flow: FlowId, limit: Option<Rate>) -> bool {
        let Some(slot) = self.by_id.get(&flow).copied() else { return false };
        let limit = limit.map_or(u64::MAX, Rate::as_bps);
        if limit != self.flows[slot].limit {
            let committed = self.flows[slot].committed;
            self.uncount(slot);
            self.flows[slot].limit = limit;
            self.flows[slot].own_cause = Some(AllocationCause::Path);
            self.count(slot, committed);
            self.set_real_time(slot, AllocationCause::Path);
            self.share_anew(AllocationCause::Share);
        }
        true
    }

    /// The time at which [`ResourceManager::handle_deadline`] is to be called; [`Instant::FAR_FUTURE`] if never.
    pub fn deadline(&self) -> Instant {
        self.leases.first().map_or(Instant::FAR_FUTURE, |(lease, _)| *lease)
    }

    /// Revokes flows whose lease has expired.
    pub fn handle_deadline(&mut self, now: Instant) {
        let mut has_expired = false;
        while let Some((lease, flow)) = self.leases.first().copied().filter(|(lease, _)| *lease <= now) {
            debug_assert!(lease <= now, "only what is due is taken");
            self.revoke(self.by_id[&flow], AllocationCause::Lease);
            self.stats.expired += 1;
            has_expired = true;
        }
        if has_expired {
            self.freed(AllocationCause::Share);
        }
    }

    /// Takes the next event: first those by which flows lose something, then those by which flows get something.
    pub fn poll(&mut self) -> Option<AllocationEvent> {
        self.settle();
        if let Some(event) = self.revoked.pop_front() {
            return Some(event);
        }
        let id = self.falls.pop_first().or_else(|| self.rises.pop_first())?;
        let flow = &mut self.flows[self.by_id[&id]];
        let (to, cause) = (Rate::from_bps(flow.granted), flow.cause);
        let before = flow.reported.replace(flow.granted).map(Rate::from_bps);
        flow.notice = Notice::None;
        Some(match before {
            None => AllocationEvent::Granted { flow: id, rate: to },
            Some(from) if from > to => AllocationEvent::Lowered { flow: id, from, to, cause },
            Some(from) => AllocationEvent::Raised { flow: id, from, to, cause },
        })
    }

    /// The rate that a flow may use; `None` if there is no such flow.
    pub fn granted(&mut self, flow: FlowId) -> Option<Rate> {
        self.settle();
        self.by_id.get(&flow).map(|slot| Rate::from_bps(self.flows[*slot].granted))
    }

    /// Returns the largest rate, up to the desired one, that the host could carry of a flow if it were alone; `None` if
    /// there is no such flow.
    pub fn ceiling(&self, flow: FlowId) -> Option<Rate> {
        let flow = &self.flows[*self.by_id.get(&flow)?];
        let desired = flow.request.desired.as_bps();
        let bounds =
            flow.charges(desired).filter_map(|(place, _)| Some((place, self.ledger.bounds[place].capacity?)));
        Some(Rate::from_bps(
            bounds.fold(desired, |most, (place, capacity)| most.min(flow.bps_with(place, capacity))),
        ))
    }

    /// Returns the state of a flow; `None` if there is no such flow.
    pub fn allocation(&mut self, flow: FlowId) -> Option<FlowAllocation> {
        self.settle();
        let flow = &self.flows[*self.by_id.get(&flow)?];
        Some(FlowAllocation {
            request: flow.request,
            granted: Rate::from_bps(flow.granted),
            promised: Rate::from_bps(flow.committed),
            limit: (flow.limit < u64::MAX).then(|| Rate::from_bps(flow.limit)),
            limited_by: flow.limited_by.map(|place| self.ledger.kind(place)),
            lease: flow.lease,
        })
    }

    /// The request of a flow, with the priority that counts; `None` if there is no such flow.
    pub fn flow(&self, flow: FlowId) -> Option<&FlowRequest> {
        self.by_id.get(&flow).map(|slot| &self.flows[*slot].request)
    }

    /// All flows, oldest first.
    pub fn flows(&self) -> impl Iterator<Item = FlowId> {
        self.by_id.keys().copied()
    }

    /// The parameters.
    pub const fn params(&self) -> &ResourceParams {
        &self.params
    }

    /// The capacities.
    pub const fn capacities(&self) -> &Capacities {
        &self.capacities
    }

    /// The amount of a resource that is promised, in its unit.
    pub fn committed(&self, resource: ResourceKind) -> u64 {
        if resource == ResourceKind::Flows {
            return self.by_id.len() as u64;
        }
        self.ledger.place(resource).map_or(0, |place| self.ledger.committed[place])
    }

    /// The amount of a resource that flows may use now, in its unit.
    pub fn in_use(&mut self, resource: ResourceKind) -> u64 {
        self.settle();
        if resource == ResourceKind::Flows {
            return self.by_id.len() as u64;
        }
        let place = self.ledger.place(resource);
        place.map_or(0, |place| self.flows.iter().map(|(_, flow)| flow.charge(place, flow.granted)).sum())
    }

    /// The counters.
    pub const fn stats(&self) -> &ResourceStats {
        &self.stats
    }

    fn policy(&self, user: UserId) -> UserPolicy {
        self.policies.get(&user).copied().unwrap_or_default()
    }

    fn slot_of(&self, client: ClientKey, flow: FlowId) -> Option<usize> {
        let slot = self.by_id.get(&flow).copied()?;
        (self.flows[slot].request.client == client).then_some(slot)
    }

    fn check(&self, request: &FlowRequest) -> Result<Places, ParameterError> {
        request.validate()?;
        let index = request.interface.filter(|index| !self.capacities.interfaces.contains_key(index));
        if let Some(index) = index {
            let known: Vec<_> = self.capacities.interfaces.keys().map(ToString::to_string).collect();
            let known = if known.is_empty() {
                "off: no interface is managed".to_owned()
            } else {
                format!("one of {}", known.join(", "))
            };
            return Err(ParameterError::new("interface", index, known));
        }
        Ok(self.ledger.places(request).expect("the interface has a place"))
    }

    fn flow_budget(&self, user: UserId) -> Option<Shortage> {
        let (all, own) = (self.by_id.len() as u64, self.users.get(&user).map_or(0, |user| user.flows));
        let shortage = |scope| Shortage { resource: ResourceKind::Flows, scope, needed: 1, left: 0 };
        if all >= u64::from(self.params.most_flows) {
            return Some(shortage(ShortageScope::Host));
        }
        (own >= self.params.most_flows_per_user).then(|| shortage(ShortageScope::User))
    }

    /// The part of a resource that a user may hold for certain; `None` is everything.
    fn user_bound(&self, user: UserId, place: usize) -> Option<u64> {
        let share = self.policy(user).share.unwrap_or(self.params.user_share);
        self.ledger.bounds[place].committable.map(|committable| (committable as f64 * share) as u64)
    }

    /// The amount of a resource that can still be promised to a user, and the party that limits it; `None` is everything.
    fn uncommitted(&self, user: UserId, place: usize) -> Option<(u64, ShortageScope)> {
        let host = self.ledger.bounds[place].committable?.saturating_sub(self.ledger.committed[place]);
        let held = self.users.get(&user).and_then(|user| user.committed.get(place)).copied().unwrap_or(0);
        let own = self.user_bound(user, place)?.saturating_sub(held);
        Some(if own < host { (own, ShortageScope::User) } else { (host, ShortageScope::Host) })
    }

    /// The promise that can be made to a flow, which holds none now: its desired rate, or less with the reason. An
    /// error gives the shortage for its minimum.
    fn fit(&self, flow: &Flow) -> Result<(u64, Option<Shortage>), Shortage> {
        let wanted = if flow.is_real_time() { flow.request.desired.as_bps() } else { flow.minimum() };
        let mut fit = wanted;
        let mut limit = None;
        for (place, _) in flow.charges(wanted) {
            let Some((left, scope)) = self.uncommitted(flow.request.user, place) else { continue };
            let most = flow.bps_with(place, left);
            if most < fit {
                (fit, limit) = (most, Some((place, scope, left)));
            }
        }
        let Some((place, scope, left)) = limit else { return Ok((fit, None)) };
        let resource = self.ledger.kind(place);
        let shortage = |bps| Shortage { resource, scope, needed: flow.charge(place, bps), left };
        if fit < flow.minimum() { Err(shortage(flow.minimum())) } else { Ok((fit, Some(shortage(wanted)))) }
    }

    fn insert(&mut self, flow: Flow, committed: u64) -> usize {
        let (id, user, client, lease) = (flow.id, flow.request.user, flow.request.client, flow.lease);
        let slot = self.flows.insert(flow);
        self.by_id.insert(id, slot);
        self.users.entry(user).or_default().flows += 1;
        self.clients.entry(client).or_default().insert(id);
        self.leases.insert((lease, id));
        self.count(slot, committed);
        self.set_real_time(slot, AllocationCause::Request);
        self.note(slot);
        self.share_anew(AllocationCause::Share);
        slot
    }

    /// Adds a flow to the accounts, with a promise.
    fn count(&mut self, slot: usize, committed: u64) {
        let flow = &mut self.flows[slot];
        flow.committed = committed;
        let flow = &self.flows[slot];
        let user = self.users.get_mut(&flow.request.user).expect("a flow's user is there");
        user.committed.resize(self.ledger.bounds.len(), 0);
        add(&mut self.ledger.committed, flow.charges(committed));
        add(&mut user.committed, flow.charges(committed));
        if flow.is_real_time() {
            add(&mut self.ledger.real_time, flow.charges(flow.limited(committed)));
            if committed < flow.request.desired.as_bps() {
                self.below.insert(self.lowering_key(flow));
            }
        } else {
            add(&mut self.ledger.minima, flow.charges(flow.minimum()));
            add(&mut self.ledger.wanted, flow.charges(flow.most()));
            user.sharers.insert(SharePosition::new(flow, slot));
        }
    }

    /// Takes a flow out of the accounts.
    fn uncount(&mut self, slot: usize) {
        let flow = &self.flows[slot];
        let user = self.users.get_mut(&flow.request.user).expect("a flow's user is there");
        subtract(&mut self.ledger.committed, flow.charges(flow.committed));
        subtract(&mut user.committed, flow.charges(flow.committed));
        if flow.is_real_time() {
            subtract(&mut self.ledger.real_time, flow.charges(flow.limited(flow.committed)));
            let key = self.lowering_key(flow);
            self.below.remove(&key);
        } else {
            subtract(&mut self.ledger.minima, flow.charges(flow.minimum()));
            subtract(&mut self.ledger.wanted, flow.charges(flow.most()));
            user.sharers.remove(&SharePosition::new(flow, slot));
        }
    }

    /// Recounts all flows for other capacities.
    fn recount(&mut self) {
        let used = self.flows.iter().filter_map(|(_, flow)| flow.request.interface).collect();
        self.ledger = Ledger::new(&self.params, &self.capacities, &used);
        self.below.clear();
        for user in self.users.values_mut() {
            user.committed.clear();
            user.sharers.clear();
        }
        for slot in self.by_id.values().copied().collect::<Vec<_>>() {
            let flow = &mut self.flows[slot];
            flow.places = self.ledger.places(&flow.request).expect("every interface in use has a place");
            // The places of the old accounts mean other resources.
            flow.limited_by = None;
            let committed = flow.committed;
            self.count(slot, committed);
        }
    }

    /// Takes a flow away.
    fn remove(&mut self, slot: usize) -> Flow {
        self.uncount(slot);
        let flow = self.flows.remove(slot);
        let (id, FlowRequest { user, client, .. }) = (flow.id, flow.request);
        self.by_id.remove(&id);
        self.leases.remove(&(flow.lease, id));
        self.forget_notice(id, flow.notice);
        if let Some(flows) = self.clients.get_mut(&client) {
            flows.remove(&id);
            if flows.is_empty() {
                self.clients.remove(&client);
            }
        }
        let owner = self.users.get_mut(&user).expect("a flow's user is there");
        owner.flows -= 1;
        if owner.flows == 0 {
            self.users.remove(&user);
        }
        self.share_anew(AllocationCause::Share);
        flow
    }

    fn revoke(&mut self, slot: usize, cause: AllocationCause) {
        let flow = self.remove(slot);
        self.revoked.push_back(AllocationEvent::Revoked {
            flow: flow.id,
            client: flow.request.client,
            cause,
        });
    }

    /// Lets a real-time flow use its promise, up to its limit.
    fn set_real_time(&mut self, slot: usize, cause: AllocationCause) {
        let flow = &self.flows[slot];
        if flow.is_real_time() {
            self.grant(slot, flow.limited(flow.committed), cause);
        }
    }

    fn grant(&mut self, slot: usize, bps: u64, cause: AllocationCause) {
        let flow = &mut self.flows[slot];
        if flow.granted != bps {
            (flow.granted, flow.cause) = (bps, cause);
            self.note(slot);
        }
    }

    /// Notes whether there is something to notify a flow of.
    fn note(&mut self, slot: usize) {
        let Flow { id, granted, reported, notice: before, .. } = self.flows[slot];
        let notice = match reported {
            Some(reported) if granted < reported => Notice::Fall,
            Some(reported) if granted == reported => Notice::None,
            _ => Notice::Rise,
        };
        if notice == before {
            return;
        }
        self.forget_notice(id, before);
        match notice {
            Notice::Fall => self.falls.insert(id),
            Notice::Rise => self.rises.insert(id),
            Notice::None => false,
        };
        self.flows[slot].notice = notice;
    }

    fn forget_notice(&mut self, id: FlowId, notice: Notice) {
        match notice {
            Notice::Fall => self.falls.remove(&id),
            Notice::Rise => self.rises.remove(&id),
            Notice::None => false,
        };
    }

    fn share_anew(&mut self, cause: AllocationCause) {
        if self.stale != Some(AllocationCause::Capacity) {
            self.stale = Some(cause);
        }
    }

    /// Answers a request that has been admitted.
    fn answer(&mut self, slot: usize, shortage: Option<Shortage>) -> AdmissionAnswer {
        self.settle_for(slot);
        let flow = &self.flows[slot];
        let (id, rate, desired) = (flow.id, Rate::from_bps(flow.granted), flow.request.desired);
        let shared = || {
            let place = flow.limited_by?;
            let (needed, left) = (flow.charge(place, desired.as_bps()), flow.charge(place, flow.granted));
            Some(Shortage { resource: self.ledger.kind(place), scope: ShortageScope::Host, needed, left })
        };
        let shortage = if flow.is_real_time() { shortage } else { shared() };
        match shortage {
            Some(shortage) => AdmissionAnswer::Reduced { flow: id, rate, shortage },
            None => AdmissionAnswer::Admitted { flow: id },
        }
    }
}

#[cfg(test)]
mod tests;
