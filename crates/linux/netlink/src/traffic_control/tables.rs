//! Placement of filters in the tables of u32, so that a packet is compared with few of them.
//!
//! The kernel compares a packet with the filters of a bucket one after the other, and a bucket has places for some two thousand. So a
//! bucket that has [`FEW`] filters gets a table of its own, whose 256 buckets are those of another byte that its filters compare: the
//! one of which they have the most values. A link leads each packet of the first bucket to its bucket of the second.
//!
//! ```text
//! bucket: filters with a source │ links to their tables │ filters without │ links to their tables
//! place:  0x001 ...               0x780 ...               0x800 ...         0xf80 ...
//! ```
//!
//! A table has either filters with a source or filters without. So those with a source are compared before all others.
//!
//! The ports of IPv4 are behind a header of 5 to 15 words, and the kernel takes the byte at a fixed place. So a table by ports has a
//! link for each length.

use super::filter;
use crate::Error;
use cutline_flow::FlowSelector;
use netlink_packet_route::tc::TcAttribute;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// A bucket with so many filters gets a table.
const FEW: usize = 64;
/// Least number of values of a byte among the filters for which a table helps. In a full bucket two are
/// enough.
const LEAST_VALUES: usize = 4;
/// The places of filters in each half of a bucket, and of its links.
const PLACES: RangeInclusive<u32> = 0x001..=0x77f;
const LINKS: u32 = 0x780;
/// The second half begins here. It has one place more: place 0 of a bucket means that the kernel chooses.
const HALF: u32 = 0x800;
/// The most links to a table.
const MOST_LINKS: u32 = 11;

/// A byte by which a table's buckets are chosen: the last byte of the field that it is named after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    DestinationPort,
    SourcePort,
    Source,
    Protocol,
    FlowLabel,
}

impl Key {
    const ALL: [Self; 5] =
        [Self::DestinationPort, Self::SourcePort, Self::Source, Self::Protocol, Self::FlowLabel];

    /// Returns the value that this byte has in all packets of a filter; `None` if it may have any.
    fn value_in(self, filter: &FlowSelector) -> Option<u8> {
        match self {
            Self::DestinationPort => filter.destination_port.map(|port| port as u8),
            Self::SourcePort => filter.source_port.map(|port| port as u8),
            Self::Source => filter.source.map(last_byte),
            Self::Protocol => filter.protocol,
            Self::FlowLabel => filter.flow_label.map(|label| label as u8),
        }
    }

    /// The options of the links to a table by this byte.
    fn links(self, from: u32, table: u32, is_v4: bool) -> Vec<TcAttribute> {
        let link = |hoff: i16, hmask: u32, keys| filter::link_from(from, table, keys, (hoff, hmask));
        match (self, is_v4) {
            (Self::Source, true) => vec![link(12, 0xff, Vec::new())],
            (Self::Source, false) => vec![link(20, 0xff, Vec::new())],
            (Self::Protocol, true) => vec![link(8, 0x00ff_0000, Vec::new())],
            (Self::Protocol, false) => vec![link(4, 0xff00, Vec::new())],
            (Self::FlowLabel, _) => vec![link(0, 0xff, Vec::new())],
            (Self::DestinationPort | Self::SourcePort, is_v4) => {
                let hmask = if self == Self::SourcePort { 0x00ff_0000 } else { 0xff };
                if !is_v4 {
                    return vec![link(40, hmask, Vec::new())];
                }
                // Fragments have no ports.
                let of_length = |words: u32| {
                    let length = filter::key(0, 0x0f00_0000, words << 24);
                    link(4 * words as i16, hmask, vec![length, filter::whole()])
                };
                (5..=15).map(of_length).collect()
            }
        }
    }
}

/// Half of a bucket: its table, its number there, and whether its filters have a source.
type HalfId = (u32, u8, bool);

#[derive(Debug, Default)]
struct Half {
    filters: BTreeMap<u32, FlowSelector>,
    tables: Vec<(Key, u32)>,
}

/// A table beside the first one.
#[derive(Debug)]
struct Table {
    key: Key,
    /// The half of a bucket that it belongs to.
    parent: HalfId,
    /// Number of halves of its buckets that are not empty.
    used: usize,
}

