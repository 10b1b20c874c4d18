//! Runs in the background: a thread executes the experiment, and Python waits for it, with access to the progress.

use crate::errors;
use crate::extension::guard;
use crate::laboratory::Laboratory;
use crate::results::Results;
use crate::scenario::ScenarioFile;
use cutline_lab::LabOptions;
use cutline_results::{ExistingResults, StoreError};
use cutline_scenario::execution::{Executed, Producer};
use cutline_scenario::runner::{self, JobProgress, RunEvent, RunOptions};
use cutline_scenario::{Scenario, SweepPoint, cores_of_run, execution, threads_for};
use cutline_units::Instant;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// This program, for summaries: the same as the command of the same version.
pub const PRODUCER: Producer<'static> =
    Producer { version: env!("CARGO_PKG_VERSION"), commit: env!("CUTLINE_COMMIT"), now };

/// Returns the current time as summaries have it.
fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// All runs of a scenario, in a separate thread.
#[pyclass(module = "cutline._native", frozen)]
pub struct Execution {
    thread: Mutex<Option<JoinHandle<Result<Executed, StoreError>>>>,
    /// The points, for the table of points of results in memory.
    points: Arc<Vec<SweepPoint>>,
    warnings: Vec<String>,
    shared: Arc<Shared>,
}

/// State that the runs and Python share.
#[derive(Default)]
struct Shared {
    cancel: AtomicBool,
    /// Simulated time of all runs, ns.
    simulated: AtomicU64,
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    has_ended: bool,
    done: usize,
    /// The point of the last event.
    point: String,
    /// Damaged results that are computed again, and runs that failed.
    messages: Vec<(&'static str, String)>,
    /// The first exception of an extension, with the seed of its run.
    raised: Option<(PyErr, u64)>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, news: &JobProgress<'_>) {
        let mut state = self.state();
        let key = news.key;
        match news.event {
            RunEvent::Failed(reason) => {
                let text = format!("{} with seed {} failed: {reason}", key.point, key.seed);
                state.messages.push(("failed", text));
            }
            RunEvent::Damaged(what) => {
                state.messages.push(("damaged", format!("{what}; re-running the damaged runs")));
            }
            RunEvent::Started | RunEvent::Skipped | RunEvent::Finished | RunEvent::Cancelled => {}
        }
        // Threads report in any order.
        state.done = state.done.max(news.done);
        (*key.point).clone_into(&mut state.point);
    }

    /// Ends all runs because of an exception of an extension.
    fn raised(&self, error: PyErr, seed: u64) {
        self.state().raised.get_or_insert((error, seed));
        self.cancel.store(true, Ordering::Relaxed);
    }

    fn end(&self) {
        self.state().has_ended = true;
        self.ended.notify_all();
    }
}

