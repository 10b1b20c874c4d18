//! The runs of a scenario, however each is run: carried out, stored or not, printed.

use super::{json, tables};
use crate::exit::Failure;
use crate::output;
use cutline_results::{FlowRow, QueueRow, RunResult, Store, TimingRow};
use cutline_scenario::runner::{self, Job, Options};
use cutline_scenario::{Scenario, ScenarioFile, SweepPoint};
use std::path::{Path, PathBuf};

/// All that is needed to run.
pub struct Work<'w> {
    pub file: &'w ScenarioFile,
    pub points: &'w [SweepPoint],
    pub jobs: &'w [Job<'w>],
    pub options: &'w Options<'w>,
    /// What the results are stamped with.
    pub version: &'w str,
    /// How a scenario is run with a seed.
    pub run: &'w (dyn Fn(&Scenario, u64) -> Result<RunResult, String> + Sync),
}

/// What was measured, and what went wrong.
pub struct Outcome {
    pub flows: Vec<FlowRow>,
    pub queues: Vec<QueueRow>,
    /// Of the laboratory.
    pub timing: Vec<TimingRow>,
    failed: usize,
    missing: usize,
    /// Where it is stored.
    pub folder: Option<PathBuf>,
    pub version: String,
}

impl Work<'_> {
    /// Runs all jobs. `store` is the folder of all results, and whether to go on where an earlier run stopped.
    pub fn execute(&self, store: Option<(&Path, bool)>) -> Result<Outcome, Failure> {
        match store {
            Some((results, resume)) => self.stored(results, resume),
            None => Ok(self.in_memory()),
        }
    }

    fn in_memory(&self) -> Outcome {
        let results = runner::run_in_memory(self.jobs, self.options, self.run);
        let mut outcome = self.nothing_yet();
        for result in results {
            match result {
                Some(Ok(result)) => {
                    outcome.flows.extend(result.flows);
                    outcome.queues.extend(result.queues);
                    outcome.timing.extend(result.timing);
                }
                Some(Err(_)) => outcome.failed += 1,
                None => outcome.missing += 1,
            }
        }
        outcome
    }

    fn nothing_yet(&self) -> Outcome {
        Outcome {
            flows: Vec::new(),
            queues: Vec::new(),
            timing: Vec::new(),
            failed: 0,
            missing: 0,
            folder: None,
            version: self.version.to_owned(),
        }
    }

    fn stored(&self, results: &Path, resume: bool) -> Result<Outcome, Failure> {
        let folder = results.join(&self.points[0].scenario.name);
        let store = if resume { Store::resume(&folder) } else { Store::create(&folder) }?;
        let summary = self.file.summary(self.points, self.version, now());
        let endings = runner::run_and_store(self.jobs, &store, self.options, self.run)?;
        let summary = runner::conclude(summary, self.points, self.jobs, &endings, &store, now())?;
        let (finished, failed) = (summary.finished.len(), summary.failed.len());
        let missing = self.jobs.len() - finished - failed;
        Ok(Outcome {
            flows: store.read()?,
            queues: store.read()?,
            timing: store.read_timing()?,
            failed,
            missing,
            folder: Some(folder),
            ..self.nothing_yet()
        })
    }
}

impl Outcome {
    /// Prints it: as one JSON document, or as tables.
    pub fn print(&self, points: &[SweepPoint], as_json: bool) -> Result<(), Failure> {
        if as_json {
            output::print_json(&json::document(points, self))
        } else {
            output::print(&tables::render(points, self))
        }
    }

    /// Whether everything went well.
    pub fn verdict(&self, total: usize) -> Result<(), Failure> {
        let resume =
            self.folder.as_deref().map_or("", |_: &Path| "; the same command with --resume runs the rest");
        if self.missing > 0 {
            let why =
                format!("interrupted: {} of {total} runs are missing{resume}", self.missing + self.failed);
            return Err(Failure::Failed(why));
        }
        if self.failed > 0 {
            let why = format!("{} of {total} runs failed{resume}", self.failed);
            return Err(Failure::Failed(why));
        }
        Ok(())
    }
}

/// The time, for the summary.
pub fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
