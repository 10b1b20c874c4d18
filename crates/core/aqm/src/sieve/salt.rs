//! Salt of a table of flows: a secret part of the hash that chooses a flow's cell.
//!
//! An attacker who knows the salt can choose flows that share cells with a victim. So the salt is drawn from the random numbers of
//! the queue at the first packet, and again every minute. A table that does not find a flow by the new salt looks for it by the old
//! one for a while, and moves it.

use cutline_units::{Duration, Instant, RandomStream};

/// Lifetime of a salt.
const LIFETIME: Duration = Duration::from_secs(60);

/// The salts of a table.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Salt {
    /// `None` before the first packet.
    now: Option<u64>,
    before: u64,
    /// End of the time in which flows are also looked up by the previous salt.
    changing_until: Instant,
    next: Instant,
}

impl Salt {
    /// Returns whether it is time to draw a salt.
    #[inline]
    pub(super) fn is_due(&self, now: Instant) -> bool {
        now >= self.next
    }

    /// Draws a salt. For the time `memory`, flows are also looked up by the previous salt.
    #[cold]
    pub(super) fn draw(&mut self, now: Instant, memory: Duration, random: &mut RandomStream) {
        let fresh = (random.uniform() * (1_u64 << 53) as f64) as u64;
        *self = Self {
            now: Some(fresh),
            before: self.now.unwrap_or(fresh),
            changing_until: if self.now.is_some() { now.saturating_add(memory) } else { now },
            next: now.saturating_add(LIFETIME),
        };
    }

    /// Returns the salt; `None` before the first packet.
    #[inline]
    pub(super) const fn now(&self) -> Option<u64> {
        self.now
    }

    /// Returns the previous salt.
    #[inline]
    pub(super) const fn before(&self) -> u64 {
        self.before
    }

    /// Returns whether there may be flows that only the previous salt finds.
    #[inline]
    pub(super) fn is_changing(&self, now: Instant) -> bool {
        now < self.changing_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::Streams;

    #[test]
    fn a_salt_lives_for_a_minute_and_the_one_before_is_known_for_a_while() {
        let (mut salt, mut random) = (Salt::default(), Streams::new(1).stream("queue", "drop"));
        let mut at = |salt: &mut Salt, seconds| {
            let now = Instant::ZERO + Duration::from_secs(seconds);
            if salt.is_due(now) {
                salt.draw(now, Duration::from_secs(4), &mut random);
            }
            (salt.now().unwrap(), salt.before(), salt.is_changing(now))
        };
        let (first, _, is_changing) = at(&mut salt, 10);
        assert!(!is_changing, "there was none before");
        assert_eq!(at(&mut salt, 69), (first, first, false));
        let (second, before, is_changing) = at(&mut salt, 70);
        assert!(second != first && before == first && is_changing);
        assert_eq!(at(&mut salt, 73), (second, first, true));
        assert_eq!(at(&mut salt, 74), (second, first, false));
    }
}
