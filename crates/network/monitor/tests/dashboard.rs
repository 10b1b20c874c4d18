//! The metrics before those who read them: the dashboard for Grafana, and promtool.

use cutline_monitor::{
    HostDocument, KernelQueueEntry, ProgramEntry, ReservationState, RouterEntry, SocketEntry, metrics,
};
use cutline_openmetrics::TextFormat;
use cutline_provision::status::{InterfaceStatus, Status};
use cutline_publish::testing::receiving_socket;
use cutline_publish::{ProgramRow, ViolationRow};
use cutline_records::BucketCounts;
use cutline_router_service::{DirectionStatistics, PacketCount, QdiscDocument, SieveStatistics, Statistics};
use cutline_testbed::skip;
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Gives a link a Sieve of which everything is known.
fn fill(link: &mut DirectionStatistics) {
    link.dropped.insert("early".to_owned(), PacketCount::default());
    link.sieve = Some(SieveStatistics::default());
    link.waits_us = BucketCounts { bounds: vec![1.0], counts: vec![0, 0], sum: 0.0 };
}

/// A host with a router and a queue in the kernel, which are Sieve, a socket of which everything is known, with a violation under way, a
/// program under `cutline exec`, and an interface of `cutlined`.
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
        sockets: Some(1),
        messages: Some(2),
        bytes: Some(3000),
        waits: Some(0),
        ..ProgramRow::default()
    };
    let program = ProgramEntry { row: program.into(), ..ProgramEntry::default() };
    let interface = InterfaceStatus {
        name: "eth0".to_owned(),
        reservable_bps: Some(8_000_000),
        reserved_bps: Some(64_000),
        reservations: Some(1),
        ..InterfaceStatus::default()
    };
    let status = Status { interfaces: vec![interface], ..Status::default() };
    let reservations = ReservationState { status, ..ReservationState::default() };
    HostDocument {
        reservations: Some(reservations.into()),
        routers: vec![router],
        kernel_queues: vec![queue],
        sockets: vec![socket],
        programs: vec![program],
        ..HostDocument::default()
    }
}

/// Returns the text of the dashboard.
fn text() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../packaging/grafana-dashboard.json");
    std::fs::read_to_string(path).unwrap()
}

/// Returns the dashboard.
fn dashboard() -> Json {
    serde_json::from_str(&text()).unwrap()
}

/// Returns the items of a list.
fn items(list: &Json) -> &[Json] {
    list.as_array().unwrap()
}

/// Returns the queries of all panels.
fn queries(dashboard: &Json) -> impl Iterator<Item = &Json> {
    items(&dashboard["panels"]).iter().flat_map(|panel| items(&panel["targets"]))
}

/// Returns the names of the metrics in an expression.
fn names(expression: &str) -> impl Iterator<Item = &str> {
    let words = expression.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("cutline_"))
}

/// Returns the parts of a text between `begin` and `end`.
fn between<'t>(text: &'t str, begin: &'t str, end: &'t str) -> impl Iterator<Item = &'t str> {
    text.split(begin).skip(1).map(move |rest| rest.split_once(end).unwrap().0)
}

#[test]
fn the_dashboard_queries_existing_metrics() {
    let dashboard = dashboard();
    let metrics = metrics(document(), TextFormat::Prometheus);
    let mut asked = 0;
    for target in queries(&dashboard) {
        let expression = target["expr"].as_str().unwrap();
        // A window of a minute is empty where the scraper comes once a minute; Grafana's own follows the interval of the source.
        let is_long = |rest: &&str| rest.starts_with("$__rate_interval]") || rest.starts_with("5m]");
        let windows = expression.split('[').skip(1).filter(|rest| !is_long(rest));
        assert_eq!(windows.count(), 0, "{expression}");
        let mut series = Vec::new();
        for name in names(expression) {
            let has_name =
                |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
            let before = series.len();
            series.extend(metrics.lines().filter(has_name));
            assert!(series.len() > before, "{name} in {expression}");
            asked += 1;
        }
        for label in between(target["legendFormat"].as_str().unwrap(), "{{", "}}") {
            let ways = [format!("{{{label}=\""), format!(",{label}=\"")];
            let has_label = |line: &&str| ways.iter().any(|way| line.contains(way.as_str()));
            assert!(series.iter().any(has_label), "no label {label} in {expression}");
        }
    }
    assert!(asked >= 10, "{asked} metrics");
}

