//! Measures of applications over sockets: one value for each seed.

use crate::data::Data;
use crate::measure::Measure;
use cutline_results::{FlowRow, SeriesRow};
use cutline_scenario::BASE;

/// The numbers of bulk transfers.
pub(super) const LOADS: [u32; 5] = [25, 50, 100, 200, 400];
/// The rates of calls.
pub(crate) const CODECS: [&str; 2] = ["64 kbit/s", "128 kbit/s"];

/// From when until when the link is narrow, s.
pub(super) const NARROW: (f64, f64) = (60.0, 120.0);
/// The link's rate, kbit/s, outside of that time and within it.
pub(crate) const LINK_KBPS: [f64; 2] = [2000.0, 800.0];
/// The longest acceptable delay of the video, ms.
pub(crate) const MAX_DELAY_MS: f64 = 400.0;
/// The largest acceptable loss.
const MAX_LOSS: f64 = 0.01;
/// The best rate of the video, messages/s.
const BEST: f64 = 156.25;

/// A measure of the call at this rate among so many transfers, by seed.
pub(crate) fn call_values(data: &Data, load: u32, codec: &str, measure: Measure) -> Vec<f64> {
    data.by_seed(&[("flow.bulk.count", &load.to_string()), ("flow.call.app.rate", codec)], "call", measure)
}

/// The quality of the call, by seed.
pub(super) fn call_quality(data: &Data, load: u32, codec: &str) -> Vec<f64> {
    call_values(data, load, codec, |row| row.q)
}

/// The one-way delay of a flow, ms.
pub(crate) fn one_way_ms(row: &FlowRow) -> Option<f64> {
    row.one_way_mean_ms
}

/// The video's intervals, by seed.
pub(crate) struct Video<'d> {
    seeds: Vec<Vec<&'d SeriesRow>>,
    /// From when until when the link is narrow, s.
    narrow: (f64, f64),
}

impl<'d> Video<'d> {
    pub(crate) fn new(data: &'d Data, narrow: (f64, f64)) -> Self {
        let seeds = data.flow_intervals(BASE, "video").into_iter();
        Self { seeds: seeds.filter_map(|flows| flows.into_iter().next()).collect(), narrow }
    }

    /// The intervals of the first seed.
    pub(crate) fn first(&self) -> &[&'d SeriesRow] {
        self.seeds.first().map_or(&[], Vec::as_slice)
    }

    /// The time from the link's shrinking to the first interval in which no more is sent than the link carries, s.
    pub(crate) fn time_to_move(&self) -> Vec<f64> {
        let carried = |row: &SeriesRow| row.sent_bps <= LINK_KBPS[1] * 1e3;
        self.first_after(self.narrow.0, carried)
    }

    /// The time from the link's recovery to the first interval at the best rate, s. Intervals begin between messages, so one
    /// message may be missing.
    pub(crate) fn time_to_return(&self) -> Vec<f64> {
        let is_best = |row: &SeriesRow| row.packets_sent as f64 + 1.0 >= (BEST * seconds(row)).floor();
        self.first_after(self.narrow.1, is_best)
    }

    /// The share of the intervals of the narrow time that are within the limits of delay and loss, %.
    pub(crate) fn within(&self) -> Vec<f64> {
        let is_within = |row: &&&SeriesRow| {
            let is_in_time = row.one_way_mean_ms.is_some_and(|delay| delay <= MAX_DELAY_MS);
            is_in_time && row.packets_dropped as f64 <= MAX_LOSS * row.packets_sent as f64
        };
        self.narrow(|rows| 100.0 * rows.iter().filter(is_within).count() as f64 / rows.len() as f64)
    }

    /// The share of the messages of the narrow time that are lost, %.
    pub(crate) fn lost(&self) -> Vec<f64> {
        let sum = |rows: &[&SeriesRow], of: fn(&SeriesRow) -> u64| {
            rows.iter().map(|row| of(row)).sum::<u64>() as f64
        };
        self.narrow(|rows| 100.0 * sum(rows, |row| row.packets_dropped) / sum(rows, |row| row.packets_sent))
    }

    /// What is delivered in the narrow time, kbit/s.
    pub(crate) fn delivered_kbps(&self) -> Vec<f64> {
        self.mean_of(self.narrow, |row| Some(row.goodput_bps / 1e3))
    }

    /// The mean of a measure over the intervals of a time, of those that have a value.
    pub(crate) fn mean_of(&self, time: (f64, f64), measure: fn(&SeriesRow) -> Option<f64>) -> Vec<f64> {
        self.within_time(time, |rows| {
            let values: Vec<f64> = rows.iter().filter_map(|row| measure(row)).collect();
            values.iter().sum::<f64>() / values.len() as f64
        })
    }

    fn narrow(&self, measure: impl Fn(&[&SeriesRow]) -> f64) -> Vec<f64> {
        self.within_time(self.narrow, measure)
    }

    fn within_time(&self, (from, until): (f64, f64), measure: impl Fn(&[&SeriesRow]) -> f64) -> Vec<f64> {
        let is_in_time = |row: &&&SeriesRow| from <= row.start_s && row.end_s <= until;
        let of_seed =
            |rows: &Vec<&SeriesRow>| measure(&rows.iter().filter(is_in_time).copied().collect::<Vec<_>>());
        self.seeds.iter().map(of_seed).collect()
    }

    /// The time from `since` to the end of the first interval after it of which something is so; infinite if there is none.
    fn first_after(&self, since: f64, is_so: impl Fn(&SeriesRow) -> bool) -> Vec<f64> {
        let first = |rows: &Vec<&SeriesRow>| {
            let found = rows.iter().find(|row| row.start_s >= since && is_so(row));
            found.map_or(f64::INFINITY, |row| row.end_s - since)
        };
        self.seeds.iter().map(first).collect()
    }
}

fn seconds(row: &SeriesRow) -> f64 {
    row.end_s - row.start_s
}
