//! Ticks at round numbers, and their labels.

/// A labelled position on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    pub(crate) value: f64,
    pub(crate) label: String,
}

/// The smallest step of 1, 2, 2.5 or 5 times a power of ten with which at most `max_ticks` steps fit into the range.
pub(crate) fn step(low: f64, high: f64, max_ticks: usize) -> f64 {
    let min = (high - low) / max_ticks.max(1) as f64;
    let power = 10_f64.powf(min.log10().floor());
    let nice = [1.0, 2.0, 2.5, 5.0, 10.0];
    let factor = nice.into_iter().find(|factor| factor * power >= min * (1.0 - 1e-9)).unwrap_or(10.0);
    factor * power
}

/// Ticks at multiples of a nice step.
pub(crate) fn linear_ticks(low: f64, high: f64, max_ticks: usize) -> Vec<Tick> {
    let step = step(low, high, max_ticks);
    let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
    let decimals = decimals_of(step);
    let tick = |n: i64| {
        let value = n as f64 * step;
        let plain = n == 0 || (step >= 1e-6 && value.abs() < 1e12);
        Tick { value, label: if plain { with_decimals(value, decimals) } else { scientific(value, step) } }
    };
    (first..=last).map(tick).collect()
}

/// Ticks at powers of `base`, at most `max_ticks` of them. A short decimal axis has ticks at 1, 2 and 5 times each power.
pub(crate) fn log_ticks(low: f64, high: f64, base: u32, max_ticks: usize) -> Vec<Tick> {
    let base = f64::from(base);
    let (first, last) = ((low.ln() / base.ln() - 1e-9).ceil(), (high.ln() / base.ln() + 1e-9).floor());
    let powers = (last - first).max(0.0) as usize + 1;
    if powers < 3 && base == 10.0 {
        let within = |v: &f64| (low * (1.0 - 1e-9)..=high * (1.0 + 1e-9)).contains(v);
        let decades = (first as i32 - 1)..=(last as i32);
        let values = decades.flat_map(|n| [1.0, 2.0, 5.0].map(|m| m * 10_f64.powi(n))).filter(within);
        return values.map(|value| Tick { value, label: label(value) }).collect();
    }
    let every = powers.div_ceil(max_ticks.max(1)).max(1);
    let value = |n: usize| base.powi(first as i32 + (n * every) as i32);
    (0..powers.div_ceil(every)).map(value).map(|value| Tick { value, label: label(value) }).collect()
}

/// The shortest form of a number: `0.05`, `128`, `10,000`, `1e-9`.
pub(crate) fn label(value: f64) -> String {
    if value != 0.0 && !(1e-6..1e12).contains(&value.abs()) {
        return scientific(value, value.abs() / 1000.0);
    }
    let shortest = (0..6).find(|&d| {
        let factor = 10_f64.powi(d);
        (value * factor - (value * factor).round()).abs() < 1e-6 * (value * factor).abs().max(1e-3)
    });
    with_decimals(value, shortest.unwrap_or(6) as usize)
}

/// A number with three digits, or all before the point.
pub(crate) fn rounded(value: f64) -> String {
    let decimals = (2.0 - value.abs().max(1e-9).log10().floor()).clamp(0.0, 9.0) as usize;
    with_decimals(value, decimals)
}

/// A number with `decimals` decimals, separators between thousands, and a typographic minus sign.
pub(crate) fn with_decimals(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_once('.').map_or((text.as_str(), None), |(w, f)| (w, Some(f)));
    let mut out = String::new();
    if value < 0.0 && text.bytes().any(|b| (b'1'..=b'9').contains(&b)) {
        out.push('\u{2212}');
    }
    for (i, digit) in whole.char_indices() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// A very small or very large number in scientific notation, with enough digits to distinguish it from its neighbour at
/// a distance of `step`: `2.5e-7`.
fn scientific(value: f64, step: f64) -> String {
    let decimals = (value.abs() / step).log10().ceil().clamp(0.0, 15.0) as usize;
    let text = format!("{value:.decimals$e}");
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    let digits =
        if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
    format!("{digits}e{power}").replace('-', "\u{2212}")
}

/// The number of decimals that multiples of `step` need.
fn decimals_of(step: f64) -> usize {
    (0..9).find(|&d| (step * 10_f64.powi(d)).fract() < 1e-6).unwrap_or(9) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn linear_ticks_are_round() {
        assert_eq!(labels(&linear_ticks(0.0, 1.0, 5)), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(&linear_ticks(0.0, 525.0, 6)), ["0", "100", "200", "300", "400", "500"]);
        assert_eq!(labels(&linear_ticks(-1.0, 1.0, 4)), ["\u{2212}1.0", "\u{2212}0.5", "0.0", "0.5", "1.0"]);
        assert_eq!(labels(&linear_ticks(0.0, 15_000.0, 3)), ["0", "5,000", "10,000", "15,000"]);
        assert_eq!(labels(&linear_ticks(0.95, 1.2, 6)), ["0.95", "1.00", "1.05", "1.10", "1.15", "1.20"]);
        assert_eq!(labels(&linear_ticks(0.0, 2e-7, 2)), ["0", "1e\u{2212}7", "2e\u{2212}7"]);
    }

    #[test]
    fn ticks_of_a_narrow_range_far_from_0_differ() {
        assert_eq!(
            labels(&linear_ticks(0.1, 0.100_000_2, 2)),
            ["1e\u{2212}1", "1.000001e\u{2212}1", "1.000002e\u{2212}1"]
        );
    }

    #[test]
    fn log_ticks_are_powers() {
        assert_eq!(labels(&log_ticks(4.0, 128.0, 2, 8)), ["4", "8", "16", "32", "64", "128"]);
        assert_eq!(
            labels(&log_ticks(0.01, 1e4, 10, 8)),
            ["0.01", "0.1", "1", "10", "100", "1,000", "10,000"]
        );
        assert_eq!(labels(&log_ticks(1.0, 1e8, 10, 5)), ["1", "100", "10,000", "1,000,000", "100,000,000"]);
        assert_eq!(labels(&log_ticks(10.0, 100.0, 10, 8)), ["10", "20", "50", "100"]);
    }

    #[test]
    fn numbers_are_written_as_people_do() {
        let written = [0.0, -0.0, 0.05, -1234.5, 1e6, 128.0, 1.18, -0.004].map(label);
        assert_eq!(
            written,
            ["0", "0", "0.05", "\u{2212}1,234.5", "1,000,000", "128", "1.18", "\u{2212}0.004"]
        );
        assert_eq!(with_decimals(-0.001, 1), "0.0");
        assert_eq!([2.5e-7, -1e15].map(label), ["2.5e\u{2212}7", "\u{2212}1e15"]);
    }
}
