//! What a router counts, as a document: a line of JSON. It is the same for a router's own output and for one that is asked
//! by its socket. Counters count from the router's start; an interval is the difference of two documents.

use crate::configuration::in_words;
use cutline_aqm::Count;
use cutline_ports::PortStats;
use cutline_router::{HINTS, HintCounters, Loss, Shaper, ShaperStats};
use cutline_units::{Duration, Hint, Histogram, Probability, Rate};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A router at a moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// `interval`, `end`, or `stats` for an answer.
    pub event: String,
    /// Since the start, seconds.
    pub elapsed_s: f64,
    /// From `--in` to `--out`. Documents of earlier versions call it `forth`.
    #[serde(alias = "forth")]
    pub forward: Direction,
    /// From `--out` to `--in`. Documents of earlier versions call it `back`.
    #[serde(alias = "back")]
    pub reverse: Direction,
    /// The interfaces; not told by interval.
    #[serde(default, rename = "ports", skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<Interface>,
    /// How the last reload went; of a router with a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reload: Option<ReloadStatus>,
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
    /// Such as `eth0 -> eth1`.
    #[serde(rename = "direction")]
    pub name: String,
    /// The rate it is shaped to, bit/s.
    pub rate_bps: u64,
    /// Its queue in words.
    pub queue: String,
    /// What has come in.
    pub received: Counted,
    /// What has gone out.
    pub sent: Counted,
    /// What was lost, by [`Loss::name`].
    pub dropped: BTreeMap<String, Counted>,
    /// What is in the router, whether it waits in the queue or for the interface.
    pub queued_packets: u64,
    /// What waits in the queue.
    pub backlog: Counted,
    /// The law's drop probability, 0..1, where it has one.
    pub probability: Option<f64>,
    /// Marked as having met congestion (ECN).
    pub marked: Counted,
    /// Given another code point.
    pub remarked: Counted,
    /// Passed without a look at code points, as they are not IP.
    pub not_ip: Counted,
    /// By how much the schedule was given up, as the router was not run in time, milliseconds.
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

/// What the frames of one hint met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HintStatistics {
    /// Its level, 1 to 16.
    pub hint: u16,
    /// What has left the queue.
    pub departed: Counted,
    /// What was dropped by the queue.
    pub dropped: Counted,
    /// What those that have left had waited on average, milliseconds.
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
    /// How frames are got at.
    #[serde(default)]
    pub kind: String,
    /// What came faster than it was read.
    pub missed_packets: u64,
    /// What was longer than its MTU.
    pub truncated: Counted,
    /// What came without a checksum, and could not be given one.
    pub without_checksum: Counted,
}

/// What has become of the wishes to read the file anew.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReloadStatus {
    /// How often the file was read and taken over.
    pub done: u64,
    /// How often it was refused, and everything stayed as it was.
    pub refused: u64,
    /// When the last one was, since the start.
    pub last_s: Option<f64>,
    /// Why the last one was refused; null if it was not.
    pub error: Option<String>,
}

/// Why a line is no router's statistics.
#[derive(Debug, thiserror::Error)]
pub enum StatisticsError {
    /// It is something else.
    #[error("this is no line of `cutline router --json --stats TIME`: {0}")]
    Other(#[from] serde_json::Error),
    /// A router has refused to answer.
    #[error("the router says: {0}")]
    Refused(String),
}

/// What a router answers to a request that it cannot do.
#[derive(Serialize, Deserialize)]
pub struct Refusal {
    event: String,
    error: String,
}

/// A direction as it is copied out of the router: a document takes longer to write than the router should wait.
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
    /// Reads a line.
    ///
    /// # Errors
    /// When it is not one of a router's statistics.
    pub fn parse(line: &str) -> Result<Self, StatisticsError> {
        match serde_json::from_str(line) {
            Ok(Refusal { error, .. }) => Err(StatisticsError::Refused(error)),
            Err(_) => Ok(serde_json::from_str(line)?),
        }
    }

    /// For a script: one line without its end.
    pub fn json(&self) -> String {
        json(self)
    }

    /// One of the two directions.
    pub const fn direction(&self, reverse: bool) -> &Direction {
        if reverse { &self.reverse } else { &self.forward }
    }
}

impl Direction {
    /// The rate it is shaped to.
    pub const fn rate(&self) -> Rate {
        Rate::from_bps(self.rate_bps)
    }

    /// What was lost for this reason.
    pub fn lost(&self, loss: Loss) -> Counted {
        self.dropped.get(loss.name()).copied().unwrap_or_default()
    }

    /// What was lost for any reason, packets.
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

    /// The document's part about this direction, which is called `name`.
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

/// The hints that have been seen.
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
    fn other_lines_are_refused() {
        assert!(Statistics::parse(r#"{"event":"stats"}"#).unwrap_err().to_string().contains("elapsed_s"));
        assert!(Statistics::parse("routing a -> b").is_err());
        let refused = Statistics::parse(&Refusal::new(&"not known").json()).unwrap_err().to_string();
        assert_eq!(refused, "the router says: not known");
    }
}
