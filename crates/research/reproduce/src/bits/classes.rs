//! Figure 3: audio and video conferences with hints of their own, and file transfers.

use cutline_report::chart::{Axis, Chart, ChartPoint as Dot, Figure, PointSeries};
use cutline_report::report::Section;
use cutline_study::{Data, Own, difference, mean};

const KINDS: [&str; 3] = ["audio", "video", "file"];
/// The levels of 4 bits that are run.
const LEVELS: [u16; 12] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16];
const NO_HINTS: u32 = 0;

/// The hints of audio and video.
type Pair = (u16, u16);

/// The mean quality of the three kinds with a pair of hints, by seed.
fn quality(data: &Data, (audio, video): Pair) -> Vec<f64> {
    let (audio, video) = (audio.to_string(), video.to_string());
    let point = [("flow.audio.hint", audio.as_str()), ("flow.video.hint", video.as_str())];
    let of = KINDS.map(|kind| data.by_seed(&point, kind, |row| row.q));
    let seeds = of.iter().map(Vec::len).min().unwrap_or(0);
    (0..seeds).map(|seed| of.iter().map(|values| values[seed]).sum::<f64>() / 3.0).collect()
}

/// The pairs of levels that a hint of so many bits has, in levels of 4 bits.
fn pairs(bits: u32) -> Vec<Pair> {
    let step = 16 >> bits;
    let levels = LEVELS.iter().copied().filter(|level| level % step == 0);
    let levels: Vec<u16> = levels.collect();
    levels.iter().flat_map(|&audio| levels.iter().map(move |&video| (audio, video))).collect()
}

/// The pair with the largest mean over the seeds that are `counted`.
fn best_pair(tried: &[(Pair, Vec<f64>)], counted: impl Fn(usize) -> bool) -> Option<usize> {
    let score = |values: &[f64]| -> f64 {
        values.iter().enumerate().filter(|(seed, _)| counted(*seed)).map(|(_, value)| value).sum()
    };
    let scores = tried.iter().map(|(_, values)| score(values)).enumerate();
    scores.max_by(|one, other| one.1.total_cmp(&other.1)).map(|(index, _)| index)
}

fn tried(data: &Data, bits: u32) -> Vec<(Pair, Vec<f64>)> {
    pairs(bits).into_iter().map(|pair| (pair, quality(data, pair))).collect()
}

/// The quality of each seed with the pair that is best for the other seeds, so that no seed judges its own choice.
fn best(data: &Data, bits: u32) -> Vec<f64> {
    let tried = tried(data, bits);
    let seeds = tried.iter().map(|(_, values)| values.len()).min().unwrap_or(0);
    let of_seed = |seed: usize| {
        let pair = best_pair(&tried, |other| other != seed)?;
        Some(tried[pair].1[seed])
    };
    (0..seeds).filter_map(of_seed).collect()
}

/// The measures of claims that are code.
pub(super) fn own(id: &str) -> Option<Own> {
    let (more, less) = match id {
        "classes-two-over-one" => (2, 1),
        "classes-three-over-two" => (3, 2),
        "classes-four-over-three" => (4, 3),
        "classes-four-over-none" => (4, NO_HINTS),
        _ => return None,
    };
    Some(Box::new(move |evidence| difference(&best(evidence.data, more), &best(evidence.data, less)).into()))
}

pub(super) fn section(data: &Data) -> Section {
    let dot = |bits: u32| Some(Dot::from_estimate(f64::from(bits), &mean(&best(data, bits))?));
    let dots: Vec<Dot> = (NO_HINTS..=4).filter_map(dot).collect();
    let axis = Axis::linear("Bits of hint; 0 is none").range(-0.5, 4.5).ticks((0..=4).map(f64::from));
    let chart = Chart::new("").x(axis).y(Axis::linear("Mean quality of audio, video and file transfer"));
    let chart = chart.plot(PointSeries::new("best pair of hints", dots).markers());
    Section {
        we_see: words(data),
        figures: vec![("figure-3".to_owned(), Figure::grid("The best pair of hints", 1, [chart]))],
        ..Section::default()
    }
}

fn words(data: &Data) -> String {
    let line = |bits: u32| {
        let tried = tried(data, bits);
        let &((audio, video), _) = tried.get(best_pair(&tried, |_| true)?)?;
        let of = |kind: &str| {
            let (audio, video) = (audio.to_string(), video.to_string());
            let point = [("flow.audio.hint", audio.as_str()), ("flow.video.hint", video.as_str())];
            mean(&data.by_seed(&point, kind, |row| row.q)).map_or(f64::NAN, |estimate| estimate.mean)
        };
        let value = mean(&best(data, bits))?.mean;
        let [a, v, f] = KINDS.map(of);
        Some(format!(
            "{bits} bits: {value:.3} with audio {audio}/16 and video {video}/16 (audio {a:.3}, video {v:.3}, files {f:.3})"
        ))
    };
    let lines: Vec<String> = (NO_HINTS..=4).filter_map(line).collect();
    format!("{}.", lines.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_levels_of_fewer_bits_are_among_those_of_more() {
        assert_eq!(pairs(0), [(16, 16)]);
        assert_eq!(pairs(1), [(8, 8), (8, 16), (16, 8), (16, 16)]);
        for bits in 0..4 {
            assert!(pairs(bits).iter().all(|pair| pairs(bits + 1).contains(pair)));
        }
        assert_eq!(pairs(4).len(), LEVELS.len() * LEVELS.len());
    }
}
