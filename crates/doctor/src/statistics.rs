//! What a router prints about its queues: one JSON document a line, of `cutline router --json --stats TIME`.
//!
//! Counters count from the router's start; an interval is the difference of two documents.

use crate::bottleneck::QueueLoad;
use cutline_router::{Headers, Ip, Overhead, Version};
use cutline_units::{Duration, Rate};
use serde::Deserialize;

/// What one document says.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Sample {
    /// Since the router's start, seconds.
    pub elapsed_s: f64,
    /// From --in to --out.
    pub forth: Direction,
    /// From --out to --in.
    pub back: Direction,
}

/// One direction.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Direction {
    /// Such as `eth0 -> eth1`.
    pub direction: String,
    /// The rate it is shaped to.
    pub rate_bps: u64,
    sent: Count,
    dropped: Dropped,
    queued_packets: u64,
    backlog: Count,
    slipped_ms: f64,
    hints: Vec<HintWait>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
struct Count {
    packets: u64,
    bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
struct Dropped {
    early: Count,
    overflow: Count,
    unsent: Count,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
struct HintWait {
    hint: u16,
    departed: Count,
    mean_wait_ms: f64,
}

/// Why a line cannot be used.
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
#[derive(Deserialize)]
struct Refusal {
    error: String,
}

/// Reads a line.
///
/// # Errors
/// When it is not one of a router's statistics.
pub fn parse(line: &str) -> Result<Sample, StatisticsError> {
    if let Ok(Refusal { error }) = serde_json::from_str(line) {
        return Err(StatisticsError::Refused(error));
    }
    Ok(serde_json::from_str(line)?)
}

/// What has happened in one direction between two documents, `seconds` apart. `hint` is that of the probes.
pub fn load(before: &Direction, after: &Direction, seconds: f64, overhead: Overhead, hint: u16) -> QueueLoad {
    let [packets, bytes] = [
        after.sent.packets.saturating_sub(before.sent.packets),
        after.sent.bytes.saturating_sub(before.sent.bytes),
    ];
    let could = after.rate_bps as f64 * seconds;
    let of_queue = |of: &Direction| of.dropped.early.packets + of.dropped.overflow.packets;
    QueueLoad {
        utilisation: if could > 0.0 { on_link(packets, bytes, overhead) * 8.0 / could } else { 0.0 },
        mean_wait: waited(before, after, Some(hint))
            .or_else(|| waited(before, after, None))
            .unwrap_or_default(),
        dropped: of_queue(after).saturating_sub(of_queue(before)),
        unsent: after.dropped.unsent.packets.saturating_sub(before.dropped.unsent.packets),
        stuck: after.queued_packets.saturating_sub(after.backlog.packets),
        slipped: Duration::from_secs_f64((after.slipped_ms - before.slipped_ms) / 1e3),
    }
}

/// What these frames took of the link, bytes. Each counts as one of the mean length, which is exact where the overhead
/// is the same for all.
fn on_link(packets: u64, bytes: u64, overhead: Overhead) -> f64 {
    let Some(mean) = bytes.checked_div(packets) else { return 0.0 };
    let mean = mean as u32;
    let ip = Ip { at: 14, version: Version::V4, traffic_class: 0, length: mean.saturating_sub(14), flow: 0 };
    let size = overhead.size(mean, &Headers { payload: 14, ip: Some(ip) });
    let added = f64::from(size) - f64::from(mean);
    (bytes as f64 + packets as f64 * added).max(0.0)
}

/// The mean wait of those that have departed in between, of one hint or of all; `None` where there were none.
fn waited(before: &Direction, after: &Direction, hint: Option<u16>) -> Option<Duration> {
    let sums = |of: &Direction| {
        let of_hint = of.hints.iter().filter(|of| hint.is_none_or(|hint| of.hint == hint));
        of_hint.fold((0, 0.0), |(packets, ms), of| {
            (packets + of.departed.packets, ms + of.departed.packets as f64 * of.mean_wait_ms)
        })
    };
    let ((packets_before, ms_before), (packets_after, ms_after)) = (sums(before), sums(after));
    let packets = packets_after.checked_sub(packets_before).filter(|&packets| packets > 0)?;
    Some(Duration::from_secs_f64((ms_after - ms_before).max(0.0) / packets as f64 / 1e3))
}

impl Sample {
    /// One of the two directions.
    pub fn direction(&self, back: bool) -> &Direction {
        if back { &self.back } else { &self.forth }
    }
}

impl Direction {
    /// The rate it is shaped to.
    pub const fn rate(&self) -> Rate {
        Rate::from_bps(self.rate_bps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn direction(packets: u64, hints: &Value) -> Value {
        let count = |packets: u64| json!({ "packets": packets, "bytes": packets * 1514 });
        json!({
            "direction": "a -> b", "rate_bps": 12_304_000, "received": count(packets + 5), "sent": count(packets),
            "dropped": { "early": count(3), "overflow": count(1), "oversize": count(0), "runt": count(0),
                "unsent": count(packets / 1000) },
            "queued_packets": 7, "backlog": count(5), "slipped_ms": packets as f64 / 100.0,
            "probability": null, "hints": hints,
        })
    }

    fn sample(packets: u64, hints: &Value) -> Sample {
        let one = direction(packets, hints);
        let text = json!({ "event": "interval", "elapsed_s": 1.0, "forth": one, "back": one }).to_string();
        parse(&text).unwrap()
    }

    fn hint(level: u64, packets: u64, ms: f64) -> Value {
        json!({ "hint": level, "departed": { "packets": packets, "bytes": 0 }, "mean_wait_ms": ms })
    }

    /// 1000 frames of 1514 B and 24 B around each are all of 12.304 Mbit/s for a second.
    #[test]
    fn an_interval_is_the_difference_of_two_documents() {
        let before = sample(1000, &json!([hint(1, 10, 1.0), hint(16, 90, 10.0)]));
        let after = sample(2000, &json!([hint(1, 20, 1.0), hint(16, 190, 20.0)]));
        let found = load(&before.forth, &after.forth, 1.0, Overhead::Ethernet, 16);
        assert!((found.utilisation - 1.0).abs() < 1e-9, "{found:?}");
        // (190 * 20 - 90 * 10) / 100.
        assert_eq!(found.mean_wait, Duration::from_millis(29));
        assert_eq!((found.dropped, found.unsent, found.stuck), (0, 1, 2));
        assert_eq!(found.slipped, Duration::from_millis(10));
        let of_all = load(&before.forth, &after.forth, 1.0, Overhead::Ethernet, 9).mean_wait;
        assert!((of_all.as_millis_f64() - (2900.0 + 10.0) / 110.0).abs() < 1e-6, "{of_all}");
    }

    #[test]
    fn nothing_sent_is_no_load_and_nothing_waited() {
        let one = sample(1000, &json!([hint(16, 90, 10.0)]));
        let found = load(&one.forth, &one.forth, 1.0, Overhead::PppoeAtm, 16);
        assert_eq!((found.utilisation, found.mean_wait), (0.0, Duration::ZERO));
        assert_eq!(load(&one.forth, &one.forth, 0.0, Overhead::Ip, 16).utilisation, 0.0);
    }

    #[test]
    fn a_router_that_began_anew_counts_as_nothing_sent() {
        let before = sample(5000, &json!([hint(16, 90, 10.0)]));
        let after = sample(10, &json!([hint(16, 1, 1.0)]));
        let found = load(&before.forth, &after.forth, 1.0, Overhead::Ethernet, 16);
        assert_eq!((found.utilisation, found.unsent, found.mean_wait), (0.0, 0, Duration::ZERO));
    }

    #[test]
    fn other_lines_are_refused() {
        assert!(parse("{}").unwrap_err().to_string().contains("elapsed_s"));
        assert!(parse("routing a -> b").is_err());
        let refused = parse(r#"{ "event": "error", "error": "not known" }"#).unwrap_err().to_string();
        assert_eq!(refused, "the router says: not known");
    }
}
