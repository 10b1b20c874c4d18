//! Runs every point of a sweep with every seed, on all cores, and keeps what is finished.
//!
//! Threads take the next job from a common list, so a long run delays nobody; results are put in the order of the
//! list afterwards, so nothing depends on which thread was faster. A cancel flag (Ctrl-C sets it) lets the runs in
//! progress end and starts no more.

use crate::spec::Scenario;
use crate::sweep::SweepPoint;
use cutline_results::{FailedRun, PointRow, RunKey, RunResult, RunStore, RunSummary, StoreError, Summary};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// One simulation to be run.
#[derive(Clone, Debug)]
pub struct Job<'p> {
    /// Which run it is.
    pub key: RunKey,
    /// What to simulate.
    pub scenario: &'p Scenario,
}

/// How jobs are run.
pub struct Options<'o> {
    /// How many at a time.
    pub threads: NonZeroUsize,
    /// Set from elsewhere to start no more jobs. A simulation that looks at it too may end early with an error,
    /// which then counts as cancelled, not as failed.
    pub cancel: &'o AtomicBool,
    /// Told about every job, from the thread that runs it.
    pub progress: &'o (dyn Fn(Progress<'_>) + Sync),
}

/// News of one job.
#[derive(Debug)]
pub struct Progress<'p> {
    /// Which.
    pub key: &'p RunKey,
    /// What happened to it.
    pub event: Event<'p>,
    /// How many jobs are through, this one included if it is.
    pub done: usize,
    /// How many there are.
    pub total: usize,
}

