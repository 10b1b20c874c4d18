//! The results that a picture shows: which folders, points and groups, and the names of their series.

use super::panels::{GROUP, Parts};
use crate::{AnalysisError, Selection, StoredResults};
use cutline_results::{FlowRow, PointRow, Row, RunResult, Store, Summary};
use cutline_scenario::ScenarioFile;
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Results that a picture shows.
#[derive(Clone, Copy, Debug)]
pub enum PictureSource<'r> {
    /// Stored results: a folder, or its summary.
    Folder(&'r Path),
    /// Results in memory.
    Memory {
        /// Their summary.
        summary: &'r Summary,
        /// The values of the swept keys.
        points: &'r [PointRow],
        /// All rows.
        rows: &'r RunResult,
    },
}

/// Results, without the tables of stored ones, which are read when a picture needs them.
pub struct Source<'r> {
    /// The name in legends: that of the scenario, or the folder if several have the same.
    pub name: String,
    /// The folder.
    pub folder: PathBuf,
    /// The values of the swept keys at each point, in the order of the sweep. Without a sweep, one point without values.
    pub points: Vec<SweptPoint>,
    /// Begin of the measurement, s.
    pub warm_up_s: f64,
    /// The title of the scenario.
    pub title: String,
    rows: Rows<'r>,
}

/// Place of the rows.
enum Rows<'r> {
    Stored(Store),
    Memory(&'r RunResult),
}

/// A point of a sweep.
#[derive(Clone, Debug, Default)]
pub struct SweptPoint {
    /// Its label in the tables.
    pub label: Arc<str>,
    /// The swept keys and their values.
    pub settings: Vec<(String, SweptValue)>,
}

/// The value of a swept key.
#[derive(Clone, Debug, PartialEq)]
pub struct SweptValue {
    /// As the scenario writes it, without quotes.
    pub text: String,
    /// As a number; `None` if it is not one.
    pub number: Option<f64>,
}

impl<'r> Source<'r> {
    /// Returns the results of a source, with the selected points.
    ///
    /// # Errors
    /// When there are none, or none of the points is selected.
    pub fn open(source: PictureSource<'r>, selection: &Selection) -> Result<Self, AnalysisError> {
        let (folder, summary, of_points, rows) = match source {
            PictureSource::Folder(path) => {
                let StoredResults { folder, store, summary } = StoredResults::open(path)?;
                (folder, summary, store.read()?, Rows::Stored(store))
            }
            PictureSource::Memory { summary, points, rows } => {
                let place = PathBuf::from(&summary.name);
                (place, summary.clone(), points.to_vec(), Rows::Memory(rows))
            }
        };
        let mut points = points(&of_points, &summary);
        selection.check_points(&folder, &points.iter().map(|point| &*point.label).collect::<Vec<_>>())?;
        points.retain(|point| selection.has_point(&point.label));
        Ok(Self {
            warm_up_s: warm_up_s(&summary),
            title: summary.title.clone().unwrap_or_else(|| summary.name.clone()),
            name: summary.name,
            folder,
            points,
            rows,
        })
    }

    /// A table.
    ///
    /// # Errors
    /// When it does not exist or is damaged.
    pub fn read<R: Row>(&self) -> Result<Vec<R>, AnalysisError> {
        match &self.rows {
            Rows::Stored(store) => Ok(store.read()?),
            Rows::Memory(rows) => {
                let RunResult { flows, queues, series, queue_series, distributions, timing } = rows;
                let tables: [&dyn Any; 6] = [flows, queues, series, queue_series, distributions, timing];
                let table = tables.iter().find_map(|table| table.downcast_ref::<Vec<R>>());
                Ok(table.cloned().unwrap_or_default())
            }
        }
    }
}

/// The results of these sources, each with a name of its own.
///
/// # Errors
/// As [`Source::open`].
pub fn open_all<'r>(
    found: &[PictureSource<'r>],
    selection: &Selection,
) -> Result<Vec<Source<'r>>, AnalysisError> {
    let mut sources: Vec<Source<'r>> =
        found.iter().map(|one| Source::open(*one, selection)).collect::<Result<_, _>>()?;
    let names: Vec<String> = sources.iter().map(|source| source.name.clone()).collect();
    for source in &mut sources {
        if names.iter().filter(|name| **name == source.name).count() > 1 {
            source.name = source.folder.display().to_string();
        }
    }
    Ok(sources)
}

fn points(rows: &[PointRow], summary: &Summary) -> Vec<SweptPoint> {
    let of = |label: &str| {
        let settings = rows.iter().filter(|row| &*row.point == label).map(|row| {
            let text = row.value.trim_matches('"').to_owned();
            (row.key.to_string(), SweptValue { text, number: row.number })
        });
        SweptPoint { label: label.into(), settings: settings.collect() }
    };
    summary.points.iter().map(|point| of(&point.label)).collect()
}

/// The warm-up of the scenario, s. 0 if the scenario in the results cannot be read.
fn warm_up_s(summary: &Summary) -> f64 {
    let read = || {
        let mut file = ScenarioFile::parse(&summary.scenario, &summary.scenario_file).ok()?;
        for (path, value) in &summary.overrides {
            file.set(path, value).ok()?;
        }
        Some(file.expand().ok()?.first()?.scenario.warm_up.as_secs_f64())
    };
    read().unwrap_or(0.0)
}

