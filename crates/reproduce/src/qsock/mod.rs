//! The testbed of `QoSockets` (section III) in the laboratory with routers, and the paper's figures 6 to 12.

mod charts;
mod measure;
pub(crate) mod testbed;

use crate::claims::FigureText;
use crate::experiment::{Experiment, Platform, scenario, text_of};
use crate::lab::timing;
use crate::study::{ExperimentData, Study};
use cutline_report::chart::Figure;
use cutline_report::report::Section;

/// The study. It runs in real time and needs root, so it is not one of [`crate::STUDIES`].
pub const QSOCK: Study = Study {
    id: "qsock",
    title: "QoSockets: the testbed",
    statement_heading: "The paper says",
    intro: INTRO,
    figures: text_of!("qsock/figures.toml"),
    experiments: &EXPERIMENTS,
    own: measure::own,
    sections_of,
};

const INTRO: &str = "\
The testbed of QoSockets section III with real packets: hosts and routers are network namespaces, the kernel forwards, and a line of \
1.5 Mbit/s joins both sides. A main flow, with or without a reservation, meets none, one or two reference flows of 540 kbit/s. Cases are \
those of the paper's table 1: A one flow, B two, C three, which is more than the line carries; 1 without QoS, 2 with it.

Numbers are means over five runs with their 95 % confidence interval, each measured for 20 s (NetVideo) or 30 s (DIRM) in intervals of \
0.5 s. Rates and losses are those of the paper's equations 2 and 3, delay and jitter those of 4 and 5. Rules and tolerances of the claims \
were set before the first run. The paper's bars are lost in our copy, so its values are those that its text gives.";

macro_rules! case {
    ($file:literal, $label:literal) => {
        Experiment::new($file, $label, scenario!("qsock/", $file, ".toml"))
    };
}

/// Runs in real time have to be short.
const QUICK: &[(&str, &str)] = &[("duration", "8 s"), ("warm-up", "3 s"), ("seeds", "2")];

/// A line that carries what the paper's receivers of case C got together.
const NARROW: &[(&str, &str)] = &[("link.line.rate", "1200 kbit/s")];

const EXPERIMENTS: [Experiment; 20] = [
    on_testbed(case!("netvideo-a1", "A1")),
    on_testbed(case!("netvideo-a2", "A2")),
    on_testbed(case!("netvideo-a3", "A3")),
    on_testbed(case!("netvideo-b1", "B1")),
    on_testbed(case!("netvideo-b2", "B2")),
    on_testbed(case!("netvideo-c1", "C1")),
    on_testbed(case!("netvideo-c2", "C2")),
    on_testbed(Experiment { id: "netvideo-c1-narrow", ..case!("netvideo-c1", "C1, 1.2 Mbit/s") })
        .with(NARROW),
    on_testbed(Experiment { id: "netvideo-c2-narrow", ..case!("netvideo-c2", "C2, 1.2 Mbit/s") })
        .with(NARROW),
    on_testbed(case!("dirm-a1", "A1")),
    on_testbed(case!("dirm-a2", "A2")),
    on_testbed(case!("dirm-a3", "A3")),
    on_testbed(case!("dirm-b1", "B1")),
    on_testbed(case!("dirm-b2", "B2")),
    on_testbed(case!("dirm-c1", "C1")),
    on_testbed(case!("dirm-c2", "C2")),
    on_testbed(case!("dirm-c2-both", "C2, both directions")),
    on_testbed(case!("dirm-d1", "D1")),
    on_testbed(case!("dirm-d2", "D2")),
    on_testbed(case!("dirm-d3", "D3, both directions")),
];

const fn on_testbed(experiment: Experiment) -> Experiment {
    experiment.shortened_by(QUICK).on(Platform::Testbed)
}

