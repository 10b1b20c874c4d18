//! The folder of one experiment's results: one Parquet file for each table, and `summary.json`.

use crate::column::Row;
use crate::error::StoreError;
use crate::rows::{FlowRow, TimingRow};
use crate::summary::Summary;
use crate::table::{read_table, write_table};
use crate::version::SCHEMA_VERSION;
use std::fs;
use std::path::{Path, PathBuf};

/// The file of the summary.
pub(crate) const SUMMARY: &str = "summary.json";

/// The results of an experiment, for reading. [`RunStore`](crate::RunStore) writes them.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
}

impl Store {
    /// The folder `root`.
    pub fn open(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A table.
    ///
    /// # Errors
    /// When it does not exist or is damaged.
    pub fn read<R: Row>(&self) -> Result<Vec<R>, StoreError> {
        read_in(&self.root)
    }

    /// The timing of the laboratory's runs; empty for simulations.
    ///
    /// # Errors
    /// When the table is damaged.
    pub fn read_timing(&self) -> Result<Vec<TimingRow>, StoreError> {
        if has_table::<TimingRow>(&self.root) { self.read() } else { Ok(Vec::new()) }
    }

    /// Returns whether the folder has tables. An experiment without a stored run has only a summary.
    pub fn has_tables(&self) -> bool {
        has_table::<FlowRow>(&self.root)
    }

    /// Returns whether the folder has a summary.
    pub fn has_summary(&self) -> bool {
        self.summary().exists()
    }

    /// Reads `summary.json`.
    ///
    /// # Errors
    /// When the summary does not exist or is damaged, or the tables have another version ([`SCHEMA_VERSION`]).
    pub fn read_summary(&self) -> Result<Summary, StoreError> {
        let summary = self.read_any_summary()?;
        if summary.schema != SCHEMA_VERSION {
            let (folder, found) = (self.root.clone(), summary.schema);
            return Err(StoreError::Schema { folder, found });
        }
        Ok(summary)
    }

    /// Reads `summary.json` for tables of any version.
    pub(crate) fn read_any_summary(&self) -> Result<Summary, StoreError> {
        let path = self.summary();
        let text = fs::read_to_string(&path).map_err(|error| StoreError::io(&path, error))?;
        serde_json::from_str(&text).map_err(|error| StoreError::json(&path, error))
    }

    /// Writes `summary.json`.
    pub(crate) fn write_summary(&self, summary: &Summary) -> Result<(), StoreError> {
        let path = self.summary();
        let temporary = path.with_extension("json.tmp");
        let mut text =
            serde_json::to_string_pretty(summary).map_err(|error| StoreError::json(&path, error))?;
        text.push('\n');
        fs::write(&temporary, text).map_err(|error| StoreError::io(&temporary, error))?;
        fs::rename(&temporary, &path).map_err(|error| StoreError::io(&path, error))
    }

    fn summary(&self) -> PathBuf {
        self.root.join(SUMMARY)
    }
}

/// Writes a table into a folder.
pub(crate) fn write_in<R: Row>(folder: &Path, rows: &[R]) -> Result<(), StoreError> {
    write_table(&folder.join(R::FILE), rows)
}

/// Whether a folder has this table.
pub(crate) fn has_table<R: Row>(folder: &Path) -> bool {
    folder.join(R::FILE).exists()
}

/// Reads a table of a folder.
pub(crate) fn read_in<R: Row>(folder: &Path) -> Result<Vec<R>, StoreError> {
    read_table(&folder.join(R::FILE))
}
