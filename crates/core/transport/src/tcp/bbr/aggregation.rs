//! Acknowledgements that arrive in bursts: the acknowledged amount beyond that of the model's rate.
//!
//! Links with slots, such as wireless ones, and receivers that process many packets at once hold acknowledgements back. A window of two
//! products then runs empty. The largest excess of the last five to ten round trips is added to the window, up to what the rate delivers in
//! 100 ms.
//!
//! ```text
//! extra = acknowledged since the beginning of the interval - rate * its length
//! ```
//!
//! An interval ends when acknowledgements have fallen behind the rate.
//!
//! Worked: at 1 MB/s, 30,000 B begin an interval and 20,000 B follow 10 ms later: the excess is 50,000 - 10,000 = 40,000 B
//! (`the_excess_over_the_rate_is_allowed`).

use super::filter::volume;
use crate::tcp::RateSample;
use cutline_units::{Duration, Instant};

/// Half of the window of the maximum, round trips.
const ROUNDS: u32 = 5;
/// Time of which the volume at the model's rate is the largest allowance.
const LONGEST: Duration = Duration::from_millis(100);
/// The number of bytes beyond which an interval ends.
const MOST: u64 = 1 << 30;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregation {
    from: Instant,
    acknowledged: u64,
    /// Largest excess of this half of the window and of the other.
    extra: [u64; 2],
    half: usize,
    rounds: u32,
}

impl Aggregation {
    /// Begins an interval after an idle time.
    pub(super) fn restart(&mut self, now: Instant) {
        (self.from, self.acknowledged) = (now, 0);
    }

    /// Takes an acknowledgement. `bandwidth` is in bytes per second.
    pub(super) fn update(&mut self, sample: &RateSample, is_round: bool, bandwidth: f64, cwnd: u64) {
        if sample.newly_delivered == 0 || sample.interval.is_zero() {
            return;
        }
        if is_round {
            self.rounds += 1;
            if self.rounds >= ROUNDS {
                self.rounds = 0;
                self.half = 1 - self.half;
                self.extra[self.half] = 0;
            }
        }
        let mut expected = volume(bandwidth, sample.now.saturating_since(self.from)) as u64;
        if self.acknowledged <= expected || self.acknowledged + sample.newly_delivered >= MOST {
            self.restart(sample.now);
            expected = 0;
        }
        self.acknowledged += sample.newly_delivered;
        let extra = self.acknowledged.saturating_sub(expected).min(cwnd);
        self.extra[self.half] = self.extra[self.half].max(extra);
    }

    /// Returns the addition to the window, bytes.
    pub(super) fn allowance(&self, bandwidth: f64) -> u64 {
        self.extra[0].max(self.extra[1]).min(volume(bandwidth, LONGEST) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    #[test]
    fn the_excess_over_the_rate_is_allowed() {
        let mut aggregation = Aggregation::default();
        let mut ack = |ms: u64, bytes: u64, is_round: bool| {
            let sample = RateSample { newly_delivered: bytes, ..sample(ms) };
            aggregation.update(&sample, is_round, 1e6, 1_000_000);
            aggregation.allowance(1e6)
        };
        assert_eq!(ack(1000, 30_000, true), 30_000);
        assert_eq!(ack(1010, 20_000, false), 40_000);
        // 60 ms are worth 60,000 B: acknowledgements have fallen behind, and an interval begins.
        assert_eq!(ack(1060, 1000, false), 40_000);
        // It is remembered for five round trips at least, and for ten at most.
        assert_eq!((1..=5).map(|n| ack(1060 + n * 100, 1000, true)).max(), Some(40_000));
        assert_eq!((6..=12).map(|n| ack(1060 + n * 100, 1000, true)).last(), Some(1000));
    }

    #[test]
    fn the_allowance_is_bounded_by_a_tenth_of_a_second() {
        let mut aggregation = Aggregation::default();
        aggregation.update(&RateSample { newly_delivered: 500_000, ..sample(1000) }, true, 1e6, 1_000_000);
        assert_eq!(aggregation.allowance(1e6), 100_000);
    }
}
