//! Recent pauses of the link: times for which it took no packet although one waited.
//!
//! A link that sends in slots (a radio link, a cable modem) pauses between two of them. Every packet waits for the next
//! slot then, also those of a sender that sends at its share.

use cutline_units::{Duration, Instant};

/// The longest recent pause.
#[derive(Clone, Debug)]
pub(super) struct Pauses {
    /// Time for which a pause is remembered, unless a longer one follows.
    memory: Duration,
    longest: Duration,
    until: Instant,
    /// Time from which on the link could have taken a packet.
    since: Instant,
}

impl Pauses {
    /// No pause has been seen.
    pub(super) fn new(memory: Duration) -> Self {
        Self { memory, longest: Duration::ZERO, until: Instant::ZERO, since: Instant::ZERO }
    }

    /// Notes that a packet waits, and none did before.
    #[inline]
    pub(super) fn begin(&mut self, now: Instant) {
        self.since = now;
    }

    /// Notes that the link has taken a packet.
    #[inline]
    pub(super) fn end(&mut self, now: Instant) {
        let pause = now.saturating_since(self.since);
        self.since = now;
        if pause >= self.longest || now > self.until {
            (self.longest, self.until) = (pause, now.saturating_add(self.memory));
        }
    }

    /// Returns the longest pause that is remembered, s. On a link that never pauses it is the time of a packet.
    #[inline]
    pub(super) fn longest(&self) -> f64 {
        self.longest.as_secs_f64()
    }
}
