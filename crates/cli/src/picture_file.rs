//! Files of pictures: the format by the name, and a figure in a new file.

use crate::exit::Failure;
use crate::message;
use crate::output_file::OutputFile;
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

/// A new file for a figure.
pub struct PictureFile {
    file: OutputFile,
    format: Format,
}

impl PictureFile {
    /// Creates the file that the option `--plot` names, if it is given. A file that exists is replaced only with `force`.
    pub fn create(plot: Option<&Path>, force: bool) -> Result<Option<Self>, Failure> {
        let Some(path) = plot else { return Ok(None) };
        let format = format("--plot", path)?;
        Ok(Some(Self { file: OutputFile::create(path, force)?, format }))
    }

    /// Draws a figure, whose ids in the document begin with `id`, and closes the file.
    pub fn draw(self, id: &str, figure: &Figure) -> Result<(), Failure> {
        if self.format != Format::Svg {
            warn_of_scripts(&texts(std::slice::from_ref(figure)));
        }
        let drawn = figure.file(id, self.format);
        let drawn =
            drawn.map_err(|error| Failure::Failed(format!("the picture cannot be drawn: {error}")))?;
        self.file.write_all(&drawn)
    }
}

/// The texts of figures.
pub fn texts(figures: &[Figure]) -> String {
    figures.iter().map(|figure| figure.svg("", Theme::Paper)).collect()
}

/// Warns of scripts in a text of figures that no font of this machine has. Their characters are boxes in PNG and PDF.
pub fn warn_of_scripts(text: &str) {
    warn_of_missing(&missing_scripts(text));
}

/// Warns of scripts that no font of this machine has.
pub fn warn_of_missing(missing: &[&str]) {
    if !missing.is_empty() {
        message::print(&format!(
            "warning: no font of this machine has the script {}, so its characters are boxes: install one, such as Noto, or write an \
             .svg, which the viewer's fonts draw",
            missing.join(" and ")
        ));
    }
}
