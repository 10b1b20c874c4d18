//! A router's statistics as a document: a line of JSON. The router's own output and the replies of its socket have the same
//! format. Counters count from the router's start; an interval is the difference of two documents.

use crate::configuration::in_words;
use cutline_aqm::Count;
use cutline_ports::PortStats;
use cutline_router::{HINTS, HintCounters, Loss, Shaper, ShaperStats};
use cutline_units::{Duration, Hint, Histogram, Probability, Rate};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The statistics of a router at one time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// `interval`, `end`, or `stats` for a reply.
    pub event: String,
    /// Time since the start, seconds.
    pub elapsed_s: f64,
    /// From `--in` to `--out`. Documents of earlier versions call it `forth`.
    #[serde(alias = "forth")]
    pub forward: Direction,
    /// From `--out` to `--in`. Documents of earlier versions call it `back`.
    #[serde(alias = "back")]
    pub reverse: Direction,
    /// The interfaces; not reported by interval.
    #[serde(default, rename = "ports", skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<Interface>,
    /// The status of reloads, for a router with a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reload: Option<ReloadStatus>,
    /// Documents and messages of its output that were dropped, because they could not be written at once.
    #[serde(default)]
    pub dropped_output: u64,
    /// Clients of its socket that were refused, because as many as it serves were connected.
    #[serde(default)]
    pub refused_clients: u64,
}

/// Packets and bytes since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// One direction; see [`ShaperStats`] for what the counters mean.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Direction {
    /// Its name, such as `eth0 -> eth1`.
    #[serde(rename = "direction")]
    pub name: String,
    /// The rate it is shaped to, bit/s.
    pub rate_bps: u64,
    /// The name of its queue.
    pub queue: String,
    /// Frames received.
    pub received: Counted,
    /// Frames sent.
    pub sent: Counted,
    /// Frames lost, by [`Loss::name`].
    pub dropped: BTreeMap<String, Counted>,
    /// Frames in the router, in the queue or waiting for the interface.
    pub queued_packets: u64,
    /// Backlog of the queue.
    pub backlog: Counted,
    /// The AQM's drop probability, 0..1; `None` if it has none.
    pub probability: Option<f64>,
    /// Frames marked with congestion experienced (ECN).
    pub marked: Counted,
    /// Frames whose code point was changed.
    pub remarked: Counted,
    /// Frames that are not IP and passed without a hint.
    pub not_ip: Counted,
    /// Total slip of the schedule, because the router was not scheduled in time, milliseconds.
    pub slipped_ms: f64,
    /// How late frames were handed to the interface.
    pub departure_error_us: DepartureError,
    /// The hints that have been seen.
    pub hints: Vec<HintStatistics>,
}

/// How late frames were handed to the interface, in microseconds; null before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DepartureError {
    /// The median.
    pub p50: Option<f64>,
    /// The 99th percentile.
    pub p99: Option<f64>,
    /// The latest.
    pub max: Option<f64>,
}

/// The counters of the frames with one hint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HintStatistics {
    /// Its level, 1 to 16.
    pub hint: u16,
    /// Frames that left the queue.
    pub departed: Counted,
    /// Frames that the queue dropped.
    pub dropped: Counted,
    /// Mean waiting time of the frames that left the queue, milliseconds.
    pub mean_wait_ms: f64,
    /// The longest of these waits, milliseconds.
    pub longest_wait_ms: f64,
}

/// An interface; see [`PortStats`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// Its name.
    #[serde(rename = "interface")]
    pub name: String,
    /// The kind of its port.
    #[serde(default)]
    pub kind: String,
    /// Frames that arrived faster than they were read.
    pub missed_packets: u64,
    /// Frames longer than the MTU.
    pub truncated: Counted,
    /// Frames that arrived without a checksum, which could not be computed.
    pub without_checksum: Counted,
}

/// The status of reloads of the router's file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReloadStatus {
    /// Number of reloads that were applied.
    pub done: u64,
    /// Number of reloads that were refused and changed nothing.
    pub refused: u64,
    /// Time of the last reload since the start, seconds.
    pub last_s: Option<f64>,
    /// Why the last reload was refused; null if it was applied.
    pub error: Option<String>,
}

/// Why a line has no statistics of a router.
#[derive(Debug, thiserror::Error)]
pub enum StatisticsError {
    /// The line is not in the format of a router's statistics.
    #[error("this is no line of `cutline router --json --stats TIME`: {0}")]
    Other(#[from] serde_json::Error),
    /// A router has refused to answer.
    #[error("the router says: {0}")]
    Refused(String),
}

/// A router's reply to a request that it refuses.
#[derive(Serialize, Deserialize)]
pub struct Refusal {
    event: String,
    error: String,
}

/// A copy of a direction's statistics. The router is delayed by the copy only, and not by writing the document.
#[derive(Clone, Debug)]
pub struct ShaperSnapshot {
    rate: Rate,
    queue: String,
    stats: ShaperStats,
    queued: usize,
    backlog: Counted,
    probability: Option<Probability>,
}

impl Statistics {
    /// Parses a line.
    ///
    /// # Errors
    /// When it is not a line of a router's statistics.
    pub fn parse(line: &str) -> Result<Self, StatisticsError> {
        match serde_json::from_str(line) {
            Ok(Refusal { error, .. }) => Err(StatisticsError::Refused(error)),
            Err(_) => Ok(serde_json::from_str(line)?),
        }
    }

    /// Returns the document as one line of JSON, without the end of the line.
    pub fn json(&self) -> String {
        json(self)
    }

