//! Each crate is a package that can stand alone: the files that it includes lie in its folder, and so does its readme.
//! `make package` makes the packages and builds them.

use cutline_testbed::repository::{crates, root};
use std::fs;
use std::path::{Component, Path, PathBuf};
use toml::de::DeTable;

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// Returns the path of an `include_str!` in this line.
fn included(line: &str) -> Option<PathBuf> {
    let (_, rest) = line.split_once("include_str!(").or_else(|| line.split_once("include_bytes!("))?;
    // A path that begins at the manifest is not relative to the file.
    let quoted = rest.split('"').nth(if rest.contains("CARGO_MANIFEST_DIR") { 3 } else { 1 })?;
    Some(quoted.into())
}

/// Returns whether a relative path, from a folder so deep in its crate, leaves the crate.
fn leaves(path: &Path, mut depth: i32) -> bool {
    path.components().any(|part| {
        match part {
            Component::ParentDir => depth -= 1,
            Component::Normal(_) => depth += 1,
            _ => {}
        }
        depth < 0
    })
}

/// The files of integration tests that are in no program: neither modules of `tests/all.rs` nor programs of their own in `Cargo.toml`.
fn forgotten(files: &[String], all: &str, manifest: &str) -> Vec<String> {
    let is_in_a_program = |name: &&String| {
        let lines =
            [format!("mod {name};"), format!("path = \"tests/{name}.rs\""), format!("name = \"{name}\"")];
        all.lines().any(|line| line == lines[0])
            || manifest.lines().any(|line| lines[1..].contains(&line.to_owned()))
    };
    files.iter().filter(|name| !is_in_a_program(name)).cloned().collect()
}

/// A crate with several files of tests links them to one program, for which Cargo's search for them is turned off.
#[test]
fn every_file_of_tests_is_in_a_program() {
    for folder in crates() {
        let (tests, manifest) =
            (folder.join("tests"), fs::read_to_string(folder.join("Cargo.toml")).unwrap());
        let files = fs::read_dir(&tests).into_iter().flatten().flatten().map(|entry| entry.path());
        let is_rust =
            |path: &PathBuf| path.extension().is_some_and(|end| end == "rs") && !path.ends_with("all.rs");
        let names =
            files.filter(is_rust).map(|path| path.file_stem().unwrap().to_string_lossy().into_owned());
        let names: Vec<String> = names.collect();
        if names.len() > 1 {
            let all = fs::read_to_string(tests.join("all.rs")).unwrap_or_default();
            assert_eq!(forgotten(&names, &all, &manifest), Vec::<String>::new(), "{}", tests.display());
        }
    }
    let names = ["a", "b", "c"].map(str::to_owned);
    assert_eq!(forgotten(&names, "mod a;\n// mod c;\n", "[[test]]\nname = \"b\"\n"), ["c"]);
}

/// The root files of the targets of a manifest whose unit tests Cargo leaves out.
fn untested(manifest: &DeTable<'_>) -> Vec<String> {
    let target = |table: &DeTable<'_>, usual: &str| {
        let is_left_out = table.get("test").is_some_and(|test| test.get_ref().as_bool() == Some(false));
        let path = table.get("path").and_then(|path| path.get_ref().as_str());
        is_left_out.then(|| path.unwrap_or(usual).to_owned())
    };
    let library = manifest.get("lib").and_then(|library| library.get_ref().as_table());
    let programs = manifest.get("bin").and_then(|programs| programs.get_ref().as_array());
    let programs = programs.into_iter().flatten().filter_map(|program| program.get_ref().as_table());
    let programs = programs.filter_map(|program| target(program, "src/main.rs"));
    library.and_then(|library| target(library, "src/lib.rs")).into_iter().chain(programs).collect()
}

