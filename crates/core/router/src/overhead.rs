//! The size of a frame on the link: the overhead of the slowest link on the path.
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
//! | `pppoe` | the frame without padding | 32, at least 84 in all | | PPPoE added later, on Ethernet |
//! | `pppoa` | the IP packet | 10 | cells | PPP 2 and AAL5's trailer 8 (RFC 2364, VC multiplexed) |
//! | `pppoe-atm` | the IP packet | 40 | cells | PPP 2, PPPoE 6, Ethernet 14, LLC/SNAP 10, trailer 8 (RFC 2684, no check sequence) |
//! | `18`, `atm:10`, `ptm:22` | the IP packet | that number, 0 to 256 | nothing, cells, 65/64 | links without a name |
//!
//! A frame begins with its Ethernet header. A TUN interface has none: its port puts one before each packet (`crates/linux/ports/src/tun_port.rs`), so
//! each size here is that of the packet on the next link, as with CAKE, which counts from the IP packet, too.
//!
//! Cells: AAL5 pads to whole cells of 48 B, each of which takes 53 B on the line (ITU-T I.363.5). 65/64: PTM sends 65
//! bytes for 64. For a frame that is not IP, the bytes after the Ethernet header and tags count as the packet.

use cutline_units::IpVersion;
use cutline_wire::{ETHERNET, Headers, Ip};
use std::fmt;
use std::str::FromStr;

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
    /// Any other link: this many bytes for each IP packet, at most [`Overhead::MOST`], in these units.
    Added(u16, Units),
}

/// Units in which a link sends a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Units {
    /// As it is.
    Bytes,
    /// ATM's cells.
    Cells,
    /// PTM's code blocks.
    Blocks,
}

/// A text that is no kind of link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverheadError {
    text: String,
}

impl fmt::Display for OverheadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no kind of link: expected {}", self.text, Overhead::EXPECTED)
    }
}

impl std::error::Error for OverheadError {}

/// The shortest frame without its check sequence, bytes (IEEE 802.3).
const SHORTEST_FRAME: u32 = 60;
/// The longest frame that may be padded to Ethernet's shortest, with two tags, bytes.
const PADDED: u32 = 68;
/// Preamble and start delimiter, check sequence, gap between frames, bytes (IEEE 802.3).
const AROUND_A_FRAME: u32 = 8 + 4 + 12;

impl Overhead {
    /// The most that can be added to a packet, bytes.
    pub const MOST: u16 = 256;

    /// Allowed values for a kind of link, for messages.
    pub const EXPECTED: &'static str = "one of none, ip, ethernet, docsis, ptm, pppoe-ptm, pppoe, pppoa, pppoe-atm, or the bytes \
         added to each IP packet, from 0 to 256, such as 18, atm:10 or ptm:22";

    /// All kinds of links that have a name.
    pub const NAMED: [Self; 9] = [
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

    /// Returns the size on the link of a frame of `length` bytes with these headers, bytes.
    #[inline]
    pub fn size(self, length: u32, headers: &Headers) -> u32 {
        let packet = || match headers.ip {
            Some(ip) => ip_length(length, ip),
            None => length - u32::from(headers.payload).min(length),
        };
        // The padding of a short frame is not sent behind another header.
        let unpadded = || headers.ip.map_or(length, |ip| u32::from(ip.at) + ip_length(length, ip));
        match self {
            Self::None => length,
            // A frame without payload still occupies the queue, so its transmission time must not be zero.
            Self::Ip => packet().max(1),
            Self::Ethernet => length.max(SHORTEST_FRAME) + AROUND_A_FRAME,
            Self::Pppoe => (unpadded() + 8).max(SHORTEST_FRAME) + AROUND_A_FRAME,
            Self::Docsis => packet().max(SHORTEST_FRAME - 14) + 18,
            Self::Ptm => blocks(packet().max(SHORTEST_FRAME - 14) + 22),
            Self::PppoePtm => blocks((packet() + 8).max(SHORTEST_FRAME - 14) + 22),
            Self::Pppoa => cells(packet() + 10),
            Self::PppoeAtm => cells(packet() + 40),
            Self::Added(bytes, units) => units.size((packet() + u32::from(bytes)).max(1)),
        }
    }
}

impl Overhead {
    /// Returns the bytes on the link for this many frames of these bytes together. Each counts as one of the mean length with an IPv4
    /// packet, which is exact if the same is added to each.
    pub fn of_frames(self, packets: u64, bytes: u64) -> f64 {
        let Some(mean) = bytes.checked_div(packets) else { return 0.0 };
        let mean = mean as u32;
        let length = mean.saturating_sub(ETHERNET as u32);
        let ip = Ip { at: ETHERNET as u16, version: IpVersion::V4, traffic_class: 0, length };
        let size = self.size(mean, &Headers { payload: ETHERNET as u16, ip: Some(ip), ..Headers::default() });
        let added = f64::from(size) - f64::from(mean);
        (bytes as f64 + packets as f64 * added).max(0.0)
    }
}

impl Units {
    /// Returns the size on the link of this many bytes.
    const fn size(self, bytes: u32) -> u32 {
        match self {
            Self::Bytes => bytes,
            Self::Cells => cells(bytes),
            Self::Blocks => blocks(bytes),
        }
    }
}

/// As it is written in the table above.
impl fmt::Display for Overhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::None => "none",
            Self::Ip => "ip",
            Self::Ethernet => "ethernet",
            Self::Docsis => "docsis",
            Self::Ptm => "ptm",
            Self::PppoePtm => "pppoe-ptm",
            Self::Pppoe => "pppoe",
            Self::Pppoa => "pppoa",
            Self::PppoeAtm => "pppoe-atm",
            Self::Added(bytes, Units::Bytes) => return write!(f, "{bytes}"),
            Self::Added(bytes, Units::Cells) => return write!(f, "atm:{bytes}"),
            Self::Added(bytes, Units::Blocks) => return write!(f, "ptm:{bytes}"),
        })
    }
}

