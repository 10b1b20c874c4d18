//! Results while an experiment runs: `runs/RUN/*.parquet` for each finished run, joined to one file for each table.
//!
//! A run's folder is written under another name and renamed when it is complete. A folder with a run's name is therefore a
//! complete run, even after Ctrl-C, a crash or a full disk. When every run of the experiment is stored, the tables hold all
//! of them and the folders of the single runs are removed. A run that is stored again has a folder again, which takes
//! precedence over its rows in the tables until they are joined again.

use crate::column::Row;
use crate::digest::{Digests, read_record, read_verified, write_record};
use crate::error::StoreError;
use crate::existing::{self, ExistingResults, Found, Planned};
use crate::key::RunKey;
use crate::lock::Lock;
use crate::rows::{
    DistributionRow, FlowRow, PointRow, QueueRow, QueueSeriesRow, RunRow, SeriesRow, TimingRow,
};
use crate::run::{RunResult, stamp};
use crate::store::{SUMMARY, Store, has_table, remove_if_there};
use crate::summary::{RunSummary, Summary};
use crate::table::{TableWriter, parse_table, write_table};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The suffix of a folder's name until its run is complete.
const UNFINISHED: &str = ".unfinished";

/// The results of a running experiment. No other process stores results in their folder at the same time.
#[derive(Debug)]
pub struct RunStore {
    store: Store,
    /// True if stored runs are repeated.
    again: bool,
    /// The runs in the joined tables.
    joined: BTreeSet<String>,
    /// The runs in the joined tables whose timing is not valid.
    mistimed: BTreeSet<String>,
    /// Damage that was found.
    damage: Vec<Damage>,
    _lock: Lock,
}

/// Damaged results, which count as not stored.
#[derive(Debug)]
pub struct Damage {
    /// The run; none if it is the summary, or a joined table, with all runs in it.
    pub run: Option<String>,
    /// The file and its fault.
    pub error: StoreError,
}

impl RunStore {
    /// Checks whether [`RunStore::begin`] would accept the folder `root` for the planned results.
    ///
    /// # Errors
    /// When the folder has results that would be lost, or cannot be read.
    pub fn check(root: &Path, planned: Planned<'_>, existing: ExistingResults) -> Result<(), StoreError> {
        existing::check(root, planned, &folders(&runs_in(root)), existing).map(drop)
    }

    /// Prepares the folder `root` for the planned runs. `existing` determines the treatment of stored results. Unfinished
    /// runs of an earlier program are removed. So are damaged runs: they count as not stored.
    ///
    /// # Errors
    /// When the folder has results that would be lost, another process stores results there, or the folder cannot be
    /// created, read or written.
    pub fn begin(root: &Path, planned: Planned<'_>, existing: ExistingResults) -> Result<Self, StoreError> {
        Self::begin_locked(Lock::take(root, &planned.summary.started_at)?, planned, existing)
    }

    /// [`RunStore::begin`] in a folder whose lock was taken before.
    ///
    /// # Errors
    /// When the folder has results that would be lost, or cannot be read or written.
    pub fn begin_locked(
        lock: Lock,
        planned: Planned<'_>,
        existing: ExistingResults,
    ) -> Result<Self, StoreError> {
        let root = lock.folder();
        let store = Store::open(root);
        store.settle_tables(&existing::TABLES)?;
        let found = existing::check(root, planned, &folders(&runs_in(root)), existing)?;
        if matches!(found, Found::Nothing | Found::ToReplace) {
            remove(root)?;
        }
        let mut begun = Self {
            store,
            again: false,
            joined: BTreeSet::new(),
            mistimed: BTreeSet::new(),
            damage: Vec::new(),
            _lock: lock,
        };
        remove_folder(&unfinished_runs_in(begun.store.root()))?;
        let runs = begun.runs();
        fs::create_dir_all(&runs).map_err(|error| StoreError::io(&runs, error))?;
        begun.remove_unfinished_runs()?;
        match found {
            Found::Nothing | Found::ToReplace => {
                begun.store.write_summary(planned.summary)?;
            }
            Found::Same(stored) => {
                begun.again = existing == ExistingResults::Repeat;
                if let Err(error) = begun.store.read_any_summary() {
                    begun.damage.push(Damage { run: None, error });
                }
                begun.look_through(&stored)?;
                if !begun.damage.is_empty() {
                    begun.reopen(*stored, planned)?;
                }
            }
            Found::Part(stored) => {
                begun.look_through(&stored)?;
                begun.reopen(*stored, planned)?;
            }
        }
        Ok(begun)
    }

    /// Makes the summary that of the planned results, which are not complete.
    fn reopen(&self, stored: Summary, planned: Planned<'_>) -> Result<(), StoreError> {
        let Summary { mut finished, files, .. } = stored;
        finished.retain(|run| self.has(&run.run));
        self.store.write_summary(&Summary { finished, files, ..planned.summary.clone() }).map(drop)
    }

    /// Returns the damage that was found when the folder was opened.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// Returns the results for reading.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns whether a run is stored and complete.
    pub fn has(&self, run: &str) -> bool {
        self.has_folder(run) || self.joined.contains(run)
    }

