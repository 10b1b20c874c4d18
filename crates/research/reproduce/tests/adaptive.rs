//! The study of hints that adapt, from scenario to report, shortened.

use crate::common::{measured, measured_and_drawn, study};

/// After four minutes, hints that began at 16 are falling, and those that began at 1 are rising.
#[test]
fn hints_have_moved_after_four_minutes() {
    let evaluation = measured_and_drawn(study("adaptive"), &[2]);
    let apart = measured(&evaluation, "adaptive-all.same-place");
    assert!((0.0..13.0).contains(&apart), "{apart} levels of 15 are left between them");
    assert!(measured(&evaluation, "adaptive-all.spread") > 0.0, "flows adapt independently");
}

#[test]
fn flows_that_adapt_are_measured_by_class() {
    let evaluation = measured_and_drawn(study("adaptive"), &[3]);
    assert!(
        measured(&evaluation, "adaptive-mixed.parts-16") > 3.0,
        "the hints of audio fall, those of files stay"
    );
    assert!(measured(&evaluation, "adaptive-mixed.still") < 2.0);
}

/// Both kinds of hint are points of one sweep.
#[test]
fn fixed_and_adaptive_hints_are_points_of_one_sweep() {
    let points = |id: &str| {
        let experiment = study("adaptive").experiments.iter().find(|experiment| experiment.id == id).unwrap();
        experiment.scenario_file(false).unwrap().expand().unwrap()
    };
    let one = points("adaptive-one");
    let adapting = one.iter().filter(|point| point.scenario.flows[1].adaptive.is_some()).count();
    assert_eq!((one.len(), adapting), (12, 3));
    assert_eq!(points("adaptive-all").len(), 6);
    let step = points("adaptive-step");
    assert!(step.iter().all(|point| point.scenario.duration.as_secs_f64() == 1800.0));
}
