//! Counts by buckets: a distribution that exporters can add up.

use serde::{Deserialize, Serialize};

/// Returns the sum of counts, or the largest number if it is larger: other processes can state any counts.
pub fn total(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

/// Counts of values by buckets. A bucket has the values up to its bound that are above the bound before it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BucketCounts {
    /// Upper bounds of the buckets, rising, in the unit of the field.
    pub bounds: Vec<f64>,
    /// Number of values in each bucket, and at last of the values above all bounds.
    pub counts: Vec<u64>,
    /// Sum of all values, in the unit of the field.
    pub sum: f64,
}

impl BucketCounts {
    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        total(self.counts.iter().copied())
    }

    /// Returns the values counted since an earlier reading. A reading of other buckets, or of a counter that has restarted, counts
    /// as empty.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let grows = |(now, then): (&u64, &u64)| now >= then;
        let is_earlier = self.bounds == earlier.bounds
            && self.counts.len() == earlier.counts.len()
            && self.counts.iter().zip(&earlier.counts).all(grows);
        if !is_earlier {
            return self.clone();
        }
        let counts = self.counts.iter().zip(&earlier.counts).map(|(now, then)| now - then).collect();
        Self { bounds: self.bounds.clone(), counts, sum: (self.sum - earlier.sum).max(0.0) }
    }

    /// Returns the value that a share `q` of the values does not exceed, on a straight line between the bounds of its bucket. Of values
    /// above all bounds it is the last bound. `None` without values.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let rank = q.clamp(0.0, 1.0) * self.count() as f64;
        let (mut below, mut low) = (0.0, 0.0);
        for (count, bound) in self.counts.iter().zip(&self.bounds) {
            let count = *count as f64;
            if count > 0.0 && below + count >= rank {
                return Some(low + (bound - low) * ((rank - below) / count).clamp(0.0, 1.0));
            }
            (below, low) = (below + count, *bound);
        }
        if self.count() == 0 { None } else { self.bounds.last().copied() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(counts: [u64; 4]) -> BucketCounts {
        BucketCounts { bounds: vec![1.0, 2.0, 4.0], counts: counts.to_vec(), sum: 3.0 }
    }

    #[test]
    fn a_sum_is_the_largest_number_at_most() {
        assert_eq!(total([3, 4]), 7);
        assert_eq!(total([u64::MAX, 4, u64::MAX]), u64::MAX);
        let counts = BucketCounts { bounds: vec![1.0, 2.0], counts: vec![u64::MAX; 3], sum: 3.0 };
        assert_eq!((counts.count(), counts.quantile(0.5)), (u64::MAX, Some(0.5)));
    }

    #[test]
    fn a_quantile_lies_within_its_bucket() {
        assert_eq!(counts([0; 4]).quantile(0.5), None);
        assert_eq!(counts([10, 0, 10, 0]).quantile(0.5), Some(1.0));
        assert_eq!(counts([10, 0, 10, 0]).quantile(0.75), Some(3.0));
        assert_eq!(counts([0, 0, 0, 5]).quantile(0.01), Some(4.0));
        assert_eq!(counts([0, 4, 0, 0]).quantile(1.0), Some(2.0));
    }

    #[test]
    fn an_interval_is_the_difference_of_two_readings() {
        let interval = counts([5, 4, 3, 2]).since(&counts([1, 4, 0, 2]));
        assert_eq!((interval.counts.as_slice(), interval.sum), (&[4, 0, 3, 0][..], 0.0));
        // A process that has started again has counted less.
        assert_eq!(counts([1, 0, 0, 0]).since(&counts([5, 0, 0, 0])), counts([1, 0, 0, 0]));
        assert_eq!(counts([1, 0, 0, 0]).since(&BucketCounts::default()), counts([1, 0, 0, 0]));
    }
}