/// A target with `test = false` has no unit tests: they would never run. Modules of a library count, and those that a program shares with another
/// one, which has their tests, do not.
#[test]
fn no_unit_tests_are_left_out() {
    let mut seen = 0;
    for folder in crates() {
        let text = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        for root in untested(&DeTable::parse(&text).unwrap().into_inner()) {
            let mut files = vec![folder.join(&root)];
            if root == "src/lib.rs" {
                sources(&folder.join("src"), &mut files);
            }
            for file in files {
                let has_tests = fs::read_to_string(&file).unwrap().contains("#[cfg(test)]");
                assert!(!has_tests, "{} has tests that do not run: remove `test = false`", file.display());
            }
            seen += 1;
        }
    }
    assert!(seen > 5, "only {seen} targets are untested");
    let manifest = "[lib]\ntest = false\n[[bin]]\npath = 'a.rs'\n[[bin]]\npath = 'b.rs'\ntest = false\n";
    assert_eq!(untested(&DeTable::parse(manifest).unwrap().into_inner()), ["src/lib.rs", "b.rs"]);
}

/// Cargo builds macros with line tables for `cargo build --workspace`, of which they are a part, and without for `cargo test`, unless the profile says
/// which. All crates that use them would be built twice in `make test`.
#[test]
fn macros_are_built_once() {
    let mut seen = 0;
    let text = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let workspace = DeTable::parse(&text).unwrap().into_inner();
    let packages = ["profile", "dev", "package"]
        .iter()
        .try_fold(&workspace, |table, key| table.get(*key).and_then(|inner| inner.get_ref().as_table()))
        .expect("there are profiles of packages");
    for folder in crates() {
        let text = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let manifest = DeTable::parse(&text).unwrap().into_inner();
        let library = manifest.get("lib").and_then(|library| library.get_ref().as_table());
        if library.is_some_and(|library| library.contains_key("proc-macro")) {
            let package = manifest["package"].get_ref().as_table().unwrap();
            let name = package["name"].get_ref().as_str().unwrap();
            let profile = packages.get(name).and_then(|profile| profile.get_ref().as_table());
            let debug = profile.and_then(|profile| profile.get("debug")?.get_ref().as_bool());
            assert_eq!(debug, Some(false), "Cargo.toml: [profile.dev.package.{name}] has debug = false");
            seen += 1;
        }
    }
    assert!(seen > 0, "there are macros");
}

#[test]
fn included_files_lie_in_the_crate() {
    let mut seen = 0;
    for folder in crates() {
        let mut files = Vec::new();
        sources(&folder.join("src"), &mut files);
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
                let Some(path) = included(line) else { continue };
                let from_manifest = line.contains("CARGO_MANIFEST_DIR");
                let depth = if from_manifest {
                    0
                } else {
                    file.parent().unwrap().strip_prefix(&folder).unwrap().components().count() as i32
                };
                seen += 1;
                assert!(!leaves(&path, depth), "{}: {line}", file.display());
            }
        }
    }
    assert!(seen > 5, "only {seen} files are included anywhere");
}

#[test]
fn a_path_that_leaves_is_noticed() {
    let leaves = |line: &str, depth| leaves(&included(line).unwrap(), depth);
    assert!(leaves("include_str!(\"../../README.md\")", 1));
    assert!(!leaves("include_str!(\"../README.md\")", 1));
    assert!(leaves("include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/../../a\"))", 0));
    assert!(!leaves("include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/experiments/\", $($path),+))", 0));
}

#[test]
fn a_package_has_a_description() {
    for folder in crates() {
        let text = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let manifest = DeTable::parse(&text).unwrap().into_inner();
        let package = manifest["package"].get_ref().as_table().unwrap();
        let has = |key: &str| package.contains_key(key);
        assert!(has("description") && has("license"), "{}", folder.display());
        if has("readme") {
            assert!(has("keywords") && has("categories"), "{}", folder.display());
            let readme = fs::read_to_string(folder.join("README.md")).unwrap();
            assert!(readme.starts_with("# cutline-"), "{}", folder.display());
        }
    }
}
