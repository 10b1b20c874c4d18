//! Errors of stored results.

use crate::summary::Summary;
use crate::version::SCHEMA_VERSION;
use cutline_text::Printable;
use parquet::errors::ParquetError;
use std::io;
use std::path::{Path, PathBuf};

/// A problem with the results on disk.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file or folder cannot be read or written.
    #[error("{path}: {source}", path = Printable(path.display()))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// A table cannot be written or is damaged.
    #[error("{path}: {source}", path = Printable(path.display()))]
    Parquet {
        /// The table's file.
        path: PathBuf,
        /// The Parquet library's error.
        source: ParquetError,
    },
    /// A table lacks a column, or has it with another type: it was written by another version.
    #[error("{path}: the column {column:?} {problem}", path = Printable(path.display()))]
    Column {
        /// The table's file.
        path: PathBuf,
        /// The column.
        column: &'static str,
        /// The problem of the column.
        problem: &'static str,
    },
    /// A file differs from the stored one.
    #[error("{path} is damaged: {problem}", path = Printable(path.display()))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The error.
        problem: &'static str,
    },
    /// Another process stores results in the folder.
    #[error("another process is storing results in {} ({holder})", Printable(folder.display()))]
    Locked {
        /// The folder of the results.
        folder: PathBuf,
        /// The other process, and since when.
        holder: String,
    },
    /// A summary or a run's record is damaged.
    #[error("{path}: {source}", path = Printable(path.display()))]
    Json {
        /// The file.
        path: PathBuf,
        /// The JSON library's error.
        source: serde_json::Error,
    },
    /// The tables were written by another version of Cutline.
    #[error(
        "{}: its tables are of version {found}, and this version of Cutline reads version {SCHEMA_VERSION}; the \
         experiment must be run again",
        Printable(folder.display())
    )]
    Schema {
        /// The folder of the results.
        folder: PathBuf,
        /// The version of its tables.
        found: u32,
    },
    /// The folder has results that would be lost.
    #[error("{}", taken(folder, stored, asked))]
    Taken {
        /// The folder of the results.
        folder: PathBuf,
        /// The origin of the stored results.
        stored: Box<Summary>,
        /// The origin of the new results.
        asked: Box<Summary>,
        /// True if the stored runs are part of the new results, so that the missing runs can be added.
        can_resume: bool,
    },
    /// The folder has tables or runs, but no summary with their origin.
    #[error("{} has results that would be lost; their origin is unknown because summary.json is missing", Printable(folder.display()))]
    Unknown {
        /// The folder of the results.
        folder: PathBuf,
    },
}

/// Returns the message about the stored results and the new ones.
fn taken(folder: &Path, stored: &Summary, asked: &Summary) -> String {
    let folder = Printable(folder.display());
    let (state, finished) = (if stored.complete { "complete" } else { "incomplete" }, stored.finished.len());
    let there = format!("{}; {state}, {finished} runs", stored.story());
    if stored.origin == asked.origin {
        return format!("{folder} has results of this experiment, which would be lost: {there}");
    }
    let differences = match stored.differences(asked).as_slice() {
        [] => String::new(),
        list => format!("\n  they differ in {}", list.join(" and ")),
    };
    let asked = asked.story();
    format!(
        "{folder} has other results, which would be lost\n  stored: {there}\n  asked:  {asked}{differences}"
    )
}

impl StoreError {
    /// Returns whether stored results are damaged. Running them again repairs them.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Damaged { .. } | Self::Parquet { .. } | Self::Column { .. } | Self::Json { .. } => true,
            Self::Io { source, .. } => {
                matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidData)
            }
            Self::Locked { .. } | Self::Schema { .. } | Self::Taken { .. } | Self::Unknown { .. } => false,
        }
    }

    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }

    pub(crate) fn parquet(path: &Path, source: ParquetError) -> Self {
        Self::Parquet { path: path.to_owned(), source }
    }

    pub(crate) fn json(path: &Path, source: serde_json::Error) -> Self {
        Self::Json { path: path.to_owned(), source }
    }
}
