//! A retransmission timeout from a coarse clock, for `t_RTO` in the throughput equation (V. Jacobson and M. Karels,
//! "Congestion Avoidance and Control", appendix A; November 1988).
//!
//! Round trips are measured in whole ticks. Eight times the average and four times the mean deviation are stored as
//! integers, so that a shift replaces each division. The remainders are lost:
//!
//! ```text
//! e = m - floor(sa / 8)    sa += e    sv += |e| - floor(sv / 4)    rto = floor(sa / 8) + sv
//! ```
//!
//! Worked: round trips of two ticks each begin with sa = 16, sv = 4. The deviation falls to 3 and stays there, because
//! `floor(3 / 4)` is 0: the timeout is 5 ticks, even if the round trips are constant.

use cutline_units::Duration;

/// The average and the mean deviation of the round-trip time, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CoarseTimeout {
    /// `sa`: eight times the average; 0 before the first sample.
    average_by_8: u32,
    /// `sv`: four times the mean deviation.
    deviation_by_4: u32,
}

impl CoarseTimeout {
    /// Adds a sample of the round-trip time.
    pub(super) fn measure(&mut self, sample: Duration, tick: Duration) {
        let ticks = ticks(sample, tick);
        if self.average_by_8 == 0 {
            *self = Self { average_by_8: 8 * ticks, deviation_by_4: 2 * ticks };
            return;
        }
        let average = self.average_by_8 / 8;
        self.average_by_8 = (self.average_by_8 + ticks - average).max(1);
        self.deviation_by_4 =
            (self.deviation_by_4 + ticks.abs_diff(average) - self.deviation_by_4 / 4).max(1);
    }

    /// Returns the timeout.
    pub(super) fn timeout(self, tick: Duration) -> Duration {
        tick * u64::from(self.average_by_8 / 8 + self.deviation_by_4)
    }
}

/// Rounds to the nearest whole number of ticks, and to at least one.
fn ticks(sample: Duration, tick: Duration) -> u32 {
    let nearest = (sample.as_nanos() + tick.as_nanos() / 2) / tick.as_nanos();
    u32::try_from(nearest).map_or(u32::MAX / 16, |ticks| ticks.clamp(1, u32::MAX / 16))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(100);

    fn after(samples_ms: &[u64]) -> CoarseTimeout {
        let mut timeout = CoarseTimeout::default();
        for &ms in samples_ms {
            timeout.measure(Duration::from_millis(ms), TICK);
        }
        timeout
    }

    #[test]
    fn constant_round_trips_add_three_ticks() {
        assert_eq!(after(&[200]).timeout(TICK), TICK * 6);
        assert_eq!(after(&[200, 200]).timeout(TICK), TICK * 5);
        assert_eq!(after(&[200; 50]).timeout(TICK), TICK * 5);
        // Samples are rounded to whole ticks, and to at least one.
        assert_eq!(after(&[249; 50]).timeout(TICK), TICK * 5);
        assert_eq!(after(&[3; 50]).timeout(TICK), TICK * 3);
    }

    #[test]
    fn a_longer_round_trip_increases_the_average_and_the_deviation() {
        // sa = 16, sv = 3; e = 4: sa = 20, sv = 3 + 4 - 0.
        assert_eq!(after(&[200, 200, 600]), CoarseTimeout { average_by_8: 20, deviation_by_4: 7 });
        // e = 6 - 2: sa = 24, sv = 7 + 4 - 1.
        assert_eq!(after(&[200, 200, 600, 600]).timeout(TICK), TICK * (3 + 10));
    }

    #[test]
    fn the_longest_round_trip_does_not_overflow() {
        let longest = Duration::from_nanos(u64::MAX);
        let mut timeout = CoarseTimeout::default();
        for _ in 0..100 {
            timeout.measure(longest, Duration::from_nanos(1));
        }
        assert!(timeout.timeout(Duration::from_nanos(1)) > Duration::ZERO);
    }
}
