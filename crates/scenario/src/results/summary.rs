//! `summary.json`: what the tables are results of, so that they can be read, and made again, years later.

use super::rows::PointRow;
use super::run::RunKey;
use super::table::SCHEMA_VERSION;
use crate::{ScenarioFile, SweepPoint};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The story of a set of results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Version of the tables' columns.
    pub schema: u32,
    /// Version of Cutline that made them.
    pub version: String,
    /// The scenario's name.
    pub name: String,
    /// Its title.
    pub title: Option<String>,
    /// Its description.
    pub description: Option<String>,
    /// The scenario file as it was given.
    pub scenario_file: String,
    /// The whole text of that file.
    pub scenario: String,
    /// What the command line set on top: paths and values.
    pub overrides: Vec<(String, String)>,
    /// The seeds of the replications.
    pub seeds: Vec<u64>,
    /// The sweep's points.
    pub points: Vec<PointSummary>,
    /// Runs that are in the tables.
    pub finished: Vec<RunSummary>,
    /// Runs that went wrong, and why.
    pub failed: Vec<FailedRun>,
    /// Whether every run of the plan is in the tables.
    pub complete: bool,
    /// The machine.
    pub host: Host,
    /// When it began, as the caller writes times.
    pub started_at: String,
    /// When it ended.
    pub finished_at: String,
}

/// One point of a sweep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointSummary {
    /// Its label, as in the tables.
    pub label: String,
    /// What is set at it.
    pub settings: BTreeMap<String, String>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Its identifier.
    pub run: String,
    /// Its point's label.
    pub point: String,
    /// Its seed.
    pub seed: u64,
}

/// One run that went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedRun {
    /// Which.
    #[serde(flatten)]
    pub run: RunSummary,
    /// Why.
    pub reason: String,
}

/// The machine that simulated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Operating system and its release.
    pub kernel: String,
    /// Model of the processor.
    pub cpu: String,
    /// Processors that this program may use.
    pub cores: usize,
}

impl Host {
    /// This machine; what cannot be found out is `unknown`.
    pub fn this() -> Self {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Self {
            kernel: format!("{} {}", std::env::consts::OS, known(release.trim())),
            cpu: known(cpu_model(&info)).to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// The model in the text of `/proc/cpuinfo`; empty when there is none.
fn cpu_model(info: &str) -> &str {
    let line = info.lines().find(|line| line.starts_with("model name"));
    line.and_then(|line| line.split_once(':')).map_or("", |(_, model)| model.trim())
}

fn known(fact: &str) -> &str {
    if fact.is_empty() { "unknown" } else { fact }
}

impl From<&RunKey> for RunSummary {
    fn from(key: &RunKey) -> Self {
        Self { run: key.run.to_string(), point: key.point.to_string(), seed: key.seed }
    }
}

impl Summary {
    /// The summary of an experiment before its first run. All points have the same name and seeds.
    pub fn new(file: &ScenarioFile, points: &[SweepPoint], version: &str, started_at: String) -> Self {
        let scenario = &points.first().expect("an expanded scenario has at least one point").scenario;
        let point = |point: &SweepPoint| PointSummary {
            label: point.label(),
            settings: point.settings.iter().cloned().collect(),
        };
        Self {
            schema: SCHEMA_VERSION,
            version: version.to_owned(),
            name: scenario.name.clone(),
            title: scenario.title.clone(),
            description: scenario.description.clone(),
            scenario_file: file.name().to_owned(),
            scenario: file.text().to_owned(),
            overrides: file.overrides().to_vec(),
            seeds: scenario.all_seeds().collect(),
            points: points.iter().map(point).collect(),
            finished: Vec::new(),
            failed: Vec::new(),
            complete: false,
            host: Host::this(),
            started_at,
            finished_at: String::new(),
        }
    }
}

/// The rows of `points.parquet`.
pub fn point_rows(points: &[SweepPoint]) -> Vec<PointRow> {
    let rows = |point: &SweepPoint| {
        let label: Arc<str> = point.label().into();
        let row = move |(key, value): &(String, String)| PointRow {
            point: Arc::clone(&label),
            key: key.as_str().into(),
            value: value.as_str().into(),
            number: number(value),
        };
        point.settings.iter().map(row).collect::<Vec<_>>()
    };
    points.iter().flat_map(rows).collect()
}

/// A plain number as itself, a switch as 1 or 0; a quantity with a unit is none.
fn number(value: &str) -> Option<f64> {
    match value {
        "true" => Some(1.0),
        "false" => Some(0.0),
        _ => value.parse().ok().filter(|number: &f64| number.is_finite()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_is_found_in_the_kernels_words() {
        let info = "processor\t: 0\nmodel name\t: Example 3000 @ 2 GHz\nflags\t: a b\n";
        assert_eq!(cpu_model(info), "Example 3000 @ 2 GHz");
        assert_eq!(known(cpu_model("processor : 0")), "unknown");
        assert!(Host::this().cores >= 1);
    }

    #[test]
    fn swept_values_are_numbers_where_they_can_be() {
        assert_eq!(number("6"), Some(6.0));
        assert_eq!(number("true"), Some(1.0));
        assert_eq!(number("15 Mbit/s"), None);
        assert_eq!(number("inf"), None);
    }
}
