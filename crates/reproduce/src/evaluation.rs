//! What an evaluation comes to, and what it reports while it runs.

use crate::experiment::Experiment;
use cutline_report::report::{Claim, ReportFiles};

/// An evaluation that was carried out.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// Where the report and its parts are.
    pub written: ReportFiles,
    /// The claims of the figures that were asked for, in the order of the figures.
    pub claims: Vec<Claim>,
    /// Runs that went wrong: which, and why.
    pub failed: Vec<String>,
    /// Whether every run that these figures need is stored.
    pub complete: bool,
}

/// News of an evaluation.
pub enum News<'n> {
    /// An experiment begins.
    Experiment {
        /// Which.
        experiment: &'n Experiment,
        /// How many runs it has.
        runs: u64,
    },
}
