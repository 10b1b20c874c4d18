//! Judges where queues build up: at the router's queue ("ours"), at the interface behind it, or elsewhere on the path.
//!
//! An AQM only has an effect where packets wait. These quantities decide for each interval:
//!
//! ```text
//! u = utilisation of our link                            busy: u >= 0.95
//! g = round-trip time - that of the idle path            grown: g > 5 ms + idle / 10
//! w = mean waiting time in our queue of packets with the probes' hint
//!                                                        unexplained: g - w > 5 ms and > 0.3 g
//! ```
//!
//! Only intervals with load count: those that are busy or grown. If the growth is unexplained in half of them, packets wait
//! elsewhere, even if they also wait here. If in half of them our queue is busy, or the wait in it explains the growth, the
//! bottleneck is ours. A link can be less than busy if load comes in bursts, or if the router was scheduled late. `g < w` is
//! possible, because queues that favour sparse flows let probes wait less than other packets. If no interval is grown and
//! our queue has dropped nothing, but probes are lost, something drops without queuing: a policer, or a very short queue.
//!
//! The interface behind our queue is observed as well. The bottleneck is there if it refuses frames, its queue disciplines
//! hold packets, its driver holds more bytes than its wire sends in 5 ms, or its wire is not faster than our rate.
//!
//! Limitations: queues that the probes do not pass are not detected, such as those of paths to other addresses. Neither is
//! a queue elsewhere that was full all the time, unless the round-trip time of the idle path is given.

use crate::format::{approximately, as_bps, as_ms, as_optional_ms, percent};
use cutline_units::{Duration, Rate};
use schemars::JsonSchema;
use serde::Serialize;

/// The thresholds of the judgement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// A link is busy from this utilisation on, 0..1. It is below 1 because statistics do not include all headers.
    pub busy: f64,
    /// Growth of the round-trip time up to this one is ignored. It allows for late wake-ups of two hosts.
    pub tolerance: Duration,
    /// Growth up to this share of the idle round-trip time is ignored, in addition to `tolerance`, 0..1.
    pub variation: f64,
    /// The share of the growth that may be unexplained, 0..1. The wait is a mean over packets, the growth one over time.
    pub unexplained: f64,
    /// The share of the loaded intervals that decides, 0..1.
    pub majority: f64,
    /// Loss of probes above this share means that something drops, 0..1.
    pub loss: f64,
    /// Least lead of the wire's rate over ours, 0..1.
    pub margin: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            busy: 0.95,
            tolerance: Duration::from_millis(5),
            variation: 0.1,
            unexplained: 0.3,
            majority: 0.5,
            loss: 0.03,
            margin: 0.02,
        }
    }
}

/// Our queue over an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct QueueLoad {
    /// Traffic of the link, overhead included, relative to its capacity, 0..1.
    pub utilisation: f64,
    /// Mean wait of the packets with the probes' hint, milliseconds; of all packets if there were none with it.
    #[schemars(with = "f64")]
    #[serde(serialize_with = "as_ms", rename = "mean_wait_ms")]
    pub mean_wait: Duration,
    /// Dropped by the queue, packets.
    pub dropped: u64,
    /// Not taken by the interface, frames.
    pub unsent: u64,
    /// Waiting for the interface at the end of the interval although they are due, frames.
    pub stuck: u64,
    /// Slip of the router's schedule, because the router was not scheduled in time, milliseconds.
    #[schemars(with = "f64")]
    #[serde(serialize_with = "as_ms", rename = "slipped_ms")]
    pub slipped: Duration,
}

/// One step of the observation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Interval {
    /// Our queue; null without statistics.
    pub queue: Option<QueueLoad>,
    /// The mean round-trip time of the probes that were answered in it, milliseconds; null if none was.
    #[schemars(with = "Option<f64>")]
    #[serde(serialize_with = "as_optional_ms", rename = "round_trip_ms")]
    pub round_trip: Option<Duration>,
}

/// The path that the probes went.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PathDelay {
    /// Probes sent.
    pub asked: usize,
    /// Probes answered.
    pub answered: usize,
    /// The idle path's round-trip time, milliseconds: as it was given, or the shortest that was seen.
    #[schemars(with = "f64")]
    #[serde(serialize_with = "as_ms", rename = "base_ms")]
    pub base: Duration,
    /// True if the idle path's round-trip time was given.
    pub base_given: bool,
}

