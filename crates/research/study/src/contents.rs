//! Contents of an experiment, with which claims and panels are compared: the points of its sweep, and its flows.

use crate::experiment::Experiment;
use crate::measure::is_group;
use crate::settings::{Settings, is_same};
use cutline_config::{Errors, suggestion};
use std::collections::BTreeSet;

/// Most names that a message lists.
const MOST_NAMES: usize = 12;

/// The points of an experiment's sweep, and the names of its groups of flows.
pub(crate) struct Contents {
    points: Vec<Settings>,
    groups: BTreeSet<String>,
}

impl Contents {
    /// The contents of an experiment.
    ///
    /// # Errors
    /// When it is no valid scenario.
    pub(crate) fn of(experiment: &Experiment) -> Result<Self, Errors> {
        let points = experiment.scenario_file(false)?.expand()?;
        let groups = points[0].scenario.flows.iter().map(|flow| flow.name.clone()).collect();
        let plain = |(key, value): (String, String)| (key, value.trim_matches('"').to_owned());
        let points = points.into_iter().map(|point| point.settings.into_iter().map(plain).collect());
        Ok(Self { points: points.collect(), groups })
    }

    /// The reason why the experiment `id` has no point with these settings; `None` if it has one.
    pub(crate) fn no_point(&self, id: &str, at: &Settings) -> Option<String> {
        let has = |point: &Settings| {
            at.iter().all(|(key, value)| point.get(key).is_some_and(|there| is_same(there, value)))
        };
        if self.points.iter().any(has) {
            return None;
        }
        let unknown = |(key, value): (&String, &String)| {
            self.unswept(id, key).or_else(|| self.unknown_value(id, key, value))
        };
        let together = || {
            let settings: Vec<String> = at.iter().map(|(key, value)| format!("{key} = {value}")).collect();
            format!("no point of the experiment {id:?} has {} together", settings.join(", "))
        };
        Some(at.iter().find_map(unknown).unwrap_or_else(together))
    }

    /// The reason why a key is not swept in the experiment `id`; `None` if it is.
    pub(crate) fn unswept(&self, id: &str, key: &str) -> Option<String> {
        if self.points.iter().any(|point| point.contains_key(key)) {
            return None;
        }
        let swept = each_once(self.points.iter().flat_map(|point| point.keys().map(String::as_str)));
        Some(format!("the key {key:?} is not swept in the experiment {id:?}{}", near_or_known(key, &swept)))
    }

    /// The reason why a swept key of the experiment `id` does not have a value; `None` if it does.
    pub(crate) fn unknown_value(&self, id: &str, key: &str, value: &str) -> Option<String> {
        let values = each_once(self.points.iter().filter_map(|point| point.get(key)).map(String::as_str));
        if values.is_empty() || values.iter().any(|there| is_same(there, value)) {
            return None;
        }
        Some(format!("no point of the experiment {id:?} has {key} = {value}{}", known(&values)))
    }

    /// The reason why the experiment `id` has no flow or group with this name, which may end with `*`; `None` if it has one.
    pub(crate) fn no_flow(&self, id: &str, name: &str) -> Option<String> {
        // A flow of several of a group has the group's name and a number.
        let group_of = name.rsplit_once('.').map_or(name, |(group, _)| group);
        if self.groups.iter().any(|group| is_group(name, group) || group == group_of) {
            return None;
        }
        let groups = each_once(self.groups.iter().map(String::as_str));
        Some(format!("the experiment {id:?} has no flow or group {name:?}{}", near_or_known(name, &groups)))
    }
}

fn each_once<'n>(names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let mut seen = BTreeSet::new();
    names.filter(|name| seen.insert(*name)).collect()
}

/// The nearest known name or, if none is near, all.
fn near_or_known(name: &str, names: &[&str]) -> String {
    let near = suggestion(name, names.iter().copied());
    if near.is_empty() { known(names) } else { near }
}

/// The known names, unless they are many.
fn known(names: &[&str]) -> String {
    match names.len() {
        1..=MOST_NAMES => format!("; there are {}", names.join(", ")),
        _ => String::new(),
    }
}
