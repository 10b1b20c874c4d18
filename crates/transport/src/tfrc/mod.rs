//! TFRC, the TCP-friendly rate control of RFC 5348: as much as TCP would have, but smoothly.
//!
//! The receiver measures the loss event rate `p` and the rate it receives, and reports both once a round trip
//! and at each new loss event. The sender puts `p` and the round-trip time into the TCP throughput equation and
//! sends packets at that pace.
//!
//! | file | what | RFC 5348 |
//! | --- | --- | --- |
//! | `equation` | the TCP throughput equation and its inverse | 3.1, 6.3.1 |
//! | `sender` | rate, slow start, nofeedback timer, pacing | 4 |
//! | `receive_rates` | `X_recv_set` and data-limited intervals | 4.3, 8.2.1 |
//! | `holes` | which packets are lost | 5.1 |
//! | `loss_intervals` | loss events, their intervals, `p` | 5.2 to 5.5 |
//! | `receiver` | feedback | 6 |
//!
//! Not modelled: the sender-based variant (7), CCID 3's header formats (RFC 4342), `TFRC-SP` for small packets
//! (RFC 4828): a flow of small packets gets the packet rate of a TCP with such segments.

mod coarse_timeout;
mod equation;
mod holes;
mod loss_intervals;
mod params;
mod receive_rates;
mod receiver;
mod sender;
mod transport;
mod wire;

pub use equation::{loss_event_rate, throughput, throughput_with_timeout};
pub use params::Params;
pub use receiver::{Receiver, ReceiverStats};
pub use sender::{Sender, Stats};
pub use transport::Tfrc;
pub use wire::Extension;

use cutline_units::{Duration, Instant};

/// A data packet: 32 bytes, `Copy` (RFC 5348 3.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// 0, 1, 2, ... in the order they left.
    pub seq: u64,
    /// When it left.
    pub sent_at: Instant,
    /// The sender's estimate of the round-trip time; zero while it has none.
    pub rtt: Duration,
    /// Payload, bytes.
    pub len: u32,
}

/// A feedback packet: 32 bytes, `Copy` (RFC 5348 3.2.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Feedback {
    /// When the last packet received had left (`t_recvdata`).
    pub echo: Instant,
    /// How long ago that packet arrived (`t_delay`).
    pub t_delay: Duration,
    /// The rate received over the last round trip, bytes per second (`X_recv`).
    pub x_recv: f64,
    /// The loss event rate, 0..1.
    pub p: f64,
}
