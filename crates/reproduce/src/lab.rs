//! The laboratory compared with the simulator: the TSQ paper's experiments with real packets and Linux's TCP.

use crate::claims::FigureText;
use crate::data::Data;
use crate::experiment::{Experiment, Platform, scenario, text_of};
use crate::panels;
use crate::study::{ExperimentData, Study};
use cutline_lab::Stack;
use cutline_report::report::{Claim, Section, Verdict};

/// The study. It runs in real time and needs root, so it is not one of [`crate::STUDIES`].
pub const LAB: Study = Study {
    id: "lab",
    title: "In the laboratory",
    statement_heading: "The question",
    intro: INTRO,
    figures: text_of!("lab/figures.toml"),
    experiments: &EXPERIMENTS,
    own: |_, _| None,
    sections_of,
};

const INTRO: &str = "\
The same scenarios, in the simulator and in the laboratory. The laboratory has Linux's TCP and real TFRC and UDP sources in network \
namespaces, with the delay hint in the DSCP field of each packet, and the simulator's links between them in real time. Both sides \
are measured by the same code at the same points. Simulations have 10 seeds or more, the laboratory has 3 to 12. Differences are given with \
Welch's 95 % interval. A claim that both sides agree holds if this interval lies within the stated range, and is unclear if it \
reaches beyond the range.";

const AUDIO: (&str, &str) = scenario!("lab/audio.toml");
const ONE: (&str, &str) = scenario!("lab/one.toml");
const MIXED: (&str, &str) = scenario!("lab/mixed.toml");
const CHEAT: (&str, &str) = scenario!("lab/cheat.toml");
const TCP: (&str, &str) = scenario!("lab/tcp.toml");

/// The number of seeds in the laboratory, where runs take real time.
const SEEDS: (&str, &str) = ("seeds", "3");
/// Of experiments whose claims are about single flows.
const SEVERAL: (&str, &str) = ("seeds", "5");
/// Of a single flow whose quality is compared.
const MANY: (&str, &str) = ("seeds", "12");
/// Delayed acknowledgements. Linux delays them by at least 40 ms.
const DELAYED: (&str, &str) = ("flow.bulk.transport.delayed-ack", "40 ms");
/// Selective acknowledgements. Without them, Linux has no RACK either.
const SACK: (&str, &str) = ("flow.bulk.transport.sack", "true");
/// TCP with Linux's rules, but each segment acknowledged at once, as the laboratory's receivers do.
const LINUX: [(&str, &str); 2] =
    [("flow.bulk.transport.defaults", "linux"), ("flow.bulk.transport.delayed-ack", "off")];
/// What is called Reno in Linux; its default is CUBIC.
const NEWRENO: (&str, &str) = ("flow.bulk.transport.congestion-control", "newreno");
const CUBIC: (&str, &str) = ("flow.bulk.transport.congestion-control", "cubic");
const BBR: (&str, &str) = ("flow.bulk.transport.congestion-control", "bbr");

const STOCK: Platform = Platform::Laboratory(Stack::Stock);
const CLASSIC: Platform = Platform::Laboratory(Stack::Classic);
/// Runs in real time have to be short.
const QUICK: &[(&str, &str)] = &[("duration", "12 s"), ("warm-up", "6 s"), ("seeds", "2")];

