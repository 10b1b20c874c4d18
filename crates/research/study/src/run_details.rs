//! Details of the runs for the head of a report.

use crate::changes::ExperimentChanges;
use cutline_results::Summary;
use std::collections::BTreeSet;

/// Version, seeds, length, times and machines of these results, as pairs of name and value.
pub(crate) fn run_details(
    summaries: &[&Summary],
    version: &str,
    changes: &ExperimentChanges,
) -> Vec<(String, String)> {
    let runs: usize = summaries.iter().map(|summary| summary.finished.len()).sum();
    let begun = summaries.iter().map(|summary| summary.started_at.as_str()).min();
    let ended = summaries.iter().map(|summary| summary.finished_at.as_str()).max();
    [
        ("Version", version.to_owned()),
        ("Built from", each(summaries, |summary| summary.commit.clone())),
        ("Seeds", each(summaries, seeds)),
        (
            "Length of a run",
            if changes.quick { "shortened: shapes, not numbers (--quick)" } else { "in full" }.to_owned(),
        ),
        ("Changed", changes.in_words()),
        ("Runs", runs.to_string()),
        ("Begun", begun.unwrap_or_default().to_owned()),
        ("Ended", ended.unwrap_or_default().to_owned()),
        (
            "Processor",
            each(summaries, |summary| format!("{}, {} cores", summary.host.cpu, summary.host.cores)),
        ),
        ("Kernel", each(summaries, |summary| summary.host.kernel.clone())),
    ]
    .into_iter()
    .filter(|(_, value)| !value.is_empty())
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

/// The different values of a detail in the summaries, each once.
fn each(summaries: &[&Summary], detail: impl Fn(&Summary) -> String) -> String {
    let values: BTreeSet<String> = summaries.iter().map(|summary| detail(summary)).collect();
    values.into_iter().collect::<Vec<_>>().join("; ")
}

fn seeds(summary: &Summary) -> String {
    match (summary.seeds.first(), summary.seeds.last()) {
        (Some(first), Some(last)) if first != last => format!("{first} to {last}"),
        (first, _) => first.map_or_else(String::new, ToString::to_string),
    }
}
