//! A histogram of durations. Its buckets widen with the value, and it only stores the range of values it has seen.
//!
//! Buckets are log-linear, as in `HdrHistogram`: 32 to every doubling, so that a bucket is at most 1/32 = 3.1 % wide,
//! above a resolution of 2^10 ns = 1 us. The counts are those of the buckets with values, while these are few. Then they cover the range
//! between the least and the greatest bucket with values, and have four bits each until one of them needs more (`counts.rs`). Delays of
//! one flow lie within a few doublings, so its histogram takes about a hundred bytes, where a histogram of the full range takes seven
//! kilobytes. So 100,000 flows can have one each.

use crate::Duration;
use crate::counts::Counts;

/// Buckets to a doubling: 2^5.
const SUB_BITS: u32 = 5;
/// The resolution: 2^10 ns.
const UNIT_BITS: u32 = 10;

/// Counts of durations by size; sums and extremes are exact.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    shape: HistogramShape,
    total: u64,
    sum_ns: u64,
}

/// A histogram without the number and the sum of its values, for an owner that counts these anyway.
#[derive(Clone, Debug)]
pub struct HistogramShape {
    counts: Counts,
    sum_squares: f64,
    /// `u64::MAX` before the first value.
    least: u64,
    greatest: u64,
}

/// A histogram that finds the number of its values at the end, as the sum of its counts.
#[derive(Clone, Debug, Default)]
pub struct UncountedHistogram {
    shape: HistogramShape,
    sum_ns: u64,
}

impl Default for HistogramShape {
    fn default() -> Self {
        Self { counts: Counts::default(), sum_squares: 0.0, least: u64::MAX, greatest: 0 }
    }
}

/// Histograms are equal if they have the same values, no matter how much memory each of them has.
impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        let sums = |of: &Self| {
            let HistogramShape { sum_squares, least, greatest, .. } = of.shape;
            (of.total, of.sum_ns, sum_squares, least, greatest)
        };
        sums(self) == sums(other) && self.shape.counts.hit().eq(other.shape.counts.hit())
    }
}

/// A bucket that was hit: `low <= value < high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The least value that falls into the bucket.
    pub low: Duration,
    /// The least value beyond it.
    pub high: Duration,
    /// Number of values in the bin.
    pub count: u64,
}

/// The contents of a histogram as plain numbers, for storing or sending it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistogramParts {
    /// The buckets that were hit: a value that falls into each, ns, and the number of values.
    pub buckets: Vec<(u64, u32)>,
    /// The sum of all values, ns.
    pub sum_ns: u64,
    /// The sum of their squares, ns^2.
    pub sum_squares: f64,
    /// The least value, ns.
    pub least_ns: u64,
    /// The greatest value, ns.
    pub greatest_ns: u64,
}

impl Histogram {
    /// The largest count of a bucket. Further values of the bucket are not in its count, so that quantiles are wrong.
    pub const MOST_IN_BUCKET: u64 = (1 << 32) - 1;

    /// Returns an empty histogram with memory for any counts of values up to `most`, so that recording them allocates nothing.
    pub fn with_room(most: Duration) -> Self {
        let counts = Counts::with_room(bucket_of(most.as_nanos()));
        Self { shape: HistogramShape { counts, ..HistogramShape::default() }, ..Self::default() }
    }

    /// The histogram with these parts. Parts that did not come from a histogram give a meaningless one, but do no harm.
    pub fn from_parts(parts: &HistogramParts) -> Self {
        let mut histogram = Self::default();
        for &(ns, count) in parts.buckets.iter().filter(|(_, count)| *count > 0) {
            histogram.shape.counts.add(bucket_of(ns), count);
            histogram.total += u64::from(count);
        }
        histogram.sum_ns = parts.sum_ns;
        histogram.shape.sum_squares = parts.sum_squares;
        if histogram.total > 0 {
            histogram.shape.least = parts.least_ns;
            histogram.shape.greatest = parts.greatest_ns.max(parts.least_ns);
        }
        histogram
    }

