//! Colours by their role, and the outlines that are drawn with them.

use std::fmt::Write as _;

/// Okabe and Ito's palette ("Color universal design", 2008): told apart by all kinds of colour vision. Its black
/// is left to text and the paper's values, its yellow comes last, being pale on paper.
pub(crate) const PALETTE: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#b8ab00"];

/// The same hues where the ground is dark.
const PALETTE_DARK: [&str; 7] = ["#4aa8e0", "#ff8a3d", "#2fc79b", "#e39cc4", "#f2b83b", "#8fd0f7", "#f0e442"];

/// Where a figure will be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// A file of its own: fixed colours on white.
    Paper,
    /// Inside an HTML page that sets the custom properties of [`Theme::css`], for light and dark.
    Page,
}

/// A colour by its role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    Paper,
    Text,
    Muted,
    Axis,
    Grid,
    Series(usize),
    None,
}

/// The outline of a shape.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stroke {
    pub(crate) ink: Ink,
    pub(crate) width: f64,
    pub(crate) dash: &'static str,
}

/// The names of the neutral colours, with their values on light and on dark ground.
const NEUTRALS: [(Ink, &str, &str, &str); 5] = [
    (Ink::Paper, "paper", "#ffffff", "#16191d"),
    (Ink::Text, "text", "#1d2733", "#e8ecf0"),
    (Ink::Muted, "muted", "#566270", "#a5b0bc"),
    (Ink::Axis, "axis", "#8a96a3", "#6f7b88"),
    (Ink::Grid, "grid", "#e6eaee", "#2c333b"),
];

impl Theme {
    /// The custom properties that a page needs for [`Theme::Page`], for light or dark ground.
    pub fn css(dark: bool) -> String {
        let mut css = String::new();
        for (_, name, light, night) in NEUTRALS {
            let _ = write!(css, "--c-{name}:{};", if dark { night } else { light });
        }
        for (i, colour) in (if dark { PALETTE_DARK } else { PALETTE }).iter().enumerate() {
            let _ = write!(css, "--c-s{i}:{colour};");
        }
        css
    }

    /// The colour as SVG has it.
    pub(crate) fn paint(self, ink: Ink) -> String {
        let (name, light) = match ink {
            Ink::None => return "none".to_owned(),
            Ink::Series(slot) => {
                let slot = slot % PALETTE.len();
                (format!("s{slot}"), PALETTE[slot])
            }
            neutral => {
                let found = NEUTRALS.iter().find(|(ink, ..)| *ink == neutral);
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
    pub(crate) const NONE: Self = Self::solid(Ink::None, 0.0);

    pub(crate) const fn solid(ink: Ink, width: f64) -> Self {
        Self { ink, width, dash: "" }
    }
}
