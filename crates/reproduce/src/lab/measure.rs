//! Measures of laboratory and simulator, and whether they agree.

use crate::claims::{Judge, judged};
use crate::data::{Data, difference, mean, ratio};
use crate::study::ExperimentData;
use cutline_report::report::{Claim, Verdict};
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
/// The tolerance of comparisons of quality.
const NEAR_QUALITY: f64 = 0.1;
/// The range of ratios that count as equal.
pub(crate) const NEAR_RATIO: (f64, f64) = (0.8, 1.25);

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
        difference(&best, &q(other)).is_none_or(|estimate| estimate.is_above(0.0) != Verdict::Holds)
    };
    let alike: Vec<u16> = HINTS.iter().copied().filter(|&other| other == hint || as_good(other)).collect();
    Some((hint, *alike.first()?, *alike.last()?))
}

/// Measures and judges a claim of a figure.
pub(super) fn judge(claim: Claim, figure: u32, id: &str, stored: &[ExperimentData<'_>]) -> Claim {
    match figure {
        1 => pair(stored, "lab-audio").map(|both| by_hint(claim.clone(), id, both)),
        2 => pair(stored, "lab-mixed").map(|both| mix(claim.clone(), id, both)),
        3 => pair(stored, "lab-cheat").map(|both| cheat(claim.clone(), id, both)),
        _ => Some(stack(claim.clone(), id, stored)),
    }
    .unwrap_or_else(|| claim.note("There are no results for this claim."))
}

/// The results of an experiment in the laboratory and in the simulator.
fn pair<'s>(stored: &'s [ExperimentData<'_>], id: &str) -> Option<[&'s Data; 2]> {
    Some([data(stored, id)?, data(stored, &format!("{id}-simulated"))?])
}

fn near_ratio(estimate: &Estimate) -> Verdict {
    estimate.is_within(NEAR_RATIO.0, NEAR_RATIO.1)
}

fn near_quality(estimate: &Estimate) -> Verdict {
    estimate.is_within(-NEAR_QUALITY, NEAR_QUALITY)
}

fn by_hint(claim: Claim, id: &str, [lab, simulated]: [&Data; 2]) -> Claim {
    let at = |data, hint, measure| at_hint(data, "audio", hint, "audio", measure);
    let both = |hint, measure| [at(lab, hint, measure), at(simulated, hint, measure)];
    let above = |estimate: &Estimate| estimate.is_above(0.0);
    let gain = |data| over(&at(data, 6, Q), &alone(data, "audio", Q));
    match id {
        "delay-order" => judged(claim, difference(&at(lab, 16, MEDIAN), &at(lab, 6, MEDIAN)), above),
        "delay-order-low" => judged(claim, difference(&at(lab, 6, MEDIAN), &at(lab, 1, MEDIAN)), above),
        "throughput-order" => judged(claim, difference(&at(lab, 16, KBPS), &at(lab, 1, KBPS)), above),
        "best-hint" => best_hint(claim, lab, simulated),
        "quality-6" => {
            let [lab, simulated] = both(6, Q);
            judged(claim, unpaired_difference(&lab, &simulated), near_quality)
        }
        "normalised" => judged(claim, unpaired_difference(&gain(lab), &gain(simulated)), near_quality),
        "delay-6" => {
            let [lab, simulated] = both(6, MEAN);
            judged(claim, unpaired_ratio(&lab, &simulated), near_ratio)
        }
        "delay-alone" => {
            let estimate = unpaired_ratio(&alone(lab, "audio", MEAN), &alone(simulated, "audio", MEAN));
            judged(claim, estimate, near_ratio)
        }
        id => unreachable!("figures.toml has the claim `{id}`, but no code measures it"),
    }
}

/// Holds if the best hints of laboratory and simulator overlap, each with the hints that are not significantly worse.
fn best_hint(claim: Claim, lab: &Data, simulated: &Data) -> Claim {
    let (Some((hint, least, most)), Some((there, from, to))) = (best(lab), best(simulated)) else {
        return claim.note("There are no results for this claim.");
    };
    let interval = Some((f64::from(least), f64::from(most)));
    let estimate = Estimate { mean: f64::from(hint), std_error: None, interval, n: 1 };
    let note = format!("Simulated: {there} ({from} to {to} are as good).");
    claim.measured(&estimate).holds(estimate.meets(f64::from(from), f64::from(to))).note(note)
}

fn mix(claim: Claim, id: &str, [lab, simulated]: [&Data; 2]) -> Claim {
    let (group, audio) = id.split_once('-').expect("a claim on a mix is named CLASS-NUMBER");
    let audio = audio.parse().expect("a claim on a mix is named CLASS-NUMBER");
    let estimate = unpaired_difference(&normalised(lab, audio, group), &normalised(simulated, audio, group));
    judged(claim, estimate, near_quality)
}

fn cheat(claim: Claim, id: &str, [lab, simulated]: [&Data; 2]) -> Claim {
    let at = |data, hint, measure| at_hint(data, "cheater", hint, "cheater", measure);
    let both = |hint, measure| unpaired_ratio(&at(lab, hint, measure), &at(simulated, hint, measure));
    match id {
        "pays" => judged(claim, difference(&at(lab, 1, LOSS), &at(lab, 16, LOSS)), |estimate| {
            estimate.is_above(0.0)
        }),
        "loss-1" => judged(claim, both(1, LOSS), near_ratio),
        "loss-6" => judged(claim, both(6, LOSS), near_ratio),
        "throughput-6" => judged(claim, both(6, KBPS), |estimate| estimate.is_within(0.95, 1.05)),
        "others" => {
            let bulk = |hint| at_hint(lab, "cheater", hint, "bulk", KBPS);
            judged(claim, ratio(&bulk(1), &bulk(16)), |estimate| estimate.is_not_below(1.0))
        }
        id => unreachable!("figures.toml has the claim `{id}`, but no code measures it"),
    }
}

fn stack(claim: Claim, id: &str, stored: &[ExperimentData<'_>]) -> Claim {
    let of = |id: &str, measure| data(stored, id).map_or_else(Vec::new, |data| queue(data, measure));
    let drops = |one, other| unpaired_ratio(&of(one, DROPS), &of(other, DROPS));
    let (lab, simulated) = ("lab-tcp", "lab-tcp-simulated");
    match id {
        "stock" => judged(claim, drops(lab, simulated), near_ratio),
        "classic" => judged(claim, drops("lab-tcp-classic", simulated), near_ratio),
        "delack" => judged(claim, drops("lab-tcp-delack", "lab-tcp-simulated-delack"), near_ratio),
        "sack" => judged(claim, drops("lab-tcp-sack", "lab-tcp-simulated-sack"), near_ratio),
        "sack-classic" => judged(claim, drops("lab-tcp-sack-classic", "lab-tcp-simulated-sack"), near_ratio),
        "cubic" => judged(claim, drops("lab-tcp-cubic", "lab-tcp-simulated-cubic"), near_ratio),
        "bbr" => judged(claim, drops("lab-tcp-bbr", lab), |estimate| estimate.is_above(1.0)),
        "queue" => {
            let backlog: fn(&QueueRow) -> f64 = |row| row.backlog_mean_packets;
            judged(claim, unpaired_ratio(&of(lab, backlog), &of(simulated, backlog)), near_ratio)
        }
        "utilisation" => {
            let percent: fn(&QueueRow) -> f64 = |row| 100.0 * row.utilisation;
            judged(claim, unpaired_difference(&of(lab, percent), &of(simulated, percent)), |estimate| {
                estimate.is_within(-2.0, 2.0)
            })
        }
        id => unreachable!("figures.toml has the claim `{id}`, but no code measures it"),
    }
}
