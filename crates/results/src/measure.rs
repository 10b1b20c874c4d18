//! Measures over replications: what the tables' rows say about a group of flows or a queue, by seed.
//!
//! A group's value in a run is the mean over its flows; one that was not measured in a run is left out of that run.

use crate::rows::{FlowRow, QueueRow};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a measure is about.
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
    /// Whether it is a group or a queue.
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
    /// Seed and value, by seed.
    pub by_seed: Vec<(u64, f64)>,
}

impl Values {
    /// The values alone, by seed.
    pub fn values(&self) -> Vec<f64> {
        self.by_seed.iter().map(|(_, value)| *value).collect()
    }
}

/// A column and how it is read from a row.
type Measure<R> = (&'static str, fn(&R) -> Option<f64>);

const OF_FLOWS: [Measure<FlowRow>; 13] = [
    ("goodput_bps", |row| Some(row.goodput_bps)),
    ("sent_bps", |row| Some(row.sent_bps)),
    ("loss_ratio", |row| row.loss_ratio),
    ("mark_ratio", |row| row.mark_ratio),
    ("timeouts", |row| row.timeouts.map(|n| n as f64)),
    ("queuing_mean_ms", |row| row.queuing_mean_ms),
    ("queuing_p50_ms", |row| row.queuing_p50_ms),
    ("queuing_p99_ms", |row| row.queuing_p99_ms),
    ("one_way_mean_ms", |row| row.one_way_mean_ms),
    ("ipdv_mean_ms", |row| row.ipdv_mean_ms),
    ("qd", |row| row.qd),
    ("qt", |row| row.qt),
    ("q", |row| row.q),
];

const OF_QUEUES: [Measure<QueueRow>; 10] = [
    ("utilisation", |row| Some(row.utilisation)),
    ("backlog_mean_packets", |row| Some(row.backlog_mean_packets)),
    ("backlog_sd_packets", |row| Some(row.backlog_sd_packets)),
    ("delay_mean_ms", |row| row.delay_mean_ms),
    ("delay_p99_ms", |row| row.delay_p99_ms),
    ("drop_ratio", |row| row.drop_ratio),
    ("mark_ratio", |row| row.mark_ratio),
    ("probability_mean", |row| row.probability_mean),
    ("average_mean_packets", |row| row.average_mean_packets),
    ("max_p_mean", |row| row.max_p_mean),
];

/// The measures of every group of flows, in the order of the rows.
pub fn group_measures(flows: &[FlowRow]) -> Vec<Values> {
    let subject = |row: &FlowRow| (Arc::clone(&row.point), Arc::clone(&row.group), row.seed);
    measures(flows, SubjectKind::Group, subject, &OF_FLOWS)
}

/// The measures of every queue, in the order of the rows.
pub fn queue_measures(queues: &[QueueRow]) -> Vec<Values> {
    let subject = |row: &QueueRow| (Arc::clone(&row.point), Arc::clone(&row.link), row.seed);
    measures(queues, SubjectKind::Queue, subject, &OF_QUEUES)
}

fn measures<R>(
    rows: &[R],
    kind: SubjectKind,
    key: impl Fn(&R) -> (Arc<str>, Arc<str>, u64),
    measures: &[Measure<R>],
) -> Vec<Values> {
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
        let by_seed = &runs[&subject];
        measures.iter().map(move |(measure, read)| Values {
            subject: subject.clone(),
            measure,
            by_seed: by_seed.iter().filter_map(|(seed, rows)| Some((*seed, mean(rows, *read)?))).collect(),
        })
    };
    order.into_iter().flat_map(of_subject).filter(|values| !values.by_seed.is_empty()).collect()
}

/// The mean over the rows that have a value; `None` when none has.
fn mean<R>(rows: &[&R], read: fn(&R) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> =
        rows.iter().filter_map(|row| read(row)).filter(|value| value.is_finite()).collect();
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
