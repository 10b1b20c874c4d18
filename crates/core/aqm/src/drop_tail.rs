//! Drop-tail: no AQM. A packet is dropped only when the queue is full.
//!
//! Source: RFC 7567 section 2.1 ("tail drop"), which also describes its faults: full queues and
//! lock-out. Every AQM is compared with it. It has no parameters beyond the queue's limit.
//!
//! # Validation
//!
//! Against ns-2's drop-tail queue: the cases named drop-tail of docs/validation/ns2.md. The conformance suite checks limit,
//! order and counters.

use crate::{Aqm, Arrival, Backlog, DropProbability, Limit, standing};
use cutline_params::{ParameterError, Parameters};
use cutline_units::{Duration, Instant, Probability, Rate};

/// Nothing can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Parameters)]
pub struct DropTailParams {}

/// The law that never drops early. A [`Fifo`](crate::Fifo) of it is drop-tail.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoEarlyDrop;

impl Aqm for NoEarlyDrop {
    type Params = DropTailParams;
    const NAME: &'static str = "drop-tail";
    const TITLE: &'static str = "Drop-tail";
    const SOURCE: &'static str = "RFC 7567 section 2.1";

    fn build(_params: &DropTailParams, _rate: Rate) -> Result<Self, ParameterError> {
        Ok(Self)
    }

    fn standing_delay(_params: &DropTailParams, limit: Limit, rate: Rate) -> Option<Duration> {
        Some(standing::full(limit, rate))
    }
}

impl DropProbability for NoEarlyDrop {
    #[inline]
    fn advance(&mut self, _now: Instant, _backlog: Backlog) {}

    #[inline]
    fn arrive(&mut self, _now: Instant, _arrival: Arrival, _backlog: Backlog) -> Probability {
        Probability::ZERO
    }

    #[inline]
    fn probability(&self) -> Option<Probability> {
        None
    }

    fn reset(&mut self, _now: Instant) {}
}
