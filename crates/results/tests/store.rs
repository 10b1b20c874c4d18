//! Stored runs: complete or not there, read back as they were written, and never mistaken for another table.

use cutline_results::{
    DistributionRow, FlowRow, PointRow, QueueRow, QueueSeriesRow, RunKey, RunResult, SeriesRow, Store,
    StoreError, TimingRow, read_table, write_table,
};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn key(run: &str, seed: u64) -> RunKey {
    RunKey { run: run.into(), point: "base".into(), seed }
}

fn flow(i: u64) -> FlowRow {
    FlowRow {
        flow: format!("audio.{i}").into(),
        group: "audio".into(),
        hint: i,
        goodput_bps: i as f64 / 3.0,
        queuing_mean_ms: (!i.is_multiple_of(2)).then_some(i as f64 / 7.0),
        retransmissions: i.is_multiple_of(3).then_some(i),
        ..FlowRow::default()
    }
}

/// A run with rows in every table, timing aside.
fn result(flows: u64) -> RunResult {
    RunResult {
        flows: (0..flows).map(flow).collect(),
        queues: vec![QueueRow { link: "r1->r2".into(), arrived: 9, ..QueueRow::default() }],
        series: vec![SeriesRow { flow: "audio.0".into(), end_s: 0.5, ..SeriesRow::default() }],
        queue_series: vec![QueueSeriesRow { probability: Some(0.25), ..QueueSeriesRow::default() }],
        distributions: vec![DistributionRow { low: 1.0, high: 2.0, count: 3, ..DistributionRow::default() }],
        timing: Vec::new(),
    }
}

fn timed(kept: u64) -> RunResult {
    RunResult { timing: vec![TimingRow { kept, ..TimingRow::default() }], ..result(1) }
}

#[test]
fn a_run_is_read_back_with_its_key_in_every_row() {
    let folder = TempDir::new().unwrap();
    let store = Store::create(folder.path()).unwrap();
    let key = key("a", 7);
    store.write_run(&key, result(3)).unwrap();
    let mut expected = result(3);
    expected.stamp(&key);
    assert_eq!(store.read_run("a").unwrap(), expected);
    assert_eq!((&*expected.flows[2].run, expected.flows[2].seed), ("a", 7));
    assert!(store.has("a") && !store.has("b"));
}

#[test]
fn a_run_that_was_left_unfinished_is_removed() {
    let folder = TempDir::new().unwrap();
    Store::create(folder.path()).unwrap().write_run(&key("a", 1), result(1)).unwrap();
    let unfinished = folder.path().join("runs/b.unfinished");
    fs::create_dir(&unfinished).unwrap();
    fs::write(unfinished.join("flows.parquet"), "half").unwrap();
    let store = Store::resume(folder.path()).unwrap();
    assert!(store.has("a") && !unfinished.exists());
}

#[test]
fn a_run_counts_as_done_unless_its_timing_was_not_good_enough() {
    let folder = TempDir::new().unwrap();
    let store = Store::create(folder.path()).unwrap();
    for (run, result) in [("simulated", result(1)), ("in-time", timed(1)), ("late", timed(0))] {
        store.write_run(&key(run, 1), result).unwrap();
    }
    assert_eq!(
        ["simulated", "in-time", "late", "absent"].map(|run| store.is_done(run)),
        [true, true, false, false]
    );
}

#[test]
fn joined_tables_have_the_runs_in_the_order_of_the_keys() {
    let folder = TempDir::new().unwrap();
    let store = Store::create(folder.path()).unwrap();
    store.write_run(&key("a", 1), result(2)).unwrap();
    store.write_run(&key("b", 2), result(1)).unwrap();
    let settings =
        [("flow.audio.hint".to_owned(), "6".to_owned()), ("rate".to_owned(), "1 Mbit/s".to_owned())];
    let points = PointRow::from_settings("hint=6", &settings);
    let keys = [key("b", 2), key("missing", 3), key("a", 1)];
    assert_eq!(store.consolidate(&keys, &points).unwrap(), 2);
    let flows: Vec<FlowRow> = store.read().unwrap();
    assert_eq!(flows.iter().map(|row| &*row.run).collect::<Vec<_>>(), ["b", "a", "a"]);
    assert_eq!(store.read::<PointRow>().unwrap(), points);
    assert_eq!((points[0].number, points[1].number), (Some(6.0), None));
    assert!(store.read_timing().unwrap().is_empty());
}

#[test]
fn a_table_of_another_kind_is_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("flows.parquet");
    write_table(&path, &[QueueRow::default()]).unwrap();
    let error = read_table::<FlowRow>(&path).unwrap_err();
    assert!(matches!(error, StoreError::Column { column: "flow", problem: "is missing", .. }), "{error}");
    fs::write(&path, "not a table").unwrap();
    assert!(matches!(read_table::<FlowRow>(&path), Err(StoreError::Parquet { .. })));
    assert!(matches!(Store::open(Path::new("nowhere")).read::<FlowRow>(), Err(StoreError::Io { .. })));
}
