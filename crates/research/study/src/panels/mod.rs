//! Charts as data: the panels of a figure, in `figures.toml`.
//!
//! ```toml
//! [[figure.panel]]
//! title = "Queuing delay of audio, 99th percentile"
//! y = { label = "Queuing delay, ms", log = true }
//! measure = "queuing_p99_ms"      # the measure, as in a claim; a series or a place may state another one
//! along = [{ each = ["queue"], name = "{queue.name}", at = { "dumbbell.queue" = "{queue.id}" } }]
//! series = [{ each = ["mix"], name = "{mix.name}", of = "audio", at = { "flow.bulk.count" = "{mix.bulk}" } }]
//! references = [{ y = 5, label = "5 ms" }]
//! ```
//!
//! Places `along` the horizontal axis are categories. If each has an `x`, they are numbers. The values of a series are drawn as `bars`, as
//! `dots`, or as a `line`; by default as bars along categories and as a line along numbers, and as dots on a logarithmic axis. The settings
//! of panel, series and place are joined; a series may have places of its own.
//!
//! With `cdf` in the place of `along`, each series is a distribution: of a delay of packets (`queuing_ms`), or of the goodput in the
//! intervals of a flow (`goodput_kbps`).
//!
//! With `course` in the place of `along`, each series is a course over time of a measure of intervals: the mean over flows and seeds, or with
//! `seed` that of one seed, counted from 1. `course = 3` joins so many intervals to one.
//!
//! Anything else that is not a measure at a point of a sweep is drawn by code.

mod read;

pub(crate) use read::read_panels;

use crate::claims::Quantity;
use crate::data::{Data, ExperimentData};
use cutline_report::chart::{Axis, Bars, Chart, ChartPoint as Dot, PointSeries};
use cutline_report::stats::{Cdf, Estimate};

/// A chart of measures.
#[derive(Clone, Debug)]
pub(crate) struct Panel {
    title: String,
    x: AxisText,
    y: AxisText,
    /// The names of the places along the horizontal axis; `None` if they are numbers.
    categories: Option<Vec<String>>,
    series: Vec<Series>,
    draw: Draw,
    paper: Option<PaperText>,
    given: Option<PaperText>,
    references: Vec<Reference>,
    across: Across,
    /// True if its numbers are in the text, too.
    in_words: bool,
}

/// A position on the horizontal axis.
#[derive(Clone, Debug)]
struct Place {
    name: String,
    x: f64,
}

/// Series, with its quantity at each place.
#[derive(Clone, Debug)]
struct Series {
    name: String,
    values: Vec<(Place, Quantity)>,
    emphasis: Emphasis,
    /// The seed of a course, counted from 1; `None` for the mean over all.
    seed: Option<usize>,
}

/// Emphasis of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Emphasis {
    /// Markers, and whiskers for intervals.
    #[default]
    Markers,
    /// Markers, and a band for intervals.
    Band,
    /// Neither.
    Thin,
}

/// An axis, as `figures.toml` describes it.
#[derive(Clone, Debug, Default)]
struct AxisText {
    label: String,
    log: bool,
    range: Option<[f64; 2]>,
    ticks: Option<Vec<f64>>,
}

/// Values of the paper, or values that are given, such as the rate of a link.
#[derive(Clone, Debug)]
struct PaperText {
    name: String,
    points: Vec<[f64; 2]>,
}

/// A labelled straight line.
#[derive(Clone, Debug)]
struct Reference {
    label: String,
    at: ReferenceAt,
}

#[derive(Clone, Debug)]
enum ReferenceAt {
    X(f64),
    Y(f64),
    Measured(Box<Quantity>),
}

/// Kind of drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Draw {
    Bars,
    Dots,
    Line,
    /// The distribution of this quantity.
    Cdf(Distribution),
    /// The course over time, of so many intervals each.
    Course(usize),
}

/// Subject of distributions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Distribution {
    Queuing,
    Goodput,
}

/// Treatment of several experiments of a figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Across {
    /// Shows the first one, or those that its quantities name.
    #[default]
    First,
    /// Repeated for each.
    Panels,
    /// Each series is repeated for each.
    Series,
}

