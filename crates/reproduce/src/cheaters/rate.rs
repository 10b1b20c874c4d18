//! Figure 4: audio over UDP, which does not respond to loss, by its rate and hint.

use crate::data::{Data, mean};
use crate::measure::{Measure, kbps, lost, voice};
use cutline_report::chart::{Axis, Chart, Figure, Line, Point as Dot};
use cutline_report::report::Section;

/// The rates of a source, kbit/s. Its fair share is 150.
const RATES: [f64; 6] = [64.0, 128.0, 192.0, 256.0, 384.0, 512.0];
const FAIR_SHARE: f64 = 150.0;

/// A queue and the hint of the UDP packets, as named in the scenario, and the name in charts.
struct Case {
    queue: &'static str,
    hint: &'static str,
    name: &'static str,
}

const PI: Case = Case { queue: "pi", hint: "16", name: "PI" };
const HINT_6: Case = Case { queue: "tsq-pi", hint: "6", name: "TSQ over PI, hint 6" };
const HINT_1: Case = Case { queue: "tsq-pi", hint: "1", name: "TSQ over PI, hint 1" };
const PRIORITY: Case = Case { queue: "strict-priority", hint: "1", name: "strict priority" };
const CASES: [Case; 4] = [PI, HINT_6, HINT_1, PRIORITY];

pub(super) fn section(data: &Data) -> Section {
    let panels: [(&str, &str, &str, Measure); 6] = [
        ("TSQ's quality of UDP", "Quality", "udp", |row| row.q),
        ("E-model of UDP", "Quality", "udp", voice),
        ("Queuing delay of UDP", "Median queuing delay, ms", "udp", |row| row.queuing_p50_ms),
        ("Loss of UDP", "Packets lost, %", "udp", lost),
        ("Throughput of a UDP source", "Throughput, kbit/s", "udp", kbps),
        ("Throughput of a transfer", "Throughput, kbit/s", "bulk", kbps),
    ];
    let charts = panels.map(|(title, y, group, measure)| chart(data, title, y, (group, measure)));
    let drawn = Figure::grid("Audio over UDP and bulk transfers", 2, charts);
    Section { we_see: we_see(data), figures: vec![("figure-4".to_owned(), drawn)], ..Section::default() }
}

/// A measure of a group at a rate, by seed.
fn of(data: &Data, case: &Case, rate: f64, group: &str, measure: Measure) -> Vec<f64> {
    let rate = format!("{rate} kbit/s");
    let point =
        [("flow.udp.app.rate", rate.as_str()), ("dumbbell.queue", case.queue), ("flow.udp.hint", case.hint)];
    data.by_seed(&point, group, measure)
}

fn chart(data: &Data, title: &str, y: &str, (group, measure): (&str, Measure)) -> Chart {
    let axis = Axis::linear("Rate of a UDP source, kbit/s").range(0.0, 550.0);
    let chart = Chart::new(title).x(axis).y(Axis::linear(y).from(0.0)).vline(FAIR_SHARE, "fair share");
    CASES.iter().fold(chart, |chart, case| {
        let dot = |&rate: &f64| Some(Dot::from_estimate(rate, &mean(&of(data, case, rate, group, measure))?));
        chart.plot(Line::new(case.name, RATES.iter().filter_map(dot).collect::<Vec<_>>()).markers())
    })
}

fn we_see(data: &Data) -> String {
    let line = |case: &Case| {
        let parts = [64.0, 128.0, 256.0, 512.0].map(|rate| {
            let text = |group, measure, decimals: usize| {
                let estimate = mean(&of(data, case, rate, group, measure));
                estimate.map_or_else(|| "?".to_owned(), |estimate| format!("{:.decimals$}", estimate.mean))
            };
            let quality: Measure = |row| row.q;
            format!(
                "{} ({}; {} %), {}",
                text("udp", quality, 2),
                text("udp", voice, 2),
                text("udp", lost, 1),
                text("bulk", kbps, 0)
            )
        });
        format!("{}: {}.", case.name, parts.join("; "))
    };
    let lines = CASES.map(|case| line(&case)).join("\n\n");
    format!(
        "Quality of UDP (by the E-model; loss) and throughput of a transfer in kbit/s, at 64, 128, 256 and 512 kbit/s.\n\n{lines}"
    )
}
