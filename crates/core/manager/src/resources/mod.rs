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

mod accounts;
mod admission;
mod capacity;
mod degrade;
mod events;
mod fill;
mod flow;
mod ledger;
mod notices;
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
use flow::{Flow, Notice, User};
use ledger::Ledger;
use notices::NoticeQueue;
use serde::{Deserialize, Serialize};
use sharing::Sharers;
use slab::Slab;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Counters of a resource manager.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
    sharers: Sharers,
    falls: NoticeQueue,
    rises: NoticeQueue,
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
            sharers: Sharers::default(),
            falls: NoticeQueue::new(Notice::Fall),
            rises: NoticeQueue::new(Notice::Rise),
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
        let slot = self.next_notice()?;
        let flow = &mut self.flows[slot];
        let (id, to, cause) = (flow.id, Rate::from_bps(flow.granted), flow.cause);
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

    fn share_anew(&mut self, cause: AllocationCause) {
        if self.stale != Some(AllocationCause::Capacity) {
            self.stale = Some(cause);
        }
    }
}

#[cfg(test)]
mod tests;
