//! The JSON document of `cutline run --json`: the rows of the tables, run by run, each column by its name.

use super::outcome::Outcome;
use cutline_results::{FlowRow, QueueRow, Row as _};
use cutline_scenario::SweepPoint;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Name, version, seeds, where the results are, and every run with its flows and queues.
pub fn document(points: &[SweepPoint], outcome: &Outcome) -> Value {
    let scenario = &points[0].scenario;
    json!({
        "name": scenario.name,
        "version": outcome.version,
        "seeds": scenario.all_seeds().collect::<Vec<_>>(),
        "results_dir": outcome.folder,
        "runs": runs(points, outcome),
    })
}

fn runs(points: &[SweepPoint], outcome: &Outcome) -> Vec<Value> {
    let mut flows: BTreeMap<(&str, u64), Vec<&FlowRow>> = BTreeMap::new();
    for row in &outcome.flows {
        flows.entry((&row.point, row.seed)).or_default().push(row);
    }
    let mut queues: BTreeMap<(&str, u64), Vec<&QueueRow>> = BTreeMap::new();
    for row in &outcome.queues {
        queues.entry((&row.point, row.seed)).or_default().push(row);
    }
    let run = |point: &SweepPoint, seed: u64| {
        let label = point.label();
        let (flows, queues) = (flows.get(&(&*label, seed))?, queues.get(&(&*label, seed))?);
        let mut document = json!({
            "point": label,
            "settings": point.settings.iter().cloned().collect::<BTreeMap<_, _>>(),
            "seed": seed,
            "run": &*flows.first()?.run,
            "flows": flows.iter().map(|row| row.json()).collect::<Vec<_>>(),
            "queues": queues.iter().map(|row| row.json()).collect::<Vec<_>>(),
        });
        if let Some(row) = outcome.timing.iter().find(|row| *row.point == *label && row.seed == seed) {
            document["timing"] = row.json();
        }
        Some(document)
    };
    let of_point = |point: &SweepPoint| {
        point.scenario.all_seeds().filter_map(|seed| run(point, seed)).collect::<Vec<_>>()
    };
    points.iter().flat_map(of_point).collect()
}
