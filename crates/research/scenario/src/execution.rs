//! Execution of an experiment: all of its runs, and the summary of those that finished. Rows are stored or kept in memory.

use crate::file::ScenarioFile;
use crate::runner::{self, Job, RunEnding, RunOptions};
use crate::spec::Scenario;
use crate::sweep::SweepPoint;
use cutline_results::{
    ExistingResults, FailedRun, Planned, RunResult, RunStore, RunSummary, Store, StoreError, Summary,
};
use std::path::Path;

/// The program that makes results, and its clock.
#[derive(Clone, Copy)]
pub struct Producer<'p> {
    /// The version that is stored with the results. Results of another version have another origin.
    pub version: &'p str,
    /// The commit that the program is built from, in words.
    pub commit: &'p str,
    /// Returns the current time in the format of summaries.
    pub now: fn() -> String,
}

/// Function that runs a scenario with a seed.
pub type Simulate<'s> = dyn Fn(&Scenario, u64) -> Result<RunResult, String> + Sync + 's;

/// The runs of an experiment, and their execution.
pub struct Execution<'e> {
    /// The scenario's file.
    pub file: &'e ScenarioFile,
    /// The points of its sweep.
    pub points: &'e [SweepPoint],
    /// All runs, from [`runner::plan`].
    pub jobs: &'e [Job<'e>],
    /// Threads, cancellation and progress.
    pub options: &'e RunOptions<'e>,
    /// The program that makes the results.
    pub producer: Producer<'e>,
    /// Runs a scenario with a seed, in the simulator or in the laboratory.
    pub simulate: &'e Simulate<'e>,
}

/// The results of an execution, complete or not.
#[derive(Debug)]
pub struct Executed {
    /// The origin of the results, the runs that finished, and those that failed.
    pub summary: Summary,
    /// Number of runs that were cancelled.
    pub cancelled: usize,
    /// The rows of the runs that finished.
    pub rows: Rows,
}

/// Place of an experiment's rows.
#[derive(Debug)]
pub enum Rows {
    /// A folder.
    Stored(Store),
    /// Memory: the rows of all runs, in the order of the runs.
    InMemory(Box<RunResult>),
}

impl Execution<'_> {
    /// Runs all jobs. `store` is the folder of all results and the treatment of stored results; `None` stores nothing.
    ///
    /// # Errors
    /// If the folder has results that would be lost, or cannot be read or written. Jobs that fail are no error.
    pub fn execute(&self, store: Option<(&Path, ExistingResults)>) -> Result<Executed, StoreError> {
        match store {
            Some((results, existing)) => self.stored(results, existing),
            None => Ok(self.in_memory()),
        }
    }

    fn in_memory(&self) -> Executed {
        let mut summary = self.summary();
        let (mut rows, mut cancelled) = (RunResult::default(), 0);
        let results = runner::run_in_memory(self.jobs, self.options, self.simulate);
        for (job, result) in self.jobs.iter().zip(results) {
            match result {
                Some(Ok(result)) => {
                    summary.finished.push(RunSummary::from(&job.key));
                    rows.append(result);
                }
                Some(Err(reason)) => {
                    summary.failed.push(FailedRun { run: RunSummary::from(&job.key), reason });
                }
                None => cancelled += 1,
            }
        }
        summary.complete = summary.finished.len() == self.jobs.len();
        summary.finished_at = (self.producer.now)();
        Executed { summary, cancelled, rows: Rows::InMemory(Box::new(rows)) }
    }

    fn stored(&self, results: &Path, existing: ExistingResults) -> Result<Executed, StoreError> {
        let folder = results.join(&self.points[0].scenario.name);
        let summary = self.summary();
        let planned = Planned { summary: &summary, keys: &runner::keys(self.jobs) };
        let store = RunStore::begin(&folder, planned, existing)?;
        let endings = runner::run_and_store(self.jobs, &store, self.options, self.simulate)?;
        let now = (self.producer.now)();
        let summary = runner::conclude(summary, self.points, self.jobs, &endings, &store, now)?;
        let cancelled = endings.iter().filter(|ending| **ending == RunEnding::Cancelled).count();
        Ok(Executed { summary, cancelled, rows: Rows::Stored(store.store().clone()) })
    }

    fn summary(&self) -> Summary {
        let Producer { version, commit, now } = self.producer;
        let mut summary = self.file.summary(self.points, self.jobs, version, now());
        commit.clone_into(&mut summary.commit);
        summary
    }
}
