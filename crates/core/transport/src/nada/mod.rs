//! NADA, a congestion control for interactive media (RFC 8698): a video encoder's rate follows delay, losses and marks.
//!
//! The receiver measures the queuing delay, losses, marks and the rate over half a second, and reports them ten times per second. The
//! sender combines them into one signal, a delay in which losses and marks count as more of it, and from it computes a rate. An encoder
//! makes frames at that rate. Their packets wait in a buffer and leave at a pace a little above it.
//!
//! | file | contents | source |
//! | --- | --- | --- |
//! | `rate` | the congestion signal, and the rate | RFC 8698 sections 4.2 and 4.3 |
//! | `sender` | encoder, buffer, pace | RFC 8698 section 5.2 |
//! | `receiver` | measurements, reports | RFC 8698 section 5.1 |
//!
//! The signal is computed by the sender, which RFC 8698 section 6.4 permits: so all parameters but two are the sender's alone.
//!
//! Beyond RFC 8698: without reports for [`Params::feedback_timeout`] the rate is halved. The RFC does not say how its encoder varies:
//! here each frame has the size of the target rate. An application that writes messages itself takes the place of the encoder.

mod params;
mod rate;
mod receiver;
mod sender;
mod transport;
mod wire;

pub use params::Params;
pub use rate::{Mode, RateController};
pub use receiver::{Receiver, ReceiverStats};
pub use sender::{Sender, Stats};
pub use transport::Nada;
pub use wire::Extension;

#[cfg(test)]
mod tests;

use cutline_units::{Duration, Instant, Rate};

/// The header of a data packet.
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

/// A report of the receiver about the last [`Params::log_window`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Feedback {
    /// Time at which the newest packet left its sender.
    pub echo: Instant,
    /// The time since that packet arrived.
    pub since_arrival: Duration,
    /// The queuing delay: the least of the last packets (`d_queue`).
    pub queuing_delay: Duration,
    /// The largest queuing delay of a packet.
    pub largest_delay: Duration,
    /// The share of packets that are missing, 0..1.
    pub lost: f64,
    /// The share of packets that were marked, 0..1.
    pub marked: f64,
    /// The rate at which packets arrived, with headers (`r_recv`).
    pub received: Rate,
    /// The average number of packets between two loss events (`loss_int`); 0 before the first one.
    pub loss_interval: f64,
    /// The number of packets since the last loss.
    pub since_loss: u64,
}
