//! The TSQ evaluation from scenario to report, shortened.

use crate::common::{quick, study};
use cutline_results::ExistingResults;
use cutline_study::{Evaluation, EvaluationOptions, ExperimentChanges, Study, StudyError};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::AtomicBool;

fn tsq() -> &'static Study {
    study("tsq")
}

fn run(results: &Path, figures: &[u32], cancel: bool) -> Result<Evaluation, StudyError> {
    let options = EvaluationOptions { existing: ExistingResults::Resume, ..quick(results, figures) };
    tsq().ready(&options)?.run(&AtomicBool::new(cancel), &|_| {}, &|_| {})
}

#[test]
fn the_papers_figures_are_all_there() {
    let numbers: Vec<u32> = tsq().figures().iter().map(|figure| figure.number).collect();
    assert_eq!(numbers, [2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
}

#[test]
fn every_experiment_is_a_scenario_of_ten_seeds() {
    for experiment in &tsq().experiments {
        let points = experiment.scenario_file(false).unwrap().expand().unwrap();
        assert!(points.iter().all(|point| point.scenario.seeds == 10), "{}", experiment.id);
        assert_eq!(experiment.runs(false).unwrap(), points.len() as u64 * 10);
    }
}

#[test]
fn a_figure_is_simulated_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let evaluation = run(folder.path(), &[2, 3, 4, 5, 16], false).unwrap();
    assert!(evaluation.complete && evaluation.failed.is_empty(), "{:?}", evaluation.failed);

    let ids: BTreeSet<&str> = evaluation.claims.iter().map(|claim| claim.id.as_str()).collect();
    assert_eq!(ids.len(), evaluation.claims.len(), "the ids of claims are unique");
    let of = |id: &str| evaluation.claims.iter().find(|claim| claim.id == id).unwrap();
    assert_eq!(of("curves.throughput-64").measured.map(|qt| (qt * 100.0).round()), Some(83.0));
    let gain = of("unresponsive.audio-25");
    assert!(gain.measured.unwrap() > 1.02, "audio with hint 6 gains: {gain:?}");
    assert!(
        gain.ci_low.unwrap() <= gain.measured.unwrap() && gain.measured.unwrap() <= gain.ci_high.unwrap()
    );

    let page = std::fs::read_to_string(&evaluation.written.report).unwrap();
    assert!(page.contains("Figure 16") && page.contains("<svg"));
    for figure in ["figure-3.svg", "figure-3.png", "figure-16.svg", "figure-16.png"] {
        assert!(folder.path().join("tsq-quick/figures").join(figure).exists(), "{figure}");
    }
    let claims: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&evaluation.written.claims).unwrap()).unwrap();
    let keys: BTreeSet<&str> = claims[0].as_object().unwrap().keys().map(String::as_str).collect();
    let all = [
        "id", "figure", "claim", "kind", "paper", "rule", "measured", "ci_low", "ci_high", "unit", "holds",
        "p_value", "note",
    ];
    assert_eq!(keys, BTreeSet::from(all));

    // A report on the stored results has the same claims.
    let again = tsq().report(folder.path(), &ExperimentChanges::quick(true)).unwrap();
    let kept = |evaluation: &Evaluation| {
        let simulated = evaluation.claims.iter().filter(|claim| claim.id.starts_with("unresponsive"));
        simulated.cloned().collect::<Vec<_>>()
    };
    assert_eq!(kept(&again), kept(&evaluation));
}

#[test]
fn the_error_of_an_unknown_figure_lists_the_known_ones() {
    let folder = tempfile::tempdir().unwrap();
    let error = run(folder.path(), &[7], false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no figure 7 to reproduce; there are 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15, 16"
    );
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none(), "nothing was written");
}

#[test]
fn an_interrupted_evaluation_reports_its_finished_runs() {
    let folder = tempfile::tempdir().unwrap();
    let evaluation = run(folder.path(), &[2, 16], true).unwrap();
    assert!(!evaluation.complete);
    assert!(evaluation.claims.iter().all(|claim| claim.id.starts_with("curves.")));
}

#[test]
fn without_results_there_is_nothing_to_report() {
    let folder = tempfile::tempdir().unwrap();
    let error = tsq().report(folder.path(), &ExperimentChanges::quick(true)).unwrap_err();
    assert!(error.to_string().contains("run `cutline reproduce tsq` first"), "{error}");
}
