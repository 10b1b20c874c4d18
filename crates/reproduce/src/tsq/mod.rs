//! The TSQ paper's evaluation: the quality curves (figures 2 to 5) and the five experiments of section 4 (figures 8 to 16).
//! Figure 1 is from another paper, 6 shows the algorithm, 7 the topology.
//!
//! The authors used ns-2, so its transports are the reproduction: the "TCP-friendly CBR source" is ns-2's TFRC, and TCP has a window of
//! 20 packets, which the paper does not mention. TFRC by RFC 5348, TCP with a constant application rate, and TCP without that window
//! are variants.

mod curves;

use crate::claims::FigureText;
use crate::experiment::{Experiment, scenario, text_of};
use crate::panels;
use crate::study::{ExperimentData, Study};
use cutline_report::report::Section;

/// The TSQ paper.
pub const TSQ: Study = Study {
    id: "tsq",
    title: "TSQ: the paper's evaluation, reproduced",
    statement_heading: "The paper says",
    intro: INTRO,
    figures: text_of!("tsq/figures.toml"),
    experiments: &EXPERIMENTS,
    own: |_, _| None,
    sections_of,
};

const AUDIO: (&str, &str) = scenario!("tsq/audio.toml");
const VIDEO: (&str, &str) = scenario!("tsq/video.toml");
const MIXED: (&str, &str) = scenario!("tsq/mixed.toml");
const CHEAT: (&str, &str) = scenario!("tsq/cheat.toml");
const UNRESPONSIVE: (&str, &str) = scenario!("tsq/unresponsive.toml");

/// The transports of ns-2, which the authors used: TFRC whose timeout is that of TCP with a clock of 100 ms, and TCP with a window of 20
/// packets.
const BULK: (&str, &str) =
    ("flow.bulk.transport", r#"{ protocol = "tcp", defaults = "ns-2", mss = "1000 B", header = "0 B" }"#);
const AUDIO_TFRC: (&str, &str) = (
    "flow.audio.transport",
    r#"{ protocol = "tfrc", defaults = "ns-2", packet-size = "1000 B", header = "0 B", send-buffer = "2 packets" }"#,
);
const VIDEO_TFRC: (&str, &str) = ("flow.video.transport", AUDIO_TFRC.1);
/// A constant application rate over TCP. What TCP may not send waits in the sender, which is not part of the network's delay.
const AUDIO_TCP: (&str, &str) =
    ("flow.audio.transport", r#"{ protocol = "tcp", defaults = "ns-2", mss = "1000 B", header = "0 B" }"#);
const VIDEO_TCP: (&str, &str) = ("flow.video.transport", AUDIO_TCP.1);
/// No limit of TCP's window.
const UNLIMITED: (&str, &str) = (
    "flow.bulk.transport",
    r#"{ protocol = "tcp", defaults = "ns-2", mss = "1000 B", header = "0 B", max-window = "off" }"#,
);

/// The video conference beside transfers with ns-2's window of 20 packets, and without a window.
pub(crate) const VIDEO_WITH_WINDOW: Experiment =
    Experiment::new("video", "ns-2's TFRC, window of 20", VIDEO).with(&[BULK, VIDEO_TFRC]);
pub(crate) const VIDEO_WITHOUT_WINDOW: Experiment =
    Experiment::new("video-unlimited", "ns-2's TFRC, no window", VIDEO).with(&[UNLIMITED, VIDEO_TFRC]);

/// Every experiment, including variants. The first of a figure is the reproduction: what the authors had.
const EXPERIMENTS: [Experiment; 12] = [
    Experiment::new("audio", "ns-2's TFRC", AUDIO).with(&[BULK, AUDIO_TFRC]),
    Experiment::new("audio-rfc", "today's TFRC", AUDIO),
    Experiment::new("audio-tcp", "TCP", AUDIO).with(&[BULK, AUDIO_TCP]),
    VIDEO_WITH_WINDOW,
    VIDEO_WITHOUT_WINDOW,
    Experiment::new("video-rfc", "today's TFRC, window of 20", VIDEO),
    Experiment::new("video-tcp", "TCP, window of 20", VIDEO).with(&[BULK, VIDEO_TCP]),
    Experiment::new("mixed", "ns-2's TFRC", MIXED).with(&[BULK, AUDIO_TFRC]),
    Experiment::new("mixed-rfc", "today's TFRC", MIXED),
    Experiment::new("mixed-tcp", "TCP", MIXED).with(&[BULK, AUDIO_TCP]),
    Experiment::new("cheat", "UDP", CHEAT).with(&[BULK]),
    Experiment::new("unresponsive", "UDP", UNRESPONSIVE).with(&[BULK]),
];

const INTRO: &str = "\
Every figure of the paper's evaluation, simulated. The text of the paper is on the left, our measurements are on the right. \
Numbers are means over seeds with their 95 % confidence interval (Student's t over replications, paired by seed where two \
settings are compared). A claim holds if the whole interval agrees with its rule, differs if the whole interval contradicts it, and \
is unclear otherwise. Rules and tolerances were fixed before the run.

The reproduction has the transports of ns-2, which the authors used: its TFRC is the \"TCP-friendly CBR source\", and its TCP has a \
window of 20 packets. The same is run with TFRC by RFC 5348 (\"today's TFRC\"), and with TCP that carries the same constant rate. A \
run lasts 100 s, of which the last 80 s are measured; the paper does not say which part it measured.";

fn sections_of(figure: &FigureText, data: &[ExperimentData<'_>]) -> Vec<Section> {
    match figure.number {
        // The curves of further classes follow those of the paper.
        5 => vec![curves::section(figure), curves::beyond()],
        2..=4 => vec![curves::section(figure)],
        _ => panels::sections(figure, data),
    }
}
