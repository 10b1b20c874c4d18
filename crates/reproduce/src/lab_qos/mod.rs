//! Real QoS sockets in the laboratory, compared with the simulator's agents: a call whose hint adapts, a video whose rate adapts.

mod charts;
mod measure;

use crate::claims::FigureText;
use crate::experiment::{Experiment, Platform, scenario, text_of};
use crate::lab::timing;
use crate::qos::connections::Judgement;
use crate::study::{ExperimentData, Study};
use cutline_lab::Stack;
use cutline_report::report::Section;

/// The study. It runs in real time and needs root, so it is not one of [`crate::STUDIES`].
pub const LAB_QOS: Study = Study {
    id: "lab-qos",
    title: "QoS sockets in the laboratory",
    statement_heading: "The question",
    intro: INTRO,
    figures: text_of!("lab-qos/figures.toml"),
    experiments: &EXPERIMENTS,
    own: measure::own,
    sections_of,
};

const INTRO: &str = "\
Two applications over real QoS sockets, in network namespaces, with the simulator's links between them in real time, and bulk transfers \
of Linux's TCP beside them. Each message carries its delay hint in its DSCP field. Beside them are the same applications over plain \
sockets, and both in the simulator, whose agents have the same sessions. Simulations have 10 seeds, the laboratory has 9 for the video and 3 for all else. Comparisons \
of both sides are given with Welch's 95 % interval. The controller of the hint judges intervals of 3 s instead of 10 s on both sides, so \
that runs of less than three minutes show it. What plain calls have in the laboratory was measured for 40 s instead of 80 s.";

const CALL: (&str, &str) = scenario!("lab-qos/call.toml");
const VIDEO: (&str, &str) = scenario!("lab-qos/video.toml");

/// The number of seeds in the laboratory, where runs take real time.
const SEEDS: (&str, &str) = ("seeds", "3");
/// Videos send a hundred packets a second, so many can run at a time.
const VIDEO_SEEDS: (&str, &str) = ("seeds", "9");
/// A plain call has no hint to search for.
const SHORT: [(&str, &str); 2] = [("duration", "80 s"), ("warm-up", "40 s")];
/// Runs in real time have to be short.
const QUICK: &[(&str, &str)] = &[("duration", "40 s"), ("warm-up", "25 s"), ("seeds", "2")];
const QUICK_VIDEO: &[(&str, &str)] = &[("duration", "70 s"), ("seeds", "2")];

const PLAIN: Platform = Platform::Laboratory(Stack::Stock);
const SOCKETS: Platform = Platform::LaboratorySockets(Stack::Stock, Judgement::QualitySoon);
const AGENTS: Platform = Platform::QosSockets(Judgement::QualitySoon);

const EXPERIMENTS: [Experiment; 7] = [
    call("lab-qos-call-simulated", "QoS socket, simulated").on(AGENTS),
    call("lab-qos-call-simulated-plain", "plain socket, simulated"),
    video("lab-qos-video-simulated", "QoS socket, simulated").on(AGENTS),
    video("lab-qos-video", "QoS socket").with(&[VIDEO_SEEDS]).on(SOCKETS),
    video("lab-qos-video-plain", "plain socket").with(&[SEEDS]).on(PLAIN),
    call("lab-qos-call", "QoS socket").with(&[SEEDS]).on(SOCKETS),
    call("lab-qos-call-plain", "plain socket").with(&[SEEDS, SHORT[0], SHORT[1]]).on(PLAIN),
];

const fn call(id: &'static str, label: &'static str) -> Experiment {
    Experiment::new(id, label, CALL).shortened_by(QUICK)
}

const fn video(id: &'static str, label: &'static str) -> Experiment {
    Experiment::new(id, label, VIDEO).shortened_by(QUICK_VIDEO)
}

fn sections_of(figure: &FigureText, stored: &[ExperimentData<'_>]) -> Vec<Section> {
    let (charts, we_see) = match figure.number {
        1 => (charts::calls(stored), measure::calls_seen(stored)),
        2 => (charts::hints(stored), measure::hints_seen(stored)),
        3 => (charts::video(stored), measure::video_seen(stored)),
        _ => (charts::both_videos(stored), measure::video_seen(stored)),
    };
    let notes = stored.iter().filter_map(|(experiment, data)| timing(experiment, data)).collect();
    let figures = vec![(
        format!("figure-{}", figure.number),
        cutline_report::chart::Figure::grid(figure.heading.clone(), 1, charts),
    )];
    vec![Section { we_see, figures, notes, ..Section::default() }]
}
