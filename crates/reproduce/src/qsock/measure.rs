//! What is measured of each flow, and the rules of the claims.

use crate::claims::{Judge, judged};
use crate::data::{Data, difference, mean};
use crate::lab::measure::{data, unpaired_difference, unpaired_ratio};
use crate::study::ExperimentData;
use cutline_lab::routed::{FRAMES_SHOWN, OFFERED, PSNR, SSIM};
use cutline_report::report::{Claim, Verdict};
use cutline_report::stats::{Cdf, Estimate};
use cutline_results::FlowRow;
use cutline_scenario::BASE;

/// A measure of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    /// The rate at which the application sends, kbit/s.
    Sent,
    /// The rate that reaches the other application, kbit/s (eq. 2).
    Received,
    /// What of the sent rate is not received, kbit/s.
    Missing,
    /// Received / sent.
    Share,
    /// Messages lost, % (eq. 3).
    Loss,
    /// Mean delay, ms (eq. 4).
    Delay,
    /// The delay that 99 % of the messages keep, ms.
    Delay99,
    /// Mean jitter, ms (eq. 5).
    Jitter,
    /// The jitter that 95 % of the messages keep, ms.
    Jitter95,
    /// Frames of the video that were shown, %.
    Frames,
    /// Structural similarity of what was seen to what was drawn.
    Similarity,
    /// Peak signal-to-noise ratio of what was seen, dB.
    Noise,
}

use Quantity::{
    Delay, Delay99, Frames, Jitter, Jitter95, Loss, Missing, Noise, Received, Sent, Share, Similarity,
};

/// A flow in an experiment. Of flows with a number, the name without it stands for their mean.
type Subject = (&'static str, &'static str);

/// What a claim is about.
#[derive(Clone, Copy, Debug)]
pub(super) enum Of {
    /// A measure of a flow.
    One(Quantity, Subject),
    /// The measure of a flow / that of another.
    Ratio(Quantity, Subject, Subject),
    /// The measure of a flow less that of another.
    Difference(Quantity, Subject, Subject),
}

/// When a claim holds: if the whole confidence interval is there.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rule {
    Within(Of, f64, f64),
    Below(Of, f64),
    Above(Of, f64),
}

use Of::{Difference, One, Ratio};
use Rule::{Above, Below, Within};

const NV_A1: Subject = ("netvideo-a1", "main");
const NV_A2: Subject = ("netvideo-a2", "main");
const NV_B1: Subject = ("netvideo-b1", "main");
const NV_B2: Subject = ("netvideo-b2", "main");
const NV_C1: Subject = ("netvideo-c1", "main");
const NV_C2: Subject = ("netvideo-c2", "main");
const TG_C1: Subject = ("netvideo-c1", "tg");
const TG_C2: Subject = ("netvideo-c2", "tg");
const NARROW_C1: Subject = ("netvideo-c1-narrow", "main");
const NARROW_C2: Subject = ("netvideo-c2-narrow", "main");
const NARROW_TG_C1: Subject = ("netvideo-c1-narrow", "tg");
const NARROW_TG_C2: Subject = ("netvideo-c2-narrow", "tg");
const DM_A1: Subject = ("dirm-a1", "main");
const DM_A2: Subject = ("dirm-a2", "main");
const DM_TG_A3: Subject = ("dirm-a3", "tg");
const DM_B1: Subject = ("dirm-b1", "main");
const DM_B2: Subject = ("dirm-b2", "main");
const DM_TG_B1: Subject = ("dirm-b1", "tg");
const DM_TG_B2: Subject = ("dirm-b2", "tg");
const DM_C1: Subject = ("dirm-c1", "main");
const DM_C2: Subject = ("dirm-c2", "main");
const DM_BOTH: Subject = ("dirm-c2-both", "main");
const DM_TG_C1: Subject = ("dirm-c1", "tg");
const DM_TG_C2: Subject = ("dirm-c2", "tg");
const DM_D1: Subject = ("dirm-d1", "main");
const DM_D2: Subject = ("dirm-d2", "main");
const DM_D3: Subject = ("dirm-d3", "main");

