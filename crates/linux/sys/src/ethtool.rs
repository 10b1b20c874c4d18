//! Properties of an interface by its driver, and its switches (linux/ethtool.h).
//!
//! Each command has a struct of its own, of 32-bit numbers for most of its length; an answer is read by the numbers' places.

use crate::ioctl;
use cutline_units::Rate;
use std::io;

/// A command that reads or sets one number, such as a switch or a set of flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command(u32);

impl Command {
    /// `ETHTOOL_GRXCSUM`: whether checksums of received frames are checked.
    pub const RX_CHECKSUM: Self = Self(0x14);
    /// `ETHTOOL_GTXCSUM`: whether checksums of sent frames are filled in.
    pub const TX_CHECKSUM: Self = Self(0x16);
    /// `ETHTOOL_STXCSUM`: sets it.
    pub const SET_TX_CHECKSUM: Self = Self(0x17);
    /// `ETHTOOL_GTSO`: whether long TCP segments are cut.
    pub const TSO: Self = Self(0x1e);
    /// `ETHTOOL_GGSO`: whether long packets stay uncut until they are sent.
    pub const GSO: Self = Self(0x23);
    /// `ETHTOOL_GFLAGS`: the flags below.
    pub const FLAGS: Self = Self(0x25);
    /// `ETHTOOL_SFLAGS`: sets them.
    pub const SET_FLAGS: Self = Self(0x26);
    /// `ETHTOOL_GGRO`: whether received packets are aggregated in software.
    pub const GRO: Self = Self(0x2b);
    /// `ETHTOOL_SGRO`: sets it.
    pub const SET_GRO: Self = Self(0x2c);
}

/// `ETH_FLAG_TXVLAN` of [`Command::FLAGS`]: VLAN tags of sent frames are put in by the interface.
pub const TX_VLAN: u32 = 1 << 7;
/// `ETH_FLAG_RXVLAN` of [`Command::FLAGS`]: VLAN tags of received frames are taken out by the interface.
pub const RX_VLAN: u32 = 1 << 8;
/// `ETH_FLAG_LRO` of [`Command::FLAGS`]: received packets are aggregated by the interface.
pub const LRO: u32 = 1 << 15;

/// Speed and duplex of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkMode {
    /// The link's rate; `None` where the driver does not report it.
    pub speed: Option<Rate>,
    /// True if the interface sends in both directions at once; `None` if the driver does not state it.
    pub full_duplex: Option<bool>,
}

/// Returns the number that a command reads.
///
/// # Errors
/// When there is no such interface, or its driver does not know the command.
pub fn get(name: &str, command: Command) -> io::Result<u32> {
    let mut value = [command.0, 0];
    ioctl::ethtool(name, &mut value)?;
    Ok(value[1])
}

/// Sets the number that a command sets.
///
/// # Errors
/// As [`get`], and when the process may not.
pub fn set(name: &str, command: Command, value: u32) -> io::Result<()> {
    ioctl::ethtool(name, &mut [command.0, value])
}

/// Returns the driver's name.
pub fn driver(name: &str) -> Option<String> {
    driver_and_bus(name).map(|[driver, _]| driver).filter(|name| !name.is_empty())
}

/// Returns the driver's name and the place of the interface on its bus (`ETHTOOL_GDRVINFO`).
pub(crate) fn driver_and_bus(name: &str) -> Option<[String; 2]> {
    let mut info = [0; 49];
    info[0] = 0x03;
    ioctl::ethtool(name, &mut info).ok()?;
    // Texts of 32 bytes behind the command: driver, two versions, bus.
    let text = |at: usize| {
        let bytes = info[at..at + 8].iter().flat_map(|word| word.to_ne_bytes());
        String::from_utf8(bytes.take_while(|&byte| byte != 0).collect()).ok()
    };
    Some([text(1)?, text(25)?])
}

/// Returns speed and duplex (`ETHTOOL_GSET`).
pub fn link_mode(name: &str) -> LinkMode {
    let mut settings = [0; 11];
    settings[0] = 0x01;
    match ioctl::ethtool(name, &mut settings) {
        Ok(()) => parse_link_mode(&settings),
        Err(_) => LinkMode::default(),
    }
}

