//! What every queue counts, in packets and in bytes.
//!
//! Two sums always hold: what arrived = enqueued + dropped, and enqueued = dequeued + flushed + the backlog.

use crate::{DropReason, Verdict};

/// Packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// The counters of one queue. They only grow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Stored, marked or not.
    pub enqueued: Count,
    /// Handed to the link.
    pub dequeued: Count,
    /// Stored and marked; part of `enqueued`.
    pub marked: Count,
    /// Thrown away by [`Queue::reset`](crate::Queue::reset) after having been stored.
    pub flushed: Count,
    /// Refused, by reason, in the order of [`DropReason::ALL`].
    dropped: [Count; DropReason::ALL.len()],
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
    /// Packets refused for `reason`.
    pub const fn dropped(&self, reason: DropReason) -> Count {
        self.dropped[reason as usize]
    }

    /// Packets refused for any reason.
    pub fn dropped_in_all(&self) -> Count {
        let mut sum = Count::default();
        self.dropped.iter().for_each(|&count| sum += count);
        sum
    }

    /// Packets offered: stored or refused.
    pub fn arrived(&self) -> Count {
        let mut sum = self.dropped_in_all();
        sum += self.enqueued;
        sum
    }

    /// Counts what became of an arrival.
    #[inline]
    pub fn judge(&mut self, verdict: Verdict, size: u32) {
        match verdict {
            Verdict::Pass => self.enqueued.add(size),
            Verdict::Mark => {
                self.enqueued.add(size);
                self.marked.add(size);
            }
            Verdict::Drop(reason) => self.dropped[reason as usize].add(size),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_land_in_their_counters() {
        let mut stats = QueueStats::default();
        let early = Verdict::Drop(DropReason::Early);
        let overflow = Verdict::Drop(DropReason::Overflow);
        for (verdict, size) in [(Verdict::Pass, 1), (Verdict::Mark, 20), (early, 300), (overflow, 4000)] {
            stats.judge(verdict, size);
        }
        assert_eq!(stats.enqueued, Count { packets: 2, bytes: 21 });
        assert_eq!(stats.marked, Count { packets: 1, bytes: 20 });
        assert_eq!(stats.dropped(DropReason::Early), Count { packets: 1, bytes: 300 });
        assert_eq!(stats.dropped(DropReason::Overflow), Count { packets: 1, bytes: 4000 });
        assert_eq!(stats.arrived(), Count { packets: 4, bytes: 4321 });
    }
}
