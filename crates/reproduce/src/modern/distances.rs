//! Flows of one kind at four distances, and measures of all of them.

use crate::data::Data;
use crate::measure::Measure;

/// The round trips without queues, ms; a group of flows is named KIND-MILLISECONDS.
pub(super) const ROUND_TRIPS: [u16; 4] = [10, 40, 100, 200];

/// A measure of a kind of flows at a point: the mean over the distances, which have equally many flows; by seed.
pub(super) fn over_all(data: &Data, point: &[(&str, &str)], kind: &str, measure: Measure) -> Vec<f64> {
    let each = ROUND_TRIPS.map(|ms| data.by_seed(point, &format!("{kind}-{ms}"), measure));
    let seeds = each.iter().map(Vec::len).min().unwrap_or(0);
    let mean = |seed: usize| each.iter().map(|values| values[seed]).sum::<f64>() / each.len() as f64;
    (0..seeds).map(mean).collect()
}
