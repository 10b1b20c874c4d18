//! Measures of flows and queues that several studies use, by name and as functions.

use crate::data::{Data, Point};
use crate::over_time::Interval;
use cutline_config::suggestion;
use cutline_quality::{Class, Combination, EModel, Power, SpeechCodec};
use cutline_results::{FlowRow, QueueRow, QueueSeriesRow, Row, SeriesRow};
use cutline_units::{Duration, Probability, Rate};

/// A measure of a flow; `None` if the flow has no value.
pub type StudyMeasure = fn(&FlowRow) -> Option<f64>;

/// A measure of a queue; `None` if the queue has no value.
type MeasureOfQueue = fn(&QueueRow) -> Option<f64>;

/// The goodput, kbit/s.
pub fn kbps(row: &FlowRow) -> Option<f64> {
    Some(row.goodput_bps / 1e3)
}

/// Packets lost, %.
pub fn lost(row: &FlowRow) -> Option<f64> {
    Some(100.0 * row.loss_ratio?)
}

/// The packet interval of audio in the scenarios after the TSQ paper: 1000 B at 128 kbit/s.
const CONFERENCE: Duration = Duration::from_micros(62_500);
/// The packet interval of telephone calls: 160 B at 128 kbit/s. At 64 kbit/s it is twice that, and the rating a little too good.
const CALL: Duration = Duration::from_millis(10);

/// The quality of a conference by the E-model with G.711 and concealment, from the mean one-way delay and from the packets that did not arrive. `None`
/// for flows other than audio.
pub(crate) fn voice(row: &FlowRow) -> Option<f64> {
    voice_in_packets_of(CONFERENCE, row)
}

/// The same of a telephone call.
pub fn call_voice(row: &FlowRow) -> Option<f64> {
    voice_in_packets_of(CALL, row)
}

/// Speech that the sender refused, because its transport would not send it in time, is missing like speech that was lost. The robustness of
/// the codec is known for packets of 10 ms (G.113 appendix I): with longer packets each loss is a run of several of those, which is the
/// E-model's burst ratio (G.107 section 7.5).
fn voice_in_packets_of(packet: Duration, row: &FlowRow) -> Option<f64> {
    if &*row.class != "audio" {
        return None;
    }
    let delay = Duration::from_secs_f64(row.one_way_mean_ms? / 1e3);
    let refused = row.refused_bps.unwrap_or(0.0);
    let sent = if row.sent_bps > 0.0 { row.sent_bps / (row.sent_bps + refused) } else { 0.0 };
    let missing = Probability::clamped(1.0 - (1.0 - row.loss_ratio?) * sent);
    let burst_ratio = packet.as_millis_f64() / 10.0;
    let model = EModel { burst_ratio, ..EModel::new(SpeechCodec::G711_PLC) };
    Some(model.rating(delay, missing).quality().get())
}

/// `QoS` of a throughput-sensitive flow: its throughput (RED-Worcester section 3).
pub(crate) fn qos_by_throughput(row: &FlowRow) -> Option<f64> {
    power(Power::THROUGHPUT, row)
}

/// `QoS` of a delay-sensitive flow: sqrt(T / D), with the queuing delay D (RED-Worcester section 3).
pub(crate) fn qos_by_delay(row: &FlowRow) -> Option<f64> {
    power(Power::DELAY, row)
}

/// `QoS` of a flow between the two: `T^0.75 / D^0.25` (RED-Worcester section 3 has an exponent between 0.5 and 1).
fn qos_medium(row: &FlowRow) -> Option<f64> {
    power(Power::BETWEEN, row)
}

/// The overall quality of video if throughput quality has another value below 160 kbit/s, the smallest rate of TSQ's figure 4.
fn video_below_160(row: &FlowRow, qt_below: f64) -> Option<f64> {
    let qt = if row.goodput_bps < 160e3 { qt_below } else { row.qt? };
    Some(row.qd?.min(qt))
}

