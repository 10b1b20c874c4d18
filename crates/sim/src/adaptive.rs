//! A flow whose hint follows the quality it gets: what its receiver counts and reports, and how.
//!
//! The receiver reports its totals every so often in a packet of its own, over the links that acknowledgements take: it
//! waits in their queues and can be lost there. So the sender learns of its quality a one-way delay late at least, and of
//! nothing that a real receiver would not see. What the sender does with it is `cutline_quality`'s [`HintControl`].

use crate::measure::Received;
use cutline_params::{ParameterError, Parameters as _};
use cutline_quality::{Class, Combination, HintControl, HintParams, Report};
use cutline_units::{Duration, Instant, RandomStream};

/// A report's size on the wire: an RTCP receiver report with one block (RFC 3550 section 6.4.2), UDP and IPv4.
pub(crate) const REPORT_BYTES: u32 = 8 + 24 + 8 + 20;

/// How a flow's hint follows its quality. The first hint is the flow's own.
#[derive(Clone, Debug, PartialEq)]
pub struct AdaptiveHint {
    /// What judges the quality.
    pub class: Class,
    /// How often the receiver reports.
    pub every: Duration,
    /// How the hint is looked for.
    pub params: HintParams,
}

/// The receiver's side: its totals.
pub(crate) struct Reporter {
    /// Where the way to the sender begins.
    pub(crate) route: u32,
    pub(crate) every: Duration,
    totals: Report,
}

impl AdaptiveHint {
    pub(crate) fn validate(&self) -> Result<(), ParameterError> {
        if self.every.is_zero() {
            return Err(ParameterError::new("report", self.every, "above 0"));
        }
        self.params.validate()
    }

    pub(crate) fn control(&self, start: Instant, random: RandomStream) -> HintControl {
        let control = HintControl::new(&self.params, self.class, Combination::Min, start, random);
        control.expect("a network refuses parameters outside their range")
    }
}

impl Reporter {
    pub(crate) fn new(route: u32, every: Duration) -> Self {
        Self { route, every, totals: Report::default() }
    }

    /// A packet has reached the sink.
    pub(crate) fn received(&mut self, arrival: &Received) {
        self.totals.received += 1;
        self.totals.delivered_bytes += arrival.delivered;
        self.totals.delay += arrival.one_way;
    }

    /// What there is to say now.
    pub(crate) fn report(&self, now: Instant) -> Report {
        Report { at: now, ..self.totals }
    }
}
