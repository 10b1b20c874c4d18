//! A parser for the headers of a frame. It walks over the headers once and copies nothing.
//!
//! It understands Ethernet II (IEEE 802.3), up to two VLAN tags (IEEE 802.1Q and 802.1ad), a PPPoE session (RFC 2516),
//! IPv4 (RFC 791) and IPv6 (RFC 8200) with up to eight extension headers, and the ports of TCP, UDP, UDP-Lite, SCTP and
//! DCCP, which all have the same offset. A frame whose header contradicts itself or the frame's length counts as not IP and
//! passes unchanged. No sequence of bytes makes the parser panic or read past the frame.
//!
//! The flow is a hash of addresses, protocol and ports. Fragments are hashed without ports, because only the first fragment
//! has them. The hash is salted, so that a sender cannot choose the flow with which its packets collide. It is not a
//! cryptographic hash.
//!
//! More than two tags, MPLS, the inner packets of tunnels, and LLC/SNAP are not understood and count as not IP.

use cutline_units::{Dscp, Ecn};

/// Length of the Ethernet header without tags: two addresses and the type, bytes.
pub const ETHERNET: usize = 14;

const VLAN_TAG: usize = 4;
const MOST_TAGS: usize = 2;
/// PPPoE's header of six bytes and PPP's protocol of two.
const PPPOE: usize = 8;
const IPV4: usize = 20;
const IPV6: usize = 40;
const MOST_EXTENSIONS: usize = 8;
/// More fragments, or an offset (RFC 791 section 3.1).
const FRAGMENT_V4: u16 = 0x3fff;

/// The parsed headers of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// Offset of the link's payload, after the Ethernet header and its tags, bytes.
    pub payload: u16,
    /// The IP packet in the frame; `None` if there is none, or if it is malformed.
    pub ip: Option<Ip>,
}

/// An IP packet in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip {
    /// Offset in the frame, bytes.
    pub at: u16,
    /// Version of IP.
    pub version: Version,
    /// DSCP and ECN as received.
    pub traffic_class: u8,
    /// Length according to its header, header included, bytes.
    pub length: u32,
    /// Hash of the flow to which it belongs.
    pub flow: u32,
    /// Hashes of the hosts that it comes from and goes to.
    pub hosts: [u32; 2],
}

/// The version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// RFC 791.
    V4,
    /// RFC 8200.
    V6,
}

impl Headers {
    /// Parses a frame's headers; `salt` enters the flow's hash.
    #[inline]
    pub fn parse(frame: &[u8], salt: u64) -> Self {
        let Some((payload, kind)) = ethernet(frame) else { return Self::default() };
        let found = match kind {
            0x0800 | 0x86dd => Some((payload, kind)),
            0x8864 => pppoe(frame, payload),
            _ => None,
        };
        let ip = found.and_then(|(at, kind)| match kind {
            0x0800 => ipv4(frame, at, salt),
            _ => ipv6(frame, at, salt),
        });
        Self { payload: payload as u16, ip }
    }
}

impl Ip {
    /// Returns the code point.
    pub const fn dscp(&self) -> Dscp {
        Dscp::from_traffic_class(self.traffic_class)
    }

    /// Returns the ECN field.
    pub const fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.traffic_class)
    }
}

/// Returns the protocol above IP, and the source and destination port; the ports are 0 if there are none, and in a fragment.
#[inline]
pub(crate) fn transport(frame: &[u8], ip: &Ip) -> Option<(u8, u32)> {
    let (at, end) = (usize::from(ip.at), usize::from(ip.at) + ip.length as usize);
    let packet = frame.get(..end)?;
    let (protocol, ports) = match ip.version {
        Version::V4 => {
            let header = packet.get(at..at + IPV4)?;
            let ports = if half(header, 6)? & FRAGMENT_V4 != 0 {
                0
            } else {
                ports(packet, at + usize::from(header[0] & 0x0f) * 4, header[9])
            };
            (header[9], ports)
        }
        Version::V6 => upper_layer(packet, at + IPV6, *packet.get(at + 6)?),
    };
    Some((protocol, ports as u32))
}

/// Returns the offset of the link's payload, and its type.
#[inline]
fn ethernet(frame: &[u8]) -> Option<(usize, u16)> {
    let mut at = ETHERNET;
    let mut kind = half(frame, at - 2)?;
    for _ in 0..MOST_TAGS {
        if !matches!(kind, 0x8100 | 0x88a8) {
            break;
        }
        at += VLAN_TAG;
        kind = half(frame, at - 2)?;
    }
    Some((at, kind))
}

