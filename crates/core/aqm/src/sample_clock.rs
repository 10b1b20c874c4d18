//! Samples at fixed times without a timer: a law that is called later takes the samples that were due.

use cutline_units::{Duration, Instant};

/// The times at which a law samples its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SampleClock {
    period: Duration,
    next: Instant,
}

impl SampleClock {
    /// A clock whose first sample is one period after `now`.
    pub(crate) const fn new(now: Instant, period: Duration) -> Self {
        Self { period, next: now.saturating_add(period) }
    }

    /// Starts again at `now` with the same period.
    pub(crate) const fn restart(&mut self, now: Instant) {
        *self = Self::new(now, self.period);
    }

    /// Takes every sample that is due at `now`. `step` takes one and answers whether it changed anything. After one that
    /// changed nothing, the others would change nothing either, and are skipped.
    #[inline]
    pub(crate) fn catch_up(&mut self, now: Instant, mut step: impl FnMut() -> bool) {
        self.catch_up_at(now, |_| step());
    }

    /// The same for a `step` that needs to know when its sample was due.
    #[inline]
    pub(crate) fn catch_up_at(&mut self, now: Instant, step: impl FnMut(Instant) -> bool) {
        if self.next <= now {
            self.take_steps(now, step);
        }
    }

    #[cold]
    fn take_steps(&mut self, now: Instant, mut step: impl FnMut(Instant) -> bool) {
        while self.next <= now {
            let due = self.next;
            self.next = self.next.saturating_add(self.period);
            if !step(due) {
                self.next = first_after(now, self.next, self.period);
            }
        }
    }
}

/// The first of `due`, `due + period`, `due + 2 period`, ... that is after `now`.
pub(crate) fn first_after(now: Instant, due: Instant, period: Duration) -> Instant {
    if due > now {
        return due;
    }
    let missed = (now - due).as_nanos() / period.as_nanos() + 1;
    due.saturating_add(period * missed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missed_steps_are_taken_until_one_changes_nothing() {
        let period = Duration::from_millis(10);
        let mut clock = SampleClock::new(Instant::ZERO, period);
        let mut taken = 0;
        clock.catch_up(Instant::ZERO + period * 3, || {
            taken += 1;
            true
        });
        assert_eq!(taken, 3);
        clock.catch_up(Instant::ZERO + period * 1000, || {
            taken += 1;
            false
        });
        assert_eq!((taken, clock.next), (4, Instant::ZERO + period * 1001));
    }
}
