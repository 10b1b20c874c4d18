//! A Poisson source: messages whose gaps are drawn from an exponential distribution, with sizes from any.
//!
//! The mean gap is `8 E[size] / rate`, so the mean payload rate is `rate`. Arrivals have no memory: it is the traffic of
//! many independent sources together, and the arrival process of the queues in the textbooks (M/D/1, M/G/1), whose
//! waiting times one can compare with: `W = rho s / (2 (1 - rho))` for constant service times s.
//!
//! Worked numbers: 1000 B at 1 Mbit/s are 125 messages a second, a mean gap of 8 ms.

use cutline_units::{Duration, Instant, RandomStream, Rate};

use super::Distribution;
use super::on_off::seconds;
use crate::error::require;
use cutline_params::ParameterError;

/// What is set for a Poisson source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PoissonParams {
    /// Mean payload rate, over 0.
    pub rate: Rate,
    /// Payload of a message, bytes, with a finite mean over 0; a draw below 1 counts as 1, one above 1,000,000 as that.
    pub size: Distribution,
}

/// A Poisson source at work.
#[derive(Clone, Debug)]
pub struct Poisson {
    params: PoissonParams,
    deadline: Instant,
}

impl PoissonParams {
    /// Checks every field against its range.
    ///
    /// # Errors
    /// The first field that is out of range, with its value and what is allowed.
    pub fn validate(&self) -> Result<(), ParameterError> {
        require(self.rate > Rate::ZERO, "rate", self.rate, "over 0")?;
        self.size.validate("size")?;
        let mean = self.size.mean();
        require((1.0..=1e6).contains(&mean), "size", format!("{:?}", self.size), "a mean of 1..1000000 bytes")
    }

    /// The mean gap, seconds.
    pub fn mean_gap(&self) -> f64 {
        self.size.mean() * 8.0 / self.rate.as_bps() as f64
    }

    fn gap(&self, rng: &mut RandomStream) -> Duration {
        seconds(Distribution::Exponential { mean: self.mean_gap() }.sample(rng))
    }
}

impl Poisson {
    /// A source whose first message comes a gap after `at`.
    pub fn new(params: &PoissonParams, at: Instant, rng: &mut RandomStream) -> Self {
        Self { params: *params, deadline: at + params.gap(rng) }
    }

    /// When the next message is due.
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The message that is due, bytes; the next is due a gap after it.
    pub fn send(&mut self, rng: &mut RandomStream) -> u64 {
        self.deadline += self.params.gap(rng);
        self.params.size.sample(rng).round().clamp(1.0, 1e6) as u64
    }
}
