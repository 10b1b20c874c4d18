//! The formats of a figure's file: SVG, and PNG and PDF made from it. The font for Latin, Greek and Cyrillic is embedded, so no font or
//! program of the system is needed. Other scripts are drawn with the fonts of the system. [`missing_scripts`] names those that none has.

use super::text;
use krilla_svg::{SurfaceExt as _, SvgSettings};
use resvg::usvg::fontdb::Database;
use resvg::{tiny_skia, usvg};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use unicode_script::UnicodeScript as _;

/// The format of a picture's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Scalable vector graphics, for pages.
    Svg,
    /// Pixels, twice as many as the SVG has in each direction.
    Png,
    /// Vector graphics with selectable text, for papers.
    Pdf,
}

/// Reason why an SVG document cannot be converted.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The document is not valid SVG.
    #[error("the SVG cannot be read: {0}")]
    Svg(#[from] usvg::Error),
    /// The picture would have no pixels, or too many for the memory.
    #[error("a picture of {width} by {height} pixels cannot be drawn")]
    Size {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
    },
    /// The encoder failed.
    #[error("the picture cannot be encoded: {0}")]
    Encode(String),
}

static EMBEDDED: LazyLock<Arc<Database>> = LazyLock::new(|| Arc::new(embedded()));

/// The embedded fonts and those of the system.
static ALL: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let mut fonts = embedded();
    fonts.load_system_fonts();
    fonts.set_sans_serif_family("Noto Sans");
    Arc::new(fonts)
});

fn embedded() -> Database {
    let mut fonts = Database::new();
    fonts.load_font_data(ttf_noto_sans::REGULAR.to_vec());
    fonts.load_font_data(ttf_noto_sans::BOLD.to_vec());
    fonts.set_sans_serif_family("Noto Sans");
    fonts
}

/// The fonts that a text needs. A text that the embedded font covers looks the same on every system.
fn fonts_for(text: &str) -> Arc<Database> {
    if text.chars().all(is_embedded) { EMBEDDED.clone() } else { ALL.clone() }
}

fn is_embedded(character: char) -> bool {
    character.is_whitespace() || character.is_control() || text::has_glyph(character)
}

/// The names of the scripts in a text of which no font of this system has all characters: in PNG and PDF these would be boxes.
pub fn missing_scripts(text: &str) -> Vec<&'static str> {
    missing_from(&ALL, text)
}

fn missing_from(fonts: &Database, text: &str) -> Vec<&'static str> {
    let others: BTreeSet<char> = text.chars().filter(|character| !is_embedded(*character)).collect();
    let missing = others.into_iter().filter(|character| !has_glyph(fonts, *character));
    let names: BTreeSet<&str> = missing.map(|character| character.script().full_name()).collect();
    names.into_iter().collect()
}

fn has_glyph(fonts: &Database, character: char) -> bool {
    let has = |data: &[u8], index| {
        ttf_parser::Face::parse(data, index).is_ok_and(|face| face.glyph_index(character).is_some())
    };
    fonts.faces().any(|face| fonts.with_face_data(face.id, has).unwrap_or(false))
}

impl Format {
    /// All of them, in the order in which a report names them.
    pub const ALL: [Self; 3] = [Self::Svg, Self::Png, Self::Pdf];

    /// Returns the extension of such files, without the dot.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Png => "png",
            Self::Pdf => "pdf",
        }
    }

    /// The format that a file's name ends with; `None` for another.
    pub fn of(file: &Path) -> Option<Self> {
        let extension = file.extension()?.to_str()?;
        Self::ALL.into_iter().find(|format| format.extension().eq_ignore_ascii_case(extension))
    }

    /// The file with a picture that is given as an SVG document.
    ///
    /// # Errors
    /// When the document is not valid SVG, or the size of the picture is not drawable.
    pub fn encode(self, svg: String) -> Result<Vec<u8>, FormatError> {
        match self {
            Self::Svg => Ok(svg.into_bytes()),
            Self::Png => png(&svg, 2.0),
            Self::Pdf => pdf(&[svg]),
        }
    }

    /// The files with the pages of a picture, each of which is given as an SVG document: one file for PDF, else one for each page.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    pub fn encode_pages(self, pages: Vec<String>) -> Result<Vec<Vec<u8>>, FormatError> {
        match self {
            Self::Pdf => Ok(vec![pdf(&pages)?]),
            Self::Svg | Self::Png => pages.into_iter().map(|page| self.encode(page)).collect(),
        }
    }
}