/// Facts of the schema that Grafana publishes (`kinds/dashboard/dashboard_kind.cue`) and of its documentation of the JSON model.
#[test]
fn grafana_can_load_it() {
    let dashboard = dashboard();
    assert!(dashboard["id"].is_null(), "Grafana numbers dashboards by itself");
    let uid = dashboard["uid"].as_str().unwrap();
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    assert!((8..=40).contains(&uid.len()) && uid.chars().all(is_allowed), "{uid}");
    // Grafana converts earlier versions, which have other legends.
    assert!(dashboard["schemaVersion"].as_u64().unwrap() >= 37);
    assert!(dashboard["title"].is_string() && dashboard["refresh"].is_string());
    assert!(["from", "to"].iter().all(|end| dashboard["time"][end].is_string()));
    let mut variables = BTreeSet::new();
    for variable in items(&dashboard["templating"]["list"]) {
        let name = variable["name"].as_str().unwrap();
        assert_eq!((&variable["type"], &variable["query"]), (&json!("datasource"), &json!("prometheus")));
        assert!(variables.insert(name.to_owned()), "two variables {name}");
    }
    let text = text();
    for name in between(&text, "${", "}") {
        assert!(variables.contains(name), "no variable {name}");
    }
    let mut own = text.split('$').skip(1).filter(|rest| !rest.starts_with('{'));
    assert!(own.all(|rest| rest.starts_with("__rate_interval")), "a variable that Grafana has not");
    let mut numbers = BTreeSet::new();
    let mut places: Vec<[u64; 4]> = Vec::new();
    for panel in items(&dashboard["panels"]) {
        let title = panel["title"].as_str().unwrap();
        assert_eq!(panel["type"], "timeseries", "{title}");
        let number = panel["id"].as_u64().unwrap();
        assert!(number > 0 && numbers.insert(number), "{title}: another panel has the number {number}");
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|key| panel["gridPos"][key].as_u64().unwrap());
        assert!(w > 0 && h > 0 && x + w <= 24, "{title} is not within 24 columns");
        let is_beside = |[left, top, width, height]: [u64; 4]| {
            x >= left + width || left >= x + w || y >= top + height || top >= y + h
        };
        assert!(places.iter().all(|place| is_beside(*place)), "{title} covers another panel");
        places.push([x, y, w, h]);
        check_panel(panel, title);
    }
}

/// Checks the queries and the options of a panel.
fn check_panel(panel: &Json, title: &str) {
    let source = json!({ "type": "prometheus", "uid": "${source}" });
    assert_eq!(panel["datasource"], source, "{title}");
    let mut names = BTreeSet::new();
    for query in items(&panel["targets"]) {
        assert_eq!(query["datasource"], source, "{title}");
        let name = query["refId"].as_str().unwrap();
        assert!(names.insert(name), "{title}: two queries {name}");
    }
    let unit = panel["fieldConfig"]["defaults"]["unit"].as_str().unwrap();
    // Names of units that Grafana has. An unknown one would be a suffix of each value.
    assert!(["s", "bps", "pps", "percentunit", "short"].contains(&unit), "{title}: {unit}");
    assert!(panel["fieldConfig"]["overrides"].is_array(), "{title}");
    assert_eq!(panel["options"]["legend"]["showLegend"], json!(true), "{title}");
}

#[test]
fn promtool_parses_its_queries() {
    if Command::new("promtool").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err()
    {
        return skip("promtool is not there", "make validate-page");
    }
    // Queries as rules, which promtool parses. JSON is YAML, too.
    let dashboard = dashboard();
    let rules: Vec<Json> = queries(&dashboard)
        .enumerate()
        .map(|(number, query)| {
            let expression = query["expr"].as_str().unwrap().replace("$__rate_interval", "1m");
            json!({ "record": format!("query:{number}"), "expr": expression })
        })
        .collect();
    let check = |rules: &[Json]| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rules.json");
        let groups = json!({ "groups": [{ "name": "dashboard", "rules": rules }] });
        std::fs::write(&path, groups.to_string()).unwrap();
        Command::new("promtool").args(["check", "rules"]).arg(&path).output().unwrap()
    };
    let output = check(&rules);
    let faults = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{faults}");
    let wrong = json!({ "record": "query:wrong", "expr": "rate(cutline_exec_messages_total[1m]" });
    assert!(!check(&[wrong]).status.success(), "it finds a query that does not end");
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
