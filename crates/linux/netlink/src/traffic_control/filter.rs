//! Filters that select the packets of a reservation: u32 classifiers.
//!
//! A u32 filter compares words of a packet under masks, at offsets from the IP header. Filters are nodes in tables; a node may lead
//! to another table instead of a class, and on the way it can note the length of the IP header, to which later offsets are added.
//!
//! ```text
//! IPv4: root table ── protocol 46 ──────────────► control
//!                  └─ every packet, header length noted ──► table of 256 buckets, by the last byte of the destination
//!                                                             ├─ destination, protocol, source, ports ──► class
//!                                                             └─ tables by other bytes (`tables.rs`)
//! ```
//!
//! With IPv6, ports are at offset 40. Packets with extension headers have another number than UDP's or TCP's in the field that is
//! compared, so they match no filter with a protocol and are best effort; so are packets that are encrypted.
//!
//! Only the first fragment of a packet has ports. A filter with ports picks no fragment at all, not even the first: it would be
//! useless without the others. A filter without ports picks all.

use cutline_flow::FlowSelector;
use netlink_packet_route::tc::{
    TcAttribute, TcFilterU32Option, TcHandle, TcOption, TcU32Key, TcU32Selector, TcU32SelectorFlags,
};
use std::net::IpAddr;

/// The length of IPv6's header.
const HEADER_V6: i32 = 40;

/// Returns the words of a packet that a filter compares.
pub(super) fn keys(of: &FlowSelector) -> Vec<TcU32Key> {
    let mut keys = Vec::new();
    match of.destination {
        IpAddr::V4(destination) => {
            keys.push(key(16, u32::MAX, destination.to_bits()));
            keys.extend(of.protocol.map(|protocol| key(8, 0x00ff_0000, u32::from(protocol) << 16)));
            if ports(of, 0).is_some() {
                keys.push(whole());
            }
            if let Some(IpAddr::V4(source)) = of.source {
                keys.push(key(12, u32::MAX, source.to_bits()));
            }
            // Behind a header of any length.
            keys.extend(ports(of, 0).map(|mut ports| {
                ports.offmask = -1;
                ports
            }));
        }
        IpAddr::V6(destination) => {
            keys.extend(of.flow_label.map(|label| key(0, FlowSelector::MAX_LABEL, label)));
            keys.extend(of.protocol.map(|protocol| key(4, 0xff00, u32::from(protocol) << 8)));
            keys.extend(words(24, destination.to_bits()));
            if let Some(IpAddr::V6(source)) = of.source {
                keys.extend(words(8, source.to_bits()));
            }
            keys.extend(ports(of, HEADER_V6));
        }
    }
    keys
}

/// Compares the word of the ports, at the beginning of the headers of TCP, UDP and SCTP.
fn ports(of: &FlowSelector, off: i32) -> Option<TcU32Key> {
    let half = |port: Option<u16>| port.map_or((0, 0), |port| (0xffff, u32::from(port)));
    let (source_mask, source) = half(of.source_port);
    let (mask, destination) = half(of.destination_port);
    let word = key(off, source_mask << 16 | mask, source << 16 | destination);
    (word.mask != 0).then_some(word)
}

/// Compares a word of the packet at an offset from the IP header.
pub(super) fn key(off: i32, mask: u32, val: u32) -> TcU32Key {
    let mut key = TcU32Key::default();
    (key.off, key.mask, key.val) = (off, mask, val);
    key
}

