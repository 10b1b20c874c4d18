//! Interfaces and paths of flows, by the routes of the kernel and the prefixes of the file.

use super::ManagedHost;
use crate::reserved::protocol;
use cutline_allocation::protocol::FlowNeed;
use cutline_manager::feedback::PathId;
use cutline_manager::resources::InterfaceIndex;
use cutline_netlink::{KernelRoute, Question};
use std::net::SocketAddr;

impl ManagedHost {
    /// Returns why a flow is refused whose packets are not those of this host: classes of the kernel would serve packets that this host forwards
    /// for another one.
    pub(super) fn foreign_source(&mut self, source: SocketAddr) -> Option<String> {
        let address = source.ip().to_canonical();
        let has_classes = self.spec.interfaces.iter().any(|interface| interface.has_classes);
        // No host forwards packets with a link-local source, and that of frames below IP need not be an address of IP.
        let is_own = address.is_unspecified() || link_local_zone(source).is_some();
        let routes = self.routes.as_mut().filter(|_| has_classes && !is_own)?;
        let is_local = matches!(routes.route(Question::from(address)), Ok(KernelRoute::Local));
        (!is_local).then(|| format!("source = {source}: allowed is an address of this host"))
    }

    /// The managed interface by which the kernel's route leads now.
    pub(super) fn interface_of(&mut self, need: &FlowNeed) -> Option<InterfaceIndex> {
        let routes = self.routes.as_mut().filter(|_| !self.interfaces.is_empty())?;
        let (source, destination) = (need.source.ip().to_canonical(), need.destination.ip().to_canonical());
        let source =
            (!source.is_unspecified() && source.is_ipv4() == destination.is_ipv4()).then_some(source);
        let transport = Some((protocol(need.carrier), (need.source.port(), need.destination.port())));
        let mark = self.spec.route_mark;
        let outgoing = link_local_zone(need.destination);
        let question = Question { source, transport, mark, outgoing, ..Question::from(destination) };
        let index = match (routes.route(question), outgoing) {
            (Ok(KernelRoute::Local), _) => return None,
            // Frames below IP need no route.
            (_, Some(zone)) => zone,
            (Ok(KernelRoute::Leaves(hop)), None) => hop.interface,
            _ => return None,
        };
        let index = InterfaceIndex(index);
        self.interfaces.contains_key(&index).then_some(index)
    }

    /// The path with the longest prefix of the destination.
    pub(super) fn path_of(&self, need: &FlowNeed) -> Option<PathId> {
        let address = need.destination.ip();
        let all = self.spec.paths.iter().flat_map(|path| {
            let its = path.destinations.iter().filter(|prefix| prefix.contains(address));
            its.map(|prefix| (prefix.bits(), path.path))
        });
        all.max_by_key(|(bits, _)| *bits).map(|(_, path)| path)
    }
}

/// Returns the interface of a link-local address of IPv6, which is in its zone; `None` for other addresses.
fn link_local_zone(address: SocketAddr) -> Option<u32> {
    match address {
        SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() => Some(v6.scope_id()).filter(|zone| *zone > 0),
        _ => None,
    }
}
