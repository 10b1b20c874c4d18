//! The difference between the means of two systems, with its confidence interval.
//!
//! If both sides have the same seeds, values are compared in pairs (Law, section 10.2.1): the variation between seeds
//! cancels. Otherwise the interval is that of Welch for unequal variances (Law, section 10.2.2):
//!
//! ```text
//! left - right ± t(f, 0.975) sqrt(e1² + e2²),   f = (e1² + e2²)² / (e1⁴/(n1 - 1) + e2⁴/(n2 - 1)),   e = s / sqrt(n)
//! ```
//!
//! Worked numbers: 1, 2, 3, 4, 5 and 2, 4, 6, 8, 10 have e² = 0.5 and 2, and f = 5.882. The interval is -3 ± 3.888.

use super::estimate::{Estimate, t_quantile};

/// Method of comparing two sets of replications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// Values with the same seed were compared with each other.
    Paired,
    /// The two sets were compared as independent samples, with Welch's interval.
    Welch,
}

/// Two means and their difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The mean of the first set.
    pub left: Estimate,
    /// The mean of the second set.
    pub right: Estimate,
    /// `left - right`.
    pub difference: f64,
    /// The ends of the 95 % confidence interval of the difference; `None` when a side has a single value.
    pub interval: Option<(f64, f64)>,
    /// Method of comparison.
    pub pairing: Pairing,
}

impl Comparison {
    /// Compares two sets of values, each with its seed. They are paired when both sides have the same seeds in the same
    /// order; otherwise Welch's interval is used.
    ///
    /// `None` when a side has no value, or one that is not finite.
    pub fn new(left: &[(u64, f64)], right: &[(u64, f64)]) -> Option<Self> {
        let seeds = |side: &[(u64, f64)]| side.iter().map(|(seed, _)| *seed).collect::<Vec<_>>();
        let values = |side: &[(u64, f64)]| side.iter().map(|(_, value)| *value).collect::<Vec<_>>();
        let same_seeds = seeds(left) == seeds(right);
        let (left, right) = (values(left), values(right));
        let estimates = (Estimate::from_values(&left)?, Estimate::from_values(&right)?);
        let (interval, pairing) = if same_seeds {
            (Estimate::from_differences(&left, &right)?.interval, Pairing::Paired)
        } else {
            (welch(&estimates.0, &estimates.1), Pairing::Welch)
        };
        let difference = estimates.0.mean - estimates.1.mean;
        Some(Self { left: estimates.0, right: estimates.1, difference, interval, pairing })
    }

    /// Returns true if the interval excludes zero: the difference is significant at the 95 % level.
    pub fn is_significant(&self) -> bool {
        self.interval.is_some_and(|(low, high)| low > 0.0 || high < 0.0)
    }
}

/// Welch's interval for the difference of two independent means.
fn welch(left: &Estimate, right: &Estimate) -> Option<(f64, f64)> {
    let squares = (left.std_error?.powi(2), right.std_error?.powi(2));
    let sum = squares.0 + squares.1;
    let difference = left.mean - right.mean;
    // If neither side varies, there are no degrees of freedom, and the difference is exact.
    if sum == 0.0 {
        return Some((difference, difference));
    }
    let part = |square: f64, n: usize| square.powi(2) / (n as f64 - 1.0);
    let freedom = sum.powi(2) / (part(squares.0, left.n) + part(squares.1, right.n));
    let half = t_quantile(0.975, freedom) * sum.sqrt();
    Some((difference - half, difference + half))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seeded(first: u64, values: &[f64]) -> Vec<(u64, f64)> {
        (first..).zip(values.iter().copied()).collect()
    }

    #[test]
    fn the_header_s_worked_value() {
        let left = seeded(1, &[1.0, 2.0, 3.0, 4.0, 5.0]);
        let right = seeded(6, &[2.0, 4.0, 6.0, 8.0, 10.0]);
        let comparison = Comparison::new(&left, &right).unwrap();
        let (low, high) = comparison.interval.unwrap();
        assert_eq!((comparison.difference, comparison.pairing), (-3.0, Pairing::Welch));
        assert!((low + 6.888).abs() < 1e-3 && (high - 0.888).abs() < 1e-3, "{comparison:?}");
        assert!(!comparison.is_significant());
    }

    #[test]
    fn the_same_seeds_are_compared_in_pairs() {
        let left = seeded(1, &[1.0, 2.0, 3.0, 4.0, 5.0]);
        let right = seeded(1, &[2.0, 4.0, 6.0, 8.0, 10.0]);
        let comparison = Comparison::new(&left, &right).unwrap();
        // The differences are -1 to -5: 3 ± 1.9633, as in `stats`.
        assert_eq!(comparison.pairing, Pairing::Paired);
        assert!((comparison.interval.unwrap().0 + 4.963_24).abs() < 1e-4);
        assert!(comparison.is_significant());
    }

    #[test]
    fn single_values_have_a_difference_but_no_interval() {
        let comparison = Comparison::new(&seeded(1, &[2.0]), &seeded(2, &[1.0, 1.5])).unwrap();
        assert_eq!((comparison.difference, comparison.interval), (0.75, None));
        assert!(!comparison.is_significant());
        assert_eq!(Comparison::new(&[], &seeded(1, &[1.0])), None);
    }

    #[test]
    fn sides_without_variation_are_equal_or_significantly_different() {
        let same = Comparison::new(&seeded(1, &[2.0, 2.0]), &seeded(5, &[2.0, 2.0])).unwrap();
        let other = Comparison::new(&seeded(1, &[2.0, 2.0]), &seeded(5, &[3.0, 3.0])).unwrap();
        assert_eq!(same.interval, Some((0.0, 0.0)));
        assert!(!same.is_significant() && other.is_significant());
    }
}
