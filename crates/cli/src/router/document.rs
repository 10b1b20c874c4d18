//! What a router counts, as a document: a line of JSON for scripts, text for people. The same for a router's own output and
//! for one that is asked by its socket.

use crate::table::Table;
use cutline_aqm::Count;
use cutline_linux::PortStats;
use cutline_router::{HINTS, HintStats, Loss, Shaper, ShaperStats};
use cutline_units::{Duration, Hint, Histogram, Probability};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A router at a moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// `interval`, `end`, or `stats` for an answer.
    pub event: String,
    /// Since the start.
    pub elapsed_s: f64,
    /// From `--in` to `--out`.
    pub forth: Direction,
    /// From `--out` to `--in`.
    pub back: Direction,
    /// The interfaces; not told by interval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<Port>,
    /// How the last reload went; of a router with a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reload: Option<Reload>,
}

/// Packets and bytes since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    pub packets: u64,
    pub bytes: u64,
}

/// One direction; see [`ShaperStats`] for what the counters mean.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Direction {
    #[serde(rename = "direction")]
    pub name: String,
    pub rate_bps: u64,
    pub queue: String,
    pub received: Counted,
    pub sent: Counted,
    pub dropped: BTreeMap<String, Counted>,
    pub queued_packets: u64,
    pub backlog: Counted,
    pub probability: Option<f64>,
    pub marked: Counted,
    pub remarked: Counted,
    pub not_ip: Counted,
    pub slipped_ms: f64,
    pub departure_error_us: DepartureError,
    pub hints: Vec<OfHint>,
}

/// How late frames were handed to the port, in microseconds; null before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DepartureError {
    pub p50: Option<f64>,
    pub p99: Option<f64>,
    pub max: Option<f64>,
}

/// What the frames of one hint met.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OfHint {
    pub hint: u16,
    pub departed: Counted,
    pub dropped: Counted,
    pub mean_wait_ms: f64,
    pub longest_wait_ms: f64,
}

/// An interface; see [`PortStats`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Port {
    pub interface: String,
    /// How frames are got at.
    #[serde(default)]
    pub kind: String,
    pub missed_packets: u64,
    pub truncated: Counted,
    pub without_checksum: Counted,
}

/// What has become of the wishes to read the file anew.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reload {
    /// How often the file was read and taken over.
    pub done: u64,
    /// How often it was refused, and everything stayed as it was.
    pub refused: u64,
    /// When the last one was, since the start.
    pub last_s: Option<f64>,
    /// Why the last one was refused; null if it was not.
    pub error: Option<String>,
}

/// A direction as it is copied out of the router: a document takes longer to write than the router should wait.
#[derive(Clone, Debug)]
pub struct Seen {
    rate_bps: u64,
    queue: String,
    stats: ShaperStats,
    queued: usize,
    backlog: Counted,
    probability: Option<Probability>,
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

impl Seen {
    pub fn of(shaper: &Shaper) -> Self {
        let (spec, backlog) = (&shaper.params().queue, shaper.backlog());
        let tsq = if spec.tsq.is_some() { "TSQ over " } else { "" };
        Self {
            rate_bps: spec.rate.as_bps(),
            queue: format!("{tsq}{}", spec.aqm.name()),
            stats: shaper.stats().clone(),
            queued: shaper.queued(),
            backlog: Counted { packets: backlog.packets.into(), bytes: backlog.bytes },
            probability: shaper.probability(),
        }
    }