impl SweptPoint {
    /// The value of a key.
    pub fn value(&self, key: &str) -> Option<&SweptValue> {
        self.settings.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The settings in words without some keys, as parts of a series' name: `queue pi`, `hint 6`. Keys that vary together are one part.
    pub fn without(&self, left_out: &BTreeSet<String>, leads: &Leads) -> Parts {
        let mut parts = Parts::new();
        for (key, value) in self.settings.iter().filter(|(key, _)| !left_out.contains(key)) {
            let (lead, word) = (leads.get(key).unwrap_or(key), named(key, &value.text));
            match parts.iter_mut().find(|(known, _)| known == lead) {
                Some((_, words)) => *words = joined(&[words, &word]),
                None => parts.push((lead.clone(), word)),
            }
        }
        parts
    }
}

/// For each key that varies together with an earlier one, that one.
pub type Leads = BTreeMap<String, String>;

/// The keys that vary together: each follows from the other.
pub fn leads(sources: &[Source<'_>]) -> Leads {
    let mut leads = Leads::new();
    let mut known: Vec<&String> = Vec::new();
    for (key, _) in sources.iter().flat_map(|source| &source.points).flat_map(|point| &point.settings) {
        if known.contains(&key) {
            continue;
        }
        let with_key = keys_with(sources, key);
        let lead =
            known.iter().find(|lead| with_key.contains(**lead) && keys_with(sources, lead).contains(key));
        match lead {
            Some(lead) => drop(leads.insert(key.clone(), (*lead).clone())),
            None => known.push(key),
        }
    }
    leads
}

/// The keys that have one value at all points.
pub fn constant_keys(sources: &[Source<'_>]) -> BTreeSet<String> {
    decided_by(sources, |_| Some(""))
}

/// The keys whose value follows from that of `key` at all points, as in a `[[sweep.together]]`, and those that have one value.
pub fn keys_with(sources: &[Source<'_>], key: &str) -> BTreeSet<String> {
    decided_by(sources, |point| point.value(key).map(|value| value.text.as_str()))
}

/// The keys that have one value at all points for which `of` is the same.
fn decided_by<'s>(
    sources: &'s [Source<'_>],
    of: impl Fn(&'s SweptPoint) -> Option<&'s str>,
) -> BTreeSet<String> {
    let points = || sources.iter().flat_map(|source| &source.points);
    let keys: BTreeSet<&String> = points().flat_map(|point| &point.settings).map(|(key, _)| key).collect();
    let is_decided = |key: &&String| {
        let mut known: BTreeMap<Option<&str>, Option<&SweptValue>> = BTreeMap::new();
        points().all(|point| *known.entry(of(point)).or_insert(point.value(key)) == point.value(key))
    };
    keys.into_iter().filter(is_decided).cloned().collect()
}

/// Returns the settings that are the same at all points of a sweep, in words; empty without a sweep.
pub fn constants_in_words(sources: &[Source<'_>]) -> String {
    let constant = constant_keys(sources);
    let Some(first) = sources.iter().flat_map(|source| &source.points).next() else { return String::new() };
    let settings = first.settings.iter().filter(|(key, _)| constant.contains(key));
    settings.map(|(key, value)| named(key, &value.text)).collect::<Vec<_>>().join(", ")
}

/// A setting as a name, with the last part of the key, and the part before it if the last alone is ambiguous.
fn named(key: &str, value: &str) -> String {
    let parts: Vec<&str> = key.rsplit('.').collect();
    let short = parts.first().copied().unwrap_or(key);
    format!("{short} {value}")
}

/// The part of a series' name that identifies its results, if there are several.
pub fn of_results(sources: &[Source<'_>], source: &Source<'_>) -> Parts {
    if sources.len() > 1 { vec![("results".to_owned(), source.name.clone())] } else { Vec::new() }
}

/// The part of a series' name that is a group or queue.
pub fn of_group(name: &str) -> (String, String) {
    (GROUP.to_owned(), name.to_owned())
}

/// Words that are not empty, as one text.
pub fn joined(parts: &[&str]) -> String {
    parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(", ")
}

/// The groups of flows.
pub struct Groups {
    /// Their names, in the order of the rows.
    pub names: Vec<Arc<str>>,
    /// The group of each flow.
    pub of_flow: BTreeMap<Arc<str>, Arc<str>>,
}

impl Groups {
    /// The groups of these flows.
    pub fn of(flows: &[FlowRow]) -> Self {
        let mut groups = Self { names: Vec::new(), of_flow: BTreeMap::new() };
        for row in flows {
            add_name(&mut groups.names, &row.group);
            groups.of_flow.insert(Arc::clone(&row.flow), Arc::clone(&row.group));
        }
        groups
    }
}

/// Adds a name that is not there yet.
pub fn add_name(names: &mut Vec<Arc<str>>, name: &Arc<str>) {
    if !names.contains(name) {
        names.push(Arc::clone(name));
    }
}
