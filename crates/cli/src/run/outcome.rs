//! What the runs of a scenario have measured, and what went wrong.

use crate::exit::Failure;
use cutline_results::{FlowRow, QueueRow, TimingRow};
use std::path::PathBuf;

/// The rows that are printed, and how many runs are missing.
pub struct Outcome {
    pub flows: Vec<FlowRow>,
    pub queues: Vec<QueueRow>,
    /// Of the laboratory.
    pub timing: Vec<TimingRow>,
    /// Runs that failed.
    pub failed: usize,
    /// Runs that were cancelled.
    pub cancelled: usize,
    /// Where the results are stored.
    pub folder: Option<PathBuf>,
    pub version: String,
}

impl Outcome {
    /// Nothing yet, of this version.
    pub fn new(version: &str) -> Self {
        Self {
            flows: Vec::new(),
            queues: Vec::new(),
            timing: Vec::new(),
            failed: 0,
            cancelled: 0,
            folder: None,
            version: version.to_owned(),
        }
    }

    /// Whether everything went well.
    pub fn verdict(&self, total: usize) -> Result<(), Failure> {
        let resume =
            if self.folder.is_some() { "; the same command with --resume runs the rest" } else { "" };
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
