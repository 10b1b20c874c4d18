//! Measures over replications: the values of a group of flows or a queue in the tables, by seed.
//!
//! The value of a group in a run is the mean over its flows. A flow without a value is not part of the mean.

use crate::column::{Column, Row};
use crate::rows::{FlowRow, QueueRow};
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
    /// The name of the table's column.
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

    #[test]
    fn a_queue_without_packets_has_no_drop_ratio() {
        let queue = QueueRow { point: "base".into(), seed: 1, link: "r1->r2".into(), ..QueueRow::default() };
        let found = queue_measures(&[queue]);
        assert!(found.iter().any(|values| values.measure == "utilisation"));
        assert!(found.iter().all(|values| values.measure != "drop_ratio"));
    }
}
