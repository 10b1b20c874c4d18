//! Figure 5: liars with every hint, three kinds of TCP, drops and marks, and on a larger link.

use crate::data::{Data, ratio};
use crate::measure::kbps;
use crate::study::ExperimentData;
use cutline_report::chart::{Axis, Chart, Figure, Line, Point as Dot};
use cutline_report::report::Section;
use cutline_report::stats::Estimate;

/// The kinds of TCP: congestion control and SACK in the scenario, and the name in charts.
const KINDS: [(&str, &str, &str); 3] =
    [("newreno", "false", "NewReno"), ("newreno", "true", "NewReno, SACK"), ("cubic", "true", "CUBIC")];
/// The round-trip times outside the queue, ms, each with the access delay in the scenario.
const ROUND_TRIPS: [(&str, &str); 3] = [("10", "2 ms"), ("40", "9.5 ms"), ("160", "39.5 ms")];
const HINTS: [&str; 4] = ["1", "3", "6", "10"];
const ECN: [(&str, &str); 2] = [("false", "drops"), ("true", "marks")];

/// The throughput of a liar over that of an honest transfer.
fn gain(data: &Data, kind: (&str, &str, &str), delay: &str, ecn: &str, hint: &str) -> Option<Estimate> {
    let point = [
        ("dumbbell.access-delay", delay),
        ("flow.liar.transport.congestion-control", kind.0),
        ("flow.liar.transport.sack", kind.1),
        ("flow.liar.ecn", ecn),
        ("flow.liar.hint", hint),
    ];
    ratio(&data.by_seed(&point, "liar", kbps), &data.by_seed(&point, "honest", kbps))
}

pub(super) fn section(stored: &[ExperimentData<'_>]) -> Section {
    let charts = stored.first().into_iter().flat_map(|(_, data)| KINDS.map(|kind| chart(data, kind)));
    let drawn = Figure::grid("Throughput of a liar over that of an honest transfer, by its hint", 3, charts);
    let words = stored.iter().map(|(experiment, data)| format!("{}. {}", experiment.label, words(data)));
    Section {
        we_see: words.collect::<Vec<_>>().join("\n\n"),
        figures: vec![("figure-5".to_owned(), drawn)],
        ..Section::default()
    }
}

fn chart(data: &Data, kind: (&str, &str, &str)) -> Chart {
    let axis = Axis::linear("Hint of the liar").range(0.5, 10.5).ticks([1.0, 3.0, 6.0, 10.0]);
    let chart = Chart::new(kind.2).x(axis).y(Axis::linear("Gain").range(0.0, 2.5)).hline(1.0, "nothing");
    ROUND_TRIPS.iter().fold(chart, |chart, (ms, delay)| {
        ECN.iter().fold(chart, |chart, (ecn, what)| {
            let dot = |hint: &&str| {
                Some(Dot::from_estimate(hint.parse().ok()?, &gain(data, kind, delay, ecn, hint)?))
            };
            let dots: Vec<Dot> = HINTS.iter().filter_map(dot).collect();
            chart.plot(Line::new(format!("{ms} ms, {what}"), dots).markers())
        })
    })
}

fn words(data: &Data) -> String {
    let line = |kind: (&str, &str, &str)| {
        let parts = ROUND_TRIPS.iter().flat_map(|(ms, delay)| {
            ECN.map(|(ecn, what)| {
                let gains = HINTS.iter().filter_map(|hint| gain(data, kind, delay, ecn, hint));
                let gains: Vec<String> = gains.map(|gain| format!("{:.2}", gain.mean)).collect();
                format!("{ms} ms, {what} {}", gains.join(", "))
            })
        });
        format!("{}: {}.", kind.2, parts.collect::<Vec<_>>().join("; "))
    };
    KINDS.map(line).join(" ")
}
