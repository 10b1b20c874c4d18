//! Storage with places that are used again: the packets in a queue, and headers that are too long for their packets.

use crate::calendar::EventHandle;
use crate::packet::Packet;
use crate::tight::push_tightly;
use cutline_transport::endpoint::{DataHeader, PackedHeader, ReplyHeader, WideHeader};

/// The packets that a queue holds, by handle.
pub(super) struct Packets {
    packets: Vec<Packet>,
    /// The place that was left last, whose packet has the place that was left before it as its position; [`NONE`] if all are taken.
    free: EventHandle,
}

/// No place.
const NONE: EventHandle = EventHandle::MAX;

impl Default for Packets {
    fn default() -> Self {
        Self { packets: Vec::new(), free: NONE }
    }
}

impl Packets {
    /// Stores a packet and returns its handle.
    #[inline]
    pub(super) fn put(&mut self, packet: Packet) -> EventHandle {
        let handle = self.free;
        if let Some(place) = self.packets.get_mut(handle as usize) {
            self.free = place.position;
            *place = packet;
            return handle;
        }
        push_tightly(&mut self.packets, packet);
        self.packets.len() as EventHandle - 1
    }

    /// Marks a packet.
    pub(super) fn mark(&mut self, handle: EventHandle) {
        self.packets[handle as usize].marked = true;
    }

    /// Removes a packet.
    #[inline]
    pub(super) fn take(&mut self, handle: EventHandle) -> Packet {
        let place = &mut self.packets[handle as usize];
        let packet = *place;
        place.position = self.free;
        self.free = handle;
        packet
    }
}

/// The long headers of packets under way. The packed header of such a packet has the number of its place.
#[derive(Default)]
pub(super) struct Headers {
    headers: Vec<WideHeader>,
    free: Vec<usize>,
}

impl Headers {
    /// Returns whether no packet has a long header.
    pub(super) fn is_empty(&self) -> bool {
        self.headers.len() == self.free.len()
    }

    /// Stores a header. Returns the packed header of its packet.
    pub(super) fn put(&mut self, header: WideHeader) -> PackedHeader {
        let place = if let Some(place) = self.free.pop() {
            self.headers[place] = header;
            place
        } else {
            self.headers.push(header);
            self.headers.len() - 1
        };
        let mut packed = PackedHeader::WIDE;
        packed.number = place as u64;
        packed
    }

    /// Removes the header of a packet.
    pub(super) fn take(&mut self, packed: PackedHeader) -> WideHeader {
        let place = packed.number as usize;
        self.free.push(place);
        self.headers[place]
    }

    /// Removes the header of a data packet.
    pub(super) fn take_data(&mut self, packed: PackedHeader) -> DataHeader {
        let WideHeader::Data(header) = self.take(packed) else { unreachable!("only data reaches a sink") };
        header
    }

    /// Removes the header of a reply.
    pub(super) fn take_reply(&mut self, packed: PackedHeader) -> ReplyHeader {
        let WideHeader::Reply(header) = self.take(packed) else {
            unreachable!("only replies reach a source")
        };
        header
    }
}
