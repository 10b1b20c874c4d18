//! Five mixes: the course of RED-Worcester's moving target, and what is irregular in the claims of figures 8, 11 and 12.

use super::mixes::{MIX_NAMES, MIXES};
use crate::claims::Own;
use crate::data::{Data, mean};
use crate::measure::BOTTLENECK;
use crate::study::ExperimentData;
use cutline_report::chart::{Axis, Chart, Figure, Line, Point as Dot};
use cutline_report::report::Section;
use cutline_report::stats::Estimate;
use cutline_results::QueueSeriesRow;

const REDW: &str = "red-worcester";

/// The measuring window, s. Interval series cover the whole run.
const MEASURED_S: std::ops::Range<f64> = 20.0..80.0;

/// The paper's moving targets in the first and the last mix.
const PAPER_TARGETS: [f64; 2] = [48.0, 22.0];

/// The section of figure 8. The others are data.
pub(super) fn section(stored: &[ExperimentData<'_>]) -> Section {
    let variants: Vec<Mixes<'_>> =
        stored.iter().map(|&(experiment, data)| Mixes { data, label: experiment.label }).collect();
    let charts = variants.iter().map(Mixes::target_chart);
    let words = variants.iter().map(|mixes| {
        format!("With {}: {} packets.", mixes.label, all_mixes(|bulk| mean(&mixes.target(bulk)), 1))
    });
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

/// The results of all mixes of one variant.
struct Mixes<'d> {
    data: &'d Data,
    label: &'static str,
}

impl Mixes<'_> {
    /// The mean of a measure of the queue in a mix, by seed; empty if there are no results.
    fn queue_values(&self, queue: &str, bulk: u16, measure: fn(&QueueSeriesRow) -> Option<f64>) -> Vec<f64> {
        let Some(point) = self.point(queue, bulk) else { return Vec::new() };
        let mean_of = |rows: &Vec<&QueueSeriesRow>| {
            let measured = rows.iter().filter(|row| MEASURED_S.contains(&row.start_s));
            let values: Vec<f64> = measured.filter_map(|row| measure(row)).collect();
            values.iter().sum::<f64>() / values.len() as f64
        };
        self.data.queue_intervals(point, BOTTLENECK).iter().map(mean_of).collect()
    }

    fn point(&self, queue: &str, bulk: u16) -> Option<&str> {
        self.data.point_with_values(&[("dumbbell.queue", queue), ("flow.bulk.count", &bulk.to_string())])
    }

    fn target(&self, bulk: u16) -> Vec<f64> {
        self.queue_values(REDW, bulk, |row| row.target_packets)
    }

    /// The standard deviation of the target over time; mean over seeds.
    fn target_deviation(&self, bulk: u16) -> Option<f64> {
        let squares = self.queue_values(REDW, bulk, |row| Some(row.target_packets?.powi(2)));
        let variances = squares.iter().zip(self.target(bulk)).map(|(square, mean)| square - mean * mean);
        Some(mean(&variances.map(|variance| variance.max(0.0).sqrt()).collect::<Vec<_>>())?.mean)
    }

    /// The mean backlog over time, packets, by seed.
    fn queue(&self, queue: &str, bulk: u16) -> Vec<f64> {
        let of = |point| self.data.queue_values(point, BOTTLENECK, |row| row.backlog_mean_packets);
        self.point(queue, bulk).map_or_else(Vec::new, of)
    }

    /// The share of arrivals that were dropped, %, by seed.
    fn drops(&self, queue: &str, bulk: u16) -> Vec<f64> {
        let of = |point| {
            self.data
                .queue_values(point, BOTTLENECK, |row| row.drop_ratio.map_or(f64::NAN, |ratio| 100.0 * ratio))
        };
        self.point(queue, bulk).map_or_else(Vec::new, of)
    }
}

/// Charts.
impl Mixes<'_> {
    fn target_chart(&self) -> Chart {
        let dots = MIXES.iter().enumerate().filter_map(|(x, &bulk)| {
            let (mean, deviation) = (mean(&self.target(bulk))?.mean, self.target_deviation(bulk)?);
            Some(Dot::new(x as f64, mean).with_interval(mean - deviation, mean + deviation))
        });
        let [first, last] = PAPER_TARGETS;
        by_mix(self.label, "Moving target, packets", 60.0)
            .plot(Line::expected("paper", [(0.0, first), (4.0, last)]))
            .plot(Line::new("mean, and standard deviation over time", dots.collect::<Vec<_>>()).markers())
    }
}

fn by_mix(title: &str, y: &str, max: f64) -> Chart {
    let x = Axis::categories("Throughput-sensitive : delay-sensitive flows", MIX_NAMES);
    Chart::new(title).x(x).y(Axis::linear(y).range(0.0, max))
}

/// The measures of claims that are code.
pub(super) fn own(id: &str) -> Option<Own> {
    let measure: fn(&Mixes<'_>) -> Option<Estimate> = match id {
        "target-first" => |mixes| mean(&mixes.target(19)),
        "target-last" => |mixes| mean(&mixes.target(1)),
        "target-linear" => |mixes| off_the_line(|bulk| mixes.target(bulk)),
        "queue-follows" => |mixes| mixes.off_the_target(),
        "drops-linear" => |mixes| off_the_line(|bulk| mixes.drops(REDW, bulk)),
        "drops-elsewhere" => |mixes| mean(&mixes.dropped_elsewhere()),
        _ => return None,
    };
    Some(Box::new(move |evidence| {
        measure(&Mixes { data: evidence.data, label: evidence.experiment.label }).into()
    }))
}

impl Mixes<'_> {
    /// Packets dropped at any other queue than the bottleneck's, in all mixes and with all queues, by seed.
    fn dropped_elsewhere(&self) -> Vec<f64> {
        self.data.dropped_elsewhere(BOTTLENECK)
    }

    /// The largest distance of the mean queue from its target in any mix, packets.
    fn off_the_target(&self) -> Option<Estimate> {
        let off = |bulk: &u16| {
            let (queue, target) = (self.queue(REDW, *bulk), self.target(*bulk));
            mean(&queue.iter().zip(&target).map(|(queue, target)| (queue - target).abs()).collect::<Vec<_>>())
        };
        MIXES.iter().filter_map(off).max_by(|one, other| one.mean.total_cmp(&other.mean))
    }
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

fn all_mixes(value: impl Fn(u16) -> Option<Estimate>, decimals: usize) -> String {
    let text = |&bulk: &u16| {
        value(bulk).map_or_else(|| "?".to_owned(), |estimate| format!("{:.decimals$}", estimate.mean))
    };
    MIXES.iter().map(text).collect::<Vec<_>>().join(", ")
}
