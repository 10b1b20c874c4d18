//! The intervals of measurement.

use cutline_units::{Duration, Instant};

/// The intervals, one after the other, all of the same length.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    length: Duration,
    /// The interval under way.
    since: Instant,
    until: Instant,
}

/// Start and end of an interval.
pub(super) type Span = (Instant, Instant);

impl Schedule {
    pub(super) fn new(now: Instant, length: Duration) -> Self {
        Self { length, since: now, until: now.saturating_add(length) }
    }

    /// Returns the end of the current interval.
    #[inline]
    pub(super) const fn until(&self) -> Instant {
        self.until
    }

    /// An interval begins now, and the one under way has not been.
    pub(super) fn restart(&mut self, now: Instant) {
        *self = Self::new(now, self.length);
    }

    /// Ends the interval under way if it is over, and begins the next one. Whole intervals that have passed since are returned
    /// as one long one, so that their number is bounded however late the call is.
    pub(super) fn end(&mut self, now: Instant) -> [Option<Span>; 2] {
        if now < self.until {
            return [None, None];
        }
        let first = (self.since, self.until);
        let passed = now.saturating_since(self.until).as_nanos() / self.length.as_nanos();
        let skipped = Duration::from_nanos(passed * self.length.as_nanos());
        let begin = self.until.saturating_add(skipped);
        let rest = (passed > 0).then_some((self.until, begin));
        (self.since, self.until) = (begin, begin.saturating_add(self.length));
        [Some(first), rest]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_follow_each_other_and_whole_ones_that_were_missed_are_one() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut schedule = Schedule::new(at(100), Duration::from_millis(500));
        assert_eq!((schedule.until(), schedule.end(at(599))), (at(600), [None, None]));
        assert_eq!(schedule.end(at(600)), [Some((at(100), at(600))), None]);
        assert_eq!(schedule.end(at(2700)), [Some((at(600), at(1100))), Some((at(1100), at(2600)))]);
        assert_eq!(schedule.until(), at(3100));
        let all = schedule.end(Instant::FAR_FUTURE);
        assert_eq!(all[0], Some((at(2600), at(3100))));
    }
}
