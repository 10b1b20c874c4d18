//! The monotonic clock, and the kernel's wall-clock time stamps on its scale.

use cutline_units::{Duration, Instant};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Returns the time of `CLOCK_MONOTONIC`, which starts with the machine and never goes backwards.
#[inline]
pub fn now() -> Instant {
    Instant::from_nanos(nanos(clock_gettime(ClockId::Monotonic)))
}

/// Returns the time since 1970 by the wall clock, which may be set.
pub fn unix_time() -> Duration {
    Duration::from_nanos(nanos(clock_gettime(ClockId::Realtime)))
}

/// The most attempts to read both clocks without being interrupted.
const MAX_ATTEMPTS: usize = 3;
/// The longest time between two readings that were not interrupted, nanoseconds.
const UNINTERRUPTED: u64 = 1_000;

/// Returns the current offset of the wall clock from the monotonic clock, nanoseconds.
pub fn wall_clock_offset() -> u64 {
    let read = || {
        [ClockId::Monotonic, ClockId::Realtime, ClockId::Monotonic].map(|clock| nanos(clock_gettime(clock)))
    };
    best_offset((0..MAX_ATTEMPTS).map(|_| read()))
}

/// The offset by the shortest attempt to read the monotonic clock, the wall clock and the monotonic clock again. A thread
/// that is interrupted between two readings would shift all time stamps by as long.
fn best_offset(attempts: impl Iterator<Item = [u64; 3]>) -> u64 {
    let (mut shortest, mut offset) = (u64::MAX, 0);
    for [before, wall, after] in attempts {
        let took = after - before;
        if took < shortest {
            (shortest, offset) = (took, wall.saturating_sub(before + took / 2));
        }
        if took <= UNINTERRUPTED {
            break;
        }
    }
    offset
}

/// Converts a wall-clock time stamp of the past to monotonic time, by [`wall_clock_offset`]. The result is never after
/// `now`, so that a step of the wall clock since the stamp was taken affects that one stamp alone.
#[inline]
pub fn from_wall_clock(seconds: u32, nanos: u32, offset: u64, now: Instant) -> Instant {
    let stamp = u64::from(seconds) * 1_000_000_000 + u64::from(nanos);
    Instant::from_nanos(stamp.saturating_sub(offset)).min(now)
}

/// Converts a duration for system calls.
pub const fn timespec(duration: Duration) -> Timespec {
    let ns = duration.as_nanos();
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ }
}

fn nanos(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_converted_to_the_monotonic_scale_and_never_into_the_future() {
        let now = Instant::from_nanos(5_000_000_000);
        assert_eq!(from_wall_clock(1004, 250, 1_000_000_000_000, now), Instant::from_nanos(4_000_000_250));
        assert_eq!(from_wall_clock(2000, 0, 1_000_000_000_000, now), now);
        assert_eq!(from_wall_clock(3, 0, 1_000_000_000_000, now), Instant::ZERO);
    }

    #[test]
    fn an_interrupted_attempt_does_not_count() {
        let attempts = [[1_000, 900_000, 400_000], [500_000, 1_000_100, 500_200], [600_000, 0, 600_000]];
        let mut taken = 0;
        let offset = best_offset(attempts.into_iter().inspect(|_| taken += 1));
        assert_eq!((offset, taken), (500_000, 2));
        assert_eq!(best_offset([[0, 40_000, 20_000], [50_000, 85_000, 60_000]].into_iter()), 30_000);
    }

    #[test]
    fn a_timespec_has_its_nanoseconds_below_a_second() {
        let time = timespec(Duration::from_nanos(3_000_000_007));
        assert_eq!((time.tv_sec, time.tv_nsec), (3, 7));
    }
}
