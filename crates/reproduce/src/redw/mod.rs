//! The RED-Worcester paper's evaluation: figures 8 to 14. Figures 1 and 2 are about `QoS` in general, 3 to 5 show the
//! algorithms, 6 the topology, 7 the mixes.
//!
//! In addition to the paper's two queues there is the extension that its section 5 leaves to future work: a queue that is
//! sorted by hints, in which packets that cut in line pay with drops. This is TSQ over RED-Worcester.

mod adaptation;
mod comparison;
mod mixes;

use crate::claims::FigureText;
use crate::experiment::{Experiment, scenario, text_of};
use crate::panels;
use crate::study::{ExperimentData, Study};
use cutline_report::report::Section;

/// The RED-Worcester paper.
pub const REDW: Study = Study {
    id: "redw",
    title: "RED-Worcester: the paper's evaluation, reproduced",
    statement_heading: "The paper says",
    intro: INTRO,
    figures: text_of!("redw/figures.toml"),
    experiments: &EXPERIMENTS,
    own: |figure, id| match figure.number {
        9 | 10 => adaptation::own(id),
        _ => comparison::own(id),
    },
    sections_of,
};

const INTRO: &str = "\
Every figure of the paper's evaluation, simulated: 20 flows of TCP NewReno (throughput-sensitive, hint 80 ms) and TFRC \
(delay-sensitive, hint 32 ms), in five mixes. Numbers are means over seeds with their 95 % confidence interval (Student's t over \
replications, paired by seed where two settings are compared). A claim holds if the whole interval agrees with its rule, differs if \
the whole interval contradicts it, and is unclear otherwise. Rules and tolerances were fixed before the run.

The authors used ns-2. The reproduction has its TCP and TFRC, and its Adaptive RED: drops spaced by `wait`, an automatic w_q, the gentle \
slope, and, as the paper does not say otherwise, alpha = min(0.01, max_p / 4). RED-Worcester's max_p may reach 1, as in its figure 10. \
Variants have the \"about 0.1\" of the paper's figure 4 as alpha, and a max_p up to 0.5 as in the Adaptive RED paper. A further one has the \
transports of the RFCs and RED as its papers have it. \"Sorted\" is this paper's future work: RED-Worcester with a queue in the order of \
hints and TSQ's drop probability.";

const MIX: (&str, &str) = scenario!("redw/mix.toml");
const MAXP_UP: (&str, &str) = scenario!("redw/maxp-up.toml");
const MAXP_DOWN: (&str, &str) = scenario!("redw/maxp-down.toml");

/// The authors used ns-2: its TCP, its TFRC, and its Adaptive RED, which spaces drops by `wait`.
const TCP: &str = r#"{ protocol = "tcp", defaults = "ns-2", mss = "1000 B", header = "0 B" }"#;
const TFRC: &str = r#"{ protocol = "tfrc", defaults = "ns-2", packet-size = "1000 B", header = "0 B" }"#;
const BULK: (&str, &str) = ("flow.bulk.transport", TCP);
const MEDIA: (&str, &str) = ("flow.media.transport", TFRC);
const BULK_LEAVING: (&str, &str) = ("flow.bulk-leaving.transport", TCP);
const BULK_COMING: (&str, &str) = ("flow.bulk-coming.transport", TCP);
const MEDIA_LEAVING: (&str, &str) = ("flow.media-leaving.transport", TFRC);
const MEDIA_COMING: (&str, &str) = ("flow.media-coming.transport", TFRC);

/// A key of RED-Worcester, of Adaptive RED, and of the sorted queue.
const REDW_RULES: [(&str, &str); 2] =
    [("queue.red-worcester.variant", "ns-2"), ("queue.red-worcester.spacing", "wait")];
const ARED_RULES: [(&str, &str); 2] = [("queue.ared.variant", "ns-2"), ("queue.ared.spacing", "wait")];
const SORTED_RULES: [(&str, &str); 2] = [("queue.sorted.variant", "ns-2"), ("queue.sorted.spacing", "wait")];
const REDW_ALPHA: (&str, &str) = ("queue.red-worcester.alpha", "0.1");
const REDW_TOP: (&str, &str) = ("queue.red-worcester.ceiling", "0.5");

