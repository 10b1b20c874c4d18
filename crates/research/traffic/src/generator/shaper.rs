//! Rate control of a flow below its application (QUANTA section 5): datagrams wait in a queue of limited length, which
//! empties at a given rate, as through the shaper of a reservation.

use crate::plan::{FlowPlan, FlowTransport, RateShaper};
use cutline_transport::wire::PacketDeparture;
use cutline_units::{Bytes, Instant, Serializer};
use cutline_wire::direct::{CHECKSUM, HEADER};
use std::collections::VecDeque;

/// The header of UDP, B.
const UDP: u64 = 8;
/// The header of IPv4 without options and of IPv6, B.
const IP: [u64; 2] = [20, 40];
/// The header of an IPv6 fragment (RFC 8200 section 4.5), B. An IPv4 fragment has none of its own.
const FRAGMENT: [u64; 2] = [0, 8];

/// A datagram that has left its transport.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) packet: PacketDeparture,
    /// Time at which it left the transport.
    pub(super) since: Instant,
}

/// The queue and its clock.
#[derive(Debug)]
pub(super) struct Shaper {
    line: Serializer,
    limit: u64,
    packets: PacketSizes,
    /// Datagrams, the times at which they may leave, and their payload.
    waiting: VecDeque<(Waiting, Instant, u64)>,
    waiting_bytes: u64,
}

/// The sizes of IP packets.
#[derive(Clone, Copy, Debug)]
struct PacketSizes {
    mtu: u64,
    ip: u64,
    fragment: u64,
    /// True for frames below IP.
    is_direct: bool,
}

impl PacketSizes {
    fn new(plan: &FlowPlan, mtu: u32) -> Self {
        let version = usize::from(plan.to.is_ipv6());
        let is_direct = matches!(plan.transport, FlowTransport::Direct { .. });
        Self { mtu: mtu.into(), ip: IP[version], fragment: FRAGMENT[version], is_direct }
    }

    /// Returns the bytes on the network of a datagram with this payload: each of its packets with an IP header.
    fn of(self, payload: u64) -> u64 {
        if self.is_direct {
            let room = self.mtu.saturating_sub((HEADER + CHECKSUM) as u64).max(1);
            return payload + payload.div_ceil(room).max(1) * HEADER as u64 + CHECKSUM as u64;
        }
        let data = payload + UDP;
        if data + self.ip <= self.mtu {
            return data + self.ip;
        }
        let headers = self.ip + self.fragment;
        // A fragment has a multiple of 8 B of payload.
        let room = (self.mtu.saturating_sub(headers) / 8 * 8).max(8);
        data + data.div_ceil(room) * headers
    }
}

impl Shaper {
    pub(super) fn new(plan: &FlowPlan, options: RateShaper) -> Self {
        Self {
            line: Serializer::new(options.rate),
            limit: options.queue,
            packets: PacketSizes::new(plan, options.mtu),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
        }
    }

    /// Queues a datagram. Returns false if the queue is full.
    pub(super) fn offer(&mut self, now: Instant, packet: PacketDeparture) -> bool {
        let payload = u64::from(packet.len);
        let starts = self.line.free_at().max(now);
        if starts > now && self.waiting_bytes + payload > self.limit {
            return false;
        }
        self.line.send(now, Bytes::new(self.packets.of(payload)));
        self.waiting.push_back((Waiting { packet, since: now }, starts, payload));
        self.waiting_bytes += payload;
        true
    }

    /// Returns the next datagram if it may leave by now.
    pub(super) fn next(&mut self, now: Instant) -> Option<Waiting> {
        if self.deadline() > now {
            return None;
        }
        let (waiting, _, payload) = self.waiting.pop_front()?;
        self.waiting_bytes -= payload;
        Some(waiting)
    }

    /// Returns the time at which the next datagram may leave.
    pub(super) fn deadline(&self) -> Instant {
        self.waiting.front().map_or(Instant::FAR_FUTURE, |(_, starts, _)| *starts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_transport::wire::Extension;
    use cutline_units::Rate;

    fn shaper(queue: u64) -> Shaper {
        let packets = PacketSizes { mtu: 1500, ip: 20, fragment: 0, is_direct: false };
        Shaper {
            line: Serializer::new(Rate::from_kbps(8)),
            limit: queue,
            packets,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
        }
    }

    fn packet(seq: u64) -> PacketDeparture {
        PacketDeparture { seq, len: 972, extension: Extension::Udp(cutline_transport::udp::NoExtension) }
    }

    #[test]
    fn datagrams_leave_at_the_rate_and_an_overflow_is_refused() {
        // 972 B and 28 B of headers take a second at 8 kbit/s.
        let (mut shaper, at) = (shaper(2 * 972), |ms: u64| Instant::from_nanos(ms * 1_000_000));
        assert_eq!([0, 1, 2].map(|seq| shaper.offer(at(0), packet(seq))), [true, true, false]);
        assert_eq!(shaper.next(at(0)).map(|waiting| waiting.packet.seq), Some(0));
        assert!(shaper.next(at(999)).is_none());
        assert_eq!(shaper.deadline(), at(1000));
        assert!(shaper.offer(at(999), packet(3)), "one has left the queue");
        assert!(!shaper.offer(at(999), packet(4)), "two wait");
        let left: Vec<_> =
            [1000, 2000].map(|ms| shaper.next(at(ms)).map(|waiting| waiting.packet.seq)).into();
        assert_eq!(left, [Some(1), Some(3)]);
        assert_eq!(shaper.deadline(), Instant::FAR_FUTURE);
    }

    #[test]
    fn fragments_have_headers_too() {
        let packets = PacketSizes { mtu: 1500, ip: 20, fragment: 0, is_direct: false };
        assert_eq!([packets.of(1472), packets.of(1473)], [1500, 1481 + 2 * 20]);
        // 8200 B in six fragments of at most 1480 B.
        assert_eq!(packets.of(8192), 8200 + 6 * 20);
        let frames = PacketSizes { is_direct: true, ..packets };
        assert_eq!([frames.of(1476), frames.of(1477)], [1500, 1481 + 2 * 20]);
        let ipv6 = PacketSizes { ip: 40, fragment: 8, ..packets };
        assert_eq!([ipv6.of(1452), ipv6.of(1453)], [1500, 1461 + 2 * 48]);
    }
}