/// A table that packets are led to from now on.
#[derive(Debug)]
pub(super) struct NewTable {
    /// Its number.
    pub table: u32,
    /// True if the kernel has the table already, without links.
    pub exists: bool,
    /// The nodes of the links to it, with their options.
    pub links: Vec<(u32, TcAttribute)>,
}

/// Place of a filter.
#[derive(Debug)]
pub(super) struct FilterPlacement {
    /// The number of its node.
    pub node: u32,
    /// The table that has to be made first.
    pub table: Option<NewTable>,
}

/// All filters for one version of IP.
#[derive(Debug)]
pub(super) struct Tables {
    is_v4: bool,
    /// The first table, by the last byte of the destination.
    first: u32,
    /// The numbers of tables that the kernel does not have yet.
    unused: RangeInclusive<u32>,
    /// Table numbers that were returned.
    unmade: Vec<u32>,
    /// Tables that the kernel has and nothing leads to.
    spare: Vec<u32>,
    others: BTreeMap<u32, Table>,
    halves: BTreeMap<HalfId, Half>,
}

impl Tables {
    /// Tables with these numbers; the kernel has the first one.
    pub(super) const fn new(is_v4: bool, first: u32, unused: RangeInclusive<u32>) -> Self {
        Self {
            is_v4,
            first,
            unused,
            unmade: Vec::new(),
            spare: Vec::new(),
            others: BTreeMap::new(),
            halves: BTreeMap::new(),
        }
    }

    /// Takes a place for a filter.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn add(&mut self, filter: &FlowSelector) -> Result<FilterPlacement, Error> {
        let has_source = filter.source.is_some();
        let mut id: HalfId = (self.first, last_byte(filter.destination), has_source);
        let mut path = Vec::new();
        while let Some(half) = self.halves.get(&id).filter(|half| half.filters.len() >= FEW) {
            let next =
                half.tables.iter().find_map(|(key, table)| Some((*key, *table, key.value_in(filter)?)));
            let Some((key, table, bucket)) = next else { break };
            path.push(key);
            id = (table, bucket, has_source);
        }
        let mut new = None;
        let half = self.halves.get(&id).filter(|half| half.filters.len() >= FEW);
        if let Some(key) = half.and_then(|half| best_key(half, filter, &path))
            && let Some((table, exists)) = self.take_table()
        {
            let from = id.0 << 20 | u32::from(id.1) << 12;
            let first = from + first_link(key, has_source);
            let links = key.links(from, table << 20, self.is_v4);
            let links = (first..).zip(links).collect();
            new = Some(NewTable { table: table << 20, exists, links });
            self.halves.entry(id).or_default().tables.push((key, table));
            self.others.insert(table, Table { key, parent: id, used: 0 });
            id = (table, key.value_in(filter).unwrap_or_default(), has_source);
        }
        let is_new = !self.halves.contains_key(&id);
        let half = self.halves.entry(id).or_default();
        let free = first_free(PLACES, half.filters.keys().copied());
        let place = free.ok_or_else(|| {
            let allowed = format!(
                "at most {} of which the last bytes of destination, ports, source and protocol are the same",
                PLACES.count()
            );
            Error::invalid("filter", filter, allowed)
        })?;
        half.filters.insert(place, *filter);
        if let Some(table) = self.others.get_mut(&id.0) {
            table.used += usize::from(is_new);
        }
        // Without a source, the first place is the first of its half.
        let place = if has_source { place } else { HALF + place - 1 };
        Ok(FilterPlacement { node: id.0 << 20 | u32::from(id.1) << 12 | place, table: new })
    }

    /// Gives a filter's place back. Returns the nodes of links that have to be removed, since their tables are empty.
    pub(super) fn remove(&mut self, node: u32) -> Vec<u32> {
        let (has_source, place) = match node & 0xfff {
            place if place < HALF => (true, place),
            place => (false, place - HALF + 1),
        };
        let mut id: HalfId = (node >> 20, (node >> 12) as u8, has_source);
        if let Some(half) = self.halves.get_mut(&id) {
            half.filters.remove(&place);
        }
        let mut links = Vec::new();
        while self.halves.get(&id).is_some_and(|half| half.filters.is_empty() && half.tables.is_empty()) {
            self.halves.remove(&id);
            let Some(table) = self.others.get_mut(&id.0) else { break };
            table.used -= 1;
            if table.used > 0 {
                break;
            }
            let Table { key, parent, .. } = *table;
            self.others.remove(&id.0);
            self.spare.push(id.0);
            let from = parent.0 << 20 | u32::from(parent.1) << 12;
            let first = from + first_link(key, has_source);
            let count = key.links(from, 0, self.is_v4).len() as u32;
            links.extend(first..first + count);
            if let Some(half) = self.halves.get_mut(&parent) {
                half.tables.retain(|(_, table)| *table != id.0);
            }
            id = parent;
        }
        links
    }

    /// Does not use empty tables again: it is unknown whether the kernel has them, and which filters refer to them.
    pub(super) fn forget_spare(&mut self) {
        self.spare.clear();
    }

    /// Takes back a new table, now empty, that the kernel does not know.
    pub(super) fn unmake(&mut self, table: u32) {
        self.spare.retain(|spare| *spare != table >> 20);
        self.unmade.push(table >> 20);
    }

    fn take_table(&mut self) -> Option<(u32, bool)> {
        let new = |this: &mut Self| this.unmade.pop().or_else(|| this.unused.next());
        self.spare.pop().map(|table| (table, true)).or_else(|| Some((new(self)?, false)))
    }
}