fn power(power: Power, row: &FlowRow) -> Option<f64> {
    let delay = Duration::from_secs_f64(row.queuing_mean_ms? / 1e3);
    Some(power.qos(Rate::from_bps(row.goodput_bps as u64), delay))
}

/// The measures of flows that are not columns of `flows.parquet`, by the names that claims use.
pub(crate) const DERIVED: [(&str, StudyMeasure); 11] = [
    ("goodput_kbps", kbps),
    ("loss_percent", lost),
    ("voice", voice),
    ("call_voice", call_voice),
    ("qos_by_throughput", qos_by_throughput),
    ("qos_by_delay", qos_by_delay),
    ("qos_medium", qos_medium),
    ("q_mean", |row| Some(f64::midpoint(row.qd?, row.qt?))),
    ("q_without_160", |row| video_below_160(row, 0.0)),
    ("q_flat_160", |row| video_below_160(row, 0.6)),
    ("q_product", |row| Some(row.qd? * row.qt?)),
];
/// A difference of percentiles of the queuing delay of all packets of a flow or group: the 90th minus the 10th, ms.
const SPREAD: &str = "queuing_spread_ms";
/// The median over the measured intervals of the goodput of a flow, kbit/s.
const INTERVAL_MEDIAN: &str = "interval_p50_kbps";
/// The standard deviation of the hint at the end between the flows of a group, levels.
const BETWEEN_FLOWS: &str = "hint_deviation";
/// The means of distributions, of which some runs have one value each: name, quantity, factor.
const MEANS: [(&str, &str, f64); 15] = [
    ("offered_kbps", "offered_bps", 1e-3),
    ("frames_shown_percent", "frames_shown_percent", 1.0),
    ("ssim_ratio", "ssim_ratio", 1.0),
    ("psnr_db", "psnr_db", 1.0),
    ("receiver_told_ms", "receiver_told_ms", 1.0),
    ("sender_told_ms", "sender_told_ms", 1.0),
    ("in_region_percent", "in_region_percent", 1.0),
    ("decoders_percent", "decoders_percent", 1.0),
    ("flows_in_region_percent", "flows_in_region_percent", 1.0),
    ("lowered_per_hour", "lowered_per_hour", 1.0),
    ("lost_sender_queue_percent", "lost_sender_queue_percent", 1.0),
    ("lost_interface_percent", "lost_interface_percent", 1.0),
    ("lost_receive_buffer_percent", "lost_receive_buffer_percent", 1.0),
    ("lost_path_percent", "lost_path_percent", 1.0),
    ("rtt_ms", "rtt_ms", 1.0),
];
/// Offered rate of a flow's or group's applications, the first of [`MEANS`], less the received rate, kbit/s.
const MISSING: &str = "missing_kbps";
/// Jain's fairness index over the goodput of the flows of a group.
const FAIRNESS: &str = "jain";
/// The measures of queues that are not columns of `queues.parquet`.
const DERIVED_OF_QUEUES: [(&str, MeasureOfQueue); 2] = [
    ("drop_percent", |row| Some(100.0 * row.drop_ratio?)),
    ("utilisation_percent", |row| Some(100.0 * row.utilisation)),
];

/// A measure of one row.
type OfRow<R> = Box<dyn Fn(&R) -> Option<f64>>;

/// Measure of intervals, and its subject.
pub(crate) enum Series {
    /// A measure of flows: a flow, a group, or groups by their beginning with `*`.
    Flows { name: String, measure: OfRow<SeriesRow> },
    /// A measure of the queue of a link.
    Queue { link: String, measure: OfRow<QueueSeriesRow> },
}

/// A measure of an interval of a flow; `None` if it has no value.
type MeasureOfInterval = fn(&SeriesRow) -> Option<f64>;