impl FromStr for Overhead {
    type Err = OverheadError;

    fn from_str(text: &str) -> Result<Self, OverheadError> {
        let named = || Self::NAMED.into_iter().find(|overhead| overhead.to_string() == text);
        let (units, number) = match text.split_once(':') {
            Some(("atm", number)) => (Units::Cells, number),
            Some(("ptm", number)) => (Units::Blocks, number),
            _ => (Units::Bytes, text),
        };
        let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
        let added = number.parse().ok().filter(|bytes| is_number && *bytes <= Self::MOST);
        let error = || OverheadError { text: text.to_owned() };
        added.map(|bytes| Self::Added(bytes, units)).or_else(named).ok_or_else(error)
    }
}

/// Returns the length of the IP packet in a frame of `length` bytes. Bytes behind the packet in a short frame are padding; in a longer one they count,
/// so that no sender can declare it to be none.
pub(crate) fn ip_length(length: u32, ip: Ip) -> u32 {
    if length <= PADDED { ip.length } else { ip.length.max(length - u32::from(ip.at).min(length)) }
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

    fn size(overhead: Overhead, packet: u32) -> u32 {
        let ip = Ip { at: 14, version: IpVersion::V4, traffic_class: 0, length: packet };
        overhead.size(packet + 14, &Headers { payload: 14, ip: Some(ip), ..Headers::default() })
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
        assert_eq!(expected.map(|(overhead, ..)| overhead), Overhead::NAMED);
        for (overhead, full, small) in expected {
            assert_eq!((size(overhead, 1500), size(overhead, 40)), (full, small), "{overhead}");
        }
    }

    /// A number is equivalent to a name, except for the shortest frame.
    #[test]
    fn a_number_is_added_to_each_packet() {
        for (text, full, small) in
            [("18", 1518, 58), ("atm:10", 32 * 53, 2 * 53), ("ptm:22", 1546, 63), ("0", 1500, 40)]
        {
            let overhead: Overhead = text.parse().unwrap();
            assert_eq!((size(overhead, 1500), size(overhead, 40)), (full, small), "{text}");
            assert_eq!(overhead.to_string(), text);
        }
        for overhead in Overhead::NAMED {
            assert_eq!(overhead.to_string().parse(), Ok(overhead));
        }
        for wrong in ["", "atm", "atm:", "atm:257", "257", "-1", "+1", "cells:3", "1.5", "ethernet:4"] {
            let error = wrong.parse::<Overhead>().unwrap_err().to_string();
            assert!(error.contains("from 0 to 256"), "{error}");
        }
    }

    #[test]
    fn frames_without_ip_count_the_bytes_behind_the_tags() {
        let arp = Headers { payload: 18, ip: None, ..Headers::default() };
        assert_eq!(Overhead::Ip.size(46, &arp), 28);
        assert_eq!(Overhead::Ip.size(14, &Headers { payload: 14, ip: None, ..Headers::default() }), 1);
    }

    #[test]
    fn padding_of_a_short_frame_is_no_part_of_the_packet() {
        let ip = Ip { at: 14, version: IpVersion::V4, traffic_class: 0, length: 40 };
        let headers = Headers { payload: 14, ip: Some(ip), ..Headers::default() };
        assert_eq!(Overhead::Ip.size(60, &headers), 40);
        // An acknowledgement of 40 B: 14 B of Ethernet, 8 B of PPPoE, 24 B around the frame; as it arrives, padded or not.
        for length in [54, 60, 64] {
            assert_eq!(Overhead::Pppoe.size(length, &headers), 86, "{length}");
        }
        let shorter = Headers { ip: headers.ip.map(|ip| Ip { length: 28, ..ip }), ..headers };
        assert_eq!(Overhead::Pppoe.size(60, &shorter), 84, "the frame behind PPPoE is padded, too");
        let tagged = Headers { payload: 18, ip: headers.ip.map(|ip| Ip { at: 18, ..ip }), ..headers };
        assert_eq!(Overhead::Pppoe.size(64, &tagged), 90);
    }

    /// A frame of 1500 B that claims to hold a packet of 40 B takes its time on the link.
    #[test]
    fn a_long_frame_does_not_pass_for_padding() {
        let ip = Ip { at: 14, version: IpVersion::V4, traffic_class: 0, length: 40 };
        let headers = Headers { payload: 14, ip: Some(ip), ..Headers::default() };
        for overhead in Overhead::NAMED {
            let honest = Headers { ip: Some(Ip { length: 1500, ..ip }), ..headers };
            assert_eq!(overhead.size(1514, &headers), overhead.size(1514, &honest), "{overhead}");
        }
    }
}
