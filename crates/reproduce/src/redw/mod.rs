//! The RED-Worcester paper's evaluation: figures 8 to 14 (1 and 2 are about `QoS` at large, 3 to 5 the algorithms, 6 the
//! topology, 7 the mixes).
//!
//! Beside the paper's two queues stands the extension that its section 5 leaves to the future: the outgoing queue sorted
//! by hints, who cuts in line paying with drops, which is TSQ over RED-Worcester.

mod adaptation;
mod mix;

use crate::claims::FigureText;
use crate::experiment::Experiment;
use crate::study::{Stored, Study};
use cutline_report::report::Section;

/// The RED-Worcester paper.
pub const REDW: Study = Study {
    id: "redw",
    title: "RED-Worcester: the paper's evaluation, reproduced",
    statement_heading: "The paper says",
    intro: INTRO,
    figures: include_str!("../../../../experiments/redw/figures.toml"),
    experiments: &EXPERIMENTS,
    sections_of,
};

const INTRO: &str = "\
Every figure of the paper's evaluation, from simulated packets: 20 flows, TCP NewReno (throughput-sensitive, hint 80 ms) \
and TFRC (delay-sensitive, hint 32 ms), in five mixes. Numbers are means over seeds with their 95 % confidence interval \
(Student's t over replications, paired by seed where two settings are compared). A claim holds when the interval shows \
it, differs when the interval shows otherwise, and is unclear where the interval includes both.

Adaptive RED and RED-Worcester run with the parameters of the Adaptive RED paper where this one is silent: an automatic \
w_q, the gentle slope, alpha = min(0.01, max_p / 4) and not the \"about 0.1\" of this paper's figure 4. \"Sorted\" is this \
paper's future work: RED-Worcester with a queue in the order of hints and TSQ's drop probability.";

const MIX: (&str, &str) = ("mix.toml", include_str!("../../../../experiments/redw/mix.toml"));
const MAXP_UP: (&str, &str) = ("maxp-up.toml", include_str!("../../../../experiments/redw/maxp-up.toml"));
const MAXP_DOWN: (&str, &str) =
    ("maxp-down.toml", include_str!("../../../../experiments/redw/maxp-down.toml"));

/// The paper ran ns-2, whose TFRC is an older one than RFC 5348 has.
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
/// Only fewer seeds: the mixes change at 40 s, and `max_p` takes its time.
const QUICK_CHANGE: &[(&str, &str)] = &[("seeds", "2")];

fn sections_of(figure: &FigureText, stored: &[Stored<'_>]) -> Vec<Section> {
    vec![match figure.number {
        9 | 10 => adaptation::section(figure, stored),
        _ => mix::section(figure, stored),
    }]
}

/// How many of the 20 flows are throughput-sensitive; the others are delay-sensitive.
const MIXES: [u16; 5] = [19, 15, 10, 5, 1];
const MIX_NAMES: [&str; 5] = ["19 : 1", "15 : 5", "10 : 10", "5 : 15", "1 : 19"];
