//! Specifications by class of application.

use super::{Coerced, Specification};
use cutline_params::{Choice, ParameterError};
use cutline_units::{Bytes, Duration};

/// A class of application with a specification of its own.
///
/// Delays, jitter and losses are those of ITU-T G.1010 and Y.1541: `min-delay` is the value that users prefer, `max-delay` the one that they
/// accept. Rates and sizes are typical of the applications named; an application that knows better replaces them. All
/// parameters are coerced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Preset {
    /// A telephone call: G.711, 50 packets of 160 B a second.
    Audio,
    /// A video conference of 384 kbit/s to 1.5 Mbit/s, in packets of 1200 B.
    Video,
    /// Transfer of files: complete and in order, at any rate.
    File,
    /// Web pages: complete and in order, each part within a second.
    Web,
    /// A fast game with a state of the world of up to 200 B, 20 to 60 times a second.
    Game,
    /// Measured values and commands of up to 1 KB, one to ten a second.
    Telemetry,
}

#[expect(clippy::unnecessary_wraps, reason = "a parameter that is not open")]
const fn ms(time: u64) -> Option<Duration> {
    Some(Duration::from_millis(time))
}

impl Preset {
    /// Every class.
    pub const ALL: [Self; 6] = [Self::Audio, Self::Video, Self::File, Self::Web, Self::Game, Self::Telemetry];

    /// The class of that name.
    ///
    /// # Errors
    /// When there is none; the error has the names and the nearest.
    pub fn parse(name: &str) -> Result<Self, ParameterError> {
        let found = Self::ALL.into_iter().find(|preset| preset.name() == name);
        found.ok_or_else(|| ParameterError::unknown_choice("class", name, Self::NAMES))
    }

    /// The specification of the class.
    pub const fn specification(self) -> Specification {
        let open = Specification { coerced: Coerced::ALL, ..Specification::OPEN };
        let complete = Specification { loss: Some(0.0), reordering: Some(false), ..open };
        match self {
            Self::Audio => Specification {
                min_rate: Some(50.0),
                max_rate: Some(50.0),
                peak_rate: Some(50.0),
                size: Some(Bytes::new(160)),
                min_delay: ms(150),
                max_delay: ms(400),
                jitter: ms(50),
                loss: Some(3.0),
                recovery: ms(2_000),
                ..open
            },
            Self::Video => Specification {
                min_rate: Some(40.0),
                max_rate: Some(156.25),
                peak_rate: Some(200.0),
                size: Some(Bytes::new(1200)),
                min_delay: ms(150),
                max_delay: ms(400),
                jitter: ms(50),
                loss: Some(1.0),
                recovery: ms(5_000),
                ..open
            },
            Self::File => Specification { recovery: ms(60_000), ..complete },
            Self::Web => Specification { max_delay: ms(1_000), recovery: ms(10_000), ..complete },
            Self::Game => Specification {
                min_rate: Some(20.0),
                max_rate: Some(30.0),
                peak_rate: Some(60.0),
                size: Some(Bytes::new(200)),
                min_delay: ms(50),
                max_delay: ms(200),
                jitter: ms(50),
                loss: Some(1.0),
                recovery: ms(2_000),
                ..open
            },
            Self::Telemetry => Specification {
                min_rate: Some(1.0),
                max_rate: Some(10.0),
                peak_rate: Some(10.0),
                size: Some(Bytes::new(1000)),
                max_delay: ms(250),
                recovery: ms(10_000),
                ..complete
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::agree;
    use cutline_params::Parameters as _;
    use cutline_units::Rate;

    #[test]
    fn every_preset_is_allowed_and_agrees_with_every_other() {
        for preset in Preset::ALL {
            assert_eq!(Preset::parse(preset.name()), Ok(preset));
            let spec = preset.specification();
            assert_eq!(spec.validate(), Ok(()), "{preset:?}");
            for other in Preset::ALL {
                assert!(agree(&spec, &other.specification()).is_ok(), "{preset:?} with {other:?}");
            }
        }
        assert_eq!(Preset::parse("vidoe").unwrap_err().nearest, Some("video"));
    }

    #[test]
    fn a_call_and_a_conference_have_their_rates() {
        assert_eq!(Preset::Audio.specification().max_throughput(), Some(Rate::from_kbps(64)));
        let video = Preset::Video.specification();
        let rates = [video.min_throughput(), video.max_throughput()];
        assert_eq!(rates, [384, 1500].map(|kbps| Some(Rate::from_kbps(kbps))));
    }
}
