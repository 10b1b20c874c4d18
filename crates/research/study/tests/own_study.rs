//! A study of a user: read from its folder, run, judged and drawn; and the errors in one.

use cutline_results::ExistingResults;
use cutline_study::{EvaluationOptions, ExperimentChanges, Simulator, Study};
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::AtomicBool;

fn example() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/study")
}

fn quick(results: &Path) -> EvaluationOptions {
    EvaluationOptions {
        results: results.to_owned(),
        figures: Vec::new(),
        changes: ExperimentChanges::quick(true),
        existing: ExistingResults::Refuse,
        threads: NonZeroUsize::new(2).unwrap(),
        version: "test",
        commit: "",
        clock: || "now".to_owned(),
    }
}

#[test]
fn the_example_is_run_judged_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let study = Study::open(&example(), &[&Simulator]).unwrap();
    assert_eq!(study.id, "study");
    let options = quick(folder.path());
    let evaluation = study.ready(&options).unwrap().run(&AtomicBool::new(false), &|_| {}, &|_| {}).unwrap();
    assert!(evaluation.complete && evaluation.failed.is_empty());
    assert_eq!(evaluation.claims.len(), 2 * 4, "each claim is judged for both experiments");
    let measured =
        |id: &str| evaluation.claims.iter().find(|claim| claim.id == id).unwrap().measured.unwrap();
    assert!(measured("drops.shorter") > 20.0, "{}", measured("drops.shorter"));
    assert!(folder.path().join("study-quick/figures/figure-1.png").exists());
    let again = study.report(folder.path(), &options.changes).unwrap();
    assert_eq!(again.claims, evaluation.claims);
}

/// A swept key that is set does not vary any more. Claims about its value are judged, those about others have nothing to measure.
#[test]
fn claims_about_a_swept_key_that_is_set_are_judged() {
    let folder = tempfile::tempdir().unwrap();
    let study = Study::open(&example(), &[&Simulator]).unwrap();
    let set = vec![("dumbbell.queue.target".to_owned(), "15 ms".to_owned())];
    let options = EvaluationOptions {
        changes: ExperimentChanges { set, ..ExperimentChanges::quick(true) },
        ..quick(folder.path())
    };
    let evaluation = study.ready(&options).unwrap().run(&AtomicBool::new(false), &|_| {}, &|_| {}).unwrap();
    let measured = |id: &str| evaluation.claims.iter().find(|claim| claim.id == id).unwrap().measured;
    assert!(measured("drops.full-15").unwrap() > 90.0);
    assert_eq!((measured("drops.full-5"), measured("drops.shorter")), (None, None));
}

/// A copy of the example with a change in one of its files.
fn error(file: &str, from: &str, to: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    for name in ["study.toml", "figures.toml", "target.toml"] {
        let text = fs::read_to_string(example().join(name)).unwrap();
        let text = if name == file { text.replace(from, to) } else { text };
        assert!(name != file || text.contains(to), "{from}");
        fs::write(folder.path().join(name), text).unwrap();
    }
    Study::open(folder.path(), &[&Simulator]).unwrap_err().to_string()
}

#[test]
fn what_no_experiment_has_is_named() {
    let figures = |from, to| error("figures.toml", from, to);
    assert!(figures("of = \"call\"", "of = \"calls\"").contains("there is no flow or group `calls`"));
    assert!(
        figures("\"queuing_p50_ms\"", "\"queueing_p50_ms\"")
            .contains("there is no measure `queueing_p50_ms`")
    );
    assert!(figures("= \"50 ms\" }, minus", "= \"51 ms\" }, minus").contains("no point has"));
    assert!(figures("[\"drops\", \"marks\"]", "[\"drops\", \"mark\"]").contains("no experiment `mark`"));
    assert!(figures(", above = 20", "").contains("claim `shorter` has no rule"));
    assert!(figures("id = \"shorter\"", "id = \"shorter\", colour = 1").contains("colour"));
    let study = |from, to| error("study.toml", from, to);
    assert!(
        study("file = \"target.toml\"", "file = \"targets.toml\"").contains("targets.toml cannot be read")
    );
    let unknown = study("flow.bulk.ecn", "flow.bulk.enc");
    assert!(unknown.contains("experiment `marks`") && unknown.contains("enc"), "{unknown}");
    assert!(error("target.toml", "\"10 Mbit/s\"", "\"10 Mbits\"").contains("Mbits"));
}
