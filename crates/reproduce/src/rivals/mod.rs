//! TSQ and RED-Worcester compared with other queues: the mixes of the TSQ paper, and further ones.
//!
//! Every case is the scenario of `experiments/rivals/` with other flows. Each sweeps over fourteen queues.

mod charts;
mod measure;
mod targets;

use crate::claims::FigureText;
use crate::experiment::{Experiment, text_of};
use crate::study::{ExperimentData, Study};
use cutline_report::chart::Figure;
use cutline_report::report::Section;
use measure::{Case, Measure};

/// The study.
pub const RIVALS: Study = Study {
    id: "rivals",
    title: "TSQ and its rivals",
    statement_heading: "The question",
    intro: INTRO,
    figures: text_of!("rivals/figures.toml"),
    experiments: &EXPERIMENTS,
    own: |_, _| None,
    sections_of,
};

const INTRO: &str = "\
Fourteen queues and six kinds of traffic, simulated on the TSQ paper's dumbbell (15 Mbit/s, 300 ms round-trip time without \
queues). Quality is that of the paper: the smaller of delay quality and throughput quality. It does not include loss, so loss is \
shown as well, and for audio the rating of the E-model (ITU-T G.107, G.711 with concealment) as a quality from 0 (MOS 1) to 1. \
Numbers are means over seeds with their 95 % confidence interval.

TSQ is not the best queue for everything, and the cases show where it loses. Sparse audio is better off with a separate queue \
(FQ-CoDel) or with a short queue for all (PIE at 15 ms, DualPI2), as long as no application lies and all get equal shares.";

const TARGETS: &str = text_of!("rivals/targets.toml");
const SCENARIO: &str = text_of!("rivals/rivals.toml");

const fn case(
    id: &'static str,
    label: &'static str,
    set: &'static [(&'static str, &'static str)],
) -> Experiment {
    Experiment::new(id, label, ("rivals.toml", SCENARIO)).with(set)
}

/// The cases, in the order of the figures.
const EXPERIMENTS: [Experiment; 9] = [
    case("one", "audio", &[("flow.marked.count", "1"), ("flow.bulk.count", "99")]),
    case("quarter", "audio", &[]),
    case("most", "audio", &[("flow.marked.count", "75"), ("flow.bulk.count", "25")]),
    case(
        "above-share",
        "video",
        &[
            ("dumbbell.rate", "4 Mbit/s"),
            // 107 ms, as at 15 Mbit/s. The paper's 200 packets would be a target of 400 ms here.
            ("queue.pi.q-ref", "53 packets"),
            ("queue.tsq-pi.q-ref", "53 packets"),
            ("flow.marked.count", "1"),
            ("flow.bulk.count", "19"),
            ("flow.marked.class", "video"),
            ("flow.marked.transport", r#"{ protocol = "udp", header = "0 B" }"#),
            ("flow.marked.app", r#"{ kind = "cbr", rate = "500 kbit/s", size = "1000 B" }"#),
        ],
    ),
    case("marked", "audio", &[("flow.marked.count", "110"), ("flow.bulk.count", "10")]),
    case(
        "liars",
        "liars",
        &[
            ("flow.marked.count", "50"),
            ("flow.bulk.count", "50"),
            ("flow.marked.hint", "1"),
            ("flow.marked.class", "none"),
            ("flow.marked.transport", r#"{ protocol = "tcp", mss = "1000 B", header = "0 B" }"#),
            ("flow.marked.app", r#"{ kind = "bulk" }"#),
        ],
    ),
    Experiment::new("targets", "25 TFRC", ("targets.toml", TARGETS)),
    Experiment::new("targets-half", "50 TFRC", ("targets.toml", TARGETS))
        .with(&[("flow.marked.count", "50"), ("flow.bulk.count", "50")]),
    Experiment::new("targets-fixed", "25 of fixed rate", ("targets.toml", TARGETS))
        .with(&[("flow.marked.transport", r#"{ protocol = "udp", header = "0 B" }"#)]),
];

fn sections_of(figure: &FigureText, stored: &[ExperimentData<'_>]) -> Vec<Section> {
    let Some(&(experiment, data)) = stored.first() else { return Vec::new() };
    if figure.number == targets::FIGURE {
        return vec![targets::section(figure, stored)];
    }
    let case = Case { data, name: experiment.label };
    let charts = charts::all(&case);
    vec![Section {
        we_see: we_see(&case),
        figures: vec![(format!("figure-{}", figure.number), Figure::grid(figure.heading.clone(), 1, charts))],
        ..Section::default()
    }]
}

/// The numbers behind the bars, queue by queue.
fn we_see(case: &Case<'_>) -> String {
    let value = |measure, queue: &str, decimals: usize| {
        case.mean(measure, queue)
            .map_or_else(|| "-".to_owned(), |estimate| format!("{:.decimals$}", estimate.mean))
    };
    let line = |(queue, name): &(&str, &str)| {
        let quality = case
            .mean(Measure::Quality, queue)
            .map_or(String::new(), |estimate| format!("quality {:.2}, ", estimate.mean));
        format!(
            "{name}: {quality}loss {} %, 99 % of delays within {} ms; others {} kbit/s; link {} % busy, Jain {}.",
            value(Measure::Loss, queue, 1),
            value(Measure::DelayP99, queue, 0),
            value(Measure::OthersGoodput, queue, 0),
            value(Measure::Utilisation, queue, 1),
            value(Measure::Fairness, queue, 2),
        )
    };
    measure::QUEUES.iter().map(line).collect::<Vec<_>>().join("\n\n")
}
