//! Real QoS sockets in the laboratory, compared with the simulator's agents: the irregular claims about them.

use crate::qos::{CODECS, own_of_video};
use cutline_report::stats::Estimate;
use cutline_results::SeriesRow;
use cutline_study::{Code, Data, FigureText, Own, difference, mean, unpaired_difference};
use std::collections::BTreeSet;

pub(crate) const CODE: Code = Code { own, ..Code::NONE };

/// The numbers of bulk transfers.
const LOADS: [u32; 4] = [25, 50, 100, 200];
/// Start and end of the time in which the video's link is narrow, s.
const NARROW: (f64, f64) = (20.0, 60.0);
/// The hint with which a call begins.
const FIRST_HINT: u64 = 16;

/// The measures of claims that are code.
fn own(figure: &FigureText, id: &str) -> Option<Own> {
    let (other, measure) = match figure.number {
        1 => ("lab-qos-call-plain", gain(id)?),
        2 => ("lab-qos-call-simulated", hints(id)?),
        _ => return own_of_video(id, NARROW, "lab-qos-video-plain"),
    };
    Some(Box::new(move |evidence| {
        let both = evidence.data(Some("lab-qos-call")).zip(evidence.data(Some(other)));
        both.and_then(|both| measure(both.into())).into()
    }))
}

/// Measure of two experiments.
type OfBoth = Box<dyn Fn([&Data; 2]) -> Option<Estimate>>;

/// The quality over all loads: each load and seed is a pair.
fn gain(id: &str) -> Option<OfBoth> {
    let codec = match id {
        "fast-all" => CODECS[1],
        "slow-all" => CODECS[0],
        _ => return None,
    };
    Some(Box::new(move |both| {
        let of = |data| LOADS.iter().flat_map(|load| quality(data, *load, codec)).collect::<Vec<_>>();
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

/// The difference of a measure between the laboratory and the simulation at the same load and rate, from the runs of all loads and
/// of these rates. Differences are taken within each load and rate, then pooled.
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

/// The quality of the call, by seed.
fn quality(data: &Data, load: u32, codec: &str) -> Vec<f64> {
    data.by_seed(&[("flow.bulk.count", &load.to_string()), ("flow.call.app.rate", codec)], "call", |row| {
        row.q
    })
}

/// The intervals of the call, by seed.
fn intervals<'d>(data: &'d Data, load: u32, codec: &str) -> Vec<Vec<&'d SeriesRow>> {
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
    intervals(data, load, codec).iter().map(of_run).collect()
}

/// The end of the first interval with another hint than the first one, s; the end of the run if there is none.
fn first_move(data: &Data, load: u32, codec: &str) -> Vec<f64> {
    let of_run = |rows: &Vec<&SeriesRow>| {
        let moved = rows.iter().find(|row| row.hint.is_some_and(|hint| hint != FIRST_HINT));
        moved.or(rows.last()).map_or(f64::NAN, |row| row.end_s)
    };
    intervals(data, load, codec).iter().map(of_run).collect()
}

/// The share of the intervals of each run whose hint the simulation has used at this load, %.
fn used_alike(lab: &Data, simulated: &Data, load: u32, codec: &str) -> Vec<f64> {
    let hints = |rows: &Vec<&SeriesRow>| rows.iter().filter_map(|row| row.hint).collect::<Vec<_>>();
    let known: BTreeSet<u64> = intervals(simulated, load, codec).iter().flat_map(hints).collect();
    let of_run = |rows: &Vec<&SeriesRow>| {
        let hints = hints(rows);
        100.0 * hints.iter().filter(|hint| known.contains(hint)).count() as f64 / hints.len() as f64
    };
    intervals(lab, load, codec).iter().map(of_run).collect()
}
