//! Every packet of TCP and UDP that a namespace's loopback carries, and its mark.

use cutline_sys::namespace::Namespace;
use cutline_sys::packet::{self, Ring};
use rustix::fd::OwnedFd;
use std::collections::BTreeMap;

/// A packet of TCP or UDP that was captured.
#[derive(Clone, Copy, Debug)]
pub struct Captured {
    /// True if the packet is of IPv6.
    pub is_v6: bool,
    /// True if the packet is a segment of TCP, and no datagram of UDP.
    pub is_tcp: bool,
    /// Its code point.
    pub dscp: u8,
    /// Source and destination.
    pub ports: [u16; 2],
    /// Of TCP's header: [`SYN`] and the others.
    pub tcp_flags: u8,
    /// True if there is anything behind the headers.
    pub has_payload: bool,
    /// The first bytes behind the headers; zeros where there are fewer.
    pub begins: [u8; 4],
}

/// The flags of TCP's header.
pub const FIN: u8 = 1;
/// The flags of TCP's header.
pub const SYN: u8 = 2;
/// The flags of TCP's header.
pub const RST: u8 = 4;
/// The flags of TCP's header.
pub const ACK: u8 = 16;

impl Captured {
    /// Reads a frame of the loopback: an Ethernet header, IP without options, TCP or UDP.
    fn read(frame: &[u8]) -> Option<Self> {
        let (head, packet) = frame.split_at_checked(14)?;
        let half = |bytes: &[u8], at: usize| Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
        let is_v6 = match half(head, 12)? {
            0x0800 => false,
            0x86dd => true,
            _ => return None,
        };
        let (traffic_class, protocol, segment) = if is_v6 {
            ((half(packet, 0)? >> 4) as u8, *packet.get(6)?, packet.get(40..)?)
        } else {
            assert!(has_right_checksum(packet.get(..20)?), "{packet:x?}");
            (*packet.get(1)?, *packet.get(9)?, packet.get(usize::from(packet.first()? & 15) * 4..)?)
        };
        let is_tcp = match protocol {
            6 => true,
            17 => false,
            _ => return None,
        };
        let header = if is_tcp { usize::from(segment.get(12)? >> 4) * 4 } else { 8 };
        let payload = segment.get(header..).unwrap_or_default();
        Some(Self {
            is_v6,
            is_tcp,
            dscp: traffic_class >> 2,
            ports: [half(segment, 0)?, half(segment, 2)?],
            tcp_flags: if is_tcp { *segment.get(13)? } else { 0 },
            has_payload: !payload.is_empty(),
            begins: std::array::from_fn(|i| payload.get(i).copied().unwrap_or_default()),
        })
    }
}

/// Returns whether the words of an IPv4 header add up to all ones, carries included (RFC 1071).
fn has_right_checksum(header: &[u8]) -> bool {
    let (words, _) = header.as_chunks::<2>();
    let sum: u32 = words.iter().map(|word| u32::from(u16::from_be_bytes(*word))).sum();
    (sum & 0xffff) + (sum >> 16) == 0xffff
}

/// Captures the packets of a namespace's loopback.
pub struct Capture {
    socket: OwnedFd,
    ring: Ring,
}

impl Capture {
    /// Begins to capture.
    ///
    /// # Panics
    /// When the process may not.
    pub fn start(namespace: &Namespace) -> Self {
        let begin = || {
            let socket = packet::open().expect("a packet socket");
            let ring = Ring::new(&socket, 300, 30_000).expect("a ring");
            packet::bind(&socket, 1).expect("the loopback");
            Self { socket, ring }
        };
        namespace.within(begin).expect("the namespace is there")
    }

    /// Ends, and returns the packets. The loopback shows each as it is sent and as it arrives.
    ///
    /// # Panics
    /// When there were more than there is room for.
    pub fn packets(mut self) -> Vec<Captured> {
        let mut packets = Vec::new();
        while self.ring.receive(|frame| packets.extend(Captured::read(frame.bytes))) {}
        let lost = packet::take_drops(&self.socket).expect("the kernel counts");
        assert_eq!(lost, 0, "the ring has room for every packet");
        packets
    }
}

/// Fails if a packet has another code point.
///
/// # Panics
/// When one has; the message describes the first.
#[track_caller]
pub fn check_all(packets: &[Captured], dscp: u8) {
    let other: Vec<_> = packets.iter().filter(|packet| packet.dscp != dscp).collect();
    assert!(
        other.is_empty(),
        "{} of {} packets have another mark, first {:?}",
        other.len(),
        packets.len(),
        other[0]
    );
}

/// Returns the number of packets of each kind, of IPv4 and of IPv6.
pub fn kinds(packets: &[Captured]) -> BTreeMap<(&'static str, bool), usize> {
    let mut kinds = BTreeMap::new();
    for packet in packets {
        let names = if packet.is_tcp {
            let flag = |flag, name| (packet.tcp_flags & flag != 0).then_some(name);
            let of_flags = [(SYN, "SYN"), (FIN, "FIN"), (RST, "RST"), (ACK, "ACK")];
            let mut names: Vec<_> = of_flags.map(|(bit, name)| flag(bit, name)).to_vec();
            names.push((packet.tcp_flags & (SYN | ACK) == SYN | ACK).then_some("SYN-ACK"));
            names.push(packet.has_payload.then_some("data"));
            names
        } else {
            vec![Some("datagram")]
        };
        for name in names.into_iter().flatten() {
            *kinds.entry((name, packet.is_v6)).or_default() += 1;
        }
    }
    kinds
}

/// Fails if there are fewer packets of a kind than these, of either protocol of IP.
///
/// # Panics
/// When there are.
#[track_caller]
pub fn has_all_kinds<const N: usize>(packets: &[Captured], least: [(&'static str, usize); N]) {
    let kinds = kinds(packets);
    for is_v6 in [false, true] {
        for (kind, least) in least {
            let count = kinds.get(&(kind, is_v6)).copied().unwrap_or(0);
            assert!(count >= least, "{count} packets of kind {kind}, IPv6 {is_v6}: {kinds:?}");
        }
    }
}
