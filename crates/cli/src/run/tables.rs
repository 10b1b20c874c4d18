//! The output of `cutline run`: one line per point and group, and one per point and queue.

use super::outcome::Outcome;
use crate::table::{Table, estimate};
use cutline_analysis::glance;
use cutline_results::{FlowRow, Heading, QueueRow, Row, Subject, Values, group_measures, queue_measures};
use cutline_scenario::SweepPoint;
use cutline_text::Printable;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Returns the tables and the folder of the results as text.
pub fn render(points: &[SweepPoint], outcome: &Outcome) -> String {
    let scenario = &points[0].scenario;
    let title = scenario.title.as_deref().unwrap_or(&scenario.name);
    let n = scenario.seeds;
    let interval = if n > 1 {
        format!("means over {n} seeds ± half of the 95 % interval")
    } else {
        "one seed".to_owned()
    };
    let mut text = format!("{}\n{interval}; flows: means over each group\n", Printable(title));
    let of_groups = group_measures(&outcome.flows);
    let groups = table::<FlowRow>(["point", "group"], &of_groups);
    let queues = table::<QueueRow>(["point", "queue"], &queue_measures(&outcome.queues));
    let _ = write!(text, "\n{groups}\n{queues}");
    let labelled: BTreeMap<String, &SweepPoint> = points.iter().map(|point| (point.label(), point)).collect();
    let settings = |label: &str| labelled.get(label).map_or(&[][..], |point| &point.settings);
    let glance = glance::sentences(&of_groups, &settings);
    if !glance.is_empty() {
        let _ = write!(text, "\nAt a glance, by the quality Q (docs/glossary.md):\n{glance}");
    }
    if let Some(folder) = &outcome.folder {
        let folder = Printable(folder.display());
        let _ = write!(text, "\nstored in {folder}\n");
        if cfg!(feature = "charts") {
            let _ = writeln!(text, "`cutline plot {folder} --open` draws them");
        }
    }
    text
}

/// Returns one line per subject with the columns that have a heading.
fn table<R: Row>(words: [&str; 2], found: &[Values]) -> String {
    let columns = R::columns();
    let shown: Vec<_> =
        columns.iter().filter_map(|column| Some((column.about.name, column.about.heading?))).collect();
    let titles: Vec<&str> = words.into_iter().chain(shown.iter().map(|(_, heading)| heading.title)).collect();
    let mut table = Table::new(2, &titles);
    let mut subjects: Vec<&Subject> = found.iter().map(|values| &values.subject).collect();
    subjects.dedup();
    for subject in subjects {
        let cell = |(measure, heading): &(&str, Heading)| {
            let matches = |values: &&Values| values.subject == *subject && values.measure == *measure;
            let values = found.iter().find(matches);
            values.map_or_else(|| "-".to_owned(), |values| estimate(&values.values(), heading.scale))
        };
        let words = [subject.point.to_string(), subject.name.to_string()];
        table.add(words.into_iter().chain(shown.iter().map(cell)).collect());
    }
    table.render()
}
