//! Filters: which packets belong to a reservation, and a table that finds the reservation of a packet.
//!
//! A filter names a destination and a protocol, and may name the source and the ports. So a filter has one of eight shapes. The
//! table has a hash map for each shape in use: a packet is looked up once in each, most specific first, and the first match counts.
//! With filters of one shape, which is usual, a lookup is one hash and one probe, whatever the number of reservations. The hash is
//! salted, so that a sender cannot choose packets that collide.
//!
//! A fragment has no ports here, because only the first one carries them. It matches filters without ports alone.

use cutline_flow::FlowSelector;
use cutline_params::ParameterError;
use cutline_units::IpVersion;
use cutline_wire::{Ip, mix, transport};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher};
use std::net::IpAddr;

/// Fields of a packet that filters compare. Parts that a filter does not name are zero in its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FlowKey {
    destination: [u64; 2],
    source: [u64; 2],
    /// Source port, destination port.
    ports: u32,
    /// Protocol, and version of IP.
    kind: u16,
}

/// The parts that a filter names, as bits.
type Shape = u8;

const SOURCE: Shape = 4;
const SOURCE_PORT: Shape = 2;
const DESTINATION_PORT: Shape = 1;

/// Checks that the table can find the packets of a filter.
///
/// # Errors
/// When no packet can match, when there is no protocol, or when there is a flow label, which the table does not compare.
pub(crate) fn check(filter: &FlowSelector) -> Result<(), ParameterError> {
    filter.check()?;
    if filter.protocol.is_none() {
        return Err(ParameterError::new("protocol", "any", "from 0 to 255"));
    }
    let known = "none: the router knows senders by address and port alone";
    filter.flow_label.map_or(Ok(()), |label| Err(ParameterError::new("flow-label", label, known)))
}

/// The reservations of filters.
#[derive(Clone, Debug)]
pub(crate) struct FilterTable {
    salt: u64,
    /// The number of filters for which there is room in each map.
    room: usize,
    /// A map for each shape that has been used, most specific first.
    maps: Vec<(Shape, HashMap<FlowKey, u32, Salt>)>,
    len: usize,
}

/// Begins a hash with a salt.
#[derive(Clone, Copy, Debug)]
struct Salt(u64);

/// Hashes words by [`mix`].
struct WordHasher(u64);

/// Returns the flow of a packet whose IP header has been found. A fragment has no ports.
pub(crate) fn selector(frame: &[u8], ip: Ip) -> Option<FlowSelector> {
    let key = FlowKey::of(frame, ip)?;
    let address = |[high, low]: [u64; 2]| match ip.version {
        IpVersion::V4 => IpAddr::from((low as u32).to_be_bytes()),
        IpVersion::V6 => IpAddr::from((u128::from(high) << 64 | u128::from(low)).to_be_bytes()),
    };
    let port = |port: u32| Some(port as u16).filter(|port| *port > 0);
    Some(FlowSelector {
        destination: address(key.destination),
        protocol: Some(key.kind as u8),
        destination_port: port(key.ports & 0xffff),
        source: Some(address(key.source)),
        source_port: port(key.ports >> 16),
        flow_label: None,
    })
}

/// Returns the parts that a filter names.
const fn shape(filter: &FlowSelector) -> Shape {
    let mut shape = 0;
    if filter.source.is_some() {
        shape |= SOURCE;
    }
    if filter.source_port.is_some() {
        shape |= SOURCE_PORT;
    }
    if filter.destination_port.is_some() {
        shape |= DESTINATION_PORT;
    }
    shape
}

impl FlowKey {
    /// Returns the key of a filter, which has a protocol ([`check`]).
    fn of_filter(filter: &FlowSelector) -> Self {
        let port = |port: Option<u16>| u32::from(port.unwrap_or_default());
        Self {
            destination: words(filter.destination),
            source: filter.source.map_or([0; 2], words),
            ports: port(filter.source_port) << 16 | port(filter.destination_port),
            kind: kind(filter.protocol.unwrap_or_default(), filter.destination.is_ipv6()),
        }
    }

