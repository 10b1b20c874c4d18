//! The crates depend on each other as ARCHITECTURE.md says: the table and the picture of folders, and the code map.
//!
//! Dependencies of tests and benchmarks (`[dev-dependencies]`) are not in the map. The rules of the folders `foundation` and
//! `core` are checked in their sources, too.

use cutline_testbed::repository::{crates, folder, group, root, rust_files};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use toml::de::DeTable;

/// Prefix of the names of our packages; the rest is the crate's folder.
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

#[test]
fn folders_hold_the_crates_of_the_table() {
    let documented = folder_table(&read(&root().join("ARCHITECTURE.md")));
    let found: BTreeMap<String, String> =
        dependencies().into_keys().map(|name| (name.clone(), group(&name))).collect();
    let listed: BTreeSet<&String> = documented.iter().flat_map(|(_, crates)| crates).collect();
    assert_eq!(listed, found.keys().collect(), "the crates of the table of folders");
    for (folders, crates) in &documented {
        for name in crates {
            assert!(folders.contains(&found[name]), "`{name}` is in {}, not in {folders:?}", found[name]);
        }
    }
}

#[test]
fn folders_use_each_other_as_the_picture_shows() {
    let found = between_folders(&dependencies(), group);
    let mut pictured = picture(&read(&root().join("ARCHITECTURE.md")));
    // Nothing but tests uses it, and it may use everything.
    assert!(found.iter().all(|(_, used)| used != "dev"), "a program uses a crate of `dev`");
    let found: Arrows = found.into_iter().filter(|(user, _)| user != "dev").collect();
    assert_eq!(reduced(&found), pictured, "ARCHITECTURE.md's picture and the crates");
    pictured.insert(("foundation".to_owned(), "cli".to_owned()));
    assert_ne!(reduced(&found), pictured);
}

/// Paths lead from the repository, from `crates` (`core/aqm/src/pi.rs`), or begin with a crate (`aqm/src/pi.rs`). After such a path, the name of
/// a file beside it is enough (`codel.rs`).
#[test]
fn named_files_are_there() {
    let text = read(&root().join("ARCHITECTURE.md"));
    let crates = root().join("crates");
    let words = text.split('`').skip(1).step_by(2);
    let named = words.filter(|word| word.contains("/src/") && !word.contains("NAME"));
    let paths: Vec<&str> = named.collect();
    assert!(paths.len() > 50, "{}", paths.len());
    let is_there = |path: &&&str| {
        let in_crate = path.split_once('/').filter(|_| !path.starts_with("crates/"));
        root().join(path).exists()
            || crates.join(path).exists()
            || in_crate.is_some_and(|(name, rest)| has_crate(name) && folder(name).join(rest).exists())
    };
    let missing: Vec<&&str> = paths.iter().filter(|path| !is_there(path)).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md names files that do not exist: {missing:?}");
    let is_rust = |word: &str| Path::new(word).extension().is_some_and(|end| end == "rs");
    let short = |word: &&str| is_rust(word) && !word.contains("/src/") && !word.contains("NAME");
    let short: Vec<&str> = text.split('`').skip(1).step_by(2).filter(short).collect();
    assert!(short.len() > 50, "{}", short.len());
    let sources = rust_files(&crates);
    let is_a_file = |name: &str| sources.iter().any(|(path, _)| path.ends_with(name));
    let missing: Vec<&str> = short.into_iter().filter(|name| !is_a_file(name)).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md names files that do not exist: {missing:?}");
}

fn has_crate(name: &str) -> bool {
    crates().iter().any(|path| path.file_name().is_some_and(|its| its == name))
}

