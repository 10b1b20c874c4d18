//! Strict priority: the smallest hint is always served first.
//!
//! Source: RFC 7567 section 2.2.2 and RFC 2474 section 4.2.2.2, as class selectors are commonly served. Without a charge, hints
//! would be served like this: hint 1 is ahead of all others, and hint 16 may starve.
//!
//! With fewer classes, neighbouring hints share one: class = (hint - 1) classes / 16, rounded down
//! (`hints_share_classes`). Hints beyond 16 count as 16. Each class is first in, first out.
//!
//! A full queue sheds packets of the classes after the newcomer's, from the last class on and from its head. If there are
//! none, it refuses the newcomer. Otherwise a buffer full of bulk traffic would keep out the packets that it serves first.
//!
//! In a file, `below = { aqm = "pie", target = "15 ms" }` gives each class a queue of another AQM instead of drop-tail: any
//! but strict priority, with its parameters. A packet is judged by the queue of its class and by its backlog; a law is
//! given the link's rate. The limit stays that of all classes together, and a packet makes room as above (`bands.rs`).
//!
//! # Validation
//!
//! - Order, shared classes and dropping when full: `the_smallest_hint_is_served_first`, `hints_share_classes`,
//!   `a_full_queue_sheds_the_last_class`.
//! - Queues below: over drop-tail nothing changes, and one class is the queue below, packet by packet, for every AQM:
//!   `over_drop_tail_it_is_strict_priority`, `one_class_is_the_queue_below`, `each_class_has_a_queue_of_its_own`; the
//!   conformance suite runs over PIE, CoDel and FQ-CoDel below.

use crate::pool::{Held, List, Pool};
use crate::queue_core::QueueCore;
use crate::queue_core::forward_to_core;
use crate::{Arrival, Departure, Discipline, DropReason, Limit, Queue, Verdict, standing};
use cutline_params::{ParameterError, Parameters};
use cutline_units::{Duration, Hint, Instant, RandomStream, Rate};

/// Number of levels.
pub(crate) const LEVELS: usize = 16;

/// Parameters of strict priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Parameters)]
pub struct StrictPriorityParams {
    /// The number of classes that the hints are divided into.
    #[param(default = LEVELS as u64, range = (1, LEVELS as u64), source = "ours: one for each hint of 4 bits")]
    pub classes: u64,
}

/// Strict priority.
#[derive(Clone, Debug)]
pub struct StrictPriority<P> {
    classes: usize,
    lists: [List; LEVELS],
    pool: Pool<P>,
    core: QueueCore<P>,
}

impl<P: Copy> Discipline for StrictPriority<P> {
    type Params = StrictPriorityParams;
    const NAME: &'static str = "strict-priority";
    const TITLE: &'static str = "Strict priority";
    const SOURCE: &'static str = "RFC 2474 section 4.2.2.2";

    fn build(
        params: &StrictPriorityParams,
        limit: Limit,
        ecn: bool,
        _rate: Rate,
    ) -> Result<Self, ParameterError> {
        params.validate()?;
        let (pool, core) = (Pool::new(), QueueCore::new(limit, ecn));
        Ok(Self { classes: params.classes as usize, lists: [List::EMPTY; LEVELS], pool, core })
    }

    fn standing_delay(_params: &StrictPriorityParams, limit: Limit, rate: Rate) -> Option<Duration> {
        Some(standing::full(limit, rate))
    }
}

/// Returns the class of a hint when there are this many classes.
#[inline]
pub(crate) fn class_of(hint: Hint, classes: usize) -> usize {
    hint.lane().min(LEVELS - 1) * classes / LEVELS
}

impl<P: Copy> StrictPriority<P> {
    /// Sheds packets of the classes after `class`, the last class first, until a packet of `size` fits. Answers whether it
    /// does.
    #[cold]
    fn make_room(&mut self, class: usize, size: u32) -> bool {
        for list in self.lists[class + 1..].iter_mut().rev() {
            while !self.core.admits(size) {
                let Some(held) = self.pool.pop(list) else { break };
                self.core.count_shed(held, DropReason::Overflow);
            }
        }
        self.core.admits(size)
    }
}

impl<P: Copy> Queue<P> for StrictPriority<P> {
    #[inline]
    fn enqueue(&mut self, now: Instant, arrival: Arrival, packet: P, _random: &mut RandomStream) -> Verdict {
        let (class, size) = (class_of(arrival.hint, self.classes), arrival.size);
        if !self.core.admits(size) && !self.make_room(class, size) {
            return self.core.count_arrival(Verdict::Drop(DropReason::Overflow), size);
        }
        self.pool.push(&mut self.lists[class], Held { packet, size, arrived: now, may_mark: false });
        self.core.count_arrival(Verdict::Pass, size)
    }

    #[inline]
    fn dequeue(&mut self, _now: Instant) -> Option<Departure<P>> {
        let list = self.lists.iter_mut().find(|list| !list.is_empty())?;
        let held = self.pool.pop(list)?;
        Some(self.core.count_departure(held.leave(false)))
    }

    forward_to_core!(P);

    fn reset(&mut self, _now: Instant, discard: &mut dyn FnMut(P)) {
        for list in &mut self.lists {
            self.pool.drain(list, |held| self.core.count_flushed(held, discard));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::Streams;

    fn queue(classes: u64, limit: Limit) -> StrictPriority<u16> {
        StrictPriority::build(&StrictPriorityParams { classes }, limit, false, Rate::from_mbps(8)).unwrap()
    }

    /// Packets are called by their level.
    fn arrive(queue: &mut StrictPriority<u16>, level: u16, size: u32) -> Verdict {
        let mut random = Streams::new(1).stream("queue", "drop");
        queue.enqueue(Instant::ZERO, Arrival::new(size, Hint::from_level(level)), level, &mut random)
    }

    fn order(queue: &mut StrictPriority<u16>) -> Vec<u16> {
        std::iter::from_fn(|| queue.dequeue(Instant::ZERO)).map(|departure| departure.packet).collect()
    }

    #[test]
    fn the_smallest_hint_is_served_first() {
        let mut queue = queue(16, Limit::Packets(10));
        for level in [16, 6, 1, 6, 200, 1] {
            arrive(&mut queue, level, 1000);
        }
        assert_eq!(order(&mut queue), [1, 1, 6, 6, 16, 200]);
    }

    #[test]
    fn hints_share_classes() {
        let mut queue = queue(2, Limit::Packets(10));
        for level in [9, 8, 16, 1] {
            arrive(&mut queue, level, 1000);
        }
        assert_eq!(order(&mut queue), [8, 1, 9, 16]);
    }

    #[test]
    fn a_full_queue_sheds_the_last_class() {
        let mut queue = queue(16, Limit::Bytes(3000));
        for level in [16, 16, 12] {
            assert_eq!(arrive(&mut queue, level, 1000), Verdict::Pass);
        }
        assert_eq!(arrive(&mut queue, 16, 1000), Verdict::Drop(DropReason::Overflow));
        assert_eq!(arrive(&mut queue, 1, 2500), Verdict::Pass);
        let shed: Vec<u16> = std::iter::from_fn(|| queue.shed()).map(|shed| shed.packet).collect();
        assert_eq!(shed, [12, 16, 16], "the last one is reported first: those of hint 16 went before the 12");
        assert_eq!(order(&mut queue), [1]);
    }
}
