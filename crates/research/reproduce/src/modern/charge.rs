//! Figure 5: the throughput that a lower hint costs a transfer with `NewReno` and with CUBIC, by its round-trip time.
//!
//! ```text
//! NewReno  T = K / (RTT sqrt p)           so  gain = (r + q) / (r + q') sqrt(p / p')
//! CUBIC    T = K / (RTT^1/4 p^3/4)        so  gain = ((r + q) / (r + q'))^1/4 (p / p')^3/4       RFC 9438 section 5
//! TSQ      p / p' = ((l + q') / (l + q))^2                                                      TSQ eq. 5
//! ```
//!
//! CUBIC is at least as fast as `NewReno` (its Reno-friendly region), so its gain is between the two curves.
//!
//! Worked numbers: r = 200 ms, q = 107 ms, q' = q / 16 give 0.472 for `NewReno` and 0.198 for CUBIC
//! (`the_laws_have_their_worked_numbers`).

use cutline_report::chart::{Axis, Chart, ChartPoint as Dot, Figure, PointSeries};
use cutline_report::report::Section;
use cutline_report::stats::Estimate;
use cutline_study::{Data, Own, kbps, mean, ratio};

/// The queues: their names in the scenario and in charts.
const QUEUES: [(&str, &str); 4] = [
    ("long-drop", "107 ms, drops"),
    ("long-mark", "107 ms, ECN"),
    ("short-drop", "20 ms, drops"),
    ("short-mark", "20 ms, ECN"),
];

/// The round-trip times without queues, ms. The name of a group of flows is KIND-MILLISECONDS.
const ROUND_TRIPS: [u16; 4] = [10, 40, 100, 200];

/// l of the experiment, ms.
const L: f64 = 40.0;

/// The congestion controls: their names in the scenario and in charts.
const CONTROLS: [(&str, &str); 2] = [("newreno", "NewReno"), ("cubic", "CUBIC")];

/// The gain of a `NewReno` flow with a hint with which it waits `q_prime`; all in ms.
fn newreno(r: f64, q: f64, q_prime: f64) -> f64 {
    (r + q) / (r + q_prime) * (L + q_prime) / (L + q)
}

/// The gain of a CUBIC flow outside its Reno-friendly region.
fn cubic(r: f64, q: f64, q_prime: f64) -> f64 {
    ((r + q) / (r + q_prime)).powf(0.25) * ((L + q_prime) / (L + q)).powf(1.5)
}

pub(super) fn section(data: &Data) -> Section {
    let charts = QUEUES.map(|queue| chart(data, queue));
    let drawn = Figure::grid("Throughput of a transfer with hint 1 over that of one with hint 16", 2, charts);
    Section { we_see: we_see(data), figures: vec![("figure-5".to_owned(), drawn)], ..Section::default() }
}

/// The throughput at a round-trip time, by seed: with the given hint, and with hint 16 in the same runs.
fn throughputs(data: &Data, queue: &str, control: &str, hint: &str, r: u16) -> [Vec<f64>; 2] {
    let point = [
        ("link.bottleneck.queue", queue),
        ("flow.hinted-10.transport.congestion-control", control),
        ("flow.hinted-10.hint", hint),
    ];
    ["hinted", "honest"].map(|kind| data.by_seed(&point, &format!("{kind}-{r}"), kbps))
}

fn gain(data: &Data, queue: &str, control: &str, hint: &str, r: u16) -> Option<Estimate> {
    let [hinted, honest] = throughputs(data, queue, control, hint, r);
    ratio(&hinted, &honest)
}

/// The gains with hint 1, by seed.
fn gains(data: &Data, queue: &str, control: &str, r: u16) -> Vec<f64> {
    let [hinted, honest] = throughputs(data, queue, control, "1", r);
    hinted.iter().zip(&honest).map(|(hinted, honest)| hinted / honest).collect()
}

/// PI's target delay, ms.
fn target(queue: &str) -> f64 {
    if queue.starts_with("long") { 107.0 } else { 20.0 }
}

fn chart(data: &Data, (queue, name): (&str, &str)) -> Chart {
    let q = target(queue);
    let law = |of: fn(f64, f64, f64) -> f64| {
        let r = (0..=60).map(|step| 10.0 * 20.0_f64.powf(f64::from(step) / 60.0));
        r.map(|r| (r, of(r, q, q / 16.0))).collect::<Vec<_>>()
    };
    let chart = Chart::new(name)
        .x(Axis::log("Round trip outside the queue, ms", 2).range(8.0, 256.0))
        .y(Axis::linear("Hint 1 / hint 16").range(0.0, 2.5));
    let chart = CONTROLS.iter().fold(chart, |chart, (control, name)| {
        let dot = |&r: &u16| Some(Dot::from_estimate(f64::from(r), &gain(data, queue, control, "1", r)?));
        chart.plot(PointSeries::new(*name, ROUND_TRIPS.iter().filter_map(dot).collect::<Vec<_>>()).markers())
    });
    chart
        .plot(PointSeries::new("law, NewReno", law(newreno)))
        .plot(PointSeries::new("law, CUBIC beyond Reno", law(cubic)))
        .hline(1.0, "as with hint 16")
}

/// The measures of claims that are code.
pub(super) fn own(id: &str) -> Option<Own> {
    (id == "unfair").then(|| -> Own {
        Box::new(|evidence| {
            let by_seed = |r| gains(evidence.data, "long-mark", "newreno", r);
            ratio(&by_seed(10), &by_seed(200)).into()
        })
    })
}

fn we_see(data: &Data) -> String {
    let text = |value: Option<Estimate>, decimals: usize| {
        value.map_or_else(|| "?".to_owned(), |estimate| format!("{:.decimals$}", estimate.mean))
    };
    let line = |(queue, name): (&str, &str), (control, control_name): (&str, &str)| {
        let of = |hint| ROUND_TRIPS.map(|r| text(gain(data, queue, control, hint, r), 2)).join(", ");
        let honest = ROUND_TRIPS.map(|r| {
            let [_, honest] = throughputs(data, queue, control, "1", r);
            text(mean(&honest).map(|estimate| Estimate { mean: estimate.mean / 1e3, ..estimate }), 1)
        });
        format!(
            "{name}, {control_name}: hint 1 {}; hint 6 {}; hint 16 has {} Mbit/s.",
            of("1"),
            of("6"),
            honest.join(", ")
        )
    };
    let lines: Vec<String> =
        QUEUES.iter().flat_map(|queue| CONTROLS.iter().map(|control| line(*queue, *control))).collect();
    format!("Throughput over that with hint 16, at 10, 40, 100 and 200 ms.\n\n{}", lines.join("\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_laws_have_their_worked_numbers() {
        let (q, q_prime) = (107.0, 107.0 / 16.0);
        assert!((newreno(200.0, q, q_prime) - 0.472).abs() < 1e-3, "{}", newreno(200.0, q, q_prime));
        assert!((cubic(200.0, q, q_prime) - 0.198).abs() < 1e-3, "{}", cubic(200.0, q, q_prime));
    }

    #[test]
    fn the_charge_of_cubic_is_above_that_of_newreno_at_every_hint() {
        for r in [1.0, 10.0, 40.0, 200.0, 1000.0] {
            assert!(cubic(r, 107.0, 6.7) < newreno(r, 107.0, 6.7), "{r}");
        }
    }
}
