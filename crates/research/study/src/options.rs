//! Options of an evaluation.

use crate::changes::ExperimentChanges;
use cutline_results::ExistingResults;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Options of an evaluation.
#[derive(Clone, Debug)]
pub struct EvaluationOptions {
    /// The folder of all results; each study has a folder in it ([`Study::folder`](crate::Study::folder)).
    pub results: PathBuf,
    /// The figures to reproduce; all if empty.
    pub figures: Vec<u32>,
    /// Changes to the experiments.
    pub changes: ExperimentChanges,
    /// Treatment of existing results. Measurements of the laboratory are only repeated on request:
    /// [`ExistingResults::Repeat`] is treated as [`ExistingResults::Refuse`] there.
    pub existing: ExistingResults,
    /// The number of runs at the same time.
    pub threads: NonZeroUsize,
    /// The version of Cutline that is running. It is part of the identity of results.
    pub version: &'static str,
    /// The commit of it, in words, for summaries and reports; empty if it is not known.
    pub commit: &'static str,
    /// Returns the time of day, for the summaries.
    pub clock: fn() -> String,
}
