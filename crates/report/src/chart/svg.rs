//! A small SVG writer: the handful of elements that charts need.

use super::ink::{Ink, Stroke, Theme};
use super::text::Weight;
use crate::xml::escape;
use std::fmt::Write as _;

/// Where a text is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
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
