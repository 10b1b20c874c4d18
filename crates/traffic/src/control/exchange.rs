//! Estimates the offset of the receiver's clock with NTP's exchange (RFC 5905 section 8).
//!
//! A request is sent at T1 and received at T2. Its reply is sent at T3 and received at T4. T2 and T3 are times of the
//! other clock:
//!
//! ```text
//! offset = ((T2 - T1) + (T3 - T4)) / 2        round trip = (T4 - T1) - (T3 - T2)
//! ```
//!
//! The error is at most half the round-trip time; it is that large if one direction takes all of the time. Of several
//! exchanges the estimate uses the one with the smallest round-trip time. The offset before the run corrects one-way
//! delays. The offset after the run gives the drift.
//!
//! Example: T1 = 0, T2 = 105, T3 = 106, T4 = 11 (ms) give an offset of 100 ms +- 5 ms and a round trip of 10 ms.

use crate::clock::ClockOffset;
use cutline_units::Duration;

/// An estimate of the clock offset and its error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockEstimate {
    /// The receiver's clock minus ours.
    pub offset: ClockOffset,
    /// The round-trip time of the exchange. The error is at most half of it.
    pub round_trip: Duration,
}

/// The relation of the two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReport {
    /// Whether both ends have the same clock: the boot ids are equal, and the offset is within its error.
    pub same: bool,
    /// The estimate before the run.
    pub before: ClockEstimate,
    /// The estimate after the run; `None` if the session ended earlier.
    pub after: Option<ClockEstimate>,
}

/// The four times of an exchange, ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchange {
    pub(super) left: u64,
    pub(super) came: u64,
    pub(super) left_there: u64,
    pub(super) came_back: u64,
}

impl ClockEstimate {
    /// Returns the largest possible error of the offset.
    pub fn error(self) -> Duration {
        Duration::from_nanos(self.round_trip.as_nanos().div_ceil(2))
    }
}

impl ClockReport {
    /// Returns the offset that one-way delays are corrected by.
    pub fn offset(&self) -> ClockOffset {
        if self.same { ClockOffset::NONE } else { self.before.offset }
    }

    /// Returns the change of the offset during the run, ns; zero if both ends have the same clock.
    pub fn drift_ns(&self) -> i64 {
        match self.after {
            Some(after) if !self.same => {
                after.offset.as_nanos().saturating_sub(self.before.offset.as_nanos())
            }
            _ => 0,
        }
    }

    /// Returns the largest possible error of one-way delays.
    pub fn error(&self) -> Duration {
        if self.same {
            return Duration::ZERO;
        }
        let drifted = Duration::from_nanos(self.drift_ns().unsigned_abs());
        let later = self.after.map_or(Duration::ZERO, |after| after.error() + drifted);
        self.before.error().max(later)
    }
}

/// Returns the estimate of the exchange with the smallest round-trip time; `None` if no exchange is valid.
pub(super) fn estimate(exchanges: &[Exchange]) -> Option<ClockEstimate> {
    exchanges.iter().filter_map(Exchange::estimate).min_by_key(|estimate| estimate.round_trip)
}

impl Exchange {
    fn estimate(&self) -> Option<ClockEstimate> {
        let [left, came, left_there, came_back] =
            [self.left, self.came, self.left_there, self.came_back].map(i128::from);
        let round_trip = u64::try_from((came_back - left) - (left_there - came)).ok()?;
        let offset = i64::try_from((came - left).midpoint(left_there - came_back)).ok()?;
        let (offset, round_trip) = (ClockOffset::from_nanos(offset), Duration::from_nanos(round_trip));
        Some(ClockEstimate { offset, round_trip })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn exchange(times_ms: [u64; 4]) -> Exchange {
        let [left, came, left_there, came_back] = times_ms.map(|ms| ms * MS);
        Exchange { left, came, left_there, came_back }
    }

    #[test]
    fn the_example_of_the_module_docs_holds() {
        let found = estimate(&[exchange([0, 105, 106, 11])]).unwrap();
        assert_eq!((found.offset.as_nanos(), found.error()), (100 * MS as i64, Duration::from_millis(5)));
    }

    #[test]
    fn the_exchange_with_the_smallest_round_trip_is_used() {
        let found = estimate(&[exchange([0, 150, 150, 90]), exchange([100, 205, 205, 108])]).unwrap();
        assert_eq!(found.round_trip, Duration::from_millis(8));
        assert_eq!(estimate(&[exchange([10, 5, 90, 20])]), None, "a round trip must not be negative");
    }

    #[test]
    fn drift_adds_to_the_error() {
        let of = |ms: i64| ClockEstimate {
            offset: ClockOffset::from_nanos(ms * MS as i64),
            round_trip: Duration::from_millis(2),
        };
        let report = ClockReport { same: false, before: of(7), after: Some(of(4)) };
        assert_eq!((report.drift_ns(), report.error()), (-3_000_000, Duration::from_millis(4)));
        let same = ClockReport { same: true, ..report };
        assert_eq!((same.offset(), same.error()), (ClockOffset::NONE, Duration::ZERO));
    }

    proptest! {
        #[test]
        fn the_true_offset_is_within_the_error(
            ahead in -1_000_000_000_i64..1_000_000_000, forward in 0_u64..1 << 30, held in 0_u64..1 << 20, reverse in 0_u64..1 << 30,
        ) {
            let there = |ours: u64| (ours as i64 + ahead) as u64;
            let left = 10_000_000_000;
            let (came, left_there) = (there(left + forward), there(left + forward + held));
            let found = estimate(&[Exchange { left, came, left_there, came_back: left + forward + held + reverse }]).unwrap();
            prop_assert!(found.offset.as_nanos().abs_diff(ahead) <= found.error().as_nanos());
        }

        #[test]
        fn no_times_cause_a_panic(left: u64, came: u64, left_there: u64, came_back: u64) {
            let _ = estimate(&[Exchange { left, came, left_there, came_back }]);
        }
    }
}
