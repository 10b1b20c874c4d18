//! Route queries: the route of a packet by the kernel's tables (`RTM_GETROUTE`).
//!
//! The kernel answers for each flow; no table is copied. So rules (`ip rule from`, `iif`, `fwmark`, `ipproto`, `dport`), several tables and
//! multipath routes count as they do for packets.

use crate::Error;
use crate::channel::Channel;
use cutline_sys::packet::LinkAddress;
use netlink_packet_core::NLM_F_CREATE;
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteType, RouteVia,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use rustix::io::Errno;
use std::net::IpAddr;

/// A query for the route of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Question {
    /// Their destination, a host or a group.
    pub destination: IpAddr,
    /// Their source, where rules of routing depend on it. IPv4 has no answer for the source of another host unless `incoming`
    /// is given; the source is then left out.
    pub source: Option<IpAddr>,
    /// The interface at which they arrive; `None` for packets of this host.
    pub incoming: Option<u32>,
    /// The interface by which they leave, where only routes by it count.
    pub outgoing: Option<u32>,
    /// Their protocol, and their ports of source and destination, where rules or the choice among several links depend on them. The kernel
    /// answers for TCP and UDP alone; with another protocol, they are left out.
    pub transport: Option<(u8, (u16, u16))>,
    /// The mark that they have in this host (`SO_MARK`, or set by a packet filter); 0 for none.
    pub mark: u32,
}

impl From<IpAddr> for Question {
    fn from(destination: IpAddr) -> Self {
        Self { destination, source: None, incoming: None, outgoing: None, transport: None, mark: 0 }
    }
}

/// The kernel's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelRoute {
    /// Packets leave.
    Leaves(Hop),
    /// Delivered to this host.
    Local,
    /// Delivered nowhere.
    None(NoRoute),
}

/// Next hop of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The number of the interface.
    pub interface: u32,
    /// The next router; `None` if the destination is on the link.
    pub next_hop: Option<IpAddr>,
    /// The source address that the kernel gives packets of this host; `None` if the question had one.
    pub source: Option<IpAddr>,
}

/// Reason why packets are delivered nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoute {
    /// No route leads there, or one of type unreachable.
    Unreachable,
    /// A route prohibits it.
    Prohibited,
    /// A route drops them without a word.
    Blackhole,
}

/// The protocols whose ports the kernel takes in a question (`rtm_getroute_parse_ip_proto`): TCP and UDP.
const WITH_PORTS: [u8; 2] = [6, 17];

/// Asks the kernel for routes, in the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct RouteLookup {
    channel: Channel,
}

impl RouteLookup {
    /// Opens a socket to the kernel.
    ///
    /// # Errors
    /// When that is not possible.
    pub fn open() -> Result<Self, Error> {
        Ok(Self { channel: Channel::open()? })
    }

    /// Returns the present route of packets.
    ///
    /// # Errors
    /// When source and destination are not of the same protocol, or the kernel cannot be queried.
    pub fn route(&mut self, question: impl Into<Question>) -> Result<KernelRoute, Error> {
        let question = question.into();
        if question.source.is_some_and(|source| source.is_ipv4() != question.destination.is_ipv4()) {
            let source = question.source.map(|source| source.to_string()).unwrap_or_default();
            return Err(Error::invalid("source", source, "an address of the destination's protocol"));
        }
        // For packets of this host, IPv4 refuses a source that is not this host's.
        let source = match (question.source, question.incoming) {
            (Some(source @ IpAddr::V4(_)), None)
                if no_route(self.ask(&source.into()))? != KernelRoute::Local =>
            {
                None
            }
            (source, _) => source,
        };
        no_route(self.ask(&Question { source, ..question }))
    }

    /// Returns the address of a neighbour on its link; `None` while it is not known. Then the kernel begins to request it.
    ///
    /// # Errors
    /// When the kernel cannot be queried.
    pub fn neighbour(&mut self, interface: u32, address: IpAddr) -> Result<Option<LinkAddress>, Error> {
        let failed = || format!("the neighbour {address} cannot be looked up");
        let mut message = NeighbourMessage::default();
        message.header.family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        message.header.ifindex = interface;
        let destination = match address {
            IpAddr::V4(v4) => NeighbourAddress::Inet(v4),
            IpAddr::V6(v6) => NeighbourAddress::Inet6(v6),
        };
        message.attributes.push(NeighbourAttribute::Destination(destination));
        let answers = self.channel.request(RouteNetlinkMessage::GetNeighbour(message.clone()), 0, failed);
        let found = answers.ok().into_iter().flatten().find_map(|answer| match answer {
            RouteNetlinkMessage::NewNeighbour(neighbour) => link_address(&neighbour),
            _ => None,
        });
        if found.is_none() {
            message.header.flags = NeighbourFlags::Use;
            self.channel.request(RouteNetlinkMessage::NewNeighbour(message), NLM_F_CREATE, failed)?;
        }
        Ok(found)
    }