/// The measures of intervals that are not columns of `series.parquet`. The class of an interval is not stored, so its quality is that of
/// the class in the name, and 0 if nothing was received (TSQ eq. 1).
const DERIVED_OF_INTERVALS: [(&str, MeasureOfInterval); 4] = [
    ("goodput_kbps", |row| Some(row.goodput_bps / 1e3)),
    ("sent_kbps", |row| Some(row.sent_bps / 1e3)),
    ("audio_q", |row| {
        let Some(delay) = row.one_way_mean_ms else { return Some(0.0) };
        let (delay, rate) = (Duration::from_secs_f64(delay * 1e-3), Rate::from_bps(row.goodput_bps as u64));
        Some(Class::Audio.quality(delay, rate, Combination::Min).get())
    }),
    ("stalled", |row| Some(f64::from(u8::from(is_stalled(row))))),
];

/// The mean queuing delay in an interval above which media counts as stalled, ms.
const STALL_MS: f64 = 100.0;

/// Returns whether media stalls in an interval: nothing arrives, or the packets that arrive have waited for too long.
fn is_stalled(row: &SeriesRow) -> bool {
    row.queuing_mean_ms.is_none_or(|wait| wait > STALL_MS)
}

/// The measure of intervals with this name, of a flow, a group or a link; `None` if there is none.
pub(crate) fn series(name: &str, of: &str) -> Option<Series> {
    if of.contains("->") {
        return Some(Series::Queue { link: of.to_owned(), measure: column(name)? });
    }
    let derived = DERIVED_OF_INTERVALS.iter().find(|(derived, _)| *derived == name);
    let measure =
        derived.map(|(_, measure)| Box::new(*measure) as OfRow<SeriesRow>).or_else(|| column(name))?;
    Some(Series::Flows { name: of.to_owned(), measure })
}

impl Series {
    /// The intervals at a point: by seed, and by flow. A queue is one flow.
    pub(crate) fn by_seed(&self, data: &Data, point: &Point) -> Vec<Vec<Vec<Interval>>> {
        match self {
            Self::Flows { name, measure } => {
                let of_flow = |rows: Vec<&SeriesRow>| {
                    let interval = |row: &&SeriesRow| Interval {
                        start: row.start_s,
                        end: row.end_s,
                        value: measure(row),
                    };
                    rows.iter().map(interval).collect()
                };
                let seeds =
                    data.intervals_where(point, |row| is_group(name, &row.group) || &*row.flow == name);
                seeds.into_iter().map(|flows| flows.into_iter().map(of_flow).collect()).collect()
            }
            Self::Queue { link, measure } => {
                let of_queue = |rows: Vec<&QueueSeriesRow>| {
                    let interval = |row: &&QueueSeriesRow| Interval {
                        start: row.start_s,
                        end: row.end_s,
                        value: measure(row),
                    };
                    vec![rows.iter().map(interval).collect()]
                };
                data.queue_intervals(point, link).into_iter().map(of_queue).collect()
            }
        }
    }

    /// The flow or group that it is about; `None` for a queue.
    pub(crate) fn flows(&self) -> Option<&str> {
        match self {
            Self::Flows { name, .. } => Some(name),
            Self::Queue { .. } => None,
        }
    }
}

