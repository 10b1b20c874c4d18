//! Stored results among processes and damage: the messages, and the effect of `--resume`.

use crate::common::place::Place;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time that a process may take for anything here.
const PATIENCE: Duration = Duration::from_secs(60);

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
    // The remains of a killed process do no harm.
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(lock.exists());
    place.says(&["run", "small.toml", "--force"], 0);
    assert!(!lock.exists());
    assert!(place.tables("results/small") == place.tables("elsewhere/small"), "the tables differ");
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
    assert!(
        said.contains("flows.parquet is damaged") && said.contains("re-running the damaged runs"),
        "{said}"
    );
    assert!(place.tables("results/small") == expected, "the tables differ");
    assert_eq!(place.says(&["compare", "results/small", "results/other"], 0), "");
}
