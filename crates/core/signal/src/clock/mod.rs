//! The offset between the clocks of two ends, and its largest error.
//!
//! The offset follows from NTP's exchange (RFC 5905 section 8). A message is sent at T1 and received at T2; another goes the
//! other way, sent at T3 and received at T4. T2 and T3 are times of the other clock:
//!
//! ```text
//! offset = ((T2 - T1) + (T3 - T4)) / 2        round trip = (T4 - T1) - (T3 - T2)
//! ```
//!
//! The error is at most half the round-trip time; it is that large if one direction takes all of the time.
//!
//! Example: T1 = 0, T2 = 105, T3 = 106, T4 = 11 (ms) give an offset of 100 ms +- 5 ms and a round trip of 10 ms.
//!
//! - [`Exchange`], [`ClockEstimate`]: one exchange, and its estimate.
//! - [`OffsetEstimator`]: the estimate from all exchanges of a connection, at any time.
//! - [`Stamper`]: the times that messages carry, so that messages that are sent anyway make exchanges.

mod estimator;
mod stamps;

pub use estimator::{ClockParams, OffsetEstimator};
pub use stamps::{Echo, Stamper, Stamps};

use cutline_units::{Duration, Instant};

/// The peer's clock minus ours, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClockOffset(i64);

impl ClockOffset {
    /// The offset of a clock to itself.
    pub const NONE: Self = Self(0);

    /// Returns the offset of a clock that is `ns` nanoseconds ahead of ours.
    pub const fn from_nanos(ns: i64) -> Self {
        Self(ns)
    }

    /// Returns the offset in nanoseconds; negative if the other clock is behind.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// Converts a time of our clock into a time of the other clock.
    #[inline]
    pub const fn theirs(self, ours: Instant) -> Instant {
        Instant::from_nanos(ours.as_nanos().saturating_add_signed(self.0))
    }

    /// Converts a time of the other clock into a time of our clock.
    #[inline]
    pub const fn ours(self, theirs: Instant) -> Instant {
        Instant::from_nanos(theirs.as_nanos().saturating_add_signed(self.0.saturating_neg()))
    }
}

/// An estimate of the clock offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockEstimate {
    /// The peer's clock minus ours.
    pub offset: ClockOffset,
    /// The largest possible error of the offset.
    pub error: Duration,
    /// The round-trip time of the exchange, or of the latest one.
    pub round_trip: Duration,
}

/// The four times of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// T1: time at which this end sent, by its own clock.
    pub sent: Instant,
    /// T2: time at which the peer received the message, by the peer's clock.
    pub received: Instant,
    /// T3: time at which the peer replied, by the peer's clock.
    pub replied: Instant,
    /// T4: time at which the reply arrived, by this end's clock.
    pub returned: Instant,
}

impl Exchange {
    /// Returns the offset that follows from this exchange; `None` if its times are impossible.
    pub fn estimate(&self) -> Option<ClockEstimate> {
        let (low, high) = self.bounds()?;
        let round_trip = high.checked_sub(low)?;
        Some(ClockEstimate {
            offset: ClockOffset::from_nanos(low.midpoint(high)),
            error: Duration::from_nanos((round_trip as u64).div_ceil(2)),
            round_trip: Duration::from_nanos(round_trip as u64),
        })
    }

    /// The least and the largest possible offset, ns: no message arrives before it was sent, so T4 is not before T3 and T2
    /// not before T1.
    fn bounds(&self) -> Option<(i64, i64)> {
        let [sent, received, replied, returned] =
            [self.sent, self.received, self.replied, self.returned].map(|at| i128::from(at.as_nanos()));
        let (low, high) = (replied - returned, received - sent);
        let is_possible = low <= high && sent <= returned && received <= replied;
        if is_possible { Some((i64::try_from(low).ok()?, i64::try_from(high).ok()?)) } else { None }
    }
}

/// Returns the estimate of the exchange with the smallest round-trip time; `None` if no exchange is possible.
pub fn best(exchanges: &[Exchange]) -> Option<ClockEstimate> {
    exchanges.iter().filter_map(Exchange::estimate).min_by_key(|estimate| estimate.round_trip)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn exchange(times_ms: [u64; 4]) -> Exchange {
        let [sent, received, replied, returned] =
            times_ms.map(|ms| Instant::ZERO + Duration::from_millis(ms));
        Exchange { sent, received, replied, returned }
    }

    #[test]
    fn the_two_conversions_are_inverse() {
        let now = Instant::from_nanos(5_000);
        for ns in [-4_000, 0, 7_000] {
            let offset = ClockOffset::from_nanos(ns);
            assert_eq!(offset.ours(offset.theirs(now)), now);
        }
        assert_eq!(ClockOffset::from_nanos(-9_000).theirs(now), Instant::ZERO);
    }

    #[test]
    fn the_example_of_the_module_docs_holds() {
        // RFC 5905 section 8.
        let found = best(&[exchange([0, 105, 106, 11])]).unwrap();
        assert_eq!((found.offset.as_nanos(), found.error), (100_000_000, Duration::from_millis(5)));
        assert_eq!(found.round_trip, Duration::from_millis(10));
    }

    #[test]
    fn the_exchange_with_the_smallest_round_trip_is_used() {
        let found = best(&[exchange([0, 150, 150, 90]), exchange([100, 205, 205, 108])]).unwrap();
        assert_eq!(found.round_trip, Duration::from_millis(8));
        assert_eq!(best(&[exchange([10, 5, 90, 20])]), None, "a round trip must not be negative");
        assert_eq!(best(&[exchange([10, 50, 40, 5])]), None, "the reply came before the request");
    }

    proptest! {
        #[test]
        fn the_true_offset_is_within_the_error(
            ahead in -1_000_000_000_i64..1_000_000_000, forward in 0_u64..1 << 30, held in 0_u64..1 << 20, reverse in 0_u64..1 << 30,
        ) {
            let there = |ours: u64| (ours as i64 + ahead) as u64;
            let sent = 10_000_000_000;
            let times = [sent, there(sent + forward), there(sent + forward + held), sent + forward + held + reverse];
            let [sent, received, replied, returned] = times.map(Instant::from_nanos);
            let found = best(&[Exchange { sent, received, replied, returned }]).unwrap();
            prop_assert!(found.offset.as_nanos().abs_diff(ahead) <= found.error.as_nanos());
        }

        #[test]
        fn no_times_cause_a_panic(times: [u64; 4]) {
            let [sent, received, replied, returned] = times.map(Instant::from_nanos);
            let _ = best(&[Exchange { sent, received, replied, returned }]);
        }
    }
}
