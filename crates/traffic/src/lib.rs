//! Cutline's traffic generator and meter: many flows over real sockets, and what became of them.
//!
//! The applications and the transports over datagrams are the state machines of `cutline-transport` that the simulator
//! drives; TCP is the kernel's. With the same seed and names a flow draws the same arrivals here as there.
//!
//! ```text
//! plan       a flow: transport, application, addresses, code point, times
//! generator  all flows of one thread: applications are asked when they are due, sockets written while they take
//! meter      the other end: counts, delays, the transports' reports, news of files that have arrived
//!   record   what is measured of a flow
//! header     the headers of TCP connections and the messages in them
//! stream     messages in a byte stream, written and read
//! report     what both ends found
//! summary    like flows together
//! document   the same as documents: every counter with its name, unit and meaning
//! trace      a recorded trace as text
//! clock      two clocks, and how far they are apart
//! agenda     who is due next
//! control    a sender and a receiver on two machines: clocks compared, a run agreed on, reports brought together
//! ```
//!
//! A [`Generator`] and a [`Meter`] each run in the calling thread, whose network namespace their sockets are in, until a
//! time, or until a flag is set. Neither starts threads; [`control`] starts one for each. Nothing here has `unsafe` code.
//!
//! What is absent: QUIC, multicast, kernel pacing of UDP (a socket accepts it and ignores it).

mod agenda;
mod clock;
pub mod control;
mod document;
mod generator;
pub mod header;
mod histogram;
mod meter;
mod plan;
mod report;
mod socket;
pub mod stream;
mod summary;
mod trace;

pub use clock::ClockOffset;
pub use document::{
    Clock, Distribution, FlowDocument, GroupTotals, IntervalDocument, ReceiveDocument, ReceiverDocument,
    SendDocument, SenderDocument, TcpDocument, Totals,
};
pub use generator::Generator;
pub use header::MESSAGE_HEADER;
pub use meter::{Meter, MeterParams};
pub use plan::{FlowPlan, PlanError, TcpOptions, Transport};
pub use report::{MeterReport, ReceivedInterval, ReceiverReport, SenderReport, SentInterval, Window};
pub use socket::select_congestion_control;
pub use summary::Summary;
pub use trace::{TraceError, parse_trace};

use std::io;

/// Why a generator or a meter cannot do its work at all; what befalls a single flow is in its report.
#[derive(Debug, thiserror::Error)]
pub enum TrafficError {
    /// A flow cannot be as it is planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The system refuses something.
    #[error("{doing}: {source}")]
    System {
        /// What was tried.
        doing: String,
        /// What the system says.
        source: io::Error,
    },
}

impl TrafficError {
    /// Returns the conversion of an error of the system; `doing` says what failed.
    pub(crate) fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::System { doing, source }
    }
}
