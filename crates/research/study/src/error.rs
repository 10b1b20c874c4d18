//! Errors of studies.

use cutline_config::Errors;
use cutline_report::report::WriteError;
use cutline_results::StoreError;
use std::path::PathBuf;

/// A figure that does not exist, or that shows no measurements.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no figure {number} to reproduce; there are {known}")]
pub struct UnknownFigure {
    /// The requested number.
    pub number: u32,
    /// The numbers that exist.
    pub known: String,
}

/// Reason why an evaluation failed.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// A figure that does not exist.
    #[error(transparent)]
    Figure(#[from] UnknownFigure),
    /// A file of a study is not valid, or the scenario of an experiment.
    #[error("{0}")]
    Files(Errors),
    /// This process may not run anything on the platform of an experiment.
    #[error("{0}")]
    Platform(String),
    /// Results cannot be stored or read, or would be lost.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The report cannot be read or written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// No stored results to report on.
    #[error("no results of {study} in {}: run `cutline reproduce {study}` first", folder.display())]
    Nothing {
        /// The name of the study on the command line.
        study: String,
        /// The folder that was searched.
        folder: PathBuf,
    },
    /// A figure that has no charts with values: its results are claims or pictures.
    #[error(
        "figure {number} of {study} has no charts: its results are in the report that `cutline reproduce {study}` writes"
    )]
    NoCharts {
        /// The name of the study on the command line.
        study: String,
        /// The number of the figure.
        number: u32,
    },
    /// Some stored results are of another version than the others. One report cannot show both.
    #[error(
        "{} holds results of version {version}, and the others are of version {other}: one report cannot show both; run \
         the whole study again with --force, or into another folder with --results",
        folder.display()
    )]
    Mixed {
        /// The folder of the results that differ.
        folder: PathBuf,
        /// The version of these results.
        version: String,
        /// The version of the other results.
        other: String,
    },
    /// Results that are stored under the name of an experiment are of another scenario or of other seeds.
    #[error(
        "{} does not hold the results of the experiment of this name: {differences}; a report cannot show them",
        folder.display()
    )]
    Foreign {
        /// The folder of the results.
        folder: PathBuf,
        /// The differences in words.
        differences: String,
    },
    /// The new report would replace one that shows more.
    #[error(
        "{} shows figures whose results are no longer in this folder: {figures}; the report is not replaced. Reproduce \
         these figures too, or remove the report and the claims.json beside it",
        report.display()
    )]
    Partial {
        /// The report that shows more.
        report: PathBuf,
        /// The figures that the new report would lack.
        figures: String,
    },
}

impl From<Errors> for StudyError {
    fn from(errors: Errors) -> Self {
        Self::Files(errors)
    }
}
