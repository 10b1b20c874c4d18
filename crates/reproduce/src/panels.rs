//! Charts as data: the panels of a figure, in `figures.toml`.
//!
//! ```toml
//! [[figure.panel]]
//! title = "Queuing delay of audio, 99th percentile"
//! y = { label = "Queuing delay, ms", log = true }
//! measure = "queuing_p99_ms"      # what is measured, as in a claim; a series or a place may say otherwise
//! along = [{ each = ["queue"], name = "{queue.name}", at = { "dumbbell.queue" = "{queue.id}" } }]
//! series = [{ each = ["mix"], name = "{mix.name}", of = "audio", at = { "flow.bulk.count" = "{mix.bulk}" } }]
//! reference = { at = 5, label = "5 ms" }
//! ```
//!
//! Places `along` the horizontal axis are categories. If each has an `x`, they are numbers. The values of a series are drawn as `bars`, as
//! `dots`, or as a `line`; by default as bars along categories and as a line along numbers, and as dots on a logarithmic axis. The settings
//! of panel, series and place are joined.
//!
//! What cannot be had as a measure at a point of a sweep, such as distributions and courses over time, is drawn by code.

use crate::claims::{FigureText, Quantity, QuantityText, Rows, Settings, read_quantity, repeat};
use crate::data::Data;
use crate::study::ExperimentData;
use cutline_report::chart::{Axis, Bars, Chart, Figure, Line, Point as Dot};
use cutline_report::report::Section;
use cutline_report::stats::Estimate;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A chart of measures.
#[derive(Clone, Debug)]
pub(crate) struct Panel {
    title: String,
    x: AxisText,
    y: AxisText,
    /// Whether the places are numbers. Otherwise they are categories.
    along_numbers: bool,
    places: Vec<Place>,
    series: Vec<Series>,
    draw: Draw,
    reference: Option<Reference>,
    across: Across,
    /// Whether its numbers are in the text, too.
    in_words: bool,
}

/// A position on the horizontal axis.
#[derive(Clone, Debug)]
struct Place {
    name: String,
    x: f64,
}

/// A series, with what it measures at each place.
#[derive(Clone, Debug)]
struct Series {
    name: String,
    values: Vec<Quantity>,
}

/// An axis, as `figures.toml` describes it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct AxisText {
    #[serde(default)]
    label: String,
    #[serde(default)]
    log: bool,
    range: Option<[f64; 2]>,
    ticks: Option<Vec<f64>>,
}

/// A labelled horizontal line.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reference {
    at: f64,
    label: String,
}

/// How values are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Draw {
    Bars,
    Dots,
    Line,
}

/// What a panel does with several experiments of a figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Across {
    /// It shows the first one, or those that its quantities name.
    #[default]
    First,
    /// It is repeated for each.
    Panels,
    /// Each series is repeated for each.
    Series,
}

/// The keys of a panel that are not about what is measured.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct PanelToml {
    title: String,
    #[serde(default)]
    x: AxisText,
    y: AxisText,
    along: Vec<toml::Table>,
    series: Vec<toml::Table>,
    draw: Option<Draw>,
    reference: Option<Reference>,
    #[serde(default)]
    experiments: Across,
    #[serde(default = "yes")]
    words: bool,
}

const fn yes() -> bool {
    true
}

/// The keys of a series or of a place that are not about what is measured.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedToml {
    name: String,
    x: Option<f64>,
}

impl Panel {
    /// The panels of a table, which may be repeated for rows.
    ///
    /// # Errors
    /// What is wrong, with the panel's title.
    pub(crate) fn read(
        table: &toml::Table,
        points: &BTreeMap<String, Settings>,
        rows: &Rows,
    ) -> Result<Vec<Self>, String> {
        let one = |table: toml::Table| {
            let title = table.get("title").and_then(toml::Value::as_str).unwrap_or("without a title");
            let about = format!("panel `{title}`");
            Self::read_one(table, points, rows).map_err(|what| format!("{about}: {what}"))
        };
        repeat(table, rows)?.into_iter().map(one).collect()
    }

    fn read_one(
        mut table: toml::Table,
        points: &BTreeMap<String, Settings>,
        rows: &Rows,
    ) -> Result<Self, String> {
        let common = read_quantity(&mut table, points)?;
        let panel: PanelToml = table.try_into().map_err(|error| error.to_string())?;
        let named = |tables: &[toml::Table]| -> Result<Vec<(NamedToml, QuantityText)>, String> {
            let repeated = tables.iter().map(|table| repeat(table, rows));
            let repeated = repeated.collect::<Result<Vec<_>, _>>()?.concat();
            let read = repeated.into_iter().map(|mut table| {
                let quantity = read_quantity(&mut table, points)?;
                let named: NamedToml = table.try_into().map_err(|error| error.to_string())?;
                Ok((named, quantity))
            });
            read.collect()
        };
        let (places, series) = (named(&panel.along)?, named(&panel.series)?);
        let numbers = places.iter().filter(|(place, _)| place.x.is_some()).count();
        if numbers > 0 && numbers < places.len() {
            return Err("either every place has an `x`, or none".to_owned());
        }
        let draw = panel.draw.unwrap_or(match (numbers > 0, panel.y.log) {
            (true, _) => Draw::Line,
            (false, true) => Draw::Dots,
            (false, false) => Draw::Bars,
        });
        if draw == Draw::Bars && panel.y.log {
            return Err("bars begin at 0, which a logarithmic axis does not have".to_owned());
        }
        let of_series = |(one, quantity): &(NamedToml, QuantityText)| {
            let here = quantity.or(&common);
            let values = places.iter().map(|(_, place)| place.or(&here).resolve(points));
            Ok(Series { name: one.name.clone(), values: values.collect::<Result<_, String>>()? })
        };
        Ok(Self {
            series: series.iter().map(of_series).collect::<Result<_, String>>()?,
            places: places
                .into_iter()
                .enumerate()
                .map(|(index, (place, _))| Place { name: place.name, x: place.x.unwrap_or(index as f64) })
                .collect(),
            title: panel.title,
            x: panel.x,
            along_numbers: numbers > 0,
            y: panel.y,
            draw,
            reference: panel.reference,
            across: panel.experiments,
            in_words: panel.words,
        })
    }

