//! How an evaluation is run, and what can go wrong.

use crate::claims::UnknownFigure;
use crate::experiment::Experiment;
use cutline_config::Errors;
use cutline_report::report::{WriteError, Written};
use cutline_results::StoreError;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// How to run an evaluation.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder of all results; the evaluation makes one of its own in it.
    pub results: PathBuf,
    /// The figures to reproduce; none means all.
    pub figures: Vec<u32>,
    /// Shorter runs and fewer seeds: the figures' shapes, not their numbers.
    pub quick: bool,
    /// Take over the runs that are stored already and would come out the same.
    pub resume: bool,
    /// How many runs at a time.
    pub threads: NonZeroUsize,
    /// The version of Cutline that is running; part of a run's identity.
    pub version: &'static str,
    /// Tells the time of day, for the results' story.
    pub clock: fn() -> String,
}

/// An evaluation that was carried out.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// Where the report and its parts are.
    pub written: Written,
    /// The claims, in the order of the figures.
    pub claims: Vec<cutline_report::report::Claim>,
    /// Runs that went wrong: which, and why.
    pub failed: Vec<String>,
    /// Whether every run that the figures need is there.
    pub complete: bool,
}

/// Why an evaluation could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// A figure that is not there.
    #[error(transparent)]
    Figure(#[from] UnknownFigure),
    /// An experiment's file is not a scenario.
    #[error("{0}")]
    Scenario(Errors),
    /// Results could not be stored or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The report could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// There is nothing stored to report on.
    #[error("no results of {study} in {}: run `cutline reproduce {study}` first", folder.display())]
    Nothing {
        /// The study, by its name on the command line.
        study: &'static str,
        /// Where they were looked for.
        folder: PathBuf,
    },
}

impl From<Errors> for ReproduceError {
    fn from(errors: Errors) -> Self {
        Self::Scenario(errors)
    }
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
