//! The two ends of a flow that are outside: packets that come from there, and those that leave.

use super::Simulation;
use crate::calendar::Handle;
use crate::outside::{Fate, Injected, Left, OutsideEnd, Part};
use crate::packet::Packet;
use cutline_transport::endpoint::{PackedHeader, Transport as _};
use cutline_transport::{tcp, udp};
use cutline_units::{Duration, Instant};

impl Simulation {
    /// A packet comes from outside at `at`; what is due until then happens first. Times that lie before one that the
    /// simulation was advanced to count as that.
    ///
    /// # Panics
    /// When the network's ends are not [outside](crate::Network::put_ends_outside).
    pub fn inject(&mut self, at: Instant, injected: Injected) {
        let now = at.max(self.outside.clock);
        self.advance(now);
        let Injected { flow, part, size, hint, ecn, key } = injected;
        let id = flow as usize;
        let [control, back] = self.outside.routes[id];
        let (position, header) = match part {
            Part::Segment { seq, len } => (self.sending[id].route, segment(now, seq, len)),
            Part::Datagram { len } => (self.sending[id].route, self.datagram(now, id, len)),
            Part::Control => (control, None),
            Part::Return => (back, None),
        };
        if matches!(part, Part::Segment { .. } | Part::Datagram { .. }) {
            self.note_sent(now, id, size);
        }
        let handle = self.calendar.allocate();
        self.outside.put(handle, key);
        *self.calendar.payload_mut(handle) =
            Packet { queued: Duration::ZERO, header, size, position, hint, ecn, marked: false };
        self.enter(now, handle, position);
    }

    /// What has left the network since this was last asked, in the order of time.
    pub fn take_left(&mut self) -> impl Iterator<Item = Left> + '_ {
        self.outside.left.drain(..)
    }

    /// When something happens next, should nothing come from outside before; [`Instant::FAR_FUTURE`] if nothing does.
    pub fn next_event(&mut self) -> Instant {
        self.calendar.peek().unwrap_or(Instant::FAR_FUTURE)
    }

    /// Datagrams are numbered as they come.
    fn datagram(&self, now: Instant, id: usize, len: u32) -> Option<PackedHeader> {
        let seq = self.sending[id].record.total();
        udp::Udp::pack_data(&udp::Datagram { seq, sent_at: now, len })
    }

    /// A packet reaches an end outside.
    pub(super) fn leave(&mut self, now: Instant, handle: Handle, index: usize) {
        let end = OutsideEnd::of_index(index);
        if end.is_data {
            // What the sink would answer comes from outside.
            self.read_data(now, handle, end.flow);
        }
        let packet = self.calendar.payload(handle);
        let fate = Fate::Arrived { marked: packet.marked, hint: packet.hint };
        self.outside.leave(now, handle, fate);
        self.calendar.release(handle);
    }
}

fn segment(now: Instant, seq: u64, len: u32) -> Option<PackedHeader> {
    let segment = tcp::Segment { seq, sent_at: now, len, retransmission: false, cwr: false, fin: false };
    tcp::Tcp::pack_data(&segment)
}
