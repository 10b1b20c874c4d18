//! Comparison of two sets of results: A - B with 95 % confidence intervals.
//!
//! Points are matched by the values of the swept keys, however they are written, and also where one side has a key in its
//! file that the other side sweeps; groups and queues are matched by name. With the same seeds on both sides the difference is
//! taken seed by seed, otherwise by Welch's interval.

mod document;
mod points;

use crate::columns::check_measures;
use crate::{AnalysisError, Selection, Tables};
use cutline_report::stats::Comparison;
use cutline_results::{Summary, Values, group_measures, queue_measures};
use cutline_text::Printable;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use document::ComparisonDocument;

/// A measure that both sides have, and its comparison.
#[derive(Clone, Debug)]
pub struct ComparedValues {
    /// The values of A.
    pub values: Values,
    /// A beside B.
    pub comparison: Comparison,
}

/// Comparison of two sets of results.
#[derive(Clone, Debug)]
pub struct ResultsComparison {
    /// The path of A.
    pub a: PathBuf,
    /// The path of B.
    pub b: PathBuf,
    /// The measures that both have, in the order of A.
    pub measures: Vec<ComparedValues>,
}

impl ResultsComparison {
    /// Compares the results at two paths: the usual measures, or only those with the given names of columns, or of quantities of
    /// distributions.
    ///
    /// # Errors
    /// When results cannot be read, have nothing in common, or nothing of the selection.
    pub fn read(
        a: &Path,
        b: &Path,
        selection: &Selection,
        measures: &[String],
    ) -> Result<Self, AnalysisError> {
        check_measures(measures)?;
        Self::between(&Tables::read(a, measures)?, &Tables::read(b, measures)?, selection, measures)
    }

    /// Compares two sets of tables. See [`ResultsComparison::read`].
    ///
    /// # Errors
    /// When they have no selected rows in common.
    pub fn between(
        a: &Tables,
        b: &Tables,
        selection: &Selection,
        measures: &[String],
    ) -> Result<Self, AnalysisError> {
        check_measures(measures)?;
        let (of_a, mut of_b) = (Measured::of(a, measures), Measured::of(b, measures));
        points::name_alike(&of_a, &mut of_b);
        let mut matched = matched(&of_a.values, &of_b.values);
        let (a, b) = (&a.place, &b.place);
        if matched.is_empty() {
            return Err(AnalysisError::Nothing(nothing_matches((a, &of_a.values), (b, &of_b.values))));
        }
        select(&mut matched, a, selection, measures)?;
        Ok(Self { a: a.clone(), b: b.clone(), measures: matched })
    }

    /// Returns the comparison as a document.
    pub fn document(&self) -> ComparisonDocument<'_> {
        ComparisonDocument::from(self)
    }
}

/// Leaves the groups, points and measures that are selected. `a` is where the points are.
fn select(
    matched: &mut Vec<ComparedValues>,
    a: &Path,
    selection: &Selection,
    measures: &[String],
) -> Result<(), AnalysisError> {
    let names = matched.iter().map(|one| Arc::clone(&one.values.subject.name));
    selection.check_groups(&distinct(names))?;
    selection.check_points(a, &distinct(matched.iter().map(|one| &*one.values.subject.point)))?;
    matched.retain(|ComparedValues { values, .. }| {
        selection.has_group(&values.subject.name) && selection.has_point(&values.subject.point)
    });
    let measured = distinct(matched.iter().map(|one| one.values.measure));
    if let Some(absent) = measures.iter().find(|name| !measured.contains(&name.as_str())) {
        let (absent, measured) = (Printable(absent), measured.join(", "));
        let message = format_args!("{absent}: these results have no values of it; they have: {measured}");
        return Err(AnalysisError::choice("measure", message));
    }
    matched.retain(|one| measures.is_empty() || measures.iter().any(|name| name == one.values.measure));
    Ok(())
}

/// Returns each item once, in the order in which they come.
fn distinct<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for one in all {
        if !found.contains(&one) {
            found.push(one);
        }
    }
    found
}

/// One side of a comparison.
struct Measured<'t> {
    summary: &'t Summary,
    values: Vec<Values>,
}

impl<'t> Measured<'t> {
    /// Returns the measures of tables: the usual ones, and these.
    fn of(tables: &'t Tables, further: &[String]) -> Self {
        let Tables { summary, flows, queues, .. } = tables;
        let mut values = group_measures(flows);
        values.extend(queue_measures(queues));
        for measure in further {
            let is_new = |one: &Values| {
                !values.iter().any(|old| old.subject == one.subject && old.measure == one.measure)
            };
            let new: Vec<Values> = tables.values(measure).into_iter().filter(is_new).collect();
            values.extend(new);
        }
        Self { summary, values }
    }
}

/// Returns the measures that both sides have, in the order of `a`.
fn matched(a: &[Values], b: &[Values]) -> Vec<ComparedValues> {
    let partner = |values: &Values| {
        let same = |other: &&Values| other.subject == values.subject && other.measure == values.measure;
        let comparison = Comparison::new(&values.by_seed, &b.iter().find(same)?.by_seed)?;
        Some(ComparedValues { values: values.clone(), comparison })
    };
    a.iter().filter_map(partner).collect()
}

fn nothing_matches((a, of_a): (&Path, &[Values]), (b, of_b): (&Path, &[Values])) -> String {
    let points = |side: &[Values]| {
        let points: BTreeSet<_> = side.iter().map(|values| &*values.subject.point).collect();
        Printable(points.into_iter().take(5).collect::<Vec<_>>().join(", "))
    };
    format!(
        "the results have no point and group in common: {} has the points {}; {} has the points {}",
        Printable(a.display()),
        points(of_a),
        Printable(b.display()),
        points(of_b)
    )
}
