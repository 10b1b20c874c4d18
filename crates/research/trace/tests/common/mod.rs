//! A small run with TCP, TFRC and UDP, with and without ECN, through a queue that drops and marks.

#![allow(dead_code, reason = "each test binary uses a part")]

use cutline_results::RunResult;
use cutline_scenario::Scenario;
use cutline_trace::{Capture, link_named, simulate_captured};
use std::sync::atomic::AtomicBool;

pub const SEED: u64 = 3;

const SCENARIO: &str = r#"
name = "traced"
title = "A crowded bottleneck"
duration = "12 s"
warm-up = "0 s"
interval = "500 ms"

[dumbbell]
rate = "2 Mbit/s"
delay = "10 ms"
access-rate = "50 Mbit/s"
access-delay = "5 ms"
queue = { aqm = "AQM", limit = "40 packets", ecn = true }

[[flow]]
name = "bulk"
count = 4
start = { from = "0 s", to = "1 s" }
transport = { protocol = "tcp", sack = true }
app = { kind = "bulk" }

[[flow]]
name = "ecn"
ecn = true
transport = { protocol = "tcp", max-window = "20 packets" }
app = { kind = "bulk" }

[[flow]]
name = "audio"
hint = 6
transport = { protocol = "tfrc", packet-size = "160 B" }
app = { kind = "cbr", rate = "64 kbit/s", size = "160 B" }

[[flow]]
name = "game"
hint = 1
transport = { protocol = "udp" }
app = { kind = "cbr", rate = "100 kbit/s", size = "100 B" }
"#;

/// The scenario with a queue of this kind. PIE marks at any probability: of its own accord it would drop in such an overload.
pub fn scenario(aqm: &str) -> Scenario {
    let more = if aqm == "pie" { ", ecn-threshold = 1.0" } else { "" };
    Scenario::parse(&SCENARIO.replace("\"AQM\"", &format!("\"{aqm}\"{more}")), "traced.toml")
        .unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// Runs the scenario; returns the capture and the results.
pub fn captured(scenario: &Scenario) -> (Vec<u8>, RunResult) {
    let mut file = Vec::new();
    let link = link_named(&scenario.network().unwrap(), None).unwrap();
    let capture = Capture { link, application: "cutline test" };
    let run = simulate_captured(scenario, SEED, &AtomicBool::new(false), capture, &mut file, |_| ()).unwrap();
    (file, run)
}
