//! Sieve compared with the queues that operators have, attacked, taken apart, and by its settings.

mod panels;

use crate::claims::FigureText;
use crate::experiment::Experiment;
use crate::study::{ExperimentData, Study};
use cutline_report::chart::Figure;
use cutline_report::report::Section;

/// The study.
pub const SIEVE: Study = Study {
    id: "sieve",
    title: "Sieve: who sends less than a fair share goes first",
    statement_heading: "The question",
    intro: INTRO,
    figures: include_str!("../../../../experiments/sieve/figures.toml"),
    experiments: &EXPERIMENTS,
    own: |_, _| None,
    sections_of,
};

const INTRO: &str = "\
Sieve serves flows below the fair share first and free of charge, whatever their hint, and lets the others stand in TSQ's lanes, where they \
pay by their rate and by their place. It was tuned on other seeds than those that judge it here. Numbers are means over seeds with \
their 95 % confidence interval, paired by seed where two settings are compared.";

const EXPERIMENTS: [Experiment; 13] = [
    Experiment::new(
        "sieve-mixes",
        "mixes",
        ("mixes.toml", include_str!("../../../../experiments/sieve/mixes.toml")),
    ),
    Experiment::new(
        "sieve-liars",
        "liars",
        ("liars.toml", include_str!("../../../../experiments/sieve/liars.toml")),
    ),
    Experiment::new(
        "sieve-liars-short",
        "liars over 10 ms",
        ("liars-short.toml", include_str!("../../../../experiments/sieve/liars-short.toml")),
    ),
    Experiment::new(
        "sieve-floods",
        "floods",
        ("floods.toml", include_str!("../../../../experiments/sieve/floods.toml")),
    ),
    Experiment::new(
        "sieve-split",
        "split",
        ("split.toml", include_str!("../../../../experiments/sieve/split.toml")),
    ),
    Experiment::new(
        "sieve-ping",
        "ping",
        ("ping.toml", include_str!("../../../../experiments/sieve/ping.toml")),
    )
    .shortened_by(QUICK),
    Experiment::new(
        "sieve-rtt",
        "paths",
        ("rtt.toml", include_str!("../../../../experiments/sieve/rtt.toml")),
    ),
    Experiment::new(
        "sieve-web",
        "pages",
        ("web.toml", include_str!("../../../../experiments/sieve/web.toml")),
    ),
    Experiment::new(
        "sieve-flows",
        "1000 flows",
        ("flows.toml", include_str!("../../../../experiments/sieve/flows.toml")),
    )
    .shortened_by(QUICK),
    Experiment::new(
        "sieve-parts",
        "parts",
        ("parts.toml", include_str!("../../../../experiments/sieve/parts.toml")),
    ),
    Experiment::new(
        "sieve-settings",
        "settings",
        ("settings.toml", include_str!("../../../../experiments/sieve/settings.toml")),
    ),
    Experiment::new(
        "sieve-classes",
        "five kinds",
        ("classes.toml", include_str!("../../../../experiments/sieve/classes.toml")),
    ),
    Experiment::new(
        "sieve-rates",
        "by rate",
        ("rates.toml", include_str!("../../../../experiments/sieve/rates.toml")),
    )
    .shortened_by(QUICK),
];

/// `--quick` for experiments at 100 Mbit/s and more.
const QUICK: &[(&str, &str)] = &[("duration", "4 s"), ("warm-up", "2 s"), ("seeds", "2")];

fn sections_of(figure: &FigureText, stored: &[ExperimentData<'_>]) -> Vec<Section> {
    let panels = panels::of(figure.number);
    let charts = panels.iter().filter_map(|panel| panel.chart(stored));
    let drawn = Figure::grid(figure.heading.clone(), 1, charts);
    let we_see: Vec<String> = panels.iter().filter_map(|panel| panel.words(stored)).collect();
    vec![Section {
        we_see: we_see.join("\n\n"),
        figures: vec![(format!("figure-{}", figure.number), drawn)],
        ..Section::default()
    }]
}
