//! A packet of the simulator: the transport's header, and the fields for the network.

use crate::calendar::{EventHandle, Payload};
use cutline_transport::endpoint::{DataHeader, PackedHeader, ReplyHeader, WideHeader};
use cutline_units::{Duration, Ecn, Hint, HintBudget, Instant};

/// A packet in transit. It is written once as the payload of its calendar entry, and then moved by its handle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// Time spent waiting in queues so far.
    pub(crate) queued: Duration,
    /// The fields of the [transport's header](Packet::header).
    number: u64,
    time: Instant,
    len: u32,
    bits: u8,
    /// Size on the wire, headers included, bytes.
    pub(crate) size: u32,
    /// Its position on its route: an index into [`crate::route::Routes`].
    pub(crate) position: u32,
    pub(crate) hint: Hint,
    pub(crate) ecn: Ecn,
    /// Congestion experienced (RFC 3168).
    pub(crate) marked: bool,
}

// An event with its packet fits a cache line, and millions of packets are in transit in a large network.
const _: () = assert!(size_of::<Packet>() <= 40, "a packet has 40 bytes");

impl Packet {
    /// The payload of a calendar entry before its first packet, and of a timer's entry.
    pub(crate) const NONE: Self = Self::new(PackedHeader::WIDE, 0, 0, Hint::LEAST_DELAY, Ecn::NotEct);

    /// Returns a packet that leaves its endpoint.
    #[inline]
    pub(crate) const fn new(header: PackedHeader, size: u32, position: u32, hint: Hint, ecn: Ecn) -> Self {
        let PackedHeader { number, time, len, .. } = header;
        let bits = header.bits();
        Self { queued: Duration::ZERO, number, time, len, bits, size, position, hint, ecn, marked: false }
    }

    /// Returns a packet without a header, such as an agent's message.
    #[inline]
    pub(crate) const fn without_header(size: u32, position: u32, hint: Hint) -> Self {
        Self::new(PackedHeader::WIDE, size, position, hint, Ecn::NotEct)
    }

    /// Returns the transport's header; [`PackedHeader::WIDE`] if it is stored in [`WideHeaders`].
    #[inline]
    pub(crate) const fn header(&self) -> PackedHeader {
        PackedHeader::from_bits(self.number, self.time, self.len, self.bits)
    }

    /// Replaces the transport's header.
    pub(crate) fn set_header(&mut self, header: PackedHeader) {
        (self.number, self.time, self.len) = (header.number, header.time, header.len);
        self.bits = header.bits();
    }

    /// Returns the departure time in the header of a data packet.
    #[inline]
    pub(crate) const fn sent_at(&self) -> Instant {
        self.time
    }

    /// Returns the packet after a link has transmitted it: it has waited in the link's queue, which has marked it at its departure if
    /// `marked`, and its hint is the rest of its delay budget.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "inlined, a packet in transit stays in registers")]
    pub(crate) fn transmitted(self, waited: Duration, marked: bool, pass_on: Option<HintBudget>) -> Self {
        let hint = pass_on.map_or(self.hint, |budget| budget.after(self.hint, waited));
        Self {
            queued: self.queued + waited,
            marked: self.marked | marked,
            hint,
            position: self.position + 1,
            ..self
        }
    }
}

/// The packets that arrive somewhere at the same time are handled in the order of their positions, so by flow. Packets of the same
/// position come from the same link, which sent them one after the other.
impl Payload for Packet {
    #[inline]
    fn rank(&self) -> u32 {
        self.position
    }
}

/// The long headers, by the handles of their packets. The vector ends at the greatest handle of such a packet.
#[derive(Default)]
pub(crate) struct WideHeaders {
    headers: Vec<Option<WideHeader>>,
}

impl WideHeaders {
    /// Returns the header of a data packet.
    pub(crate) fn data(&self, handle: EventHandle) -> DataHeader {
        let WideHeader::Data(header) = self.get(handle) else { unreachable!("only data reaches a sink") };
        *header
    }

    /// Returns the header of a reply.
    pub(crate) fn reply(&self, handle: EventHandle) -> ReplyHeader {
        let WideHeader::Reply(header) = self.get(handle) else { unreachable!("only replies reach a source") };
        *header
    }

    #[inline]
    pub(crate) fn get(&self, handle: EventHandle) -> &WideHeader {
        self.headers[handle as usize].as_ref().expect("a packet whose header is wide has put it here")
    }

    pub(crate) fn put(&mut self, handle: EventHandle, header: WideHeader) {
        if handle as usize >= self.headers.len() {
            self.headers.resize(handle as usize + 1, None);
        }
        self.headers[handle as usize] = Some(header);
    }
}
