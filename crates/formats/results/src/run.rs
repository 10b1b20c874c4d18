//! The measurements of a run, which is one point of a sweep with one seed.

use crate::key::RunKey;
use crate::rows::{DistributionRow, FlowRow, QueueRow, QueueSeriesRow, RunRow, SeriesRow, TimingRow};

/// The measurements of a run. The columns `run`, `point` and `seed` may be empty: the store fills them in.
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
    /// The run's timing: one row in the laboratory, none in a simulation.
    pub timing: Vec<TimingRow>,
}

impl RunResult {
    /// Adds the rows of another run at the end.
    pub fn append(&mut self, other: Self) {
        self.flows.extend(other.flows);
        self.queues.extend(other.queues);
        self.series.extend(other.series);
        self.queue_series.extend(other.queue_series);
        self.distributions.extend(other.distributions);
        self.timing.extend(other.timing);
    }

    /// Writes the key of the run into every row.
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
