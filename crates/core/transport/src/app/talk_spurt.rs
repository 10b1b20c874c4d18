//! Speech with silence suppression: an on/off source with the talk spurts and pauses of ITU-T P.59.
//!
//! ITU-T Recommendation P.59 (1993), "Artificial conversational speech", measures mean talk spurts of 1.004 s
//! and mean pauses of 1.587 s (38.53 % activity) without hangover; both are drawn from exponentials. The codec
//! is G.711 in 20 ms frames by default: 160 B each, 64 kbit/s while talking.
//!
//! Not modelled: double talk and mutual silence, which P.59 draws for a pair of speakers.

use super::ranges::{DAY, MESSAGES, RATES, check_interval};
use super::{Application, OnOff, OnOffParams, TrafficSource, Write};
use cutline_params::{ParameterError, Parameters};
use cutline_units::{Bytes, Distribution, Duration, Instant, RandomStream, Rate};

const NANOSECOND: Duration = Duration::from_nanos(1);

/// The parameters of a speaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Parameters)]
#[parameters(check = check)]
pub struct TalkSpurtParams {
    /// Payload rate while talking.
    #[param(default = Rate::from_kbps(64), range = RATES, unit = "bit/s", source = "ITU-T G.711")]
    pub rate: Rate,
    /// Payload of a frame.
    #[param(default = Bytes::new(160), range = MESSAGES, unit = "B", source = "20 ms of ITU-T G.711")]
    pub size: Bytes,
    /// Mean talk spurt, exponentially distributed.
    #[param(default = Duration::from_millis(1004), range = (NANOSECOND, DAY), source = "ITU-T P.59 table 1")]
    pub talk: Duration,
    /// Mean pause, exponentially distributed.
    #[param(default = Duration::from_millis(1587), range = (NANOSECOND, DAY), source = "ITU-T P.59 table 1")]
    pub silence: Duration,
}

/// A speaker: an on/off source.
#[derive(Clone, Debug)]
pub struct TalkSpurt(OnOff);

fn check(params: &TalkSpurtParams) -> Result<(), ParameterError> {
    check_interval(params.rate, params.size)
}

impl TalkSpurtParams {
    /// Returns the on/off source with these parameters.
    pub fn on_off(&self) -> OnOffParams {
        let exponential = |mean: Duration| Distribution::Exponential { mean: mean.as_secs_f64() };
        let Self { rate, size, talk, silence } = *self;
        OnOffParams { rate, size, on: exponential(talk), off: exponential(silence) }
    }
}

impl Application for TalkSpurt {
    type Params = TalkSpurtParams;

    const NAME: &'static str = "talk-spurt";
    const TITLE: &'static str = "Speech with silence suppression";
    const SOURCE: &'static str = "ITU-T P.59";

    fn start(params: &TalkSpurtParams, at: Instant, random: &mut RandomStream) -> Self {
        Self(OnOff::start(&params.on_off(), at, random))
    }

    fn message_size(params: &TalkSpurtParams) -> Option<Distribution> {
        OnOff::message_size(&params.on_off())
    }
}

impl TrafficSource for TalkSpurt {
    #[inline]
    fn deadline(&self) -> Instant {
        self.0.deadline()
    }

    fn poll(&mut self, now: Instant, random: &mut RandomStream) -> Option<Write> {
        self.0.poll(now, random)
    }
}
