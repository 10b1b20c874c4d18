//! The crates depend on each other as the code map in ARCHITECTURE.md says, and on crates above them alone.
//!
//! Dependencies of tests and benchmarks (`[dev-dependencies]`) are not in the map.

use cutline_testbed::repository::{crates, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use toml::de::DeTable;

/// Prefix of our packages' names; the rest is the crate's folder.
const PREFIX: &str = "cutline-";

/// Crates in the order of a list, each with those that it uses.
type Map = Vec<(String, BTreeSet<String>)>;

#[test]
fn crates_use_what_the_code_map_says() {
    let documented = code_map(&read(&root().join("ARCHITECTURE.md")));
    assert!(documented.len() > 10, "the code map of ARCHITECTURE.md has only {} rows", documented.len());
    let wrong = differences(&documented, &dependencies());
    assert!(wrong.is_empty(), "ARCHITECTURE.md and the crates differ:\n{}", wrong.join("\n"));
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The rows of the table under `## Code map`: the first column is the crate, the second one its dependencies.
fn code_map(text: &str) -> Map {
    let section = text.split("\n## ").find(|section| section.starts_with("Code map\n"));
    let rows = section.expect("there is a section Code map").lines().filter(|line| line.starts_with("| `"));
    let row = |line: &str| {
        let mut cells = line.split('|').skip(1).map(quoted);
        let name = cells.next().and_then(|names| names.into_iter().next());
        (name.expect("the first cell names a crate"), cells.next().expect("a second cell"))
    };
    rows.map(row).collect()
}

/// The words in backticks.
fn quoted(cell: &str) -> BTreeSet<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Every crate, with those of our crates that its programs and libraries depend on.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    crates().into_iter().map(|folder| manifest(&read(&folder.join("Cargo.toml")))).collect()
}

/// Name and dependencies of a crate, from its `Cargo.toml`: `[dependencies]` and `[build-dependencies]`, those of
/// single targets included.
fn manifest(text: &str) -> (String, BTreeSet<String>) {
    let manifest = DeTable::parse(text).expect("a manifest is TOML").into_inner();
    let name = table(&manifest, "package").and_then(|package| package.get("name")?.get_ref().as_str());
    let name = name.and_then(|name| name.strip_prefix(PREFIX)).expect("a package's name has our prefix");
    let targets = table(&manifest, "target").into_iter().flat_map(|targets| targets.values());
    let tables = targets.filter_map(|target| target.get_ref().as_table()).chain([&manifest]);
    let uses = tables
        .flat_map(|table_of| [table(table_of, "dependencies"), table(table_of, "build-dependencies")])
        .flatten()
        .flat_map(|dependencies| dependencies.keys())
        .filter_map(|package| package.get_ref().strip_prefix(PREFIX).map(str::to_owned));
    (name.to_owned(), uses.collect())
}

fn table<'t>(table: &'t DeTable<'_>, key: &str) -> Option<&'t DeTable<'t>> {
    table.get(key).and_then(|value| value.get_ref().as_table())
}

/// Returns the errors of the map, a line each.
fn differences(documented: &Map, found: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut above: BTreeSet<&String> = BTreeSet::new();
    for (name, listed) in documented {
        for other in listed.iter().filter(|other| !above.contains(other)) {
            wrong.push(format!("`{name}` uses `{other}`, which is not above it in the list"));
        }
        match found.get(name) {
            Some(used) => wrong.extend(arrows(name, listed, used)),
            None => wrong.push(format!("`{name}` is listed, but there is no such crate")),
        }
        if !above.insert(name) {
            wrong.push(format!("`{name}` is listed twice"));
        }
    }
    let missing = found.keys().filter(|name| !above.contains(name));
    wrong.extend(missing.map(|name| format!("`{name}` is not listed")));
    wrong
}

fn arrows(name: &str, listed: &BTreeSet<String>, used: &BTreeSet<String>) -> Vec<String> {
    let new = used.difference(listed).map(|other| {
        format!("`{name}` uses `{other}`, which is new: list it, or remove it from {name}/Cargo.toml")
    });
    let gone = listed.difference(used).map(|other| {
        format!("`{name}` does not use `{other}` any more: remove it from the list, if that is meant")
    });
    new.chain(gone).collect()
}

const MAP: &str = "# A\n\n## Code map\n\nWords.\n\n| crate | uses | what |\n| --- | --- | --- |\n\
                   | `units` | | `time` |\n| `aqm` | `units` | laws |\n| `sim` | `aqm`, `units` | it |\n\n## B\n\n| `c` | |\n";

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn the_map_is_the_table_of_its_section() {
    let expected = [("units", set(&[])), ("aqm", set(&["units"])), ("sim", set(&["aqm", "units"]))];
    assert_eq!(code_map(MAP), expected.map(|(name, uses)| (name.to_owned(), uses)));
}

#[test]
fn a_manifest_names_what_programs_need_and_not_what_tests_need() {
    let text = "[package]\nname = 'cutline-sim'\n[dependencies]\ncutline-aqm.workspace = true\ntoml = '1'\n\
                [dev-dependencies]\ncutline-testbed.workspace = true\n[build-dependencies]\ncutline-units = '1'\n\
                [target.'cfg(unix)'.dependencies]\ncutline-sys = { path = '../sys' }\n";
    assert_eq!(manifest(text), ("sim".to_owned(), set(&["aqm", "sys", "units"])));
}

#[test]
fn every_difference_is_named() {
    let mut found: BTreeMap<_, _> = code_map(MAP).into_iter().collect();
    assert_eq!(differences(&code_map(MAP), &found), Vec::<String>::new());
    found.insert("aqm".to_owned(), set(&["sim", "units"]));
    found.insert("sim".to_owned(), set(&["units"]));
    found.insert("lab".to_owned(), set(&[]));
    found.remove("units");
    let upside_down: Map = code_map(MAP).into_iter().rev().collect();
    assert_eq!(
        differences(&upside_down, &found),
        [
            "`sim` uses `aqm`, which is not above it in the list",
            "`sim` uses `units`, which is not above it in the list",
            "`sim` does not use `aqm` any more: remove it from the list, if that is meant",
            "`aqm` uses `units`, which is not above it in the list",
            "`aqm` uses `sim`, which is new: list it, or remove it from aqm/Cargo.toml",
            "`units` is listed, but there is no such crate",
            "`lab` is not listed",
        ]
    );
}
