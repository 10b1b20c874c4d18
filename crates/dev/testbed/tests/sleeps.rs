//! A test that waits for a fixed time says why it cannot wait for an event.

use cutline_testbed::repository::{crates, root, rust_files};
use regex_lite::Regex;
use std::fs;
use std::path::{Path, PathBuf};

/// The longest sleep without a reason: shorter ones poll, or are the pace of a sender.
const SHORT: u64 = 99;

#[test]
fn a_test_that_sleeps_has_a_reason() {
    let sources = crates().into_iter().flat_map(|folder| rust_files(&root().join(folder)));
    check(sources.filter(|(path, _)| is_of_tests(path)), sleeps);
}

/// The tests of the Python package keep the rule, too.
#[test]
fn a_test_in_python_that_sleeps_has_a_reason() {
    let entries = fs::read_dir(root().join("python/tests")).unwrap().map(|entry| entry.unwrap().path());
    let tests: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "py")).collect();
    assert!(tests.len() > 10, "{tests:?}");
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        (path, text)
    };
    check(tests.into_iter().map(read), sleeps_in_python);
}

/// Fails if one of the files has a line that `silent` finds.
fn check(files: impl Iterator<Item = (PathBuf, String)>, silent: fn(&str) -> Vec<usize>) {
    let found: Vec<String> = files
        .flat_map(|(path, text)| {
            silent(&text).into_iter().map(move |line| format!("{}:{line}", path.display()))
        })
        .collect();
    assert!(
        found.is_empty(),
        "{} tests sleep for a fixed time: wait for the event, or say in a comment above why not:\n{}",
        found.len(),
        found.join("\n")
    );
}

/// Returns the numbers of the lines in Python that sleep for long without a comment on the line or on the one above.
fn sleeps_in_python(text: &str) -> Vec<usize> {
    let call = Regex::new(r"\bsleep\(([0-9.]+)\)").unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let is_silent = |at: usize| {
        let found = call.captures(lines[at]).filter(|_| !lines[at].contains('#'));
        let seconds = found.map_or(0.0, |found| found[1].parse::<f64>().unwrap());
        let above = at.checked_sub(1).map_or("", |above| lines[above].trim_start());
        seconds * 1000.0 > SHORT as f64 && !above.starts_with('#')
    };
    (0..lines.len()).filter(|at| is_silent(*at)).map(|at| at + 1).collect()
}

fn is_of_tests(path: &Path) -> bool {
    let has_folder = path.components().any(|part| part.as_os_str() == "tests");
    has_folder || path.file_name().is_some_and(|name| name.to_string_lossy().ends_with("tests.rs"))
}

/// Returns the numbers of the lines that sleep for long without a comment on the line or on the one above.
fn sleeps(text: &str) -> Vec<usize> {
    let call = r"\b(?:sleep|park_timeout)\((?:[a-z]+::)*(?:Duration::from_(secs|millis)|ms)\(([0-9_]+)\)\)";
    let call = Regex::new(call).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let is_silent = |at: usize| {
        let line = lines[at];
        let Some(found) = call.captures(line).filter(|_| !line.trim_start().starts_with("//")) else {
            return false;
        };
        let number: u64 = found[2].replace('_', "").parse().unwrap();
        let ms =
            if found.get(1).is_some_and(|unit| unit.as_str() == "secs") { number * 1000 } else { number };
        let above = at.checked_sub(1).map_or("", |above| lines[above].trim_start());
        ms > SHORT && !line.contains("//") && !above.starts_with("//")
    };
    (0..lines.len()).filter(|at| is_silent(*at)).map(|at| at + 1).collect()
}

#[test]
fn sleeps_without_a_reason_are_found() {
    let text = "fn a() {\n    sleep(Duration::from_millis(20));\n    thread::sleep(std::time::Duration::from_secs(1));\n    \
                // It starts.\n    sleep(ms(200));\n    sleep(ms(100)).await; // It ends.\n    sleep(ms(100)).await;\n    \
                park_timeout(Duration::from_millis(100));\n}\n";
    assert_eq!(sleeps(text), [3, 7, 8]);
    let text = "time.sleep(0.05)\ntime.sleep(0.1)\n# It ends.\nawait asyncio.sleep(1)\ntime.sleep(2) # It ends.\n    time.sleep(pause)\n";
    assert_eq!(sleeps_in_python(text), [2]);
}
