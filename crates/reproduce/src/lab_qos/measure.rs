//! Measures of applications over sockets, in the laboratory and in the simulator, and whether they agree.

use crate::claims::{FigureText, Own};
use crate::data::{Data, difference, mean, unpaired_difference, unpaired_ratio};
use crate::measure::{call_voice, lost};
use crate::qos::measure::{CODECS, Video, call_values, one_way_ms};
use crate::qos::shown;
use crate::study::ExperimentData;
use crate::study::results_of;
use cutline_report::stats::Estimate;
use cutline_results::SeriesRow;
use cutline_scenario::BASE;
use std::collections::BTreeSet;

/// The experiments.
pub(super) const QOS_CALL: &str = "lab-qos-call";
pub(super) const PLAIN_CALL: &str = "lab-qos-call-plain";
const SIMULATED_CALL: &str = "lab-qos-call-simulated";
pub(super) const QOS_VIDEO: &str = "lab-qos-video";
pub(super) const PLAIN_VIDEO: &str = "lab-qos-video-plain";
pub(super) const SIMULATED_VIDEO: &str = "lab-qos-video-simulated";

/// The numbers of bulk transfers.
pub(super) const LOADS: [u32; 4] = [25, 50, 100, 200];
/// From when until when the video's link is narrow, s.
pub(super) const NARROW: (f64, f64) = (20.0, 60.0);
/// The end of a video, s.
pub(super) const END_S: f64 = 160.0;
/// The hint with which a call begins.
const FIRST_HINT: u64 = 16;

/// The quality of the call, by seed.
fn quality(data: &Data, load: u32, codec: &str) -> Vec<f64> {
    call_values(data, load, codec, |row| row.q)
}

/// The intervals of the call, by seed.
pub(super) fn call_intervals<'d>(data: &'d Data, load: u32, codec: &str) -> Vec<Vec<&'d SeriesRow>> {
    let settings = [("flow.bulk.count", &*load.to_string()), ("flow.call.app.rate", codec)];
    let Some(point) = data.point_with_values(&settings) else { return Vec::new() };
    data.flow_intervals(point, "call").into_iter().filter_map(|flows| flows.into_iter().next()).collect()
}

/// The mean hint over the second half of each run.
fn mean_hint(data: &Data, load: u32, codec: &str) -> Vec<f64> {
    let of_run = |rows: &Vec<&SeriesRow>| {
        let hints: Vec<f64> =
            rows[rows.len() / 2..].iter().filter_map(|row| row.hint).map(|hint| hint as f64).collect();
        hints.iter().sum::<f64>() / hints.len() as f64
    };
    call_intervals(data, load, codec).iter().map(of_run).collect()
}

/// The end of the first interval with another hint than the first one, s; the end of the run if there is none.
fn first_move(data: &Data, load: u32, codec: &str) -> Vec<f64> {
    let of_run = |rows: &Vec<&SeriesRow>| {
        let moved = rows.iter().find(|row| row.hint.is_some_and(|hint| hint != FIRST_HINT));
        moved.or(rows.last()).map_or(f64::NAN, |row| row.end_s)
    };
    call_intervals(data, load, codec).iter().map(of_run).collect()
}

/// The share of the intervals of each run whose hint the simulation has used at this load, %.
fn used_alike(lab: &Data, simulated: &Data, load: u32, codec: &str) -> Vec<f64> {
    let hints = |rows: &Vec<&SeriesRow>| rows.iter().filter_map(|row| row.hint).collect::<Vec<_>>();
    let known: BTreeSet<u64> = call_intervals(simulated, load, codec).iter().flat_map(hints).collect();
    let of_run = |rows: &Vec<&SeriesRow>| {
        let hints = hints(rows);
        100.0 * hints.iter().filter(|hint| known.contains(hint)).count() as f64 / hints.len() as f64
    };
    call_intervals(lab, load, codec).iter().map(of_run).collect()
}

