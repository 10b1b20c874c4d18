//! The packets inside tunnels, for the flow of the outer one.
//!
//! | protocol or port | tunnel | source |
//! | --- | --- | --- |
//! | 4, 41 | IPv4 or IPv6 in IP | RFC 2003, RFC 4213, RFC 2473 |
//! | 47 | GRE with IP, Ethernet or MPLS in it; the key distinguishes flows. Version 1 with PPP, as PPTP uses it | RFC 2784, RFC 2890, RFC 2637 |
//! | 137, Ethernet types 8847 and 8848 | MPLS; the data behind the last label is IP if it begins like it | RFC 3032, RFC 4023, RFC 4928 |
//! | UDP to 4789 or 8472 | VXLAN; the network's identifier distinguishes flows | RFC 7348 |
//! | UDP to 6081 | GENEVE, likewise | RFC 8926 |
//!
//! At most [`DEEPEST`] packets are inside each other. Unreadable and encrypted packets leave the flow to the outer packet. So does L2TP
//! (protocol 115, and UDP port 1701): RFC 3931 section 4.1 puts a cookie and a sublayer before the payload whose lengths the two ends agree on
//! and no packet has. Linux's flow dissector reads the session of such a packet, which is in no flow hash, and does not look inside either.

use crate::headers::{FlowKeys, IPV4_TYPE, IPV6_TYPE, Packet, Upper, ethernet, half, mix, network};

/// The most packets inside a packet that are looked at.
const DEEPEST: u8 = 4;

const IPV4_IN_IP: u8 = 4;
const UDP: u8 = 17;
const IPV6_IN_IP: u8 = 41;
const GRE: u8 = 47;
const MPLS_IN_IP: u8 = 137;

/// Ethernet in a tunnel, and MPLS.
const TRANSPARENT_ETHERNET: u16 = 0x6558;
const MPLS: u16 = 0x8847;
const MPLS_UPSTREAM: u16 = 0x8848;

/// The most labels of MPLS.
const MOST_LABELS: usize = 8;

/// Returns whether there may be a packet inside one of this protocol.
#[inline]
pub(crate) const fn may_be(protocol: u8) -> bool {
    matches!(protocol, UDP | IPV4_IN_IP | IPV6_IN_IP | GRE | MPLS_IN_IP)
}

/// Returns the packet inside another one, whose flow's hash is `hash`, and which is inside `depth` others.
#[inline]
pub(crate) fn inside(packet: &[u8], upper: Upper, keys: FlowKeys, hash: u64, depth: u8) -> Option<Packet> {
    const VXLAN_PORTS: [u16; 2] = [4789, 8472];
    const GENEVE_PORT: u16 = 6081;
    let Upper { protocol, at, .. } = upper;
    if protocol == UDP {
        let port = half(packet, at + 2)?;
        if !VXLAN_PORTS.contains(&port) && port != GENEVE_PORT {
            return None;
        }
        let at = at + 8;
        return if port == GENEVE_PORT {
            geneve(packet, at, keys, hash, depth)
        } else {
            vxlan(packet, at, keys, hash, depth)
        };
    }
    let kind = match protocol {
        IPV4_IN_IP => IPV4_TYPE,
        IPV6_IN_IP => IPV6_TYPE,
        GRE => return gre(packet, at, keys, hash, depth),
        _ => MPLS,
    };
    payload(packet, at, kind, keys, hash, depth)
}

/// Returns the packet behind the labels of MPLS at an offset.
pub(crate) fn mpls(packet: &[u8], at: usize, keys: FlowKeys, hash: u64, depth: u8) -> Option<Packet> {
    const LAST: u8 = 1;
    let is_last = |number: &usize| packet.get(at + number * 4 + 2).is_some_and(|byte| byte & LAST != 0);
    let last = (0..MOST_LABELS).find(is_last)?;
    let at = at + (last + 1) * 4;
    let kind = match packet.get(at)? >> 4 {
        4 => IPV4_TYPE,
        6 => IPV6_TYPE,
        _ => return None,
    };
    network(packet, at, kind, keys, hash, depth)
}

