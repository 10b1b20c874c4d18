//! A timer that is set lazily.
//!
//! The deadline of a transport moves with nearly every packet, mostly to a later time. Whoever drives the transport keeps
//! one pending wake-up that counts, and schedules another only for an earlier deadline. A wake-up that comes too early
//! finds nothing due, and the timer is set again to what the deadline is by then. So a packet seldom costs an entry in a
//! calendar, and no entry is ever looked for in one.

use cutline_units::Instant;

/// Which of the wake-ups scheduled for a deadline counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LazyTimer {
    /// When the wake-up that counts is to come; [`Instant::FAR_FUTURE`] if none is pending.
    pending: Instant,
}

impl Default for LazyTimer {
    fn default() -> Self {
        Self { pending: Instant::FAR_FUTURE }
    }
}

impl LazyTimer {
    /// Sets the timer to a deadline. When a wake-up has to be scheduled, and `None` where one is pending that is early
    /// enough.
    #[inline]
    pub fn set(&mut self, deadline: Instant) -> Option<Instant> {
        let earlier = deadline < self.pending;
        if earlier {
            self.pending = deadline;
        }
        earlier.then_some(deadline)
    }

    /// Takes the wake-up that was scheduled for `at`, which has come. False if an earlier one has taken its place since; it
    /// then means nothing. After true, no wake-up is pending, and the timer has to be set again.
    #[inline]
    pub fn take(&mut self, at: Instant) -> bool {
        let counts = self.pending == at;
        if counts {
            self.pending = Instant::FAR_FUTURE;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_earlier_deadline_is_scheduled_and_only_the_earliest_counts() {
        let at = Instant::from_nanos;
        let mut timer = LazyTimer::default();
        assert_eq!(timer.set(Instant::FAR_FUTURE), None);
        assert_eq!(timer.set(at(50)), Some(at(50)));
        assert_eq!((timer.set(at(70)), timer.set(at(50))), (None, None));
        assert_eq!(timer.set(at(30)), Some(at(30)));
        assert!(timer.take(at(30)));
        assert!(!timer.take(at(50)));
        assert_eq!(timer.set(at(70)), Some(at(70)));
    }
}
