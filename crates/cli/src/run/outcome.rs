//! The results of a scenario's runs, and the runs that failed.

use crate::exit::Failure;
use cutline_results::{DistributionRow, FlowRow, QueueRow, StoreError, TimingRow};
use cutline_scenario::execution::{Executed, Rows};
use std::path::PathBuf;

/// The rows that are printed, and the number of missing runs.
pub struct Outcome {
    pub flows: Vec<FlowRow>,
    pub queues: Vec<QueueRow>,
    /// The distributions, from which the percentiles of groups are computed.
    pub distributions: Vec<DistributionRow>,
    /// The timing of runs in the laboratory.
    pub timing: Vec<TimingRow>,
    /// Number of runs that failed.
    pub failed: usize,
    /// Number of runs that were cancelled.
    pub cancelled: usize,
    /// The folder where the results are stored.
    pub folder: Option<PathBuf>,
    pub version: String,
}

impl Outcome {
    /// Returns the rows of an execution that are printed.
    ///
    /// # Errors
    /// When stored tables cannot be read.
    pub fn read(executed: Executed) -> Result<Self, StoreError> {
        let Executed { summary, cancelled, rows } = executed;
        let (failed, version) = (summary.failed.len(), summary.version);
        Ok(match rows {
            Rows::InMemory(rows) => Self {
                flows: rows.flows,
                queues: rows.queues,
                distributions: rows.distributions,
                timing: rows.timing,
                failed,
                cancelled,
                folder: None,
                version,
            },
            Rows::Stored(store) => Self {
                flows: store.read()?,
                queues: store.read()?,
                distributions: store.read()?,
                timing: store.read_timing()?,
                failed,
                cancelled,
                folder: Some(store.root().to_owned()),
                version,
            },
        })
    }

    /// Returns an error if a run of `total` failed or was cancelled.
    pub fn verdict(&self, total: usize) -> Result<(), Failure> {
        let resume =
            if self.folder.is_some() { "; to run the rest, use the same command with --resume" } else { "" };
        let why = match self {
            Self { cancelled: 0, failed: 0, .. } => return Ok(()),
            Self { cancelled: 0, failed, .. } => format!("{failed} of {total} runs failed{resume}"),
            Self { cancelled, failed, .. } => {
                format!("interrupted: {} of {total} runs are missing{resume}", cancelled + failed)
            }
        };
        Err(Failure::Failed(why))
    }
}
