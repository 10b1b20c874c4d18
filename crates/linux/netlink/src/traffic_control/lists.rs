//! Lists of filters: one for each protocol of packets.

use cutline_flow::FlowSelector;
use std::ops::RangeInclusive;

/// Packets' protocols (`linux/if_ether.h`).
const ARP: u16 = 0x0806;
pub(super) const IPV4: u16 = 0x0800;
pub(super) const IPV6: u16 = 0x86dd;
/// Protocols over IP.
pub(super) const RSVP: u32 = 46;
pub(super) const ICMPV6: u32 = 58;
pub(super) const UDP: u32 = 17;
/// The ports of RSVP over UDP (RFC 2205 appendix C).
pub(super) const RSVP_PORTS: [u32; 2] = [1698, 1699];

/// A list of filters for a protocol: its priority, which is its number, and the table of 256 buckets in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct List {
    priority: u16,
    pub(super) protocol: u16,
    pub(super) table: u32,
}

pub(super) const ARP_LIST: List = List { priority: 1, protocol: ARP, table: 0 };
pub(super) const IPV4_LIST: List = List { priority: 2, protocol: IPV4, table: 0x0010_0000 };
pub(super) const IPV6_LIST: List = List { priority: 3, protocol: IPV6, table: 0x0020_0000 };
/// The numbers of further tables of each list. The kernel has 2047 for all lists together.
pub(super) const IPV4_TABLES: RangeInclusive<u32> = 0x003..=0x400;
pub(super) const IPV6_TABLES: RangeInclusive<u32> = 0x401..=0x7ff;

/// The first table of a list, which the kernel makes with it.
pub(super) const ROOT_TABLE: u32 = 0xfff0_0000;

impl List {
    pub(super) const fn of(filter: &FlowSelector) -> Self {
        if filter.destination.is_ipv4() { IPV4_LIST } else { IPV6_LIST }
    }

    /// The field that names priority and protocol; the protocol is in the order of the network.
    pub(super) const fn info(self) -> u32 {
        (self.priority as u32) << 16 | self.protocol.to_be() as u32
    }
}
