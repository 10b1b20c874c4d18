//! The folder of one experiment's results: one Parquet file for each table, and `summary.json`.

use crate::column::Row;
use crate::digest::{self, CHANGED, Digests, UNLISTED, is_sealed, seal};
use crate::error::StoreError;
use crate::rows::{FlowRow, TimingRow};
use crate::summary::Summary;
use crate::table::{parse_table, temporary};
use crate::version::SCHEMA_VERSION;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The file of the summary.
pub(crate) const SUMMARY: &str = "summary.json";
/// The end of a table's name until the summary that describes it is stored.
const NEW: &str = ".new";

/// The results of an experiment, for reading. [`RunStore`](crate::RunStore) writes them.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
}

impl Store {
    /// The folder `root`.
    pub fn open(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns a table, after checking that its digest is the one in the summary.
    ///
    /// # Errors
    /// When it does not exist or is damaged.
    pub fn read<R: Row>(&self) -> Result<Vec<R>, StoreError> {
        self.read_as::<R, _>(parse_table)
    }

    /// Reads the file of a table, checks its digest, and returns the result of `parse` for its path and content.
    pub(crate) fn read_as<R: Row, T>(
        &self,
        parse: impl Fn(&Path, Vec<u8>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut digests = self.digests()?;
        loop {
            let bytes = self.bytes_of(R::FILE, &digests);
            match bytes.and_then(|bytes| parse(&self.root.join(R::FILE), bytes)) {
                Err(error) if error.is_damage() => {
                    // Another process may have stored other tables meanwhile.
                    let now = self.digests()?;
                    if now == digests {
                        return Err(error);
                    }
                    digests = now;
                }
                result => return result,
            }
        }
    }

    /// Returns a table that has its digest among these.
    pub(crate) fn read_with<R: Row>(&self, digests: &Digests) -> Result<Vec<R>, StoreError> {
        parse_table(&self.root.join(R::FILE), self.bytes_of(R::FILE, digests)?)
    }

    /// Checks that a table has its digest among these.
    pub(crate) fn verify<R: Row>(&self, digests: &Digests) -> Result<(), StoreError> {
        self.bytes_of(R::FILE, digests).map(drop)
    }

    /// The content of a table that has its digest among these.
    fn bytes_of(&self, file: &str, digests: &Digests) -> Result<Vec<u8>, StoreError> {
        let path = self.root.join(file);
        let missing = |path: &Path| Err(StoreError::io(path, io::ErrorKind::NotFound.into()));
        let Some(stored) = digests.get(file) else {
            return if path.exists() {
                Err(StoreError::Damaged { path, problem: UNLISTED })
            } else {
                missing(&path)
            };
        };
        // In this order, because a new table is renamed to the other.
        for place in [&self.new_table(file), &path] {
            if let Some(bytes) = read_if_there(place)?.filter(|bytes| digest::digest(bytes) == *stored) {
                return Ok(bytes);
            }
        }
        if path.exists() {
            return Err(StoreError::Damaged { path, problem: CHANGED });
        }
        missing(&path)
    }

    /// The digests of the tables that the summary describes.
    fn digests(&self) -> Result<Digests, StoreError> {
        if self.has_summary() { Ok(self.read_any_summary()?.files) } else { Ok(Digests::new()) }
    }

    /// Returns the path of a table until the summary that describes it is stored.
    pub(crate) fn new_table(&self, file: &str) -> PathBuf {
        self.root.join(format!("{file}{NEW}"))
    }

    /// Gives the tables that the summary describes their names, and removes those that it does not. An operation that was interrupted
    /// while results were stored is completed or undone.
    pub(crate) fn settle_tables(&self, files: &[&str]) -> Result<(), StoreError> {
        let stored = self.load_summary().map(|(summary, _)| summary.files).unwrap_or_default();
        for file in files {
            let (path, new) = (self.root.join(file), self.new_table(file));
            remove_if_there(&temporary(&new))?;
            let Some(bytes) = read_if_there(&new)? else { continue };
            let done = if stored.get(*file) == Some(&digest::digest(&bytes)) {
                fs::rename(&new, &path)
            } else {
                fs::remove_file(&new)
            };
            done.map_err(|error| StoreError::io(&new, error))?;
        }
        Ok(())
    }

    /// The timing of the laboratory's runs; empty for simulations.
    ///
    /// # Errors
    /// When the table is damaged.
    pub fn read_timing(&self) -> Result<Vec<TimingRow>, StoreError> {
        if self.describes::<TimingRow>() { self.read() } else { Ok(Vec::new()) }
    }

    /// Returns whether the folder has tables. An experiment without a stored run has only a summary.
    pub fn has_tables(&self) -> bool {
        self.describes::<FlowRow>()
    }

    /// Returns whether there is a table, or the summary lists it.
    pub(crate) fn describes<R: Row>(&self) -> bool {
        let is_listed = || self.load_summary().is_ok_and(|(summary, _)| summary.files.contains_key(R::FILE));
        has_table::<R>(&self.root) || is_listed()
    }

    /// Returns whether the folder has a summary.
    pub fn has_summary(&self) -> bool {
        self.summary().exists()
    }

    /// Reads `summary.json`.
    ///
    /// # Errors
    /// When the summary does not exist or is damaged, or the tables have another version ([`SCHEMA_VERSION`]).
    pub fn read_summary(&self) -> Result<Summary, StoreError> {
        let summary = self.read_any_summary()?;
        if summary.schema != SCHEMA_VERSION {
            let (folder, found) = (self.root.clone(), summary.schema);
            return Err(StoreError::Schema { folder, found });
        }
        Ok(summary)
    }

    /// Reads `summary.json` for tables of any version.
    pub(crate) fn read_any_summary(&self) -> Result<Summary, StoreError> {
        let (summary, is_intact) = self.load_summary()?;
        if is_intact {
            return Ok(summary);
        }
        Err(StoreError::Damaged { path: self.summary(), problem: CHANGED })
    }

    /// Reads `summary.json`, and returns whether it is undamaged.
    pub(crate) fn load_summary(&self) -> Result<(Summary, bool), StoreError> {
        let path = self.summary();
        let text = fs::read_to_string(&path).map_err(|error| StoreError::io(&path, error))?;
        let summary: Summary = serde_json::from_str(&text).map_err(|error| StoreError::json(&path, error))?;
        let is_intact = is_sealed(&text, &summary.digest);
        Ok((summary, is_intact))
    }

    /// Writes `summary.json`. Returns the summary as it is there, with its digest.
    pub(crate) fn write_summary(&self, summary: &Summary) -> Result<Summary, StoreError> {
        let path = self.summary();
        let temporary = path.with_extension("json.tmp");
        let json = |error| StoreError::json(&path, error);
        let open = Summary { digest: String::new(), ..summary.clone() };
        let text = seal(&(serde_json::to_string_pretty(&open).map_err(json)? + "\n"));
        cutline_files::write_whole(&path, &temporary, text.as_bytes())
            .map_err(|error| StoreError::io(&path, error))?;
        serde_json::from_str(&text).map_err(json)
    }

    fn summary(&self) -> PathBuf {
        self.root.join(SUMMARY)
    }
}

/// The content of a file, if it exists.
fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::io(path, error)),
    }
}

/// Removes a file, if it exists.
pub(crate) fn remove_if_there(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::io(path, error)),
        _ => Ok(()),
    }
}

/// Returns whether a folder has this table.
pub(crate) fn has_table<R: Row>(folder: &Path) -> bool {
    folder.join(R::FILE).exists()
}
