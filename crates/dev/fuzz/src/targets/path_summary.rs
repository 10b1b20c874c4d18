//! Summaries that managers of hosts on a path send to each other, read alone and by a manager with flows.
//!
//! - Accepted bytes are those that would be written.
//! - Whatever arrives, limits of flows are between their minima and their rates, and each message is answered by three at most.

use cutline_manager::feedback::{
    FeedbackParams, FlowEdges, HostId, PathFeedback, PathFlow, PathId, PathOutput, PathStart, PathSummary,
};
use cutline_manager::resources::{FlowId, UserId};
use cutline_units::{Duration, Instant, Rate};

pub fn parse(bytes: &[u8]) -> bool {
    let mut is_accepted = false;
    for message in bytes.chunks(PathSummary::LONGEST) {
        if let Ok(summary) = PathSummary::decode(message) {
            assert_eq!(summary.encode(), message, "it is what would be written");
            is_accepted = true;
        }
    }
    feed(bytes);
    is_accepted
}

/// Gives the bytes to a host whose peers are the hosts that the messages name.
fn feed(bytes: &[u8]) {
    let mut now = Instant::ZERO + Duration::from_secs(1);
    let number = |from: usize| {
        let field = bytes.get(from..from + 8);
        field.map_or(0, |field| u64::from_be_bytes(field.try_into().expect("there are eight bytes")))
    };
    let (host, path) = (HostId(number(2)), PathId(number(10)));
    let start = PathStart { params: FeedbackParams::default(), path, host: HostId(7), number: 0 };
    let mut feedback = PathFeedback::new(now, start).expect("the defaults are allowed");
    feedback.set_peers(now, &[host, HostId(7), HostId(8)].into());
    let (minimum, most) = (Rate::from_kbps(100), Rate::from_mbps(1));
    for flow in 1..=3 {
        let edges = FlowEdges { delay: Some((0.0, 100.0)), loss: None };
        let flow_on_path = PathFlow { user: UserId(0), most, minimum, priority: flow as u8 * 4, edges };
        feedback.set_flow(now, FlowId(flow), flow_on_path).expect("the flow is allowed");
    }
    for message in bytes.chunks(PathSummary::LONGEST) {
        now += Duration::from_millis(300);
        // An error is an answer like any other.
        let _ = feedback.receive_from(now, host, message);
        feedback.handle_deadline(now);
        let outputs = std::iter::from_fn(|| feedback.poll());
        let sent = outputs.filter(|output| !matches!(output, PathOutput::Limit { .. })).count();
        assert!(sent <= 3, "{sent} messages for one");
        for flow in 1..=3 {
            let limit = feedback.limit_of(FlowId(flow));
            assert!(limit.is_none_or(|limit| (minimum..=most).contains(&limit)), "{limit:?}");
        }
    }
}
