//! Audio: packets of a codec at equal intervals.
//!
//! Worked: G.711 has 64 kbit/s, so 20 ms are 160 B, 50 times a second.

use super::ApplicationTranslator;
use crate::demand::Demand;
use cutline_params::{Choice, ParameterError, Parameters};
use cutline_quality::spec::SpecParameter;
use cutline_units::{Bytes, Duration, Rate};

const MILLISECOND: Duration = Duration::from_millis(1);

/// Audio codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Codec {
    /// ITU-T G.711: 64 kbit/s.
    G711,
    /// ITU-T G.722: 64 kbit/s.
    G722,
    /// ITU-T G.729: 8 kbit/s.
    G729,
    /// Opus (RFC 6716): any rate; 32 kbit/s unless bit-rate is set.
    Opus,
}

impl Codec {
    /// The bit rate, unless it is set.
    const fn rate(self) -> Rate {
        match self {
            Self::G711 | Self::G722 => Rate::from_kbps(64),
            Self::G729 => Rate::from_kbps(8),
            Self::Opus => Rate::from_kbps(32),
        }
    }
}

/// Audio in its own words.
#[derive(Clone, Debug, PartialEq, Parameters)]
#[parameters(check = AudioParams::check)]
pub struct AudioParams {
    /// The codec.
    #[param(default = Codec::G711, source = "every telephone has it")]
    pub codec: Codec,
    /// The bit rate of opus; off: 32 kbit/s.
    #[param(default = None, range = (6_000, 510_000), unit = "bit/s", source = "RFC 6716 section 2.1.1")]
    pub bit_rate: Option<Rate>,
    /// Length of the sound in a packet.
    #[param(
        default = Duration::from_millis(20),
        range = (Duration::from_micros(2_500), Duration::from_millis(120)),
        source = "RFC 3551 section 4.2"
    )]
    pub interval: Duration,
    /// Size of the header before the sound, such as the 12 B of RTP.
    #[param(default = Bytes::ZERO, range = (0, 100), unit = "B", source = "the application's payload alone")]
    pub header: Bytes,
    /// The largest share of packets that the codec can do without.
    #[param(default = 3.0, range = (0.0, 100.0), unit = "%", source = "ITU-T G.1010 table I.1")]
    pub loss: f64,
    /// True if people answer each other; if not, a play-out buffer hides delay and jitter.
    #[param(default = true, source = "a telephone call")]
    pub interactive: bool,
}

impl AudioParams {
    fn check(&self) -> Result<(), ParameterError> {
        match self.bit_rate {
            Some(rate) if self.codec != Codec::Opus && rate != self.codec.rate() => {
                let allowed = format!("{}, or off: {} has one rate", self.codec.rate(), self.codec.name());
                Err(ParameterError::new("bit-rate", rate, allowed))
            }
            _ => Ok(()),
        }
    }
}

impl ApplicationTranslator for AudioParams {
    const NAME: &'static str = "audio";
    const TITLE: &'static str = "speech or music, as it is spoken or from a server";

    fn demands(&self) -> Vec<Demand> {
        let Self { codec, bit_rate, interval, header, loss, interactive } = *self;
        let bit_rate = bit_rate.unwrap_or(codec.rate());
        let rate = 1e9 / interval.as_nanos() as f64;
        let sound = (bit_rate.as_bps() * interval.as_nanos()).div_ceil(8_000_000_000);
        let packets = || format!("a packet for each {interval} of sound, all the time");
        let size = format!("{interval} at {bit_rate} ({}) and a header of {header}", codec.name());
        let mut demands = vec![
            Demand::new(SpecParameter::MinRate, rate, "", packets()),
            Demand::new(SpecParameter::MaxRate, rate, "", packets()),
            Demand::new(SpecParameter::PeakRate, rate, "", packets()),
            Demand::new(SpecParameter::Size, Bytes::new(sound) + header, "", size),
        ];
        demands.extend(of_listeners(interactive, loss));
        demands.push(Demand::new(
            SpecParameter::Recovery,
            Duration::from_secs(2),
            "",
            "after a longer silence people hang up",
        ));
        demands
    }
}

/// The delays that people accept, of sound or pictures in a conversation or from a server, and the losses that the codec conceals.
pub(super) fn of_listeners(interactive: bool, loss: f64) -> Vec<Demand> {
    let mut demands = if interactive { conversation().to_vec() } else { vec![from_a_server()] };
    demands.push(Demand::new(
        SpecParameter::Loss,
        loss,
        "ITU-T G.1010 table I.1",
        "the codec conceals single losses",
    ));
    demands
}

/// The delays of people who answer each other.
fn conversation() -> [Demand; 3] {
    let g1010 = "ITU-T G.1010 table I.1";
    [
        Demand::new(SpecParameter::MinDelay, MILLISECOND * 150, g1010, "a shorter delay is not noticeable"),
        Demand::new(SpecParameter::MaxDelay, MILLISECOND * 400, g1010, "a conversation accepts no more"),
        Demand::new(
            SpecParameter::Jitter,
            MILLISECOND * 50,
            "ITU-T Y.1541 table 1",
            "a play-out buffer of usual length",
        ),
    ]
}

/// The delay of media that a server plays.
fn from_a_server() -> Demand {
    let why = "there is no answer: the play-out may begin so late, and hides jitter";
    Demand::new(SpecParameter::MaxDelay, Duration::from_secs(10), "ITU-T G.1010 table I.1", why)
}
