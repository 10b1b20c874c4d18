//! Figure 4: audio, video and transfers in three mixes, with hints relative to without.

use super::scenarios::{QUEUES, over_all};
use crate::data::{Data, ratio};
use crate::measure::{Measure, kbps};
use cutline_report::chart::{Axis, Bars, Chart, Figure, Point as Dot};
use cutline_report::report::Section;
use cutline_report::stats::Estimate;

/// The number of conferences among 40 flows, and the number of transfers with each round-trip time.
const MIXES: [(u16, &str); 3] = [(8, "8"), (20, "5"), (32, "2")];

/// The kinds of flows, and the measure of each.
const KINDS: [(&str, Measure); 3] = [("audio", |row| row.q), ("video", |row| row.q), ("bulk", kbps)];

pub(super) fn section(data: &Data) -> Section {
    let charts = QUEUES[2..].iter().map(|queue| chart(data, *queue));
    let drawn = Figure::grid("Quality with hint 6 for conferences, over that without hints", 2, charts);
    Section { we_see: we_see(data), figures: vec![("figure-4".to_owned(), drawn)], ..Section::default() }
}

/// The measure of a kind of flows with hints, relative to that without.
fn normalised(data: &Data, queue: &str, bulk: &str, (kind, measure): (&str, Measure)) -> Option<Estimate> {
    let with = |hint| {
        let point =
            [("link.bottleneck.queue", queue), ("flow.bulk-10.count", bulk), ("flow.video-10.hint", hint)];
        over_all(data, &point, kind, measure)
    };
    ratio(&with("6"), &with("16"))
}

fn chart(data: &Data, (queue, name): (&str, &str)) -> Chart {
    let chart = Chart::new(name)
        .x(Axis::categories(
            "Conferences : transfers",
            MIXES.map(|(media, _)| format!("{media} : {}", 40 - media)),
        ))
        .y(Axis::linear("Normalised quality").range(0.8, 1.1))
        .hline(1.0, "as without hints");
    KINDS.iter().fold(chart, |chart, kind| {
        let bar = |(x, (_, bulk)): (usize, &(u16, &str))| {
            Some(Dot::from_estimate(x as f64, &normalised(data, queue, bulk, *kind)?))
        };
        chart.plot(Bars::new(kind.0, MIXES.iter().enumerate().filter_map(bar).collect::<Vec<_>>()))
    })
}

fn we_see(data: &Data) -> String {
    let line = |(queue, name): (&str, &str)| {
        let each = KINDS.map(|kind| {
            let percent = MIXES.map(|(_, bulk)| {
                normalised(data, queue, bulk, kind).map_or_else(
                    || "?".to_owned(),
                    |estimate| format!("{:+.1} %", (estimate.mean - 1.0) * 100.0),
                )
            });
            format!("{} {}", kind.0, percent.join(", "))
        });
        format!("{name}: {}.", each.join("; "))
    };
    let lines: Vec<String> = QUEUES[2..].iter().map(|queue| line(*queue)).collect();
    format!("With 8, 20 and 32 conferences. {}", lines.join(" "))
}