/// No clock, no IO, no threads. Clippy refuses clocks and sleeping in these folders as everywhere (`clippy.toml`); here no
/// crate may lift that.
#[test]
fn foundation_and_core_have_no_clock_no_input_or_output_and_no_threads() {
    let mut wrong = Vec::new();
    for folder in ["foundation", "core"] {
        let folder = root().join("crates").join(folder);
        for (path, text) in rust_files(&folder) {
            let is_test = path.file_stem().is_some_and(|name| name.to_string_lossy().ends_with("tests"));
            if !is_test && path.components().any(|part| part.as_os_str() == "src") {
                wrong.extend(outside_world(&text).map(|line| format!("{}: {line}", path.display())));
            }
        }
        let crates = crates().into_iter().filter(|path| path.starts_with(&folder));
        let lifted = crates.map(|path| path.join("clippy.toml")).filter(|path| path.exists());
        wrong.extend(lifted.map(|path| format!("{} lifts the rules of the folder", path.display())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Lines of code that reach outside of a program, or that permit it.
fn outside_world(text: &str) -> impl Iterator<Item = &str> {
    const MODULES: [&str; 6] = ["fs", "io", "thread", "process", "env", "os"];
    const NAMES: [&str; 9] = [
        "TcpStream",
        "TcpListener",
        "UdpSocket",
        "ToSocketAddrs",
        "println!",
        "print!",
        "eprintln!",
        "eprint!",
        "clippy::disallowed",
    ];
    let is_module = |line: &str| {
        let paths = line.match_indices("std::").map(|(at, std)| &line[at + std.len()..]);
        paths.flat_map(|path| path.strip_prefix('{').unwrap_or(path).split([',', '{', '}'])).any(|path| {
            let first = path.trim().split(|letter: char| !letter.is_alphanumeric() && letter != '_').next();
            first.is_some_and(|first| MODULES.contains(&first))
        })
    };
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.filter(move |line| is_module(line) || NAMES.iter().any(|name| line.contains(name)))
}

/// Pairs of folders, of which the first uses the second.
type Arrows = BTreeSet<(String, String)>;

/// The rows of the first table: folders, and the crates in them.
fn folder_table(text: &str) -> Vec<(BTreeSet<String>, BTreeSet<String>)> {
    let section = text.split("\n## ").next().expect("a text begins");
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.map(|line| {
        let mut cells = line.split('|').skip(1).map(quoted);
        (cells.next().expect("a cell of folders"), cells.next().expect("a cell of crates"))
    })
    .collect()
}

/// The arrows of the Mermaid picture.
fn picture(text: &str) -> Arrows {
    let lines = text
        .split("```mermaid\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .expect("a picture")
        .lines();
    let arrows = lines.filter_map(|line| line.trim().split_once(" --> "));
    arrows.map(|(user, used)| (user.to_owned(), used.to_owned())).collect()
}

/// The dependencies between folders.
fn between_folders(
    dependencies: &BTreeMap<String, BTreeSet<String>>,
    folder: impl Fn(&str) -> String,
) -> Arrows {
    let arrows = dependencies.iter().flat_map(|(user, used)| used.iter().map(move |used| (user, used)));
    let arrows = arrows.map(|(user, used)| (folder(user), folder(used)));
    arrows.filter(|(user, used)| user != used).collect()
}

/// The arrows without those that a longer way replaces. A circle leaves none of its arrows out.
fn reduced(arrows: &Arrows) -> Arrows {
    let is_replaced = |(user, used): &&(String, String)| {
        let next = arrows.iter().filter(|(from, to)| from == user && to != used);
        next.into_iter().any(|(_, next)| leads(arrows, next, used, &mut BTreeSet::from([user.clone()])))
    };
    arrows.iter().filter(|arrow| !is_replaced(arrow)).cloned().collect()
}

/// Returns whether arrows lead from one folder to another past folders that have not been visited.
fn leads(arrows: &Arrows, from: &str, to: &str, visited: &mut BTreeSet<String>) -> bool {
    if !visited.insert(from.to_owned()) {
        return false;
    }
    let mut next = arrows.iter().filter(|(user, _)| user == from);
    next.any(|(_, next)| next == to || leads(arrows, next, to, visited))
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
fn a_manifest_has_the_dependencies_of_programs_without_those_of_tests() {
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

#[test]
fn a_folder_uses_what_its_crates_use() {
    let found: BTreeMap<_, _> = code_map(MAP).into_iter().collect();
    let folder = |name: &str| if name == "units" { "low".to_owned() } else { name.to_owned() };
    let arrow = |user: &str, used: &str| (user.to_owned(), used.to_owned());
    let all = Arrows::from([arrow("aqm", "low"), arrow("sim", "aqm"), arrow("sim", "low")]);
    assert_eq!(between_folders(&found, folder), all);
    let expected = Arrows::from([arrow("aqm", "low"), arrow("sim", "aqm")]);
    assert_eq!(reduced(&all), expected);
    let text = "# A\n\n```mermaid\ngraph TD\n    sim --> aqm\n    aqm --> low\n```\n";
    assert_eq!(picture(text), expected);
}

#[test]
fn uses_of_the_outside_world_are_found_in_every_form() {
    let refused = "use std::{fs, mem};\nuse std::io::Read as _;\nlet now = std::thread::spawn;\nprintln!();\nuse std::net::UdpSocket;\n\
                   #[expect(clippy::disallowed_methods)]\nuse std::{collections::BTreeMap, process};\n";
    assert_eq!(outside_world(refused).count(), 7);
    let fine = "use std::{collections::BTreeMap, sync::Arc};\n// std::fs\nuse std::net::IpAddr;\nlet io = std::iter::empty();\n";
    assert_eq!(outside_world(fine).collect::<Vec<_>>(), Vec::<&str>::new());
}