/// Measure, and its subject.
pub(crate) enum Subject {
    /// A measure of flows, as the mean over them.
    Flows {
        /// A flow, a group, or groups by their beginning with `*`.
        name: String,
        measure: OfRow<FlowRow>,
    },
    /// The standard deviation of a measure between the flows of a group.
    Deviation { name: String, measure: OfRow<FlowRow> },
    /// The range between two percentiles of the queuing delay of a flow or group.
    Distribution { name: String },
    /// The mean of a distribution of a flow or group, times a factor. For a group without one, the mean over its flows.
    Mean { name: String, quantity: &'static str, times: f64 },
    /// Offered rate of a flow's or group's applications less the received rate, kbit/s.
    Missing { name: String },
    /// Fairness among the flows of a group.
    Fairness { name: String },
    /// The median over the measured intervals of the goodput of a flow, or of a group as a whole.
    Intervals { name: String },
    /// A measure of the queue of a link.
    Queue { link: String, measure: OfRow<QueueRow> },
}

/// The measure with this name, of a flow, a group or a link; `None` if there is none.
pub(crate) fn measure(name: &str, of: &str) -> Option<Subject> {
    if of.contains("->") {
        let derived = DERIVED_OF_QUEUES.iter().find(|(derived, _)| *derived == name);
        let measure =
            derived.map(|(_, measure)| Box::new(*measure) as OfRow<QueueRow>).or_else(|| column(name))?;
        return Some(Subject::Queue { link: of.to_owned(), measure });
    }
    if name == INTERVAL_MEDIAN {
        return Some(Subject::Intervals { name: of.to_owned() });
    }
    if let Some((_, quantity, times)) = MEANS.iter().find(|(mean, ..)| *mean == name) {
        return Some(Subject::Mean { name: of.to_owned(), quantity, times: *times });
    }
    if name == MISSING {
        return Some(Subject::Missing { name: of.to_owned() });
    }
    if name == BETWEEN_FLOWS {
        return Some(Subject::Deviation { name: of.to_owned(), measure: column("hint")? });
    }
    if name == SPREAD {
        return Some(Subject::Distribution { name: of.to_owned() });
    }
    if name == FAIRNESS {
        return Some(Subject::Fairness { name: of.to_owned() });
    }
    let derived = DERIVED.iter().find(|(derived, _)| *derived == name);
    let measure =
        derived.map(|(_, measure)| Box::new(*measure) as OfRow<FlowRow>).or_else(|| column(name))?;
    Some(Subject::Flows { name: of.to_owned(), measure })
}

/// The message that there is no such measure of a flow, a group or a link, or of its intervals; `None` if there is one.
pub(crate) fn unknown(name: &str, of: &str, is_of_intervals: bool) -> Option<String> {
    let is_known = if is_of_intervals { series(name, of).is_some() } else { measure(name, of).is_some() };
    if is_known {
        return None;
    }
    let is_of_link = of.contains("->");
    let (known, table) = match (is_of_intervals, is_of_link) {
        (false, false) => (names_of_flows(), "flows"),
        (false, true) => (columns::<QueueRow>(&DERIVED_OF_QUEUES), "queues"),
        (true, false) => (columns::<SeriesRow>(&DERIVED_OF_INTERVALS), "series"),
        (true, true) => (columns::<QueueSeriesRow>(&[]), "queue_series"),
    };
    let kind = if is_of_intervals { "of intervals " } else { "" };
    let near = suggestion(name, known.iter().map(String::as_str));
    let known = if near.is_empty() { format!("; {}", where_listed(table)) } else { near };
    Some(format!("there is no measure {name:?} {kind}of {of:?}{known}"))
}

fn where_listed(table: &str) -> String {
    format!("there are the columns of {table}.parquet and the measures in docs/guide/study.md")
}

/// The names of the measures of flows.
fn names_of_flows() -> Vec<String> {
    let own = [INTERVAL_MEDIAN, MISSING, BETWEEN_FLOWS, SPREAD, FAIRNESS].into_iter();
    let own = own.chain(MEANS.iter().map(|(name, ..)| *name)).map(str::to_owned);
    own.chain(columns::<FlowRow>(&DERIVED)).collect()
}

/// A measure of one row, with its name.
type Named<R> = (&'static str, fn(&R) -> Option<f64>);

/// The names of the columns of a table that are measures, and of those that are derived from them.
fn columns<R: Row>(derived: &[Named<R>]) -> Vec<String> {
    let columns = R::columns().into_iter().filter(|column| !column.of_run);
    let derived = derived.iter().map(|(name, _)| (*name).to_owned());
    columns.map(|column| column.about.name.to_owned()).chain(derived).collect()
}

/// The numbers of a column of a table.
fn column<R: Row>(name: &str) -> Option<OfRow<R>> {
    let column = R::columns().into_iter().find(|column| column.about.name == name && !column.of_run)?;
    Some(Box::new(move |row| column.number(row)))
}

impl Subject {
    /// The value of each seed at a point, in the order of the seeds.
    pub(crate) fn by_seed(&self, data: &Data, point: &Point) -> Vec<f64> {
        match self {
            Self::Flows { name, measure } => data.per_seed_where(point, |row| is_named(name, row), measure),
            Self::Deviation { name, measure } => {
                let of = |power: i32| {
                    let measure = |row: &FlowRow| Some(measure(row)?.powi(power));
                    data.per_seed_where(point, |row| is_named(name, row), measure)
                };
                let variances = of(2).into_iter().zip(of(1)).map(|(square, mean)| square - mean * mean);
                variances.map(|variance| variance.max(0.0).sqrt()).collect()
            }
            Self::Mean { name, quantity, times } => {
                data.distribution_means(point, name, quantity).iter().map(|mean| mean * times).collect()
            }
            Self::Missing { name } => {
                let (_, quantity, times) = MEANS[0];
                let offered = data.distribution_means(point, name, quantity);
                let received = data.per_seed_where(point, |row| is_named(name, row), kbps);
                offered.iter().zip(received).map(|(offered, received)| offered * times - received).collect()
            }
            Self::Distribution { name } => {
                let cdfs = data.delay_cdfs(point, name, "queuing_ms");
                cdfs.iter().map(|cdf| cdf.quantile(0.9) - cdf.quantile(0.1)).collect()
            }
            Self::Fairness { name } => {
                let of =
                    |measure: StudyMeasure| data.per_seed_where(point, |row| is_named(name, row), measure);
                let (means, squares) = (of(kbps), of(|row| Some(kbps(row)?.powi(2))));
                means.iter().zip(squares).map(|(mean, square)| mean * mean / square).collect()
            }
            Self::Intervals { name } => data.interval_medians(point, name, |row| row.goodput_bps / 1e3),
            Self::Queue { link, measure } => {
                data.queue_values(point, link, |row| measure(row).unwrap_or(f64::NAN))
            }
        }
    }

    /// The flow or group that it is about; `None` for a measure that may be of one flow of a group, and for a queue.
    pub(crate) fn flows(&self) -> Option<&str> {
        match self {
            Self::Flows { name, .. } | Self::Deviation { name, .. } => Some(name),
            Self::Distribution { .. }
            | Self::Mean { .. }
            | Self::Missing { .. }
            | Self::Fairness { .. }
            | Self::Intervals { .. }
            | Self::Queue { .. } => None,
        }
    }
}

fn is_named(name: &str, row: &FlowRow) -> bool {
    is_group(name, &row.group) || &*row.flow == name
}

/// Returns whether a name, which may end with `*`, is that of a group.
pub(crate) fn is_group(name: &str, group: &str) -> bool {
    name.strip_suffix('*').map_or(group == name, |beginning| group.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name that is wrong here finds no distribution, and the claim has nothing to measure.
    #[test]
    fn the_quantities_of_means_are_described() {
        for (_, quantity, _) in MEANS {
            assert!(cutline_results::distributed_quantity(quantity).is_some(), "{quantity}");
        }
    }

    #[test]
    fn an_interval_without_packets_or_with_late_ones_is_stalled() {
        let Some(Series::Flows { measure, .. }) = series("stalled", "video") else {
            panic!("it is a measure of the intervals of flows")
        };
        let waits = [None, Some(20.0), Some(STALL_MS), Some(150.0)];
        let of = |queuing_mean_ms| measure(&SeriesRow { queuing_mean_ms, ..SeriesRow::default() });
        assert_eq!(waits.map(of), [Some(1.0), Some(0.0), Some(0.0), Some(1.0)]);
    }
}
