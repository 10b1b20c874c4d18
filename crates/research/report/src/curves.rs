//! The quality curves of all application classes as figures: figures 2 to 5 of the TSQ paper, and those of further
//! classes. They are drawn from the same formulas that rate every simulation.

use crate::chart::{Axis, Chart, Figure, Legend, PointSeries};
use cutline_quality::{Class, EModel, Perspective, Quality, SpeechCodec};
use cutline_units::{Duration, Probability, Rate};

/// File sizes of figure 5, kbit; the paper's text names the first and the last.
pub const FILE_SIZES_KBIT: [u64; 4] = [10, 100, 1_000, 10_000];

/// A figure with the name of its files.
pub struct NamedFigure {
    /// A short name without spaces, such as `fig2-audio-delay`.
    pub id: &'static str,
    /// The figure.
    pub figure: Figure,
}

/// Every figure of this module, in the order of the paper.
pub fn all() -> Vec<NamedFigure> {
    [
        ("fig2-audio-delay", audio_delay as fn() -> Figure),
        ("fig3-audio-throughput", audio_throughput),
        ("fig4-video-throughput", video_throughput),
        ("fig5-file-throughput", file_throughput),
        ("classes", classes),
        ("voice", voice),
    ]
    .map(|(id, draw)| NamedFigure { id, figure: draw() })
    .into()
}

/// TSQ figure 2: delay quality of an audio conference.
pub fn audio_delay() -> Figure {
    let chart = Chart::new("Audio conference: quality by one-way delay")
        .subtitle("TSQ figure 2. Excellent up to 150 ms, good up to 400 ms, then of little use.")
        .x(Axis::linear("One-way delay, ms").range(0.0, 600.0))
        .y(quality_axis("Delay quality Qd"))
        .plot(PointSeries::new("Qd", delay_curve(Class::Audio, 600)))
        .plot(PointSeries::expected("stated in the paper", [(150.0, 0.98), (300.0, 0.7), (400.0, 0.5)]));
    Figure::new(chart)
}

/// TSQ figure 3: throughput quality of an audio conference.
pub fn audio_throughput() -> Figure {
    let chart = Chart::new("Audio conference: quality by throughput")
        .subtitle("TSQ figure 3. Each halving of the rate takes one bit off every sample.")
        .x(Axis::log("Throughput, kbit/s (logarithmic)", 2).range(2.0, 256.0))
        .y(quality_axis("Throughput quality Qt"))
        .plot(PointSeries::new("Qt", throughput_curve(Class::Audio, 2.0, 256.0)))
        .plot(PointSeries::expected("stated in the paper", [(64.0, 0.83), (128.0, 1.0)]));
    Figure::new(chart)
}

/// TSQ figure 4: throughput quality of a video conference.
pub fn video_throughput() -> Figure {
    let stated = [(160.0, 0.6), (384.0, 0.8), (512.0, 0.85), (768.0, 0.9), (1500.0, 1.0)];
    let chart = Chart::new("Video conference: quality by throughput")
        .subtitle("TSQ figure 4. Straight lines between the points that the text states.")
        .x(Axis::linear("Throughput, kbit/s").range(0.0, 1750.0))
        .y(quality_axis("Throughput quality Qt"))
        .plot(PointSeries::new("Qt", linear(0.0, 1750.0, 351).map(|t| (t, throughput(Class::Video, t)))))
        .plot(PointSeries::expected("stated in the paper", stated));
    Figure::new(chart)
}

/// TSQ figure 5: throughput quality of file transfers of several sizes.
pub fn file_throughput() -> Figure {
    let chart = Chart::new("File transfer: quality by throughput")
        .subtitle("TSQ figure 5. Best when the file is there within a second: Qt = T / S.")
        .x(Axis::log("Throughput, kbit/s (logarithmic)", 10).range(1.0, 10_000.0))
        .y(quality_axis("Throughput quality Qt"));
    let chart = FILE_SIZES_KBIT.into_iter().fold(chart, |chart, size_kbit| {
        let points = throughput_curve(Class::FileTransfer { size_kbit }, 1.0, 10_000.0);
        chart.plot(PointSeries::new(size_name(size_kbit), points))
    });
    Figure::new(chart)
}

/// Delay and throughput quality of all classes side by side.
pub fn classes() -> Figure {
    let classes = [
        ("audio", Class::Audio),
        ("video", Class::Video),
        ("file, 10 Mbit", Class::FileTransfer { size_kbit: 10_000 }),
        ("web, 800 kbit", Class::Web { page_kbit: 800 }),
        ("game, first person", Class::Game { perspective: Perspective::FirstPerson }),
    ];
    let mut delay = Chart::new("By delay")
        .x(Axis::log("One-way delay, ms (logarithmic)", 10).range(10.0, 10_000.0))
        .y(quality_axis("Delay quality Qd"));
    let mut rate = Chart::new("By throughput")
        .x(Axis::log("Throughput, kbit/s (logarithmic)", 10).range(1.0, 10_000.0))
        .y(quality_axis("Throughput quality Qt"));
    for (name, class) in classes {
        let curve = logarithmic(10.0, 10_000.0, 400).map(|ms| (ms, delay_quality(class, ms)));
        delay = delay.plot(PointSeries::new(name, curve));
        rate = rate.plot(PointSeries::new(name, throughput_curve(class, 1.0, 10_000.0)));
    }
    Figure::grid("What delay and throughput are worth to each application", 2, [delay, rate])
        .note("Audio and video judge delay by the same curve. Sources: TSQ section 2 (audio, video, file); ITU-T G.1030 with Nielsen's limits (web); Claypool 2006 and Feng 2002 (game).")
}

