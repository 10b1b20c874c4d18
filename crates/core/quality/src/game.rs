//! Networked games: a class that TSQ leaves to the future, by how well one plays.
//!
//! Claypool and Claypool ("Latency and player actions in online games", CACM 49(11), 2006) gather the results of studies of
//! many games found: a player's performance falls about exponentially with latency, and how fast depends on the
//! view: precise, quick actions in the first person tolerate about 100 ms, those of a third-person avatar 500 ms,
//! those of an all-seeing commander 1000 ms. That is our curve; r is the round trip to the server, since a
//! player sees the effect of an action only then, and L the view's tolerance:
//!
//! ```text
//! Qd(d) = 0.75^(r / L), r = 2 d
//! ```
//!
//! **Decided**: 0.75 of full performance at the tolerance (the studies give L, not one common level there). Worked,
//! first person: 0.75 at d = 50 ms, 0.62 at the 150 to 180 ms of round trip beyond which Quake 3 players look for
//! another server (Armitage, "An experimental estimation of latency sensitivity in multiplayer Quake 3", ICON
//! 2003), 0.42 at d = 150 ms.
//!
//! Throughput: games send small updates at a fixed rate, made to just fill the slowest access link, a 56k modem;
//! on a busy Counter-Strike server that came to about 40 kbit/s a player (Feng, Chang, Feng and Walpole,
//! "Provisioning on-line games", IMW 2002). Of the excess, updates are lost in proportion:
//!
//! ```text
//! Qt(T) = min(1, T / 40 kbit/s)
//! ```
//!
//! Not modelled: loss and jitter apart from their effect on T, and games' own compensation of lag.

use cutline_params::Choice;
use cutline_units::{Duration, Rate};

/// Perspective of the player, which decides the latency that is tolerated (Claypool and Claypool 2006).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Choice)]
pub enum Perspective {
    /// Shooters and races, through the avatar's eyes: 100 ms. The default.
    #[default]
    FirstPerson,
    /// Sports and role play, an avatar seen from outside: 500 ms.
    ThirdPerson,
    /// Strategy and simulation, the whole field from above: 1000 ms.
    Omnipresent,
}

/// Performance at the tolerated latency.
const AT_TOLERANCE: f64 = 0.75;
/// Updates of one player, kbit/s (Feng 2002).
const UPDATES_KBPS: f64 = 40.0;

impl Perspective {
    /// The round trip that is tolerated, L.
    pub const fn tolerance(self) -> Duration {
        Duration::from_millis(match self {
            Self::FirstPerson => 100,
            Self::ThirdPerson => 500,
            Self::Omnipresent => 1000,
        })
    }
}

/// The player's performance at a one-way delay.
pub(crate) fn delay_quality(delay: Duration, perspective: Perspective) -> f64 {
    let round_trip = 2.0 * delay.as_secs_f64();
    AT_TOLERANCE.powf(round_trip / perspective.tolerance().as_secs_f64())
}

/// The share of updates that fit.
pub(crate) fn throughput_quality(throughput: Rate) -> f64 {
    (throughput.as_kbps_f64() / UPDATES_KBPS).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_person_worked_values() {
        for (ms, q) in [(0.0, 1.0), (50.0, 0.75), (82.5, 0.622), (150.0, 0.422)] {
            let got = delay_quality(Duration::from_secs_f64(ms / 1e3), Perspective::FirstPerson);
            assert!((got - q).abs() < 5e-4, "{ms} ms gives {got}, not {q}");
        }
    }

    #[test]
    fn every_view_has_three_quarters_at_its_tolerance() {
        for view in [Perspective::FirstPerson, Perspective::ThirdPerson, Perspective::Omnipresent] {
            let got = delay_quality(view.tolerance() / 2, view);
            assert!((got - 0.75).abs() < 1e-12, "{view:?} gives {got}");
        }
    }

    #[test]
    fn updates_need_forty_kilobit() {
        let at = |kbps| throughput_quality(Rate::from_kbps(kbps));
        assert_eq!([0, 10, 40, 400].map(at), [0.0, 0.25, 1.0, 1.0]);
    }
}
