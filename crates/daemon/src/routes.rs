//! The kernel's answers about routes, as the engine wants them.

use crate::network::Link;
use cutline_netlink::{Changes, Error, Monitor, Question, Route as Kernel, Router};
use cutline_rsvp::engine::{InterfaceId, Route, RouteKey};
use cutline_sys::ip_socket::Version;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::os::fd::{AsFd as _, BorrowedFd};

/// Asks the kernel, and hears of changes.
#[derive(Debug)]
pub struct Routes {
    router: Router,
    monitor: Monitor,
    /// The routes that the engine wants to know.
    asked: BTreeSet<RouteKey>,
}

impl Routes {
    pub fn open() -> Result<Self, Error> {
        Ok(Self { router: Router::open()?, monitor: Monitor::open()?, asked: BTreeSet::new() })
    }

    /// The descriptor that is readable after a change.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.monitor.as_fd()
    }

    /// What has changed since the last call.
    pub fn changes(&mut self) -> Changes {
        // If the changes cannot be read, there may have been any.
        self.monitor.take().unwrap_or(Changes::ALL)
    }

    /// Remembers that the engine wants to know a route.
    pub fn remember(&mut self, key: RouteKey) {
        self.asked.insert(key);
    }

    pub fn forget(&mut self, key: RouteKey) {
        self.asked.remove(&key);
    }

    pub fn asked(&self) -> Vec<RouteKey> {
        self.asked.iter().copied().collect()
    }

    /// Whether an address is one of this host.
    pub fn is_local(&mut self, address: IpAddr) -> bool {
        matches!(self.router.route(Question::from(address)), Ok(Kernel::Local))
    }

    /// Where packets go. A route by an interface that is not ours leads nowhere, as far as the protocol is concerned.
    pub fn route(&mut self, key: RouteKey, links: &[Link]) -> Route {
        Route { incoming: None, outgoing: self.next(key.destination, links).into_iter().collect() }
    }

    /// The interface and the next node on the way to a destination.
    pub fn next(&mut self, destination: IpAddr, links: &[Link]) -> Option<(InterfaceId, Option<IpAddr>)> {
        let Ok(Kernel::Leaves(hop)) = self.router.route(Question::from(destination)) else { return None };
        let version = Version::of(destination);
        let link = links.iter().find(|link| link.index == hop.interface && link.version == version)?;
        let is_group = destination.is_multicast();
        // A next hop of the other version of IP has no messages of this one.
        let next = hop.next_hop.unwrap_or(destination);
        let next = (!is_group && Version::of(next) == version).then_some(next);
        Some((link.id, next))
    }
}
