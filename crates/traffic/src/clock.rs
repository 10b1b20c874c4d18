//! The offset between two clocks.
//!
//! A generator's time stamps are in the *meter's* clock: it adds a [`ClockOffset`] to its own clock. So the meter only
//! subtracts times of one clock, and the offset is applied in one place.

use cutline_units::{Duration, Instant};

/// The other end's clock minus ours, ns.
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

/// Returns the instant at which `time` has elapsed since the run's zero.
pub(crate) fn at(zero: Instant, time: Duration) -> Instant {
    zero.saturating_add(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_conversions_are_inverse() {
        let now = Instant::from_nanos(5_000);
        for ns in [-4_000, 0, 7_000] {
            let offset = ClockOffset::from_nanos(ns);
            assert_eq!(offset.ours(offset.theirs(now)), now);
        }
        assert_eq!(ClockOffset::from_nanos(-9_000).theirs(now), Instant::ZERO);
    }
}
