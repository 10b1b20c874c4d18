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
mod layout;
mod legend;
mod raster;
mod style;
mod svg;
mod text;
mod ticks;

#[cfg(test)]
mod tests;

pub use axis::{Axis, Scale};
pub use raster::{RasterError, png};
pub use svg::Theme;

/// One or more charts under one title, in a grid.
#[derive(Clone, Debug)]
pub struct Figure {
    pub(crate) title: Option<String>,
    pub(crate) subtitle: Option<String>,
    pub(crate) panels: Vec<Chart>,
    pub(crate) columns: usize,
    pub(crate) legend: Legend,
    pub(crate) notes: Vec<String>,
}

/// One pair of axes and what is drawn between them.
#[derive(Clone, Debug)]
pub struct Chart {
    pub(crate) title: String,
    pub(crate) subtitle: Option<String>,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) marks: Vec<Mark>,
}

/// Where series are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Legend {
    /// In rows above the panels, once for the whole figure. Nothing where there is one series only.
    #[default]
    Top,
    /// On the lines, in their colours: at the right end, and for steps beside the middle.
    Direct,
}

/// A point with its confidence interval, where it has one. A coordinate that is not finite leaves a gap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Along the horizontal axis; an index from 0 on an axis of categories.
    pub x: f64,
    /// Along the vertical axis.
    pub y: f64,
    /// The ends of the interval in y.
    pub interval: Option<(f64, f64)>,
}

/// Anything that is drawn between the axes.
#[derive(Clone, Debug)]
pub enum Mark {
    /// A series of points.
    Line(Line),
    /// A bar for each point, from 0.
    Bars(Bars),
    /// A straight line across, with its label on it.
    Reference(Reference),
}

/// A series of points, joined or not.
#[derive(Clone, Debug)]
pub struct Line {
    pub(crate) name: String,
    pub(crate) points: Vec<Point>,
    pub(crate) join: Join,
    pub(crate) markers: bool,
    pub(crate) spread: Spread,
    pub(crate) kind: Kind,
}

/// How consecutive points are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Join {
    Straight,
    Step,
    None,
}

/// How intervals are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spread {
    Whiskers,
    Band,
}

/// Whose numbers a series shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Ours: a colour of its own.
    Measured,
    /// The paper's: hollow, in the colour of text.
    Expected,
}

/// A bar for each point; several series stand side by side.
#[derive(Clone, Debug)]
pub struct Bars {
    pub(crate) name: String,
    pub(crate) points: Vec<Point>,
}

/// A labelled line across the chart.
#[derive(Clone, Debug)]
pub struct Reference {
    pub(crate) label: String,
    pub(crate) at: At,
}

/// Where a reference line runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum At {
    X(f64),
    Y(f64),
}

impl Figure {
    /// A figure of one chart.
    pub fn of(chart: Chart) -> Self {
        Self {
            title: None,
            subtitle: None,
            panels: vec![chart],
            columns: 1,
            legend: Legend::Top,
            notes: Vec::new(),
        }
    }

    /// Charts in rows of `columns`, under one title, with one legend.
    pub fn grid(title: impl Into<String>, columns: usize, charts: impl IntoIterator<Item = Chart>) -> Self {
        let panels: Vec<Chart> = charts.into_iter().collect();
        let columns = columns.clamp(1, panels.len().max(1));
        let title = Some(title.into());
        Self { title, subtitle: None, panels, columns, legend: Legend::Top, notes: Vec::new() }
    }

    /// A line under the title.
    pub fn subtitle(self, text: impl Into<String>) -> Self {
        Self { subtitle: Some(text.into()), ..self }
    }

    /// Where series are named.
    pub fn legend(self, legend: Legend) -> Self {
        Self { legend, ..self }
    }

    /// A remark under the charts, such as where the numbers are from.
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// What the figure is called: its own title, or that of its first chart.
    pub fn name(&self) -> &str {
        let first = self.panels.first().map(|panel| panel.title.as_str());
        self.title.as_deref().or(first).unwrap_or_default()
    }

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

impl Chart {
    /// An empty chart. `title` may be empty, where a figure's title says enough.
    pub fn new(title: impl Into<String>) -> Self {
        let (x, y) = (Axis::linear(""), Axis::linear(""));
        Self { title: title.into(), subtitle: None, x, y, marks: Vec::new() }
    }

    /// A line under the title.
    pub fn subtitle(self, text: impl Into<String>) -> Self {
        Self { subtitle: Some(text.into()), ..self }
    }

