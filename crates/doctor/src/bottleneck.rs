//! Where queues build up: at our queue, at the interface right behind it, or elsewhere on the path.
//!
//! A queue can only do something for anybody where packets wait. What decides it, interval by interval:
//!
//! ```text
//! u = what our link has sent / what its rate allows      busy: u >= 0.95
//! g = round-trip time - that of the idle path            grown: g > 5 ms + idle / 10
//! g - w, where w is what packets of the probes' hint have waited in our queue on average
//!                                                        unexplained: g - w > 5 ms and > 0.3 g
//! ```
//!
//! Only intervals count in which there was load: those that are busy or grown. If in half of them the growth is
//! unexplained, packets wait elsewhere, whether or not they wait here, too. If in half of them our queue is busy, or the wait in
//! it explains the growth, the bottleneck is ours: a link can be less than busy where load comes in bursts, or where the
//! router was not run in time. `g < w` is no contradiction: queues that favour sparse flows let probes wait less than
//! others. Where nothing is grown, our queue is idle and has dropped nothing, and probes get lost
//! all the same, something drops without queuing: a policer, or a very short queue.
//!
//! The interface behind us is asked as well: frames that it does not take, packets in its queue disciplines, bytes in its
//! driver beyond 5 ms of its wire, and a wire that is not faster than our rate all put the bottleneck there.
//!
//! Not seen: queues that the probes do not pass, such as those of a path for other addresses, and a queue elsewhere that
//! has stood all the time, unless the idle path's round-trip time is given.

use crate::words::{approximately, as_bps, as_ms, as_optional_ms, percent};
use cutline_units::{Duration, Rate};
use schemars::JsonSchema;
use serde::Serialize;

/// Where the limits are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// The utilisation from which on a link is busy, 0..1. The schedule is exact; the rest is headers that statistics do
    /// not show.
    pub busy: f64,
    /// How much a round-trip time may grow without meaning anything: what the wake-ups of two hosts come to.
    pub tolerance: Duration,
    /// The part of the idle round-trip time that it may vary by, 0..1.
    pub variation: f64,
    /// The part of the growth that may be left unexplained, 0..1: a mean over packets is held against one over time.
    pub unexplained: f64,
    /// The part of the loaded intervals that decides, 0..1.
    pub majority: f64,
    /// The loss of probes from which on something drops, 0..1.
    pub loss: f64,
    /// How much faster than our rate the wire has to be, 0..1.
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
    /// What the link has sent, overhead included, over what it could have, 0..1.
    pub utilisation: f64,
    /// Mean wait of the packets with the probes' hint, milliseconds; of all packets if there were none with it.
    #[schemars(with = "f64")]
    #[serde(serialize_with = "as_ms", rename = "mean_wait_ms")]
    pub mean_wait: Duration,
    /// Dropped by the queue, packets.
    pub dropped: u64,
    /// Not taken by the interface, frames.
    pub unsent: u64,
    /// Waiting for the interface at the end of the interval though their time has come, frames.
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
    /// Whether the idle path's round-trip time was given.
    pub base_given: bool,
}

/// The interface behind our queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// The wire's rate, bit/s; null where the driver does not report it.
    #[schemars(with = "Option<u64>")]
    #[serde(serialize_with = "as_bps", rename = "speed_bps")]
    pub speed: Option<Rate>,
    /// The most that was seen in its queue disciplines, packets.
    pub qdisc_packets: u64,
    /// The most that was seen in its driver, bytes; null where the driver does not count.
    pub driver_bytes: Option<u64>,
    /// Dropped by its queue disciplines and by the interface in the meantime, packets.
    pub dropped: u64,
}

/// Everything that was seen.
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
    pub port: Option<Port>,
}

/// Where the bottleneck is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// Our queue.
    Ours,
    /// The interface right behind our queue, or its driver.
    Interface,
    /// Somewhere else on the path of the probes.
    Elsewhere,
    /// There was too little load for a bottleneck.
    Nowhere,
    /// What was seen does not tell.
    Unknown,
}