/// The rules of all claims, set before the first run.
pub(super) const RULES: &[(&str, Rule)] = &[
    // Figure 6.
    ("netvideo-a2.match", Within(One(Share, NV_A2), 0.99, 1.01)),
    ("netvideo-b2.match", Within(One(Share, NV_B2), 0.99, 1.01)),
    ("netvideo-c2.match", Within(One(Share, NV_C2), 0.99, 1.01)),
    ("netvideo-b2.steady", Within(Ratio(Received, NV_B2, NV_A2), 0.97, 1.03)),
    ("netvideo-c2.steady", Within(Ratio(Received, NV_C2, NV_A2), 0.97, 1.03)),
    ("netvideo-c2.rate", Within(One(Received, NV_C2), 494.0, 546.0)),
    ("netvideo-a2.overhead", Below(Ratio(Received, NV_A2, NV_A1), 1.0)),
    ("netvideo-c1.half", Within(One(Share, NV_C1), 0.4, 0.6)),
    ("netvideo-c2.twice", Within(Ratio(Received, NV_C2, NV_C1), 1.6, 2.4)),
    ("netvideo-c1.missing", Within(One(Missing, TG_C1), 96.0, 144.0)),
    ("netvideo-c2.missing", Within(One(Missing, TG_C2), 160.0, 240.0)),
    ("netvideo-c2.others-pay", Above(Difference(Missing, TG_C2, TG_C1), 0.0)),
    // Figure 7.
    ("netvideo-a1.loss", Above(One(Loss, NV_A1), 0.0)),
    ("netvideo-a2.loss", Below(One(Loss, NV_A2), 0.1)),
    ("netvideo-b1.loss", Below(One(Loss, NV_B1), 0.1)),
    ("netvideo-b2.loss", Below(One(Loss, NV_B2), 0.1)),
    ("netvideo-c2.loss", Below(One(Loss, NV_C2), 0.1)),
    ("netvideo-c1.loss", Within(One(Loss, NV_C1), 42.0, 52.0)),
    ("netvideo-c1.tg-loss", Within(One(Loss, TG_C1), 20.0, 30.0)),
    ("netvideo-c2.tg-loss", Within(One(Loss, TG_C2), 35.0, 45.0)),
    ("netvideo-c1.more", Above(Difference(Loss, NV_C1, TG_C1), 0.0)),
    ("netvideo-c2.tg-more", Above(Difference(Loss, TG_C2, TG_C1), 0.0)),
    // Figure 8.
    ("netvideo-a2.delay", Below(One(Delay, NV_A2), 30.0)),
    ("netvideo-b2.delay", Below(One(Delay, NV_B2), 30.0)),
    ("netvideo-c2.delay", Below(One(Delay, NV_C2), 30.0)),
    ("netvideo-c1.times", Within(Ratio(Delay, NV_C1, NV_C2), 10.0, 30.0)),
    ("netvideo-c1.tg-times", Within(Ratio(Delay, TG_C1, NV_C2), 10.0, 30.0)),
    ("netvideo-c1.tg-delay", Within(One(Delay, TG_C1), 480.0, 720.0)),
    ("netvideo-c2.tg-delay", Within(One(Delay, TG_C2), 576.0, 864.0)),
    ("netvideo-c2.tg-later", Above(Difference(Delay, TG_C2, TG_C1), 0.0)),
    ("netvideo-a2.delay-spec", Below(One(Delay99, NV_A2), 100.0)),
    ("netvideo-b2.delay-spec", Below(One(Delay99, NV_B2), 100.0)),
    ("netvideo-c2.delay-spec", Below(One(Delay99, NV_C2), 100.0)),
    // Figure 9.
    ("netvideo-a2.jitter", Below(One(Jitter, NV_A2), 10.0)),
    ("netvideo-b2.jitter", Below(One(Jitter, NV_B2), 10.0)),
    ("netvideo-c2.jitter", Below(One(Jitter, NV_C2), 10.0)),
    ("netvideo-c1.jitter", Within(One(Jitter, NV_C1), 92.0, 138.0)),
    ("netvideo-c2.less", Below(Difference(Jitter, NV_C2, NV_C1), 0.0)),
    ("netvideo-c2.tg-less", Below(Difference(Jitter, TG_C2, TG_C1), 0.0)),
    ("netvideo-a2.jitter-spec", Below(One(Jitter95, NV_A2), 50.0)),
    ("netvideo-b2.jitter-spec", Below(One(Jitter95, NV_B2), 50.0)),
    ("netvideo-c2.jitter-spec", Below(One(Jitter95, NV_C2), 50.0)),
    // Figure 10.
    ("dirm-a2.match", Within(One(Share, DM_A2), 0.97, 1.03)),
    ("dirm-b2.match", Within(One(Share, DM_B2), 0.97, 1.03)),
    ("dirm-c2.match", Within(One(Share, DM_C2), 0.97, 1.03)),
    ("dirm-a2.alike", Within(Ratio(Received, DM_A2, DM_A1), 0.95, 1.05)),
    ("dirm-b2.faster", Above(Ratio(Received, DM_B2, DM_B1), 1.0)),
    ("dirm-c2.faster", Above(Ratio(Received, DM_C2, DM_C1), 1.0)),
    ("dirm-c2.by", Within(Ratio(Received, DM_C2, DM_C1), 1.1, 1.3)),
    ("dirm-c1.falls", Below(Ratio(Received, DM_C1, DM_A1), 1.0)),
    ("dirm-c2.falls", Below(Ratio(Received, DM_C2, DM_A2), 1.0)),
    // Figure 11.
    ("dirm-b2.delay", Below(Difference(Delay, DM_B2, DM_B1), 0.0)),
    ("dirm-c2.delay", Below(Difference(Delay, DM_C2, DM_C1), 0.0)),
    ("dirm-c2.before-tg", Below(Difference(Delay, DM_C2, DM_TG_C2), 0.0)),
    ("dirm-a1.longer", Above(Difference(Delay, DM_A1, DM_TG_A3), 0.0)),
    ("dirm-b2.tg-alike", Within(Ratio(Delay, DM_TG_B2, DM_TG_B1), 0.8, 1.25)),
    ("dirm-c2.tg-alike", Within(Ratio(Delay, DM_TG_C2, DM_TG_C1), 0.8, 1.25)),
    ("dirm-c2.tg-rises", Above(Difference(Delay, DM_TG_C2, DM_TG_B2), 0.0)),
    // Figure 12.
    ("dirm-c2.jitter", Below(Difference(Jitter, DM_C2, DM_C1), 0.0)),
    ("dirm-a1.jitter-more", Above(Difference(Jitter, DM_A1, DM_TG_A3), 0.0)),
    ("dirm-c1.jitter-rises", Above(Difference(Jitter, DM_C1, DM_A1), 0.0)),
    ("dirm-c2.jitter-spec", Below(One(Jitter, DM_C2), 250.0)),
    // Ours: acknowledgements.
    ("dirm-c2.kept", Within(Ratio(Received, DM_C2, DM_A2), 0.95, 1.05)),
    ("dirm-c2-both.kept", Within(Ratio(Received, DM_BOTH, DM_A2), 0.95, 1.05)),
    ("dirm-d2.better", Above(Ratio(Received, DM_D2, DM_D1), 1.0)),
    ("dirm-d2.lost", Below(Ratio(Received, DM_D2, DM_A2), 0.95)),
    ("dirm-d3.better", Above(Ratio(Received, DM_D3, DM_D2), 1.0)),
    ("dirm-d3.kept", Within(Ratio(Received, DM_D3, DM_A2), 0.95, 1.05)),
    // Ours: what the viewer saw.
    ("netvideo-a2.frames", Above(One(Frames, NV_A2), 95.0)),
    ("netvideo-b2.frames", Above(One(Frames, NV_B2), 95.0)),
    ("netvideo-c2.frames", Above(One(Frames, NV_C2), 95.0)),
    ("netvideo-c2.more-frames", Above(Difference(Frames, NV_C2, NV_C1), 0.0)),
    ("netvideo-c2.seen", Within(Ratio(Similarity, NV_C2, NV_A2), 0.98, 1.02)),
    ("netvideo-c2.better-seen", Above(Difference(Similarity, NV_C2, NV_C1), 0.05)),
    ("netvideo-c2.noise", Above(Difference(Noise, NV_C2, NV_C1), 3.0)),
    // Ours: a narrower line.
    ("netvideo-c1-narrow.loss", Within(One(Loss, NARROW_C1), 42.0, 52.0)),
    ("netvideo-c1-narrow.tg-loss", Within(One(Loss, NARROW_TG_C1), 20.0, 30.0)),
    ("netvideo-c2-narrow.tg-loss", Within(One(Loss, NARROW_TG_C2), 35.0, 45.0)),
    ("netvideo-c2-narrow.loss", Below(One(Loss, NARROW_C2), 0.1)),
    ("netvideo-c2-narrow.delay", Below(One(Delay, NARROW_C2), 30.0)),
];