/// Marks the runs as ended, also when they panic.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// An execution without a waiting caller ends early. An exception may come between its start and its first wait.
impl Drop for Execution {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl Execution {
    fn run(
        file: &cutline_scenario::ScenarioFile,
        points: &[SweepPoint],
        threads: NonZeroUsize,
        store: Option<(PathBuf, ExistingResults)>,
        version: &str,
        laboratory: Option<&LabOptions>,
        shared: &Shared,
    ) -> Result<Executed, StoreError> {
        let jobs = runner::plan(points, version);
        let options = RunOptions { threads, cancel: &shared.cancel, progress: &|news| shared.update(&news) };
        let cores = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        // Extensions in Python run one at a time.
        let is_extended = version != PRODUCER.version;
        let free = if is_extended { NonZeroUsize::MIN } else { cores_of_run(cores, threads, jobs.len()) };
        let simulate = |scenario: &Scenario, seed| match laboratory {
            None => simulate(scenario, seed, free, shared),
            Some(options) => {
                let ran = cutline_lab::run(scenario, seed, options, &shared.cancel);
                ran.map_err(|error| error.to_string())
            }
        };
        let execution = execution::Execution {
            file,
            points,
            jobs: &jobs,
            options: &options,
            producer: Producer { version, ..PRODUCER },
            simulate: &simulate,
        };
        execution.execute(store.as_ref().map(|(folder, existing)| (folder.as_path(), *existing)))
    }
}

/// Simulates a scenario and counts the simulated time. An exception of an extension cancels all runs.
fn simulate(
    scenario: &Scenario,
    seed: u64,
    free: NonZeroUsize,
    shared: &Shared,
) -> Result<cutline_results::RunResult, String> {
    // The thread has its state in Python meanwhile: a call of a method would make and remove it otherwise.
    let simulated = Python::attach(|py| {
        py.detach(|| guard(|| simulated(scenario, seed, free, &shared.cancel, &shared.simulated)))
    });
    simulated.unwrap_or_else(|error| {
        let reason = error.to_string();
        shared.raised(error, seed);
        Err(reason)
    })
}

/// Simulates a scenario and adds the simulated time, ns, to `passed`. With many flows it has a thread for each core in `free`.
pub fn simulated(
    scenario: &Scenario,
    seed: u64,
    free: NonZeroUsize,
    cancel: &AtomicBool,
    passed: &AtomicU64,
) -> Result<cutline_results::RunResult, String> {
    let network = scenario.network_of(seed).map_err(|error| error.to_string())?;
    let mut before = Instant::ZERO;
    let result = scenario.simulate_on(threads_for(&network, free), &network, seed, cancel, |now| {
        passed.fetch_add(now.saturating_since(before).as_nanos(), Ordering::Relaxed);
        before = now;
    });
    result.map_err(|error| error.to_string())
}

#[pymethods]
impl Execution {
    /// Begins the runs. `results` is the folder of all results; `None` keeps them in memory. `existing` is `repeat`, `resume`,
    /// `replace` or `refuse`. Without `jobs`, there is one run at a time for each core. `extensions` is a suffix of the version: extensions with
    /// other code give other results. With a laboratory, runs have real packets.
    #[staticmethod]
    #[pyo3(signature = (scenario, results, existing, jobs, extensions = "", laboratory = None))]
    fn start(
        py: Python<'_>,
        scenario: &ScenarioFile,
        results: Option<PathBuf>,
        existing: &str,
        jobs: Option<usize>,
        extensions: &str,
        laboratory: Option<&Laboratory>,
    ) -> PyResult<Self> {
        let laboratory = laboratory.map(|laboratory| laboratory.options.clone());
        let (points, warnings) = py.detach(|| match &laboratory {
            None => scenario.checked(),
            Some(options) => {
                let checked = scenario.checked_in(options)?;
                cutline_lab::permitted().map_err(|error| errors::laboratory(&error))?;
                Ok(checked)
            }
        })?;
        let existing = match existing {
            "resume" => ExistingResults::Resume,
            "replace" => ExistingResults::Replace,
            "refuse" => ExistingResults::Refuse,
            _ => ExistingResults::Repeat,
        };
        let threads = match jobs {
            Some(jobs) => NonZeroUsize::new(jobs).ok_or_else(|| {
                errors::argument("jobs", "0 is not allowed: expected a number from 1, or None")
            })?,
            None => thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
        };
        let (points, shared) = (Arc::new(points), Arc::<Shared>::default());
        let (file, of_thread) = (scenario.file.clone(), (Arc::clone(&points), Arc::clone(&shared)));
        let version = match &laboratory {
            None => format!("{}{extensions}", PRODUCER.version),
            Some(options) => options.version(PRODUCER.version),
        };
        let work = move || {
            let (points, shared) = of_thread;
            let _ending = Ending(Arc::clone(&shared));
            let store = results.map(|folder| (folder, existing));
            Self::run(&file, &points, threads, store, &version, laboratory.as_ref(), &shared)
        };
        let thread = thread::Builder::new().name("cutline runs".to_owned()).spawn(work)?;
        Ok(Self { thread: Mutex::new(Some(thread)), points, warnings, shared })
    }

    /// Returns the warnings about the scenario.
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// Waits at most so many seconds. Returns whether the runs have ended.
    fn wait(&self, py: Python<'_>, seconds: f64) -> bool {
        let time = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO);
        py.detach(|| {
            let state = self.shared.state();
            let waited = self.shared.ended.wait_timeout_while(state, time, |state| !state.has_ended);
            waited.unwrap_or_else(PoisonError::into_inner).0.has_ended
        })
    }

    /// Ends the runs early. The results of finished runs are kept.
    fn cancel(&self) {
        self.shared.cancel.store(true, Ordering::Relaxed);
    }

    /// Returns the number of runs that are done, the number of all runs, the simulated seconds, all seconds to simulate, and the
    /// point of the last event.
    fn progress(&self) -> (usize, u64, f64, f64, String) {
        let total = self.points.iter().map(|point| point.scenario.seeds).sum();
        let seconds =
            |point: &SweepPoint| point.scenario.duration.as_secs_f64() * point.scenario.seeds as f64;
        let all = self.points.iter().map(seconds).sum();
        let simulated = self.shared.simulated.load(Ordering::Relaxed) as f64 * 1e-9;
        let state = self.shared.state();
        (state.done, total, simulated, all, state.point.clone())
    }

    /// Returns the messages since the last call: their kind, which is `failed` or `damaged`, and their text.
    fn messages(&self) -> Vec<(&'static str, String)> {
        std::mem::take(&mut self.shared.state().messages)
    }

    /// Returns the exception of an extension that ended the runs, and the seed of its run.
    fn raised(&self, py: Python<'_>) -> Option<(Py<PyAny>, u64)> {
        let state = self.shared.state();
        // With its traceback.
        state.raised.as_ref().map(|(error, seed)| (error.clone_ref(py).into_value(py).into_any(), *seed))
    }

    /// Waits until the runs have ended, and returns the results and the number of cancelled runs. It may be called once.
    fn finish(&self, py: Python<'_>) -> PyResult<(Results, usize)> {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let thread = thread.ok_or_else(|| PyRuntimeError::new_err("the results were taken before"))?;
        let joined = py.detach(|| thread.join());
        let executed = joined.map_err(|panic| {
            let said = panic.downcast_ref::<String>().map(String::as_str);
            let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("of an unknown kind");
            PyRuntimeError::new_err(format!("the simulator failed, which is a bug of it: {said}"))
        })?;
        let executed = executed.map_err(|error| errors::store(&error))?;
        let cancelled = executed.cancelled;
        Ok((Results::executed(executed, &self.points), cancelled))
    }
}
