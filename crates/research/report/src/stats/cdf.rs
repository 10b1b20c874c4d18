//! Cumulative distributions of counted values, such as a histogram of queuing delays.

/// An empirical distribution: values in increasing order, each with the share of all values that are not above it.
#[derive(Clone, Debug, PartialEq)]
pub struct Cdf {
    steps: Vec<(f64, f64)>,
    mean: f64,
}

impl Cdf {
    /// The distribution of values with their counts. They may be in any order, and a value may occur more than once.
    /// `None` when no count is above zero or a value is not finite.
    pub fn from_counts(counts: impl IntoIterator<Item = (f64, u64)>) -> Option<Self> {
        let mut counts: Vec<(f64, u64)> = counts.into_iter().filter(|(_, count)| *count > 0).collect();
        if counts.is_empty() || counts.iter().any(|(value, _)| !value.is_finite()) {
            return None;
        }
        counts.sort_by(|a, b| a.0.total_cmp(&b.0));
        let total: u64 = counts.iter().map(|(_, count)| count).sum();
        let mean = counts.iter().map(|(value, count)| value * *count as f64).sum::<f64>() / total as f64;
        let mut steps: Vec<(f64, f64)> = Vec::with_capacity(counts.len());
        let mut so_far = 0;
        for (value, count) in counts {
            so_far += count;
            let share = so_far as f64 / total as f64;
            match steps.last_mut() {
                Some(last) if last.0 == value => last.1 = share,
                _ => steps.push((value, share)),
            }
        }
        Some(Self { steps, mean })
    }

    /// The distribution of single values.
    pub fn from_values(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        Self::from_counts(values.into_iter().map(|value| (value, 1)))
    }

    /// The points of its graph, from share 0 to share 1, for [`crate::chart::PointSeries::steps`].
    pub fn points(&self) -> Vec<(f64, f64)> {
        let foot = (self.steps[0].0, 0.0);
        std::iter::once(foot).chain(self.steps.iter().copied()).collect()
    }

    /// The smallest value such that at least a share of `share` (0..=1) of all values do not exceed it.
    pub fn quantile(&self, share: f64) -> f64 {
        assert!((0.0..=1.0).contains(&share), "a share lies in 0..1, not at {share}");
        // A share may be slightly too small because of rounding.
        let after = self.steps.partition_point(|(_, reached)| *reached < share - 1e-12);
        self.steps[after.min(self.steps.len() - 1)].0
    }

    /// The median.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// The mean.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The share of all values that do not exceed `value`.
    pub fn share_up_to(&self, value: f64) -> f64 {
        let after = self.steps.partition_point(|(step, _)| *step <= value);
        after.checked_sub(1).map_or(0.0, |i| self.steps[i].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn counts_in_any_order_make_one_staircase() {
        let cdf = Cdf::from_counts([(30.0, 1), (10.0, 2), (20.0, 0), (30.0, 1)]).unwrap();
        assert_eq!(cdf.points(), [(10.0, 0.0), (10.0, 0.5), (30.0, 1.0)]);
        assert_eq!(cdf.mean(), 20.0);
        assert_eq!([0.0, 0.5, 0.51, 1.0].map(|share| cdf.quantile(share)), [10.0, 10.0, 30.0, 30.0]);
        assert_eq!([9.0, 10.0, 29.0, 30.0].map(|v| cdf.share_up_to(v)), [0.0, 0.5, 0.5, 1.0]);
    }

    #[test]
    fn no_counts_give_no_distribution() {
        assert_eq!(Cdf::from_counts([]), None);
        assert_eq!(Cdf::from_counts([(1.0, 0)]), None);
        assert_eq!(Cdf::from_values([f64::NAN]), None);
    }

    proptest! {
        #[test]
        fn quantiles_are_those_of_the_sorted_values(mut values in prop::collection::vec(0_u8..50, 1..200)) {
            let cdf = Cdf::from_values(values.iter().map(|&v| f64::from(v))).unwrap();
            values.sort_unstable();
            for percent in [1, 25, 50, 95, 99, 100] {
                let rank = (values.len() * percent).div_ceil(100).max(1);
                prop_assert_eq!(cdf.quantile(percent as f64 / 100.0), f64::from(values[rank - 1]));
            }
        }
    }
}
