//! Results while an experiment runs: `runs/RUN/*.parquet` for each finished run, joined to one file for each table.
//!
//! A run's folder is written under another name and renamed when it is complete. A folder with a run's name is therefore a
//! complete run, even after Ctrl-C, a crash or a full disk. When every run of the experiment is stored, the tables hold all
//! of them and the folders of the single runs are removed. A run that is stored again has a folder again, which takes
//! precedence over its rows in the tables until they are joined anew.

use crate::error::StoreError;
use crate::existing::{self, Existing, Found, Planned};
use crate::key::RunKey;
use crate::rows::{
    DistributionRow, FlowRow, PointRow, QueueRow, QueueSeriesRow, RunRow, SeriesRow, TimingRow,
};
use crate::run::{RunResult, stamp};
use crate::store::{SUMMARY, Store, has_table, read_in, write_in};
use crate::summary::Summary;
use crate::table::TableWriter;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The suffix of a folder's name until its run is complete.
const UNFINISHED: &str = ".unfinished";

/// The results of a running experiment.
#[derive(Clone, Debug)]
pub struct RunStore {
    store: Store,
    /// Whether stored runs are repeated.
    again: bool,
    /// The runs in the joined tables.
    joined: BTreeSet<String>,
    /// The runs in the joined tables whose timing is not valid.
    mistimed: BTreeSet<String>,
}

impl RunStore {
    /// Checks whether [`RunStore::begin`] would accept the folder `root` for the planned results.
    ///
    /// # Errors
    /// When the folder has results that would be lost, or cannot be read.
    pub fn check(root: &Path, planned: Planned<'_>, existing: Existing) -> Result<(), StoreError> {
        existing::check(root, planned, &folders(&runs_in(root)), existing).map(drop)
    }

    /// Prepares the folder `root` for the planned runs. `existing` determines the treatment of stored results. Unfinished
    /// runs of an earlier program are removed.
    ///
    /// # Errors
    /// When the folder has results that would be lost, or cannot be created, read or written.
    pub fn begin(root: &Path, planned: Planned<'_>, existing: Existing) -> Result<Self, StoreError> {
        let found = existing::check(root, planned, &folders(&runs_in(root)), existing)?;
        if matches!(found, Found::Nothing | Found::ToReplace) {
            remove(root)?;
        }
        let store = Store::open(root);
        let mut begun = Self { store, again: false, joined: BTreeSet::new(), mistimed: BTreeSet::new() };
        let runs = begun.runs();
        fs::create_dir_all(&runs).map_err(|error| StoreError::io(&runs, error))?;
        match found {
            Found::Nothing | Found::ToReplace => begun.store.write_summary(planned.summary)?,
            Found::Same(stored) => {
                begun.again = existing == Existing::Repeat;
                begun.know_joined(&stored)?;
            }
            Found::Part(stored) => {
                begun.know_joined(&stored)?;
                // From here on these are the larger results, which are not complete.
                begun
                    .store
                    .write_summary(&Summary { finished: stored.finished, ..planned.summary.clone() })?;
            }
        }
        begun.remove_unfinished()?;
        Ok(begun)
    }

    /// Returns the results for reading.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns whether a run is stored and complete.
    pub fn has(&self, run: &str) -> bool {
        self.has_folder(run) || self.joined.contains(run)
    }

    /// Whether a run need not be run: it is stored and complete, its timing is valid if it has one, and the experiment is
    /// not repeated. A run whose timing cannot be read is not done.
    pub fn is_done(&self, run: &str) -> bool {
        if self.again {
            return false;
        }
        if !self.has_folder(run) {
            return self.joined.contains(run) && !self.mistimed.contains(run);
        }
        let folder = self.runs().join(run);
        let is_timing_valid =
            || read_in(&folder).is_ok_and(|rows: Vec<TimingRow>| rows.iter().all(|row| row.timing_ok));
        !has_table::<TimingRow>(&folder) || is_timing_valid()
    }

