//! Delay under load, as flent's test RRUL measures it: probes in several classes on an idle path, then while TCP fills the path in
//! both directions in the same classes.
//!
//! ```text
//! time      0 ............ idle ... idle + 1 s .................. end
//! idle      probes, both ways
//! loaded                              probes, both ways
//! bulk                     TCP, both ways, without end
//! ```
//!
//! A probe is a small UDP datagram at fixed intervals, whose one-way delay its receiver measures. Every class has its code point on
//! its probes and on its bulk data. Results that follow from the delays do not depend on the offset of the clocks: a mean round-trip
//! time is the sum of the mean delays of both directions, and the added delay is a difference within a direction.
//!
//! | measure | rule |
//! | --- | --- |
//! | added delay of a direction | the 95th percentile under load minus the median when idle, at least 0 |
//! | added delay of a class | the sum over both directions |
//! | round trips per minute of a class | a minute divided by the mean round-trip time under load |
//! | grade | by the added delay of the worst class: A+ below 5 ms, A below 30, B below 60, C below 200, D below 400, otherwise F |
//!
//! Example: one direction has a median of 10 ms when idle and a 95th percentile of 45 ms under load, the other one 10 ms and 20 ms.
//! The added delay is 35 ms + 10 ms = 45 ms, which is a B. If the means under load are 35 ms and 15 ms, there are 60 s / 50 ms =
//! 1200 round trips per minute.
//!
//! Round trips per minute are the unit of draft-ietf-ippm-responsiveness, which measures them with HTTP requests, so the numbers
//! differ.

use crate::control::BothReports;
use crate::document::{Clock, DistributionDocument, rate_bps};
use crate::plan::{FlowPlan, FlowTransport, PlanDirection, TcpOptions};
use crate::report::{MeterReport, ReceivedInterval, ReceiverReport, SenderReport};
use cutline_transport::app::{CbrParams, Params};
use cutline_transport::endpoint::TransportParams;
use cutline_units::{Bytes, Dscp, Duration, Histogram, Rate};
use schemars::JsonSchema;
use serde::Serialize;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;

/// The time from the start of the load to the first probe that counts as loaded.
pub const SETTLING: Duration = Duration::from_secs(1);
/// The payload of a probe.
pub const PROBE: Bytes = Bytes::new(64);
/// The largest added delays of the grades, ms. A larger one is an F.
const GRADES: [(f64, &str); 5] = [(5.0, "A+"), (30.0, "A"), (60.0, "B"), (200.0, "C"), (400.0, "D")];
const DIRECTIONS: [PlanDirection; 2] = [PlanDirection::Forward, PlanDirection::Reverse];

/// A class of traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RrulClass {
    /// Its name.
    pub name: String,
    /// The code point of its packets.
    pub dscp: Dscp,
}

/// A measurement of delay under load.
#[derive(Clone, Debug)]
pub struct Responsiveness {
    /// The classes, with different names.
    pub classes: Vec<RrulClass>,
    /// The number of TCP flows of each class in each direction.
    pub flows: u32,
    /// The options of TCP.
    pub tcp: TcpOptions,
    /// The time between two probes.
    pub probe_interval: Duration,
    /// The time without load.
    pub idle: Duration,
    /// The time with load, above [`SETTLING`].
    pub loaded: Duration,
}

/// The result of a measurement.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ResponsivenessDocument {
    /// The receiver's address and port.
    pub receiver: String,
    /// The seed of the flows' random numbers.
    pub seed: u64,
    /// The time without load, seconds.
    pub idle_s: f64,
    /// The time with load, seconds.
    pub loaded_s: f64,
    /// The relation of the clocks of both ends.
    pub clock: Clock,
    /// The classes.
    pub classes: Vec<ClassDocument>,
    /// The added delay of the worst class, ms; null if a class has none.
    pub added_ms: Option<f64>,
    /// The round trips per minute of the slowest class; null if a class has none.
    pub round_trips_per_minute: Option<f64>,
    /// The grade by the added delay: A+, A, B, C, D or F; null without an added delay.
    pub grade: Option<String>,
    /// The error that ended the run early; null if there was none.
    pub error: Option<String>,
}

/// A class.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ClassDocument {
    /// The name of the class.
    pub name: String,
    /// The code point, 0..63.
    pub dscp: u8,
    /// From this end to the receiver.
    pub forward: LoadedDirection,
    /// From the receiver to this end.
    pub reverse: LoadedDirection,
    /// The mean round-trip time when idle, ms; null if no probe came back.
    pub idle_round_trip_ms: Option<f64>,
    /// The mean round-trip time under load, ms; null if no probe came back.
    pub loaded_round_trip_ms: Option<f64>,
    /// Added delay of both directions together, ms; null if no probe arrived in one of them.
    pub added_ms: Option<f64>,
    /// Round trips per minute under load; null if no probe came back.
    pub round_trips_per_minute: Option<f64>,
    /// The course over time.
    pub intervals: Vec<CourseDocument>,
}

