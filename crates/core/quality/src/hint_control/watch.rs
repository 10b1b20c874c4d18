//! The watch at rest: detection of a changed quality.

/// CUSUM's slack and alarm, in standard deviations (Page 1954; with these a false alarm on one side comes once in about
/// 930 independent normal intervals).
const SLACK: f64 = 0.5;
const ALARM: f64 = 5.0;

/// The least weight of an interval in the expected mean.
const LEAST_SHARE: f64 = 1.0 / 16.0;

/// The standard deviation of an interval before anything is known, and its least value.
const FIRST_DEVIATION: f64 = 0.03;
const LEAST_DEVIATION: f64 = 0.005;

/// Expectation at the centre: mean and variance of the last sixteen intervals or so.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    n: u32,
    mean: f64,
    variance: f64,
}

/// The sums of how much quality was above and below the expected mean.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cusum {
    above: f64,
    below: f64,
}

impl Default for Expected {
    fn default() -> Self {
        Self { n: 0, mean: 0.0, variance: FIRST_DEVIATION * FIRST_DEVIATION }
    }
}

impl Expected {
    /// Adds the quality of an interval at the centre.
    pub(super) fn add(&mut self, quality: f64) {
        self.n = self.n.saturating_add(1);
        let share = (1.0 / f64::from(self.n)).max(LEAST_SHARE);
        let off = quality - self.mean;
        self.mean += share * off;
        if self.n > 1 {
            self.variance += share * (off * off - self.variance);
        }
    }

    /// Returns the distance of a quality from the expected mean in standard deviations; negative below it. 0
    /// before the first interval.
    pub(super) fn surprise(&self, quality: f64) -> f64 {
        let deviation = self.variance.sqrt().max(LEAST_DEVIATION);
        if self.n == 0 { 0.0 } else { (quality - self.mean) / deviation }
    }
}

impl Cusum {
    /// Adds an interval, and answers whether there is an alarm.
    pub(super) fn add(&mut self, surprise: f64) -> bool {
        self.above = (self.above + surprise - SLACK).max(0.0);
        self.below = (self.below - surprise - SLACK).max(0.0);
        self.above > ALARM || self.below > ALARM
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_intervals_are_a_plain_mean() {
        let mut expected = Expected::default();
        assert_eq!(expected.surprise(0.3), 0.0);
        for quality in [0.8, 0.9, 1.0] {
            expected.add(quality);
        }
        assert!((expected.mean - 0.9).abs() < 1e-12);
    }

    #[test]
    fn a_shift_of_one_and_a_half_deviations_is_an_alarm_after_six_intervals() {
        let mut alarm = Cusum::default();
        let after = (1..100).find(|_| alarm.add(-1.5));
        assert_eq!(after, Some(6));
    }

    #[test]
    fn an_alternating_deviation_is_no_alarm() {
        let mut alarm = Cusum::default();
        let raised = (0..1000).any(|i| alarm.add(if i % 2 == 0 { 2.0 } else { -2.0 }));
        assert!(!raised);
    }
}
