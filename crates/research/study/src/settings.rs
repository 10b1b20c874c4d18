//! Settings of a point of a sweep: values of swept keys, and their comparison.

use std::collections::BTreeMap;

/// The values of swept keys, as the scenario writes them, without quotes.
pub(crate) type Settings = BTreeMap<String, String>;

/// Returns whether two values of a key are the same. Numbers may be written in several ways; `true` is 1.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    let number = |text: &str| match text {
        "true" => Some(1.0),
        "false" => Some(0.0),
        _ => text.parse::<f64>().ok(),
    };
    match (number(one), number(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}
