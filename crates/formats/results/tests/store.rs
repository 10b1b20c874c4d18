//! Stored runs are complete or absent, are read as they were written, and are removed only on request. A file of another
//! table is refused.

use crate::common::{begin, key, result, summary, timed, whole};
use cutline_results::{
    DistributionRow, ExistingResults, FlowRow, PointRow, QueueRow, QueueSeriesRow, RunStore, SeriesRow,
    Store, StoreError, read_table, seal, write_table,
};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn runs_of(root: &Path) -> Vec<String> {
    Store::open(root).read::<FlowRow>().unwrap().iter().map(|row| row.run.to_string()).collect()
}

#[test]
fn a_run_is_read_back_with_its_key_in_every_row() {
    let folder = TempDir::new().unwrap();
    let key = key("a", 7);
    let begun = begin(folder.path(), std::slice::from_ref(&key), ExistingResults::Repeat).unwrap();
    begun.write_run(&key, result(3)).unwrap();
    assert!(begun.has("a") && !begun.has("b"));
    begun.conclude(std::slice::from_ref(&key), &[], &summary(&[], &[])).unwrap();
    let mut expected = result(3);
    expected.stamp(&key);
    let store = begun.store();
    assert_eq!(store.read::<FlowRow>().unwrap(), expected.flows);
    assert_eq!(store.read::<QueueRow>().unwrap(), expected.queues);
    assert_eq!(store.read::<SeriesRow>().unwrap(), expected.series);
    assert_eq!(store.read::<QueueSeriesRow>().unwrap(), expected.queue_series);
    assert_eq!(store.read::<DistributionRow>().unwrap(), expected.distributions);
    assert_eq!((&*expected.flows[2].run, expected.flows[2].seed), ("a", 7));
}

#[test]
fn a_run_that_was_left_unfinished_is_removed() {
    let folder = TempDir::new().unwrap();
    let keys = [key("a", 1), key("b", 2)];
    begin(folder.path(), &keys, ExistingResults::Repeat).unwrap().write_run(&keys[0], result(1)).unwrap();
    let unfinished = folder.path().join("runs/b.unfinished");
    fs::create_dir(&unfinished).unwrap();
    fs::write(unfinished.join("flows.parquet"), "half").unwrap();
    let store = begin(folder.path(), &keys, ExistingResults::Resume).unwrap();
    assert!(store.has("a") && !unfinished.exists());
}

#[test]
fn a_run_counts_as_done_unless_its_timing_is_not_valid() {
    let folder = TempDir::new().unwrap();
    let keys = [key("in-time", 1), key("late", 1)];
    let store = begin(folder.path(), &keys, ExistingResults::Resume).unwrap();
    for (key, result) in keys.iter().zip([timed(true), timed(false)]) {
        store.write_run(key, result).unwrap();
    }
    let done = |store: &RunStore| ["in-time", "late", "absent"].map(|run| store.is_done(run));
    assert_eq!(done(&store), [true, false, false]);
    // The same from the joined tables.
    store.conclude(&keys, &[], &summary(&keys, &keys)).unwrap();
    drop(store);
    assert!(!folder.path().join("runs").exists());
    assert_eq!(done(&begin(folder.path(), &keys, ExistingResults::Resume).unwrap()), [true, false, false]);
}

#[test]
fn joined_tables_have_the_runs_in_the_order_of_the_keys() {
    let folder = TempDir::new().unwrap();
    let keys = [key("b", 2), key("missing", 3), key("a", 1)];
    let begun = begin(folder.path(), &keys, ExistingResults::Repeat).unwrap();
    begun.write_run(&key("a", 1), result(2)).unwrap();
    begun.write_run(&key("b", 2), result(1)).unwrap();
    let settings =
        [("flow.audio.hint".to_owned(), "6".to_owned()), ("rate".to_owned(), "1 Mbit/s".to_owned())];
    let points = PointRow::from_settings("hint=6", &settings);
    begun.conclude(&keys, &points, &summary(&keys, &[key("b", 2), key("a", 1)])).unwrap();
    assert_eq!(runs_of(folder.path()), ["b", "a", "a"]);
    let store = begun.store();
    assert_eq!(store.read::<PointRow>().unwrap(), points);
    assert_eq!((points[0].number, points[1].number), (Some(6.0), None));
    assert!(store.read_timing().unwrap().is_empty());
    assert!(folder.path().join("runs/a").exists(), "the experiment is not complete");
}

#[test]
fn a_complete_experiment_is_a_file_for_each_table_and_nothing_else() {
    let folder = TempDir::new().unwrap();
    whole(folder.path(), &[key("a", 1), key("b", 2)], ExistingResults::Repeat);
    let mut names: Vec<String> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let tables = ["distributions", "flows", "points", "queue_series", "queues", "series"];
    let expected = tables.map(|table| format!("{table}.parquet"));
    assert_eq!(names, [&expected[..], &["summary.json".to_owned()]].concat());
}

/// The folders of single runs are removed under another name, so that none is ever found there in part and taken for damage.
#[test]
fn runs_that_were_being_removed_are_no_damage() {
    let folder = TempDir::new().unwrap();
    let keys = [key("a", 1), key("b", 2)];
    whole(folder.path(), &keys, ExistingResults::Repeat);
    let left = folder.path().join("runs.unfinished");
    fs::create_dir_all(left.join("b")).unwrap();
    fs::write(left.join("b/flows.parquet"), "half").unwrap();
    let store = begin(folder.path(), &keys, ExistingResults::Resume).unwrap();
    assert!(store.damage().is_empty() && store.is_done("b") && !left.exists());
    assert!(store.settled().unwrap().is_some());
}

