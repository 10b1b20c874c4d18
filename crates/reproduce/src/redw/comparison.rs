//! Figures 8 and 11 to 14: five mixes with RED-Worcester, Adaptive RED, and the sorted queue.

use super::mixes::{MIX_NAMES, MIXES};
use crate::claims::{FigureText, Own};
use crate::data::{Data, mean, ratio};
use crate::measure::{BOTTLENECK, Measure, qos_by_delay, qos_by_throughput};
use crate::study::ExperimentData;
use cutline_report::chart::{Axis, Chart, Figure, Line, Point as Dot};
use cutline_report::report::Section;
use cutline_report::stats::Estimate;
use cutline_results::QueueSeriesRow;

/// The queues: their names in the scenario and in charts.
const REDW: (&str, &str) = ("red-worcester", "RED-Worcester");
const ARED: (&str, &str) = ("ared", "Adaptive RED");
const SORTED: (&str, &str) = ("sorted", "sorted (TSQ over RED-Worcester)");

/// The measuring window, s. Interval series cover the whole run.
const MEASURED_S: std::ops::Range<f64> = 20.0..80.0;

/// The paper's moving targets in the first and the last mix.
const PAPER_TARGETS: [f64; 2] = [48.0, 22.0];
/// The target of Adaptive RED, packets.
const ARED_TARGET: f64 = 50.0;

pub(super) fn section(figure: &FigureText, stored: &[ExperimentData<'_>]) -> Section {
    let title = match figure.number {
        8 => "The moving target, mean and standard deviation over time",
        11 => "Mean queue",
        12 => "Packets dropped",
        13 => "QoS = T of throughput-sensitive flows, over Adaptive RED's",
        _ => "QoS = sqrt(T / D) of delay-sensitive flows, over Adaptive RED's",
    };
    let variants: Vec<Mixes<'_>> =
        stored.iter().map(|&(experiment, data)| Mixes { data, label: experiment.label }).collect();
    let charts = variants.iter().map(|mixes| mixes.chart(figure.number));
    let words: Vec<String> = variants.iter().map(|mixes| mixes.we_see(figure.number)).collect();
    Section {
        we_see: format!("From 19 : 1 to 1 : 19. {}", words.join("\n\n")),
        figures: vec![(format!("figure-{}", figure.number), Figure::grid(title, 2, charts))],
        notes: notes(figure.number).iter().map(|note| (*note).to_owned()).collect(),
        ..Section::default()
    }
}

/// A class of flows and the measure of its quality of service.
struct Class {
    group: &'static str,
    qos: Measure,
    /// The range of charts of its gains.
    range: (f64, f64),
}

const THROUGHPUT: Class = Class { group: "bulk", qos: qos_by_throughput, range: (0.8, 1.2) };
const DELAY: Class = Class { group: "media", qos: qos_by_delay, range: (0.9, 1.5) };

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
        self.queue_values(REDW.0, bulk, |row| row.target_packets)
    }

    /// The standard deviation of the target over time; mean over seeds.
    fn target_deviation(&self, bulk: u16) -> Option<f64> {
        let squares = self.queue_values(REDW.0, bulk, |row| Some(row.target_packets?.powi(2)));
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

    /// The mean `QoS` of the flows of a class, by seed.
    fn power(&self, class: &Class, queue: &str, bulk: u16) -> Vec<f64> {
        self.point(queue, bulk)
            .map_or_else(Vec::new, |point| self.data.per_seed(point, class.group, class.qos))
    }

    /// The mean `QoS` relative to that with Adaptive RED.
    fn gain(&self, class: &Class, queue: &str, bulk: u16) -> Option<Estimate> {
        ratio(&self.power(class, queue, bulk), &self.power(class, ARED.0, bulk))
    }
}

/// Charts.
impl Mixes<'_> {
    fn chart(&self, figure: u32) -> Chart {
        match figure {
            8 => self.target_chart(),
            11 => self.queue_chart(),
            12 => self.drops_chart(),
            13 => self.power_chart(&THROUGHPUT),
            _ => self.power_chart(&DELAY),
        }
    }

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

    fn queue_chart(&self) -> Chart {
        let chart = lines(by_mix(self.label, "Mean queue, packets", 60.0), |queue, bulk| {
            mean(&self.queue(queue, bulk))
        });
        chart.hline(ARED_TARGET, "Adaptive RED's target")
    }

    fn drops_chart(&self) -> Chart {
        lines(by_mix(self.label, "Packets dropped, %", 6.0), |queue, bulk| mean(&self.drops(queue, bulk)))
    }

    fn power_chart(&self, class: &Class) -> Chart {
        let chart = Chart::new(self.label)
            .x(mix_axis())
            .y(Axis::linear("Normalised QoS").range(class.range.0, class.range.1));
        let chart = [REDW, SORTED]
            .into_iter()
            .fold(chart, |chart, (queue, name)| chart.plot(line(name, |bulk| self.gain(class, queue, bulk))));
        chart.hline(1.0, "as with Adaptive RED")
    }
}

