//! What is measured of a case, queue by queue: one value for each seed.

use crate::data::{Data, difference, mean, ratio};
use crate::measure::{BOTTLENECK, kbps, lost, voice};
use cutline_report::stats::Estimate;
use cutline_results::FlowRow;

/// The queues, as the scenario names them and as people do.
pub(super) const QUEUES: [(&str, &str); 14] = [
    ("drop-tail", "drop-tail"),
    ("pi", "PI"),
    ("tsq-pi", "TSQ over PI"),
    ("pie", "PIE 15 ms"),
    ("pie-long", "PIE 107 ms"),
    ("tsq-pie", "TSQ over PIE"),
    ("red-worcester", "REDW"),
    ("tsq-red-worcester", "TSQ over REDW"),
    ("abe", "ABE"),
    ("codel", "CoDel"),
    ("fq-codel", "FQ CoDel"),
    ("fq-codel-rtt", "FQ CoDel by RTT"),
    ("dual-pi2", "Dual PI2"),
    ("strict-priority", "strict priority"),
];

/// The groups: those who hint, and the others.
const MARKED: &str = "marked";
const OTHERS: &str = "bulk";

/// A kind of traffic, behind every queue.
pub(super) struct Case<'d> {
    pub(super) data: &'d Data,
    /// What those who hint are called.
    pub(super) name: &'static str,
}

/// What there is to measure of a case behind a queue.
#[derive(Clone, Copy)]
pub(super) enum Measure {
    /// The quality of those who hint (TSQ section 2).
    Quality,
    /// The same by the E-model, for audio: G.711 with concealment.
    EModel,
    /// Packets of those who hint that were lost, %.
    Loss,
    /// Packets of the others that were lost, %.
    OthersLoss,
    /// The median of the queuing delay of those who hint, ms.
    DelayP50,
    /// The 99th percentile of it, ms.
    DelayP99,
    /// What a flow that hints gets, kbit/s.
    Goodput,
    /// What one of the others gets, kbit/s.
    OthersGoodput,
    /// Jain's index over the others' throughput.
    Fairness,
    /// The share of time in which the bottleneck sends, %.
    Utilisation,
}

impl Case<'_> {
    /// The measure by seed; empty where there is nothing to measure.
    pub(super) fn by_seed(&self, measure: Measure, queue: &str) -> Vec<f64> {
        match measure {
            Measure::Quality => self.marked(queue, |row| row.q),
            Measure::EModel => self.marked(queue, voice),
            Measure::Loss => self.marked(queue, lost),
            Measure::OthersLoss => self.flows(queue, OTHERS, lost),
            Measure::DelayP50 => self.marked(queue, |row| row.queuing_p50_ms),
            Measure::DelayP99 => self.marked(queue, |row| row.queuing_p99_ms),
            Measure::Goodput => self.marked(queue, kbps),
            Measure::OthersGoodput => self.flows(queue, OTHERS, kbps),
            Measure::Fairness => self.fairness(queue),
            Measure::Utilisation => self.utilisation(queue),
        }
    }

    fn fairness(&self, queue: &str) -> Vec<f64> {
        let means = self.by_seed(Measure::OthersGoodput, queue);
        let squares = self.flows(queue, OTHERS, |row| Some(kbps(row)?.powi(2)));
        means.iter().zip(squares).map(|(mean, square)| mean * mean / square).collect()
    }

    fn utilisation(&self, queue: &str) -> Vec<f64> {
        let of = |point| self.data.of_queue(point, BOTTLENECK, |row| 100.0 * row.utilisation);
        self.point(queue).map_or_else(Vec::new, of)
    }

    fn marked(&self, queue: &str, measure: fn(&FlowRow) -> Option<f64>) -> Vec<f64> {
        self.flows(queue, MARKED, measure)
    }

    /// The mean over a group's flows.
    fn flows(&self, queue: &str, group: &str, measure: fn(&FlowRow) -> Option<f64>) -> Vec<f64> {
        self.data.by_seed(&[("dumbbell.queue", queue)], group, measure)
    }

    fn point(&self, queue: &str) -> Option<&str> {
        self.data.point_of_values(&[("dumbbell.queue", queue)])
    }
}

/// Estimates.
impl Case<'_> {
    pub(super) fn mean(&self, measure: Measure, queue: &str) -> Option<Estimate> {
        mean(&self.by_seed(measure, queue))
    }

    pub(super) fn difference(&self, measure: Measure, queue: &str, other: &str) -> Option<Estimate> {
        difference(&self.by_seed(measure, queue), &self.by_seed(measure, other))
    }

    pub(super) fn ratio(&self, measure: Measure, queue: &str, other: &str) -> Option<Estimate> {
        ratio(&self.by_seed(measure, queue), &self.by_seed(measure, other))
    }
}
