//! The metrics before those who read them: the dashboard for Grafana, and promtool.

use cutline_monitor::{HostDocument, KernelQueueEntry, ProgramEntry, RouterEntry, SocketEntry, metrics};
use cutline_openmetrics::TextFormat;
use cutline_publish::testing::receiving_socket;
use cutline_publish::{ProgramRow, ViolationRow};
use cutline_records::BucketCounts;
use cutline_router_service::{DirectionStatistics, PacketCount, QdiscDocument, SieveStatistics, Statistics};
use cutline_testbed::skip;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Gives a link a Sieve of which everything is known.
fn fill(link: &mut DirectionStatistics) {
    link.dropped.insert("early".to_owned(), PacketCount::default());
    link.sieve = Some(SieveStatistics::default());
    link.waits_us = BucketCounts { bounds: vec![1.0], counts: vec![0, 0], sum: 0.0 };
}

/// A host with a router and a queue in the kernel, which are Sieve, a socket of which everything is known, with a violation under way, and
/// a program under `cutline exec`.
fn document() -> HostDocument {
    let mut router = Statistics::default();
    fill(&mut router.forward);
    let mut queue = QdiscDocument::default();
    fill(&mut queue.statistics);
    let queue = KernelQueueEntry { queue: queue.into(), ..KernelQueueEntry::default() };
    let router = RouterEntry { router: router.into(), ..RouterEntry::default() };
    let violation = ViolationRow {
        measure: "delay".to_owned(),
        limit: 400.0,
        measured: 512.0,
        origin: "network".to_owned(),
        for_s: 3.0,
    };
    let mut socket = receiving_socket(7, 60);
    socket.receive.violations = vec![violation];
    // Its sent messages are known, too.
    socket.send = socket.receive.clone();
    let socket = SocketEntry { program: "video".to_owned(), socket: socket.into(), ..SocketEntry::default() };
    let program = ProgramRow {
        program: "ffplay".to_owned(),
        method: "preload".to_owned(),
        hint: Some(6),
        rate_bps: Some(4_000_000),
        ..ProgramRow::default()
    };
    let program = ProgramEntry { row: program.into(), ..ProgramEntry::default() };
    HostDocument {
        routers: vec![router],
        kernel_queues: vec![queue],
        sockets: vec![socket],
        programs: vec![program],
        ..HostDocument::default()
    }
}

#[test]
fn it_asks_for_metrics_that_there_are() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../packaging/grafana-dashboard.json");
    let dashboard: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let metrics = metrics(document(), TextFormat::Prometheus);
    let panels = dashboard["panels"].as_array().unwrap();
    let mut asked = 0;
    for target in panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap()) {
        let expression = target["expr"].as_str().unwrap();
        // A window of a minute is empty where the scraper comes once a minute; Grafana's own follows the interval of the source.
        let is_long = |rest: &&str| rest.starts_with("$__rate_interval]") || rest.starts_with("5m]");
        let windows = expression.split('[').skip(1).filter(|rest| !is_long(rest));
        assert_eq!(windows.count(), 0, "{expression}");
        let names = expression.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        for name in names.filter(|name| name.starts_with("cutline_")) {
            let has_name =
                |line: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
            assert!(metrics.lines().any(has_name), "{name} in {expression}");
            asked += 1;
        }
    }
    assert!(asked >= 10, "{asked} metrics");
}

#[test]
fn promtool_finds_no_fault_with_the_metrics() {
    let promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut promtool) = promtool else { return skip("promtool is not there", "make validate-page") };
    let text = metrics(document(), TextFormat::Prometheus);
    promtool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let faults = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && faults.is_empty(), "{faults}");
    for family in [
        "cutline_socket_limit_",
        "cutline_socket_violation_",
        "cutline_socket_delay_seconds_bucket",
        "cutline_socket_last_jitter_",
        "cutline_exec_messages_total",
        "cutline_qdisc_sieve_",
    ] {
        assert!(text.lines().any(|line| line.starts_with(family)), "no {family} in\n{text}");
    }
}
