//! A parser for the headers of a frame. It walks over the headers once and copies nothing.
//!
//! It understands Ethernet II (IEEE 802.3), up to eight VLAN tags (IEEE 802.1Q and 802.1ad), a PPPoE session (RFC 2516),
//! IPv4 (RFC 791) and IPv6 (RFC 8200) with up to eight extension headers, and the ports of TCP, UDP, UDP-Lite, SCTP and
//! DCCP, which all have the same offset. A frame whose header contradicts itself or the frame's length counts as not IP and
//! passes unchanged. No sequence of bytes makes the parser panic or read past the frame.
//!
//! The flow is a hash of addresses, protocol and ports, of the packet and of those inside it (`tunnels.rs`): so a tunnel is as many
//! flows as it carries. The parser looks into the tunnels that Linux's flow dissector looks into, and into labels of MPLS. `IPsec` has its
//! security parameter index in the place of ports; encrypted packets cannot be looked into, by `WireGuard` and others neither, so such a
//! tunnel is one flow. The hosts are those of the outer packet: the sender of a tunnel is its host. An IPv6 host is a
//! prefix of an address ([`FlowKeys::host_prefix`]).
//!
//! Only the first fragment of a packet has ports. [`FragmentFlows`] remembers its flow by the packet's identification, so that the other ones
//! belong to the same flow. Where it is not known, and where a packet has no ports, IPv6's flow label (RFC 6437) is in their place.
//! Linux takes the label instead of ports; here it is no replacement, because a sender could then give each packet a flow of its own.
//!
//! The hash is salted, so that a sender cannot choose the flow with which its packets collide. It is not a
//! cryptographic hash.
//!
//! LLC/SNAP is not understood and counts as not IP.

use crate::fragments::{Fragment, FragmentFlows};
use crate::tunnels;
use cutline_units::{Dscp, Ecn, IpVersion};
use std::ops::RangeInclusive;

/// Length of the Ethernet header without tags: two addresses and the type, bytes.
pub const ETHERNET: usize = 14;

const VLAN_TAG: usize = 4;
const MOST_TAGS: usize = 8;
/// PPPoE's header of six bytes and PPP's protocol of two.
const PPPOE: usize = 8;
const IPV4: usize = 20;
const IPV6: usize = 40;
const MOST_EXTENSIONS: usize = 8;
/// More fragments, or an offset (RFC 791 section 3.1).
const FRAGMENT_V4: u16 = 0x3fff;
/// The offset alone.
const OFFSET_V4: u16 = 0x1fff;

/// The parsed headers of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// Offset of the link's payload, after the Ethernet header and its tags, bytes.
    pub payload: u16,
    /// The IP packet in the frame; `None` if there is none, or if it is malformed.
    pub ip: Option<Ip>,
    /// Hash of the flow to which the frame belongs; 0 if it is neither IP nor MPLS.
    pub flow: u32,
    /// Hashes of the hosts that it comes from and goes to; 0 likewise.
    pub hosts: [u32; 2],
}

/// An IP packet in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip {
    /// Offset in the frame, bytes.
    pub at: u16,
    /// Version of IP.
    pub version: IpVersion,
    /// DSCP and ECN as received.
    pub traffic_class: u8,
    /// Length according to its header, header included, bytes.
    pub length: u32,
}

/// Keys that distinguish flows and hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowKeys {
    /// The salt of the hashes.
    pub salt: u64,
    /// The leading bits of an IPv6 address that name a host, within [`FlowKeys::HOST_PREFIXES`].
    pub host_prefix: u8,
}

impl FlowKeys {
    /// The allowed values of [`FlowKeys::host_prefix`].
    pub const HOST_PREFIXES: RangeInclusive<u8> = 1..=128;
    /// Default of `host_prefix`: a host may choose any address of a /64 (RFC 4291 section 2.5.4, RFC 8981).
    pub const HOST_PREFIX: u8 = 64;

    /// Returns the default keys with this salt.
    pub const fn new(salt: u64) -> Self {
        Self { salt, host_prefix: Self::HOST_PREFIX }
    }