/// The rule of the claim with this id.
pub(super) fn rule(id: &str) -> Option<&'static Rule> {
    RULES.iter().find(|(claim, _)| *claim == id).map(|(_, rule)| rule)
}

/// Measures and judges a claim.
pub(super) fn judge(claim: Claim, id: &str, stored: &[ExperimentData<'_>]) -> Claim {
    let rule = rule(id)
        .unwrap_or_else(|| unreachable!("figures.toml has the claim `{id}`, but no rule measures it"));
    judged(claim, rule.of().estimate(stored), |estimate| rule.verdict(estimate))
}

impl Rule {
    const fn of(&self) -> Of {
        let (Within(of, ..) | Below(of, _) | Above(of, _)) = *self;
        of
    }

    fn verdict(&self, estimate: &Estimate) -> Verdict {
        match *self {
            Within(_, low, high) => estimate.is_within(low, high),
            Below(_, limit) => estimate.is_below(limit),
            Above(_, limit) => estimate.is_above(limit),
        }
    }

    /// The experiments that it needs.
    #[cfg(test)]
    pub(super) fn experiments(&self) -> Vec<&'static str> {
        match self.of() {
            One(_, (experiment, _)) => vec![experiment],
            Ratio(_, (one, _), (other, _)) | Difference(_, (one, _), (other, _)) => vec![one, other],
        }
    }
}

