//! What can go wrong with stored results.

use parquet::errors::ParquetError;
use std::io;
use std::path::{Path, PathBuf};

/// A problem with the results on disk.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file or folder cannot be read or written.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// A table cannot be written or is damaged.
    #[error("{path}: {source}", path = path.display())]
    Parquet {
        /// The table's file.
        path: PathBuf,
        /// The Parquet library's error.
        source: ParquetError,
    },
    /// A table lacks a column, or has it with another type: it was written by another version.
    #[error("{path}: the column {column:?} {problem}", path = path.display())]
    Column {
        /// The table's file.
        path: PathBuf,
        /// The column.
        column: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The summary is damaged.
    #[error("{path}: {source}", path = path.display())]
    Json {
        /// The summary's file.
        path: PathBuf,
        /// The JSON library's error.
        source: serde_json::Error,
    },
}

impl StoreError {
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
