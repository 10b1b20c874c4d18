//! Figures 14 and 16: audio conferences and file transfers in four mixes, with TSQ over PI and with PI alone.

use crate::claims::FigureText;
use crate::data::{Data, ratio};
use crate::experiment::Experiment;
use crate::study::ExperimentData;
use cutline_report::chart::{Axis, Bars, Chart, Figure, Line, Point as Dot};
use cutline_report::report::Section;
use cutline_report::stats::Estimate;

/// The number of audio flows among 100 flows.
const MIXES: [u16; 4] = [1, 25, 50, 75];
/// The classes: the names of their groups, and their names in charts.
const GROUPS: [(&str, &str); 2] = [("audio", "audio, hint 6"), ("bulk", "file transfer, hint 16")];

/// The gains of audio in the first and the last mix, from the text on figure 14 ("8 % to 18 %").
const PAPER: [(f64, f64); 2] = [(0.0, 1.18), (3.0, 1.08)];

pub(super) fn section(figure: &FigureText, stored: &[ExperimentData<'_>]) -> Section {
    let number = figure.number;
    let panels: Vec<Chart> =
        stored.iter().map(|(experiment, data)| chart(number, experiment, data)).collect();
    let drawn = Figure::grid("Mean quality with TSQ / without, by class", panels.len(), panels);
    Section {
        we_see: we_see(stored),
        figures: vec![(format!("figure-{number}"), drawn)],
        notes: notes(number),
        ..Section::default()
    }
}

fn chart(figure: u32, experiment: &Experiment, data: &Data) -> Chart {
    let mut chart = Chart::new(format!("Audio over {}", experiment.label))
        .x(Axis::categories("Audio : file transfer", ["1 : 99", "25 : 75", "50 : 50", "75 : 25"]))
        .y(Axis::linear("Normalised quality").range(0.9, 1.2))
        .hline(1.0, "as without TSQ");
    if figure == 14 {
        chart = chart.plot(Line::expected("paper, audio", PAPER));
    }
    for (group, name) in GROUPS {
        let bar = |(x, &audio): (usize, &u16)| {
            Some(Dot::from_estimate(
                x as f64,
                &ratio(&quality(data, audio, group, 1.0), &quality(data, audio, group, 0.0))?,
            ))
        };
        let bars: Vec<Dot> = MIXES.iter().enumerate().filter_map(bar).collect();
        chart = chart.plot(Bars::new(name, bars));
    }
    chart
}

/// The mean quality of a class in a mix, by seed.
fn quality(data: &Data, audio: u16, group: &str, tsq: f64) -> Vec<f64> {
    let point = data.point(&[("queue.bottleneck.tsq", tsq), ("flow.audio.count", f64::from(audio))]);
    point.map_or_else(Vec::new, |point| data.per_seed(point, group, |row| row.q))
}

fn normalised(data: &Data, audio: u16, group: &str) -> Option<Estimate> {
    ratio(&quality(data, audio, group, 1.0), &quality(data, audio, group, 0.0))
}

fn we_see(stored: &[ExperimentData<'_>]) -> String {
    let line = |(experiment, data): &(&'static Experiment, &Data)| {
        let gains = |group| {
            let percent = MIXES.map(|audio| {
                normalised(data, audio, group).map_or_else(
                    || "?".to_owned(),
                    |estimate| format!("{:+.1} %", (estimate.mean - 1.0) * 100.0),
                )
            });
            percent.join(", ")
        };
        format!("Audio over {}: audio {}; file transfer {}.", experiment.label, gains("audio"), gains("bulk"))
    };
    format!(
        "With 1, 25, 50 and 75 audio flows of 100. {}",
        stored.iter().map(line).collect::<Vec<_>>().join(" ")
    )
}

fn notes(figure: u32) -> Vec<String> {
    let notes: &[&str] = match figure {
        14 => &[
            "With today's TFRC the quality of a single audio flow with hint 6 is limited by its throughput quality (see figure 10). It \
             gains less than each of 25 flows, because p is smaller if there is more audio, and cutting in line costs less. With \
             ns-2's TFRC, with TCP and over UDP (figure 16) the gain falls from the first mix on, as in the paper.",
            "The quality of file transfer is that of files of 10 Mbit. Qt = T / S does not reach 1 in any mix, so the ratio is \
             that of the throughputs.",
        ],
        _ => &[
            "UDP pays for cutting in line only with loss, and Q, which counts received bits, hardly shows it. At 25 : 75 audio \
               loses 4.6 % of its packets with TSQ and 2.1 % without.",
        ],
    };
    notes.iter().map(|note| (*note).to_owned()).collect()
}