/// The interface behind our queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct BottleneckPort {
    /// Name of the interface.
    pub name: String,
    /// The wire's rate, bit/s; null where the driver does not report it.
    #[schemars(with = "Option<u64>")]
    #[serde(serialize_with = "as_bps", rename = "speed_bps")]
    pub speed: Option<Rate>,
    /// The largest backlog observed in the queue disciplines of the interface, packets.
    pub qdisc_packets: u64,
    /// The largest backlog observed in the driver of the interface, bytes; null where the driver does not count.
    pub driver_bytes: Option<u64>,
    /// Dropped by its queue disciplines and by the interface in the meantime, packets.
    pub dropped: u64,
}

/// Observations of the bottleneck.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Observations {
    /// The rate that our queue is shaped to, bit/s; null where it is not known.
    #[schemars(with = "Option<u64>")]
    #[serde(serialize_with = "as_bps", rename = "rate_bps")]
    pub rate: Option<Rate>,
    /// The intervals of the observation, in order.
    pub intervals: Vec<Interval>,
    /// The path of the probes; null without probes.
    pub path: Option<PathDelay>,
    /// The interface behind our queue; null where none was named.
    pub port: Option<BottleneckPort>,
}

/// Place of the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BottleneckPlace {
    /// Our queue.
    Ours,
    /// The interface right behind our queue, or its driver.
    Interface,
    /// Somewhere else on the path of the probes.
    Elsewhere,
    /// Too little load for a bottleneck.
    Nowhere,
    /// The observations do not decide it.
    Unknown,
}

/// Confidence of the judgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// A contradicting observation was not possible.
    Low,
    /// One kind of observation shows it.
    Medium,
    /// Independent observations agree, nearly all of the time.
    High,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Judgement {
    /// The location of the bottleneck.
    pub place: BottleneckPlace,
    /// The confidence in this judgement.
    pub confidence: Confidence,
    /// The observations on which it is based.
    pub reasons: Vec<String>,
    /// The recommended actions.
    pub do_next: Vec<String>,
}

/// Counts and means over the intervals.
struct IntervalCounts {
    loaded: usize,
    busy: usize,
    grown: usize,
    unexplained: usize,
    /// Intervals that are busy, or whose growth is explained by the wait in our queue.
    ours: usize,
    idle: usize,
    /// The mean growth over the loaded intervals. This and the following means skip intervals without the value.
    growth: Duration,
    wait: Duration,
    utilisation: f64,
    dropped: u64,
    unsent: u64,
    stuck: u64,
    slipped: Duration,
}

/// Judges where the bottleneck is.
pub fn judge(seen: &Observations, thresholds: &Thresholds) -> Judgement {
    let counts = IntervalCounts::new(seen, thresholds);
    let mut reasons = counts.reasons(seen);
    let at_interface = at_interface(seen, &counts, thresholds);
    let verdict = if at_interface.is_empty() {
        on_path(seen, &counts, thresholds)
    } else {
        // Refused frames are direct evidence. A slow wire is only an indication.
        (
            BottleneckPlace::Interface,
            if counts.unsent + counts.stuck > 0 { Confidence::High } else { Confidence::Medium },
        )
    };
    reasons.extend(at_interface);
    let (place, confidence) = verdict;
    // The queue does not count the time for which a router that is scheduled late holds packets back.
    let confidence = if counts.slipped.is_zero() { confidence } else { confidence.min(Confidence::Medium) };
    Judgement { place, confidence, reasons, do_next: next(seen, &counts, place) }
}

