//! Two clocks, and how far they are apart.
//!
//! A generator stamps with the *meter's* clock: its own, moved by a [`ClockOffset`]. So the meter subtracts stamps of
//! one clock alone, and the offset is applied in one place.

use cutline_units::{Duration, Instant};

/// How far the other end's clock is ahead of ours, ns; negative when it is behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClockOffset(i64);

impl ClockOffset {
    /// One and the same clock.
    pub const NONE: Self = Self(0);

    /// The other clock is so many nanoseconds ahead.
    pub const fn from_nanos(ns: i64) -> Self {
        Self(ns)
    }

    /// Nanoseconds that the other clock is ahead.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// What the other clock shows when ours shows `ours`.
    #[inline]
    pub const fn theirs(self, ours: Instant) -> Instant {
        Instant::from_nanos(ours.as_nanos().saturating_add_signed(self.0))
    }

    /// What our clock shows when the other shows `theirs`.
    #[inline]
    pub const fn ours(self, theirs: Instant) -> Instant {
        Instant::from_nanos(theirs.as_nanos().saturating_add_signed(self.0.saturating_neg()))
    }
}

/// When a run's `time` has come.
pub(crate) fn at(zero: Instant, time: Duration) -> Instant {
    zero.saturating_add(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back_is_where_one_was() {
        let now = Instant::from_nanos(5_000);
        for ns in [-4_000, 0, 7_000] {
            let offset = ClockOffset::from_nanos(ns);
            assert_eq!(offset.ours(offset.theirs(now)), now);
        }
        assert_eq!(ClockOffset::from_nanos(-9_000).theirs(now), Instant::ZERO);
    }
}
