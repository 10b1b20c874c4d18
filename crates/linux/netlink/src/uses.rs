//! The uses of an interface by its host: addresses, routes, forwarding, a master, interfaces on top of it (`RTM_GETADDR`,
//! `RTM_GETROUTE`, `RTM_GETLINK`).
//!
//! Configuration that every interface gets when it is switched on, and that comes with router advertisements, is no use: link-local
//! addresses of IPv6, addresses of the protocol `ra`, and the routes that the kernel adds with an address.

use crate::Error;
use crate::channel::Channel;
use crate::interface::own_address;
use cutline_units::IpVersion;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage, AddressProtocol};
use netlink_packet_route::link::{
    AfSpecInet, AfSpecInet6, AfSpecUnspec, InfoKind, LinkAttribute, LinkInfo, LinkMessage,
};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteProtocol, RouteType};
use std::fmt;
use std::net::IpAddr;

/// A use of an interface by its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterfaceUse {
    /// An address with the length of its prefix.
    Address(IpAddr, u8),
    /// A route with this destination.
    Route(String),
    /// The bridge, bond or VRF to which it belongs.
    Master(String),
    /// An interface on top of it, such as one for a VLAN.
    Upper(String),
    /// Packets that arrive at it are forwarded, those of IPv4 or those of IPv6.
    Forwarding(IpVersion),
}

impl fmt::Display for InterfaceUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address, prefix) => write!(f, "address {address}/{prefix}"),
            Self::Route(destination) => write!(f, "route to {destination}"),
            Self::Master(name) => write!(f, "member of `{name}`"),
            Self::Upper(name) => write!(f, "below `{name}`"),
            Self::Forwarding(IpVersion::V4) => f.write_str("IPv4 forwarding"),
            Self::Forwarding(IpVersion::V6) => f.write_str("IPv6 forwarding"),
        }
    }
}

/// Returns the uses of the interface of this number, in the network namespace of the calling thread.
///
/// # Errors
/// When the kernel cannot be queried.
pub fn uses(interface: u32) -> Result<Vec<InterfaceUse>, Error> {
    let mut channel = Channel::open()?;
    let failed = || "the uses of an interface cannot be listed".to_owned();
    let addresses = channel.list(&RouteNetlinkMessage::GetAddress(AddressMessage::default()), failed)?;
    let routes = channel.list(&RouteNetlinkMessage::GetRoute(RouteMessage::default()), failed)?;
    let links = channel.list(&RouteNetlinkMessage::GetLink(LinkMessage::default()), failed)?;
    let mut uses = Vec::new();
    for message in addresses {
        let RouteNetlinkMessage::NewAddress(message) = message else { continue };
        let is_its = message.header.index == interface && !is_automatic(&message);
        uses.extend(
            own_address(&message)
                .filter(|_| is_its)
                .map(|address| InterfaceUse::Address(address, message.header.prefix_len)),
        );
    }
    for message in routes {
        let RouteNetlinkMessage::NewRoute(route) = message else { continue };
        if is_a_way(&route) && leaves_by(&route, interface) {
            uses.push(InterfaceUse::Route(destination(&route)));
        }
    }
    let links: Vec<LinkMessage> = links
        .into_iter()
        .filter_map(|message| match message {
            RouteNetlinkMessage::NewLink(link) => Some(link),
            _ => None,
        })
        .collect();
    for link in &links {
        let is_it = link.header.index == interface;
        for attribute in &link.attributes {
            match attribute {
                LinkAttribute::Controller(master) if is_it => {
                    uses.push(InterfaceUse::Master(name(&links, *master)));
                }
                LinkAttribute::AfSpecUnspec(families) if is_it => {
                    uses.extend(families.iter().filter_map(forwarding));
                }
                LinkAttribute::Link(lower) if *lower == interface && !is_it && !is_elsewhere(link) => {
                    uses.push(InterfaceUse::Upper(name(&links, link.header.index)));
                }
                _ => {}
            }
        }
    }
    Ok(uses)
}

/// Returns whether the kernel has added this address by itself.
fn is_automatic(message: &AddressMessage) -> bool {
    let is_link_local =
        matches!(own_address(message), Some(IpAddr::V6(address)) if address.is_unicast_link_local());
    let is_advertised = |attribute: &AddressAttribute| {
        matches!(attribute, AddressAttribute::Protocol(AddressProtocol::RouterAnnouncement))
    };
    is_link_local || message.attributes.iter().any(is_advertised)
}

/// Returns whether a route leads packets to other hosts, and was not added with an address or by a router
/// advertisement.
fn is_a_way(route: &RouteMessage) -> bool {
    let is_own = matches!(route.header.protocol, RouteProtocol::Kernel | RouteProtocol::Ra);
    route.header.kind == RouteType::Unicast && !is_own
}

fn leaves_by(route: &RouteMessage, interface: u32) -> bool {
    route.attributes.iter().any(|attribute| match attribute {
        RouteAttribute::Oif(index) => *index == interface,
        RouteAttribute::MultiPath(hops) => hops.iter().any(|hop| hop.interface_index == interface),
        _ => false,
    })
}

fn destination(route: &RouteMessage) -> String {
    let address = route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Destination(RouteAddress::Inet(address)) => Some(address.to_string()),
        RouteAttribute::Destination(RouteAddress::Inet6(address)) => Some(address.to_string()),
        _ => None,
    });
    address.map_or_else(
        || "everywhere".to_owned(),
        |address| format!("{address}/{}", route.header.destination_prefix_length),
    )
}

/// Returns the use of an interface by forwarding: packets of a version of IP that arrive there are forwarded
/// with these settings.
fn forwarding(settings: &AfSpecUnspec) -> Option<InterfaceUse> {
    let (version, is_on) = match settings {
        AfSpecUnspec::Inet(settings) => (
            IpVersion::V4,
            settings.iter().any(|of| matches!(of, AfSpecInet::DevConf(conf) if conf.forwarding != 0)),
        ),
        AfSpecUnspec::Inet6(settings) => (
            IpVersion::V6,
            settings.iter().any(|of| matches!(of, AfSpecInet6::DevConf(conf) if conf.forwarding != 0)),
        ),
        _ => return None,
    };
    is_on.then_some(InterfaceUse::Forwarding(version))
}

/// Returns whether the lower interface is in another network namespace, as the other end of a virtual pair
/// may be.
fn is_elsewhere(link: &LinkMessage) -> bool {
    let is_pair_or_foreign = |attribute: &LinkAttribute| match attribute {
        LinkAttribute::LinkNetNsId(_) => true,
        LinkAttribute::LinkInfo(infos) => {
            infos.iter().any(|info| matches!(info, LinkInfo::Kind(InfoKind::Veth)))
        }
        _ => false,
    };
    link.attributes.iter().any(is_pair_or_foreign)
}

fn name(links: &[LinkMessage], index: u32) -> String {
    let found = links.iter().find(|link| link.header.index == index);
    let name = found.into_iter().flat_map(|link| &link.attributes).find_map(|attribute| match attribute {
        LinkAttribute::IfName(name) => Some(name.clone()),
        _ => None,
    });
    name.unwrap_or_else(|| format!("interface {index}"))
}
