//! Applications that adapt their hint to the quality that they get. Here is the irregular part of the study: the best
//! of several fixed hints, how steady a hint is, and when quality has settled; and the charts of quality by hint, where
//! an adapting hint is at its final
//! value.

use cutline_quality::{Class, Combination};
use cutline_report::chart::{Axis, Bars, Chart, ChartPoint as Dot, Figure, PointSeries};
use cutline_report::report::Section;
use cutline_results::{FlowRow, SeriesRow};
use cutline_study::{Code, Data, ExperimentData, FigureText, Own, Point, difference, mean};
use cutline_units::{Duration, Rate};

pub(crate) const CODE: Code = Code { own, sections };

/// The fixed hints and the start values of figures 1 and 2.
const TRIED: [(&[u16], &[u16]); 2] =
    [(&[2, 4, 6, 7, 8, 9, 10, 12, 16], &[1, 8, 16]), (&[4, 5, 6, 7], &[1, 16])];
/// Times at which the load of figure 4 rises and falls, and the end of the run, s.
const LOAD_START_S: f64 = 600.0;
const LOAD_END_S: f64 = 1200.0;
const END_S: f64 = 1800.0;
/// Relative distance from its final value within which quality counts as settled.
const TOLERANCE: f64 = 0.02;

/// The measures of claims that are code.
fn own(figure: &FigureText, id: &str) -> Option<Own> {
    if let Some(start) = id.strip_prefix("regret-") {
        let (start, (fixed_hints, _)) = (start.parse().ok()?, *TRIED.get(figure.number as usize - 1)?);
        return Some(Box::new(move |evidence| {
            let best = best_fixed(evidence.data, fixed_hints).map_or_else(Vec::new, |(_, quality)| quality);
            difference(&best, &quality(evidence.data, adapting(evidence.data, start))).into()
        }));
    }
    match (figure.number, id) {
        (2, "still") => Some(Box::new(|evidence| {
            mean(&hint_deviation(evidence.data, adapting(evidence.data, 16), "audio")).into()
        })),
        (3, "still") => Some(Box::new(|evidence| {
            let point = evidence.data.point(&[("flow.audio.hint.adaptive.start", 16.0)]);
            mean(&hint_deviation(evidence.data, point, "file")).into()
        })),
        (4, "up") => {
            Some(Box::new(|evidence| mean(&settling_time(evidence.data, LOAD_START_S, LOAD_END_S)).into()))
        }
        (4, "down") => {
            Some(Box::new(|evidence| mean(&settling_time(evidence.data, LOAD_END_S, END_S)).into()))
        }
        _ => None,
    }
}

