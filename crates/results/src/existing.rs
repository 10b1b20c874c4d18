//! What happens to results that are in a folder when an experiment is to store new ones there.

use crate::column::Row as _;
use crate::error::StoreError;
use crate::key::RunKey;
use crate::rows::{DistributionRow, FlowRow, PointRow, QueueRow, QueueSeriesRow, SeriesRow, TimingRow};
use crate::store::Store;
use crate::summary::Summary;
use crate::version::SCHEMA_VERSION;
use std::collections::BTreeSet;
use std::path::Path;

/// What to do with results that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Nothing may be there. For measurements in real time, which no repetition brings back.
    Refuse,
    /// Results of the same origin are computed again; their rows stay until the new ones are complete. Results of another
    /// origin are refused.
    Repeat,
    /// Go on: runs that are stored are not run again. The results there must be part of those that are asked for.
    Resume,
    /// Remove whatever is there.
    Replace,
}

/// The files of the tables.
pub(crate) const TABLES: [&str; 7] = [
    FlowRow::FILE,
    QueueRow::FILE,
    SeriesRow::FILE,
    QueueSeriesRow::FILE,
    DistributionRow::FILE,
    TimingRow::FILE,
    PointRow::FILE,
];

/// What is in a folder, as far as it may be used.
pub(crate) enum Found {
    /// No results.
    Nothing,
    /// Results that are to be removed.
    ToReplace,
    /// Results of the same origin.
    Same(Box<Summary>),
    /// Some of the runs that are asked for, and no others.
    Part(Box<Summary>),
}

/// What an experiment is going to store.
#[derive(Clone, Copy, Debug)]
pub struct Planned<'p> {
    /// The summary before the first run; its origin is that of `keys`.
    pub summary: &'p Summary,
    /// All its runs, in the order of the tables.
    pub keys: &'p [RunKey],
}

/// Decides whether the folder `root` may be used for what is planned. `runs` are the single runs in it.
pub(crate) fn check(
    root: &Path,
    planned: Planned<'_>,
    runs: &BTreeSet<String>,
    existing: Existing,
) -> Result<Found, StoreError> {
    let store = Store::open(root);
    let is_empty = runs.is_empty() && !TABLES.iter().any(|table| root.join(table).exists());
    if is_empty && !store.has_summary() {
        return Ok(Found::Nothing);
    }
    if existing == Existing::Replace {
        return Ok(Found::ToReplace);
    }
    if !store.has_summary() {
        return Err(StoreError::Unknown { folder: root.to_owned() });
    }
    let (stored, is_intact) = store.load_summary()?;
    let stored = Box::new(stored);
    if !is_intact && stored.origin != planned.summary.origin {
        // What these results are is not known for certain. Of the same origin they are all the same, whatever is damaged.
        store.read_any_summary()?;
    }
    if is_empty && stored.finished.is_empty() {
        // An experiment that was interrupted before its first run ended: nothing can be lost.
        return Ok(Found::ToReplace);
    }
    let is_part = is_part(&stored, runs, planned.keys);
    match existing {
        Existing::Repeat | Existing::Resume if stored.origin == planned.summary.origin => {
            Ok(Found::Same(stored))
        }
        Existing::Resume if is_part => Ok(Found::Part(stored)),
        _ => {
            let asked = Box::new(planned.summary.clone());
            Err(StoreError::Taken { folder: root.to_owned(), stored, asked, can_resume: is_part })
        }
    }
}

/// Whether every run that is stored is also one of those that are asked for.
fn is_part(stored: &Summary, runs: &BTreeSet<String>, keys: &[RunKey]) -> bool {
    let asked: BTreeSet<&str> = keys.iter().map(|key| &*key.run).collect();
    let finished = stored.finished.iter().map(|run| run.run.as_str());
    stored.schema == SCHEMA_VERSION
        && finished.chain(runs.iter().map(String::as_str)).all(|run| asked.contains(run))
}
