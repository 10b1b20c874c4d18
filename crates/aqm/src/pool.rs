//! Many lists of packets in one array, and the books of a queue made of them.
//!
//! A list is threaded through the nodes of a pool, so a queue of a thousand lists allocates no more than one:
//! the pool grows to the largest backlog, and its nodes are used again.

use crate::{Backlog, Departure, DropReason, Limit, QueueStats, Shed, Verdict};
use cutline_units::Instant;

/// A waiting packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held<P> {
    pub(crate) packet: P,
    pub(crate) size: u32,
    pub(crate) arrived: Instant,
    /// Whether it may be marked instead of dropped.
    pub(crate) may_mark: bool,
}

/// A list of packets, first in, first out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    head: u32,
    tail: u32,
    pub(crate) backlog: Backlog,
}

#[derive(Clone, Copy, Debug)]
struct Node<P> {
    held: Held<P>,
    next: u32,
}

/// The nodes of all lists.
#[derive(Clone, Debug)]
pub(crate) struct Pool<P> {
    nodes: Vec<Node<P>>,
    /// The first node that is not in use.
    free: u32,
}

/// What every queue keeps: limit, backlog, counters, and what has been thrown away and not yet told.
#[derive(Clone, Debug)]
pub(crate) struct Books<P> {
    pub(crate) limit: Limit,
    pub(crate) ecn: bool,
    pub(crate) backlog: Backlog,
    pub(crate) stats: QueueStats,
    shed: Vec<Shed<P>>,
}

const NIL: u32 = u32::MAX;

impl List {
    pub(crate) const EMPTY: Self = Self { head: NIL, tail: NIL, backlog: Backlog { packets: 0, bytes: 0 } };

    pub(crate) const fn is_empty(&self) -> bool {
        self.head == NIL
    }
}

impl<P: Copy> Pool<P> {
    pub(crate) const fn new() -> Self {
        Self { nodes: Vec::new(), free: NIL }
    }

    #[inline]
    pub(crate) fn push(&mut self, list: &mut List, held: Held<P>) {
        let node = Node { held, next: NIL };
        let index = self.free;
        let index = if index == NIL {
            self.nodes.push(node);
            self.nodes.len() as u32 - 1
        } else {
            self.free = self.nodes[index as usize].next;
            self.nodes[index as usize] = node;
            index
        };
        if list.is_empty() {
            list.head = index;
        } else {
            self.nodes[list.tail as usize].next = index;
        }
        list.tail = index;
        list.backlog.add(held.size);
    }

    #[inline]
    pub(crate) fn pop(&mut self, list: &mut List) -> Option<Held<P>> {
        let index = list.head;
        if index == NIL {
            return None;
        }
        let Node { held, next } = self.nodes[index as usize];
        list.head = next;
        self.nodes[index as usize].next = self.free;
        self.free = index;
        list.backlog.remove(held.size);
        Some(held)
    }

    /// Empties a list, from its head on.
    pub(crate) fn drain(&mut self, list: &mut List, mut each: impl FnMut(Held<P>)) {
        while let Some(held) = self.pop(list) {
            each(held);
        }
    }

    #[inline]
    pub(crate) fn head(&self, list: &List) -> Option<&Held<P>> {
        (!list.is_empty()).then(|| &self.nodes[list.head as usize].held)
    }
}

impl<P> Held<P> {
    /// The packet on its way out.
    #[inline]
    pub(crate) fn leave(self, marked: bool) -> Departure<P> {
        Departure { packet: self.packet, size: self.size, arrived: self.arrived, marked }
    }
}

impl<P: Copy> Books<P> {
    pub(crate) fn new(limit: Limit, ecn: bool) -> Self {
        let (backlog, stats) = (Backlog::default(), QueueStats::default());
        Self { limit, ecn, backlog, stats, shed: Vec::new() }
    }

    /// Whether there is room for a packet more.
    #[inline]
    pub(crate) const fn admits(&self, size: u32) -> bool {
        self.limit.admits(self.backlog, size)
    }

    /// A packet is stored or refused.
    #[inline]
    pub(crate) fn judge(&mut self, verdict: Verdict, size: u32) -> Verdict {
        self.stats.judge(verdict, size);
        if !matches!(verdict, Verdict::Drop(_)) {
            self.backlog.add(size);
        }
        verdict
    }

    /// A packet goes to the link.
    #[inline]
    pub(crate) fn depart(&mut self, departure: Departure<P>) -> Departure<P> {
        self.backlog.remove(departure.size);
        self.stats.depart(departure.size, departure.marked);
        departure
    }

    /// A stored packet is thrown away.
    pub(crate) fn throw(&mut self, held: Held<P>, reason: DropReason) {
        self.backlog.remove(held.size);
        self.stats.throw(reason, held.size);
        self.shed.push(Shed { packet: held.packet, size: held.size, reason });
    }

    /// The next packet that has been thrown away and not yet told.
    #[inline]
    pub(crate) fn told(&mut self) -> Option<Shed<P>> {
        self.shed.pop()
    }

    /// A packet is thrown away because the queue is emptied.
    pub(crate) fn flush(&mut self, held: Held<P>, discard: &mut dyn FnMut(P)) {
        self.backlog.remove(held.size);
        self.stats.flushed.add(held.size);
        discard(held.packet);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(packet: u32) -> Held<u32> {
        Held { packet, size: 10 + packet, arrived: Instant::ZERO, may_mark: false }
    }

    #[test]
    fn lists_share_nodes_and_keep_their_order() {
        let (mut pool, mut lists) = (Pool::new(), [List::EMPTY; 2]);
        for round in 0..3 {
            (0..20).for_each(|packet| pool.push(&mut lists[packet as usize % 2], held(packet)));
            assert_eq!(lists[1].backlog, Backlog { packets: 10, bytes: 100 + 100 }, "round {round}");
            for (first, list) in (0..).zip(&mut lists) {
                assert_eq!(pool.head(list).map(|held| held.packet), Some(first));
                let out: Vec<u32> = std::iter::from_fn(|| pool.pop(list)).map(|held| held.packet).collect();
                assert_eq!(out, (0..10).map(|i| 2 * i + first).collect::<Vec<_>>());
                assert_eq!(list.backlog, Backlog::default());
            }
        }
        assert_eq!(pool.nodes.len(), 20, "nodes are used again");
    }
}