fn sections(figure: &FigureText, stored: &[ExperimentData<'_>]) -> Vec<Section> {
    let mut section = cutline_study::section(figure, stored);
    let tried = TRIED.get(figure.number as usize - 1);
    if let (Some(&(fixed_hints, starts)), Some((_, data))) = (tried, stored.first()) {
        let mut charts = vec![by_hint(data, fixed_hints, starts)];
        if figure.number == 2 {
            charts.push(resting(data, starts));
        }
        let name = format!("figure-{}-by-hint", figure.number);
        section.figures.insert(0, (name, Figure::grid("Quality by hint", 1, charts)));
        section.we_see = format!("{}\n\n{}", words(data, fixed_hints, starts), section.we_see);
    }
    vec![section]
}

/// Quality by hint: the fixed ones, and the final values of those that adapt.
fn by_hint(data: &Data, fixed_hints: &[u16], starts: &[u16]) -> Chart {
    let dot =
        |&hint: &u16| Some(Dot::from_estimate(f64::from(hint), &mean(&quality(data, fixed(data, hint)))?));
    let dots: Vec<Dot> = fixed_hints.iter().filter_map(dot).collect();
    let axis = Axis::linear("Hint; of one that adapts, its mean at the end").range(0.0, 17.0);
    let chart = Chart::new("Quality of audio").x(axis).y(Axis::linear("Quality"));
    starts.iter().fold(chart.plot(PointSeries::new("fixed", dots).markers()), |chart, &start| {
        let point = adapting(data, start);
        let (hint, quality) = (mean(&final_hint(data, point)), mean(&quality(data, point)));
        let dot = hint.zip(quality).map(|(hint, quality)| Dot::from_estimate(hint.mean, &quality));
        chart.plot(PointSeries::scatter(format!("adapts, from {start}"), dot))
    })
}

/// The share of flows with each final hint.
fn resting(data: &Data, starts: &[u16]) -> Chart {
    let axis = Axis::categories("Hint at the end", (1..=16).map(|hint: u16| hint.to_string()));
    let chart = Chart::new("Final hints of audio").x(axis).y(Axis::linear("Flows, %").from(0.0));
    starts.iter().fold(chart, |chart, &start| {
        let share = |hint: u16| {
            let is_there = |row: &FlowRow| Some(if row.hint == u64::from(hint) { 100.0 } else { 0.0 });
            let estimate = mean(&data.per_seed(adapting(data, start)?, "audio", is_there))?;
            Some(Dot::from_estimate(f64::from(hint - 1), &estimate))
        };
        chart.plot(Bars::new(format!("adapts, from {start}"), (1..=16).filter_map(share).collect::<Vec<_>>()))
    })
}

fn words(data: &Data, fixed_hints: &[u16], starts: &[u16]) -> String {
    let shown = |values: &[f64], decimals: usize| {
        mean(values).map_or_else(
            || "-".to_owned(),
            |estimate| format!("{:.decimals$} ± {:.decimals$}", estimate.mean, estimate.half_width()),
        )
    };
    let best = best_fixed(data, fixed_hints).map_or_else(String::new, |(hint, quality)| {
        format!("The best fixed hint is {hint}, with a quality of {}.", shown(&quality, 3))
    });
    let line = |&start: &u16| {
        let point = adapting(data, start);
        format!(
            "From {start}: quality {}, hint {} at the end; over the last third of the run its standard deviation is {}.",
            shown(&quality(data, point), 3),
            shown(&final_hint(data, point), 1),
            shown(&hint_deviation(data, point, "audio"), 2),
        )
    };
    [best].into_iter().chain(starts.iter().map(line)).collect::<Vec<_>>().join("\n\n")
}

/// The point at which the hint of audio is fixed.
fn fixed(data: &Data, hint: u16) -> Option<&Point> {
    data.point(&[("flow.audio.hint", f64::from(hint))])
}

/// The point at which the hint of audio adapts, beginning at `start`.
fn adapting(data: &Data, start: u16) -> Option<&Point> {
    let value = format!("{{ adaptive = {{ start = {start} }} }}");
    data.point_with_values(&[("flow.audio.hint", value.as_str())])
}

/// The quality of audio, by seed; empty if there is no such point.
fn quality(data: &Data, point: Option<&Point>) -> Vec<f64> {
    point.map_or_else(Vec::new, |point| data.per_seed(point, "audio", |row| row.q))
}

/// The mean hint of audio at the end of the run, without trials.
fn final_hint(data: &Data, point: Option<&Point>) -> Vec<f64> {
    point.map_or_else(Vec::new, |point| data.per_seed(point, "audio", |row| Some(row.hint as f64)))
}

/// The fixed hint with the best mean quality, and its quality by seed.
fn best_fixed(data: &Data, hints: &[u16]) -> Option<(u16, Vec<f64>)> {
    let tried = hints.iter().map(|&hint| (hint, quality(data, fixed(data, hint))));
    let mean_of = |values: &[f64]| mean(values).map_or(f64::NEG_INFINITY, |estimate| estimate.mean);
    tried.max_by(|(_, one), (_, other)| mean_of(one).total_cmp(&mean_of(other)))
}

/// The standard deviation of a flow's hint over the last third of the run, without trials; mean over the flows.
fn hint_deviation(data: &Data, point: Option<&Point>, group: &str) -> Vec<f64> {
    let of_flow = |rows: &Vec<&SeriesRow>| {
        let last = &rows[rows.len() - rows.len() / 3..];
        let hints: Vec<f64> = last.iter().filter_map(|row| row.hint_centre).map(|hint| hint as f64).collect();
        let centre = average(hints.iter().copied());
        average(hints.iter().map(|hint| (hint - centre).powi(2))).sqrt()
    };
    let seeds = point.map(|point| data.flow_intervals(point, group)).unwrap_or_default();
    seeds.iter().map(|flows| average(flows.iter().map(of_flow))).collect()
}

/// The settling time of the quality of audio whose hint adapts, from 16, by seed.
fn settling_time(data: &Data, from: f64, until: f64) -> Vec<f64> {
    let seeds = adapting(data, 16).map(|point| data.flow_intervals(point, "audio")).unwrap_or_default();
    seeds.iter().map(|flows| Course::from_quality(flows).settling_time(from, until)).collect()
}

/// The quality of audio over time, mean over the flows of one run.
struct Course {
    /// End of each interval, s, and the quality in it.
    intervals: Vec<(f64, f64)>,
}

impl Course {
    fn from_quality(flows: &[Vec<&SeriesRow>]) -> Self {
        let first = flows.first().map_or(&[][..], Vec::as_slice);
        let at = |index: usize| {
            average(flows.iter().filter_map(|rows| rows.get(index)).map(|row| quality_of(row)))
        };
        Self { intervals: first.iter().enumerate().map(|(index, row)| (row.end_s, at(index))).collect() }
    }

    /// The time from `from` to the first minute whose mean differs from the mean over the last third before `until` by at most
    /// [`TOLERANCE`].
    fn settling_time(&self, from: f64, until: f64) -> f64 {
        const MINUTE: f64 = 60.0;
        let rest = self.mean_of(until - (until - from) / 3.0, until);
        let ends = self.intervals.iter().map(|(end, _)| *end);
        let mut starts = ends.filter(|end| *end >= from && end + MINUTE <= until);
        let is_there = |start: &f64| (self.mean_of(*start, start + MINUTE) - rest).abs() <= TOLERANCE * rest;
        starts.find(is_there).map_or(until - from, |start| start - from)
    }

    fn mean_of(&self, from: f64, until: f64) -> f64 {
        let within = self.intervals.iter().filter(|(end, _)| from < *end && *end <= until);
        average(within.map(|(_, value)| *value))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Quality 0.6 until 100 s, then up by 0.05 every 10 s to 0.9.
    #[test]
    fn settling_ends_with_the_first_minute_near_the_final_mean() {
        let quality = |end: f64| (0.6 + (end - 100.0).max(0.0) / 10.0 * 0.05).min(0.9);
        let ends = (1..=40).map(|i| f64::from(i) * 10.0);
        let course = Course { intervals: ends.map(|end| (end, quality(end))).collect() };
        // The minute from 130 s on has 0.8, 0.85 and four times 0.9: 0.875, more than 2 % off; the next one 0.892.
        assert_eq!(course.settling_time(100.0, 400.0), 40.0);
        assert_eq!(course.settling_time(200.0, 400.0), 0.0);
    }
}
