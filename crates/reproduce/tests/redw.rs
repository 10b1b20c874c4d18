//! The RED-Worcester evaluation from scenario to report, shortened.

use cutline_reproduce::{Options, REDW};
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;

#[test]
fn the_papers_figures_are_all_there() {
    let numbers: Vec<u32> = REDW.figures().iter().map(|figure| figure.number).collect();
    assert_eq!(numbers, [8, 9, 10, 11, 12, 13, 14]);
    for experiment in REDW.experiments {
        let points = experiment.scenario_file(false).unwrap().expand().unwrap();
        assert!(points.iter().all(|point| point.scenario.seeds == 10), "{}", experiment.id);
    }
}

#[test]
fn every_figure_is_measured_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        results: folder.path().to_owned(),
        figures: Vec::new(),
        quick: true,
        resume: false,
        threads: NonZeroUsize::new(2).unwrap(),
        version: "test",
        clock: || "now".to_owned(),
    };
    let evaluation = REDW.run(&options, &AtomicBool::new(false), &|_| {}, &|_| {}).unwrap();
    assert!(evaluation.complete && evaluation.failed.is_empty(), "{:?}", evaluation.failed);
    let unmeasured = evaluation.claims.iter().find(|claim| claim.measured.is_none());
    assert!(unmeasured.is_none(), "{unmeasured:?}");
    let of = |id: &str| evaluation.claims.iter().find(|claim| claim.id == id).unwrap().measured.unwrap();
    assert!((of("mix.target-first") - 48.0).abs() < 1.5, "{}", of("mix.target-first"));
    assert!(of("mix.queue-falls") > 15.0, "{}", of("mix.queue-falls"));
    for number in 8..=14 {
        assert!(folder.path().join(format!("redw/figures/figure-{number}.png")).exists(), "{number}");
    }
}
