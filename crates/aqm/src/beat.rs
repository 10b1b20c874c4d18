//! Steps at fixed times without a timer: whoever is asked later takes the steps that were due.

use cutline_units::{Duration, Instant};

/// The times of the steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Beat {
    period: Duration,
    next: Instant,
}

impl Beat {
    /// The first step is one period after `now`.
    pub(crate) const fn new(now: Instant, period: Duration) -> Self {
        Self { period, next: now.saturating_add(period) }
    }

    /// The same beat, begun anew.
    pub(crate) const fn restart(&mut self, now: Instant) {
        *self = Self::new(now, self.period);
    }

    /// Takes every step that is due; `step` answers whether it changed anything. After one that did not, the
    /// others would not either, and are left out.
    #[inline]
    pub(crate) fn catch_up(&mut self, now: Instant, mut step: impl FnMut() -> bool) {
        self.catch_up_at(now, |_| step());
    }

    /// The same for steps that ask when they are due.
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

/// The first of `due`, `due + period`, ... that is after `now`.
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
        let mut beat = Beat::new(Instant::ZERO, period);
        let mut taken = 0;
        beat.catch_up(Instant::ZERO + period * 3, || {
            taken += 1;
            true
        });
        assert_eq!(taken, 3);
        beat.catch_up(Instant::ZERO + period * 1000, || {
            taken += 1;
            false
        });
        assert_eq!((taken, beat.next), (4, Instant::ZERO + period * 1001));
    }
}
