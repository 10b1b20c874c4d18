//! The RED-Worcester paper's evaluation: figures 8 to 14. Figures 1 and 2 are about `QoS` in general, 3 to 5 show the
//! algorithms, 6 the topology, 7 the mixes. Here is the irregular part: the bars of figure 8, how far a measure is off
//! a straight line or off its target in any mix, and how fast `max_p` changes.
//!
//! In addition to the paper's two queues there is the extension that its section 5 leaves to future work: a queue that is
//! sorted by hints, in which packets that overtake others are dropped with a higher probability. This is TSQ over
//! RED-Worcester.

use crate::BOTTLENECK;
use cutline_report::chart::{Axis, Chart, ChartPoint as Dot, Figure, PointSeries};
use cutline_report::report::Section;
use cutline_report::stats::Estimate;
use cutline_results::QueueSeriesRow;
use cutline_study::{Code, Data, Evidence, ExperimentData, FigureText, Own, mean, ratio, results_of};
use std::ops::Range;

pub(crate) const CODE: Code = Code { own: |_, id| own(id), sections };

/// The number of throughput-sensitive flows in each mix. The others of the 20 flows are delay-sensitive.
const MIXES: [u16; 5] = [19, 15, 10, 5, 1];
/// The names of the mixes in charts.
const MIX_NAMES: [&str; 5] = ["19 : 1", "15 : 5", "10 : 10", "5 : 15", "1 : 19"];
const REDW: &str = "red-worcester";
/// The measuring window of the mixes, s. Interval series cover the whole run.
const MEASURED_S: Range<f64> = 20.0..80.0;
/// The time at which the mix of figures 9 and 10 changes, s, and the periods in which `max_p` counts as settled.
const CHANGE_S: f64 = 40.0;
const BEFORE_S: Range<f64> = 30.0..40.0;
const AFTER_S: Range<f64> = 80.0..100.0;
/// The paper's moving targets in the first and the last mix.
const PAPER_TARGETS: [f64; 2] = [48.0, 22.0];