/// How sure that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// An observation that could have contradicted it is missing.
    Low,
    /// One kind of observation says so.
    Medium,
    /// Independent observations agree, nearly all of the time.
    High,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Judgement {
    /// The location of the bottleneck.
    pub place: Place,
    /// The confidence in this judgement.
    pub confidence: Confidence,
    /// The observations on which it is based.
    pub reasons: Vec<String>,
    /// The recommended actions.
    pub do_next: Vec<String>,
}

/// What the intervals come to.
struct Counted {
    loaded: usize,
    busy: usize,
    grown: usize,
    unexplained: usize,
    /// Busy, or grown by the wait in our queue.
    ours: usize,
    idle: usize,
    /// Means over the loaded intervals, of those that have them.
    growth: Duration,
    wait: Duration,
    utilisation: f64,
    dropped: u64,
    unsent: u64,
    stuck: u64,
    slipped: Duration,
}

/// Judges.
pub fn judge(seen: &Observations, thresholds: &Thresholds) -> Judgement {
    let counted = Counted::of(seen, thresholds);
    let mut reasons = counted.reasons(seen);
    let at_port = at_port(seen, &counted, thresholds);
    let verdict = if at_port.is_empty() {
        on_path(seen, &counted, thresholds)
    } else {
        // Frames that were refused are seen; a wire that is too slow is concluded.
        (
            Place::Interface,
            if counted.unsent + counted.stuck > 0 { Confidence::High } else { Confidence::Medium },
        )
    };
    reasons.extend(at_port);
    let (place, confidence) = verdict;
    // What a router that is not run in time holds back, its queue does not count as waiting.
    let confidence = if counted.slipped.is_zero() { confidence } else { confidence.min(Confidence::Medium) };
    Judgement { place, confidence, reasons, do_next: next(seen, &counted, place) }
}

