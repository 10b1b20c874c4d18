//! What an AQM is to a queue: a control law that answers a probability.

use crate::{Arrival, Backlog, Verdict};
use cutline_params::{ParameterError, Parameters};
use cutline_units::{Instant, Probability, Rate};
use std::fmt::Debug;

/// What a law knows beside its probability, as far as it has such a thing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Readings {
    /// The average queue, packets.
    pub average: Option<f64>,
    /// The largest probability of RED's slope, `max_p`.
    pub max_p: Option<f64>,
    /// The queue that is aimed at, packets.
    pub target: Option<f64>,
}

/// An AQM whose decision is a probability (PI, RED, BLUE, PIE, ...). TSQ rides on any of them.
///
/// The law owns no queue and no randomness. The queue calls [`advance`](Self::advance) before every change of
/// the backlog, so a law that samples at fixed times needs no timer: it steps through the samples it has
/// missed, and is exact all the same.
pub trait DropProbability {
    /// Brings the law up to `now`; the backlog has been `backlog` ever since the last call. A long idle time
    /// must be cheap: stop stepping at a fixed point.
    fn advance(&mut self, now: Instant, backlog: Backlog);

    /// The probability for the packet now arriving behind `backlog`. `advance(now, ...)` has been called. Laws
    /// that average over arrivals see every one of them: also one that a full queue then refuses.
    fn arrive(&mut self, now: Instant, arrival: Arrival, backlog: Backlog) -> Probability;

    /// The probability as it stands, for recording; `None` for a law that never drops early.
    fn probability(&self) -> Option<Probability>;

    /// Whether what the probability hits may be marked instead of dropped, where queue and packet allow it.
    /// Asked after [`arrive`](Self::arrive).
    #[inline]
    fn may_mark(&self) -> bool {
        true
    }

    /// What else there is to record.
    fn readings(&self) -> Readings {
        Readings::default()
    }

    /// What became of the arrival, overflow included: for laws that learn from it.
    #[inline]
    fn judged(&mut self, _now: Instant, _arrival: Arrival, _verdict: Verdict) {}

    /// A packet of `size` bytes that came at `arrived` has left; `backlog` is what still waits.
    #[inline]
    fn departed(&mut self, _now: Instant, _size: u32, _arrived: Instant, _backlog: Backlog) {}

    /// The link's rate from now on.
    fn set_rate(&mut self, _now: Instant, _rate: Rate) {}

    /// Forgets everything learnt, as if made anew at `now`.
    fn reset(&mut self, now: Instant);
}

/// An AQM that the registry can name, describe and build.
pub trait Aqm: DropProbability + Sized {
    /// What can be set.
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
}
