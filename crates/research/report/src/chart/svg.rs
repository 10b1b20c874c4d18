//! A small SVG writer with the few elements that charts need.

use super::colour::{Colour, Stroke, Theme};
use super::text::Weight;
use crate::xml::escape;
use std::fmt::Write as _;

/// Part of a text that is at its x position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// The style of a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextStyle {
    pub(crate) size: f64,
    pub(crate) weight: Weight,
    pub(crate) anchor: Anchor,
    pub(crate) colour: Colour,
    /// True if the text has an outline in the background colour, for texts over elements.
    pub(crate) halo: bool,
}

impl TextStyle {
    pub(crate) const fn regular(size: f64, colour: Colour) -> Self {
        Self { size, weight: Weight::Regular, anchor: Anchor::Start, colour, halo: false }
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

/// An SVG document under construction.
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
        let background = self.theme.paint(Colour::Background);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" role=\"img\" aria-label=\"{}\" font-family=\"'Noto Sans', 'Segoe UI', \
             'Helvetica Neue', Arial, sans-serif\"><rect width=\"{width}\" height=\"{height}\" \
             fill=\"{background}\"/>\n{}</svg>\n",
            escape(name),
            self.body
        )
    }

    pub(crate) fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), stroke: Stroke) {
        let paint = self.stroke(stroke);
        let _ = writeln!(self.body, "<path d=\"M{x1:.2} {y1:.2}L{x2:.2} {y2:.2}\" fill=\"none\"{paint}/>");
    }

    pub(crate) fn path(&mut self, d: &str, fill: Colour, opacity: f64, stroke: Stroke) {
        let (fill, paint) = (self.theme.paint(fill), self.stroke(stroke));
        let opacity = if opacity < 1.0 { format!(" fill-opacity=\"{opacity}\"") } else { String::new() };
        let _ = writeln!(self.body, "<path d=\"{d}\" fill=\"{fill}\"{opacity}{paint}/>");
    }

    /// Fills the area between the closed lines of a path.
    pub(crate) fn between(&mut self, d: &str, fill: Colour, opacity: f64) {
        let fill = self.theme.paint(fill);
        let _ = writeln!(
            self.body,
            "<path d=\"{d}\" fill=\"{fill}\" fill-opacity=\"{opacity}\" fill-rule=\"evenodd\"/>"
        );
    }

    /// Adds a path filled with a pattern that was defined before.
    pub(crate) fn pattern_path(&mut self, d: &str, pattern: &str) {
        let _ = writeln!(self.body, "<path d=\"{d}\" fill=\"url(#{pattern})\"/>");
    }

    /// Adds a text with its baseline at `y`.
    pub(crate) fn text(&mut self, x: f64, y: f64, style: TextStyle, text: &str) {
        let anchor = match style.anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let weight = if style.weight == Weight::Bold { " font-weight=\"700\"" } else { "" };
        let halo = if style.halo {
            let background = self.theme.paint(Colour::Background);
            format!(
                " paint-order=\"stroke\" stroke=\"{background}\" stroke-width=\"4\" stroke-linejoin=\"round\""
            )
        } else {
            String::new()
        };
        let (fill, size) = (self.theme.paint(style.colour), style.size);
        let _ = writeln!(
            self.body,
            "<text x=\"{x:.2}\" y=\"{y:.2}\" font-size=\"{size}\"{weight} text-anchor=\"{anchor}\" \
             fill=\"{fill}\"{halo}>{}</text>",
            escape(text)
        );
    }

    /// Defines a rectangle to which later groups can be clipped.
    pub(crate) fn clip(&mut self, id: &str, (x, y): (f64, f64), (w, h): (f64, f64)) {
        let _ = writeln!(
            self.body,
            "<clipPath id=\"{id}\"><rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{w:.2}\" height=\"{h:.2}\"/></clipPath>"
        );
    }

    /// Defines an 8 px pattern of thin lines in the background colour.
    pub(crate) fn pattern(&mut self, id: &str, d: &str) {
        let background = self.theme.paint(Colour::Background);
        let _ = writeln!(
            self.body,
            "<pattern id=\"{id}\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\"><path d=\"{d}\" \
             stroke=\"{background}\" stroke-width=\"1.6\" fill=\"none\"/></pattern>"
        );
    }

    pub(crate) fn open_clipped(&mut self, id: &str) {
        let _ = writeln!(self.body, "<g clip-path=\"url(#{id})\">");
    }

    /// Opens the group of a series.
    pub(crate) fn open_series(&mut self, name: &str) {
        let name = escape(name);
        let _ = writeln!(self.body, "<g data-series=\"{name}\"><title>{name}</title>");
    }

    pub(crate) fn close(&mut self) {
        self.body.push_str("</g>\n");
    }

    fn stroke(&self, stroke: Stroke) -> String {
        if stroke.colour == Colour::None {
            return String::new();
        }
        let dash = if stroke.dash.is_empty() {
            String::new()
        } else {
            format!(" stroke-dasharray=\"{}\"", stroke.dash)
        };
        let (paint, width) = (self.theme.paint(stroke.colour), stroke.width);
        format!(" stroke=\"{paint}\" stroke-width=\"{width}\" stroke-linejoin=\"round\"{dash}")
    }
}
