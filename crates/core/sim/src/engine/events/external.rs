//! External endpoints: packets that enter from there, and packets that leave.

use super::EventLoop;
use crate::calendar::EventHandle;
use crate::external::{ExternalEndpoint, FinishedPacket, InjectedPacket, PacketOutcome, PacketRole};
use crate::packet::Packet;
use cutline_transport::endpoint::{PackedHeader, Transport as _, WideHeader};
use cutline_transport::{tcp, udp};
use cutline_units::Instant;

impl EventLoop {
    /// Injects a packet from an external endpoint at `at`, after all events that are due until then. A time before the one to
    /// which the simulation was advanced counts as the latter.
    ///
    /// # Panics
    /// When the network does not [use external endpoints](crate::Network::use_external_endpoints), or the packet has 16 MiB or more.
    pub(in crate::engine) fn inject(&mut self, at: Instant, injected: InjectedPacket) {
        let now = at.max(self.external.clock);
        self.advance(now);
        let InjectedPacket { flow, role, size, hint, ecn, key } = injected;
        assert!(size < Packet::SIZE_LIMIT, "a packet of {size} B is too large: allowed are less than 16 MiB");
        let id = flow as usize;
        let [control, back] = self.external.routes[id];
        let (position, mut header) = match role {
            PacketRole::Segment { seq, len } => (self.parts.sending[id].route, segment(now, seq, len)),
            PacketRole::Datagram { len } => (self.parts.sending[id].route, self.datagram(now, id, len)),
            PacketRole::Control => (control, PackedHeader::WIDE),
            PacketRole::Return => (back, PackedHeader::WIDE),
        };
        if matches!(role, PacketRole::Segment { .. } | PacketRole::Datagram { .. }) {
            self.parts.note_sent(now, id, size);
        }
        let handle = self.calendar.allocate();
        self.external.put(handle, key);
        if !header.fits() {
            let data = self.parts.receiving[id].sink.data_header(header);
            self.wide_headers.put(handle, WideHeader::Data(data));
            header = PackedHeader::WIDE;
        }
        *self.calendar.payload_mut(handle) = Packet::new(header, size, position, hint, ecn);
        self.enter(now, handle, position);
    }

    pub(in crate::engine) fn take_finished(&mut self) -> impl Iterator<Item = FinishedPacket> + '_ {
        self.external.finished.drain(..)
    }

    /// Returns the time of the next event if no packet is injected before it; [`Instant::FAR_FUTURE`] without any event.
    pub(in crate::engine) fn next_event(&mut self) -> Instant {
        self.calendar.peek().unwrap_or(Instant::FAR_FUTURE)
    }

    /// Builds the header of a datagram. Datagrams are numbered in the order of their arrival.
    fn datagram(&self, now: Instant, id: usize, len: u32) -> PackedHeader {
        let seq = self.parts.sending[id].record.total();
        udp::Udp::pack_data(&udp::Datagram { seq, sent_at: now, len })
    }

    /// Handles a packet that reaches an external endpoint.
    pub(super) fn leave(&mut self, now: Instant, handle: EventHandle, index: usize) {
        let end = ExternalEndpoint::from_index(index);
        if end.is_data {
            // The external endpoint answers in place of the sink.
            let packet = self.calendar.payload(handle);
            let wide = &self.wide_headers;
            self.parts.read_data(now, packet, end.flow, || wide.data(handle));
        }
        let packet = self.calendar.payload(handle);
        let outcome = PacketOutcome::Arrived { marked: packet.is_marked(), hint: packet.hint() };
        self.external.finish(now, handle, outcome);
        self.calendar.release(handle);
    }
}

fn segment(now: Instant, seq: u64, len: u32) -> PackedHeader {
    let segment = tcp::Segment { seq, sent_at: now, len, retransmission: false, cwr: false, fin: false };
    tcp::Tcp::pack_data(&segment)
}
