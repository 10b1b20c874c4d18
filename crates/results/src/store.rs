//! Results on disk: `runs/RUN/*.parquet` while running, one file per table and `summary.json` when done.
//!
//! A run's folder is written under another name and renamed when it is complete. A folder with a run's name is therefore a
//! complete run, even after Ctrl-C, a crash or a full disk. Run identifiers are hashes of everything that determines the
//! results, so a resumed experiment keeps exactly the runs that would give the same results again.

use crate::column::Row;
use crate::error::StoreError;
use crate::key::RunKey;
use crate::rows::{
    DistributionRow, FlowRow, PointRow, QueueRow, QueueSeriesRow, RunRow, SeriesRow, TimingRow,
};
use crate::run::{RunResult, stamp};
use crate::summary::Summary;
use crate::table::{TableWriter, read_table, write_table};
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of one experiment's results.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
}

/// The end of a folder's name until its run is complete.
const UNFINISHED: &str = ".unfinished";

impl Store {
    /// The folder `root`, emptied of earlier runs.
    ///
    /// # Errors
    /// When the folder cannot be made or emptied.
    pub fn create(root: &Path) -> Result<Self, StoreError> {
        let store = Self { root: root.to_owned() };
        store.remove_runs()?;
        store.make_runs()?;
        Ok(store)
    }

    /// The folder `root` with the runs that are complete in it; what was left unfinished is removed.
    ///
    /// # Errors
    /// When the folder cannot be made or read.
    pub fn resume(root: &Path) -> Result<Self, StoreError> {
        let store = Self { root: root.to_owned() };
        store.make_runs()?;
        let runs = store.runs();
        for entry in fs::read_dir(&runs).map_err(|error| StoreError::io(&runs, error))? {
            let path = entry.map_err(|error| StoreError::io(&runs, error))?.path();
            if path.to_string_lossy().ends_with(UNFINISHED) {
                fs::remove_dir_all(&path).map_err(|error| StoreError::io(&path, error))?;
            }
        }
        Ok(store)
    }

    /// The folder `root`, for reading.
    pub fn open(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether a run is stored and complete.
    pub fn has(&self, run: &str) -> bool {
        self.runs().join(run).is_dir()
    }

    /// Whether a run is stored and complete, and its timing valid if it has one. A run whose timing cannot be read is not
    /// done.
    pub fn is_done(&self, run: &str) -> bool {
        let folder = self.runs().join(run);
        let is_timing_valid =
            || read_in(&folder).is_ok_and(|rows: Vec<TimingRow>| rows.iter().all(|row| row.kept == 1));
        self.has(run) && (!has_table::<TimingRow>(&folder) || is_timing_valid())
    }

    /// Stores a run: completely or not at all. A stored run of the same identifier stays until the new one is complete.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_run(&self, key: &RunKey, mut result: RunResult) -> Result<(), StoreError> {
        result.stamp(key);
        let folder = self.runs().join(&*key.run);
        let unfinished = self.runs().join(format!("{}{UNFINISHED}", key.run));
        fs::create_dir_all(&unfinished).map_err(|error| StoreError::io(&unfinished, error))?;
        write_in(&unfinished, &result.flows)?;
        write_in(&unfinished, &result.queues)?;
        write_in(&unfinished, &result.series)?;
        write_in(&unfinished, &result.queue_series)?;
        write_in(&unfinished, &result.distributions)?;
        if !result.timing.is_empty() {
            write_in(&unfinished, &result.timing)?;
        }
        if self.has(&key.run) {
            fs::remove_dir_all(&folder).map_err(|error| StoreError::io(&folder, error))?;
        }
        fs::rename(&unfinished, &folder).map_err(|error| StoreError::io(&folder, error))
    }

