//! The repository, for tests that read its files.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the folder of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().expect("the repository is there")
}

/// Returns the folders of all crates of the workspace, sorted: those right in `crates`, and those in its folders.
pub fn crates() -> Vec<PathBuf> {
    let is_crate = |path: &PathBuf| path.join("Cargo.toml").exists();
    let (mut found, groups): (Vec<_>, Vec<_>) =
        entries(&root().join("crates")).into_iter().partition(is_crate);
    found.extend(groups.iter().flat_map(|group| entries(group)).filter(is_crate));
    found.sort();
    found
}

/// Returns the folder of a crate, such as `aqm`.
pub fn folder(name: &str) -> PathBuf {
    let is_its = |path: &PathBuf| path.file_name().is_some_and(|its| its == name);
    crates().into_iter().find(is_its).unwrap_or_else(|| panic!("there is no crate {name}"))
}

/// Returns the folder in `crates` that a crate lies in, such as `core` for `aqm`; the crate's own name if it lies in none.
pub fn group(name: &str) -> String {
    let path = folder(name);
    let parts = path.strip_prefix(root().join("crates")).expect("crates lie there");
    parts.iter().next().expect("the crate lies below").to_string_lossy().into_owned()
}

/// Returns the Rust files in a folder and the folders below it, sorted, each with its text.
pub fn rust_files(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut folders = vec![folder.to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in entries(&folder) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a source file is text");
                files.push((path, text));
            }
        }
    }
    files.sort();
    files
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.expect("the folder can be read").path()).collect()
}
