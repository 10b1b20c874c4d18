//! Every target with its corpus and with a fixed number of mutations.

use cutline_fuzz::{find, trial};

fn try_target(name: &str) {
    let target = find(name).unwrap_or_else(|| panic!("there is no target {name:?}"));
    let trial = trial::run(target).unwrap_or_else(|error| panic!("the corpus of {name}: {error}"));
    println!("{name}: {trial:?}");
    assert!(trial.replayed > 0, "{name} has no corpus");
    assert!(trial.accepted > 0, "no input of {name} is accepted: its parser is hardly tried");
}

/// A test for each target, so that each fails alone.
macro_rules! targets {
    ($($test:ident: $name:literal,)+) => {
        $(#[test]
        fn $test() {
            try_target($name);
        })+

        #[test]
        fn every_target_has_a_test() {
            let names: Vec<&str> = cutline_fuzz::all().iter().map(|target| target.name).collect();
            assert_eq!(names, [$($name),+]);
        }
    };
}

targets! {
    agentx: "agentx",
    allocation_request: "allocation-request",
    baseline_table: "baseline-table",
    control_reply: "control-reply",
    control_request: "control-request",
    cutlined_request: "cutlined-request",
    direct_frames: "direct-frames",
    flows_file: "flows-file",
    frame_headers: "frame-headers",
    graph_file: "graph-file",
    http_request: "http-request",
    manager_request: "manager-request",
    negotiation: "negotiation",
    path_summary: "path-summary",
    program_file: "program-file",
    program_marks: "program-marks",
    publication: "publication",
    recorded_trace: "recorded-trace",
    report: "report",
    result_summary: "result-summary",
    result_tables: "result-tables",
    router_file: "router-file",
    router_reply: "router-reply",
    router_request: "router-request",
    router_reservation: "router-reservation",
    rsvp: "rsvp",
    scenario: "scenario",
    scenario_settings: "scenario-settings",
    session: "session",
    size_table: "size-table",
    snmp_message: "snmp-message",
    specification: "specification",
    specification_json: "specification-json",
    traffic_headers: "traffic-headers",
    traffic_stream: "traffic-stream",
}
