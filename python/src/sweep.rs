//! Sweeps over machines: the plan of a sweep, which every machine makes in the same way, and the runs of its parts.

use crate::errors;
use crate::execution::{PRODUCER, simulated};
use crate::extension::guard;
use crate::results::Results;
use crate::scenario::ScenarioFile;
use cutline_results::{
    DistributionRow, FailedRun, FlowRow, Lock, PointRow, QueueRow, QueueSeriesRow, Row, RunKey, RunResult,
    RunSummary, SeriesRow, StoreError, read_table, write_table,
};
use cutline_scenario::execution::{Executed, Rows};
use cutline_scenario::{Scenario, SweepPoint, runner, saturated_distributions};
use pyo3::prelude::*;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The runs of a sweep, in order.
#[pyclass(module = "cutline._native", frozen)]
pub struct SweepPlan {
    file: cutline_scenario::ScenarioFile,
    points: Vec<SweepPoint>,
    version: String,
    /// The runs: key, and index of the point.
    runs: Vec<(RunKey, usize)>,
    warnings: Vec<String>,
    cancel: AtomicBool,
    simulated: AtomicU64,
}

/// Identifier, label of the point, seed, and estimated cost of a run.
type Run = (String, String, u64, f64);
/// Failed runs of a part, with index and reason, and warnings of distributions with a full bucket.
type Simulated = (Vec<(usize, String)>, Vec<String>);

/// The mean size of a packet in estimates, bits.
const PACKET_BITS: f64 = 8_000.0;
/// Packets each second that a flow costs at least, in estimates.
const PACKETS_OF_A_FLOW: f64 = 50.0;

/// Returns the estimated cost of a run: the transmissions of packets, if flows share each link equally.
fn cost(scenario: &Scenario) -> f64 {
    let Ok(network) = scenario.network() else { return 1.0 };
    let mut sharers = vec![0_u32; network.links().len()];
    for link in network.flows().iter().flat_map(|flow| &flow.route) {
        sharers[link.0 as usize] += 1;
    }
    let rate = |link: &cutline_sim::LinkId| {
        network.link(*link).rate.as_bps() as f64 / f64::from(sharers[link.0 as usize].max(1))
    };
    let packets = |flow: &cutline_sim::FlowSpec| {
        let share = flow.route.iter().map(rate).fold(f64::INFINITY, f64::min);
        let share = if share.is_finite() { share } else { 0.0 };
        (share / PACKET_BITS).max(PACKETS_OF_A_FLOW) * flow.route.len().max(1) as f64
    };
    scenario.duration.as_secs_f64() * network.flows().iter().map(packets).sum::<f64>()
}

#[pymethods]
impl SweepPlan {
    /// Makes the plan of a scenario. With `check`, the simulator checks every point.
    #[staticmethod]
    fn of(py: Python<'_>, scenario: &ScenarioFile, extensions: &str, check: bool) -> PyResult<Self> {
        py.detach(|| {
            let (points, warnings) = if check {
                scenario.checked()?
            } else {
                let points = scenario.file.expand().map_err(|errors| errors::scenario(&errors))?;
                (points, Vec::new())
            };
            let version = format!("{}{extensions}", PRODUCER.version);
            let jobs = runner::plan(&points, &version);
            let mut runs = Vec::with_capacity(jobs.len());
            let mut index = 0;
            for job in &jobs {
                while !std::ptr::eq(&raw const points[index].scenario, job.scenario) {
                    index += 1;
                }
                runs.push((job.key.clone(), index));
            }
            Ok(Self {
                file: scenario.file.clone(),
                points,
                version,
                runs,
                warnings,
                cancel: AtomicBool::new(false),
                simulated: AtomicU64::new(0),
            })
        })
    }

    /// Returns the runs in order.
    fn runs(&self, py: Python<'_>) -> PyResult<Vec<Run>> {
        py.detach(|| {
            guard(|| {
                let costs: Vec<f64> = self.points.iter().map(|point| cost(&point.scenario)).collect();
                let run = |(key, point): &(RunKey, usize)| {
                    (key.run.to_string(), key.point.to_string(), key.seed, costs[*point])
                };
                self.runs.iter().map(run).collect()
            })
        })
    }

    /// Returns the name of the scenario.
    fn name(&self) -> &str {
        &self.points[0].scenario.name
    }

    /// Returns the version that results have.
    fn version(&self) -> &str {
        &self.version
    }

    /// Returns the warnings about the scenario.
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// Returns the simulated seconds of the runs on this machine.
    fn simulated(&self) -> f64 {
        self.simulated.load(Ordering::Relaxed) as f64 * 1e-9
    }

    /// Ends the runs on this machine early.
    fn cancel(&self) {
        self.cancel.store(true, Ordering::Relaxed);
    }

