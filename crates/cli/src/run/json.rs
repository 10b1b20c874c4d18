//! The JSON document of `cutline run --json`: the rows of the tables, grouped by run.

use super::outcome::Outcome;
use cutline_results::{DistributionRow, FlowRow, QueueRow, RowDocument, RunDocument, RunsDocument, groups};
use cutline_scenario::SweepPoint;
use std::collections::BTreeMap;

/// Returns name, version, seeds, the folder of the results, and every run with its flows and queues.
pub fn document<'r>(points: &[SweepPoint], outcome: &'r Outcome) -> RunsDocument<'r> {
    let scenario = &points[0].scenario;
    RunsDocument {
        name: scenario.name.clone(),
        version: outcome.version.clone(),
        seeds: scenario.all_seeds().collect(),
        results_dir: outcome.folder.clone(),
        runs: runs(points, outcome),
    }
}

fn runs<'r>(points: &[SweepPoint], outcome: &'r Outcome) -> Vec<RunDocument<'r>> {
    let mut flows: BTreeMap<(&str, u64), Vec<&FlowRow>> = BTreeMap::new();
    for row in &outcome.flows {
        flows.entry((&row.point, row.seed)).or_default().push(row);
    }
    let mut queues: BTreeMap<(&str, u64), Vec<&QueueRow>> = BTreeMap::new();
    for row in &outcome.queues {
        queues.entry((&row.point, row.seed)).or_default().push(row);
    }
    let mut distributions: BTreeMap<(&str, u64), Vec<&DistributionRow>> = BTreeMap::new();
    for row in &outcome.distributions {
        distributions.entry((&row.point, row.seed)).or_default().push(row);
    }
    let run = |point: &SweepPoint, seed: u64| {
        let label = point.label();
        let (flows, queues) = (flows.get(&(&*label, seed))?, queues.get(&(&*label, seed))?);
        let distributions = distributions.get(&(&*label, seed)).map_or(&[][..], Vec::as_slice);
        let timing = outcome.timing.iter().find(|row| *row.point == *label && row.seed == seed);
        Some(RunDocument {
            run: flows.first()?.run.to_string(),
            settings: point.settings.iter().cloned().collect(),
            seed,
            flows: flows.iter().copied().map(RowDocument).collect(),
            groups: groups(flows, distributions),
            queues: queues.iter().copied().map(RowDocument).collect(),
            timing: timing.map(RowDocument),
            point: label,
        })
    };
    let runs_of = |point: &SweepPoint| {
        point.scenario.all_seeds().filter_map(|seed| run(point, seed)).collect::<Vec<_>>()
    };
    points.iter().flat_map(runs_of).collect()
}
