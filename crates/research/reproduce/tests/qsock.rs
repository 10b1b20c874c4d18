//! The study of the testbed of `QoSockets` with real packets, at a reduced length.
//!
//! `make validate-programs` runs it: it takes a minute, requires root, and uses ffmpeg if it is installed.

use crate::common::{measured, quick, study};
use cutline_results::ExistingResults;
use cutline_study::{EvaluationOptions, ExperimentChanges};
use cutline_sys::SysError;
use cutline_sys::namespace::Namespace;
use cutline_testbed::skip;
use std::sync::atomic::AtomicBool;

#[test]
#[ignore = "a minute of real time: `make validate-programs`"]
fn a_figure_of_the_testbed_is_measured_drawn_and_judged() {
    match Namespace::create("mayreproduce") {
        Ok(_) => {}
        Err(error @ (SysError::NotPermitted { .. } | SysError::Ip { .. })) => {
            return skip(error, "sudo -E make validate-programs");
        }
        Err(error) => panic!("{error}"),
    }
    let folder = tempfile::tempdir().unwrap();
    let options = EvaluationOptions { existing: ExistingResults::Refuse, ..quick(folder.path(), &[14]) };
    let evaluation =
        study("qsock").ready(&options).unwrap().run(&AtomicBool::new(false), &|_| {}, &|_| {}).unwrap();
    assert!(evaluation.complete && evaluation.failed.is_empty(), "{:?}", evaluation.failed);
    assert_eq!(measured(&evaluation, "netvideo-c2-narrow.loss"), 0.0);
    let [video, others] =
        ["netvideo-c1-narrow.loss", "netvideo-c2-narrow.tg-loss"].map(|id| measured(&evaluation, id));
    // The queue of the first seconds is empty, so less is lost than later.
    assert!(video > 10.0 && others > 30.0, "{video} {others}");
    assert!((8.0..30.0).contains(&measured(&evaluation, "netvideo-c2-narrow.delay")));
    let results = study("qsock").folder(folder.path(), &ExperimentChanges::quick(true));
    assert!(results.join("figures/figure-14.png").exists());
    let page = std::fs::read_to_string(&evaluation.written.report).unwrap();
    assert!(
        page.contains("A line that carries what the paper")
            && page.contains("netvideo-c2-narrow: the timing")
    );
    // Measurements are only repeated on request.
    assert!(
        study("qsock").ready(&EvaluationOptions { existing: ExistingResults::Repeat, ..options }).is_err()
    );
}
