//! TFRC, the TCP-friendly rate control of RFC 5348: the throughput of a TCP flow with smaller variations.
//!
//! The receiver measures the loss event rate `p` and the receive rate, and reports both once per round trip and at each
//! new loss event. The sender computes its rate from `p` and the round-trip time with the TCP throughput equation.
//!
//! | file | contents | source |
//! | --- | --- | --- |
//! | `equation` | the TCP throughput equation and its inverse | RFC 5348 sections 3.1 and 6.3.1 |
//! | `sender` | rate, slow start, nofeedback timer, pacing | RFC 5348 section 4 |
//! | `receive_rates` | `X_recv_set` and data-limited intervals | RFC 5348 sections 4.3 and 8.2.1 |
//! | `loss_detection` | which packets are lost | RFC 5348 sections 5.1 and 5.2 |
//! | `loss_intervals` | loss events, their intervals, `p` | RFC 5348 sections 5.2, 5.3, 5.4 and 5.5 |
//! | `receiver` | feedback | RFC 5348 section 6 |
//!
//! Not modelled: the sender-based variant (RFC 5348 section 7), the header formats of CCID 3 (RFC 4342), and `TFRC-SP` for
//! small packets (RFC 4828). A flow of small packets gets the packet rate of a TCP flow with such segments.

mod coarse_timeout;
mod equation;
mod loss_detection;
mod loss_intervals;
mod params;
mod receive_rates;
mod receiver;
mod sender;
mod transport;
mod wire;

pub(crate) use loss_intervals::LossIntervals;

pub use equation::{loss_event_rate, throughput, throughput_with_timeout};
pub use params::Params;
pub use receiver::{Receiver, ReceiverStats};
pub use sender::{Sender, Stats};
pub use transport::Tfrc;
pub use wire::Extension;

use cutline_units::{Duration, Instant};

/// The header of a data packet: 32 bytes, `Copy` (RFC 5348 section 3.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The sequence number: 0, 1, 2, ... in the order of departure.
    pub seq: u64,
    /// Time at which the packet left.
    pub sent_at: Instant,
    /// The sender's estimate of the round-trip time; zero while it has none.
    pub rtt: Duration,
    /// Payload, bytes.
    pub len: u32,
}

/// A feedback packet: 32 bytes, `Copy` (RFC 5348 section 3.2.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Feedback {
    /// Time at which the last packet received left its sender (`t_recvdata`).
    pub echo: Instant,
    /// The time since that packet arrived (`t_delay`).
    pub t_delay: Duration,
    /// The receive rate over the last round trip, bytes per second (`X_recv`).
    pub x_recv: f64,
    /// The loss event rate, 0..1.
    pub p: f64,
}
