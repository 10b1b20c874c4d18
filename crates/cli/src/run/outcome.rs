//! The results of a scenario's runs, and the runs that failed.

use crate::exit::Failure;
use cutline_results::{DistributionRow, FlowRow, QueueRow, TimingRow};
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
    /// Returns an empty outcome of this version.
    pub fn new(version: &str) -> Self {
        Self {
            flows: Vec::new(),
            queues: Vec::new(),
            distributions: Vec::new(),
            timing: Vec::new(),
            failed: 0,
            cancelled: 0,
            folder: None,
            version: version.to_owned(),
        }
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
