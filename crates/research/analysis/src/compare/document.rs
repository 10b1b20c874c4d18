//! The JSON document of a comparison.

use super::{ComparedValues, ResultsComparison};
use cutline_report::stats::{Estimate, Pairing};
use cutline_results::SubjectKind;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;

/// The comparison of two sets of results.
#[derive(Serialize, JsonSchema)]
pub struct ComparisonDocument<'m> {
    /// The folder of the first results, A.
    a: PathBuf,
    /// The folder of the second results, B.
    b: PathBuf,
    /// The measures that both have.
    measures: Vec<ComparedMeasure<'m>>,
}

/// A measure on both sides. Its unit is the last word of its name.
#[derive(Serialize, JsonSchema)]
struct ComparedMeasure<'m> {
    /// The label of the sweep's point.
    point: &'m str,
    /// The subject of the measure.
    kind: Kind,
    /// The name of the group, or of the link behind the queue.
    name: &'m str,
    /// The column of the tables, or the quantity of distributions.
    measure: &'m str,
    /// The measure in A.
    a: Side,
    /// The measure in B.
    b: Side,
    /// The difference of the means, A - B.
    difference: f64,
    /// The ends of the 95 % confidence interval of the difference; null if there are too few seeds.
    interval: Option<(f64, f64)>,
    /// Pairing of the replications for the interval.
    pairing: PairingName,
    /// True if the interval excludes zero.
    significant: bool,
}

/// The subject of a measure.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// A group of flows.
    Group,
    /// A queue.
    Queue,
}

/// Pairing of the replications for an interval.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum PairingName {
    /// Seed by seed: both sides have the same seeds.
    Paired,
    /// By Welch's interval: the seeds differ.
    Welch,
}

/// A mean over seeds.
#[derive(Serialize, JsonSchema)]
struct Side {
    /// The mean.
    mean: f64,
    /// The ends of its 95 % confidence interval; null for a single seed.
    interval: Option<(f64, f64)>,
    /// The number of seeds.
    n: usize,
}

impl<'m> From<&'m ComparedValues> for ComparedMeasure<'m> {
    fn from(matched: &'m ComparedValues) -> Self {
        let ComparedValues { values, comparison } = matched;
        Self {
            point: &values.subject.point,
            kind: match values.subject.kind {
                SubjectKind::Group => Kind::Group,
                SubjectKind::Queue => Kind::Queue,
            },
            name: &values.subject.name,
            measure: values.measure,
            a: (&comparison.left).into(),
            b: (&comparison.right).into(),
            difference: comparison.difference,
            interval: comparison.interval,
            pairing: match comparison.pairing {
                Pairing::Paired => PairingName::Paired,
                Pairing::Welch => PairingName::Welch,
            },
            significant: comparison.is_significant(),
        }
    }
}

impl From<&Estimate> for Side {
    fn from(estimate: &Estimate) -> Self {
        Self { mean: estimate.mean, interval: estimate.interval, n: estimate.n }
    }
}

impl<'m> From<&'m ResultsComparison> for ComparisonDocument<'m> {
    fn from(comparison: &'m ResultsComparison) -> Self {
        Self {
            a: comparison.a.clone(),
            b: comparison.b.clone(),
            measures: comparison.measures.iter().map(ComparedMeasure::from).collect(),
        }
    }
}