fn parse_link_mode(settings: &[u32; 11]) -> LinkMode {
    // The speed in Mbit/s has its lower half before a byte of duplex, and its upper half four words further.
    let [low0, low1, duplex, _] = settings[3].to_ne_bytes();
    let [high0, high1, ..] = settings[7].to_ne_bytes();
    let half = |bytes| u32::from(u16::from_ne_bytes(bytes));
    let mbps = half([low0, low1]) | half([high0, high1]) << 16;
    // Unknown is 65535 of the old drivers, and all ones of the new; zero where there is no carrier.
    let is_known = !matches!(mbps, 0 | 0xffff | u32::MAX);
    let full_duplex = match duplex {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    };
    LinkMode { speed: is_known.then(|| Rate::from_mbps(mbps.into())), full_duplex }
}

/// Returns the number of entries of the driver's rings for receiving and for sending (`ETHTOOL_GRINGPARAM`).
pub fn ring_sizes(name: &str) -> Option<[u32; 2]> {
    let mut sizes = [0; 9];
    sizes[0] = 0x10;
    ioctl::ethtool(name, &mut sizes).ok()?;
    Some(parse_ring_sizes(sizes))
}

/// Behind the command are the largest sizes of four rings, and then their sizes: receiving is the first, sending the last.
const fn parse_ring_sizes([_, _, _, _, _, receive, _, _, send]: [u32; 9]) -> [u32; 2] {
    [receive, send]
}

/// Returns the number of receive queues in use: those for receiving alone, and combined ones (`ETHTOOL_GCHANNELS`).
pub fn receive_channels(name: &str) -> Option<u32> {
    channels(name).map(|[receive, _]| receive)
}

/// Returns the number of transmit queues in use, in the same way.
pub fn transmit_channels(name: &str) -> Option<u32> {
    channels(name).map(|[_, transmit]| transmit)
}

fn channels(name: &str) -> Option<[u32; 2]> {
    let mut channels = [0; 9];
    channels[0] = 0x3c;
    ioctl::ethtool(name, &mut channels).ok()?;
    Some(parse_channels(channels))
}

/// Behind the command are the largest numbers of four kinds of queues, and then their numbers: for receiving, for sending, others, and combined ones.
const fn parse_channels([_, _, _, _, _, receive, transmit, _, combined]: [u32; 9]) -> [u32; 2] {
    [receive + combined, transmit + combined]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A card with combined queues, and a veth with those of its kernel alone.
    #[test]
    fn combined_queues_receive_and_send() {
        assert_eq!(parse_channels([0x3c, 0, 0, 1, 64, 0, 0, 1, 8]), [8, 8]);
        assert_eq!(parse_channels([0x3c, 4, 4, 0, 0, 1, 3, 0, 0]), [1, 3]);
    }

    #[test]
    fn ring_sizes_are_those_of_receiving_and_sending() {
        assert_eq!(parse_ring_sizes([0x10, 4096, 0, 0, 2048, 256, 0, 0, 512]), [256, 512]);
    }

    #[test]
    fn a_speed_has_two_halves_and_may_be_unknown() {
        let settings = |speed: u32, duplex: u8| {
            let [s0, s1, s2, s3] = speed.to_le_bytes();
            let halves = [[s0, s1], [s2, s3]].map(|half| u16::from_le_bytes(half).to_ne_bytes());
            let mut settings = [0; 11];
            settings[3] = u32::from_ne_bytes([halves[0][0], halves[0][1], duplex, 0]);
            settings[7] = u32::from_ne_bytes([halves[1][0], halves[1][1], 0, 0]);
            parse_link_mode(&settings)
        };
        let known = |mbps, full_duplex| LinkMode { speed: Some(Rate::from_mbps(mbps)), full_duplex };
        assert_eq!(settings(100, 0), known(100, Some(false)));
        assert_eq!(settings(100_000, 1), known(100_000, Some(true)));
        assert_eq!(settings(0xffff, 0xff), LinkMode::default());
        assert_eq!(settings(u32::MAX, 0xff), LinkMode::default());
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs a datagram socket, which Miri has not")]
    fn the_loopback_reports_its_features() {
        assert_eq!((driver("lo"), link_mode("lo"), ring_sizes("lo")), (None, LinkMode::default(), None));
        assert!(get("lo", Command::TSO).is_ok() && get("nosuch0", Command::TSO).is_err());
    }
}
