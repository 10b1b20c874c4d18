//! Small results for tests: runs with rows in every table, and their stored form.

#![allow(dead_code, reason = "every test uses a part of it")]

use cutline_results::{
    DistributionRow, ExistingResults, FlowRow, Host, Planned, PointRow, QueueRow, QueueSeriesRow, RunKey,
    RunResult, RunStore, RunSummary, SCHEMA_VERSION, SeriesRow, StoreError, Summary, TimingRow, origin,
};
use std::collections::BTreeMap;
use std::path::Path;

pub fn key(run: &str, seed: u64) -> RunKey {
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
pub fn result(flows: u64) -> RunResult {
    RunResult {
        flows: (0..flows).map(flow).collect(),
        queues: vec![QueueRow { link: "r1->r2".into(), arrived: 9, ..QueueRow::default() }],
        series: vec![SeriesRow { flow: "audio.0".into(), end_s: 0.5, ..SeriesRow::default() }],
        queue_series: vec![QueueSeriesRow { probability: Some(0.25), ..QueueSeriesRow::default() }],
        distributions: vec![DistributionRow { low: 1.0, high: 2.0, count: 3, ..DistributionRow::default() }],
        timing: Vec::new(),
    }
}

pub fn timed(timing_ok: bool) -> RunResult {
    RunResult { timing: vec![TimingRow { timing_ok, ..TimingRow::default() }], ..result(1) }
}

/// The summary of an experiment with these runs, of which those in `finished` are stored.
pub fn summary(keys: &[RunKey], finished: &[RunKey]) -> Summary {
    Summary {
        schema: SCHEMA_VERSION,
        origin: origin(keys, "1"),
        commit: String::new(),
        version: "1".to_owned(),
        name: "small".to_owned(),
        title: None,
        description: None,
        scenario_file: "small.toml".to_owned(),
        scenario: String::new(),
        overrides: Vec::new(),
        seeds: keys.iter().map(|key| key.seed).collect(),
        points: Vec::new(),
        finished: finished.iter().map(RunSummary::from).collect(),
        failed: Vec::new(),
        complete: keys.len() == finished.len(),
        host: Host::default(),
        started_at: "noon".to_owned(),
        finished_at: String::new(),
        files: BTreeMap::new(),
        digest: String::new(),
    }
}

pub fn begin(root: &Path, keys: &[RunKey], existing: ExistingResults) -> Result<RunStore, StoreError> {
    RunStore::begin(root, Planned { summary: &summary(keys, &[]), keys }, existing)
}

/// Stores the runs that are missing, the first with one flow, the second with two, and so on, and concludes.
pub fn whole(root: &Path, keys: &[RunKey], existing: ExistingResults) -> Summary {
    let store = begin(root, keys, existing).unwrap();
    complete(&store, keys)
}

/// Stores the runs that are missing, and concludes.
pub fn complete(store: &RunStore, keys: &[RunKey]) -> Summary {
    for (key, flows) in keys.iter().zip(1..) {
        if !store.is_done(&key.run) {
            store.write_run(key, result(flows)).unwrap();
        }
    }
    let points = PointRow::from_settings("base", &[("rate".to_owned(), "1 Mbit/s".to_owned())]);
    store.conclude(keys, &points, &summary(keys, &[])).unwrap()
}
