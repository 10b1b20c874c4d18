//! The charts of each figure. Each shows laboratory and simulator.

use super::measure::{
    CHEATS, DROPS, HINTS, KBPS, LOSS, MEDIAN, MIXES, Q, alone, at_hint, best, data, normalised, queue,
};
use crate::data::{Data, mean};
use crate::study::ExperimentData;
use cutline_report::chart::{Axis, Bars, Chart, Figure, Line, Point as Dot};
use cutline_results::{FlowRow, QueueRow};

/// Figures with the names of their files, and a text about them.
type Shown = (Vec<(String, Figure)>, String);

fn shown(number: u32, title: &str, columns: usize, charts: Vec<Chart>, we_see: String) -> Shown {
    (vec![(format!("figure-{number}"), Figure::grid(title, columns, charts))], we_see)
}

/// A measure by the hint of a flow, for laboratory and simulator.
fn curves(
    chart: Chart,
    stored: &[ExperimentData<'_>],
    (flow, hints): (&str, &[u16]),
    group: &str,
    measure: fn(&FlowRow) -> Option<f64>,
) -> Chart {
    let x = Axis::linear("Delay hint").range(1.0, 16.0).ticks(hints.iter().copied().map(f64::from));
    stored.iter().fold(chart.x(x), |chart, (experiment, data)| {
        let dot = |&hint: &u16| {
            Some(Dot::from_estimate(f64::from(hint), &mean(&at_hint(data, flow, hint, group, measure))?))
        };
        let dots: Vec<Dot> = hints.iter().filter_map(dot).collect();
        chart.plot(Line::new(experiment.label, dots).markers().band())
    })
}

pub(super) fn by_hint(stored: &[ExperimentData<'_>]) -> Shown {
    let chart = |title: &str, y: Axis, measure| {
        curves(Chart::new(title).y(y), stored, ("audio", &HINTS), "audio", measure)
    };
    let charts = vec![
        chart("Quality of audio", Axis::linear("Quality").range(0.0, 1.0), Q),
        chart("Median queuing delay of audio", Axis::linear("Queuing delay, ms").from(0.0), MEDIAN),
        chart("Throughput of audio", Axis::linear("Throughput, kbit/s").from(0.0), KBPS),
        chart("Loss of audio", Axis::linear("Packets lost, %").from(0.0), LOSS),
    ];
    let line = |(experiment, data): &ExperimentData<'_>| {
        let (hint, least, most) = best(data)?;
        let gain =
            mean(&at_hint(data, "audio", hint, "audio", Q))?.mean / mean(&alone(data, "audio", Q))?.mean;
        let label = experiment.label;
        Some(format!(
            "{label}: best hint {hint} ({least} to {most} are as good), {gain:.2} times the quality of PI alone."
        ))
    };
    let we_see = stored.iter().filter_map(line).collect::<Vec<_>>().join(" ");
    shown(1, "One audio conference among 99 bulk transfers", 2, charts, we_see)
}

pub(super) fn mixes(stored: &[ExperimentData<'_>]) -> Shown {
    let chart = |(group, title): (&str, &str)| {
        let chart = Chart::new(title)
            .x(Axis::categories("Audio : bulk", ["1 : 99", "25 : 75", "50 : 50", "75 : 25"]))
            .y(Axis::linear("Normalised quality").range(0.7, 1.3))
            .hline(1.0, "as without TSQ");
        stored.iter().fold(chart, |chart, (experiment, data)| {
            let bar = |(x, &audio): (usize, &u16)| {
                Some(Dot::from_estimate(x as f64, &mean(&normalised(data, audio, group))?))
            };
            let bars: Vec<Dot> = MIXES.iter().enumerate().filter_map(bar).collect();
            chart.plot(Bars::new(experiment.label, bars))
        })
    };
    let charts = [("audio", "Audio, hint 6"), ("bulk", "Bulk transfers, hint 16")].map(chart).into();
    let gains = |(experiment, data): &ExperimentData<'_>| {
        let of = |group| {
            let gain = |&audio: &u16| {
                mean(&normalised(data, audio, group)).map(|estimate| format!("{:.2}", estimate.mean))
            };
            MIXES.iter().filter_map(gain).collect::<Vec<_>>().join(", ")
        };
        format!("{}: audio {}; bulk {}.", experiment.label, of("audio"), of("bulk"))
    };
    let we_see = stored.iter().map(gains).collect::<Vec<_>>().join(" ");
    shown(2, "Quality with TSQ / with PI alone", 2, charts, we_see)
}

pub(super) fn cheat(stored: &[ExperimentData<'_>]) -> Shown {
    let chart = |title: &str, y: &str, group: &str, measure| {
        let chart = Chart::new(title).y(Axis::linear(y).from(0.0));
        curves(chart, stored, ("cheater", &CHEATS), group, measure)
    };
    let charts = vec![
        chart("Throughput of the source", "Throughput, kbit/s", "cheater", KBPS),
        chart("Loss of the source", "Packets lost, %", "cheater", LOSS),
        chart("Median queuing delay of the source", "Queuing delay, ms", "cheater", MEDIAN),
        chart("Throughput of a bulk transfer", "Throughput, kbit/s", "bulk", KBPS),
    ];
    let line = |(experiment, data): &ExperimentData<'_>| {
        let loss =
            |hint| mean(&at_hint(data, "cheater", hint, "cheater", LOSS)).map(|estimate| estimate.mean);
        Some(format!(
            "{}: it loses {:.1} % with hint 1 and {:.1} % with hint 16.",
            experiment.label,
            loss(1)?,
            loss(16)?
        ))
    };
    let we_see = stored.iter().filter_map(line).collect::<Vec<_>>().join(" ");
    shown(3, "One source of 600 kbit/s that does not respond, among 99 bulk transfers", 2, charts, we_see)
}

pub(super) fn stacks(stored: &[ExperimentData<'_>]) -> Shown {
    let chart = |title: &str, y: &str, measure: fn(&QueueRow) -> f64| {
        let x = Axis::categories(
            "",
            stored.iter().map(|(experiment, _)| experiment.label.replace(' ', "\u{a0}")),
        );
        let bars = stored
            .iter()
            .enumerate()
            .filter_map(|(x, (_, data))| Some(Dot::from_estimate(x as f64, &mean(&queue(data, measure))?)));
        Chart::new(title).x(x).y(Axis::linear(y).from(0.0)).plot(Bars::new("", bars.collect::<Vec<_>>()))
    };
    let charts = vec![
        chart("Drops", "Packets dropped, %", DROPS),
        chart("Queue", "Mean backlog, packets", |row| row.backlog_mean_packets),
    ];
    let of = |id: &str, measure| data(stored, id).and_then(|data: &Data| mean(&queue(data, measure)));
    let line = |(experiment, _): &ExperimentData<'_>| {
        Some(format!("{} {:.2} %", experiment.label, of(experiment.id, DROPS)?.mean))
    };
    let drops: Vec<String> = stored.iter().filter_map(line).collect();
    shown(4, "100 bulk transfers through PI", 1, charts, format!("Drops: {}.", drops.join(", ")))
}
