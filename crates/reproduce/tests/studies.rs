//! Every study, as far as that goes without simulating it in full.

use cutline_reproduce::{BITS, Options, RIVALS, STUDIES};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::AtomicBool;

fn quick(results: &Path, figures: &[u32]) -> Options {
    Options {
        results: results.to_owned(),
        figures: figures.to_vec(),
        quick: true,
        resume: false,
        threads: NonZeroUsize::new(2).unwrap(),
        version: "test",
        clock: || "now".to_owned(),
    }
}

#[test]
fn studies_and_their_experiments_have_names_of_their_own() {
    let names: BTreeSet<&str> = STUDIES.iter().map(|study| study.id).collect();
    assert_eq!(names.len(), STUDIES.len());
    let experiments: Vec<&str> =
        STUDIES.iter().flat_map(|study| study.experiments).map(|experiment| experiment.id).collect();
    assert_eq!(experiments.iter().collect::<BTreeSet<_>>().len(), experiments.len(), "{experiments:?}");
}

#[test]
fn figures_show_experiments_that_are_there_and_every_experiment_is_shown() {
    for study in STUDIES {
        let figures = study.figures();
        let shown: BTreeSet<&str> =
            figures.iter().flat_map(|figure| &figure.experiments).map(String::as_str).collect();
        let there: BTreeSet<&str> = study.experiments.iter().map(|experiment| experiment.id).collect();
        assert_eq!(shown, there, "{}", study.id);
    }
}

#[test]
fn every_experiment_is_a_scenario_of_ten_seeds() {
    for experiment in STUDIES.iter().flat_map(|study| study.experiments) {
        for quick in [false, true] {
            let points = experiment.scenario_file(quick).unwrap().expand().unwrap();
            let seeds = if quick { 2 } else { 10 };
            assert!(points.iter().all(|point| point.scenario.seeds == seeds), "{}", experiment.id);
        }
    }
}

#[test]
fn a_case_of_the_rivals_is_measured_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let evaluation =
        RIVALS.run(&quick(folder.path(), &[4]), &AtomicBool::new(false), &|_| {}, &|_| {}).unwrap();
    assert!(evaluation.complete && evaluation.failed.is_empty(), "{:?}", evaluation.failed);
    assert_eq!(evaluation.claims.len(), 3);
    let unmeasured = evaluation.claims.iter().find(|claim| claim.measured.is_none());
    assert!(unmeasured.is_none(), "{unmeasured:?}");
    assert!(folder.path().join("rivals/figures/figure-4.png").exists());
    let page = std::fs::read_to_string(&evaluation.written.report).unwrap();
    assert!(page.contains("The question") && !page.contains("The paper says"));
}

#[test]
fn the_bits_study_tries_every_level() {
    let points = BITS.experiments[0].scenario_file(false).unwrap().expand().unwrap();
    assert_eq!(points.len(), 2 + 4 + 8 + 16 + 32 + 64);
}