    /// Returns whether a run is complete: it is stored, its timing is valid if it has one, and the experiment
    /// is not repeated. A run whose timing cannot be read is not done.
    pub fn is_done(&self, run: &str) -> bool {
        if self.again {
            return false;
        }
        if !self.has_folder(run) {
            return self.joined.contains(run) && !self.mistimed.contains(run);
        }
        let folder = self.runs().join(run);
        let is_timing_valid =
            || read_run(&folder).is_ok_and(|rows: Vec<TimingRow>| rows.iter().all(|row| row.timing_ok));
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
        let mut digests = Digests::new();
        write_in(&unfinished, &result.flows, &mut digests)?;
        write_in(&unfinished, &result.queues, &mut digests)?;
        write_in(&unfinished, &result.series, &mut digests)?;
        write_in(&unfinished, &result.queue_series, &mut digests)?;
        write_in(&unfinished, &result.distributions, &mut digests)?;
        if !result.timing.is_empty() {
            write_in(&unfinished, &result.timing, &mut digests)?;
        }
        write_record(&unfinished, &digests)?;
        discard(&folder, &self.runs().join(format!("{}.replaced{UNFINISHED}", key.run)))?;
        fs::rename(&unfinished, &folder).map_err(|error| StoreError::io(&folder, error))
    }

    /// Joins the stored runs among `keys`, in that order, to one file for each table, and writes the summary, with the runs
    /// that were joined as the finished ones. Returns it. The folders of single runs are removed if the experiment is
    /// complete.
    ///
    /// Until the summary is written, the earlier tables stay beside the new ones. So at every moment there is a summary with
    /// its tables.
    ///
    /// # Errors
    /// When a run cannot be read, or a file not be written or removed.
    pub fn conclude(
        &self,
        keys: &[RunKey],
        points: &[PointRow],
        summary: &Summary,
    ) -> Result<Summary, StoreError> {
        let stored: Vec<&RunKey> = keys.iter().filter(|key| self.has(&key.run)).collect();
        let mut files = Digests::new();
        self.join::<FlowRow>(&stored, &mut files)?;
        self.join::<QueueRow>(&stored, &mut files)?;
        self.join::<SeriesRow>(&stored, &mut files)?;
        self.join::<QueueSeriesRow>(&stored, &mut files)?;
        self.join::<DistributionRow>(&stored, &mut files)?;
        let is_timed = |key: &&RunKey| has_table::<TimingRow>(&self.runs().join(&*key.run));
        if has_table::<TimingRow>(self.store.root()) || stored.iter().any(is_timed) {
            self.join::<TimingRow>(&stored, &mut files)?;
        }
        let digest = write_table(&self.store.new_table(PointRow::FILE), points)?;
        files.insert(PointRow::FILE.to_owned(), digest);
        let summary = self.store.write_summary(&Summary {
            finished: stored.iter().map(|key| RunSummary::from(*key)).collect(),
            complete: stored.len() == keys.len() && summary.failed.is_empty(),
            files,
            ..summary.clone()
        })?;
        self.store.settle_tables(&existing::TABLES)?;
        if summary.complete {
            self.remove_runs()?;
        }
        Ok(summary)
    }

    /// The stored summary, if the results are complete and no run has been stored since the tables were joined.
    ///
    /// # Errors
    /// When the summary cannot be read, or the empty folder of single runs not be removed.
    pub fn settled(&self) -> Result<Option<Summary>, StoreError> {
        let summary = self.store.read_summary()?;
        let is_settled = summary.complete && self.damage.is_empty() && folders(&self.runs()).is_empty();
        if is_settled {
            self.remove_runs()?;
        }
        Ok(is_settled.then_some(summary))
    }

    fn remove_runs(&self) -> Result<(), StoreError> {
        discard_runs(self.store.root())
    }

