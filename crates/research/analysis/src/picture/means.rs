//! Means over whole runs: by the swept keys, and one against another.

use super::measure::label;
use super::panels::{Dot, Panel, Parts, Series, Shape};
use super::source::{Source, SweptPoint, add_name, constant_keys, keys_with, leads, of_group, of_results};
use crate::columns::{check_measures, swept_key};
use crate::{AnalysisError, Selection};
use cutline_results::{
    DistributionRow, FlowRow, QueueRow, SubjectKind, Values, distributed_quantity, distribution_values,
    group_values, queue_values,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Default measures.
pub const USUAL: [&str; 4] = ["goodput_bps", "queuing_p99_ms", "loss_ratio", "q"];

/// The tables of some results.
pub struct Means<'s> {
    sources: &'s [Source<'s>],
    tables: Vec<(Vec<FlowRow>, Vec<QueueRow>)>,
}

/// A measure of a group or queue at the points of one of the results.
struct Measured<'s> {
    source: &'s Source<'s>,
    name: Arc<str>,
    /// The values of the seeds at each point.
    at: Vec<(&'s SweptPoint, Vec<(u64, f64)>)>,
}

impl<'s> Means<'s> {
    pub fn read(sources: &'s [Source<'s>]) -> Result<Self, AnalysisError> {
        let read = |source: &Source<'_>| Ok::<_, AnalysisError>((source.read()?, source.read()?));
        Ok(Self { sources, tables: sources.iter().map(read).collect::<Result<_, _>>()? })
    }

    /// The groups and the links.
    pub fn names(&self) -> Vec<Arc<str>> {
        let mut names: Vec<Arc<str>> = Vec::new();
        for (flows, queues) in &self.tables {
            for name in flows.iter().map(|row| &row.group).chain(queues.iter().map(|row| &row.link)) {
                add_name(&mut names, name);
            }
        }
        names
    }

    fn measured(&self, selection: &Selection, measure: &str) -> Result<Vec<Measured<'s>>, AnalysisError> {
        check_measures(&[measure])?;
        let mut found = Vec::new();
        for (source, (flows, queues)) in self.sources.iter().zip(&self.tables) {
            let of_all = match distributed_quantity(measure) {
                Some(about) => distribution_values(flows, &source.read::<DistributionRow>()?, about.name),
                None => [group_values(flows, measure), queue_values(queues, measure)].concat(),
            };
            // A measure of both is that of flows, unless a link is chosen.
            let (of_flows, of_queues): (Vec<Values>, Vec<Values>) =
                of_all.into_iter().partition(|values| values.subject.kind == SubjectKind::Group);
            let is_of_flows = of_flows.iter().any(|values| selection.has_group(&values.subject.name));
            let values = if is_of_flows { of_flows } else { of_queues };
            let mut names: Vec<Arc<str>> = Vec::new();
            for one in values.iter().filter(|one| selection.has_group(&one.subject.name)) {
                add_name(&mut names, &one.subject.name);
            }
            for name in names {
                let at = |point: &'s SweptPoint| {
                    let is = |one: &&Values| one.subject.point == point.label && one.subject.name == name;
                    Some((point, values.iter().find(is)?.by_seed.clone()))
                };
                found.push(Measured { source, at: source.points.iter().filter_map(at).collect(), name });
            }
        }
        Ok(found)
    }

    /// A measure along a swept key, or with a bar for each of the results if nothing is swept.
    ///
    /// # Errors
    /// When there is no such measure or key.
    pub fn along(
        &self,
        selection: &Selection,
        measure: &str,
        by: Option<&str>,
    ) -> Result<Panel, AnalysisError> {
        let measured = self.measured(selection, measure)?;
        let label = label(measure);
        let scaled =
            |values: &[(u64, f64)]| values.iter().map(|(_, value)| value * label.scale).collect::<Vec<_>>();
        let panel = |x: String, names, shape, series| Panel {
            title: label.name.clone(),
            measure: measure.to_owned(),
            x,
            y: label.unit.to_owned(),
            names,
            from: None,
            to: None,
            shape,
            series,
        };
        let Some(key) = self.key(by)? else {
            // One point each: the results are side by side.
            let names: Vec<String> = self.sources.iter().map(|source| source.name.clone()).collect();
            let mut series: Vec<Series> = Vec::new();
            for one in &measured {
                let index = self.sources.iter().position(|source| std::ptr::eq(source, one.source));
                let dots = one.at.iter().filter_map(|(_, values)| Dot::mean(index? as f64, &scaled(values)));
                add(&mut series, vec![of_group(&one.name)], "", dots);
            }
            return Ok(panel(String::new(), Some(names), Shape::Bars, series));
        };
        let positions = self.positions(&key);
        let with_key = self.left_out(&key);
        let leads = leads(self.sources);
        let mut series: Vec<Series> = Vec::new();
        for one in &measured {
            for (point, values) in &one.at {
                let Some(x) = point.value(&key).and_then(|value| positions.of(&value.text)) else { continue };
                let mut parts =
                    [of_results(self.sources, one.source), point.without(&with_key, &leads)].concat();
                parts.push(of_group(&one.name));
                add(&mut series, parts, "", Dot::mean(x, &scaled(values)));
            }
        }
        let shape = if positions.names.is_some() { Shape::Bars } else { Shape::Marked };
        if shape == Shape::Marked {
            for one in &mut series {
                one.points.sort_by(|left, right| left.x.total_cmp(&right.x));
            }
        }
        let together: Vec<&str> = with_key
            .iter()
            .filter(|other| **other != key && !constant_keys(self.sources).contains(*other))
            .map(String::as_str)
            .collect();
        let x = if together.is_empty() { key } else { format!("{key}, with {}", together.join(", ")) };
        Ok(panel(x, positions.names, shape, series))
    }

    /// Two measures of each group against each other: a panel for each group, with a marker for each point of each of the results.
    ///
    /// # Errors
    /// When there is no such measure or key.
    pub fn plane(
        &self,
        selection: &Selection,
        x: &str,
        y: &str,
        by: Option<&str>,
    ) -> Result<Vec<Panel>, AnalysisError> {
        let (across, up) = (self.measured(selection, x)?, self.measured(selection, y)?);
        let (x_label, y_label) = (label(x), label(y));
        // Points along a key that was requested are joined in its order.
        let key = if by.is_some() { self.key(by)? } else { None };
        let left_out = key.as_ref().map_or_else(|| constant_keys(self.sources), |key| self.left_out(key));
        let leads = leads(self.sources);
        let mut panels: Vec<Panel> = Vec::new();
        for one in &up {
            let is_same =
                |other: &&Measured| std::ptr::eq(other.source, one.source) && other.name == one.name;
            let Some(other) = across.iter().find(is_same) else { continue };
            let at = panels.iter().position(|panel| *panel.title == *one.name);
            let at = at.unwrap_or_else(|| {
                panels.push(Panel {
                    title: one.name.to_string(),
                    measure: y.to_owned(),
                    x: x_label.text(),
                    y: y_label.text(),
                    names: None,
                    // Both axes are compared.
                    from: Some(0.0),
                    to: None,
                    shape: if key.is_some() { Shape::Marked } else { Shape::Markers },
                    series: Vec::new(),
                });
                panels.len() - 1
            });
            for (point, values) in &one.at {
                let Some((_, others)) = other.at.iter().find(|(there, _)| there.label == point.label) else {
                    continue;
                };
                let mean = others.iter().map(|(_, value)| value).sum::<f64>() / others.len() as f64;
                let scaled: Vec<f64> = values.iter().map(|(_, value)| value * y_label.scale).collect();
                let parts = [of_results(self.sources, one.source), point.without(&left_out, &leads)].concat();
                add(
                    &mut panels[at].series,
                    parts,
                    &one.source.name,
                    Dot::mean(mean * x_label.scale, &scaled),
                );
            }
        }
        Ok(panels)
    }

    /// The key along which values are shown: the selected one, or the first of those with the most values, because it makes the
    /// longest lines. `None` without a sweep.
    fn key(&self, by: Option<&str>) -> Result<Option<String>, AnalysisError> {
        let settings =
            self.sources.iter().flat_map(|source| &source.points).flat_map(|point| &point.settings);
        let mut values: Vec<(&str, BTreeSet<&str>)> = Vec::new();
        for (key, value) in settings {
            match values.iter_mut().find(|(known, _)| known == key) {
                Some((_, texts)) => drop(texts.insert(&value.text)),
                None => values.push((key, BTreeSet::from([value.text.as_str()]))),
            }
        }
        let Some(by) = by else {
            let most = values.iter().map(|(_, texts)| texts.len()).max().unwrap_or(0);
            let longest = values.iter().find(|(_, texts)| most > 1 && texts.len() == most);
            return Ok(longest.map(|(key, _)| (*key).to_owned()));
        };
        let keys: Vec<&str> = values.iter().map(|(key, _)| *key).collect();
        swept_key(&keys, by).map(|key| Some(key.to_owned()))
    }

    /// The keys that no series is named after if a key is on the horizontal axis: this key, the keys that vary with it, and those that do not vary.
    fn left_out(&self, key: &str) -> BTreeSet<String> {
        let mut keys = keys_with(self.sources, key);
        keys.insert(key.to_owned());
        keys
    }

    /// Returns the positions of the values of a key.
    fn positions(&self, key: &str) -> Positions {
        let mut names: Vec<String> = Vec::new();
        let mut numbers: BTreeMap<String, Option<f64>> = BTreeMap::new();
        for point in self.sources.iter().flat_map(|source| &source.points) {
            if let Some(value) = point.value(key) {
                if !names.contains(&value.text) {
                    names.push(value.text.clone());
                }
                numbers.insert(value.text.clone(), value.number.filter(|_| !is_flag(&value.text)));
            }
        }
        if numbers.values().all(Option::is_some) {
            let at = numbers.into_iter().filter_map(|(text, number)| Some((text, number?))).collect();
            return Positions { names: None, at };
        }
        let at = names.iter().enumerate().map(|(index, name)| (name.clone(), index as f64)).collect();
        Positions { names: Some(names), at }
    }
}

/// Positions of the values of a swept key on the horizontal axis.
struct Positions {
    /// Their names, if they are not numbers.
    names: Option<Vec<String>>,
    at: BTreeMap<String, f64>,
}

impl Positions {
    fn of(&self, value: &str) -> Option<f64> {
        self.at.get(value).copied()
    }
}

fn is_flag(text: &str) -> bool {
    matches!(text, "true" | "false")
}

/// Adds points to the series with these parts.
fn add(series: &mut Vec<Series>, parts: Parts, usual: &str, points: impl IntoIterator<Item = Dot>) {
    match series.iter_mut().find(|one| one.parts == parts) {
        Some(one) => one.points.extend(points),
        None => series.push(Series::new(parts, usual, points.into_iter().collect())),
    }
}
