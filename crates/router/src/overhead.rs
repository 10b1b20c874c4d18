//! The size of a frame on the link: what the slowest link on the path adds to it.
//!
//! A shaper in front of a modem must count the bytes on the modem's link, not those of the local frame. Each kind of link
//! adds a number of bytes to every packet, and some then divide the result into cells or code blocks.
//!
//! | name | counted from | adds | then | source |
//! | --- | --- | --- | --- | --- |
//! | `none` | the frame | 0 | | as the port shows it, without its check sequence |
//! | `ip` | the IP packet | 0 | | as the simulator counts |
//! | `ethernet` | the frame, at least 60 B | 24 | | IEEE 802.3: preamble 8, check sequence 4, gap 12; tags count |
//! | `docsis` | the IP packet | 18 | | Ethernet header 14 and check sequence 4 |
//! | `ptm` | the IP packet | 22 | 65/64 | bridged Ethernet on VDSL2: header and check sequence 18, PTM 4 (ITU-T G.993.2) |
//! | `pppoe-ptm` | the IP packet | 30 | 65/64 | the same with PPPoE and PPP, 8 |
//! | `pppoe` | the frame, at least 60 B | 32 | | PPPoE added later, on Ethernet |
//! | `pppoa` | the IP packet | 10 | cells | PPP 2 and AAL5's trailer 8 (RFC 2364, VC multiplexed) |
//! | `pppoe-atm` | the IP packet | 40 | cells | PPP 2, PPPoE 6, Ethernet 14, LLC/SNAP 10, trailer 8 (RFC 2684, no check sequence) |
//!
//! Cells: AAL5 pads to whole cells of 48 B, each of which takes 53 B on the line (ITU-T I.363.5). 65/64: PTM sends 65
//! bytes for 64. For a frame that is not IP, what follows the Ethernet header and tags counts as the packet.

use crate::headers::Headers;

/// A kind of link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overhead {
    /// The frame as the port shows it.
    None,
    /// The IP packet alone.
    Ip,
    /// Ethernet on the wire.
    #[default]
    Ethernet,
    /// Cable.
    Docsis,
    /// VDSL2, bridged.
    Ptm,
    /// VDSL2 with PPPoE.
    PppoePtm,
    /// PPPoE on Ethernet.
    Pppoe,
    /// ADSL with PPP over ATM.
    Pppoa,
    /// ADSL with PPPoE.
    PppoeAtm,
}

/// The shortest frame without its check sequence, bytes (IEEE 802.3).
const SHORTEST_FRAME: u32 = 60;
/// Preamble and start delimiter, check sequence, gap between frames, bytes (IEEE 802.3).
const AROUND_A_FRAME: u32 = 8 + 4 + 12;

impl Overhead {
    /// All kinds of links.
    pub const ALL: [Self; 9] = [
        Self::None,
        Self::Ip,
        Self::Ethernet,
        Self::Docsis,
        Self::Ptm,
        Self::PppoePtm,
        Self::Pppoe,
        Self::Pppoa,
        Self::PppoeAtm,
    ];

    /// Returns the name in the table above.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Ip => "ip",
            Self::Ethernet => "ethernet",
            Self::Docsis => "docsis",
            Self::Ptm => "ptm",
            Self::PppoePtm => "pppoe-ptm",
            Self::Pppoe => "pppoe",
            Self::Pppoa => "pppoa",
            Self::PppoeAtm => "pppoe-atm",
        }
    }

    /// Returns the size on the link of a frame of `length` bytes with these headers, bytes.
    #[inline]
    pub fn size(self, length: u32, headers: &Headers) -> u32 {
        let packet =
            || headers.ip.map_or_else(|| length - u32::from(headers.payload).min(length), |ip| ip.length);
        match self {
            Self::None => length,
            // A frame without payload still occupies the queue, so its transmission time must not be zero.
            Self::Ip => packet().max(1),
            Self::Ethernet => length.max(SHORTEST_FRAME) + AROUND_A_FRAME,
            Self::Pppoe => (length + 8).max(SHORTEST_FRAME) + AROUND_A_FRAME,
            Self::Docsis => packet().max(SHORTEST_FRAME - 14) + 18,
            Self::Ptm => blocks(packet().max(SHORTEST_FRAME - 14) + 22),
            Self::PppoePtm => blocks((packet() + 8).max(SHORTEST_FRAME - 14) + 22),
            Self::Pppoa => cells(packet() + 10),
            Self::PppoeAtm => cells(packet() + 40),
        }
    }
}

/// Returns the size as ATM cells.
const fn cells(bytes: u32) -> u32 {
    bytes.div_ceil(48) * 53
}

/// Returns the size as PTM's code blocks.
const fn blocks(bytes: u32) -> u32 {
    (bytes * 65).div_ceil(64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::{Ip, Version};

    fn size(overhead: Overhead, packet: u32) -> u32 {
        let ip =
            Ip { at: 14, version: Version::V4, traffic_class: 0, length: packet, flow: 0, hosts: [0; 2] };
        overhead.size(packet + 14, &Headers { payload: 14, ip: Some(ip) })
    }

    /// Worked by hand: a full packet, and a TCP acknowledgement of 40 B.
    #[test]
    fn a_full_packet_and_an_acknowledgement() {
        let expected = [
            (Overhead::None, 1514, 54),
            (Overhead::Ip, 1500, 40),
            (Overhead::Ethernet, 1538, 84),
            (Overhead::Docsis, 1518, 64),
            (Overhead::Ptm, 1546, 70),
            (Overhead::PppoePtm, 1554, 72),
            (Overhead::Pppoe, 1546, 86),
            (Overhead::Pppoa, 32 * 53, 2 * 53),
            (Overhead::PppoeAtm, 33 * 53, 2 * 53),
        ];
        assert_eq!(expected.map(|(overhead, ..)| overhead), Overhead::ALL);
        for (overhead, full, small) in expected {
            assert_eq!((size(overhead, 1500), size(overhead, 40)), (full, small), "{}", overhead.name());
        }
    }

    #[test]
    fn what_is_not_ip_counts_as_what_follows_the_tags() {
        let arp = Headers { payload: 18, ip: None };
        assert_eq!(Overhead::Ip.size(46, &arp), 28);
        assert_eq!(Overhead::Ip.size(14, &Headers { payload: 14, ip: None }), 1);
    }

    #[test]
    fn padding_of_a_short_frame_is_no_part_of_the_packet() {
        let ip = Ip { at: 14, version: Version::V4, traffic_class: 0, length: 40, flow: 0, hosts: [0; 2] };
        assert_eq!(Overhead::Ip.size(60, &Headers { payload: 14, ip: Some(ip) }), 40);
    }
}
