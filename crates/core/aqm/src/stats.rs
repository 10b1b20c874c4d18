//! Counters of every queue, in packets and in bytes.
//!
//! Two sums always hold: arrived = enqueued + refused, and enqueued = dequeued + flushed + shed + the backlog. Dropped
//! packets are those refused and those shed.

use crate::{DropReason, Verdict};

/// A number of packets and of their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Number of packets.
    pub packets: u64,
    /// Number of bytes.
    pub bytes: u64,
}

/// The counters of one queue. They only grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Packets stored, marked or not.
    pub enqueued: Count,
    /// Packets handed to the link.
    pub dequeued: Count,
    /// Packets marked, on arrival or on departure.
    pub marked: Count,
    /// Packets discarded by [`Queue::reset`](crate::Queue::reset).
    pub flushed: Count,
    /// Packets refused on arrival, by reason, in the order of [`DropReason::ALL`].
    refused: [Count; DropReason::ALL.len()],
    /// Packets dropped after they were stored, by reason.
    shed: [Count; DropReason::ALL.len()],
}

impl Count {
    /// One packet more.
    #[inline]
    pub fn add(&mut self, size: u32) {
        self.packets += 1;
        self.bytes += u64::from(size);
    }
}

impl std::ops::AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

impl QueueStats {
    /// Packets dropped for `reason`, on arrival or later.
    pub fn dropped(&self, reason: DropReason) -> Count {
        let mut sum = self.refused[reason as usize];
        sum += self.shed[reason as usize];
        sum
    }

    /// Packets dropped for any reason.
    pub fn dropped_in_all(&self) -> Count {
        let mut sum = total(&self.refused);
        sum += self.shed();
        sum
    }

    /// Packets dropped after they were stored.
    pub fn shed(&self) -> Count {
        total(&self.shed)
    }

    /// Packets offered: stored or refused.
    pub fn arrived(&self) -> Count {
        let mut sum = total(&self.refused);
        sum += self.enqueued;
        sum
    }

    /// Counts an arrival and its verdict.
    #[inline]
    pub fn count_arrival(&mut self, verdict: Verdict, size: u32) {
        if let Verdict::Drop(reason) = verdict {
            self.refused[reason as usize].add(size);
            return;
        }
        self.enqueued.add(size);
        if verdict == Verdict::Mark {
            self.marked.add(size);
        }
    }

    /// Counts a packet that goes to the link, and whether it is marked now.
    #[inline]
    pub fn count_departure(&mut self, size: u32, marked: bool) {
        self.dequeued.add(size);
        if marked {
            self.marked.add(size);
        }
    }

    /// Counts a stored packet that is dropped.
    #[inline]
    pub fn count_shed(&mut self, reason: DropReason, size: u32) {
        self.shed[reason as usize].add(size);
    }
}

fn total(counts: &[Count]) -> Count {
    let mut sum = Count::default();
    for &count in counts {
        sum += count;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_counted_by_kind() {
        let mut stats = QueueStats::default();
        let early = Verdict::Drop(DropReason::Early);
        let overflow = Verdict::Drop(DropReason::Overflow);
        for (verdict, size) in [(Verdict::Pass, 1), (Verdict::Mark, 20), (early, 300), (overflow, 4000)] {
            stats.count_arrival(verdict, size);
        }
        assert_eq!(stats.enqueued, Count { packets: 2, bytes: 21 });
        assert_eq!(stats.marked, Count { packets: 1, bytes: 20 });
        assert_eq!(stats.dropped(DropReason::Early), Count { packets: 1, bytes: 300 });
        assert_eq!(stats.dropped(DropReason::Overflow), Count { packets: 1, bytes: 4000 });
        assert_eq!(stats.arrived(), Count { packets: 4, bytes: 4321 });
    }
}
