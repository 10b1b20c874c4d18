//! The treatment of stored results when an experiment stores new ones in the same folder.

use crate::column::Row as _;
use crate::error::StoreError;
use crate::key::RunKey;
use crate::rows::{DistributionRow, FlowRow, PointRow, QueueRow, QueueSeriesRow, SeriesRow, TimingRow};
use crate::store::Store;
use crate::summary::Summary;
use crate::version::SCHEMA_VERSION;
use std::collections::BTreeSet;
use std::path::Path;

/// The treatment of stored results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExistingResults {
    /// Stored results are an error. This is for measurements in real time, which cannot be reproduced.
    Refuse,
    /// Results of the same origin are computed again. Their rows are kept until the new ones are complete. Results of
    /// another origin are an error.
    Repeat,
    /// Stored runs are kept and not repeated. The stored results must be part of the new ones.
    Resume,
    /// Stored results are removed.
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

/// The contents of a folder that may be used.
pub(crate) enum Found {
    /// No results.
    Nothing,
    /// Results that must be removed.
    ToReplace,
    /// Results of the same origin.
    Same(Box<Summary>),
    /// Some of the planned runs, and no others.
    Part(Box<Summary>),
}

/// The results that an experiment is going to store.
#[derive(Clone, Copy, Debug)]
pub struct Planned<'p> {
    /// The summary before the first run. Its origin is that of `keys`.
    pub summary: &'p Summary,
    /// All runs, in the order of the tables.
    pub keys: &'p [RunKey],
}

/// Decides whether the folder `root` may be used for the planned results. `runs` are the single runs in the folder.
pub(crate) fn check(
    root: &Path,
    planned: Planned<'_>,
    runs: &BTreeSet<String>,
    existing: ExistingResults,
) -> Result<Found, StoreError> {
    let store = Store::open(root);
    let is_empty = runs.is_empty() && !TABLES.iter().any(|table| root.join(table).exists());
    if is_empty && !store.has_summary() {
        return Ok(Found::Nothing);
    }
    if existing == ExistingResults::Replace {
        return Ok(Found::ToReplace);
    }
    if !store.has_summary() {
        return Err(StoreError::Unknown { folder: root.to_owned() });
    }
    let (stored, is_intact) = store.load_summary()?;
    let stored = Box::new(stored);
    if !is_intact && stored.origin != planned.summary.origin {
        // The damage may concern the origin of these results. With the same origin they may be replaced, whatever is damaged.
        store.read_any_summary()?;
    }
    if is_empty && stored.finished.is_empty() {
        // An experiment that was interrupted before its first run ended: nothing can be lost.
        return Ok(Found::ToReplace);
    }
    let is_part = is_part(&stored, runs, planned.keys);
    match existing {
        ExistingResults::Repeat | ExistingResults::Resume if stored.origin == planned.summary.origin => {
            Ok(Found::Same(stored))
        }
        ExistingResults::Resume if is_part => Ok(Found::Part(stored)),
        _ => {
            let asked = Box::new(planned.summary.clone());
            Err(StoreError::Taken { folder: root.to_owned(), stored, asked, can_resume: is_part })
        }
    }
}

/// Returns whether all stored runs are among the planned ones.
fn is_part(stored: &Summary, runs: &BTreeSet<String>, keys: &[RunKey]) -> bool {
    let asked: BTreeSet<&str> = keys.iter().map(|key| &*key.run).collect();
    let finished = stored.finished.iter().map(|run| run.run.as_str());
    stored.schema == SCHEMA_VERSION
        && finished.chain(runs.iter().map(String::as_str)).all(|run| asked.contains(run))
}