    /// Simulates the runs from `start` to before `end`, and writes their tables into a folder. `None` if they were cancelled.
    fn simulate(
        &self,
        py: Python<'_>,
        start: usize,
        end: usize,
        folder: PathBuf,
    ) -> PyResult<Option<Simulated>> {
        py.detach(|| {
            let (mut rows, mut failed) = (RunResult::default(), Vec::new());
            for (index, (key, point)) in self.runs.iter().enumerate().take(end).skip(start) {
                let scenario = &self.points[*point].scenario;
                let run = || simulated(scenario, key.seed, NonZeroUsize::MIN, &self.cancel, &self.simulated);
                match guard(run)? {
                    Ok(mut result) => {
                        result.stamp(key);
                        rows.append(result);
                    }
                    Err(_) if self.cancel.load(Ordering::Relaxed) => return Ok(None),
                    Err(reason) => failed.push((index, reason)),
                }
            }
            write_all(&folder, &rows).map_err(|error| errors::store(&error))?;
            Ok(Some((failed, saturated_distributions(&rows.distributions))))
        })
    }

    /// Writes the table of points into a folder.
    fn write_points(&self, folder: PathBuf) -> PyResult<()> {
        let rows: Vec<PointRow> = self.points.iter().flat_map(SweepPoint::rows).collect();
        write_table(&folder.join(PointRow::FILE), &rows).map(drop).map_err(|error| errors::store(&error))
    }

    /// Reads parts of the tables, each a folder or a prefix of files, as results in memory.
    fn read(
        &self,
        py: Python<'_>,
        root: PathBuf,
        parts: Vec<(String, usize, usize)>,
        failed: Vec<(usize, String)>,
    ) -> PyResult<Results> {
        py.detach(|| {
            let mut rows = RunResult::default();
            let jobs = runner::plan(&self.points, &self.version);
            let mut summary = self.file.summary(&self.points, &jobs, &self.version, (PRODUCER.now)());
            PRODUCER.commit.clone_into(&mut summary.commit);
            let has_failed = |index: usize| failed.iter().any(|(one, _)| *one == index);
            for (part, start, end) in &parts {
                let part = read_all(&root, part).map_err(|error| errors::store(&error))?;
                rows.append(part);
                let done = (*start..*end).filter(|index| !has_failed(*index));
                summary.finished.extend(done.map(|index| RunSummary::from(&self.runs[index].0)));
            }
            let of = |(index, reason): &(usize, String)| FailedRun {
                run: RunSummary::from(&self.runs[*index].0),
                reason: reason.clone(),
            };
            summary.failed = failed.iter().map(of).collect();
            summary.complete = summary.finished.len() == self.runs.len();
            summary.finished_at = (PRODUCER.now)();
            let executed = Executed { summary, cancelled: 0, rows: Rows::InMemory(Box::new(rows)) };
            Ok(Results::executed(executed, &self.points))
        })
    }
}

/// Calls an expression for each kind of row of a simulation: the type, and the field of `RunResult`.
macro_rules! for_each_table {
    ($call:ident) => {
        $call!(FlowRow, flows);
        $call!(QueueRow, queues);
        $call!(SeriesRow, series);
        $call!(QueueSeriesRow, queue_series);
        $call!(DistributionRow, distributions);
    };
}

fn write_all(folder: &Path, rows: &RunResult) -> Result<(), StoreError> {
    macro_rules! write {
        ($row:ty, $field:ident) => {
            write_table(&folder.join(<$row>::FILE), &rows.$field)?
        };
    }
    for_each_table!(write);
    Ok(())
}

/// Reads a part: `ROOT/TABLE/PART.parquet` of each table.
fn read_all(root: &Path, part: &str) -> Result<RunResult, StoreError> {
    let mut rows = RunResult::default();
    macro_rules! read {
        ($row:ty, $field:ident) => {
            let table = <$row>::FILE.trim_end_matches(".parquet");
            rows.$field = read_table(&root.join(table).join(format!("{part}.parquet")))?
        };
    }
    for_each_table!(read);
    Ok(rows)
}

/// The lock on a folder of results.
#[pyclass(module = "cutline._native", frozen)]
pub struct FolderLock(Mutex<Option<Lock>>);

#[pymethods]
impl FolderLock {
    /// Takes the lock on a folder, which is created.
    #[staticmethod]
    fn take(folder: PathBuf) -> PyResult<Self> {
        let lock = Lock::take(&folder, &(PRODUCER.now)()).map_err(|error| errors::store(&error))?;
        Ok(Self(Mutex::new(Some(lock))))
    }

    /// Releases the lock.
    fn release(&self) {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// Returns the program's version and the commit that it is built from.
#[pyfunction]
fn build() -> (&'static str, &'static str) {
    (PRODUCER.version, PRODUCER.commit)
}

/// Adds sweeps.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<SweepPlan>()?;
    module.add_class::<FolderLock>()?;
    module.add_function(wrap_pyfunction!(build, module)?)
}
