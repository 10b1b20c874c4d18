//! Digests of stored files, by which damage is noticed.
//!
//! Parquet has a checksum for each page, but the format's library does not write it, and the rest of a file would have none.
//! So each file has a SHA-256 digest outside of it: those of the joined tables are in `summary.json`, those of a single run in
//! its [`RECORD`]. `summary.json` has its own digest as its last property.

use crate::error::StoreError;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// The file in a run's folder that has the digests of the others.
pub(crate) const RECORD: &str = "digests.json";

/// Digests of files by their names, 64 hex digits each.
pub(crate) type Digests = BTreeMap<String, String>;

/// Error of a file that is not as it was written.
pub(crate) const CHANGED: &str = "its content differs from the stored one (another SHA-256 digest)";
/// Error of a file without a digest, although the others have one.
pub(crate) const UNLISTED: &str = "no digest of it was stored";

/// The digest of these bytes.
pub(crate) fn digest(bytes: &[u8]) -> String {
    hex(Sha256::digest(bytes).as_slice())
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing into a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Passes bytes on and computes their digest.
pub(crate) struct Hashing<W> {
    inner: W,
    hasher: Sha256,
}

impl<W: Write> Hashing<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, hasher: Sha256::new() }
    }

    /// The digest of all that was written.
    pub(crate) fn digest(self) -> String {
        hex(self.hasher.finalize().as_slice())
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Reads a file of a folder, and checks that it is as it was stored.
pub(crate) fn read_verified(folder: &Path, file: &str, digests: &Digests) -> Result<Vec<u8>, StoreError> {
    let path = folder.join(file);
    let bytes = fs::read(&path).map_err(|error| StoreError::io(&path, error))?;
    match digests.get(file) {
        Some(stored) if *stored == digest(&bytes) => Ok(bytes),
        Some(_) => Err(StoreError::Damaged { path, problem: CHANGED }),
        None => Err(StoreError::Damaged { path, problem: UNLISTED }),
    }
}

/// Reads the digests of a run's files.
pub(crate) fn read_record(folder: &Path) -> Result<Digests, StoreError> {
    let path = folder.join(RECORD);
    let bytes = fs::read(&path).map_err(|error| StoreError::io(&path, error))?;
    serde_json::from_slice(&bytes).map_err(|error| StoreError::json(&path, error))
}

/// Writes the digests of a run's files.
pub(crate) fn write_record(folder: &Path, digests: &Digests) -> Result<(), StoreError> {
    let path = folder.join(RECORD);
    let mut text = serde_json::to_string_pretty(digests).map_err(|error| StoreError::json(&path, error))?;
    text.push('\n');
    let temporary = path.with_extension("json.tmp");
    cutline_files::write_whole(&path, &temporary, text.as_bytes())
        .map_err(|error| StoreError::io(&path, error))
}

/// The beginning of the line with a summary's own digest.
const PROPERTY: &str = "\n  \"digest\": \"";

/// Returns the text of a summary with the digest of its content in the property `digest`, whatever was there. A text without
/// that property, on a line of its own as [`Store`](crate::Store) writes it, stays as it is.
pub fn seal(text: &str) -> String {
    let Some((head, rest)) = text.rfind(PROPERTY).map(|at| text.split_at(at + PROPERTY.len())) else {
        return text.to_owned();
    };
    let tail = rest.find('"').map_or("", |end| &rest[end..]);
    format!("{head}{}{tail}", digest(format!("{head}{tail}").as_bytes()))
}

/// Returns whether a summary's text has this digest.
pub(crate) fn is_sealed(text: &str, stored: &str) -> bool {
    let Some(at) = text.rfind(PROPERTY) else { return false };
    let (head, rest) = text.split_at(at + PROPERTY.len());
    rest.strip_prefix(stored).is_some_and(|tail| digest(format!("{head}{tail}").as_bytes()) == stored)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_sha256sum() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest(b"abc"), expected);
        let mut hashing = Hashing::new(Vec::new());
        hashing.write_all(b"a").unwrap();
        hashing.write_all(b"bc").unwrap();
        assert_eq!(hashing.inner, b"abc");
        assert_eq!(hashing.digest(), expected);
    }

    #[test]
    fn a_sealed_text_cannot_be_changed() {
        // The scenario of a summary may have such a property in its text.
        let text = "{\n  \"scenario\": \"\\n  \\\"digest\\\": \\\"\",\n  \"digest\": \"\"\n}\n";
        let sealed = seal(text);
        let stored = &sealed[sealed.len() - 67..sealed.len() - 4];
        assert!(!is_sealed(&sealed, stored), "one digit is missing");
        let stored = &sealed[sealed.len() - 68..sealed.len() - 4];
        assert!(is_sealed(&sealed, stored), "{sealed}");
        assert!(!is_sealed(&sealed.replace("scenario", "scenaria"), stored));
        assert!(!is_sealed(text, stored));
    }
}
