//! Files that the user names for a result. An existing file is replaced only on request, and none is a symbolic link.

use crate::exit::Failure;
use cutline_files::{CreateError, Existing};
use cutline_text::Printable;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// An open file, and its path for messages.
pub struct OutputFile {
    path: PathBuf,
    file: File,
}

impl OutputFile {
    /// Creates a file, before the work whose result goes into it, so that errors are reported early. A file with contents is replaced
    /// only with `force`; an empty one is left by failed work.
    ///
    /// # Errors
    /// When the file has contents and `force` is not given, or the file cannot be created.
    pub fn create(path: &Path, force: bool) -> Result<Self, Failure> {
        let shown = Printable(path.display());
        let existing = if force { Existing::Replace } else { Existing::Keep };
        let file = cutline_files::create(path, existing).map_err(|error| {
            Failure::Failed(match error {
                CreateError::Exists => {
                    format!("{shown} exists and is kept; --force replaces it, or choose another name")
                }
                CreateError::SymbolicLink => {
                    format!("{shown} is a symbolic link, and nothing is written through it: remove it, or name the file itself")
                }
                CreateError::System(error) => format!("{shown}: cannot be written: {error}"),
            })
        })?;
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

    /// Removes the file again, if nothing is in it.
    pub fn discard(self) {
        if self.file.metadata().is_ok_and(|about| about.is_file() && about.len() == 0) {
            // A file that cannot be removed is empty, and does no harm.
            let _ = std::fs::remove_file(&self.path);
        }
    }

    /// The open file, without its path.
    pub fn into_file(self) -> File {
        self.file
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

    /// Returns the message for a file that cannot be written.
    pub fn message(&self, error: &dyn std::error::Error) -> String {
        format!("{}: cannot be written: {error}", Printable(self.path.display()))
    }
}
