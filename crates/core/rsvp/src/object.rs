//! Objects: the parts of messages (RFC 2205 appendix A, RFC 2747 section 2.1, RFC 2961 sections 4 and 5).
//!
//! An object has a class, a type within the class and a content. A type here is the content of one class. IPv4 and IPv6 have
//! types of their own on the wire and none here: an [`IpAddr`] distinguishes them.

use cutline_flow::FlowSelector;
use cutline_units::Duration;
use cutline_wire::Reader;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The numbers of the classes.
pub mod class {
    /// Padding without meaning.
    pub const NULL: u8 = 0;
    /// [`Session`](super::Session).
    pub const SESSION: u8 = 1;
    /// [`Hop`](super::Hop).
    pub const RSVP_HOP: u8 = 3;
    /// [`Integrity`](crate::integrity::Integrity).
    pub const INTEGRITY: u8 = 4;
    /// The refresh period.
    pub const TIME_VALUES: u8 = 5;
    /// [`ErrorSpec`](super::ErrorSpec).
    pub const ERROR_SPEC: u8 = 6;
    /// A list of senders.
    pub const SCOPE: u8 = 7;
    /// [`Style`](super::Style).
    pub const STYLE: u8 = 8;
    /// [`Flowspec`](crate::intserv::Flowspec).
    pub const FLOWSPEC: u8 = 9;
    /// [`Sender`](super::Sender) in a reservation.
    pub const FILTER_SPEC: u8 = 10;
    /// [`Sender`](super::Sender) in a path message.
    pub const SENDER_TEMPLATE: u8 = 11;
    /// [`Tspec`](crate::intserv::Tspec).
    pub const SENDER_TSPEC: u8 = 12;
    /// [`Adspec`](crate::intserv::Adspec).
    pub const ADSPEC: u8 = 13;
    /// Data for a policy, which is passed on.
    pub const POLICY_DATA: u8 = 14;
    /// The receiver that requests a confirmation.
    pub const RESV_CONFIRM: u8 = 15;
    /// [`MessageId`](super::MessageId).
    pub const MESSAGE_ID: u8 = 23;
    /// [`Acknowledgement`](super::Acknowledgement).
    pub const MESSAGE_ID_ACK: u8 = 24;
    /// [`IdList`](super::IdList).
    pub const MESSAGE_ID_LIST: u8 = 25;
    /// [`Challenge`](super::Challenge).
    pub const CHALLENGE: u8 = 64;
}

/// The bytes of an object's header.
pub const OBJECT_HEADER: usize = 4;
/// The bits of a key's number in CHALLENGE and INTEGRITY objects.
pub const KEY_BITS: u64 = 0xffff_ffff_ffff;

/// A session: packets to one destination, of one protocol (RFC 2205 appendix A.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Session {
    /// Destination of the packets, one host or a group.
    pub destination: IpAddr,
    /// The number of the protocol, such as 17 for UDP.
    pub protocol: u8,
    /// The destination port; 0 for a protocol without ports.
    pub port: u16,
}

/// A sender of a session, in a sender template or a filter spec (RFC 2205 appendices A.9 and A.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sender {
    /// Its address.
    pub address: IpAddr,
    /// Selector of the sender's packets.
    pub selector: Selector,
}

/// Selector of the packets of a sender's flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Selector {
    /// Packets from this port; 0 for a protocol without ports.
    Port(u16),
    /// Packets with this flow label of IPv6, 24 bits.
    FlowLabel(u32),
}

impl Sender {
    /// The sender at an address and a port.
    pub const fn new(address: IpAddr, port: u16) -> Self {
        Self { address, selector: Selector::Port(port) }
    }
}

/// A neighbour that sent a message: the address of its interface, and its handle for it (RFC 2205 appendix A.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hop {
    /// The address.
    pub address: IpAddr,
    /// The logical interface handle. Only the node that made it knows its meaning.
    pub handle: u32,
}

/// Error with its place (RFC 2205 appendices A.5 and B).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorSpec {
    /// The node that has found the error.
    pub node: IpAddr,
    /// A smaller reservation was there before and still is.
    pub in_place: bool,
    /// This receiver requested less than the failed reservation.
    pub not_guilty: bool,
    /// Code of the error; see [`code`].
    pub code: u8,
    /// More about it.
    pub value: u16,
}

