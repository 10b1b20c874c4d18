//! The format of a picture that the user asks for, by the name of its file.

use crate::exit::Failure;
use cutline_report::chart::Format;
use cutline_text::Printable;
use std::path::Path;

/// Returns the format of the file that `option` names.
///
/// # Errors
/// When the name does not end with a picture's format.
pub fn format(option: &str, file: &Path) -> Result<Format, Failure> {
    Format::of(file).ok_or_else(|| {
        let file = Printable(file.display());
        Failure::Usage(format!("{option} {file}: expected a name that ends with .svg, .png or .pdf"))
    })
}
