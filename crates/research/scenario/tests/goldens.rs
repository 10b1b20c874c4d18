//! Golden results: the results of short scenarios, as a digest of every cell of every row.
//!
//! The scenarios in `tests/goldens` cover each queue, TSQ with each AQM, each transport and application, a graph with two
//! bottlenecks, adaptive hints and rate changes. In addition, every experiment of a study runs for four seconds at the
//! first and the last point of its sweep. `tests/goldens/results.txt` has one line for each run, with packet counts and the
//! digest. The test fails if a build computes a different result than earlier builds, whether the compiler, an
//! optimisation or a refactoring is the cause.
//!
//! `make bless` regenerates the table. Review the diff, and explain in the commit message why the results changed.

use cutline_results::{CellValue, FlowRow, Row, RunResult};
use cutline_scenario::{ScenarioFile, SweepPoint};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::thread;

const SEED: u64 = 1;

/// Experiments that cannot be shortened, because flows start after four seconds.
const LATE: [&str; 6] = [
    "step.toml",
    "maxp-down.toml",
    "maxp-up.toml",
    "lab-qos/call.toml",
    "suites/churn.toml",
    "suites/varying.toml",
];

/// The overrides that shorten an experiment.
const SHORTER: [&str; 4] = ["duration=4 s", "warm-up=1 s", "measure-until=4 s", "interval=500 ms"];

#[test]
fn results_equal_those_of_earlier_builds() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut runs: Vec<Run> = files(&here.join("tests/goldens")).iter().flat_map(|path| whole(path)).collect();
    let experiments = files(&here.join("../../../experiments"));
    let simulated = experiments.iter().filter(|path| !of_hosts(path));
    let early = simulated.filter(|path| LATE.iter().all(|late| !path.ends_with(late)));
    runs.extend(early.flat_map(|path| shortened(path)));
    let table = table(&runs);

    let path = here.join("tests/goldens/results.txt");
    if std::env::var_os("CUTLINE_BLESS").is_some() {
        return fs::write(&path, table).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap();
    let changed = difference(&expected, &table);
    assert!(
        changed.is_empty(),
        "results differ from those of earlier builds (-) in:\n{changed}\n\
         If the change is intended, run `make bless` and explain it in the commit message."
    );
}

/// A run and its name in the table.
struct Run {
    file: String,
    number: usize,
    point: SweepPoint,
}

/// Returns whether only real hosts run an experiment: cases with programs and reservations, and configurations of a host.
pub fn of_hosts(path: &Path) -> bool {
    let path = path.to_string_lossy();
    ["/experiments/qsock/", "/experiments/quanta-lab/"].iter().any(|folder| path.contains(folder))
}

/// Returns the scenarios in a folder and its subfolders, ordered by path. Some folders have specifications of applications instead.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let entries =
        entries.filter(|path| !["programs", "specifications"].iter().any(|name| path.ends_with(name)));
    let (folders, mut files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.retain(|path| !["figures.toml", "study.toml"].iter().any(|name| path.ends_with(name)));
    files.extend(folders.iter().flat_map(|folder| self::files(folder)));
    files.sort();
    files
}

/// Returns a run for every point of a scenario.
fn whole(path: &Path) -> Vec<Run> {
    runs(path, &ScenarioFile::load(path).unwrap())
}

/// Returns shortened runs of the first and the last point of an experiment that the simulator supports.
fn shortened(path: &Path) -> Vec<Run> {
    let mut file = ScenarioFile::load(path).unwrap();
    for setting in SHORTER {
        file.set_pair(setting).unwrap();
    }
    let mut runs = runs(path, &file);
    runs.retain(|run| run.point.scenario.check_simulated().is_ok());
    let last = runs.len().saturating_sub(1);
    runs.drain(1.min(last)..last);
    runs
}

fn runs(path: &Path, file: &ScenarioFile) -> Vec<Run> {
    let folder = path.parent().and_then(Path::file_name).unwrap().to_string_lossy();
    let name = format!("{folder}/{}", path.file_stem().unwrap().to_string_lossy());
    let points = file.expand().unwrap().into_iter();
    points.zip(1..).map(|(point, number)| Run { file: name.clone(), number, point }).collect()
}