    /// A stored run.
    ///
    /// # Errors
    /// When it is not there or damaged.
    pub fn read_run(&self, run: &str) -> Result<RunResult, StoreError> {
        let folder = self.runs().join(run);
        Ok(RunResult {
            flows: read_in(&folder)?,
            queues: read_in(&folder)?,
            series: read_in(&folder)?,
            queue_series: read_in(&folder)?,
            distributions: read_in(&folder)?,
            timing: if has_table::<TimingRow>(&folder) { read_in(&folder)? } else { Vec::new() },
        })
    }

    /// Joins the stored runs among `keys`, in that order, to one file per table. Returns the number of these runs.
    ///
    /// # Errors
    /// When a run cannot be read or a table not be written.
    pub fn consolidate(&self, keys: &[RunKey], points: &[PointRow]) -> Result<usize, StoreError> {
        let stored: Vec<&RunKey> = keys.iter().filter(|key| self.has(&key.run)).collect();
        self.join::<FlowRow>(&stored)?;
        self.join::<QueueRow>(&stored)?;
        self.join::<SeriesRow>(&stored)?;
        self.join::<QueueSeriesRow>(&stored)?;
        self.join::<DistributionRow>(&stored)?;
        if stored.iter().any(|key| has_table::<TimingRow>(&self.runs().join(&*key.run))) {
            self.join::<TimingRow>(&stored)?;
        } else {
            // The file would be that of an earlier experiment in the same folder.
            drop(fs::remove_file(self.root.join(TimingRow::FILE)));
        }
        write_in(&self.root, points)?;
        Ok(stored.len())
    }

    /// Removes the single runs; the joined tables stay.
    ///
    /// # Errors
    /// When they cannot be removed.
    pub fn remove_runs(&self) -> Result<(), StoreError> {
        let runs = self.runs();
        if !runs.exists() {
            return Ok(());
        }
        fs::remove_dir_all(&runs).map_err(|error| StoreError::io(&runs, error))
    }

    /// A joined table.
    ///
    /// # Errors
    /// When it is not there or damaged.
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

    /// Writes `summary.json`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_summary(&self, summary: &Summary) -> Result<(), StoreError> {
        let path = self.summary();
        let temporary = path.with_extension("json.tmp");
        let mut text =
            serde_json::to_string_pretty(summary).map_err(|error| StoreError::json(&path, error))?;
        text.push('\n');
        fs::write(&temporary, text).map_err(|error| StoreError::io(&temporary, error))?;
        fs::rename(&temporary, &path).map_err(|error| StoreError::io(&path, error))
    }

    /// Reads `summary.json`.
    ///
    /// # Errors
    /// When it is not there or damaged.
    pub fn read_summary(&self) -> Result<Summary, StoreError> {
        let path = self.summary();
        let text = fs::read_to_string(&path).map_err(|error| StoreError::io(&path, error))?;
        serde_json::from_str(&text).map_err(|error| StoreError::json(&path, error))
    }

    fn join<R: RunRow>(&self, keys: &[&RunKey]) -> Result<(), StoreError> {
        let mut writer = TableWriter::<R>::create(&self.root.join(R::FILE))?;
        for key in keys {
            // A run may have been stored under the label that its point had in an earlier sweep.
            let mut rows: Vec<R> = read_in(&self.runs().join(&*key.run))?;
            stamp(&mut rows, key);
            writer.extend(rows)?;
        }
        writer.finish()
    }

    fn make_runs(&self) -> Result<(), StoreError> {
        let runs = self.runs();
        fs::create_dir_all(&runs).map_err(|error| StoreError::io(&runs, error))
    }

    fn runs(&self) -> PathBuf {
        self.root.join("runs")
    }

    fn summary(&self) -> PathBuf {
        self.root.join("summary.json")
    }
}

fn write_in<R: Row>(folder: &Path, rows: &[R]) -> Result<(), StoreError> {
    write_table(&folder.join(R::FILE), rows)
}

/// Whether a folder has this table.
fn has_table<R: Row>(folder: &Path) -> bool {
    folder.join(R::FILE).exists()
}

fn read_in<R: Row>(folder: &Path) -> Result<Vec<R>, StoreError> {
    read_table(&folder.join(R::FILE))
}
