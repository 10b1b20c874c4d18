//! The monotonic clock as the router's time, and the kernel's wall-clock stamps on that scale.

use cutline_units::{Duration, Instant};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Nanoseconds of `CLOCK_MONOTONIC`: since the machine started, and never backwards.
#[inline]
pub fn now() -> Instant {
    Instant::from_nanos(nanos(clock_gettime(ClockId::Monotonic)))
}

/// How often both clocks are looked at until nothing has come in between.
const LOOKS: usize = 3;
/// What two looks at a clock may be apart when nothing has come in between, nanoseconds.
const UNDISTURBED: u64 = 1_000;

/// How far the wall clock is ahead of the monotonic one, at this moment, nanoseconds.
pub(crate) fn wall_ahead() -> u64 {
    let look = || {
        [ClockId::Monotonic, ClockId::Realtime, ClockId::Monotonic].map(|clock| nanos(clock_gettime(clock)))
    };
    best_of((0..LOOKS).map(|_| look()))
}

/// How far the wall clock is ahead by the look that took the shortest time: monotonic, wall, monotonic. A thread that
/// was not run between two clocks would move the stamps of all its frames by as long.
fn best_of(looks: impl Iterator<Item = [u64; 3]>) -> u64 {
    let (mut shortest, mut ahead) = (u64::MAX, 0);
    for [before, wall, after] in looks {
        let took = after - before;
        if took < shortest {
            (shortest, ahead) = (took, wall.saturating_sub(before + took / 2));
        }
        if took <= UNDISTURBED {
            break;
        }
    }
    ahead
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
    fn a_look_that_was_interrupted_does_not_count() {
        let looks = [[1_000, 900_000, 400_000], [500_000, 1_000_100, 500_200], [600_000, 0, 600_000]];
        let mut taken = 0;
        let ahead = best_of(looks.into_iter().inspect(|_| taken += 1));
        assert_eq!((ahead, taken), (500_000, 2));
        assert_eq!(best_of([[0, 40_000, 20_000], [50_000, 85_000, 60_000]].into_iter()), 30_000);
    }

    #[test]
    fn a_timespec_has_its_nanoseconds_below_a_second() {
        let time = timespec(Duration::from_nanos(3_000_000_007));
        assert_eq!((time.tv_sec, time.tv_nsec), (3, 7));
    }
}
