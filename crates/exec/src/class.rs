//! The hint of a class of application.
//!
//! | class | hint | as the standard code points |
//! | --- | --- | --- |
//! | `game` | 4 | `CS4` |
//! | `audio`, `video` | 6 | `EF`, `AF41` |
//! | `telemetry` | 8 | `CS5` |
//! | `web` | 10 | `AF21` |
//! | `file` | 16 | `default` |
//!
//! The table is that of the standard code points (`cutline_units::HintTable`), so that unchanged programs and marked ones of
//! the same class get the same treatment.

use cutline_units::{Dscp, Hint, HintTable};

/// A class of application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Fast games.
    Game,
    /// Telephone calls.
    Audio,
    /// Video conferences.
    Video,
    /// Measured values and commands.
    Telemetry,
    /// Web pages.
    Web,
    /// Transfer of files.
    File,
}

impl Class {
    /// Every class.
    pub const ALL: [Self; 6] = [Self::Game, Self::Audio, Self::Video, Self::Telemetry, Self::Web, Self::File];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Game => "game",
            Self::Audio => "audio",
            Self::Video => "video",
            Self::Telemetry => "telemetry",
            Self::Web => "web",
            Self::File => "file",
        }
    }

    /// The class of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }

    /// Its hint: that of the standard code point for such an application.
    pub fn hint(self) -> Hint {
        let code_point = match self {
            Self::Game => 32,
            Self::Audio => 46,
            Self::Video => 34,
            Self::Telemetry => 40,
            Self::Web => 18,
            Self::File => 0,
        };
        HintTable::standard().hint(Dscp::new(code_point).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_those_of_the_table_above() {
        let hints = Class::ALL.map(|class| (class.name(), class.hint().level()));
        let expected = [("game", 4), ("audio", 6), ("video", 6), ("telemetry", 8), ("web", 10), ("file", 16)];
        assert_eq!(hints, expected);
        assert_eq!(Class::parse("video"), Some(Class::Video));
        assert_eq!(Class::parse("vidoe"), None);
    }
}
