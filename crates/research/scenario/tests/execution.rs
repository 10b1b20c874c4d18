//! Tests of an experiment's execution: the same rows in memory and stored, with the runs that failed or were cancelled.

use cutline_results::{ExistingResults, FlowRow, RunResult};
use cutline_scenario::check::{check_points, describe, describe_simulated};
use cutline_scenario::execution::{Executed, Execution, Producer, Rows};
use cutline_scenario::runner::{RunOptions, plan};
use cutline_scenario::{Scenario, ScenarioFile};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

const TEXT: &str = r#"
name = "small"
duration = "1 s"
seeds = 2
[dumbbell]
rate = "4 Mbit/s"
delay = "10 ms"
access-rate = "50 Mbit/s"
access-delay = "1 ms"
queue = { aqm = "pi", limit = "100 packets" }
[[flow]]
name = "audio"
transport = { protocol = "udp" }
app = { kind = "cbr", rate = "64 kbit/s", size = "160 B" }
[sweep]
"flow.audio.hint" = [1, 16]
"#;

const PRODUCER: Producer<'static> =
    Producer { version: "0.0.0-test", commit: "a commit", now: || "now".to_owned() };

type Simulate<'s> = dyn Fn(&Scenario, u64, &AtomicBool) -> Result<RunResult, String> + Sync + 's;

fn execute(simulate: &Simulate<'_>, folder: Option<&Path>) -> Executed {
    let file = ScenarioFile::parse(TEXT, "small.toml").unwrap();
    let points = file.expand().unwrap();
    let jobs = plan(&points, PRODUCER.version);
    let cancel = AtomicBool::new(false);
    let options = RunOptions { threads: NonZeroUsize::MIN, cancel: &cancel, progress: &|_| () };
    let simulate = |scenario: &Scenario, seed| simulate(scenario, seed, &cancel);
    let execution = Execution {
        file: &file,
        points: &points,
        jobs: &jobs,
        options: &options,
        producer: PRODUCER,
        simulate: &simulate,
    };
    execution.execute(folder.map(|folder| (folder, ExistingResults::Repeat))).unwrap()
}

fn simulated(scenario: &Scenario, seed: u64, cancel: &AtomicBool) -> Result<RunResult, String> {
    scenario.simulate(seed, cancel).map_err(|error| error.to_string())
}

fn flows(executed: &Executed) -> Vec<FlowRow> {
    match &executed.rows {
        Rows::Stored(store) => store.read().unwrap(),
        Rows::InMemory(rows) => rows.flows.clone(),
    }
}

#[test]
fn results_in_memory_are_those_that_are_stored() {
    let folder = tempfile::tempdir().unwrap();
    let (stored, in_memory) = (execute(&simulated, Some(folder.path())), execute(&simulated, None));
    assert_eq!((flows(&stored), flows(&stored).len()), (flows(&in_memory), 4));
    let (one, other) = (&stored.summary, &in_memory.summary);
    assert_eq!((&one.origin, &one.finished, one.complete), (&other.origin, &other.finished, true));
    assert_eq!((one.commit.as_str(), one.finished_at.as_str()), ("a commit", "now"));
    assert!(folder.path().join("small/flows.parquet").exists(), "the folder has the scenario's name");
}

#[test]
fn failed_and_cancelled_runs_are_counted_in_both() {
    let simulate =
        |scenario: &Scenario, seed: u64, cancel: &AtomicBool| match (scenario.flows[0].hint.level(), seed) {
            (1, 1) => Err("no luck".to_owned()),
            (16, 1) => {
                cancel.store(true, Ordering::Relaxed);
                Err("interrupted".to_owned())
            }
            _ => simulated(scenario, seed, cancel),
        };
    let folder = tempfile::tempdir().unwrap();
    for store in [None, Some(folder.path())] {
        let executed = execute(&simulate, store);
        let Executed { summary, cancelled, .. } = &executed;
        let failed: Vec<(u64, &str)> =
            summary.failed.iter().map(|one| (one.run.seed, one.reason.as_str())).collect();
        assert_eq!((failed, *cancelled, summary.complete), (vec![(1, "no luck")], 2, false));
        assert_eq!((summary.finished.len(), flows(&executed).len()), (1, 1));
    }
}

#[test]
fn a_check_describes_the_runs_or_names_the_refusal() {
    let points = ScenarioFile::parse(TEXT, "small.toml").unwrap().expand().unwrap();
    assert_eq!(check_points(&points, Scenario::check_simulated), Ok(Vec::new()));
    assert!(describe(&points).contains("runs    4: 2 points x 2 seeds from 1\n"), "{}", describe(&points));
    let engine = |delay: &str| {
        let mut file = ScenarioFile::parse(TEXT, "small.toml").unwrap();
        file.set_pair(&format!("dumbbell.access-delay={delay}")).unwrap();
        describe_simulated(&file.expand().unwrap())
    };
    let stages = "\nengine  3 stages, lookahead 50 ms, windows of 33.554432 ms\n";
    assert!(engine("50 ms").ends_with(stages), "{}", engine("50 ms"));
    let events = "event by event: the latency of 1 ms behind link `s1->r1` is too short for a window\n";
    assert!(engine("1 ms").ends_with(events), "{}", engine("1 ms"));
    let refused = check_points(&points, |scenario| match scenario.flows[0].hint.level() {
        16 => Err("too patient"),
        _ => Ok(()),
    });
    assert_eq!(refused, Err("flow.audio.hint=16: too patient".to_owned()));
}