/// The difference of a measure between the laboratory and the simulation at the same load and rate, from the runs of all loads and
/// of these rates. The mean of the simulation at each of them is taken from both, so only what differs within one counts.
fn pooled(
    [lab, simulated]: [&Data; 2],
    codecs: &[&str],
    measure: fn(&Data, u32, &str) -> Vec<f64>,
) -> Option<Estimate> {
    let (mut measured, mut expected) = (Vec::new(), Vec::new());
    for codec in codecs {
        for load in LOADS {
            let values = measure(simulated, load, codec);
            let centre = mean(&values)?.mean;
            expected.extend(values.iter().map(|value| value - centre));
            measured.extend(measure(lab, load, codec).iter().map(|value| value - centre));
        }
    }
    unpaired_difference(&measured, &expected)
}

/// The time after which an end is told of the violation, in each run, ms.
fn told(data: &Data, quantity: &str) -> Vec<f64> {
    data.delay_cdfs(BASE, "video", quantity).iter().map(cutline_report::stats::Cdf::mean).collect()
}

/// The measures of claims, all of which are code.
pub(super) fn own(figure: &FigureText, id: &str) -> Option<Own> {
    let (one, other, measure) = match figure.number {
        1 => (QOS_CALL, PLAIN_CALL, gain(id)?),
        2 => (QOS_CALL, SIMULATED_CALL, hints(id)?),
        3 => (QOS_VIDEO, PLAIN_VIDEO, video(id)?),
        _ => (QOS_VIDEO, SIMULATED_VIDEO, videos_alike(id)?),
    };
    Some(Box::new(move |evidence| {
        let both = evidence.data(Some(one)).zip(evidence.data(Some(other)));
        both.and_then(|both| measure(both.into())).into()
    }))
}

/// What is measured of two experiments.
type OfBoth = Box<dyn Fn([&Data; 2]) -> Option<Estimate>>;

fn gain(id: &str) -> Option<OfBoth> {
    let (kind, load) = id.split_once('-')?;
    let codec = match kind {
        "fast" => CODECS[1],
        "slow" => CODECS[0],
        _ => return None,
    };
    let loads: Vec<u32> = if load == "all" { LOADS.into() } else { vec![load.parse().ok()?] };
    Some(Box::new(move |both| {
        let of = |data| loads.iter().flat_map(|load| quality(data, *load, codec)).collect::<Vec<_>>();
        let [qos, plain] = both.map(of);
        difference(&qos, &plain)
    }))
}

fn hints(id: &str) -> Option<OfBoth> {
    let (slow, fast) = (&CODECS[..1], &CODECS[1..]);
    Some(match id {
        "quality-fast" => Box::new(|both| pooled(both, fast, quality)),
        "quality-slow" => Box::new(|both| pooled(both, slow, quality)),
        "hint-fast" => Box::new(|both| pooled(both, fast, mean_hint)),
        "hint-slow" => Box::new(|both| pooled(both, slow, mean_hint)),
        "first-move" => Box::new(|both| pooled(both, &CODECS, first_move)),
        "hints-used" => Box::new(|[lab, simulated]| {
            let points = CODECS.iter().flat_map(|codec| LOADS.map(|load| (load, *codec)));
            let shares: Vec<f64> =
                points.flat_map(|(load, codec)| used_alike(lab, simulated, load, codec)).collect();
            mean(&shares)
        }),
        _ => return None,
    })
}

fn video(id: &str) -> Option<OfBoth> {
    fn of(data: &Data) -> Video<'_> {
        Video::new(data, NARROW)
    }
    Some(match id {
        "moves" => Box::new(|[qos, _]| mean(&of(qos).time_to_move())),
        "within" => Box::new(|[qos, _]| mean(&of(qos).within())),
        "within-plain" => Box::new(|[_, plain]| mean(&of(plain).within())),
        "lost" => Box::new(|[qos, _]| mean(&of(qos).lost())),
        "receiver-told" => Box::new(|[qos, _]| mean(&told(qos, "receiver_told_ms"))),
        "sender-told" => Box::new(|[qos, _]| mean(&told(qos, "sender_told_ms"))),
        "returns" => Box::new(|[qos, _]| mean(&of(qos).time_to_return())),
        _ => return None,
    })
}

