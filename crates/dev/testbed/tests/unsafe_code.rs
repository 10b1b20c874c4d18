//! `unsafe` code is in the crates `sys`, `ffi` and `preload` alone: calls of the kernel, pointers of C, and functions in front
//! of libc's.
//!
//! The workspace's lints deny it everywhere, so a file with `unsafe` code must lift the lint by its name, `unsafe_code`.

use cutline_testbed::repository::{crates, folder, root, rust_files};
use std::fs;
use std::path::PathBuf;

/// The crates that may.
const ALLOWED: [&str; 3] = ["sys", "ffi", "preload"];
/// Files elsewhere that may: allocators of tests, which count and pass on.
const EXCEPTIONS: [&str; 2] = ["aqm/tests/no_allocation.rs", "sim/tests/memory.rs"];

#[test]
fn no_other_crate_lifts_the_lint() {
    let lifts = |text: &str| {
        text.lines().any(|line| line.trim_start().starts_with('#') && line.contains("unsafe_code"))
    };
    let files = rust_files(&root().join("crates"));
    let mut elsewhere: Vec<PathBuf> =
        files.into_iter().filter(|(_, text)| lifts(text)).map(|(path, _)| path).collect();
    assert!(elsewhere.iter().any(|path| path.starts_with(folder("sys"))), "the search finds what there is");
    let allowed = ALLOWED.map(folder);
    for folder in &allowed {
        assert!(elsewhere.iter().any(|path| path.starts_with(folder)), "{} needs no leave", folder.display());
    }
    let is_allowed = |path: &PathBuf| allowed.iter().any(|folder| path.starts_with(folder));
    elsewhere.retain(|path| !is_allowed(path) && !EXCEPTIONS.iter().any(|file| path.ends_with(file)));
    assert!(elsewhere.is_empty(), "unsafe code belongs into {ALLOWED:?}: {elsewhere:?}");
}

#[test]
fn every_crate_has_the_workspace_s_lints() {
    for folder in crates() {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        assert!(manifest.contains("[lints]\nworkspace = true"), "{}", folder.display());
    }
    let workspace = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(workspace.contains("\nunsafe_code = \"deny\"\n"));
}
