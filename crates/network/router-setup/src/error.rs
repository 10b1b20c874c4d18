//! Reasons why a setup cannot be made or taken back.

use cutline_files::CreateError;
use cutline_text::Printable;
use std::io::{self, Write as _};
use std::path::Path;

/// Reason why a setup cannot be made or taken back.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// An option is not allowed. The message names it as `cutline router setup` does.
    #[error("{0}")]
    Invalid(String),
    /// The host does not allow the setup, or a command has failed.
    #[error("{0}")]
    Failed(String),
}

impl SetupError {
    /// Returns the same error with another line.
    #[must_use]
    pub fn with(self, line: &str) -> Self {
        match self {
            Self::Invalid(message) => Self::Invalid(format!("{message}\n{line}")),
            Self::Failed(message) => Self::Failed(format!("{message}\n{line}")),
        }
    }
}

/// Writes a file, but not through a symbolic link: a masked unit is a link to /dev/null.
pub fn write(path: &Path, text: &str) -> Result<(), SetupError> {
    let written = |error: io::Error| {
        SetupError::Failed(format!("{}: cannot be written: {error}", Printable(path.display())))
    };
    create(path)?.write_all(text.as_bytes()).map_err(written)
}

/// Creates a file, or replaces it.
pub fn create(path: &Path) -> Result<std::fs::File, SetupError> {
    let shown = Printable(path.display());
    cutline_files::create(path, cutline_files::Existing::Replace).map_err(|error| {
        SetupError::Failed(match error {
            CreateError::SymbolicLink => {
                format!("{shown} is a symbolic link, and nothing is written through it: remove it")
            }
            CreateError::Exists => format!("{shown} exists"),
            CreateError::System(error) => format!("{shown}: cannot be written: {error}"),
        })
    })
}

/// Returns the output of a program for a message: its lines, each made harmless for a terminal.
pub fn printable_lines(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let lines: Vec<String> = text.trim().lines().map(|line| Printable(line).to_string()).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_masked_unit_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let unit = folder.path().join("cutline.service");
        std::os::unix::fs::symlink("/dev/null", &unit).unwrap();
        let message = write(&unit, "[Unit]\n").unwrap_err().to_string();
        assert!(message.contains("cutline.service is a symbolic link"), "{message}");
        assert_eq!(std::fs::read_link(&unit).unwrap(), Path::new("/dev/null"));
        // What an earlier run has written is replaced.
        let script = folder.path().join("undo.sh");
        for text in ["first, and longer", "second"] {
            write(&script, text).unwrap();
            assert_eq!(std::fs::read_to_string(&script).unwrap(), text);
        }
    }
}
