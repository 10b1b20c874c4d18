//! The metrics before those who read them: the dashboard for Grafana, and promtool.

use cutline_monitor::{HostDocument, KernelQueueEntry, RouterEntry, SocketEntry, metrics};
use cutline_openmetrics::TextFormat;
use cutline_publish::{SocketRow, SpreadRow};
use cutline_records::BucketCounts;
use cutline_router_service::{Direction, PacketCount, QdiscDocument, SieveStatistics, Statistics};
use cutline_testbed::skip;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Gives a link a Sieve of which everything is known.
fn fill(link: &mut Direction) {
    link.dropped.insert("early".to_owned(), PacketCount::default());
    link.sieve = Some(SieveStatistics::default());
    link.waits_us = BucketCounts { bounds: vec![1.0], counts: vec![0, 0], sum: 0.0 };
}

/// A host with a router and a queue in the kernel, which are Sieve, and a socket of which everything is known.
fn document() -> HostDocument {
    let mut router = Statistics::default();
    fill(&mut router.forward);
    let mut queue = QdiscDocument::default();
    fill(&mut queue.statistics);
    let queue = KernelQueueEntry { queue: queue.into(), ..KernelQueueEntry::default() };
    let router = RouterEntry { router: router.into(), ..RouterEntry::default() };
    let mut socket = SocketRow::default();
    let receive = &mut socket.receive;
    (receive.throughput_bps, receive.loss_percent) = (Some(1), Some(0.0));
    receive.last_delay = Some(SpreadRow::default());
    let socket = SocketEntry { socket: socket.into(), ..SocketEntry::default() };
    HostDocument {
        routers: vec![router],
        kernel_queues: vec![queue],
        sockets: vec![socket],
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
}
