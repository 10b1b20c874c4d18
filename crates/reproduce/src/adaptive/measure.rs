//! What is measured of hints that adapt: one value for each seed, or the course of a mean over time.

use crate::data::{Data, Point, mean};
use cutline_quality::{Class, Combination};
use cutline_report::stats::Estimate;
use cutline_results::{FlowRow, SeriesRow};
use cutline_units::{Duration, Rate};

/// The hints that are tried in an experiment, fixed ones and beginnings of those that adapt.
#[derive(Clone, Copy)]
pub(super) struct Tried {
    pub(super) fixed: &'static [u16],
    pub(super) starts: &'static [u16],
}

/// The point at which audio has a fixed hint.
pub(super) fn fixed(data: &Data, hint: u16) -> Option<&Point> {
    data.point(&[("flow.audio.hint", f64::from(hint))])
}

/// The point at which audio's hint adapts from a beginning.
pub(super) fn adapting(data: &Data, start: u16) -> Option<&Point> {
    let value = format!("{{ adaptive = {{ start = {start} }} }}");
    data.point_of_values(&[("flow.audio.hint", value.as_str())])
}

/// The point at which everybody's hint adapts from a beginning.
pub(super) fn all_adapting(data: &Data, start: u16) -> Option<&Point> {
    data.point(&[("flow.audio.hint.adaptive.start", f64::from(start))])
}

/// The mean over a group's flows by seed; nothing where the point is not there.
pub(super) fn by_seed(
    data: &Data,
    point: Option<&Point>,
    group: &str,
    measure: fn(&FlowRow) -> Option<f64>,
) -> Vec<f64> {
    point.map_or_else(Vec::new, |point| data.per_seed(point, group, measure))
}

pub(super) fn quality(data: &Data, point: Option<&Point>, group: &str) -> Vec<f64> {
    by_seed(data, point, group, |row| row.q)
}

/// The mean hint at the end, trials left out.
pub(super) fn resting(data: &Data, point: Option<&Point>, group: &str) -> Vec<f64> {
    by_seed(data, point, group, |row| Some(row.hint as f64))
}

/// The standard deviation between a group's flows of the hint at the end.
pub(super) fn spread(data: &Data, point: Option<&Point>, group: &str) -> Vec<f64> {
    let squares = by_seed(data, point, group, |row| Some((row.hint as f64).powi(2)));
    let means = resting(data, point, group);
    squares.iter().zip(means).map(|(square, mean)| (square - mean * mean).max(0.0).sqrt()).collect()
}

/// The hint with the best mean quality of those that are fixed, and its qualities.
pub(super) fn best_fixed(data: &Data, hints: &[u16]) -> Option<(u16, Vec<f64>)> {
    let tried = hints.iter().map(|&hint| (hint, quality(data, fixed(data, hint), "audio")));
    let mean_of = |values: &[f64]| mean(values).map_or(f64::NEG_INFINITY, |found| found.mean);
    tried.max_by(|(_, one), (_, other)| mean_of(one).total_cmp(&mean_of(other)))
}

/// The standard deviation of a flow's hint, trials left out, over the last third of the run; mean over the flows.
pub(super) fn unrest(data: &Data, point: Option<&Point>, group: &str) -> Vec<f64> {
    let Some(point) = point else { return Vec::new() };
    let of_flow = |rows: &Vec<&SeriesRow>| {
        let last = &rows[rows.len() - rows.len() / 3..];
        deviation(&last.iter().filter_map(|row| centre(row)).collect::<Vec<_>>())
    };
    let of_seed = |flows: Vec<Vec<&SeriesRow>>| average(flows.iter().map(of_flow));
    data.flow_intervals(point, group).into_iter().map(of_seed).collect()
}

/// A course over time for each seed: the mean over a group's flows of a measure of their intervals.
pub(super) struct Course {
    /// When each interval ends, s.
    ends: Vec<f64>,
    seeds: Vec<Vec<f64>>,
}

impl Course {
    /// The mean hint, trials left out.
    pub(super) fn of_hints(data: &Data, point: Option<&Point>, group: &str) -> Self {
        Self::of(data, point, group, centre)
    }

    /// The mean quality of audio.
    pub(super) fn of_quality(data: &Data, point: Option<&Point>) -> Self {
        Self::of(data, point, "audio", |row| Some(quality_of(row)))
    }

