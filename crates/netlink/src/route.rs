//! Where the kernel would send a packet (`RTM_GETROUTE`).
//!
//! The kernel is asked for each destination; no table is copied. So rules, several tables and multipath routes count as they do
//! for packets.

use crate::Error;
use crate::channel::Channel;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteType, RouteVia,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use rustix::io::Errno;
use std::net::IpAddr;

/// A question: where would packets go?
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Question {
    /// Their destination, a host or a group.
    pub destination: IpAddr,
    /// Their source, where rules of routing depend on it. IPv4 has no answer for the source of another host unless `incoming`
    /// is given; the source is then left out.
    pub source: Option<IpAddr>,
    /// The interface at which they arrive; `None` for packets of this host.
    pub incoming: Option<u32>,
}

impl From<IpAddr> for Question {
    fn from(destination: IpAddr) -> Self {
        Self { destination, source: None, incoming: None }
    }
}

/// The kernel's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Packets leave.
    Leaves(Hop),
    /// They are for this host.
    Local,
    /// They go nowhere.
    None(NoRoute),
}

/// How packets leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The number of the interface.
    pub interface: u32,
    /// The next router; `None` if the destination is on the link.
    pub next_hop: Option<IpAddr>,
    /// The source address that the kernel gives packets of this host; `None` if the question had one.
    pub source: Option<IpAddr>,
}

/// Why packets go nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoute {
    /// No route leads there, or one that says unreachable.
    Unreachable,
    /// A route prohibits it.
    Prohibited,
    /// A route drops them without a word.
    Blackhole,
}

/// Asks the kernel for routes, in the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct Router {
    channel: Channel,
}

impl Router {
    /// Opens a socket to the kernel.
    ///
    /// # Errors
    /// When that is not possible.
    pub fn open() -> Result<Self, Error> {
        Ok(Self { channel: Channel::open()? })
    }

    /// Returns where packets would go now.
    ///
    /// # Errors
    /// When source and destination are not of the same protocol, or the kernel cannot be asked.
    pub fn route(&mut self, question: impl Into<Question>) -> Result<Route, Error> {
        let question = question.into();
        if question.source.is_some_and(|source| source.is_ipv4() != question.destination.is_ipv4()) {
            let source = question.source.map(|source| source.to_string()).unwrap_or_default();
            return Err(Error::invalid("source", source, "an address of the destination's protocol"));
        }
        // For packets of this host, IPv4 refuses a source that is not this host's.
        let source = match (question.source, question.incoming) {
            (Some(source @ IpAddr::V4(_)), None) if no_route(self.ask(&source.into()))? != Route::Local => {
                None
            }
            (source, _) => source,
        };
        no_route(self.ask(&Question { source, ..question }))
    }

    fn ask(&mut self, question: &Question) -> Result<Route, Error> {
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
    message
}

fn read(message: &RouteMessage) -> Result<Route, Error> {
    match message.header.kind {
        RouteType::Local | RouteType::Anycast => Ok(Route::Local),
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
            Ok(Route::Leaves(Hop { interface, next_hop, source }))
        }
        RouteType::BlackHole => Ok(Route::None(NoRoute::Blackhole)),
        RouteType::Prohibit => Ok(Route::None(NoRoute::Prohibited)),
        RouteType::Unreachable | RouteType::Throw => Ok(Route::None(NoRoute::Unreachable)),
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

/// Turns the errors by which the kernel says that there is no route into that answer (`fib_props` in its routing code).
fn no_route(answered: Result<Route, Error>) -> Result<Route, Error> {
    let why = match answered.as_ref().err().and_then(Error::number) {
        Some(Errno::NETUNREACH | Errno::HOSTUNREACH) => NoRoute::Unreachable,
        Some(Errno::ACCESS) => NoRoute::Prohibited,
        Some(Errno::INVAL) => NoRoute::Blackhole,
        _ => return answered,
    };
    Ok(Route::None(why))
}