/// The codes of an [`ErrorSpec`] (RFC 2205 appendix B).
pub mod code {
    /// No error: a confirmation.
    pub const CONFIRMATION: u8 = 0;
    /// Admission control has refused the reservation.
    pub const ADMISSION: u8 = 1;
    /// Value of `ADMISSION`: the delay would be too long, because too many bytes may come at once.
    pub const DELAY_BOUND: u16 = 1;
    /// Value of `ADMISSION`: there is not enough bandwidth.
    pub const BANDWIDTH: u16 = 2;
    /// Value of `ADMISSION`: the packets are larger than the link's MTU.
    pub const PACKET_SIZE: u16 = 3;
    /// A reservation without path state.
    pub const NO_PATH: u8 = 3;
    /// A reservation for a sender that is not known.
    pub const NO_SENDER: u8 = 4;
    /// Another style is reserved in this session.
    pub const CONFLICTING_STYLE: u8 = 5;
    /// A style that is not known.
    pub const UNKNOWN_STYLE: u8 = 6;
    /// Sessions with and without a destination port.
    pub const CONFLICTING_PORTS: u8 = 7;
    /// A sender with and without a source port.
    pub const CONFLICTING_SENDER_PORTS: u8 = 8;
    /// The reservation was taken away.
    pub const PREEMPTED: u8 = 12;
    /// A class of objects that is not known.
    pub const UNKNOWN_CLASS: u8 = 13;
    /// A type of an object that is not known.
    pub const UNKNOWN_TYPE: u8 = 14;
    /// Traffic control does not understand the request.
    pub const TRAFFIC_CONTROL: u8 = 21;
    /// Value of `TRAFFIC_CONTROL`: requests for different services cannot be merged.
    pub const SERVICE_CONFLICT: u16 = 1;
    /// Value of `TRAFFIC_CONTROL`: the service is not available.
    pub const SERVICE_UNSUPPORTED: u16 = 2;
    /// Value of `TRAFFIC_CONTROL`: a malformed flowspec.
    pub const BAD_FLOWSPEC: u16 = 3;
    /// Value of `TRAFFIC_CONTROL`: a malformed Tspec.
    pub const BAD_TSPEC: u16 = 4;
    /// Value of `TRAFFIC_CONTROL`: a malformed AdSpec.
    pub const BAD_ADSPEC: u16 = 5;
    /// Traffic control has failed.
    pub const SYSTEM: u8 = 22;
    /// RSVP has failed here: it has no room for more state.
    pub const RSVP_SYSTEM: u8 = 23;
    /// Value of `RSVP_SYSTEM`, which the RFC leaves to implementations: the node, the neighbour or the interface has as much state as it may.
    pub const NO_ROOM: u16 = 1;
}

/// The style of a reservation (RFC 2205 appendix A.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Style {
    /// WF: one reservation for all senders.
    WildcardFilter,
    /// FF: a reservation for each sender.
    FixedFilter,
    /// SE: one reservation for a list of senders.
    SharedExplicit,
    /// An option vector that is none of these, 24 bits.
    Other(u32),
}

impl Style {
    /// Returns the option vector.
    pub const fn vector(self) -> u32 {
        match self {
            Self::WildcardFilter => 0b10001,
            Self::FixedFilter => 0b01010,
            Self::SharedExplicit => 0b10010,
            Self::Other(vector) => vector,
        }
    }

    const fn from_vector(vector: u32) -> Self {
        match vector & 0b11111 {
            0b10001 => Self::WildcardFilter,
            0b01010 => Self::FixedFilter,
            0b10010 => Self::SharedExplicit,
            _ => Self::Other(vector & 0x00ff_ffff),
        }
    }
}

/// An object whose content is passed on as it came.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Opaque {
    /// The class.
    pub class: u8,
    /// The type within the class.
    pub kind: u8,
    /// Whole words.
    pub content: Box<[u8]>,
}

impl Opaque {
    /// An object as it is written.
    fn of(put: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut bytes = Vec::new();
        put(&mut bytes);
        Self { class: bytes[2], kind: bytes[3], content: bytes[OBJECT_HEADER..].into() }
    }
}

impl Hop {
    /// Returns the object as it is on the wire.
    pub(crate) fn object(self) -> Opaque {
        Opaque::of(|to| self.put(to))
    }
}

impl ErrorSpec {
    /// Returns the object as it is on the wire.
    pub(crate) fn object(self) -> Opaque {
        Opaque::of(|to| self.put(to))
    }
}

/// The number of a message, by which its receiver can acknowledge it (RFC 2961 section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageId {
    /// True if an acknowledgement is requested.
    pub wants_ack: bool,
    /// A number that is another one each time the node starts, 24 bits.
    pub epoch: u32,
    /// The number.
    pub id: u32,
}

