//! Damaged results: every changed bit is noticed, the file is named, and resuming repeats lost runs.

use crate::common;

use crate::common::{begin, complete, key, timed, whole};
use cutline_results::{
    DistributionRow, ExistingResults, FlowRow, PointRow, QueueRow, QueueSeriesRow, Row, RunKey, RunResult,
    SeriesRow, Store, StoreError, TimingRow, read_table, write_table,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

const TABLES: [&str; 6] = [
    FlowRow::FILE,
    QueueRow::FILE,
    SeriesRow::FILE,
    QueueSeriesRow::FILE,
    DistributionRow::FILE,
    PointRow::FILE,
];

fn keys() -> [RunKey; 3] {
    [key("a", 1), key("b", 2), key("c", 3)]
}

/// Numbers that look random and are the same in every run of the test (`SplitMix64`).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) as usize % end
    }
}

/// Reads everything that is stored, as `compare` and `reproduce` do.
fn read(folder: &Path) -> Result<(RunResult, Vec<PointRow>), StoreError> {
    let store = Store::open(folder);
    store.read_summary()?;
    let result = RunResult {
        flows: store.read()?,
        queues: store.read()?,
        series: store.read()?,
        queue_series: store.read()?,
        distributions: store.read()?,
        timing: store.read_timing()?,
    };
    Ok((result, store.read()?))
}

fn flip(path: &Path, bit: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[bit / 8] ^= 1 << (bit % 8);
    fs::write(path, bytes).unwrap();
}

fn bits(path: &Path) -> usize {
    fs::metadata(path).unwrap().len() as usize * 8
}

fn contents(folder: &Path) -> Vec<(&'static str, Vec<u8>)> {
    TABLES.map(|table| (table, fs::read(folder.join(table)).unwrap())).into()
}

#[test]
fn a_changed_bit_changes_no_table_unnoticed() {
    let folder = TempDir::new().unwrap();
    whole(folder.path(), &keys(), ExistingResults::Repeat);
    let expected = read(folder.path()).unwrap();
    let mut numbers = Numbers(1);
    for file in TABLES.into_iter().chain(["summary.json"]) {
        let path = folder.path().join(file);
        let intact = fs::read(&path).unwrap();
        for _ in 0..120 {
            let bit = numbers.below(bits(&path));
            flip(&path, bit);
            match read(folder.path()) {
                Ok(found) => assert!(found == expected, "{file}, bit {bit}: other tables, and no error"),
                Err(error) => assert!(error.to_string().contains(file), "{file}, bit {bit}: {error}"),
            }
            fs::write(&path, &intact).unwrap();
        }
    }
}

/// Removes the digests of the tables, and that of the summary.
fn without_digests(folder: &Path) {
    let path = folder.join("summary.json");
    let mut summary: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    (summary["files"], summary["digest"]) = (serde_json::json!({}), "".into());
    fs::write(&path, summary.to_string()).unwrap();
}

/// The folder with the three runs, of which two are stored and not joined.
fn half() -> TempDir {
    let folder = TempDir::new().unwrap();
    let (keys, store) = (keys(), begin(folder.path(), &keys(), ExistingResults::Repeat).unwrap());
    for (key, flows) in keys[..2].iter().zip(1..) {
        store.write_run(key, common::result(flows)).unwrap();
    }
    folder
}