const MIX_NS2: &[(&str, &str)] = &[
    BULK,
    MEDIA,
    REDW_RULES[0],
    REDW_RULES[1],
    ARED_RULES[0],
    ARED_RULES[1],
    SORTED_RULES[0],
    SORTED_RULES[1],
];
const TEXT: &[(&str, &str)] = &[
    BULK,
    ("flow.web.transport", TCP),
    MEDIA,
    REDW_RULES[0],
    REDW_RULES[1],
    ARED_RULES[0],
    ARED_RULES[1],
    ("queue.higher.variant", "ns-2"),
    ("queue.higher.spacing", "wait"),
    ("queue.coarse.variant", "ns-2"),
    ("queue.coarse.spacing", "wait"),
];
const MIX_ALPHA: &[(&str, &str)] = &[
    BULK,
    MEDIA,
    REDW_RULES[0],
    REDW_RULES[1],
    ARED_RULES[0],
    ARED_RULES[1],
    SORTED_RULES[0],
    SORTED_RULES[1],
    REDW_ALPHA,
    ("queue.ared.alpha", "0.1"),
    ("queue.sorted.alpha", "0.1"),
];
const MIX_TOP: &[(&str, &str)] = &[
    BULK,
    MEDIA,
    REDW_RULES[0],
    REDW_RULES[1],
    ARED_RULES[0],
    ARED_RULES[1],
    SORTED_RULES[0],
    SORTED_RULES[1],
    REDW_TOP,
    ("queue.sorted.ceiling", "0.5"),
];
const UP: &[(&str, &str)] = &[BULK, BULK_LEAVING, MEDIA_COMING, REDW_RULES[0], REDW_RULES[1]];
const UP_ALPHA: &[(&str, &str)] =
    &[BULK, BULK_LEAVING, MEDIA_COMING, REDW_RULES[0], REDW_RULES[1], REDW_ALPHA];
const UP_TOP: &[(&str, &str)] = &[BULK, BULK_LEAVING, MEDIA_COMING, REDW_RULES[0], REDW_RULES[1], REDW_TOP];
const DOWN: &[(&str, &str)] = &[MEDIA, MEDIA_LEAVING, BULK_COMING, REDW_RULES[0], REDW_RULES[1]];
const DOWN_ALPHA: &[(&str, &str)] =
    &[MEDIA, MEDIA_LEAVING, BULK_COMING, REDW_RULES[0], REDW_RULES[1], REDW_ALPHA];
const DOWN_TOP: &[(&str, &str)] =
    &[MEDIA, MEDIA_LEAVING, BULK_COMING, REDW_RULES[0], REDW_RULES[1], REDW_TOP];

const EXPERIMENTS: [Experiment; 13] = [
    Experiment::new("mix", "ns-2's transports and RED", MIX).with(MIX_NS2).shortened_by(QUICK_MIX),
    Experiment::new("mix-alpha", "the same, alpha 0.1", MIX).with(MIX_ALPHA).shortened_by(QUICK_MIX),
    Experiment::new("mix-top", "the same, max_p up to 0.5", MIX).with(MIX_TOP).shortened_by(QUICK_MIX),
    Experiment::new("mix-rfc", "transports by the RFCs, RED by its papers", MIX).shortened_by(QUICK_MIX),
    Experiment::new("text", "ns-2's transports and RED", scenario!("redw/text.toml"))
        .with(TEXT)
        .shortened_by(QUICK_MIX),
    Experiment::new("maxp-up", "ns-2's transports and RED", MAXP_UP).with(UP).shortened_by(QUICK_CHANGE),
    Experiment::new("maxp-up-alpha", "the same, alpha 0.1", MAXP_UP)
        .with(UP_ALPHA)
        .shortened_by(QUICK_CHANGE),
    Experiment::new("maxp-up-top", "the same, max_p up to 0.5", MAXP_UP)
        .with(UP_TOP)
        .shortened_by(QUICK_CHANGE),
    Experiment::new("maxp-up-rfc", "transports by the RFCs, RED by its papers", MAXP_UP)
        .shortened_by(QUICK_CHANGE),
    Experiment::new("maxp-down", "ns-2's transports and RED", MAXP_DOWN)
        .with(DOWN)
        .shortened_by(QUICK_CHANGE),
    Experiment::new("maxp-down-alpha", "the same, alpha 0.1", MAXP_DOWN)
        .with(DOWN_ALPHA)
        .shortened_by(QUICK_CHANGE),
    Experiment::new("maxp-down-top", "the same, max_p up to 0.5", MAXP_DOWN)
        .with(DOWN_TOP)
        .shortened_by(QUICK_CHANGE),
    Experiment::new("maxp-down-rfc", "transports by the RFCs, RED by its papers", MAXP_DOWN)
        .shortened_by(QUICK_CHANGE),
];

const QUICK_MIX: &[(&str, &str)] = &[("duration", "40 s"), ("measure-until", "40 s"), ("seeds", "2")];
/// Fewer seeds, but the full length: the mixes change at 40 s, and `max_p` adapts slowly.
const QUICK_CHANGE: &[(&str, &str)] = &[("seeds", "2")];

fn sections_of(figure: &FigureText, stored: &[ExperimentData<'_>]) -> Vec<Section> {
    vec![match figure.number {
        8 => comparison::section(stored),
        9 | 10 => adaptation::section(figure, stored),
        _ => panels::section(figure, stored),
    }]
}
