//! Measures over replications: the values of a group of flows or a queue in the tables, by seed.
//!
//! The value of a group in a run is the mean over its flows. A flow without a value is not part of the mean.

use crate::column::{Column, Row};
use crate::rows::{DistributionRow, FlowRow, QueueRow};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The kind of a measure's subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SubjectKind {
    /// A group of flows.
    Group,
    /// The queue in front of a link.
    Queue,
}

/// A point and a group or queue in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subject {
    /// The point's label.
    pub point: Arc<str>,
    /// Kind of the subject: a group or a queue.
    pub kind: SubjectKind,
    /// The group's name or the link's.
    pub name: Arc<str>,
}

/// One measure of a subject in each run.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    /// The group or queue that was measured.
    pub subject: Subject,
    /// The name of the table's column, or of the quantity of distributions.
    pub measure: &'static str,
    /// Pairs of seed and value, ordered by seed.
    pub by_seed: Vec<(u64, f64)>,
}

impl Values {
    /// Returns the values, ordered by seed.
    pub fn values(&self) -> Vec<f64> {
        self.by_seed.iter().map(|(_, value)| *value).collect()
    }
}

/// Returns the measures of every group of flows, in the order of the rows.
pub fn group_measures(flows: &[FlowRow]) -> Vec<Values> {
    measures(flows, SubjectKind::Group, group_of, |column| column.measure)
}

/// Returns the measures of every queue, in the order of the rows.
pub fn queue_measures(queues: &[QueueRow]) -> Vec<Values> {
    measures(queues, SubjectKind::Queue, queue_of, |column| column.measure)
}

/// Returns one column of numbers for every group of flows; nothing if there is no such column.
pub fn group_values(flows: &[FlowRow], column: &str) -> Vec<Values> {
    measures(flows, SubjectKind::Group, group_of, |one| one.about.name == column && one.is_quantity())
}

/// Returns one column of numbers for every queue; nothing if there is no such column.
pub fn queue_values(queues: &[QueueRow], column: &str) -> Vec<Values> {
    measures(queues, SubjectKind::Queue, queue_of, |one| one.about.name == column && one.is_quantity())
}

/// The sum and the number of the observations of a distribution, by its subject; true for that of the group or queue itself.
type Members = BTreeMap<(bool, Arc<str>), (f64, f64)>;

/// Returns the means of a quantity's distributions for every group of flows and every queue that has them, in the order of the rows. A
/// group without a distribution of its own has the mean over its flows. Within a bucket, the middle counts.
pub fn distribution_values(
    flows: &[FlowRow],
    distributions: &[DistributionRow],
    quantity: &'static str,
) -> Vec<Values> {
    let group_of: BTreeMap<&str, &Arc<str>> = flows.iter().map(|row| (&*row.flow, &row.group)).collect();
    let mut order: Vec<Subject> = Vec::new();
    let mut runs: BTreeMap<Subject, BTreeMap<u64, Members>> = BTreeMap::new();
    for row in distributions.iter().filter(|row| &*row.quantity == quantity) {
        let found = match &*row.subject_kind {
            "queue" => Some((SubjectKind::Queue, &row.subject, true)),
            "group" => Some((SubjectKind::Group, &row.subject, true)),
            _ => group_of.get(&*row.subject).map(|group| (SubjectKind::Group, *group, false)),
        };
        let Some((kind, name, is_own)) = found else { continue };
        let subject = Subject { point: Arc::clone(&row.point), kind, name: Arc::clone(name) };
        let by_seed = runs.entry(subject.clone()).or_insert_with(|| {
            order.push(subject);
            BTreeMap::new()
        });
        let members = by_seed.entry(row.seed).or_default();
        let (sum, count) = members.entry((is_own, Arc::clone(&row.subject))).or_default();
        *sum += f64::midpoint(row.low, row.high) * row.count as f64;
        *count += row.count as f64;
    }
    let of_subject = |subject: Subject| {
        let by_seed = runs[&subject].iter();
        let by_seed: Vec<(u64, f64)> =
            by_seed.filter_map(|(seed, members)| Some((*seed, mean_of_members(members)?))).collect();
        Values { subject, measure: quantity, by_seed }
    };
    order.into_iter().map(of_subject).filter(|values| !values.by_seed.is_empty()).collect()
}

/// Returns the mean of a group's or queue's own distribution, or the mean over the flows; `None` without observations.
fn mean_of_members(members: &Members) -> Option<f64> {
    let has_own = members.keys().any(|(is_own, _)| *is_own);
    let of_kind = members.iter().filter(|((is_own, _), _)| *is_own == has_own);
    let means: Vec<f64> =
        of_kind.map(|(_, (sum, count))| sum / count).filter(|mean| mean.is_finite()).collect();
    (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64)
}

fn group_of(row: &FlowRow) -> (Arc<str>, Arc<str>, u64) {
    (Arc::clone(&row.point), Arc::clone(&row.group), row.seed)
}

fn queue_of(row: &QueueRow) -> (Arc<str>, Arc<str>, u64) {
    (Arc::clone(&row.point), Arc::clone(&row.link), row.seed)
}

