//! The charts of each figure.

use super::measure::{CODECS, LINK_KBPS, LOADS, MAX_DELAY_MS, NARROW, Video, call_values};
use crate::data::{Data, mean};
use crate::measure::{Measure, call_voice, lost};
use cutline_report::chart::{Axis, Chart, Line, Point as Dot};
use cutline_results::SeriesRow;

/// Rates and delays of the first seed over time.
pub(super) fn video(qos: &Data, plain: &Data) -> Vec<Chart> {
    let [qos, plain] = [qos, plain].map(|data| Video::new(data, NARROW));
    let time = || Axis::linear("Time, s");
    let steps = |name: &str, video: &Video<'_>, of: fn(&SeriesRow) -> Option<f64>| {
        let dots = video.first().iter().filter_map(|row| Some((row.end_s, of(row)?)));
        Line::new(name, dots.collect::<Vec<_>>())
    };
    let [wide, narrow] = LINK_KBPS;
    let link = Line::steps("the link", [(0.0, wide), (NARROW.0, narrow), (NARROW.1, wide), (240.0, wide)]);
    let sent = |row: &SeriesRow| Some(row.sent_bps / 1e3);
    let delivered = |row: &SeriesRow| Some(row.goodput_bps / 1e3);
    let delay = |row: &SeriesRow| row.one_way_mean_ms;
    let rates = Chart::new("Sent, with all headers, and delivered; seed 1").x(time());
    let rates = rates.y(Axis::linear("kbit/s").from(0.0));
    let delays = Chart::new("One-way delay, mean of each half second; seed 1").x(time());
    let delays =
        delays.y(Axis::linear("ms").from(0.0)).hline(MAX_DELAY_MS, "the limit: above it is a violation");
    vec![
        rates
            .plot(link)
            .plot(steps("QoS socket, sent", &qos, sent))
            .plot(steps("QoS socket, delivered", &qos, delivered))
            .plot(steps("plain socket, delivered", &plain, delivered)),
        delays.plot(steps("QoS socket", &qos, delay)).plot(steps("plain socket", &plain, delay)),
    ]
}

/// Quality by load, a chart for each rate of the call.
pub(super) fn calls(qos: &Data, plain: &Data) -> Vec<Chart> {
    by_load(qos, plain, "Quality Q(d, T)", |row| row.q)
}

/// The E-model's quality by load, a chart for each rate of the call.
pub(super) fn voices(qos: &Data, plain: &Data) -> Vec<Chart> {
    by_load(qos, plain, "Quality by the E-model", call_voice)
}

/// Loss by load, a chart for each rate of the call.
pub(super) fn losses(qos: &Data, plain: &Data) -> Vec<Chart> {
    by_load(qos, plain, "Messages lost, %", lost)
}

fn by_load(qos: &Data, plain: &Data, title: &str, measure: Measure) -> Vec<Chart> {
    let line = |name: &str, data: &Data, codec: &str| {
        let dot = |load: u32| {
            Some(Dot::from_estimate(f64::from(load), &mean(&call_values(data, load, codec, measure))?))
        };
        Line::new(name, LOADS.iter().filter_map(|load| dot(*load)).collect::<Vec<_>>()).markers()
    };
    let chart = |codec: &&str| {
        let axis = Axis::log("Bulk transfers", 2).ticks(LOADS.map(f64::from));
        let chart = Chart::new(format!("A call of {codec}")).x(axis).y(Axis::linear(title));
        chart.plot(line("QoS socket", qos, codec)).plot(line("plain socket", plain, codec))
    };
    CODECS.iter().map(chart).collect()
}