    /// The two halves of an IPv6 address, as far as they name a host.
    #[inline]
    const fn host(self, [high, low]: [u64; 2]) -> [u64; 2] {
        const fn leading(bits: u8) -> u64 {
            if bits == 0 { 0 } else { !0 << (64 - bits) }
        }
        let prefix = self.host_prefix;
        if prefix <= 64 { [high & leading(prefix), 0] } else { [high, low & leading(prefix - 64)] }
    }
}

/// An IP packet with its flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    ip: Ip,
    /// The hash of its flow, that of the packets in it included.
    pub(crate) hash: u64,
    hosts: [u32; 2],
    pub(crate) fragment: Option<Fragment>,
}

impl Headers {
    /// Parses a frame's headers; `salt` enters the hashes.
    #[inline]
    pub fn parse(frame: &[u8], salt: u64) -> Self {
        Self::walk(frame, FlowKeys::new(salt)).0
    }

    /// Parses a frame's headers. Fragments belong to the flow of their first one, which `fragments` remembers.
    #[inline]
    pub fn follow(frame: &[u8], keys: FlowKeys, fragments: &mut FragmentFlows) -> Self {
        let (mut headers, fragment) = Self::walk(frame, keys);
        if let Some(fragment) = fragment {
            headers.flow = fragments.flow(fragment, headers.flow);
        }
        headers
    }

    #[inline]
    fn walk(frame: &[u8], keys: FlowKeys) -> (Self, Option<Fragment>) {
        let Some((payload, kind)) = ethernet(frame, 0) else { return (Self::default(), None) };
        let found = match kind {
            IPV4_TYPE | IPV6_TYPE => Some((payload, kind)),
            0x8864 => pppoe(frame, payload),
            0x8847 | 0x8848 => return labelled(frame, payload, keys),
            _ => None,
        };
        let packet = found.and_then(|(at, kind)| network(frame, at, kind, keys, keys.salt, 0));
        let payload = payload as u16;
        match packet {
            Some(Packet { ip, hash, hosts, fragment }) => {
                (Self { payload, ip: Some(ip), flow: fold(hash), hosts }, fragment)
            }
            None => (Self { payload, ..Self::default() }, None),
        }
    }
}

/// The Ethernet types of IPv4 and IPv6.
pub(crate) const IPV4_TYPE: u16 = 0x0800;
pub(crate) const IPV6_TYPE: u16 = 0x86dd;

