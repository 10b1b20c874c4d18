//! The TSQ paper's evaluation: the quality curves (figures 2 to 5) and the five experiments of section 4 (figures 8 to 16).
//! Figure 1 is from another paper, 6 shows the algorithm, 7 the topology.
//!
//! The paper's "TCP-friendly CBR source" is run as TFRC, and again as TCP with the same constant application rate. Its video
//! experiment is run with ns-2's TCP window of 20 packets, which the paper does not mention, and again without it.

mod cheat;
mod curves;
mod hints;
mod mixes;

use crate::claims::FigureText;
use crate::experiment::Experiment;
use crate::study::{ExperimentData, Study};
use cutline_report::report::Section;

/// The TSQ paper.
pub const TSQ: Study = Study {
    id: "tsq",
    title: "TSQ: the paper's evaluation, reproduced",
    statement_heading: "The paper says",
    intro: INTRO,
    figures: include_str!("../../../../experiments/tsq/figures.toml"),
    experiments: &EXPERIMENTS,
    own: |_, _| None,
    sections_of,
};

const AUDIO: (&str, &str) = ("audio.toml", include_str!("../../../../experiments/tsq/audio.toml"));
const VIDEO: (&str, &str) = ("video.toml", include_str!("../../../../experiments/tsq/video.toml"));
const MIXED: (&str, &str) = ("mixed.toml", include_str!("../../../../experiments/tsq/mixed.toml"));
const CHEAT: (&str, &str) = ("cheat.toml", include_str!("../../../../experiments/tsq/cheat.toml"));
const UNRESPONSIVE: (&str, &str) =
    ("unresponsive.toml", include_str!("../../../../experiments/tsq/unresponsive.toml"));

/// TCP with a constant application rate. The send buffer has two packets, and the source discards what does not fit;
/// otherwise the delay in the sender would grow without bound.
const TCP_AUDIO: (&str, &str) = (
    "flow.audio.transport",
    r#"{ protocol = "tcp", mss = "1000 B", header = "0 B", send-buffer = "2 packets" }"#,
);
const TCP_VIDEO: (&str, &str) = (
    "flow.video.transport",
    r#"{ protocol = "tcp", mss = "1000 B", header = "0 B", send-buffer = "2 packets" }"#,
);
const TCP_VIDEO_20: (&str, &str) = (
    "flow.video.transport",
    r#"{ protocol = "tcp", mss = "1000 B", header = "0 B", send-buffer = "2 packets", max-window = "20 packets" }"#,
);
const NO_WINDOW: (&str, &str) =
    ("flow.bulk.transport", r#"{ protocol = "tcp", mss = "1000 B", header = "0 B" }"#);

/// Every experiment, including variants.
const EXPERIMENTS: [Experiment; 10] = [
    Experiment::new("audio", "TFRC", AUDIO),
    Experiment::new("audio-tcp", "TCP", AUDIO).with(&[TCP_AUDIO]),
    Experiment::new("video", "TFRC, window of 20", VIDEO),
    Experiment::new("video-tcp", "TCP, window of 20", VIDEO).with(&[TCP_VIDEO_20]),
    Experiment::new("video-unlimited", "TFRC, no window", VIDEO).with(&[NO_WINDOW]),
    Experiment::new("video-tcp-unlimited", "TCP, no window", VIDEO).with(&[TCP_VIDEO, NO_WINDOW]),
    Experiment::new("mixed", "TFRC", MIXED),
    Experiment::new("mixed-tcp", "TCP", MIXED).with(&[TCP_AUDIO]),
    Experiment::new("cheat", "UDP", CHEAT),
    Experiment::new("unresponsive", "UDP", UNRESPONSIVE),
];

const INTRO: &str = "\
Every figure of the paper's evaluation, simulated. The text of the paper is on the left, our measurements are on the right. \
Numbers are means over seeds with their 95 % confidence interval (Student's t over replications, paired by seed where two \
settings are compared). A claim holds if the interval confirms it, differs if the interval contradicts it, and is unclear if the \
interval includes both.

The paper's \"TCP-friendly CBR source\" is run as TFRC (RFC 5348), and again as TCP with the same constant application rate. A \
run lasts 100 s, of which the last 80 s are measured; the paper does not say which part it measured.";

fn sections_of(figure: &FigureText, data: &[ExperimentData<'_>]) -> Vec<Section> {
    match figure.number {
        // The curves of further classes follow those of the paper.
        5 => vec![curves::section(figure), curves::beyond()],
        2..=4 => vec![curves::section(figure)],
        8..=10 => vec![hints::AUDIO.section(figure, data)],
        11..=13 => vec![hints::VIDEO.section(figure, data)],
        14 | 16 => vec![mixes::section(figure, data)],
        15 => vec![cheat::section(figure, data)],
        number => unreachable!("figure {number} is in the table, but no code draws it"),
    }
}
