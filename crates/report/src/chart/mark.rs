//! What is drawn between a chart's axes: series of points, bars, reference lines.

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
