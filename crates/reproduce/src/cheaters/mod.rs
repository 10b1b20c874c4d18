//! Many applications that claim a wrong hint: who gains, who pays, and how much TSQ's drop law lets them gain.

mod law;

use crate::claims::FigureText;
use crate::experiment::{Experiment, scenario, text_of};
use crate::panels;
use crate::study::{ExperimentData, Study};
use cutline_report::report::Section;

/// The study.
pub const CHEATERS: Study = Study {
    id: "cheaters",
    title: "Many cheaters: who gains, who pays",
    statement_heading: "The question",
    intro: INTRO,
    figures: text_of!("cheaters/figures.toml"),
    experiments: &EXPERIMENTS,
    own: |_, id| law::own(id),
    sections_of,
};

const INTRO: &str = "\
File transfers that claim to be delay-sensitive, by their share and by their round-trip time, and UDP senders that do not respond \
to loss, simulated at 15 Mbit/s. Each figure states what the law p' = ((l + q) / (l + q'))^2 p predicts, written down before \
measuring. Numbers are means over seeds with their 95 % confidence interval, paired by seed where two settings are compared.";

const EXPERIMENTS: [Experiment; 5] = [
    Experiment::new("liars-by-share", "liars by share", scenario!("cheaters/share.toml")),
    Experiment::new("liars-by-rtt", "liars by round-trip time", scenario!("cheaters/rtt.toml")),
    Experiment::new("unresponsive-by-rate", "UDP by rate", scenario!("cheaters/rate.toml")),
    Experiment::new("liars-by-kind", "liars by TCP", scenario!("cheaters/kinds.toml")),
    Experiment::new("liars-on-a-large-link", "100 Mbit/s", scenario!("cheaters/large.toml")),
];

fn sections_of(figure: &FigureText, stored: &[ExperimentData<'_>]) -> Vec<Section> {
    let Some(&(_, data)) = stored.first() else { return Vec::new() };
    vec![match figure.number {
        3 => law::section(data),
        _ => panels::section(figure, stored),
    }]
}
