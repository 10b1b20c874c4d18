//! Figure 7: three laws at the same targets, with and without TSQ on top.

use crate::claims::FigureText;
use crate::data::{Data, mean};
use crate::measure::{Measure, kbps, lost, voice};
use crate::study::ExperimentData;
use cutline_report::chart::{Axis, Chart, Figure, Line, Point as Dot};
use cutline_report::report::Section;
use cutline_report::stats::Estimate;

/// The number of the figure.
pub(super) const FIGURE: u32 = 7;

/// The queues: their names in the scenario, the key of the target, and the names in charts.
const QUEUES: [(&str, &str, &str); 6] = [
    ("pie", "queue.pie.target", "PIE"),
    ("tsq-pie", "queue.tsq-pie.target", "TSQ over PIE"),
    ("pi2", "queue.pi2.target", "PI2"),
    ("tsq-pi2", "queue.tsq-pi2.target", "TSQ over PI2"),
    ("pi", "queue.pi.q-ref", "PI"),
    ("tsq-pi", "queue.tsq-pi.q-ref", "TSQ over PI"),
];
const TARGETS_MS: [u32; 7] = [5, 10, 20, 40, 80, 150, 200];

pub(super) fn section(figure: &FigureText, stored: &[ExperimentData<'_>]) -> Section {
    let charts = stored.iter().flat_map(|(experiment, data)| {
        let panels: [(&str, &str, Measure); 2] =
            [("Quality", "marked", |row| row.q), ("E-model", "marked", voice)];
        panels.map(|(name, group, measure)| {
            chart(data, &format!("{name}, {}", experiment.label), group, measure)
        })
    });
    let drawn = Figure::grid("Audio by the target of the queue", 2, charts);
    let words = stored.iter().map(|(experiment, data)| words(experiment.label, data));
    Section {
        we_see: words.collect::<Vec<_>>().join("\n\n"),
        figures: vec![(format!("figure-{}", figure.number), drawn)],
        ..Section::default()
    }
}

fn value(
    data: &Data,
    (queue, key, _): (&str, &str, &str),
    ms: u32,
    group: &str,
    measure: Measure,
) -> Option<Estimate> {
    let target = format!("{ms} ms");
    mean(&data.by_seed(&[("dumbbell.queue", queue), (key, &target)], group, measure))
}

fn chart(data: &Data, title: &str, group: &str, measure: Measure) -> Chart {
    let axis = Axis::log("Target, ms", 10).range(4.0, 250.0).ticks(TARGETS_MS.map(f64::from));
    let chart = Chart::new(title).x(axis).y(Axis::linear("Quality").range(0.0, 1.0));
    QUEUES.iter().fold(chart, |chart, queue| {
        let dot =
            |&ms: &u32| Some(Dot::from_estimate(f64::from(ms), &value(data, *queue, ms, group, measure)?));
        chart.plot(Line::new(queue.2, TARGETS_MS.iter().filter_map(dot).collect::<Vec<_>>()).markers())
    })
}

fn words(name: &str, data: &Data) -> String {
    let line = |queue: (&str, &str, &str)| {
        let parts = TARGETS_MS.map(|ms| {
            let text = |group, measure, decimals: usize| {
                value(data, queue, ms, group, measure)
                    .map_or_else(|| "-".to_owned(), |value| format!("{:.decimals$}", value.mean))
            };
            let quality: Measure = |row| row.q;
            format!(
                "{ms} ms {} ({}; {} %), {}",
                text("marked", quality, 2),
                text("marked", voice, 2),
                text("marked", lost, 1),
                text("bulk", kbps, 0)
            )
        });
        format!("{}: {}.", queue.2, parts.join("; "))
    };
    format!(
        "{name}: quality of audio (E-model; loss) and throughput of a transfer, kbit/s. {}",
        QUEUES.map(line).join(" ")
    )
}
