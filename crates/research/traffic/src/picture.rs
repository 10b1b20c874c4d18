//! The picture of delay under load.

use crate::responsiveness::{CourseDocument, PROBE, ResponsivenessDocument};
use cutline_report::chart::{Axis, Chart, Figure, PointSeries};
use cutline_report::stats::significant;

/// Returns delay and rates over time, with a line where the load begins.
pub fn delay_under_load(document: &ResponsivenessDocument) -> Figure {
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
        (Some(grade), Some(added)) => figure
            .subtitle(format!("Grade {grade}: load adds up to {} ms to a round trip", significant(added, 4))),
        _ => figure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Clock;
    use cutline_report::chart::Theme;

    #[test]
    fn a_subtitle_has_the_grade_if_there_is_one() {
        let mut document = ResponsivenessDocument {
            receiver: "192.0.2.1:5203".to_owned(),
            seed: 1,
            idle_s: 5.0,
            loaded_s: 30.0,
            clock: Clock::default(),
            classes: Vec::new(),
            added_ms: None,
            round_trips_per_minute: None,
            grade: None,
            error: None,
        };
        let svg = |document: &ResponsivenessDocument| delay_under_load(document).svg("rrul", Theme::Paper);
        let ungraded = svg(&document);
        assert!(ungraded.contains("192.0.2.1:5203") && !ungraded.contains("Grade"), "{ungraded}");
        (document.grade, document.added_ms) = (Some("B".to_owned()), Some(45.678_9));
        let graded = svg(&document);
        assert!(graded.contains("Grade B: load adds up to 45.68 ms"), "{graded}");
    }
}
