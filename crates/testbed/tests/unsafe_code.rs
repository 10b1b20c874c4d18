//! `unsafe` code is in the crates `sys`, `ffi` and `preload` alone: what calls the kernel, what takes C's pointers, and what stands
//! before libc's functions.
//!
//! The workspace's lints deny it everywhere, so a file with `unsafe` code must lift the lint by its name, `unsafe_code`.

use std::fs;
use std::path::{Path, PathBuf};

/// The crates that may.
const ALLOWED: [&str; 3] = ["sys", "ffi", "preload"];
/// A file elsewhere that may: a test's allocator, which counts and passes on.
const EXCEPTION: &str = "aqm/tests/no_allocation.rs";

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("it is one of the crates").to_owned()
}

/// Adds the Rust files in a folder and the folders below it.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

#[test]
fn no_other_crate_lifts_the_lint() {
    let mut files = Vec::new();
    collect(&crates(), &mut files);
    let lifts = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        text.lines().any(|line| line.trim_start().starts_with('#') && line.contains("unsafe_code"))
    };
    let mut elsewhere: Vec<&Path> =
        files.iter().filter(|path| lifts(path)).map(|path| path.strip_prefix(crates()).unwrap()).collect();
    assert!(elsewhere.iter().any(|path| path.starts_with("sys/src")), "the search finds what there is");
    for allowed in ALLOWED {
        assert!(elsewhere.iter().any(|path| path.starts_with(allowed)), "{allowed} needs no leave");
    }
    let is_allowed = |path: &Path| ALLOWED.iter().any(|allowed| path.starts_with(allowed));
    elsewhere.retain(|path| !is_allowed(path) && *path != Path::new(EXCEPTION));
    assert!(elsewhere.is_empty(), "unsafe code belongs into {ALLOWED:?}: {elsewhere:?}");
}

#[test]
fn every_crate_has_the_workspace_s_lints() {
    for entry in fs::read_dir(crates()).unwrap().map(Result::unwrap) {
        let manifest = fs::read_to_string(entry.path().join("Cargo.toml")).unwrap();
        assert!(manifest.contains("[lints]\nworkspace = true"), "{}", entry.path().display());
    }
    let workspace = fs::read_to_string(crates().join("../Cargo.toml")).unwrap();
    assert!(workspace.contains("\nunsafe_code = \"deny\"\n"));
}