    fn of(
        data: &Data,
        point: Option<&Point>,
        group: &str,
        measure: impl Fn(&SeriesRow) -> Option<f64>,
    ) -> Self {
        let seeds = point.map_or_else(Vec::new, |point| data.flow_intervals(point, group));
        let first = seeds.first().and_then(|flows| flows.first());
        let ends: Vec<f64> = first.map_or_else(Vec::new, |rows| rows.iter().map(|row| row.end_s).collect());
        let at = |flows: &[Vec<&SeriesRow>], index: usize| {
            average(flows.iter().filter_map(|rows| rows.get(index).and_then(|row| measure(row))))
        };
        let of_seed = |flows: &Vec<Vec<&SeriesRow>>| (0..ends.len()).map(|index| at(flows, index)).collect();
        let seeds = seeds.iter().map(of_seed).collect();
        Self { ends, seeds }
    }

    /// The mean over seeds, in bins of so many intervals.
    pub(super) fn line(&self, bin: usize) -> Vec<(f64, f64)> {
        let at = |index: usize| {
            let range = index..(index + bin).min(self.ends.len());
            (
                self.ends[range.end - 1],
                average(self.seeds.iter().flat_map(|seed| seed[range.clone()].to_vec())),
            )
        };
        (0..self.ends.len()).step_by(bin).map(at).filter(|(_, value)| value.is_finite()).collect()
    }

    /// The mean over the intervals that end in `from < t <= until`, by seed.
    pub(super) fn between(&self, from: f64, until: f64) -> Vec<f64> {
        self.seeds.iter().map(|seed| self.mean_of(seed, from, until)).collect()
    }

    /// How long after `from` the mean of a minute is within the share `near` of what the last third before `until` has,
    /// by seed.
    pub(super) fn time_to_rest(&self, from: f64, until: f64, near: f64) -> Vec<f64> {
        const MINUTE: f64 = 60.0;
        let of_seed = |seed: &Vec<f64>| {
            let rest = self.mean_of(seed, until - (until - from) / 3.0, until);
            let starts = self.ends.iter().filter(|end| **end >= from && **end + MINUTE <= until);
            let is_there =
                |start: &&f64| (self.mean_of(seed, **start, **start + MINUTE) - rest).abs() <= near * rest;
            starts.clone().find(is_there).map_or(until - from, |start| start - from)
        };
        self.seeds.iter().map(of_seed).collect()
    }

    fn mean_of(&self, seed: &[f64], from: f64, until: f64) -> f64 {
        let within = self.ends.iter().zip(seed).filter(|(end, _)| from < **end && **end <= until);
        average(within.map(|(_, value)| *value))
    }
}

fn centre(row: &SeriesRow) -> Option<f64> {
    row.hint_centre.map(|hint| hint as f64)
}

/// Audio's quality in an interval (TSQ eq. 1); none received is none.
fn quality_of(row: &SeriesRow) -> f64 {
    let Some(delay) = row.one_way_mean_ms else { return 0.0 };
    let (delay, rate) = (Duration::from_secs_f64(delay * 1e-3), Rate::from_bps(row.goodput_bps as u64));
    Class::Audio.quality(delay, rate, Combination::Min).get()
}

/// NaN of nothing.
fn average(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, n) = values.into_iter().fold((0.0, 0_u32), |(sum, n), value| (sum + value, n + 1));
    sum / f64::from(n)
}

fn deviation(values: &[f64]) -> f64 {
    let mean = average(values.iter().copied());
    average(values.iter().map(|value| (value - mean).powi(2))).sqrt()
}

/// An estimate of the difference of two lists of means over the same seeds.
pub(super) fn less(one: &[f64], other: &[f64]) -> Option<Estimate> {
    crate::data::difference(one, other)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quality 0.6 until 100 s, then up by 0.05 every 10 s to 0.9.
    fn course() -> Course {
        let ends: Vec<f64> = (1..=40).map(|i| f64::from(i) * 10.0).collect();
        let seed = ends.iter().map(|end| (0.6 + (end - 100.0).max(0.0) / 10.0 * 0.05).min(0.9)).collect();
        Course { ends, seeds: vec![seed] }
    }

    #[test]
    fn the_time_to_rest_is_that_of_the_first_minute_near_it() {
        // The minute from 130 s on has 0.8, 0.85 and four times 0.9: 0.875, more than 2 % off; the next one 0.892.
        assert_eq!(course().time_to_rest(100.0, 400.0, 0.02), [40.0]);
        assert_eq!(course().time_to_rest(200.0, 400.0, 0.02), [0.0]);
    }

    #[test]
    fn means_are_over_the_intervals_that_end_within() {
        assert!((course().between(0.0, 100.0)[0] - 0.6).abs() < 1e-12);
        assert!((course().between(90.0, 110.0)[0] - 0.625).abs() < 1e-12);
        assert_eq!(course().line(10)[0].0, 100.0);
    }
}