impl Panel {
    /// Draws the panel: a chart and its numbers in words, if it has any; or one of each for every experiment.
    pub(crate) fn draw(&self, stored: &[ExperimentData<'_>]) -> Vec<(Chart, Option<String>)> {
        let show = |own, suffix, is_named| {
            let shown = Shown { all: stored, own, suffix, is_named };
            (self.chart(&shown), self.words(&shown))
        };
        match self.across {
            Across::First => vec![show(&stored[..stored.len().min(1)], None, false)],
            Across::Series => vec![show(stored, None, true)],
            Across::Panels => stored
                .iter()
                .map(|one| show(std::slice::from_ref(one), Some(one.0.label.as_str()), false))
                .collect(),
        }
    }

    fn chart(&self, shown: &Shown<'_>) -> Chart {
        let title = match (shown.suffix, self.title.is_empty()) {
            (None, _) => self.title.clone(),
            (Some(label), true) => label.to_owned(),
            (Some(label), false) => format!("{}, {label}", self.title),
        };
        let x = match &self.categories {
            Some(names) => Axis::categories(&self.x.label, names),
            None => self.x.axis(self.draw.is_curve().then_some(0.0)),
        };
        let least = (self.draw == Draw::Bars && self.y.range.is_none()).then_some(0.0);
        let mut chart = Chart::new(title).x(x).y(self.y.axis(least));
        if let Some(paper) = &self.paper {
            chart = chart
                .plot(PointSeries::expected(&paper.name, paper.points.iter().map(|[x, y]| Dot::new(*x, *y))));
        }
        if let Some(given) = &self.given {
            chart = chart.plot(PointSeries::steps(&given.name, given.points.iter().map(|[x, y]| (*x, *y))));
        }
        let chart = shown.series(self).fold(chart, |chart, (name, series, data)| {
            let dots = self.dots(series, shown, data);
            match self.draw {
                Draw::Bars => chart.plot(Bars::new(name, dots)),
                Draw::Dots => chart.plot(PointSeries::scatter(name, dots)),
                Draw::Line => chart.plot(match series.emphasis {
                    Emphasis::Markers => PointSeries::new(name, dots).markers(),
                    Emphasis::Band => PointSeries::new(name, dots).markers().band(),
                    Emphasis::Thin => PointSeries::new(name, dots.iter().map(|dot| Dot::new(dot.x, dot.y))),
                }),
                Draw::Course(intervals) => {
                    chart.plot(PointSeries::new(name, joined(&series.course(shown, data), intervals)))
                }
                Draw::Cdf(of) => {
                    match series.values.first().and_then(|(_, quantity)| cdf(of, quantity, shown, data)) {
                        Some(cdf) => chart.plot(PointSeries::steps(name, cdf.points())),
                        None => chart,
                    }
                }
            }
        });
        let chart = if matches!(self.draw, Draw::Course(_)) { chart.cut_spikes() } else { chart };
        self.references.iter().fold(chart, |chart, Reference { label, at }| match at {
            ReferenceAt::X(x) => chart.vline(*x, label),
            ReferenceAt::Y(y) => chart.hline(*y, label),
            ReferenceAt::Measured(quantity) => match shown.estimate(quantity, shown.own.first()) {
                Some(value) => chart.hline(value.mean, label),
                None => chart,
            },
        })
    }

    fn dots(&self, series: &Series, shown: &Shown<'_>, data: &Data) -> Vec<Dot> {
        let dot = |(place, quantity): &(Place, Quantity)| {
            let value = quantity.estimate(&|id| shown.data(id, data))?;
            // A logarithmic axis has no zero.
            let can_be_drawn = value.mean.is_finite() && (!self.y.log || value.mean > 0.0);
            can_be_drawn.then(|| Dot::from_estimate(place.x, &value))
        };
        series.values.iter().filter_map(dot).collect()
    }

    /// The numbers in words.
    fn words(&self, shown: &Shown<'_>) -> Option<String> {
        if !self.in_words {
            return None;
        }
        let line = |(name, series, data): (String, &Series, &Data)| {
            let values = series.values.iter().map(|(place, quantity)| {
                let value =
                    quantity.estimate(&|id| shown.data(id, data)).filter(|value| value.mean.is_finite());
                format!(
                    "{} {}",
                    place.name,
                    value.map_or_else(|| "-".to_owned(), |value| with_interval(&value))
                )
            });
            format!("{name}: {}.", values.collect::<Vec<_>>().join(", "))
        };
        let lines: Vec<String> = shown.series(self).map(line).collect();
        let title: Vec<&str> = [self.title.as_str(), shown.suffix.unwrap_or_default()]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect();
        Some(format!("{} ({}). {}", title.join(", "), self.y.label, lines.join(" ")))
    }
}

impl Draw {
    /// Returns whether a series is a curve of its own, without places along the horizontal axis.
    const fn is_curve(self) -> bool {
        matches!(self, Self::Cdf(_) | Self::Course(_))
    }
}

impl Series {
    /// The course over time of its measure.
    fn course(&self, shown: &Shown<'_>, data: &Data) -> Vec<(f64, f64)> {
        let course = |(_, quantity): &(Place, Quantity)| {
            Some(quantity.course(shown.data(quantity.experiment(), data)?, self.seed))
        };
        self.values.first().and_then(course).unwrap_or_default()
    }
}

/// A course with so many intervals joined to one: the end of the last, and the mean.
fn joined(course: &[(f64, f64)], intervals: usize) -> Vec<(f64, f64)> {
    let one = |some: &[(f64, f64)]| {
        let mean = some.iter().map(|(_, value)| value).sum::<f64>() / some.len() as f64;
        (some[some.len() - 1].0, mean)
    };
    course.chunks(intervals).map(one).collect()
}

/// The distribution of a group at the point of a quantity, over all seeds.
fn cdf(of: Distribution, quantity: &Quantity, shown: &Shown<'_>, data: &Data) -> Option<Cdf> {
    let data = shown.data(quantity.experiment(), data)?;
    let (point, group) = quantity.place(data)?;
    match of {
        Distribution::Queuing => data.delay_cdf(point, group, "queuing_ms"),
        Distribution::Goodput => data.goodput_cdf(point, group),
    }
}

impl Panel {
    /// Returns all quantities of the panel.
    pub(crate) fn quantities(&self) -> impl Iterator<Item = &Quantity> {
        let measured = self.references.iter().filter_map(|reference| match &reference.at {
            ReferenceAt::Measured(quantity) => Some(&**quantity),
            ReferenceAt::X(_) | ReferenceAt::Y(_) => None,
        });
        self.series
            .iter()
            .flat_map(|series| series.values.iter().map(|(_, quantity)| quantity))
            .chain(measured)
    }

