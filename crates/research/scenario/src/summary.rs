//! Builds the summary of an experiment from its scenario file and the points of its sweep.

use crate::file::ScenarioFile;
use crate::runner::{Job, keys};
use crate::sweep::SweepPoint;
use cutline_results::{Host, PointSummary, SCHEMA_VERSION, Summary, origin};
use std::collections::BTreeMap;

impl ScenarioFile {
    /// Returns the summary of an experiment before its first run.
    ///
    /// `points` is the result of [`ScenarioFile::expand`], so all points have the same name and seeds. `jobs` is the result
    /// of [`plan`](crate::runner::plan) for these points and `version`, the program's version. `started_at` is a time in the
    /// caller's format.
    ///
    /// # Panics
    /// If `points` is empty.
    pub fn summary(
        &self,
        points: &[SweepPoint],
        jobs: &[Job<'_>],
        version: &str,
        started_at: String,
    ) -> Summary {
        let scenario = &points.first().expect("an expanded scenario has at least one point").scenario;
        Summary {
            schema: SCHEMA_VERSION,
            origin: origin(&keys(jobs), version),
            version: version.to_owned(),
            commit: String::new(),
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
            files: BTreeMap::new(),
            digest: String::new(),
        }
    }
}

fn point(point: &SweepPoint) -> PointSummary {
    PointSummary { label: point.label(), settings: point.settings.iter().cloned().collect() }
}
