//! The charts of a case: a bar for every queue.

use super::measure::{Case, Measure, QUEUES};
use cutline_report::chart::{Axis, Bars, Chart, Point as Dot};

/// Quality, loss, delay and throughput.
pub(super) fn all(case: &Case<'_>) -> Vec<Chart> {
    let name = case.name;
    let quality: [(&str, Measure); 2] = [("TSQ's quality", Measure::Quality), ("E-model", Measure::EModel)];
    let loss: [(&str, Measure); 2] = [(name, Measure::Loss), ("others", Measure::OthersLoss)];
    let delay: [(&str, Measure); 2] = [("median", Measure::DelayP50), ("99th percentile", Measure::DelayP99)];
    let throughput: [(&str, Measure); 2] = [(name, Measure::Goodput), ("others", Measure::OthersGoodput)];
    [
        chart(case, &format!("Quality of {name}"), "Quality", &quality),
        chart(case, "Packets lost", "Packets lost, %", &loss),
        chart(case, &format!("Queuing delay of {name}"), "Queuing delay, ms", &delay),
        chart(case, "Throughput of a flow", "Throughput, kbit/s", &throughput),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A chart of several measures; `None` if there are no values.
fn chart(case: &Case<'_>, title: &str, y: &str, series: &[(&str, Measure)]) -> Option<Chart> {
    let axis = Axis::categories("", QUEUES.map(|(_, name)| name));
    let empty = Chart::new(title).x(axis).y(Axis::linear(y).from(0.0));
    let drawn = series.iter().filter_map(|(name, measure)| Some(Bars::new(*name, bars(case, *measure)?)));
    let drawn: Vec<Bars> = drawn.collect();
    (!drawn.is_empty()).then(|| drawn.into_iter().fold(empty, Chart::plot))
}

fn bars(case: &Case<'_>, measure: Measure) -> Option<Vec<Dot>> {
    let dot = |(x, (queue, _)): (usize, &(&str, &str))| {
        Some(Dot::from_estimate(x as f64, &case.mean(measure, queue)?))
    };
    let dots: Vec<Dot> = QUEUES.iter().enumerate().filter_map(dot).collect();
    (!dots.is_empty()).then_some(dots)
}