fn sections(figure: &FigureText, stored: &[ExperimentData<'_>]) -> Vec<Section> {
    match figure.number {
        8 => vec![moving_target(stored)],
        _ => cutline_study::sections(figure, stored),
    }
}

/// Figure 8. Its bars are the standard deviation over time, and not intervals.
fn moving_target(stored: &[ExperimentData<'_>]) -> Section {
    let charts = stored.iter().map(|(experiment, data)| target_chart(&experiment.label, data));
    let targets = |data: &Data| {
        let of = |bulk: &u16| {
            mean(&target(data, *bulk)).map_or_else(|| "?".to_owned(), |one| format!("{:.1}", one.mean))
        };
        MIXES.iter().map(of).collect::<Vec<_>>().join(", ")
    };
    let words = stored
        .iter()
        .map(|(experiment, data)| format!("With {}: {} packets.", experiment.label, targets(data)));
    let drawn = Figure::grid("The moving target, mean and standard deviation over time", 2, charts);
    Section {
        we_see: format!("From 19 : 1 to 1 : 19. {}", words.collect::<Vec<_>>().join("\n\n")),
        figures: vec![("figure-8".to_owned(), drawn)],
        notes: vec![
            "The flow of each packet determines the target, and 19 flows of 20 need not have exactly 19 packets of 20.".to_owned(),
        ],
        ..Section::default()
    }
}

fn target_chart(label: &str, data: &Data) -> Chart {
    let dots = MIXES.iter().enumerate().filter_map(|(x, &bulk)| {
        let (mean, deviation) = (mean(&target(data, bulk))?.mean, target_deviation(data, bulk)?);
        Some(Dot::new(x as f64, mean).with_interval(mean - deviation, mean + deviation))
    });
    let [first, last] = PAPER_TARGETS;
    let x = Axis::categories("Throughput-sensitive : delay-sensitive flows", MIX_NAMES);
    Chart::new(label)
        .x(x)
        .y(Axis::linear("Moving target, packets").range(0.0, 60.0))
        .plot(PointSeries::expected("paper", [(0.0, first), (4.0, last)]))
        .plot(PointSeries::new("mean, and standard deviation over time", dots.collect::<Vec<_>>()).markers())
}

/// The measures of claims that are code.
fn own(id: &str) -> Option<Own> {
    let measure: fn(&Evidence<'_>) -> Option<Estimate> = match id {
        "target-linear" => |evidence| off_the_line(|bulk| target(evidence.data, bulk)),
        "queue-follows" => |evidence| off_the_target(evidence.data),
        "drops-linear" => |evidence| off_the_line(|bulk| drops(evidence.data, bulk)),
        "drops-elsewhere" => |evidence| mean(&evidence.data.dropped_elsewhere(BOTTLENECK)),
        "down-faster" => |evidence| {
            // The same variant of the rise.
            let rising = results_of(evidence.all, &evidence.experiment.id.replace("down", "up"))?;
            let falls = speed(evidence.data, ("flow.media.count", "1"));
            ratio(&falls, &speed(rising, ("flow.bulk.count", "1")))
        },
        _ => return None,
    };
    Some(Box::new(move |evidence| measure(evidence).into()))
}

fn point(data: &Data, bulk: u16) -> Option<&str> {
    data.point_with_values(&[("dumbbell.queue", REDW), ("flow.bulk.count", &bulk.to_string())])
}

/// The mean of a measure of RED-Worcester's queue over the measuring window, by seed; empty if there are no results.
fn over_time(data: &Data, bulk: u16, measure: fn(&QueueSeriesRow) -> Option<f64>) -> Vec<f64> {
    let Some(point) = point(data, bulk) else { return Vec::new() };
    data.queue_intervals(point, BOTTLENECK)
        .iter()
        .map(|rows| mean_within(rows, &MEASURED_S, measure))
        .collect()
}

fn target(data: &Data, bulk: u16) -> Vec<f64> {
    over_time(data, bulk, |row| row.target_packets)
}

/// The standard deviation of the target over time; mean over seeds.
fn target_deviation(data: &Data, bulk: u16) -> Option<f64> {
    let squares = over_time(data, bulk, |row| Some(row.target_packets?.powi(2)));
    let variances = squares.iter().zip(target(data, bulk)).map(|(square, mean)| square - mean * mean);
    Some(mean(&variances.map(|variance| variance.max(0.0).sqrt()).collect::<Vec<_>>())?.mean)
}

/// The share of arrivals that were dropped, %, by seed.
fn drops(data: &Data, bulk: u16) -> Vec<f64> {
    let of = |point| {
        data.queue_values(point, BOTTLENECK, |row| row.drop_ratio.map_or(f64::NAN, |ratio| 100.0 * ratio))
    };
    point(data, bulk).map_or_else(Vec::new, of)
}

/// The largest distance of the mean queue from its target in any mix, packets.
fn off_the_target(data: &Data) -> Option<Estimate> {
    let off = |bulk: &u16| {
        let queue = data.queue_values(point(data, *bulk)?, BOTTLENECK, |row| row.backlog_mean_packets);
        let target = target(data, *bulk);
        mean(&queue.iter().zip(&target).map(|(queue, target)| (queue - target).abs()).collect::<Vec<_>>())
    };
    MIXES.iter().filter_map(off).max_by(|one, other| one.mean.total_cmp(&other.mean))
}

/// The largest distance in any mix of a measure from the straight line between the first and the last mix.
fn off_the_line(measure: impl Fn(u16) -> Vec<f64>) -> Option<Estimate> {
    let [first, last] = [MIXES[0], MIXES[4]];
    let (at_first, at_last) = (measure(first), measure(last));
    let off = |bulk: &u16| {
        let share = f64::from(first - bulk) / f64::from(first - last);
        let ends = at_first.iter().zip(&at_last);
        let on_line = ends.map(|(first, last)| first + share * (last - first));
        mean(
            &measure(*bulk).iter().zip(on_line).map(|(value, line)| (value - line).abs()).collect::<Vec<_>>(),
        )
    };
    MIXES.iter().filter_map(off).max_by(|one, other| one.mean.total_cmp(&other.mean))
}

/// The speed of `max_p` over the first 90 % of its change, per second, by seed, at the point where a key has this value.
fn speed(data: &Data, setting: (&str, &str)) -> Vec<f64> {
    let of_seed = |rows: Vec<&QueueSeriesRow>| {
        let settled = |part| mean_within(&rows, part, |row| row.max_p);
        let (from, to) = (settled(&BEFORE_S), settled(&AFTER_S));
        let change = 0.9 * (to - from);
        let is_there =
            |max_p: Option<f64>| max_p.is_some_and(|max_p| (max_p - from - change) * change.signum() >= 0.0);
        let reached = rows.iter().find(|row| row.end_s > CHANGE_S && is_there(row.max_p));
        reached.map_or(f64::NAN, |row| change.abs() / (row.end_s - CHANGE_S))
    };
    let seeds = data.point_with_values(&[setting]).map(|point| data.queue_intervals(point, BOTTLENECK));
    seeds.unwrap_or_default().into_iter().map(of_seed).collect()
}

fn mean_within(
    rows: &[&QueueSeriesRow],
    part: &Range<f64>,
    measure: fn(&QueueSeriesRow) -> Option<f64>,
) -> f64 {
    let inside = rows.iter().filter(|row| part.contains(&row.start_s));
    let values: Vec<f64> = inside.filter_map(|row| measure(row)).collect();
    values.iter().sum::<f64>() / values.len() as f64
}