impl Of {
    fn estimate(self, stored: &[ExperimentData<'_>]) -> Option<Estimate> {
        let values = |quantity: Quantity, (experiment, flow): Subject| {
            data(stored, experiment).map(|data| quantity.values(data, flow)).unwrap_or_default()
        };
        match self {
            One(quantity, subject) => mean(&values(quantity, subject)),
            Ratio(quantity, one, other) => unpaired_ratio(&values(quantity, one), &values(quantity, other)),
            Difference(quantity, one, other) => {
                let (left, right) = (values(quantity, one), values(quantity, other));
                if one.0 == other.0 { difference(&left, &right) } else { unpaired_difference(&left, &right) }
            }
        }
    }
}

impl Quantity {
    /// The values of a flow, or the means of a group of flows, one for each seed.
    pub(super) fn values(self, data: &Data, flow: &str) -> Vec<f64> {
        let rows = |measure: fn(&FlowRow) -> Option<f64>| data.per_seed_of(BASE, flow, measure);
        match self {
            Sent => sent(data, flow),
            Received => rows(|row| Some(row.goodput_bps / 1e3)),
            Missing => pairs(&Sent.values(data, flow), &Received.values(data, flow), |sent, received| {
                sent - received
            }),
            Share => pairs(&Sent.values(data, flow), &Received.values(data, flow), |sent, received| {
                received / sent
            }),
            Loss => rows(|row| Some(100.0 * row.loss_ratio?)),
            Delay => rows(|row| row.one_way_mean_ms),
            Delay99 => rows(|row| row.one_way_p99_ms),
            Jitter => rows(|row| row.ipdv_mean_ms),
            Jitter95 => rows(|row| row.ipdv_p95_ms),
            Frames => singles(data, flow, FRAMES_SHOWN),
            Similarity => singles(data, flow, SSIM),
            Noise => singles(data, flow, PSNR),
        }
    }
}

fn pairs(sent: &[f64], received: &[f64], of: fn(f64, f64) -> f64) -> Vec<f64> {
    sent.iter().zip(received).map(|(sent, received)| of(*sent, *received)).collect()
}

/// The single values of a flow, one for each seed.
fn singles(data: &Data, flow: &str, quantity: &str) -> Vec<f64> {
    data.delay_cdfs(BASE, flow, quantity).iter().map(Cdf::mean).collect()
}

/// The most flows of a group.
const MOST_MEMBERS: u32 = 9;

/// The rates at which the applications of a flow, or of a group of flows, sent payload, kbit/s.
fn sent(data: &Data, flow: &str) -> Vec<f64> {
    let of =
        |name: &str| -> Vec<f64> { singles(data, name, OFFERED).iter().map(|rate| rate / 1e3).collect() };
    let alone = of(flow);
    if !alone.is_empty() {
        return alone;
    }
    let members: Vec<Vec<f64>> = (1..=MOST_MEMBERS)
        .map(|number| of(&format!("{flow}.{number}")))
        .take_while(|values| !values.is_empty())
        .collect();
    let seeds = members.iter().map(Vec::len).min().unwrap_or(0);
    let mean_of = |seed: usize| members.iter().map(|values| values[seed]).sum::<f64>() / members.len() as f64;
    (0..seeds).map(mean_of).collect()
}
