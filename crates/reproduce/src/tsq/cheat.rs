//! Figure 15: one unresponsive source that sends four times its fair share and claims to be delay-sensitive.

use crate::data::{Data, mean, ratio};
use crate::study::ExperimentData;
use cutline_report::chart::{Axis, Chart, Figure, Line, Point as Dot};
use cutline_report::report::Section;
use cutline_report::stats::Estimate;

const HINTS: std::ops::RangeInclusive<u16> = 1..=16;

pub(super) fn section(stored: &[ExperimentData<'_>]) -> Section {
    let Some((_, data)) = stored.first() else { return Section::default() };
    let panels = [
        panel(data, "File transfers", "bulk", (0.9, 1.1)),
        panel(data, "The cheater itself", "cheater", (0.7, 1.1)),
    ];
    Section {
        we_see: we_see(data),
        figures: vec![("figure-15".to_owned(), Figure::grid("Mean throughput / that without TSQ, by the cheater's hint", 2, panels))],
        notes: vec![
            "The delay of the cheater falls, as a low hint intends. But it does not get more throughput, and takes none from \
             others: it delays them, but more of its own packets are dropped, which leaves more of the rate to them."
                .to_owned(),
        ],
        ..Section::default()
    }
}

fn panel(data: &Data, title: &str, group: &str, (low, high): (f64, f64)) -> Chart {
    let dot = |hint: u16| Some(Dot::from_estimate(f64::from(hint), &normalised(data, group, hint)?));
    Chart::new(title)
        .x(Axis::linear("The cheater's delay hint").range(1.0, 16.0).ticks([1.0, 4.0, 8.0, 12.0, 16.0]))
        .y(Axis::linear("Normalised throughput").range(low, high))
        .plot(Line::new("TSQ over PI", HINTS.filter_map(dot).collect::<Vec<Dot>>()).markers().band())
        .hline(1.0, "as without TSQ")
}

/// The mean throughput of a group by seed, with TSQ and a hint of the cheater; without TSQ for `None`.
fn throughput(data: &Data, group: &str, hint: Option<u16>) -> Vec<f64> {
    let point = match hint {
        Some(hint) => data.point(&[("queue.bottleneck.tsq", 1.0), ("flow.cheater.hint", f64::from(hint))]),
        None => data.point(&[("queue.bottleneck.tsq", 0.0)]),
    };
    point.map_or_else(Vec::new, |point| data.per_seed(point, group, |row| Some(row.goodput_bps)))
}

fn normalised(data: &Data, group: &str, hint: u16) -> Option<Estimate> {
    ratio(&throughput(data, group, Some(hint)), &throughput(data, group, None))
}

fn we_see(data: &Data) -> String {
    let text = |group, hint| {
        normalised(data, group, hint)
            .map_or_else(|| "no value".to_owned(), |estimate| format!("{:.3}", estimate.mean))
    };
    let kbps = |hint| mean(&throughput(data, "cheater", hint)).map_or(0.0, |estimate| estimate.mean / 1e3);
    format!(
        "The file transfers get {} of their throughput when the cheater claims hint 1, {} at hint 6 and {} at 16. The \
         cheater itself receives {:.0} kbit/s with hint 1 and {:.0} without TSQ.",
        text("bulk", 1),
        text("bulk", 6),
        text("bulk", 16),
        kbps(Some(1)),
        kbps(None),
    )
}
