//! Figures as documents, for programs that draw them themselves.

use super::axis::{Axis, Scale};
use super::element::{ChartPoint, Element, Join, ReferencePosition, SeriesKind, Spread};
use super::figure::{Chart, Figure, Legend};
use serde::Serialize;

/// A figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureDocument {
    /// The title; empty if there is none.
    pub title: String,
    /// The line under the title; empty if there is none.
    pub subtitle: String,
    /// The charts.
    pub charts: Vec<ChartDocument>,
    /// The number of charts in a row.
    pub columns: usize,
    /// True if the names of series are on the lines.
    pub names_on_lines: bool,
    /// Remarks under the charts.
    pub notes: Vec<String>,
}

/// A chart of a figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChartDocument {
    /// The title; may be empty.
    pub title: String,
    /// The line under the title; empty if there is none.
    pub subtitle: String,
    /// The horizontal axis.
    pub x: AxisDocument,
    /// The vertical axis.
    pub y: AxisDocument,
    /// The series, from the lowest to the uppermost.
    pub series: Vec<ChartSeriesDocument>,
    /// Labelled lines across the chart.
    pub references: Vec<ReferenceDocument>,
}

/// An axis of a chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AxisDocument {
    /// The quantity, with its unit.
    pub label: String,
    /// The base of a logarithmic axis.
    pub log: Option<u32>,
    /// The names on an axis of names. A point's x is the index of a name, from 0.
    pub names: Option<Vec<String>>,
    /// The lower end, if it does not follow the data.
    pub low: Option<f64>,
    /// The upper end, if it does not follow the data.
    pub high: Option<f64>,
    /// The only ticks, as values and labels.
    pub ticks: Option<Vec<(f64, String)>>,
    /// Larger values do not extend the axis.
    pub cap: Option<f64>,
}

/// A series of a chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChartSeriesDocument {
    /// The name in the legend.
    pub name: String,
    /// The shape: `line`, `steps`, `markers` or `bars`.
    pub shape: &'static str,
    /// True if every point of a line has a marker.
    pub marked: bool,
    /// True if intervals are a band around the line.
    pub band: bool,
    /// True for the values of a paper.
    pub expected: bool,
    /// x, y, and the lower and the upper end of the confidence interval. A coordinate that is null leaves a gap.
    pub points: Vec<[Option<f64>; 4]>,
}

/// A labelled line across a chart: at an x or a y.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReferenceDocument {
    /// The label.
    pub label: String,
    /// The position of a vertical line.
    pub x: Option<f64>,
    /// The position of a horizontal line.
    pub y: Option<f64>,
}

impl Figure {
    /// Returns the figure as a document.
    pub fn document(&self) -> FigureDocument {
        FigureDocument {
            title: self.title.clone().unwrap_or_default(),
            subtitle: self.subtitle.clone().unwrap_or_default(),
            charts: self.panels.iter().map(Chart::document).collect(),
            columns: self.columns,
            names_on_lines: self.legend == Legend::Direct,
            notes: self.notes.clone(),
        }
    }
}

impl Chart {
    fn document(&self) -> ChartDocument {
        let mut found = ChartDocument {
            title: self.title.clone(),
            subtitle: self.subtitle.clone().unwrap_or_default(),
            x: self.x.document(),
            y: self.y.document(),
            series: Vec::new(),
            references: Vec::new(),
        };
        for element in &self.elements {
            match element {
                Element::Line(line) => found.series.push(ChartSeriesDocument {
                    name: line.name.clone(),
                    shape: match line.join {
                        Join::Straight => "line",
                        Join::Step => "steps",
                        Join::None => "markers",
                    },
                    marked: line.markers,
                    band: line.spread == Spread::Band,
                    expected: line.kind == SeriesKind::Expected,
                    points: line.points.iter().map(coordinates).collect(),
                }),
                Element::Bars(bars) => found.series.push(ChartSeriesDocument {
                    name: bars.name.clone(),
                    shape: "bars",
                    marked: false,
                    band: false,
                    expected: false,
                    points: bars.points.iter().map(coordinates).collect(),
                }),
                Element::Reference(reference) => {
                    let (x, y) = match reference.at {
                        ReferencePosition::X(x) => (Some(x), None),
                        ReferencePosition::Y(y) => (None, Some(y)),
                    };
                    found.references.push(ReferenceDocument { label: reference.label.clone(), x, y });
                }
            }
        }
        found
    }
}

impl Axis {
    fn document(&self) -> AxisDocument {
        let (log, names) = match &self.scale {
            Scale::Linear => (None, None),
            Scale::Log(base) => (Some(*base), None),
            Scale::Categories(names) => (None, Some(names.clone())),
        };
        AxisDocument {
            label: self.label.clone(),
            log,
            names,
            low: self.low,
            high: self.high,
            ticks: self.ticks.clone(),
            cap: self.cap,
        }
    }
}

fn coordinates(point: &ChartPoint) -> [Option<f64>; 4] {
    let (low, high) = point.interval.unzip();
    [Some(point.x), Some(point.y), low, high].map(|value| value.filter(|value| value.is_finite()))
}

#[cfg(test)]
mod tests {
    use crate::chart::{Axis, Bars, Chart, ChartPoint, Figure, PointSeries};

    #[test]
    fn a_document_has_all_of_a_figure() {
        let points = [ChartPoint::new(1.0, 2.0).with_interval(1.5, 2.5), ChartPoint::new(f64::NAN, 3.0)];
        let lines = Chart::new("one")
            .subtitle("sub")
            .x(Axis::log("rate", 10).range(1.0, 100.0).ticks([1.0, 10.0]))
            .plot(PointSeries::steps("steps", points).band())
            .plot(PointSeries::expected("paper", [(1.0, 1.0)]))
            .vline(3.0, "limit");
        let bars =
            Chart::new("two").x(Axis::categories("queue", ["pi", "pie"])).plot(Bars::new("q", [(0.0, 1.0)]));
        let found = Figure::grid("both", 2, [lines, bars]).note("a note").document();
        assert_eq!((&*found.title, found.columns, found.notes.len(), found.charts.len()), ("both", 2, 1, 2));
        let [one, two] = &found.charts[..] else { panic!("two charts") };
        assert_eq!(
            (one.x.log, one.x.low, one.x.ticks.as_ref().map(Vec::len)),
            (Some(10), Some(1.0), Some(2))
        );
        assert_eq!((one.series[0].shape, one.series[0].band, one.series[0].expected), ("steps", true, false));
        assert_eq!(
            one.series[0].points,
            [[Some(1.0), Some(2.0), Some(1.5), Some(2.5)], [None, Some(3.0), None, None]]
        );
        assert!(one.series[1].expected && one.series[1].shape == "markers");
        assert_eq!((one.references[0].x, one.references[0].y), (Some(3.0), None));
        assert_eq!(two.x.names.as_deref(), Some(&["pi".to_owned(), "pie".to_owned()][..]));
        assert_eq!(two.series[0].shape, "bars");
    }
}
