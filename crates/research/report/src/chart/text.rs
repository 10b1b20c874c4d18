//! The width of a text, which the layout needs so that nothing overlaps and nothing is cut off.
//!
//! Widths are those of Noto Sans. PNGs are drawn with it, and it is wider than most fonts that a browser uses instead.

use std::sync::LazyLock;
use ttf_parser::Face;

/// The font weight of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    Regular,
    Bold,
}

static REGULAR: LazyLock<Face<'static>> = LazyLock::new(|| face(ttf_noto_sans::REGULAR));
static BOLD: LazyLock<Face<'static>> = LazyLock::new(|| face(ttf_noto_sans::BOLD));

fn face(data: &'static [u8]) -> Face<'static> {
    Face::parse(data, 0).expect("the embedded font is a font")
}

/// The advance width of `text` at `size` px.
pub(crate) fn width(text: &str, size: f64, weight: Weight) -> f64 {
    let face = match weight {
        Weight::Regular => &*REGULAR,
        Weight::Bold => &*BOLD,
    };
    let em = f64::from(face.units_per_em());
    // A character that is missing in the font comes from another font. The widest characters take one em.
    let advance =
        |c| face.glyph_index(c).and_then(|glyph| face.glyph_hor_advance(glyph)).map_or(em, f64::from);
    text.chars().map(advance).sum::<f64>() * size / em
}

/// Returns true if the embedded font has this character.
pub(crate) fn has_glyph(character: char) -> bool {
    REGULAR.glyph_index(character).is_some()
}

/// Breaks `text` between words into lines of at most `limit` px. A longer word has a separate line.
pub(crate) fn wrap(text: &str, size: f64, weight: Weight, limit: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(&format!("{line} {word}"), size, weight) <= limit => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_equally_wide_and_bold_is_wider() {
        assert_eq!(width("1111", 12.0, Weight::Regular), width("8888", 12.0, Weight::Regular));
        assert!(width("Quality", 12.0, Weight::Bold) > width("Quality", 12.0, Weight::Regular));
        assert_eq!(width("", 12.0, Weight::Regular), 0.0);
    }

    #[test]
    fn lines_keep_the_limit_and_all_words() {
        let text = "Mean queuing delay over ten replications, with the 95 % confidence interval";
        let lines = wrap(text, 12.0, Weight::Regular, 150.0);
        assert!(lines.len() > 2);
        assert!(lines.iter().all(|line| width(line, 12.0, Weight::Regular) <= 150.0));
        assert_eq!(lines.join(" "), text);
    }
}
