//! Probes of the interfaces of routers and of queues in the kernel while the monitor's documents are compared.

use crate::probe::{self, InterfaceProperties, LinkBacklog};
use cutline_monitor::{HostDocument, InterfaceEvidence};
use std::collections::BTreeSet;
use std::fs;

/// Observation of the interfaces of the routers, and of the queues in the kernel, in a document.
#[derive(Debug)]
pub struct LinkInterfaces {
    seen: Vec<(InterfaceEvidence, LinkBacklog)>,
}

impl LinkInterfaces {
    /// Begins to observe. Interfaces that cannot be probed are left out: those of a router in another network namespace, and all
    /// without `ip` and `tc`.
    pub fn begin(document: &HostDocument) -> Self {
        let here = document.routers.iter().filter(|entry| is_in_our_namespace(entry.pid));
        let of_routers = here.flat_map(|entry| &entry.router.interfaces).map(|interface| &*interface.name);
        let of_kernel = document.kernel_queues.iter().map(|entry| &*entry.queue.interface);
        let names: BTreeSet<&str> = of_routers.chain(of_kernel).collect();
        let links = if names.is_empty() { Vec::new() } else { probe::links().unwrap_or_default() };
        let chosen = links.iter().filter(|link| names.contains(link.name.as_str()));
        let seen = chosen.filter_map(|link| Some((described(link), probe::backlog(&link.name).ok()?)));
        Self { seen: seen.collect() }
    }

    /// Reads the backlogs again. An interface that was removed keeps its last values.
    pub fn look(&mut self) {
        for (evidence, first) in &mut self.seen {
            let Ok(backlog) = probe::backlog(&evidence.name) else { continue };
            let dropped = |of: &LinkBacklog| of.qdisc_dropped + of.dropped;
            evidence.queued_packets = evidence.queued_packets.max(backlog.qdisc_packets);
            evidence.dropped_packets = dropped(&backlog).saturating_sub(dropped(first));
        }
    }

    /// Returns the observations.
    pub fn finish(self) -> Vec<InterfaceEvidence> {
        self.seen.into_iter().map(|(evidence, _)| evidence).collect()
    }
}

fn described(link: &InterfaceProperties) -> InterfaceEvidence {
    InterfaceEvidence {
        name: link.name.clone(),
        speed_bps: link.speed.map(cutline_units::Rate::as_bps),
        offloads: link.offloads.iter().map(|offload| offload.name().to_owned()).collect(),
        ..InterfaceEvidence::default()
    }
}

/// Returns whether a process is in the network namespace of this one; not if that cannot be read.
fn is_in_our_namespace(pid: u32) -> bool {
    let of = |process: &str| fs::read_link(format!("/proc/{process}/ns/net")).ok();
    // A thread may be in another namespace than its process.
    of("thread-self").is_some_and(|ours| of(&pid.to_string()) == Some(ours))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_monitor::{KernelQueueEntry, RouterEntry};
    use cutline_router_service::{Interface, QdiscDocument, Statistics};

    #[test]
    fn only_interfaces_of_a_local_router_are_probed() {
        let interface = |name: &str| Interface { name: name.to_owned(), ..Interface::default() };
        let router =
            Statistics { interfaces: vec![interface("lo"), interface("nosuch0")], ..Statistics::default() };
        let entry = |pid| RouterEntry { pid, uid: 0, router: router.clone().into() };
        let document = |pid| HostDocument { routers: vec![entry(pid)], ..HostDocument::default() };
        let mut watch = LinkInterfaces::begin(&document(std::process::id()));
        watch.look();
        let seen = watch.finish();
        assert_eq!(seen.len(), 1, "{seen:?}");
        assert_eq!((seen[0].name.as_str(), seen[0].dropped_packets), ("lo", 0));
        assert!(LinkInterfaces::begin(&document(u32::MAX)).finish().is_empty(), "no such process");
        let queue = QdiscDocument { interface: "lo".to_owned(), ..QdiscDocument::default() };
        let queue = KernelQueueEntry { index: 1, queue: queue.into() };
        let document = HostDocument { kernel_queues: vec![queue], ..HostDocument::default() };
        assert_eq!(LinkInterfaces::begin(&document).finish()[0].name, "lo");
    }
}
