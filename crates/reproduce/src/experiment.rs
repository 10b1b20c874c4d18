//! An experiment: a scenario file of a study, or a variant of one.

use crate::changes::Changes;
use crate::error::ReproduceError;
use crate::options::Options;
use crate::qos::connections::{self, Judgement};
use crate::qsock::testbed;
use cutline_config::Errors;
use cutline_lab::Stack;
use cutline_results::{Existing, Lock, Planned, RunResult, RunStore, StoreError, Summary};
use cutline_scenario::runner::{self, Job, Progress};
use cutline_scenario::{Scenario, ScenarioFile, SweepPoint};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// What `--quick` sets by default.
const QUICK: &[(&str, &str)] = &[("duration", "30 s"), ("warm-up", "15 s"), ("seeds", "2")];

/// The text of a file in `experiments/`, which the program contains.
macro_rules! text_of {
    ($($path:literal),+) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/", $($path),+))
    };
}
pub(crate) use text_of;

/// Name and text of a scenario file in `experiments/`.
macro_rules! scenario {
    ($($path:literal),+) => {
        (concat!($($path),+), $crate::experiment::text_of!($($path),+))
    };
}
pub(crate) use scenario;

/// A scenario file, and the settings of a variant.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Its name, which is also that of the folder of its results and the first part of its claims' ids.
    pub id: &'static str,
    /// What distinguishes it from the other variants, for the titles of charts.
    pub label: &'static str,
    /// The name of the scenario file in `experiments/`.
    pub file: &'static str,
    /// The text of the scenario file.
    pub text: &'static str,
    /// The settings of the variant.
    pub set: Settings,
    /// Further settings of `--quick`. They keep the shape of every figure, but do not allow to judge its claims.
    pub quick: Settings,
    /// Where the experiment is run.
    pub platform: Platform,
}

/// Where an experiment is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    /// In the simulator.
    Simulator,
    /// In the simulator, with an application over a QoS socket in the place of each flow over UDP.
    QosSockets(Judgement),
    /// In the laboratory: with real packets and this variant of Linux's TCP, in real time.
    Laboratory(Stack),
    /// In the laboratory, with an application over a real QoS socket in the place of each flow over UDP.
    LaboratorySockets(Stack, Judgement),
    /// In the laboratory with routers.
    Testbed,
}

/// Settings: paths of keys in the scenario file, and their values.
type Settings = &'static [(&'static str, &'static str)];

impl Experiment {
    /// An experiment in the simulator. `file` and `text` are name and text of a file of `experiments/`.
    pub(crate) const fn new(
        id: &'static str,
        label: &'static str,
        (file, text): (&'static str, &'static str),
    ) -> Self {
        Self { id, label, file, text, set: &[], quick: QUICK, platform: Platform::Simulator }
    }

    /// Sets the settings of a variant.
    pub(crate) const fn with(self, set: Settings) -> Self {
        Self { set, ..self }
    }

    /// Sets what `--quick` sets.
    pub(crate) const fn shortened_by(self, quick: Settings) -> Self {
        Self { quick, ..self }
    }

    /// Sets where the experiment is run.
    pub(crate) const fn on(self, platform: Platform) -> Self {
        Self { platform, ..self }
    }

    /// The scenario file with the settings of the variant, in full or at the reduced length.
    ///
    /// # Errors
    /// When a setting does not fit the file.
    pub fn scenario_file(&self, quick: bool) -> Result<ScenarioFile, Errors> {
        self.changed_file(&Changes::quick(quick))
    }

