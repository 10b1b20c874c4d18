//! The RED-Worcester evaluation from scenario to report, shortened.

use crate::common::{measured, measured_and_drawn, study};

#[test]
fn the_papers_figures_are_all_there() {
    let numbers: Vec<u32> = study("redw").figures().iter().map(|figure| figure.number).collect();
    // The last has what the text says beyond the figures.
    assert_eq!(numbers, [8, 9, 10, 11, 12, 13, 14, 15]);
    for experiment in &study("redw").experiments {
        let points = experiment.scenario_file(false).unwrap().expand().unwrap();
        assert!(points.iter().all(|point| point.scenario.seeds == 10), "{}", experiment.id);
    }
}

#[test]
fn every_figure_is_measured_and_drawn() {
    let evaluation = measured_and_drawn(study("redw"), &[]);
    let of = |id: &str| measured(&evaluation, id);
    assert!((of("mix.target-first") - 48.0).abs() < 1.5, "{}", of("mix.target-first"));
    assert!(of("mix.queue-falls") > 15.0, "{}", of("mix.queue-falls"));
}
