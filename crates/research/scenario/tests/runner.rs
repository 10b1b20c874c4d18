//! Tests of the runner: the stored bytes do not depend on the number of threads, and every run is stored.

use cutline_results::{
    DistributionRow, ExistingResults, FlowRow, Planned, PointRow, QueueRow, QueueSeriesRow, RunResult,
    RunStore, SeriesRow, Store, Summary, TimingRow,
};
use cutline_scenario::runner::{
    Job, JobProgress, RunEnding, RunEvent, RunOptions, conclude, keys, plan, run_and_store, run_in_memory,
};
use cutline_scenario::{Scenario, ScenarioFile, SweepPoint};
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tempfile::TempDir;

const VERSION: &str = "0.0.0-test";

const TEXT: &str = r#"
name = "small"
title = "A small sweep"
duration = "10 s"
seed = 7
seeds = 3

[dumbbell]
rate = "15 Mbit/s"
delay = "50 ms"
access-rate = "50 Mbit/s"
access-delay = "50 ms"
queue = { aqm = "pi", limit = "800 packets", tsq = true }

[[flow]]
name = "audio"
class = "audio"
transport = { protocol = "tfrc" }
app = { kind = "cbr", rate = "128 kbit/s", size = "160 B" }

[sweep]
"flow.audio.hint" = [1, 6]
"dumbbell.queue.tsq" = [true, false]
"#;

fn file() -> ScenarioFile {
    ScenarioFile::parse(TEXT, "small.toml").expect("the test's scenario is TOML")
}

fn points() -> Vec<SweepPoint> {
    file().expand().expect("the test's scenario is right")
}

fn row(name: &str, seed: u64, i: u64) -> FlowRow {
    let x = (seed * 31 + i) as f64;
    FlowRow {
        flow: format!("{name}.{i}").into(),
        group: name.into(),
        class: "audio".into(),
        hint: i,
        goodput_bps: x / 3.0,
        queuing_mean_ms: (!i.is_multiple_of(2)).then_some(x / 7.0),
        retransmissions: i.is_multiple_of(3).then_some(i),
        ..FlowRow::default()
    }
}

/// Replaces the simulation. The result depends only on the scenario and the seed, and has rows in every table.
#[expect(clippy::unnecessary_wraps, reason = "a simulation can fail")]
fn fake(scenario: &Scenario, seed: u64) -> Result<RunResult, String> {
    let seed = seed * 100 + u64::from(scenario.flows[0].hint.level());
    let series = |i: u64| SeriesRow {
        flow: "audio".into(),
        start_s: i as f64,
        goodput_bps: (seed + i) as f64,
        ..SeriesRow::default()
    };
    Ok(RunResult {
        flows: (0..5).map(|i| row("audio", seed, i)).collect(),
        queues: vec![QueueRow { link: "r1->r2".into(), arrived: seed, ..QueueRow::default() }],
        series: (0..50).map(series).collect(),
        queue_series: vec![QueueSeriesRow {
            link: "r1->r2".into(),
            probability: Some(0.25),
            ..QueueSeriesRow::default()
        }],
        distributions: vec![DistributionRow {
            quantity: "queuing_ms".into(),
            low: 1.0,
            high: 2.0,
            count: 3,
            ..DistributionRow::default()
        }],
        timing: vec![TimingRow { timing_ok: true, frames: seed, ..TimingRow::default() }],
    })
}

fn quiet(_: JobProgress<'_>) {}

fn options<'o>(
    threads: usize,
    cancel: &'o AtomicBool,
    progress: &'o (dyn Fn(JobProgress<'_>) + Sync),
) -> RunOptions<'o> {
    RunOptions { threads: NonZeroUsize::new(threads).expect("a test has threads"), cancel, progress }
}

/// Returns the summary of the test's scenario before its first run.
fn summary(points: &[SweepPoint], jobs: &[Job<'_>]) -> Summary {
    file().summary(points, jobs, VERSION, "now".to_owned())
}

fn begin(folder: &Path, points: &[SweepPoint], jobs: &[Job<'_>], existing: ExistingResults) -> RunStore {
    RunStore::begin(folder, Planned { summary: &summary(points, jobs), keys: &keys(jobs) }, existing).unwrap()
}

/// Runs one job at a time and cancels the others after five have finished.
fn run_five(jobs: &[Job<'_>], store: &RunStore) -> Vec<RunEnding> {
    let cancel = AtomicBool::new(false);
    let stop_after_five = |progress: JobProgress<'_>| {
        if progress.event == RunEvent::Finished && progress.done == 5 {
            cancel.store(true, Ordering::Relaxed);
        }
    };
    run_and_store(jobs, store, &options(1, &cancel, &stop_after_five), fake).unwrap()
}

/// Runs the test's scenario, stores it in a folder and joins the tables.
fn run_into(folder: &Path, threads: usize) -> Summary {
    let (points, cancel) = (points(), AtomicBool::new(false));
    let jobs = plan(&points, VERSION);
    let store = begin(folder, &points, &jobs, ExistingResults::Repeat);
    let endings = run_and_store(&jobs, &store, &options(threads, &cancel, &quiet), fake).unwrap();
    conclude(summary(&points, &jobs), &points, &jobs, &endings, &store, "later".to_owned()).unwrap()
}

/// Returns every file of a folder with its content, ordered by name.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                files.push((name, fs::read(&path).unwrap()));
            }
        }
    }
    files.sort();
    files
}

