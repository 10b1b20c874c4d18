//! The likely cause of bad delivery on a host, in one sentence with the numbers. No IO.
//!
//! [`explain`] compares two documents of a host, some seconds apart, and the state of its interfaces. Delivery is *bad* in a direction
//! of a socket if one of its limits is violated, or if it has no limit of loss and loses 3 % or more. For each bad direction the times and
//! losses in the queues of routers and of the kernel are compared with those from end to end. Some causes need no socket: the counters of a
//! queue show them.
//!
//! | cause | shown by |
//! | --- | --- |
//! | reservation lost | a socket that had a reservation, or requested one, has none |
//! | offloads | frames longer than the MTU, or without checksums, at a router's interface |
//! | loss before the queue | frames that a router has missed; messages that were sent and have not reached the router |
//! | link rate lower than configured | frames that the outgoing interface refuses or queues; packets that wait behind a queue that sends at its rate |
//! | marks rewritten | a code point at the router that is not the one of the socket's hint |
//! | clock error | an error of the clocks that is half of a limit of delay, or delays longer than the round-trip time |
//! | one unresponsive flow | a flow with a quarter of the arrivals that loses a tenth of its packets, does not slow down, and has more under way than TCP would |
//! | many flows of one host | eight or more flows with most of a busy link, while another host loses or waits |
//! | queue too long | packets that wait 100 ms or more in a busy queue, or half of a violated delay |
//! | bottleneck elsewhere | a violated delay, or losses behind the router, that its queue does not explain |
//! | sending host, receiving host | the origin of a violation, as both ends know it |
//! | not explained | bad delivery without a reason in any row |
//!
//! Limitations: marks that are rewritten behind the last router of this host are not seen. A flow is found in a router by its addresses and
//! ports, so not behind address translation, and not if 16 other flows send more. A queue in the kernel lists no flows. A path that is shared with traffic of others and a link
//! that is slower than configured look the same from here while the router sends less than its rate; then the bottleneck is called elsewhere.
//!
//! ```text
//! interval   differences of two documents
//! queues     causes that the counters of a link show
//! delivery   causes of a socket's bad delivery
//! wording    numbers and names in sentences
//! ```

mod delivery;
mod interval;
mod queues;
#[cfg(test)]
mod tests;
mod wording;

pub use interval::LinkFlowInterval;

use crate::document::HostDocument;
use interval::Interval;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;

/// Evidence of a probe about an interface of this host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceEvidence {
    /// Its name.
    pub name: String,
    /// The rate of its wire, bit/s; `None` if the driver does not report it.
    pub speed_bps: Option<u64>,
    /// The most packets that were seen in its queue disciplines.
    pub queued_packets: u64,
    /// Packets that its queue disciplines dropped in the interval.
    pub dropped_packets: u64,
    /// Names of the offloads that are on.
    pub offloads: Vec<String>,
}

/// Evidence of an interval of a host.
#[derive(Clone, Copy, Debug)]
pub struct HostEvidence<'e> {
    /// State of the host at the beginning.
    pub before: &'e HostDocument,
    /// State of the host at the end.
    pub after: &'e HostDocument,
    /// Interfaces of the host that were probed; they may be none.
    pub interfaces: &'e [InterfaceEvidence],
}

/// Cause of bad delivery. Of findings with the same strength the cause that is listed first here is named first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeliveryCause {
    /// A reservation was lost or refused.
    ReservationLost,
    /// Interfaces merge or split frames, or leave checksums to be computed.
    Offloads,
    /// Packets are lost before they reach the router's queue.
    LossBeforeQueue,
    /// The link carries less than the rate that the router is configured for.
    LinkRateLower,
    /// Code points are changed between the socket and the router.
    MarksRewritten,
    /// The clocks of both ends are not compared well enough.
    ClockError,
    /// A flow sends on whatever it loses.
    UnresponsiveFlow,
    /// A host takes a link with many flows.
    ManyFlowsOfHost,
    /// Packets wait for too long in the router's queue.
    QueueTooLong,
    /// Packets wait or are lost outside of the routers of this host.
    BottleneckElsewhere,
    /// The sending host held its application back.
    SendingHost,
    /// The receiving application does not read.
    ReceivingHost,
    /// No row has a reason.
    NotExplained,
}

/// Strength of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Strength {
    /// An observation is missing that could contradict it.
    Weak,
    /// A comparison of several values leads to it.
    Medium,
    /// A counter shows it, or both ends and the router agree.
    Strong,
}

/// A likely cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeliveryFinding {
    /// The cause.
    pub cause: DeliveryCause,
    /// Strength of the finding.
    pub strength: Strength,
    /// The cause in one sentence with its numbers.
    pub sentence: String,
    /// Fields of the monitor's document on which it rests.
    pub rests_on: Vec<String>,
    /// The next step.
    pub do_next: String,
}

/// Explanation of the delivery on a host.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Explanation {
    /// `explanation`.
    #[schemars(extend("const" = "explanation"))]
    pub event: &'static str,
    /// Length of the interval, seconds.
    pub interval_s: f64,
    /// The likely cause, or that nothing is wrong, in one sentence.
    pub summary: String,
    /// The likely causes, the strongest first.
    pub findings: Vec<DeliveryFinding>,
    /// Number of sockets that were examined.
    pub sockets: usize,
    /// Number of directions of sockets with bad delivery.
    pub bad_directions: usize,
    /// Number of routers that were examined.
    pub routers: usize,
    /// Number of queues in the kernel that were examined.
    pub kernel_queues: usize,
    /// Parts of the host that could not be examined.
    pub not_examined: Vec<String>,
}