/// A direction of a class.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LoadedDirection {
    /// One-way delays of the probes when idle, ms; null if none arrived.
    pub idle_ms: Option<DistributionDocument>,
    /// One-way delays of the probes under load, ms; null if none arrived.
    pub loaded_ms: Option<DistributionDocument>,
    /// Added delay, ms: the 95th percentile under load minus the median when idle, at least 0; null if no probe arrived.
    pub added_ms: Option<f64>,
    /// Share of the probes under load that were lost, 0..1; null if none was sent.
    pub loss_ratio: Option<f64>,
    /// Payload of the bulk flows over the time with load, bit/s.
    pub goodput_bps: f64,
}

/// An interval of a class.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CourseDocument {
    /// Start of the interval, since the run's start, seconds.
    pub from_s: f64,
    /// Mean delay of both directions together, ms; null if no probe arrived in one of them.
    pub round_trip_ms: Option<f64>,
    /// Payload of the bulk flows to the receiver, bit/s.
    pub forward_bps: f64,
    /// Payload of the bulk flows from the receiver, bit/s.
    pub reverse_bps: f64,
}

impl Responsiveness {
    /// Returns the duration of the run.
    pub fn duration(&self) -> Duration {
        self.idle + self.loaded
    }

    /// Returns the plans of all flows.
    pub fn plans(&self, from: Option<SocketAddr>, to: SocketAddr) -> Vec<FlowPlan> {
        let mut plans: Vec<FlowPlan> = Vec::new();
        let end = self.duration();
        for class in &self.classes {
            let mut add = |what: &str, direction: PlanDirection, [start, stop]: [Duration; 2]| {
                let id = plans.len() as u32;
                let bulk = what == "bulk";
                plans.push(FlowPlan {
                    id,
                    name: format!("{}.{what}.{}.{id}", class.name, direction.name()),
                    direction,
                    transport: if bulk { FlowTransport::Tcp(self.tcp.clone()) } else { probes() },
                    app: if bulk { Params::BULK } else { self.probing() },
                    from,
                    to,
                    dscp: class.dscp,
                    ecn: false,
                    start,
                    stop: Some(stop),
                });
            };
            for direction in DIRECTIONS {
                add("idle", direction, [Duration::ZERO, self.idle]);
                add("loaded", direction, [self.idle + SETTLING, end]);
                (0..self.flows).for_each(|_| add("bulk", direction, [self.idle, end]));
            }
        }
        plans
    }

    fn probing(&self) -> Params {
        let bps = PROBE.get() as f64 * 8.0 / self.probe_interval.as_secs_f64();
        Params::Cbr(CbrParams::new(Rate::from_bps((bps as u64).max(1)), PROBE))
    }

    /// Returns the indices of the flows of a class in a direction: the idle probes, the probes under load, and the bulk flows.
    fn members(&self, class: usize, direction: PlanDirection) -> (usize, usize, Range<usize>) {
        let each = 2 + self.flows as usize;
        let first = class * 2 * each + if direction == PlanDirection::Forward { 0 } else { each };
        (first, first + 1, first + 2..first + each)
    }

    /// Returns the document of an outcome whose intervals have a width of `interval`.
    pub fn document(&self, outcome: &BothReports, seed: u64, interval: Duration) -> ResponsivenessDocument {
        let flows = Flows { of: self, sent: &outcome.sent, received: outcome.received.as_ref() };
        let classes: Vec<_> = (0..self.classes.len()).map(|class| flows.class(class, interval)).collect();
        let all =
            |of: fn(&ClassDocument) -> Option<f64>| classes.iter().map(of).collect::<Option<Vec<f64>>>();
        let added_ms = all(|class| class.added_ms).map(|added| added.into_iter().fold(0.0, f64::max));
        let slowest = all(|class| class.round_trips_per_minute);
        let slowest = slowest.map(|rates| rates.into_iter().fold(f64::INFINITY, f64::min));
        ResponsivenessDocument {
            receiver: outcome.receiver.to_string(),
            seed,
            idle_s: self.idle.as_secs_f64(),
            loaded_s: self.loaded.as_secs_f64(),
            clock: (&outcome.clock).into(),
            classes,
            added_ms,
            round_trips_per_minute: slowest,
            grade: added_ms.map(|added| grade(added).to_owned()),
            error: outcome.error.as_ref().map(ToString::to_string),
        }
    }
}

fn probes() -> FlowTransport {
    FlowTransport::Datagrams(TransportParams::Udp(Arc::default()))
}

/// Returns the grade of an added delay in ms.
fn grade(added_ms: f64) -> &'static str {
    GRADES.iter().find(|(below, _)| added_ms < *below).map_or("F", |(_, grade)| grade)
}

