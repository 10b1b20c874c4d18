//! Runs every point of a sweep with every seed, on all cores, and stores each finished run.
//!
//! Each thread takes the next job from a common list, so a long run does not delay the other jobs. The results are sorted
//! in the order of the list, so they do not depend on the speed of the threads. After the cancel flag is set (by Ctrl-C),
//! no job is started; the runs in progress may finish.

use crate::spec::Scenario;
use crate::sweep::SweepPoint;
use cutline_results::{FailedRun, RunKey, RunResult, RunStore, RunSummary, StoreError, Summary};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// One simulation of a plan.
#[derive(Clone, Debug)]
pub struct Job<'p> {
    /// Identifies the run.
    pub key: RunKey,
    /// The scenario to simulate.
    pub scenario: &'p Scenario,
}

/// Options for running jobs.
pub struct RunOptions<'o> {
    /// Number of threads, which is the largest number of concurrent jobs.
    pub threads: NonZeroUsize,
    /// The caller sets this flag to start no more jobs. A simulation that reads the flag may end early with an error; its
    /// job then counts as cancelled, not as failed.
    pub cancel: &'o AtomicBool,
    /// Called for each event of a job, on the thread that runs the job.
    pub progress: &'o (dyn Fn(JobProgress<'_>) + Sync),
}

/// Progress of one job.
#[derive(Debug)]
pub struct JobProgress<'p> {
    /// The run of the job.
    pub key: &'p RunKey,
    /// The event that is reported.
    pub event: RunEvent<'p>,
    /// Number of jobs that are skipped, finished or failed, including this one.
    pub done: usize,
    /// Number of all jobs.
    pub total: usize,
}

/// An event of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEvent<'p> {
    /// The job starts.
    Started,
    /// The stored run, or a joined table that contains it, is damaged. The text names the file and the damage. The run is
    /// simulated again. A damaged joined table is reported once, with the key of the first job.
    Damaged(&'p str),
    /// The run was already stored.
    Skipped,
    /// The run finished and is stored.
    Finished,
    /// The run failed, with the reason.
    Failed(&'p str),
    /// The run was abandoned because the caller cancelled the jobs.
    Cancelled,
}

/// The final state of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnding {
    /// The run is stored, by this call or an earlier one.
    Stored,
    /// The run failed, with the reason.
    Failed(String),
    /// The run did not start or did not finish because the caller cancelled the jobs.
    Cancelled,
}

/// Returns a job for every point and seed, ordered by point, then by seed.
pub fn plan<'p>(points: &'p [SweepPoint], version: &str) -> Vec<Job<'p>> {
    let jobs = |point: &'p SweepPoint| {
        let label: std::sync::Arc<str> = point.label().into();
        let scenario = &point.scenario;
        let job = move |seed| {
            let run = scenario.run_id(seed, version).into();
            Job { key: RunKey { run, point: label.clone(), seed }, scenario }
        };
        scenario.all_seeds().map(job)
    };
    points.iter().flat_map(jobs).collect()
}

