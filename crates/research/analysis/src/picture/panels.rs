//! Content of a picture, as data: panels with series of points. It is printed as JSON or drawn.

use cutline_report::chart::{Axis, Bars, Chart, ChartPoint, Figure, PointSeries};
use cutline_report::stats::Estimate;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A picture of stored results.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Picture {
    /// The name of the first results, for the name of a file.
    #[serde(skip)]
    pub name: String,
    /// Title.
    pub title: String,
    /// The folders of the results.
    pub results: Vec<PathBuf>,
    /// Charts of the picture.
    pub panels: Vec<Panel>,
    /// Notes for a reader, such as the meaning of the bars.
    pub notes: Vec<String>,
}

/// A chart.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Panel {
    /// Title.
    pub title: String,
    /// Quantity on the horizontal axis, with its unit.
    pub x: String,
    /// Quantity on the vertical axis, with its unit.
    pub y: String,
    /// The names on the horizontal axis, if there are names instead of numbers: x is the index of the name, from 0.
    pub names: Option<Vec<String>>,
    /// Begin of the horizontal axis, if not at the points.
    pub from: Option<f64>,
    /// End of the horizontal axis, if not at the points; needs a beginning.
    pub to: Option<f64>,
    /// Shape of the points.
    pub shape: Shape,
    /// The measure that it shows, which panels of the same measure share.
    #[serde(skip)]
    pub measure: String,
    /// The series.
    pub series: Vec<Series>,
}

/// Shape of the points of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// A line, with a band for the intervals. A picture with more than four lines in a panel leaves the bands out.
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
    /// Differences from other series: each key, and its value in words. The name consists of the latter.
    #[serde(skip)]
    pub parts: Parts,
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

/// Differences of a series from others, in the order of its name: the key (`results`, a swept key, `group`),
/// and its value.
pub type Parts = Vec<(String, String)>;

/// The part of a series' name that is its group or queue.
pub const GROUP: &str = "group";

/// The most lines in a panel: one for each colour.
const MOST_LINES: usize = 14;
/// The most curves of a panel whose intervals are drawn as bands. More would cover each other and the curves.
const MOST_BANDS: usize = 4;
/// The most bars in a panel; more would be too thin to distinguish.
const MOST_BARS: usize = 42;
/// The fewest series of bars that are kept in a panel, however many categories there are.
const FEWEST_OF_BARS: usize = 3;
/// The most panels on a page.
const PANELS_OF_A_PAGE: usize = 8;

impl Series {
    /// A series with the name that its parts give; `usual` if they give none.
    pub fn new(parts: Parts, usual: &str, points: Vec<Dot>) -> Self {
        let words: Vec<&str> =
            parts.iter().map(|(_, word)| word.as_str()).filter(|word| !word.is_empty()).collect();
        let name = if words.is_empty() { usual.to_owned() } else { words.join(", ") };
        Self { name, parts, points }
    }

    fn part(&self, dimension: &str) -> &str {
        self.parts.iter().find(|(name, _)| name == dimension).map_or("", |(_, word)| word)
    }

    fn without(self, dimension: &str) -> Self {
        let parts = self.parts.into_iter().filter(|(name, _)| name != dimension).collect();
        Self::new(parts, &self.name, self.points)
    }
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

impl From<&Dot> for ChartPoint {
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
    /// The picture as figures: one for each page.
    pub fn figures(&self) -> Vec<Figure> {
        let pages = pages(&self.panels);
        let figure = |(index, panels): (usize, &&[Panel])| {
            let title = match pages.len() {
                1 => self.title.clone(),
                all => format!("{} ({} of {all})", self.title, index + 1),
            };
            let columns = if panels.len() > 1 { 2 } else { 1 };
            let figure = Figure::grid(title, columns, panels.iter().map(Panel::chart));
            self.notes.iter().fold(figure, Figure::note)
        };
        pages.iter().enumerate().map(figure).collect()
    }

    /// Returns whether the interval of a point is drawn.
    pub fn draws_intervals(&self) -> bool {
        self.panels.iter().any(|panel| panel.has_intervals() && !panel.is_without_bands())
    }

    /// Returns whether the intervals of a panel are left out of the drawing.
    pub fn leaves_intervals_out(&self) -> bool {
        self.panels.iter().any(|panel| panel.has_intervals() && panel.is_without_bands())
    }
}

/// Panels in pages. Those of one measure stay together where they fit.
fn pages(panels: &[Panel]) -> Vec<&[Panel]> {
    let mut pages = Vec::new();
    let (mut start, mut end) = (0, 0);
    for of_measure in panels.chunk_by(|one, next| one.measure == next.measure) {
        if end > start && end + of_measure.len() - start > PANELS_OF_A_PAGE {
            pages.push(&panels[start..end]);
            start = end;
        }
        end += of_measure.len();
        while end - start > PANELS_OF_A_PAGE {
            pages.push(&panels[start..start + PANELS_OF_A_PAGE]);
            start += PANELS_OF_A_PAGE;
        }
    }
    if end > start {
        pages.push(&panels[start..end]);
    }
    pages
}

impl Panel {
    /// The panel, or if it has too many series to tell them apart, several: one for each group, then for each value of the key that varies
    /// least, and at last for as many series as there is room for.
    pub fn split(self) -> Vec<Self> {
        self.split_after(": ")
    }

