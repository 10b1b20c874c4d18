//! Sieve compared with the queues that operators have, attacked, taken apart, and by its settings.

use crate::experiment::{Experiment, scenario, text_of};
use crate::panels;
use crate::study::Study;

/// The study.
pub const SIEVE: Study = Study {
    id: "sieve",
    title: "Sieve: who sends less than a fair share goes first",
    statement_heading: "The question",
    intro: INTRO,
    figures: text_of!("sieve/figures.toml"),
    experiments: &EXPERIMENTS,
    own: |_, _| None,
    sections_of: panels::sections,
};

const INTRO: &str = "\
Sieve serves flows below the fair share first and free of charge, whatever their hint, and lets the others stand in TSQ's lanes, where they \
pay by their rate and by their place. It was tuned on other seeds than those that judge it here. Numbers are means over seeds with \
their 95 % confidence interval, paired by seed where two settings are compared.";

const EXPERIMENTS: [Experiment; 17] = [
    Experiment::new("sieve-mixes", "mixes", scenario!("sieve/mixes.toml")),
    Experiment::new("sieve-liars", "liars", scenario!("sieve/liars.toml")),
    Experiment::new("sieve-liars-short", "liars over 10 ms", scenario!("sieve/liars-short.toml")),
    Experiment::new("sieve-floods", "floods", scenario!("sieve/floods.toml")),
    Experiment::new("sieve-split", "split", scenario!("sieve/split.toml")),
    Experiment::new("sieve-ping", "ping", scenario!("sieve/ping.toml")).shortened_by(QUICK),
    Experiment::new("sieve-rtt", "paths", scenario!("sieve/rtt.toml")),
    Experiment::new("sieve-web", "pages", scenario!("sieve/web.toml")),
    Experiment::new("sieve-flows", "1000 flows", scenario!("sieve/flows.toml")).shortened_by(QUICK),
    Experiment::new("sieve-crowds", "10 to 10,000 flows", scenario!("sieve/crowds.toml"))
        .shortened_by(CROWDS),
    Experiment::new("sieve-parts", "parts", scenario!("sieve/parts.toml")),
    Experiment::new("sieve-settings", "settings", scenario!("sieve/settings.toml")),
    Experiment::new("sieve-classes", "five kinds", scenario!("sieve/classes.toml")),
    Experiment::new("sieve-marks", "marks", scenario!("sieve/marks.toml")),
    Experiment::new("sieve-marks-floods", "marks ignored", scenario!("sieve/marks-floods.toml")),
    Experiment::new("sieve-hosts", "hosts", scenario!("sieve/hosts.toml")),
    Experiment::new("sieve-rates", "by rate", scenario!("sieve/rates.toml")).shortened_by(QUICK),
];

/// `--quick` for the one with most flows.
const CROWDS: &[(&str, &str)] = &[("duration", "2 s"), ("warm-up", "1 s"), ("seeds", "2")];
/// `--quick` for experiments at 100 Mbit/s and more.
const QUICK: &[(&str, &str)] = &[("duration", "4 s"), ("warm-up", "2 s"), ("seeds", "2")];