fn tree(svg: &str) -> Result<usvg::Tree, usvg::Error> {
    let options =
        usvg::Options { fontdb: fonts_for(svg), font_family: "Noto Sans".into(), ..Default::default() };
    usvg::Tree::from_str(svg, &options)
}

/// Draws each SVG document as a page of its size, a point for each pixel.
fn pdf(pages: &[String]) -> Result<Vec<u8>, FormatError> {
    let mut document = krilla::Document::new();
    for svg in pages {
        let tree = tree(svg)?;
        let size = tree.size();
        let page = krilla::page::PageSettings::from_wh(size.width(), size.height());
        let area = krilla::geom::Size::from_wh(size.width(), size.height());
        let (page, area) = page.zip(area).ok_or(FormatError::Size { width: 0, height: 0 })?;
        let mut page = document.start_page_with(page);
        let mut surface = page.surface();
        let drawn = surface.draw_svg(&tree, area, SvgSettings::default());
        surface.finish();
        page.finish();
        drawn.ok_or_else(|| FormatError::Encode("a text or path has no outline".to_owned()))?;
    }
    document.finish().map_err(|error| FormatError::Encode(format!("{error:?}")))
}

/// Draws an SVG document as PNG, `scale` times its own size.
///
/// # Errors
/// When the document is not valid SVG, or the size of the picture is not drawable.
pub fn png(svg: &str, scale: f32) -> Result<Vec<u8>, FormatError> {
    let tree = tree(svg)?;
    let (width, height) = (pixels(tree.size().width(), scale), pixels(tree.size().height(), scale));
    let mut picture = tiny_skia::Pixmap::new(width, height).ok_or(FormatError::Size { width, height })?;
    picture.fill(tiny_skia::Color::WHITE);
    resvg::render(&tree, tiny_skia::Transform::from_scale(scale, scale), &mut picture.as_mut());
    picture.encode_png().map_err(|error| FormatError::Encode(error.to_string()))
}

fn pixels(length: f32, scale: f32) -> u32 {
    (length * scale).ceil() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_twice_the_size_of_the_svg() {
        let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"30\" height=\"20\"/>";
        let picture = png(svg, 2.0).unwrap();
        // The PNG header: signature of 8 bytes, length and name of the first chunk, width, height.
        assert_eq!(picture[16..24], [0, 0, 0, 60, 0, 0, 0, 40]);
    }

    #[test]
    fn a_page_has_the_size_of_the_svg_and_its_text() {
        let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"300\" height=\"200\"><text x=\"10\" y=\"50\">Hint</text></svg>";
        let page = pdf(&[svg.to_owned()]).unwrap();
        let text = String::from_utf8_lossy(&page);
        assert!(text.starts_with("%PDF-1."));
        assert!(text.contains("/MediaBox[0 0 300 200]"), "{text}");
        assert!(text.contains("NotoSans"), "the font is embedded");
        assert_eq!(pdf(&[svg.to_owned()]).unwrap(), page, "the same figure is the same file");
        let three = Format::Pdf.encode_pages(vec![svg.to_owned(); 3]).unwrap();
        assert_eq!(three.len(), 1);
        assert_eq!(String::from_utf8_lossy(&three[0]).matches("/MediaBox").count(), 3, "a page for each");
        assert_eq!(Format::Svg.encode_pages(vec![svg.to_owned(); 3]).unwrap().len(), 3, "a file for each");
    }

    /// Scripts of the embedded font need no other font, and scripts that no font has are named.
    #[test]
    fn scripts_without_a_font_are_named() {
        let embedded = embedded();
        assert!(missing_from(&embedded, "Verzögerung, Задержка, Καθυστέρηση, 5 µs − 3 ≤ 9").is_empty());
        assert_eq!(missing_from(&embedded, "遅延 תור"), ["Han", "Hebrew"]);
        // Not a character by definition; fonts of icons have characters for private use.
        let none = "\u{fdd0}";
        assert_eq!(missing_scripts(none).len(), 1, "a character that no font has");
    }

    #[test]
    fn the_format_is_that_of_the_name() {
        assert_eq!(Format::of(Path::new("a/figure.PDF")), Some(Format::Pdf));
        assert_eq!(Format::of(Path::new("figure.svg")), Some(Format::Svg));
        assert_eq!(Format::of(Path::new("figure")), None);
        assert_eq!(Format::of(Path::new("figure.jpg")), None);
    }

    #[test]
    fn an_invalid_svg_or_an_empty_area_is_refused() {
        assert!(matches!(png("<html/>", 1.0), Err(FormatError::Svg(_))));
        let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"30\" height=\"20\"/>";
        assert!(matches!(png(svg, 0.0), Err(FormatError::Size { width: 0, height: 0 })));
    }
}
