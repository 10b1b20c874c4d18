//! `summary.json`: the origin of the tables, with everything that is needed to reproduce them.

use crate::key::RunKey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The origin of a set of results, and the runs in its tables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Version of the tables' columns.
    pub schema: u32,
    /// The identity of these results: 16 hex digits.
    pub origin: String,
    /// Version of Cutline that wrote the tables.
    pub version: String,
    /// The commit of that version, as text; empty if it was not known. It is not part of the identity of results.
    pub commit: String,
    /// The name of the scenario.
    pub name: String,
    /// The title of the scenario.
    pub title: Option<String>,
    /// The description of the scenario.
    pub description: Option<String>,
    /// The path of the scenario file, as given by the user.
    pub scenario_file: String,
    /// The whole text of that file.
    pub scenario: String,
    /// The overrides of the command line: paths and values.
    pub overrides: Vec<(String, String)>,
    /// The seeds of the replications.
    pub seeds: Vec<u64>,
    /// The sweep's points.
    pub points: Vec<PointSummary>,
    /// The runs that are in the tables.
    pub finished: Vec<RunSummary>,
    /// The runs that failed, with their errors.
    pub failed: Vec<FailedRun>,
    /// True if every run of the plan is in the tables.
    pub complete: bool,
    /// The machine.
    pub host: Host,
    /// Begin of the experiment, in the caller's format.
    pub started_at: String,
    /// End of the experiment, in the same format.
    pub finished_at: String,
    /// SHA-256 digests of the tables by file name; empty before the first table.
    pub files: BTreeMap<String, String>,
    /// SHA-256 digest of this file with nothing between the quotation marks of this property.
    pub digest: String,
}

/// One point of a sweep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PointSummary {
    /// The label of the point, as in the tables.
    pub label: String,
    /// The values of the swept keys at this point.
    pub settings: BTreeMap<String, String>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunSummary {
    /// The identifier of the run.
    pub run: String,
    /// The label of the point.
    pub point: String,
    /// The seed.
    pub seed: u64,
}

/// One run that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailedRun {
    /// The run.
    #[serde(flatten)]
    pub run: RunSummary,
    /// The error.
    pub reason: String,
}

/// The machine that ran the experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Operating system and its release.
    pub kernel: String,
    /// Model of the processor.
    pub cpu: String,
    /// Processors that this program may use.
    pub cores: usize,
}

impl Host {
    /// Describes this machine. Unknown values are `unknown`.
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

/// Returns the model in the text of `/proc/cpuinfo`; empty if there is none.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_model_is_read_from_cpuinfo() {
        let info = "processor\t: 0\nmodel name\t: Example 3000 @ 2 GHz\nflags\t: a b\n";
        assert_eq!(cpu_model(info), "Example 3000 @ 2 GHz");
        assert_eq!(known(cpu_model("processor : 0")), "unknown");
        assert!(Host::this().cores >= 1);
    }
}
