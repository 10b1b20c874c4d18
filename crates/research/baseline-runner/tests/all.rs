//! Measurements over the loopback, and between namespaces if this is root.

use cutline_baseline::{BaselineDocument, BaselineRow, QueueSize, load, save};
use cutline_baseline_runner::{BaselinePlan, FarEnd, FarEndKind, RunError, Runner};
use cutline_testbed::{in_time, undisturbed};
use cutline_units::{Duration, Rate};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

fn plan() -> BaselinePlan {
    BaselinePlan {
        protocols: vec!["tcp".into(), "udp".into()],
        rates: vec![Rate::from_mbps(4)],
        shares: vec![100],
        margins: vec![100, 140],
        blocks: vec![1024, 65_536],
        duration: Duration::from_millis(100),
        least_blocks: 1,
        max_rate: Rate::from_mbps(40),
        unlimited_udp: true,
        seed: 1,
    }
}

fn runner(plan: &BaselinePlan, kind: FarEndKind, file: &Path) -> Result<Runner, RunError> {
    Runner::new(plan, FarEnd::new(kind)?, file, load(file)?, "test")
}

fn complete(plan: &BaselinePlan, kind: FarEndKind, file: &Path) -> BaselineDocument {
    let mut runner = runner(plan, kind, file).unwrap();
    let mut last = None;
    runner.run(&AtomicBool::new(false), |progress| last = Some(progress.clone())).unwrap();
    let last = last.unwrap();
    assert_eq!((last.done, last.next, last.left), (last.all, None, Duration::ZERO));
    assert_eq!(load(file).unwrap().as_ref(), Some(runner.document()), "the file has all");
    runner.document().clone()
}

fn row<'d>(document: &'d BaselineDocument, protocol: &str, block: u64, load: Option<u64>) -> &'d BaselineRow {
    let found = document.rows.iter().find(|row| {
        (row.protocol.as_str(), row.block, row.load_bps, row.queue, row.requested_percent)
            == (protocol, block, load, QueueSize::Default, None)
    });
    found.unwrap_or_else(|| panic!("{protocol} {block} {load:?} is in {document:#?}"))
}

#[test]
fn a_table_has_the_points_of_the_plan_and_a_second_run_adds_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("baseline.json");
    undisturbed(|| {
        let _absent = std::fs::remove_file(&file);
        let document = complete(&plan(), FarEndKind::Loopback, &file);
        assert!(document.complete && document.ended_s >= document.began_s);
        assert_eq!((document.path.receiver.as_str(), document.path.mtu), ("loopback", 65_535));
        let slow = row(&document, "udp", 1024, Some(4_000_000));
        // 48.8 blocks in 100 ms.
        assert!((48..=50).contains(&(slow.blocks + slow.not_written)), "{slow:?}");
        assert_eq!((slow.lost_path, slow.lost_sender_queue), (0, 0), "{slow:?}");
        in_time!(slow.loss_ratio == Some(0.0), "{slow:?}");
        in_time!((3.6e6..4.4e6).contains(&slow.throughput_bps), "{slow:?}");
        assert!(slow.delay_ms.is_some_and(|ms| ms > 0.0) && slow.rtt_ms > slow.delay_ms, "{slow:?}");
        assert_eq!(slow.receive_buffer, Some(212_992));
        let fast = row(&document, "tcp", 65_536, None);
        assert_eq!(fast.loss_ratio, None);
        in_time!(fast.throughput_bps > 1e8, "{fast:?}");
        assert!(fast.segments > 0 && fast.kernel_rtt_ms.is_some_and(|ms| ms > 0.0), "{fast:?}");
        assert!(fast.sender_cpu.is_some_and(|share| share > 0.0 && share < 1.1), "{fast:?}");
        let flood = row(&document, "udp", 65_507, None);
        let places =
            flood.lost_receive_buffer + flood.lost_sender_queue + flood.lost_interface + flood.lost_path;
        let lost = flood.loss_ratio.unwrap();
        assert!(
            (lost * flood.blocks as f64 - places as f64).abs() <= 1.5,
            "every loss has a place: {flood:?}"
        );
        assert!(document.rows.iter().all(|row| row.load_bps.is_none_or(|load| load <= 40_000_000)));
        in_time!(document.rows.iter().any(|row| row.requested_percent == Some(140)), "{document:?}");

        let before = std::fs::read(&file).unwrap();
        let again = complete(&plan(), FarEndKind::Loopback, &file);
        assert_eq!((again, std::fs::read(&file).unwrap()), (document, before));
    });
}