/// Returns the keys of the jobs' runs, in the order of the jobs.
pub fn keys(jobs: &[Job<'_>]) -> Vec<RunKey> {
    jobs.iter().map(|job| job.key.clone()).collect()
}

/// Runs the jobs that are not done yet ([`RunStore::is_done`]) and stores each run as it finishes. Returns the ending of
/// each job, in the order of the jobs.
///
/// `simulate` receives the scenario and the seed. If it returns an error, the job fails and the other jobs continue.
///
/// # Errors
/// If the store cannot be written. No more jobs are started then.
pub fn run_and_store(
    jobs: &[Job<'_>],
    store: &RunStore,
    options: &RunOptions<'_>,
    simulate: impl Fn(&Scenario, u64) -> Result<RunResult, String> + Sync,
) -> Result<Vec<RunEnding>, StoreError> {
    let reporter = Reporter::new(jobs.len(), options.progress);
    reporter.report_damage(jobs, store);
    let broken: Mutex<Option<StoreError>> = Mutex::new(None);
    let stop = AtomicBool::new(false);
    // Two points may describe the same simulation. Only the first job runs it.
    let mut seen = BTreeSet::new();
    let again: Vec<bool> = jobs.iter().map(|job| !seen.insert(&job.key.run)).collect();
    let one = |i: usize| {
        let key = &jobs[i].key;
        if again[i] || store.is_done(&key.run) {
            reporter.report(key, RunEvent::Skipped);
            return RunEnding::Stored;
        }
        reporter.report(key, RunEvent::Started);
        let ending = run_one(&jobs[i], store, options.cancel, &simulate).unwrap_or_else(|error| {
            let reason = error.to_string();
            stop.store(true, Ordering::Relaxed);
            broken.lock().expect("no thread panics while it holds this").get_or_insert(error);
            RunEnding::Failed(reason)
        });
        reporter.report(key, ending.event());
        ending
    };
    let stopped = || stop.load(Ordering::Relaxed) || options.cancel.load(Ordering::Relaxed);
    let endings = in_parallel(jobs.len(), options.threads, stopped, one);
    match broken.into_inner().expect("no thread panicked") {
        Some(error) => Err(error),
        None => Ok(settle(jobs, endings)),
    }
}

/// Joins the stored runs into the tables, and writes the summary with the outcome of each job. If no job had to run, the
/// tables and the summary do not change. Returns the stored summary.
///
/// # Errors
/// If the store cannot be read or written.
pub fn conclude(
    mut summary: Summary,
    points: &[SweepPoint],
    jobs: &[Job<'_>],
    endings: &[RunEnding],
    store: &RunStore,
    finished_at: String,
) -> Result<Summary, StoreError> {
    let failed = |(job, ending): (&Job<'_>, &RunEnding)| match ending {
        RunEnding::Failed(reason) => {
            Some(FailedRun { run: RunSummary::from(&job.key), reason: reason.clone() })
        }
        RunEnding::Stored | RunEnding::Cancelled => None,
    };
    summary.failed = jobs.iter().zip(endings).filter_map(failed).collect();
    if summary.failed.is_empty()
        && let Some(settled) = store.settled()?
    {
        return Ok(settled);
    }
    let keys = keys(jobs);
    summary.finished_at = finished_at;
    // If repeating a run failed or was cancelled, its earlier result is still stored. The store accounts for that.
    store.conclude(&keys, &points.iter().flat_map(SweepPoint::rows).collect::<Vec<_>>(), &summary)
}

impl RunEnding {
    fn event(&self) -> RunEvent<'_> {
        match self {
            Self::Stored => RunEvent::Finished,
            Self::Failed(reason) => RunEvent::Failed(reason),
            Self::Cancelled => RunEvent::Cancelled,
        }
    }
}

/// Runs the jobs and returns their results, in the order of the jobs. The result of a cancelled job is `None`.
pub fn run_in_memory(
    jobs: &[Job<'_>],
    options: &RunOptions<'_>,
    simulate: impl Fn(&Scenario, u64) -> Result<RunResult, String> + Sync,
) -> Vec<Option<Result<RunResult, String>>> {
    let reporter = Reporter::new(jobs.len(), options.progress);
    let one = |i: usize| {
        let Job { key, scenario } = &jobs[i];
        reporter.report(key, RunEvent::Started);
        let mut result = simulate(scenario, key.seed);
        let event = match &mut result {
            Ok(result) => {
                result.stamp(key);
                RunEvent::Finished
            }
            Err(_) if options.cancel.load(Ordering::Relaxed) => RunEvent::Cancelled,
            Err(reason) => RunEvent::Failed(reason),
        };
        let cancelled = event == RunEvent::Cancelled;
        reporter.report(key, event);
        (!cancelled).then_some(result)
    };
    let stopped = || options.cancel.load(Ordering::Relaxed);
    in_parallel(jobs.len(), options.threads, stopped, one).into_iter().map(Option::flatten).collect()
}

fn run_one(
    job: &Job<'_>,
    store: &RunStore,
    cancel: &AtomicBool,
    simulate: &(impl Fn(&Scenario, u64) -> Result<RunResult, String> + Sync),
) -> Result<RunEnding, StoreError> {
    match simulate(job.scenario, job.key.seed) {
        Ok(result) => store.write_run(&job.key, result).map(|()| RunEnding::Stored),
        Err(_) if cancel.load(Ordering::Relaxed) => Ok(RunEnding::Cancelled),
        Err(reason) => Ok(RunEnding::Failed(reason)),
    }
}

/// Assigns the ending of a run to all jobs that share the run.
fn settle(jobs: &[Job<'_>], endings: Vec<Option<RunEnding>>) -> Vec<RunEnding> {
    let mut by_run = std::collections::BTreeMap::new();
    let ending = |(job, ending): (&Job<'_>, Option<RunEnding>)| {
        let ending = ending.unwrap_or(RunEnding::Cancelled);
        by_run.entry(job.key.run.clone()).or_insert(ending).clone()
    };
    jobs.iter().zip(endings).map(ending).collect()
}

/// Counts the jobs that are done and reports events to the caller.
struct Reporter<'p> {
    done: AtomicUsize,
    total: usize,
    progress: &'p (dyn Fn(JobProgress<'_>) + Sync),
}

impl<'p> Reporter<'p> {
    fn new(total: usize, progress: &'p (dyn Fn(JobProgress<'_>) + Sync)) -> Self {
        Self { done: AtomicUsize::new(0), total, progress }
    }

    fn report_damage(&self, jobs: &[Job<'_>], store: &RunStore) {
        for damage in store.damage() {
            let is_of = |job: &&Job<'_>| damage.run.as_deref().is_none_or(|run| *job.key.run == *run);
            if let Some(job) = jobs.iter().find(is_of) {
                self.report(&job.key, RunEvent::Damaged(&damage.error.to_string()));
            }
        }
    }

    fn report(&self, key: &RunKey, event: RunEvent<'_>) {
        let through =
            usize::from(matches!(event, RunEvent::Skipped | RunEvent::Finished | RunEvent::Failed(_)));
        let done = self.done.fetch_add(through, Ordering::Relaxed) + through;
        (self.progress)(JobProgress { key, event, done, total: self.total });
    }
}

/// Calls `work` for each index in `0..count` on several threads and returns the results by index. The result is `None` for
/// an index that was not started before `stopped` returned true.
fn in_parallel<T: Send>(
    count: usize,
    threads: NonZeroUsize,
    stopped: impl Fn() -> bool + Sync,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<Option<T>> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut answers = Vec::new();
        while !stopped() {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= count {
                break;
            }
            answers.push((i, work(i)));
        }
        answers
    };
    let mut all: Vec<Option<T>> = (0..count).map(|_| None).collect();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.get().min(count)).map(|_| scope.spawn(worker)).collect();
        for handle in workers {
            // A panic of a worker is a bug in the simulation. It is propagated with its message.
            let answers = handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            for (i, answer) in answers {
                all[i] = Some(answer);
            }
        }
    });
    all
}