/// The place of the first link to a table.
const fn first_link(key: Key, has_source: bool) -> u32 {
    LINKS + MOST_LINKS * key as u32 + if has_source { 0 } else { HALF }
}

/// The byte that parts the filters of a half best, one more of them included; none if no byte does.
fn best_key(half: &Half, filter: &FlowSelector, path: &[Key]) -> Option<Key> {
    let values = |key: Key| {
        let all = half.filters.values().chain([filter]);
        all.filter_map(|filter| key.value_in(filter)).collect::<BTreeSet<u8>>().len()
    };
    let usable = Key::ALL.into_iter().filter(|key| {
        let is_there = half.tables.iter().any(|(other, _)| other == key);
        !is_there && !path.contains(key) && key.value_in(filter).is_some()
    });
    let least = if half.filters.len() < PLACES.count() { LEAST_VALUES } else { 2 };
    let counted = usable.map(|key| (values(key), key)).filter(|(count, _)| *count >= least);
    // Of the same count, the first.
    counted.rev().max_by_key(|(count, _)| *count).map(|(_, key)| key)
}

const fn last_byte(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(address) => address.octets()[3],
        IpAddr::V6(address) => address.octets()[15],
    }
}

/// Returns the first number of a range that is not among the used ones, which are in order.
fn first_free(range: impl Iterator<Item = u32>, used: impl Iterator<Item = u32>) -> Option<u32> {
    let mut used = used.peekable();
    range.into_iter().find(|number| used.next_if_eq(number).is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_gap_is_used() {
        let free = |used: &[u32]| first_free(3..=6, used.iter().copied());
        assert_eq!([free(&[]), free(&[3]), free(&[4]), free(&[3, 4, 6])], [3, 4, 3, 5].map(Some));
        assert_eq!(free(&[3, 4, 5, 6]), None);
    }

    fn tables() -> Tables {
        Tables::new(true, 1, 3..=0x3ff)
    }

    fn flow(source: [u8; 4], source_port: u16, destination_port: u16) -> FlowSelector {
        FlowSelector {
            protocol: Some(17),
            source: Some(source.into()),
            source_port: Some(source_port),
            destination_port: Some(destination_port),
            ..FlowSelector::to([10, 0, 0, 2].into())
        }
    }

    /// The filters that the packets of a filter without wildcards are compared with, in the kernel's order.
    fn compared(tables: &Tables, packet: &FlowSelector) -> Vec<FlowSelector> {
        let mut found = Vec::new();
        for has_source in [true, false] {
            let mut waiting = vec![(tables.first, last_byte(packet.destination), has_source)];
            while let Some(half) = waiting.pop().map(|id| tables.halves.get(&id)) {
                let Some(half) = half else { continue };
                found.extend(half.filters.values().copied());
                let next = half.tables.iter().rev();
                waiting.extend(
                    next.filter_map(|(key, table)| Some((*table, key.value_in(packet)?, has_source))),
                );
            }
        }
        found
    }

    fn longest(tables: &Tables, filters: &[FlowSelector]) -> usize {
        let lengths = filters.iter().map(|filter| {
            let found = compared(tables, filter);
            assert!(found.contains(filter), "{filter}");
            found.len()
        });
        lengths.max().unwrap()
    }

    #[test]
    fn ten_thousand_flows_to_one_host_are_compared_with_few_filters() {
        let ports: Vec<FlowSelector> =
            (0..10_000).map(|n| flow([10, 0, 0, 1], 10_000 + n, 10_000 + n)).collect();
        let to_one_port: Vec<FlowSelector> = (0..10_000).map(|n| flow([10, 0, 0, 1], n, 80)).collect();
        let from_many: Vec<FlowSelector> =
            (0..10_000).map(|n| flow([10, 0, (n / 250) as u8, (n % 250) as u8], 5004, 5004)).collect();
        // Connections of many hosts, in which no byte alone tells them apart.
        let mixed: Vec<FlowSelector> =
            (0..10_000).map(|n| flow([10, 0, 0, (n % 100) as u8], (n / 100) * 256, 80)).collect();
        for (filters, most, most_tables) in
            [(ports, 120, 1), (to_one_port, 120, 1), (from_many, 120, 1), (mixed, 210, 1)]
        {
            let mut tables = tables();
            let nodes: BTreeSet<u32> =
                filters.iter().map(|filter| tables.add(filter).unwrap().node).collect();
            assert_eq!(nodes.len(), filters.len());
            let found = longest(&tables, &filters);
            assert!(found <= most && tables.others.len() <= most_tables, "{found} {}", tables.others.len());
            // All of it is there again when all are gone.
            let links: usize = nodes.iter().map(|node| tables.remove(*node).len()).sum();
            assert!(links >= 1 && tables.halves.is_empty() && tables.others.is_empty());
            let mut again = filters.iter().filter_map(|filter| tables.add(filter).unwrap().table);
            assert!(again.all(|table| table.exists), "tables are used again");
        }
    }

    #[test]
    fn the_limit_is_named_where_tables_do_not_help() {
        let mut tables = tables();
        let flows = |n: u16| flow([10, 0, 0, 1], 256 * (n % 256), 256 * (n / 256));
        for n in 0..1919 {
            assert!(tables.add(&flows(n)).unwrap().table.is_none());
        }
        let error = tables.add(&flows(1919)).unwrap_err().to_string();
        assert!(error.contains("allowed is at most 1919"), "{error}");
        // Others have room.
        tables.add(&FlowSelector { source: None, ..flows(1919) }).unwrap();
        assert!(tables.add(&flow([10, 0, 0, 1], 1, 0)).unwrap().table.is_some());
    }

    #[test]
    fn filters_with_a_source_are_compared_first() {
        let mut tables = tables();
        let mut filters = Vec::new();
        for n in 0..1000 {
            for filter in [
                FlowSelector { source: None, source_port: None, ..flow([0; 4], 0, n) },
                flow([10, 0, 0, n as u8], n, 7),
                FlowSelector {
                    source_port: None,
                    destination_port: None,
                    ..flow([10, 1, (n >> 8) as u8, n as u8], 0, 0)
                },
            ] {
                filters.push(filter);
                tables.add(&filter).unwrap();
            }
        }
        assert!(tables.others.len() > 2, "{}", tables.others.len());
        for filter in filters {
            let found = compared(&tables, &filter);
            assert!(found.contains(&filter), "{filter}");
            assert!(found.is_sorted_by_key(|filter| filter.source.is_none()), "{filter}");
        }
    }

    #[test]
    fn the_links_of_ports_are_one_for_each_length_of_a_header() {
        let mut tables = tables();
        let new = (0..=64).find_map(|n| tables.add(&flow([10, 0, 0, 1], n, 80)).unwrap().table).unwrap();
        let nodes: Vec<u32> = new.links.iter().map(|(node, _)| *node).collect();
        assert_eq!(nodes, (0x0010_278b..=0x0010_2795).collect::<Vec<_>>());
        assert_eq!((new.table, new.exists), (0x0030_0000, false));
    }
}
