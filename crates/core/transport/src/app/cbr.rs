//! A constant bit rate: a message of the same size each interval, `interval = size / rate`.
//!
//! The remainder of an interval, a fraction of a nanosecond, is carried to the next one, so the rate is exact. A random
//! phase prevents sources that start together from writing at the same times.
//!
//! Over UDP this is the unresponsive source. Over TFRC or TCP it is the papers' "TCP-friendly CBR": data that the
//! transport cannot carry is dropped at the sender (`send_buffer`), so delay does not grow without bound.

use super::ranges::{MESSAGES, RATES, check_interval};
use super::{Application, TrafficSource, Write};
use cutline_params::{ParameterError, Parameters};
use cutline_units::{Bytes, Distribution, Duration, Instant, RandomStream, Rate, Serializer};

/// The parameters of a constant-rate source.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
#[parameters(check = check)]
pub struct CbrParams {
    /// Payload rate.
    #[param(example = Rate::from_kbps(128), range = RATES, unit = "bit/s")]
    pub rate: Rate,
    /// Payload of a message.
    #[param(example = Bytes::new(160), range = MESSAGES, unit = "B")]
    pub size: Bytes,
    /// The first message comes at a random time within the first interval, so that sources that start together do not
    /// write in step.
    #[param(default = true, source = "ours")]
    pub random_phase: bool,
}

/// A running constant-rate source.
#[derive(Clone, Debug)]
pub struct Cbr {
    size: Bytes,
    clock: Serializer,
    deadline: Instant,
}

impl CbrParams {
    /// Returns the parameters of a source with a random phase.
    pub const fn new(rate: Rate, size: Bytes) -> Self {
        Self { rate, size, random_phase: true }
    }

    /// Returns the time from one message to the next.
    pub const fn interval(&self) -> Duration {
        self.rate.transmission_time(self.size)
    }
}

fn check(params: &CbrParams) -> Result<(), ParameterError> {
    check_interval(params.rate, params.size)
}

impl Application for Cbr {
    type Params = CbrParams;

    const NAME: &'static str = "cbr";
    const TITLE: &'static str = "Constant bit rate";
    const SOURCE: &'static str = "media without silence suppression";

    /// Starts within the first interval after `at`, or at `at` without a random phase.
    fn start(params: &CbrParams, at: Instant, random: &mut RandomStream) -> Self {
        let phase = if params.random_phase { random.uniform() } else { 0.0 };
        let deadline = at + params.interval().mul_f64(phase);
        Self { size: params.size, clock: Serializer::new(params.rate), deadline }
    }

    fn message_size(params: &CbrParams) -> Option<Distribution> {
        Some(Distribution::Fixed(params.size.get() as f64))
    }
}

impl TrafficSource for Cbr {
    #[inline]
    fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Returns the message that is due. The next one is due an interval later.
    #[inline]
    fn poll(&mut self, now: Instant, _random: &mut RandomStream) -> Option<Write> {
        if now < self.deadline {
            return None;
        }
        self.deadline = self.clock.send(self.deadline, self.size);
        Some(Write::Bytes(self.size.get()))
    }
}
