//! Files that the user names for a result. None that exists is replaced unless the user says so.

use crate::exit::Failure;
use cutline_text::Printable;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// An open file, and its path for messages.
pub struct OutputFile {
    path: PathBuf,
    file: File,
}

impl OutputFile {
    /// Creates a file, before the work whose result goes into it, so that errors are reported early. A file with contents is replaced
    /// only with `force`; an empty one is what work that failed has left.
    ///
    /// # Errors
    /// When the file has contents and `force` is not given, or the file cannot be created.
    pub fn create(path: &Path, force: bool) -> Result<Self, Failure> {
        let shown = Printable(path.display());
        let cannot = |error: std::io::Error| Failure::Failed(format!("{shown}: cannot be written: {error}"));
        let file = OpenOptions::new().write(true).create(true).truncate(force).open(path).map_err(cannot)?;
        if file.metadata().map_err(cannot)?.len() > 0 {
            return Err(Failure::Failed(format!(
                "{shown} exists and is kept; --force replaces it, or choose another name"
            )));
        }
        Ok(Self { path: path.to_owned(), file })
    }

    /// As [`create`](Self::create), for a file that flent reads: flent decides by the name whether it is compressed.
    ///
    /// # Errors
    /// Also when the name does not end in .gz.
    pub fn for_flent(path: &Path, force: bool) -> Result<Self, Failure> {
        if path.extension().is_none_or(|extension| extension != "gz") {
            let (shown, name) = (Printable(path.display()), path.with_extension("flent.gz"));
            let name = Printable(name.display());
            return Err(Failure::Usage(format!("--flent {shown}: the name must end in .gz, such as {name}")));
        }
        Self::create(path, force)
    }

    /// The open file.
    pub const fn file(&self) -> &File {
        &self.file
    }

    /// Writes all of a result.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_all(self, bytes: &[u8]) -> Result<(), Failure> {
        (&self.file).write_all(bytes).map_err(|error| Failure::Failed(self.message(&error)))
    }

    /// What to say if the file cannot be written.
    pub fn message(&self, error: &dyn std::error::Error) -> String {
        format!("{}: cannot be written: {error}", Printable(self.path.display()))
    }
}