/// A frame of MPLS. The IP packet in it distinguishes flows. It is not changed, because it may only look like an IP packet.
#[cold]
fn labelled(frame: &[u8], payload: usize, keys: FlowKeys) -> (Headers, Option<Fragment>) {
    let empty = Headers { payload: payload as u16, ..Headers::default() };
    match tunnels::mpls(frame, payload, keys, keys.salt, 1) {
        Some(Packet { hash, hosts, fragment, .. }) => {
            (Headers { flow: fold(hash), hosts, ..empty }, fragment)
        }
        None => (empty, None),
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
pub fn transport(frame: &[u8], ip: Ip) -> Option<(u8, u32)> {
    let (at, end) = (usize::from(ip.at), usize::from(ip.at) + ip.length as usize);
    let packet = frame.get(..end)?;
    let (protocol, ports) = match ip.version {
        IpVersion::V4 => {
            let header = packet.get(at..at + IPV4)?;
            let ports = if half(header, 6)? & FRAGMENT_V4 != 0 {
                0
            } else {
                let at = at + usize::from(header[0] & 0x0f) * 4;
                if is_encrypted(header[9]) { 0 } else { ports(packet, at, header[9]) }
            };
            (header[9], ports)
        }
        IpVersion::V6 => {
            let Upper { protocol, ports, fragment, .. } =
                upper_layer(packet, at + IPV6, *packet.get(at + 6)?);
            (protocol, if fragment.is_some() || is_encrypted(protocol) { 0 } else { ports })
        }
    };
    Some((protocol, ports as u32))
}

/// Returns the offset of the payload of an Ethernet frame at an offset, and its type.
#[inline]
pub(crate) fn ethernet(frame: &[u8], at: usize) -> Option<(usize, u16)> {
    let mut at = at + ETHERNET;
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
        0x0021 => IPV4_TYPE,
        0x0057 => IPV6_TYPE,
        _ => return None,
    };
    (half(frame, at)? == VERSION_TYPE_AND_CODE).then_some((at + PPPOE, kind))
}

/// Parses an IP packet at an offset, whose flow continues `hash`. It is inside `depth` others; one inside of others may end outside of the
/// frame, because the outer one is a fragment.
#[inline]
pub(crate) fn network(
    frame: &[u8],
    at: usize,
    kind: u16,
    keys: FlowKeys,
    hash: u64,
    depth: u8,
) -> Option<Packet> {
    if kind == IPV4_TYPE { ipv4(frame, at, keys, hash, depth) } else { ipv6(frame, at, keys, hash, depth) }
}

#[inline]
fn ipv4(frame: &[u8], at: usize, keys: FlowKeys, hash: u64, depth: u8) -> Option<Packet> {
    let header = frame.get(at..at + IPV4)?;
    let header_len = usize::from(header[0] & 0x0f) * 4;
    let length = usize::from(half(header, 2)?);
    let is_whole = depth > 0 || at + length <= frame.len();
    if header[0] >> 4 != 4 || header_len < IPV4 || length < header_len || !is_whole {
        return None;
    }
    let (protocol, fragments) = (header[9], half(header, 6)? & FRAGMENT_V4);
    let bytes = &frame[..(at + length).min(frame.len())];
    let addresses = mix(hash, word(header, 12));
    let upper = Upper {
        protocol,
        at: at + header_len,
        ports: ports(bytes, at + header_len, protocol),
        fragment: (fragments != 0)
            .then(|| (u32::from(half(header, 4).unwrap_or_default()), fragments & OFFSET_V4 == 0)),
    };
    let (hash, fragment) = flow(bytes, addresses, upper, 0, keys, depth);
    let ip = Ip { at: at as u16, version: IpVersion::V4, traffic_class: header[1], length: length as u32 };
    let hosts = [12, 16].map(|at| fold(mix(keys.salt, word(header, at - 4) & 0xffff_ffff)));
    Some(Packet { ip, hash, hosts, fragment })
}

#[inline]
fn ipv6(frame: &[u8], at: usize, keys: FlowKeys, hash: u64, depth: u8) -> Option<Packet> {
    let header = frame.get(at..at + IPV6)?;
    let length = IPV6 + usize::from(half(header, 4)?);
    if header[0] >> 4 != 6 || (depth == 0 && at + length > frame.len()) {
        return None;
    }
    let traffic_class = header[0] << 4 | header[1] >> 4;
    let bytes = &frame[..(at + length).min(frame.len())];
    let upper = upper_layer(bytes, at + IPV6, header[6]);
    let [source, destination] = [8, 24].map(|at| [word(header, at), word(header, at + 8)]);
    let addresses = [source[0], source[1], destination[0], destination[1]].into_iter().fold(hash, mix);
    let label = word(header, 0) >> 32 & 0xf_ffff;
    let (hash, fragment) = flow(bytes, addresses, upper, label, keys, depth);
    let ip = Ip { at: at as u16, version: IpVersion::V6, traffic_class, length: length as u32 };
    let hosts = [source, destination].map(|address| {
        let [high, low] = keys.host(address);
        fold(mix(mix(keys.salt, high), low))
    });
    Some(Packet { ip, hash, hosts, fragment })
}

/// Header that follows the IP header and its extensions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Upper {
    pub(crate) protocol: u8,
    /// Offset of the header in the frame.
    pub(crate) at: usize,
    /// Source and destination port, or the fields in their place; 0 if there is nothing.
    ports: u64,
    /// The identification of a fragment, and whether it is the first one.
    fragment: Option<(u32, bool)>,
}

