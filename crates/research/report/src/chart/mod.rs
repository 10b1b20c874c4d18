//! Charts as data. A [`Figure`] has one or more [`Chart`]s, and is drawn as SVG or PNG.
//!
//! ```
//! use cutline_report::chart::{Axis, Chart, Figure, PointSeries, Theme};
//!
//! let points = [(1.0, 0.62), (6.0, 0.81), (16.0, 0.55)];
//! let chart = Chart::new("Quality by delay hint")
//!     .x(Axis::linear("Delay hint"))
//!     .y(Axis::linear("Quality").range(0.0, 1.0))
//!     .plot(PointSeries::new("overall Q", points).markers())
//!     .hline(0.8, "paper: best at 6");
//! let svg = Figure::new(chart).svg("fig-10", Theme::Paper);
//! assert!(svg.starts_with("<svg"));
//! ```
//!
//! Every series has a *slot*: the number of its name, in order of first appearance in the figure. The slot selects
//! colour, dash and marker, so the same name looks the same in every panel. The colours are those of Okabe and Ito
//! (2008), which people with any kind of colour vision can distinguish. Dashes, markers and hatches make the same
//! distinction in black and white.

mod axis;
mod colour;
mod document;
mod draw;
mod element;
mod figure;
mod formats;
mod layout;
mod legend;
mod radar;
mod style;
mod svg;
mod text;
mod ticks;

#[cfg(test)]
pub(crate) mod tests;

pub use axis::{Axis, Scale};
pub use colour::Theme;
pub use document::{AxisDocument, ChartDocument, ChartSeriesDocument, FigureDocument, ReferenceDocument};
pub use element::{Bars, ChartPoint, Element, PointSeries, Reference};
pub use figure::{Chart, Figure, Legend};
pub use formats::{Format, FormatError, missing_scripts};
pub use radar::{Radar, Spoke};

impl Figure {
    /// The figure as an SVG document. The ids in the document begin with `id`, so that several figures can be in one
    /// HTML page. `id` consists of letters, digits and `-`.
    pub fn svg(&self, id: &str, theme: Theme) -> String {
        draw::figure(self, id, theme)
    }

    /// The figure as a file of this format.
    ///
    /// # Errors
    /// When the figure has no area.
    pub fn file(&self, id: &str, format: Format) -> Result<Vec<u8>, FormatError> {
        format.encode(self.svg(id, Theme::Paper))
    }
}

/// Figures as the files of one picture: one file for PDF, else one for each figure.
///
/// # Errors
/// When a figure has no area.
pub fn files(figures: &[Figure], id: &str, format: Format) -> Result<Vec<Vec<u8>>, FormatError> {
    format.encode_pages(figures.iter().map(|figure| figure.svg(id, Theme::Paper)).collect())
}

/// A number as charts show it: `decimals` decimals, separators between thousands, a typographic minus sign.
pub fn number(value: f64, decimals: usize) -> String {
    ticks::with_decimals(value, decimals)
}

/// The shortest form of a number: `1.18`, `10,000`.
pub fn shortest(value: f64) -> String {
    ticks::label(value)
}