    /// Stores a run: completely or not at all. A stored run of the same identifier stays until the new one is complete.
    ///
    /// # Errors
    /// When the run cannot be written.
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
        if folder.is_dir() {
            fs::remove_dir_all(&folder).map_err(|error| StoreError::io(&folder, error))?;
        }
        fs::rename(&unfinished, &folder).map_err(|error| StoreError::io(&folder, error))
    }

    /// Joins the stored runs among `keys`, in that order, to one file for each table, and writes the summary. The folders
    /// of single runs are removed if the summary says that the experiment is complete.
    ///
    /// # Errors
    /// When a run cannot be read, or a file not be written or removed.
    pub fn conclude(
        &self,
        keys: &[RunKey],
        points: &[PointRow],
        summary: &Summary,
    ) -> Result<(), StoreError> {
        let stored: Vec<&RunKey> = keys.iter().filter(|key| self.has(&key.run)).collect();
        self.join::<FlowRow>(&stored)?;
        self.join::<QueueRow>(&stored)?;
        self.join::<SeriesRow>(&stored)?;
        self.join::<QueueSeriesRow>(&stored)?;
        self.join::<DistributionRow>(&stored)?;
        let is_timed = |key: &&RunKey| has_table::<TimingRow>(&self.runs().join(&*key.run));
        if has_table::<TimingRow>(self.store.root()) || stored.iter().any(is_timed) {
            self.join::<TimingRow>(&stored)?;
        }
        write_in(self.store.root(), points)?;
        self.store.write_summary(summary)?;
        if summary.complete { self.remove_runs() } else { Ok(()) }
    }

    /// The stored summary, if the results are complete and no run has been stored since the tables were joined.
    ///
    /// # Errors
    /// When the summary cannot be read, or the empty folder of single runs not be removed.
    pub fn settled(&self) -> Result<Option<Summary>, StoreError> {
        let summary = self.store.read_summary()?;
        let is_settled = summary.complete && folders(&self.runs()).is_empty();
        if is_settled {
            self.remove_runs()?;
        }
        Ok(is_settled.then_some(summary))
    }

    fn remove_runs(&self) -> Result<(), StoreError> {
        let runs = self.runs();
        fs::remove_dir_all(&runs).map_err(|error| StoreError::io(&runs, error))
    }

    fn join<R: RunRow>(&self, keys: &[&RunKey]) -> Result<(), StoreError> {
        let all_have_folders = keys.iter().all(|key| self.has_folder(&key.run));
        let joined = if all_have_folders { BTreeMap::new() } else { self.joined_rows::<R>()? };
        let mut writer = TableWriter::<R>::create(&self.store.root().join(R::FILE))?;
        for key in keys {
            let mut rows: Vec<R> = if self.has_folder(&key.run) {
                read_in(&self.runs().join(&*key.run))?
            } else {
                joined.get(&*key.run).map_or_else(Vec::new, |(_, rows)| rows.clone())
            };
            // A run may have been stored under the label that its point had in an earlier sweep.
            stamp(&mut rows, key);
            writer.extend(rows)?;
        }
        writer.finish()
    }

    /// The rows of a joined table by run. Points that describe the same run have the same rows: those of the first are
    /// taken.
    fn joined_rows<R: RunRow>(&self) -> Result<BTreeMap<String, (String, Vec<R>)>, StoreError> {
        let mut by_run: BTreeMap<String, (String, Vec<R>)> = BTreeMap::new();
        if !has_table::<R>(self.store.root()) {
            return Ok(by_run);
        }
        for row in self.store.read::<R>()? {
            let (run, point) = row.run_and_point();
            if let Some((first, rows)) = by_run.get_mut(run) {
                if *first == *point {
                    rows.push(row);
                }
            } else {
                by_run.insert(run.to_owned(), (point.to_owned(), vec![row]));
            }
        }
        Ok(by_run)
    }

    /// Notes which runs the joined tables hold.
    fn know_joined(&mut self, stored: &Summary) -> Result<(), StoreError> {
        self.joined = stored.finished.iter().map(|run| run.run.clone()).collect();
        let timing = self.store.read_timing()?;
        let invalid = timing.iter().filter(|row| !row.timing_ok);
        self.mistimed = invalid.map(|row| row.run.to_string()).collect();
        Ok(())
    }

    fn has_folder(&self, run: &str) -> bool {
        self.runs().join(run).is_dir()
    }

    fn remove_unfinished(&self) -> Result<(), StoreError> {
        let runs = self.runs();
        for entry in fs::read_dir(&runs).map_err(|error| StoreError::io(&runs, error))? {
            let path = entry.map_err(|error| StoreError::io(&runs, error))?.path();
            if path.to_string_lossy().ends_with(UNFINISHED) {
                fs::remove_dir_all(&path).map_err(|error| StoreError::io(&path, error))?;
            }
        }
        Ok(())
    }

    fn runs(&self) -> PathBuf {
        runs_in(self.store.root())
    }
}

fn runs_in(root: &Path) -> PathBuf {
    root.join("runs")
}

/// The runs that have a folder.
fn folders(runs: &Path) -> BTreeSet<String> {
    let Ok(entries) = fs::read_dir(runs) else { return BTreeSet::new() };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| !name.ends_with(UNFINISHED)).collect()
}

/// Removes the results of a folder, and nothing else that lies there. The summary goes last: as long as anything is left,
/// it says what that is.
fn remove(root: &Path) -> Result<(), StoreError> {
    let runs = runs_in(root);
    unless_absent(&runs, fs::remove_dir_all(&runs))?;
    for file in existing::TABLES.into_iter().chain([SUMMARY]) {
        let path = root.join(file);
        unless_absent(&path, fs::remove_file(&path))?;
    }
    Ok(())
}

fn unless_absent(path: &Path, removed: io::Result<()>) -> Result<(), StoreError> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::io(path, error)),
        _ => Ok(()),
    }
}