fn measures<R: Row>(
    rows: &[R],
    kind: SubjectKind,
    key: impl Fn(&R) -> (Arc<str>, Arc<str>, u64),
    is_asked: impl Fn(&Column<R>) -> bool,
) -> Vec<Values> {
    let measures: Vec<Column<R>> = R::columns().into_iter().filter(is_asked).collect();
    let mut order: Vec<Subject> = Vec::new();
    let mut runs: BTreeMap<Subject, BTreeMap<u64, Vec<&R>>> = BTreeMap::new();
    for row in rows {
        let (point, name, seed) = key(row);
        let subject = Subject { point, kind, name };
        let by_seed = runs.entry(subject.clone()).or_insert_with(|| {
            order.push(subject);
            BTreeMap::new()
        });
        by_seed.entry(seed).or_default().push(row);
    }
    let of_subject = |subject: Subject| {
        let (by_seed, measures) = (&runs[&subject], &measures);
        measures.iter().map(move |column| Values {
            subject: subject.clone(),
            measure: column.about.name,
            by_seed: by_seed.iter().filter_map(|(seed, rows)| Some((*seed, mean(rows, column)?))).collect(),
        })
    };
    order.into_iter().flat_map(of_subject).filter(|values| !values.by_seed.is_empty()).collect()
}

/// Returns the mean over the rows that have a value; `None` if there are none.
fn mean<R>(rows: &[&R], column: &Column<R>) -> Option<f64> {
    let values: Vec<f64> = rows.iter().filter_map(|row| column.number(row)).collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::{CellKind, CellValue};

    fn row(point: &str, seed: u64, group: &str, goodput_bps: f64, q: Option<f64>) -> FlowRow {
        FlowRow { point: point.into(), seed, group: group.into(), goodput_bps, q, ..FlowRow::default() }
    }

    #[test]
    fn a_group_has_the_mean_of_its_flows_in_each_run() {
        let rows = [
            row("hint=6", 2, "bulk", 10.0, None),
            row("hint=6", 2, "bulk", 30.0, None),
            row("hint=6", 1, "bulk", 40.0, None),
            row("hint=6", 1, "audio", 5.0, Some(0.5)),
            row("hint=6", 2, "audio", 7.0, None),
        ];
        let found = group_measures(&rows);
        let of = |name: &str, measure| {
            found.iter().find(|values| &*values.subject.name == name && values.measure == measure)
        };
        assert_eq!(of("bulk", "goodput_bps").unwrap().by_seed, [(1, 40.0), (2, 20.0)]);
        assert_eq!(of("audio", "q").unwrap().by_seed, [(1, 0.5)]);
        assert_eq!(of("bulk", "q"), None, "nothing was measured");
        assert_eq!(&*found[0].subject.name, "bulk", "in the order of the rows");
    }

    /// Each number that a run stores for flows and queues can be compared.
    #[test]
    fn every_column_of_numbers_has_values() {
        fn check<R: Row>(values: impl Fn(&[R], &str) -> Vec<Values>) {
            for column in R::columns() {
                let name = column.about.name;
                let mut row = R::default();
                if column.kind != CellKind::Text {
                    let one = if column.kind == CellKind::Real {
                        CellValue::Real(1.0)
                    } else {
                        CellValue::Count(1)
                    };
                    (column.set)(&mut row, one);
                }
                let found = values(&[row], name);
                let found: Vec<&[(u64, f64)]> = found.iter().map(|values| &values.by_seed[..]).collect();
                let expected: &[&[(u64, f64)]] = if column.is_quantity() { &[&[(0, 1.0)]] } else { &[] };
                assert_eq!(found, expected, "{name}");
            }
        }
        check::<FlowRow>(group_values);
        check::<QueueRow>(queue_values);
    }

    #[test]
    fn a_quantity_has_the_mean_of_its_group_or_of_the_groups_flows() {
        let flow = |name: &str| FlowRow { flow: name.into(), ..row("base", 1, "audio", 0.0, None) };
        let flows = [flow("audio-0"), flow("audio-1")];
        let single = |flow: &str, seed, value| DistributionRow {
            point: "base".into(),
            seed,
            ..DistributionRow::single(flow, "flows_in_region_percent", value)
        };
        let mut rows =
            vec![single("audio-0", 1, 90.0), single("audio-1", 1, 80.0), single("audio-0", 2, 70.0)];
        rows.push(single("foreign", 1, 1.0));
        let found = distribution_values(&flows, &rows, "flows_in_region_percent");
        assert_eq!(found.len(), 1, "the foreign flow has no group: {found:?}");
        assert_eq!((&*found[0].subject.name, found[0].subject.kind), ("audio", SubjectKind::Group));
        assert_eq!(found[0].by_seed, [(1, 85.0), (2, 70.0)]);
        assert!(distribution_values(&flows, &rows, "queuing_ms").is_empty());
        let bucket = |kind: &str, subject: &str, low: f64, count| DistributionRow {
            subject_kind: kind.into(),
            low,
            high: low + 2.0,
            count,
            ..single(subject, 1, 0.0)
        };
        // 3 at 2 and 1 at 6; packets count alike, whichever flow they belong to.
        rows.extend([bucket("group", "audio", 1.0, 3), bucket("group", "audio", 5.0, 1)]);
        rows.push(bucket("queue", "r1->r2", 9.0, 1));
        let found = distribution_values(&flows, &rows, "flows_in_region_percent");
        assert_eq!((found.len(), &found[0].by_seed[..]), (2, &[(1, 3.0), (2, 70.0)][..]));
        assert_eq!((found[1].subject.kind, &found[1].by_seed[..]), (SubjectKind::Queue, &[(1, 10.0)][..]));
    }

    #[test]
    fn a_queue_without_packets_has_no_drop_ratio() {
        let queue = QueueRow { point: "base".into(), seed: 1, link: "r1->r2".into(), ..QueueRow::default() };
        let found = queue_measures(&[queue]);
        assert!(found.iter().any(|values| values.measure == "utilisation"));
        assert!(found.iter().all(|values| values.measure != "drop_ratio"));
    }
}