/// A line for each of the queues.
fn lines(chart: Chart, value: impl Fn(&str, u16) -> Option<Estimate>) -> Chart {
    let queues = [REDW, ARED, SORTED].into_iter();
    queues.fold(chart, |chart, (queue, name)| chart.plot(line(name, |bulk| value(queue, bulk))))
}

fn line(name: &str, value: impl Fn(u16) -> Option<Estimate>) -> Line {
    let dot = |(x, &bulk): (usize, &u16)| Some(Dot::from_estimate(x as f64, &value(bulk)?));
    Line::new(name, MIXES.iter().enumerate().filter_map(dot).collect::<Vec<_>>()).markers()
}

fn mix_axis() -> Axis {
    Axis::categories("Throughput-sensitive : delay-sensitive flows", MIX_NAMES)
}

fn by_mix(title: &str, y: &str, max: f64) -> Chart {
    Chart::new(title).x(mix_axis()).y(Axis::linear(y).range(0.0, max))
}

/// The measures of claims that are code.
pub(super) fn own(id: &str) -> Option<Own> {
    let measure: fn(&Mixes<'_>) -> Option<Estimate> = match id {
        "target-first" => |mixes| mean(&mixes.target(19)),
        "target-last" => |mixes| mean(&mixes.target(1)),
        "target-linear" => |mixes| off_the_line(|bulk| mixes.target(bulk)),
        "queue-follows" => |mixes| mixes.off_the_target(),
        "drops-linear" => |mixes| off_the_line(|bulk| mixes.drops(REDW.0, bulk)),
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
            let (queue, target) = (self.queue(REDW.0, *bulk), self.target(*bulk));
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

/// Texts.
impl Mixes<'_> {
    fn we_see(&self, figure: u32) -> String {
        let of_queues = |value: &dyn Fn(&str, u16) -> Option<Estimate>, decimals: usize| {
            let line = |(queue, name): (&str, &str)| {
                format!("{name}: {}.", all_mixes(|bulk| value(queue, bulk), decimals))
            };
            [REDW, ARED, SORTED].map(line).join(" ")
        };
        let values = match figure {
            8 => format!("{} packets.", all_mixes(|bulk| mean(&self.target(bulk)), 1)),
            11 => of_queues(&|queue, bulk| mean(&self.queue(queue, bulk)), 1),
            12 => of_queues(&|queue, bulk| mean(&self.drops(queue, bulk)), 2),
            _ => {
                let class = if figure == 13 { &THROUGHPUT } else { &DELAY };
                let line = |(queue, name): (&str, &str)| {
                    format!("{name}: {}.", all_mixes(|bulk| self.gain(class, queue, bulk), 3))
                };
                [REDW, SORTED].map(line).join(" ")
            }
        };
        format!("With {}: {values}", self.label)
    }
}

fn all_mixes(value: impl Fn(u16) -> Option<Estimate>, decimals: usize) -> String {
    let text = |&bulk: &u16| {
        value(bulk).map_or_else(|| "?".to_owned(), |estimate| format!("{:.decimals$}", estimate.mean))
    };
    MIXES.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn notes(figure: u32) -> &'static [&'static str] {
    match figure {
        8 => &[
            "The flow of each packet determines the target, and 19 flows of 20 need not have exactly 19 packets of 20.",
        ],
        12 => &[
            "Whether the drops of Adaptive RED rise depends on the variant of TFRC. By RFC 5348 they do not; with that of ns-2 \
                 they do, as in the paper. The reason is the timeout in the equation: ns-2 estimates it with a clock of 0.1 s, \
                 while the RFC uses four round-trip times. With this clock (rto-tick = \"100 ms\") and everything else by the \
                 RFC, drops rise from 3.39 % to 3.67 %. TFRC then sends more if there are many drops, so more drops are needed \
                 to control the queue.",
        ],
        13 => &[
            "The throughput of a single throughput-sensitive flow varies strongly between seeds, so the interval at 1 : 19 is \
                 wide.",
        ],
        _ => &[],
    }
}
