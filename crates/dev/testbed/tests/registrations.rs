//! Names that tests register begin with `test-`, and names of ours never do: a new AQM, source or control cannot take the name of
//! a test's. A failed registration reaches every test as it is.

use cutline_aqm::registry;
use cutline_testbed::repository::{crates, rust_files};
use cutline_transport::{app, tcp};
use regex_lite::Regex;
use std::path::PathBuf;

const PREFIX: &str = "test-";

/// Returns the names of this workspace's own AQMs, traffic sources and congestion controls.
fn ours() -> Vec<&'static str> {
    let aqms = registry::describe().into_iter().map(|about| about.name);
    let sources = app::describe().into_iter().map(|about| about.name);
    let controls = tcp::congestion_controls().into_iter().map(|about| about.name);
    aqms.chain(sources).chain(controls).collect()
}

/// Returns the path and text of every file of Rust in a `tests` folder of a crate.
fn tests() -> Vec<(PathBuf, String)> {
    let folders = crates().into_iter().map(|folder| folder.join("tests")).filter(|tests| tests.exists());
    folders.flat_map(|tests| rust_files(&tests)).collect()
}

/// Returns the names that a file registers.
fn names(text: &str) -> Vec<&str> {
    let constant = Regex::new(r"const NAME: &'static str =([^;]*);").unwrap();
    let description = Regex::new(r#"Description \{\s*name: ("[^"]*")"#).unwrap();
    let name = Regex::new(r#""([^"]*)""#).unwrap();
    let places = constant.captures_iter(text).chain(description.captures_iter(text));
    let places: Vec<&str> = places.map(|found| found.get(1).expect("it has a group").as_str()).collect();
    places
        .iter()
        .flat_map(|place| {
            name.captures_iter(place).map(|found| found.get(1).expect("it has a group").as_str())
        })
        .collect()
}

#[test]
fn names_of_tests_cannot_be_those_of_ours() {
    let ours = ours();
    let reserved: Vec<_> = ours.iter().filter(|name| name.starts_with(PREFIX)).collect();
    assert!(reserved.is_empty(), "names that begin with {PREFIX:?} are for tests: {reserved:?}");
    let mut seen = 0;
    for (path, text) in tests() {
        for name in names(&text) {
            // A name of ours cannot be registered at all, and tests try that.
            let is_safe = name.starts_with(PREFIX) || ours.contains(&name);
            assert!(is_safe, "{}: {name:?} should begin with {PREFIX:?}", path.display());
            seen += 1;
        }
    }
    assert!(seen >= 15, "the search finds what there is: {seen}");
}

#[test]
fn a_failed_registration_is_not_hidden_by_a_poisoned_once() {
    // Written in two parts, so that this file is not found.
    let call = ["call", "once"].join("_");
    for (path, text) in tests() {
        assert!(
            !text.contains(&format!(".{call}(")),
            "{}: a panic in `{call}` hides its message from all tests but one: keep the result in a `OnceLock`",
            path.display()
        );
    }
}
