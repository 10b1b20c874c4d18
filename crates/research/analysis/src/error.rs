//! Reasons why a question to results has no answer.

use cutline_results::StoreError;
use std::path::PathBuf;

/// Reason why a question to results has no answer.
#[derive(Debug, thiserror::Error)]
pub enum AnalysisError {
    /// A choice that the results do not have.
    #[error("{option}{message}")]
    Choice {
        /// The option that was set: `group`, `point`, `measure`, `by` or `kind`; empty if the message has it.
        option: &'static str,
        /// The value, and the allowed ones.
        message: String,
    },
    /// A folder without results.
    #[error("{} has no summary.json\nexpected a folder written by `cutline run`, or its summary.json", cutline_text::Printable(.0.display()))]
    NoResults(PathBuf),
    /// The results have nothing to compare or to show.
    #[error("{0}")]
    Nothing(String),
    /// The results cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AnalysisError {
    /// Returns an error about the value of an option. The message begins with the value.
    pub(crate) fn choice(option: &'static str, message: impl std::fmt::Display) -> Self {
        Self::Choice { option, message: format!(" {message}") }
    }
}
