//! An experiment: a scenario file of a paper, or a variant of one.

use crate::evaluation::{Options, ReproduceError};
use cutline_config::Errors;
use cutline_lab::Stack;
use cutline_results::{RunResult, Store, Summary};
use cutline_scenario::runner::{self, Progress};
use cutline_scenario::{Scenario, ScenarioFile};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// The reduced length of `--quick` where nothing else is said.
const QUICK: &[(&str, &str)] = &[("duration", "30 s"), ("warm-up", "15 s"), ("seeds", "2")];

/// A scenario file, with what a variant sets differently.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Its name, of its results' folder and of its claims.
    pub id: &'static str,
    /// What sets it apart from its siblings, as a chart's title says it.
    pub label: &'static str,
    /// The scenario file's name in `experiments/`.
    pub file: &'static str,
    /// The scenario file's text.
    pub text: &'static str,
    /// What the variant sets: paths and values.
    pub set: Settings,
    /// What `--quick` sets besides: enough is left to see every figure's shape, not to judge its claims.
    pub quick: Settings,
    /// Where it is run.
    pub place: Place,
}

/// Where an experiment is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Simulated.
    Simulator,
    /// With real packets and this of Linux's TCP, in real time.
    Laboratory(Stack),
}

/// What is set differently: paths of the scenario file and values.
type Settings = &'static [(&'static str, &'static str)];

impl Experiment {
    /// An experiment of a file of `experiments/`, its name and its text, at the usual reduced length.
    pub(crate) const fn new(
        id: &'static str,
        label: &'static str,
        (file, text): (&'static str, &'static str),
    ) -> Self {
        Self { id, label, file, text, set: &[], quick: QUICK, place: Place::Simulator }
    }

    /// A variant of it.
    pub(crate) const fn with(self, set: Settings) -> Self {
        Self { set, ..self }
    }

    /// With a reduced length of its own.
    pub(crate) const fn shortened_by(self, quick: Settings) -> Self {
        Self { quick, ..self }
    }

    /// The same, run elsewhere.
    pub(crate) const fn at(self, place: Place) -> Self {
        Self { place, ..self }
    }

    /// The scenario file with the variant's settings.
    ///
    /// # Errors
    /// When a setting does not fit the file.
    pub fn scenario_file(&self, quick: bool) -> Result<ScenarioFile, Errors> {
        let mut file = ScenarioFile::parse(self.text, self.file)?;
        let quick = if quick { self.quick } else { &[] };
        for (path, value) in self.set.iter().chain(quick) {
            file.set(path, value)?;
        }
        Ok(file)
    }

    /// How many runs it takes.
    ///
    /// # Errors
    /// When the file is not a scenario.
    pub fn runs(&self, quick: bool) -> Result<u64, Errors> {
        Ok(self.scenario_file(quick)?.expand()?.iter().map(|point| point.scenario.seeds).sum())
    }

    /// Runs all points with all seeds and stores them under `root/ID`.
    pub(crate) fn run(
        &self,
        root: &Path,
        options: &Options,
        cancel: &AtomicBool,
        progress: &(dyn Fn(Progress<'_>) + Sync),
    ) -> Result<Summary, ReproduceError> {
        let file = self.scenario_file(options.quick)?;
        let points = file.expand()?;
        let version = self.place.version(options.version);
        let jobs = runner::plan(&points, &version);
        let folder = root.join(self.id);
        let store = if options.resume { Store::resume(&folder)? } else { Store::create(&folder)? };
        let how = runner::Options { threads: options.threads, cancel, progress };
        let summary = file.summary(&points, &version, (options.clock)());
        let endings = runner::run_and_store(&jobs, &store, &how, |scenario, seed| {
            self.place.run(scenario, seed, cancel)
        })?;
        Ok(runner::conclude(summary, &points, &jobs, &endings, &store, (options.clock)())?)
    }
}

impl Place {
    /// What the results are stamped with: those of the laboratory are no simulation's.
    fn version(self, version: &str) -> String {
        match self {
            Self::Simulator => version.to_owned(),
            Self::Laboratory(stack) => format!("{version} {}", stack.label()),
        }
    }

    fn run(self, scenario: &Scenario, seed: u64, cancel: &AtomicBool) -> Result<RunResult, String> {
        match self {
            Self::Simulator => scenario.simulate(seed, cancel).map_err(|error| error.to_string()),
            Self::Laboratory(stack) => {
                let options = cutline_lab::Options { stack, ..cutline_lab::Options::default() };
                cutline_lab::run(scenario, seed, &options, cancel).map_err(|error| error.to_string())
            }
        }
    }
}
