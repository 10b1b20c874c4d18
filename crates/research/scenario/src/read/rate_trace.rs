//! A link's rate from a record of deliveries, in Mahimahi's format: each line is a time in milliseconds at which 1500 B can be
//! delivered; the last line is the record's length, after which it restarts.
//!
//! As rates, which is the default, the rate is constant between two deliveries that are at least 100 ms apart: that of the deliveries after
//! the first of them up to the second. So the bytes that can be delivered by then are those of the record, and a time without a delivery
//! is a low rate, not none. As deliveries, packets leave at the recorded times alone, as in Mahimahi.

use super::text_file;
use crate::spec::RateChange;
use cutline_config::{TableReader, ValueKind, kind};
use cutline_sim::{DELIVERY_BYTES, Deliveries};
use cutline_units::{Duration, Rate};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// The key of a link's record.
pub const KEY: &str = "rate-trace";
/// The key of the way in which a link follows its record.
const AS: &str = "rate-trace-as";
/// The shortest time of a constant rate, ms.
const STEP: u64 = 100;
/// The size of a delivery, bits.
const PACKET: u64 = DELIVERY_BYTES as u64 * 8;
/// The most changes of rate: a record of a year.
const MOST: usize = 400_000_000 / 100;

/// The course of a link's rate over a run.
#[derive(Debug, Default)]
pub struct Course {
    /// The changes of the rate, in the order of time.
    pub rate_changes: Vec<RateChange>,
    /// The times at which the link delivers, if it does so in place of sending at its rate.
    pub deliveries: Option<Arc<Deliveries>>,
}

/// Way in which a link follows its record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum As {
    Rates,
    Deliveries,
}

/// Reads the keys of a link in a simulation of this length, if there are any. The file is sought beside the scenario file.
pub fn read(reader: &TableReader<'_>, duration: Option<Duration>) -> Option<Course> {
    let times = text_file::optional(reader, KEY, deliveries);
    let follow = reader.optional(AS, &ways());
    if reader.has(AS) && !reader.has(KEY) {
        reader.refuse(AS, &format!("it applies to a record, and there is none: add {KEY} = \"FILE\""));
    }
    let times = times?;
    let course = changes(&times, duration.unwrap_or(Duration::from_secs(1))).map(|rate_changes| {
        let deliveries = (follow == Some(As::Deliveries)).then(|| Arc::new(Deliveries::new(times)));
        Course { rate_changes, deliveries }
    });
    course.map_err(|why| reader.refuse(KEY, &why)).ok()
}

fn ways() -> ValueKind<As> {
    kind::one_of("a way to follow a record", &[("rates", As::Rates), ("deliveries", As::Deliveries)])
}

/// Digest of rates and deliveries, which identifies the records' content in the identity of a run.
pub fn digest<'r>(
    rates: impl Iterator<Item = &'r RateChange>,
    deliveries: impl Iterator<Item = &'r Arc<Deliveries>>,
) -> String {
    let mut hash = Sha256::new();
    for change in rates {
        hash.update(change.at.as_nanos().to_le_bytes());
        hash.update(change.rate.as_bps().to_le_bytes());
    }
    for time in deliveries.flat_map(|record| record.times_ms()) {
        hash.update(time.to_le_bytes());
    }
    let first = hash.finalize().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte));
    format!("{first:016x}")
}

/// Returns the times of the deliveries, ms.
fn deliveries(text: &str) -> Result<Vec<u64>, String> {
    let mut times: Vec<u64> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        let wrong = |why: String| format!("line {number}: {why}");
        // Later than this no simulation lasts.
        let time = line.parse().ok().filter(|time| *time < 1 << 40);
        let time = time.ok_or_else(|| wrong(format!("{line:?} is no time in milliseconds")))?;
        if times.last().is_some_and(|last| time < *last) {
            return Err(wrong(format!("{time} ms is before the delivery of the line before")));
        }
        times.push(time);
    }
    match times.last() {
        None => Err("it has no deliveries".to_owned()),
        Some(0) => Err("it has no length: the last delivery is at 0 ms".to_owned()),
        Some(_) => Ok(times),
    }
}

/// Returns the rates for a time.
fn changes(times: &[u64], duration: Duration) -> Result<Vec<RateChange>, String> {
    let length = times[times.len() - 1];
    let end = duration.as_nanos().div_ceil(1_000_000);
    if (end / STEP) as usize > MOST {
        return Err(format!("a simulation of {duration} is too long for it"));
    }
    let mut found = Vec::new();
    let (mut start, mut count) = (0, 0);
    let rounds = (0..).map(|round| round * length);
    for time in rounds.flat_map(|base| times.iter().map(move |time| base + time)) {
        count += 1;
        if time - start < STEP {
            continue;
        }
        let rate = Rate::from_bps((count * PACKET * 1000 / (time - start)).max(1));
        found.push(RateChange { at: Duration::from_millis(start), rate });
        if time >= end {
            return Ok(found);
        }
        (start, count) = (time, 0);
    }
    unreachable!("a record with a length is repeated until the end")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn lines(times: impl Iterator<Item = u64>) -> String {
        times.map(|time| time.to_string() + "\n").collect()
    }

    fn rates(text: &str, seconds: u64) -> Vec<(u64, u64)> {
        let times = deliveries(text).unwrap();
        let found = changes(&times, Duration::from_secs(seconds)).unwrap();
        found.iter().map(|change| (change.at.as_nanos() / 1_000_000, change.rate.as_bps())).collect()
    }

    /// A packet each millisecond is 12 Mbit/s.
    #[test]
    fn a_steady_record_is_a_steady_rate() {
        let text = lines(1..=1000);
        let found = rates(&text, 3);
        assert_eq!((found.len(), found[0], found[29]), (30, (0, 12_000_000), (2900, 12_000_000)));
    }

    #[test]
    fn a_time_without_deliveries_is_a_low_rate_until_the_next_one() {
        // 100 ms of 10 packets, then 2 s of nothing, one packet, and from the start again.
        let text = lines((1..=10).map(|time| time * 10).chain([2100]));
        assert_eq!(rates(&text, 4), [(0, 1_200_000), (100, 6000), (2100, 1_200_000), (2200, 6000)]);
    }

    #[test]
    fn bytes_are_those_of_the_record() {
        let text = "3\n3\n3\n150\n151\n151\n400\n";
        let found = rates(text, 40);
        let ends = found.iter().skip(1).map(|(at, _)| *at);
        let bits: f64 =
            found.iter().zip(ends).map(|((at, rate), end)| *rate as f64 * (end - at) as f64 / 1e3).sum();
        let until = found.last().unwrap().0;
        let expected = (until / 400 * 7) as f64 * PACKET as f64;
        assert!((bits - expected).abs() < 4.5 * PACKET as f64, "{bits} {expected}");
    }

    #[test]
    fn errors_have_their_line() {
        for (text, why) in [
            ("", "no deliveries"),
            ("0\n0\n", "no length"),
            ("1\n2 ms\n", "line 2: \"2 ms\" is no time"),
            ("5\n\n4\n", "line 3: 4 ms is before"),
            ("99999999999999999999\n", "line 1"),
        ] {
            let error = deliveries(text).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        assert!(text_file::load(Path::new("/dev/zero")).unwrap_err().contains("regular file"));
    }
}
