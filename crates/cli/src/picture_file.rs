//! Writing of pictures that the user asks for.

use crate::exit::Failure;
use cutline_text::Printable;
use std::io::Write as _;
use std::path::Path;

/// The failure for a name that does not end with a picture's format.
pub fn unknown_format(option: &str, file: &Path) -> Failure {
    let file = Printable(file.display());
    Failure::Usage(format!("{option} {file}: expected a name that ends with .svg, .png or .pdf"))
}

/// Writes a picture. A file that exists is replaced only with `force`.
///
/// # Errors
/// When the file exists or cannot be written.
pub fn write(file: &Path, bytes: &[u8], force: bool) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| {
        let exists = error.kind() == std::io::ErrorKind::AlreadyExists;
        let remedy = if exists { "; --force replaces it, another name keeps it" } else { "" };
        Failure::Failed(format!("{} cannot be written: {error}{remedy}", Printable(file.display())))
    };
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(force).truncate(force).create_new(!force);
    options.open(file).and_then(|mut open| open.write_all(bytes)).map_err(cannot)
}
