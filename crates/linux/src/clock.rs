//! The monotonic clock as the router's time, and the kernel's wall-clock stamps on that scale.

use cutline_units::{Duration, Instant};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Nanoseconds of `CLOCK_MONOTONIC`: since the machine started, and never backwards.
#[inline]
pub fn now() -> Instant {
    Instant::from_nanos(nanos(clock_gettime(ClockId::Monotonic)))
}

/// How far the wall clock is ahead of the monotonic one, at this moment.
pub(crate) fn wall_ahead() -> u64 {
    let monotonic = nanos(clock_gettime(ClockId::Monotonic));
    nanos(clock_gettime(ClockId::Realtime)).saturating_sub(monotonic)
}

/// A wall-clock stamp of the past as monotonic time; never after `now`, so that a step of the wall clock between the
/// stamping and this moment does no harm beyond that one frame.
#[inline]
pub(crate) fn of_stamp(seconds: u32, nanos: u32, wall_ahead: u64, now: Instant) -> Instant {
    let stamp = u64::from(seconds) * 1_000_000_000 + u64::from(nanos);
    Instant::from_nanos(stamp.saturating_sub(wall_ahead)).min(now)
}

/// A duration as the kernel takes it.
pub(crate) const fn timespec(duration: Duration) -> Timespec {
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
    fn stamps_are_moved_to_the_monotonic_scale_and_never_into_the_future() {
        let now = Instant::from_nanos(5_000_000_000);
        assert_eq!(of_stamp(1004, 250, 1_000_000_000_000, now), Instant::from_nanos(4_000_000_250));
        assert_eq!(of_stamp(2000, 0, 1_000_000_000_000, now), now);
        assert_eq!(of_stamp(3, 0, 1_000_000_000_000, now), Instant::ZERO);
    }

    #[test]
    fn a_timespec_has_its_nanoseconds_below_a_second() {
        let time = timespec(Duration::from_nanos(3_000_000_007));
        assert_eq!((time.tv_sec, time.tv_nsec), (3, 7));
    }
}
