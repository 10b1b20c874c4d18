//! A Poisson source: messages whose gaps are drawn from an exponential distribution, with sizes from any.
//!
//! The mean gap is `8 E[size] / rate`, so the mean payload rate is `rate`. Arrivals have no memory: it is the traffic of
//! many independent sources together, and the arrival process of the queues in the textbooks (M/D/1, M/G/1), whose
//! waiting times one can compare with: `W = rho s / (2 (1 - rho))` for constant service times s.
//!
//! Worked numbers: 1000 B at 1 Mbit/s are 125 messages a second, a mean gap of 8 ms.

use super::ranges::{DRAWN_MESSAGES, RATES, check_mean, seconds};
use super::{Application, TrafficSource, Write};
use cutline_params::{ParameterError, Parameters};
use cutline_units::{Distribution, Duration, Instant, RandomStream, Rate};

/// The parameters of a Poisson source.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
#[parameters(check = check)]
pub struct PoissonParams {
    /// Mean payload rate.
    #[param(example = Rate::from_mbps(1), range = RATES, unit = "bit/s")]
    pub rate: Rate,
    /// Payload of a message; a draw below 1 B counts as 1 B, a draw above 1 MB as 1 MB.
    #[param(example = Distribution::Fixed(1000.0), range = DRAWN_MESSAGES, unit = "B")]
    pub size: Distribution,
}

/// A running Poisson source.
#[derive(Clone, Debug)]
pub struct Poisson {
    params: PoissonParams,
    deadline: Instant,
}

fn check(params: &PoissonParams) -> Result<(), ParameterError> {
    check_mean(&params.size)
}

impl PoissonParams {
    /// The mean gap, seconds.
    pub fn mean_gap(&self) -> f64 {
        self.size.mean() * 8.0 / self.rate.as_bps() as f64
    }

    fn gap(&self, random: &mut RandomStream) -> Duration {
        seconds(Distribution::Exponential { mean: self.mean_gap() }.sample(random))
    }
}

impl Application for Poisson {
    type Params = PoissonParams;

    const NAME: &'static str = "poisson";
    const TITLE: &'static str = "Poisson";
    const SOURCE: &'static str = "the arrivals of M/D/1 and M/G/1";

    /// Starts a gap before the first message, at `at`.
    fn start(params: &PoissonParams, at: Instant, random: &mut RandomStream) -> Self {
        Self { params: *params, deadline: at + params.gap(random) }
    }

    fn message_size(params: &PoissonParams) -> Option<Distribution> {
        Some(params.size)
    }
}

impl TrafficSource for Poisson {
    #[inline]
    fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Returns the message that is due. The next one is due a gap later.
    fn poll(&mut self, now: Instant, random: &mut RandomStream) -> Option<Write> {
        if now < self.deadline {
            return None;
        }
        self.deadline += self.params.gap(random);
        let (least, most) = DRAWN_MESSAGES;
        Some(Write::Bytes(self.params.size.sample(random).round().clamp(least, most) as u64))
    }
}
