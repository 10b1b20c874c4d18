//! Cutline's traffic generator and meter: sends many flows over real sockets and measures them.
//!
//! The applications and the datagram transports are the state machines of `cutline-transport`, which the simulator also
//! uses. TCP is the kernel's. With the same seed and name a flow has the same arrivals here as in the simulator.
//!
//! ```text
//! plan       a flow: transport, application, addresses, code point, times
//! generator  the sending end: all flows of one thread
//! meter      the receiving end: counters, delays, the transports' reports, notes about delivered messages
//!   record   the measurements of a flow
//! header     the headers of TCP connections and the messages in them
//! stream     writes and reads messages in a byte stream
//! rendezvous opens the connections and proves the paths of flows that the receiver sends
//! report     the measurements of both ends
//! responsiveness  delay under load in several classes: its flows, and the results from their delays
//! host       work and losses of a host during a run
//! sent       serialization of other crates' types
//! summary    the sums over a group of flows
//! results    the reports of both ends joined, by flow and by group
//! picture    delay under load as charts (feature `charts`)
//! document   the measurements as documents: every counter with its name, unit and meaning
//! trace      a recorded trace as text
//! agenda     the deadlines of the flows
//! control    the session of a sender and a receiver on two machines: clock comparison, start, reports
//! ```
//!
//! A [`Generator`] and a [`Meter`] each run in the calling thread until a given time or until a flag is set. Their
//! sockets are in the network namespace of that thread. Neither starts threads; [`control`] starts one for each. The
//! crate has no `unsafe` code.
//!
//! Not supported: QUIC, multicast, kernel pacing of UDP (a socket accepts the option and ignores it).

mod agenda;
pub mod control;
mod document;
mod generator;
pub mod header;
mod histogram;
mod host;
mod meter;
#[cfg(feature = "charts")]
pub mod picture;
mod plan;
mod rendezvous;
mod report;
pub mod responsiveness;
mod results;
mod sent;
mod socket;
pub mod stream;
mod summary;
mod trace;

pub use cutline_signal::clock::ClockOffset;
pub use document::{
    Clock, DistributionDocument, FlowDocument, GroupTotals, IntervalDocument, ReceiveDocument,
    ReceiverDocument, SendDocument, SenderDocument, SentDocument, TcpDocument, Totals,
};
pub use generator::Generator;
pub use header::MESSAGE_HEADER;
pub use host::{HostDrops, HostUse};
pub use meter::{Meter, MeterParams};
pub use plan::{
    DIRECT, DatagramOptions, FlowPlan, FlowTransport, LONGEST_FRAME_MESSAGE, PlanDirection, PlanError,
    RateShaper, TcpOptions,
};
pub use report::{MeterReport, ReceivedInterval, ReceiverReport, SenderReport, SentInterval, Window};
pub use results::{FlowGroup, FlowGroups, SendResults};
pub use socket::select_congestion_control;
pub use summary::FlowsSummary;
pub use trace::{TraceError, parse_trace};

use std::io;

/// An error that stops a generator or a meter. An error of a single flow is in the flow's report instead.
#[derive(Debug, thiserror::Error)]
pub enum TrafficError {
    /// The plan of a flow is invalid.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A system call failed.
    #[error("{doing}: {source}")]
    System {
        /// The operation that failed.
        doing: String,
        /// The system's error.
        source: io::Error,
    },
}

impl TrafficError {
    /// Returns a function that converts a system error; `doing` names the operation that failed.
    pub(crate) fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::System { doing, source }
    }
}
