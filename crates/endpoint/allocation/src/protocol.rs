//! Protocol between clients and the resource manager: JSON documents, one a line, over a local stream socket.
//!
//! ```text
//! client                                           manager
//! {"request":"hello","version":1}
//!                                                  {"reply":"welcome","version":1,"session":"5f0c...","lease_ms":5000,"flows":[]}
//! {"request":"admit","id":1,"class":"real-time",...}
//!                                                  {"reply":"admitted","id":1,"rate_bps":8000000}
//!                                                  {"reply":"rate","id":1,"rate_bps":8000000,"cause":"request"}
//! {"request":"renew"}
//!                                                  {"reply":"rate","id":1,"before_bps":8000000,"rate_bps":4000000,"cause":"capacity"}
//! {"request":"release","id":1}
//!                                                  {"reply":"released","id":1}
//! ```
//!
//! A client numbers its flows. A flow may send at a rate from its `rate` reply on. The replies that lower other flows to
//! make room are sent before it. A client renews the leases of all its flows by `renew`, or that of one flow by `report`.
//! Requests of the kinds `renew`, `report`, `missed` and `move` have no reply; a `move` that is not allowed is refused.
//!
//! All flows of a client end when the client closes its connection, or its process ends. When the manager is restarted, the
//! client connects again, names the session that the earlier `welcome` has assigned, and takes over its flows, which the new
//! `welcome` lists. A session belongs to its user, and is valid for the length of a lease.
//!
//! A line of a client has at most [`LONGEST_LINE`] bytes. A malformed line is answered with `error`, and then the connection
//! is closed.

use crate::status::ManagerStatus;
use cutline_manager::feedback::{FlowEdges, FlowReport};
use cutline_manager::resources::{AllocationCause, CarrierKind, SchedulingClass};
use cutline_signal::monitor::Spread;
use cutline_units::{Bytes, Duration, Instant};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Path of the manager's socket, unless the operator sets another one.
pub const DEFAULT_SOCKET: &str = "/run/cutline/manager.sock";
/// Version of the protocol.
pub const VERSION: u32 = 1;
/// The longest line of a client, bytes, without its end.
pub const LONGEST_LINE: usize = 4096;
/// The longest line of the manager, bytes: its status has all flows.
pub const LONGEST_REPLY: usize = 16 << 20;

/// Needs of a flow from its host.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowNeed {
    /// Class.
    pub class: SchedulingClass,
    /// Protocol that carries the flow.
    pub carrier: CarrierKind,
    /// Address of this end.
    pub source: SocketAddr,
    /// Address of the peer. Its route determines the interface and the path whose capacities the flow uses.
    pub destination: SocketAddr,
    /// The highest useful rate with all headers, bit/s; `None` if more is always useful.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired_bps: Option<u64>,
    /// The lowest acceptable rate with all headers, bit/s.
    #[serde(default)]
    pub minimum_bps: u64,
    /// Importance, 0 to 15.
    #[serde(default)]
    pub priority: u8,
    /// Weight among the flows of the same user, 1 to 1000.
    #[serde(default = "one")]
    pub weight: u32,
    /// The best and the worst acceptable delay, ms; absent if any is acceptable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<(f64, f64)>,
    /// The worst acceptable loss, per cent; absent if any is acceptable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_percent: Option<f64>,
}

const fn one() -> u32 {
    1
}

impl FlowNeed {
    /// Edges of the flow's region of operation.
    pub const fn edges(&self) -> FlowEdges {
        FlowEdges { delay: self.delay_ms, loss: self.loss_percent }
    }
}

/// Report of a flow in numbers. Times are those of this host's monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReportLine {
    /// Beginning of the interval, ns.
    pub since_ns: u64,
    /// End of the interval, ns.
    pub until_ns: u64,
    /// Messages that were sent in the interval.
    pub sent: u64,
    /// Messages that were received.
    pub messages: u64,
    /// Bytes of the received messages.
    pub bytes: u64,
    /// Messages that were lost; negative if more messages arrived late than were lost.
    #[serde(default)]
    pub lost: i64,
    /// Mean, quantile and worst of the one-way delays, ns; absent if none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ns: Option<[u64; 3]>,
    /// Data that wait at the sender, bytes.
    #[serde(default)]
    pub backlog: u64,
}

