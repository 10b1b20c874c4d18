//! The picture of a baseline: throughput and loss by block size and load, and loss and round-trip time by requested bandwidth.

use cutline_baseline::{BaselineDocument, BaselineRow, QueueSize};
use cutline_report::chart::{Axis, Chart, Figure, PointSeries};
use std::collections::BTreeMap;

/// A point of a series: its name, x and y.
type Named = (String, f64, f64);

/// Returns a panel for each measure that the table has.
pub fn baseline(document: &BaselineDocument) -> Figure {
    let blocks =
        || Axis::log("Block, bytes", 2).ticks(document.plan.blocks.iter().map(|block| *block as f64));
    let load = || Axis::log("Load, Mbit/s", 10);
    let ratio = || Axis::linear("Requested bandwidth, % of the load with headers");
    let throughput = || Axis::linear("Received, Mbit/s").from(0.0);
    let loss = || Axis::linear("Lost, %").from(0.0);
    let rtt = || Axis::log("Round-trip time, ms", 10);
    let charts = [
        panel(
            document,
            "Throughput without a limit",
            (blocks(), throughput()),
            unlimited(|row| Some(row.throughput_bps * 1e-6)),
        ),
        panel(document, "Loss without a limit", (blocks(), loss()), unlimited(lost)),
        panel(document, "Loss of UDP at a load", (load(), loss()), at_load(lost)),
        panel(document, "Round-trip time at a load", (load(), rtt()), at_load(round_trip)),
        panel(document, "Loss by requested bandwidth", (ratio(), loss()), at_margin(lost)),
        panel(document, "Round-trip time by requested bandwidth", (ratio(), rtt()), at_margin(round_trip)),
    ];
    let charts: Vec<Chart> = charts.into_iter().flatten().collect();
    Figure::grid(format!("Baseline of {} to {}", document.host.name, document.path.receiver), 2, charts)
        .subtitle(format!(
            "{}, {} processors, packets of up to {} B",
            document.host.kernel, document.host.processors, document.path.mtu
        ))
        .note("A round-trip time is the mean delay of a block and that of a datagram of 64 B back.")
}

/// Returns a chart of the rows that `point` selects; `None` if there are none.
fn panel(
    document: &BaselineDocument,
    title: &str,
    (x, y): (Axis, Axis),
    point: impl Fn(&BaselineRow) -> Option<Named>,
) -> Option<Chart> {
    let mut series: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for (name, x, y) in document.rows.iter().filter_map(point) {
        series.entry(name).or_default().push((x, y));
    }
    if series.is_empty() {
        return None;
    }
    let chart = Chart::new(title).x(x).y(y);
    Some(series.into_iter().fold(chart, |chart, (name, mut points)| {
        points.sort_by(|one, two| one.0.total_cmp(&two.0));
        chart.plot(PointSeries::new(name, points))
    }))
}

fn lost(row: &BaselineRow) -> Option<f64> {
    row.loss_ratio.map(|ratio| ratio * 100.0)
}

fn round_trip(row: &BaselineRow) -> Option<f64> {
    row.rtt_ms.filter(|ms| *ms > 0.0)
}

fn protocol(row: &BaselineRow) -> String {
    let queue = if row.queue == QueueSize::Large { ", larger buffers" } else { "" };
    format!("{}{queue}", row.protocol.to_uppercase())
}

fn unlimited(y: fn(&BaselineRow) -> Option<f64>) -> impl Fn(&BaselineRow) -> Option<Named> {
    move |row| row.load_bps.is_none().then(|| Some((protocol(row), row.block as f64, y(row)?)))?
}

/// Returns the function from a row that was measured at a load to its curve, the load in Mbit/s, and the value.
fn at_load(y: fn(&BaselineRow) -> Option<f64>) -> impl Fn(&BaselineRow) -> Option<Named> {
    move |row| {
        let load = row.load_bps.filter(|_| row.requested_percent.is_none())?;
        Some((format!("{}, {} B", protocol(row), row.block), load as f64 * 1e-6, y(row)?))
    }
}

/// Returns the function from a row that was measured with a requested bandwidth to its curve, that bandwidth in % of the load, and the value.
fn at_margin(y: fn(&BaselineRow) -> Option<f64>) -> impl Fn(&BaselineRow) -> Option<Named> {
    move |row| {
        let (percent, load) = row.requested_percent.zip(row.load_bps)?;
        let name = format!("{}, {}", protocol(row), cutline_units::Rate::from_bps(load));
        Some((name, f64::from(percent), y(row)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_report::chart::Theme;

    #[test]
    fn only_measures_of_the_table_have_panels() {
        let row = |protocol: &str, queue, load_bps, requested_percent| BaselineRow {
            protocol: protocol.to_owned(),
            queue,
            block: 1024,
            load_bps,
            requested_percent,
            throughput_bps: 2e6,
            loss_ratio: (protocol == "udp").then_some(0.01),
            rtt_ms: Some(0.0),
            ..BaselineRow::default()
        };
        let mut document = BaselineDocument::default();
        document.plan.blocks = vec![1024, 8192];
        document.rows = vec![row("tcp", QueueSize::Default, None, None)];
        let svg = |document: &BaselineDocument| baseline(document).svg("baseline", Theme::Paper);
        // TCP has no loss.
        let found = svg(&document);
        assert!(found.contains("Throughput without a limit") && !found.contains("Loss"), "{found}");
        document.rows.push(row("udp", QueueSize::Large, None, None));
        document.rows.push(row("udp", QueueSize::Default, Some(1_000_000), None));
        document.rows.push(row("udp", QueueSize::Default, Some(1_000_000), Some(110)));
        let found = svg(&document);
        for expected in
            ["Loss without a limit", "UDP, larger buffers", "Loss of UDP at a load", "Loss by requested"]
        {
            assert!(found.contains(expected), "{expected} is in {found}");
        }
        // A round-trip time of 0 has no place on a logarithmic axis.
        assert!(!found.contains("Round-trip time at a load"), "{found}");
    }
}