/// Fate of a message, or of the state that it installed (RFC 2961 section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// True if the message has arrived; otherwise there is no state that it would refresh.
    pub is_known: bool,
    /// The epoch of its number.
    pub epoch: u32,
    /// Its number.
    pub id: u32,
}

/// The numbers of the messages whose state is refreshed (RFC 2961 section 5.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdList {
    /// The epoch of all of them.
    pub epoch: u32,
    /// The numbers.
    pub ids: Ids,
}

/// The numbers of an [`IdList`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ids {
    /// Of reservations, and of paths of sessions with one destination.
    Plain(Vec<u32>),
    /// Of paths to the group to which the message is addressed, each with the sender.
    Sources(Vec<(u32, IpAddr)>),
    /// Of paths to groups, each with sender and group.
    Groups(Vec<(u32, IpAddr, IpAddr)>),
}

/// Challenge for a neighbour to prove that its messages are recent, which returns it (RFC 2747 section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// The neighbour's key, 48 bits.
    pub key: u64,
    /// A number that cannot be guessed.
    pub cookie: u64,
}

/// Writes an object: its header, and the content that `content` appends.
pub(crate) fn put(to: &mut Vec<u8>, class: u8, kind: u8, content: impl FnOnce(&mut Vec<u8>)) {
    let begin = to.len();
    to.extend([0, 0, class, kind]);
    content(to);
    let length = to.len() - begin;
    debug_assert!(length.is_multiple_of(4), "objects consist of whole words");
    to[begin..begin + 2].copy_from_slice(&(length as u16).to_be_bytes());
}

fn put_address(to: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(v4) => to.extend(v4.octets()),
        IpAddr::V6(v6) => to.extend(v6.octets()),
    }
}

/// Returns the type of an object that has one for each version of IP.
const fn kind_of(address: IpAddr) -> u8 {
    if address.is_ipv4() { 1 } else { 2 }
}

/// Reads an address of the version in the type of an object.
fn address(from: &mut Reader<'_>, kind: u8) -> Option<IpAddr> {
    match kind {
        1 => from.take::<4>().map(|bytes| Ipv4Addr::from(bytes).into()),
        2 => from.take::<16>().map(|bytes| Ipv6Addr::from(bytes).into()),
        _ => None,
    }
}

/// Reads an address that one host may have.
fn host(from: &mut Reader<'_>, kind: u8) -> Option<IpAddr> {
    address(from, kind).filter(|address| !address.is_unspecified() && !address.is_multicast())
}

fn ended<T>(from: &Reader<'_>, value: T) -> Option<T> {
    from.is_at_end().then_some(value)
}

impl Session {
    /// Returns whether the destination is a group.
    pub const fn is_multicast(&self) -> bool {
        self.destination.is_multicast()
    }

    /// Returns the selector of the session's packets, from one sender or from all. A port of 0 means a protocol without
    /// ports.
    pub fn selector(&self, sender: Option<&Sender>) -> FlowSelector {
        let port = |port: u16| (port > 0).then_some(port);
        let mut selector = FlowSelector {
            protocol: (self.protocol > 0).then_some(self.protocol),
            destination_port: port(self.port),
            source: sender.map(|sender| sender.address),
            ..FlowSelector::to(self.destination)
        };
        match sender.map(|sender| sender.selector) {
            Some(Selector::Port(number)) => selector.source_port = port(number),
            Some(Selector::FlowLabel(label)) => selector.flow_label = Some(label),
            None => {}
        }
        selector
    }

    pub(crate) fn put(&self, to: &mut Vec<u8>, polices_entry: bool) {
        put(to, class::SESSION, kind_of(self.destination), |to| {
            put_address(to, self.destination);
            to.extend([self.protocol, u8::from(polices_entry)]);
            to.extend(self.port.to_be_bytes());
        });
    }

    /// Reads a session and its flag `E_Police`.
    pub(crate) fn read(kind: u8, content: &[u8]) -> Option<(Self, bool)> {
        let mut from = Reader::new(content);
        let destination = address(&mut from, kind).filter(|address| !address.is_unspecified())?;
        let [protocol, flags] = from.take()?;
        let session = Self { destination, protocol, port: from.u16()? };
        (protocol != 0).then_some(())?;
        ended(&from, (session, flags & 1 != 0))
    }
}

impl Sender {
    pub(crate) fn put(&self, to: &mut Vec<u8>, class: u8) {
        let kind = if matches!(self.selector, Selector::FlowLabel(_)) { 3 } else { kind_of(self.address) };
        put(to, class, kind, |to| {
            put_address(to, self.address);
            match self.selector {
                Selector::Port(port) => to.extend(u32::from(port).to_be_bytes()),
                Selector::FlowLabel(label) => to.extend((label & 0x00ff_ffff).to_be_bytes()),
            }
        });
    }

