//! The study of hints that adapt, from scenario to report, shortened.

mod common;

use common::{measured, measured_and_drawn};
use cutline_reproduce::ADAPTIVE;

/// Four minutes: from 16 audio is on its way down, from 1 on its way up.
#[test]
fn all_who_adapt_are_under_way_after_four_minutes() {
    let evaluation = measured_and_drawn(&ADAPTIVE, &[2]);
    let apart = measured(&evaluation, "adaptive-all.same-place");
    assert!((0.0..13.0).contains(&apart), "{apart} levels of 15 are left between them");
    assert!(measured(&evaluation, "adaptive-all.spread") > 0.0, "each has a chance of its own");
}

#[test]
fn everybody_who_adapts_is_measured_by_class() {
    let evaluation = measured_and_drawn(&ADAPTIVE, &[3]);
    assert!(measured(&evaluation, "adaptive-mixed.parts-16") > 3.0, "audio goes down, files stay");
    assert!(measured(&evaluation, "adaptive-mixed.still") < 2.0);
}

/// Both kinds of hint are points of one sweep.
#[test]
fn fixed_hints_and_beginnings_are_points_of_one_sweep() {
    let points = |id: &str| {
        let experiment = ADAPTIVE.experiments.iter().find(|experiment| experiment.id == id).unwrap();
        experiment.scenario_file(false).unwrap().expand().unwrap()
    };
    let one = points("adaptive-one");
    let adapting = one.iter().filter(|point| point.scenario.flows[1].adaptive.is_some()).count();
    assert_eq!((one.len(), adapting), (12, 3));
    assert_eq!(points("adaptive-all").len(), 6);
    let step = points("adaptive-step");
    assert!(step.iter().all(|point| point.scenario.duration.as_secs_f64() == 1800.0));
}
