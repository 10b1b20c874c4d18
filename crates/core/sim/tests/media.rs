//! Video calls by NADA that share a link with each other.

use cutline_aqm::{Limit, QueueSpec};
use cutline_sim::{FlowOutcome, FlowSpec, LinkSpec, Network, SimulationSettings, Window, run};
use cutline_transport::app;
use cutline_transport::endpoint::TransportParams;
use cutline_transport::nada::Params;
use cutline_units::{Duration, Instant, Rate};
use std::sync::Arc;

const fn at(seconds: u64) -> Instant {
    Instant::from_nanos(seconds * 1_000_000_000)
}

/// Calls of these priorities on 2 Mbit/s with a drop-tail queue of 300 ms and a round trip of 100 ms, measured from 60 s to 120 s.
fn calls(priorities: &[f64]) -> Vec<FlowOutcome> {
    let rate = Rate::from_mbps(2);
    let queue = || QueueSpec::drop_tail(Limit::Packets(72), rate);
    let mut network = Network::new();
    let (source, sink) = (network.add_node("source"), network.add_node("sink"));
    let delay = Duration::from_millis(50);
    let there = network.add_link(LinkSpec::new(source, sink, rate, delay, queue()));
    let back = network.add_link(LinkSpec::new(sink, source, rate, delay, queue()));
    let group = network.add_group("calls");
    for (number, priority) in priorities.iter().enumerate() {
        let params = Params { priority: *priority, ..Params::default() };
        let (name, transport) = (format!("call.{number}"), TransportParams::Nada(Arc::new(params)));
        let flow = FlowSpec {
            start: (Instant::ZERO, at(5)),
            ..FlowSpec::new(name, group, [vec![there], vec![back]], transport, app::Params::BULK)
        };
        network.add_flow(flow).expect("the flow is sound");
    }
    let window = Window { from: at(60), until: at(120) };
    let settings = SimulationSettings {
        seed: 1,
        duration: Duration::from_secs(120),
        window,
        interval: Duration::from_secs(1),
    };
    run(&network, &settings).expect("the network is sound").flows
}

/// Four calls get half a megabit per second each, to 15 %: the equilibrium depends on the rate alone (RFC 8698 section 4.3). Nothing is lost.
#[test]
fn calls_share_a_link_alike() {
    let flows = calls(&[1.0; 4]);
    let rates: Vec<f64> = flows.iter().map(|flow| flow.record.sent_bytes as f64 * 8.0 / 60e3).collect();
    assert!(rates.iter().all(|kbps| (425.0..575.0).contains(kbps)), "{rates:?}");
    assert!(rates.iter().sum::<f64>() > 1900.0, "{rates:?}");
    assert!(flows.iter().all(|flow| flow.record.dropped_packets == 0));
}

/// A call of twice the priority gets twice the rate.
#[test]
fn a_priority_is_a_weight() {
    let flows = calls(&[2.0, 1.0, 1.0]);
    let bytes: Vec<f64> = flows.iter().map(|flow| flow.record.sent_bytes as f64).collect();
    let ratio = bytes[0] / f64::midpoint(bytes[1], bytes[2]);
    assert!((1.7..2.3).contains(&ratio), "{ratio}");
}