/// Returns the offset and the Ethernet type of the IP packet in a PPPoE session's frame (RFC 2516 section 4; RFC 1332,
/// RFC 5072).
#[cold]
fn pppoe(frame: &[u8], at: usize) -> Option<(usize, u16)> {
    const VERSION_TYPE_AND_CODE: u16 = 0x1100;
    let kind = match half(frame, at + PPPOE - 2)? {
        0x0021 => 0x0800,
        0x0057 => 0x86dd,
        _ => return None,
    };
    (half(frame, at)? == VERSION_TYPE_AND_CODE).then_some((at + PPPOE, kind))
}

#[inline]
fn ipv4(frame: &[u8], at: usize, salt: u64) -> Option<Ip> {
    let header = frame.get(at..at + IPV4)?;
    let header_len = usize::from(header[0] & 0x0f) * 4;
    let length = usize::from(half(header, 2)?);
    let whole =
        header[0] >> 4 == 4 && header_len >= IPV4 && length >= header_len && at + length <= frame.len();
    if !whole {
        return None;
    }
    let fragment = half(header, 6)? & FRAGMENT_V4 != 0;
    let protocol = header[9];
    let end = at + length;
    let ports = if fragment { 0 } else { ports(&frame[..end], at + header_len, protocol) };
    let hash = mix(mix(salt, word(header, 12)), u64::from(protocol) << 32 | ports);
    Some(Ip {
        at: at as u16,
        version: Version::V4,
        traffic_class: header[1],
        length: length as u32,
        flow: fold(hash),
        hosts: [12, 16].map(|at| fold(mix(salt, word(header, at - 4) & 0xffff_ffff))),
    })
}

#[inline]
fn ipv6(frame: &[u8], at: usize, salt: u64) -> Option<Ip> {
    let header = frame.get(at..at + IPV6)?;
    let length = IPV6 + usize::from(half(header, 4)?);
    if header[0] >> 4 != 6 || at + length > frame.len() {
        return None;
    }
    let traffic_class = header[0] << 4 | header[1] >> 4;
    let (protocol, ports) = upper_layer(&frame[..at + length], at + IPV6, header[6]);
    let [source, destination] = [8, 24].map(|at| [word(header, at), word(header, at + 8)]);
    let hash = [source[0], source[1], destination[0], destination[1]].into_iter().fold(salt, mix);
    let hash = mix(hash, u64::from(protocol) << 32 | ports);
    Some(Ip {
        at: at as u16,
        version: Version::V6,
        traffic_class,
        length: length as u32,
        flow: fold(hash),
        hosts: [source, destination].map(|[high, low]| fold(mix(mix(salt, high), low))),
    })
}

/// Returns the transport's protocol and ports behind the extension headers (RFC 8200 section 4). A fragment has no ports.
#[inline]
fn upper_layer(packet: &[u8], at: usize, next: u8) -> (u8, u64) {
    const FRAGMENT: u8 = 44;
    let (mut at, mut next) = (at, next);
    for _ in 0..MOST_EXTENSIONS {
        let is_extension = matches!(next, 0 | 43 | 60 | 135);
        if next == FRAGMENT {
            return (packet.get(at).copied().unwrap_or(next), 0);
        }
        let Some(&[following, units]) =
            packet.get(at..at + 2).filter(|_| is_extension).and_then(|two| two.first_chunk())
        else {
            break;
        };
        at += 8 + usize::from(units) * 8;
        next = following;
    }
    (next, ports(packet, at, next))
}

/// Returns the source and destination port; 0 if there are none.
#[inline]
fn ports(packet: &[u8], at: usize, protocol: u8) -> u64 {
    const TCP: u8 = 6;
    const UDP: u8 = 17;
    const DCCP: u8 = 33;
    const SCTP: u8 = 132;
    const UDP_LITE: u8 = 136;
    let has_ports = matches!(protocol, TCP | UDP | DCCP | SCTP | UDP_LITE);
    let four = packet.get(at..).and_then(|rest| rest.first_chunk()).filter(|_| has_ports);
    four.map_or(0, |four| u64::from(u32::from_be_bytes(*four)))
}

/// Returns the two bytes at an offset.
#[inline]
fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|two| u16::from_be_bytes(*two))
}

/// Returns the eight bytes at an offset, which must exist.
#[inline]
fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(*bytes[at..].first_chunk().expect("the header's length has been checked"))
}

/// One step of the hash: every bit of `hash` and `word` affects the upper half of the result.
#[inline]
pub(crate) const fn mix(hash: u64, word: u64) -> u64 {
    // 2^64 divided by the golden ratio (Knuth, The Art of Computer Programming, volume 3, section 6.4).
    let product = (hash ^ word) as u128 * 0x9e37_79b9_7f4a_7c15;
    (product as u64 ^ (product >> 64) as u64).wrapping_add(hash.rotate_left(23))
}

/// Combines the two halves of the hash.
#[inline]
const fn fold(hash: u64) -> u32 {
    let mixed = mix(hash, 0x2545_f491_4f6c_dd1d);
    (mixed ^ mixed >> 32) as u32
}
