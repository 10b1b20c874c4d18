//! Executes the runs of a scenario in the simulator or in the laboratory.

use super::outcome::Outcome;
use crate::exit::Failure;
use crate::program::{COMMIT, now};
use cutline_results::{ExistingResults, Planned, RunResult, RunStore};
use cutline_scenario::runner::{self, Job, RunEnding, RunOptions};
use cutline_scenario::{Scenario, ScenarioFile, SweepPoint};
use std::path::Path;

/// The runs, and how to execute them.
pub struct Work<'w> {
    pub file: &'w ScenarioFile,
    pub points: &'w [SweepPoint],
    pub jobs: &'w [Job<'w>],
    pub options: &'w RunOptions<'w>,
    /// The version that is stored with the results.
    pub version: &'w str,
    /// Runs a scenario with a seed.
    pub run: &'w (dyn Fn(&Scenario, u64) -> Result<RunResult, String> + Sync),
}

impl Work<'_> {
    /// Runs all jobs. `store` is the folder of all results and the treatment of stored results; `None` stores nothing.
    pub fn execute(&self, store: Option<(&Path, ExistingResults)>) -> Result<Outcome, Failure> {
        match store {
            Some((results, existing)) => self.stored(results, existing),
            None => Ok(self.in_memory()),
        }
    }

    fn in_memory(&self) -> Outcome {
        let results = runner::run_in_memory(self.jobs, self.options, self.run);
        let mut outcome = Outcome::new(self.version);
        for result in results {
            match result {
                Some(Ok(result)) => {
                    outcome.flows.extend(result.flows);
                    outcome.queues.extend(result.queues);
                    outcome.distributions.extend(result.distributions);
                    outcome.timing.extend(result.timing);
                }
                Some(Err(_)) => outcome.failed += 1,
                None => outcome.cancelled += 1,
            }
        }
        outcome
    }

    fn stored(&self, results: &Path, existing: ExistingResults) -> Result<Outcome, Failure> {
        let folder = results.join(&self.points[0].scenario.name);
        let mut summary = self.file.summary(self.points, self.jobs, self.version, now());
        COMMIT.clone_into(&mut summary.commit);
        let planned = Planned { summary: &summary, keys: &runner::keys(self.jobs) };
        let store = RunStore::begin(&folder, planned, existing)?;
        let endings = runner::run_and_store(self.jobs, &store, self.options, self.run)?;
        let summary = runner::conclude(summary, self.points, self.jobs, &endings, &store, now())?;
        let is_cancelled = |ending: &&RunEnding| **ending == RunEnding::Cancelled;
        Ok(Outcome {
            flows: store.store().read()?,
            queues: store.store().read()?,
            distributions: store.store().read()?,
            timing: store.store().read_timing()?,
            failed: summary.failed.len(),
            cancelled: endings.iter().filter(is_cancelled).count(),
            folder: Some(folder),
            ..Outcome::new(self.version)
        })
    }
}