#[test]
fn a_stopped_run_continues_at_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("baseline.json");
    let plan = BaselinePlan { protocols: vec!["udp".into()], rates: vec![], blocks: vec![1024], ..plan() };
    let mut first = runner(&plan, FarEndKind::Loopback, &file).unwrap();
    let (stop, mut seen) = (AtomicBool::new(false), 0);
    // Before the third measurement; it is not made.
    let ended = first.run(&stop, |progress| {
        seen = progress.done;
        stop.store(progress.done == 2, Ordering::Relaxed);
    });
    assert!(ended.is_ok() && seen == 2);
    drop(first);
    let partial = load(&file).unwrap().unwrap();
    assert_eq!((partial.rows.len(), partial.complete), (2, false));

    let document = complete(&plan, FarEndKind::Loopback, &file);
    assert_eq!(document.rows[..2], partial.rows, "what was measured stays");
    // Both sizes of buffers without a limit and at the load, and two margins.
    assert!(document.rows.len() >= 4, "{document:?}");
    assert_eq!(document.began_s, partial.began_s);
}

#[test]
fn other_measurements_do_not_mix() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("baseline.json");
    let plan = BaselinePlan { protocols: vec!["udp".into()], blocks: vec![1024], ..plan() };
    let mut first = runner(&plan, FarEndKind::Loopback, &file).unwrap();
    let stop = AtomicBool::new(false);
    first.run(&stop, |progress| stop.store(progress.done == 1, Ordering::Relaxed)).unwrap();
    drop(first);
    let refused = |plan: &BaselinePlan, file: &Path| {
        let Err(error) = runner(plan, FarEndKind::Loopback, file) else { panic!("{plan:?} is refused") };
        error.to_string()
    };
    let other = BaselinePlan { blocks: vec![2048], ..plan.clone() };
    let why = refused(&other, &file);
    assert!(why.contains("another plan") && why.contains("[1024] B") && why.contains("[2048] B"), "{why}");

    let mut document = load(&file).unwrap().unwrap();
    let began_s = std::mem::replace(&mut document.began_s, 1);
    save(&file, &document).unwrap();
    let why = refused(&plan, &file);
    assert!(why.starts_with("the table cannot be continued: it was measured"), "{why}");
    document.began_s = began_s;
    document.host.name = "another\u{1b}[2J".to_owned();
    save(&file, &document).unwrap();
    let why = refused(&plan, &file);
    assert!(why.contains("another host: another"), "{why}");
}

#[test]
fn the_ends_may_have_namespaces_of_their_own() {
    if let Err(error) = cutline_sys::namespace::permitted() {
        return println!("not tested: {error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("baseline.json");
    let plan = BaselinePlan { protocols: vec!["udp".into()], rates: vec![], blocks: vec![8192], ..plan() };
    let mut runner = runner(&plan, FarEndKind::Namespaces, &file).unwrap();
    let stop = AtomicBool::new(false);
    runner.run(&stop, |progress| stop.store(progress.done == 2, Ordering::Relaxed)).unwrap();
    let document = runner.document();
    assert_eq!((document.path.receiver.as_str(), document.path.mtu), ("namespaces", 1500));
    let fast = row(document, "udp", 8192, None);
    assert!(fast.throughput_bps > 1e6, "{fast:?}");
}

/// Without a host that is busy with other tests nothing is lost at a rate far below what two namespaces carry.
#[test]
fn frames_below_ip_are_measured_like_udp() {
    if !cutline_testbed::may_make_namespaces("run the tests of cutline-baseline-runner as root") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("baseline.json");
    let plan = BaselinePlan {
        protocols: vec!["direct".into(), "udp".into()],
        blocks: vec![1024, 65_536],
        margins: vec![140],
        ..plan()
    };
    undisturbed(|| {
        let _absent = std::fs::remove_file(&file);
        let document = complete(&plan, FarEndKind::Namespaces, &file);
        for block in [1024, 65_507] {
            let fast = row(&document, "direct", block, None);
            assert!(fast.blocks > 0 && fast.throughput_bps > 1e6, "{fast:?}");
            let slow = row(&document, "direct", block, Some(4_000_000));
            assert_eq!((slow.lost_path, slow.lost_sender_queue), (0, 0), "{slow:?}");
            in_time!(slow.loss_ratio == Some(0.0), "{slow:?}");
        }
        assert!(
            document.rows.iter().any(|row| row.protocol == "direct" && row.requested_percent == Some(140))
        );
    });
}
