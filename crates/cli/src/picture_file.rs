//! Format of a picture, by the name of its file.

use crate::exit::Failure;
use crate::message;
use cutline_report::chart::{Figure, Format, Theme, missing_scripts};
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

/// The texts of figures.
pub fn texts(figures: &[Figure]) -> String {
    figures.iter().map(|figure| figure.svg("", Theme::Paper)).collect()
}

/// Warns of scripts in a text of figures that no font of this machine has. Their characters are boxes in PNG and PDF.
pub fn warn_of_scripts(text: &str) {
    let missing = missing_scripts(text);
    if !missing.is_empty() {
        message::print(&format!(
            "warning: no font of this machine has the script {}, so its characters are boxes: install one, such as Noto, or write an \
             .svg, which the viewer's fonts draw",
            missing.join(" and ")
        ));
    }
}
