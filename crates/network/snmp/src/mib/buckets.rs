//! Columns of tables of buckets: distributions of times.

use crate::object::{MibColumn, Object, Syntax, computed, gauge};
use async_snmp::Value;

/// Words of a table of buckets.
pub struct BucketWords {
    /// Beginning of the objects' names, such as `cqosDelay`.
    pub prefix: &'static str,
    /// The times, such as `delays`.
    pub times: &'static str,
    /// Last word of the name of the counts.
    pub counts: &'static str,
    /// Unit of the counts.
    pub units: &'static str,
    /// Meaning of the counts.
    pub meaning: &'static str,
}

/// Returns the columns of a table of buckets. `bucket` returns the upper bound of a row's bucket, us, and its count; the last bucket has no
/// bound.
pub fn columns<R: 'static>(words: &BucketWords, bucket: fn(&R) -> (Option<f64>, u64)) -> Vec<MibColumn<R>> {
    let BucketWords { prefix, times, counts, units, meaning } = words;
    let bound = Object {
        arc: 2,
        name: format!("{prefix}Bound"),
        syntax: Syntax::Gauge32,
        units: "microseconds",
        description: format!(
            "Upper bound of the bucket's {times}; absent of the last one, which has the {times} above all bounds."
        ),
    };
    let count = Object {
        arc: 3,
        name: format!("{prefix}{counts}"),
        syntax: Syntax::Counter64,
        units,
        description: (*meaning).to_owned(),
    };
    vec![
        computed(bound, move |row: &R| bucket(row).0.map(|us| gauge(us.round() as u64))),
        computed(count, move |row: &R| Some(Value::Counter64(bucket(row).1))),
    ]
}
