//! Changes DSCP and ECN in a frame, and updates IPv4's header checksum.
//!
//! The checksum is the one's complement of the one's complement sum of the header's 16-bit words (RFC 791 section
//! 3.1). When a word m becomes m', the new checksum is `~(~HC + ~m + m')` (RFC 1624 equation 3). So only the changed word
//! is needed, and a wrong checksum stays as wrong as it was. Example of RFC 1624 section 4: HC = 0xDD2F,
//! m = 0x5555, m' = 0x3285 gives 0x0000. The transport's checksums do not cover these bits (RFC 9293 section 3.1).

use crate::headers::Ip;
use cutline_units::{Dscp, IpVersion};

/// The two bits of CE (RFC 3168 section 5).
const CE: u8 = 0b11;
/// Offset of the checksum in IPv4's header, bytes.
const CHECKSUM: usize = 10;

/// Sets the packet's code point and keeps its ECN bits.
#[inline]
pub fn set_dscp(frame: &mut [u8], ip: &mut Ip, dscp: Dscp) {
    set(frame, ip, dscp.in_traffic_class(ip.traffic_class));
}

/// Marks the packet: congestion experienced.
#[inline]
pub fn set_ce(frame: &mut [u8], ip: &mut Ip) {
    set(frame, ip, ip.traffic_class | CE);
}

fn set(frame: &mut [u8], ip: &mut Ip, traffic_class: u8) {
    let header = &mut frame[usize::from(ip.at)..];
    match ip.version {
        IpVersion::V4 => set_v4(header, traffic_class),
        IpVersion::V6 => set_v6(header, traffic_class),
    }
    ip.traffic_class = traffic_class;
}

/// The traffic class is the second byte.
fn set_v4(header: &mut [u8], traffic_class: u8) {
    let old = u16::from_be_bytes([header[0], header[1]]);
    header[1] = traffic_class;
    let new = u16::from_be_bytes([header[0], header[1]]);
    let checksum = u16::from_be_bytes([header[CHECKSUM], header[CHECKSUM + 1]]);
    header[CHECKSUM..CHECKSUM + 2].copy_from_slice(&repaired(checksum, old, new).to_be_bytes());
}

/// The traffic class lies between the version and the flow label, shifted by half a byte.
fn set_v6(header: &mut [u8], traffic_class: u8) {
    header[0] = header[0] & 0xf0 | traffic_class >> 4;
    header[1] = header[1] & 0x0f | traffic_class << 4;
}

/// RFC 1624 equation 3.
const fn repaired(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = !checksum as u32 + !old as u32 + new as u32;
    // Three 16-bit words carry at most 2, and adding that carries at most one more time.
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Headers;
    use etherparse::PacketBuilder;

    #[test]
    fn the_example_of_rfc_1624() {
        assert_eq!(repaired(0xdd2f, 0x5555, 0x3285), 0x0000);
        assert_eq!(repaired(0xdd2f, 0x5555, 0x5555), 0xdd2f);
    }

    fn frame(v6: bool, traffic_class: u8) -> (Vec<u8>, Ip) {
        let link = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        let net =
            if v6 { link.ipv6([1; 16], [2; 16], 64) } else { link.ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64) };
        let mut frame = Vec::new();
        net.udp(1, 2).write(&mut frame, &[7; 20]).unwrap();
        let mut ip = Headers::parse(&frame, 0).ip.expect("this is IP");
        set(&mut frame, &mut ip, traffic_class);
        (frame, ip)
    }

    fn checksum_is_right(frame: &[u8]) -> bool {
        let sum: u32 = frame[14..34].chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1])).sum();
        (sum & 0xffff) + (sum >> 16) == 0xffff
    }

    #[test]
    fn every_traffic_class_becomes_every_other() {
        for (from, to) in (0..=255).flat_map(|from| (0..=255).map(move |to| (from, to))) {
            let (mut frame, mut ip) = frame(false, from);
            set(&mut frame, &mut ip, to);
            assert!(checksum_is_right(&frame), "{from} to {to}");
            assert_eq!(Headers::parse(&frame, 0).ip.unwrap().traffic_class, to);
        }
    }

    #[test]
    fn ipv6_keeps_its_version_and_its_flow_label() {
        for to in 0..=255 {
            let (mut frame, mut ip) = frame(true, 0b1010_0110);
            frame[15] |= 0x0c;
            set(&mut frame, &mut ip, to);
            assert_eq!((frame[14] >> 4, frame[15] & 0x0f), (6, 0x0c));
            assert_eq!(Headers::parse(&frame, 0).ip.unwrap().traffic_class, to);
        }
    }

    #[test]
    fn dscp_and_ecn_keep_out_of_each_others_way() {
        let (mut frame, mut ip) = frame(false, 0b1011_1001);
        set_ce(&mut frame, &mut ip);
        assert_eq!(ip.traffic_class, 0b1011_1011);
        set_dscp(&mut frame, &mut ip, Dscp::DEFAULT);
        assert_eq!(ip.traffic_class, 0b0000_0011);
    }
}
