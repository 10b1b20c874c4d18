//! What the scenarios of this study have in common: queues, round-trip times, and measures over all round-trip times.

use crate::data::Data;
use crate::measure::Measure;

/// The queues: their names in the scenarios and in charts.
pub(super) const QUEUES: [(&str, &str); 4] = [
    ("long-drop", "107 ms, drops"),
    ("long-mark", "107 ms, ECN"),
    ("short-drop", "20 ms, drops"),
    ("short-mark", "20 ms, ECN"),
];

/// The round-trip times without queues, ms. The name of a group of flows is KIND-MILLISECONDS.
pub(super) const ROUND_TRIPS: [u16; 4] = [10, 40, 100, 200];

/// A measure of one kind of flows at a point, by seed: the mean over the round-trip times, which have equally many flows.
pub(super) fn over_all(data: &Data, point: &[(&str, &str)], kind: &str, measure: Measure) -> Vec<f64> {
    let each = ROUND_TRIPS.map(|ms| data.by_seed(point, &format!("{kind}-{ms}"), measure));
    let seeds = each.iter().map(Vec::len).min().unwrap_or(0);
    let mean = |seed: usize| each.iter().map(|values| values[seed]).sum::<f64>() / each.len() as f64;
    (0..seeds).map(mean).collect()
}
