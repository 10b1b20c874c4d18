//! Applications over QoS sockets beside the same over plain ones: a video whose rate adapts, and a call whose hint adapts.

mod charts;
pub(crate) mod connections;
pub(crate) mod measure;

use crate::claims::{FigureText, Judge, judged};
use crate::data::{Data, difference, mean};
use crate::experiment::{Experiment, Platform};
use crate::measure::{lost, voice};
use crate::study::{ExperimentData, Study};
use connections::Judgement;
use cutline_report::chart::{Chart, Figure};
use cutline_report::report::{Claim, Section};
use measure::{CODECS, LOADS, NARROW, Video, call_quality, call_values, one_way_ms};

/// The study.
pub const QOS: Study = Study {
    id: "qos",
    title: "Applications over QoS sockets",
    statement_heading: "The question",
    intro: INTRO,
    figures: include_str!("../../../../experiments/qos/figures.toml"),
    experiments: &EXPERIMENTS,
    own: |_, _| None,
    sections_of,
};

const INTRO: &str = "\
Two applications over QoS sockets, simulated: the sessions of both ends negotiate, measure, report and adapt as in a program, and \
their messages cross the network's queues. Beside them the same applications over plain datagram sockets. Numbers are means over \
seeds with their 95 % confidence interval.";

const CALL: (&str, &str) = ("call.toml", include_str!("../../../../experiments/qos/call.toml"));
const VIDEO: (&str, &str) = ("video.toml", include_str!("../../../../experiments/qos/video.toml"));
const QUICK: &[(&str, &str)] = &[("duration", "60 s"), ("warm-up", "30 s"), ("seeds", "2")];
const QUICK_VIDEO: &[(&str, &str)] = &[("seeds", "2")];

const SOCKETS: Platform = Platform::QosSockets(Judgement::Quality);

const EXPERIMENTS: [Experiment; 6] = [
    Experiment::new("qos-video", "QoS socket", VIDEO).shortened_by(QUICK_VIDEO).on(SOCKETS),
    Experiment::new("qos-video-plain", "plain socket", VIDEO).shortened_by(QUICK_VIDEO),
    Experiment::new("qos-call", "QoS socket", CALL).shortened_by(QUICK).on(SOCKETS),
    Experiment::new("qos-call-loss", "QoS socket that counts loss", CALL)
        .shortened_by(QUICK)
        .on(Platform::QosSockets(Judgement::QualityAndLoss)),
    Experiment::new("qos-call-limit", "QoS socket that keeps its limit of loss", CALL)
        .shortened_by(QUICK)
        .on(Platform::QosSockets(Judgement::WithinLimit)),
    Experiment::new("qos-call-plain", "plain socket", CALL).shortened_by(QUICK),
];

/// Judges a claim by its id, from the results over QoS sockets and over plain ones.
type JudgeBoth = fn(Claim, &str, &Data, &Data) -> Claim;

/// The largest loss of quality that counts as none.
const TOLERANCE: f64 = 0.005;
/// The largest share of its messages that a call accepts to lose, %.
const CALL_LIMIT: f64 = 3.0;
/// How much more lost messages count as none, %.
const LOSS_TOLERANCE: f64 = 0.5;

