//! Distributions of the packets' delays.

use super::measure::label;
use super::panels::{Dot, Panel, Parts, Series, Shape};
use super::source::{Groups, Source, add_name, constant_keys, leads, of_group, of_results};
use crate::{AnalysisError, Selection};
use cutline_report::stats::Cdf;
use cutline_results::{DistributionRow, FlowRow};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The share of values that a chart shows: a few late packets would press everything else to its edge.
const SHOWN: f64 = 0.999;

/// Returns the values that a distribution counts.
fn counted(quantity: &str) -> &'static str {
    if quantity.starts_with("transfer_") { "transfers" } else { "packets" }
}

/// One curve for each of the results, points and groups: the packets of all flows and seeds together.
pub fn panel(sources: &[Source<'_>], selection: &Selection, quantity: &str) -> Result<Panel, AnalysisError> {
    let mut curves: Vec<(Parts, Cdf)> = Vec::new();
    let (constant, leads) = (constant_keys(sources), leads(sources));
    let mut stored: BTreeSet<Arc<str>> = BTreeSet::new();
    for source in sources {
        let rows = source.read::<DistributionRow>()?;
        let Groups { mut names, of_flow } = Groups::of(&source.read::<FlowRow>()?);
        stored.extend(rows.iter().map(|row| Arc::clone(&row.quantity)));
        // Without a choice, flows only: a queue's delay is that of all flows together.
        if selection.chooses_groups() {
            for row in rows.iter().filter(|row| &*row.subject_kind == "queue") {
                add_name(&mut names, &row.subject);
            }
        }
        for point in &source.points {
            for name in names.iter().filter(|name| selection.has_group(name)) {
                let is_of = |row: &&DistributionRow| {
                    let subject = of_flow.get(&row.subject).filter(|_| &*row.subject_kind == "flow");
                    row.point == point.label
                        && &*row.quantity == quantity
                        && subject.unwrap_or(&row.subject) == name
                };
                let counts = rows.iter().filter(is_of).map(|row| (row.high, row.count));
                if let Some(cdf) = Cdf::from_counts(counts) {
                    let mut parts = [of_results(sources, source), point.without(&constant, &leads)].concat();
                    parts.push(of_group(name));
                    curves.push((parts, cdf));
                }
            }
        }
    }
    if curves.is_empty() {
        let there: Vec<&str> = stored.iter().map(|name| &**name).collect();
        let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
        return Err(AnalysisError::Choice {
            option: "",
            message: format!(
                "there is no distribution of {quantity} of these groups; there are distributions of: {there}\n\
                 a scenario's flows store theirs with distributions = \"flow\" or \"group\""
            ),
        });
    }
    let label = label(quantity);
    let end = curves.iter().map(|(_, cdf)| cdf.quantile(SHOWN) * label.scale).fold(0.0, f64::max);
    let series = curves.into_iter().map(|(parts, cdf)| {
        let points = cdf.points().into_iter().map(|(x, y)| Dot::new(x * label.scale, y)).collect();
        Series::new(parts, "", points)
    });
    Ok(Panel {
        title: format!("{}: distribution over {}", label.name, counted(quantity)),
        measure: format!("distribution of {quantity}"),
        x: label.text(),
        y: format!("Share of the {}", counted(quantity)),
        names: None,
        from: Some(0.0),
        to: (end > 0.0).then_some(end),
        shape: Shape::Steps,
        series: series.collect(),
    })
}
