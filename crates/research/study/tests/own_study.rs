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

/// A figure without panels has claims, and no picture: not an empty one, either.
#[test]
fn a_figure_without_panels_makes_no_picture() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("own");
    fs::create_dir(&own).unwrap();
    for name in ["study.toml", "target.toml"] {
        fs::copy(example().join(name), own.join(name)).unwrap();
    }
    let figures = fs::read_to_string(example().join("figures.toml")).unwrap();
    let without = r#"
[[figure]]
number = 2
heading = "The link alone"
experiments = ["drops"]
says = "It is used."
claims = [{ id = "used", text = "Utilisation", measure = "utilisation_percent", of = "r1->r2", at = { "dumbbell.queue.target" = "5 ms" }, at-least = 50, unit = "%" }]
"#;
    fs::write(own.join("figures.toml"), figures + without).unwrap();
    let study = Study::open(&own, &[&Simulator]).unwrap();
    let results = folder.path().join("results");
    let options = EvaluationOptions { figures: vec![2], ..quick(&results) };
    let evaluation = study.ready(&options).unwrap().run(&AtomicBool::new(false), &|_| {}, &|_| {}).unwrap();
    assert!(evaluation.claims.len() == 1 && evaluation.claims[0].measured.is_some(), "{evaluation:?}");
    let written = fs::read_dir(study.folder(&results, &options.changes).join("figures")).unwrap();
    assert_eq!(written.count(), 0);
    let page = fs::read_to_string(&evaluation.written.report).unwrap();
    assert!(page.contains("The link alone") && !page.contains("<svg") && !page.contains("figure-2.png"));
    let error = study.draw(2, &results, &options.changes).unwrap_err().to_string();
    assert!(error.starts_with("figure 2 of own has no charts"), "{error}");
}

/// A swept key that is set no longer varies. Claims about its value are judged, those about others have nothing to measure.
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

/// The errors of a copy of the example with a change in one of its files, each in a line, without the folder.
fn error(file: &str, from: &str, to: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    for name in ["study.toml", "figures.toml", "target.toml"] {
        let text = fs::read_to_string(example().join(name)).unwrap();
        assert!(name != file || text.contains(from), "{from}");
        let text = if name == file { text.replace(from, to) } else { text };
        fs::write(folder.path().join(name), text).unwrap();
    }
    let errors = Study::open(folder.path(), &[&Simulator]).unwrap_err().to_string();
    errors.replace(&format!("{}/", folder.path().display()), "")
}

#[test]
fn names_that_no_experiment_has_are_reported() {
    let figures = |from, to| error("figures.toml", from, to);
    assert_eq!(
        figures("of = \"call\", at", "of = \"calls\", at"),
        "figures.toml:15:109: key \"figure[1].claims.shorter.of\": value \"calls\" is not allowed: the \
         experiment \"drops\" has no flow or group \"calls\", did you mean \"call\"?"
    );
    assert_eq!(
        figures("\"queuing_p50_ms\", of", "\"queueing_p50_ms\", of"),
        "figures.toml:15:86: key \"figure[1].claims.shorter.measure\": value \"queueing_p50_ms\" is not \
         allowed: there is no measure \"queueing_p50_ms\" of \"call\", did you mean \"queuing_p50_ms\"?"
    );
    assert_eq!(
        figures("= \"50 ms\" }, minus", "= \"51 ms\" }, minus"),
        "figures.toml:15:122: key \"figure[1].claims.shorter.at\": value { \"dumbbell.queue.target\" = \"51 \
         ms\" } is not allowed: no point of the experiment \"drops\" has dumbbell.queue.target = 51 ms; \
         there are 5 ms, 15 ms, 50 ms"
    );
    assert_eq!(
        figures(
            "at = { \"dumbbell.queue.target\" = \"50 ms\" }, minus",
            "at = { \"dumbbell.queue.targte\" = \"50 ms\" }, minus"
        ),
        "figures.toml:15:122: key \"figure[1].claims.shorter.at\": value { \"dumbbell.queue.targte\" = \"50 \
         ms\" } is not allowed: the key \"dumbbell.queue.targte\" is not swept in the experiment \"drops\", \
         did you mean \"dumbbell.queue.target\"?"
    );
    assert_eq!(
        figures("[\"drops\", \"marks\"]", "[\"drops\", \"mark\"]"),
        "figures.toml:9:25: key \"figure[1].experiments\": value \"mark\" is not allowed: expected an \
         experiment of study.toml: \"drops\", \"marks\"; did you mean \"marks\"?"
    );
    assert_eq!(
        figures(", above = 20", ""),
        "figures.toml:15:5: key \"figure[1].claims.shorter.above\" is missing: expected a rule: \"above\", \
         \"below\", \"at-least\", \"at-most\", \"equals\", or \"from\" and \"to\""
    );
    assert_eq!(
        figures("id = \"shorter\"", "id = \"shorter\", colour = 1"),
        "figures.toml:15:23: key \"figure[1].claims.shorter.colour\" is not known here: known are above, \
         among, at, at-least, at-most, below, best-by, check, during, equals, experiment, first, from, \
         id, level-by, mean-by, measure, minus, note, of, over, over-time, paper, text, times, to, unit, \
         unpaired, within, worst-by"
    );
}

#[test]
fn errors_of_experiments_are_reported() {
    let study = |from, to| error("study.toml", from, to);
    assert_eq!(
        study(
            "id = \"drops\"\nlabel = \"drops\"\nfile = \"target.toml\"",
            "id = \"drops\"\nlabel = \"drops\"\nfile = \"targets.toml\""
        ),
        "study.toml:15:8: key \"experiment.drops.file\": value \"targets.toml\" is not allowed: targets.toml: \
         cannot be read: No such file or directory (os error 2)"
    );
    assert_eq!(
        study("flow.bulk.ecn", "flow.bulk.enc"),
        "study.toml:10:9: flow.bulk.enc=true: key \"flow.bulk.enc\" is not known here: did you mean \"ecn\"? \
         (experiment \"marks\")"
    );
    assert_eq!(
        error("target.toml", "\"10 Mbit/s\"", "\"10 Mbits\""),
        "target.toml:9:8: key \"dumbbell.rate\": value \"10 Mbits\" is not allowed: expected a rate such as \
         \"15 Mbit/s\" (bit/s, kbit/s, Mbit/s, Gbit/s), above 0; there is no unit \"Mbits\" here, did you \
         mean \"Mbit/s\"? (experiment \"drops\")"
    );
}

#[test]
fn the_errors_of_both_files_are_reported_together() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("study.toml"), "title = 1\nexperiment = []\n").unwrap();
    fs::write(
        folder.path().join("figures.toml"),
        "figure = [{ number = 1, heading = \"One\", says = \"So.\" }]\n",
    )
    .unwrap();
    let errors = Study::open(folder.path(), &[&Simulator]).unwrap_err().to_string();
    assert_eq!(
        errors.replace(&format!("{}/", folder.path().display()), ""),
        "figures.toml:1:11: key \"figure[1].claims\" is missing: expected a list of tables\n\
         study.toml:1:9: \
         key \"title\": value 1 is not allowed: expected a text in quotes"
    );
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let errors = Study::open(folder.path(), &[&Simulator]).unwrap_err().to_string();
    assert_eq!(
        errors.replace(&format!("{}/", folder.path().display()), ""),
        "figures.toml: cannot be read: No such file or directory (os error 2)\n\
         study.toml: cannot be read: No such file or directory (os error 2)"
    );
}
