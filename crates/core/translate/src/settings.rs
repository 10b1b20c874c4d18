//! Result of a translation.

use cutline_flow::TrafficSpec;
use cutline_units::{Bytes, Dscp, Hint, Rate};
use std::fmt;

/// Settings of a host for one connection. A setting that is `None` stays as the kernel has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndSystemSettings {
    /// `SO_SNDBUF`, up to [`EndSystemSettings::LARGEST_BUFFER`]. The kernel doubles the value and uses one half for its own
    /// bookkeeping (socket(7)); this is the value before.
    pub send_buffer: Option<Bytes>,
    /// `SO_RCVBUF`, as [`send_buffer`](Self::send_buffer).
    pub receive_buffer: Option<Bytes>,
    /// Number of bytes that the application passes to one write, 1 B to 64 KiB.
    pub block: Bytes,
    /// `TCP_NODELAY`.
    pub no_delay: Option<bool>,
    /// `TCP_NOTSENT_LOWAT`, up to [`EndSystemSettings::LARGEST_BUFFER`].
    pub not_sent_lowat: Option<Bytes>,
    /// `TCP_MAXSEG`, 88 B to 32,767 B. The payload of a segment is smaller by the TCP options in it.
    pub mss: Option<Bytes>,
    /// `TCP_CONGESTION`: a control that the kernel may not have; then the kernel's default stays.
    pub congestion_control: Option<&'static str>,
    /// Largest rate of the payload.
    pub pacing: Option<PacingSettings>,
    /// `UDP_SEGMENT`: the length of the datagrams into which the kernel cuts a longer write.
    pub gso_segment: Option<Bytes>,
}

impl EndSystemSettings {
    /// The largest buffer that can be requested: the kernel doubles it and keeps it in 31 bits.
    pub const LARGEST_BUFFER: Bytes = Bytes::new(i32::MAX as u64 / 2);
}

/// A limit of the rate at which payload leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacingSettings {
    /// Payload per second; above 0.
    pub rate: Rate,
    /// Keeper of the rate.
    pub by: PacedBy,
}

/// Keeper of a connection's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacedBy {
    /// The kernel: `SO_MAX_PACING_RATE`, which takes bytes per second.
    Kernel,
    /// The process that sends: it waits before each message.
    Sender,
}

impl fmt::Display for PacingSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = match self.by {
            PacedBy::Kernel => "the kernel",
            PacedBy::Sender => "the sender",
        };
        write!(f, "{}, by {by}", self.rate)
    }
}

/// Marks in the packets of a connection, and requests to the network. A field that is `None` is not changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkSettings {
    /// Delay hint of the packets.
    pub hint: Option<Hint>,
    /// The code point of the packets that this end sends.
    pub dscp: Option<Dscp>,
    /// The reservation.
    pub reservation: Option<PlannedReservation>,
}

/// Service of a direction that carries acknowledgements alone. In QoSockets section IV, an unreserved reverse path
/// cost a reserved TCP its rate. Both ends need the same value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AckPath {
    /// Reserved, by the rate of the data.
    #[default]
    Reserved,
    /// Best effort, without a reservation.
    BestEffort,
}

/// Reservation for a connection. A direction of which no rate is known has no reservation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlannedReservation {
    /// For the packets that this end sends, acknowledgements included.
    pub send: Option<TrafficSpec>,
    /// For the packets that this end receives, acknowledgements included.
    pub receive: Option<TrafficSpec>,
}
