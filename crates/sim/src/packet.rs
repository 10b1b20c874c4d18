//! A packet of the simulator: the transport's own header, and what the network needs to know.

use cutline_transport::{tcp, tfrc, udp};
use cutline_units::{Duration, Hint, Instant};

/// A packet on its way. Written once into the slab beside the calendar, and moved by handle from then on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(crate) flow: u32,
    /// On the wire, headers included, bytes.
    pub(crate) size: u32,
    pub(crate) hint: Hint,
    /// The position in its route of the link that it comes to next.
    pub(crate) hop: u8,
    /// On the return route: an acknowledgement or feedback.
    pub(crate) returning: bool,
    pub(crate) ecn_capable: bool,
    /// Congestion experienced (RFC 3168).
    pub(crate) marked: bool,
    /// Time spent waiting in queues so far.
    pub(crate) queued: Duration,
    pub(crate) sent_at: Instant,
    pub(crate) header: Header,
}

impl Packet {
    /// What an entry of the slab holds before its first use, and what a timer's holds for ever.
    pub(crate) const BLANK: Self = Self {
        flow: u32::MAX,
        size: 0,
        hint: Hint::LEAST_DELAY,
        hop: 0,
        returning: false,
        ecn_capable: false,
        marked: false,
        queued: Duration::ZERO,
        sent_at: Instant::ZERO,
        header: Header::Datagram(udp::Datagram { seq: 0, sent_at: Instant::ZERO, len: 0 }),
    };
}

/// The transport's part.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Header {
    Segment(tcp::Segment),
    Ack(tcp::Ack),
    TfrcPacket(tfrc::Packet),
    TfrcFeedback(tfrc::Feedback),
    Datagram(udp::Datagram),
}
