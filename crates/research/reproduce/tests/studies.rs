//! Tests of every study with shortened runs.

use crate::common::{measured, measured_and_drawn, quick, study};
use cutline_reproduce::{is_real_time, studies};
use cutline_study::{Experiment, Study};
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

/// The studies whose experiments are all simulated.
fn simulated() -> impl Iterator<Item = &'static Study> {
    studies().iter().filter(|study| !is_real_time(study))
}

#[test]
fn the_names_of_studies_and_experiments_are_unique() {
    let names: BTreeSet<&str> = studies().iter().map(|study| study.id.as_str()).collect();
    assert_eq!(names.len(), studies().len());
    let experiments: Vec<&str> = studies()
        .iter()
        .flat_map(|study| &study.experiments)
        .map(|experiment| experiment.id.as_str())
        .collect();
    assert_eq!(experiments.iter().collect::<BTreeSet<_>>().len(), experiments.len(), "{experiments:?}");
}

#[test]
fn figures_show_every_experiment_and_no_others() {
    for study in studies() {
        let shown: BTreeSet<&str> =
            study.figures().iter().flat_map(|figure| &figure.experiments).map(String::as_str).collect();
        let there: BTreeSet<&str> =
            study.experiments.iter().map(|experiment| experiment.id.as_str()).collect();
        assert_eq!(shown, there, "{}", study.id);
    }
}

#[test]
fn every_study_has_a_description() {
    for study in studies() {
        assert!(!study.about.is_empty() && study.about.len() < 140, "{}: {:?}", study.id, study.about);
    }
}

/// The experiments of 100 seeds: differences between managers are small.
const HUNDRED: [&str; 4] = ["halving", "halving-reacting", "halving-at-once", "halving-at-once-reacting"];

#[test]
fn every_experiment_is_a_scenario_of_ten_seeds() {
    for experiment in simulated().flat_map(|study| &study.experiments) {
        for quick in [false, true] {
            let points = experiment.scenario_file(quick).unwrap().expand().unwrap();
            let is_long = HUNDRED.contains(&experiment.id.as_str());
            let seeds = if quick {
                2
            } else if is_long {
                100
            } else {
                10
            };
            assert!(points.iter().all(|point| point.scenario.seeds == seeds), "{}", experiment.id);
        }
    }
}

#[test]
fn every_experiment_in_the_laboratory_is_valid_and_is_simulated_too() {
    let (in_lab, simulated): (Vec<&Experiment>, Vec<&Experiment>) = ["lab", "lab-qos"]
        .into_iter()
        .flat_map(|id| &study(id).experiments)
        .partition(|experiment| experiment.platform.is_real_time());
    for experiment in &in_lab {
        let points = experiment.scenario_file(false).unwrap().expand().unwrap();
        for point in &points {
            cutline_lab::check(&point.scenario).unwrap();
        }
        let runs: u64 = points.iter().map(|point| point.scenario.seeds).sum();
        assert!(runs <= 100, "runs in real time are expensive: {} has {runs}", experiment.id);
        let has_simulation = simulated.iter().any(|other| other.file == experiment.file);
        assert!(has_simulation, "{} is not simulated", experiment.id);
    }
    let seeds = |experiment: &&Experiment| experiment.scenario_file(false).unwrap().scenario().unwrap().seeds;
    assert!(simulated.iter().all(|experiment| seeds(experiment) >= 10));
}

#[test]
fn a_case_of_the_rivals_is_measured_and_drawn() {
    let evaluation = measured_and_drawn(study("rivals"), &[4]);
    assert_eq!(evaluation.claims.len(), 3);
}

#[test]
fn a_study_of_our_own_has_a_question() {
    let folder = tempfile::tempdir().unwrap();
    let evaluation = study("modern")
        .ready(&quick(folder.path(), &[4]))
        .unwrap()
        .run(&AtomicBool::new(false), &|_| {}, &|_| {})
        .unwrap();
    let page = std::fs::read_to_string(&evaluation.written.report).unwrap();
    assert!(page.contains("The question") && !page.contains("The paper says"));
}

#[test]
fn false_hints_gain_with_strict_priority_and_not_with_tsq() {
    let evaluation = measured_and_drawn(study("cheaters"), &[1, 2, 3, 4]);
    assert!(measured(&evaluation, "liars-by-share.few") < 0.8);
    assert!(measured(&evaluation, "liars-by-share.priority-few") > 10.0);
    assert!(measured(&evaluation, "liars-by-rtt.law-320") < 0.7);
    assert!(measured(&evaluation, "unresponsive-by-rate.loss-128") > 1.0);
}

#[test]
fn with_ecn_the_charge_is_marks_without_loss() {
    let evaluation = measured_and_drawn(study("modern"), &[2, 5]);
    assert_eq!(measured(&evaluation, "modern-hints.short-mark-loss"), 0.0);
    assert!(measured(&evaluation, "modern-charge.near") > measured(&evaluation, "modern-charge.far"));
}

#[test]
fn a_gigabit_is_measured_and_drawn() {
    measured_and_drawn(study("modern"), &[3]);
}

#[test]
fn the_bits_study_tries_every_level() {
    let points = study("bits").experiments[0].scenario_file(false).unwrap().expand().unwrap();
    assert_eq!(points.len(), 2 + 4 + 8 + 16 + 32 + 64);
}
