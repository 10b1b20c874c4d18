//! The course over time, from the intervals of flows and queues.

use super::measure::label;
use super::panels::{Dot, Panel, Series, Shape};
use super::source::{Source, add_name, constant_keys, leads, of_group, of_results};
use crate::columns::{quantities, unknown};
use crate::{AnalysisError, Selection};
use cutline_results::{Column, QueueSeriesRow, Row, SeriesRow};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Default measures.
pub const USUAL: [&str; 4] = ["goodput_bps", "queuing_mean_ms", "backlog_packets", "packets_dropped"];

/// For each seed, the sum of the values and of their weights.
type Seeds = BTreeMap<u64, (f64, f64)>;

/// The intervals of some results.
pub struct Courses<'s> {
    sources: &'s [Source<'s>],
    flows: Vec<Vec<SeriesRow>>,
    queues: Vec<Vec<QueueSeriesRow>>,
}

/// A row of an interval.
trait Interval: Row {
    fn place(&self) -> (&Arc<str>, u64, &Arc<str>, f64);
    /// Returns the weight of the row in the mean of its group.
    fn weight(&self) -> f64;
}

impl Interval for SeriesRow {
    fn place(&self) -> (&Arc<str>, u64, &Arc<str>, f64) {
        (&self.point, self.seed, &self.group, self.start_s)
    }

    fn weight(&self) -> f64 {
        self.packets_received as f64
    }
}

impl Interval for QueueSeriesRow {
    fn place(&self) -> (&Arc<str>, u64, &Arc<str>, f64) {
        (&self.point, self.seed, &self.link, self.start_s)
    }

    fn weight(&self) -> f64 {
        1.0
    }
}

impl<'s> Courses<'s> {
    pub fn read(sources: &'s [Source<'s>]) -> Result<Self, AnalysisError> {
        let flows = sources.iter().map(Source::read).collect::<Result<_, _>>()?;
        let queues = sources.iter().map(Source::read).collect::<Result<_, _>>()?;
        Ok(Self { sources, flows, queues })
    }

    /// The groups that have intervals, and the links.
    pub fn names(&self) -> Vec<Arc<str>> {
        let mut names: Vec<Arc<str>> = Vec::new();
        let groups = self.flows.iter().flatten().map(|row| &row.group);
        for name in groups.chain(self.queues.iter().flatten().map(|row| &row.link)) {
            add_name(&mut names, name);
        }
        names
    }

    /// A measure over time, for each of the results, points, and groups or queues. Rates and packets are sums over the flows of a
    /// group, other measures are means over its packets; over seeds, the mean with its interval.
    ///
    /// # Errors
    /// When no table has the measure.
    pub fn panel(&self, selection: &Selection, measure: &str) -> Result<Panel, AnalysisError> {
        let (flow, queue) = (column::<SeriesRow>(measure), column::<QueueSeriesRow>(measure));
        let series = match (&flow, &queue) {
            // A measure of both is that of flows, unless a link is chosen.
            (Some(column), None) => self.series(&self.flows, column, selection),
            (Some(column), Some(other)) => {
                let found = self.series(&self.flows, column, selection);
                if found.is_empty() { self.series(&self.queues, other, selection) } else { found }
            }
            (None, Some(column)) => self.series(&self.queues, column, selection),
            (None, None) => {
                return Err(unknown("a measure of intervals", measure, &names()));
            }
        };
        let label = label(measure);
        Ok(Panel {
            // The flows of a group are added up.
            title: label.name.replace(" of a flow", " of all flows"),
            measure: measure.to_owned(),
            x: "Time, s".to_owned(),
            y: label.unit.to_owned(),
            names: None,
            from: None,
            to: None,
            shape: Shape::Line,
            series,
        })
    }

    fn series<R: Interval>(
        &self,
        tables: &[Vec<R>],
        column: &Column<R>,
        selection: &Selection,
    ) -> Vec<Series> {
        let scale = label(column.about.name).scale;
        let is_sum = matches!(column.about.unit, "bit/s" | "packets" | "B");
        let mut series = Vec::new();
        let (constant, leads) = (constant_keys(self.sources), leads(self.sources));
        for (source, rows) in self.sources.iter().zip(tables) {
            for point in &source.points {
                let mut names: Vec<&Arc<str>> = Vec::new();
                // By name and start of the interval.
                let mut cells: BTreeMap<(&Arc<str>, u64), Seeds> = BTreeMap::new();
                for row in rows.iter().filter(|row| *row.place().0 == point.label) {
                    let (_, seed, name, start_s) = row.place();
                    let Some(value) = column.number(row).filter(|_| selection.has_group(name)) else {
                        continue;
                    };
                    if !names.contains(&name) {
                        names.push(name);
                    }
                    let start_ns = (start_s * 1e9).round() as u64;
                    let (sum, weights) = cells.entry((name, start_ns)).or_default().entry(seed).or_default();
                    let weight = if is_sum { 1.0 } else { row.weight() };
                    *sum += value * weight;
                    *weights += weight;
                }
                for name in names {
                    let of_name = cells.range((name, 0)..=(name, u64::MAX));
                    let dot = |((_, start_ns), seeds): (&(&Arc<str>, u64), &Seeds)| {
                        let values = seeds.values().filter(|(_, weights)| *weights > 0.0);
                        let values: Vec<f64> = values
                            .map(|(sum, weights)| scale * if is_sum { *sum } else { sum / weights })
                            .collect();
                        Dot::mean(*start_ns as f64 / 1e9, &values)
                    };
                    let points: Vec<Dot> = of_name.filter_map(dot).collect();
                    let mut parts =
                        [of_results(self.sources, source), point.without(&constant, &leads)].concat();
                    parts.push(of_group(name));
                    if !points.is_empty() {
                        series.push(Series::new(parts, "", points));
                    }
                }
            }
        }
        series
    }
}

fn column<R: Row>(measure: &str) -> Option<Column<R>> {
    R::columns().into_iter().find(|column| column.about.name == measure && column.is_quantity())
}

/// The measures of intervals.
fn names() -> Vec<&'static str> {
    quantities::<SeriesRow, QueueSeriesRow>()
}