    /// Returns whether it is shown for every experiment of its figure.
    pub(crate) fn is_across(&self) -> bool {
        self.across != Across::First
    }
}

impl AxisText {
    /// The axis of numbers, from `least` if it has no range.
    fn axis(&self, least: Option<f64>) -> Axis {
        let axis = if self.log { Axis::log(&self.label, 10) } else { Axis::linear(&self.label) };
        let axis = match (self.range, least) {
            (Some([low, high]), _) => axis.range(low, high),
            (None, Some(least)) => axis.from(least),
            (None, None) => axis,
        };
        match &self.ticks {
            Some(ticks) => axis.ticks(ticks.iter().copied()),
            None => axis,
        }
    }
}

/// The experiments that a panel shows.
struct Shown<'d> {
    all: &'d [ExperimentData<'d>],
    /// Experiments whose values are drawn.
    own: &'d [ExperimentData<'d>],
    /// Suffix of the title.
    suffix: Option<&'d str>,
    /// True if the names of series include that of the experiment.
    is_named: bool,
}

impl<'d> Shown<'d> {
    /// The series to draw, each with the results that it is about.
    fn series<'p>(
        &self,
        panel: &'p Panel,
    ) -> impl Iterator<Item = (String, &'p Series, &'d Data)> + use<'p, 'd> {
        let (own, is_named, only) = (self.own, self.is_named, panel.series.len() == 1);
        panel.series.iter().flat_map(move |series| {
            own.iter().map(move |(experiment, data)| {
                let name = match (is_named, only) {
                    (false, _) => series.name.clone(),
                    (true, true) => experiment.label.clone(),
                    (true, false) => format!("{}, {}", series.name, experiment.label),
                };
                (name, series, *data)
            })
        })
    }

    fn data<'o>(&self, id: Option<&str>, own: &'o Data) -> Option<&'o Data>
    where
        'd: 'o,
    {
        match id {
            None => Some(own),
            Some(id) => self.all.iter().find(|(one, _)| one.id == id).map(|(_, data)| *data),
        }
    }

    /// A value that is the same for all series.
    fn estimate(&self, quantity: &Quantity, own: Option<&ExperimentData<'d>>) -> Option<Estimate> {
        let (_, data) = own?;
        quantity.estimate(&|id| self.data(id, data))
    }
}

/// A mean with the half-width of its interval, so that a difference within both is seen to be none.
fn with_interval(value: &Estimate) -> String {
    let half = value.half_width();
    let mean = digits_of(value.mean);
    if half > 0.0 { format!("{mean} ± {}", digits_of(half)) } else { mean }
}

/// Three digits, or all before the point.
fn digits_of(value: f64) -> String {
    let size = value.abs();
    let decimals = if size >= 100.0 {
        0
    } else if size >= 10.0 {
        1
    } else if size >= 1.0 {
        2
    } else {
        3
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests;