/// Returns the hash of a packet's flow, and the packet's place among fragments. `addresses` is the hash of its addresses.
#[inline]
fn flow(
    packet: &[u8],
    addresses: u64,
    upper: Upper,
    label: u64,
    keys: FlowKeys,
    depth: u8,
) -> (u64, Option<Fragment>) {
    let Upper { protocol, mut ports, fragment, .. } = upper;
    let is_later = fragment.is_some_and(|(_, is_first)| !is_first);
    if is_later {
        ports = 0;
    }
    if ports == 0 {
        // Ports have 32 bits, the label is above them.
        ports = label << 40;
    }
    let hash = mix(addresses, u64::from(protocol) << 32 | ports);
    let of_packet = |(id, is_first): (u32, bool)| Fragment {
        key: mix(addresses, u64::from(id) << 8 | u64::from(protocol)),
        is_first,
    };
    let fragment = fragment.map(of_packet);
    if !is_later
        && tunnels::may_be(protocol)
        && let Some(inner) = tunnels::inside(packet, upper, keys, hash, depth)
    {
        return (inner.hash, fragment.or(inner.fragment));
    }
    (hash, fragment)
}

/// Returns the protocol and the bytes behind the extension headers (RFC 8200 section 4).
#[inline]
fn upper_layer(packet: &[u8], at: usize, next: u8) -> Upper {
    const FRAGMENT: u8 = 44;
    const OFFSET_V6: u16 = 0xfff8;
    const MORE: u16 = 1;
    let (mut at, mut next, mut fragment) = (at, next, None);
    for _ in 0..MOST_EXTENSIONS {
        let is_extension = matches!(next, 0 | 43 | 60 | 135);
        if next == FRAGMENT && fragment.is_none() {
            let Some(&[following, _, o0, o1, a, b, c, d]) =
                packet.get(at..).and_then(|rest| rest.first_chunk())
            else {
                let protocol = packet.get(at).copied().unwrap_or(next);
                return Upper { protocol, at, ports: 0, fragment: Some((0, false)) };
            };
            let place = u16::from_be_bytes([o0, o1]);
            let is_first = place & OFFSET_V6 == 0;
            // A packet in a single fragment (RFC 6946) is whole.
            if !is_first || place & MORE != 0 {
                fragment = Some((u32::from_be_bytes([a, b, c, d]), is_first));
            }
            (at, next) = (at + 8, following);
            if !is_first {
                return Upper { protocol: next, at, ports: 0, fragment };
            }
            continue;
        }
        let Some(&[following, units]) =
            packet.get(at..at + 2).filter(|_| is_extension).and_then(|two| two.first_chunk())
        else {
            break;
        };
        at += 8 + usize::from(units) * 8;
        next = following;
    }
    Upper { protocol: next, at, ports: ports(packet, at, next), fragment }
}

const ESP: u8 = 50;
const AH: u8 = 51;

/// Returns whether the fields in the place of ports are the index of `IPsec`.
const fn is_encrypted(protocol: u8) -> bool {
    matches!(protocol, ESP | AH)
}

/// Returns the source and destination port, or `IPsec`'s security parameter index (RFC 4303 section 2, RFC 4302 section 2); 0 if there are
/// none.
#[inline]
fn ports(packet: &[u8], at: usize, protocol: u8) -> u64 {
    const TCP: u8 = 6;
    const UDP: u8 = 17;
    const DCCP: u8 = 33;
    const SCTP: u8 = 132;
    const UDP_LITE: u8 = 136;
    let has_ports = matches!(protocol, TCP | UDP | DCCP | SCTP | UDP_LITE | ESP | AH);
    let at = if protocol == AH { at + 4 } else { at };
    let four = packet.get(at..).and_then(|rest| rest.first_chunk()).filter(|_| has_ports);
    four.map_or(0, |four| u64::from(u32::from_be_bytes(*four)))
}

/// Returns the two bytes at an offset.
#[inline]
pub(crate) fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|two| u16::from_be_bytes(*two))
}

/// Returns the eight bytes at an offset, which must exist.
#[inline]
fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(*bytes[at..].first_chunk().expect("the header's length has been checked"))
}

/// One step of the hash: every bit of `hash` and `word` affects the upper half of the result.
#[inline]
pub const fn mix(hash: u64, word: u64) -> u64 {
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