/// Explains the delivery on a host between two documents.
pub fn explain(evidence: &HostEvidence<'_>) -> Explanation {
    let interval = Interval::new(evidence);
    let mut findings = queues::findings(&interval);
    findings.extend(delivery::findings(&interval, &findings));
    findings.sort_by_key(|finding| (Reverse(finding.strength), finding.cause));
    let bad_directions = interval.bad().count();
    Explanation {
        event: "explanation",
        interval_s: interval.seconds,
        summary: summary(&findings, &interval),
        findings,
        sockets: evidence.after.sockets.len(),
        bad_directions,
        routers: evidence.after.routers.len(),
        kernel_queues: evidence.after.kernel_queues.len(),
        not_examined: not_examined(evidence, &interval),
    }
}

impl DeliveryFinding {
    fn new(
        cause: DeliveryCause,
        strength: Strength,
        sentence: String,
        rests_on: &[String],
        do_next: &str,
    ) -> Self {
        Self { cause, strength, sentence, rests_on: rests_on.to_vec(), do_next: do_next.to_owned() }
    }
}

impl DeliveryCause {
    /// Returns its name in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReservationLost => "reservation-lost",
            Self::Offloads => "offloads",
            Self::LossBeforeQueue => "loss-before-queue",
            Self::LinkRateLower => "link-rate-lower",
            Self::MarksRewritten => "marks-rewritten",
            Self::ClockError => "clock-error",
            Self::UnresponsiveFlow => "unresponsive-flow",
            Self::ManyFlowsOfHost => "many-flows-of-host",
            Self::QueueTooLong => "queue-too-long",
            Self::BottleneckElsewhere => "bottleneck-elsewhere",
            Self::SendingHost => "sending-host",
            Self::ReceivingHost => "receiving-host",
            Self::NotExplained => "not-explained",
        }
    }
}

fn summary(findings: &[DeliveryFinding], interval: &Interval<'_>) -> String {
    if let Some(first) = findings.first() {
        return first.sentence.clone();
    }
    let HostDocument { sockets, routers, kernel_queues, .. } = interval.after;
    if sockets.is_empty() && routers.is_empty() && kernel_queues.is_empty() {
        return "nothing was examined: no QoS socket and no router publishes on this host, and no queue in its kernel is known".to_owned();
    }
    let sockets = match sockets.len() {
        1 => "1 QoS socket kept its limits".to_owned(),
        number => format!("{number} QoS sockets kept their limits"),
    };
    let routers = match routers.len() {
        1 => "1 router shows no fault".to_owned(),
        number => format!("{number} routers show no fault"),
    };
    let kernel_queues = match kernel_queues.len() {
        0 => String::new(),
        1 => ", and 1 queue in the kernel shows none".to_owned(),
        number => format!(", and {number} queues in the kernel show none"),
    };
    format!("nothing is wrong: in {:.1} s, {sockets} and {routers}{kernel_queues}", interval.seconds)
}

/// Returns the parts that could not be examined.
fn not_examined(evidence: &HostEvidence<'_>, interval: &Interval<'_>) -> Vec<String> {
    let HostDocument { sockets, routers, kernel_queues, hidden_rows, .. } = evidence.after;
    let mut lines = Vec::new();
    if let Some(problem) = &evidence.after.kernel_queues_problem {
        lines.push(format!("queues in the kernel: {}", wording::name(problem)));
    }
    if routers.is_empty() && kernel_queues.is_empty() {
        lines.push("queues: no router publishes on this host (`cutline router up` starts one), and no queue in its kernel is known (`cutline qdisc add` adds one)".to_owned());
    }
    if sockets.is_empty() {
        lines.push("delivery: no QoS socket publishes on this host (`cutline gateway` opens some for unchanged programs)".to_owned());
    }
    if evidence.after.unlisted_sockets > 0 {
        lines.push(format!(
            "{} QoS sockets that carry less: `cutline doctor explain` examines all",
            evidence.after.unlisted_sockets
        ));
    }
    if evidence.after.unlisted_routers > 0 {
        lines.push(format!(
            "{} routers: `cutline doctor explain` examines all",
            evidence.after.unlisted_routers
        ));
    }
    if *hidden_rows > 0 {
        lines.push(format!("{hidden_rows} rows of other users: root sees them"));
    }
    let is_hidden = |link: &interval::LinkInterval<'_>| {
        !link.is_kernel && link.sent_packets() > 0 && link.direction.after().flows.is_empty()
    };
    if interval.links.iter().any(is_hidden) {
        lines.push("flows and hosts of a router: only root and its own user see them".to_owned());
    }
    if !kernel_queues.is_empty() {
        lines.push("flows and hosts of the kernel's queues: only a router counts them".to_owned());
    }
    if evidence.interfaces.is_empty() {
        if !routers.is_empty() {
            lines.push("interfaces of the routers: they were not probed".to_owned());
        }
        if !kernel_queues.is_empty() {
            lines.push("interfaces of the kernel's queues: they were not probed".to_owned());
        }
    }
    if interval.seconds <= 0.0 {
        lines.push("the interval: both documents are of the same time".to_owned());
    }
    lines
}