fn videos_alike(id: &str) -> Option<OfBoth> {
    let ratio = |time: (f64, f64), measure: fn(&SeriesRow) -> Option<f64>| -> OfBoth {
        Box::new(move |both| {
            let [lab, simulated] = both.map(|data| Video::new(data, NARROW).mean_of(time, measure));
            unpaired_ratio(&lab, &simulated)
        })
    };
    Some(match id {
        "moves-alike" => Box::new(|both| {
            let [lab, simulated] = both.map(|data| Video::new(data, NARROW).time_to_move());
            unpaired_difference(&lab, &simulated)
        }),
        "returns-alike" => Box::new(|both| {
            let [lab, simulated] = both.map(|data| Video::new(data, NARROW).time_to_return());
            unpaired_difference(&lab, &simulated)
        }),
        "sent" => ratio(NARROW, |row| Some(row.sent_bps)),
        "delivered" => ratio(NARROW, |row| Some(row.goodput_bps)),
        "before" => ratio((10.0, NARROW.0), |row| Some(row.sent_bps)),
        "at-the-end" => ratio((END_S - 5.0, END_S), |row| Some(row.sent_bps)),
        "delay" => ratio(NARROW, |row| row.one_way_mean_ms),
        _ => return None,
    })
}

/// What is measured of calls, a line for each rate, load and experiment.
pub(super) fn calls_seen(stored: &[ExperimentData<'_>]) -> String {
    let line = |codec: &str, load: u32, (experiment, data): &ExperimentData<'_>| {
        let [delay, lost, voice] =
            [one_way_ms, lost, call_voice].map(|measure| call_values(data, load, codec, measure));
        format!(
            "{}: Q {}, delay {} ms, loss {} %, E-model {}.",
            experiment.label,
            shown(&quality(data, load, codec), 3),
            shown(&delay, 0),
            shown(&lost, 1),
            shown(&voice, 2),
        )
    };
    let paragraph = |codec: &str, load: u32| {
        let lines: Vec<String> = stored.iter().map(|one| line(codec, load, one)).collect();
        format!("{codec} among {load}. {}", lines.join(" "))
    };
    let all = CODECS.iter().flat_map(|codec| LOADS.map(|load| paragraph(codec, load)));
    all.collect::<Vec<_>>().join("\n\n")
}

/// The hints of calls over QoS sockets, a line for each rate and load.
pub(super) fn hints_seen(stored: &[ExperimentData<'_>]) -> String {
    let of = |id: &str, codec: &str, load: u32| {
        let data = results_of(stored, id)?;
        let hint = shown(&mean_hint(data, load, codec), 1);
        Some(format!("{hint} (first other hint after {} s)", shown(&first_move(data, load, codec), 1)))
    };
    let line = |codec: &str, load: u32| {
        let dash = || "-".to_owned();
        format!(
            "{codec} among {load}: mean hint {}; simulated {}.",
            of(QOS_CALL, codec, load).unwrap_or_else(dash),
            of(SIMULATED_CALL, codec, load).unwrap_or_else(dash)
        )
    };
    let all = CODECS.iter().flat_map(|codec| LOADS.map(|load| line(codec, load)));
    all.collect::<Vec<_>>().join("\n\n")
}

/// What is measured of videos, a line for each experiment.
pub(super) fn video_seen(stored: &[ExperimentData<'_>]) -> String {
    let line = |(experiment, data): &ExperimentData<'_>| {
        let video = Video::new(data, NARROW);
        let within = format!(
            "{}: {} % of the intervals of the 40 s within the limits, {} % of the messages lost, {} kbit/s delivered.",
            experiment.label,
            shown(&video.within(), 1),
            shown(&video.lost(), 2),
            shown(&video.delivered_kbps(), 0),
        );
        if experiment.id == PLAIN_VIDEO {
            return within;
        }
        format!(
            "{within} It sends no more than the link carries after {} s, and its best rate {} s after the recovery. The receiver is \
             told of the first late message after {} ms, the sender after {} ms.",
            shown(&video.time_to_move(), 1),
            shown(&video.time_to_return(), 1),
            shown(&told(data, "receiver_told_ms"), 0),
            shown(&told(data, "sender_told_ms"), 0),
        )
    };
    stored.iter().map(line).collect::<Vec<_>>().join("\n\n")
}
