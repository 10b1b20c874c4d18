//! The result of an evaluation, and the events while it runs.

use crate::experiment::Experiment;
use cutline_report::report::{Claim, ReportFiles};

/// The result of an evaluation.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// The files of the report.
    pub written: ReportFiles,
    /// The claims of the requested figures, in the order of the figures.
    pub claims: Vec<Claim>,
    /// A line for each failed run, with the reason.
    pub failed: Vec<String>,
    /// True if every run that these figures need is stored.
    pub complete: bool,
}

/// An event during an evaluation.
pub enum EvaluationEvent<'e> {
    /// An experiment begins.
    ExperimentStarted {
        /// The experiment.
        experiment: &'e Experiment,
        /// The number of its runs.
        runs: u64,
    },
}