impl IntervalCounts {
    fn new(seen: &Observations, thresholds: &Thresholds) -> Self {
        let base = seen.path.map_or(Duration::ZERO, |path| path.base);
        let growth = |interval: &Interval| interval.round_trip.map(|time| time.saturating_sub(base));
        let is_busy =
            |interval: &Interval| interval.queue.is_some_and(|of| of.utilisation >= thresholds.busy);
        let enough = thresholds.tolerance + base.mul_f64(thresholds.variation);
        let is_grown = |interval: &Interval| growth(interval).is_some_and(|growth| growth > enough);
        let is_unexplained = |interval: &Interval| {
            let (Some(growth), Some(queue)) = (growth(interval), interval.queue) else { return false };
            let left = growth.saturating_sub(queue.mean_wait);
            is_grown(interval) && left > thresholds.tolerance && left > growth.mul_f64(thresholds.unexplained)
        };
        let is_ours = |interval: &Interval| {
            is_busy(interval) || interval.queue.is_some() && is_grown(interval) && !is_unexplained(interval)
        };
        let loaded: Vec<&Interval> =
            seen.intervals.iter().filter(|interval| is_busy(interval) || is_grown(interval)).collect();
        let count = |is: &dyn Fn(&Interval) -> bool| loaded.iter().filter(|interval| is(interval)).count();
        let queues = || loaded.iter().filter_map(|interval| interval.queue);
        let all = || seen.intervals.iter().filter_map(|interval| interval.queue);
        Self {
            loaded: loaded.len(),
            busy: count(&is_busy),
            grown: count(&is_grown),
            unexplained: count(&is_unexplained),
            ours: count(&is_ours),
            idle: seen.intervals.len() - loaded.len(),
            growth: mean(loaded.iter().filter_map(|interval| growth(interval))),
            wait: mean(queues().map(|of| of.mean_wait)),
            utilisation: all().map(|of| of.utilisation).sum::<f64>() / all().count().max(1) as f64,
            dropped: all().map(|of| of.dropped).fold(0, u64::saturating_add),
            unsent: all().map(|of| of.unsent).fold(0, u64::saturating_add),
            stuck: all().map(|of| of.stuck).min().unwrap_or_default(),
            slipped: all().map(|of| of.slipped).fold(Duration::ZERO, |sum, slipped| sum + slipped),
        }
    }

    /// The counts as texts.
    fn reasons(&self, seen: &Observations) -> Vec<String> {
        let all = seen.intervals.len();
        let mut reasons = Vec::new();
        if seen.intervals.iter().any(|interval| interval.queue.is_some()) {
            let utilisation = percent(self.utilisation);
            let busy = self.busy;
            reasons
                .push(format!("our link was {utilisation} utilised, and busy in {busy} of {all} intervals"));
            reasons.push(format!("our queue dropped {} packets", self.dropped));
        }
        if !self.slipped.is_zero() {
            let slipped = approximately(self.slipped);
            reasons.push(format!("the router was scheduled late, and its departures slipped by {slipped}"));
        }
        if let Some(path) = seen.path {
            let (base, growth) = (approximately(path.base), approximately(self.growth));
            reasons.push(format!(
                "{} of {} probes were answered; the idle round-trip time is {base}",
                path.answered, path.asked
            ));
            reasons.push(match self.grown {
                0 => "round-trip times did not grow".to_owned(),
                grown => {
                    format!("round-trip times grew in {grown} of {all} intervals, by {growth} on average")
                }
            });
        }
        if self.ours + self.unexplained > 0 {
            let wait = approximately(self.wait);
            reasons.push(format!("under load, packets waited {wait} in our queue on average"));
        }
        reasons
    }

    fn is_most(&self, count: usize, thresholds: &Thresholds) -> bool {
        self.loaded > 0 && count as f64 >= thresholds.majority * self.loaded as f64
    }

    fn is_nearly_all(&self, count: usize) -> bool {
        self.loaded > 1 && count * 10 >= self.loaded * 9
    }
}

/// The reasons to think that packets wait at the interface behind our queue.
fn at_interface(seen: &Observations, counts: &IntervalCounts, thresholds: &Thresholds) -> Vec<String> {
    let mut reasons = Vec::new();
    if counts.unsent > 0 {
        reasons.push(format!("the interface behind our queue refused {} frames", counts.unsent));
    }
    // Up to two frames may be on their way to the interface at any moment.
    if counts.stuck > 2 {
        reasons.push(format!(
            "at least {} frames were always waiting for the interface behind our queue",
            counts.stuck
        ));
    }
    let Some(port) = &seen.port else { return reasons };
    let name = &port.name;
    if let (Some(speed), Some(rate)) = (port.speed, seen.rate)
        && (speed.as_bps() as f64) < rate.as_bps() as f64 * (1.0 + thresholds.margin)
        && counts.busy > 0
    {
        reasons
            .push(format!("the wire of `{name}` has {speed}, which is hardly more than our rate of {rate}"));
    }
    if port.qdisc_packets > 0 && port.dropped > 0 {
        let (packets, dropped) = (port.qdisc_packets, port.dropped);
        reasons.push(format!(
            "`{name}` had up to {packets} packets in its queue disciplines and dropped {dropped}"
        ));
    }
    if let (Some(bytes), Some(speed)) = (port.driver_bytes, port.speed) {
        let time = speed.transmission_time(cutline_units::Bytes::new(bytes));
        if time > thresholds.tolerance {
            reasons.push(format!("the driver of `{name}` had up to {} to send", approximately(time)));
        }
    }
    reasons
}

