//! Applications over QoS sockets beside the same over plain ones: a video whose rate adapts, and a call whose hint adapts.

mod charts;
pub(crate) mod connections;
pub(crate) mod measure;

use crate::claims::{FigureText, Own};
use crate::data::{Data, difference, mean};
use crate::experiment::{Experiment, Platform, scenario, text_of};
use crate::measure::{call_voice, lost};
use crate::study::{ExperimentData, Study};
use connections::Judgement;
use cutline_report::chart::{Chart, Figure};
use cutline_report::report::Section;
use measure::{CODECS, LOADS, NARROW, Video, call_quality, call_values, one_way_ms};

/// The study.
pub const QOS: Study = Study {
    id: "qos",
    title: "Applications over QoS sockets",
    statement_heading: "The question",
    intro: INTRO,
    figures: text_of!("qos/figures.toml"),
    experiments: &EXPERIMENTS,
    own,
    sections_of,
};

const INTRO: &str = "\
Two applications over QoS sockets, simulated: the sessions of both ends negotiate, measure, report and adapt as in a program, and \
their messages cross the network's queues. Beside them the same applications over plain datagram sockets. Numbers are means over \
seeds with their 95 % confidence interval.";

const CALL: (&str, &str) = scenario!("qos/call.toml");
const VIDEO: (&str, &str) = scenario!("qos/video.toml");
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

/// The largest share of its messages that a call accepts to lose, %.
const CALL_LIMIT: f64 = 3.0;

fn sections_of(figure: &FigureText, stored: &[ExperimentData<'_>]) -> Vec<Section> {
    let [(_, qos), (_, plain)] = *stored else { return Vec::new() };
    let (charts, we_see): (Vec<Chart>, String) = match figure.number {
        1 => (charts::video(qos, plain), videos_seen(qos, plain)),
        2 => (charts::calls(qos, plain), calls_seen(qos, plain)),
        3 => (charts::voices(qos, plain), calls_seen(qos, plain)),
        _ => (charts::losses(qos, plain), calls_seen(qos, plain)),
    };
    vec![Section {
        we_see,
        figures: vec![(format!("figure-{}", figure.number), Figure::grid(figure.heading.clone(), 1, charts))],
        ..Section::default()
    }]
}

/// The measures of claims that are code.
fn own(figure: &FigureText, id: &str) -> Option<Own> {
    if figure.number == 1 { own_of_video(id) } else { own_of_loss(id) }
}

fn own_of_video(id: &str) -> Option<Own> {
    let (of_plain, measure): (bool, fn(&Video<'_>) -> Vec<f64>) = match id {
        "moves" => (false, |video| video.time_to_move()),
        "within" => (false, |video| video.within()),
        "within-plain" => (true, |video| video.within()),
        "lost" => (false, |video| video.lost()),
        "returns" => (false, |video| video.time_to_return()),
        _ => return None,
    };
    let other = of_plain.then_some("qos-video-plain");
    Some(Box::new(move |evidence| {
        evidence.data(other).and_then(|data| mean(&measure(&Video::new(data, NARROW)))).into()
    }))
}

/// `loss-CODEC-TRANSFERS`: how far the loss of a call is beyond the limit, or beyond that of a plain call where that is more.
fn own_of_loss(id: &str) -> Option<Own> {
    let (codec, load) = id.strip_prefix("loss-")?.split_once('-')?;
    let (codec, load) = (CODECS[usize::from(codec == "fast")], load.parse().ok()?);
    Some(Box::new(move |evidence| {
        let plain = evidence.data(Some("qos-call-plain")).map(|data| call_values(data, load, codec, lost));
        let allowed: Vec<f64> =
            plain.unwrap_or_default().into_iter().map(|lost| lost.max(CALL_LIMIT)).collect();
        difference(&call_values(evidence.data, load, codec, lost), &allowed).into()
    }))
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
                [one_way_ms, lost, call_voice].map(|measure| call_values(data, load, codec, measure));
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
