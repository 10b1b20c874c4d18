//! The classes of applications, by name, each with its two curves.

use crate::{Combination, Perspective, Quality, UnknownName, audio, file, game, video, web};
use cutline_units::{Duration, Rate};
use std::fmt;

/// A class of applications, with the value of delay and throughput for it.
///
/// Adding a class is one file with its curves, a variant here, and a row in each match below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Audio conference (TSQ section 2.1).
    Audio,
    /// H.323 video conference (TSQ section 2.2).
    Video,
    /// Transfer of a file (TSQ section 2.3).
    FileTransfer {
        /// The file's size S, kbit.
        size_kbit: u64,
    },
    /// Fetching a web page (ITU-T G.1030 and Nielsen 1993).
    Web {
        /// The page's size S with all that belongs to it, kbit.
        page_kbit: u64,
    },
    /// A networked game (Claypool and Claypool 2006).
    Game {
        /// Perspective of the player.
        perspective: Perspective,
    },
}

const NAMES: [&str; 7] = ["audio", "video", "file", "web", "game", "game-third-person", "game-omnipresent"];

impl Class {
    /// Every class there is, with its usual parameters: a file of 10 Mbit (the paper's example) and a page of
    /// 800 kbit.
    pub const ALL: [Self; 7] = [
        Self::Audio,
        Self::Video,
        Self::FileTransfer { size_kbit: 10_000 },
        Self::Web { page_kbit: 800 },
        Self::Game { perspective: Perspective::FirstPerson },
        Self::Game { perspective: Perspective::ThirdPerson },
        Self::Game { perspective: Perspective::Omnipresent },
    ];

    /// The class of that name, with its usual parameters.
    ///
    /// # Errors
    /// When there is none of that name; the error lists the names.
    pub fn parse(name: &str) -> Result<Self, UnknownName> {
        let found = Self::ALL.into_iter().find(|class| class.name() == name);
        found.ok_or_else(|| UnknownName {
            what: "application class",
            given: name.to_owned(),
            allowed: &NAMES,
        })
    }

    /// Returns the name in scenarios and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Audio => "audio",
            Self::Video => "video",
            Self::FileTransfer { .. } => "file",
            Self::Web { .. } => "web",
            Self::Game { perspective: Perspective::FirstPerson } => "game",
            Self::Game { perspective: Perspective::ThirdPerson } => "game-third-person",
            Self::Game { perspective: Perspective::Omnipresent } => "game-omnipresent",
        }
    }

    /// The size of the transfer, kbit, where the class has one.
    pub const fn size_kbit(self) -> Option<u64> {
        match self {
            Self::FileTransfer { size_kbit: size } | Self::Web { page_kbit: size } => Some(size),
            Self::Audio | Self::Video | Self::Game { .. } => None,
        }
    }

    /// The same class for a transfer of `kbit`; `None` where the class transfers nothing of a size.
    pub const fn with_size_kbit(self, kbit: u64) -> Option<Self> {
        match self {
            Self::FileTransfer { .. } => Some(Self::FileTransfer { size_kbit: kbit }),
            Self::Web { .. } => Some(Self::Web { page_kbit: kbit }),
            Self::Audio | Self::Video | Self::Game { .. } => None,
        }
    }

    /// Qd: the quality of a one-way delay.
    pub fn delay_quality(self, delay: Duration) -> Quality {
        Quality::clamped(match self {
            Self::Audio => audio::delay_quality(delay),
            Self::Video => video::delay_quality(delay),
            Self::FileTransfer { .. } => file::delay_quality(delay),
            Self::Web { .. } => web::delay_quality(delay),
            Self::Game { perspective } => game::delay_quality(delay, perspective),
        })
    }

    /// Qt: the quality of a throughput.
    pub fn throughput_quality(self, throughput: Rate) -> Quality {
        Quality::clamped(match self {
            Self::Audio => audio::throughput_quality(throughput),
            Self::Video => video::throughput_quality(throughput),
            Self::FileTransfer { size_kbit } => file::throughput_quality(throughput, size_kbit),
            Self::Web { page_kbit } => web::throughput_quality(throughput, page_kbit),
            Self::Game { .. } => game::throughput_quality(throughput),
        })
    }

    /// Q: both in one (TSQ eq. 1 with [`Combination::Min`]).
    pub fn quality(self, delay: Duration, throughput: Rate, combination: Combination) -> Quality {
        combination.combine(self.delay_quality(delay), self.throughput_quality(throughput))
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_found_by_name() {
        assert_eq!(Class::ALL.map(Class::name), NAMES);
        for class in Class::ALL {
            assert_eq!(Class::parse(class.name()), Ok(class));
        }
        let error = Class::parse("vidoe").unwrap_err().to_string();
        assert!(
            error.starts_with("there is no application class \"vidoe\"; there are audio, video, "),
            "{error}"
        );
    }

    #[test]
    fn only_transfers_have_a_size() {
        for class in Class::ALL {
            let resized = class.with_size_kbit(42);
            assert_eq!(resized.is_some(), class.size_kbit().is_some(), "{class}");
            assert_eq!(resized.and_then(Class::size_kbit), resized.map(|_| 42), "{class}");
        }
    }

    #[test]
    fn the_paper_combines_by_the_minimum() {
        // TSQ eq. 1.
        let (d, t) = (Duration::from_millis(300), Rate::from_kbps(64));
        let q = |combination| Class::Audio.quality(d, t, combination).get();
        assert!((q(Combination::Min) - 0.692).abs() < 1e-9);
        assert!((q(Combination::Mean) - 0.761).abs() < 1e-3);
        assert!((q(Combination::Product) - 0.574).abs() < 1e-3);
    }
}
