//! A mean over replications, with its confidence interval.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// A mean over replications with its confidence interval, of 95 % by default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The standard error of the mean, s / sqrt(n); `None` for a single value.
    pub std_error: Option<f64>,
    /// The ends of the confidence interval; `None` for a single value.
    pub interval: Option<(f64, f64)>,
    /// The number of replications.
    pub n: usize,
}

impl Estimate {
    /// The estimate from one value for each replication, with the interval of 95 %; `None` when there is no value or one is not
    /// finite.
    pub fn from_values(values: &[f64]) -> Option<Self> {
        Self::with_confidence(values, 0.95)
    }

    /// As [`Estimate::from_values`], with the interval of this confidence.
    ///
    /// # Panics
    /// If the confidence is not between 0 and 1.
    pub fn with_confidence(values: &[f64], confidence: f64) -> Option<Self> {
        assert!(confidence > 0.0 && confidence < 1.0, "a confidence lies between 0 and 1");
        if values.is_empty() || values.iter().any(|x| !x.is_finite()) {
            return None;
        }
        let n = values.len();
        let mean = values.iter().sum::<f64>() / n as f64;
        let std_error = (n > 1).then(|| {
            let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
            (squares / (n as f64 * (n as f64 - 1.0))).sqrt()
        });
        let interval = std_error.map(|error| {
            let half = t_quantile(0.5 + confidence / 2.0, n as f64 - 1.0) * error;
            (mean - half, mean + half)
        });
        Some(Self { mean, std_error, interval, n })
    }

    /// The mean of the ratios of pairs that share a seed, `numerators[i] / denominators[i]`, with its interval.
    ///
    /// `None` when there is no pair, or a ratio is not finite, for example because a denominator is zero.
    pub fn from_ratios(numerators: &[f64], denominators: &[f64]) -> Option<Self> {
        assert_eq!(numerators.len(), denominators.len(), "pairs need two values of each seed");
        let ratios: Vec<f64> = numerators.iter().zip(denominators).map(|(a, b)| a / b).collect();
        Self::from_values(&ratios)
    }

    /// The mean of the differences of pairs that share a seed, `left[i] - right[i]`, with its interval.
    pub fn from_differences(left: &[f64], right: &[f64]) -> Option<Self> {
        assert_eq!(left.len(), right.len(), "pairs need two values of each seed");
        let differences: Vec<f64> = left.iter().zip(right).map(|(a, b)| a - b).collect();
        Self::from_values(&differences)
    }

    /// The p-value of the one-sided test that the mean is above `value`: the probability of a mean as large as this if the true one
    /// is `value` (Student's t). `None` for a single value.
    pub fn p_above(&self, value: f64) -> Option<f64> {
        let error = self.std_error?;
        let above = self.mean - value;
        if error == 0.0 {
            return Some(if above > 0.0 { 0.0 } else { 1.0 });
        }
        let t = StudentsT::new(0.0, 1.0, (self.n - 1) as f64).expect("there are at least two values");
        Some(t.sf(above / error))
    }

    /// The p-value of the one-sided test that the mean is below `value`; `None` for a single value.
    pub fn p_below(&self, value: f64) -> Option<f64> {
        Self { mean: -self.mean, ..*self }.p_above(-value)
    }

    /// Half the width of the interval; 0 for a single value.
    pub fn half_width(&self) -> f64 {
        self.interval.map_or(0.0, |(low, high)| (high - low) / 2.0)
    }
}

/// The 0.975 quantile of Student's t: the factor of a two-sided 95 % interval.
pub fn t_quantile_975(degrees_of_freedom: usize) -> f64 {
    assert!(degrees_of_freedom > 0, "Student's t needs a degree of freedom");
    t_quantile(0.975, degrees_of_freedom as f64)
}

