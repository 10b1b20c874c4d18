//! An on/off source: constant rate while on, silent while off; both times drawn from distributions.
//!
//! Many sources with Pareto on and off times of shape 1..2 add up to self-similar traffic (Willinger, Taqqu,
//! Sherman and Wilson 1997); exponential times make the classic model of speech.
//!
//! A burst of length `T` at interval `i` has the messages at 0, i, 2i, ... before T, and at least one. The
//! source begins with an off time, so sources that start together do not burst together.

use cutline_units::{Bytes, Duration, Instant, RandomStream, Rate, Serializer};

use super::Distribution;
use crate::error::require;
use cutline_params::ParameterError;

/// What is set for an on/off source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OnOffParams {
    /// Payload rate while on, over 0.
    pub rate: Rate,
    /// Payload of a message, 1..1,000,000 bytes.
    pub size: Bytes,
    /// Length of a burst, seconds.
    pub on: Distribution,
    /// Length of a silence, seconds.
    pub off: Distribution,
}

/// An on/off source at work.
#[derive(Clone, Debug)]
pub struct OnOff {
    params: OnOffParams,
    clock: Serializer,
    deadline: Instant,
    /// When the burst ends; in the past while silent.
    burst_end: Instant,
}

impl OnOffParams {
    /// Checks every field against its range.
    ///
    /// # Errors
    /// The first field that is out of range, with its value and what is allowed.
    pub fn validate(&self) -> Result<(), ParameterError> {
        require(self.rate > Rate::ZERO, "rate", self.rate, "over 0")?;
        let fits = (1..=1_000_000).contains(&self.size.get());
        require(fits, "size", self.size, "1..1000000 bytes")?;
        self.on.validate("on")?;
        self.off.validate("off")
    }
}

impl OnOff {
    /// A source that is silent from `at` for an off time.
    pub fn new(params: &OnOffParams, at: Instant, rng: &mut RandomStream) -> Self {
        let deadline = at + seconds(params.off.sample(rng));
        Self { params: *params, clock: Serializer::new(params.rate), deadline, burst_end: Instant::ZERO }
    }

    /// When the next message is due.
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The message that is due by `now`, bytes.
    pub fn poll(&mut self, now: Instant, rng: &mut RandomStream) -> Option<u64> {
        if now < self.deadline {
            return None;
        }
        if self.deadline >= self.burst_end {
            self.burst_end = self.deadline + seconds(self.params.on.sample(rng));
        }
        self.deadline = self.clock.send(self.deadline, self.params.size);
        if self.deadline >= self.burst_end {
            let silence = seconds(self.params.off.sample(rng));
            self.deadline = self.deadline.max(self.burst_end + silence);
        }
        Some(self.params.size.get())
    }
}

/// A drawn time; a heavy tail ends at a day, beyond which no run goes.
pub(super) fn seconds(drawn: f64) -> Duration {
    Duration::from_secs_f64(drawn.min(86_400.0))
}
