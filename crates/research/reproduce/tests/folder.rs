//! The folder of a study: a report never replaces one that shows more, and never mixes different results.

use crate::common::{quick, study};
use cutline_results::{ExistingResults, Lock, StoreError};
use cutline_study::{Evaluation, EvaluationOptions, ExperimentChanges, Study, StudyError};
use cutline_testbed::{FolderFiles, read_folder, write_folder};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use tempfile::TempDir;

fn tsq() -> &'static Study {
    study("tsq")
}

fn run(options: &EvaluationOptions) -> Result<Evaluation, StudyError> {
    tsq().ready(options)?.run(&AtomicBool::new(false), &|_| {}, &|_| {})
}

/// Returns a folder with a copy of the quick results of figure 16 and their report. The first test that needs them makes them.
fn with_figure_16() -> TempDir {
    static MADE: OnceLock<FolderFiles> = OnceLock::new();
    let files = MADE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        run(&quick(folder.path(), &[16])).unwrap();
        read_folder(folder.path())
    });
    let folder = tempfile::tempdir().unwrap();
    write_folder(folder.path(), files);
    folder
}

/// The figures for which the report in a folder has measured values.
fn measured(folder: &Path) -> BTreeSet<String> {
    let claims: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.join("claims.json")).unwrap()).unwrap();
    let claims = claims.as_array().unwrap().iter().filter(|claim| !claim["measured"].is_null());
    claims.map(|claim| claim["figure"].as_str().unwrap().to_owned()).collect()
}

fn figures(numbers: &[&str]) -> BTreeSet<String> {
    numbers.iter().map(|number| (*number).to_owned()).collect()
}

#[test]
fn one_figure_leaves_the_others_in_the_report() {
    let folder = tempfile::tempdir().unwrap();
    let study = tsq().folder(folder.path(), &ExperimentChanges::quick(true));
    run(&quick(folder.path(), &[3, 15, 16])).unwrap();
    assert_eq!(measured(&study), figures(&["3", "15", "16"]));

    let one = run(&quick(folder.path(), &[16])).unwrap();
    assert!(one.claims.iter().all(|claim| claim.figure == "16"), "only the requested figures are printed");
    assert_eq!(measured(&study), figures(&["3", "15", "16"]));
    assert!(fs::read_to_string(one.written.report).unwrap().contains("Figure 15"));
    run(&quick(folder.path(), &[2])).unwrap();
    assert_eq!(measured(&study), figures(&["2", "3", "15", "16"]));
}

#[test]
fn quick_results_have_a_separate_folder() {
    let folder = tempfile::tempdir().unwrap();
    let whole =
        run(&EvaluationOptions { changes: ExperimentChanges::default(), ..quick(folder.path(), &[3]) })
            .unwrap();
    let report = fs::read(&whole.written.report).unwrap();
    let short = run(&quick(folder.path(), &[2, 16])).unwrap();
    assert_eq!(fs::read(&whole.written.report).unwrap(), report);
    assert_eq!(measured(&tsq().folder(folder.path(), &ExperimentChanges::quick(false))), figures(&["3"]));
    assert_ne!(short.written.report, whole.written.report);
    assert!(fs::read_to_string(short.written.report).unwrap().contains("(quick)"));
    assert!(matches!(
        tsq().report(folder.path(), &ExperimentChanges::quick(false)),
        Err(StudyError::Nothing { .. })
    ));
}

#[test]
fn a_report_does_not_mix_versions() {
    let folder = with_figure_16();
    let later = |figure, existing| EvaluationOptions {
        version: "later",
        existing,
        ..quick(folder.path(), &[figure])
    };
    // The same experiment: its results would be lost.
    let error = run(&later(16, ExistingResults::Repeat)).unwrap_err();
    assert!(matches!(&error, StudyError::Store(StoreError::Taken { .. })), "{error}");
    // Another one: the report would show both.
    for existing in [ExistingResults::Repeat, ExistingResults::Replace] {
        let error = run(&later(15, existing)).unwrap_err();
        assert!(matches!(&error, StudyError::Mixed { .. }), "{error}");
        assert!(error.to_string().contains("unresponsive holds results of version test"), "{error}");
    }
    let study = tsq().folder(folder.path(), &ExperimentChanges::quick(true));
    assert!(!study.join("cheat").exists(), "nothing was simulated");

    run(&quick(folder.path(), &[15])).unwrap();
    let path = study.join("cheat/summary.json");
    let mut summary: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    summary["version"] = "later".into();
    fs::write(&path, cutline_results::seal(&serde_json::to_string_pretty(&summary).unwrap())).unwrap();
    let error = tsq().report(folder.path(), &ExperimentChanges::quick(true)).unwrap_err();
    assert!(matches!(&error, StudyError::Mixed { .. }), "{error}");
    assert_eq!(measured(&study), figures(&["15", "16"]));
}

#[test]
fn a_report_refuses_results_of_another_scenario() {
    let folder = with_figure_16();
    // The full folder has the shortened results.
    let [short, full] =
        [true, false].map(|quick| tsq().folder(folder.path(), &ExperimentChanges::quick(quick)));
    fs::rename(&short, &full).unwrap();
    let error = tsq().report(folder.path(), &ExperimentChanges::quick(false)).unwrap_err().to_string();
    assert!(
        error.contains("unresponsive does not hold") && error.contains("the seeds and the settings"),
        "{error}"
    );
}

