//! Frames with wrong lengths and types, of every class that we know, at random.

use super::plan::Assault;

/// To the second host's network; the source is no host.
const ADDRESSES: [u8; 12] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
/// The longest frame that the interfaces carry.
const LONGEST: usize = 1514;

/// Returns a frame with an Ethernet type and a payload.
fn frame(kind: [u8; 2], rest: &[u8]) -> Vec<u8> {
    let mut frame = [&ADDRESSES[..], &kind, rest].concat();
    frame.truncate(LONGEST);
    frame
}

fn noise(assault: &mut Assault, length: usize) -> Vec<u8> {
    (0..length).map(|_| assault.byte()).collect()
}

/// A believable packet: IPv4 or IPv6 with UDP or TCP, perhaps behind tags, perhaps in PPPoE.
fn packet(assault: &mut Assault) -> Vec<u8> {
    let protocol = assault.one_of(&[6, 17]);
    let length = 20 + assault.below(60);
    let payload = noise(assault, length);
    let traffic_class = assault.byte();
    let (kind, head) = if assault.below(2) == 0 {
        (IPV4, ipv4(5, traffic_class, 20 + payload.len(), 0, protocol))
    } else {
        (IPV6, ipv6(traffic_class, payload.len(), protocol))
    };
    let rest = [head, payload].concat();
    match assault.below(4) {
        0 => frame([0x81, 0x00], &[&[0, 1], &kind[..], &rest].concat()),
        1 => frame([0x88, 0xa8], &[&[0, 1, 0x81, 0x00, 0, 2], &kind[..], &rest].concat()),
        2 => {
            let (code, length) =
                (if kind == IPV4 { 0x21 } else { 0x57 }, (rest.len() as u16 + 2).to_be_bytes());
            frame([0x88, 0x64], &[&[0x11, 0, 0, 1, length[0], length[1], 0, code], &rest[..]].concat())
        }
        _ => frame(kind, &rest),
    }
}

fn ipv4(words: u8, traffic_class: u8, length: usize, fragment: u16, protocol: u8) -> Vec<u8> {
    let (length, fragment) = ((length as u16).to_be_bytes(), fragment.to_be_bytes());
    let head =
        [0x40 | words, traffic_class, length[0], length[1], 0, 1, fragment[0], fragment[1], 64, protocol];
    [&head[..], &[0, 0, 10, 9, 0, 1, 10, 9, 0, 2]].concat()
}

fn ipv6(traffic_class: u8, length: usize, next: u8) -> Vec<u8> {
    let length = (length as u16).to_be_bytes();
    let head = [0x60 | traffic_class >> 4, traffic_class << 4, 0, 0, length[0], length[1], next, 64];
    let [mut from, mut to] = [[0; 16]; 2];
    (from[0], from[1], from[15]) = (0xfd, 0x09, 1);
    (to[0], to[1], to[15]) = (0xfd, 0x09, 2);
    [&head[..], &from, &to].concat()
}

/// A believable packet that ends anywhere, from its Ethernet type on.
pub fn truncated(assault: &mut Assault) -> Vec<u8> {
    let mut frame = packet(assault);
    frame.truncate(14 + assault.below(frame.len() - 13));
    frame
}

/// A believable packet with a few bytes changed.
pub fn mutated(assault: &mut Assault) -> Vec<u8> {
    let mut frame = packet(assault);
    for _ in 0..=assault.below(4) {
        let at = 12 + assault.below((frame.len() - 12).min(60));
        frame[at] = assault.byte();
    }
    frame
}

/// An IPv4 header of any length, with options that end anywhere, and a total length that need not fit.
pub fn options(assault: &mut Assault) -> Vec<u8> {
    let words = assault.below(16) as u8;
    let length = assault.one_of(&[0, 19, 20, 59, 60, 100, 1500, 65_535]);
    let [traffic_class, protocol] = [assault.byte(), assault.byte()];
    let mut head = ipv4(words, traffic_class, length, 0, protocol);
    while head.len() < 4 * usize::from(words) {
        // Router alert, record route, timestamp, no operation, end; with lengths of their own.
        head.extend([assault.one_of(&[148, 7, 68, 1, 0]), assault.one_of(&[0, 1, 4, 40, 255])]);
    }
    let payload = assault.below(200);
    frame(IPV4, &[head, noise(assault, payload)].concat())
}

/// A chain of IPv6 extension headers, longer than any parser reads, that ends anywhere.
pub fn extension_chains(assault: &mut Assault) -> Vec<u8> {
    const HEADERS: [u8; 8] = [0, 43, 44, 51, 60, 135, 139, 140];
    let mut rest = Vec::new();
    let first = assault.one_of(&HEADERS);
    for _ in 0..assault.below(180) {
        let (next, units) = (assault.one_of(&HEADERS), assault.one_of(&[0, 0, 0, 1, 30, 255]));
        rest.extend([next, units]);
        let length = assault.one_of(&[6, 6, 6, 14, 5, 0]);
        rest.extend(noise(assault, length));
    }
    let claimed = assault.one_of(&[rest.len(), 0, 8, 65_535]);
    let traffic_class = assault.byte();
    frame(IPV6, &[ipv6(traffic_class, claimed, first), rest].concat())
}

/// Tags within tags within tags, and perhaps a packet in them.
pub fn tags(assault: &mut Assault) -> Vec<u8> {
    let inner = packet(assault);
    let mut rest = Vec::new();
    let outer = assault.one_of(&[[0x81, 0x00], [0x88, 0xa8], [0x91, 0x00]]);
    for _ in 0..assault.below(370) {
        rest.extend([assault.byte(), assault.byte()]);
        rest.extend(assault.one_of(&[[0x81, 0x00], [0x88, 0xa8], [0x91, 0x00], [0x88, 0x47]]));
    }
    rest.extend([0, 1]);
    rest.extend(&inner[12..12 + assault.below(inner.len() - 11)]);
    frame(outer, &rest)
}

/// Fragments that begin nowhere, overlap, go beyond the longest packet, or are empty.
pub fn fragments(assault: &mut Assault) -> Vec<u8> {
    let offset = assault.one_of(&[0, 1, 2, 185, 0x1ffe, 0x1fff]);
    let flags = assault.one_of(&[0, 1]);
    let length = assault.one_of(&[0, 1, 7, 8, 100, 1400]);
    let payload = noise(assault, length);
    let [traffic_class, protocol] = [assault.byte(), assault.one_of(&[6, 17, 1, 44])];
    if assault.below(2) == 0 {
        let head = ipv4(5, traffic_class, 20 + length, flags << 13 | offset, protocol);
        return frame(IPV4, &[head, payload].concat());
    }
    let place = (offset << 3 | flags).to_be_bytes();
    let fragment = [protocol, 0, place[0], place[1], 0, 0, 0, 1];
    frame(IPV6, &[ipv6(traffic_class, 8 + length, 44), fragment.to_vec(), payload].concat())
}

/// A short IPv4 packet of a hint: nothing is wrong with it.
pub fn hinted(hint: u8) -> Vec<u8> {
    // Code points of pool 2 are the hints (docs/guide/router.md).
    let traffic_class = ((hint - 1) * 4 + 3) << 2;
    let mut frame = frame(IPV4, &ipv4(5, traffic_class, 46, 0, 253));
    frame.resize(60, 0);
    frame
}
