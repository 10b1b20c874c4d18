//! Who is due next.
//!
//! Deadlines lie in a heap. Each member has one entry that counts, the earliest ([`LazyTimer`]): a deadline that moved
//! later costs nothing until the entry comes up and is found not due. So neither a packet nor a wait looks at all members.

use cutline_transport::LazyTimer;
use cutline_units::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Deadlines of members that are numbered from 0.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    heap: BinaryHeap<Reverse<(Instant, u32)>>,
    /// Which entry of each member counts.
    timers: Vec<LazyTimer>,
}

impl Deadlines {
    /// Sees to it that a member is due no later than at `deadline`.
    pub(crate) fn arm(&mut self, member: u32, deadline: Instant) {
        let index = member as usize;
        if index >= self.timers.len() {
            self.timers.resize(index + 1, LazyTimer::default());
        }
        if let Some(at) = self.timers[index].set(deadline) {
            self.heap.push(Reverse((at, member)));
        }
    }

    /// A member whose deadline has come; it has to be armed again.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<u32> {
        while let Some(&Reverse((at, member))) = self.heap.peek().filter(|Reverse((at, _))| *at <= now) {
            self.heap.pop();
            if self.timers[member as usize].take(at) {
                return Some(member);
            }
        }
        None
    }

    /// When the next entry comes up.
    pub(crate) fn next(&self) -> Instant {
        self.heap.peek().map_or(Instant::FAR_FUTURE, |Reverse((at, _))| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_up_in_order_and_once() {
        let at = Instant::from_nanos;
        let mut deadlines = Deadlines::default();
        for (member, ns) in [(0, 50), (1, 20), (0, 30), (1, 40)] {
            deadlines.arm(member, at(ns));
        }
        assert_eq!((deadlines.next(), deadlines.pop(at(10))), (at(20), None));
        assert_eq!((deadlines.pop(at(100)), deadlines.pop(at(100))), (Some(1), Some(0)));
        assert_eq!((deadlines.pop(at(100)), deadlines.next()), (None, Instant::FAR_FUTURE));
        deadlines.arm(0, at(120));
        assert_eq!(deadlines.pop(at(120)), Some(0));
    }
}
