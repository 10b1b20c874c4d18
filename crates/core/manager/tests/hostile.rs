//! Clients and hosts that report anything.

use cutline_manager::feedback::{
    Cutoff, Directive, FeedbackParams, FlowEdges, FlowReport, HostId, HostState, Loads, PathFeedback,
    PathFlow, PathId, PathOutput, PathSnapshot, PathStart, PathSummary, RANKS, RankLoad,
};
use cutline_manager::resources::{FlowId, LoweringOrder, UserId};
use cutline_signal::monitor::{Delivery, Spread};
use cutline_units::{Bytes, Duration, Instant, Rate};
use proptest::prelude::*;
use std::collections::BTreeSet;

const PATH: PathId = PathId(1);
const FLOWS: u64 = 4;

#[derive(Clone, Debug)]
enum Op {
    Report(u64, FlowReport),
    Summary(Box<PathSummary>),
    Bytes(u64, Vec<u8>),
    Pass(u64),
    Flow(u64, u64, u64),
    Remove(u64),
    Peers(Vec<u64>),
}

fn any_number() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 0_u64..2_000_000_000, 1 => any::<u64>(), 1 => Just(u64::MAX)]
}

fn any_report() -> impl Strategy<Value = FlowReport> {
    let times = (any_number(), any_number());
    let counts = (any_number(), any_number(), any_number(), any::<i64>());
    let delays = prop::option::of((any_number(), any_number(), any_number()));
    (times, counts, delays, any_number()).prop_map(
        |((since, length), (sent, messages, bytes, lost), delays, backlog)| {
            let ns = Duration::from_nanos;
            let delivery = Delivery {
                since: Instant::from_nanos(since),
                until: Instant::from_nanos(since).saturating_add(ns(length)),
                sent,
                messages,
                bytes,
                lost,
                delay: delays.map(|(mean, quantile, worst)| Spread {
                    mean: ns(mean),
                    quantile: ns(quantile),
                    worst: ns(worst),
                }),
                ..Delivery::default()
            };
            FlowReport { delivery, backlog: Bytes::new(backlog) }
        },
    )
}

fn any_summary() -> impl Strategy<Value = PathSummary> {
    let load = (0..1_u64 << 60, 0..1_u64 << 59, 0..1_u64 << 59);
    let load = load.prop_map(|(used, minimum, more)| RankLoad { used, minimum, reference: minimum + more });
    let loads = prop::collection::vec(prop_oneof![Just(RankLoad::default()), load], RANKS);
    let head = (0_u64..5, any_number(), 0_u64..5, any_number(), 0_u32..=(RANKS as u32) << 16);
    let state = (any::<bool>(), any::<u32>(), any::<u32>(), -1.0..1.0_f64, loads);
    (head, state).prop_map(
        |((host, number, coordinator, epoch, cutoff), (is_ready, one, other, ahead, loads))| PathSummary {
            order: LoweringOrder::Priority,
            host: HostId(host),
            path: PATH,
            number,
            directive: Directive {
                coordinator: HostId(coordinator),
                epoch,
                cutoff: Cutoff::from_bits(cutoff).unwrap(),
            },
            state: HostState {
                is_ready,
                flows: one.max(other),
                disturbed: f64::from(one) / f64::from(u32::MAX),
                queued: f64::from(other) / f64::from(u32::MAX),
                queue: Duration::from_micros(number % (1 << 32)),
                ahead,
                ahead_of_most: -ahead,
                loads: Loads(loads.try_into().unwrap()),
            },
        },
    )
}

fn any_op() -> impl Strategy<Value = Op> {
    let rates = (1..=FLOWS, 0_u64..1_000_000, 0_u64..1_000_000);
    prop_oneof![
        10 => (1..=FLOWS, any_report()).prop_map(|(flow, report)| Op::Report(flow, report)),
        6 => any_summary().prop_map(|summary| Op::Summary(Box::new(summary))),
        1 => (0_u64..5, prop::collection::vec(any::<u8>(), 0..500)).prop_map(|(host, bytes)| Op::Bytes(host, bytes)),
        6 => (0_u64..3_000).prop_map(Op::Pass),
        2 => rates.prop_map(|(flow, minimum, more)| Op::Flow(flow, minimum, more)),
        1 => (1..=FLOWS).prop_map(Op::Remove),
        1 => prop::collection::vec(0_u64..5, 0..5).prop_map(Op::Peers),
    ]
}

proptest! {
    /// Any reports and summaries: nothing panics, each flow's limit is between its minimum and the most it may send,
    /// and a snapshot continues with the same limits.
    #[test]
    fn limits_stay_within_the_regions(ops in prop::collection::vec(any_op(), 1..150), me in 0_u64..5) {
        let mut now = Instant::from_nanos(1_000_000_000);
        let start = PathStart { params: FeedbackParams::default(), path: PATH, host: HostId(me), number: 1 };
        let mut feedback = PathFeedback::new(now, start).unwrap();
        let mut rates = std::collections::BTreeMap::new();
        for op in ops {
            match op {
                Op::Report(flow, report) => {
                    if let Some(prediction) = feedback.report(now, FlowId(flow), &report) {
                        prop_assert!((-1.0..=1.0).contains(&prediction.headroom) && (-1.0..=1.0).contains(&prediction.ahead), "{:?}", prediction);
                    }
                }
                Op::Summary(summary) => drop(feedback.receive_from(now, summary.host, &summary.encode())),
                Op::Bytes(host, bytes) => drop(feedback.receive_from(now, HostId(host), &bytes)),
                Op::Pass(ms) => {
                    now += Duration::from_millis(ms);
                    feedback.handle_deadline(now);
                }
                Op::Flow(flow, minimum, more) => {
                    let edges = FlowEdges { delay: Some((0.0, 100.0)), loss: Some(1.0) };
                    let (minimum, most) = (Rate::from_bps(minimum), Rate::from_bps(minimum + more));
                    feedback.set_flow(now, FlowId(flow), PathFlow { user: UserId(flow as u32 % 2), most, minimum, priority: flow as u8, edges }).unwrap();
                    rates.insert(FlowId(flow), (minimum, most));
                }
                Op::Remove(flow) => {
                    feedback.remove_flow(FlowId(flow));
                    rates.remove(&FlowId(flow));
                }
                Op::Peers(peers) => feedback.set_peers(now, &peers.into_iter().map(HostId).collect::<BTreeSet<_>>()),
            }
            while let Some(output) = feedback.poll() {
                if let PathOutput::Send { message, .. } | PathOutput::Broadcast { message } = output {
                    prop_assert!(PathSummary::decode(&message).is_ok());
                }
            }
            for (flow, (minimum, most)) in &rates {
                if let Some(limit) = feedback.limit_of(*flow) {
                    prop_assert!((minimum..=most).contains(&&limit), "{} of {} to {}", limit, minimum, most);
                }
            }
        }
        let text = serde_json::to_string(&feedback.snapshot(now)).unwrap();
        let snapshot: PathSnapshot = serde_json::from_str(&text).unwrap();
        let start = PathStart { params: FeedbackParams::default(), path: PATH, host: HostId(me), number: 1 };
        let restored = PathFeedback::restore(Instant::ZERO, start, &snapshot).unwrap();
        for flow in rates.keys() {
            prop_assert_eq!(restored.limit_of(*flow), feedback.limit_of(*flow));
        }
    }
}
