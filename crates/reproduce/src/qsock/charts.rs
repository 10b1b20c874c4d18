//! The figures: bars for each flow in each case, and what they show in words.

use super::measure::Quantity;
use crate::data::mean;
use crate::qos::shown;
use crate::study::ExperimentData;
use crate::study::results_of;
use cutline_report::chart::{Axis, Bars, Chart, Line, Point as Dot};

/// A bar: its name in the paper, the experiment, the flow.
type Column = (&'static str, &'static str, &'static str);

const NETVIDEO: [Column; 13] = [
    ("A1", "netvideo-a1", "main"),
    ("A2", "netvideo-a2", "main"),
    ("A3", "netvideo-a3", "tg"),
    ("B1a", "netvideo-b1", "main"),
    ("B1b", "netvideo-b1", "tg"),
    ("B2a", "netvideo-b2", "main"),
    ("B2b", "netvideo-b2", "tg"),
    ("C1a", "netvideo-c1", "main"),
    ("C1b", "netvideo-c1", "tg.1"),
    ("C1c", "netvideo-c1", "tg.2"),
    ("C2a", "netvideo-c2", "main"),
    ("C2b", "netvideo-c2", "tg.1"),
    ("C2c", "netvideo-c2", "tg.2"),
];

const DIRM: [Column; 13] = [
    ("A1", "dirm-a1", "main"),
    ("A2", "dirm-a2", "main"),
    ("A3", "dirm-a3", "tg"),
    ("B1a", "dirm-b1", "main"),
    ("B1b", "dirm-b1", "tg"),
    ("B2a", "dirm-b2", "main"),
    ("B2b", "dirm-b2", "tg"),
    ("C1a", "dirm-c1", "main"),
    ("C1b", "dirm-c1", "tg.1"),
    ("C1c", "dirm-c1", "tg.2"),
    ("C2a", "dirm-c2", "main"),
    ("C2b", "dirm-c2", "tg.1"),
    ("C2c", "dirm-c2", "tg.2"),
];

const ACKNOWLEDGED: [Column; 7] = [
    ("A1", "dirm-a1", "main"),
    ("A2", "dirm-a2", "main"),
    ("C2", "dirm-c2", "main"),
    ("C2 both", "dirm-c2-both", "main"),
    ("D1", "dirm-d1", "main"),
    ("D2", "dirm-d2", "main"),
    ("D3 both", "dirm-d3", "main"),
];

const VIDEOS: [Column; 6] = [
    ("A1", "netvideo-a1", "main"),
    ("A2", "netvideo-a2", "main"),
    ("B1", "netvideo-b1", "main"),
    ("B2", "netvideo-b2", "main"),
    ("C1", "netvideo-c1", "main"),
    ("C2", "netvideo-c2", "main"),
];

const NARROW: [Column; 6] = [
    ("C1a", "netvideo-c1-narrow", "main"),
    ("C1b", "netvideo-c1-narrow", "tg.1"),
    ("C1c", "netvideo-c1-narrow", "tg.2"),
    ("C2a", "netvideo-c2-narrow", "main"),
    ("C2b", "netvideo-c2-narrow", "tg.1"),
    ("C2c", "netvideo-c2-narrow", "tg.2"),
];

/// What the paper's text says of the bars of a figure.
const RATES: &[(&str, f64)] = &[("A1", 570.0), ("A2", 530.0), ("B2a", 530.0), ("C1a", 250.0), ("C2a", 520.0)];
const LOSSES: &[(&str, f64)] = &[
    ("A2", 0.0),
    ("A3", 0.0),
    ("B1a", 0.0),
    ("B1b", 0.0),
    ("B2a", 0.0),
    ("B2b", 0.0),
    ("C1a", 47.0),
    ("C1b", 25.0),
    ("C1c", 25.0),
    ("C2a", 0.0),
    ("C2b", 40.0),
    ("C2c", 40.0),
];
const DELAYS: &[(&str, f64)] =
    &[("C1b", 600.0), ("C1c", 600.0), ("C2a", 25.0), ("C2b", 720.0), ("C2c", 720.0)];
const JITTERS: &[(&str, f64)] = &[("C1a", 115.0), ("C2a", 5.0)];

/// The charts of a figure.
pub(super) fn of(figure: u32, stored: &[ExperimentData<'_>]) -> Vec<Chart> {
    let bars = |columns: &[Column],
                title: &str,
                unit: &str,
                quantities: &[(&str, Quantity)],
                paper: &[(&str, f64)]| {
        chart(stored, columns, &format!("{title}, {unit}"), quantities, paper)
    };
    let rates: &[(&str, Quantity)] = &[("sent", Quantity::Sent), ("received", Quantity::Received)];
    let loss: &[(&str, Quantity)] = &[("lost", Quantity::Loss)];
    let delay: &[(&str, Quantity)] = &[("mean delay", Quantity::Delay)];
    let jitter: &[(&str, Quantity)] = &[("mean jitter", Quantity::Jitter)];
    match figure {
        6 => vec![bars(&NETVIDEO, "Rate", "kbit/s", rates, RATES)],
        7 => vec![bars(&NETVIDEO, "Messages lost", "%", loss, LOSSES)],
        8 => vec![bars(&NETVIDEO, "Delay", "ms", delay, DELAYS)],
        9 => vec![bars(&NETVIDEO, "Jitter", "ms", jitter, JITTERS)],
        10 => vec![bars(&DIRM, "Rate", "kbit/s", rates, &[])],
        11 => vec![bars(&DIRM, "Delay", "ms", delay, &[])],
        12 => vec![bars(&DIRM, "Jitter", "ms", jitter, &[])],
        13 => vec![
            bars(&ACKNOWLEDGED, "Rate of the images", "kbit/s", rates, &[]),
            bars(&ACKNOWLEDGED, "Delay of the images", "ms", delay, &[]),
        ],
        15 => vec![
            bars(&VIDEOS, "Frames shown", "%", &[("shown", Quantity::Frames)], &[]),
            bars(&VIDEOS, "Likeness to what was drawn", "SSIM", &[("SSIM", Quantity::Similarity)], &[]),
            bars(&VIDEOS, "Likeness to what was drawn", "PSNR, dB", &[("PSNR", Quantity::Noise)], &[]),
        ],
        _ => vec![
            bars(&NARROW, "Messages lost", "%", loss, LOSSES),
            bars(&NARROW, "Delay", "ms", delay, DELAYS),
        ],
    }
}

fn chart(
    stored: &[ExperimentData<'_>],
    columns: &[Column],
    title: &str,
    quantities: &[(&str, Quantity)],
    paper: &[(&str, f64)],
) -> Chart {
    let axis = Axis::categories("", columns.iter().map(|(name, ..)| name.replace(' ', "\u{a0}")));
    let chart = Chart::new("").x(axis).y(Axis::linear(title).from(0.0));
    let chart = quantities.iter().fold(chart, |chart, (name, quantity)| {
        let bar = |(x, (_, experiment, flow)): (usize, &Column)| {
            let values = quantity.values(results_of(stored, experiment)?, flow);
            Some(Dot::from_estimate(x as f64, &mean(&values)?))
        };
        chart.plot(Bars::new(*name, columns.iter().enumerate().filter_map(bar).collect::<Vec<_>>()))
    });
    let dot = |(name, value): &(&str, f64)| {
        let x = columns.iter().position(|(column, ..)| column == name)?;
        Some(Dot::new(x as f64, *value))
    };
    let expected: Vec<Dot> = paper.iter().filter_map(dot).collect();
    if expected.is_empty() { chart } else { chart.plot(Line::expected("paper", expected)) }
}

/// The values of a figure in words, a line for each flow.
pub(super) fn seen(figure: u32, stored: &[ExperimentData<'_>]) -> String {
    let (columns, quantities): (&[Column], &[(Quantity, &str, usize)]) = match figure {
        6 => (&NETVIDEO, RATE_WORDS),
        7 => (&NETVIDEO, &[(Quantity::Loss, "% lost", 1)]),
        8 => (&NETVIDEO, &[(Quantity::Delay, "ms", 1)]),
        9 => (&NETVIDEO, &[(Quantity::Jitter, "ms", 1)]),
        10 => (&DIRM, RATE_WORDS),
        11 => (&DIRM, &[(Quantity::Delay, "ms", 0)]),
        12 => (&DIRM, &[(Quantity::Jitter, "ms", 0)]),
        13 => (&ACKNOWLEDGED, &[(Quantity::Received, "kbit/s", 0), (Quantity::Delay, "ms", 0)]),
        15 => (
            &VIDEOS,
            &[
                (Quantity::Frames, "% of the frames", 1),
                (Quantity::Similarity, "SSIM", 3),
                (Quantity::Noise, "dB", 1),
            ],
        ),
        _ => (&NARROW, &[(Quantity::Loss, "% lost", 1), (Quantity::Delay, "ms", 0)]),
    };
    let line = |(name, experiment, flow): &Column| {
        let data = results_of(stored, experiment)?;
        let value = |(quantity, unit, decimals): &(Quantity, &str, usize)| {
            format!("{} {unit}", shown(&quantity.values(data, flow), *decimals))
        };
        Some(format!("{name}: {}.", quantities.iter().map(value).collect::<Vec<_>>().join(", ")))
    };
    columns.iter().filter_map(line).collect::<Vec<_>>().join(" ")
}

const RATE_WORDS: &[(Quantity, &str, usize)] =
    &[(Quantity::Sent, "kbit/s sent", 0), (Quantity::Received, "received", 0)];