/// What happened to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'p> {
    /// It begins.
    Started,
    /// It was stored, and it or a file that has it is damaged: which, and how. What is damaged is made again. The news of a
    /// joined table comes once, with the first job's key.
    Damaged(&'p str),
    /// It is stored already.
    Skipped,
    /// It is stored now.
    Finished,
    /// It went wrong, and why.
    Failed(&'p str),
    /// It was given up, for the whole was cancelled.
    Cancelled,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Stored, now or before.
    Stored,
    /// It went wrong.
    Failed(String),
    /// It was not begun or not ended, for the whole was cancelled.
    Cancelled,
}

/// Every point with every seed, point by point.
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

/// The jobs' runs, in their order.
pub fn keys(jobs: &[Job<'_>]) -> Vec<RunKey> {
    jobs.iter().map(|job| job.key.clone()).collect()
}

/// Runs the jobs that are not done yet ([`RunStore::is_done`]) and stores each as it finishes. Returns how each job ended,
/// in their order.
///
/// `simulate` gets the scenario and the seed. Its error is the job's; the other jobs go on.
///
/// # Errors
/// When the store cannot be written: no more jobs are started then.
pub fn run_and_store(
    jobs: &[Job<'_>],
    store: &RunStore,
    options: &Options<'_>,
    simulate: impl Fn(&Scenario, u64) -> Result<RunResult, String> + Sync,
) -> Result<Vec<Ending>, StoreError> {
    let teller = Teller::new(jobs.len(), options.progress);
    teller.tell_damage(jobs, store);
    let broken: Mutex<Option<StoreError>> = Mutex::new(None);
    let stop = AtomicBool::new(false);
    // Two points may describe the same simulation: the first one runs it.
    let mut seen = BTreeSet::new();
    let again: Vec<bool> = jobs.iter().map(|job| !seen.insert(&job.key.run)).collect();
    let one = |i: usize| {
        let key = &jobs[i].key;
        if again[i] || store.is_done(&key.run) {
            teller.tell(key, Event::Skipped);
            return Ending::Stored;
        }
        teller.tell(key, Event::Started);
        let ending = run_one(&jobs[i], store, options.cancel, &simulate).unwrap_or_else(|error| {
            let reason = error.to_string();
            stop.store(true, Ordering::Relaxed);
            broken.lock().expect("no thread panics while it holds this").get_or_insert(error);
            Ending::Failed(reason)
        });
        teller.tell(key, ending.event());
        ending
    };
    let stopped = || stop.load(Ordering::Relaxed) || options.cancel.load(Ordering::Relaxed);
    let endings = in_parallel(jobs.len(), options.threads, stopped, one);
    match broken.into_inner().expect("no thread panicked") {
        Some(error) => Err(error),
        None => Ok(settle(jobs, endings)),
    }
}

/// Joins what is stored to the tables, and writes the summary with the outcome of each job. Where no job had to be run,
/// tables and summary stay as they are. Returns the summary that is stored.
///
/// # Errors
/// When the store cannot be read or written.
pub fn conclude(
    mut summary: Summary,
    points: &[SweepPoint],
    jobs: &[Job<'_>],
    endings: &[Ending],
    store: &RunStore,
    finished_at: String,
) -> Result<Summary, StoreError> {
    let failed = |(job, ending): (&Job<'_>, &Ending)| match ending {
        Ending::Failed(reason) => Some(FailedRun { run: RunSummary::from(&job.key), reason: reason.clone() }),
        Ending::Stored | Ending::Cancelled => None,
    };
    summary.failed = jobs.iter().zip(endings).filter_map(failed).collect();
    if summary.failed.is_empty()
        && let Some(settled) = store.settled()?
    {
        return Ok(settled);
    }
    let keys = keys(jobs);
    let settings = |point: &SweepPoint| PointRow::from_settings(&point.label(), &point.settings);
    summary.finished_at = finished_at;
    // A run that was to be repeated, and was not or failed, is still stored as it was: the store knows.
    store.conclude(&keys, &points.iter().flat_map(settings).collect::<Vec<_>>(), &summary)
}

impl Ending {
    fn event(&self) -> Event<'_> {
        match self {
            Self::Stored => Event::Finished,
            Self::Failed(reason) => Event::Failed(reason),
            Self::Cancelled => Event::Cancelled,
        }
    }
}

/// Runs the jobs and keeps the results in memory, in the jobs' order; `None` for those that a cancel left out.
pub fn run_in_memory(
    jobs: &[Job<'_>],
    options: &Options<'_>,
    simulate: impl Fn(&Scenario, u64) -> Result<RunResult, String> + Sync,
) -> Vec<Option<Result<RunResult, String>>> {
    let teller = Teller::new(jobs.len(), options.progress);
    let one = |i: usize| {
        let Job { key, scenario } = &jobs[i];
        teller.tell(key, Event::Started);
        let mut result = simulate(scenario, key.seed);
        let event = match &mut result {
            Ok(result) => {
                result.stamp(key);
                Event::Finished
            }
            Err(_) if options.cancel.load(Ordering::Relaxed) => Event::Cancelled,
            Err(reason) => Event::Failed(reason),
        };
        let cancelled = event == Event::Cancelled;
        teller.tell(key, event);
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
) -> Result<Ending, StoreError> {
    match simulate(job.scenario, job.key.seed) {
        Ok(result) => store.write_run(&job.key, result).map(|()| Ending::Stored),
        Err(_) if cancel.load(Ordering::Relaxed) => Ok(Ending::Cancelled),
        Err(reason) => Ok(Ending::Failed(reason)),
    }
}

/// Gives jobs that share a run the ending of the one that ran it.
fn settle(jobs: &[Job<'_>], endings: Vec<Option<Ending>>) -> Vec<Ending> {
    let mut by_run = std::collections::BTreeMap::new();
    let ending = |(job, ending): (&Job<'_>, Option<Ending>)| {
        let ending = ending.unwrap_or(Ending::Cancelled);
        by_run.entry(job.key.run.clone()).or_insert(ending).clone()
    };
    jobs.iter().zip(endings).map(ending).collect()
}

/// Counts the jobs that are through and passes news on.
struct Teller<'t> {
    done: AtomicUsize,
    total: usize,
    progress: &'t (dyn Fn(Progress<'_>) + Sync),
}

impl<'t> Teller<'t> {
    fn new(total: usize, progress: &'t (dyn Fn(Progress<'_>) + Sync)) -> Self {
        Self { done: AtomicUsize::new(0), total, progress }
    }

    fn tell_damage(&self, jobs: &[Job<'_>], store: &RunStore) {
        for damage in store.damage() {
            let is_of = |job: &&Job<'_>| damage.run.as_deref().is_none_or(|run| *job.key.run == *run);
            if let Some(job) = jobs.iter().find(is_of) {
                self.tell(&job.key, Event::Damaged(&damage.error.to_string()));
            }
        }
    }

    fn tell(&self, key: &RunKey, event: Event<'_>) {
        let through = usize::from(matches!(event, Event::Skipped | Event::Finished | Event::Failed(_)));
        let done = self.done.fetch_add(through, Ordering::Relaxed) + through;
        (self.progress)(Progress { key, event, done, total: self.total });
    }
}

/// What `work` answers for 0..count, in that order, computed by several threads; `None` for what was not
/// begun when it was `stopped`.
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
            // A panic of a worker is a bug in the simulation: it goes on here, with its message.
            let answers = handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            for (i, answer) in answers {
                all[i] = Some(answer);
            }
        }
    });
    all
}