/// Selects packets that are not fragments: no more of them follow, and the offset of this one is 0.
pub(super) fn whole() -> TcU32Key {
    key(4, 0x3fff, 0)
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

/// The options of a node of the table and bucket `from` that leads packets to another table, to the bucket of the byte that the mask
/// has of the word at an offset.
pub(super) fn link_from(
    from: u32,
    table: u32,
    keys: Vec<TcU32Key>,
    (offset, mask): (i16, u32),
) -> TcAttribute {
    // All packets, if there is no condition.
    let keys = if keys.is_empty() { vec![key(0, 0, 0)] } else { keys };
    let mut selector = selector(keys);
    (selector.hoff, selector.hmask) = (offset, mask);
    options([
        TcFilterU32Option::Link(table),
        TcFilterU32Option::Hash(from),
        TcFilterU32Option::Selector(selector),
    ])
}

fn options(options: impl IntoIterator<Item = TcFilterU32Option>) -> TcAttribute {
    TcAttribute::Options(options.into_iter().map(TcOption::U32).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether the keys match a packet, as the kernel compares them.
    fn matches(filter: &FlowSelector, packet: &[u8]) -> bool {
        let header = if filter.destination.is_ipv4() { i32::from(packet[0] & 15) * 4 } else { 0 };
        keys(filter).iter().all(|key| {
            let at = (key.off + (header & key.offmask)) as usize;
            let word = packet.get(at..at + 4).map(|word| u32::from_be_bytes(word.try_into().unwrap()));
            word.is_some_and(|word| (word ^ key.val) & key.mask == 0)
        })
    }

    fn v4(words_of_options: usize, fragment: u16, protocol: u8, ports: [u16; 2]) -> Vec<u8> {
        let mut packet = vec![0; 20 + 4 * words_of_options];
        packet[0] = 0x45 + words_of_options as u8;
        packet[6..8].copy_from_slice(&fragment.to_be_bytes());
        packet[9] = protocol;
        packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend(ports.map(u16::to_be_bytes).concat());
        packet
    }

    fn udp() -> FlowSelector {
        FlowSelector {
            protocol: Some(17),
            destination_port: Some(9),
            ..FlowSelector::to("10.0.0.2".parse().unwrap())
        }
    }

    #[test]
    fn ports_are_behind_a_header_of_any_length() {
        for options in 0..=10 {
            assert!(matches(&udp(), &v4(options, 0, 17, [7, 9])), "{options}");
            assert!(!matches(&udp(), &v4(options, 0, 17, [9, 7])), "{options}");
        }
        let both = FlowSelector { source_port: Some(7), ..udp() };
        assert!(matches(&both, &v4(2, 0, 17, [7, 9])) && !matches(&both, &v4(2, 0, 17, [8, 9])));
        assert!(!matches(&udp(), &v4(0, 0, 6, [7, 9])));
    }

    #[test]
    fn fragments_have_no_ports() {
        let whole = FlowSelector::to(udp().destination);
        // Do not fragment; more fragments; the last of them.
        for (fragment, with_ports) in [(0x4000, true), (0x2000, false), (0x0003, false)] {
            let packet = v4(0, fragment, 17, [7, 9]);
            assert_eq!(
                (matches(&udp(), &packet), matches(&whole, &packet)),
                (with_ports, true),
                "{fragment:x}"
            );
        }
    }

    #[test]
    fn each_field_is_compared() {
        let source = FlowSelector { source: Some("10.0.0.1".parse().unwrap()), ..udp() };
        assert!(matches(&source, &v4(0, 0, 17, [7, 9])));
        let others = [
            FlowSelector { source: Some("10.0.0.3".parse().unwrap()), ..udp() },
            FlowSelector { destination: "10.0.0.3".parse().unwrap(), ..udp() },
            FlowSelector { protocol: Some(6), ..udp() },
            FlowSelector { destination_port: Some(10), ..udp() },
            FlowSelector { source_port: Some(8), ..udp() },
        ];
        for other in others {
            assert!(!matches(&other, &v4(0, 0, 17, [7, 9])), "{other}");
        }
    }

    #[test]
    fn ipv6_is_compared_by_label_protocol_addresses_and_ports() {
        let mut packet = vec![0; 40];
        packet[..4].copy_from_slice(&(6_u32 << 28 | 0xabcde).to_be_bytes());
        packet[6] = 17;
        packet[8] = 0xfd;
        packet[23] = 1;
        packet[24] = 0xfd;
        packet[39] = 2;
        packet.extend([0, 7, 0, 9]);
        let all = FlowSelector {
            protocol: Some(17),
            destination_port: Some(9),
            source: Some("fd00::1".parse().unwrap()),
            source_port: Some(7),
            flow_label: Some(0xabcde),
            ..FlowSelector::to("fd00::2".parse().unwrap())
        };
        assert!(matches(&all, &packet));
        let others = [
            FlowSelector { flow_label: Some(0xabcdf), ..all },
            FlowSelector { source: Some("fd01::1".parse().unwrap()), ..all },
            FlowSelector { destination: "fd00::1:2".parse().unwrap(), ..all },
            FlowSelector { protocol: Some(6), ..all },
            FlowSelector { destination_port: Some(7), ..all },
            FlowSelector { source_port: Some(9), ..all },
        ];
        for other in others {
            assert!(!matches(&other, &packet), "{other}");
        }
    }
}
