//! Time as integer nanoseconds: [`Instant`] is a point, [`Duration`] a distance. Neither knows a clock.
//!
//! 64 bits of nanoseconds last 584 years. [`Instant::FAR_FUTURE`] stands for "no deadline".

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// A point in time: nanoseconds since an epoch of the caller's choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

/// A distance in time: nanoseconds, never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

impl Instant {
    /// The epoch itself.
    pub const ZERO: Self = Self(0);
    /// Later than anything that will happen. It means "no deadline".
    pub const FAR_FUTURE: Self = Self(u64::MAX);

    /// The instant `ns` nanoseconds after the epoch.
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the epoch.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// Returns the time from `earlier` to this instant; zero if `earlier` is later.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// This instant moved on by `by`, at most to [`Instant::FAR_FUTURE`].
    pub const fn saturating_add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(by.0))
    }
}

impl Duration {
    /// The duration 0.
    pub const ZERO: Self = Self(0);
    /// The longest duration.
    pub const MAX: Self = Self(u64::MAX);

    /// `ns` nanoseconds.
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }

    /// `us` microseconds.
    pub const fn from_micros(us: u64) -> Self {
        Self(us * 1_000)
    }

    /// `ms` milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// `s` seconds.
    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000_000)
    }

    /// `s` seconds, rounded to the nanosecond; negative and NaN become zero, too large becomes [`Duration::MAX`].
    pub fn from_secs_f64(s: f64) -> Self {
        Self((s * 1e9).round() as u64)
    }

    /// Whole nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The duration in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// The duration in milliseconds.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 * 1e-6
    }

    /// Returns whether the duration is 0.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The difference, zero when `other` is longer.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// This duration times `factor`, rounded to the nanosecond; `factor` is at least 0.
    pub fn mul_f64(self, factor: f64) -> Self {
        debug_assert!(factor >= 0.0, "a duration cannot be scaled by {factor}");
        Self((self.0 as f64 * factor).round() as u64)
    }

    /// The absolute difference of two durations, as in RFC 3393's packet delay variation.
    pub const fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, by: Duration) -> Instant {
        Instant(self.0 + by.0)
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, by: Duration) {
        self.0 += by.0;
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;
    fn sub(self, by: Duration) -> Instant {
        Instant(self.0 - by.0)
    }
}

/// The time from `earlier` to `self`; `earlier` must not be later.
impl Sub for Instant {
    type Output = Duration;
    fn sub(self, earlier: Instant) -> Duration {
        debug_assert!(earlier <= self, "{earlier:?} is after {self:?}");
        Duration(self.0 - earlier.0)
    }
}

impl Add for Duration {
    type Output = Duration;
    fn add(self, other: Duration) -> Duration {
        Duration(self.0 + other.0)
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Duration) {
        self.0 += other.0;
    }
}

impl Sub for Duration {
    type Output = Duration;
    fn sub(self, other: Duration) -> Duration {
        Duration(self.0 - other.0)
    }
}

impl SubAssign for Duration {
    fn sub_assign(&mut self, other: Duration) {
        self.0 -= other.0;
    }
}

impl Mul<u64> for Duration {
    type Output = Duration;
    fn mul(self, times: u64) -> Duration {
        Duration(self.0 * times)
    }
}

impl Div<u64> for Duration {
    type Output = Duration;
    fn div(self, by: u64) -> Duration {
        Duration(self.0 / by)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Duration(self.0))
    }
}

/// The largest unit that keeps the number readable: `1.5 s`, `20 ms`, `3.25 us`, `7 ns`.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0 as f64;
        match self.0 {
            0..1_000 => write!(f, "{} ns", self.0),
            1_000..1_000_000 => write!(f, "{} us", ns / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{} ms", ns / 1e6),
            _ => write!(f, "{} s", ns / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_print_in_the_largest_unit_that_fits() {
        let printed: Vec<String> =
            [7, 3_250, 20_000_000, 1_500_000_000].map(|ns| Duration::from_nanos(ns).to_string()).into();
        assert_eq!(printed, ["7 ns", "3.25 us", "20 ms", "1.5 s"]);
    }

    #[test]
    fn seconds_round_to_the_nanosecond() {
        assert_eq!(Duration::from_secs_f64(0.05).as_nanos(), 50_000_000);
        assert_eq!(Duration::from_secs_f64(-1.0), Duration::ZERO);
        assert_eq!(Duration::from_secs_f64(f64::INFINITY), Duration::MAX);
    }

    #[test]
    fn the_past_is_no_distance_when_saturating() {
        let (early, late) = (Instant::from_nanos(5), Instant::from_nanos(9));
        assert_eq!(late - early, Duration::from_nanos(4));
        assert_eq!(early.saturating_since(late), Duration::ZERO);
        assert_eq!(Instant::FAR_FUTURE.saturating_add(Duration::from_secs(1)), Instant::FAR_FUTURE);
    }
}