#[test]
fn the_stored_bytes_do_not_depend_on_the_number_of_threads() {
    let folders = [1, 2, 8].map(|threads| {
        let folder = TempDir::new().unwrap();
        run_into(folder.path(), threads);
        contents(folder.path())
    });
    // Six joined tables, the table of points and the summary.
    assert_eq!(folders[0].len(), 6 + 1 + 1);
    assert!(
        folders[0] == folders[1] && folders[1] == folders[2],
        "the files depend on the number of threads"
    );
}

#[test]
fn stored_results_are_read_back_unchanged() {
    let folder = TempDir::new().unwrap();
    let written = run_into(folder.path(), 2);
    let store = Store::open(folder.path());
    let (points, cancel) = (points(), AtomicBool::new(false));
    let jobs = plan(&points, VERSION);
    let memory = run_in_memory(&jobs, &options(1, &cancel, &quiet), fake);
    let expected: Vec<RunResult> = memory.into_iter().map(|result| result.unwrap().unwrap()).collect();
    let join =
        |part: fn(&RunResult) -> &Vec<FlowRow>| expected.iter().flat_map(part).cloned().collect::<Vec<_>>();
    assert_eq!(store.read::<FlowRow>().unwrap(), join(|result| &result.flows));
    assert_eq!(store.read::<SeriesRow>().unwrap().len(), 12 * 50);
    assert_eq!(store.read::<DistributionRow>().unwrap()[11].count, 3);
    assert_eq!(store.read_timing().unwrap().len(), 12);
    let of_run = |row: &FlowRow| row.run == jobs[4].key.run;
    let flows: Vec<FlowRow> = store.read().unwrap().into_iter().filter(of_run).collect();
    assert_eq!(flows, expected[4].flows);
    let settings = store.read::<PointRow>().unwrap();
    assert_eq!(settings.len(), 4 * 2);
    assert_eq!((&*settings[0].key, settings[0].number), ("flow.audio.hint", Some(1.0)));
    assert_eq!(store.read_summary().unwrap(), written);
    assert!(written.complete && written.finished.len() == 12 && written.scenario == TEXT);
}

/// A run with invalid timing stays stored until a repeated run replaces it.
#[test]
fn a_run_with_invalid_timing_is_repeated() {
    let folder = TempDir::new().unwrap();
    let (points, cancel) = (points(), AtomicBool::new(false));
    let jobs = plan(&points, VERSION);
    let store = begin(folder.path(), &points, &jobs, ExistingResults::Resume);
    let simulated = AtomicUsize::new(0);
    let valid_unless_seed = |late: u64| {
        let simulated = &simulated;
        move |scenario: &Scenario, seed: u64| {
            simulated.fetch_add(1, Ordering::Relaxed);
            fake(scenario, seed).map(|mut result| {
                result.timing[0].timing_ok = seed != late;
                result
            })
        }
    };
    let run = |late| {
        simulated.store(0, Ordering::Relaxed);
        let endings =
            run_and_store(&jobs, &store, &options(2, &cancel, &quiet), valid_unless_seed(late)).unwrap();
        assert!(endings.iter().all(|ending| *ending == RunEnding::Stored));
        simulated.load(Ordering::Relaxed)
    };
    assert_eq!(run(8), 12);
    let of_seed_8 = jobs.iter().filter(|job| job.key.seed == 8);
    assert!(of_seed_8.clone().all(|job| store.has(&job.key.run) && !store.is_done(&job.key.run)));
    assert_eq!(run(0), of_seed_8.count());
    assert!(jobs.iter().all(|job| store.is_done(&job.key.run)));
    assert_eq!(run(0), 0);
}

