//! Impairments with real packets: the laboratory loses and reorders as the simulator does.
//!
//! The test requires root. Without it it prints a message and passes: `sudo -E cargo test -p cutline-lab`.

use cutline_lab::{LabOptions, run};
use cutline_results::RunResult;
use cutline_scenario::{Scenario, ScenarioFile};
use cutline_testbed::{in_time, may_make_namespaces, undisturbed};
use std::sync::atomic::AtomicBool;

/// Command for the tests that need root.
const COMMAND: &str = "sudo -E cargo test -p cutline-lab";

/// 500 datagrams/s, 2 ms apart, and a transfer that retransmits lost packets.
const SCENARIO: &str = r#"
name = "impairment"
duration = "4 s"

[dumbbell]
rate = "20 Mbit/s"
delay = "5 ms"
access-rate = "100 Mbit/s"
access-delay = "1 ms"
queue = { aqm = "drop-tail", limit = "1000 packets" }
impairment = { to-bad = 0.02, to-good = 0.4, reorder = 0.05, reorder-delay = "5 ms", jitter = "1 ms" }

[[flow]]
name = "datagrams"
transport = { protocol = "udp" }
app = { kind = "cbr", rate = "1 Mbit/s", size = "250 B", random-phase = false }
"#;

const TRANSFER: &str = r#"
[[flow]]
name = "transfer"
transport = { protocol = "tcp", mss = "1000 B", sack = true }
app = { kind = "bulk" }
"#;

fn scenario(text: &str) -> Scenario {
    ScenarioFile::parse(text, "impairment.toml").unwrap().scenario().unwrap()
}

/// Returns the wire's counters: packets that left the queue, lost, reordered.
fn wire(rows: &RunResult) -> [u64; 3] {
    let queue = rows.queues.iter().find(|queue| &*queue.link == "r1->r2").unwrap();
    assert_eq!(queue.dropped, 0, "the queue has room for all");
    let reverse = rows.queues.iter().find(|queue| &*queue.link == "r2->r1").unwrap();
    assert_eq!((reverse.lost, reverse.reordered), (None, None));
    [queue.departed, queue.lost.unwrap(), queue.reordered.unwrap()]
}

#[test]
fn the_laboratory_loses_and_reorders_the_packets_of_the_simulator() {
    if !may_make_namespaces(COMMAND) {
        return;
    }
    let scenario = scenario(SCENARIO);
    let cancel = AtomicBool::new(false);
    let simulated = wire(&scenario.simulate(1, &cancel).unwrap());
    undisturbed(|| {
        let rows = run(&scenario, 1, &LabOptions::default(), &cancel).unwrap();
        assert_eq!(rows.timing[0].failed_flows, 0);
        let [departed, lost, reordered] = wire(&rows);
        let flow = &rows.flows[0];
        // The link loses, and nothing else does.
        assert_eq!(flow.packets_dropped, lost);
        let ended = flow.packets_received + flow.packets_dropped;
        assert!(ended <= flow.packets_sent && lost * 10 < departed, "{flow:?} {departed}");
        in_time!(flow.packets_sent - ended <= 12, "12 ms of datagrams may be in transit: {flow:?}");
        // The same draws for the same packets; the last ones may be on the other side of the run's end.
        let close = |one: u64, other: u64| one.abs_diff(other) <= 4;
        in_time!(
            close(departed, simulated[0]) && close(lost, simulated[1]),
            "{departed} {lost} {simulated:?}"
        );
        in_time!((50..150).contains(&lost), "{lost} of 2000; the mean is 95");
        // When packets arrive differs by the hosts' lateness, so the order may.
        in_time!(reordered.abs_diff(simulated[2]) * 4 <= simulated[2], "{reordered} {simulated:?}");
    });
}

#[test]
fn the_kernels_tcp_repairs_the_losses_of_the_link() {
    if !may_make_namespaces(COMMAND) {
        return;
    }
    let scenario = scenario(&format!("{SCENARIO}{TRANSFER}"));
    let cancel = AtomicBool::new(false);
    undisturbed(|| {
        let rows = run(&scenario, 1, &LabOptions::default(), &cancel).unwrap();
        let [_, lost, _] = wire(&rows);
        let dropped: u64 = rows.flows.iter().map(|flow| flow.packets_dropped).sum();
        // A packet that opens a connection is no data.
        assert!(dropped <= lost && lost - dropped <= 3, "{dropped} of {lost}");
        let transfer = rows.flows.iter().find(|flow| &*flow.flow == "transfer").unwrap();
        in_time!(
            transfer.packets_dropped > 0 && transfer.retransmissions.unwrap() > 0,
            "it meets losses: {transfer:?}"
        );
        in_time!(transfer.goodput_bps > 100e3, "{transfer:?}");
    });
}