#[test]
fn results_of_another_origin_stay_unless_they_are_replaced() {
    let folder = TempDir::new().unwrap();
    let (small, other) = ([key("a", 1)], [key("z", 1), key("y", 2)]);
    whole(folder.path(), &small, ExistingResults::Repeat);
    for existing in [ExistingResults::Repeat, ExistingResults::Resume, ExistingResults::Refuse] {
        let error = begin(folder.path(), &other, existing).unwrap_err();
        assert!(matches!(&error, StoreError::Taken { can_resume: false, .. }), "{error}");
        let said = error.to_string();
        assert!(
            said.contains("would be lost") && said.contains("seed 1,") && said.contains("seeds 1 to 2"),
            "{said}"
        );
        assert!(said.contains("differ in the seeds"), "{said}");
        assert_eq!(runs_of(folder.path()), ["a"]);
    }
    whole(folder.path(), &other, ExistingResults::Replace);
    assert_eq!(runs_of(folder.path()), ["z", "y", "y"]);
}

#[test]
fn a_repetition_replaces_each_run_when_it_is_complete() {
    let folder = TempDir::new().unwrap();
    let keys = [key("a", 1), key("b", 2)];
    whole(folder.path(), &keys, ExistingResults::Repeat);
    let again = begin(folder.path(), &keys, ExistingResults::Repeat).unwrap();
    assert!(!again.is_done("a") && again.has("a"));
    // It is interrupted after the first run.
    again.write_run(&keys[0], result(3)).unwrap();
    again.conclude(&keys, &[], &summary(&keys, &keys)).unwrap();
    assert_eq!(runs_of(folder.path()), ["a", "a", "a", "b", "b"]);
}

#[test]
fn resume_adds_runs_to_the_stored_ones() {
    let folder = TempDir::new().unwrap();
    let (two, three) = ([key("a", 1), key("b", 2)], [key("c", 0), key("a", 1), key("b", 2)]);
    whole(folder.path(), &two, ExistingResults::Repeat);
    let refused = begin(folder.path(), &three, ExistingResults::Repeat).unwrap_err();
    assert!(matches!(refused, StoreError::Taken { can_resume: true, .. }), "{refused}");

    let more = begin(folder.path(), &three, ExistingResults::Resume).unwrap();
    assert_eq!(["a", "b", "c"].map(|run| more.is_done(run)), [true, true, false]);
    assert!(!more.store().read_summary().unwrap().complete, "it is a larger experiment from now on");
    more.write_run(&three[0], result(1)).unwrap();
    more.conclude(&three, &[], &summary(&three, &three)).unwrap();
    drop(more);
    assert_eq!(runs_of(folder.path()), ["c", "a", "b", "b"]);
    assert!(begin(folder.path(), &two, ExistingResults::Resume).is_err(), "a run would be lost");
}

#[test]
fn measurements_are_not_repeated_without_a_request() {
    let folder = TempDir::new().unwrap();
    let keys = [key("a", 1)];
    whole(folder.path(), &keys, ExistingResults::Refuse);
    let error = begin(folder.path(), &keys, ExistingResults::Refuse).unwrap_err().to_string();
    assert!(error.contains("has results of this experiment"), "{error}");
}

#[test]
fn an_experiment_that_was_interrupted_before_its_first_run_is_replaced() {
    let folder = TempDir::new().unwrap();
    begin(folder.path(), &[key("a", 1)], ExistingResults::Repeat).unwrap();
    whole(folder.path(), &[key("z", 1)], ExistingResults::Repeat);
}

#[test]
fn results_without_a_summary_are_not_touched() {
    let folder = TempDir::new().unwrap();
    fs::create_dir_all(folder.path().join("runs/a")).unwrap();
    let error = begin(folder.path(), &[key("a", 1)], ExistingResults::Resume).unwrap_err();
    assert!(matches!(error, StoreError::Unknown { .. }), "{error}");
    begin(folder.path(), &[key("a", 1)], ExistingResults::Replace).unwrap();
    assert!(!folder.path().join("runs/a").exists());
}

#[test]
fn results_of_an_earlier_version_of_the_tables_are_refused_and_kept() {
    let folder = TempDir::new().unwrap();
    let keys = [key("a", 1)];
    whole(folder.path(), &keys, ExistingResults::Repeat);
    let path = folder.path().join("summary.json");
    let text = fs::read_to_string(&path).unwrap();
    let mut document: serde_json::Value = serde_json::from_str(&text).unwrap();
    // The version is a part of the origin.
    (document["schema"], document["origin"]) = (1.into(), "0123456789abcdef".into());
    fs::write(&path, seal(&serde_json::to_string_pretty(&document).unwrap())).unwrap();
    let store = Store::open(folder.path());
    assert!(matches!(store.read_summary(), Err(StoreError::Schema { found: 1, .. })));
    for existing in [ExistingResults::Repeat, ExistingResults::Resume] {
        let said = begin(folder.path(), &keys, existing).unwrap_err().to_string();
        assert!(said.contains("the version of the tables"), "{said}");
    }
    assert_eq!(runs_of(folder.path()), ["a"]);
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
