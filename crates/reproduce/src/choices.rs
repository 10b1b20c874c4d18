//! What the TSQ paper leaves to the reader: l, the way to combine qualities, the AQM below.

use crate::experiment::{Experiment, scenario, text_of};
use crate::panels;
use crate::study::Study;
use crate::tsq;

/// The study.
pub const CHOICES: Study = Study {
    id: "choices",
    title: "What the TSQ paper leaves to the reader",
    statement_heading: "The question",
    intro: INTRO,
    figures: text_of!("choices/figures.toml"),
    experiments: &EXPERIMENTS,
    own: |_, _| None,
    sections_of: panels::sections,
};

const INTRO: &str = "\
The TSQ paper's dumbbell with the transports of ns-2, which its authors used: one audio conference among 99 bulk transfers by its hint, by l and by the kind of packets, \
one video conference, and 25 among 75 with TSQ over the four AQMs that the paper names. Numbers are means over seeds with their 95 % confidence interval, paired \
by seed where two settings are compared.";

const EXPERIMENTS: [Experiment; 5] = [
    Experiment::new("choices-l", "PI", scenario!("choices/l.toml")),
    Experiment::new("choices-aqm", "four AQMs", scenario!("choices/aqm.toml")),
    Experiment::new("choices-packets", "kinds of packets", scenario!("choices/packets.toml")),
    Experiment { id: "choices-video-unlimited", ..tsq::VIDEO_WITHOUT_WINDOW },
    Experiment { id: "choices-video", ..tsq::VIDEO_WITH_WINDOW },
];