    /// Returns the reverse direction if `reverse`, otherwise the forward direction.
    pub const fn direction(&self, reverse: bool) -> &Direction {
        if reverse { &self.reverse } else { &self.forward }
    }
}

impl Direction {
    /// Returns the rate it is shaped to.
    pub const fn rate(&self) -> Rate {
        Rate::from_bps(self.rate_bps)
    }

    /// Returns the frames lost for this reason.
    pub fn lost(&self, loss: Loss) -> Counted {
        self.dropped.get(loss.name()).copied().unwrap_or_default()
    }

    /// Returns the number of frames lost for any reason.
    pub fn dropped_packets(&self) -> u64 {
        self.dropped.values().map(|counted| counted.packets).sum()
    }
}

impl Refusal {
    pub fn new(error: &impl ToString) -> Self {
        Self { event: "error".to_owned(), error: error.to_string() }
    }

    pub fn json(&self) -> String {
        json(self)
    }
}

impl ShaperSnapshot {
    pub fn from_shaper(shaper: &Shaper) -> Self {
        let (spec, backlog) = (&shaper.params().queue, shaper.backlog());
        Self {
            rate: spec.rate,
            queue: in_words(spec),
            stats: shaper.stats().clone(),
            queued: shaper.queued(),
            backlog: Counted { packets: backlog.packets.into(), bytes: backlog.bytes },
            probability: shaper.probability(),
        }
    }

    /// Returns the document's part about this direction, which is called `name`.
    pub fn direction(&self, name: String) -> Direction {
        let stats = &self.stats;
        let lost = |loss: Loss| (loss.name().to_owned(), stats.lost(loss).into());
        Direction {
            name,
            rate_bps: self.rate.as_bps(),
            queue: self.queue.clone(),
            received: stats.received.into(),
            sent: stats.sent.into(),
            dropped: Loss::ALL.into_iter().map(lost).collect(),
            queued_packets: self.queued as u64,
            backlog: self.backlog,
            probability: self.probability.map(Probability::get),
            marked: stats.marked.into(),
            remarked: stats.remarked.into(),
            not_ip: stats.not_ip.into(),
            slipped_ms: stats.slipped.as_millis_f64(),
            departure_error_us: stats.departure_error().into(),
            hints: hints(stats),
        }
    }
}

impl Interface {
    pub(crate) fn new(name: &str, stats: PortStats) -> Self {
        let PortStats { kind, missed, truncated, unfilled } = stats;
        Self {
            name: name.to_owned(),
            kind: kind.name().to_owned(),
            missed_packets: missed,
            truncated: truncated.into(),
            without_checksum: unfilled.into(),
        }
    }
}

impl From<Count> for Counted {
    fn from(Count { packets, bytes }: Count) -> Self {
        Self { packets, bytes }
    }
}

impl From<&Histogram> for DepartureError {
    fn from(errors: &Histogram) -> Self {
        let us = |error: Duration| error.as_nanos() as f64 / 1e3;
        let quantile = |q| errors.quantile(q).map(us);
        Self { p50: quantile(0.5), p99: quantile(0.99), max: errors.max().map(us) }
    }
}

fn json(document: &impl Serialize) -> String {
    serde_json::to_string(document).expect("the documents have text keys only")
}

/// Returns the counters of the hints that have been seen.
fn hints(stats: &ShaperStats) -> Vec<HintStatistics> {
    let of = |(hint, of): (u16, &HintCounters)| HintStatistics {
        hint,
        departed: of.departed.into(),
        dropped: of.dropped.into(),
        mean_wait_ms: of.mean_wait().as_millis_f64(),
        longest_wait_ms: of.longest_wait.as_millis_f64(),
    };
    let all = (1..=HINTS as u16).map(|level| (level, stats.hint(Hint::from_level(level))));
    all.filter(|(_, of)| of.departed.packets + of.dropped.packets > 0).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let mut statistics =
            Statistics { event: "stats".to_owned(), elapsed_s: 1.5, ..Statistics::default() };
        statistics.forward.dropped.insert(Loss::Early.name().to_owned(), Counted { packets: 3, bytes: 300 });
        let line = statistics.json();
        assert!(!line.contains('\n') && !line.contains("reload"), "{line}");
        let read = Statistics::parse(&line).unwrap();
        assert_eq!(read, statistics);
        assert_eq!((read.forward.lost(Loss::Early).packets, read.reverse.lost(Loss::Early).packets), (3, 0));
        assert_eq!(read.forward.dropped_packets(), 3);
    }

    #[test]
    fn the_former_names_of_the_directions_are_read() {
        let mut statistics = Statistics { event: "stats".to_owned(), ..Statistics::default() };
        (statistics.forward.rate_bps, statistics.reverse.rate_bps) = (1, 2);
        let line =
            statistics.json().replace("\"forward\":", "\"forth\":").replace("\"reverse\":", "\"back\":");
        assert!(line.contains("forth") && line.contains("back"), "{line}");
        assert_eq!(Statistics::parse(&line).unwrap(), statistics);
    }

    #[test]
    fn numbers_are_read_to_their_last_place() {
        let slipped_ms = 3.751_844_674_407_370_6e22;
        let forward = Direction { slipped_ms, ..Direction::default() };
        let read = Statistics::parse(&Statistics { forward, ..Statistics::default() }.json()).unwrap();
        assert_eq!(read.forward.slipped_ms, slipped_ms);
    }

    #[test]
    fn other_lines_are_refused() {
        assert!(Statistics::parse(r#"{"event":"stats"}"#).unwrap_err().to_string().contains("elapsed_s"));
        assert!(Statistics::parse("routing a -> b").is_err());
        let refused = Statistics::parse(&Refusal::new(&"not known").json()).unwrap_err().to_string();
        assert_eq!(refused, "the router says: not known");
    }
}
