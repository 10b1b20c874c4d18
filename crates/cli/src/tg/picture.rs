//! The picture of `cutline tg rrul`: delay and rates over time.

use crate::table::number;
use cutline_report::chart::{Axis, Chart, Figure, PointSeries};
use cutline_traffic::responsiveness::{CourseDocument, PROBE, ResponsivenessDocument};

/// Returns delay and rates over time, with a line where the load begins.
pub fn figure(document: &ResponsivenessDocument) -> Figure {
    let panel = |title: &str, unit: &str, of: fn(&CourseDocument) -> Option<f64>| {
        let chart = Chart::new(title)
            .x(Axis::linear("Time, s").from(0.0))
            .y(Axis::linear(unit).from(0.0))
            .vline(document.idle_s, "load begins");
        document.classes.iter().fold(chart, |chart, class| {
            let points = class.intervals.iter().filter_map(|at| Some((at.from_s, of(at)?)));
            chart.plot(PointSeries::new(&class.name, points))
        })
    };
    let charts = [
        panel("Mean round-trip time of probes", "ms", |at| at.round_trip_ms),
        panel("TCP to the receiver", "Mbit/s", |at| Some(at.forward_bps * 1e-6)),
        panel("TCP from the receiver", "Mbit/s", |at| Some(at.reverse_bps * 1e-6)),
    ];
    let figure = Figure::grid(format!("Delay under load, {}", document.receiver), 1, charts);
    let probes = format!(
        "Probes are datagrams of {PROBE} payload. A round-trip time is the sum of the mean delays of both directions in an interval."
    );
    let figure = figure.note(probes);
    match (&document.grade, document.added_ms) {
        (Some(grade), Some(added)) => {
            figure.subtitle(format!("Grade {grade}: load adds up to {} ms to a round trip", number(added)))
        }
        _ => figure,
    }
}