/// The paper's audio curve and the E-model of ITU-T G.107, by delay and by loss.
pub fn voice() -> Figure {
    let codecs = [
        ("E-model, G.711", SpeechCodec::G711),
        ("E-model, G.711 with concealment", SpeechCodec::G711_PLC),
        ("E-model, G.729A", SpeechCodec::G729A),
    ];
    let mut delay = Chart::new("By delay, without loss")
        .x(Axis::linear("One-way delay, ms").range(0.0, 600.0))
        .y(quality_axis("Quality"))
        .plot(PointSeries::new("TSQ audio Qd", delay_curve(Class::Audio, 600)));
    let mut loss = Chart::new("By loss, at 150 ms")
        .x(Axis::linear("Packets lost, %").range(0.0, 20.0))
        .y(quality_axis("Quality"));
    for (name, codec) in codecs {
        // Without loss, concealment has no effect, and its line would hide the other.
        if codec != SpeechCodec::G711_PLC {
            delay = delay
                .plot(PointSeries::new(name, linear(0.0, 600.0, 301).map(|ms| (ms, call(codec, ms, 0.0)))));
        }
        loss = loss.plot(PointSeries::new(name, linear(0.0, 20.0, 201).map(|p| (p, call(codec, 150.0, p)))));
    }
    Figure::grid("Voice: the paper's curve and the E-model", 2, [delay, loss])
        .legend(Legend::Top)
        .note("E-model: ITU-T G.107 with its defaults, mean opinion score as (MOS \u{2212} 1) / 4. The paper's curve knows no loss.")
}

fn quality_axis(label: &str) -> Axis {
    Axis::linear(label).range(0.0, 1.0)
}

fn size_name(kbit: u64) -> String {
    if kbit < 1_000 { format!("{kbit} kbit") } else { format!("{} Mbit", kbit / 1_000) }
}

fn delay_quality(class: Class, ms: f64) -> f64 {
    class.delay_quality(Duration::from_secs_f64(ms / 1e3)).get()
}

fn throughput(class: Class, kbps: f64) -> f64 {
    class.throughput_quality(Rate::from_bps((kbps * 1e3).round() as u64)).get()
}

fn call(codec: SpeechCodec, ms: f64, percent: f64) -> f64 {
    let loss = Probability::clamped(percent / 100.0);
    let quality: Quality = EModel::new(codec).rating(Duration::from_secs_f64(ms / 1e3), loss).quality();
    quality.get()
}

fn delay_curve(class: Class, to_ms: u64) -> impl Iterator<Item = (f64, f64)> {
    (0..=to_ms).map(move |ms| (ms as f64, delay_quality(class, ms as f64)))
}

fn throughput_curve(class: Class, from: f64, to: f64) -> impl Iterator<Item = (f64, f64)> {
    logarithmic(from, to, 600).map(move |kbps| (kbps, throughput(class, kbps)))
}

/// `n` numbers at equal distances.
fn linear(from: f64, to: f64, n: u32) -> impl Iterator<Item = f64> {
    (0..n).map(move |i| from + (to - from) * f64::from(i) / f64::from(n - 1))
}

/// `n` numbers at equal ratios.
fn logarithmic(from: f64, to: f64, n: u32) -> impl Iterator<Item = f64> {
    linear(from.ln(), to.ln(), n).map(f64::exp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::Theme;
    use crate::chart::tests::{check, has};

    #[test]
    fn the_texts_of_every_figure_do_not_overlap() {
        for NamedFigure { id, figure } in all() {
            for legend in [Legend::Top, Legend::Direct] {
                let texts = check(&figure.clone().legend(legend).svg(id, Theme::Paper));
                assert!(has(&texts, figure.name()), "{id} has its title");
            }
        }
    }

    #[test]
    fn every_figure_is_drawn_and_has_a_unique_name() {
        let figures = all();
        let mut ids: Vec<&str> = figures.iter().map(|named| named.id).collect();
        ids.dedup();
        assert_eq!(ids.len(), figures.len());
        for NamedFigure { id, figure } in figures {
            let svg = figure.svg(id, Theme::Paper);
            assert!(roxmltree::Document::parse(&svg).is_ok(), "{id}");
        }
    }

    #[test]
    fn curves_reach_both_ends_of_their_range() {
        let curve: Vec<(f64, f64)> = throughput_curve(Class::Audio, 2.0, 256.0).collect();
        assert!((curve[0].0 - 2.0).abs() < 1e-9 && (curve[599].0 - 256.0).abs() < 1e-9);
        assert_eq!((curve[0].1, curve[599].1), (0.0, 1.0));
    }
}