    /// The horizontal axis.
    pub fn x(self, axis: Axis) -> Self {
        Self { x: axis, ..self }
    }

    /// The vertical axis.
    pub fn y(self, axis: Axis) -> Self {
        Self { y: axis, ..self }
    }

    /// Adds a mark; later ones are drawn over earlier ones.
    pub fn mark(mut self, mark: impl Into<Mark>) -> Self {
        self.marks.push(mark.into());
        self
    }

    /// Adds a labelled horizontal line at `y`.
    pub fn hline(self, y: f64, label: impl Into<String>) -> Self {
        self.mark(Mark::Reference(Reference { label: label.into(), at: At::Y(y) }))
    }

    /// Adds a labelled vertical line at `x`.
    pub fn vline(self, x: f64, label: impl Into<String>) -> Self {
        self.mark(Mark::Reference(Reference { label: label.into(), at: At::X(x) }))
    }
}

impl Chart {
    /// The label of the only reference line of a chart of bars. Bars leave no room for it beside its line, so
    /// that the legend has it.
    pub(crate) fn reference_of_bars(&self) -> Option<&str> {
        let bars = self.marks.iter().any(|mark| matches!(mark, Mark::Bars(_)));
        let mut labels = self.marks.iter().filter_map(|mark| match mark {
            Mark::Reference(reference) => Some(reference.label.as_str()),
            Mark::Line(_) | Mark::Bars(_) => None,
        });
        labels.next().filter(|_| bars && labels.next().is_none())
    }
}

impl Point {
    /// A point without an interval.
    pub const fn new(x: f64, y: f64) -> Self {
        Self { x, y, interval: None }
    }

    /// The point with an interval.
    pub const fn within(self, low: f64, high: f64) -> Self {
        Self { interval: Some((low, high)), ..self }
    }

    /// The point of an estimate, with its 95 % confidence interval where it has one.
    pub fn of_estimate(x: f64, estimate: &crate::stats::Estimate) -> Self {
        Self { x, y: estimate.mean, interval: estimate.interval }
    }
}

impl From<(f64, f64)> for Point {
    fn from((x, y): (f64, f64)) -> Self {
        Self::new(x, y)
    }
}

impl Line {
    /// Points joined by straight lines.
    pub fn new<P: Into<Point>>(name: impl Into<String>, points: impl IntoIterator<Item = P>) -> Self {
        let points = points.into_iter().map(Into::into).collect();
        let (join, spread, kind) = (Join::Straight, Spread::Whiskers, Kind::Measured);
        Self { name: name.into(), points, join, markers: false, spread, kind }
    }

    /// Points joined by steps, as in a cumulative distribution: each y holds from its x to the next.
    pub fn steps<P: Into<Point>>(name: impl Into<String>, points: impl IntoIterator<Item = P>) -> Self {
        Self { join: Join::Step, ..Self::new(name, points) }
    }

    /// Markers alone.
    pub fn scatter<P: Into<Point>>(name: impl Into<String>, points: impl IntoIterator<Item = P>) -> Self {
        Self { join: Join::None, markers: true, ..Self::new(name, points) }
    }

    /// The paper's values: hollow markers in the colour of text.
    pub fn expected<P: Into<Point>>(name: impl Into<String>, points: impl IntoIterator<Item = P>) -> Self {
        Self { kind: Kind::Expected, ..Self::scatter(name, points) }
    }

    /// With a marker on every point.
    pub fn markers(self) -> Self {
        Self { markers: true, ..self }
    }

    /// Shows intervals as a band around the line instead of whiskers.
    pub fn band(self) -> Self {
        Self { spread: Spread::Band, ..self }
    }
}

impl Bars {
    /// A bar for each point.
    pub fn new<P: Into<Point>>(name: impl Into<String>, points: impl IntoIterator<Item = P>) -> Self {
        Self { name: name.into(), points: points.into_iter().map(Into::into).collect() }
    }
}

impl Mark {
    /// The name and the points of a series, `None` of a reference line.
    pub(crate) fn series(&self) -> Option<(&str, &[Point])> {
        match self {
            Self::Line(line) => Some((&line.name, &line.points)),
            Self::Bars(bars) => Some((&bars.name, &bars.points)),
            Self::Reference(_) => None,
        }
    }
}

impl From<Line> for Mark {
    fn from(line: Line) -> Self {
        Self::Line(line)
    }
}

impl From<Bars> for Mark {
    fn from(bars: Bars) -> Self {
        Self::Bars(bars)
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
