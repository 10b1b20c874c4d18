//! The plain sorted list: the order of TSQ's queue with nothing clever in it.
//!
//! The oracle of the tests, and the slowest peer of the benchmark. Everything is a scan.

use cutline_aqm::{Backlog, Entry};
use cutline_units::Instant;

/// Packets with their lanes, in the order in which they leave.
#[derive(Clone, Debug, Default)]
pub struct SortedList<P> {
    waiting: Vec<(usize, Entry<P>)>,
}

#[allow(dead_code, reason = "tests and benchmark each use a part")]
impl<P: Copy> SortedList<P> {
    /// An empty list.
    pub const fn new() -> Self {
        Self { waiting: Vec::new() }
    }

    /// `w`, or the largest weight that waits in `lane` where that is larger.
    pub fn fit(&self, lane: usize, w: Instant) -> Instant {
        let same_lane = self.waiting.iter().filter(|(other, _)| *other == lane);
        same_lane.map(|(_, entry)| entry.weight).max().map_or(w, |last| last.max(w))
    }

    /// The bytes of all packets that weigh no more than `w`.
    pub fn bytes_ahead(&self, w: Instant) -> u64 {
        let ahead = self.waiting.iter().filter(|(_, entry)| entry.weight <= w);
        ahead.map(|(_, entry)| u64::from(entry.size)).sum()
    }

    /// Inserts a packet behind all that weigh no more.
    pub fn push(&mut self, lane: usize, mut entry: Entry<P>) {
        entry.weight = self.fit(lane, entry.weight);
        let lighter = self.waiting.iter().filter(|(_, other)| other.weight <= entry.weight).count();
        self.waiting.insert(lighter, (lane, entry));
    }

    /// Takes the first packet.
    pub fn pop(&mut self) -> Option<Entry<P>> {
        (!self.waiting.is_empty()).then(|| self.waiting.remove(0).1)
    }

    /// Returns the backlog.
    pub fn backlog(&self) -> Backlog {
        let bytes = self.waiting.iter().map(|(_, entry)| u64::from(entry.size)).sum();
        Backlog { packets: self.waiting.len() as u32, bytes }
    }
}
