//! Ranges that several applications share.

use cutline_params::ParameterError;
use cutline_units::{Bytes, Distribution, Duration, Rate};

/// Payload rates, bit/s.
pub(super) const RATES: (u64, u64) = (1, 1_000_000_000_000);
/// Sizes of messages, bytes.
pub(super) const MESSAGES: (u64, u64) = (1, 1_000_000);
/// Random sizes of messages, bytes.
pub(super) const DRAWN_MESSAGES: (f64, f64) = (1.0, 1e6);
/// Random sizes of files, bytes.
pub(super) const FILES: (f64, f64) = (1.0, 1e15);
/// Random times, seconds. A draw of more than a day counts as a day.
pub(super) const TIMES: (f64, f64) = (0.0, 1e9);
/// Random times above zero, seconds.
pub(super) const POSITIVE_TIMES: (f64, f64) = (1e-9, 1e9);
/// A day, the longest time of an application.
pub(super) const DAY: Duration = Duration::from_secs(86_400);

/// Draws a time of at most a day.
pub(super) fn seconds(drawn: f64) -> Duration {
    Duration::from_secs_f64(drawn.min(DAY.as_secs_f64()))
}

/// Checks that messages at regular intervals are at least a nanosecond apart.
pub(super) fn check_interval(rate: Rate, size: Bytes) -> Result<(), ParameterError> {
    if rate.transmission_time(size).is_zero() {
        let allowed = format!("at most {}: messages of {size} are at least 1 ns apart", fastest(size));
        return Err(ParameterError::new("rate", rate, allowed));
    }
    Ok(())
}

/// Returns the rate of one message of this size per nanosecond.
const fn fastest(size: Bytes) -> Rate {
    Rate::from_bps(size.bits().saturating_mul(1_000_000_000))
}

/// Checks that the mean size of messages is in the range of a message.
pub(super) fn check_mean(size: &Distribution) -> Result<(), ParameterError> {
    let (least, most) = DRAWN_MESSAGES;
    if (least..=most).contains(&size.mean()) {
        return Ok(());
    }
    Err(ParameterError::new(
        "size",
        size,
        format!("of a mean from {least} to {most} B; here it is {}", size.mean()),
    ))
}
