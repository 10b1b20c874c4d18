//! Times of the standard library.

use cutline_units::Duration;

/// A time of the standard library as ours.
pub fn duration(time: std::time::Duration) -> Duration {
    Duration::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}
