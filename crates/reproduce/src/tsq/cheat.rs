//! Figure 15: one unresponsive source that sends four times its fair share and claims to be delay-sensitive.

use crate::claims::{FigureText, Judge, judged};
use crate::data::{Data, difference, mean, ratio};
use crate::study::ExperimentData;
use cutline_report::chart::{Axis, Chart, Figure, Line, Point as Dot};
use cutline_report::report::{Claim, Section};
use cutline_report::stats::Estimate;

const HINTS: std::ops::RangeInclusive<u16> = 1..=16;

pub(super) fn section(figure: &FigureText, stored: &[ExperimentData<'_>]) -> Section {
    let Some((experiment, data)) = stored.first() else { return Section::default() };
    let claims = figure.claim_ids().map(|id| judge(figure.variant_claim(experiment, id), id, data)).collect();
    let panels = [
        panel(data, "File transfers", "bulk", (0.9, 1.1)),
        panel(data, "The cheater itself", "cheater", (0.7, 1.1)),
    ];
    Section {
        we_see: we_see(data),
        figures: vec![("figure-15".to_owned(), Figure::grid("Mean throughput / that without TSQ, by the cheater's hint", 2, panels))],
        claims,
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

fn judge(claim: Claim, id: &str, data: &Data) -> Claim {
    let all = || HINTS.filter_map(|hint| normalised(data, "bulk", hint));
    let about_one = |estimate: &Estimate| estimate.meets(0.98, 1.02);
    match id {
        "bulk-least" => judged(claim, all().min_by(|one, other| one.mean.total_cmp(&other.mean)), about_one),
        "bulk-most" => judged(claim, all().max_by(|one, other| one.mean.total_cmp(&other.mean)), about_one),
        "bulk-low-higher" => {
            let ratios = |hint| -> Vec<f64> {
                let (with, without) = (throughput(data, "bulk", Some(hint)), throughput(data, "bulk", None));
                with.iter().zip(&without).map(|(with, without)| with / without).collect()
            };
            judged(claim, difference(&ratios(1), &ratios(16)), |estimate| estimate.is_above(0.0))
        }
        "cheater-throughput" => {
            judged(claim, normalised(data, "cheater", 1), |estimate| estimate.meets(0.0, 1.0))
        }
        id => unreachable!("figures.toml has the claim `{id}`, but no code measures it"),
    }
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
