//! Speech with silence suppression: an on/off source with the talk spurts and pauses of ITU-T P.59.
//!
//! ITU-T Recommendation P.59 (1993), "Artificial conversational speech", measures mean talk spurts of 1.004 s
//! and mean pauses of 1.587 s (38.53 % activity) without hangover; both are drawn from exponentials. The codec
//! is G.711 in 20 ms frames by default: 160 B each, 64 kbit/s while talking.
//!
//! Not modelled: double talk and mutual silence, which P.59 draws for a pair of speakers.

use cutline_units::{Bytes, Rate};

use super::{Distribution, OnOffParams};
use cutline_params::ParameterError;

/// What is set for a speaker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TalkSpurtParams {
    /// Payload rate while talking, over 0. Default 64 kbit/s (G.711).
    pub rate: Rate,
    /// Payload of a frame, 1..1,000,000 bytes. Default 160 (20 ms of G.711).
    pub size: Bytes,
    /// Mean talk spurt, seconds, over 0. Default 1.004 (P.59).
    pub mean_spurt: f64,
    /// Mean pause, seconds, over 0. Default 1.587 (P.59).
    pub mean_pause: f64,
}

impl Default for TalkSpurtParams {
    fn default() -> Self {
        Self { rate: Rate::from_kbps(64), size: Bytes::new(160), mean_spurt: 1.004, mean_pause: 1.587 }
    }
}

impl TalkSpurtParams {
    /// Checks every field against its range.
    ///
    /// # Errors
    /// The first field that is out of range, with its value and what is allowed.
    pub fn validate(&self) -> Result<(), ParameterError> {
        Distribution::Exponential { mean: self.mean_spurt }.validate("mean_spurt")?;
        Distribution::Exponential { mean: self.mean_pause }.validate("mean_pause")?;
        self.on_off().validate()
    }

    /// The on/off source that speaks like this.
    pub const fn on_off(&self) -> OnOffParams {
        OnOffParams {
            rate: self.rate,
            size: self.size,
            on: Distribution::Exponential { mean: self.mean_spurt },
            off: Distribution::Exponential { mean: self.mean_pause },
        }
    }
}
