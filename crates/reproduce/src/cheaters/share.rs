//! Figures 1 and 2: bulk transfers that claim a wrong hint, by their share: the throughput of liars and of honest transfers,
//! and the quality of honest audio.

use crate::claims::FigureText;
use crate::data::{Data, mean, ratio};
use crate::measure::{Measure, kbps, lost, voice};
use cutline_report::chart::{Axis, Chart, Figure, Line, Point as Dot};
use cutline_report::report::Section;
use cutline_report::stats::Estimate;

/// The queues: their names in the scenario and in charts.
const QUEUES: [(&str, &str); 5] = [
    ("pi", "PI"),
    ("tsq-pi", "TSQ over PI"),
    ("red-worcester", "RED-Worcester"),
    ("tsq-red-worcester", "TSQ over RED-Worcester"),
    ("strict-priority", "strict priority"),
];

/// The points: how many of 80 transfers lie, and the settings of the scenario.
const SHARES: [(f64, Share); 8] = [
    (0.0, Share { liars: "40", liar_hint: "16", honest_hint: "16" }),
    (1.0, Share { liars: "1", ..SOME }),
    (8.0, Share { liars: "8", ..SOME }),
    (20.0, Share { liars: "20", ..SOME }),
    (40.0, SOME),
    (60.0, Share { liars: "60", ..SOME }),
    (72.0, Share { liars: "72", ..SOME }),
    (80.0, Share { liars: "40", liar_hint: "1", honest_hint: "1" }),
];
const SOME: Share = Share { liars: "40", liar_hint: "1", honest_hint: "16" };

/// Indices into [`SHARES`].
const NONE: usize = 0;
const ONE: usize = 1;
const HALF: usize = 4;
const MOST: usize = 6;
const ALL: usize = 7;

#[derive(Clone, Copy)]
struct Share {
    liars: &'static str,
    liar_hint: &'static str,
    honest_hint: &'static str,
}

/// The results of all shares.
struct Shares<'d> {
    data: &'d Data,
}

impl Shares<'_> {
    /// A measure of a group behind a queue, by seed.
    fn of(&self, queue: &str, share: usize, group: &str, measure: Measure) -> Vec<f64> {
        let (_, Share { liars, liar_hint, honest_hint }) = SHARES[share];
        let point = [
            ("dumbbell.queue", queue),
            ("flow.liar.count", liars),
            ("flow.liar.hint", liar_hint),
            ("flow.honest.hint", honest_hint),
        ];
        self.data.by_seed(&point, group, measure)
    }

    fn over_pi(&self, queue: &str, share: usize, group: &str) -> Option<Estimate> {
        ratio(&self.of(queue, share, group, kbps), &self.of("pi", share, group, kbps))
    }
}

pub(super) fn throughput(figure: &FigureText, data: &Data) -> Section {
    let shares = Shares { data };
    let charts = QUEUES[1..].iter().map(|queue| throughput_chart(&shares, queue));
    let drawn = Figure::grid("Throughput of a transfer relative to PI alone", 2, charts);
    Section { we_see: throughput_words(&shares), ..section(figure, drawn) }
}

pub(super) fn audio(figure: &FigureText, data: &Data) -> Section {
    let shares = Shares { data };
    let quality: [(&str, &str, Measure); 4] = [
        ("TSQ's quality", "Quality", |row| row.q),
        ("E-model", "Quality", voice),
        ("Queuing delay", "Mean queuing delay, ms", |row| row.queuing_mean_ms),
        ("Loss", "Packets lost, %", lost),
    ];
    // The delay and loss with strict priority are far larger. They are only in the text.
    let others = &QUEUES[..4];
    let [paper, e_model, delay, loss] = quality;
    let charts = [(paper, &QUEUES[..]), (e_model, &QUEUES[..]), (delay, others), (loss, others)];
    let charts =
        charts.map(|((title, y, measure), queues)| audio_chart(&shares, queues, (title, y), measure));
    let drawn = Figure::grid("Honest audio, hint 6", 2, charts);
    Section { we_see: audio_words(&shares), ..section(figure, drawn) }
}

