//! Computations that both directions share.

use cutline_units::{Duration, Rate};

/// Bits per time (QoSockets eq. 2); 0 in no time.
pub(super) fn throughput(bytes: u64, time: Duration) -> Rate {
    let bits = u128::from(bytes) * 8 * 1_000_000_000;
    let rate = bits.checked_div(u128::from(time.as_nanos())).unwrap_or(0);
    Rate::from_bps(u64::try_from(rate).unwrap_or(u64::MAX))
}

/// The sum of two durations, at most the longest one.
pub(super) const fn saturating_sum(one: Duration, other: Duration) -> Duration {
    Duration::from_nanos(one.as_nanos().saturating_add(other.as_nanos()))
}
