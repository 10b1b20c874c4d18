//! Measures of a case for each queue, by seed.

use crate::data::{Data, mean};
use crate::measure::{BOTTLENECK, kbps, lost, voice};
use cutline_report::stats::Estimate;
use cutline_results::FlowRow;

/// The queues: their names in the scenario and in charts.
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

/// The group of flows with a hint.
const HINTING: &str = "marked";
/// The group of the other flows.
const OTHERS: &str = "bulk";

/// A kind of traffic with every queue.
pub(super) struct Case<'d> {
    pub(super) data: &'d Data,
    /// The name of the flows with a hint.
    pub(super) name: &'static str,
}

/// The measures of a case with one queue.
#[derive(Clone, Copy)]
pub(super) enum Measure {
    /// The quality of flows with a hint (TSQ section 2).
    Quality,
    /// The quality of audio by the E-model: G.711 with concealment.
    EModel,
    /// The loss of flows with a hint, %.
    Loss,
    /// The loss of other flows, %.
    OthersLoss,
    /// The median queuing delay of flows with a hint, ms.
    DelayP50,
    /// The 99th percentile of the queuing delay of flows with a hint, ms.
    DelayP99,
    /// The goodput of a flow with a hint, kbit/s.
    Goodput,
    /// The goodput of another flow, kbit/s.
    OthersGoodput,
    /// Jain's fairness index over the goodput of the other flows.
    Fairness,
    /// The utilisation of the bottleneck, %.
    Utilisation,
}

impl Case<'_> {
    /// The measure by seed; empty if there are no values.
    pub(super) fn by_seed(&self, measure: Measure, queue: &str) -> Vec<f64> {
        match measure {
            Measure::Quality => self.hinting(queue, |row| row.q),
            Measure::EModel => self.hinting(queue, voice),
            Measure::Loss => self.hinting(queue, lost),
            Measure::OthersLoss => self.flows(queue, OTHERS, lost),
            Measure::DelayP50 => self.hinting(queue, |row| row.queuing_p50_ms),
            Measure::DelayP99 => self.hinting(queue, |row| row.queuing_p99_ms),
            Measure::Goodput => self.hinting(queue, kbps),
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
        let of = |point| self.data.queue_values(point, BOTTLENECK, |row| 100.0 * row.utilisation);
        self.point(queue).map_or_else(Vec::new, of)
    }

    fn hinting(&self, queue: &str, measure: fn(&FlowRow) -> Option<f64>) -> Vec<f64> {
        self.flows(queue, HINTING, measure)
    }

    /// The mean over the flows of a group, by seed.
    fn flows(&self, queue: &str, group: &str, measure: fn(&FlowRow) -> Option<f64>) -> Vec<f64> {
        self.data.by_seed(&[("dumbbell.queue", queue)], group, measure)
    }

    fn point(&self, queue: &str) -> Option<&str> {
        self.data.point_with_values(&[("dumbbell.queue", queue)])
    }
}

/// Estimates.
impl Case<'_> {
    pub(super) fn mean(&self, measure: Measure, queue: &str) -> Option<Estimate> {
        mean(&self.by_seed(measure, queue))
    }
}
