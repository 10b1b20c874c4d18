//! The largest rate of the datagrams of all flows together: a virtual clock that every datagram advances by its time at that rate.

use cutline_units::{Duration, Instant, Rate};
use std::cell::Cell;

/// Maximum advance of the virtual clock: a burst of this time at the largest rate passes.
const BURST: Duration = Duration::from_millis(100);

/// The limit of a rate.
#[derive(Debug)]
pub(super) struct Ceiling {
    /// `None` for no limit.
    most: Option<Rate>,
    clock: Cell<Instant>,
}

impl Ceiling {
    pub(super) const fn new(most: Option<Rate>) -> Self {
        Self { most, clock: Cell::new(Instant::ZERO) }
    }

    /// Returns whether a datagram of `bytes` bytes may leave, and counts it if so.
    pub(super) fn allows(&self, now: Instant, bytes: u64) -> bool {
        let Some(most) = self.most else { return true };
        let clock = self.clock.get().max(now);
        let time = Duration::from_secs_f64(bytes as f64 * 8.0 / most.as_bps().max(1) as f64);
        if clock.saturating_since(now) + time > BURST {
            return false;
        }
        self.clock.set(clock.saturating_add(time));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_the_bytes_of_a_second_and_a_burst() {
        let ceiling = Ceiling::new(Some(Rate::from_kbps(800)));
        let at = |us: u64| Instant::from_nanos(us * 1000);
        let passed = (0..10_000).filter(|i| ceiling.allows(at(i * 100), 1000)).count();
        // 99.99 kB until the last one, and a burst of 10 kB.
        assert_eq!(passed, 109);
        assert!((0..10_000).all(|i| Ceiling::new(None).allows(at(i), 60_000)));
        assert!(!Ceiling::new(Some(Rate::ZERO)).allows(at(1), 1));
    }
}
