//! State of a manager as data, and a manager that continues from it.

use super::{Manager, ManagerStart};
use crate::feedback::{PathFeedback, PathFlowRecord, PathId, PathSnapshot, PathStart};
use crate::resources::{
    AllocationRecord, FlowId, FlowRequest, ResourceManager, ResourceSnapshot, ResourceStats, SnapshotError,
};
use cutline_params::Parameters as _;
use cutline_units::Instant;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Version of the format of [`ManagerSnapshot`]. A snapshot of another version is refused.
pub const MANAGER_SNAPSHOT_VERSION: u32 = 1;

/// State of a manager, for serde. Times are relative, and parameters are not in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManagerSnapshot {
    version: u32,
    resources: ResourceSnapshot,
    paths: Vec<PathSnapshot>,
    /// Flows with their paths.
    pub(super) routes: BTreeMap<FlowId, u64>,
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

impl Manager {
    /// The state of a flow as data; `None` if there is no such flow.
    pub fn record(&mut self, now: Instant, flow: FlowId) -> Option<ManagedFlowRecord> {
        let path =
            self.routes.get(&flow).and_then(|path| Some((path.0, self.paths.get(path)?.record(now, flow)?)));
        Some(ManagedFlowRecord { flow: self.resources.record(now, flow)?, path })
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
            let (params, path) = (this.feedback.clone(), state.path());
            let restored = PathFeedback::restore(now, PathStart { params, path, host, number }, state)?;
            this.paths.insert(path, restored);
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
}
