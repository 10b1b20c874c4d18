//! The relation of the sender's clock and the receiver's.
//!
//! The sender compares them before the run and after it, with a few exchanges each ([`cutline_signal::clock`]), and uses that with
//! the smallest round-trip time. The offset before the run corrects one-way delays. The offset after the run gives the drift.

use cutline_signal::clock::{ClockEstimate, ClockOffset};
use cutline_units::Duration;

/// The relation of the two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReport {
    /// True if both ends have the same clock: the boot ids are equal, and the offset is within its error.
    pub same: bool,
    /// The estimate before the run.
    pub before: ClockEstimate,
    /// The estimate after the run; `None` if the session ended earlier.
    pub after: Option<ClockEstimate>,
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
        let later = self.after.map_or(Duration::ZERO, |after| after.error + drifted);
        self.before.error.max(later)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drift_adds_to_the_error() {
        let of = |ms: i64| ClockEstimate {
            offset: ClockOffset::from_nanos(ms * 1_000_000),
            error: Duration::from_millis(1),
            round_trip: Duration::from_millis(2),
        };
        let report = ClockReport { same: false, before: of(7), after: Some(of(4)) };
        assert_eq!((report.drift_ns(), report.error()), (-3_000_000, Duration::from_millis(4)));
        let same = ClockReport { same: true, ..report };
        assert_eq!((same.offset(), same.error()), (ClockOffset::NONE, Duration::ZERO));
    }
}
