//! The summary of an experiment, from its scenario file and the points of its sweep.

use crate::file::ScenarioFile;
use crate::sweep::SweepPoint;
use cutline_results::{Host, PointSummary, SCHEMA_VERSION, Summary};

impl ScenarioFile {
    /// The summary of an experiment before its first run. `points` is what [`ScenarioFile::expand`] has returned: all of
    /// them have the same name and seeds. `version` is the engine's, `started_at` a time as the caller writes it.
    ///
    /// # Panics
    /// When there is no point.
    pub fn summary(&self, points: &[SweepPoint], version: &str, started_at: String) -> Summary {
        let scenario = &points.first().expect("an expanded scenario has at least one point").scenario;
        Summary {
            schema: SCHEMA_VERSION,
            version: version.to_owned(),
            name: scenario.name.clone(),
            title: scenario.title.clone(),
            description: scenario.description.clone(),
            scenario_file: self.name().to_owned(),
            scenario: self.text().to_owned(),
            overrides: self.overrides().to_vec(),
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

fn point(point: &SweepPoint) -> PointSummary {
    PointSummary { label: point.label(), settings: point.settings.iter().cloned().collect() }
}
