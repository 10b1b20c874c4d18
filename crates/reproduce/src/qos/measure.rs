//! Measures of applications over sockets: one value for each seed.

use crate::data::Data;
use crate::measure::Measure;
use cutline_results::{FlowRow, SeriesRow};
use cutline_scenario::BASE;

/// The numbers of bulk transfers.
pub(super) const LOADS: [u32; 5] = [25, 50, 100, 200, 400];
/// The rates of calls.
pub(super) const CODECS: [&str; 2] = ["64 kbit/s", "128 kbit/s"];

/// From when until when the link is narrow, s.
pub(super) const NARROW: (f64, f64) = (60.0, 120.0);
/// The link's rate, kbit/s, outside of that time and within it.
pub(super) const LINK_KBPS: [f64; 2] = [2000.0, 800.0];
/// The longest acceptable delay of the video, ms.
pub(super) const MAX_DELAY_MS: f64 = 400.0;
/// The largest acceptable loss.
const MAX_LOSS: f64 = 0.01;
/// The best rate of the video, messages/s.
const BEST: f64 = 156.25;

/// A measure of the call at this rate among so many transfers, by seed.
pub(super) fn call_values(data: &Data, load: u32, codec: &str, measure: Measure) -> Vec<f64> {
    data.by_seed(&[("flow.bulk.count", &load.to_string()), ("flow.call.app.rate", codec)], "call", measure)
}

/// The quality of the call, by seed.
pub(super) fn call_quality(data: &Data, load: u32, codec: &str) -> Vec<f64> {
    call_values(data, load, codec, |row| row.q)
}

/// The one-way delay of a flow, ms.
pub(super) fn one_way_ms(row: &FlowRow) -> Option<f64> {
    row.one_way_mean_ms
}

/// The video's intervals, by seed.
pub(super) struct Video<'d> {
    seeds: Vec<Vec<&'d SeriesRow>>,
}

impl<'d> Video<'d> {
    pub(super) fn new(data: &'d Data) -> Self {
        let seeds = data.flow_intervals(BASE, "video").into_iter();
        Self { seeds: seeds.filter_map(|flows| flows.into_iter().next()).collect() }
    }

    /// The intervals of the first seed.
    pub(super) fn first(&self) -> &[&'d SeriesRow] {
        self.seeds.first().map_or(&[], Vec::as_slice)
    }

    /// The time from the link's shrinking to the first interval in which no more is sent than the link carries, s.
    pub(super) fn time_to_move(&self) -> Vec<f64> {
        let carried = |row: &SeriesRow| row.sent_bps <= LINK_KBPS[1] * 1e3;
        self.first_after(NARROW.0, carried)
    }

    /// The time from the link's recovery to the first interval at the best rate, s. Intervals begin between messages, so one
    /// message may be missing.
    pub(super) fn time_to_return(&self) -> Vec<f64> {
        let is_best = |row: &SeriesRow| row.packets_sent as f64 + 1.0 >= (BEST * seconds(row)).floor();
        self.first_after(NARROW.1, is_best)
    }

    /// The share of the intervals of the narrow time that are within the limits of delay and loss, %.
    pub(super) fn within(&self) -> Vec<f64> {
        let is_within = |row: &&&SeriesRow| {
            let is_in_time = row.one_way_mean_ms.is_some_and(|delay| delay <= MAX_DELAY_MS);
            is_in_time && row.packets_dropped as f64 <= MAX_LOSS * row.packets_sent as f64
        };
        self.narrow(|rows| 100.0 * rows.iter().filter(is_within).count() as f64 / rows.len() as f64)
    }

    /// The share of the messages of the narrow time that are lost, %.
    pub(super) fn lost(&self) -> Vec<f64> {
        let sum = |rows: &[&SeriesRow], of: fn(&SeriesRow) -> u64| {
            rows.iter().map(|row| of(row)).sum::<u64>() as f64
        };
        self.narrow(|rows| 100.0 * sum(rows, |row| row.packets_dropped) / sum(rows, |row| row.packets_sent))
    }

    /// What is delivered in the narrow time, kbit/s.
    pub(super) fn delivered_kbps(&self) -> Vec<f64> {
        self.narrow(|rows| rows.iter().map(|row| row.goodput_bps / 1e3).sum::<f64>() / rows.len() as f64)
    }

    fn narrow(&self, measure: impl Fn(&[&SeriesRow]) -> f64) -> Vec<f64> {
        let is_narrow = |row: &&&SeriesRow| NARROW.0 <= row.start_s && row.end_s <= NARROW.1;
        let of_seed =
            |rows: &Vec<&SeriesRow>| measure(&rows.iter().filter(is_narrow).copied().collect::<Vec<_>>());
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
