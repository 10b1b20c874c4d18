//! What `cutline run` prints: a line per point and group, and one per point and queue.

use super::outcome::Outcome;
use crate::table::{Table, estimate};
use cutline_results::{Subject, Values, group_measures, queue_measures};
use cutline_scenario::SweepPoint;
use std::fmt::Write as _;

/// A column: its headline, the measure, and what the measure is multiplied by.
type Column = (&'static str, &'static str, f64);

const OF_GROUPS: [Column; 7] = [
    ("goodput kbit/s", "goodput_bps", 1e-3),
    ("loss %", "loss_ratio", 100.0),
    ("queuing ms: mean", "queuing_mean_ms", 1.0),
    ("p50", "queuing_p50_ms", 1.0),
    ("p99", "queuing_p99_ms", 1.0),
    ("one-way ms", "one_way_mean_ms", 1.0),
    ("Q", "q", 1.0),
];

const OF_QUEUES: [Column; 6] = [
    ("utilisation %", "utilisation", 100.0),
    ("backlog packets", "backlog_mean_packets", 1.0),
    ("delay ms", "delay_mean_ms", 1.0),
    ("drops %", "drop_ratio", 100.0),
    ("marks %", "mark_ratio", 100.0),
    ("p %", "probability_mean", 100.0),
];

/// The tables, and where the results are.
pub fn render(points: &[SweepPoint], outcome: &Outcome) -> String {
    let scenario = &points[0].scenario;
    let title = scenario.title.as_deref().unwrap_or(&scenario.name);
    let n = scenario.seeds;
    let interval = if n > 1 {
        format!("means over {n} seeds ± half of the 95 % interval")
    } else {
        "one seed".to_owned()
    };
    let mut text = format!("{title}\n{interval}; flows: means over each group\n");
    let groups = table(["point", "group"], &OF_GROUPS, &group_measures(&outcome.flows));
    let queues = table(["point", "queue"], &OF_QUEUES, &queue_measures(&outcome.queues));
    let _ = write!(text, "\n{groups}\n{queues}");
    if let Some(folder) = &outcome.folder {
        let _ = write!(text, "\nstored in {}\n", folder.display());
    }
    text
}

fn table(head: [&str; 2], columns: &[Column], found: &[Values]) -> String {
    let titles: Vec<&str> = head.into_iter().chain(columns.iter().map(|(title, ..)| *title)).collect();
    let mut table = Table::new(2, &titles);
    let mut subjects: Vec<&Subject> = found.iter().map(|values| &values.subject).collect();
    subjects.dedup();
    for subject in subjects {
        let cell = |(_, measure, scale): &Column| {
            let of = |values: &&Values| values.subject == *subject && values.measure == *measure;
            found.iter().find(of).map_or_else(|| "-".to_owned(), |values| estimate(&values.values(), *scale))
        };
        let words = [subject.point.to_string(), subject.name.to_string()];
        table.add(words.into_iter().chain(columns.iter().map(cell)).collect());
    }
    table.render()
}