/// The judgement if there is no sign of a queue at the interface.
fn on_path(
    seen: &Observations,
    counts: &IntervalCounts,
    thresholds: &Thresholds,
) -> (BottleneckPlace, Confidence) {
    let has_queue = seen.intervals.iter().any(|interval| interval.queue.is_some());
    let Some(path) = seen.path.filter(|path| path.answered > 0) else {
        let busy = counts.is_most(counts.busy, thresholds);
        return if busy {
            (BottleneckPlace::Ours, Confidence::Medium)
        } else {
            (BottleneckPlace::Unknown, Confidence::Low)
        };
    };
    if !has_queue {
        return (BottleneckPlace::Unknown, Confidence::Low);
    }
    // A base that was measured under load is too long, and makes the growth too small.
    let base_is_known = path.base_given || counts.idle > 0;
    if counts.is_most(counts.unexplained, thresholds) {
        let sure = counts.is_nearly_all(counts.unexplained) && base_is_known;
        return (BottleneckPlace::Elsewhere, if sure { Confidence::High } else { Confidence::Medium });
    }
    if counts.is_most(counts.ours, thresholds) {
        let sure = counts.is_nearly_all(counts.busy) && base_is_known;
        return (BottleneckPlace::Ours, if sure { Confidence::High } else { Confidence::Medium });
    }
    let lost = 1.0 - path.answered as f64 / path.asked.max(1) as f64;
    if lost > thresholds.loss && counts.dropped == 0 {
        return (BottleneckPlace::Elsewhere, Confidence::Low);
    }
    (BottleneckPlace::Nowhere, if path.base_given { Confidence::High } else { Confidence::Medium })
}

/// The recommended actions.
fn next(seen: &Observations, counts: &IntervalCounts, place: BottleneckPlace) -> Vec<String> {
    let mut next: Vec<&str> = match place {
        BottleneckPlace::Ours => vec!["nothing: the queue is where it should be"],
        BottleneckPlace::Interface => {
            vec!["set --rate a few per cent below the rate of the wire behind the router"]
        }
        BottleneckPlace::Elsewhere if counts.busy > 0 => vec![
            "set --rate lower, step by step, until round-trip times no longer grow beyond our queue's wait",
            "check that --overhead is that of the slowest link",
        ],
        BottleneckPlace::Elsewhere => {
            vec!["set --rate a few per cent below the rate of the slower link, or move the router there"]
        }
        BottleneckPlace::Nowhere => vec!["repeat this under load, such as that of `cutline tg`"],
        BottleneckPlace::Unknown => Vec::new(),
    };
    if !counts.slipped.is_zero() {
        next.push("use real-time scheduling for the router (`chrt -f 1 cutline router ...`), or reduce other load on its machine");
    }
    let is_without_queue = seen.intervals.iter().all(|interval| interval.queue.is_none());
    if is_without_queue {
        next.push(
            "give the router's statistics with --stats, so that growth can be compared with the wait in our queue",
        );
    }
    if seen.path.is_none() {
        next.push(
            "name a host behind the bottleneck with --probe; run this on a host whose packets pass the router",
        );
    }
    if seen.path.is_some_and(|path| path.answered == 0) {
        next.push("probe another host: this one does not answer echo requests");
    }
    if seen.path.is_some_and(|path| !path.base_given) && counts.idle == 0 && counts.loaded > 0
        || place == BottleneckPlace::Nowhere && seen.path.is_some_and(|path| !path.base_given)
    {
        next.push(
            "if there was load all the time, give the round-trip time of the idle path with --base-rtt",
        );
    }
    next.into_iter().map(str::to_owned).collect()
}

fn mean(values: impl Iterator<Item = Duration>) -> Duration {
    let (sum, count) = values.fold((Duration::ZERO, 0), |(sum, count), value| (sum + value, count + 1));
    sum / count.max(1)
}

#[cfg(test)]
mod tests;