#[test]
fn a_report_is_not_replaced_when_results_that_it_shows_were_removed() {
    let folder = tempfile::tempdir().unwrap();
    let study = tsq().folder(folder.path(), &ExperimentChanges::quick(true));
    run(&quick(folder.path(), &[3, 16])).unwrap();
    let before = fs::read(study.join("report.html")).unwrap();
    fs::remove_dir_all(study.join("unresponsive")).unwrap();
    let error = run(&quick(folder.path(), &[2])).unwrap_err();
    assert!(matches!(&error, StudyError::Partial { figures, .. } if figures == "16"), "{error}");
    assert_eq!(fs::read(study.join("report.html")).unwrap(), before);
}

/// The second of two experiments is another process's: the first one is not run either.
#[test]
fn a_folder_in_use_is_noticed_before_the_first_run() {
    let folder = tempfile::tempdir().unwrap();
    let study = tsq().folder(folder.path(), &ExperimentChanges::quick(true));
    let options = quick(folder.path(), &[15, 16]);
    let ids = ["cheat", "unresponsive"].map(|id| study.join(id));
    for id in &ids {
        let held = Lock::take(id, "noon").unwrap();
        let error = tsq().ready(&options).err().expect("it is refused").to_string();
        let other = format!("{} (process {}, since noon)", id.display(), std::process::id());
        assert!(error.contains(&other), "{error}");
        drop(held);
        assert!(!study.join("report.html").exists() && ids.iter().all(|id| !id.exists()), "nothing is left");
    }
    // Folders that wait for their turn are locked as well.
    let ready = tsq().ready(&options).unwrap();
    assert!(ids.iter().all(|id| matches!(Lock::take(id, ""), Err(StoreError::Locked { .. }))));
    assert!(matches!(tsq().ready(&options), Err(StudyError::Store(StoreError::Locked { .. }))));
    drop(ready);
    assert!(ids.iter().all(|id| !id.exists()));
}

#[test]
fn damaged_results_are_refused_and_made_again() {
    let folder = with_figure_16();
    let study = tsq().folder(folder.path(), &ExperimentChanges::quick(true));
    let report = fs::read(study.join("report.html")).unwrap();
    let path = study.join("unresponsive/flows.parquet");
    let intact = fs::read(&path).unwrap();
    let mut bytes = intact.clone();
    bytes[intact.len() / 2] ^= 4;
    fs::write(&path, bytes).unwrap();
    let error = tsq().report(folder.path(), &ExperimentChanges::quick(true)).unwrap_err();
    assert!(matches!(&error, StudyError::Store(StoreError::Damaged { .. })), "{error}");
    assert!(error.to_string().contains("unresponsive/flows.parquet is damaged"), "{error}");
    assert!(fs::read(study.join("report.html")).unwrap() == report, "the report has changed");

    run(&EvaluationOptions { existing: ExistingResults::Resume, ..quick(folder.path(), &[16]) }).unwrap();
    assert!(fs::read(&path).unwrap() == intact, "the tables differ");
}

#[test]
fn changed_experiments_have_a_folder_and_a_title_of_their_own() {
    let folder = with_figure_16();
    let mut changes = ExperimentChanges::quick(true);
    let whole = tsq().folder(folder.path(), &changes).join("report.html");
    assert!(whole.exists());
    changes.set = vec![("dumbbell.rate".to_owned(), "14 Mbit/s".to_owned())];
    let options = EvaluationOptions { changes: changes.clone(), ..quick(folder.path(), &[16]) };
    let changed = run(&options).unwrap();
    assert_ne!(whole, changed.written.report);
    let report = fs::read_to_string(&changed.written.report).unwrap();
    assert!(
        report.contains("(quick, changed)") && report.contains("dumbbell.rate = 14 Mbit/s"),
        "{report:.2000}"
    );
    // A report of other changes does not take these results.
    let error = tsq().report(
        folder.path(),
        &ExperimentChanges { set: vec![("seeds".to_owned(), "3".to_owned())], ..changes.clone() },
    );
    assert!(matches!(error, Err(StudyError::Foreign { .. })), "{error:?}");
    tsq().report(folder.path(), &changes).unwrap();
    // A key that no scenario has.
    changes.set = vec![("dumbbell.rat".to_owned(), "14 Mbit/s".to_owned())];
    let error = run(&EvaluationOptions { changes, ..quick(folder.path(), &[16]) }).unwrap_err().to_string();
    assert!(error.contains("dumbbell.rat") && error.contains("did you mean"), "{error}");
}

#[test]
fn scenario_files_on_disk_are_taken_where_they_differ() {
    let folder = tempfile::tempdir().unwrap();
    let experiments = folder.path().join("experiments");
    fs::create_dir_all(experiments.join("tsq")).unwrap();
    let unresponsive = tsq().experiments.iter().find(|one| one.id == "unresponsive").unwrap();
    let others = tsq().experiments.iter().find(|one| one.file != unresponsive.file).unwrap();
    fs::write(experiments.join(&unresponsive.file), unresponsive.text.replace("15 Mbit/s", "14 Mbit/s"))
        .unwrap();
    fs::write(experiments.join(&others.file), &others.text).unwrap();
    let mut changes = ExperimentChanges::default();
    assert_eq!(
        changes.take_files(tsq().scenario_texts(), &experiments).unwrap(),
        std::slice::from_ref(&unresponsive.file)
    );
    assert!(changes.is_other() && changes.files[&unresponsive.file].contains("14 Mbit/s"));
}
