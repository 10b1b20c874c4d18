//! The RED-Worcester paper's evaluation: figures 8 to 14. Figures 1 and 2 are about `QoS` in general, 3 to 5 show the
//! algorithms, 6 the topology, 7 the mixes.
//!
//! In addition to the paper's two queues there is the extension that its section 5 leaves to future work: a queue that is
//! sorted by hints, in which packets that cut in line pay with drops. This is TSQ over RED-Worcester.

mod adaptation;
mod comparison;
mod mixes;

use crate::claims::FigureText;
use crate::experiment::Experiment;
use crate::study::{ExperimentData, Study};
use cutline_report::report::Section;

/// The RED-Worcester paper.
pub const REDW: Study = Study {
    id: "redw",
    title: "RED-Worcester: the paper's evaluation, reproduced",
    statement_heading: "The paper says",
    intro: INTRO,
    figures: include_str!("../../../../experiments/redw/figures.toml"),
    experiments: &EXPERIMENTS,
    own: |_, _| None,
    sections_of,
};

const INTRO: &str = "\
Every figure of the paper's evaluation, simulated: 20 flows of TCP NewReno (throughput-sensitive, hint 80 ms) and TFRC \
(delay-sensitive, hint 32 ms), in five mixes. Numbers are means over seeds with their 95 % confidence interval (Student's t over \
replications, paired by seed where two settings are compared). A claim holds if the interval confirms it, differs if the \
interval contradicts it, and is unclear if the interval includes both.

If this paper does not give a parameter, Adaptive RED and RED-Worcester run with that of the Adaptive RED paper: an automatic \
w_q, the gentle slope, and alpha = min(0.01, max_p / 4) instead of the \"about 0.1\" of this paper's figure 4. \"Sorted\" is this \
paper's future work: RED-Worcester with a queue in the order of hints and TSQ's drop probability.";

const MIX: (&str, &str) = ("mix.toml", include_str!("../../../../experiments/redw/mix.toml"));
const MAXP_UP: (&str, &str) = ("maxp-up.toml", include_str!("../../../../experiments/redw/maxp-up.toml"));
const MAXP_DOWN: (&str, &str) =
    ("maxp-down.toml", include_str!("../../../../experiments/redw/maxp-down.toml"));

/// The paper used ns-2, whose TFRC is older than RFC 5348.
const NS2: &[(&str, &str)] = &[
    ("flow.bulk.transport", r#"{ protocol = "tcp", defaults = "ns-2", mss = "1000 B", header = "0 B" }"#),
    (
        "flow.media.transport",
        r#"{ protocol = "tfrc", defaults = "ns-2", packet-size = "1000 B", header = "0 B" }"#,
    ),
];

const EXPERIMENTS: [Experiment; 4] = [
    Experiment::new("mix", "transports by the RFCs", MIX).shortened_by(QUICK_MIX),
    Experiment::new("mix-ns2", "ns-2's transports", MIX).with(NS2).shortened_by(QUICK_MIX),
    Experiment::new("maxp-up", "RED-Worcester", MAXP_UP).shortened_by(QUICK_CHANGE),
    Experiment::new("maxp-down", "RED-Worcester", MAXP_DOWN).shortened_by(QUICK_CHANGE),
];

const QUICK_MIX: &[(&str, &str)] = &[("duration", "40 s"), ("measure-until", "40 s"), ("seeds", "2")];
/// Fewer seeds, but the full length: the mixes change at 40 s, and `max_p` adapts slowly.
const QUICK_CHANGE: &[(&str, &str)] = &[("seeds", "2")];

fn sections_of(figure: &FigureText, stored: &[ExperimentData<'_>]) -> Vec<Section> {
    vec![match figure.number {
        9 | 10 => adaptation::section(figure, stored),
        _ => comparison::section(figure, stored),
    }]
}