/// Formats a table with one line per run.
fn table(runs: &[Run]) -> String {
    let head = ["run", "sent", "received", "dropped", "marked", "rows", "digest", "point"];
    let mut lines = vec![head.map(str::to_owned)];
    lines.extend(simulate(runs));
    let width = |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let [run, counts @ .., digest, point] = line;
        let _ = write!(text, "{run:<0$}", widths[0]);
        for (count, width) in counts.iter().zip(&widths[1..]) {
            let _ = write!(text, "  {count:>width$}");
        }
        let _ = writeln!(text, "  {digest:<0$}  {point}", widths[6]);
    }
    text
}

/// Simulates all runs, on all cores.
fn simulate(runs: &[Run]) -> Vec<[String; 8]> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let share = |first: usize| move || runs.iter().skip(first).step_by(threads).map(line).collect::<Vec<_>>();
    let shares: Vec<Vec<_>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|first| scope.spawn(share(first))).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    (0..runs.len()).map(|run| shares[run % threads][run / threads].clone()).collect()
}

fn line(run: &Run) -> [String; 8] {
    let result = run.point.scenario.simulate(SEED, &AtomicBool::new(false)).unwrap();
    let count = |packets: fn(&FlowRow) -> u64| result.flows.iter().map(packets).sum::<u64>().to_string();
    [
        format!("{} {}", run.file, run.number),
        count(|flow| flow.packets_sent),
        count(|flow| flow.packets_received),
        count(|flow| flow.packets_dropped),
        count(|flow| flow.packets_marked),
        rows(&result).to_string(),
        digest(&result),
        run.point.label(),
    ]
}

fn rows(result: &RunResult) -> usize {
    let RunResult { flows, queues, series, queue_series, distributions, timing } = result;
    flows.len() + queues.len() + series.len() + queue_series.len() + distributions.len() + timing.len()
}

/// Returns the first 64 bits of the SHA-256 digest of every cell.
fn digest(result: &RunResult) -> String {
    let RunResult { flows, queues, series, queue_series, distributions, timing } = result;
    let mut hash = Sha256::new();
    add(&mut hash, flows);
    add(&mut hash, queues);
    add(&mut hash, series);
    add(&mut hash, queue_series);
    add(&mut hash, distributions);
    add(&mut hash, timing);
    hash.finalize()[..8].iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// Columns that are newer than the table of digests. They count only where they are set, so that a new column alone changes no
/// digest.
const NEWER: [&str; 5] = ["lost", "lost_ratio", "reordered", "reordered_ratio", "transfer_bytes"];

/// Adds each cell to the hash: a letter for its kind, then its bytes. A text ends with 0xff, which UTF-8 never contains.
fn add<R: Row>(hash: &mut Sha256, rows: &[R]) {
    let columns = R::columns();
    for row in rows {
        for column in &columns {
            match column.value(row) {
                CellValue::Null if NEWER.contains(&column.about.name) => (),
                CellValue::Null => hash.update(b"-"),
                CellValue::Text(text) => {
                    hash.update(b"t");
                    hash.update(text.as_bytes());
                    hash.update([0xff]);
                }
                CellValue::Count(count) => {
                    hash.update(b"c");
                    hash.update(count.to_be_bytes());
                }
                CellValue::Real(number) => {
                    hash.update(b"r");
                    hash.update(number.to_bits().to_be_bytes());
                }
            }
        }
    }
}

/// Returns the lines that are in only one of the two tables.
fn difference(expected: &str, found: &str) -> String {
    let mut text = String::new();
    let lines = |table: &str| table.lines().map(str::to_owned).collect::<Vec<_>>();
    let (expected, found) = (lines(expected), lines(found));
    for (sign, these, others) in [('-', &expected, &found), ('+', &found, &expected)] {
        for line in these.iter().filter(|line| !others.contains(line)) {
            let _ = writeln!(text, "{sign} {line}");
        }
    }
    text
}