    /// The scenario file with the settings of the variant and what a user changes.
    fn changed_file(&self, changes: &Changes) -> Result<ScenarioFile, Errors> {
        let text = changes.files.get(self.file).map_or(self.text, String::as_str);
        let mut file = ScenarioFile::parse(text, self.file)?;
        let quick = if changes.quick { self.quick } else { &[] };
        for (path, value) in self.set.iter().chain(quick) {
            file.set(path, value)?;
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
    pub(crate) fn prepare(&self, changes: &Changes, version: &str) -> Result<Prepared, Errors> {
        let file = self.changed_file(changes)?;
        let points = file.expand()?;
        Ok(Prepared {
            id: self.id,
            platform: self.platform,
            file,
            points,
            version: self.platform.version(version),
        })
    }
}

/// An experiment with all points of its sweep.
pub(crate) struct Prepared {
    id: &'static str,
    platform: Platform,
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
    /// When this process may not send real packets and should, or other results would be lost.
    pub(crate) fn check(&self, root: &Path, existing: Existing) -> Result<(), ReproduceError> {
        if self.platform.is_real() {
            cutline_lab::permitted()?;
        }
        let (summary, keys) = (self.summary(String::new()), runner::keys(&self.jobs()));
        let planned = Planned { summary: &summary, keys: &keys };
        Ok(RunStore::check(&root.join(self.id), planned, self.platform.existing(existing))?)
    }

    /// Takes the lock on `root/ID`, the folder of its results.
    ///
    /// # Errors
    /// When another process stores results there, or the folder cannot be created.
    pub(crate) fn lock(&self, root: &Path, since: &str) -> Result<Lock, StoreError> {
        Lock::take(&root.join(self.id), since)
    }

    /// Runs all points with all seeds and stores them in the folder of the lock.
    pub(crate) fn run(
        &self,
        lock: Lock,
        options: &Options,
        cancel: &AtomicBool,
        progress: &(dyn Fn(Progress<'_>) + Sync),
    ) -> Result<Summary, StoreError> {
        let jobs = self.jobs();
        let summary = Summary { commit: options.commit.to_owned(), ..self.summary((options.clock)()) };
        let planned = Planned { summary: &summary, keys: &runner::keys(&jobs) };
        let existing = self.platform.existing(options.existing);
        let folder = lock.folder().to_owned();
        let store = RunStore::begin_locked(lock, planned, existing)?;
        let how = runner::Options { threads: options.threads, cancel, progress };
        let endings = runner::run_and_store(&jobs, &store, &how, |scenario, seed| {
            self.platform.run(scenario, seed, &folder, cancel)
        })?;
        runner::conclude(summary, &self.points, &jobs, &endings, &store, (options.clock)())
    }

    fn jobs(&self) -> Vec<Job<'_>> {
        runner::plan(&self.points, &self.version)
    }
}

impl Platform {
    /// The version that is stored with results. It distinguishes results of different platforms.
    fn version(self, version: &str) -> String {
        match self {
            Self::Simulator => version.to_owned(),
            Self::QosSockets(_) | Self::Laboratory(_) | Self::LaboratorySockets(..) | Self::Testbed => {
                format!("{version} {}", self.label())
            }
        }
    }

    /// What is added to the version.
    fn label(self) -> &'static str {
        match self {
            Self::Simulator => "",
            Self::QosSockets(Judgement::Quality) => "QoS sockets",
            Self::QosSockets(Judgement::QualityAndLoss) => "QoS sockets that count loss",
            Self::QosSockets(Judgement::WithinLimit) => "QoS sockets within the limit of loss",
            Self::QosSockets(Judgement::QualitySoon) => "QoS sockets that adapt soon",
            Self::Laboratory(stack) | Self::LaboratorySockets(stack, _) => stack.label(),
            Self::Testbed => {
                if testbed::has_programs() {
                    testbed::PROGRAMS
                } else {
                    testbed::STAND_INS
                }
            }
        }
    }

    /// Whether it takes real packets, and so privileges.
    const fn is_real(self) -> bool {
        matches!(self, Self::Laboratory(_) | Self::LaboratorySockets(..) | Self::Testbed)
    }

    /// The version of the program, taken from the version that is stored with results.
    pub(crate) fn program_version(self, version: &str) -> &str {
        match self {
            Self::Simulator => version,
            Self::Testbed => testbed::program_version(version),
            Self::QosSockets(_) | Self::Laboratory(_) | Self::LaboratorySockets(..) => {
                version.strip_suffix(self.label()).unwrap_or(version).trim_end()
            }
        }
    }

    /// What happens to existing results. Measurements in real time are only repeated on request.
    fn existing(self, existing: Existing) -> Existing {
        match existing {
            Existing::Repeat if self.is_real() => Existing::Refuse,
            _ => existing,
        }
    }

    /// `folder` is that of the experiment's results.
    fn run(
        self,
        scenario: &Scenario,
        seed: u64,
        folder: &Path,
        cancel: &AtomicBool,
    ) -> Result<RunResult, String> {
        match self {
            Self::Simulator => scenario.simulate(seed, cancel).map_err(|error| error.to_string()),
            Self::QosSockets(judgement) => connections::simulate(scenario, judgement, seed, cancel),
            Self::LaboratorySockets(stack, judgement) => {
                connections::measure(scenario, judgement, stack, seed, cancel)
            }
            Self::Laboratory(stack) => {
                let options = cutline_lab::Options { stack, ..cutline_lab::Options::default() };
                cutline_lab::run(scenario, seed, &options, cancel).map_err(|error| error.to_string())
            }
            Self::Testbed => testbed::run(scenario, seed, folder, cancel),
        }
    }
}
