//! Figures 14 and 16: audio conferences and file transfers in four mixes, with TSQ over PI and with PI alone.

use crate::claims::{FigureText, Judge, judged};
use crate::data::{Data, difference, ratio};
use crate::experiment::Experiment;
use crate::study::Stored;
use cutline_report::chart::{Axis, Bars, Chart, Figure, Line, Point as Dot};
use cutline_report::report::{Claim, Section, Verdict};
use cutline_report::stats::Estimate;

/// How many of the 100 flows are audio.
const MIXES: [u16; 4] = [1, 25, 50, 75];
/// The classes, by their groups' names, and what a chart calls them.
const GROUPS: [(&str, &str); 2] = [("audio", "audio, hint 6"), ("bulk", "file transfer, hint 16")];

/// What figure 14's text gives for audio in the first and the last mix ("8 % to 18 %").
const PAPER: [(f64, f64); 2] = [(0.0, 1.18), (3.0, 1.08)];

pub(super) fn section(figure: &FigureText, stored: &[Stored<'_>]) -> Section {
    let number = figure.number;
    let panels: Vec<Chart> =
        stored.iter().map(|(experiment, data)| chart(number, experiment, data)).collect();
    let claims: Vec<Claim> = stored
        .iter()
        .flat_map(|(experiment, data)| {
            figure
                .claim_ids()
                .map(|id| judge(figure.claim_of(experiment, id), id, number, data))
                .collect::<Vec<_>>()
        })
        .collect();
    let drawn = Figure::grid("Mean quality with TSQ / without, by class", panels.len(), panels);
    Section {
        we_see: we_see(stored),
        figures: vec![(format!("figure-{number}"), drawn)],
        claims,
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

/// Mean quality of a class in a mix, by seed.
fn quality(data: &Data, audio: u16, group: &str, tsq: f64) -> Vec<f64> {
    let point = data.point(&[("queue.bottleneck.tsq", tsq), ("flow.audio.count", f64::from(audio))]);
    point.map_or_else(Vec::new, |point| data.per_seed(point, group, |row| row.q))
}

fn normalised(data: &Data, audio: u16, group: &str) -> Option<Estimate> {
    ratio(&quality(data, audio, group, 1.0), &quality(data, audio, group, 0.0))
}

/// The ratios themselves, by seed.
fn ratios(data: &Data, audio: u16) -> Vec<f64> {
    let (over, under) = (quality(data, audio, "audio", 1.0), quality(data, audio, "audio", 0.0));
    over.iter().zip(&under).map(|(with, without)| with / without).collect()
}

fn judge(claim: Claim, id: &str, figure: u32, data: &Data) -> Claim {
    if id == "audio-falls" {
        return judged(claim, difference(&ratios(data, 1), &ratios(data, 75)), |found| found.is_above(0.0));
    }
    let (group, mix) = id.split_once('-').expect("a claim on a mix is named CLASS-NUMBER");
    let audio: u16 = mix.parse().expect("a claim on a mix is named CLASS-NUMBER");
    judged(claim, normalised(data, audio, group), |found| match (figure, group) {
        (14, "audio") => gains_as_stated(found),
        (_, "audio") => found.is_above(1.0),
        _ => found.is_not_below(1.0),
    })
    .note(if figure == 14 && group == "audio" { GAIN_NOTE } else { "" })
}

const GAIN_NOTE: &str =
    "Holds if audio gains, beyond the interval's doubt; the size is shown beside the paper's.";

fn gains_as_stated(found: &Estimate) -> Verdict {
    found.is_above(1.0)
}

fn we_see(stored: &[Stored<'_>]) -> String {
    let line = |(experiment, data): &(&'static Experiment, &Data)| {
        let gains = |group| {
            let percent = MIXES.map(|audio| {
                normalised(data, audio, group)
                    .map_or_else(|| "?".to_owned(), |found| format!("{:+.1} %", (found.mean - 1.0) * 100.0))
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
            "A single audio flow over TFRC with hint 6 is held back by its throughput quality (see figure 10): it gains \
             less than each of 25 does, because with more audio p is smaller and less is paid for cutting in line. TCP is \
             held back less. Over UDP (figure 16) the gain falls from the first mix on, as in the paper.",
            "File transfer is judged for files of 10 Mbit, so that Qt = T / S nowhere reaches 1 and the ratio is that of \
             the throughputs.",
        ],
        _ => &[
            "UDP pays for cutting in line with loss alone: Q, which counts received bits, hardly shows it. At 25 : 75 the \
               audio loses 4.6 % of its packets with TSQ and 2.1 % without.",
        ],
    };
    notes.iter().map(|note| (*note).to_owned()).collect()
}
