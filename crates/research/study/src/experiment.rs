//! An experiment: a scenario file of a study, or a variant of one.

use crate::changes::ExperimentChanges;
use crate::error::StudyError;
use crate::options::EvaluationOptions;
use crate::platform::{Platform, Run, existing_on, version_on};
use cutline_config::Errors;
use cutline_results::{ExistingResults, Lock, Planned, RunStore, StoreError, Summary};
use cutline_scenario::runner::{self, Job, JobProgress};
use cutline_scenario::{ScenarioFile, SweepPoint};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// A scenario file, and the settings of a variant.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Its name, which is also that of the folder of its results and the first part of its claims' ids.
    pub id: String,
    /// Difference from the other variants, for the titles of charts.
    pub label: String,
    /// The name of the scenario file, with its folder.
    pub file: String,
    /// The text of the scenario file.
    pub text: String,
    /// The settings of the variant.
    pub set: Overrides,
    /// Further settings of `--quick`. They keep the shape of every figure, but do not allow to judge its claims.
    pub quick: Overrides,
    /// Platform of the experiment.
    pub platform: &'static dyn Platform,
}

/// Values of keys in a scenario file, in the order in which they are set.
pub type Overrides = Vec<Override>;

/// A value of a key in a scenario file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The path of the key, such as `flow.audio.hint`.
    pub path: String,
    /// The value in TOML; a text needs no quotes.
    pub value: String,
    /// Place of the setting in the study, as in messages: `study.toml:7:3`.
    pub place: String,
}

impl Experiment {
    /// The scenario file with the settings of the variant, in full or at the reduced length.
    ///
    /// # Errors
    /// When a setting does not fit the file.
    pub fn scenario_file(&self, quick: bool) -> Result<ScenarioFile, Errors> {
        self.changed_file(&ExperimentChanges::quick(quick))
    }

    /// The scenario file with the settings of the variant and the user's changes.
    fn changed_file(&self, changes: &ExperimentChanges) -> Result<ScenarioFile, Errors> {
        let text = changes.files.get(&self.file).unwrap_or(&self.text);
        let mut file = ScenarioFile::parse(text, &self.file)?;
        let quick = if changes.quick { &self.quick[..] } else { &[] };
        for Override { path, value, place } in self.set.iter().chain(quick) {
            file.set_from(place, path, value)?;
        }
        for (path, value) in &changes.set {
            file.set(path, value)?;
        }
        Ok(file)
    }

    /// The number of its runs.
    ///
    /// # Errors
    /// When the file is not a valid scenario.
    pub fn runs(&self, quick: bool) -> Result<u64, Errors> {
        Ok(self.scenario_file(quick)?.expand()?.iter().map(|point| point.scenario.seeds).sum())
    }

    /// Prepares the experiment for running.
    ///
    /// # Errors
    /// When the file is not a valid scenario.
    pub(crate) fn prepare(&self, changes: &ExperimentChanges, version: &str) -> Result<Prepared, Errors> {
        let file = self.changed_file(changes)?;
        let points = file.expand()?;
        Ok(Prepared {
            id: self.id.clone(),
            platform: self.platform,
            file,
            points,
            version: version_on(self.platform, version),
        })
    }
}

/// An experiment with all points of its sweep.
pub(crate) struct Prepared {
    id: String,
    platform: &'static dyn Platform,
    file: ScenarioFile,
    points: Vec<SweepPoint>,
    version: String,
}

impl Prepared {
    /// The number of its runs.
    pub(crate) fn runs(&self) -> u64 {
        self.points.iter().map(|point| point.scenario.seeds).sum()
    }

    /// The summary of its results before the first run.
    pub(crate) fn summary(&self, started_at: String) -> Summary {
        self.file.summary(&self.points, &self.jobs(), &self.version, started_at)
    }

    /// Checks whether it can be run, and its results can be stored under `root/ID`.
    ///
    /// # Errors
    /// When this process may not use the platform, or other results would be lost.
    pub(crate) fn check(&self, root: &Path, existing: ExistingResults) -> Result<(), StudyError> {
        self.platform.permitted().map_err(StudyError::Platform)?;
        let (summary, keys) = (self.summary(String::new()), runner::keys(&self.jobs()));
        let planned = Planned { summary: &summary, keys: &keys };
        Ok(RunStore::check(&root.join(&self.id), planned, existing_on(self.platform, existing))?)
    }

    /// Takes the lock on `root/ID`, the folder of its results.
    ///
    /// # Errors
    /// When another process stores results there, or the folder cannot be created.
    pub(crate) fn lock(&self, root: &Path, since: &str) -> Result<Lock, StoreError> {
        Lock::take(&root.join(&self.id), since)
    }

    /// Runs all points with all seeds and stores them in the folder of the lock.
    pub(crate) fn run(
        &self,
        lock: Lock,
        options: &EvaluationOptions,
        cancel: &AtomicBool,
        progress: &(dyn Fn(JobProgress<'_>) + Sync),
    ) -> Result<Summary, StoreError> {
        let jobs = self.jobs();
        let summary = Summary { commit: options.commit.to_owned(), ..self.summary((options.clock)()) };
        let planned = Planned { summary: &summary, keys: &runner::keys(&jobs) };
        let existing = existing_on(self.platform, options.existing);
        let folder = lock.folder().to_owned();
        let store = RunStore::begin_locked(lock, planned, existing)?;
        let how = runner::RunOptions { threads: options.threads, cancel, progress };
        let endings = runner::run_and_store(&jobs, &store, &how, |scenario, seed| {
            self.platform.run(Run { scenario, seed, folder: &folder, cancel })
        })?;
        runner::conclude(summary, &self.points, &jobs, &endings, &store, (options.clock)())
    }

    fn jobs(&self) -> Vec<Job<'_>> {
        runner::plan(&self.points, &self.version)
    }
}
