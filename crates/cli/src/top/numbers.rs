//! Numbers in cells, facts and charts.

/// Returns a number with about three digits.
pub fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// Returns a rate with its unit.
pub fn rate(bps: f64) -> String {
    match bps {
        bps if bps >= 1e9 => format!("{} Gbit/s", digits(bps / 1e9)),
        bps if bps >= 1e6 => format!("{} Mbit/s", digits(bps / 1e6)),
        bps if bps >= 1e3 => format!("{} kbit/s", digits(bps / 1e3)),
        bps => format!("{} bit/s", digits(bps)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_about_three_digits() {
        let texts = [0.0, 0.012_34, 0.123_4, 1.234, -12.34, 123.4, 12_340.0].map(digits);
        assert_eq!(texts, ["0", "0.012", "0.12", "1.23", "-12.3", "123", "12340"]);
        assert_eq!(
            [999.0, 64_000.0, 15e6, 2.5e9].map(rate),
            ["999 bit/s", "64.0 kbit/s", "15.0 Mbit/s", "2.50 Gbit/s"]
        );
    }
}
