//! State of a resource manager as data, so that a daemon may restart without losing its accounts.

use super::capacity::{Capacities, CarrierKind, CpuShare, InterfaceCapacity, InterfaceIndex};
use super::events::{AllocationCause, AllocationEvent};
use super::flow::{Flow, Notice};
use super::ledger::{Places, add};
use super::params::ResourceParams;
use super::request::{ClientKey, FlowId, FlowRequest, SchedulingClass, UserId, UserPolicy};
use super::{ResourceManager, ResourceStats};
use cutline_params::ParameterError;
use cutline_units::{Duration, Instant, Rate};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the format. A snapshot of another version is refused.
pub const RESOURCE_SNAPSHOT_VERSION: u32 = 1;

/// State of a resource manager at a time, for serde. Times are relative, so the clock of the next process may begin
/// anywhere. Parameters are not in it: they are the owner's configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceSnapshot {
    version: u32,
    next_flow: FlowId,
    capacities: CapacitiesState,
    policies: BTreeMap<UserId, PolicyState>,
    flows: Vec<AllocationRecord>,
    revoked: Vec<RevokedState>,
    stats: [u64; 6],
}

/// Reason why a snapshot cannot be restored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The version of the format is another one.
    #[error("version = {0}: allowed is {RESOURCE_SNAPSHOT_VERSION}")]
    Version(u32),
    /// A value is not allowed.
    #[error(transparent)]
    Value(#[from] ParameterError),
    /// A value of a flow is not allowed.
    #[error("flow {flow}: {error}")]
    Flow {
        /// The flow.
        flow: FlowId,
        /// Value and range.
        error: ParameterError,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CapacitiesState {
    tcp_bps: Option<u64>,
    datagrams_bps: Option<u64>,
    combined_bps: Option<u64>,
    cpu_millionths: Option<CpuShare>,
    interfaces: BTreeMap<InterfaceIndex, InterfaceState>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct InterfaceState {
    rate_bps: u64,
    reserved_bps: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyState {
    weight: u32,
    share: Option<f64>,
    priority_limit: u8,
}

/// State of a flow, for serde. A journal has those of flows that have changed since a snapshot
/// ([`ResourceSnapshot::update`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllocationRecord {
    id: FlowId,
    user: UserId,
    client: ClientKey,
    class: SchedulingClass,
    carrier: CarrierKind,
    interface: Option<InterfaceIndex>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_reserved: bool,
    desired_bps: u64,
    minimum_bps: u64,
    cpu_millionths: CpuShare,
    priority: u8,
    weight: u32,
    committed_bps: u64,
    limit_bps: Option<u64>,
    granted_bps: u64,
    reported_bps: Option<u64>,
    cause: AllocationCause,
    lease_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RevokedState {
    flow: FlowId,
    client: ClientKey,
    cause: AllocationCause,
}

impl AllocationRecord {
    fn new(now: Instant, flow: &Flow) -> Self {
        let FlowRequest {
            user,
            client,
            class,
            carrier,
            interface,
            is_reserved,
            desired,
            minimum,
            cpu,
            priority,
            weight,
        } = flow.request;
        Self {
            id: flow.id,
            user,
            client,
            class,
            carrier,
            interface,
            is_reserved,
            desired_bps: desired.as_bps(),
            minimum_bps: minimum.as_bps(),
            cpu_millionths: cpu,
            priority,
            weight,
            committed_bps: flow.committed,
            limit_bps: (flow.limit < u64::MAX).then_some(flow.limit),
            granted_bps: flow.granted,
            reported_bps: flow.reported,
            cause: flow.cause,
            lease_ns: flow.lease.saturating_since(now).as_nanos(),
        }
    }

    /// The flow.
    pub const fn id(&self) -> FlowId {
        self.id
    }

    /// The request, with the priority that counts.
    pub const fn request(&self) -> FlowRequest {
        FlowRequest {
            user: self.user,
            client: self.client,
            class: self.class,
            carrier: self.carrier,
            interface: self.interface,
            is_reserved: self.is_reserved,
            desired: Rate::from_bps(self.desired_bps),
            minimum: Rate::from_bps(self.minimum_bps),
            cpu: self.cpu_millionths,
            priority: self.priority,
            weight: self.weight,
        }
    }

    /// Checks the rates, which the request does not.
    fn check_rates(&self) -> Result<(), ParameterError> {
        let within = |name, value: u64, least: u64, most: u64| {
            let range = || format!("{least} to {most} bit/s");
            if (least..=most).contains(&value) {
                Ok(())
            } else {
                Err(ParameterError::new(name, value, range()))
            }
        };
        let promises_minimum = self.class == SchedulingClass::TimeShared;
        let most = if promises_minimum { self.minimum_bps } else { self.desired_bps };
        within("committed_bps", self.committed_bps, self.minimum_bps, most)?;
        within("granted_bps", self.granted_bps, self.minimum_bps, self.desired_bps)
    }
}

impl ResourceSnapshot {
    /// Adds a flow, or replaces its state by a later one.
    pub fn update(&mut self, record: AllocationRecord) {
        self.next_flow = self.next_flow.max(FlowId(record.id.0.saturating_add(1)));
        match self.flows.binary_search_by_key(&record.id, |flow| flow.id) {
            Ok(at) => self.flows[at] = record,
            Err(at) => self.flows.insert(at, record),
        }
    }

    /// Removes a flow that has ended. Its number is not used again. Returns whether it was there.
    pub fn remove(&mut self, flow: FlowId) -> bool {
        self.next_flow = self.next_flow.max(FlowId(flow.0.saturating_add(1)));
        let found = self.flows.binary_search_by_key(&flow, |flow| flow.id);
        found.map(|at| self.flows.remove(at)).is_ok()
    }

    /// Replaces the counters by later ones.
    pub const fn set_stats(&mut self, stats: ResourceStats) {
        let ResourceStats { admitted, reduced, refused, released, revoked, expired } = stats;
        self.stats = [admitted, reduced, refused, released, revoked, expired];
    }

    /// Flows with their requests, oldest first.
    pub fn flows(&self) -> impl Iterator<Item = (FlowId, FlowRequest)> {
        self.flows.iter().map(|flow| (flow.id, flow.request()))
    }
}

impl ResourceManager {
    /// The state of a flow as data; `None` if there is no such flow. Shares are computed first.
    pub fn record(&mut self, now: Instant, flow: FlowId) -> Option<AllocationRecord> {
        self.settle();
        self.by_id.get(&flow).map(|slot| AllocationRecord::new(now, &self.flows[*slot]))
    }

    /// The state as data. Shares are computed first.
    pub fn snapshot(&mut self, now: Instant) -> ResourceSnapshot {
        self.settle();
        let bps = |rate: Option<Rate>| rate.map(Rate::as_bps);
        let Capacities { tcp, datagrams, combined, cpu, interfaces } = &self.capacities;
        let interface = |found: &InterfaceCapacity| InterfaceState {
            rate_bps: found.rate.as_bps(),
            reserved_bps: found.reserved.as_bps(),
        };
        let policy = |policy: &UserPolicy| PolicyState {
            weight: policy.weight,
            share: policy.share,
            priority_limit: policy.priority_limit,
        };
        let revoked = |event: &AllocationEvent| match *event {
            AllocationEvent::Revoked { flow, client, cause } => Some(RevokedState { flow, client, cause }),
            _ => None,
        };
        let ResourceStats { admitted, reduced, refused, released, revoked: lost, expired } = self.stats;
        ResourceSnapshot {
            version: RESOURCE_SNAPSHOT_VERSION,
            next_flow: self.next,
            capacities: CapacitiesState {
                tcp_bps: bps(*tcp),
                datagrams_bps: bps(*datagrams),
                combined_bps: bps(*combined),
                cpu_millionths: *cpu,
                interfaces: interfaces.iter().map(|(index, found)| (*index, interface(found))).collect(),
            },
            policies: self.policies.iter().map(|(user, found)| (*user, policy(found))).collect(),
            flows: self.by_id.values().map(|slot| AllocationRecord::new(now, &self.flows[*slot])).collect(),
            revoked: self.revoked.iter().filter_map(revoked).collect(),
            stats: [admitted, reduced, refused, released, lost, expired],
        }
    }

    /// A manager that continues from a snapshot: with the same accounts, rates, leases and events that were not taken.
    /// If the parameters are those of before, it decides as the one before would. After an interruption call
    /// [`ResourceManager::renew_all`], and [`ResourceManager::set_capacities`] if they were measured again.
    ///
    /// # Errors
    /// When the version is another one, or a value is not allowed: promises beyond the capacities are not. Rates that
    /// exceed them are computed again.
    pub fn restore(
        now: Instant,
        params: ResourceParams,
        snapshot: &ResourceSnapshot,
    ) -> Result<Self, SnapshotError> {
        if snapshot.version != RESOURCE_SNAPSHOT_VERSION {
            return Err(SnapshotError::Version(snapshot.version));
        }
        let CapacitiesState { tcp_bps, datagrams_bps, combined_bps, cpu_millionths, interfaces } =
            &snapshot.capacities;
        let rate = |bps: &Option<u64>| bps.map(Rate::from_bps);
        let interface = |state: &InterfaceState| InterfaceCapacity {
            rate: Rate::from_bps(state.rate_bps),
            reserved: Rate::from_bps(state.reserved_bps),
        };
        let capacities = Capacities {
            tcp: rate(tcp_bps),
            datagrams: rate(datagrams_bps),
            combined: rate(combined_bps),
            cpu: *cpu_millionths,
            interfaces: interfaces.iter().map(|(index, state)| (*index, interface(state))).collect(),
        };
        let mut manager = Self::new(params, capacities)?;
        for (user, PolicyState { weight, share, priority_limit }) in &snapshot.policies {
            let policy = UserPolicy { weight: *weight, share: *share, priority_limit: *priority_limit };
            manager.set_policy(*user, policy)?;
        }
        manager.next = snapshot.next_flow;
        let most_flows = manager.params.most_flows as usize;
        if snapshot.flows.len() > most_flows {
            return Err(
                ParameterError::new("flows", snapshot.flows.len(), format!("at most {most_flows}")).into()
            );
        }
        for state in &snapshot.flows {
            let failed = |error| SnapshotError::Flow { flow: state.id, error };
            manager.restore_flow(now, state).map_err(failed)?;
        }
        // All places are those of the capacities and of the interfaces in use.
        manager.recount();
        manager.check_promises()?;
        manager.reduce_rates();
        manager.revoked = (snapshot.revoked.iter())
            .map(|RevokedState { flow, client, cause }| AllocationEvent::Revoked {
                flow: *flow,
                client: *client,
                cause: *cause,
            })
            .collect();
        let [admitted, reduced, refused, released, revoked, expired] = snapshot.stats;
        manager.stats = ResourceStats { admitted, reduced, refused, released, revoked, expired };
        // With the same parameters the shares are those of the snapshot.
        manager.share_anew(AllocationCause::Share);
        manager.settle();
        for slot in manager.by_id.values().copied().collect::<Vec<_>>() {
            manager.note(slot);
        }
        Ok(manager)
    }

    fn restore_flow(&mut self, now: Instant, state: &AllocationRecord) -> Result<(), ParameterError> {
        let request = state.request();
        request.validate()?;
        state.check_rates()?;
        if state.id >= self.next || self.by_id.contains_key(&state.id) {
            let range = format!("a number below {} that no other flow has", self.next);
            return Err(ParameterError::new("id", state.id, range));
        }
        let places = Places { carrier: 0, interface: None };
        let flow = Flow {
            id: state.id,
            request,
            places,
            committed: state.committed_bps,
            limit: state.limit_bps.unwrap_or(u64::MAX),
            granted: state.granted_bps,
            reported: state.reported_bps,
            notice: Notice::None,
            cause: state.cause,
            own_cause: None,
            limited_by: None,
            lease: now.saturating_add(Duration::from_nanos(state.lease_ns)),
        };
        let (id, lease) = (flow.id, flow.lease);
        let slot = self.flows.insert(flow);
        self.by_id.insert(id, slot);
        self.users.entry(request.user).or_default().flows += 1;
        self.clients.entry(request.client).or_default().insert(id);
        self.leases.insert((lease, id));
        self.note(slot);
        Ok(())
    }

    /// Checks that promises do not exceed the capacities.
    fn check_promises(&self) -> Result<(), ParameterError> {
        for (place, bound) in self.ledger.bounds.iter().enumerate() {
            let Some(capacity) = bound.capacity else { continue };
            if self.ledger.committed[place] > capacity {
                let kind = self.ledger.kind(place);
                return Err(ParameterError::new(
                    "committed_bps of all flows",
                    self.ledger.committed[place],
                    format!("at most {capacity} {} for {kind}", kind.unit()),
                ));
            }
        }
        Ok(())
    }

    /// Reduces rates that exceed the capacities together to the promised ones. Those of a snapshot with flows that have
    /// changed since do, because the shares of the other flows are older.
    fn reduce_rates(&mut self) {
        let mut granted = vec![0; self.ledger.bounds.len()];
        for (_, flow) in &self.flows {
            add(&mut granted, flow.charges(flow.granted));
        }
        let exceeds = |(bound, granted): (&super::ledger::Bound, &u64)| {
            bound.capacity.is_some_and(|capacity| *granted > capacity)
        };
        if self.ledger.bounds.iter().zip(&granted).any(exceeds) {
            for (_, flow) in &mut self.flows {
                flow.granted = flow.limited(flow.committed);
            }
        }
    }
}