fn sections_of(figure: &FigureText, stored: &[ExperimentData<'_>]) -> Vec<Section> {
    let mut notes: Vec<String> =
        stored.iter().filter_map(|(experiment, data)| timing(experiment, data)).collect();
    if stored.iter().any(|(_, data)| !data.summary.version.ends_with(testbed::PROGRAMS)) {
        notes.push(WITHOUT_PROGRAMS.to_owned());
    }
    let charts = charts::of(figure.number, stored);
    let figures =
        vec![(format!("figure-{}", figure.number), Figure::grid(figure.heading.clone(), 1, charts))];
    let we_see = charts::seen(figure.number, stored);
    let pictures = if figure.number == VIEWER { pictures(stored) } else { Vec::new() };
    vec![Section { we_see, figures, pictures, notes, ..Section::default() }]
}

const WITHOUT_PROGRAMS: &str = "\
The programs were not installed: the main flows are those of the traffic generator, with the same messages, and NetVideo's are an \
application over QoS sockets where they are reserved. Nothing is said of what a viewer saw.";

/// The figure about what the viewer saw.
const VIEWER: u32 = 15;

/// What the viewer saw in the overload, if the programs are installed.
fn pictures(stored: &[ExperimentData<'_>]) -> Vec<(String, Vec<u8>)> {
    let shown = [
        ("netvideo-c2", "source.png", "As it was drawn"),
        ("netvideo-c2", "reserved.png", "As the viewer saw it in C2, with a reservation"),
        ("netvideo-c1", "unreserved.png", "As the viewer saw it in C1, without"),
    ];
    let read = |(id, file, what): (&str, &str, &str)| {
        let (_, data) = stored.iter().find(|(experiment, _)| experiment.id == id)?;
        let png = std::fs::read(data.folder.join(testbed::PICTURES).join(file)).ok()?;
        Some((what.to_owned(), png))
    };
    shown.into_iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_is_one_that_the_testbed_has() {
        for experiment in &EXPERIMENTS {
            for quick in [false, true] {
                for point in experiment.scenario_file(quick).unwrap().expand().unwrap() {
                    cutline_lab::routed::check(&point.scenario).unwrap();
                    let samples = point.scenario.seeds as f64
                        * (point.scenario.measure_until - point.scenario.warm_up).as_secs_f64()
                        / 0.5;
                    // Section IV: at least 100 samples of NetVideo, and 200 of DIRM.
                    let least = if experiment.id.starts_with("dirm") { 200.0 } else { 100.0 };
                    assert!(quick || samples >= least, "{}: {samples}", experiment.id);
                }
            }
        }
    }

    #[test]
    fn all_cases_have_the_same_network() {
        let network = |experiment: &Experiment| {
            let scenario = experiment.scenario_file(false).unwrap().scenario().unwrap();
            scenario.graph()
        };
        let first = network(&EXPERIMENTS[0]);
        for experiment in EXPERIMENTS.iter().filter(|experiment| experiment.set.is_empty()) {
            assert_eq!(network(experiment), first, "{}", experiment.id);
        }
    }

    #[test]
    fn every_claim_has_a_measure_and_its_experiments_are_shown() {
        let figures = QSOCK.figures();
        let claims =
            || figures.iter().flat_map(|figure| figure.claims.iter().map(move |claim| (figure, &claim.id)));
        for (figure, id) in claims() {
            let of = measure::MEASURES.iter().find(|(claim, _)| claim == id);
            let (_, of) = of.unwrap_or_else(|| panic!("nothing measures {id}"));
            for experiment in of.experiments() {
                assert!(figure.experiments.iter().any(|shown| shown == experiment), "{id}: {experiment}");
            }
            assert!(figure.experiments.iter().any(|shown| id.starts_with(&format!("{shown}."))), "{id}");
        }
        let ids: Vec<&String> = claims().map(|(_, id)| id).collect();
        for (id, _) in measure::MEASURES {
            assert!(ids.iter().any(|claim| *claim == id), "figures.toml has no claim {id}");
        }
    }
}
