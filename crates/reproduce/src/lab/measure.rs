//! Measures of laboratory and simulator, and whether they agree.

use crate::claims::{FigureText, Measured, Own};
use crate::data::{Data, difference, mean, ratio};
use crate::study::ExperimentData;
use cutline_report::stats::{Comparison, Estimate};
use cutline_results::{FlowRow, QueueRow};

/// The hints of audio.
pub(super) const HINTS: [u16; 7] = [1, 3, 5, 6, 8, 11, 16];
/// The hints of the cheater.
pub(super) const CHEATS: [u16; 4] = [1, 6, 11, 16];
/// The number of audio flows among 100 flows.
pub(super) const MIXES: [u16; 4] = [1, 25, 50, 75];
/// The bottleneck link.
const LINK: &str = "r1->r2";

type Measure = fn(&FlowRow) -> Option<f64>;

pub(super) const Q: Measure = |row| row.q;
pub(super) const MEDIAN: Measure = |row| row.queuing_p50_ms;
pub(super) const MEAN: Measure = |row| row.queuing_mean_ms;
pub(super) const KBPS: Measure = |row| Some(row.goodput_bps / 1e3);
pub(super) const LOSS: Measure = |row| Some(100.0 * row.loss_ratio?);

/// The results of an experiment.
pub(crate) fn data<'s>(stored: &'s [ExperimentData<'_>], id: &str) -> Option<&'s Data> {
    stored.iter().find(|(experiment, _)| experiment.id == id).map(|(_, data)| *data)
}

/// A measure of a group with TSQ, if the flow has the hint `hint`, by seed.
pub(super) fn at_hint(data: &Data, flow: &str, hint: u16, group: &str, measure: Measure) -> Vec<f64> {
    let key = format!("flow.{flow}.hint");
    let point = data.point(&[("queue.bottleneck.tsq", 1.0), (&key, f64::from(hint))]);
    point.map_or_else(Vec::new, |point| data.per_seed(point, group, measure))
}

/// A measure of a group with PI alone, by seed.
pub(super) fn alone(data: &Data, group: &str, measure: Measure) -> Vec<f64> {
    let point = data.point(&[("queue.bottleneck.tsq", 0.0)]);
    point.map_or_else(Vec::new, |point| data.per_seed(point, group, measure))
}

/// The quality of a class in a mix with TSQ, relative to that without, by seed.
pub(super) fn normalised(data: &Data, audio: u16, group: &str) -> Vec<f64> {
    let quality = |tsq| {
        let point = data.point(&[("queue.bottleneck.tsq", tsq), ("flow.audio.count", f64::from(audio))]);
        point.map_or_else(Vec::new, |point| data.per_seed(point, group, Q))
    };
    over(&quality(1.0), &quality(0.0))
}

fn over(these: &[f64], those: &[f64]) -> Vec<f64> {
    these.iter().zip(those).map(|(this, that)| this / that).collect()
}

/// A measure of the bottleneck's queue in experiments without a sweep, by seed.
pub(super) fn queue(data: &Data, measure: fn(&QueueRow) -> f64) -> Vec<f64> {
    data.queue_values(cutline_scenario::BASE, LINK, measure)
}

pub(super) const DROPS: fn(&QueueRow) -> f64 = |row| 100.0 * row.drop_ratio.unwrap_or(f64::NAN);

/// The difference of two means with independent seeds.
pub(crate) fn unpaired_difference(lab: &[f64], simulated: &[f64]) -> Option<Estimate> {
    let numbered = |values: &[f64], from: u64| (from..).zip(values.iter().copied()).collect::<Vec<_>>();
    let estimate = Comparison::new(&numbered(lab, 0), &numbered(simulated, 1 << 32))?;
    Some(Estimate { mean: estimate.difference, std_error: None, interval: estimate.interval, n: lab.len() })
}

/// The ratio of two means with independent seeds: their difference in units of the second, plus 1.
pub(crate) fn unpaired_ratio(lab: &[f64], simulated: &[f64]) -> Option<Estimate> {
    let unit = mean(simulated)?.mean;
    let scaled = |values: &[f64]| values.iter().map(|value| value / unit).collect::<Vec<_>>();
    let estimate =
        unpaired_difference(&scaled(lab), &scaled(simulated)).filter(|estimate| estimate.mean.is_finite())?;
    let interval = estimate.interval.map(|(low, high)| (low + 1.0, high + 1.0));
    Some(Estimate { mean: estimate.mean + 1.0, interval, ..estimate })
}

/// The best hint, and the smallest and the largest hint that are not significantly worse.
pub(super) fn best(data: &Data) -> Option<(u16, u16, u16)> {
    let q = |hint: u16| at_hint(data, "audio", hint, "audio", Q);
    let means: Vec<(u16, f64)> =
        HINTS.iter().filter_map(|&hint| Some((hint, mean(&q(hint))?.mean))).collect();
    let &(hint, _) = means.iter().max_by(|one, other| one.1.total_cmp(&other.1))?;
    let best = q(hint);
    let as_good = |other: u16| {
        difference(&best, &q(other)).and_then(|estimate| estimate.interval).is_none_or(|(low, _)| low <= 0.0)
    };
    let alike: Vec<u16> = HINTS.iter().copied().filter(|&other| other == hint || as_good(other)).collect();
    Some((hint, *alike.first()?, *alike.last()?))
}

/// The measures of claims, all of which are code.
pub(super) fn own(figure: &FigureText, id: &str) -> Option<Own> {
    Some(match figure.number {
        1 => both("lab-audio", by_hint(id)?),
        2 => both("lab-mixed", mix(id)?),
        3 => both("lab-cheat", cheat(id)?),
        _ => return stack(id),
    })
}

/// What is measured of an experiment in the laboratory and in the simulator.
type OfBoth = Box<dyn Fn([&Data; 2]) -> Measured>;

/// The measure of both sides of an experiment.
fn both(id: &'static str, measure: OfBoth) -> Own {
    Box::new(move |evidence| {
        let pair = evidence.data(Some(id)).zip(evidence.data(Some(&format!("{id}-simulated"))));
        pair.map_or_else(Measured::default, |(lab, simulated)| measure([lab, simulated]))
    })
}

fn by_hint(id: &str) -> Option<OfBoth> {
    fn at(data: &Data, hint: u16, measure: Measure) -> Vec<f64> {
        at_hint(data, "audio", hint, "audio", measure)
    }
    fn gain(data: &Data) -> Vec<f64> {
        over(&at(data, 6, Q), &alone(data, "audio", Q))
    }
    let falls = |measure: Measure, more: u16, less: u16| -> OfBoth {
        Box::new(move |[lab, _]| difference(&at(lab, more, measure), &at(lab, less, measure)).into())
    };
    Some(match id {
        "delay-order" => falls(MEDIAN, 16, 6),
        "delay-order-low" => falls(MEDIAN, 6, 1),
        "throughput-order" => falls(KBPS, 16, 1),
        "best-hint" => Box::new(|[lab, simulated]| best_hints(lab, simulated)),
        "quality-6" => Box::new(|both| {
            let [lab, simulated] = both.map(|data| at(data, 6, Q));
            unpaired_difference(&lab, &simulated).into()
        }),
        "normalised" => Box::new(|[lab, simulated]| unpaired_difference(&gain(lab), &gain(simulated)).into()),
        "delay-6" => Box::new(|both| {
            let [lab, simulated] = both.map(|data| at(data, 6, MEAN));
            unpaired_ratio(&lab, &simulated).into()
        }),
        "delay-alone" => Box::new(|both| {
            let [lab, simulated] = both.map(|data| alone(data, "audio", MEAN));
            unpaired_ratio(&lab, &simulated).into()
        }),
        _ => return None,
    })
}

/// A claim on a mix is named `CLASS-NUMBER`.
fn mix(id: &str) -> Option<OfBoth> {
    let (group, audio) = id.split_once('-')?;
    let (group, audio) = (group.to_owned(), audio.parse().ok()?);
    Some(Box::new(move |both| {
        let [lab, simulated] = both.map(|data| normalised(data, audio, &group));
        unpaired_difference(&lab, &simulated).into()
    }))
}

/// The best hint of the laboratory minus that of the simulator. The interval has all pairs of hints that cannot be told from the best.
fn best_hints(lab: &Data, simulated: &Data) -> Measured {
    let (Some((hint, least, most)), Some((there, from, to))) = (best(lab), best(simulated)) else {
        return Measured::default();
    };
    let [hint, least, most, simulated, from, to] = [hint, least, most, there, from, to].map(f64::from);
    let interval = Some((least - to, most - from));
    let estimate = Estimate { mean: hint - simulated, std_error: None, interval, n: 1 };
    let note =
        format!("Laboratory: {hint} ({least} to {most} are as good); simulated: {there} ({from} to {to}).");
    Measured { estimate: Some(estimate), note }
}

fn cheat(id: &str) -> Option<OfBoth> {
    fn at(data: &Data, hint: u16, group: &str, measure: Measure) -> Vec<f64> {
        at_hint(data, "cheater", hint, group, measure)
    }
    let alike = |hint: u16, measure: Measure| -> OfBoth {
        Box::new(move |both| {
            let [lab, simulated] = both.map(|data| at(data, hint, "cheater", measure));
            unpaired_ratio(&lab, &simulated).into()
        })
    };
    Some(match id {
        "pays" => Box::new(|[lab, _]| {
            difference(&at(lab, 1, "cheater", LOSS), &at(lab, 16, "cheater", LOSS)).into()
        }),
        "loss-1" => alike(1, LOSS),
        "loss-6" => alike(6, LOSS),
        "throughput-6" => alike(6, KBPS),
        "others" => Box::new(|[lab, _]| ratio(&at(lab, 1, "bulk", KBPS), &at(lab, 16, "bulk", KBPS)).into()),
        _ => return None,
    })
}

/// A measure of a queue.
type MeasureOfQueue = fn(&QueueRow) -> f64;
/// A comparison of independent values.
type Comparing = fn(&[f64], &[f64]) -> Option<Estimate>;

fn stack(id: &str) -> Option<Own> {
    let (lab, simulated) = ("lab-tcp", "lab-tcp-simulated");
    let (one, other) = match id {
        "stock" | "queue" | "utilisation" => (lab, simulated),
        "classic" => ("lab-tcp-classic", simulated),
        "delack" => ("lab-tcp-delack", "lab-tcp-simulated-delack"),
        "sack" => ("lab-tcp-sack", "lab-tcp-simulated-sack"),
        "sack-classic" => ("lab-tcp-sack-classic", "lab-tcp-simulated-sack"),
        "cubic" => ("lab-tcp-cubic", "lab-tcp-simulated-cubic"),
        "bbr" => ("lab-tcp-bbr", lab),
        _ => return None,
    };
    let (measure, compare): (MeasureOfQueue, Comparing) = match id {
        "queue" => (|row| row.backlog_mean_packets, unpaired_ratio),
        "utilisation" => (|row| 100.0 * row.utilisation, unpaired_difference),
        _ => (DROPS, unpaired_ratio),
    };
    Some(Box::new(move |evidence| {
        let of = |id| evidence.data(Some(id)).map_or_else(Vec::new, |data| queue(data, measure));
        compare(&of(one), &of(other)).into()
    }))
}
