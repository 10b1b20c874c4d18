//! Scalable senders use the low-latency queue of DualPI2, and share the link with classic senders (RFC 9332 section 2.1).

use cutline_results::{FlowRow, RunResult};
use cutline_scenario::ScenarioFile;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Round-trip time without queuing: two access links and the bottleneck, in both directions.
const BASE_RTT_MS: f64 = 14.0;

/// Simulates the golden scenario for one minute, with one DCTCP flow and one CUBIC flow with ECN.
fn minute(ecn: &str) -> RunResult {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/scalable.toml");
    let mut file = ScenarioFile::load(&path).unwrap();
    let settings = ["duration=60 s", "warm-up=20 s", "flow.scalable.count=1", "flow.marked.count=1"];
    for setting in settings.into_iter().chain([&*format!("flow.scalable.ecn={ecn}"), "flow.dropped.stop=2 s"])
    {
        file.set_pair(setting).unwrap();
    }
    file.scenario().unwrap().simulate(1, &AtomicBool::new(false)).unwrap()
}

fn group<'r>(result: &'r RunResult, name: &str) -> &'r FlowRow {
    result.flows.iter().find(|row| &*row.group == name).unwrap()
}

#[test]
fn ect_1_has_less_queuing_delay_than_ect_0_and_a_similar_share() {
    let result = minute("\"ect-1\"");
    let (scalable, classic) = (group(&result, "scalable"), group(&result, "marked"));
    let [scalable_wait, classic_wait] = [scalable, classic].map(|row| row.queuing_mean_ms.unwrap());
    assert!(scalable_wait < 2.0, "RFC 9332 appendix A.1 marks from 0.8 ms on: {scalable_wait} ms");
    assert!(classic_wait > 5.0 * scalable_wait, "{classic_wait} ms, {scalable_wait} ms");
    // With k = 2 a DCTCP flow and a classic flow have about the same window (RFC 9332 section 2.1). Their rates are then
    // inversely proportional to their round-trip times.
    let window = |row: &FlowRow, wait: f64| row.goodput_bps * (BASE_RTT_MS + wait);
    let ratio = window(scalable, scalable_wait) / window(classic, classic_wait);
    assert!((0.5..=2.0).contains(&ratio), "{ratio}");
    assert!(
        scalable.packets_marked > 10 * classic.packets_marked,
        "a scalable flow needs many more marks than a classic flow"
    );
    assert_eq!(scalable.packets_dropped, 0);
}

#[test]
fn without_ect_1_dctcp_is_in_the_classic_queue() {
    let result = minute("true");
    let [dctcp, cubic] = ["scalable", "marked"].map(|name| group(&result, name).queuing_mean_ms.unwrap());
    assert!((dctcp / cubic - 1.0).abs() < 0.3, "{dctcp} ms, {cubic} ms");
}
