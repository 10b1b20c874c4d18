//! Charts as data: what is shown, not how. A [`Figure`] of one or more [`Chart`]s draws itself as SVG or PNG.
//!
//! ```
//! use cutline_report::chart::{Axis, Chart, Figure, Line, Theme};
//!
//! let points = [(1.0, 0.62), (6.0, 0.81), (16.0, 0.55)];
//! let chart = Chart::new("Quality by delay hint")
//!     .x(Axis::linear("Delay hint"))
//!     .y(Axis::linear("Quality").range(0.0, 1.0))
//!     .mark(Line::new("overall Q", points).markers())
//!     .hline(0.8, "paper: best at 6");
//! let svg = Figure::of(chart).svg("fig-10", Theme::Paper);
//! assert!(svg.starts_with("<svg"));
//! ```
//!
//! Every series gets a *slot*, by its name in order of appearance over the whole figure: the same name has the
//! same colour, dash and marker in every panel. Colours are those of Okabe and Ito (2008), told apart by all
//! kinds of colour vision; dashes, markers and hatches carry the same distinction into black-and-white print.

mod axis;
mod draw;
mod figure;
mod ink;
mod layout;
mod legend;
mod mark;
mod raster;
mod style;
mod svg;
mod text;
mod ticks;

#[cfg(test)]
mod tests;

pub use axis::{Axis, Scale};
pub use figure::{Chart, Figure, Legend};
pub use ink::Theme;
pub use mark::{Bars, Line, Mark, Point, Reference};
pub use raster::{RasterError, png};

impl Figure {
    /// The figure as an SVG document. `id` begins the names of what it defines, so that several figures can
    /// stand in one HTML page; letters, digits and `-` only.
    pub fn svg(&self, id: &str, theme: Theme) -> String {
        draw::figure(self, id, theme)
    }

    /// The figure as a PNG picture, twice as large as the SVG in each direction.
    ///
    /// # Errors
    /// When the figure has no area that a picture could show.
    pub fn png(&self) -> Result<Vec<u8>, RasterError> {
        png(&self.svg("figure", Theme::Paper), 2.0)
    }
}

/// A number as the charts write it: that many decimals, thousands set apart, a proper minus sign.
pub fn number(value: f64, decimals: usize) -> String {
    ticks::with_decimals(value, decimals)
}

/// A number with no more digits than it has: `1.18`, `10,000`.
pub fn shortest(value: f64) -> String {
    ticks::label(value)
}
