//! TSQ and RED-Worcester compared with other queues: the mixes of the TSQ paper, and further ones.
//!
//! Every case is the scenario of `experiments/rivals/` with other flows. Each sweeps over fourteen queues.

use crate::experiment::{Experiment, scenario, text_of};
use crate::panels;
use crate::study::Study;

/// The study.
pub const RIVALS: Study = Study {
    id: "rivals",
    title: "TSQ and its rivals",
    statement_heading: "The question",
    intro: INTRO,
    figures: text_of!("rivals/figures.toml"),
    experiments: &EXPERIMENTS,
    own: |_, _| None,
    sections_of: panels::sections,
};

const INTRO: &str = "\
Fourteen queues and six kinds of traffic, simulated on the TSQ paper's dumbbell (15 Mbit/s, 300 ms round-trip time without \
queues). Quality is that of the paper: the smaller of delay quality and throughput quality. It does not include loss, so loss is \
shown as well, and for audio the rating of the E-model (ITU-T G.107, G.711 with concealment) as a quality from 0 (MOS 1) to 1. \
Numbers are means over seeds with their 95 % confidence interval.

TSQ is not the best queue for everything, and the cases show where it loses. Sparse audio is better off with a separate queue \
(FQ-CoDel) or with a short queue for all (PIE at 15 ms, DualPI2), as long as no application lies and all get equal shares.";

const TARGETS: (&str, &str) = scenario!("rivals/targets.toml");
const SCENARIO: (&str, &str) = scenario!("rivals/rivals.toml");

const fn case(
    id: &'static str,
    label: &'static str,
    set: &'static [(&'static str, &'static str)],
) -> Experiment {
    Experiment::new(id, label, SCENARIO).with(set)
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
    Experiment::new("targets", "25 TFRC", TARGETS),
    Experiment::new("targets-half", "50 TFRC", TARGETS)
        .with(&[("flow.marked.count", "50"), ("flow.bulk.count", "50")]),
    Experiment::new("targets-fixed", "25 of fixed rate", TARGETS)
        .with(&[("flow.marked.transport", r#"{ protocol = "udp", header = "0 B" }"#)]),
];
