//! Colours by their role in a figure, and outlines.

use std::fmt::Write as _;

/// The number of colours of series.
pub(crate) const COLOURS: usize = 14;

/// The palette of Okabe and Ito (2008), which people with any kind of colour vision can distinguish. Its black is used
/// for text and the paper's values. Its yellow comes last because it is pale on white. Dark shades of the same hues follow for further
/// series, and differ from them in lightness.
pub(crate) const PALETTE: [&str; COLOURS] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#b8ab00", "#003a66", "#7a2f00",
    "#004d38", "#7d2f59", "#6e4b00", "#8c8c8c", "#4a4600",
];

/// The same hues for a dark background.
const PALETTE_DARK: [&str; COLOURS] = [
    "#4aa8e0", "#ff8a3d", "#2fc79b", "#e39cc4", "#f2b83b", "#8fd0f7", "#f0e442", "#2b78ad", "#c4591b",
    "#0f8f6c", "#b0558a", "#b07a10", "#c2c2c2", "#a39a17",
];

/// The palette for text on a light background: the same hues, dark enough to be read (WCAG 2.1, level AA). On a dark background, text has
/// the colours of the series.
const PALETTE_TEXT: [&str; COLOURS] = [
    "#0072b2", "#b04e00", "#00775a", "#a34a7d", "#8a5f00", "#1873a8", "#6f6700", "#003a66", "#7a2f00",
    "#004d38", "#7d2f59", "#6e4b00", "#6b6b6b", "#4a4600",
];

/// Theme of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// In a separate file: fixed colours on white.
    Paper,
    /// In an HTML page that defines the custom properties of [`Theme::css`], for light and dark backgrounds.
    Page,
}

/// The role of a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Background,
    Text,
    Muted,
    Axis,
    Grid,
    Series(usize),
    /// The name of a series, in its colour.
    SeriesText(usize),
    None,
}

/// The outline of a shape.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stroke {
    pub(crate) colour: Colour,
    pub(crate) width: f64,
    pub(crate) dash: &'static str,
}

/// The names of the neutral colours, with their values on a light and on a dark background.
const NEUTRALS: [(Colour, &str, &str, &str); 5] = [
    (Colour::Background, "paper", "#ffffff", "#16191d"),
    (Colour::Text, "text", "#1d2733", "#e8ecf0"),
    (Colour::Muted, "muted", "#566270", "#a5b0bc"),
    (Colour::Axis, "axis", "#8a96a3", "#6f7b88"),
    (Colour::Grid, "grid", "#e6eaee", "#2c333b"),
];

impl Theme {
    /// The custom properties that a page needs for [`Theme::Page`], for a light or a dark background.
    pub fn css(dark: bool) -> String {
        let mut css = String::new();
        for (_, name, on_light, on_dark) in NEUTRALS {
            let _ = write!(css, "--c-{name}:{};", if dark { on_dark } else { on_light });
        }
        let (series, text) = if dark { (PALETTE_DARK, PALETTE_DARK) } else { (PALETTE, PALETTE_TEXT) };
        for (i, (colour, text)) in series.iter().zip(text).enumerate() {
            let _ = write!(css, "--c-s{i}:{colour};--c-t{i}:{text};");
        }
        css
    }

    /// The colour as an SVG attribute value.
    pub(crate) fn paint(self, colour: Colour) -> String {
        let (name, light) = match colour {
            Colour::None => return "none".to_owned(),
            Colour::Series(slot) => {
                let slot = slot % PALETTE.len();
                (format!("s{slot}"), PALETTE[slot])
            }
            Colour::SeriesText(slot) => {
                let slot = slot % PALETTE.len();
                (format!("t{slot}"), PALETTE_TEXT[slot])
            }
            neutral => {
                let found = NEUTRALS.iter().find(|(colour, ..)| *colour == neutral);
                found.map_or((String::new(), "#000000"), |(_, name, light, _)| ((*name).to_owned(), light))
            }
        };
        match self {
            Self::Paper => light.to_owned(),
            Self::Page => format!("var(--c-{name},{light})"),
        }
    }
}

impl Stroke {
    pub(crate) const NONE: Self = Self::solid(Colour::None, 0.0);

    pub(crate) const fn solid(colour: Colour, width: f64) -> Self {
        Self { colour, width, dash: "" }
    }
}