    /// The parts from which [`Histogram::from_parts`] makes this histogram.
    pub fn parts(&self) -> HistogramParts {
        HistogramParts {
            buckets: self.shape.counts.hit().map(|(bucket, count)| (lower_bound(bucket), count)).collect(),
            sum_ns: self.sum_ns,
            sum_squares: self.shape.sum_squares,
            least_ns: if self.total == 0 { 0 } else { self.shape.least },
            greatest_ns: self.shape.greatest,
        }
    }

    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value: Duration) {
        self.shape.record(value);
        self.total += 1;
        // Only made-up values come to 584 years.
        self.sum_ns = self.sum_ns.saturating_add(value.as_nanos());
    }

    /// Counts the value zero `times` over.
    pub fn record_zeros(&mut self, times: u64) {
        if times == 0 {
            return;
        }
        self.shape.counts.add(bucket_of(0), u32::try_from(times).unwrap_or(u32::MAX));
        self.total = self.total.saturating_add(times);
        self.shape.least = 0;
    }

    /// Returns the number of values in the bucket of a value.
    pub fn count_near(&self, value: Duration) -> u32 {
        self.shape.counts.get(bucket_of(value.as_nanos()))
    }

    /// Returns a number whose reading brings the memory for recording a value into the cache.
    #[inline]
    pub fn read_ahead(&self, value: Duration) -> u64 {
        self.shape.read_ahead(value)
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The mean; `None` if nothing was counted.
    pub fn mean(&self) -> Option<Duration> {
        (self.total > 0).then(|| Duration::from_nanos(self.sum_ns / self.total))
    }

    /// The standard deviation of the values (not of their mean); `None` if nothing was counted.
    pub fn standard_deviation(&self) -> Option<Duration> {
        let n = self.total as f64;
        let mean = self.sum_ns as f64 / n;
        (self.total > 0).then(|| {
            Duration::from_secs_f64((self.shape.sum_squares / n - mean * mean).max(0.0).sqrt() * 1e-9)
        })
    }

    /// The least value, exactly; `None` if nothing was counted.
    pub fn min(&self) -> Option<Duration> {
        (self.total > 0).then(|| Duration::from_nanos(self.shape.least))
    }

    /// The greatest value, exactly; `None` if nothing was counted.
    pub fn max(&self) -> Option<Duration> {
        (self.total > 0).then(|| Duration::from_nanos(self.shape.greatest))
    }

    /// The value below which the share `q` (0..=1) of all values lies, interpolated within its bucket: off by at
    /// most 3.1 %. `None` if nothing was counted.
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        self.quantiles([q]).map(|[value]| value)
    }

    /// The quantiles of several shares, which must not fall, in one pass over the buckets. `None` if nothing was counted.
    pub fn quantiles<const N: usize>(&self, shares: [f64; N]) -> Option<[Duration; N]> {
        debug_assert!(shares.is_sorted(), "the shares {shares:?} fall");
        let mut found = [self.max()?; N];
        // A bucket counts to 2^32 - 1, so the counts may have fewer values than there are.
        let counted = if self.total > u64::from(u32::MAX) { self.shape.count() } else { self.total };
        let mut hit = self.shape.counts.hit();
        let (mut below, (mut bucket, mut count)) = (0.0, hit.next()?);
        for (q, value) in shares.iter().zip(&mut found) {
            let rank = q.clamp(0.0, 1.0) * counted as f64;
            while below + f64::from(count) < rank {
                below += f64::from(count);
                // Rounding may leave a rank beyond the last value.
                let Some(next) = hit.next() else { return Some(found) };
                (bucket, count) = next;
            }
            let (low, high) = (lower_bound(bucket) as f64, lower_bound(bucket + 1) as f64);
            let ns = low + (high - low) * (rank - below) / f64::from(count);
            *value = Duration::from_nanos((ns as u64).clamp(self.shape.least, self.shape.greatest));
        }
        Some(found)
    }

    /// Returns the sum of all values.
    pub const fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum_ns)
    }

    /// The buckets that were hit, from the least.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        self.shape.counts.hit().map(|(bucket, count)| Bucket {
            low: Duration::from_nanos(lower_bound(bucket)),
            high: Duration::from_nanos(lower_bound(bucket + 1)),
            count: u64::from(count),
        })
    }

    /// Returns the number of values up to each of these bounds and above the one before it, and at last of the values above all bounds.
    /// Bounds must not fall. The middle decides for a bucket of the histogram that lies on a bound.
    pub fn counts_by<const N: usize>(&self, bounds: [Duration; N]) -> ([u64; N], u64) {
        debug_assert!(bounds.is_sorted(), "the bounds {bounds:?} fall");
        let mut hit = self.shape.counts.hit().peekable();
        let counts = bounds.map(|bound| {
            let ns = bound.as_nanos();
            let bucket = bucket_of(ns);
            let middle = lower_bound(bucket).midpoint(lower_bound(bucket + 1));
            let beyond = bucket + u32::from(middle <= ns);
            let mut sum = 0;
            while let Some((_, count)) = hit.next_if(|(bucket, _)| *bucket < beyond) {
                sum += u64::from(count);
            }
            sum
        });
        (counts, hit.map(|(_, count)| u64::from(count)).sum())
    }

    /// Adds another histogram's values to this one. A count or sum that would overflow keeps its largest value; only
    /// invented numbers are that large.
    pub fn merge(&mut self, other: &Self) {
        if other.total == 0 {
            return;
        }
        for (bucket, count) in other.shape.counts.hit() {
            self.shape.counts.add(bucket, count);
        }
        self.shape.least = self.shape.least.min(other.shape.least);
        self.shape.greatest = self.shape.greatest.max(other.shape.greatest);
        self.total = self.total.saturating_add(other.total);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.shape.sum_squares += other.shape.sum_squares;
    }

    /// Forgets half of all values of each size. Quantiles and mean stay as they are, and values that follow weigh twice as
    /// much. A bucket counts to 2^32 - 1, so a histogram that never ends needs this. Extremes stay.
    pub fn halve(&mut self) {
        let mean = self.sum_ns as f64 / self.total.max(1) as f64;
        self.shape.counts.reduce(|count| count.div_ceil(2));
        self.total = self.shape.counts.hit().map(|(_, count)| u64::from(count)).sum();
        self.sum_ns = (mean * self.total as f64) as u64;
        self.shape.sum_squares /= 2.0;
    }

    /// Forgets all values. The memory is kept for those that follow.
    pub fn clear(&mut self) {
        let mut counts = std::mem::take(&mut self.shape.counts);
        counts.clear();
        *self = Self { shape: HistogramShape { counts, ..HistogramShape::default() }, ..Self::default() };
    }
}

