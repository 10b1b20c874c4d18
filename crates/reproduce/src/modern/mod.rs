//! TSQ on a link of today: CUBIC, ECN, 100 Mbit/s and 1 Gbit/s, round trips of 10 to 200 ms.

mod charge;
mod distances;
mod hints;
mod mixes;

use crate::claims::FigureText;
use crate::experiment::Experiment;
use crate::study::{Stored, Study};
use cutline_report::report::Section;

/// The study.
pub const MODERN: Study = Study {
    id: "modern",
    title: "TSQ on a link of today",
    statement_heading: "The question",
    intro: INTRO,
    figures: include_str!("../../../../experiments/modern/figures.toml"),
    experiments: &EXPERIMENTS,
    sections_of,
};

const INTRO: &str = "\
The TSQ paper's kinds of traffic with CUBIC and with ECN at 100 Mbit/s and 1 Gbit/s, packets of 1500 B, round trips of 10, 40, \
100 and 200 ms side by side. PI's gains follow the design rule of Hollot et al. for each rate and target. Hint 16 for all is \
first in, first out: PI alone. Numbers are means over the four distances and over seeds, with their 95 % confidence interval, \
paired by seed where two settings are compared.";

const EXPERIMENTS: [Experiment; 4] = [
    Experiment::new(
        "modern-hints",
        "100 Mbit/s",
        ("hints.toml", include_str!("../../../../experiments/modern/hints.toml")),
    )
    .shortened_by(QUICK),
    Experiment::new(
        "modern-gigabit",
        "1 Gbit/s",
        ("gigabit.toml", include_str!("../../../../experiments/modern/gigabit.toml")),
    )
    .shortened_by(QUICK),
    Experiment::new(
        "modern-mixes",
        "mixes",
        ("mixes.toml", include_str!("../../../../experiments/modern/mixes.toml")),
    )
    .shortened_by(QUICK),
    Experiment::new(
        "modern-charge",
        "NewReno and CUBIC",
        ("charge.toml", include_str!("../../../../experiments/modern/charge.toml")),
    ),
];

/// A second of 1 Gbit/s is a second's work for a slow machine: `--quick` has few of them. Only the charge on transfers needs
/// more, for windows to form.
const QUICK: &[(&str, &str)] = &[("duration", "4 s"), ("warm-up", "2 s"), ("seeds", "2")];

fn sections_of(figure: &FigureText, stored: &[Stored<'_>]) -> Vec<Section> {
    let Some(&(experiment, data)) = stored.first() else { return Vec::new() };
    let section = match figure.number {
        1..=3 => hints::section,
        4 => mixes::section,
        _ => charge::section,
    };
    vec![section(figure, experiment.id, data)]
}

/// The queues, as the scenarios name them and as charts do.
const QUEUES: [(&str, &str); 4] = [
    ("long-drop", "107 ms, drops"),
    ("long-mark", "107 ms, ECN"),
    ("short-drop", "20 ms, drops"),
    ("short-mark", "20 ms, ECN"),
];