impl From<&FlowReport> for ReportLine {
    fn from(report: &FlowReport) -> Self {
        let FlowReport { delivery, backlog } = report;
        Self {
            since_ns: delivery.since.as_nanos(),
            until_ns: delivery.until.as_nanos(),
            sent: delivery.sent,
            messages: delivery.messages,
            bytes: delivery.bytes,
            lost: delivery.lost,
            delay_ns: delivery
                .delay
                .map(|delay| [delay.mean, delay.quantile, delay.worst].map(Duration::as_nanos)),
            backlog: backlog.get(),
        }
    }
}

impl ReportLine {
    /// Converts the report for the manager.
    pub fn report(&self) -> FlowReport {
        let mut report = FlowReport { backlog: Bytes::new(self.backlog), ..FlowReport::default() };
        let delivery = &mut report.delivery;
        delivery.since = Instant::from_nanos(self.since_ns);
        delivery.until = Instant::from_nanos(self.until_ns);
        (delivery.sent, delivery.messages) = (self.sent, self.messages);
        (delivery.bytes, delivery.lost) = (self.bytes, self.lost);
        delivery.delay = self.delay_ns.map(|delay| {
            let [mean, quantile, worst] = delay.map(Duration::from_nanos);
            Spread { mean, quantile, worst }
        });
        report
    }
}

/// Request of a client to the resource manager.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case")]
pub enum AllocationRequest {
    /// The first line of a connection.
    Hello {
        /// Version of the protocol that the client supports.
        version: u32,
        /// Session of a client that connects again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
    },
    /// Requests a share for a flow.
    Admit {
        /// The client's number for it.
        id: u64,
        /// Its needs.
        #[serde(flatten)]
        need: FlowNeed,
    },
    /// Requests other rates of a flow. If the request is refused, the flow keeps its rates.
    Change {
        /// The client's number for it.
        id: u64,
        /// The highest useful rate with all headers, bit/s; absent if more is always useful.
        #[serde(default)]
        desired_bps: Option<u64>,
        /// The lowest acceptable rate with all headers, bit/s.
        minimum_bps: u64,
        /// The best and the worst acceptable delay, ms.
        #[serde(default)]
        delay_ms: Option<(f64, f64)>,
        /// The worst acceptable loss, per cent.
        #[serde(default)]
        loss_percent: Option<f64>,
    },
    /// States the address of this end after the connection of a flow was made again. The flow keeps its rates.
    Move {
        /// The client's number for it.
        id: u64,
        /// Address of this end.
        source: SocketAddr,
    },
    /// Reports the delivery of a flow, and renews its lease.
    Report {
        /// The client's number for it.
        id: u64,
        /// The report.
        #[serde(flatten)]
        report: ReportLine,
    },
    /// Reports the number of a flow's messages that left after their deadlines since it began.
    Missed {
        /// The client's number for it.
        id: u64,
        /// Number of messages.
        missed: u64,
    },
    /// Renews the leases of all flows of the client. It has no effect within a sixteenth of a lease after another one.
    Renew {},
    /// Ends a flow.
    Release {
        /// The client's number for it.
        id: u64,
    },
    /// Requests the manager's status.
    Status {},
}

/// A flow that a client has, in the reply to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldFlow {
    /// The client's number for it.
    pub id: u64,
    /// The rate that it may use, with all headers, bit/s.
    pub rate_bps: u64,
}

