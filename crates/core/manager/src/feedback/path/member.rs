//! A flow of the path with its reports: its rate, and its place in the order of lowering.

use super::PathFlow;
use crate::feedback::cutoff::rank;
use crate::feedback::params::FeedbackParams;
use crate::feedback::predictor::{FlowPrediction, Predictor};
use cutline_units::{Duration, Instant, Rate};

/// The share by which a reference exceeds the rate that a flow has used.
const MARGIN: f64 = 1.25;
/// The share of its peak that is left after a report: a half after 17 s, long after flows of a path that is overloaded
/// have been lowered.
pub(super) const FADING: f64 = 0.98;

/// A flow with its reports.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub flow: PathFlow,
    pub since: Instant,
    pub predictor: Predictor,
    pub prediction: FlowPrediction,
    /// Time of the last report; `None` before the first.
    pub heard: Option<Instant>,
    /// Number of reports of traffic that was sent since the directive holds.
    pub fresh: u32,
    pub used: Rate,
    /// The highest rate of the last reports, bit/s. It fades.
    pub peak: f64,
    pub rank: usize,
    /// Rate from which the flow is lowered.
    pub reference: Rate,
    pub limit: Option<Rate>,
    /// The most that it could send before its limit changed.
    pub before: Rate,
}

impl Member {
    pub fn is_heard(&self, now: Instant, silence: Duration) -> bool {
        self.heard.is_some_and(|heard| now.saturating_since(heard) < silence)
    }

    /// The highest rate that can have been delivered. While a queue empties, more is delivered than is sent: at most twice as much counts as
    /// long as rates have just changed. A client that claims more lies.
    pub fn credible(&self, has_just_changed: bool) -> Rate {
        let now = self.limit.unwrap_or(self.flow.most).as_bps();
        let bps =
            if has_just_changed { now.max(self.before.as_bps()) * 2 } else { (now as f64 * MARGIN) as u64 };
        Rate::from_bps(bps)
    }

    /// Follows the flow's age and use, while the path is not lowered.
    pub fn refresh(&mut self, now: Instant, params: &FeedbackParams) {
        let PathFlow { most, minimum, priority, .. } = self.flow;
        let bps = (self.peak * MARGIN) as u64;
        self.reference =
            if self.heard.is_some() { Rate::from_bps(bps).clamp(minimum, most.max(minimum)) } else { most };
        self.rank = rank(params.order, priority, minimum, self.reference, now.saturating_since(self.since));
    }
}
