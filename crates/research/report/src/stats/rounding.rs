//! Numbers with as many digits as they are worth.

/// Returns a number with so many significant digits.
pub fn significant(value: f64, digits: i32) -> String {
    format!("{value:.0$}", decimals(value, digits))
}

/// Returns the number of decimals for `digits` significant digits, at most 9; 0 for zero and for anything but a number.
pub fn decimals(value: f64, digits: i32) -> usize {
    if value == 0.0 || !value.is_finite() {
        return 0;
    }
    (digits - 1 - value.abs().log10().floor() as i32).clamp(0, 9) as usize
}