    fn ask(&mut self, question: &Question) -> Result<KernelRoute, Error> {
        let failed = || format!("the route to {} cannot be looked up", question.destination);
        let answers = self.channel.request(RouteNetlinkMessage::GetRoute(request(question)), 0, failed)?;
        let route = answers.into_iter().find_map(|answer| match answer {
            RouteNetlinkMessage::NewRoute(route) => Some(route),
            _ => None,
        });
        let route = route
            .ok_or_else(|| Error::Answer(format!("there is no route in it, to {}", question.destination)))?;
        read(&route)
    }
}

/// The address in an entry, unless it is one of a neighbour that does not answer.
fn link_address(neighbour: &NeighbourMessage) -> Option<LinkAddress> {
    let is_unknown = matches!(
        neighbour.header.state,
        NeighbourState::Incomplete | NeighbourState::Failed | NeighbourState::None
    );
    let address = neighbour.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::LinkLayerAddress(address) => address.as_slice().try_into().ok(),
        _ => None,
    });
    address.filter(|_| !is_unknown)
}

fn request(question: &Question) -> RouteMessage {
    let bits = if question.destination.is_ipv4() { 32 } else { 128 };
    let mut message = RouteMessage::default();
    message.header = RouteHeader {
        address_family: if question.destination.is_ipv4() {
            AddressFamily::Inet
        } else {
            AddressFamily::Inet6
        },
        destination_prefix_length: bits,
        source_prefix_length: if question.source.is_some() { bits } else { 0 },
        ..RouteHeader::default()
    };
    message.attributes.push(RouteAttribute::Destination(question.destination.into()));
    message.attributes.extend(question.source.map(|source| RouteAttribute::Source(source.into())));
    message.attributes.extend(question.incoming.map(RouteAttribute::Iif));
    message.attributes.extend(question.outgoing.map(RouteAttribute::Oif));
    if question.mark != 0 {
        message.attributes.push(RouteAttribute::Mark(question.mark));
    }
    if let Some((protocol, (source, destination))) =
        question.transport.filter(|(its, _)| WITH_PORTS.contains(its))
    {
        message.attributes.push(RouteAttribute::IpProto(protocol));
        message.attributes.extend((source != 0).then_some(RouteAttribute::Sport(source)));
        message.attributes.extend((destination != 0).then_some(RouteAttribute::Dport(destination)));
    }
    message
}

fn read(message: &RouteMessage) -> Result<KernelRoute, Error> {
    match message.header.kind {
        RouteType::Local | RouteType::Anycast => Ok(KernelRoute::Local),
        RouteType::Unicast | RouteType::Broadcast | RouteType::Multicast => {
            let interface = message.attributes.iter().find_map(|attribute| match attribute {
                RouteAttribute::Oif(index) => Some(*index),
                _ => None,
            });
            let interface = interface.ok_or_else(|| Error::Answer("a route has no interface".to_owned()))?;
            let next_hop = message.attributes.iter().find_map(next_hop);
            let source = message.attributes.iter().find_map(|attribute| match attribute {
                RouteAttribute::PrefSource(address) => ip(address),
                _ => None,
            });
            Ok(KernelRoute::Leaves(Hop { interface, next_hop, source }))
        }
        RouteType::BlackHole => Ok(KernelRoute::None(NoRoute::Blackhole)),
        RouteType::Prohibit => Ok(KernelRoute::None(NoRoute::Prohibited)),
        RouteType::Unreachable | RouteType::Throw => Ok(KernelRoute::None(NoRoute::Unreachable)),
        kind => Err(Error::Answer(format!("a route is of kind {kind:?}"))),
    }
}

fn next_hop(attribute: &RouteAttribute) -> Option<IpAddr> {
    match attribute {
        RouteAttribute::Gateway(address) => ip(address),
        // A next hop of the other protocol: IPv4 routes by routers of IPv6.
        RouteAttribute::Via(RouteVia::Inet(address)) => Some((*address).into()),
        RouteAttribute::Via(RouteVia::Inet6(address)) => Some((*address).into()),
        _ => None,
    }
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some((*address).into()),
        RouteAddress::Inet6(address) => Some((*address).into()),
        _ => None,
    }
}

/// Turns the errors that mean a missing route into that answer (`fib_props` in its routing code).
fn no_route(answered: Result<KernelRoute, Error>) -> Result<KernelRoute, Error> {
    let why = match answered.as_ref().err().and_then(Error::number) {
        Some(Errno::NETUNREACH | Errno::HOSTUNREACH) => NoRoute::Unreachable,
        Some(Errno::ACCESS) => NoRoute::Prohibited,
        Some(Errno::INVAL) => NoRoute::Blackhole,
        _ => return answered,
    };
    Ok(KernelRoute::None(why))
}
