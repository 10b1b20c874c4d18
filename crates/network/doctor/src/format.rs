//! Formats of numbers in texts and documents.

use cutline_units::{Duration, Rate};
use serde::Serialize as _;

/// Rounds to three significant digits.
pub fn approximately(time: Duration) -> Duration {
    let ns = time.as_nanos();
    let step = 10_u64.pow(ns.checked_ilog10().unwrap_or(0).saturating_sub(2));
    Duration::from_nanos((ns + step / 2) / step * step)
}

/// A share in per cent.
pub fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Milliseconds, for JSON.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
pub fn as_ms<S: serde::Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(time.as_millis_f64())
}

/// Milliseconds or null, for JSON.
#[expect(clippy::ref_option, reason = "serde hands a reference")]
pub fn as_optional_ms<S: serde::Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    time.map(Duration::as_millis_f64).serialize(to)
}

/// Bits per second or null, for JSON.
#[expect(clippy::ref_option, reason = "serde hands a reference")]
pub fn as_bps<S: serde::Serializer>(rate: &Option<Rate>, to: S) -> Result<S::Ok, S::Error> {
    rate.map(Rate::as_bps).serialize(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_to_three_significant_digits() {
        let printed = [0, 7, 1_234, 26_851_000, 1_999_600_000]
            .map(|ns| approximately(Duration::from_nanos(ns)).to_string());
        assert_eq!(printed, ["0 ns", "7 ns", "1.23 us", "26.9 ms", "2 s"]);
        assert_eq!(percent(0.954), "95 %");
    }
}