impl HistogramShape {
    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value: Duration) {
        let ns = value.as_nanos();
        // Extremes are rarely new.
        if ns < self.least {
            self.least = ns;
        }
        if ns > self.greatest {
            self.greatest = ns;
        }
        // Signed: that is one instruction to convert, and no delay is 292 years.
        let value = ns.cast_signed() as f64;
        self.sum_squares += value * value;
        // At last, so that the call of a rare case is a jump, for which no register is saved.
        self.counts.increment(bucket_of(ns));
    }

    /// Returns a number whose reading brings the memory for recording a value into the cache.
    #[inline]
    pub fn read_ahead(&self, value: Duration) -> u64 {
        u64::from(self.counts.read_near(bucket_of(value.as_nanos())))
    }

    /// Returns the number of values: the sum of the counts, each of which counts no more values than 2^32 - 1.
    pub fn count(&self) -> u64 {
        self.counts.hit().map(|(_, count)| u64::from(count)).sum()
    }

    /// Returns the histogram of the values that were recorded, with their number and their sum.
    pub fn into_histogram(self, total: u64, sum: Duration) -> Histogram {
        Histogram { shape: self, total, sum_ns: sum.as_nanos() }
    }
}

impl UncountedHistogram {
    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value: Duration) {
        self.shape.record(value);
        self.sum_ns = self.sum_ns.saturating_add(value.as_nanos());
    }

    /// Returns the sum of all values.
    pub const fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum_ns)
    }

    /// Returns the histogram of the values that were recorded. Their number is the sum of the counts; or `least`, if that is greater because a
    /// count has its largest value and counts no further values.
    pub fn into_histogram(self, least: u64) -> Histogram {
        let total = self.shape.count().max(least);
        Histogram { shape: self.shape, total, sum_ns: self.sum_ns }
    }
}

