//! A flow whose hint follows the quality it gets, as two agents.
//!
//! The [`Reporter`] at the sink sends the totals of what has arrived every so often, over the links that acknowledgements
//! take: a report waits in their queues and can be lost there. The [`HintKeeper`] at the source learns of its quality a
//! one-way delay late at least, and of nothing that a real receiver would not see. What it does with a report is
//! `cutline_quality`'s [`HintControl`].

use crate::agent::{Address, Agent, Context, FlowCounts, Message, Outbound};
use cutline_params::{ParameterError, Parameters as _};
use cutline_quality::{Class, Combination, DeliveryReport, HintControl, HintParams};
use cutline_units::{Duration, Instant, RandomStream};
use std::sync::Arc;

/// A report's size on the wire: an RTCP receiver report with one block (RFC 3550 section 6.4.2), UDP and IPv4.
const REPORT_BYTES: u32 = 8 + 24 + 8 + 20;

/// The first port of agents that belong to flows.
const FIRST_PORT: u32 = 1 << 31;

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

/// The agent at the sink.
pub(crate) struct Reporter {
    flow: usize,
    keeper: Address,
    every: Duration,
    next: Instant,
}

/// The agent at the source.
pub(crate) struct HintKeeper {
    flow: usize,
    control: HintControl,
}

impl AdaptiveHint {
    pub(crate) fn validate(&self) -> Result<(), ParameterError> {
        if self.every.is_zero() {
            return Err(ParameterError::new("report", self.every, "above 0"));
        }
        self.params.validate()
    }

    /// The port of both agents of a flow; they are at different nodes.
    pub(crate) fn port(flow: usize) -> u32 {
        FIRST_PORT + u32::try_from(flow).expect("a network has fewer than 2^31 flows")
    }
}

impl Reporter {
    /// Reports on a flow that begins at `start`.
    pub(crate) fn new(flow: usize, keeper: Address, every: Duration, start: Instant) -> Self {
        Self { flow, keeper, every, next: start + every }
    }
}

impl HintKeeper {
    /// Keeps the hint of a flow that begins at `start`. The parameters must be valid.
    pub(crate) fn new(flow: usize, spec: &AdaptiveHint, start: Instant, random: RandomStream) -> Self {
        let control = HintControl::new(&spec.params, spec.class, Combination::Min, start, random);
        Self { flow, control: control.expect("a network refuses parameters outside their range") }
    }
}

impl Agent for Reporter {
    fn on_message(&mut self, _now: Instant, _message: &Message, _context: &mut Context<'_>) {}

    fn deadline(&self) -> Instant {
        self.next
    }

    fn on_deadline(&mut self, now: Instant, context: &mut Context<'_>) {
        let FlowCounts { received, delivered_bytes, one_way: delay, .. } = context.counts(self.flow);
        let report = DeliveryReport { at: now, received, delivered_bytes, delay };
        let hint = context.hint(self.flow);
        context.send(Outbound { to: self.keeper, size: REPORT_BYTES, hint, payload: encode(&report) });
        self.next = now + self.every;
    }
}

impl Agent for HintKeeper {
    /// The sender's packets have the hint that the report leads to from now on, and so have acknowledgements: a receiver
    /// would follow a one-way delay later, with the first packet that has it.
    fn on_message(&mut self, now: Instant, message: &Message, context: &mut Context<'_>) {
        let Some(report) = decode(&message.payload) else { return };
        let hint = self.control.on_report(now, &report, context.counts(self.flow).sent);
        context.set_hint(self.flow, hint, self.control.centre());
    }

    fn deadline(&self) -> Instant {
        Instant::FAR_FUTURE
    }

    fn on_deadline(&mut self, _now: Instant, _context: &mut Context<'_>) {}
}

/// A report on the wire: when it was made, packets, bytes, the sum of delays; 64 bits each, big-endian, times in ns.
fn encode(report: &DeliveryReport) -> Arc<[u8]> {
    let DeliveryReport { at, received, delivered_bytes, delay } = *report;
    let words = [at.as_nanos(), received, delivered_bytes, delay.as_nanos()];
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// A report from the wire; `None` when it is not one.
fn decode(payload: &[u8]) -> Option<DeliveryReport> {
    let (words, []) = payload.as_chunks::<8>() else { return None };
    let [at, received, delivered_bytes, delay] = *words else { return None };
    Some(DeliveryReport {
        at: Instant::from_nanos(u64::from_be_bytes(at)),
        received: u64::from_be_bytes(received),
        delivered_bytes: u64::from_be_bytes(delivered_bytes),
        delay: Duration::from_nanos(u64::from_be_bytes(delay)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_survives_the_wire() {
        let report = DeliveryReport {
            at: Instant::from_nanos(7),
            received: u64::MAX,
            delivered_bytes: 9,
            delay: Duration::from_secs(3),
        };
        assert_eq!(decode(&encode(&report)), Some(report));
        assert_eq!(decode(&encode(&report)[..31]), None);
        assert_eq!(decode(&[0; 40]), None);
    }
}