fn section(figure: &FigureText, drawn: Figure) -> Section {
    Section { figures: vec![(format!("figure-{}", figure.number), drawn)], ..Section::default() }
}

fn share_axis() -> Axis {
    Axis::linear("Transfers that lie, %").range(0.0, 100.0).ticks([0.0, 25.0, 50.0, 75.0, 100.0])
}

/// A point for each share that has a value.
fn by_share(value: impl Fn(usize) -> Option<Estimate>) -> Vec<Dot> {
    let dot = |share: usize| Some(Dot::from_estimate(100.0 * SHARES[share].0 / 80.0, &value(share)?));
    (0..SHARES.len()).filter_map(dot).collect()
}

fn throughput_chart(shares: &Shares<'_>, &(queue, name): &(&str, &str)) -> Chart {
    // If no transfer lies, both groups are honest. If all lie, neither is.
    let liars = by_share(|share| (share != NONE).then(|| shares.over_pi(queue, share, "liar"))?);
    let honest = by_share(|share| (share != ALL).then(|| shares.over_pi(queue, share, "honest"))?);
    Chart::new(name)
        .x(share_axis())
        .y(Axis::linear("Throughput / with PI")
            .range(0.0, if queue == "strict-priority" { 50.0 } else { 1.5 }))
        .plot(Line::new("liar, hint 1", liars).markers())
        .plot(Line::new("honest, hint 16", honest).markers())
        .hline(1.0, "as with PI")
}

fn audio_chart(
    shares: &Shares<'_>,
    queues: &[(&str, &str)],
    (title, y): (&str, &str),
    measure: Measure,
) -> Chart {
    let chart = Chart::new(title).x(share_axis()).y(Axis::linear(y).from(0.0));
    queues.iter().fold(chart, |chart, (queue, name)| {
        let dots = by_share(|share| mean(&shares.of(queue, share, "audio", measure)));
        chart.plot(Line::new(*name, dots).markers())
    })
}

fn throughput_words(shares: &Shares<'_>) -> String {
    let line = |(queue, name): &(&str, &str)| {
        let parts = [ONE, 2, HALF, MOST].map(|share| {
            let text = |group| {
                let estimate = shares.over_pi(queue, share, group);
                estimate.map_or_else(|| "?".to_owned(), |estimate| format!("{:.2}", estimate.mean))
            };
            format!("{} and {}", text("liar"), text("honest"))
        });
        format!("{name}: {}.", parts.join("; "))
    };
    let lines: Vec<String> = QUEUES[1..].iter().map(line).collect();
    format!(
        "Throughput of a liar and of an honest transfer relative to PI, if 1, 8, 40 and 72 of 80 transfers lie.\n\n{}",
        lines.join("\n\n")
    )
}

fn audio_words(shares: &Shares<'_>) -> String {
    let line = |(queue, name): &(&str, &str)| {
        let parts = [NONE, HALF, ALL].map(|share| {
            let text = |measure, decimals: usize| {
                let estimate = mean(&shares.of(queue, share, "audio", measure));
                estimate.map_or_else(|| "?".to_owned(), |estimate| format!("{:.decimals$}", estimate.mean))
            };
            let quality: Measure = |row| row.q;
            let delay: Measure = |row| row.queuing_mean_ms;
            format!("{} ({}; {} ms, {} %)", text(quality, 2), text(voice, 2), text(delay, 0), text(lost, 1))
        });
        format!("{name}: {}.", parts.join(", "))
    };
    let lines = QUEUES.map(|queue| line(&queue)).join("\n\n");
    format!(
        "Quality of audio (by the E-model; mean queuing delay, loss) if none, half and all of the transfers lie.\n\n{lines}"
    )
}
