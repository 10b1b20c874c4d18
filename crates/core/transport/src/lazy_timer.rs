//! A timer that is set lazily.
//!
//! The deadline of a transport moves with nearly every packet, mostly to a later time. The caller keeps one valid timer
//! event, and schedules another only for an earlier deadline. When an event is too early, nothing is due, and the caller
//! sets the timer to the current deadline. So a packet rarely needs an event, and no event is ever searched and removed.

use cutline_units::Instant;

/// Determines which of the events scheduled for a deadline is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LazyTimer {
    /// The time of the valid event; [`Instant::FAR_FUTURE`] if none is pending.
    pending: Instant,
}

impl Default for LazyTimer {
    fn default() -> Self {
        Self { pending: Instant::FAR_FUTURE }
    }
}

impl LazyTimer {
    /// Sets the timer to a deadline. Returns the time at which the caller must schedule an event; `None` if one is pending
    /// that is early enough.
    #[inline]
    pub fn set(&mut self, deadline: Instant) -> Option<Instant> {
        let earlier = deadline < self.pending;
        if earlier {
            self.pending = deadline;
        }
        earlier.then_some(deadline)
    }

    /// Takes the event that was scheduled for `at` and is now due. Returns false if an earlier event has replaced it; the
    /// caller must then ignore it. After true, no event is pending, and the caller must set the timer again.
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
    fn only_an_earlier_deadline_is_scheduled_and_only_the_earliest_is_valid() {
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