/// The measurements of the flows.
struct Flows<'o> {
    of: &'o Responsiveness,
    sent: &'o [SenderReport],
    received: Option<&'o MeterReport>,
}

impl Flows<'_> {
    fn received(&self, flow: usize) -> Option<&ReceiverReport> {
        self.received?.flows.iter().find(|report| report.flow as usize == flow)
    }

    fn class(&self, class: usize, width: Duration) -> ClassDocument {
        let [forward, reverse] = DIRECTIONS.map(|direction| self.direction(class, direction));
        let both = |of: fn(&LoadedDirection) -> Option<f64>| Some(of(&forward)? + of(&reverse)?);
        let mean = |distribution: &Option<DistributionDocument>| distribution.as_ref().and_then(|it| it.mean);
        let idle_round_trip_ms = mean(&forward.idle_ms).zip(mean(&reverse.idle_ms)).map(|(a, b)| a + b);
        let loaded_round_trip_ms = mean(&forward.loaded_ms).zip(mean(&reverse.loaded_ms)).map(|(a, b)| a + b);
        let RrulClass { name, dscp } = &self.of.classes[class];
        ClassDocument {
            name: name.clone(),
            dscp: dscp.get(),
            idle_round_trip_ms,
            loaded_round_trip_ms,
            added_ms: both(|direction| direction.added_ms),
            round_trips_per_minute: loaded_round_trip_ms.filter(|ms| *ms > 0.0).map(|ms| 60_000.0 / ms),
            intervals: self.course(class, width),
            forward,
            reverse,
        }
    }

    fn direction(&self, class: usize, direction: PlanDirection) -> LoadedDirection {
        let (idle, loaded, bulk) = self.of.members(class, direction);
        let delay = |flow| self.received(flow).map(|report| &report.delay);
        let quantile =
            |of: Option<&Histogram>, q| of.and_then(|it| it.quantile(q)).map(Duration::as_millis_f64);
        let added = quantile(delay(loaded), 0.95).zip(quantile(delay(idle), 0.5));
        let bytes = bulk.filter_map(|flow| self.received(flow)).map(|report| report.bytes);
        let sent = self.sent.get(loaded).map_or(0, |report| report.packets);
        let arrived = self.received(loaded).map_or(0, |report| report.packets);
        LoadedDirection {
            idle_ms: delay(idle).and_then(DistributionDocument::new),
            loaded_ms: delay(loaded).and_then(DistributionDocument::new),
            added_ms: added.map(|(loaded, idle)| (loaded - idle).max(0.0)),
            loss_ratio: (sent > 0).then(|| sent.saturating_sub(arrived) as f64 / sent as f64),
            goodput_bps: rate_bps(bytes.fold(0, u64::saturating_add), self.of.loaded),
        }
    }

    fn course(&self, class: usize, width: Duration) -> Vec<CourseDocument> {
        let count = self.of.duration().as_nanos().div_ceil(width.as_nanos().max(1)) as usize;
        let at = |flow: usize, index: usize| {
            self.received(flow).and_then(|report| report.intervals.get(index)).copied().unwrap_or_default()
        };
        let of_direction = |direction, index| {
            let (idle, loaded, bulk) = self.of.members(class, direction);
            let probes = [at(idle, index), at(loaded, index)];
            let sum = |of: fn(&ReceivedInterval) -> u64| probes.iter().map(of).fold(0, u64::saturating_add);
            let delay = sum(|it| it.delay_ns).checked_div(sum(|it| it.packets));
            let bytes = bulk.map(|flow| at(flow, index).bytes).fold(0, u64::saturating_add);
            (delay.map(|ns| Duration::from_nanos(ns).as_millis_f64()), rate_bps(bytes, width))
        };
        let one = |index| {
            let [(there, forward_bps), (back, reverse_bps)] =
                DIRECTIONS.map(|direction| of_direction(direction, index));
            let from_s = index as f64 * width.as_secs_f64();
            let round_trip_ms = there.zip(back).map(|(there, back)| there + back);
            CourseDocument { from_s, round_trip_ms, forward_bps, reverse_bps }
        };
        (0..count).map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostUse;
    use crate::control::{ClockEstimate, ClockReport};
    use cutline_signal::clock::ClockOffset;

    fn measurement() -> Responsiveness {
        let class = |name: &str, dscp: &str| RrulClass { name: name.to_owned(), dscp: dscp.parse().unwrap() };
        Responsiveness {
            classes: vec![class("default", "default"), class("EF", "EF")],
            flows: 2,
            tcp: TcpOptions::default(),
            probe_interval: Duration::from_millis(20),
            idle: Duration::from_secs(2),
            loaded: Duration::from_secs(4),
        }
    }

    /// An outcome in which probes have the delays of the module's example, shifted by an offset of the clocks.
    fn outcome(plans: &[FlowPlan], offset_ms: i64) -> BothReports {
        let received = |plan: &FlowPlan| {
            let mut delay = Histogram::default();
            let shift = if plan.direction == PlanDirection::Forward { offset_ms } else { -offset_ms };
            let delays: &[i64] = match (plan.name.split('.').nth(1).unwrap(), plan.direction) {
                ("idle", _) => &[10; 20],
                ("loaded", PlanDirection::Forward) => {
                    &[45, 45, 45, 45, 45, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30]
                }
                ("loaded", PlanDirection::Reverse) => {
                    &[20, 20, 20, 20, 20, 10, 15, 15, 15, 10, 10, 10, 15, 15, 10]
                }
                _ => &[],
            };
            for ms in delays {
                delay.record(Duration::from_millis((ms + shift) as u64));
            }
            let bytes = if delays.is_empty() { 500_000 } else { 0 };
            let packets = delays.len() as u64;
            let interval =
                ReceivedInterval { bytes, packets, delay_ns: 20_000_000 * packets, ..Default::default() };
            let intervals = vec![interval; 2];
            ReceiverReport { flow: plan.id, bytes, packets, delay, intervals, ..ReceiverReport::default() }
        };
        let sent = |plan: &FlowPlan| SenderReport { flow: plan.id, packets: 20, ..SenderReport::default() };
        let before = ClockEstimate {
            offset: ClockOffset::NONE,
            error: Duration::ZERO,
            round_trip: Duration::from_millis(1),
        };
        BothReports {
            receiver: "127.0.0.1:5203".parse().unwrap(),
            sent: plans.iter().map(sent).collect(),
            received: Some(MeterReport {
                flows: plans.iter().map(received).collect(),
                ..MeterReport::default()
            }),
            clock: ClockReport { same: false, before, after: None },
            elapsed: Duration::from_secs(6),
            sender_host: HostUse::default(),
            receiver_host: None,
            error: None,
        }
    }

    #[test]
    fn the_example_of_the_documentation() {
        let measurement = measurement();
        let to = "192.0.2.1:9".parse().unwrap();
        let plans = measurement.plans(None, to);
        assert_eq!(plans.len(), 2 * 2 * 4);
        for offset_ms in [0, 8] {
            let outcome = outcome(&plans, offset_ms);
            let document = measurement.document(&outcome, 1, Duration::from_secs(3));
            let near = |value: Option<f64>, expected: f64| {
                // The buckets of a histogram have a width of 3 %.
                assert!((value.unwrap() / expected - 1.0).abs() < 0.06, "{value:?} is not {expected}");
            };
            near(document.added_ms, 45.0);
            near(document.round_trips_per_minute, 1200.0);
            assert_eq!(document.grade.as_deref(), Some("B"));
            let [_, ef] = &document.classes[..] else { panic!("two classes") };
            assert_eq!((&*ef.name, ef.dscp), ("EF", 46));
            near(ef.forward.added_ms, 35.0);
            near(ef.idle_round_trip_ms, 20.0);
            // Two flows with 500 kB in four seconds.
            assert_eq!((ef.forward.goodput_bps, ef.forward.loss_ratio), (2e6, Some(0.25)));
            let course = ef.intervals[1];
            assert_eq!((course.from_s, course.round_trip_ms), (3.0, Some(40.0)));
            assert!((course.reverse_bps - 8e6 / 3.0).abs() < 1.0, "{course:?}");
        }
    }

    #[test]
    fn without_probes_there_is_no_verdict() {
        let measurement = measurement();
        let to = "192.0.2.1:9".parse().unwrap();
        let outcome = BothReports { received: None, ..outcome(&measurement.plans(None, to), 0) };
        let document = measurement.document(&outcome, 1, Duration::from_secs(1));
        assert_eq!((document.added_ms, document.grade, document.round_trips_per_minute), (None, None, None));
        assert_eq!(document.classes[0].forward.loss_ratio, Some(1.0));
    }

    #[test]
    fn plans_are_valid_and_in_time() {
        let plans = measurement().plans(None, "192.0.2.1:9".parse().unwrap());
        for plan in &plans {
            assert_eq!(plan.validate(), Ok(()));
        }
        let loaded = plans.iter().find(|plan| plan.name.contains("loaded")).unwrap();
        assert_eq!((loaded.start, loaded.stop), (Duration::from_secs(3), Some(Duration::from_secs(6))));
    }

    #[test]
    fn grades_have_the_documented_bounds() {
        let of = |ms: &[f64]| ms.iter().map(|ms| grade(*ms)).collect::<Vec<_>>();
        assert_eq!(of(&[0.0, 5.0, 30.0, 60.0, 200.0, 400.0]), ["A+", "A", "B", "C", "D", "F"]);
    }
}
