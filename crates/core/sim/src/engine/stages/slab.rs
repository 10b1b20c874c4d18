//! Storage with places that are used again: the packets in a queue, and headers that are too long for their packets.

use crate::calendar::EventHandle;
use crate::packet::Packet;
use crate::places::{Linked, Places};
use cutline_transport::endpoint::{DataHeader, PackedHeader, ReplyHeader, WideHeader};

/// The packets that a queue holds, by handle.
pub(super) type Packets = Places<Packet>;

/// A packet that has left its place has the link as its position.
impl Linked for Packet {
    #[inline]
    fn link(&self) -> EventHandle {
        self.position
    }

    #[inline]
    fn set_link(&mut self, link: EventHandle) {
        self.position = link;
    }
}

impl Packets {
    /// Marks a packet.
    pub(super) fn mark(&mut self, handle: EventHandle) {
        self[handle].mark_if(true);
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
