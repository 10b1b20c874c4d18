//! Converts SVG to PNG. The font is embedded, so no font or program of the system is needed.

use resvg::{tiny_skia, usvg};
use std::sync::{Arc, LazyLock};

/// Why an SVG document cannot be drawn as PNG.
#[derive(Debug, thiserror::Error)]
pub enum RasterError {
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
    #[error("the picture cannot be encoded as PNG: {0}")]
    Encode(String),
}

static FONTS: LazyLock<Arc<usvg::fontdb::Database>> = LazyLock::new(|| {
    let mut fonts = usvg::fontdb::Database::new();
    fonts.load_font_data(ttf_noto_sans::REGULAR.to_vec());
    fonts.load_font_data(ttf_noto_sans::BOLD.to_vec());
    fonts.set_sans_serif_family("Noto Sans");
    Arc::new(fonts)
});

/// Draws an SVG document as PNG, `scale` times its own size.
///
/// # Errors
/// When the document is not valid SVG, or the size of the picture is not drawable.
pub fn png(svg: &str, scale: f32) -> Result<Vec<u8>, RasterError> {
    let options =
        usvg::Options { fontdb: FONTS.clone(), font_family: "Noto Sans".into(), ..Default::default() };
    let tree = usvg::Tree::from_str(svg, &options)?;
    let (width, height) = (pixels(tree.size().width(), scale), pixels(tree.size().height(), scale));
    let mut picture = tiny_skia::Pixmap::new(width, height).ok_or(RasterError::Size { width, height })?;
    picture.fill(tiny_skia::Color::WHITE);
    resvg::render(&tree, tiny_skia::Transform::from_scale(scale, scale), &mut picture.as_mut());
    picture.encode_png().map_err(|error| RasterError::Encode(error.to_string()))
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
    fn what_is_no_svg_or_has_no_area_is_refused() {
        assert!(matches!(png("<html/>", 1.0), Err(RasterError::Svg(_))));
        let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"30\" height=\"20\"/>";
        assert!(matches!(png(svg, 0.0), Err(RasterError::Size { width: 0, height: 0 })));
    }
}
