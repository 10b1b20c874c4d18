//! QoS connections: the end system's sessions as agents on links with queues.

use cutline_aqm::{Limit, QueueSpec};
use cutline_quality::spec::{Measure, Preset, Specification};
use cutline_signal::authentication::Key;
use cutline_signal::mib::Mib;
use cutline_signal::operation::OperationParams;
use cutline_signal::session::{Direction, Event, Policies, SessionParams};
use cutline_sim::qos::{Passed, QosConnection, QosLog, QosRecord, Service};
use cutline_sim::{LinkId, LinkSpec, Network, NodeId, Outcome, Settings, Window, run};
use cutline_units::{Bytes, Duration, Hint, Instant, Rate};

const fn ms(time: u64) -> Duration {
    Duration::from_millis(time)
}

fn at(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(seconds)
}

fn window(from: f64, until: f64) -> Window {
    Window { from: at(from), until: at(until) }
}

/// A path with a bottleneck from `source` to `sink`, and a faster way back.
struct Path {
    network: Network,
    ends: (NodeId, NodeId),
    bottleneck: LinkId,
}

/// `source - bottleneck - sink`: 20 ms each way, and a queue for so long at the bottleneck.
fn path(rate: Rate, queue: Duration, rate_changes: Vec<(Instant, Rate)>) -> Path {
    let mut network = Network::new();
    let ends = (network.add_node("source"), network.add_node("sink"));
    let mut link = |(from, to): (NodeId, NodeId), rate: Rate, rate_changes| {
        let limit = Limit::Bytes(rate.bytes_in(queue).get());
        let queue = QueueSpec::drop_tail(limit, rate);
        network.add_link(LinkSpec { from, to, rate, delay: ms(20), queue, rate_changes, pass_on: None, series: false })
    };
    let bottleneck = link(ends, rate, rate_changes);
    link((ends.1, ends.0), Rate::from_mbps(10), Vec::new());
    Path { network, ends, bottleneck }
}

fn simulate(network: &Network, seconds: u64, seed: u64) -> Outcome {
    let duration = Duration::from_secs(seconds);
    let window = Window { from: Instant::ZERO, until: Instant::ZERO + duration };
    run(network, &Settings { seed, duration, window, interval: ms(500) }).unwrap()
}
