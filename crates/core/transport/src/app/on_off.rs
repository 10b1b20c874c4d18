//! An on/off source: constant rate while on, silent while off; both times drawn from distributions.
//!
//! The sum of many sources with Pareto on and off times of shape 1..2 is self-similar traffic (Willinger, Taqqu,
//! Sherman and Wilson 1997); exponential times make the classic model of speech.
//!
//! A burst of length `T` at interval `i` has the messages at 0, i, 2i, ... before T, and at least one. The
//! source starts with an off time, so sources that start together do not burst together.

use super::ranges::{MESSAGES, POSITIVE_TIMES, RATES, check_interval, seconds};
use super::{Application, TrafficSource, Write};
use cutline_params::{ParameterError, Parameters};
use cutline_units::{Bytes, Distribution, Instant, RandomStream, Rate, Serializer};

/// The parameters of an on/off source.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
#[parameters(check = check)]
pub struct OnOffParams {
    /// Payload rate while on.
    #[param(example = Rate::from_kbps(64), range = RATES, unit = "bit/s")]
    pub rate: Rate,
    /// Payload of a message.
    #[param(example = Bytes::new(160), range = MESSAGES, unit = "B")]
    pub size: Bytes,
    /// Length of a burst.
    #[param(example = Distribution::Exponential { mean: 1.0 }, range = POSITIVE_TIMES, unit = "s")]
    pub on: Distribution,
    /// Length of a silence.
    #[param(example = Distribution::Exponential { mean: 1.0 }, range = POSITIVE_TIMES, unit = "s")]
    pub off: Distribution,
}

/// A running on/off source.
#[derive(Clone, Debug)]
pub struct OnOff {
    params: OnOffParams,
    clock: Serializer,
    deadline: Instant,
    /// End of the burst; in the past while silent.
    burst_end: Instant,
}

fn check(params: &OnOffParams) -> Result<(), ParameterError> {
    check_interval(params.rate, params.size)
}

impl Application for OnOff {
    type Params = OnOffParams;

    const NAME: &'static str = "on-off";
    const TITLE: &'static str = "On/off";
    const SOURCE: &'static str = "Willinger et al. 1997 for Pareto bursts";

    /// Starts with an off time at `at`.
    fn start(params: &OnOffParams, at: Instant, random: &mut RandomStream) -> Self {
        let deadline = at + seconds(params.off.sample(random));
        Self { params: *params, clock: Serializer::new(params.rate), deadline, burst_end: Instant::ZERO }
    }

    fn message_size(params: &OnOffParams) -> Option<Distribution> {
        Some(Distribution::Fixed(params.size.get() as f64))
    }
}

impl TrafficSource for OnOff {
    #[inline]
    fn deadline(&self) -> Instant {
        self.deadline
    }

    fn poll(&mut self, now: Instant, random: &mut RandomStream) -> Option<Write> {
        if now < self.deadline {
            return None;
        }
        if self.deadline >= self.burst_end {
            self.burst_end = self.deadline + seconds(self.params.on.sample(random));
        }
        self.deadline = self.clock.send(self.deadline, self.params.size);
        if self.deadline >= self.burst_end {
            let silence = seconds(self.params.off.sample(random));
            self.deadline = self.deadline.max(self.burst_end + silence);
        }
        Some(Write::Bytes(self.params.size.get()))
    }
}
