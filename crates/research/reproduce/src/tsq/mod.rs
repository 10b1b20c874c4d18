//! The TSQ paper's evaluation: the quality curves (figures 2 to 5) and the five experiments of section 4 (figures 8 to 16).
//! Figure 1 is from another paper, 6 shows the algorithm, 7 the topology.
//!
//! The authors used ns-2, so its transports are the reproduction: the "TCP-friendly CBR source" is ns-2's TFRC, and TCP has a window of
//! 20 packets, which the paper does not mention. TFRC by RFC 5348, TCP with a constant application rate, and TCP without that window
//! are variants.

mod curves;

use cutline_report::report::Section;
use cutline_study::{ExperimentData, FigureText};

pub(crate) fn sections(figure: &FigureText, stored: &[ExperimentData<'_>]) -> Vec<Section> {
    match figure.number {
        // The curves of further classes follow those of the paper.
        5 => vec![curves::section(figure), curves::beyond()],
        2..=4 => vec![curves::section(figure)],
        _ => cutline_study::sections(figure, stored),
    }
}
