//! Differences of a direction's statistics at two times.

use crate::statistics::{DirectionStatistics, PacketCount, Statistics};
use cutline_records::BucketCounts;
use cutline_router::Loss;

/// A direction of a router, or a queue in the kernel, in an interval.
///
/// A counter that is smaller at the end than at the beginning has not grown: the router restarted in between.
#[derive(Clone, Copy, Debug)]
pub struct DirectionInterval<'s> {
    before: &'s DirectionStatistics,
    after: &'s DirectionStatistics,
    seconds: f64,
}

impl<'s> DirectionInterval<'s> {
    /// An interval between two statistics of one direction, with its length in seconds; `None` if it has no length.
    pub fn new(
        before: &'s DirectionStatistics,
        after: &'s DirectionStatistics,
        seconds: f64,
    ) -> Option<Self> {
        (seconds > 0.0).then_some(Self { before, after, seconds })
    }

    /// Returns the intervals of both directions, the forward one first; `None` if the router restarted, or the
    /// statistics are those of one time.
    pub fn both(before: &'s Statistics, after: &'s Statistics) -> Option<[Self; 2]> {
        let of = |reverse| {
            Self::new(before.direction(reverse), after.direction(reverse), after.elapsed_s - before.elapsed_s)
        };
        Some([of(false)?, of(true)?])
    }

    /// Returns the state at the beginning.
    pub const fn before(&self) -> &'s DirectionStatistics {
        self.before
    }

    /// Returns the state at the end.
    pub const fn after(&self) -> &'s DirectionStatistics {
        self.after
    }

    /// Returns the length, s.
    pub const fn seconds(&self) -> f64 {
        self.seconds
    }

    /// Returns the growth of a counter.
    pub fn grown(&self, counter: impl Fn(&DirectionStatistics) -> u64) -> u64 {
        counter(self.after).saturating_sub(counter(self.before))
    }

    /// Returns the growth of a counter, per second.
    pub fn per_second(&self, counter: impl Fn(&DirectionStatistics) -> u64) -> f64 {
        self.grown(counter) as f64 / self.seconds
    }

    /// Returns the growth of a counter of packets and bytes.
    pub fn counted(&self, counter: impl Fn(&DirectionStatistics) -> PacketCount) -> PacketCount {
        PacketCount {
            packets: self.grown(|direction| counter(direction).packets),
            bytes: self.grown(|direction| counter(direction).bytes),
        }
    }

    /// Returns the number of packets that were lost for a reason.
    pub fn lost(&self, loss: Loss) -> u64 {
        self.grown(|direction| direction.lost(loss).packets)
    }

    /// Returns the rate at which packets arrived, bit/s.
    pub fn received_bps(&self) -> f64 {
        8.0 * self.per_second(|direction| direction.received.bytes)
    }

    /// Returns the rate at which packets left, bit/s.
    pub fn sent_bps(&self) -> f64 {
        8.0 * self.per_second(|direction| direction.sent.bytes)
    }

    /// Returns the sent bytes as a share of those that the rate at the end allows; 0 without a rate.
    pub fn utilisation(&self) -> f64 {
        match self.after.rate_bps {
            0 => 0.0,
            rate_bps => self.sent_bps() / rate_bps as f64,
        }
    }

    /// Returns the waits of the packets that left the queue.
    pub fn waits(&self) -> Waits {
        Waits(self.after.waits_us.since(&self.before.waits_us))
    }
}

/// Waits of packets.
#[derive(Clone, Debug)]
pub struct Waits(BucketCounts);

impl Waits {
    /// Returns a quantile, ms; `None` if no packet has left.
    pub fn quantile_ms(&self, q: f64) -> Option<f64> {
        self.0.quantile(q).map(|us| us / 1e3)
    }

    /// Returns the mean, ms; `None` if no packet has left.
    pub fn mean_ms(&self) -> Option<f64> {
        let count = self.0.count();
        (count > 0).then(|| self.0.sum.max(0.0) / count as f64 / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> Statistics {
        let mut statistics = Statistics { elapsed_s: second as f64, ..Statistics::default() };
        let forward = &mut statistics.forward;
        forward.rate_bps = 1_000_000;
        forward.sent = PacketCount { packets: 100 * second, bytes: 100_000 * second };
        let lost = PacketCount { packets: 3 * second, bytes: 0 };
        forward.dropped.insert(Loss::Overflow.name().to_owned(), lost);
        forward.waits_us = BucketCounts {
            bounds: vec![1000.0, 2000.0],
            counts: vec![100 * second, 0, 0],
            sum: 50_000.0 * second as f64,
        };
        statistics
    }

    #[test]
    fn an_interval_is_the_difference_of_two_statistics() {
        let (before, after) = (at(2), at(4));
        let [forward, reverse] = DirectionInterval::both(&before, &after).unwrap();
        assert_eq!((forward.seconds(), forward.sent_bps(), forward.utilisation()), (2.0, 800_000.0, 0.8));
        assert_eq!((forward.lost(Loss::Overflow), forward.lost(Loss::Early)), (6, 0));
        assert_eq!(forward.counted(|of| of.sent), PacketCount { packets: 200, bytes: 200_000 });
        let waits = forward.waits();
        assert_eq!((waits.quantile_ms(0.5), waits.mean_ms()), (Some(0.5), Some(0.5)));
        assert_eq!((reverse.utilisation(), reverse.waits().mean_ms()), (0.0, None));
    }

    #[test]
    fn a_restarted_router_has_no_interval() {
        assert!(DirectionInterval::both(&at(4), &at(1)).is_none());
        assert!(DirectionInterval::both(&at(4), &at(4)).is_none());
        // It may have run longer than the one before.
        let (mut before, after) = (at(1), at(4));
        before.forward.sent.bytes = u64::MAX;
        let [forward, _] = DirectionInterval::both(&before, &after).unwrap();
        assert_eq!(forward.sent_bps(), 0.0);
    }
}
