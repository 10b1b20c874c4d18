//! What is measured of each flow, and what each claim is about.

use crate::claims::{FigureText, Own};
use crate::data::{Data, difference, mean, unpaired_difference, unpaired_ratio};
use crate::study::ExperimentData;
use crate::study::results_of;
use cutline_lab::routed::{FRAMES_SHOWN, OFFERED, PSNR, SSIM};
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

use Of::{Difference, One, Ratio};

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

/// What each claim is about; its rule is in `figures.toml`.
pub(super) const MEASURES: &[(&str, Of)] = &[
    ("netvideo-a2.match", One(Share, NV_A2)),
    ("netvideo-b2.match", One(Share, NV_B2)),
    ("netvideo-c2.match", One(Share, NV_C2)),
    ("netvideo-b2.steady", Ratio(Received, NV_B2, NV_A2)),
    ("netvideo-c2.steady", Ratio(Received, NV_C2, NV_A2)),
    ("netvideo-c2.rate", One(Received, NV_C2)),
    ("netvideo-a2.overhead", Ratio(Received, NV_A2, NV_A1)),
    ("netvideo-c1.half", One(Share, NV_C1)),
    ("netvideo-c2.twice", Ratio(Received, NV_C2, NV_C1)),
    ("netvideo-c1.missing", One(Missing, TG_C1)),
    ("netvideo-c2.missing", One(Missing, TG_C2)),
    ("netvideo-c2.others-pay", Difference(Missing, TG_C2, TG_C1)),
    ("netvideo-a1.loss", One(Loss, NV_A1)),
    ("netvideo-a2.loss", One(Loss, NV_A2)),
    ("netvideo-b1.loss", One(Loss, NV_B1)),
    ("netvideo-b2.loss", One(Loss, NV_B2)),
    ("netvideo-c2.loss", One(Loss, NV_C2)),
    ("netvideo-c1.loss", One(Loss, NV_C1)),
    ("netvideo-c1.tg-loss", One(Loss, TG_C1)),
    ("netvideo-c2.tg-loss", One(Loss, TG_C2)),
    ("netvideo-c1.more", Difference(Loss, NV_C1, TG_C1)),
    ("netvideo-c2.tg-more", Difference(Loss, TG_C2, TG_C1)),
    ("netvideo-a2.delay", One(Delay, NV_A2)),
    ("netvideo-b2.delay", One(Delay, NV_B2)),
    ("netvideo-c2.delay", One(Delay, NV_C2)),
    ("netvideo-c1.times", Ratio(Delay, NV_C1, NV_C2)),
    ("netvideo-c1.tg-times", Ratio(Delay, TG_C1, NV_C2)),
    ("netvideo-c1.tg-delay", One(Delay, TG_C1)),
    ("netvideo-c2.tg-delay", One(Delay, TG_C2)),
    ("netvideo-c2.tg-later", Difference(Delay, TG_C2, TG_C1)),
    ("netvideo-a2.delay-spec", One(Delay99, NV_A2)),
    ("netvideo-b2.delay-spec", One(Delay99, NV_B2)),
    ("netvideo-c2.delay-spec", One(Delay99, NV_C2)),
    ("netvideo-a2.jitter", One(Jitter, NV_A2)),
    ("netvideo-b2.jitter", One(Jitter, NV_B2)),
    ("netvideo-c2.jitter", One(Jitter, NV_C2)),
    ("netvideo-c1.jitter", One(Jitter, NV_C1)),
    ("netvideo-c2.less", Difference(Jitter, NV_C2, NV_C1)),
    ("netvideo-c2.tg-less", Difference(Jitter, TG_C2, TG_C1)),
    ("netvideo-a2.jitter-spec", One(Jitter95, NV_A2)),
    ("netvideo-b2.jitter-spec", One(Jitter95, NV_B2)),
    ("netvideo-c2.jitter-spec", One(Jitter95, NV_C2)),
    ("dirm-a2.match", One(Share, DM_A2)),
    ("dirm-b2.match", One(Share, DM_B2)),
    ("dirm-c2.match", One(Share, DM_C2)),
    ("dirm-a2.alike", Ratio(Received, DM_A2, DM_A1)),
    ("dirm-b2.faster", Ratio(Received, DM_B2, DM_B1)),
    ("dirm-c2.faster", Ratio(Received, DM_C2, DM_C1)),
    ("dirm-c2.by", Ratio(Received, DM_C2, DM_C1)),
    ("dirm-c1.falls", Ratio(Received, DM_C1, DM_A1)),
    ("dirm-c2.falls", Ratio(Received, DM_C2, DM_A2)),
    ("dirm-b2.delay", Difference(Delay, DM_B2, DM_B1)),
    ("dirm-c2.delay", Difference(Delay, DM_C2, DM_C1)),
    ("dirm-c2.before-tg", Difference(Delay, DM_C2, DM_TG_C2)),
    ("dirm-a1.longer", Difference(Delay, DM_A1, DM_TG_A3)),
    ("dirm-b2.tg-alike", Ratio(Delay, DM_TG_B2, DM_TG_B1)),
    ("dirm-c2.tg-alike", Ratio(Delay, DM_TG_C2, DM_TG_C1)),
    ("dirm-c2.tg-rises", Difference(Delay, DM_TG_C2, DM_TG_B2)),
    ("dirm-c2.jitter", Difference(Jitter, DM_C2, DM_C1)),
    ("dirm-a1.jitter-more", Difference(Jitter, DM_A1, DM_TG_A3)),
    ("dirm-c1.jitter-rises", Difference(Jitter, DM_C1, DM_A1)),
    ("dirm-c2.jitter-spec", One(Jitter, DM_C2)),
    ("dirm-c2.kept", Ratio(Received, DM_C2, DM_A2)),
    ("dirm-c2-both.kept", Ratio(Received, DM_BOTH, DM_A2)),
    ("dirm-d2.better", Ratio(Received, DM_D2, DM_D1)),
    ("dirm-d2.lost", Ratio(Received, DM_D2, DM_A2)),
    ("dirm-d3.better", Ratio(Received, DM_D3, DM_D2)),
    ("dirm-d3.kept", Ratio(Received, DM_D3, DM_A2)),
    ("netvideo-a2.frames", One(Frames, NV_A2)),
    ("netvideo-b2.frames", One(Frames, NV_B2)),
    ("netvideo-c2.frames", One(Frames, NV_C2)),
    ("netvideo-c2.more-frames", Difference(Frames, NV_C2, NV_C1)),
    ("netvideo-c2.seen", Ratio(Similarity, NV_C2, NV_A2)),
    ("netvideo-c2.better-seen", Difference(Similarity, NV_C2, NV_C1)),
    ("netvideo-c2.noise", Difference(Noise, NV_C2, NV_C1)),
    ("netvideo-c1-narrow.loss", One(Loss, NARROW_C1)),
    ("netvideo-c1-narrow.tg-loss", One(Loss, NARROW_TG_C1)),
    ("netvideo-c2-narrow.tg-loss", One(Loss, NARROW_TG_C2)),
    ("netvideo-c2-narrow.loss", One(Loss, NARROW_C2)),
    ("netvideo-c2-narrow.delay", One(Delay, NARROW_C2)),
];

/// The measures of claims, all of which are code.
pub(super) fn own(_figure: &FigureText, id: &str) -> Option<Own> {
    let id = format!(".{id}");
    MEASURES.iter().any(|(claim, _)| claim.ends_with(&id)).then(|| -> Own {
        Box::new(move |evidence| {
            let full = format!("{}{id}", evidence.experiment.id);
            let of = MEASURES.iter().find(|(claim, _)| *claim == full).map(|(_, of)| of);
            of.and_then(|of| of.estimate(evidence.all)).into()
        })
    })
}

impl Of {
    /// The experiments that it needs.
    #[cfg(test)]
    pub(super) fn experiments(self) -> Vec<&'static str> {
        match self {
            One(_, (experiment, _)) => vec![experiment],
            Ratio(_, (one, _), (other, _)) | Difference(_, (one, _), (other, _)) => vec![one, other],
        }
    }

    fn estimate(self, stored: &[ExperimentData<'_>]) -> Option<Estimate> {
        let values = |quantity: Quantity, (experiment, flow): Subject| {
            results_of(stored, experiment).map(|data| quantity.values(data, flow)).unwrap_or_default()
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