/// The bucket of a value.
#[inline]
fn bucket_of(ns: u64) -> u32 {
    let units = ns >> UNIT_BITS;
    if units < 1 << SUB_BITS {
        return units as u32;
    }
    let exponent = units.ilog2() - SUB_BITS;
    (exponent << SUB_BITS) + (units >> exponent) as u32
}

/// The least value, in ns, of a bucket.
fn lower_bound(bucket: u32) -> u64 {
    if bucket < 2 << SUB_BITS {
        return u64::from(bucket) << UNIT_BITS;
    }
    let exponent = (bucket >> SUB_BITS) - 1;
    let mantissa = u64::from(bucket & ((1 << SUB_BITS) - 1)) | 1 << SUB_BITS;
    mantissa << (exponent + UNIT_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        for &ns in values {
            histogram.record(Duration::from_nanos(ns));
        }
        histogram
    }

    #[test]
    fn a_hundred_milliseconds_take_little_room() {
        let histogram = of(&(50..250).map(|ms| ms * 1_000_000).collect::<Vec<_>>());
        assert!(histogram.shape.counts.bytes() < 64, "{} B", histogram.shape.counts.bytes());
        assert!(size_of::<Histogram>() <= 64, "{} B", size_of::<Histogram>());
        let median = histogram.quantile(0.5).unwrap().as_millis_f64();
        assert!((median - 150.0).abs() < 150.0 * 0.032, "{median}");
    }

    #[test]
    fn a_histogram_with_room_keeps_its_memory() {
        let most = Duration::from_secs(1);
        let mut histogram = Histogram::with_room(most);
        assert_eq!(histogram, Histogram::default());
        let room = histogram.shape.counts.bytes();
        for _ in 0..70_000 {
            histogram.record(Duration::ZERO);
            histogram.record(most);
        }
        assert_eq!((histogram.shape.counts.bytes(), histogram.count()), (room, 140_000));
    }

    #[test]
    fn counts_widen_and_do_not_overflow() {
        let near = |times: u32| {
            let mut histogram = of(&[9_000_000]);
            (0..times).for_each(|_| histogram.record(Duration::from_millis(10)));
            histogram
        };
        for times in [14, 15, 16, 17, 254, 255, 256, 257, 65_534, 65_535, 65_536, 65_537] {
            let histogram = near(times);
            let counts: Vec<u64> = histogram.buckets().map(|bucket| bucket.count).collect();
            assert_eq!(
                (counts, histogram.count_near(Duration::from_millis(10))),
                (vec![1, u64::from(times)], times)
            );
            let half = times / 2;
            let mut together = near(half);
            together.merge(&near(times - 1 - half));
            assert_eq!(together.count_near(Duration::from_millis(10)), times - 1);
        }
    }

    #[test]
    fn a_shape_with_number_and_sum_is_a_histogram() {
        let values = [3_000, 5_000_000, 7, 5_000_001];
        let mut shape = HistogramShape::default();
        for ns in &values {
            shape.record(Duration::from_nanos(*ns));
        }
        assert!(size_of::<HistogramShape>() <= 48, "{} B", size_of::<HistogramShape>());
        let sum = Duration::from_nanos(values.iter().sum());
        assert_eq!(shape.count(), 4);
        assert_eq!(shape.into_histogram(4, sum), of(&values));
        assert_eq!(HistogramShape::default().into_histogram(0, Duration::ZERO), Histogram::default());
    }

    #[test]
    fn an_uncounted_histogram_finds_the_number_of_its_values() {
        let values: Vec<u64> = (0..300).map(|value| value * value * 1000).collect();
        let mut uncounted = UncountedHistogram::default();
        assert_eq!(uncounted.clone().into_histogram(0), Histogram::default());
        for ns in &values {
            uncounted.record(Duration::from_nanos(*ns));
        }
        assert!(size_of::<UncountedHistogram>() <= 56, "{} B", size_of::<UncountedHistogram>());
        assert_eq!(uncounted.sum(), of(&values).sum());
        assert_eq!(uncounted.clone().into_histogram(299), of(&values));
        assert_eq!(uncounted.into_histogram(301).count(), 301);
    }

    #[test]
    fn nothing_has_no_mean() {
        let nothing = Histogram::default();
        assert_eq!((nothing.mean(), nothing.quantile(0.5), nothing.max()), (None, None, None));
    }

    #[test]
    fn merged_counts_saturate_at_the_greatest_count() {
        let parts =
            HistogramParts { buckets: vec![(5_000, u32::MAX)], sum_ns: u64::MAX, ..of(&[5_000]).parts() };
        let mut histogram = Histogram::from_parts(&parts);
        histogram.merge(&Histogram::from_parts(&parts));
        let counts: Vec<u64> = histogram.buckets().map(|bucket| bucket.count).collect();
        assert_eq!((counts, histogram.parts().sum_ns), (vec![Histogram::MOST_IN_BUCKET], u64::MAX));
    }

    #[test]
    fn half_of_the_values_have_the_same_distribution() {
        let mut histogram = of(&[3_000; 100]);
        (0..900).for_each(|_| histogram.record(Duration::from_micros(90)));
        let before = (histogram.quantile(0.05), histogram.quantile(0.99), histogram.max());
        histogram.halve();
        assert_eq!((histogram.count(), histogram.mean()), (500, Some(Duration::from_nanos(81_300))));
        assert_eq!((histogram.quantile(0.05), histogram.quantile(0.99), histogram.max()), before);
    }

    #[test]
    fn zeros_can_be_counted_together() {
        let mut counted = of(&[5_000, 70_000]);
        counted.record_zeros(2);
        assert!(counted.buckets().eq(of(&[0, 0, 5_000, 70_000]).buckets()));
        assert_eq!((counted.count(), counted.min()), (4, Some(Duration::ZERO)));
    }

    /// A bucket counts to 2^32 - 1. The number of values and their mean are exact.
    #[test]
    fn zeros_beyond_32_bits_are_in_the_number_and_the_quantiles() {
        let zeros = (1_u64 << 33) + 900;
        let mut counted = of(&[5_000_000; 100]);
        counted.record_zeros(zeros);
        assert_eq!((counted.count(), counted.count_near(Duration::ZERO)), (zeros + 100, u32::MAX));
        assert!(counted.quantile(0.9).is_some_and(|wait| wait < Duration::from_micros(2)));
        assert_eq!(counted.counts_by([Duration::from_millis(1)]), ([u64::from(u32::MAX)], 100));
    }

    #[test]
    fn sums_and_extremes_are_exact() {
        let histogram = of(&[3, 1_000_003, 2_000_000]);
        assert_eq!(histogram.mean(), Some(Duration::from_nanos(1_000_002)));
        assert_eq!(histogram.min(), Some(Duration::from_nanos(3)));
        assert_eq!(histogram.max(), Some(Duration::from_nanos(2_000_000)));
    }

    #[test]
    fn a_cleared_histogram_is_empty_and_counts_again() {
        let mut histogram = of(&[5_000, 90_000]);
        histogram.clear();
        assert_eq!((histogram.count(), histogram.mean(), histogram.max()), (0, None, None));
        histogram.record(Duration::from_nanos(2_000));
        assert!(histogram.buckets().eq(of(&[2_000]).buckets()));
        assert_eq!(histogram.quantile(0.5), Some(Duration::from_nanos(2_000)));
    }

    proptest! {
        #[test]
        fn a_bucket_holds_its_values_within_one_part_in_32(ns in 0u64..1 << 50) {
            let (low, high) = (lower_bound(bucket_of(ns)), lower_bound(bucket_of(ns) + 1));
            prop_assert!(low <= ns && ns < high);
            prop_assert!(high - low <= (low >> SUB_BITS).max(1 << UNIT_BITS));
        }

        /// Against a map of all buckets.
        #[test]
        fn every_bucket_has_the_number_of_its_values(
            values in prop::collection::vec((0u64..1 << 45, prop_oneof![Just(1u32), 1u32..300, Just(70_000)]), 0..40),
        ) {
            let mut expected = std::collections::BTreeMap::new();
            let mut histogram = Histogram::default();
            for &(ns, times) in &values {
                *expected.entry(bucket_of(ns)).or_insert(0) += u64::from(times);
                (0..times).for_each(|_| histogram.record(Duration::from_nanos(ns)));
            }
            let found = histogram.buckets().map(|bucket| (bucket_of(bucket.low.as_nanos()), bucket.count));
            prop_assert!(found.eq(expected));
            prop_assert_eq!(&Histogram::from_parts(&histogram.parts()), &histogram);
        }

        #[test]
        fn merging_is_counting_together(a in prop::collection::vec(0u64..1 << 40, 0..50), b in prop::collection::vec(0u64..1 << 40, 0..50)) {
            let mut merged = of(&a);
            merged.merge(&of(&b));
            let together = of(&[a, b].concat());
            prop_assert!(merged.buckets().eq(together.buckets()));
            prop_assert_eq!(merged.mean(), together.mean());
            prop_assert_eq!(merged.min(), together.min());
        }

        #[test]
        fn every_value_is_counted_by_one_bound(values in prop::collection::vec(0u64..1 << 34, 0..100), bounds in prop::array::uniform5(0u64..1 << 34)) {
            let mut bounds = bounds.map(Duration::from_nanos);
            bounds.sort_unstable();
            let histogram = of(&values);
            let mut expected = [0; 6];
            for bucket in histogram.buckets() {
                let middle = bucket.low.as_nanos().midpoint(bucket.high.as_nanos());
                expected[bounds.iter().filter(|bound| bound.as_nanos() < middle).count()] += bucket.count;
            }
            let (counts, above) = histogram.counts_by(bounds);
            prop_assert_eq!(&counts[..], &expected[..5]);
            prop_assert_eq!(above, expected[5]);
        }

        #[test]
        fn quantiles_do_not_fall(values in prop::collection::vec(0u64..1 << 40, 1..100)) {
            let histogram = of(&values);
            let quantiles: Vec<_> = (0..=20).map(|i| histogram.quantile(f64::from(i) / 20.0).unwrap()).collect();
            prop_assert!(quantiles.is_sorted());
            let shares = [0.0, 0.05, 0.5, 0.5, 0.9, 1.0];
            let each = shares.map(|q| histogram.quantile(q).unwrap());
            prop_assert_eq!(histogram.quantiles(shares).unwrap(), each);
            prop_assert_eq!(histogram.sum().as_nanos(), values.iter().sum::<u64>());
            prop_assert_eq!(histogram.buckets().map(|b| b.count).sum::<u64>(), values.len() as u64);
        }
    }
}
