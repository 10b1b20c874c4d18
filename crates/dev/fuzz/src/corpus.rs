//! The inputs that a target starts from, and those that it failed with.

use crate::Target;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Folder in which `cargo test` and the fuzzer put failing inputs; Git ignores it.
const FAILURES: &str = "failures";
/// A corpus takes no inputs beyond these: it is a start for mutations, and every test run replays it.
const MOST_FILES: usize = 40;
const MOST_BYTES: usize = 32 << 10;
/// Words longer than this are more often noise than keys, bytes.
const LONGEST_WORD: usize = 40;

/// An input and the file that it comes from.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The file.
    pub path: PathBuf,
    /// Content of the input.
    pub bytes: Vec<u8>,
}

impl Target {
    /// The folder of the target's committed corpus.
    pub fn corpus_folder(&self) -> PathBuf {
        here().join("corpus").join(self.name)
    }

    /// The folder of inputs that this target has failed with.
    pub fn failures_folder(&self) -> PathBuf {
        here().join(FAILURES).join(self.name)
    }

    /// The committed corpus and the project's own files that serve as seeds, in the order of their names.
    ///
    /// # Errors
    /// When a file or folder cannot be read.
    pub fn corpus(&self) -> io::Result<Vec<Entry>> {
        let mut entries = read_folder(&self.corpus_folder(), "")?;
        for (folder, end) in self.seeds {
            entries.extend(read_folder(&here().join("../../..").join(folder), end)?);
        }
        Ok(entries)
    }

    /// Adds inputs to the committed corpus, the shortest first, while it is small, and returns how many.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub fn add_to_corpus(&self, mut inputs: Vec<Vec<u8>>) -> io::Result<usize> {
        let there = read_folder(&self.corpus_folder(), "")?;
        let mut bytes: usize = there.iter().map(|entry| entry.bytes.len()).sum();
        inputs.sort_by_key(Vec::len);
        let mut added = 0;
        for input in inputs {
            bytes += input.len();
            if there.len() + added >= MOST_FILES || bytes > MOST_BYTES {
                break;
            }
            write_by_digest(&self.corpus_folder(), &input)?;
            added += 1;
        }
        Ok(added)
    }

    /// Keeps an input that the target failed with, and returns its file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep_failure(&self, input: &[u8]) -> io::Result<PathBuf> {
        write_by_digest(&self.failures_folder(), input)
    }
}

/// Writes an input to a file that is named after it.
fn write_by_digest(folder: &Path, input: &[u8]) -> io::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let digest = Sha256::digest(input);
    let name = digest[..8].iter().fold(String::new(), |mut name, byte| {
        let _ = write!(name, "{byte:02x}");
        name
    });
    let path = folder.join(name);
    fs::write(&path, input)?;
    Ok(path)
}

/// The command that runs a target on a file again.
pub fn replay_command(target: &Target, path: &Path) -> String {
    format!("cargo run -p cutline-fuzz -- replay {} {}", target.name, path.display())
}

/// The words of a corpus: keys, numbers, units, names. A mutation puts them into a text.
pub fn words(corpus: &[Entry]) -> Vec<Vec<u8>> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.+:".contains(byte);
    let mut words = BTreeSet::new();
    for entry in corpus.iter().filter(|entry| std::str::from_utf8(&entry.bytes).is_ok()) {
        let found = entry.bytes.split(|byte| !is_word(byte));
        words.extend(found.filter(|word| (1..=LONGEST_WORD).contains(&word.len())).map(<[u8]>::to_vec));
    }
    words.into_iter().collect()
}

/// The folder of this crate. The build's own is wrong where the built files are used elsewhere.
fn here() -> PathBuf {
    env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from)
}

/// The files below a folder whose names end so.
fn read_folder(folder: &Path, end: &str) -> io::Result<Vec<Entry>> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    paths.sort();
    let mut entries = Vec::new();
    for path in paths {
        if path.is_dir() {
            entries.extend(read_folder(&path, end)?);
        } else if path.to_string_lossy().ends_with(end) {
            entries.push(Entry { bytes: fs::read(&path)?, path });
        }
    }
    Ok(entries)
}
