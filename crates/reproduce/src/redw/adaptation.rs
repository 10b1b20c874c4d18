//! Figures 9 and 10: how `max_p` follows a change of the mix.

use super::mixes::{MIX_NAMES, MIXES};
use crate::claims::{FigureText, Own};
use crate::data::{Data, difference, mean, ratio};
use crate::measure::BOTTLENECK;
use crate::study::ExperimentData;
use cutline_report::chart::{Axis, Chart, Figure, Legend, Line};
use cutline_report::report::Section;
use cutline_report::stats::Estimate;
use cutline_results::QueueSeriesRow;
use std::ops::Range;

/// The time at which the mix changes, s.
const CHANGE_S: f64 = 40.0;
/// The period before the change in which `max_p` counts as settled, s.
const BEFORE_S: Range<f64> = 30.0..40.0;
/// The period after the change in which `max_p` counts as settled, s.
const AFTER_S: Range<f64> = 80.0..100.0;

pub(super) fn section(figure: &FigureText, stored: &[ExperimentData<'_>]) -> Section {
    let variants: Vec<Changes<'_>> =
        stored.iter().map(|&(experiment, data)| Changes { data, id: experiment.id }).collect();
    let charts = variants.iter().zip(stored).map(|(shown, (experiment, _))| shown.chart(experiment.label));
    let words: Vec<String> = variants
        .iter()
        .zip(stored)
        .map(|(shown, (experiment, _))| format!("With {}: {}", experiment.label, shown.we_see()))
        .collect();
    let drawn = Figure::grid(title(figure.number), 2, charts).legend(Legend::Top);
    Section {
        we_see: format!("max_p before the change and at the end. {}", words.join("\n\n")),
        figures: vec![(format!("figure-{}", figure.number), drawn)],
        notes: notes(figure.number).iter().map(|note| (*note).to_owned()).collect(),
        ..Section::default()
    }
}

fn title(figure: u32) -> &'static str {
    match figure {
        9 => "max_p, from throughput-sensitive traffic to each mix",
        _ => "max_p, from delay-sensitive traffic to each mix",
    }
}

/// An experiment in which the mix changes.
struct Changes<'d> {
    data: &'d Data,
    id: &'static str,
}

impl Changes<'_> {
    /// The intervals of each seed for a change to a mix with `bulk` throughput-sensitive flows.
    fn intervals(&self, bulk: u16) -> Vec<Vec<&QueueSeriesRow>> {
        let (group, count) = match self.id {
            id if id.starts_with("maxp-up") => ("flow.bulk.count", bulk),
            _ => ("flow.media.count", 20 - bulk),
        };
        let point = self.data.point(&[(group, f64::from(count))]);
        point.map_or_else(Vec::new, |point| self.data.queue_intervals(point, BOTTLENECK))
    }

    /// The mean of `max_p` in a part of the run, by seed.
    fn max_p(&self, bulk: u16, part: &Range<f64>) -> Vec<f64> {
        self.intervals(bulk).iter().map(|rows| mean_within(rows, part)).collect()
    }

    /// The speed of `max_p` over the first 90 % of its change, per second, by seed.
    fn speed(&self, bulk: u16) -> Vec<f64> {
        self.intervals(bulk).iter().map(|rows| speed(rows)).collect()
    }

    fn chart(&self, label: &str) -> Chart {
        let axis = Axis::linear("Time, s").range(0.0, 100.0);
        let chart = Chart::new(label).x(axis).y(Axis::linear("max_p").range(0.0, 1.0));
        let chart = MIXES.iter().zip(MIX_NAMES).fold(chart, |chart, (&bulk, name)| {
            chart.plot(Line::new(format!("to {name}"), over_time(&self.intervals(bulk))))
        });
        chart.vline(CHANGE_S, "the mix changes")
    }

    fn we_see(&self) -> String {
        let settled = MIXES.iter().zip(MIX_NAMES).map(|(&bulk, name)| {
            let value = |part| mean(&self.max_p(bulk, part)).map_or(f64::NAN, |estimate| estimate.mean);
            format!("{name}: {:.3} to {:.3}", value(&BEFORE_S), value(&AFTER_S))
        });
        format!("{}.", settled.collect::<Vec<_>>().join("; "))
    }
}

fn mean_within(rows: &[&QueueSeriesRow], part: &Range<f64>) -> f64 {
    let inside = rows.iter().filter(|row| part.contains(&row.start_s));
    let values: Vec<f64> = inside.filter_map(|row| row.max_p).collect();
    values.iter().sum::<f64>() / values.len() as f64
}

/// The speed of `max_p` over the first 90 % of its change, per second.
fn speed(rows: &[&QueueSeriesRow]) -> f64 {
    let (from, to) = (mean_within(rows, &BEFORE_S), mean_within(rows, &AFTER_S));
    let change = 0.9 * (to - from);
    let reached = rows.iter().find(|row| row.end_s > CHANGE_S && reaches(row.max_p, from + change, change));
    reached.map_or(f64::NAN, |row| change.abs() / (row.end_s - CHANGE_S))
}

fn reaches(max_p: Option<f64>, goal: f64, change: f64) -> bool {
    max_p.is_some_and(|max_p| (max_p - goal) * change.signum() >= 0.0)
}

/// The mean of `max_p` over seeds, at the end of each interval.
fn over_time(seeds: &[Vec<&QueueSeriesRow>]) -> Vec<(f64, f64)> {
    let Some(first) = seeds.first() else { return Vec::new() };
    let at = |index: usize| {
        let values: Vec<f64> = seeds.iter().filter_map(|rows| rows.get(index)?.max_p).collect();
        values.iter().sum::<f64>() / values.len() as f64
    };
    first.iter().enumerate().map(|(index, row)| (row.end_s, at(index))).collect()
}

/// The measures of claims that are code.
pub(super) fn own(id: &str) -> Option<Own> {
    let measure: fn(&Changes<'_>, Option<&Changes<'_>>) -> Option<Estimate> = match id {
        "up-rises" => |shown, _| difference(&shown.max_p(1, &AFTER_S), &shown.max_p(1, &BEFORE_S)),
        "up-ordered" => |shown, _| difference(&shown.max_p(1, &AFTER_S), &shown.max_p(10, &AFTER_S)),
        "up-ordered-least" => |shown, _| difference(&shown.max_p(10, &AFTER_S), &shown.max_p(19, &AFTER_S)),
        "down-begins" => |shown, _| mean(&shown.max_p(19, &BEFORE_S)),
        "down-falls" => |shown, _| difference(&shown.max_p(19, &BEFORE_S), &shown.max_p(19, &AFTER_S)),
        "down-faster" => |shown, rising| ratio(&shown.speed(19), &rising?.speed(1)),
        _ => return None,
    };
    Some(Box::new(move |evidence| {
        let shown = Changes { data: evidence.data, id: evidence.experiment.id };
        // The same variant of the rise.
        let rising = evidence.experiment.id.replace("down", "up");
        let rising = evidence.all.iter().find(|(experiment, _)| experiment.id == rising);
        let rising = rising.map(|&(experiment, data)| Changes { data, id: experiment.id });
        measure(&shown, rising.as_ref()).into()
    }))
}

fn notes(figure: u32) -> &'static [&'static str] {
    match figure {
        9 => &["The paper does not say when the mix changes. Here it changes at 40 s."],
        _ => &[
            "max_p begins at 1, as in the paper, and falls until the average queue is within the range around its target. \
                Adaptive RED does not change max_p within this range. So its final value depends on its first: it is higher \
                than in figure 9 for the same mix.",
        ],
    }
}