    pub(crate) fn read(kind: u8, content: &[u8]) -> Option<Self> {
        let mut from = Reader::new(content);
        let address = host(&mut from, kind.min(2))?;
        let word = from.u32()?;
        let selector = match kind {
            3 => Selector::FlowLabel(word & 0x00ff_ffff),
            _ => Selector::Port(word as u16),
        };
        ended(&from, Self { address, selector })
    }
}

impl Hop {
    pub(crate) fn put(&self, to: &mut Vec<u8>) {
        put(to, class::RSVP_HOP, kind_of(self.address), |to| {
            put_address(to, self.address);
            to.extend(self.handle.to_be_bytes());
        });
    }

    pub(crate) fn read(kind: u8, content: &[u8]) -> Option<Self> {
        let mut from = Reader::new(content);
        let hop = Self { address: host(&mut from, kind)?, handle: from.u32()? };
        ended(&from, hop)
    }
}

impl ErrorSpec {
    pub(crate) fn put(&self, to: &mut Vec<u8>) {
        put(to, class::ERROR_SPEC, kind_of(self.node), |to| {
            put_address(to, self.node);
            to.extend([u8::from(self.in_place) | u8::from(self.not_guilty) << 1, self.code]);
            to.extend(self.value.to_be_bytes());
        });
    }

    pub(crate) fn read(kind: u8, content: &[u8]) -> Option<Self> {
        let mut from = Reader::new(content);
        let node = address(&mut from, kind)?;
        let [flags, code] = from.take()?;
        let value = from.u16()?;
        let (in_place, not_guilty) = (flags & 1 != 0, flags & 2 != 0);
        ended(&from, Self { node, in_place, not_guilty, code, value })
    }
}

/// Writes the refresh period, milliseconds.
pub(crate) fn put_time(to: &mut Vec<u8>, period: Duration) {
    let ms = u32::try_from(period.as_nanos() / 1_000_000).unwrap_or(u32::MAX);
    put(to, class::TIME_VALUES, 1, |to| to.extend(ms.to_be_bytes()));
}

pub(crate) fn read_time(content: &[u8]) -> Option<Duration> {
    let mut from = Reader::new(content);
    let ms = from.u32()?;
    ended(&from, Duration::from_millis(u64::from(ms)))
}

/// Writes the addresses of senders, which are in ascending order and of one version of IP.
pub(crate) fn put_scope(to: &mut Vec<u8>, senders: &[IpAddr]) {
    let Some(first) = senders.first() else { return };
    put(to, class::SCOPE, kind_of(*first), |to| {
        for sender in senders {
            put_address(to, *sender);
        }
    });
}

pub(crate) fn read_scope(kind: u8, content: &[u8]) -> Option<Vec<IpAddr>> {
    let mut from = Reader::new(content);
    let mut senders = Vec::new();
    while !from.is_at_end() {
        senders.push(address(&mut from, kind)?);
    }
    senders.is_sorted().then_some(senders)
}

impl Style {
    pub(crate) fn put(self, to: &mut Vec<u8>) {
        put(to, class::STYLE, 1, |to| to.extend(self.vector().to_be_bytes()));
    }

    pub(crate) fn read(content: &[u8]) -> Option<Self> {
        let mut from = Reader::new(content);
        let vector = from.u32()? & 0x00ff_ffff;
        ended(&from, Self::from_vector(vector))
    }
}

/// Writes the receiver that requests a confirmation.
pub(crate) fn put_confirm(to: &mut Vec<u8>, receiver: IpAddr) {
    put(to, class::RESV_CONFIRM, kind_of(receiver), |to| put_address(to, receiver));
}

pub(crate) fn read_confirm(kind: u8, content: &[u8]) -> Option<IpAddr> {
    let mut from = Reader::new(content);
    let receiver = host(&mut from, kind)?;
    ended(&from, receiver)
}

impl Opaque {
    pub(crate) fn put(&self, to: &mut Vec<u8>) {
        put(to, self.class, self.kind, |to| to.extend(&self.content));
    }
}

/// The bits of an epoch.
pub(crate) const EPOCH: u32 = 0x00ff_ffff;

impl MessageId {
    pub(crate) fn put(&self, to: &mut Vec<u8>) {
        put(to, class::MESSAGE_ID, 1, |to| {
            to.extend((u32::from(self.wants_ack) << 24 | self.epoch & EPOCH).to_be_bytes());
            to.extend(self.id.to_be_bytes());
        });
    }

