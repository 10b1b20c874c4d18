//! The results that a picture shows: which folders, points and groups, and the names of their series.

use crate::exit::Failure;
use crate::stored::{self, Selection};
use cutline_results::{FlowRow, PointRow, Row, Store, Summary};
use cutline_scenario::ScenarioFile;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Stored results, without their tables, which are read when a picture needs them.
pub struct Source {
    /// The name in legends: that of the scenario, or the folder if several have the same.
    pub name: String,
    /// The folder.
    pub folder: PathBuf,
    /// The values of the swept keys at each point, in the order of the sweep. Without a sweep, one point without values.
    pub points: Vec<SweptPoint>,
    /// When the measurement begins, s.
    pub warm_up_s: f64,
    /// The title of the scenario.
    pub title: String,
    store: Store,
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

impl Source {
    /// The results in a folder, or in that of a summary, with the points that are selected.
    ///
    /// # Errors
    /// When there are none, or none of the points is selected.
    pub fn open(path: &Path, selection: &Selection) -> Result<Self, Failure> {
        let (folder, store, summary) = stored::open(path)?;
        let mut points = points(&store.read::<PointRow>()?, &summary);
        selection.check_points(&folder, &points.iter().map(|point| &*point.label).collect::<Vec<_>>())?;
        points.retain(|point| selection.has_point(&point.label));
        Ok(Self {
            warm_up_s: warm_up_s(&summary),
            title: summary.title.clone().unwrap_or_else(|| summary.name.clone()),
            name: summary.name,
            folder,
            points,
            store,
        })
    }

    /// A table.
    ///
    /// # Errors
    /// When it does not exist or is damaged.
    pub fn read<R: Row>(&self) -> Result<Vec<R>, Failure> {
        Ok(self.store.read()?)
    }
}

/// The results in these folders, each with a name of its own.
///
/// # Errors
/// As [`Source::open`].
pub fn open_all(paths: &[PathBuf], selection: &Selection) -> Result<Vec<Source>, Failure> {
    let mut sources: Vec<Source> =
        paths.iter().map(|path| Source::open(path, selection)).collect::<Result<_, _>>()?;
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

/// The warm-up of the scenario, s. If the results are of a version whose scenarios cannot be read any more, 0.
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

    /// The settings without one key, as a name: `queue=pi, hint=6`; empty if there is none.
    pub fn without(&self, key: &str) -> String {
        let others = self.settings.iter().filter(|(name, _)| name != key);
        others.map(|(name, value)| named(name, &value.text)).collect::<Vec<_>>().join(", ")
    }

    /// The settings as a name; empty without a sweep.
    pub fn name(&self) -> String {
        self.without("")
    }
}

/// A setting as a name, with the last part of the key, and the part before it if the last alone says little.
fn named(key: &str, value: &str) -> String {
    let parts: Vec<&str> = key.rsplit('.').collect();
    let short = parts.first().copied().unwrap_or(key);
    format!("{short} {value}")
}

/// The name of a series from its parts: those that do not distinguish it from others are left out.
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