    /// Returns the key of a packet whose IP header has been found.
    #[inline]
    fn of(frame: &[u8], ip: Ip) -> Option<Self> {
        let (protocol, ports) = transport(frame, ip)?;
        let header = frame.get(usize::from(ip.at)..)?;
        let word = |at: usize| Some(u64::from_be_bytes(*header.get(at..)?.first_chunk()?));
        let (source, destination) = match ip.version {
            IpVersion::V4 => {
                let both = word(12)?;
                ([0, both >> 32], [0, both & u64::from(u32::MAX)])
            }
            IpVersion::V6 => ([word(8)?, word(16)?], [word(24)?, word(32)?]),
        };
        Some(Self { destination, source, ports, kind: kind(protocol, ip.version == IpVersion::V6) })
    }

    /// Returns the key as filters of this shape see it; `None` if they need ports that it does not have.
    #[inline]
    const fn seen(mut self, shape: Shape) -> Option<Self> {
        if shape & SOURCE == 0 {
            self.source = [0; 2];
        }
        let both = SOURCE_PORT | DESTINATION_PORT;
        if self.ports == 0 && shape & both != 0 {
            return None;
        }
        if shape & SOURCE_PORT == 0 {
            self.ports &= 0xffff;
        }
        if shape & DESTINATION_PORT == 0 {
            self.ports &= 0xffff_0000;
        }
        Some(self)
    }
}

impl FilterTable {
    /// Creates a table for up to `room` filters.
    pub(crate) const fn new(salt: u64, room: usize) -> Self {
        Self { salt, room, maps: Vec::new(), len: 0 }
    }

    /// Returns the number of filters.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Returns the reservation of a packet.
    #[inline]
    pub(crate) fn find(&self, frame: &[u8], ip: Ip) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        let key = FlowKey::of(frame, ip)?;
        self.maps.iter().find_map(|(shape, map)| map.get(&key.seen(*shape)?).copied())
    }

    /// Returns whether a filter is there.
    pub(crate) fn has(&self, filter: &FlowSelector) -> bool {
        let shape = shape(filter);
        self.maps.iter().any(|(of, map)| *of == shape && map.contains_key(&FlowKey::of_filter(filter)))
    }

    /// Adds a filter that is not there. Returns false when there is no memory for it.
    pub(crate) fn add(&mut self, filter: &FlowSelector, reservation: u32) -> bool {
        let shape = shape(filter);
        if !self.maps.iter().any(|(of, _)| *of == shape) {
            let mut map = HashMap::with_hasher(Salt(self.salt));
            if map.try_reserve(self.room).is_err() {
                return false;
            }
            self.maps.push((shape, map));
            self.maps.sort_by_key(|(shape, _)| std::cmp::Reverse((shape.count_ones(), *shape)));
        }
        let found = self.maps.iter_mut().find(|(of, _)| *of == shape);
        let Some((_, map)) = found else { return false };
        self.len += 1;
        map.insert(FlowKey::of_filter(filter), reservation).is_none()
    }

    /// Removes a filter.
    pub(crate) fn remove(&mut self, filter: &FlowSelector) {
        let shape = shape(filter);
        let Some((_, map)) = self.maps.iter_mut().find(|(of, _)| *of == shape) else { return };
        if map.remove(&FlowKey::of_filter(filter)).is_some() {
            self.len -= 1;
        }
        if map.is_empty() {
            self.maps.retain(|(of, _)| *of != shape);
        }
    }
}

impl Hash for FlowKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        if self.kind & VERSION_6 != 0 {
            state.write_u64(self.destination[0]);
            state.write_u64(self.source[0]);
            state.write_u64(self.destination[1]);
            state.write_u64(self.source[1]);
        } else {
            state.write_u64(self.destination[1] << 32 | self.source[1]);
        }
        state.write_u64(u64::from(self.ports) << 16 | u64::from(self.kind));
    }
}

impl BuildHasher for Salt {
    type Hasher = WordHasher;

    #[inline]
    fn build_hasher(&self) -> WordHasher {
        WordHasher(self.0)
    }
}

impl Hasher for WordHasher {
    #[inline]
    fn finish(&self) -> u64 {
        mix(self.0, 0x2545_f491_4f6c_dd1d)
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.0 = mix(self.0, word);
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }
}

const VERSION_6: u16 = 1 << 8;

#[inline]
const fn kind(protocol: u8, is_v6: bool) -> u16 {
    protocol as u16 | (is_v6 as u16) << 8
}

fn words(address: IpAddr) -> [u64; 2] {
    match address {
        IpAddr::V4(address) => [0, u32::from(address).into()],
        IpAddr::V6(address) => {
            let bits = u128::from(address);
            [(bits >> 64) as u64, bits as u64]
        }
    }
}
