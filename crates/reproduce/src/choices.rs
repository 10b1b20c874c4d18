//! What the TSQ paper leaves to the reader: l, the way to combine qualities, the AQM below.

use crate::claims::FigureText;
use crate::data::{Data, mean, ratio};
use crate::experiment::{Experiment, scenario, text_of};
use crate::measure::{DERIVED, Measure, kbps};
use crate::study::{ExperimentData, Study};
use cutline_report::chart::{Axis, Bars, Chart, Figure, Line, Point as Dot};
use cutline_report::report::Section;

/// The study.
pub const CHOICES: Study = Study {
    id: "choices",
    title: "What the TSQ paper leaves to the reader",
    statement_heading: "The question",
    intro: INTRO,
    figures: text_of!("choices/figures.toml"),
    experiments: &EXPERIMENTS,
    own: |_, _| None,
    sections_of,
};

const INTRO: &str = "\
The TSQ paper's dumbbell with the transports of ns-2, which its authors used: one audio conference among 99 bulk transfers by its hint and by l, \
and 25 among 75 with TSQ over the four AQMs that the paper names. Numbers are means over seeds with their 95 % confidence interval, paired \
by seed where two settings are compared.";

const EXPERIMENTS: [Experiment; 2] = [
    Experiment::new("choices-l", "PI", scenario!("choices/l.toml")),
    Experiment::new("choices-aqm", "four AQMs", scenario!("choices/aqm.toml")),
];

const ROUND_TRIPS: [&str; 4] = ["40 ms", "60 ms", "100 ms", "300 ms"];
const HINTS: [&str; 10] = ["1", "2", "4", "5", "6", "7", "8", "10", "12", "16"];
const AQMS: [(&str, &str); 4] = [("pi", "PI"), ("red", "RED"), ("blue", "BLUE"), ("sfc", "SFC")];
/// The ways to combine delay quality and throughput quality: the names of the measures, and in charts.
const WAYS: [(&str, &str); 3] = [("q", "the lesser"), ("q_mean", "mean"), ("q_product", "product")];

fn sections_of(figure: &FigureText, stored: &[ExperimentData<'_>]) -> Vec<Section> {
    let Some(&(_, data)) = stored.first() else { return Vec::new() };
    let (chart, we_see) = match figure.number {
        1 => (by_l(data), seen_by_l(data)),
        2 => (by_way(data), String::new()),
        _ => (by_aqm(data), seen_by_aqm(data)),
    };
    vec![Section {
        we_see,
        figures: vec![(
            format!("figure-{}", figure.number),
            Figure::grid(figure.heading.clone(), 1, [chart]),
        )],
        ..Section::default()
    }]
}

/// A measure of audio with a hint, by seed.
fn audio(data: &Data, l: &str, hint: &str, measure: Measure) -> Vec<f64> {
    data.by_seed(&[("queue.bottleneck.tsq.l", l), ("flow.audio.hint", hint)], "audio", measure)
}

fn measure_of(way: &str) -> Measure {
    DERIVED.iter().find(|(name, _)| *name == way).map_or(|row| row.q, |(_, measure)| *measure)
}

/// A line of a measure by the hint.
fn by_hint(name: &str, chart: Chart, values: impl Fn(&str) -> Vec<f64>) -> Chart {
    let dot = |hint: &&str| Some(Dot::from_estimate(hint.parse().ok()?, &mean(&values(hint))?));
    chart.plot(Line::new(name, HINTS.iter().filter_map(dot).collect::<Vec<_>>()).markers())
}

fn hint_chart() -> Chart {
    Chart::new("")
        .x(Axis::linear("Delay hint").range(1.0, 16.0).ticks([1.0, 4.0, 6.0, 8.0, 12.0, 16.0]))
        .y(Axis::linear("Quality of audio").range(0.0, 1.0))
}

fn by_l(data: &Data) -> Chart {
    ROUND_TRIPS.iter().fold(hint_chart(), |chart, l| {
        by_hint(&format!("l = {l}"), chart, |hint| audio(data, l, hint, |row| row.q))
    })
}

fn by_way(data: &Data) -> Chart {
    WAYS.iter().fold(hint_chart(), |chart, (way, name)| {
        by_hint(name, chart, |hint| audio(data, ROUND_TRIPS[0], hint, measure_of(way)))
    })
}

/// A measure of a group with a queue, by seed.
fn with_queue(data: &Data, queue: &str, group: &str, measure: Measure) -> Vec<f64> {
    data.by_seed(&[("dumbbell.queue", queue)], group, measure)
}

fn by_aqm(data: &Data) -> Chart {
    let chart = Chart::new("")
        .x(Axis::categories("AQM", AQMS.map(|(_, name)| name)))
        .y(Axis::linear("With TSQ / without").range(0.9, 1.3))
        .hline(1.0, "as without TSQ");
    let kinds: [(&str, &str, Measure); 2] =
        [("audio", "quality of audio, hint 6", |row| row.q), ("bulk", "throughput of file transfer", kbps)];
    kinds.into_iter().fold(chart, |chart, (group, name, measure)| {
        let bar = |(x, (aqm, _)): (usize, &(&str, &str))| {
            let with = with_queue(data, &format!("tsq-{aqm}"), group, measure);
            Some(Dot::from_estimate(x as f64, &ratio(&with, &with_queue(data, aqm, group, measure))?))
        };
        chart.plot(Bars::new(name, AQMS.iter().enumerate().filter_map(bar).collect::<Vec<_>>()))
    })
}

fn shown(values: &[f64], decimals: usize) -> String {
    mean(values).map_or_else(|| "-".to_owned(), |estimate| format!("{:.decimals$}", estimate.mean))
}

fn seen_by_l(data: &Data) -> String {
    let line = |l: &&str| {
        let qualities = ["1", "4", "6", "8", "16"].map(|hint| shown(&audio(data, l, hint, |row| row.q), 3));
        format!("l = {l}: {}.", qualities.join(", "))
    };
    let lines: Vec<String> = ROUND_TRIPS.iter().map(line).collect();
    format!("Quality with hints 1, 4, 6, 8 and 16.\n\n{}", lines.join("\n\n"))
}

fn seen_by_aqm(data: &Data) -> String {
    let line = |(aqm, name): &(&str, &str)| {
        let of = |queue: &str| {
            let delay = with_queue(data, queue, "audio", |row| row.queuing_mean_ms);
            let (quality, files) =
                (with_queue(data, queue, "audio", |row| row.q), with_queue(data, queue, "bulk", kbps));
            format!(
                "quality {}, delay {} ms, files {} kbit/s",
                shown(&quality, 3),
                shown(&delay, 0),
                shown(&files, 0)
            )
        };
        format!("{name}: {}; with TSQ {}.", of(aqm), of(&format!("tsq-{aqm}")))
    };
    AQMS.iter().map(line).collect::<Vec<_>>().join("\n\n")
}