    /// As [`split`](Self::split); `separator` follows its present title.
    fn split_after(self, separator: &str) -> Vec<Self> {
        let most = self.most_series();
        if self.series.len() <= most {
            return vec![self];
        }
        let Some(dimension) = self.dimension_to_split() else {
            let count = self.series.len().div_ceil(most);
            let part = |(index, series): (usize, &[Series])| Self {
                title: format!("{} ({} of {count})", self.title, index + 1),
                series: series.to_vec(),
                ..self.clone()
            };
            return self.series.chunks(most).enumerate().map(part).collect();
        };
        let mut words: Vec<&str> = Vec::new();
        for word in self.series.iter().map(|series| series.part(&dimension)) {
            if !words.contains(&word) {
                words.push(word);
            }
        }
        let part = |word: &str| {
            let of_word = self.series.iter().filter(|series| series.part(&dimension) == word).cloned();
            let title =
                if word.is_empty() { self.title.clone() } else { format!("{}{separator}{word}", self.title) };
            Self { title, series: of_word.map(|series| series.without(&dimension)).collect(), ..self.clone() }
        };
        words.into_iter().map(part).flat_map(|panel| panel.split_after(", ")).collect()
    }

    /// The most series that can be distinguished.
    fn most_series(&self) -> usize {
        match (self.shape, &self.names) {
            (Shape::Bars, Some(names)) => (MOST_BARS / names.len().max(1)).clamp(FEWEST_OF_BARS, MOST_LINES),
            _ => MOST_LINES,
        }
    }

    /// Returns the key by which the series are divided: groups if there are several, otherwise the key with
    /// the fewest values.
    fn dimension_to_split(&self) -> Option<String> {
        let mut found: Vec<(usize, &str)> = Vec::new();
        for (dimension, _) in self.series.iter().flat_map(|series| &series.parts) {
            if found.iter().all(|(_, known)| known != dimension) {
                let words: BTreeSet<&str> = self.series.iter().map(|series| series.part(dimension)).collect();
                found.push((if dimension == GROUP { 0 } else { words.len() }, dimension));
                if words.len() < 2 {
                    found.pop();
                }
            }
        }
        found.into_iter().min_by_key(|(count, _)| *count).map(|(_, dimension)| dimension.to_owned())
    }

    fn has_intervals(&self) -> bool {
        self.series.iter().flat_map(|series| &series.points).any(|dot| dot.low.is_some())
    }

    fn is_without_bands(&self) -> bool {
        self.shape == Shape::Line && self.series.len() > MOST_BANDS
    }

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
        let chart = self.series.iter().fold(chart, |chart, series| {
            let (name, points) = (&series.name, &series.points);
            match self.shape {
                Shape::Line if self.is_without_bands() => {
                    chart.plot(PointSeries::new(name, points.iter().map(|dot| (dot.x, dot.y))))
                }
                Shape::Line => chart.plot(PointSeries::new(name, points).band()),
                Shape::Marked => chart.plot(PointSeries::new(name, points).markers()),
                Shape::Markers => chart.plot(PointSeries::scatter(name, points)),
                Shape::Steps => chart.plot(PointSeries::steps(name, points)),
                Shape::Bars => chart.plot(Bars::new(name, points)),
            }
        });
        if self.shape == Shape::Line { chart.cut_spikes() } else { chart }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(curves: usize) -> Picture {
        let points = vec![Dot { x: 0.0, y: 2.0, low: Some(1.0), high: Some(9.0) }; 3];
        let series = |curve: usize| Series::new(Vec::new(), &format!("curve {curve}"), points.clone());
        let panel = Panel {
            title: "Goodput".to_owned(),
            x: "Time, s".to_owned(),
            y: "Mbit/s".to_owned(),
            names: None,
            from: None,
            to: None,
            shape: Shape::Line,
            measure: "goodput_bps".to_owned(),
            series: (0..curves).map(series).collect(),
        };
        let (name, title) = ("many".to_owned(), "Many".to_owned());
        Picture { name, title, results: Vec::new(), panels: vec![panel], notes: Vec::new() }
    }

    #[test]
    fn bands_are_drawn_while_they_do_not_cover_the_curves() {
        for curves in [1, MOST_BANDS, MOST_BANDS + 1, MOST_LINES] {
            let picture = picture(curves);
            let are_few = curves <= MOST_BANDS;
            assert_eq!((picture.draws_intervals(), picture.leaves_intervals_out()), (are_few, !are_few));
            let document = picture.figures()[0].document();
            let mut drawn = document.charts[0].series.iter();
            assert!(drawn.all(|series| series.band == are_few && series.points[0][2].is_some() == are_few));
        }
    }
}
