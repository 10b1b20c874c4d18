//! The kernel's answers about routes, as the engine needs them.

use crate::network::KernelInterface;
use cutline_netlink::{Error, KernelRoute as Kernel, Monitor, NetworkChanges, Question, RouteLookup};
use cutline_rsvp::engine::{Datagram, InterfaceId, Route, RouteKey};
use cutline_sys::packet::LinkAddress;
use cutline_units::IpVersion;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd as _, BorrowedFd};

/// Look-ups of routes in the kernel, and notifications of changes.
#[derive(Debug)]
pub struct Routes {
    router: RouteLookup,
    monitor: Monitor,
    /// The routes that the engine has requested.
    asked: BTreeSet<RouteKey>,
    /// The mark of packets (`route-mark`).
    mark: u32,
}

impl Routes {
    /// Subscribes to changes. Packets have this mark when they are routed; 0 for none.
    pub fn open(mark: u32) -> Result<Self, Error> {
        Ok(Self { router: RouteLookup::open()?, monitor: Monitor::open()?, asked: BTreeSet::new(), mark })
    }

    /// The descriptor that is readable after a change.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.monitor.as_fd()
    }

    /// Returns the changes since the last call.
    pub fn changes(&mut self) -> NetworkChanges {
        // If the changes cannot be read, there may have been any.
        self.monitor.take().unwrap_or(NetworkChanges::ALL)
    }

    /// Records a route that the engine has requested.
    pub fn remember(&mut self, key: RouteKey) {
        self.asked.insert(key);
    }

    pub fn forget(&mut self, key: RouteKey) {
        self.asked.remove(&key);
    }

    pub fn asked(&self) -> Vec<RouteKey> {
        self.asked.iter().copied().collect()
    }

    /// Returns whether an address is one of this host.
    pub fn is_local(&mut self, address: IpAddr) -> bool {
        matches!(self.router.route(Question::from(address)), Ok(Kernel::Local))
    }

    /// Returns the route of packets. A route by an interface that is not ours leads nowhere, as far as the
    /// protocol is concerned.
    pub fn route(&mut self, key: RouteKey, links: &[KernelInterface]) -> Route {
        let any = Question::from(key.destination);
        let question = key.flow.map_or(any, |flow| Question {
            source: Some(flow.source),
            incoming: links.iter().find(|link| link.id == flow.incoming).map(|link| link.index),
            transport: Some((flow.protocol, flow.ports)),
            ..any
        });
        let outgoing = self.next_of(question, links);
        Route { incoming: None, outgoing: outgoing.into_iter().collect() }
    }

    /// Returns the interface and the next node on the route of a flow of this host.
    pub fn next(
        &mut self,
        (source, destination): (SocketAddr, SocketAddr),
        protocol: u8,
        links: &[KernelInterface],
    ) -> Option<(InterfaceId, Option<IpAddr>)> {
        let question = Question {
            source: Some(source.ip()),
            transport: Some((protocol, (source.port(), destination.port()))),
            ..Question::from(destination.ip())
        };
        self.next_of(question, links)
    }

    /// Returns the address on its link of the next node of a message, if the kernel's routes would lead the message itself elsewhere: rules may
    /// be for the protocol or the ports of the flow that it is about. Until the address is known, the message is sent as routes have it.
    pub fn detour(&mut self, datagram: &Datagram, links: &[KernelInterface]) -> Option<LinkAddress> {
        let next_hop = datagram.next_hop?;
        let link = links.iter().find(|link| link.id == datagram.interface)?;
        let usual = self.router.route(Question {
            source: Some(datagram.source),
            outgoing: Some(link.index),
            ..Question::from(datagram.destination)
        });
        match usual {
            Ok(Kernel::Leaves(hop)) if hop.next_hop == Some(next_hop) => None,
            _ => self.router.neighbour(link.index, next_hop).ok().flatten(),
        }
    }

    fn next_of(
        &mut self,
        question: Question,
        links: &[KernelInterface],
    ) -> Option<(InterfaceId, Option<IpAddr>)> {
        let destination = question.destination;
        let question = Question { mark: self.mark, ..question };
        let mut answer = self.router.route(question);
        let is_ours = |answer: &Result<Kernel, Error>| match answer {
            Ok(Kernel::Leaves(hop)) => links.iter().any(|link| link.index == hop.interface),
            Ok(Kernel::Local) => true,
            Ok(Kernel::None(_)) | Err(_) => false,
        };
        // Packets that arrive may have no route because this host does not forward at this time, or because their source has another one; or
        // they go to a userspace router first, between interfaces of its own. The reservation is made where they would leave then.
        if question.incoming.is_some() && !is_ours(&answer) {
            answer = self.router.route(Question { incoming: None, ..question });
        }
        let Ok(Kernel::Leaves(hop)) = answer else { return None };
        let version = IpVersion::of(destination);
        let link = links.iter().find(|link| link.index == hop.interface && link.version == version)?;
        let is_group = destination.is_multicast();
        // A next hop of the other version of IP has no messages of this one.
        let next = hop.next_hop.unwrap_or(destination);
        let next = (!is_group && IpVersion::of(next) == version).then_some(next);
        Some((link.id, next))
    }
}
