//! A run: one point of a sweep with one seed, and all that was measured in it.

use super::rows::{DistributionRow, FlowRow, QueueRow, QueueSeriesRow, RunRow, SeriesRow, TimingRow};
use std::sync::Arc;

/// Which run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunKey {
    /// The run's identifier, [`crate::Scenario::run_id`].
    pub run: Arc<str>,
    /// The point's label.
    pub point: Arc<str>,
    /// The seed.
    pub seed: u64,
}

/// What a run measured. The columns `run`, `point` and `seed` may be left empty: the store fills them in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunResult {
    /// One row per flow.
    pub flows: Vec<FlowRow>,
    /// One row per queue.
    pub queues: Vec<QueueRow>,
    /// Flows by interval.
    pub series: Vec<SeriesRow>,
    /// Queues by interval.
    pub queue_series: Vec<QueueSeriesRow>,
    /// Full distributions.
    pub distributions: Vec<DistributionRow>,
    /// How well the run kept its time: one row in the laboratory, none in a simulation.
    pub timing: Vec<TimingRow>,
}

impl RunResult {
    /// Says in every row which run it belongs to.
    pub fn stamp(&mut self, key: &RunKey) {
        stamp(&mut self.flows, key);
        stamp(&mut self.queues, key);
        stamp(&mut self.series, key);
        stamp(&mut self.queue_series, key);
        stamp(&mut self.distributions, key);
        stamp(&mut self.timing, key);
    }
}

pub(crate) fn stamp<R: RunRow>(rows: &mut [R], key: &RunKey) {
    for row in rows {
        row.stamp(key);
    }
}
