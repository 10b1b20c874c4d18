//! A constant bit rate: a message of the same size each interval, `interval = size / rate`.
//!
//! The fraction of a nanosecond that an interval leaves over is carried on, so the rate is exact for ever. A
//! random phase keeps many sources that start together from writing in step.
//!
//! Over UDP this is the unresponsive source. Over TFRC or TCP it is the papers' "TCP-friendly CBR": what the
//! transport cannot carry is dropped at the sender (`send_buffer`), so delay does not grow without bound.

use cutline_units::{Bytes, Duration, Instant, RandomStream, Rate, Serializer};

use crate::error::require;
use cutline_params::ParameterError;

/// What is set for a constant-rate source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CbrParams {
    /// Payload rate, over 0.
    pub rate: Rate,
    /// Payload of a message, 1..1,000,000 bytes.
    pub size: Bytes,
    /// The first message comes at a random time within the first interval. Default true.
    pub random_phase: bool,
}

/// A constant-rate source at work.
#[derive(Clone, Debug)]
pub struct Cbr {
    size: Bytes,
    clock: Serializer,
    deadline: Instant,
}

impl CbrParams {
    /// A source with a random phase.
    pub const fn new(rate: Rate, size: Bytes) -> Self {
        Self { rate, size, random_phase: true }
    }

    /// Checks every field against its range.
    ///
    /// # Errors
    /// The first field that is out of range, with its value and what is allowed.
    pub fn validate(&self) -> Result<(), ParameterError> {
        require(self.rate > Rate::ZERO, "rate", self.rate, "over 0")?;
        let fits = (1..=1_000_000).contains(&self.size.get());
        require(fits, "size", self.size, "1..1000000 bytes")
    }

    /// The time from one message to the next.
    pub const fn interval(&self) -> Duration {
        self.rate.transmission_time(self.size)
    }
}

impl Cbr {
    /// A source that begins within the first interval after `at`, or at `at` without a random phase.
    pub fn new(params: &CbrParams, at: Instant, rng: &mut RandomStream) -> Self {
        let phase = if params.random_phase { rng.uniform() } else { 0.0 };
        let deadline = at + params.interval().mul_f64(phase);
        Self { size: params.size, clock: Serializer::new(params.rate), deadline }
    }

    /// When the next message is due.
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The message that is due, bytes; the next is due an interval later.
    pub fn send(&mut self) -> u64 {
        self.deadline = self.clock.send(self.deadline, self.size);
        self.size.get()
    }
}
