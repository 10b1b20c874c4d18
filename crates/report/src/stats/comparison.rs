//! Two systems side by side: is the difference of their means more than chance?
//!
//! With the same seeds on both sides, pair by pair (Law, section 10.2.1): what varies with the seed cancels. Else by
//! Welch's interval for unequal variances (Law, section 10.2.2):
//!
//! ```text
//! left - right ± t(f, 0.975) sqrt(e1² + e2²),   f = (e1² + e2²)² / (e1⁴/(n1 - 1) + e2⁴/(n2 - 1)),   e = s / sqrt(n)
//! ```
//!
//! Worked: 1, 2, 3, 4, 5 against 2, 4, 6, 8, 10 has e² = 0.5 and 2, f = 5.882, so -3 ± 3.888.

use super::estimate::{Estimate, t_quantile};

/// How two sets of replications were compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// Seed by seed.
    Paired,
    /// As independent samples.
    Welch,
}

/// Two means and their difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// One side.
    pub left: Estimate,
    /// The other.
    pub right: Estimate,
    /// `left - right`.
    pub difference: f64,
    /// The ends of the difference's 95 % confidence interval; `None` when a side has a single value.
    pub interval: Option<(f64, f64)>,
    /// How it was found.
    pub pairing: Pairing,
}

impl Comparison {
    /// Compares values by seed: paired when both sides have the same seeds, in the same order, else by Welch.
    ///
    /// `None` when a side has no value, or one that is not finite.
    pub fn of(left: &[(u64, f64)], right: &[(u64, f64)]) -> Option<Self> {
        let seeds = |side: &[(u64, f64)]| side.iter().map(|(seed, _)| *seed).collect::<Vec<_>>();
        let values = |side: &[(u64, f64)]| side.iter().map(|(_, value)| *value).collect::<Vec<_>>();
        let same_seeds = seeds(left) == seeds(right);
        let (left, right) = (values(left), values(right));
        let estimates = (Estimate::of(&left)?, Estimate::of(&right)?);
        let (interval, pairing) = if same_seeds {
            (Estimate::of_differences(&left, &right)?.interval, Pairing::Paired)
        } else {
            (welch(&estimates.0, &estimates.1), Pairing::Welch)
        };
        let difference = estimates.0.mean - estimates.1.mean;
        Some(Self { left: estimates.0, right: estimates.1, difference, interval, pairing })
    }

    /// Whether the interval leaves zero out: the sides differ by more than chance, at 95 %.
    pub fn is_significant(&self) -> bool {
        self.interval.is_some_and(|(low, high)| low > 0.0 || high < 0.0)
    }
}

/// The interval of the difference of two independent means.
fn welch(left: &Estimate, right: &Estimate) -> Option<(f64, f64)> {
    let squares = (left.std_error?.powi(2), right.std_error?.powi(2));
    let sum = squares.0 + squares.1;
    let difference = left.mean - right.mean;
    // Two sides without any spread have no degrees of freedom, and nothing to be unsure of.
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
        let found = Comparison::of(&left, &right).unwrap();
        let (low, high) = found.interval.unwrap();
        assert_eq!((found.difference, found.pairing), (-3.0, Pairing::Welch));
        assert!((low + 6.888).abs() < 1e-3 && (high - 0.888).abs() < 1e-3, "{found:?}");
        assert!(!found.is_significant());
    }

    #[test]
    fn the_same_seeds_are_compared_pair_by_pair() {
        let left = seeded(1, &[1.0, 2.0, 3.0, 4.0, 5.0]);
        let right = seeded(1, &[2.0, 4.0, 6.0, 8.0, 10.0]);
        let found = Comparison::of(&left, &right).unwrap();
        // The differences are -1 to -5: 3 ± 1.9633, as in `stats`.
        assert_eq!(found.pairing, Pairing::Paired);
        assert!((found.interval.unwrap().0 + 4.963_24).abs() < 1e-4);
        assert!(found.is_significant());
    }

    #[test]
    fn single_values_have_a_difference_but_no_interval() {
        let found = Comparison::of(&seeded(1, &[2.0]), &seeded(2, &[1.0, 1.5])).unwrap();
        assert_eq!((found.difference, found.interval), (0.75, None));
        assert!(!found.is_significant());
        assert_eq!(Comparison::of(&[], &seeded(1, &[1.0])), None);
    }

    #[test]
    fn sides_without_spread_differ_surely_or_not_at_all() {
        let same = Comparison::of(&seeded(1, &[2.0, 2.0]), &seeded(5, &[2.0, 2.0])).unwrap();
        let other = Comparison::of(&seeded(1, &[2.0, 2.0]), &seeded(5, &[3.0, 3.0])).unwrap();
        assert_eq!(same.interval, Some((0.0, 0.0)));
        assert!(!same.is_significant() && other.is_significant());
    }
}
