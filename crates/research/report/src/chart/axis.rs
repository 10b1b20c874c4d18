//! Axes: their scale, their range, and the position of a value between the two ends.

use super::ticks::{Tick, linear_ticks, log_ticks};

/// A horizontal or vertical axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    pub(crate) label: String,
    pub(crate) scale: Scale,
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
    pub(crate) ticks: Option<Vec<(f64, String)>>,
    /// Larger values do not extend the axis.
    pub(crate) cap: Option<f64>,
}

/// Scale of an axis.
#[derive(Clone, Debug, PartialEq)]
pub enum Scale {
    /// Distances are proportional to the difference of two values.
    Linear,
    /// Distances are proportional to the ratio of two values. Ticks are at powers of the base (2 or 10).
    Log(u32),
    /// Names in a row. The x of a point is the index of its category.
    Categories(Vec<String>),
}

/// An axis whose range has been fitted to the data.
#[derive(Clone, Debug)]
pub(crate) struct FittedAxis {
    log: bool,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Axis {
    /// A linear axis. The label names the quantity and its unit, such as `Queuing delay, ms`.
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Linear, low: None, high: None, ticks: None, cap: None }
    }

    /// A logarithmic axis with ticks at powers of `base`, 2 or 10.
    pub fn log(label: impl Into<String>, base: u32) -> Self {
        assert!(base == 2 || base == 10, "a logarithmic axis has base 2 or 10, not {base}");
        Self { scale: Scale::Log(base), ..Self::linear(label) }
    }

    /// An axis of category names, for bars.
    pub fn categories<S: Into<String>>(label: impl Into<String>, names: impl IntoIterator<Item = S>) -> Self {
        let names = names.into_iter().map(Into::into).collect();
        Self { scale: Scale::Categories(names), ..Self::linear(label) }
    }

    /// Sets both ends. By default they follow the data.
    ///
    /// On a logarithmic axis both ends must be above 0.
    pub fn range(self, low: f64, high: f64) -> Self {
        assert!(low < high, "an axis runs from less to more, not from {low} to {high}");
        assert!(
            low > 0.0 || !matches!(self.scale, Scale::Log(_)),
            "a logarithmic axis begins above 0, not at {low}"
        );
        Self { low: Some(low), high: Some(high), ..self }
    }

    /// Sets the lower end only. By default it follows the data.
    pub fn from(self, low: f64) -> Self {
        Self { low: Some(low), ..self }
    }

    /// Puts ticks at exactly these values, labelled with the value.
    pub fn ticks(self, at: impl IntoIterator<Item = f64>) -> Self {
        Self { ticks: Some(at.into_iter().map(|v| (v, super::ticks::label(v))).collect()), ..self }
    }

    /// Fits the axis to `values`. Ends that were set explicitly stay.
    pub(crate) fn fit(&self, values: impl Iterator<Item = f64>, max_ticks: usize) -> FittedAxis {
        if let Scale::Categories(names) = &self.scale {
            return FittedAxis { log: false, low: -0.5, high: names.len().max(1) as f64 - 0.5 };
        }
        let log = matches!(self.scale, Scale::Log(_));
        let usable = values.filter(|v| v.is_finite() && (!log || *v > 0.0));
        let (min, max) = usable.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
        let (min, max) = if min <= max { (min, max) } else { (1.0, 1.0) };
        let max = self.cap.map_or(max, |cap| max.min(cap));
        let (min, max) = (self.low.unwrap_or(min.min(max)), self.high.unwrap_or(max));
        let (low, high) = match self.scale {
            Scale::Log(base) => whole_powers(min, max, f64::from(base)),
            _ => whole_ticks(min, max, max_ticks),
        };
        FittedAxis { log, low: self.low.unwrap_or(low), high: self.high.unwrap_or(high) }
    }

    /// Ticks of a fitted axis, about `max_ticks` of them at most.
    pub(crate) fn ticks_of(&self, fitted: &FittedAxis, max_ticks: usize) -> Vec<Tick> {
        if let Some(ticks) = &self.ticks {
            let labelled = |(value, label): &(f64, String)| Tick { value: *value, label: label.clone() };
            return ticks.iter().map(labelled).filter(|tick| fitted.contains(tick.value)).collect();
        }
        match &self.scale {
            Scale::Linear => linear_ticks(fitted.low, fitted.high, max_ticks),
            Scale::Log(base) => log_ticks(fitted.low, fitted.high, *base, max_ticks),
            Scale::Categories(names) => {
                let tick = |(i, name): (usize, &String)| Tick { value: i as f64, label: name.clone() };
                names.iter().enumerate().map(tick).collect()
            }
        }
    }
}

