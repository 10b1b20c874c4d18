//! The state of a path's feedback as data, and feedback that continues from it.

use super::member::Member;
use super::{PathFeedback, PathFlow, PathStart};
use crate::feedback::controller::PathController;
use crate::feedback::cutoff::{Cutoff, RANKS};
use crate::feedback::predictor::FlowEdges;
use crate::feedback::summary::{HostId, PathId};
use crate::resources::{FlowId, MOST_RATE, UserId};
use cutline_params::ParameterError;
use cutline_units::{Instant, Rate};
use serde::{Deserialize, Serialize};

/// State of the feedback of a path, for serde. Times are relative.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathSnapshot {
    path: u64,
    /// Number of this host then. It may have another one now.
    host: u64,
    number: u64,
    epoch: u64,
    cutoff: u32,
    peers: Vec<u64>,
    flows: Vec<PathFlowRecord>,
}

/// State of a flow on a path, for serde ([`PathSnapshot::update`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathFlowRecord {
    flow: FlowId,
    user: UserId,
    most_bps: u64,
    minimum_bps: u64,
    priority: u8,
    delay_ms: Option<(f64, f64)>,
    loss_percent: Option<f64>,
    age_ns: u64,
    peak_bps: u64,
    rank: usize,
    reference_bps: u64,
}

impl PathSnapshot {
    /// The path.
    pub const fn path(&self) -> PathId {
        PathId(self.path)
    }

    /// Returns the highest number of a summary and of a directive of this host.
    pub fn highest_number(&self) -> u64 {
        self.number.max(self.epoch)
    }

    /// Adds a flow, or replaces its state by a later one.
    pub fn update(&mut self, record: PathFlowRecord) {
        match self.flows.binary_search_by_key(&record.flow, |flow| flow.flow) {
            Ok(at) => self.flows[at] = record,
            Err(at) => self.flows.insert(at, record),
        }
    }

    /// Removes a flow that has ended.
    pub fn remove(&mut self, flow: FlowId) {
        if let Ok(at) = self.flows.binary_search_by_key(&flow, |flow| flow.flow) {
            self.flows.remove(at);
        }
    }
}

impl Member {
    fn record(&self, now: Instant, id: FlowId) -> PathFlowRecord {
        PathFlowRecord {
            flow: id,
            user: self.flow.user,
            most_bps: self.flow.most.as_bps(),
            minimum_bps: self.flow.minimum.as_bps(),
            priority: self.flow.priority,
            delay_ms: self.flow.edges.delay,
            loss_percent: self.flow.edges.loss,
            age_ns: now.saturating_since(self.since).as_nanos(),
            peak_bps: self.peak as u64,
            rank: self.rank,
            reference_bps: self.reference.as_bps(),
        }
    }
}

impl PathFeedback {
    /// The state of a flow as data; `None` if there is no such flow.
    pub fn record(&self, now: Instant, id: FlowId) -> Option<PathFlowRecord> {
        self.members.get(&id).map(|member| member.record(now, id))
    }

    /// The state as data: the directive, the peers and the flows. Reports are not in it: those of two seconds replace them.
    pub fn snapshot(&self, now: Instant) -> PathSnapshot {
        PathSnapshot {
            path: self.path.0,
            host: self.host.0,
            number: self.number,
            epoch: self.epoch,
            cutoff: self.directive.cutoff.to_bits(),
            peers: self.peers.keys().map(|host| host.0).collect(),
            flows: self.members.iter().map(|(id, member)| member.record(now, *id)).collect(),
        }
    }

    /// Feedback that continues from a snapshot of the path, with the same limits. The number of `start` is one above those of all summaries that
    /// this host has sent since, such as the time in nanoseconds since 1970. An output [`PathOutput::Limit`](super::PathOutput::Limit) says each
    /// limit again.
    ///
    /// # Errors
    /// When a value is not allowed.
    pub fn restore(now: Instant, start: PathStart, snapshot: &PathSnapshot) -> Result<Self, ParameterError> {
        let number = start.number.max(snapshot.highest_number());
        let mut this = Self::new(now, PathStart { number, ..start })?;
        let range = || format!("0 to {}", Cutoff::ALL.to_bits());
        let cutoff = Cutoff::from_bits(snapshot.cutoff);
        let cutoff = cutoff.ok_or_else(|| ParameterError::new("cutoff", snapshot.cutoff, range()))?;
        this.directive.cutoff = cutoff;
        this.forgotten = Some(now);
        this.controller = Some(PathController::new(now, cutoff, &this.params));
        for state in &snapshot.flows {
            let edges = FlowEdges { delay: state.delay_ms, loss: state.loss_percent };
            let (most, minimum) = (Rate::from_bps(state.most_bps), Rate::from_bps(state.minimum_bps));
            this.set_flow(
                now,
                state.flow,
                PathFlow { user: state.user, most, minimum, priority: state.priority, edges },
            )?;
            if state.rank >= RANKS {
                return Err(ParameterError::new("rank", state.rank, format!("0 to {}", RANKS - 1)));
            }
            let member = this.members.get_mut(&state.flow).expect("the flow was added");
            member.since = Instant::from_nanos(now.as_nanos().saturating_sub(state.age_ns));
            member.peak = state.peak_bps.min(MOST_RATE.as_bps()) as f64;
            member.rank = state.rank;
            member.reference = Rate::from_bps(state.reference_bps).clamp(minimum, most);
            this.limit(state.flow);
        }
        this.set_peers(now, &snapshot.peers.iter().copied().map(HostId).collect());
        Ok(this)
    }
}
