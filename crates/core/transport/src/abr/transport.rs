//! ABR as one of the [transports](crate::endpoint), for simulations. Its sender is boxed because it is larger than most, and rarer than TCP's.

use super::{CELL_PAYLOAD, Feedback, Packet, Params, Receiver, Sender, TRAILER};
use crate::endpoint::{
    Outgoing, PackedHeader, ReceivingEnd, SendingEnd, Transport, TransportCounts, forward_to_sender,
};
use cutline_units::{Ecn, Instant};
use std::sync::Arc;

/// Bits for the number of RM cells beside the sequence number. A packet of 65,535 B has 1,366 cells, and at most as many RM cells.
const RM_BITS: u32 = 12;

/// ABR.
#[derive(Debug)]
pub struct Abr;

impl Transport for Abr {
    const NAME: &'static str = "abr";
    const TITLE: &'static str = "ABR of ATM";
    const SOURCE: &'static str = "ATM Forum af-tm-0056";
    const RELIABLE: bool = false;
    const ADAPTS: bool = true;

    type Params = Params;
    type Data = Packet;
    type Reply = Feedback;
    type Sender = Box<Sender>;
    type Receiver = Receiver;

    /// Every cell can be marked (EFCI).
    fn ecn(_params: &Params) -> Ecn {
        Ecn::Ect0
    }

    fn largest_payload(params: &Params) -> u32 {
        params.packet_size
    }

    fn header_size(params: &Params) -> u32 {
        params.header_bytes
    }

    /// The size of an RM cell.
    fn reply_size(_params: &Params) -> u32 {
        returned_size(1)
    }

    fn sender(params: &Arc<Params>, now: Instant) -> Box<Sender> {
        Box::new(Sender::new(params, now))
    }

    fn receiver(_params: &Arc<Params>) -> Receiver {
        Receiver::default()
    }

    #[inline]
    fn sent_at(data: &Packet) -> Instant {
        data.sent_at
    }

    #[inline]
    fn pack_data(data: &Packet) -> PackedHeader {
        let Packet { seq, sent_at, len, rm_cells } = *data;
        PackedHeader::new((seq << RM_BITS) | u64::from(rm_cells), sent_at, len, [false; 3])
    }

    #[inline]
    fn unpack_data(packed: PackedHeader) -> Packet {
        let PackedHeader { number, time: sent_at, len, .. } = packed;
        let rm_cells = (number & ((1 << RM_BITS) - 1)) as u32;
        Packet { seq: number >> RM_BITS, sent_at, len, rm_cells }
    }

    #[inline]
    fn pack_reply(reply: &Feedback) -> PackedHeader {
        let Feedback { cells, is_congested } = *reply;
        PackedHeader::new(u64::from(cells), Instant::ZERO, 0, [is_congested, false, false])
    }

    #[inline]
    fn unpack_reply(packed: PackedHeader) -> Feedback {
        Feedback { cells: packed.number as u32, is_congested: packed.flags()[0] }
    }
}

/// Returns the size of a reply with RM cells that occupies as many cells on a link of ATM, bytes.
const fn returned_size(cells: u32) -> u32 {
    cells * CELL_PAYLOAD - TRAILER
}

impl SendingEnd for Box<Sender> {
    forward_to_sender!(Sender, Packet, Feedback);

    fn transmit(&mut self, now: Instant) -> Option<Outgoing<Packet>> {
        let header = Sender::transmit(self, now)?;
        let size = header.len + self.params().header_bytes + header.rm_cells * CELL_PAYLOAD;
        Some(Outgoing { header, size, ecn: Ecn::Ect0 })
    }

    /// The timeouts are the reductions of the rate without RM cells that come back.
    fn counts(&self) -> TransportCounts {
        let stats = self.stats();
        TransportCounts { retransmissions: 0, timeouts: stats.cutoffs, refused_bytes: stats.refused }
    }
}

impl ReceivingEnd for Receiver {
    type Data = Packet;
    type Reply = Feedback;

    #[inline]
    fn on_data(&mut self, _now: Instant, data: &Packet, marked: bool) -> Option<Outgoing<Feedback>> {
        let header = self.on_packet(data, marked)?;
        Some(Outgoing { header, size: returned_size(header.cells), ecn: Ecn::NotEct })
    }

    #[inline]
    fn delivered(&self) -> u64 {
        Self::delivered(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abr::cells;

    #[test]
    fn headers_are_packed_without_a_loss() {
        let sent_at = Instant::from_nanos(7);
        for rm_cells in [0, 1, cells(65_535 + 1000)] {
            let packet = Packet { seq: 123_456, sent_at, len: 65_535, rm_cells };
            assert_eq!(Abr::unpack_data(Abr::pack_data(&packet)), packet);
        }
        for is_congested in [false, true] {
            let reply = Feedback { cells: 1386, is_congested };
            assert_eq!(Abr::unpack_reply(Abr::pack_reply(&reply)), reply);
        }
    }

    /// RM cells add their cells to a packet, and are as many cells when they return.
    #[test]
    fn rm_cells_have_a_cell_each() {
        for size in [1, 40, 41, 1000, 8192] {
            assert_eq!(cells(size + 3 * CELL_PAYLOAD), cells(size) + 3);
        }
        assert_eq!([1, 2, 6].map(|count| cells(returned_size(count))), [1, 2, 6]);
        assert_eq!(Abr::reply_size(&Params::default()), 40);
    }
}
