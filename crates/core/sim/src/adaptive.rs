//! Adaptive hints: two agents adapt a flow's hint to its quality.
//!
//! The [`Reporter`] at the sink periodically sends the totals of arrivals, over the links of the acknowledgements. A
//! report waits in their queues and can be lost there. So the [`HintKeeper`] at the source learns the quality with a delay
//! of at least the one-way delay, and only measures that a real receiver would have. The controller is `cutline_quality`'s
//! [`HintControl`].

use crate::agent::{Address, Agent, AgentMessage, Context, FlowCounts, OutboundMessage};
use cutline_params::{ParameterError, Parameters as _};
use cutline_quality::{Class, Combination, DeliveryReport, HintControl, HintParams};
use cutline_units::{Duration, Instant, RandomStream};
use std::sync::Arc;

/// A report's size on the wire: an RTCP receiver report with one block (RFC 3550 section 6.4.2), UDP and IPv4.
const REPORT_BYTES: u32 = 8 + 24 + 8 + 20;

/// The first port of agents that belong to flows.
const FIRST_PORT: u32 = 1 << 31;

/// Adaptation of a flow's hint to its quality. The initial hint is that of the flow.
#[derive(Clone, Debug, PartialEq)]
pub struct AdaptiveHint {
    /// The class of application for which quality is judged.
    pub class: Class,
    /// The interval of the receiver's reports.
    pub every: Duration,
    /// The parameters of the search for the best hint.
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

    /// Returns the port of both agents of a flow, which are at different nodes.
    pub(crate) fn port(flow: usize) -> u32 {
        FIRST_PORT + u32::try_from(flow).expect("a network has fewer than 2^31 flows")
    }
}

impl Reporter {
    /// Creates the reporter of a flow that begins at `start`.
    pub(crate) fn new(flow: usize, keeper: Address, every: Duration, start: Instant) -> Self {
        Self { flow, keeper, every, next: start + every }
    }
}

impl HintKeeper {
    /// Creates the hint keeper of a flow that begins at `start`. The parameters must be valid.
    pub(crate) fn new(flow: usize, spec: &AdaptiveHint, start: Instant, random: RandomStream) -> Self {
        let control = HintControl::new(&spec.params, spec.class, Combination::Min, start, random);
        Self { flow, control: control.expect("a network refuses parameters outside their range") }
    }
}

impl Agent for Reporter {
    fn on_message(&mut self, _now: Instant, _message: &AgentMessage, _context: &mut Context<'_>) {}

    fn deadline(&self) -> Instant {
        self.next
    }

    fn on_deadline(&mut self, now: Instant, context: &mut Context<'_>) {
        let FlowCounts { received, delivered_bytes, one_way: delay, .. } = context.counts(self.flow);
        let report = DeliveryReport { at: now, received, delivered_bytes, delay };
        let hint = context.hint(self.flow);
        context.send(OutboundMessage { to: self.keeper, size: REPORT_BYTES, hint, payload: encode(&report) });
        self.next = now + self.every;
    }
}

impl Agent for HintKeeper {
    /// Sets the hint that results from the report. It applies to the sender's packets and to acknowledgements from now on. A
    /// real receiver would follow a one-way delay later, with the first packet that has the new hint.
    fn on_message(&mut self, now: Instant, message: &AgentMessage, context: &mut Context<'_>) {
        let Some(report) = decode(&message.payload) else { return };
        let hint = self.control.on_report(now, &report, context.counts(self.flow).sent);
        context.set_hint(self.flow, hint, self.control.centre());
    }

    fn deadline(&self) -> Instant {
        Instant::FAR_FUTURE
    }

    fn on_deadline(&mut self, _now: Instant, _context: &mut Context<'_>) {}
}

/// Encodes a report: its time, packets, bytes, sum of delays; 64 bits each, big-endian, times in ns.
fn encode(report: &DeliveryReport) -> Arc<[u8]> {
    let DeliveryReport { at, received, delivered_bytes, delay } = *report;
    let words = [at.as_nanos(), received, delivered_bytes, delay.as_nanos()];
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// Decodes a report; `None` if the payload is not a report.
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
    fn an_encoded_report_is_decoded_unchanged() {
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
