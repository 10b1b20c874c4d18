//! The charts of each figure.

use super::measure::{END_S, LOADS, NARROW, PLAIN_VIDEO, QOS_VIDEO, SIMULATED_VIDEO, call_intervals};
use crate::data::{Data, mean};
use crate::qos::measure::{CODECS, LINK_KBPS, MAX_DELAY_MS, Video, call_values};
use crate::study::ExperimentData;
use crate::study::results_of;
use cutline_report::chart::{Axis, Chart, Line, Point as Dot};
use cutline_results::SeriesRow;

/// The load at which hints are drawn.
const SHOWN_LOAD: u32 = 100;

/// Quality by load, a chart for each rate of the call.
pub(super) fn calls(stored: &[ExperimentData<'_>]) -> Vec<Chart> {
    let line = |codec: &str, (experiment, data): &ExperimentData<'_>| {
        let dot = |load: u32| {
            let values = call_values(data, load, codec, |row| row.q);
            Some(Dot::from_estimate(f64::from(load), &mean(&values)?))
        };
        Line::new(experiment.label, LOADS.iter().filter_map(|load| dot(*load)).collect::<Vec<_>>()).markers()
    };
    let chart = |codec: &&str| {
        let axis = Axis::log("Bulk transfers", 2).ticks(LOADS.map(f64::from));
        let chart = Chart::new(format!("A call of {codec}")).x(axis).y(Axis::linear("Quality Q(d, T)"));
        stored.iter().fold(chart, |chart, one| chart.plot(line(codec, one)))
    };
    CODECS.iter().map(chart).collect()
}

/// Hints over time, a chart for each rate of the call and each platform.
pub(super) fn hints(stored: &[ExperimentData<'_>]) -> Vec<Chart> {
    let adapting: Vec<&ExperimentData<'_>> =
        stored.iter().filter(|(experiment, _)| !experiment.id.ends_with("plain")).collect();
    let runs = |codec: &str, data: &Data| -> Vec<Line> {
        let run = |(seed, rows): (u32, Vec<&SeriesRow>)| {
            let dots = rows.iter().filter_map(|row| Some((row.end_s, row.hint? as f64)));
            Line::steps(format!("seed {seed}"), dots.collect::<Vec<_>>())
        };
        (1..).zip(call_intervals(data, SHOWN_LOAD, codec)).take(3).map(run).collect()
    };
    let chart = |(codec, (experiment, data)): (&str, &ExperimentData<'_>)| {
        let chart = Chart::new(format!("{codec} among {SHOWN_LOAD}: {}", experiment.label));
        let chart = chart.x(Axis::linear("Time, s")).y(Axis::linear("Delay hint").range(1.0, 16.0));
        runs(codec, data).into_iter().fold(chart, Chart::plot)
    };
    let all = CODECS.iter().flat_map(|codec| adapting.iter().map(move |one| (*codec, *one)));
    all.map(chart).collect()
}

fn steps(name: &str, video: &Video<'_>, of: Value) -> Line {
    let dots = video.first().iter().filter_map(|row| Some((row.end_s, of(row)?)));
    Line::new(name, dots.collect::<Vec<_>>())
}

/// A value of an interval; `None` if nothing was measured.
type Value = fn(&SeriesRow) -> Option<f64>;

const SENT: Value = |row| Some(row.sent_bps / 1e3);
const DELIVERED: Value = |row| Some(row.goodput_bps / 1e3);
const DELAY: Value = |row| row.one_way_mean_ms;

/// Empty charts of rates and delays over time, the first one with the link.
fn empty() -> (Chart, Chart) {
    let time = || Axis::linear("Time, s");
    let [wide, narrow] = LINK_KBPS;
    let link = Line::steps("the link", [(0.0, wide), (NARROW.0, narrow), (NARROW.1, wide), (END_S, wide)]);
    let rates = Chart::new("Sent, with all headers, and delivered; seed 1").x(time());
    let delays = Chart::new("One-way delay, mean of each half second; seed 1").x(time());
    (
        rates.y(Axis::linear("kbit/s").from(0.0)).plot(link),
        delays.y(Axis::linear("ms").from(0.0)).hline(MAX_DELAY_MS, "the limit: above it is a violation"),
    )
}

/// Rates and delays of the first seed over time, over a QoS socket and over a plain one.
pub(super) fn video(stored: &[ExperimentData<'_>]) -> Vec<Chart> {
    let (rates, delays) = empty();
    let of = |id| results_of(stored, id).map(|data| Video::new(data, NARROW));
    let (Some(qos), Some(plain)) = (of(QOS_VIDEO), of(PLAIN_VIDEO)) else { return Vec::new() };
    vec![
        rates
            .plot(steps("QoS socket, sent", &qos, SENT))
            .plot(steps("QoS socket, delivered", &qos, DELIVERED))
            .plot(steps("plain socket, delivered", &plain, DELIVERED)),
        delays.plot(steps("QoS socket", &qos, DELAY)).plot(steps("plain socket", &plain, DELAY)),
    ]
}

/// Rates and delays of the first seed over time, of a real socket and of an agent.
pub(super) fn both_videos(stored: &[ExperimentData<'_>]) -> Vec<Chart> {
    let (rates, delays) = empty();
    let of = |id| results_of(stored, id).map(|data| Video::new(data, NARROW));
    let (Some(lab), Some(simulated)) = (of(QOS_VIDEO), of(SIMULATED_VIDEO)) else { return Vec::new() };
    vec![
        rates.plot(steps("laboratory, sent", &lab, SENT)).plot(steps("simulated, sent", &simulated, SENT)),
        delays.plot(steps("laboratory", &lab, DELAY)).plot(steps("simulated", &simulated, DELAY)),
    ]
}
