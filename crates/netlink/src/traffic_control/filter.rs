//! Which packets use a reservation: u32 classifiers.
//!
//! A u32 filter compares words of a packet under masks, at offsets from the IP header. Filters are nodes in tables; a node may lead
//! to another table instead of a class, and on the way it can note the length of the IP header, to which later offsets are added.
//!
//! ```text
//! IPv4: root table ── protocol 46 ──────────────► control
//!                  └─ every packet, header length noted ──► table of 256 buckets, by the last byte of the destination
//!                                                             └─ destination, protocol, source, ports ──► class
//! ```
//!
//! With IPv6, ports are at offset 40. Packets with extension headers have another number than UDP's or TCP's in the field that is
//! compared, so they match no filter with a protocol and are best effort; so are packets that are encrypted.
//!
//! Only the first fragment of a packet has ports. A filter with ports picks no fragment at all, not even the first: it would be
//! useless without the others. A filter without ports picks all.

use crate::Error;
use netlink_packet_route::tc::{
    TcAttribute, TcFilterU32Option, TcHandle, TcOption, TcU32Key, TcU32Selector, TcU32SelectorFlags,
};
use std::net::IpAddr;

/// The largest flow label of IPv6.
const MOST_LABEL: u32 = 0x000f_ffff;
/// The length of IPv6's header.
const HEADER_V6: i32 = 40;

/// The packets that use a reservation. What is `None` may be anything. All of a packet's fields have to match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Filter {
    /// The destination, a host or a group.
    pub destination: IpAddr,
    /// The number of the protocol, such as 17 for UDP.
    pub protocol: Option<u8>,
    /// The destination port; only with a protocol.
    pub destination_port: Option<u16>,
    /// The source: none for all senders.
    pub source: Option<IpAddr>,
    /// The source port; only with a protocol.
    pub source_port: Option<u16>,
    /// The flow label of IPv6.
    pub flow_label: Option<u32>,
}

impl Filter {
    /// All packets to a destination.
    pub const fn to(destination: IpAddr) -> Self {
        Self {
            destination,
            protocol: None,
            destination_port: None,
            source: None,
            source_port: None,
            flow_label: None,
        }
    }

    pub(super) fn validate(&self) -> Result<(), Error> {
        let same = |address: IpAddr| address.is_ipv4() == self.destination.is_ipv4();
        if let Some(source) = self.source.filter(|source| !same(*source)) {
            return Err(Error::invalid("source", source, "an address of the destination's protocol"));
        }
        for (field, port) in [("destination_port", self.destination_port), ("source_port", self.source_port)]
        {
            if let (Some(port), None) = (port, self.protocol) {
                return Err(Error::invalid(field, port, "none without a protocol"));
            }
        }
        match self.flow_label {
            Some(label) if self.destination.is_ipv4() => {
                Err(Error::invalid("flow_label", label, "none with IPv4"))
            }
            Some(label) if label > MOST_LABEL => Err(Error::invalid("flow_label", label, "0 to 1048575")),
            _ => Ok(()),
        }
    }

    /// Returns the bucket that it belongs into: what [`link`] finds in a packet.
    pub(super) const fn bucket(&self) -> u8 {
        match self.destination {
            IpAddr::V4(address) => address.octets()[3],
            IpAddr::V6(address) => address.octets()[15],
        }
    }

    /// Returns what it compares.
    pub(super) fn keys(&self) -> Vec<TcU32Key> {
        let mut keys = Vec::new();
        match self.destination {
            IpAddr::V4(destination) => {
                keys.push(key(16, u32::MAX, destination.to_bits()));
                keys.extend(self.protocol.map(|protocol| key(8, 0x00ff_0000, u32::from(protocol) << 16)));
                if self.ports(0).is_some() {
                    // More fragments, and the offset of this one.
                    keys.push(key(4, 0x3fff, 0));
                }
                if let Some(IpAddr::V4(source)) = self.source {
                    keys.push(key(12, u32::MAX, source.to_bits()));
                }
                // Behind a header of any length.
                keys.extend(self.ports(0).map(|mut ports| {
                    ports.offmask = -1;
                    ports
                }));
            }
            IpAddr::V6(destination) => {
                keys.extend(self.flow_label.map(|label| key(0, MOST_LABEL, label)));
                keys.extend(self.protocol.map(|protocol| key(4, 0xff00, u32::from(protocol) << 8)));
                keys.extend(words(24, destination.to_bits()));
                if let Some(IpAddr::V6(source)) = self.source {
                    keys.extend(words(8, source.to_bits()));
                }
                keys.extend(self.ports(HEADER_V6));
            }
        }
        keys
    }

    /// Compares the word of the ports, at the beginning of the headers of TCP, UDP and SCTP.
    fn ports(&self, off: i32) -> Option<TcU32Key> {
        let half = |port: Option<u16>| port.map_or((0, 0), |port| (0xffff, u32::from(port)));
        let (source_mask, source) = half(self.source_port);
        let (mask, destination) = half(self.destination_port);
        let word = key(off, source_mask << 16 | mask, source << 16 | destination);
        (word.mask != 0).then_some(word)
    }
}

/// Compares a word of the packet at an offset from the IP header.
pub(super) fn key(off: i32, mask: u32, val: u32) -> TcU32Key {
    let mut key = TcU32Key::default();
    (key.off, key.mask, key.val) = (off, mask, val);
    key
}

fn selector(keys: Vec<TcU32Key>) -> TcU32Selector {
    let mut selector = TcU32Selector::default();
    selector.nkeys = keys.len() as u8;
    selector.keys = keys;
    selector
}

/// Compares the four words of an address.
fn words(off: i32, address: u128) -> [TcU32Key; 4] {
    std::array::from_fn(|i| key(off + 4 * i as i32, u32::MAX, (address >> (96 - 32 * i)) as u32))
}

/// The options of a node that leads to a class.
pub(super) fn leads_to(class: TcHandle, table: u32, keys: Vec<TcU32Key>) -> TcAttribute {
    let mut selector = selector(keys);
    selector.flags = TcU32SelectorFlags::Terminal;
    options([
        TcFilterU32Option::ClassId(class),
        TcFilterU32Option::Hash(table),
        TcFilterU32Option::Selector(selector),
    ])
}

/// The options of a new table with a bucket for each value of a byte.
pub(super) fn table() -> TcAttribute {
    options([TcFilterU32Option::Divisor(256)])
}

/// The options of the node that leads every packet to a table, to the bucket of its destination's last byte. With IPv4 it notes
/// the length of the header: the lower half of the first byte, in words.
pub(super) fn link(table: u32, is_v4: bool) -> TcAttribute {
    let mut selector = selector(vec![key(0, 0, 0)]);
    selector.hmask = 0xff;
    selector.hoff = if is_v4 { 16 } else { 36 };
    if is_v4 {
        selector.flags = TcU32SelectorFlags::VarOffset;
        selector.offmask = 0x0f00;
        selector.offshift = 6;
    }
    options([TcFilterU32Option::Link(table), TcFilterU32Option::Selector(selector)])
}

fn options(options: impl IntoIterator<Item = TcFilterU32Option>) -> TcAttribute {
    TcAttribute::Options(options.into_iter().map(TcOption::U32).collect())
}
