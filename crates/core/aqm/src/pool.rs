//! Many lists of packets in one array.
//!
//! The lists are linked through the nodes of one pool. A queue of a thousand lists allocates no more than a queue of one
//! list: the pool grows to the largest backlog, and its nodes are used again.

use crate::{Backlog, Departure};
use cutline_units::Instant;

/// A packet in a list.
#[derive(Clone, Copy, Debug)]
pub struct Held<P> {
    /// The handle given to [`Queue::enqueue`](crate::Queue::enqueue).
    pub packet: P,
    /// Bytes on the wire.
    pub size: u32,
    /// Time at which the packet was enqueued.
    pub arrived: Instant,
    /// True if the packet may be marked instead of dropped.
    pub may_mark: bool,
}

/// A list of packets, first in, first out. It belongs to the [`Pool`] that its packets are pushed into.
#[derive(Clone, Copy, Debug)]
pub struct List {
    head: u32,
    tail: u32,
    /// Backlog of the queue.
    pub backlog: Backlog,
}

#[derive(Clone, Copy, Debug)]
struct Node<P> {
    held: Held<P>,
    next: u32,
}

/// The nodes of all lists.
#[derive(Clone, Debug)]
pub struct Pool<P> {
    nodes: Vec<Node<P>>,
    /// The first node that is not in use.
    free: u32,
}

const NIL: u32 = u32::MAX;

impl List {
    /// A list without packets, of any pool.
    pub const EMPTY: Self = Self { head: NIL, tail: NIL, backlog: Backlog { packets: 0, bytes: 0 } };

    /// Returns whether the queue is empty.
    pub const fn is_empty(&self) -> bool {
        self.head == NIL
    }
}

impl<P: Copy> Default for Pool<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Copy> Pool<P> {
    /// A pool without nodes.
    pub const fn new() -> Self {
        Self { nodes: Vec::new(), free: NIL }
    }

    /// Adds a packet at the end of a list.
    #[inline]
    pub fn push(&mut self, list: &mut List, held: Held<P>) {
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

    /// Takes the first packet of a list.
    #[inline]
    pub fn pop(&mut self, list: &mut List) -> Option<Held<P>> {
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
    pub fn drain(&mut self, list: &mut List, mut each: impl FnMut(Held<P>)) {
        while let Some(held) = self.pop(list) {
            each(held);
        }
    }

    /// The first packet of a list.
    #[inline]
    pub fn head(&self, list: &List) -> Option<&Held<P>> {
        (!list.is_empty()).then(|| &self.nodes[list.head as usize].held)
    }
}

impl<P> Held<P> {
    /// The packet as it goes to the link.
    #[inline]
    pub fn leave(self, marked: bool) -> Departure<P> {
        Departure { packet: self.packet, size: self.size, arrived: self.arrived, marked }
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
