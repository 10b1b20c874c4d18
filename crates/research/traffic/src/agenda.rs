//! The deadlines of many members.
//!
//! The deadlines are in a heap. Only the earliest entry of each member is valid ([`LazyTimer`]). A deadline that moves
//! later costs nothing until its old entry is popped. So neither a packet nor a wait iterates over all members.

use cutline_transport::LazyTimer;
use cutline_units::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The deadlines of members that are numbered from 0.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    heap: BinaryHeap<Reverse<(Instant, u32)>>,
    /// The valid entry of each member.
    timers: Vec<LazyTimer>,
}

impl Deadlines {
    /// Makes a member due at `deadline` or earlier.
    pub(crate) fn arm(&mut self, member: u32, deadline: Instant) {
        let index = member as usize;
        if index >= self.timers.len() {
            self.timers.resize(index + 1, LazyTimer::default());
        }
        if let Some(at) = self.timers[index].set(deadline) {
            self.heap.push(Reverse((at, member)));
        }
    }

    /// Removes and returns a member that is due. The caller must arm it again.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<u32> {
        while let Some(&Reverse((at, member))) = self.heap.peek().filter(|Reverse((at, _))| *at <= now) {
            self.heap.pop();
            if self.timers[member as usize].take(at) {
                return Some(member);
            }
        }
        None
    }

    /// Returns the time of the next entry.
    pub(crate) fn next(&self) -> Instant {
        self.heap.peek().map_or(Instant::FAR_FUTURE, |Reverse((at, _))| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_popped_in_order_and_once() {
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