/// Returns whether the runs a, b and c are complete; then completes them, and compares the results with
/// undisturbed ones.
fn resumed(
    folder: &Path,
    existing: ExistingResults,
    expected: &[(&'static str, Vec<u8>)],
) -> ([bool; 3], Vec<String>) {
    let keys = keys();
    let store = begin(folder, &keys, existing).unwrap();
    let done = ["a", "b", "c"].map(|run| store.is_done(run));
    let damage = store.damage().iter().map(|damage| damage.error.to_string()).collect();
    let summary = complete(&store, &keys);
    assert!(summary.complete && summary.finished.len() == 3);
    assert!(contents(folder) == expected, "the tables differ");
    drop(store);
    assert!(!folder.join("runs").exists() && read(folder).is_ok());
    (done, damage)
}

fn undisturbed() -> Vec<(&'static str, Vec<u8>)> {
    let folder = TempDir::new().unwrap();
    whole(folder.path(), &keys(), ExistingResults::Repeat);
    contents(folder.path())
}

#[test]
fn a_damaged_run_is_named_and_made_again() {
    let expected = undisturbed();
    let mut numbers = Numbers(2);
    let example = half();
    let files: Vec<_> = fs::read_dir(example.path().join("runs/b"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(files.len(), 6, "five tables and the digests");
    for file in files {
        for _ in 0..5 {
            let folder = half();
            let path = folder.path().join("runs/b").join(&file);
            flip(&path, numbers.below(bits(&path)));
            let (done, damage) = resumed(folder.path(), ExistingResults::Resume, &expected);
            assert_eq!(done, [true, false, false], "{}", path.display());
            assert!(damage.len() == 1 && damage[0].contains("runs/b/"), "{damage:?}");
        }
    }
    let folder = half();
    fs::remove_file(folder.path().join("runs/a/series.parquet")).unwrap();
    let (done, damage) = resumed(folder.path(), ExistingResults::Resume, &expected);
    assert!(!done[0] && done[1] && damage[0].contains("runs/a/series.parquet"), "{damage:?}");
}

#[test]
fn damaged_tables_are_made_again() {
    let expected = undisturbed();
    let folder = TempDir::new().unwrap();
    whole(folder.path(), &keys(), ExistingResults::Repeat);
    for file in TABLES.into_iter().filter(|file| *file != PointRow::FILE) {
        let path = folder.path().join(file);
        flip(&path, bits(&path) / 2);
        assert!(read(folder.path()).unwrap_err().is_damage());
        let (done, damage) = resumed(folder.path(), ExistingResults::Resume, &expected);
        assert_eq!(done, [false; 3]);
        assert!(damage.len() == 1 && damage[0].contains(file), "{damage:?}");
    }
    // A file that is not there.
    fs::remove_file(folder.path().join(QueueRow::FILE)).unwrap();
    assert_eq!(resumed(folder.path(), ExistingResults::Resume, &expected).0, [false; 3]);
    // What no run is needed for.
    let points = folder.path().join(PointRow::FILE);
    flip(&points, bits(&points) / 2);
    assert_eq!(resumed(folder.path(), ExistingResults::Resume, &expected).0, [true; 3]);
    // A repetition replaces damaged results.
    let flows = folder.path().join(FlowRow::FILE);
    flip(&flows, 77);
    resumed(folder.path(), ExistingResults::Repeat, &expected);
}

#[test]
fn a_damaged_summary_is_written_again_if_its_origin_is_intact() {
    let expected = undisturbed();
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("summary.json");
    let change = |from: &str, to: &str| {
        whole(folder.path(), &keys(), ExistingResults::Replace);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(&path, text.replace(from, to)).unwrap();
        assert!(read(folder.path()).unwrap_err().to_string().contains("summary.json is damaged"));
    };
    change("small.toml", "smell.toml");
    let (done, damage) = resumed(folder.path(), ExistingResults::Resume, &expected);
    assert!(done == [true; 3] && damage[0].contains("summary.json"), "{damage:?}");
    change("\"run\": \"b\"", "\"run\": \"B\"");
    assert_eq!(resumed(folder.path(), ExistingResults::Resume, &expected).0, [true, false, true]);
    // What these results are cannot be known.
    let origin = cutline_results::origin(&keys(), "1");
    change(&origin, &origin.replace(|_: char| true, "0"));
    for existing in [ExistingResults::Repeat, ExistingResults::Resume, ExistingResults::Refuse] {
        let error = begin(folder.path(), &keys(), existing).unwrap_err();
        assert!(matches!(&error, StoreError::Damaged { .. }), "{error}");
    }
}

#[test]
fn files_without_digests_are_damaged() {
    let expected = undisturbed();
    let folder = TempDir::new().unwrap();
    whole(folder.path(), &keys(), ExistingResults::Repeat);
    without_digests(folder.path());
    assert!(matches!(read(folder.path()), Err(StoreError::Damaged { .. })));
    let (done, damage) = resumed(folder.path(), ExistingResults::Resume, &expected);
    assert!(done == [false; 3] && damage[0].contains("summary.json"), "{damage:?}");

    // A run that may be incomplete is made again.
    let folder = half();
    fs::remove_file(folder.path().join("runs/a/digests.json")).unwrap();
    let (done, damage) = resumed(folder.path(), ExistingResults::Resume, &expected);
    assert!(done == [false, true, false] && damage[0].contains("digests.json"), "{damage:?}");
}

/// The state of a folder that a program was killed in, at any moment while it stored its tables.
#[test]
fn tables_are_stored_all_together_or_not_at_all() {
    let expected = undisturbed();
    let (old, new) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    whole(old.path(), &keys()[..2], ExistingResults::Repeat);
    whole(new.path(), &keys(), ExistingResults::Repeat);
    let (before, after) = (read(old.path()).unwrap(), read(new.path()).unwrap());
    let put = |from: &Path, file: &str, to: &Path, name: &str| {
        fs::copy(from.join(file), to.join(name)).unwrap();
    };
    for renamed in 0..=TABLES.len() {
        let folder = TempDir::new().unwrap();
        for (i, table) in TABLES.into_iter().enumerate() {
            put(old.path(), table, folder.path(), table);
            let name = if i < renamed { table.to_owned() } else { format!("{table}.new") };
            put(new.path(), table, folder.path(), &name);
        }
        put(new.path(), "summary.json", folder.path(), "summary.json");
        assert!(read(folder.path()).unwrap() == after, "{renamed} tables have their names");
        assert_eq!(resumed(folder.path(), ExistingResults::Resume, &expected), ([true; 3], Vec::new()));
        if renamed == 0 {
            // The summary was not written yet.
            let folder = TempDir::new().unwrap();
            for table in TABLES {
                put(old.path(), table, folder.path(), table);
                put(new.path(), table, folder.path(), &format!("{table}.new"));
            }
            put(old.path(), "summary.json", folder.path(), "summary.json");
            fs::write(folder.path().join("flows.parquet.new.tmp"), "half").unwrap();
            assert!(read(folder.path()).unwrap() == before);
            let (done, damage) = resumed(folder.path(), ExistingResults::Resume, &expected);
            assert_eq!((done, damage), ([true, true, false], Vec::new()));
            let names = fs::read_dir(folder.path()).unwrap().count();
            assert_eq!(names, TABLES.len() + 1, "tables and summary");
        }
    }
}

#[test]
fn one_process_at_a_time_stores_in_a_folder() {
    let folder = TempDir::new().unwrap();
    let store = begin(folder.path(), &keys(), ExistingResults::Repeat).unwrap();
    for existing in
        [ExistingResults::Repeat, ExistingResults::Resume, ExistingResults::Refuse, ExistingResults::Replace]
    {
        let error = begin(folder.path(), &keys(), existing).unwrap_err();
        assert!(matches!(&error, StoreError::Locked { .. }), "{error}");
        let said = error.to_string();
        assert!(said.contains(&format!("process {}, since noon", std::process::id())), "{said}");
    }
    complete(&store, &keys());
    drop(store);
    whole(folder.path(), &keys(), ExistingResults::Resume);
}

fn rows<R: Row>(path: &Path) -> Result<usize, StoreError> {
    read_table::<R>(path).map(|rows| rows.len())
}

/// Tables with any byte changed, read by themselves: they are read or named, in time.
#[test]
fn a_damaged_table_is_read_or_is_an_error_with_its_name() {
    type Rows = fn(&Path) -> Result<usize, StoreError>;
    let tables: [(&str, Rows); 7] = [
        (FlowRow::FILE, rows::<FlowRow>),
        (QueueRow::FILE, rows::<QueueRow>),
        (SeriesRow::FILE, rows::<SeriesRow>),
        (QueueSeriesRow::FILE, rows::<QueueSeriesRow>),
        (DistributionRow::FILE, rows::<DistributionRow>),
        (PointRow::FILE, rows::<PointRow>),
        (TimingRow::FILE, rows::<TimingRow>),
    ];
    let folder = TempDir::new().unwrap();
    whole(folder.path(), &keys(), ExistingResults::Repeat);
    write_table(&folder.path().join(TimingRow::FILE), &timed(true).timing).unwrap();
    let mut numbers = Numbers(3);
    for (file, rows) in tables {
        let path = folder.path().join(file);
        let intact = fs::read(&path).unwrap();
        assert!(rows(&path).unwrap() > 0);
        for at in 0..300 {
            let mut damaged = intact.clone();
            // One bit, one byte, several bytes, or an end that is missing.
            match at % 4 {
                0 => damaged[numbers.below(intact.len())] ^= 1 << numbers.below(8),
                1 => damaged[numbers.below(intact.len())] = numbers.below(256) as u8,
                2 => (0..8).for_each(|_| damaged[numbers.below(intact.len())] = numbers.below(256) as u8),
                _ => damaged.truncate(numbers.below(intact.len())),
            }
            fs::write(&path, damaged).unwrap();
            let found = within(Duration::from_secs(90), &path, rows);
            if let Err(error) = found {
                assert!(error.to_string().contains(file), "{error}");
            }
        }
        fs::write(&path, intact).unwrap();
    }
}

/// Returns the result of reading a file; fails if reading takes too long.
fn within<T: Send + 'static>(limit: Duration, path: &Path, read: fn(&Path) -> T) -> T {
    let (send, receive) = std::sync::mpsc::channel();
    let path: PathBuf = path.to_owned();
    let reader = std::thread::spawn(move || send.send(read(&path)));
    match receive.recv_timeout(limit) {
        Ok(found) => found,
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("still reading after {limit:?}"),
        Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => {
            std::panic::resume_unwind(reader.join().expect_err("the reader has panicked"))
        }
    }
}
