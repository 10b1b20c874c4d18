//! What can go wrong with an evaluation.

use cutline_config::Errors;
use cutline_report::report::WriteError;
use cutline_results::StoreError;
use std::path::PathBuf;

/// A figure that the paper does not have, or that shows nothing to measure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no figure {number} to reproduce; there are {known}")]
pub struct UnknownFigure {
    /// The number asked for.
    pub number: u32,
    /// Those that exist.
    pub known: String,
}

/// Why an evaluation could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// A figure that does not exist.
    #[error(transparent)]
    Figure(#[from] UnknownFigure),
    /// An experiment's file is not a scenario.
    #[error("{0}")]
    Scenario(Errors),
    /// Results could not be stored or read, or would be lost.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The report could not be read or written.
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
    /// Results are stored that another version has made than the others: one report cannot show both.
    #[error(
        "{} holds results of version {version}, and the others are of version {other}: one report cannot show both; run \
         the whole study again with --force, or into another folder with --results",
        folder.display()
    )]
    Mixed {
        /// The folder of the results that differ.
        folder: PathBuf,
        /// Their version.
        version: String,
        /// The version of the others.
        other: String,
    },
    /// Results are stored under an experiment's name that another scenario has made, or other seeds.
    #[error(
        "{} does not hold the results of the experiment of this name: {differences}; a report cannot show them",
        folder.display()
    )]
    Foreign {
        /// The folder of the results.
        folder: PathBuf,
        /// What is different.
        differences: String,
    },
    /// The report would replace one that shows more.
    #[error(
        "{} shows figures whose results are not in this folder any more: {figures}; it is left as it is. Reproduce these \
         figures too, or remove the report",
        report.display()
    )]
    Partial {
        /// The report that shows more.
        report: PathBuf,
        /// The figures that the new report would lack.
        figures: String,
    },
}

impl From<Errors> for ReproduceError {
    fn from(errors: Errors) -> Self {
        Self::Scenario(errors)
    }
}
