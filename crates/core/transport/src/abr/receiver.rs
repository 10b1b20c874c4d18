//! The receiving end of an ABR connection: it returns RM cells.

use super::{Feedback, Packet};

/// The receiving end of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Receiver {
    packets: u64,
    bytes: u64,
    marked: u64,
}

impl Receiver {
    /// Handles a packet, whose cells a switch marked (EFCI) if `marked`. Returns its RM cells.
    ///
    /// The specification has the bit of the last data cell before the RM cell. Here it is that of the cells of the same packet.
    #[inline]
    pub fn on_packet(&mut self, packet: &Packet, marked: bool) -> Option<Feedback> {
        self.packets += 1;
        self.bytes += u64::from(packet.len);
        self.marked += u64::from(marked);
        (packet.rm_cells > 0).then_some(Feedback { cells: packet.rm_cells, is_congested: marked })
    }

    /// Returns the number of packets that arrived.
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the number of payload bytes that arrived.
    pub const fn delivered(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of packets that arrived marked.
    pub const fn marked(&self) -> u64 {
        self.marked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::Instant;

    #[test]
    fn rm_cells_come_back_with_the_mark_of_their_packet() {
        let mut receiver = Receiver::default();
        let packet = |rm_cells| Packet { seq: 0, sent_at: Instant::ZERO, len: 100, rm_cells };
        assert_eq!(receiver.on_packet(&packet(0), true), None);
        assert_eq!(receiver.on_packet(&packet(3), true), Some(Feedback { cells: 3, is_congested: true }));
        assert_eq!(receiver.on_packet(&packet(1), false), Some(Feedback { cells: 1, is_congested: false }));
        assert_eq!((receiver.packets(), receiver.delivered(), receiver.marked()), (3, 300, 2));
    }
}
