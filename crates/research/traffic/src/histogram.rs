//! Serialization of histograms and times between the two ends of a measurement, in whole nanoseconds.

use cutline_units::{Duration, Histogram, HistogramParts};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The largest number of buckets that is accepted. It is above the number in a histogram's range and bounds the memory
/// that a foreign report can take.
const MOST_BUCKETS: usize = 2_000;

/// The largest sum of times that is accepted: 26 days over all packets of a flow. The sum over thousands of such flows
/// fits in 64 bits.
const GREATEST_SUM: u64 = 1 << 51;

#[derive(Serialize, Deserialize)]
struct Sent {
    buckets: Vec<(u64, u32)>,
    sum_ns: u64,
    /// The bits of the floating-point number; a decimal number could be rounded.
    sum_squares: u64,
    least_ns: u64,
    greatest_ns: u64,
}

pub(crate) fn serialize<S: Serializer>(histogram: &Histogram, to: S) -> Result<S::Ok, S::Error> {
    let HistogramParts { buckets, sum_ns, sum_squares, least_ns, greatest_ns } = histogram.parts();
    Sent { buckets, sum_ns, sum_squares: sum_squares.to_bits(), least_ns, greatest_ns }.serialize(to)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Histogram, D::Error> {
    let Sent { buckets, sum_ns, sum_squares, least_ns, greatest_ns } = Sent::deserialize(from)?;
    if buckets.len() > MOST_BUCKETS {
        return Err(serde::de::Error::invalid_length(buckets.len(), &"at most 2000 buckets"));
    }
    if sum_ns > GREATEST_SUM {
        return Err(serde::de::Error::custom("sum_ns is above 2^51"));
    }
    let sum_squares = Some(f64::from_bits(sum_squares)).filter(|sum| sum.is_finite()).unwrap_or_default();
    Ok(Histogram::from_parts(&HistogramParts { buckets, sum_ns, sum_squares, least_ns, greatest_ns }))
}

/// Serialization of an optional time.
pub(crate) mod option {
    use super::{Deserialize, Deserializer, Duration, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "serde's signature")]
    pub(crate) fn serialize<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        time.map(Duration::as_nanos).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        Option::deserialize(from).map(|ns: Option<u64>| ns.map(Duration::from_nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Held(#[serde(with = "super")] Histogram);

    proptest! {
        #[test]
        fn a_histogram_is_read_back_unchanged(values in proptest::collection::vec(0_u64..1 << 45, 0..50)) {
            let mut histogram = Histogram::default();
            for ns in &values {
                histogram.record(Duration::from_nanos(*ns));
            }
            let Held(read) = serde_json::from_str(&serde_json::to_string(&Held(histogram.clone())).unwrap()).unwrap();
            prop_assert_eq!(read.parts(), histogram.parts());
            prop_assert_eq!((read.count(), read.quantile(0.9)), (histogram.count(), histogram.quantile(0.9)));
        }

        #[test]
        fn foreign_histograms_do_not_panic(buckets in proptest::collection::vec(any::<(u64, u32)>(), 0..9), bits: u64, ns in 0..=GREATEST_SUM) {
            let sent = Sent { buckets, sum_ns: ns, sum_squares: bits, least_ns: ns, greatest_ns: 0 };
            let read: Result<Held, _> = serde_json::from_str(&serde_json::to_string(&sent).unwrap());
            let mut held = read.unwrap().0;
            held.merge(&Histogram::default());
            held.record(Duration::from_nanos(1));
            let _ = (held.mean(), held.standard_deviation(), held.quantile(0.5));
        }
    }
}
