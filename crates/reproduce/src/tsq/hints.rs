//! Figures 8 to 13: one delay-sensitive flow among bulk transfers, by its hint.

use crate::claims::{FigureText, Own};
use crate::data::{Data, Point, difference, mean};
use crate::experiment::Experiment;
use crate::study::ExperimentData;
use cutline_report::chart::{Axis, Chart, Figure, Legend, Line, Point as Dot};
use cutline_report::report::Section;
use cutline_report::stats::{Cdf, Estimate};
use cutline_results::FlowRow;

/// The figures about the hint of one flow: 8 to 10 for audio, 11 to 13 for video.
pub(super) struct Hints {
    /// The name of the flow and of its group.
    flow: &'static str,
    /// The name of the flow in titles.
    title: &'static str,
    /// The numbers of the three figures: delay, throughput, quality.
    figures: [u32; 3],
}

pub(super) const AUDIO: Hints = Hints { flow: "audio", title: "the audio conference", figures: [8, 9, 10] };
pub(super) const VIDEO: Hints = Hints { flow: "video", title: "the video conference", figures: [11, 12, 13] };

const HINTS: [u16; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
/// The hints whose distributions the paper shows.
const SHOWN: [u16; 3] = [1, 6, 16];
/// The paper's best hint.
const PAPER_BEST: u16 = 6;
/// The warm-up of the experiments, which interval series include.
const WARM_UP_S: f64 = 20.0;

impl Hints {
    pub(super) fn section(&self, figure: &FigureText, stored: &[ExperimentData<'_>]) -> Section {
        let [delay, throughput, _] = self.figures;
        let number = figure.number;
        let panels: Vec<Chart> = stored
            .iter()
            .map(|(experiment, data)| match number {
                n if n == delay => self.delay_chart(experiment, data),
                n if n == throughput => self.throughput_chart(experiment, data),
                _ => self.quality_chart(experiment, data),
            })
            .collect();
        let title = match number {
            n if n == delay => format!("Queuing delay of {} by its hint", self.title),
            n if n == throughput => format!("Throughput of {} by its hint", self.title),
            _ => format!("Quality of {} by its hint", self.title),
        };
        // The step functions of throughput leave no space for names beside them.
        let legend = if number == delay { Legend::Direct } else { Legend::Top };
        let drawn = Figure::grid(title, panels.len().min(2), panels).legend(legend);
        Section {
            we_see: self.we_see(number, stored),
            figures: vec![(format!("figure-{number}"), drawn)],
            notes: notes(number),
            ..Section::default()
        }
    }

    /// The point with TSQ and the hint `hint`.
    fn point<'d>(&self, data: &'d Data, hint: u16) -> Option<&'d Point> {
        data.point(&[("queue.bottleneck.tsq", 1.0), (&format!("flow.{}.hint", self.flow), f64::from(hint))])
    }

    /// A measure of the flow with TSQ and a hint, by seed; empty if there are no results.
    fn with_hint(&self, data: &Data, hint: u16, measure: fn(&FlowRow) -> Option<f64>) -> Vec<f64> {
        self.point(data, hint).map_or_else(Vec::new, |point| data.per_seed(point, self.flow, measure))
    }

    /// A measure of the flow without TSQ, by seed.
    fn without_tsq(&self, data: &Data, measure: fn(&FlowRow) -> Option<f64>) -> Vec<f64> {
        alone(data).map_or_else(Vec::new, |point| data.per_seed(point, self.flow, measure))
    }

    fn delay_chart(&self, experiment: &Experiment, data: &Data) -> Chart {
        let cdf = |point: &Point| data.delay_cdf(point, self.flow, "queuing_ms");
        let chart = Chart::new(experiment.label).x(Axis::linear("Queuing delay, ms").from(0.0));
        self.cdf_chart(chart, data, cdf).y(Axis::linear("Share of packets").range(0.0, 1.0))
    }

    fn throughput_chart(&self, experiment: &Experiment, data: &Data) -> Chart {
        let cdf = |point: &Point| data.throughput_cdf(point, self.flow, WARM_UP_S);
        let chart = Chart::new(experiment.label).x(Axis::linear("Throughput in 300 ms, kbit/s").from(0.0));
        self.cdf_chart(chart, data, cdf).y(Axis::linear("Share of intervals").range(0.0, 1.0))
    }

    fn cdf_chart(&self, mut chart: Chart, data: &Data, cdf: impl Fn(&Point) -> Option<Cdf>) -> Chart {
        for hint in SHOWN {
            if let Some(cdf) = self.point(data, hint).and_then(&cdf) {
                chart = chart.plot(Line::steps(format!("hint {hint}"), cdf.points()));
            }
        }
        if let Some(cdf) = alone(data).and_then(&cdf) {
            chart = chart.plot(Line::steps("PI alone", cdf.points()));
        }
        chart
    }

    fn quality_chart(&self, experiment: &Experiment, data: &Data) -> Chart {
        let curve = |measure: fn(&FlowRow) -> Option<f64>| -> Vec<Dot> {
            let dot = |&hint: &u16| {
                Some(Dot::from_estimate(f64::from(hint), &mean(&self.with_hint(data, hint, measure))?))
            };
            HINTS.iter().filter_map(dot).collect()
        };
        let chart = Chart::new(experiment.label)
            .x(Axis::linear("Delay hint").range(1.0, 16.0).ticks([1.0, 4.0, 6.0, 8.0, 12.0, 16.0]))
            .y(Axis::linear("Quality").range(0.0, 1.0))
            // The first line is solid and has the band: the overall quality is the point.
            .plot(Line::new("overall quality Q", curve(|row| row.q)).markers().band())
            .plot(Line::new("delay quality Qd", curve(|row| row.qd)))
            .plot(Line::new("throughput quality Qt", curve(|row| row.qt)))
            .vline(f64::from(PAPER_BEST), "paper's best");
        match mean(&self.without_tsq(data, |row| row.q)) {
            Some(alone) => chart.hline(alone.mean, "Q with PI alone"),
            None => chart,
        }
    }

    /// The measures of claims that are code.
    pub(super) fn own(&'static self, id: &str) -> Option<Own> {
        match id {
            "best-inside" => Some(Box::new(|evidence| {
                self.best(evidence.data).and_then(|best| self.above_the_ends(evidence.data, best.hint)).into()
            })),
            _ => None,
        }
    }

    /// Overall quality with a hint less that with hint 1 or 16, whichever is better.
    fn above_the_ends(&self, data: &Data, hint: u16) -> Option<Estimate> {
        let q = |hint| self.with_hint(data, hint, |row| row.q);
        let (low, high) = (q(1), q(16));
        let better = if mean(&low)?.mean > mean(&high)?.mean { low } else { high };
        difference(&q(hint), &better)
    }

    /// The hint of the best overall quality, and those that cannot be told from it.
    fn best(&self, data: &Data) -> Option<Best> {
        let q = |hint: u16| self.with_hint(data, hint, |row| row.q);
        let means: Vec<(u16, f64)> =
            HINTS.iter().filter_map(|&hint| Some((hint, mean(&q(hint))?.mean))).collect();
        let &(hint, _) = means.iter().max_by(|one, other| one.1.total_cmp(&other.1))?;
        let best = q(hint);
        let as_good = |other: u16| {
            let above = difference(&best, &q(other)).and_then(|estimate| estimate.interval);
            above.is_none_or(|(low, _)| low <= 0.0)
        };
        let alike: Vec<u16> =
            HINTS.iter().copied().filter(|&other| other == hint || as_good(other)).collect();
        Some(Best { hint, least: *alike.first()?, most: *alike.last()? })
    }

    fn we_see(&self, number: u32, stored: &[ExperimentData<'_>]) -> String {
        let Some((_, data)) = stored.first() else { return String::new() };
        let text = |value: Option<Estimate>, decimals: usize| {
            value.map_or_else(|| "no value".to_owned(), |estimate| format!("{:.decimals$}", estimate.mean))
        };
        let at = |hint, measure| mean(&self.with_hint(data, hint, measure));
        if number == self.figures[0] {
            let [one, six, most] = SHOWN.map(|hint| text(at(hint, |row| row.queuing_p50_ms), 1));
            format!(
                "Medians of {one}, {six} and {most} ms for hints 1, 6 and 16: in the hints' order, and the curves get steeper as the hint falls."
            )
        } else if number == self.figures[1] {
            let [one, six, most] = SHOWN.map(|hint| text(at(hint, |row| Some(row.goodput_bps / 1e3)), 0));
            format!("Mean throughput of {one}, {six} and {most} kbit/s for hints 1, 6 and 16.")
        } else {
            let best_hints =
                stored.iter().filter_map(|(experiment, data)| Some((experiment.label, self.best(data)?)));
            let words: Vec<String> = best_hints
                .map(|(label, best)| {
                    format!("{} ({label}; {} to {} are as good)", best.hint, best.least, best.most)
                })
                .collect();
            format!(
                "Delay quality falls and throughput quality rises with the hint. The best overall quality is at hint {}.",
                words.join(", ")
            )
        }
    }
}

/// The point without TSQ.
fn alone(data: &Data) -> Option<&Point> {
    data.point(&[("queue.bottleneck.tsq", 0.0)])
}

fn notes(number: u32) -> Vec<String> {
    let notes: &[&str] = match number {
        10 => &[
            "The two curves cross where TSQ's drops have reduced throughput quality to delay quality. Where that is depends on the \
             timeout in TFRC's equation, which dominates at the loss that a low hint pays: hint 6 pays 3.5 times p, 7.6 % instead of \
             2.2 %. ns-2, which the authors used, estimates the timeout with a clock of 100 ms; RFC 5348 section 3.1 takes four round \
             trips, and its best hint is 8.",
            "The law assumes 40 ms for the rest of the round-trip time, which is 300 ms here. So it charges more than \
             the sender gains by the shorter wait.",
        ],
        9 => &[
            "If all flows have hint 16, the queue is first in, first out. The run is identical to that with PI alone, and the \
             ratio is exactly 1.",
            "An interval of 300 ms has about five packets of 1000 B at 128 kbit/s, so the curves have steps.",
        ],
        13 => &[
            "PI's 200 packets are 400 ms at 4 Mbit/s. With TCP windows of at most 20 packets (ns-2's default, which the paper \
             does not mention) the windows alone nearly fill this queue, and p is 0.1 %. Without this limit p is 0.5 %, hint 1 pays \
             46 times that, and flows with a low hint get very little: with a long queue the law is steep.",
        ],
        12 => &[
            "Whether the difference is significant depends on p, which the charge multiplies. With windows of 20 packets and \
             video over TCP, throughput hardly depends on the hint from 3 on; without this limit it does.",
        ],
        _ => &[],
    };
    notes.iter().map(|note| (*note).to_owned()).collect()
}

struct Best {
    hint: u16,
    /// The smallest hint that is not significantly worse than the best.
    least: u16,
    /// The largest hint that is not significantly worse than the best.
    most: u16,
}
