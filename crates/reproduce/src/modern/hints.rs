//! Figures 1 to 3: audio and video by their hint, at 100 Mbit/s and at 1 Gbit/s.

use super::scenarios::{QUEUES, over_all};
use crate::claims::{FigureText, Own};
use crate::data::{Data, difference, mean};
use crate::measure::{Measure, kbps, lost, voice};
use cutline_report::chart::{Axis, Chart, Figure, Line, Point as Dot};
use cutline_report::report::Section;
use cutline_report::stats::Estimate;

/// The hints of the experiments. At 1 Gbit/s there are only some of them.
const HINTS: [u16; 8] = [1, 2, 4, 6, 8, 10, 12, 16];
/// The hints that the text reports.
const REPORTED_HINTS: [u16; 3] = [1, 6, 16];

const QD: Measure = |row| row.qd;
const QT: Measure = |row| row.qt;
const Q: Measure = |row| row.q;
const MEDIAN: Measure = |row| row.queuing_p50_ms;
const MARKED: Measure = |row| Some(100.0 * row.mark_ratio?);

pub(super) fn section(figure: &FigureText, data: &Data) -> Section {
    let (title, kinds, queues): (_, &[&str], _) = match figure.number {
        1 => ("Video by its hint, 100 Mbit/s", &["video"], &QUEUES[..]),
        2 => ("Audio by its hint, 100 Mbit/s", &["audio"], &QUEUES[..]),
        _ => ("Audio and video by their hint, 1 Gbit/s", &["audio", "video"], &QUEUES[2..]),
    };
    let panels = kinds.iter().flat_map(|&kind| queues.iter().map(move |&queue| (kind, queue)));
    let charts = panels.map(|(kind, queue)| chart(data, kind, queue, kinds.len() > 1));
    Section {
        we_see: we_see(data, kinds, queues),
        figures: vec![(format!("figure-{}", figure.number), Figure::grid(title, 2, charts))],
        ..Section::default()
    }
}

/// A measure of one kind of flows with a queue, by seed. Audio and video have the hint `hint`.
fn of(data: &Data, queue: &str, hint: u16, kind: &str, measure: Measure) -> Vec<f64> {
    let hint = hint.to_string();
    over_all(data, &[("link.bottleneck.queue", queue), ("flow.video-10.hint", &hint)], kind, measure)
}

fn chart(data: &Data, kind: &str, (queue, name): (&str, &str), with_kind: bool) -> Chart {
    let title = if with_kind { format!("{kind}, {name}") } else { name.to_owned() };
    let curve = |measure| {
        let dot = |&hint: &u16| {
            Some(Dot::from_estimate(f64::from(hint), &mean(&of(data, queue, hint, kind, measure))?))
        };
        HINTS.iter().filter_map(dot).collect::<Vec<_>>()
    };
    let chart = Chart::new(title)
        .x(Axis::linear("Delay hint").range(1.0, 16.0).ticks([1.0, 4.0, 8.0, 12.0, 16.0]))
        .y(Axis::linear("Quality").range(if kind == "audio" { 0.7 } else { 0.9 }, 1.0))
        .plot(Line::new("delay quality Qd", curve(QD)).markers())
        .plot(Line::new("throughput quality Qt", curve(QT)).markers())
        .plot(Line::new("overall quality Q", curve(Q)).markers());
    if kind == "audio" { chart.plot(Line::new("E-model", curve(voice)).markers()) } else { chart }
}

/// The measures of claims that are code.
pub(super) fn own(id: &str) -> Option<Own> {
    let queue =
        QUEUES.iter().map(|(queue, _)| *queue).find(|queue| id.strip_prefix(queue) == Some("-inside"))?;
    Some(Box::new(move |evidence| above_the_ends(evidence.data, queue).into()))
}

/// The quality of video with its best hint, minus that with hint 1 or 16, whichever is better.
fn above_the_ends(data: &Data, queue: &str) -> Option<Estimate> {
    let q = |hint| of(data, queue, hint, "video", Q);
    let (low, high) = (q(1), q(16));
    let better = if mean(&low)?.mean > mean(&high)?.mean { low } else { high };
    difference(&q(best(data, queue, "video")?), &better)
}

fn best(data: &Data, queue: &str, kind: &str) -> Option<u16> {
    let means = HINTS.iter().filter_map(|&hint| Some((hint, mean(&of(data, queue, hint, kind, Q))?.mean)));
    Some(means.max_by(|one, other| one.1.total_cmp(&other.1))?.0)
}

fn we_see(data: &Data, kinds: &[&str], queues: &[(&str, &str)]) -> String {
    let line = |kind: &str, (queue, name): (&str, &str)| {
        let text = |measure, decimals: usize| {
            REPORTED_HINTS
                .map(|hint| {
                    let estimate = mean(&of(data, queue, hint, kind, measure));
                    estimate
                        .map_or_else(|| "?".to_owned(), |estimate| format!("{:.decimals$}", estimate.mean))
                })
                .join(", ")
        };
        let best = best(data, queue, kind).map_or_else(|| "?".to_owned(), |hint| hint.to_string());
        format!(
            "{kind}, {name}: quality {}, best with hint {best}; median queuing delay {} ms; {} kbit/s; lost {} %, marked {} %.",
            text(Q, 3),
            text(MEDIAN, 1),
            text(kbps, 0),
            text(lost, 2),
            text(MARKED, 2)
        )
    };
    let lines: Vec<String> =
        kinds.iter().flat_map(|kind| queues.iter().map(|queue| line(kind, *queue))).collect();
    format!("With hints 1, 6 and 16.\n\n{}", lines.join("\n\n"))
}