/// A quantile of Student's t.
pub(crate) fn t_quantile(probability: f64, degrees_of_freedom: f64) -> f64 {
    let t = StudentsT::new(0.0, 1.0, degrees_of_freedom).expect("degrees of freedom are positive");
    t.inverse_cdf(probability)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_s_worked_value() {
        let estimate = Estimate::from_values(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!((estimate.mean, estimate.n), (3.0, 5));
        assert!((estimate.half_width() - 1.963_24).abs() < 1e-4, "{estimate:?}");
        assert!((estimate.std_error.unwrap().powi(2) - 0.5).abs() < 1e-12);
    }

    /// Law, table T.1: t(4, 0.95) = 2.132.
    #[test]
    fn an_interval_has_the_given_confidence() {
        let of = |confidence| Estimate::with_confidence(&[1.0, 2.0, 3.0, 4.0, 5.0], confidence).unwrap();
        assert!((of(0.9).half_width() - 2.1318 * 0.5_f64.sqrt()).abs() < 1e-4);
        assert_eq!(Some(of(0.95)), Estimate::from_values(&[1.0, 2.0, 3.0, 4.0, 5.0]));
    }

    #[test]
    fn quantiles_of_the_printed_tables() {
        for (df, t) in
            [(1, 12.706_2), (2, 4.302_7), (4, 2.776_4), (9, 2.262_2), (19, 2.093_0), (120, 1.979_9)]
        {
            assert!((t_quantile_975(df) - t).abs() < 1e-4, "{df} has {}", t_quantile_975(df));
        }
    }

    #[test]
    fn a_p_value_reaches_the_level_where_the_interval_ends() {
        let estimate = Estimate::from_values(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        let (low, high) = estimate.interval.unwrap();
        assert!((estimate.p_above(low).unwrap() - 0.025).abs() < 1e-6);
        assert!((estimate.p_below(high).unwrap() - 0.025).abs() < 1e-6);
        assert!((estimate.p_above(3.0).unwrap() - 0.5).abs() < 1e-9);
        let constant = Estimate::from_values(&[2.0, 2.0]).unwrap();
        assert_eq!(
            (constant.p_above(2.0), constant.p_above(1.0), constant.p_below(3.0)),
            (Some(1.0), Some(0.0), Some(0.0))
        );
        assert_eq!(Estimate::from_values(&[1.0]).unwrap().p_above(0.0), None);
    }

    #[test]
    fn a_single_value_has_no_interval_and_no_value_gives_no_estimate() {
        let one = Estimate::from_values(&[7.0]).unwrap();
        assert_eq!((one.mean, one.interval, one.half_width()), (7.0, None, 0.0));
        assert_eq!(Estimate::from_values(&[]), None);
        assert_eq!(Estimate::from_values(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn the_variation_between_seeds_cancels_in_pairs() {
        let base = [1.0, 2.0, 4.0, 8.0];
        let better = base.map(|x| 1.1 * x);
        let ratio = Estimate::from_ratios(&better, &base).unwrap();
        assert!((ratio.mean - 1.1).abs() < 1e-12 && ratio.half_width() < 1e-9, "{ratio:?}");
        assert_eq!(Estimate::from_ratios(&[1.0, 1.0], &[0.0, 1.0]), None);
        let difference = Estimate::from_differences(&better, &base).unwrap();
        assert!((difference.mean - 0.375).abs() < 1e-12 && difference.half_width() > 0.1);
    }

    /// About 95 of 100 intervals must contain the known mean of the distribution.
    #[test]
    fn intervals_contain_the_mean_as_often_as_they_should() {
        let mut random = cutline_units::Streams::new(7).stream("stats", "coverage");
        let mut normal = || (0..12).map(|_| random.uniform()).sum::<f64>() - 6.0;
        let containing = (0..2000).filter(|_| {
            let values: Vec<f64> = (0..10).map(|_| normal()).collect();
            let (low, high) = Estimate::from_values(&values).unwrap().interval.unwrap();
            low <= 0.0 && 0.0 <= high
        });
        let count = containing.count();
        assert!((1860..=1940).contains(&count), "{count} of 2000 contain the mean");
    }
}