#[test]
fn a_resumed_experiment_runs_only_missing_runs() {
    let folder = TempDir::new().unwrap();
    let points = points();
    let jobs = plan(&points, VERSION);
    let store = begin(folder.path(), &points, &jobs, ExistingResults::Repeat);
    let endings = run_five(&jobs, &store);
    assert_eq!(endings.iter().filter(|ending| **ending == RunEnding::Stored).count(), 5);
    assert!(endings[5..].iter().all(|ending| *ending == RunEnding::Cancelled));
    drop(store);

    // A crash leaves an incomplete run.
    let half = folder.path().join("runs").join(format!("{}.unfinished", jobs[5].key.run));
    fs::create_dir_all(&half).unwrap();
    fs::write(half.join("flows.parquet"), "half").unwrap();

    let store = begin(folder.path(), &points, &jobs, ExistingResults::Resume);
    assert!(!half.exists());
    let (simulated, cancel) = (AtomicUsize::new(0), AtomicBool::new(false));
    let counted = |scenario: &Scenario, seed| {
        simulated.fetch_add(1, Ordering::Relaxed);
        fake(scenario, seed)
    };
    let endings = run_and_store(&jobs, &store, &options(2, &cancel, &quiet), counted).unwrap();
    assert_eq!(simulated.into_inner(), 7);

    conclude(summary(&points, &jobs), &points, &jobs, &endings, &store, String::new()).unwrap();
    let whole = TempDir::new().unwrap();
    run_into(whole.path(), 1);
    assert_eq!(
        fs::read(folder.path().join("flows.parquet")).unwrap(),
        fs::read(whole.path().join("flows.parquet")).unwrap()
    );
}

/// An interrupted repetition of a complete experiment does not change its stored files.
#[test]
fn an_interrupted_repetition_keeps_the_experiment_complete() {
    let folder = TempDir::new().unwrap();
    run_into(folder.path(), 2);
    let before = contents(folder.path());
    let points = points();
    let jobs = plan(&points, VERSION);
    let store = begin(folder.path(), &points, &jobs, ExistingResults::Repeat);
    let endings = run_five(&jobs, &store);
    assert!(endings[5..].iter().all(|ending| *ending == RunEnding::Cancelled));
    let repeated =
        conclude(summary(&points, &jobs), &points, &jobs, &endings, &store, "later".to_owned()).unwrap();
    assert!(repeated.complete && repeated.finished.len() == 12);
    drop(store);
    assert!(contents(folder.path()) == before, "the files differ");
}

#[test]
fn a_damaged_run_is_reported_and_repeated() {
    let folder = TempDir::new().unwrap();
    let points = points();
    let jobs = plan(&points, VERSION);
    run_five(&jobs, &begin(folder.path(), &points, &jobs, ExistingResults::Repeat));
    let run = |existing| {
        let (news, simulated, cancel) = (Mutex::new(Vec::new()), AtomicUsize::new(0), AtomicBool::new(false));
        let listen = |progress: JobProgress<'_>| {
            if let RunEvent::Damaged(what) = progress.event {
                news.lock().unwrap().push((progress.key.run.clone(), progress.done, what.to_owned()));
            }
        };
        let counted = |scenario: &Scenario, seed| {
            simulated.fetch_add(1, Ordering::Relaxed);
            fake(scenario, seed)
        };
        let store = begin(folder.path(), &points, &jobs, existing);
        let endings = run_and_store(&jobs, &store, &options(1, &cancel, &listen), counted).unwrap();
        let summary = summary(&points, &jobs);
        let summary = conclude(summary, &points, &jobs, &endings, &store, String::new()).unwrap();
        assert!(summary.complete && summary.finished.len() == 12);
        (simulated.into_inner(), news.into_inner().unwrap())
    };
    let damage = |path: &Path| {
        let mut bytes = fs::read(path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(path, bytes).unwrap();
    };
    damage(&folder.path().join(format!("runs/{}/queues.parquet", jobs[3].key.run)));
    let (simulated, news) = run(ExistingResults::Resume);
    assert_eq!((simulated, news.len()), (8, 1), "seven missing runs and a damaged one");
    assert!(
        news[0].0 == jobs[3].key.run && news[0].1 == 0 && news[0].2.contains("queues.parquet"),
        "{news:?}"
    );

    damage(&folder.path().join("queues.parquet"));
    let (simulated, news) = run(ExistingResults::Resume);
    assert_eq!((simulated, news.len()), (12, 1));
    assert!(news[0].2.contains("queues.parquet is damaged"), "{news:?}");
    assert_eq!(run(ExistingResults::Resume), (0, Vec::new()));
}

#[test]
fn resuming_a_complete_experiment_writes_nothing() {
    let folder = TempDir::new().unwrap();
    let written = run_into(folder.path(), 2);
    let (points, cancel) = (points(), AtomicBool::new(false));
    let jobs = plan(&points, VERSION);
    let store = begin(folder.path(), &points, &jobs, ExistingResults::Resume);
    let endings = run_and_store(&jobs, &store, &options(1, &cancel, &quiet), |_, _| unreachable!()).unwrap();
    let later = file().summary(&points, &jobs, VERSION, "tomorrow".to_owned());
    let resumed = conclude(later, &points, &jobs, &endings, &store, "tomorrow".to_owned()).unwrap();
    assert_eq!(resumed, written);
    assert!(!folder.path().join("runs").exists());
}

