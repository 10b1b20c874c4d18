//! Every study, as far as that goes without simulating it in full.

use cutline_reproduce::{BITS, CHEATERS, Evaluation, MODERN, Options, RIVALS, STUDIES, Study};
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

/// Runs figures of a study at a reduced length: every claim is measured, every figure drawn.
fn measured_and_drawn(study: &Study, figures: &[u32]) -> Evaluation {
    let folder = tempfile::tempdir().unwrap();
    let options = quick(folder.path(), figures);
    let evaluation = study.run(&options, &AtomicBool::new(false), &|_| {}, &|_| {}).unwrap();
    assert!(evaluation.complete && evaluation.failed.is_empty(), "{:?}", evaluation.failed);
    let unmeasured = evaluation.claims.iter().find(|claim| claim.measured.is_none());
    assert!(unmeasured.is_none(), "{unmeasured:?}");
    let drawn = folder.path().join(study.id).join("figures");
    for number in figures {
        assert!(drawn.join(format!("figure-{number}.png")).exists(), "{number}");
    }
    evaluation
}

/// What was measured for a claim.
fn measured(evaluation: &Evaluation, id: &str) -> f64 {
    let claim = evaluation.claims.iter().find(|claim| claim.id == id);
    claim.and_then(|claim| claim.measured).unwrap_or_else(|| panic!("no claim {id}"))
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
    let evaluation = measured_and_drawn(&RIVALS, &[4]);
    assert_eq!(evaluation.claims.len(), 3);
}

#[test]
fn a_study_of_our_own_asks_a_question() {
    let folder = tempfile::tempdir().unwrap();
    let evaluation =
        MODERN.run(&quick(folder.path(), &[4]), &AtomicBool::new(false), &|_| {}, &|_| {}).unwrap();
    let page = std::fs::read_to_string(&evaluation.written.report).unwrap();
    assert!(page.contains("The question") && !page.contains("The paper says"));
}

#[test]
fn lying_pays_with_strict_priority_and_not_with_tsq() {
    let found = measured_and_drawn(&CHEATERS, &[1, 2, 3, 4]);
    assert!(measured(&found, "liars-by-share.few") < 0.8);
    assert!(measured(&found, "liars-by-share.priority-few") > 10.0);
    assert!(measured(&found, "liars-by-rtt.law-320") < 0.7);
    assert!(measured(&found, "unresponsive-by-rate.loss-128") > 1.0);
}

#[test]
fn with_ecn_the_charge_is_paid_without_loss() {
    let found = measured_and_drawn(&MODERN, &[2, 5]);
    assert_eq!(measured(&found, "modern-hints.short-mark-loss"), 0.0);
    assert!(measured(&found, "modern-charge.near") > measured(&found, "modern-charge.far"));
}

#[test]
fn a_gigabit_is_measured_and_drawn() {
    measured_and_drawn(&MODERN, &[3]);
}

#[test]
fn the_bits_study_tries_every_level() {
    let points = BITS.experiments[0].scenario_file(false).unwrap().expand().unwrap();
    assert_eq!(points.len(), 2 + 4 + 8 + 16 + 32 + 64);
}
