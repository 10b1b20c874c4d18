//! A small SVG writer: the handful of elements that charts need, colours by role.

use super::style::{PALETTE, PALETTE_DARK};
use super::text::Weight;
use crate::xml::escape;
use std::fmt::Write as _;

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

/// Where a text is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// The outline of a shape.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stroke {
    pub(crate) ink: Ink,
    pub(crate) width: f64,
    pub(crate) dash: &'static str,
}

/// How a text is set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Type {
    pub(crate) size: f64,
    pub(crate) weight: Weight,
    pub(crate) anchor: Anchor,
    pub(crate) ink: Ink,
    /// With a rim in the colour of the ground, for texts over marks.
    pub(crate) halo: bool,
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

    fn paint(self, ink: Ink) -> String {
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

impl Type {
    pub(crate) const fn regular(size: f64, ink: Ink) -> Self {
        Self { size, weight: Weight::Regular, anchor: Anchor::Start, ink, halo: false }
    }

    pub(crate) const fn anchored(self, anchor: Anchor) -> Self {
        Self { anchor, ..self }
    }

    pub(crate) const fn bold(self) -> Self {
        Self { weight: Weight::Bold, ..self }
    }

    pub(crate) const fn with_halo(self) -> Self {
        Self { halo: true, ..self }
    }
}

/// An SVG document as it grows.
pub(crate) struct Svg {
    theme: Theme,
    body: String,
}

impl Svg {
    pub(crate) const fn new(theme: Theme) -> Self {
        Self { theme, body: String::new() }
    }

    /// The finished document of `width` by `height` px.
    pub(crate) fn finish(self, width: f64, height: f64, name: &str) -> String {
        let ground = self.theme.paint(Ink::Paper);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" role=\"img\" aria-label=\"{}\" font-family=\"'Noto Sans', 'Segoe UI', \
             'Helvetica Neue', Arial, sans-serif\"><rect width=\"{width}\" height=\"{height}\" \
             fill=\"{ground}\"/>\n{}</svg>\n",
            escape(name),
            self.body
        )
    }

    pub(crate) fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), stroke: Stroke) {
        let paint = self.stroke(stroke);
        let _ = writeln!(self.body, "<path d=\"M{x1:.2} {y1:.2}L{x2:.2} {y2:.2}\" fill=\"none\"{paint}/>");
    }

    pub(crate) fn path(&mut self, d: &str, fill: Ink, opacity: f64, stroke: Stroke) {
        let (fill, paint) = (self.theme.paint(fill), self.stroke(stroke));
        let opacity = if opacity < 1.0 { format!(" fill-opacity=\"{opacity}\"") } else { String::new() };
        let _ = writeln!(self.body, "<path d=\"{d}\" fill=\"{fill}\"{opacity}{paint}/>");
    }

    /// A path filled with a pattern that was defined before.
    pub(crate) fn path_of_pattern(&mut self, d: &str, pattern: &str) {
        let _ = writeln!(self.body, "<path d=\"{d}\" fill=\"url(#{pattern})\"/>");
    }

    /// A text with its baseline at `y`.
    pub(crate) fn text(&mut self, x: f64, y: f64, set: Type, text: &str) {
        let anchor = match set.anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let weight = if set.weight == Weight::Bold { " font-weight=\"700\"" } else { "" };
        let halo = if set.halo {
            let ground = self.theme.paint(Ink::Paper);
            format!(
                " paint-order=\"stroke\" stroke=\"{ground}\" stroke-width=\"4\" stroke-linejoin=\"round\""
            )
        } else {
            String::new()
        };
        let (fill, size) = (self.theme.paint(set.ink), set.size);
        let _ = writeln!(
            self.body,
            "<text x=\"{x:.2}\" y=\"{y:.2}\" font-size=\"{size}\"{weight} text-anchor=\"{anchor}\" \
             fill=\"{fill}\"{halo}>{}</text>",
            escape(text)
        );
    }

    /// Defines a rectangle that later groups are clipped to.
    pub(crate) fn clip(&mut self, id: &str, (x, y): (f64, f64), (w, h): (f64, f64)) {
        let _ = writeln!(
            self.body,
            "<clipPath id=\"{id}\"><rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{w:.2}\" height=\"{h:.2}\"/></clipPath>"
        );
    }

    /// Defines an 8 px pattern of thin lines in the colour of the ground.
    pub(crate) fn pattern(&mut self, id: &str, d: &str) {
        let ground = self.theme.paint(Ink::Paper);
        let _ = writeln!(
            self.body,
            "<pattern id=\"{id}\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\"><path d=\"{d}\" \
             stroke=\"{ground}\" stroke-width=\"1.6\" fill=\"none\"/></pattern>"
        );
    }

    pub(crate) fn open_clipped(&mut self, id: &str) {
        let _ = writeln!(self.body, "<g clip-path=\"url(#{id})\">");
    }

    /// Opens a group that stands for a series.
    pub(crate) fn open_series(&mut self, name: &str) {
        let name = escape(name);
        let _ = writeln!(self.body, "<g data-series=\"{name}\"><title>{name}</title>");
    }

    pub(crate) fn close(&mut self) {
        self.body.push_str("</g>\n");
    }

    fn stroke(&self, stroke: Stroke) -> String {
        if stroke.ink == Ink::None {
            return String::new();
        }
        let dash = if stroke.dash.is_empty() {
            String::new()
        } else {
            format!(" stroke-dasharray=\"{}\"", stroke.dash)
        };
        let (paint, width) = (self.theme.paint(stroke.ink), stroke.width);
        format!(" stroke=\"{paint}\" stroke-width=\"{width}\" stroke-linejoin=\"round\"{dash}")
    }
}
