//! What a picture shows, as data: panels with series of points. It is printed as JSON or drawn.

use cutline_report::chart::{Axis, Bars, Chart, Figure, Line, Point};
use cutline_report::stats::Estimate;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;

/// A picture of stored results.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Picture {
    /// What it shows.
    pub title: String,
    /// The folders of the results.
    pub results: Vec<PathBuf>,
    /// Its charts.
    pub panels: Vec<Panel>,
    /// What a reader has to know, such as what the bars are.
    pub notes: Vec<String>,
}

/// A chart.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Panel {
    /// What it shows.
    pub title: String,
    /// What is on the horizontal axis, with its unit.
    pub x: String,
    /// What is on the vertical axis, with its unit.
    pub y: String,
    /// The names on the horizontal axis, if there are names instead of numbers: x is the index of the name, from 0.
    pub names: Option<Vec<String>>,
    /// Where the horizontal axis begins, if not at the points.
    pub from: Option<f64>,
    /// Where the horizontal axis ends, if not at the points; needs a beginning.
    pub to: Option<f64>,
    /// How the points are drawn.
    pub shape: Shape,
    /// The series.
    pub series: Vec<Series>,
}

/// How the points of a series are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// A line, with a band for the intervals.
    Line,
    /// A line with a marker on each point, with whiskers for the intervals.
    Marked,
    /// Markers only.
    Markers,
    /// Steps: each y is valid up to the next x.
    Steps,
    /// Bars from zero.
    Bars,
}

/// Points of one name.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// The points, in the order in which they are joined.
    pub points: Vec<Dot>,
}

/// A point, with the 95 % confidence interval of y if there are several seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Dot {
    /// The value on the horizontal axis.
    pub x: f64,
    /// The value on the vertical axis.
    pub y: f64,
    /// The lower end of the interval.
    pub low: Option<f64>,
    /// The upper end of the interval.
    pub high: Option<f64>,
}

impl Dot {
    /// A point without an interval.
    pub fn new(x: f64, y: f64) -> Self {
        Self { x, y, low: None, high: None }
    }

    /// The mean over the seeds with its interval; `None` without a value.
    pub fn mean(x: f64, values: &[f64]) -> Option<Self> {
        let estimate = Estimate::from_values(values)?;
        let (low, high) = estimate.interval.unzip();
        Some(Self { x, y: estimate.mean, low, high })
    }
}

impl From<&Dot> for Point {
    fn from(dot: &Dot) -> Self {
        let point = Self::new(dot.x, dot.y);
        match (dot.low, dot.high) {
            // No measure is below zero, where the axis begins, though an interval may reach there.
            (Some(low), Some(high)) => point.with_interval(low.max(0.0).min(dot.y), high),
            _ => point,
        }
    }
}

impl Picture {
    /// The picture as a figure.
    pub fn figure(&self) -> Figure {
        let columns = if self.panels.len() > 1 { 2 } else { 1 };
        let figure = Figure::grid(&self.title, columns, self.panels.iter().map(Panel::chart));
        self.notes.iter().fold(figure, Figure::note)
    }
}

impl Panel {
    fn chart(&self) -> Chart {
        let x = match &self.names {
            Some(names) => Axis::categories(&self.x, names),
            None => Axis::linear(&self.x),
        };
        let x = match (self.from, self.to) {
            (Some(low), Some(high)) => x.range(low, high),
            (Some(low), None) => x.from(low),
            (None, _) => x,
        };
        let y = match self.shape {
            Shape::Steps => Axis::linear(&self.y).range(0.0, 1.0),
            _ => Axis::linear(&self.y).from(0.0),
        };
        let chart = Chart::new(&self.title).x(x).y(y);
        self.series.iter().fold(chart, |chart, series| {
            let (name, points) = (&series.name, &series.points);
            match self.shape {
                Shape::Line => chart.plot(Line::new(name, points).band()),
                Shape::Marked => chart.plot(Line::new(name, points).markers()),
                Shape::Markers => chart.plot(Line::scatter(name, points)),
                Shape::Steps => chart.plot(Line::steps(name, points)),
                Shape::Bars => chart.plot(Bars::new(name, points)),
            }
        })
    }
}