impl Counted {
    fn of(seen: &Observations, thresholds: &Thresholds) -> Self {
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
            dropped: all().map(|of| of.dropped).sum(),
            unsent: all().map(|of| of.unsent).sum(),
            stuck: all().map(|of| of.stuck).min().unwrap_or_default(),
            slipped: all().map(|of| of.slipped).fold(Duration::ZERO, |sum, slipped| sum + slipped),
        }
    }

    /// What was counted, in words.
    fn reasons(&self, seen: &Observations) -> Vec<String> {
        let all = seen.intervals.len();
        let mut reasons = Vec::new();
        if seen.intervals.iter().any(|interval| interval.queue.is_some()) {
            let use_of = percent(self.utilisation);
            reasons
                .push(format!("our link was used to {use_of}, and busy in {} of {all} intervals", self.busy));
            reasons.push(format!("our queue has dropped {} packets", self.dropped));
        }
        if !self.slipped.is_zero() {
            let slipped = approximately(self.slipped);
            reasons
                .push(format!("the router was not run in time, and has given up {slipped} of its schedule"));
        }
        if let Some(path) = seen.path {
            let (base, growth) = (approximately(path.base), approximately(self.growth));
            reasons.push(format!("{} of {} probes came back, idle {base}", path.answered, path.asked));
            reasons.push(match self.grown {
                0 => "round-trip times have not grown".to_owned(),
                grown => format!(
                    "round-trip times have grown in {grown} of {all} intervals, by {growth} on average"
                ),
            });
        }
        if self.ours + self.unexplained > 0 {
            let wait = approximately(self.wait);
            reasons.push(format!("under load packets have waited {wait} in our queue on average"));
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

/// What says that packets wait at the interface behind us.
fn at_port(seen: &Observations, counted: &Counted, thresholds: &Thresholds) -> Vec<String> {
    let mut reasons = Vec::new();
    if counted.unsent > 0 {
        reasons.push(format!("the interface behind us did not take {} frames", counted.unsent));
    }
    // Two may be on their way to it at any moment.
    if counted.stuck > 2 {
        reasons.push(format!(
            "{} frames and more were always waiting for the interface behind us",
            counted.stuck
        ));
    }
    let Some(port) = &seen.port else { return reasons };
    let name = &port.name;
    if let (Some(speed), Some(rate)) = (port.speed, seen.rate)
        && (speed.as_bps() as f64) < rate.as_bps() as f64 * (1.0 + thresholds.margin)
        && counted.busy > 0
    {
        reasons.push(format!("the wire of `{name}` has {speed}, hardly more than our rate of {rate}"));
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

/// Ours, elsewhere, or not to be told.
fn on_path(seen: &Observations, counted: &Counted, thresholds: &Thresholds) -> (Place, Confidence) {
    let has_queue = seen.intervals.iter().any(|interval| interval.queue.is_some());
    let Some(path) = seen.path.filter(|path| path.answered > 0) else {
        let busy = counted.is_most(counted.busy, thresholds);
        return if busy { (Place::Ours, Confidence::Medium) } else { (Place::Unknown, Confidence::Low) };
    };
    if !has_queue {
        return (Place::Unknown, Confidence::Low);
    }
    // A base that was seen while there was load is too long, and growth too small.
    let base_is_known = path.base_given || counted.idle > 0;
    if counted.is_most(counted.unexplained, thresholds) {
        let sure = counted.is_nearly_all(counted.unexplained) && base_is_known;
        return (Place::Elsewhere, if sure { Confidence::High } else { Confidence::Medium });
    }
    if counted.is_most(counted.ours, thresholds) {
        let sure = counted.is_nearly_all(counted.busy) && base_is_known;
        return (Place::Ours, if sure { Confidence::High } else { Confidence::Medium });
    }
    let lost = 1.0 - path.answered as f64 / path.asked.max(1) as f64;
    if lost > thresholds.loss && counted.dropped == 0 {
        return (Place::Elsewhere, Confidence::Low);
    }
    (Place::Nowhere, if path.base_given { Confidence::High } else { Confidence::Medium })
}

/// What an operator could do.
fn next(seen: &Observations, counted: &Counted, place: Place) -> Vec<String> {
    let mut next: Vec<&str> = match place {
        Place::Ours => vec!["nothing: the queue is where it should be"],
        Place::Interface => vec!["set --rate a few per cent below what the wire behind the router carries"],
        Place::Elsewhere if counted.busy > 0 => vec![
            "set --rate lower, step by step, until round-trip times no longer grow beyond our queue's wait",
            "see that --overhead is that of the slowest link",
        ],
        Place::Elsewhere => vec![
            "set --rate a few per cent below what gets through the slower link, or move the router there",
        ],
        Place::Nowhere => vec!["look again while there is load, such as that of `cutline tg`"],
        Place::Unknown => Vec::new(),
    };
    if !counted.slipped.is_zero() {
        next.push("give the router time: `chrt -f 1 cutline router ...`, or less else to do on its machine");
    }
    let is_without_queue = seen.intervals.iter().all(|interval| interval.queue.is_none());
    if is_without_queue {
        next.push(
            "give the router's statistics with --stats, that growth can be held against our queue's wait",
        );
    }
    if seen.path.is_none() {
        next.push(
            "name a host behind the bottleneck with --probe, from a host whose packets pass the router",
        );
    }
    if seen.path.is_some_and(|path| path.answered == 0) {
        next.push("probe another host: this one does not answer echo requests");
    }
    if seen.path.is_some_and(|path| !path.base_given) && counted.idle == 0 && counted.loaded > 0
        || place == Place::Nowhere && seen.path.is_some_and(|path| !path.base_given)
    {
        next.push("if there was load all the time, give the idle path's round-trip time with --base-rtt");
    }
    next.into_iter().map(str::to_owned).collect()
}

fn mean(values: impl Iterator<Item = Duration>) -> Duration {
    let (sum, count) = values.fold((Duration::ZERO, 0), |(sum, count), value| (sum + value, count + 1));
    sum / count.max(1)
}

#[cfg(test)]
#[path = "bottleneck_tests.rs"]
mod tests;
