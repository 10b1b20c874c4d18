//! Writes a report with one chart of each kind, from made-up numbers, for a visual check during development:
//! `cargo run -p cutline-report --example gallery -- DIRECTORY`.

use cutline_report::chart::{Axis, Bars, Chart, ChartPoint, Figure, Legend, PointSeries};
use cutline_report::report::{Claim, Report, Section, write};
use cutline_report::stats::{Cdf, Estimate};
use cutline_units::{RandomStream, Streams};
use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = PathBuf::from(std::env::args_os().nth(1).unwrap_or_else(|| "gallery".into()));
    let mut random = Streams::new(1).stream("gallery", "numbers");
    let report = Report {
        title: "A gallery of made-up numbers".into(),
        papers: Vec::new(),
        statement_heading: "The paper says".into(),
        intro: "Every kind of chart, drawn from invented numbers.".into(),
        meta: [
            ("Version", "0.1.0"),
            ("Seeds", "1 to 10"),
            ("Scenario", "blake3 5f2a9c01e77b40d2"),
            ("Duration", "41 s on 2 cores"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into(),
        sections: vec![
            distributions(&mut random),
            by_hint(&mut random),
            mixes(&mut random),
            over_time(&mut random),
        ],
    };
    println!("{}", write(&directory, &report)?.report.display());
    Ok(())
}

/// An approximately normal random number: the sum of twelve uniform ones.
fn normal(random: &mut RandomStream) -> f64 {
    (0..12).map(|_| random.uniform()).sum::<f64>() - 6.0
}

/// Ten made-up replications around a mean.
fn replications(random: &mut RandomStream, mean: f64, spread: f64) -> Estimate {
    let values: Vec<f64> = (0..10).map(|_| mean + spread * normal(random)).collect();
    Estimate::from_values(&values).expect("ten finite values are an estimate")
}

fn distributions(random: &mut RandomStream) -> Section {
    let mut chart = Chart::new("Queuing delay of the audio flow by its hint")
        .subtitle("Cumulative distribution over all packets of ten runs")
        .x(Axis::linear("Queuing delay, ms").from(0.0))
        .y(Axis::linear("Share of packets").range(0.0, 1.0))
        .hline(0.5, "median");
    for (hint, mean, spread) in [(1, 12.0, 4.0), (6, 48.0, 14.0), (16, 107.0, 26.0)] {
        let delays = (0..3000).map(|_| (mean + spread * normal(random)).max(0.0));
        let cdf = Cdf::from_values(delays).expect("delays are finite");
        chart = chart.plot(PointSeries::steps(format!("hint {hint}"), cdf.points()));
    }
    let claim = Claim::new("audio.median-order", "8", "Median queuing delay rises with the hint")
        .paper("ordered 1 < 6 < 16")
        .measured_value(3.0)
        .holds(true);
    Section {
        id: "fig8".into(),
        heading: "Figure 8: queuing delay by hint".into(),
        paper_says: "The lower the hint, the lower the median, and the steeper the distribution.".into(),
        we_see: "The same order: medians of 12, 48 and 107 ms.".into(),
        figures: vec![("fig8-delay".into(), Figure::new(chart).legend(Legend::Direct))],
        claims: vec![claim],
        ..Section::default()
    }
}

fn by_hint(random: &mut RandomStream) -> Section {
    let hints: Vec<f64> = (1..=16).map(f64::from).collect();
    let mut line = |quality: fn(f64) -> f64, spread: f64| -> Vec<ChartPoint> {
        hints
            .iter()
            .map(|&hint| ChartPoint::from_estimate(hint, &replications(random, quality(hint), spread)))
            .collect()
    };
    let qd = line(|hint| 0.985 - 0.017 * hint, 0.01);
    let qt = line(|hint| 0.45 + 0.46 * (1.0 - (-hint / 5.0).exp()), 0.03);
    let q = line(|hint| (0.985 - 0.017 * hint).min(0.45 + 0.46 * (1.0 - (-hint / 5.0).exp())), 0.03);
    let chart = Chart::new("Quality of the audio flow by its hint")
        .subtitle("Mean of ten seeds with its 95 % confidence interval")
        .x(Axis::linear("Delay hint").range(1.0, 16.0).ticks(hints.clone()))
        .y(Axis::linear("Quality").range(0.0, 1.0))
        .plot(PointSeries::new("delay quality Qd", qd).markers())
        .plot(PointSeries::new("throughput quality Qt", qt).markers())
        .plot(PointSeries::new("overall quality Q", q).band())
        .plot(PointSeries::expected("paper", [(6.0, 0.8)]))
        .vline(6.0, "paper: best at about 6");
    let best = Claim::new("audio.best-hint", "10", "The best overall hint lies inside the range")
        .paper("about 6")
        .measured(&replications(random, 6.4, 1.2))
        .holds(true);
    Section {
        id: "fig10".into(),
        heading: "Figure 10: quality by hint".into(),
        paper_says: "Delay quality falls and throughput quality rises with the hint.\n\nThe best overall quality is at about 6.".into(),
        we_see: "The same shape, flat around its best: 5 to 8 are alike.".into(),
        figures: vec![("fig10-quality".into(), Figure::new(chart))],
        claims: vec![best],
        files: vec![("audio.toml".into(), "../experiments/tsq/audio.toml".into())],
        ..Section::default()
    }
}

fn mixes(random: &mut RandomStream) -> Section {
    let mixes = ["1 : 99", "25 : 75", "50 : 50", "75 : 25"];
    let mut bars = |means: [f64; 4]| -> Vec<ChartPoint> {
        let point =
            |(i, mean): (usize, f64)| ChartPoint::from_estimate(i as f64, &replications(random, mean, 0.03));
        means.into_iter().enumerate().map(point).collect()
    };
    let chart = Chart::new("Mean quality by class, with TSQ / without")
        .x(Axis::categories("Audio flows : bulk flows", mixes))
        .y(Axis::linear("Normalised quality").from(0.0))
        .plot(Bars::new("audio", bars([1.18, 1.15, 1.11, 1.08])))
        .plot(Bars::new("file transfer", bars([1.0, 1.01, 1.03, 1.04])))
        .hline(1.0, "as without TSQ");
    let claim = |id: &str, mix: &str, paper: f64, estimate: &Estimate| {
        let holds = estimate.interval.is_some_and(|(low, _)| low > 1.0);
        Claim::new(id, "14", format!("Audio gains at {mix}")).paper(paper).measured(estimate).holds(holds)
    };
    let (few, many) = (replications(random, 1.18, 0.03), replications(random, 1.01, 0.03));
    Section {
        id: "fig14".into(),
        heading: "Figure 14: mixed traffic".into(),
        paper_says: "Audio gains 8 to 18 %, file transfer 0 to 4 %.".into(),
        we_see: "Audio gains less where it is in the majority.".into(),
        figures: vec![("fig14-mixed".into(), Figure::new(chart))],
        claims: vec![
            claim("mixed.audio-1", "1 : 99", 1.18, &few),
            claim("mixed.audio-75", "75 : 25", 1.08, &many)
                .note("Made up, to show what a difference looks like."),
        ],
        notes: vec![
            "With three audio flows of four, hints are nearly equal, and no flow can cut in line.".into(),
        ],
        ..Section::default()
    }
}

fn over_time(random: &mut RandomStream) -> Section {
    let mut panel = |title: &str, level: f64| {
        let mut value = level;
        let mut walk = |name: &str, calm: f64| {
            let points: Vec<(f64, f64)> = (0..400)
                .map(|i| {
                    value = (value + calm * normal(random) + 0.05 * (level - value)).max(0.0);
                    (f64::from(i) / 4.0, value)
                })
                .collect();
            PointSeries::new(name, points)
        };
        let (pi, tsq) = (walk("PI", 6.0), walk("PI with TSQ", 5.0));
        Chart::new(title)
            .x(Axis::linear("Time, s").range(0.0, 100.0))
            .y(Axis::linear("Queue, packets").from(0.0))
            .plot(pi)
            .plot(tsq)
            .hline(level, format!("target: {level}"))
    };
    let panels = [("1 : 99", 200.0), ("25 : 75", 200.0), ("50 : 50", 150.0), ("75 : 25", 100.0)];
    let panels = panels.map(|(mix, level)| panel(&format!("Audio : bulk = {mix}"), level));
    let figure = Figure::grid("Queue of the bottleneck over time", 2, panels).note("Sampled every 250 ms.");
    Section {
        id: "queue".into(),
        heading: "Beyond the paper: the queue".into(),
        paper_says: String::new(),
        we_see: "Around its target in every mix.".into(),
        figures: vec![("queue".into(), figure)],
        claims: vec![Claim::new("queue.stable", "\u{2013}", "The queue stays at its target").unit("packets")],
        ..Section::default()
    }
}