    fn join<R: RunRow>(&self, keys: &[&RunKey], files: &mut Digests) -> Result<(), StoreError> {
        let all_have_folders = keys.iter().all(|key| self.has_folder(&key.run));
        let joined = if all_have_folders { BTreeMap::new() } else { self.joined_rows::<R>()? };
        let mut writer = TableWriter::<R>::create(&self.store.new_table(R::FILE))?;
        for key in keys {
            let mut rows: Vec<R> = if self.has_folder(&key.run) {
                read_run(&self.runs().join(&*key.run))?
            } else {
                joined.get(&*key.run).map_or_else(Vec::new, |(_, rows)| rows.clone())
            };
            // A run may have been stored under the label that its point had in an earlier sweep.
            stamp(&mut rows, key);
            writer.extend(rows)?;
        }
        files.insert(R::FILE.to_owned(), writer.finish()?);
        Ok(())
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

    /// Finds out which runs are stored and intact. Folders of damaged runs are removed.
    fn look_through(&mut self, stored: &Summary) -> Result<(), StoreError> {
        for run in folders(&self.runs()) {
            let folder = self.runs().join(&run);
            let Err(error) = check_run(&folder) else { continue };
            if !error.is_damage() {
                return Err(error);
            }
            remove_folder(&folder)?;
            self.damage.push(Damage { run: Some(run), error });
        }
        if stored.finished.is_empty() {
            return Ok(());
        }
        let tables = self.look_through_tables(stored);
        let points = self.store.verify::<PointRow>(&stored.files);
        for result in [tables, points] {
            match result {
                Err(error) if error.is_damage() => self.damage.push(Damage { run: None, error }),
                result => result?,
            }
        }
        Ok(())
    }

    /// Notes the runs of the joined tables: those that the summary names and that have rows.
    fn look_through_tables(&mut self, stored: &Summary) -> Result<(), StoreError> {
        let store = &self.store;
        let flows: Vec<FlowRow> = store.read_with(&stored.files)?;
        let queues: Vec<QueueRow> = store.read_with(&stored.files)?;
        store.verify::<SeriesRow>(&stored.files)?;
        store.verify::<QueueSeriesRow>(&stored.files)?;
        store.verify::<DistributionRow>(&stored.files)?;
        let timing = if store.describes::<TimingRow>() {
            store.read_with::<TimingRow>(&stored.files)?
        } else {
            Vec::new()
        };
        let rows = flows.iter().map(|row| &*row.run).chain(queues.iter().map(|row| &*row.run));
        let present: BTreeSet<&str> = rows.collect();
        let finished = stored.finished.iter().map(|run| &run.run);
        self.joined = finished.filter(|run| present.contains(run.as_str())).cloned().collect();
        let invalid = timing.iter().filter(|row| !row.timing_ok);
        self.mistimed = invalid.map(|row| row.run.to_string()).collect();
        Ok(())
    }

    /// Returns whether a run has a folder of its own, whose rows are not in the joined tables yet.
    fn has_folder(&self, run: &str) -> bool {
        self.runs().join(run).is_dir()
    }

    /// Removes the folders of runs that were interrupted while their rows were written.
    fn remove_unfinished_runs(&self) -> Result<(), StoreError> {
        let runs = self.runs();
        for entry in fs::read_dir(&runs).map_err(|error| StoreError::io(&runs, error))? {
            let path = entry.map_err(|error| StoreError::io(&runs, error))?.path();
            if path.to_string_lossy().ends_with(UNFINISHED) {
                remove_folder(&path)?;
            }
        }
        Ok(())
    }

    /// The folder of the single runs.
    fn runs(&self) -> PathBuf {
        runs_in(self.store.root())
    }
}

fn runs_in(root: &Path) -> PathBuf {
    root.join("runs")
}

/// The name of [`runs_in`] while it is removed.
fn unfinished_runs_in(root: &Path) -> PathBuf {
    root.join(format!("runs{UNFINISHED}"))
}

fn discard_runs(root: &Path) -> Result<(), StoreError> {
    discard(&runs_in(root), &unfinished_runs_in(root))
}

/// Removes a folder under another name. A process that is killed meanwhile leaves the whole folder, or a part of one that is
/// not taken for a damaged run.
fn discard(folder: &Path, unfinished: &Path) -> Result<(), StoreError> {
    remove_folder(unfinished)?;
    match fs::rename(folder, unfinished) {
        Ok(()) => remove_folder(unfinished),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(StoreError::io(folder, error)),
    }
}

fn remove_folder(folder: &Path) -> Result<(), StoreError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::io(folder, error)),
        _ => Ok(()),
    }
}

/// Writes a table into a run's folder, and notes its digest.
fn write_in<R: Row>(folder: &Path, rows: &[R], digests: &mut Digests) -> Result<(), StoreError> {
    digests.insert(R::FILE.to_owned(), write_table(&folder.join(R::FILE), rows)?);
    Ok(())
}

/// Reads a table of a run's folder.
fn read_run<R: Row>(folder: &Path) -> Result<Vec<R>, StoreError> {
    let path = folder.join(R::FILE);
    parse_table(&path, read_verified(folder, R::FILE, &read_record(folder)?)?)
}

/// Checks that a run's tables are undamaged.
fn check_run(folder: &Path) -> Result<(), StoreError> {
    read_run::<FlowRow>(folder)?;
    read_run::<QueueRow>(folder)?;
    read_run::<SeriesRow>(folder)?;
    read_run::<QueueSeriesRow>(folder)?;
    read_run::<DistributionRow>(folder)?;
    if has_table::<TimingRow>(folder) || read_record(folder)?.contains_key(TimingRow::FILE) {
        read_run::<TimingRow>(folder)?;
    }
    Ok(())
}

/// The runs that have a folder.
fn folders(runs: &Path) -> BTreeSet<String> {
    let Ok(entries) = fs::read_dir(runs) else { return BTreeSet::new() };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| !name.ends_with(UNFINISHED)).collect()
}

/// Removes the results of a folder, and nothing else that lies there. The summary goes last: as long as anything is left,
/// it describes the rest.
fn remove(root: &Path) -> Result<(), StoreError> {
    discard_runs(root)?;
    // Tables that the summary does not describe yet are gone: they were settled.
    for file in existing::TABLES.into_iter().chain([SUMMARY]) {
        remove_if_there(&root.join(file))?;
    }
    Ok(())
}
