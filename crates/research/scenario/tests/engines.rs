//! The event loop and stages have the same outcome, byte for byte, on the golden scenarios, the examples, and the experiments.

use crate::goldens::{files, of_hosts};
use cutline_scenario::{Scenario, ScenarioFile};
use cutline_sim::{Network, Simulation, SimulationOutcome, SimulationSettings, StageObstacle, StagePlan};
use cutline_units::{Duration, Instant};
use std::path::Path;
use std::thread;

const SEED: u64 = 1;

/// The end of longer examples and experiments, their measured part and their intervals. Golden scenarios have their own. Flows that start
/// later are left out.
const END: Duration = Duration::from_secs(3);
const WARM_UP: Duration = Duration::from_millis(500);
const INTERVAL: Duration = Duration::from_millis(250);

/// A run and its name in messages.
struct Run {
    name: String,
    scenario: Scenario,
}

/// Returns the outcomes of a network in stages and event by event.
///
/// # Errors
/// If the network cannot be cut into stages.
pub fn outcomes(
    network: &Network,
    settings: &SimulationSettings,
) -> Result<[SimulationOutcome; 2], StageObstacle> {
    let plan = StagePlan::cut(network)?;
    let stages = Simulation::in_stages(network, settings, &plan).unwrap();
    let events = Simulation::with_event_loop(network, settings).unwrap();
    Ok([stages, events].map(|mut simulation| {
        simulation.advance(Instant::FAR_FUTURE);
        simulation.finish()
    }))
}

/// Returns the first line in which two texts differ.
pub fn difference(one: &str, other: &str) -> Option<String> {
    let lines = one.lines().zip(other.lines()).enumerate();
    let different = lines.filter(|(_, (one, other))| one != other);
    let line = different.map(|(number, (one, other))| format!("line {number}: {one} against {other}")).next();
    let lengths = (one.len() != other.len()).then(|| format!("{} against {} bytes", one.len(), other.len()));
    line.or(lengths)
}

#[test]
fn both_engines_have_the_same_outcome_on_scenarios_of_the_repository() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut runs: Vec<Run> = files(&here.join("tests/goldens")).iter().flat_map(|path| runs(path)).collect();
    let folders = ["../../../examples", "../../../experiments"].map(|folder| here.join(folder));
    for path in folders.iter().flat_map(|folder| files(folder)).filter(|path| !of_hosts(path)) {
        let ends = ends(self::runs(&path)).into_iter().map(Run::shortened);
        runs.extend(ends.filter(|run| run.scenario.check_simulated().is_ok()));
    }
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let share = |first: usize| {
        let runs = &runs;
        move || runs.iter().skip(first).step_by(threads).map(compared).collect::<Vec<_>>()
    };
    let found: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|first| scope.spawn(share(first))).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let compared: Vec<_> = found.into_iter().filter_map(Result::ok).collect();
    // Hints adapt, a host's queue decides packet by packet, or a link has no propagation delay.
    let others = runs.len() - compared.len();
    assert!(compared.len() > 250 && others < 20, "{others} of {} runs have one engine", runs.len());
    let faults: Vec<String> = compared.into_iter().flatten().collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Returns a run for every point of a scenario.
fn runs(path: &Path) -> Vec<Run> {
    let file = ScenarioFile::load(path).unwrap();
    let points = file.expand().unwrap_or_else(|errors| panic!("{errors}"));
    let name = |label: String| format!("{} {label}", path.display());
    points.into_iter().map(|point| Run { name: name(point.label()), scenario: point.scenario }).collect()
}

/// Returns the first and the last item of a list.
fn ends<T>(mut all: Vec<T>) -> Vec<T> {
    let last = all.len().saturating_sub(1);
    all.drain(1.min(last)..last);
    all
}

impl Run {
    fn shortened(mut self) -> Self {
        let Scenario { duration, warm_up, measure_until, interval, .. } = &mut self.scenario;
        if *duration > END {
            (*duration, *warm_up, *measure_until, *interval) = (END, WARM_UP, END, INTERVAL);
        }
        self
    }
}

/// Returns the first difference between the outcomes of a run.
///
/// # Errors
/// If the network cannot be cut into stages.
fn compared(Run { name, scenario }: &Run) -> Result<Option<String>, StageObstacle> {
    let network = scenario.network_of(SEED).unwrap();
    let rows = |outcome: &SimulationOutcome| scenario.rows(&network, outcome);
    let texts = outcomes(&network, &scenario.settings(SEED))?;
    let [one, other] = texts.map(|outcome| format!("{outcome:#?}\n{:#?}", rows(&outcome)));
    Ok(difference(&one, &other).map(|found| format!("{name}: {found}")))
}