    fn chart(&self, shown: &Shown<'_>) -> Chart {
        let title =
            shown.suffix.map_or_else(|| self.title.clone(), |label| format!("{}, {label}", self.title));
        let x = if self.along_numbers {
            self.x.axis(None)
        } else {
            Axis::categories(&self.x.label, self.places.iter().map(|place| place.name.as_str()))
        };
        let least = (self.draw == Draw::Bars && self.y.range.is_none()).then_some(0.0);
        let chart = Chart::new(title).x(x).y(self.y.axis(least));
        let chart = shown.series(self).fold(chart, |chart, (name, series, data)| {
            let dot = |(place, quantity): (&Place, &Quantity)| {
                let value = quantity.estimate(&|id| shown.data(id, data))?;
                // A logarithmic axis has no zero.
                (!self.y.log || value.mean > 0.0).then(|| Dot::from_estimate(place.x, &value))
            };
            let dots: Vec<Dot> = self.places.iter().zip(&series.values).filter_map(dot).collect();
            match self.draw {
                Draw::Bars => chart.plot(Bars::new(name, dots)),
                Draw::Dots => chart.plot(Line::scatter(name, dots)),
                Draw::Line => chart.plot(Line::new(name, dots).markers()),
            }
        });
        match &self.reference {
            Some(Reference { at, label }) => chart.hline(*at, label),
            None => chart,
        }
    }

    /// The numbers in words.
    fn words(&self, shown: &Shown<'_>) -> Option<String> {
        if !self.in_words {
            return None;
        }
        let line = |(name, series, data): (String, &Series, &Data)| {
            let values = self.places.iter().zip(&series.values).map(|(place, quantity)| {
                let value = quantity.estimate(&|id| shown.data(id, data));
                format!("{} {}", place.name, value.map_or_else(|| "-".to_owned(), |value| digits(&value)))
            });
            format!("{name}: {}.", values.collect::<Vec<_>>().join(", "))
        };
        let lines: Vec<String> = shown.series(self).map(line).collect();
        let of = shown.suffix.map_or_else(String::new, |label| format!(", {label}"));
        Some(format!("{}{of} ({}). {}", self.title, self.y.label, lines.join(" ")))
    }
}

#[cfg(test)]
impl Panel {
    /// All that it measures.
    pub(crate) fn quantities(&self) -> impl Iterator<Item = &Quantity> {
        self.series.iter().flat_map(|series| &series.values)
    }

    /// Whether it is shown for every experiment of its figure.
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
    /// Those whose values are drawn.
    own: &'d [ExperimentData<'d>],
    /// What is added to the title.
    suffix: Option<&'d str>,
    /// Whether the names of series say which experiment it is.
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
                    (true, true) => experiment.label.to_owned(),
                    (true, false) => format!("{}, {}", series.name, experiment.label),
                };
                (name, series, *data)
            })
        })
    }

    fn data(&self, id: Option<&str>, own: &'d Data) -> Option<&'d Data> {
        match id {
            None => Some(own),
            Some(id) => self.all.iter().find(|(one, _)| one.id == id).map(|(_, data)| *data),
        }
    }
}

/// The section of a figure whose panels are data.
pub(crate) fn section(figure: &FigureText, stored: &[ExperimentData<'_>]) -> Section {
    let (mut charts, mut words) = (Vec::new(), Vec::new());
    for panel in &figure.panels {
        let mut show = |own, suffix, is_named| {
            let shown = Shown { all: stored, own, suffix, is_named };
            charts.push(panel.chart(&shown));
            words.extend(panel.words(&shown));
        };
        match panel.across {
            Across::First => show(&stored[..stored.len().min(1)], None, false),
            Across::Series => show(stored, None, true),
            Across::Panels => {
                for one in stored {
                    show(std::slice::from_ref(one), Some(one.0.label), false);
                }
            }
        }
    }
    let drawn = Figure::grid(figure.title().to_owned(), figure.columns, charts);
    Section {
        we_see: words.join("\n\n"),
        figures: vec![(format!("figure-{}", figure.number), drawn)],
        notes: figure.notes.clone(),
        ..Section::default()
    }
}

/// [`section`], as a study wants it.
pub(crate) fn sections(figure: &FigureText, stored: &[ExperimentData<'_>]) -> Vec<Section> {
    vec![section(figure, stored)]
}

/// A mean with the digits that are worth reading: three, or all before the point.
fn digits(value: &Estimate) -> String {
    let size = value.mean.abs();
    let decimals = if size >= 100.0 {
        0
    } else if size >= 10.0 {
        1
    } else if size >= 1.0 {
        2
    } else {
        3
    };
    format!("{:.decimals$}", value.mean)
}
