//! Number of bits of a delay hint, a question that the TSQ paper leaves open.

mod classes;

use cutline_report::chart::{Axis, Chart, ChartPoint as Dot, Figure, PointSeries};
use cutline_report::report::Section;
use cutline_study::{Code, Data, ExperimentData, FigureText, mean};

pub(crate) const CODE: Code = Code { own: |_, id| classes::own(id), sections };

const BIT_COUNTS: std::ops::RangeInclusive<u16> = 1..=6;

fn sections(figure: &FigureText, stored: &[ExperimentData<'_>]) -> Vec<Section> {
    let Some(&(_, data)) = stored.first() else { return Vec::new() };
    if figure.number == 3 {
        return vec![classes::section(data)];
    }
    let (title, chart) = match figure.number {
        1 => ("Quality of audio by the weight of its hint", by_weight(data)),
        _ => ("The best quality of audio", by_bits(data)),
    };
    vec![Section {
        we_see: we_see(data),
        figures: vec![(format!("figure-{}", figure.number), Figure::grid(title, 1, [chart]))],
        ..Section::default()
    }]
}

/// The mean quality of audio with a level of a hint of `bits` bits, by seed.
fn quality(data: &Data, bits: u16, level: u16) -> Vec<f64> {
    let settings = [("queue.bottleneck.tsq.bits", f64::from(bits)), ("flow.audio.hint", f64::from(level))];
    data.point(&settings).map_or_else(Vec::new, |point| data.per_seed(point, "audio", |row| row.q))
}

/// The level with the best mean quality.
fn best_level(data: &Data, bits: u16) -> Option<u16> {
    let at =
        |level: &u16| mean(&quality(data, bits, *level)).map_or(f64::NEG_INFINITY, |estimate| estimate.mean);
    (1..=1 << bits).max_by(|one, other| at(one).total_cmp(&at(other)))
}

fn best(data: &Data, bits: u16) -> Vec<f64> {
    best_level(data, bits).map_or_else(Vec::new, |level| quality(data, bits, level))
}

fn by_weight(data: &Data) -> Chart {
    let axis = Axis::linear("Weight of the hint, d / 2^n").range(0.0, 1.0);
    let chart = Chart::new("").x(axis).y(Axis::linear("Quality"));
    BIT_COUNTS.fold(chart, |chart, bits| {
        let weight = |level: u16| f64::from(level) / f64::from(1_u16 << bits);
        let dot = |level| Some((weight(level), mean(&quality(data, bits, level))?.mean));
        let name = if bits == 1 { "1 bit".to_owned() } else { format!("{bits} bits") };
        chart.plot(PointSeries::new(name, (1..=1 << bits).filter_map(dot).collect::<Vec<_>>()).markers())
    })
}

fn by_bits(data: &Data) -> Chart {
    let dot = |bits| Some(Dot::from_estimate(f64::from(bits), &mean(&best(data, bits))?));
    let dots: Vec<Dot> = BIT_COUNTS.filter_map(dot).collect();
    let axis = Axis::linear("Bits of hint").range(0.5, 6.5).ticks(BIT_COUNTS.map(f64::from));
    Chart::new("").x(axis).y(Axis::linear("Quality")).plot(PointSeries::new("best level", dots).markers())
}

fn we_see(data: &Data) -> String {
    let line = |bits| {
        let (level, estimate) = (best_level(data, bits)?, mean(&best(data, bits))?);
        Some(format!("{bits}: {:.3} with level {level} of {}", estimate.mean, 1_u16 << bits))
    };
    format!("The best quality by bits. {}.", BIT_COUNTS.filter_map(line).collect::<Vec<_>>().join("; "))
}