impl FittedAxis {
    /// The position of `value`: 0 at the low end, 1 at the high end, outside 0..=1 beyond them.
    pub(crate) fn fraction(&self, value: f64) -> f64 {
        if self.log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }

    /// Returns true if `value` lies within the axis.
    pub(crate) fn contains(&self, value: f64) -> bool {
        (-1e-9..=1.0 + 1e-9).contains(&self.fraction(value))
    }
}

/// The largest number of powers of its base that a logarithmic axis shows, unless its range was set.
const MAX_POWERS: f64 = 20.0;

/// The range widened to whole powers of `base`.
fn whole_powers(min: f64, max: f64, base: f64) -> (f64, f64) {
    let low = (min.ln() / base.ln() + 1e-9).floor();
    let high = (max.ln() / base.ln() - 1e-9).ceil();
    // Over more powers, values could not be distinguished. The smallest are left below the axis.
    let low = low.max(high - MAX_POWERS);
    (base.powf(low), base.powf(high.max(low + 1.0)))
}

/// The narrowest range that an axis shows, relative to the size of its values. Narrower ranges come close to the
/// resolution of an `f64`.
const MIN_RELATIVE_WIDTH: f64 = 1e-9;

/// The range widened to the next ticks outside it.
fn whole_ticks(min: f64, max: f64, max_ticks: usize) -> (f64, f64) {
    let size = min.abs().max(max.abs());
    let around = if size * MIN_RELATIVE_WIDTH < 0.5 { 0.5 } else { size * MIN_RELATIVE_WIDTH };
    let wide = max - min > size * MIN_RELATIVE_WIDTH;
    let (min, max) = if wide { (min, max) } else { (min - around, max + around) };
    let step = super::ticks::step(min, max, max_ticks);
    ((min / step + 1e-9).floor() * step, (max / step - 1e-9).ceil() * step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_follow_the_data_to_the_next_tick() {
        let fitted = Axis::linear("").fit([3.0, 97.0, f64::NAN].into_iter(), 6);
        assert_eq!((fitted.low, fitted.high), (0.0, 100.0));
        let fitted = Axis::log("", 10).fit([0.0, 3.0, 4000.0].into_iter(), 6);
        assert!((fitted.low - 1.0).abs() < 1e-9 && (fitted.high - 10_000.0).abs() < 1e-6, "{fitted:?}");
        let fitted = Axis::linear("").from(0.0).fit([0.9, 1.18].into_iter(), 6);
        assert!(fitted.low == 0.0 && (fitted.high - 1.2).abs() < 1e-9, "{fitted:?}");
    }

    #[test]
    fn an_axis_without_data_still_has_two_ends() {
        for axis in [Axis::linear(""), Axis::log("", 2), Axis::categories("", [""; 0])] {
            let fitted = axis.fit(std::iter::empty(), 5);
            assert!(fitted.low < fitted.high, "{fitted:?}");
        }
        let same = Axis::linear("").fit([2.0, 2.0].into_iter(), 5);
        assert!(same.low < 2.0 && 2.0 < same.high);
        let close = Axis::linear("").fit([819_100.000_000_1, 819_100.000_000_2].into_iter(), 5);
        assert!(close.high - close.low >= 1.0, "{close:?}");
    }

    #[test]
    fn fractions_run_from_0_to_1() {
        let log = Axis::log("", 2).range(4.0, 128.0).fit(std::iter::empty(), 5);
        assert_eq!(log.fraction(4.0), 0.0);
        assert!((log.fraction(128.0) - 1.0).abs() < 1e-12 && (log.fraction(8.0) - 0.2).abs() < 1e-12);
        assert!(log.contains(128.0) && !log.contains(129.0));
    }

    #[test]
    #[should_panic(expected = "an axis runs from less to more, not from 2 to 1")]
    fn a_range_that_runs_backwards_is_refused() {
        let _ = Axis::linear("").range(2.0, 1.0);
    }
}
