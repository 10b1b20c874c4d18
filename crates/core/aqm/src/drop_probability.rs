//! Laws: an AQM that answers a drop probability, as the queue sees it.

use crate::{Arrival, Backlog, Limit, Readings, Verdict};
use cutline_params::{ParameterError, Parameters};
use cutline_units::{Duration, Instant, Probability, Rate};
use std::fmt::Debug;

/// An AQM whose decision is a probability (PI, RED, BLUE, PIE, ...). TSQ works on top of any of them.
///
/// A law has no queue and no random numbers. The queue calls [`advance`](Self::advance) before every change of the
/// backlog. So a law that samples at fixed times needs no timer: it takes the samples it has missed, with the backlog
/// that there was.
pub trait DropProbability {
    /// Takes the steps that are due at `now`; the backlog has been `backlog` since the last call. A long idle time must be
    /// cheap: once a step changes nothing, the rest can be skipped.
    fn advance(&mut self, now: Instant, backlog: Backlog);

    /// The probability for a packet that arrives now and finds `backlog`. [`advance`](Self::advance) has been called. Every
    /// arrival comes here, also one that a full queue then refuses.
    fn arrive(&mut self, now: Instant, arrival: Arrival, backlog: Backlog) -> Probability;

    /// The probability as it stands, for recording; `None` for a law that never drops early.
    fn probability(&self) -> Option<Probability>;

    /// Returns whether a packet that is hit may be marked instead of dropped, where queue and packet allow
    /// it. Called after [`arrive`](Self::arrive).
    #[inline]
    fn may_mark(&self) -> bool {
        true
    }

    /// Returns further values for recording.
    fn readings(&self) -> Readings {
        Readings::default()
    }

    /// The verdict on the arrival, overflow included, for laws that learn from it.
    #[inline]
    fn judged(&mut self, _now: Instant, _arrival: Arrival, _verdict: Verdict) {}

    /// A packet of `size` bytes that came at `arrived` has left; `backlog` is the remaining backlog.
    #[inline]
    fn departed(&mut self, _now: Instant, _size: u32, _arrived: Instant, _backlog: Backlog) {}

    /// The queue lets packets leave in another order than they come, as TSQ does. Called once, before the first packet.
    fn reorders(&mut self) {}

    /// The link's rate from now on.
    fn set_rate(&mut self, _now: Instant, _rate: Rate) {}

    /// Forgets everything learnt, as a new law at `now`.
    fn reset(&mut self, now: Instant);
}

/// An AQM that the registry can name, describe and build.
pub trait Aqm: DropProbability + Sized {
    /// Parameters of the law.
    type Params: Parameters + Clone + Debug + PartialEq;
    /// The name in scenario files and on the command line, in kebab-case.
    const NAME: &'static str;
    /// The name as people write it.
    const TITLE: &'static str;
    /// The paper or RFC.
    const SOURCE: &'static str;

    /// The law in front of a link of rate `rate`.
    ///
    /// # Errors
    /// When a parameter is outside its range, or two do not go together.
    fn build(params: &Self::Params, rate: Rate) -> Result<Self, ParameterError>;

    /// Returns the delay at which the queue settles for packets of a sparse flow without a hint while other flows fill the
    /// link, such as the target of the law. `None` if such packets do not wait behind the others, or if it is not known.
    /// [`standing`](crate::standing) turns lengths into delays.
    fn standing_delay(_params: &Self::Params, _limit: Limit, _rate: Rate) -> Option<Duration> {
        None
    }

    /// Returns the parameters with which the conformance suite runs the law under TSQ: with them a queue of some 100
    /// packets stands on a link of 15 Mbit/s, and 0.5 to 50 % of the arrivals are hit. Override this where the defaults
    /// lead to another queue.
    fn moderate_params() -> Self::Params {
        Self::Params::default()
    }
}
