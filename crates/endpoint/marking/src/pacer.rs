//! Pacing of datagrams, so that a socket keeps to its rate.
//!
//! The only state is the time at which the next datagram may leave. It is an atomic, so threads and processes that share a
//! socket share its rate, without locks.

use cutline_units::{Bytes, Duration, Instant, Rate};
use std::sync::atomic::{AtomicU64, Ordering};

/// Largest lag behind the schedule that a sender may catch up. Timers are late by tens of microseconds,
/// sometimes by milliseconds; without this a socket that wakes up late would stay below its rate.
const CATCH_UP: Duration = Duration::from_millis(5);

/// Takes the time for `size` bytes. Returns the time to wait before they are sent.
pub fn reserve(next: &AtomicU64, rate: Rate, size: Bytes, now: Instant) -> Duration {
    let cost = rate.transmission_time(size).as_nanos();
    let earliest = now.as_nanos().saturating_sub(CATCH_UP.as_nanos());
    let mut before = next.load(Ordering::Relaxed);
    loop {
        let start = before.max(earliest);
        match next.compare_exchange_weak(
            before,
            start.saturating_add(cost),
            Ordering::Relaxed,
            Ordering::Relaxed,
        ) {
            Ok(_) => return Instant::from_nanos(start).saturating_since(now),
            Err(found) => before = found,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate::from_kbps(800);

    /// Returns the times at which datagrams of 1000 B leave if the sender is ready at `ready` or at the
    /// permitted time, ms.
    fn departures(ready: &[u64]) -> Vec<u64> {
        let (next, mut now) = (AtomicU64::new(0), Duration::ZERO);
        let send = |&at: &u64| {
            now = now.max(Duration::from_millis(at));
            let wait = reserve(&next, RATE, Bytes::new(1000), Instant::from_nanos(now.as_nanos()));
            now = Duration::from_nanos(now.as_nanos() + wait.as_nanos());
            now.as_nanos() / 1_000_000
        };
        ready.iter().map(send).collect()
    }

    #[test]
    fn a_greedy_sender_keeps_to_its_rate() {
        // 1000 B at 800 kbit/s take 10 ms. The first may leave at once, and the second half its time early.
        assert_eq!(departures(&[1000; 5]), [1000, 1005, 1015, 1025, 1035]);
    }

    #[test]
    fn a_late_sender_catches_up_a_little_and_no_more() {
        assert_eq!(departures(&[1000, 1008, 1018, 1025]), [1000, 1008, 1018, 1025]);
        assert_eq!(departures(&[1000, 1000, 2000, 2000, 2000]), [1000, 1005, 2000, 2005, 2015]);
    }

    #[test]
    fn the_end_of_time_is_no_overflow() {
        let next = AtomicU64::new(u64::MAX - 1);
        let wait = reserve(&next, Rate::from_bps(1), Bytes::new(65_507), Instant::ZERO);
        assert_eq!((wait.as_nanos(), next.into_inner()), (u64::MAX - 1, u64::MAX));
    }

    #[test]
    fn threads_share_the_rate() {
        let next = AtomicU64::new(0);
        let now = Instant::from_nanos(1_000_000_000);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..25).map(|_| reserve(&next, RATE, Bytes::new(1000), now)).max());
            }
        });
        assert_eq!(next.into_inner(), 1_000_000_000 - 5_000_000 + 100 * 10_000_000);
    }
}
