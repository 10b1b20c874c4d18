//! Links of a host, in one order for all views: the directions of its routers, and its queues in the kernel.

use crate::document::HostDocument;
use crate::registry::{Process, RowRegistry};
use cutline_router_service::{DirectionInterval, DirectionStatistics, QdiscDocument, Statistics};

/// Identity of a link.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkKey {
    /// A direction of a router: that from `--in` to `--out` is the first.
    Router {
        /// Process of the router.
        pid: u32,
        /// True for the reverse direction.
        is_reverse: bool,
    },
    /// A queue in the kernel. No process has it.
    Kernel {
        /// Its interface.
        interface: String,
    },
}

/// A link with its statistics.
#[derive(Clone, Debug)]
pub struct HostLink<'d> {
    /// Its identity.
    pub key: LinkKey,
    /// The user that it belongs to: root for a queue in the kernel.
    pub owner: u32,
    /// Time since its counters were zero, s.
    pub elapsed_s: f64,
    /// Its statistics.
    pub direction: &'d DirectionStatistics,
}

impl<'d> HostLink<'d> {
    fn of_router(Process { pid, uid }: Process, statistics: &'d Statistics) -> [Self; 2] {
        [false, true].map(|is_reverse| Self {
            key: LinkKey::Router { pid, is_reverse },
            owner: uid,
            elapsed_s: statistics.elapsed_s,
            direction: statistics.direction(is_reverse),
        })
    }

    fn of_kernel_queue(queue: &'d QdiscDocument) -> Self {
        Self {
            key: LinkKey::Kernel { interface: queue.interface.clone() },
            owner: 0,
            elapsed_s: queue.elapsed_s,
            direction: &queue.statistics,
        }
    }

    /// Returns the interval since an earlier state of this link; `None` if its counters have restarted, or both states are of one time.
    pub fn since(&self, earlier: &Self) -> Option<DirectionInterval<'d>> {
        DirectionInterval::new(earlier.direction, self.direction, self.elapsed_s - earlier.elapsed_s)
    }
}

impl HostDocument {
    /// Returns the links of the host.
    pub fn links(&self) -> impl Iterator<Item = HostLink<'_>> {
        let routers = self
            .routers
            .iter()
            .flat_map(|entry| HostLink::of_router(Process { pid: entry.pid, uid: entry.uid }, &entry.router));
        routers.chain(self.kernel_queues.iter().map(|entry| HostLink::of_kernel_queue(&entry.queue)))
    }
}

impl RowRegistry {
    /// Returns the links of the host.
    pub fn links(&self) -> impl Iterator<Item = HostLink<'_>> {
        let routers =
            self.routers().flat_map(|(process, statistics)| HostLink::of_router(process, statistics));
        routers.chain(self.kernel_queues().map(|entry| HostLink::of_kernel_queue(&entry.queue)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{KernelQueueEntry, RouterEntry};

    /// A router in the second `second`, and a queue in the kernel that has been there for a hundred seconds longer.
    fn document(second: u64) -> HostDocument {
        let mut router = Statistics { elapsed_s: second as f64, ..Statistics::default() };
        router.forward.sent.bytes = 1000 * second;
        let router = RouterEntry { pid: 7, uid: 1000, router: router.into() };
        let mut queue = QdiscDocument { elapsed_s: 100.0 + second as f64, ..QdiscDocument::default() };
        queue.interface.push_str("eth0");
        queue.statistics.sent.bytes = 2000 * second;
        let queue = KernelQueueEntry { index: 2, queue: queue.into() };
        HostDocument { routers: vec![router], kernel_queues: vec![queue], ..HostDocument::default() }
    }

    #[test]
    fn directions_of_routers_come_before_queues_in_the_kernel() {
        let (before, after) = (document(1), document(3));
        let links: Vec<HostLink<'_>> = after.links().collect();
        let keys: Vec<LinkKey> = links.iter().map(|link| link.key.clone()).collect();
        let router = |is_reverse| LinkKey::Router { pid: 7, is_reverse };
        assert_eq!(keys, [router(false), router(true), LinkKey::Kernel { interface: "eth0".to_owned() }]);
        assert_eq!(links.iter().map(|link| link.owner).collect::<Vec<_>>(), [1000, 1000, 0]);
        let rates = links.iter().zip(before.links()).map(|(link, was)| link.since(&was).unwrap().sent_bps());
        assert_eq!(rates.collect::<Vec<_>>(), [8000.0, 0.0, 16_000.0]);
        // A queue that was removed and added again has counted for less time.
        assert!(before.links().last().unwrap().since(&links[2]).is_none());
    }
}
