//! Stored results among processes and damage: what is said, and what `--resume` makes of it.

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Twenty-four short runs.
const SMALL: &str = r#"
name = "small"
duration = "4 s"
warm-up = "1 s"
seeds = 12

[dumbbell]
rate = "2 Mbit/s"
delay = "10 ms"
access-rate = "50 Mbit/s"
access-delay = "5 ms"
queue = { aqm = "pi", limit = "60 packets", q-ref = "20 packets", tsq = true }

[[flow]]
name = "audio"
class = "audio"
hint = 6
start = { from = "0 s", to = "1 s" }
transport = { protocol = "udp" }
app = { kind = "cbr", rate = "64 kbit/s", size = "160 B" }

[sweep]
"flow.audio.hint" = [1, 6]
"#;

const RUNS: usize = 24;
const TABLES: [&str; 6] = ["flows", "queues", "series", "queue_series", "distributions", "points"];

/// How long a process may take for anything here.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with the small scenario.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("small.toml"), SMALL).unwrap();
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(cargo_bin("cutline"));
        command.current_dir(self.0.path()).env_remove("CLICOLOR_FORCE").args(arguments);
        command
    }

    fn start(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// What a command says on stderr that ends with a code.
    fn says(&self, arguments: &[&str], code: i32) -> String {
        let output = self.command(arguments).output().unwrap();
        let said = said(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        said
    }

    fn tables(&self, folder: &str) -> Vec<Vec<u8>> {
        let table = |name| fs::read(self.path(folder).join(format!("{name}.parquet"))).unwrap();
        TABLES.map(table).into()
    }

    fn summary(&self) -> Value {
        serde_json::from_slice(&fs::read(self.path("results/small/summary.json")).unwrap()).unwrap()
    }
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Waits until something is true of a file that others write.
fn wait_for(path: &Path, is_so: impl Fn(&Path) -> bool) {
    let begin = Instant::now();
    while !is_so(path) {
        assert!(begin.elapsed() < PATIENCE, "{}", path.display());
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn has_text(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|about| about.len() > 0)
}

#[test]
fn a_second_process_is_refused_by_the_name_of_the_first() {
    let place = Place::new();
    let lock = place.path("results/small/.lock");
    let mut first = place.start(&["run", "small.toml", "--jobs", "1", "--set", "duration=2000 s"]);
    wait_for(&lock, has_text);
    for options in [&[][..], &["--resume"], &["--force"]] {
        let said = place.says(&[&["run", "small.toml"], options].concat(), 1);
        let process = format!("(process {}, since 20", first.id());
        assert!(said.contains("another process is storing results in results/small"), "{said}");
        assert!(said.contains(&process) && said.contains("--results DIR"), "no {process:?} in {said}");
    }
    place.says(&["run", "small.toml", "--results", "elsewhere"], 0);
    // What a killed process leaves is in nobody's way.
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(lock.exists());
    place.says(&["run", "small.toml", "--force"], 0);
    assert!(!lock.exists());
    assert!(place.tables("results/small") == place.tables("elsewhere/small"), "the tables differ");
}

/// The attack: two processes with one folder, one of them killed at any moment. The other has done all of it or has been
/// refused; the summary counts what is there; resuming completes it.
#[test]
fn two_processes_with_one_folder_lose_nothing_when_one_is_killed() {
    let place = Place::new();
    let arguments = ["run", "small.toml", "--jobs", "1"];
    let begin = Instant::now();
    place.says(&[&arguments[..], &["--results", "undisturbed"]].concat(), 0);
    let expected = place.tables("undisturbed/small");
    // Twice as long as one process needs, for two share the machine.
    let longest = begin.elapsed() * 2;
    let (tries, mut whole, mut refused) = (16, 0, 0);
    for i in 0..tries {
        let _ = fs::remove_dir_all(place.path("results"));
        let mut processes = [place.start(&arguments), place.start(&arguments)];
        std::thread::sleep(longest * (i / 2) / (tries / 2));
        let victim = i as usize % 2;
        processes[victim].kill().unwrap();
        let [a, b] = processes.map(|process| process.wait_with_output().unwrap());
        let survivor = if victim == 0 { b } else { a };
        let said = said(&survivor);
        match survivor.status.code() {
            Some(0) => {
                whole += 1;
                assert!(place.tables("results/small") == expected, "try {i}: the tables differ");
            }
            Some(1) => {
                refused += 1;
                assert!(said.contains("another process is storing results"), "try {i}: {said}");
            }
            code => panic!("try {i}: ended with {code:?}: {said}"),
        }
        if let Ok(text) = fs::read(place.path("results/small/summary.json")) {
            let summary: Value = serde_json::from_slice(&text).unwrap();
            let finished = summary["finished"].as_array().unwrap().len();
            assert_eq!(summary["complete"], finished == RUNS, "try {i}: {finished} runs");
        }
        place.says(&[&arguments[..], &["--resume"]].concat(), 0);
        assert!(place.tables("results/small") == expected, "try {i}: the tables differ after --resume");
        assert_eq!(place.summary()["finished"].as_array().unwrap().len(), RUNS);
        assert_eq!(fs::read_dir(place.path("results/small")).unwrap().count(), TABLES.len() + 1);
    }
    assert!(whole + refused == tries && refused > 0, "{whole} whole, {refused} refused");
}

#[test]
fn damaged_results_are_refused_and_made_again() {
    let place = Place::new();
    place.says(&["run", "small.toml"], 0);
    place.says(&["run", "small.toml", "--set", "name=other"], 0);
    let expected = place.tables("results/small");
    let path = place.path("results/small/flows.parquet");
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.len() / 3;
    bytes[at] ^= 1;
    fs::write(&path, bytes).unwrap();
    for folders in [["results/small", "results/other"], ["results/other", "results/small"]] {
        let said = place.says(&[&["compare"], &folders[..]].concat(), 1);
        for part in ["results/small/flows.parquet is damaged", "--resume", "--force"] {
            assert!(said.contains(part), "no {part:?} in {said}");
        }
    }
    let said = place.says(&["run", "small.toml", "--resume"], 0);
    assert!(said.contains("flows.parquet is damaged") && said.contains("made again"), "{said}");
    assert!(place.tables("results/small") == expected, "the tables differ");
    assert_eq!(place.says(&["compare", "results/small", "results/other"], 0), "");
}