#[test]
fn the_origin_depends_on_scenario_seeds_and_version() {
    let origin = |change: &dyn Fn(&mut ScenarioFile), version| {
        let mut file = file();
        change(&mut file);
        let points = file.expand().unwrap();
        file.summary(&points, &plan(&points, version), version, String::new()).origin
    };
    let set =
        |key: &'static str, value: &'static str| move |file: &mut ScenarioFile| file.set(key, value).unwrap();
    let own = origin(&|_| {}, "1");
    assert_eq!(own, origin(&set("title", "Another title"), "1"));
    let others = [
        origin(&|_| {}, "2"),
        origin(&set("seeds", "2"), "1"),
        origin(&set("seed", "8"), "1"),
        origin(&set("dumbbell.rate", "16 Mbit/s"), "1"),
        origin(&set("flow.audio.hint", "1"), "1"),
    ];
    assert!(others.iter().all(|other| *other != own));
}

#[test]
fn a_failed_run_is_reported_and_the_others_continue() {
    let folder = TempDir::new().unwrap();
    let (points, cancel) = (points(), AtomicBool::new(false));
    let jobs = plan(&points, VERSION);
    let store = begin(folder.path(), &points, &jobs, ExistingResults::Repeat);
    let news = Mutex::new(Vec::new());
    let listen = |progress: JobProgress<'_>| {
        if let RunEvent::Failed(why) = progress.event {
            news.lock().unwrap().push(format!("{} of {}: {why}", progress.key.point, progress.total));
        }
    };
    let fail = |scenario: &Scenario, seed| {
        if seed == 8 && scenario.flows[0].hint.level() == 6 {
            Err("no room".to_owned())
        } else {
            fake(scenario, seed)
        }
    };
    let endings = run_and_store(&jobs, &store, &options(1, &cancel, &listen), fail).unwrap();
    let reports = news.into_inner().unwrap();
    assert_eq!(reports.len(), 2);
    assert_eq!(reports[0], "flow.audio.hint=6,dumbbell.queue.tsq=true of 12: no room");
    let summary = summary(&points, &jobs);
    let summary = conclude(summary, &points, &jobs, &endings, &store, String::new()).unwrap();
    assert!(!summary.complete);
    assert_eq!((summary.finished.len(), summary.failed.len()), (10, 2));
    assert_eq!((summary.failed[0].run.seed, summary.failed[0].reason.as_str()), (8, "no room"));
}

#[test]
fn the_run_id_depends_on_scenario_seed_and_version() {
    let points = points();
    let ids = |version| plan(&points, version).iter().map(|job| job.key.run.to_string()).collect::<Vec<_>>();
    let mut all = [ids("1"), ids("2")].concat();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 24);
    let mut renamed = file();
    renamed.set("title", "Another title").unwrap();
    let renamed = renamed.expand().unwrap();
    let again: Vec<Job<'_>> = plan(&renamed, "1");
    assert_eq!(*again[0].key.run, *ids("1")[0], "a title does not affect the simulation");
}

#[test]
fn a_queue_row_has_the_means_of_reds_variables_over_the_measurement() {
    let red = TEXT.replace("aqm = \"pi\"", "aqm = \"ared\"").replace(
        "duration = \"10 s\"",
        "duration = \"10 s\"\nwarm-up = \"2 s\"\nmeasure-until = \"8 s\"\ninterval = \"500 ms\"",
    );
    let points = ScenarioFile::parse(&red, "red.toml").unwrap().expand().unwrap();
    let found = points[0].scenario.simulate(7, &AtomicBool::new(false)).unwrap();
    let mean = |read: fn(&QueueSeriesRow) -> Option<f64>| {
        let ends = found.queue_series.iter().filter(|row| &*row.link == "r1->r2");
        let values: Vec<f64> =
            ends.filter(|row| row.start_s > 1.9 && row.end_s < 8.1).filter_map(read).collect();
        assert_eq!(values.len(), 12, "6 s have 12 intervals of 500 ms");
        values.iter().sum::<f64>() / 12.0
    };
    let row = found.queues.iter().find(|row| &*row.link == "r1->r2").unwrap();
    assert_eq!(row.max_p_mean, Some(mean(|row| row.max_p)));
    assert_eq!(row.average_mean_packets, Some(mean(|row| row.average_packets)));
    assert!(row.max_p_mean.unwrap() < 0.02, "max_p decreases from its initial value while the queue is idle");
    let drop_tail = found.queues.iter().find(|row| &*row.aqm == "drop-tail").unwrap();
    assert_eq!((drop_tail.max_p_mean, drop_tail.average_mean_packets), (None, None));
}
