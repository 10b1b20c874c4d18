//! Shares of hosts, and a receiver on a loaded processor.
//!
//! The tests require root, and two of them ffmpeg. Without them they print a message and pass: `sudo -E cargo test -p cutline-lab`.

use cutline_lab::routed::{self, LabOptions, Shares};
use cutline_lab::{LabError, loaded};
use cutline_results::{FlowRow, RunResult};
use cutline_scenario::{Scenario, ScenarioFile};
use cutline_signal::negotiation::OneSidedReason;
use cutline_socket::QosError;
use cutline_testbed::{may_make_namespaces, patiently, skip, undisturbed};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

/// Command for the tests that need root.
const COMMAND: &str = "sudo -E cargo test -p cutline-lab";

/// A scenario of the study, with settings.
fn case(name: &str, settings: &[(&str, &str)]) -> Scenario {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../experiments/quanta-lab");
    let path = folder.join(format!("{name}.toml"));
    let mut file = ScenarioFile::load(&path).unwrap_or_else(|errors| panic!("{errors}"));
    for (path, value) in settings {
        file.set(path, value).unwrap_or_else(|errors| panic!("{errors}"));
    }
    let points = file.expand().unwrap_or_else(|errors| panic!("{errors}"));
    points.into_iter().next().expect("a scenario has a point").scenario
}

fn flow<'r>(rows: &'r RunResult, name: &str) -> &'r FlowRow {
    rows.flows.iter().find(|row| &*row.flow == name).unwrap()
}

#[test]
fn flows_with_a_share_keep_within_the_capacity_of_their_host() {
    if !may_make_namespaces(COMMAND) {
        return;
    }
    // The link has room for all; the manager has less.
    let settings = [
        ("duration", "4 s"),
        ("warm-up", "2 s"),
        ("flow.direct-1.stop", "4 s"),
        ("flow.direct-2.stop", "4 s"),
        ("link.line.rate", "300 Mbit/s"),
    ];
    let scenario = case("network-load", &settings);
    let options =
        LabOptions { shares: Some(Shares::Allocated { path_kbps: 95_000 }), ..LabOptions::default() };
    undisturbed(|| keep_within(&scenario, &options));
}

fn keep_within(scenario: &Scenario, options: &LabOptions) {
    let rows = routed::run(scenario, 1, options, &AtomicBool::new(false)).unwrap();
    let rates = ["tcp", "direct-1", "direct-2"].map(|name| flow(&rows, name).goodput_bps);
    assert!(rates.iter().all(|rate| *rate > 0.0), "{rates:?}");
    // Without a share the two others send 35 Mbit/s each, and here about 23 Mbit/s.
    assert!(rates[1] < 28e6 && rates[2] < 28e6, "{rates:?}");
    assert!(rates.iter().sum::<f64>() < 97e6, "{rates:?}");
}

/// Returns whether decoders can run in namespaces. Prints the reason if not.
fn may_decode() -> bool {
    if !may_make_namespaces(COMMAND) {
        return false;
    }
    let silent = Stdio::null;
    let mut ffmpeg = Command::new("ffmpeg");
    let version = ffmpeg.arg("-version").stdin(silent()).stdout(silent()).stderr(silent()).status();
    if version.is_err() {
        skip("ffmpeg is not installed", "tools/setup.sh programs");
    }
    version.is_ok()
}

#[test]
fn a_receiver_is_measured_beside_decoders() {
    if !may_decode() {
        return;
    }
    let scenario = case("host-load", &[("duration", "1500 ms"), ("warm-up", "500 ms")]);
    undisturbed(|| beside_decoders(&scenario));
}

/// The only value of a quantity of a flow.
fn value(rows: &RunResult, flow: &str, quantity: &str) -> f64 {
    let mut values =
        rows.distributions.iter().filter(|row| &*row.subject == flow && &*row.quantity == quantity);
    values.next().unwrap_or_else(|| panic!("{flow} has no {quantity}")).low
}

/// Runs a scenario on a loaded host. A receiver that has no turn for seconds does not answer in time; then the run is made again.
fn measured(scenario: &Scenario) -> RunResult {
    let run = || loaded::run(scenario, 1, &AtomicBool::new(false)).map_err(Box::new);
    let has_no_answer = |error: &QosError| matches!(error, QosError::NoPeer(OneSidedReason::NoAnswer));
    patiently(run, |error| matches!(&**error, LabError::Connection { error, .. } if has_no_answer(error)))
        .unwrap()
}

fn beside_decoders(scenario: &Scenario) {
    let rows = measured(scenario);
    let value = |flow: &str, quantity: &str| value(&rows, flow, quantity);
    for row in &rows.flows {
        assert!(row.packets_received > 0, "{row:?}");
        let inside = value(&row.flow, "in_region_percent");
        assert!((0.0..=100.0).contains(&inside), "{inside}");
    }
    assert!(value("managed-0", "decoders_percent").abs() < f64::EPSILON);
    assert!(value("unmanaged-4", "decoders_percent") > 0.0, "the decoders run");
}

#[test]
fn streams_and_frames_are_measured_beside_decoders() {
    if !may_decode() {
        return;
    }
    let scenario = case("host-load-rates", &[("duration", "1500 ms"), ("warm-up", "500 ms")]);
    undisturbed(|| carriers_beside_decoders(&scenario));
}

fn carriers_beside_decoders(scenario: &Scenario) {
    let rows = measured(scenario);
    for name in ["direct-unmanaged-4", "direct-managed-4", "tcp-unmanaged-4", "tcp-managed-4"] {
        // 0.5 Mbit/s are eight blocks in the measured second.
        let row = flow(&rows, name);
        assert!(row.packets_received > 0 && row.one_way_mean_ms.is_some(), "{row:?}");
        assert!(value(&rows, name, "decoders_percent") > 0.0, "{name}: the decoders run");
        let inside = value(&rows, name, "in_region_percent");
        assert!((0.0..=100.0).contains(&inside), "{name}: {inside}");
    }
    for name in ["tcp-unmanaged-4", "tcp-managed-4"] {
        assert_eq!(flow(&rows, name).packets_dropped, 0, "a stream loses no block");
    }
}

#[test]
fn a_carrier_that_is_not_the_flow_s_is_refused() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../experiments/quanta-lab/host-load.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let stream = text.replace("\"unmanaged-4\"", "\"tcp-unmanaged-4\"");
    let datagrams =
        text.replacen("{ protocol = \"udp\", max-datagram = \"8192 B\" }", "{ protocol = \"tcp\" }", 1);
    for (text, expected) in [(stream, "tcp-unmanaged-4"), (datagrams, "unmanaged-0")] {
        let file = ScenarioFile::parse(&text, "host-load.toml").unwrap_or_else(|errors| panic!("{errors}"));
        let scenario = file.scenario().unwrap_or_else(|errors| panic!("{errors}"));
        let error = loaded::check(&scenario).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("tcp"), "{error}");
    }
}

#[test]
fn a_flow_without_the_name_of_its_receiver_is_refused() {
    let text = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../experiments/quanta-lab/host-load.toml"),
    );
    let text = text.unwrap().replace("unmanaged-4", "video");
    let file = ScenarioFile::parse(&text, "host-load.toml").unwrap_or_else(|errors| panic!("{errors}"));
    let error =
        loaded::check(&file.scenario().unwrap_or_else(|errors| panic!("{errors}"))).unwrap_err().to_string();
    assert!(error.contains("video") && error.contains("managed-N or unmanaged-N"), "{error}");
}