/// Reply or notice of the resource manager.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "kebab-case")]
pub enum AllocationReply {
    /// The answer to `hello`.
    Welcome {
        /// Version of the protocol that is spoken.
        version: u32,
        /// Session, with which the client takes over its flows after a restart of the manager.
        session: String,
        /// Time without `renew` or `report` after which a flow is revoked, ms.
        lease_ms: u64,
        /// Flows that the session has.
        flows: Vec<HeldFlow>,
    },
    /// A flow is admitted. It may send from its `rate` reply on.
    Admitted {
        /// The client's number.
        id: u64,
        /// The rate, bit/s.
        rate_bps: u64,
        /// Reason why it is less than desired; absent if it is not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reduced: Option<String>,
    },
    /// A flow, or its change, is refused.
    Refused {
        /// The client's number.
        id: u64,
        /// Reason, with the exhausted resource, or the field whose value is not allowed.
        reason: String,
    },
    /// A flow may send at this rate from now on.
    Rate {
        /// The client's number.
        id: u64,
        /// The rate before, bit/s; absent for a new flow.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before_bps: Option<u64>,
        /// The rate from now on, bit/s.
        rate_bps: u64,
        /// Reason of the change.
        cause: AllocationCause,
    },
    /// A flow is revoked: it no longer has a share.
    Revoked {
        /// The client's number.
        id: u64,
        /// Reason.
        cause: AllocationCause,
    },
    /// A flow is released at the request of the client.
    Released {
        /// The client's number.
        id: u64,
    },
    /// The manager's status.
    Status {
        /// The document.
        status: Box<ManagerStatus>,
    },
    /// The line was malformed, or a limit is reached. The connection is closed.
    Error {
        /// The error.
        message: String,
    },
}

/// Reason why a line of a client is not a request.
#[derive(Debug, thiserror::Error)]
pub enum AllocationLineError {
    /// A line that exceeds the limit.
    #[error("a line is longer than {LONGEST_LINE} B")]
    TooLong,
    /// A line that is not a JSON document of this kind.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

impl AllocationRequest {
    /// Reads a line without its end.
    ///
    /// # Errors
    /// When the line is not a request of this version.
    pub fn parse(line: &[u8]) -> Result<Self, AllocationLineError> {
        if line.len() > LONGEST_LINE {
            return Err(AllocationLineError::TooLong);
        }
        Ok(serde_json::from_slice(line)?)
    }

    /// The line, without its end.
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("these documents have no other keys than text")
    }
}

impl AllocationReply {
    /// The line, with its end.
    pub fn line(&self) -> String {
        let mut line = serde_json::to_string(self).expect("these documents have no other keys than text");
        line.push('\n');
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need() -> FlowNeed {
        FlowNeed {
            class: SchedulingClass::RealTime,
            carrier: CarrierKind::Datagrams,
            source: "10.0.0.1:4000".parse().unwrap(),
            destination: "[2001:db8::1]:5000".parse().unwrap(),
            desired_bps: Some(8_000_000),
            minimum_bps: 1_000_000,
            priority: 9,
            weight: 3,
            delay_ms: Some((0.0, 150.0)),
            loss_percent: Some(1.5),
        }
    }

    #[test]
    fn a_request_is_the_same_after_it_was_written_and_read() {
        let report = ReportLine {
            since_ns: 1,
            until_ns: 500_000_001,
            sent: 100,
            messages: 99,
            bytes: 99_000,
            lost: -1,
            delay_ns: Some([1, 2, 3]),
            backlog: 7,
        };
        assert_eq!(ReportLine::from(&report.report()), report);
        for request in [
            AllocationRequest::Hello { version: 1, session: Some("00".to_owned()) },
            AllocationRequest::Admit { id: 7, need: need() },
            AllocationRequest::Change {
                id: 7,
                desired_bps: None,
                minimum_bps: 5,
                delay_ms: None,
                loss_percent: Some(0.5),
            },
            AllocationRequest::Move { id: 7, source: "[fe80::1%2]:4000".parse().unwrap() },
            AllocationRequest::Report { id: 7, report },
            AllocationRequest::Missed { id: 7, missed: 3 },
            AllocationRequest::Renew {},
            AllocationRequest::Release { id: 7 },
            AllocationRequest::Status {},
        ] {
            let line = request.line();
            assert!(line.len() < LONGEST_LINE / 4, "{line}");
            assert_eq!(AllocationRequest::parse(line.as_bytes()).unwrap(), request, "{line}");
        }
    }

    #[test]
    fn an_invalid_request_is_refused_with_the_reason() {
        let refused = |line: &str| AllocationRequest::parse(line.as_bytes()).unwrap_err().to_string();
        assert!(refused("{\"request\":\"take\"}").contains("take"));
        assert!(refused("{\"request\":\"release\"}").contains("id"));
        assert!(refused(&"x".repeat(LONGEST_LINE + 1)).contains("4096"));
        let line = AllocationRequest::Admit { id: 1, need: need() }.line().replace("real-time", "fast");
        assert!(refused(&line).contains("fast"));
    }
}
