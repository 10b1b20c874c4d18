//! Interfaces and their addresses (`RTM_GETLINK`, `RTM_GETADDR`).

use crate::Error;
use crate::channel::Channel;
use cutline_sys::{SysError, ethtool, interface};
use cutline_units::{Bytes, Rate};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkLayerType, LinkMessage};
use std::net::IpAddr;

/// The bytes of an Ethernet header.
const ETHERNET_HEADER: Bytes = Bytes::new(14);

/// An interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its number in its network namespace.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// The longest IP packet.
    pub mtu: Bytes,
    /// The link header that the kernel counts in front of each packet: 14 B of Ethernet, or nothing, as with a tunnel.
    pub header: Bytes,
    /// True if the interface is switched on.
    pub is_up: bool,
    /// True if the interface is the loopback.
    pub is_loopback: bool,
    /// The rate that its driver states; `None` where it does not. It need not be true: a veth states 10 Gbit/s.
    pub speed: Option<Rate>,
    /// Number of its transmit queues; with more than one, the kernel's default queueing discipline is `mq`, with a queue for each. The driver may have
    /// allocated more than the kernel sends to: [`used_transmit_queues`](Self::used_transmit_queues).
    pub transmit_queues: u32,
    /// Its own addresses.
    pub addresses: Vec<Address>,
}

/// An address of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The address.
    pub address: IpAddr,
    /// Length of the network's prefix in bits.
    pub prefix: u8,
}

impl Interface {
    /// Returns the interface of this name, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// When there is none, or the kernel cannot be queried.
    pub fn named(name: &str) -> Result<Self, Error> {
        Self::named_by(&mut Channel::open()?, name)
    }

    /// Returns the interface of this name without its addresses, in the network namespace of the calling thread. The number of other interfaces does not
    /// matter.
    ///
    /// # Errors
    /// As [`Interface::named`].
    pub fn without_addresses(name: &str) -> Result<Self, Error> {
        let channel = &mut Channel::open()?;
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        let failed = || format!("the interface `{name}` cannot be read");
        let answers = channel.request(RouteNetlinkMessage::GetLink(message), 0, failed);
        let mut found = answers.unwrap_or_default().into_iter().filter_map(Self::from_answer);
        match found.find(|interface| interface.name == name) {
            Some(interface) => Ok(interface),
            // The error has the names of all interfaces.
            None => {
                Self::named_by(channel, name).map(|interface| Self { addresses: Vec::new(), ..interface })
            }
        }
    }

    /// Returns the interface of this name, in the network namespace of the channel. It needs no further descriptor.
    pub(crate) fn named_by(channel: &mut Channel, name: &str) -> Result<Self, Error> {
        let mut all = interfaces_by(channel)?;
        let position = all.iter().position(|interface| interface.name == name).ok_or_else(|| {
            let known = all.iter().map(|interface| interface.name.clone()).collect();
            SysError::NoInterface { name: name.to_owned(), known }
        })?;
        Ok(all.swap_remove(position))
    }

    /// Returns the number of transmit queues to which the kernel sends packets at present; all of them where that is not known.
    pub fn used_transmit_queues(&self) -> u32 {
        if self.transmit_queues <= 1 {
            return self.transmit_queues;
        }
        let used = interface::transmit_queues(&self.name, self.index);
        used.map_or(self.transmit_queues, |used| used.min(self.transmit_queues))
    }

    fn from_answer(answer: RouteNetlinkMessage) -> Option<Self> {
        match answer {
            RouteNetlinkMessage::NewLink(link) => Self::read(link),
            _ => None,
        }
    }

    fn read(message: LinkMessage) -> Option<Self> {
        let mut name = None;
        let mut mtu = None;
        let mut transmit_queues = 1;
        for attribute in message.attributes {
            match attribute {
                LinkAttribute::IfName(value) => name = Some(value),
                LinkAttribute::Mtu(value) => mtu = Some(value),
                LinkAttribute::NumTxQueues(value) => transmit_queues = value,
                _ => {}
            }
        }
        let (name, mtu) = (name?, mtu?);
        let kind = message.header.link_layer_type;
        let has_ethernet = matches!(kind, LinkLayerType::Ether | LinkLayerType::Loopback);
        Some(Self {
            index: message.header.index,
            speed: ethtool::link_mode(&name).speed,
            name,
            mtu: Bytes::new(mtu.into()),
            header: if has_ethernet { ETHERNET_HEADER } else { Bytes::ZERO },
            is_up: message.header.flags.contains(LinkFlags::Up),
            is_loopback: message.header.flags.contains(LinkFlags::Loopback),
            transmit_queues,
            addresses: Vec::new(),
        })
    }
}

/// Returns all interfaces of the calling thread's network namespace, in the order of their numbers.
///
/// # Errors
/// When the kernel cannot be queried.
pub fn interfaces() -> Result<Vec<Interface>, Error> {
    interfaces_by(&mut Channel::open()?)
}

fn interfaces_by(channel: &mut Channel) -> Result<Vec<Interface>, Error> {
    let failed = || "the interfaces cannot be listed".to_owned();
    let links = channel.list(&RouteNetlinkMessage::GetLink(LinkMessage::default()), failed)?;
    let addresses = channel.list(&RouteNetlinkMessage::GetAddress(AddressMessage::default()), failed)?;
    let mut interfaces: Vec<Interface> = links.into_iter().filter_map(Interface::from_answer).collect();
    interfaces.sort_by_key(|interface| interface.index);
    for message in addresses {
        let RouteNetlinkMessage::NewAddress(message) = message else { continue };
        let owner = interfaces.iter_mut().find(|interface| interface.index == message.header.index);
        if let (Some(owner), Some(address)) = (owner, own_address(&message)) {
            owner.addresses.push(Address { address, prefix: message.header.prefix_len });
        }
    }
    Ok(interfaces)
}

/// Returns the interface's own address: `IFA_LOCAL`, where there is one. `IFA_ADDRESS` is then the other end of a
/// point-to-point link.
pub(crate) fn own_address(message: &AddressMessage) -> Option<IpAddr> {
    let local = message.attributes.iter().find_map(|attribute| match attribute {
        AddressAttribute::Local(address) => Some(*address),
        _ => None,
    });
    local.or_else(|| {
        message.attributes.iter().find_map(|attribute| match attribute {
            AddressAttribute::Address(address) => Some(*address),
            _ => None,
        })
    })
}
