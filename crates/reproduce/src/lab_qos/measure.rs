//! Measures of applications over sockets, in the laboratory and in the simulator, and whether they agree.

use crate::claims::{Judge, judged};
use crate::data::{Data, difference, mean};
use crate::lab::measure::{NEAR_RATIO, data, unpaired_difference, unpaired_ratio};
use crate::measure::{lost, voice};
use crate::qos::measure::{CODECS, Video, call_values, one_way_ms};
use crate::qos::shown;
use crate::study::ExperimentData;
use cutline_report::report::Claim;
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

/// Measures and judges a claim of a figure.
pub(super) fn judge(claim: Claim, figure: u32, id: &str, stored: &[ExperimentData<'_>]) -> Claim {
    let of = |id: &str| data(stored, id);
    match figure {
        1 => of(QOS_CALL).zip(of(PLAIN_CALL)).map(|(qos, plain)| gain(claim.clone(), id, qos, plain)),
        2 => of(QOS_CALL).zip(of(SIMULATED_CALL)).map(|both| hints(claim.clone(), id, both.into())),
        3 => of(QOS_VIDEO).zip(of(PLAIN_VIDEO)).map(|(qos, plain)| video(claim.clone(), id, qos, plain)),
        _ => of(QOS_VIDEO).zip(of(SIMULATED_VIDEO)).map(|both| videos_alike(claim.clone(), id, both.into())),
    }
    .unwrap_or_else(|| claim.note("There are no results for this claim."))
}

fn gain(claim: Claim, id: &str, qos: &Data, plain: &Data) -> Claim {
    let parts = id.split_once('-').and_then(|(kind, load)| Some((kind, load.parse().ok()?)));
    let gain = |codec, load| difference(&quality(qos, load, codec), &quality(plain, load, codec));
    let at_all_loads =
        |data, codec| LOADS.iter().flat_map(|load| quality(data, *load, codec)).collect::<Vec<_>>();
    let pooled = |codec| difference(&at_all_loads(qos, codec), &at_all_loads(plain, codec));
    let estimate = match parts {
        _ if id == "fast-all" => pooled(CODECS[1]),
        _ if id == "slow-all" => pooled(CODECS[0]),
        Some(("fast", load)) => gain(CODECS[1], load),
        Some(("slow", load)) => gain(CODECS[0], load),
        _ => unreachable!("figures.toml has the claim `{id}`, but no code measures it"),
    };
    judged(claim, estimate, |estimate| estimate.is_above(0.0))
}

fn hints(claim: Claim, id: &str, both: [&Data; 2]) -> Claim {
    let within = |low, high| move |estimate: &Estimate| estimate.is_within(low, high);
    let (slow, fast) = (&CODECS[..1], &CODECS[1..]);
    match id {
        "quality-fast" => judged(claim, pooled(both, fast, quality), within(-0.05, 0.05)),
        "quality-slow" => judged(claim, pooled(both, slow, quality), within(-0.05, 0.05)),
        "hint-fast" => judged(claim, pooled(both, fast, mean_hint), within(-4.0, 4.0)),
        "hint-slow" => judged(claim, pooled(both, slow, mean_hint), within(-4.0, 4.0)),
        "first-move" => judged(claim, pooled(both, &CODECS, first_move), within(-2.0, 2.0)),
        "hints-used" => {
            let [lab, simulated] = both;
            let points = CODECS.iter().flat_map(|codec| LOADS.map(|load| (load, *codec)));
            let shares: Vec<f64> =
                points.flat_map(|(load, codec)| used_alike(lab, simulated, load, codec)).collect();
            judged(claim, mean(&shares), |estimate| estimate.is_above(90.0))
        }
        id => unreachable!("figures.toml has the claim `{id}`, but no code measures it"),
    }
}

fn video(claim: Claim, id: &str, qos: &Data, plain: &Data) -> Claim {
    let below = |limit: f64| move |estimate: &Estimate| estimate.is_below(limit);
    let told = |quantity| mean(&told(qos, quantity));
    let [qos, plain] = [qos, plain].map(|data| Video::new(data, NARROW));
    match id {
        "moves" => judged(claim, mean(&qos.time_to_move()), below(2.5)),
        "within" => judged(claim, mean(&qos.within()), |estimate| estimate.is_above(90.0)),
        "within-plain" => judged(claim, mean(&plain.within()), below(10.0)),
        "lost" => judged(claim, mean(&qos.lost()), below(1.0)),
        "receiver-told" => judged(claim, told("receiver_told_ms"), below(520.0)),
        "sender-told" => judged(claim, told("sender_told_ms"), below(560.0)),
        "returns" => judged(claim, mean(&qos.time_to_return()), below(60.0)),
        id => unreachable!("figures.toml has the claim `{id}`, but no code measures it"),
    }
}

fn videos_alike(claim: Claim, id: &str, both: [&Data; 2]) -> Claim {
    let [lab, simulated] = both.map(|data| Video::new(data, NARROW));
    let sent = |row: &SeriesRow| Some(row.sent_bps);
    let delivered = |row: &SeriesRow| Some(row.goodput_bps);
    let delay = |row: &SeriesRow| row.one_way_mean_ms;
    let ratio = |time, measure: fn(&SeriesRow) -> Option<f64>| {
        unpaired_ratio(&lab.mean_of(time, measure), &simulated.mean_of(time, measure))
    };
    let near = |low, high| move |estimate: &Estimate| estimate.is_within(low, high);
    match id {
        "moves-alike" => judged(
            claim,
            unpaired_difference(&lab.time_to_move(), &simulated.time_to_move()),
            near(-0.5, 0.5),
        ),
        "returns-alike" => {
            let estimate = unpaired_difference(&lab.time_to_return(), &simulated.time_to_return());
            judged(claim, estimate, near(-10.0, 10.0))
        }
        "sent" => judged(claim, ratio(NARROW, sent), near(0.95, 1.05)),
        "delivered" => judged(claim, ratio(NARROW, delivered), near(0.95, 1.05)),
        "before" => judged(claim, ratio((10.0, NARROW.0), sent), near(0.99, 1.01)),
        "at-the-end" => judged(claim, ratio((END_S - 5.0, END_S), sent), near(0.99, 1.01)),
        "delay" => judged(claim, ratio(NARROW, delay), near(NEAR_RATIO.0, NEAR_RATIO.1)),
        id => unreachable!("figures.toml has the claim `{id}`, but no code measures it"),
    }
}

/// What is measured of calls, a line for each rate, load and experiment.
pub(super) fn calls_seen(stored: &[ExperimentData<'_>]) -> String {
    let line = |codec: &str, load: u32, (experiment, data): &ExperimentData<'_>| {
        let [delay, lost, voice] =
            [one_way_ms, lost, voice].map(|measure| call_values(data, load, codec, measure));
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
        let data = data(stored, id)?;
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
