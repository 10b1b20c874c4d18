//! Measures of hints that adapt: one value for each seed, or the mean over time.

use crate::data::{Data, Point, mean};
use cutline_quality::{Class, Combination};
use cutline_results::{FlowRow, SeriesRow};
use cutline_units::{Duration, Rate};

/// The hints of an experiment.
#[derive(Clone, Copy)]
pub(super) struct TestedHints {
    /// The fixed hints.
    pub(super) fixed: &'static [u16],
    /// The start values of hints that adapt.
    pub(super) starts: &'static [u16],
}

pub(super) const ONE: TestedHints =
    TestedHints { fixed: &[2, 4, 6, 7, 8, 9, 10, 12, 16], starts: &[1, 8, 16] };
pub(super) const ALL: TestedHints = TestedHints { fixed: &[4, 5, 6, 7], starts: &[1, 16] };

/// The groups of the mix and their names in charts.
pub(super) const NAMES: [(&str, &str); 3] =
    [("audio", "audio"), ("video", "video"), ("file", "file transfer")];

/// When the load rises, s.
pub(super) const LOAD_START_S: f64 = 600.0;
/// When the load falls again, s.
pub(super) const LOAD_END_S: f64 = 1200.0;
/// When the run ends, s.
pub(super) const END_S: f64 = 1800.0;

/// The point at which the hint of audio is fixed.
pub(super) fn fixed(data: &Data, hint: u16) -> Option<&Point> {
    data.point(&[("flow.audio.hint", f64::from(hint))])
}

/// The point at which the hint of audio adapts, beginning at `start`.
pub(super) fn adapting(data: &Data, start: u16) -> Option<&Point> {
    let value = format!("{{ adaptive = {{ start = {start} }} }}");
    data.point_with_values(&[("flow.audio.hint", value.as_str())])
}

/// The point at which the hints of all flows adapt, beginning at `start`.
pub(super) fn all_adapting(data: &Data, start: u16) -> Option<&Point> {
    data.point(&[("flow.audio.hint.adaptive.start", f64::from(start))])
}

/// The mean over the flows of a group, by seed; empty if there is no such point.
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

/// The mean hint at the end of the run, without trials.
pub(super) fn final_hint(data: &Data, point: Option<&Point>, group: &str) -> Vec<f64> {
    by_seed(data, point, group, |row| Some(row.hint as f64))
}

/// The standard deviation of the final hint between the flows of a group.
pub(super) fn spread(data: &Data, point: Option<&Point>, group: &str) -> Vec<f64> {
    let squares = by_seed(data, point, group, |row| Some((row.hint as f64).powi(2)));
    let means = final_hint(data, point, group);
    squares.iter().zip(means).map(|(square, mean)| (square - mean * mean).max(0.0).sqrt()).collect()
}

/// The fixed hint with the best mean quality, and its quality by seed.
pub(super) fn best_fixed(data: &Data, hints: &[u16]) -> Option<(u16, Vec<f64>)> {
    let tried = hints.iter().map(|&hint| (hint, quality(data, fixed(data, hint), "audio")));
    let mean_of = |values: &[f64]| mean(values).map_or(f64::NEG_INFINITY, |estimate| estimate.mean);
    tried.max_by(|(_, one), (_, other)| mean_of(one).total_cmp(&mean_of(other)))
}

/// The standard deviation of a flow's hint over the last third of the run, without trials; mean over the flows.
pub(super) fn hint_deviation(data: &Data, point: Option<&Point>, group: &str) -> Vec<f64> {
    let Some(point) = point else { return Vec::new() };
    let of_flow = |rows: &Vec<&SeriesRow>| {
        let last = &rows[rows.len() - rows.len() / 3..];
        deviation(&last.iter().filter_map(|row| centre(row)).collect::<Vec<_>>())
    };
    let of_seed = |flows: Vec<Vec<&SeriesRow>>| average(flows.iter().map(of_flow));
    data.flow_intervals(point, group).into_iter().map(of_seed).collect()
}

/// A measure over time, by seed: the mean over the flows of a group in each interval.
pub(super) struct Course {
    /// When each interval ends, s.
    ends: Vec<f64>,
    seeds: Vec<Vec<f64>>,
}

impl Course {
    /// The mean hint, without trials.
    pub(super) fn from_hints(data: &Data, point: Option<&Point>, group: &str) -> Self {
        Self::of(data, point, group, centre)
    }

    /// The mean quality of audio.
    pub(super) fn from_quality(data: &Data, point: Option<&Point>) -> Self {
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

    /// The mean over seeds, in bins of `bin` intervals.
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

    /// The settling time, by seed: the time from `from` to the first minute whose mean differs from the mean over the
    /// last third before `until` by at most the share `near`.
    pub(super) fn settling_time(&self, from: f64, until: f64, near: f64) -> Vec<f64> {
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

/// The quality of audio in an interval (TSQ eq. 1); 0 if nothing was received.
fn quality_of(row: &SeriesRow) -> f64 {
    let Some(delay) = row.one_way_mean_ms else { return 0.0 };
    let (delay, rate) = (Duration::from_secs_f64(delay * 1e-3), Rate::from_bps(row.goodput_bps as u64));
    Class::Audio.quality(delay, rate, Combination::Min).get()
}

/// The mean; NaN if there are no values.
fn average(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, n) = values.into_iter().fold((0.0, 0_u32), |(sum, n), value| (sum + value, n + 1));
    sum / f64::from(n)
}

fn deviation(values: &[f64]) -> f64 {
    let mean = average(values.iter().copied());
    average(values.iter().map(|value| (value - mean).powi(2))).sqrt()
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
    fn settling_ends_with_the_first_minute_near_the_final_mean() {
        // The minute from 130 s on has 0.8, 0.85 and four times 0.9: 0.875, more than 2 % off; the next one 0.892.
        assert_eq!(course().settling_time(100.0, 400.0, 0.02), [40.0]);
        assert_eq!(course().settling_time(200.0, 400.0, 0.02), [0.0]);
    }

    #[test]
    fn means_are_over_the_intervals_that_end_within() {
        assert!((course().between(0.0, 100.0)[0] - 0.6).abs() < 1e-12);
        assert!((course().between(90.0, 110.0)[0] - 0.625).abs() < 1e-12);
        assert_eq!(course().line(10)[0].0, 100.0);
    }
}
