//! Trend of a noisy series at irregular times: the estimator of Theil (1950) and Sen (1968) with the test of Mann
//! (1945) and Kendall (1975).
//!
//! ```text
//! slope b = median over i < j of (x_j - x_i) / (t_j - t_i)
//! level a = median over i of (x_i - b (t_i - t_n))                          at the time t_n of the last value
//! S = sum over i < j of sign(x_j - x_i)        Var S = n (n - 1) (2 n + 5) / 18        z = (S - sign S) / sqrt(Var S)
//! ```
//!
//! The slope is that of most pairs: up to 29 % of the values may be anything (Sen 1968), which a regression by least
//! squares does not bear. The test assumes no distribution: it uses the order of the values alone. Lost reports
//! leave gaps, which change nothing but the number of values.
//!
//! Example: 10, 12, 14, 99, 18 at 0, 1, 2, 3, 4 s. The pairs without 99 have slope 2, so b = 2 and a = 18. S = 8, Var S
//! = 16.7, z = 1.71.

use cutline_units::{Duration, Instant};
use std::collections::VecDeque;

/// The latest values of a series.
#[derive(Clone, Debug)]
pub struct TrendSeries {
    points: VecDeque<(Instant, f64)>,
    most: usize,
}

/// Estimate of a trend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Growth, per second.
    pub slope: f64,
    /// Value of the line at the time of the last value.
    pub level: f64,
    /// Standard deviations by which the trend differs from none; negative if the series falls.
    pub z: f64,
    /// Time of the last value.
    pub at: Instant,
}

impl TrendSeries {
    /// An empty series, of which the latest `most` values are kept.
    pub const fn new(most: u32) -> Self {
        Self { points: VecDeque::new(), most: most as usize }
    }

    /// Adds a value. One that is not later than the last one is ignored.
    pub fn add(&mut self, at: Instant, value: f64) {
        if self.points.back().is_some_and(|(last, _)| *last >= at) {
            return;
        }
        if self.points.len() == self.most {
            self.points.pop_front();
        }
        self.points.push_back((at, value));
    }

    /// Forgets all values.
    pub fn clear(&mut self) {
        self.points.clear();
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// Returns whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Median of the latest `most` values; `None` if there is none. Of an even number it is the lower one in the middle.
    pub fn median_of_latest(&self, most: usize) -> Option<f64> {
        median(&mut self.points.iter().rev().take(most).map(|(_, value)| *value).collect::<Vec<_>>())
    }

    /// The trend; `None` if there are fewer than `least` values, or than two.
    pub fn trend(&self, least: u32) -> Option<Trend> {
        let n = self.points.len();
        if n < (least as usize).max(2) {
            return None;
        }
        let (at, _) = *self.points.back()?;
        let mut slopes = Vec::with_capacity(n * (n - 1) / 2);
        let mut s = 0.0;
        for (later, (t, x)) in self.points.iter().enumerate() {
            for (earlier_t, earlier_x) in self.points.range(..later) {
                slopes.push((x - earlier_x) / t.saturating_since(*earlier_t).as_secs_f64());
                s += f64::from(i8::from(x > earlier_x) - i8::from(x < earlier_x));
            }
        }
        let slope = median(&mut slopes)?;
        let back = |t: Instant| at.saturating_since(t).as_secs_f64();
        let level = median(&mut self.points.iter().map(|(t, x)| x + slope * back(*t)).collect::<Vec<_>>())?;
        let n = n as f64;
        let z = (s.abs() - 1.0).max(0.0).copysign(s) / (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
        Some(Trend { slope, level, z, at })
    }
}

impl Trend {
    /// The value at a time.
    pub fn value_at(&self, at: Instant) -> f64 {
        self.level + self.slope * at.saturating_since(self.at).as_secs_f64()
    }

    /// Growth in a time.
    pub fn growth(&self, time: Duration) -> f64 {
        self.slope * time.as_secs_f64()
    }
}

/// Median; of an even number of values the lower one in the middle.
fn median(values: &mut [f64]) -> Option<f64> {
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable_by(middle, f64::total_cmp).1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::Streams;

    fn series(values: &[f64]) -> TrendSeries {
        let mut series = TrendSeries::new(32);
        for (number, value) in values.iter().enumerate() {
            series.add(Instant::from_nanos(number as u64 * 1_000_000_000), *value);
        }
        series
    }

    /// The example of the header: Theil 1950, Sen 1968, Mann 1945, Kendall 1975.
    #[test]
    fn an_outlier_does_not_bend_the_line() {
        let trend = series(&[10.0, 12.0, 14.0, 99.0, 18.0]).trend(4).unwrap();
        assert_eq!((trend.slope, trend.level), (2.0, 18.0));
        assert!(
            (trend.z - 7.0 / (5.0 * 4.0 * 15.0 / 18.0_f64).sqrt()).abs() < 1e-12
                || (trend.z - 1.71).abs() < 0.01,
            "{trend:?}"
        );
        assert_eq!(trend.value_at(Instant::from_nanos(6_000_000_000)), 22.0);
        assert_eq!(trend.growth(Duration::from_millis(500)), 1.0);
    }

    #[test]
    fn constant_falling_and_short_series() {
        let flat = series(&[3.0; 8]).trend(4).unwrap();
        assert_eq!((flat.slope, flat.level, flat.z), (0.0, 3.0, 0.0));
        let falling = series(&[9.0, 7.0, 5.0, 3.0]).trend(4).unwrap();
        assert!(falling.z < -1.65 && falling.slope == -2.0, "{falling:?}");
        assert_eq!(series(&[1.0, 2.0, 3.0]).trend(4), None);
        assert_eq!(TrendSeries::new(4).trend(0), None);
        assert_eq!(series(&[5.0, 1.0, 2.0]).median_of_latest(2), Some(1.0));
    }

    #[test]
    fn old_values_and_late_ones_are_forgotten() {
        let mut series = TrendSeries::new(3);
        for (at, value) in [(1, 1.0), (2, 2.0), (2, 9.0), (1, 9.0), (3, 3.0), (4, 4.0)] {
            series.add(Instant::from_nanos(at), value);
        }
        assert_eq!((series.len(), series.median_of_latest(9)), (3, Some(3.0)));
        series.clear();
        assert!(series.is_empty());
    }

    /// Mann 1945: how often z exceeds 1.65 without a trend depends on no distribution. Of 8 values that is S of at
    /// least 16, in 3.051 % of all orders. The rule: within four standard errors of 20,000 series, 2.56 % to 3.54 %.
    #[test]
    fn noise_is_rarely_a_trend() {
        let mut random = Streams::new(1).stream("trend", "noise");
        let mut rising = 0;
        for _ in 0..20_000 {
            let values: Vec<f64> = (0..8).map(|_| random.uniform().powi(4)).collect();
            rising += u32::from(series(&values).trend(4).unwrap().z > 1.65);
        }
        assert!((513..708).contains(&rising), "{rising}");
    }
}