fn sections_of(figure: &FigureText, stored: &[ExperimentData<'_>]) -> Vec<Section> {
    let [(experiment, qos), (_, plain)] = *stored else { return Vec::new() };
    let (charts, we_see, judge): (Vec<Chart>, String, JudgeBoth) = match figure.number {
        1 => (charts::video(qos, plain), videos_seen(qos, plain), judge_video),
        2 => (charts::calls(qos, plain), calls_seen(qos, plain), judge_calls),
        3 => (charts::voices(qos, plain), calls_seen(qos, plain), judge_voices),
        _ => (charts::losses(qos, plain), calls_seen(qos, plain), judge_limits),
    };
    let claims = figure.claim_ids().map(|id| judge(figure.claim(experiment.id, id), id, qos, plain));
    vec![Section {
        we_see,
        figures: vec![(format!("figure-{}", figure.number), Figure::grid(figure.heading.clone(), 1, charts))],
        claims: claims.collect(),
        ..Section::default()
    }]
}

fn judge_video(claim: Claim, id: &str, qos: &Data, plain: &Data) -> Claim {
    let [qos, plain] = [qos, plain].map(|data| Video::new(data, NARROW));
    match id {
        "moves" => judged(claim, mean(&qos.time_to_move()), |estimate| estimate.is_below(2.5)),
        "within" => judged(claim, mean(&qos.within()), |estimate| estimate.is_above(90.0)),
        "within-plain" => judged(claim, mean(&plain.within()), |estimate| estimate.is_below(10.0)),
        "lost" => judged(claim, mean(&qos.lost()), |estimate| estimate.is_below(1.0)),
        "returns" => judged(claim, mean(&qos.time_to_return()), |estimate| estimate.is_below(74.0)),
        id => unreachable!("figures.toml has the claim `{id}`, but no code measures it"),
    }
}

fn judge_calls(claim: Claim, id: &str, qos: &Data, plain: &Data) -> Claim {
    let parts = id.split_once('-').and_then(|(kind, load)| Some((kind, load.parse().ok()?)));
    let gain = |codec, load| difference(&call_quality(qos, load, codec), &call_quality(plain, load, codec));
    match parts {
        Some(("gain", load)) => judged(claim, gain(CODECS[1], load), |estimate| estimate.is_above(0.0)),
        Some(("slow", load)) => {
            judged(claim, gain(CODECS[0], load), |estimate| estimate.is_above(-TOLERANCE))
        }
        _ => unreachable!("figures.toml has the claim `{id}`, but no code measures it"),
    }
}

fn judge_voices(claim: Claim, id: &str, qos: &Data, plain: &Data) -> Claim {
    let parts = id.split_once('-').and_then(|(kind, load)| Some((kind, load.parse().ok()?)));
    let gain = |codec, load| {
        let [qos, plain] = [qos, plain].map(|data| call_values(data, load, codec, voice));
        judged(claim, difference(&qos, &plain), |estimate| estimate.is_above(-TOLERANCE))
    };
    match parts {
        Some(("fast", load)) => gain(CODECS[1], load),
        Some(("slow", load)) => gain(CODECS[0], load),
        _ => unreachable!("figures.toml has the claim `{id}`, but no code measures it"),
    }
}

/// The rules: the loss is within the limit of the specification, or no more than that of a plain call, but for [`LOSS_TOLERANCE`]; and
/// the quality is no worse, and better where a plain call is well within the limit.
fn judge_limits(claim: Claim, id: &str, qos: &Data, plain: &Data) -> Claim {
    let parts: Vec<_> = id.splitn(3, '-').collect();
    let [kind, codec, load] = parts[..] else { unreachable!("figures.toml has the claim `{id}`") };
    let codec = CODECS[usize::from(codec == "fast")];
    let load = load.parse().expect("the last part of a claim's id is a number of transfers");
    let of = |data, measure| call_values(data, load, codec, measure);
    match kind {
        "loss" => {
            let allowed: Vec<f64> = of(plain, lost).into_iter().map(|lost| lost.max(CALL_LIMIT)).collect();
            judged(claim, difference(&of(qos, lost), &allowed), |estimate| estimate.is_below(LOSS_TOLERANCE))
        }
        kind => {
            let gain = difference(&call_quality(qos, load, codec), &call_quality(plain, load, codec));
            let least = if kind == "gain" { 0.0 } else { -TOLERANCE };
            judged(claim, gain, |estimate| estimate.is_above(least))
        }
    }
}

/// The mean and half the width of the interval, or a dash without values.
pub(crate) fn shown(values: &[f64], decimals: usize) -> String {
    mean(values).map_or_else(
        || "-".to_owned(),
        |estimate| format!("{:.decimals$} ± {:.decimals$}", estimate.mean, estimate.half_width()),
    )
}

fn videos_seen(qos: &Data, plain: &Data) -> String {
    let [qos, plain] = [qos, plain].map(|data| Video::new(data, NARROW));
    let of = |name: &str, video: &Video<'_>| {
        format!(
            "{name}: {} % of the minute's intervals within the limits, {} % of its messages lost, {} kbit/s delivered in it.",
            shown(&video.within(), 1),
            shown(&video.lost(), 2),
            shown(&video.delivered_kbps(), 0),
        )
    };
    let times = format!(
        "The QoS socket sends no more than the link carries after {} s, and its best rate {} s after the recovery.",
        shown(&qos.time_to_move(), 1),
        shown(&qos.time_to_return(), 0),
    );
    [of("QoS socket", &qos), of("Plain socket", &plain), times].join("\n\n")
}

fn calls_seen(qos: &Data, plain: &Data) -> String {
    let line = |codec: &str, load: u32| {
        let [with, without] = [qos, plain].map(|data| {
            let [delay, lost, voice] =
                [one_way_ms, lost, voice].map(|measure| call_values(data, load, codec, measure));
            format!(
                "Q {}, delay {} ms, loss {} %, E-model {}",
                shown(&call_quality(data, load, codec), 3),
                shown(&delay, 0),
                shown(&lost, 1),
                shown(&voice, 2),
            )
        });
        format!("{codec} among {load}: {with}. Plain: {without}.")
    };
    let lines = CODECS.iter().flat_map(|codec| LOADS.map(|load| line(codec, load)));
    lines.collect::<Vec<_>>().join("\n\n")
}