/// Returns the packet in a payload of this Ethernet type.
#[cold]
fn payload(packet: &[u8], at: usize, kind: u16, keys: FlowKeys, hash: u64, depth: u8) -> Option<Packet> {
    let depth = depth + 1;
    if depth > DEEPEST {
        return None;
    }
    match kind {
        IPV4_TYPE | IPV6_TYPE => network(packet, at, kind, keys, hash, depth),
        MPLS | MPLS_UPSTREAM => mpls(packet, at, keys, hash, depth),
        TRANSPARENT_ETHERNET => {
            let (at, kind) = ethernet(packet, at)?;
            (kind != TRANSPARENT_ETHERNET).then(|| payload(packet, at, kind, keys, hash, depth))?
        }
        _ => None,
    }
}

/// RFC 2784 section 2, RFC 2890 section 2; RFC 2637 section 4.1.
#[cold]
fn gre(packet: &[u8], at: usize, keys: FlowKeys, hash: u64, depth: u8) -> Option<Packet> {
    const CHECKSUM: u16 = 0x8000;
    const ROUTING: u16 = 0x4000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    const ACKNOWLEDGEMENT: u16 = 0x0080;
    const VERSION: u16 = 7;
    const PPP: u16 = 0x880b;
    let (flags, kind) = (half(packet, at)?, half(packet, at + 2)?);
    let length = |flag| if flags & flag == 0 { 0 } else { 4 };
    let key = at + 4 + length(CHECKSUM);
    let mut next = key + length(KEY) + length(SEQUENCE);
    let number = |at| Some(u64::from(half(packet, at)?) << 16 | u64::from(half(packet, at + 2)?));
    match flags & VERSION {
        0 if flags & ROUTING == 0 => {
            let hash = if flags & KEY == 0 { hash } else { mix(hash, number(key)?) };
            payload(packet, next, kind, keys, hash, depth)
        }
        1 if kind == PPP && flags & KEY != 0 => {
            // The lower half of the key is the call; the upper one is a length.
            let hash = mix(hash, number(key)? & 0xffff);
            next += length(ACKNOWLEDGEMENT);
            if half(packet, next)? == 0xff03 {
                next += 2;
            }
            let kind = match half(packet, next)? {
                0x0021 => IPV4_TYPE,
                0x0057 => IPV6_TYPE,
                _ => return None,
            };
            payload(packet, next + 2, kind, keys, hash, depth)
        }
        _ => None,
    }
}

/// RFC 7348 section 5.
#[cold]
fn vxlan(packet: &[u8], at: usize, keys: FlowKeys, hash: u64, depth: u8) -> Option<Packet> {
    const HAS_NETWORK: u8 = 0x08;
    let &[flags, _, _, _, a, b, c, _] = packet.get(at..)?.first_chunk()?;
    let hash = mix(hash, u64::from(u32::from_be_bytes([0, a, b, c])));
    (flags & HAS_NETWORK != 0).then(|| payload(packet, at + 8, TRANSPARENT_ETHERNET, keys, hash, depth))?
}

/// RFC 8926 section 3.4.
#[cold]
fn geneve(packet: &[u8], at: usize, keys: FlowKeys, hash: u64, depth: u8) -> Option<Packet> {
    let &[first, _, k0, k1, a, b, c, _] = packet.get(at..)?.first_chunk()?;
    let hash = mix(hash, u64::from(u32::from_be_bytes([0, a, b, c])));
    let options = usize::from(first & 0x3f) * 4;
    let kind = u16::from_be_bytes([k0, k1]);
    (first >> 6 == 0).then(|| payload(packet, at + 8 + options, kind, keys, hash, depth))?
}