    /// The document's part about this direction, which is called `name`.
    pub fn document(&self, name: &str) -> Direction {
        let stats = &self.stats;
        let lost = |loss: Loss| (loss.name().to_owned(), stats.lost(loss).into());
        Direction {
            name: name.to_owned(),
            rate_bps: self.rate_bps,
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

/// The hints that have been seen.
fn hints(stats: &ShaperStats) -> Vec<OfHint> {
    let of = |(hint, of): (u16, &HintStats)| OfHint {
        hint,
        departed: of.departed.into(),
        dropped: of.dropped.into(),
        mean_wait_ms: of.mean_wait().as_millis_f64(),
        longest_wait_ms: of.longest_wait.as_millis_f64(),
    };
    let all = (1..=HINTS as u16).map(|level| (level, stats.of_hint(Hint::from_level(level))));
    all.filter(|(_, of)| of.departed.packets + of.dropped.packets > 0).map(of).collect()
}

impl Port {
    pub fn new(name: &str, stats: PortStats) -> Self {
        let PortStats { kind, missed, truncated, unfilled } = stats;
        Self {
            interface: name.to_owned(),
            kind: kind.name().to_owned(),
            missed_packets: missed,
            truncated: truncated.into(),
            without_checksum: unfilled.into(),
        }
    }

    /// What an operator should know.
    fn warnings(&self) -> String {
        let told = [
            (self.missed_packets, "came faster than they were read, and were lost"),
            (
                self.truncated.packets,
                "were longer than its MTU, and were dropped: turn GRO and TSO off (ethtool -K)",
            ),
            (
                self.without_checksum.packets,
                "came without checksums: turn `tx` off at the sender's end (ethtool -K)",
            ),
        ];
        let line = |(count, what)| format!("{}: {count} frames {what}\n", self.interface);
        told.into_iter().filter(|(count, _)| *count > 0).map(line).collect()
    }
}

impl Direction {
    /// Lost for any reason.
    pub fn dropped_packets(&self) -> u64 {
        self.dropped.values().map(|counted| counted.packets).sum()
    }

    fn text(&self) -> String {
        let losses = Loss::ALL.map(|loss| {
            let packets = self.dropped.get(loss.name()).map_or(0, |counted| counted.packets);
            format!("{} {packets}", loss.name())
        });
        let text = format!(
            "\n{}: received {}, sent {}, dropped {} ({}), queued {}; marked {}, re-marked {}, not IP {}\n",
            self.name,
            self.received.packets,
            self.sent.packets,
            self.dropped_packets(),
            losses.join(", "),
            self.queued_packets,
            self.marked.packets,
            self.remarked.packets,
            self.not_ip.packets,
        );
        let slipped = match self.slipped_ms {
            0.0 => String::new(),
            ms => format!("the schedule has slipped by {ms:.3} ms: the machine was too busy\n"),
        };
        text + &self.departure_error_us.text() + &slipped + &self.hints_text()
    }

    fn hints_text(&self) -> String {
        let mut table = Table::new(0, &["hint", "sent on", "dropped", "mean wait ms", "longest wait ms"]);
        for of in &self.hints {
            let [mean, longest] = [of.mean_wait_ms, of.longest_wait_ms].map(|ms| format!("{ms:.2}"));
            let [departed, dropped] = [of.departed, of.dropped].map(|counted| counted.packets.to_string());
            table.add(vec![of.hint.to_string(), departed, dropped, mean, longest]);
        }
        if table.is_empty() { String::new() } else { table.render() }
    }
}

impl DepartureError {
    fn text(self) -> String {
        let Self { p50: Some(p50), p99: Some(p99), max: Some(max) } = self else { return String::new() };
        format!("handed over {p50:.1} us after its time (median), {p99:.1} us (p99), {max:.1} us at most\n")
    }
}

impl Reload {
    fn text(&self) -> String {
        match (&self.error, self.last_s) {
            (Some(error), Some(at)) => format!("\nthe file was refused after {at:.1} s:\n{error}\n"),
            (None, Some(at)) => format!("\nthe file was taken over after {at:.1} s\n"),
            (_, None) => String::new(),
        }
    }
}

impl Document {
    /// For a terminal.
    pub fn text(&self) -> String {
        let head = format!("\nafter {:.1} s\n", self.elapsed_s);
        let ports: String = self.ports.iter().map(Port::warnings).collect();
        let reload = self.reload.as_ref().map_or_else(String::new, Reload::text);
        head + &self.forth.text() + &self.back.text() + &ports + &reload
    }

    /// For a script: one line without its end.
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("the documents have text keys only")
    }

    /// What has happened since `before`: a line for each direction.
    pub fn since(&self, before: Option<&Self>) -> String {
        let span = self.elapsed_s - before.map_or(0.0, |before| before.elapsed_s);
        let line = |now: &Direction, before: Option<&Direction>| {
            let sent = before.map_or_else(Counted::default, |before| before.sent);
            let dropped = before.map_or(0, Direction::dropped_packets);
            let p = now.probability.map_or_else(String::new, |p| format!("  p {p:.2e}"));
            format!(
                "{:8.1} s  {}  {:8.3} Mbit/s  {:6.0} packets/s  backlog {} packets  dropped {}{p}\n",
                self.elapsed_s,
                now.name,
                (now.sent.bytes - sent.bytes) as f64 * 8e-6 / span,
                (now.sent.packets - sent.packets) as f64 / span,
                now.backlog.packets,
                now.dropped_packets() - dropped,
            )
        };
        line(&self.forth, before.map(|before| &before.forth))
            + &line(&self.back, before.map(|before| &before.back))
    }
}
