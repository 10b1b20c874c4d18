//! TSQ on current links: CUBIC, ECN, 100 Mbit/s and 1 Gbit/s, round-trip times of 10 to 200 ms.

mod charge;
mod scenarios;

use crate::claims::FigureText;
use crate::experiment::{Experiment, scenario, text_of};
use crate::panels;
use crate::study::{ExperimentData, Study};
use cutline_report::report::Section;

/// The study.
pub const MODERN: Study = Study {
    id: "modern",
    title: "TSQ on current links",
    statement_heading: "The question",
    intro: INTRO,
    figures: text_of!("modern/figures.toml"),
    experiments: &EXPERIMENTS,
    own: |_, id| charge::own(id),
    sections_of,
};

const INTRO: &str = "\
The TSQ paper's kinds of traffic with CUBIC and with ECN, at 100 Mbit/s and 1 Gbit/s, with packets of 1500 B. Flows with round-trip \
times of 10, 40, 100 and 200 ms share the link. PI's gains follow the design rule of Hollot et al. for each rate and target. If all \
flows have hint 16, the queue is first in, first out: PI alone. Numbers are means over the four round-trip times and over seeds, \
with their 95 % confidence interval, paired by seed where two settings are compared.";

const EXPERIMENTS: [Experiment; 6] = [
    Experiment::new("modern-hints", "100 Mbit/s", scenario!("modern/hints.toml")).shortened_by(QUICK),
    Experiment::new("modern-gigabit", "1 Gbit/s", scenario!("modern/gigabit.toml")).shortened_by(QUICK),
    Experiment::new("modern-mixes", "mixes", scenario!("modern/mixes.toml")).shortened_by(QUICK),
    Experiment::new("modern-charge", "NewReno and CUBIC", scenario!("modern/charge.toml")),
    Experiment::new("modern-flows", "by rate and number", scenario!("modern/flows.toml")).shortened_by(QUICK),
    Experiment::new("modern-l4s", "L4S", scenario!("modern/l4s.toml")),
];

/// A second at 1 Gbit/s takes about a second on a slow machine, so `--quick` runs are short. Only the experiment on the
/// charge is longer, because TCP's windows need time to grow.
const QUICK: &[(&str, &str)] = &[("duration", "4 s"), ("warm-up", "2 s"), ("seeds", "2")];

fn sections_of(figure: &FigureText, stored: &[ExperimentData<'_>]) -> Vec<Section> {
    let Some(&(_, data)) = stored.first() else { return Vec::new() };
    vec![match figure.number {
        5 => charge::section(data),
        _ => panels::section(figure, stored),
    }]
}
