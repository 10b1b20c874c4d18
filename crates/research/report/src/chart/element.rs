//! The elements between the axes of a chart: series of points, bars, reference lines.

/// A point with an optional confidence interval. A coordinate that is not finite leaves a gap in the series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChartPoint {
    /// The value on the horizontal axis. On an axis of categories, the index of the category, from 0.
    pub x: f64,
    /// The value on the vertical axis.
    pub y: f64,
    /// The lower and the upper end of the confidence interval of y.
    pub interval: Option<(f64, f64)>,
}

/// An element between the axes of a chart.
#[derive(Clone, Debug)]
pub enum Element {
    /// A series of points.
    Line(PointSeries),
    /// A bar for each point, from 0.
    Bars(Bars),
    /// A labelled straight line across the chart.
    Reference(Reference),
}

/// A series of points, joined by lines or not.
#[derive(Clone, Debug)]
pub struct PointSeries {
    pub(crate) name: String,
    pub(crate) points: Vec<ChartPoint>,
    pub(crate) join: Join,
    pub(crate) markers: bool,
    pub(crate) spread: Spread,
    pub(crate) kind: SeriesKind,
}

/// Line between consecutive points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Join {
    Straight,
    Step,
    None,
}

/// Form of confidence intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spread {
    Whiskers,
    Band,
}

/// Kind of a series: measured values or those of a paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SeriesKind {
    /// Measured values, in a separate colour for each series.
    Measured,
    /// The paper's values, as hollow markers in the colour of the text.
    Expected,
}

/// A bar for each point. The bars of several series are side by side.
#[derive(Clone, Debug)]
pub struct Bars {
    pub(crate) name: String,
    pub(crate) points: Vec<ChartPoint>,
}

/// A labelled line across the chart.
#[derive(Clone, Debug)]
pub struct Reference {
    pub(crate) label: String,
    pub(crate) at: ReferencePosition,
}

/// The position of a reference line: vertical at an x, or horizontal at a y.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ReferencePosition {
    X(f64),
    Y(f64),
}

impl ChartPoint {
    /// A point without an interval.
    pub const fn new(x: f64, y: f64) -> Self {
        Self { x, y, interval: None }
    }

    /// Sets the confidence interval of the point.
    pub const fn with_interval(self, low: f64, high: f64) -> Self {
        Self { interval: Some((low, high)), ..self }
    }

    /// The mean of an estimate, with its 95 % confidence interval if it has one.
    pub fn from_estimate(x: f64, estimate: &crate::stats::Estimate) -> Self {
        Self { x, y: estimate.mean, interval: estimate.interval }
    }
}

impl From<(f64, f64)> for ChartPoint {
    fn from((x, y): (f64, f64)) -> Self {
        Self::new(x, y)
    }
}

impl PointSeries {
    /// Points joined by straight lines. A single point, which has no line, has a marker.
    pub fn new<P: Into<ChartPoint>>(name: impl Into<String>, points: impl IntoIterator<Item = P>) -> Self {
        let points: Vec<ChartPoint> = points.into_iter().map(Into::into).collect();
        let (join, spread, kind) = (Join::Straight, Spread::Whiskers, SeriesKind::Measured);
        Self { name: name.into(), markers: points.len() == 1, points, join, spread, kind }
    }

    /// Points joined by steps, as in a cumulative distribution: each y is valid from its x to the next x.
    pub fn steps<P: Into<ChartPoint>>(name: impl Into<String>, points: impl IntoIterator<Item = P>) -> Self {
        Self { join: Join::Step, ..Self::new(name, points) }
    }

    /// Markers without lines.
    pub fn scatter<P: Into<ChartPoint>>(
        name: impl Into<String>,
        points: impl IntoIterator<Item = P>,
    ) -> Self {
        Self { join: Join::None, markers: true, ..Self::new(name, points) }
    }

    /// The paper's values, as hollow markers in the colour of the text.
    pub fn expected<P: Into<ChartPoint>>(
        name: impl Into<String>,
        points: impl IntoIterator<Item = P>,
    ) -> Self {
        Self { kind: SeriesKind::Expected, ..Self::scatter(name, points) }
    }

    /// Draws a marker on every point.
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
    pub fn new<P: Into<ChartPoint>>(name: impl Into<String>, points: impl IntoIterator<Item = P>) -> Self {
        Self { name: name.into(), points: points.into_iter().map(Into::into).collect() }
    }
}

impl Element {
    /// The name and the points of a series; `None` for a reference line.
    pub(crate) fn series(&self) -> Option<(&str, &[ChartPoint])> {
        match self {
            Self::Line(line) => Some((&line.name, &line.points)),
            Self::Bars(bars) => Some((&bars.name, &bars.points)),
            Self::Reference(_) => None,
        }
    }
}

impl From<PointSeries> for Element {
    fn from(line: PointSeries) -> Self {
        Self::Line(line)
    }
}

impl From<Bars> for Element {
    fn from(bars: Bars) -> Self {
        Self::Bars(bars)
    }
}