const EXPERIMENTS: [Experiment; 21] = [
    simulated("lab-audio-simulated", "simulated", AUDIO),
    in_lab("lab-audio", "laboratory", AUDIO).with(&[SEVERAL]),
    simulated("lab-one-simulated", "simulated", ONE),
    in_lab("lab-one", "laboratory", ONE).with(&[MANY]),
    simulated("lab-mixed-simulated", "simulated", MIXED),
    in_lab("lab-mixed", "laboratory", MIXED).with(&[SEVERAL]),
    simulated("lab-cheat-simulated", "simulated", CHEAT),
    in_lab("lab-cheat", "laboratory", CHEAT).with(&[SEVERAL]),
    simulated("lab-tcp-simulated", "simulated NewReno", TCP),
    simulated("lab-tcp-simulated-delack", "simulated NewReno, delayed ACKs", TCP).with(&[DELAYED]),
    in_lab("lab-tcp", "Linux Reno", TCP),
    in_lab("lab-tcp-classic", "Linux Reno, classic", TCP).on(CLASSIC),
    in_lab("lab-tcp-delack", "Linux Reno, delayed ACKs", TCP).with(&[SEEDS, DELAYED]),
    simulated("lab-tcp-simulated-sack", "simulated NewReno, SACK", TCP).with(&[SACK]),
    simulated("lab-tcp-simulated-linux", "simulated as Linux, SACK", TCP)
        .with(&[LINUX[0], LINUX[1], NEWRENO]),
    in_lab("lab-tcp-sack", "Linux Reno, SACK", TCP).with(&[SEEDS, SACK]),
    in_lab("lab-tcp-sack-classic", "Linux Reno, SACK, classic", TCP).with(&[SEEDS, SACK]).on(CLASSIC),
    simulated("lab-tcp-simulated-cubic", "simulated CUBIC", TCP).with(&[CUBIC]),
    simulated("lab-tcp-simulated-linux-cubic", "simulated CUBIC as Linux", TCP)
        .with(&[LINUX[0], LINUX[1], CUBIC]),
    in_lab("lab-tcp-cubic", "Linux CUBIC", TCP).with(&[SEEDS, CUBIC]),
    in_lab("lab-tcp-bbr", "Linux BBR", TCP).with(&[SEEDS, BBR]),
];

const fn simulated(id: &'static str, label: &'static str, file: (&'static str, &'static str)) -> Experiment {
    Experiment::new(id, label, file).shortened_by(QUICK)
}

const fn in_lab(id: &'static str, label: &'static str, file: (&'static str, &'static str)) -> Experiment {
    simulated(id, label, file).with(&[SEEDS]).on(STOCK)
}

fn sections_of(figure: &FigureText, stored: &[ExperimentData<'_>]) -> Vec<Section> {
    let section = panels::section(figure, stored);
    let notes = stored.iter().filter_map(|(experiment, data)| timing(experiment, data));
    vec![Section { notes: section.notes.into_iter().chain(notes).collect(), ..section }]
}

/// The claim if the timing of some runs is not valid. A difference is then unclear, because the machine may be its cause.
pub(crate) fn with_invalid_timing(claim: Claim) -> Claim {
    if claim.holds != Verdict::Differs {
        return claim;
    }
    let doubt = "It differs here, but the timing of some runs is not valid: see below.";
    let note = [claim.note.as_str(), doubt].join(" ").trim().to_owned();
    Claim { holds: Verdict::Unclear, note, ..claim }
}

/// A note about the timing of an experiment's runs; `None` for a simulation.
pub(crate) fn timing(experiment: &Experiment, data: &Data) -> Option<String> {
    let worst = data.timing.iter().filter_map(|row| row.departure_error_p99_ms).fold(f64::NAN, f64::max);
    let bad: Vec<String> = data
        .timing
        .iter()
        .filter(|row| !row.timing_ok)
        .map(|row| format!("{} with seed {}: {}", row.point, row.seed, row.problem))
        .collect();
    let runs = data.timing.len();
    if runs == 0 {
        return None;
    }
    Some(if bad.is_empty() {
        format!(
            "{}: the timing of all {runs} runs is valid; the worst 99th percentile of the departure error is {worst:.2} ms.",
            experiment.id
        )
    } else {
        format!(
            "{}: the timing of {} of {runs} runs is not valid (--resume runs them again): {}.",
            experiment.id,
            bad.len(),
            bad.join("; ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_whose_timing_is_not_valid_show_no_difference() {
        let claim = |holds, note: &str| Claim {
            holds,
            note: note.to_owned(),
            ..Claim::new("lab-cheat.others", "3", "others lose little")
        };
        assert_eq!(
            with_invalid_timing(claim(Verdict::Holds, "as before")),
            claim(Verdict::Holds, "as before")
        );
        let doubted = with_invalid_timing(claim(Verdict::Differs, "Linux waits."));
        assert_eq!(doubted.holds, Verdict::Unclear);
        assert!(doubted.note.starts_with("Linux waits. It differs here"), "{}", doubted.note);
        assert!(with_invalid_timing(claim(Verdict::Differs, "")).note.starts_with("It differs"));
    }
}
