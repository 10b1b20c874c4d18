//! Puts the files of `experiments/` into the program: a table of their names and texts.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=experiments");
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("experiments");
    let mut table = "const FILES: &[(&str, &str)] = &[\n".to_owned();
    for path in files(&root) {
        println!("cargo::rerun-if-changed={}", path.display());
        let name =
            path.strip_prefix(&root).expect("it is there").to_str().expect("names of experiments are ASCII");
        let path = path.to_str().expect("the folder of this crate has a name in UTF-8");
        writeln!(table, "    ({name:?}, include_str!({path:?})),").expect("a string takes everything");
    }
    table += "];\n";
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it")).join("experiments.rs");
    fs::write(&out, table).unwrap_or_else(|error| panic!("{}: {error}", out.display()));
}

/// The TOML files directly in the folders of a folder, in the order of their names.
fn files(root: &Path) -> Vec<PathBuf> {
    let list = |folder: &Path| {
        let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        entries.map(|entry| entry.expect("the folder can be read").path()).collect::<Vec<_>>()
    };
    let folders = list(root).into_iter().filter(|path| path.is_dir());
    let mut files: Vec<PathBuf> = folders.flat_map(|folder| list(&folder)).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "toml"));
    files.sort();
    files
}
