//! Numbers as a person wants to read them.

use cutline_units::Duration;

/// To three digits that count.
pub fn approximately(time: Duration) -> Duration {
    let ns = time.as_nanos();
    let step = 10_u64.pow(ns.checked_ilog10().unwrap_or(0).saturating_sub(2));
    Duration::from_nanos((ns + step / 2) / step * step)
}

/// A share as per cent.
pub fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_count() {
        let printed = [0, 7, 1_234, 26_851_000, 1_999_600_000]
            .map(|ns| approximately(Duration::from_nanos(ns)).to_string());
        assert_eq!(printed, ["0 ns", "7 ns", "1.23 us", "26.9 ms", "2 s"]);
        assert_eq!(percent(0.954), "95 %");
    }
}
