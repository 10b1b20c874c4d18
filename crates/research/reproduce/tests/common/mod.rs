//! Studies at a reduced length.

#![allow(dead_code, reason = "each test binary uses a part")]

use cutline_results::ExistingResults;
use cutline_study::{Evaluation, EvaluationOptions, ExperimentChanges, Study};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// The options for a quick run of some figures of a study; all figures if `figures` is empty.
pub fn quick(results: &Path, figures: &[u32]) -> EvaluationOptions {
    EvaluationOptions {
        results: results.to_owned(),
        figures: figures.to_vec(),
        changes: ExperimentChanges::quick(true),
        existing: ExistingResults::Repeat,
        threads: NonZeroUsize::new(2).unwrap(),
        version: "test",
        commit: "",
        clock: || "now".to_owned(),
    }
}

/// Runs figures of a study and checks that every claim is measured and every figure is drawn.
pub fn measured_and_drawn(study: &Study, figures: &[u32]) -> Evaluation {
    let folder = tempfile::tempdir().unwrap();
    let options = quick(folder.path(), figures);
    let evaluation = study.ready(&options).unwrap().run(&AtomicBool::new(false), &|_| {}, &|_| {}).unwrap();
    assert!(evaluation.complete && evaluation.failed.is_empty(), "{:?}", evaluation.failed);
    let unmeasured = evaluation.claims.iter().find(|claim| claim.measured.is_none_or(f64::is_nan));
    assert!(unmeasured.is_none(), "{unmeasured:?}");
    let drawn = study.folder(folder.path(), &ExperimentChanges::quick(true)).join("figures");
    for number in study.figures().iter().map(|figure| figure.number) {
        let is_asked = figures.is_empty() || figures.contains(&number);
        assert!(!is_asked || drawn.join(format!("figure-{number}.png")).exists(), "{} {number}", study.id);
    }
    evaluation
}

/// The measured value of the claim with this full id.
pub fn measured(evaluation: &Evaluation, id: &str) -> f64 {
    evaluation.claims.iter().find(|claim| claim.id == id).unwrap_or_else(|| panic!("{id}")).measured.unwrap()
}

/// The study with this name.
pub fn study(id: &str) -> &'static Study {
    cutline_reproduce::study(id).unwrap_or_else(|| panic!("there is no study {id}"))
}
