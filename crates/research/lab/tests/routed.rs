//! The laboratory with routers: links have their rate and queue, a reserved video keeps its quality beside an overload, and nothing is
//! left behind, also not by a process that was killed.
//!
//! The tests require root. Without it they print a message and pass: `sudo -E cargo test -p cutline-lab`.

use cutline_lab::routed::{self, FRAMES_SHOWN, LabOptions, Programs, SSIM, Signalling};
use cutline_results::{FlowRow, QueueRow, RunResult};
use cutline_scenario::{Scenario, ScenarioFile};
use cutline_testbed::{in_time, may_make_namespaces, skip, undisturbed};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Command for the tests that need root.
const COMMAND: &str = "sudo -E cargo test -p cutline-lab";

/// A case of the study, shortened.
fn case(name: &str, settings: &[(&str, &str)]) -> Scenario {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../experiments/qsock").join(format!("{name}.toml"));
    let mut file = ScenarioFile::load(&path).unwrap_or_else(|errors| panic!("{errors}"));
    for (path, value) in [("duration", "7 s"), ("warm-up", "3 s")].iter().chain(settings) {
        file.set(path, value).unwrap_or_else(|errors| panic!("{errors}"));
    }
    file.scenario().unwrap_or_else(|errors| panic!("{errors}"))
}

fn run(scenario: &Scenario) -> RunResult {
    let rows = routed::run(scenario, 1, &LabOptions::default(), &AtomicBool::new(false)).unwrap();
    assert_eq!(namespaces(), Vec::<String>::new());
    assert_eq!(rows.timing[0].failed_flows, 0);
    rows
}

fn flow<'r>(rows: &'r RunResult, name: &str) -> &'r FlowRow {
    rows.flows.iter().find(|row| &*row.flow == name).unwrap()
}

fn line(rows: &RunResult) -> &QueueRow {
    rows.queues.iter().find(|row| &*row.link == "r1->r0").unwrap()
}

/// Returns the namespaces of this process's runs. The tests that make some run one after the other ([`undisturbed`]).
fn namespaces() -> Vec<String> {
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| name.starts_with(&format!("cutline-{}-routed", std::process::id()))).collect()
}

#[test]
fn a_reservation_keeps_a_video_whole_in_an_overload() {
    if !may_make_namespaces(COMMAND) {
        return;
    }
    undisturbed(|| {
        let without = run(&case("netvideo-c1", &[]));
        let with = run(&case("netvideo-c2", &[]));
        for rows in [&without, &with] {
            // The line is full, and carries no more than its rate.
            let line = line(rows);
            let delivered: f64 = rows.flows.iter().map(|row| row.goodput_bps).sum();
            assert!(line.utilisation <= 1.005 && delivered < 1.5e6, "{line:?} {delivered}");
            in_time!(line.utilisation >= 0.97, "{line:?}");
            in_time!(line.dropped > 50 && line.backlog_mean_bytes > 50_000.0, "{line:?}");
            in_time!(delivered >= 1.35e6, "{delivered}");
        }
        let (unreserved, reserved) = (flow(&without, "main"), flow(&with, "main"));
        in_time!(unreserved.loss_ratio.unwrap() > 0.05, "{unreserved:?}");
        in_time!(unreserved.one_way_mean_ms.unwrap() > 400.0, "{unreserved:?}");
        // A video that its host sends in bursts exceeds its reservation.
        in_time!((reserved.packets_dropped, reserved.loss_ratio) == (0, Some(0.0)), "{reserved:?}");
        // 7 ms on the line and 1 ms on each of the other links, and at most as long for one that has begun.
        in_time!((9.0..25.0).contains(&reserved.one_way_mean_ms.unwrap()), "{reserved:?}");
        in_time!((reserved.goodput_bps / 614_400.0 - 1.0).abs() < 0.03, "{reserved:?}");
        // What the video does not lose, the others do.
        let lost = |rows| flow(rows, "tg.1").loss_ratio.unwrap() + flow(rows, "tg.2").loss_ratio.unwrap();
        in_time!(lost(&with) > lost(&without), "{} {}", lost(&with), lost(&without));
    });
}

#[test]
fn streams_cross_both_routers_and_are_measured() {
    if !may_make_namespaces(COMMAND) {
        return;
    }
    undisturbed(|| {
        let rows = run(&case("dirm-b2", &[]));
        let (images, tg) = (flow(&rows, "main"), flow(&rows, "tg"));
        assert!(images.packets_received > 0, "{images:?}");
        in_time!(images.packets_received >= 3 && images.goodput_bps > 250_000.0, "{images:?}");
        in_time!((tg.goodput_bps / 540_000.0 - 1.0).abs() < 0.12, "{tg:?}");
        in_time!(images.one_way_mean_ms > tg.one_way_mean_ms, "an image takes longer than 1 KB");
        assert_eq!(rows.series.iter().filter(|row| &*row.flow == "tg").count(), 14, "every 0.5 s");
    });
}

#[test]
fn more_than_the_line_cannot_be_reserved() {
    if !may_make_namespaces(COMMAND) {
        return;
    }
    let scenario = case("netvideo-c2", &[("link.line.rate", "800 kbit/s")]);
    undisturbed(|| {
        let options = LabOptions::default();
        let error = routed::run(&scenario, 1, &options, &AtomicBool::new(false)).unwrap_err().to_string();
        assert!(error.contains("rate") && error.contains("to-r0"), "{error}");
        assert_eq!(namespaces(), Vec::<String>::new());
    });
}

/// The value of a video beside its row.
fn single(rows: &RunResult, quantity: &str) -> f64 {
    rows.distributions.iter().find(|row| &*row.quantity == quantity).unwrap().low
}

#[test]
#[ignore = "half a minute of ffmpeg and omniORB in real time: `make validate-programs`"]
fn gateways_of_real_programs_reserve_by_rsvp() {
    if !may_make_namespaces(COMMAND) {
        return;
    }
    if let Some(missing) = Programs::missing() {
        return skip(format_args!("{missing} is not installed"), "make validate-programs");
    }
    undisturbed(|| {
        let folder = tempfile::tempdir().unwrap();
        let programs = Programs::new(folder.path()).with_pictures(&folder.path().join("pictures"));
        let options =
            LabOptions { programs: Some(programs), signalling: Signalling::Rsvp, ..LabOptions::default() };
        let run = |name| {
            let rows = routed::run(&case(name, &[]), 1, &options, &AtomicBool::new(false)).unwrap();
            assert_eq!(namespaces(), Vec::<String>::new());
            rows
        };
        let rows = run("netvideo-c2");
        let video = flow(&rows, "main");
        assert_eq!(video.packets_dropped, 0, "{video:?}");
        assert!(video.one_way_mean_ms.unwrap() < 25.0 && video.goodput_bps > 450_000.0, "{video:?}");
        assert!(line(&rows).dropped > 50, "the others lose: {:?}", line(&rows));
        assert!(single(&rows, FRAMES_SHOWN) > 90.0 && single(&rows, SSIM) > 0.95);
        let picture = std::fs::read(folder.path().join("pictures/reserved.png")).unwrap();
        assert!(picture.starts_with(b"\x89PNG"));
        // Without acknowledgements' reservation there would be none in the other direction.
        let rows = run("dirm-d3");
        let images = flow(&rows, "main");
        assert!(images.packets_received >= 4 && images.goodput_bps > 330_000.0, "{images:?}");
    });
}
