//! The charts of each figure.

use super::measure::{self, ALL, Course, LOAD_END_S, LOAD_START_S, NAMES, ONE, TestedHints};

use crate::data::{Data, Point, mean};
use cutline_report::chart::{Axis, Bars, Chart, Line, Point as Dot};

/// The width of a bin in charts over time, in intervals of 10 s.
const BIN: usize = 3;

fn time() -> Axis {
    Axis::linear("Time, s")
}

fn hints() -> Axis {
    Axis::linear("Hint (trials left out)").range(0.0, 17.0).ticks([1.0, 4.0, 8.0, 12.0, 16.0])
}

/// Quality by hint, and the hint over time.
pub(super) fn one(data: &Data) -> Vec<Chart> {
    vec![by_hint(data, ONE), over_time(data, ONE)]
}

/// Quality by hint, the hint over time, and the final hints.
pub(super) fn all(data: &Data) -> Vec<Chart> {
    vec![by_hint(data, ALL), over_time(data, ALL), resting(data)]
}

fn by_hint(data: &Data, tried: TestedHints) -> Chart {
    let dot = |&hint: &u16| {
        let estimate = mean(&measure::quality(data, measure::fixed(data, hint), "audio"))?;
        Some(Dot::from_estimate(f64::from(hint), &estimate))
    };
    let fixed: Vec<Dot> = tried.fixed.iter().filter_map(dot).collect();
    let axis = Axis::linear("Hint; of one that adapts, its mean at the end").range(0.0, 17.0);
    let chart = Chart::new("Quality of audio").x(axis).y(Axis::linear("Quality"));
    let chart = chart.plot(Line::new("fixed", fixed).markers());
    tried.starts.iter().fold(chart, |chart, &start| {
        let point = measure::adapting(data, start);
        let quality = mean(&measure::quality(data, point, "audio"));
        let hint = mean(&measure::final_hint(data, point, "audio"));
        let dot = hint.zip(quality).map(|(hint, quality)| Dot::from_estimate(hint.mean, &quality));
        chart.plot(Line::scatter(from(start), dot))
    })
}

fn over_time(data: &Data, tried: TestedHints) -> Chart {
    let chart = Chart::new("The hint over time, mean over flows and seeds").x(time()).y(hints());
    tried.starts.iter().fold(chart, |chart, &start| {
        chart.plot(course(data, measure::adapting(data, start), "audio", from(start)))
    })
}

fn course(data: &Data, point: Option<&Point>, group: &str, name: String) -> Line {
    Line::new(name, Course::from_hints(data, point, group).line(BIN))
}

/// The share of flows with each final hint.
fn resting(data: &Data) -> Chart {
    let axis = Axis::categories("Hint at the end", (1..=16).map(|hint: u16| hint.to_string()));
    let chart = Chart::new("Where audio comes to rest").x(axis).y(Axis::linear("Flows, %").from(0.0));
    ALL.starts.iter().fold(chart, |chart, &start| {
        let share = |hint: u16| {
            let point = measure::adapting(data, start)?;
            let is_there = move |row: &cutline_results::FlowRow| {
                Some(if row.hint == u64::from(hint) { 100.0 } else { 0.0 })
            };
            let estimate = mean(&data.per_seed(point, "audio", is_there))?;
            Some(Dot::from_estimate(f64::from(hint - 1), &estimate))
        };
        chart.plot(Bars::new(from(start), (1..=16).filter_map(share).collect::<Vec<_>>()))
    })
}

/// The hints of all flows over time from both start values, and their quality.
pub(super) fn mixed(data: &Data) -> Vec<Chart> {
    let courses = |start: u16| {
        let chart = Chart::new(format!("Hints over time, every flow {}", from(start))).x(time()).y(hints());
        NAMES.iter().fold(chart, |chart, (group, name)| {
            chart.plot(course(data, measure::all_adapting(data, start), group, (*name).to_owned()))
        })
    };
    vec![courses(16), courses(1), qualities(data)]
}

fn qualities(data: &Data) -> Chart {
    let axis = Axis::categories("", NAMES.map(|(_, name)| name));
    let chart = Chart::new("Quality by class").x(axis).y(Axis::linear("Quality").from(0.0));
    [16, 1].into_iter().fold(chart, |chart, start| {
        let bar = |(x, (group, _)): (usize, &(&str, &str))| {
            let estimate = mean(&measure::quality(data, measure::all_adapting(data, start), group))?;
            Some(Dot::from_estimate(x as f64, &estimate))
        };
        chart.plot(Bars::new(from(start), NAMES.iter().enumerate().filter_map(bar).collect::<Vec<_>>()))
    })
}

/// Hint and quality over time while the load rises and falls.
pub(super) fn step(data: &Data) -> Vec<Chart> {
    let (adapting, fixed) = (measure::adapting(data, 16), measure::fixed(data, 6));
    let marked =
        |chart: Chart| chart.vline(LOAD_START_S, "load comes").vline(LOAD_END_S, "load goes").x(time());
    let hint = Chart::new("The hint, mean over flows and seeds").y(hints());
    let quality = Chart::new("Quality of audio, mean over flows and seeds").y(Axis::linear("Quality"));
    let line = |name: &str, point| Line::new(name, Course::from_quality(data, point).line(BIN));
    vec![
        marked(hint).plot(course(data, adapting, "audio", from(16))),
        marked(quality).plot(line(&from(16), adapting)).plot(line("hint 6", fixed)),
    ]
}

fn from(start: u16) -> String {
    format!("adapts, from {start}")
}