    pub(crate) fn read(content: &[u8]) -> Option<Self> {
        let mut from = Reader::new(content);
        let word = from.u32()?;
        let id = from.u32()?;
        ended(&from, Self { wants_ack: word >> 24 & 1 != 0, epoch: word & EPOCH, id })
    }
}

impl Acknowledgement {
    pub(crate) fn put(&self, to: &mut Vec<u8>) {
        put(to, class::MESSAGE_ID_ACK, if self.is_known { 1 } else { 2 }, |to| {
            to.extend((self.epoch & EPOCH).to_be_bytes());
            to.extend(self.id.to_be_bytes());
        });
    }

    pub(crate) fn read(kind: u8, content: &[u8]) -> Option<Self> {
        let mut from = Reader::new(content);
        let epoch = from.u32()? & EPOCH;
        let id = from.u32()?;
        ended(&from, Self { is_known: kind == 1, epoch, id })
    }
}

impl IdList {
    pub(crate) fn put(&self, to: &mut Vec<u8>) {
        let kind = match &self.ids {
            Ids::Plain(_) => 1,
            Ids::Sources(ids) => ids.first().map_or(2, |(_, source)| 1 + kind_of(*source)),
            Ids::Groups(ids) => ids.first().map_or(4, |(_, source, _)| 3 + kind_of(*source)),
        };
        put(to, class::MESSAGE_ID_LIST, kind, |to| {
            to.extend((self.epoch & EPOCH).to_be_bytes());
            match &self.ids {
                Ids::Plain(ids) => to.extend(ids.iter().flat_map(|id| id.to_be_bytes())),
                Ids::Sources(ids) => ids.iter().for_each(|(id, source)| {
                    to.extend(id.to_be_bytes());
                    put_address(to, *source);
                }),
                Ids::Groups(ids) => ids.iter().for_each(|(id, source, group)| {
                    to.extend(id.to_be_bytes());
                    put_address(to, *source);
                    put_address(to, *group);
                }),
            }
        });
    }

    pub(crate) fn read(kind: u8, content: &[u8]) -> Option<Self> {
        let mut from = Reader::new(content);
        let epoch = from.u32()? & EPOCH;
        let version = if kind.is_multiple_of(2) { 1 } else { 2 };
        let ids = match kind {
            1 => Ids::Plain(all(from, Reader::u32)?),
            2 | 3 => Ids::Sources(all(from, |from| Some((from.u32()?, address(from, version)?)))?),
            _ => Ids::Groups(all(from, |from| {
                Some((from.u32()?, address(from, version)?, address(from, version)?))
            })?),
        };
        Some(Self { epoch, ids })
    }
}

/// Reads one value after the other to the end.
fn all<'b, T>(mut from: Reader<'b>, mut read: impl FnMut(&mut Reader<'b>) -> Option<T>) -> Option<Vec<T>> {
    let mut values = Vec::new();
    while !from.is_at_end() {
        values.push(read(&mut from)?);
    }
    Some(values)
}

impl Challenge {
    pub(crate) fn put(&self, to: &mut Vec<u8>) {
        put(to, class::CHALLENGE, 1, |to| {
            to.extend(self.key.to_be_bytes());
            to.extend(self.cookie.to_be_bytes());
        });
    }

    pub(crate) fn read(content: &[u8]) -> Option<Self> {
        let mut from = Reader::new(content);
        let challenge = Self { key: from.u64()? & KEY_BITS, cookie: from.u64()? };
        ended(&from, challenge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_and_a_sender_select_packets() {
        let session = Session { destination: [10, 0, 0, 9].into(), protocol: 17, port: 5000 };
        let sender = Sender::new([10, 0, 0, 1].into(), 6000);
        let all = session.selector(None);
        assert_eq!((all.protocol, all.destination_port, all.source), (Some(17), Some(5000), None));
        let one = session.selector(Some(&sender));
        assert_eq!((one.source, one.source_port), (Some(sender.address), Some(6000)));
        // A protocol without ports, and no protocol at all.
        let without =
            Session { protocol: 46, port: 0, ..session }.selector(Some(&Sender::new(sender.address, 0)));
        assert_eq!((without.protocol, without.destination_port, without.source_port), (Some(46), None, None));
        assert_eq!(Session { protocol: 0, port: 0, ..session }.selector(None).protocol, None);
        let labelled = Sender { selector: Selector::FlowLabel(7), ..sender };
        assert_eq!(session.selector(Some(&labelled)).flow_label, Some(7));
    }
}
