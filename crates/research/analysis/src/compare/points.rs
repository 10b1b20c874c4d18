//! Corresponding points of two results: those at which every key that either side sweeps has the same value.
//!
//! Values are compared by their meaning, so `"20 ms"` is `"0.02 s"`. If a side does not sweep a key, its value is the one that
//! of its scenario, also by default: it is the value among those of the other side that changes nothing there.

use super::Measured;
use cutline_config::quantity;
use cutline_results::{PointSummary, Summary};
use cutline_scenario::{Scenario, ScenarioFile};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The values of all keys that either side sweeps, in the order of the keys; `None` for a value that the other side does not have.
type Place = Vec<Option<String>>;

/// Gives the points of `b` the labels of the same points of `a`.
pub fn name_alike(a: &Measured<'_>, b: &mut Measured<'_>) {
    let points = |of: &Measured<'_>| of.summary.points.clone();
    let (points_a, points_b) = (points(a), points(b));
    let keys: BTreeSet<String> =
        points_a.iter().chain(&points_b).flat_map(|point| point.settings.keys()).cloned().collect();
    let (fixed_a, fixed_b) = (fixed(a.summary, b.summary, &keys), fixed(b.summary, a.summary, &keys));
    let labels_of_a: BTreeMap<Place, &str> =
        points_a.iter().map(|point| (place(point, &keys, &fixed_a), point.label.as_str())).collect();
    let renamed: BTreeMap<&str, Arc<str>> = points_b
        .iter()
        .filter_map(|point| {
            let label = labels_of_a.get(&place(point, &keys, &fixed_b))?;
            Some((point.label.as_str(), Arc::from(*label)))
        })
        .collect();
    for values in &mut b.values {
        if let Some(label) = renamed.get(&*values.subject.point) {
            values.subject.point = Arc::clone(label);
        }
    }
}

fn place(point: &PointSummary, keys: &BTreeSet<String>, fixed: &BTreeMap<String, String>) -> Place {
    let value = |key: &String| {
        point.settings.get(key).map(|value| meaning(value)).or_else(|| fixed.get(key).cloned())
    };
    keys.iter().map(value).collect()
}

/// The values of the keys that one side does not sweep, among those to which the other side sets them.
fn fixed(one: &Summary, other: &Summary, keys: &BTreeSet<String>) -> BTreeMap<String, String> {
    let is_swept = |key: &String| one.points.iter().any(|point| point.settings.contains_key(key));
    let missing: Vec<&String> = keys.iter().filter(|key| !is_swept(key)).collect();
    if missing.is_empty() {
        return BTreeMap::new();
    }
    let Some((file, base)) = scenario(one) else { return BTreeMap::new() };
    let value = |key: &String| {
        let candidates: BTreeSet<&String> =
            other.points.iter().filter_map(|point| point.settings.get(key)).collect();
        let same = candidates.into_iter().find(|value| {
            let mut file = file.clone();
            let with_value = file.set(key, value).ok().and_then(|()| first(&file));
            with_value.is_some_and(|scenario| scenario == base)
        })?;
        Some((key.clone(), meaning(same)))
    };
    missing.into_iter().filter_map(value).collect()
}

/// The scenario of stored results, and its first point.
fn scenario(summary: &Summary) -> Option<(ScenarioFile, Scenario)> {
    let mut file = ScenarioFile::parse(&summary.scenario, &summary.scenario_file).ok()?;
    for (path, value) in &summary.overrides {
        file.set(path, value).ok()?;
    }
    let base = first(&file)?;
    Some((file, base))
}

/// The first point, without the text that it was read from.
fn first(file: &ScenarioFile) -> Option<Scenario> {
    let points = file.expand().ok()?;
    points.into_iter().next().map(|point| Scenario { canonical: String::new(), ..point.scenario })
}

/// Returns the meaning of a value: equal values have equal texts.
fn meaning(text: &str) -> String {
    let text = text.trim().trim_matches('"');
    if let Ok(number) = text.parse::<f64>() {
        return number.to_string();
    }
    let quantities = [
        quantity::rate(text).ok().map(|rate| format!("{} bit/s", rate.as_bps())),
        quantity::duration(text).ok().map(|time| format!("{} ns", time.as_nanos())),
        quantity::size(text).ok().map(|size| format!("{} B", size.get())),
        quantity::percent(text).ok().map(|share| share.get().to_string()),
    ];
    quantities.into_iter().flatten().next().unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_compared_by_their_meaning() {
        for (one, other) in [
            ("20 ms", "0.02 s"),
            ("1500 kbit/s", "1.5 Mbit/s"),
            ("\"pi\"", "pi"),
            ("6", "6.0"),
            ("5 %", "0.05"),
            ("1 KB", "1000 B"),
        ] {
            assert_eq!(meaning(one), meaning(other), "{one}");
        }
        for (one, other) in [("20 ms", "20 s"), ("20", "20 ms"), ("pi", "pie"), ("true", "1")] {
            assert_ne!(meaning(one), meaning(other), "{one}");
        }
    }
}
