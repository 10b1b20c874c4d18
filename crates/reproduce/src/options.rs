//! How an evaluation is run.

use cutline_results::Existing;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// How to run an evaluation.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder of all results; each study has a folder in it ([`Study::folder`](crate::Study::folder)).
    pub results: PathBuf,
    /// The figures to reproduce; none means all.
    pub figures: Vec<u32>,
    /// Shorter runs and fewer seeds: the figures' shapes, not their numbers.
    pub quick: bool,
    /// What to do with results that are stored already. Measurements of the laboratory are never repeated unasked:
    /// [`Existing::Repeat`] refuses them.
    pub existing: Existing,
    /// How many runs at a time.
    pub threads: NonZeroUsize,
    /// The version of Cutline that is running; part of a run's identity.
    pub version: &'static str,
    /// Returns the time of day, for the summaries.
    pub clock: fn() -> String,
}
