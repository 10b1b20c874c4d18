//! An experiment: a scenario file of a paper, or a variant of one.

use crate::options::Options;
use cutline_config::Errors;
use cutline_lab::Stack;
use cutline_results::{Existing, Planned, RunResult, RunStore, StoreError, Summary};
use cutline_scenario::runner::{self, Job, Progress};
use cutline_scenario::{Scenario, ScenarioFile, SweepPoint};
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

    /// The experiment as this program runs it now: in full, or at the reduced length.
    ///
    /// # Errors
    /// When the file is not a scenario.
    pub(crate) fn prepare(&self, quick: bool, version: &str) -> Result<Prepared, Errors> {
        let file = self.scenario_file(quick)?;
        let points = file.expand()?;
        Ok(Prepared { id: self.id, place: self.place, file, points, version: self.place.version(version) })
    }
}

/// An experiment with all points of its sweep.
pub(crate) struct Prepared {
    id: &'static str,
    place: Place,
    file: ScenarioFile,
    points: Vec<SweepPoint>,
    version: String,
}

impl Prepared {
    /// How many runs it takes.
    pub(crate) fn runs(&self) -> u64 {
        self.points.iter().map(|point| point.scenario.seeds).sum()
    }

    /// The summary that its results would begin with.
    pub(crate) fn summary(&self, started_at: String) -> Summary {
        self.file.summary(&self.points, &self.jobs(), &self.version, started_at)
    }

    /// Whether its results could be stored under `root/ID`.
    ///
    /// # Errors
    /// When other results would be lost.
    pub(crate) fn check(&self, root: &Path, existing: Existing) -> Result<(), StoreError> {
        let (summary, keys) = (self.summary(String::new()), runner::keys(&self.jobs()));
        let planned = Planned { summary: &summary, keys: &keys };
        RunStore::check(&root.join(self.id), planned, self.place.existing(existing))
    }

    /// Runs all points with all seeds and stores them under `root/ID`.
    pub(crate) fn run(
        &self,
        root: &Path,
        options: &Options,
        cancel: &AtomicBool,
        progress: &(dyn Fn(Progress<'_>) + Sync),
    ) -> Result<Summary, StoreError> {
        let jobs = self.jobs();
        let summary = self.summary((options.clock)());
        let planned = Planned { summary: &summary, keys: &runner::keys(&jobs) };
        let existing = self.place.existing(options.existing);
        let store = RunStore::begin(&root.join(self.id), planned, existing)?;
        let how = runner::Options { threads: options.threads, cancel, progress };
        let endings = runner::run_and_store(&jobs, &store, &how, |scenario, seed| {
            self.place.run(scenario, seed, cancel)
        })?;
        runner::conclude(summary, &self.points, &jobs, &endings, &store, (options.clock)())
    }

    fn jobs(&self) -> Vec<Job<'_>> {
        runner::plan(&self.points, &self.version)
    }
}

impl Place {
    /// The version that results are marked with. Those of the laboratory are distinguished from a simulation's.
    fn version(self, version: &str) -> String {
        match self {
            Self::Simulator => version.to_owned(),
            Self::Laboratory(stack) => format!("{version} {}", stack.label()),
        }
    }

    /// The program's version in that of results.
    pub(crate) fn program_version(self, version: &str) -> &str {
        match self {
            Self::Simulator => version,
            Self::Laboratory(stack) => version.strip_suffix(&stack.label()).unwrap_or(version).trim_end(),
        }
    }

    /// What happens to results that are stored already: measurements in real time are not repeated unasked.
    fn existing(self, existing: Existing) -> Existing {
        match (self, existing) {
            (Self::Laboratory(_), Existing::Repeat) => Existing::Refuse,
            _ => existing,
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
