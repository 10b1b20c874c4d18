//! Applications over QoS sockets beside the same over plain ones: the irregular claims about them.

use cutline_study::{Code, Data, FigureText, Own, difference, lost, mean};

pub(crate) const CODE: Code = Code { own, ..Code::NONE };

/// The rates of calls.
pub(crate) const CODECS: [&str; 2] = ["64 kbit/s", "128 kbit/s"];

/// The largest share of its messages that a call accepts to lose, %.
const CALL_LIMIT: f64 = 3.0;

/// Start and end of the time in which the link of the video is narrow, s.
const NARROW: (f64, f64) = (60.0, 120.0);
/// The longest acceptable delay of the video, ms.
const MAX_DELAY_MS: f64 = 400.0;
/// The largest acceptable loss of the video.
const MAX_LOSS: f64 = 0.01;

/// The measures of claims that are code.
fn own(figure: &FigureText, id: &str) -> Option<Own> {
    match figure.number {
        1 => own_of_video(id, NARROW, "qos-video-plain"),
        5 => own_of_delay(id),
        _ => own_of_loss(id),
    }
}

/// The share of the intervals of a time that are within the limits of the video, %: over a QoS socket (`within`), or over a plain one
/// (`within-plain`), which is another experiment.
pub(crate) fn own_of_video(id: &str, time: (f64, f64), plain: &'static str) -> Option<Own> {
    let other = match id {
        "within" => None,
        "within-plain" => Some(plain),
        _ => return None,
    };
    Some(Box::new(move |evidence| evidence.data(other).and_then(|data| mean(&within(data, time))).into()))
}

fn within(data: &Data, (from, until): (f64, f64)) -> Vec<f64> {
    let of_seed = |flows: Vec<Vec<&cutline_results::SeriesRow>>| {
        let rows: Vec<_> =
            flows.into_iter().flatten().filter(|row| from <= row.start_s && row.end_s <= until).collect();
        let good = rows.iter().filter(|row| {
            let is_in_time = row.one_way_mean_ms.is_some_and(|delay| delay <= MAX_DELAY_MS);
            is_in_time && row.packets_dropped as f64 <= MAX_LOSS * row.packets_sent as f64
        });
        100.0 * good.count() as f64 / rows.len() as f64
    };
    data.flow_intervals(cutline_scenario::BASE, "video").into_iter().map(of_seed).collect()
}

/// The share of the video's messages that arrive within the longest acceptable delay, %: with a weaker specification (`in-time`), or with
/// the first one alone (`in-time-firm`), which is another experiment.
fn own_of_delay(id: &str) -> Option<Own> {
    let other = match id {
        "in-time" => None,
        "in-time-firm" => Some("qos-below-firm"),
        _ => return None,
    };
    Some(Box::new(move |evidence| evidence.data(other).and_then(|data| mean(&in_time(data))).into()))
}

fn in_time(data: &Data) -> Vec<f64> {
    let delays = data.delay_cdfs(cutline_scenario::BASE, "video", "one_way_ms");
    let arrived = data.by_seed(&[], "video", |row| Some(100.0 - lost(row)?));
    let of_arrived = delays.iter().map(|delays| delays.share_up_to(MAX_DELAY_MS));
    of_arrived.zip(arrived).map(|(share, arrived)| share * arrived).collect()
}

/// `loss-CODEC-TRANSFERS`: the loss of a call beyond the limit, or beyond that of a plain call where that is more.
fn own_of_loss(id: &str) -> Option<Own> {
    let (codec, load) = id.strip_prefix("loss-")?.split_once('-')?;
    let (codec, load) = (CODECS[usize::from(codec == "fast")], load.parse::<u32>().ok()?.to_string());
    Some(Box::new(move |evidence| {
        let point = [("flow.bulk.count", load.as_str()), ("flow.call.app.rate", codec)];
        let plain = evidence.data(Some("qos-call-plain")).map(|data| data.by_seed(&point, "call", lost));
        let allowed: Vec<f64> =
            plain.unwrap_or_default().into_iter().map(|lost| lost.max(CALL_LIMIT)).collect();
        difference(&evidence.data.by_seed(&point, "call", lost), &allowed).into()
    }))
}
