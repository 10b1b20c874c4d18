//! Games: updates of the world's state, and the view that decides how late they may be.

use super::ApplicationTranslator;
use crate::demand::Demand;
use cutline_params::{Choice as _, ParameterError, Parameters};
use cutline_quality::Perspective;
use cutline_quality::spec::SpecParameter;
use cutline_units::{Bytes, Duration};

/// A game in its own words.
#[derive(Clone, Debug, PartialEq, Parameters)]
#[parameters(check = GameParams::check)]
pub struct GameParams {
    /// Updates per second.
    #[param(default = 30.0, range = (0.1, 1000.0), unit = "updates/s", source = "ours: shooters")]
    pub update_rate: f64,
    /// The lowest acceptable rate; at most update-rate.
    #[param(default = 20.0, range = (0.1, 1000.0), unit = "updates/s", source = "Feng et al. 2002: every 50 ms")]
    pub least_rate: f64,
    /// Rate of updates in bursts of activity; at least update-rate.
    #[param(default = 60.0, range = (0.1, 1000.0), unit = "updates/s", source = "ours: the rate of the picture")]
    pub peak_rate: f64,
    /// The largest update.
    #[param(default = Bytes::new(200), range = (1, 65_000), unit = "B", source = "ours: shooters")]
    pub state_size: Bytes,
    /// Perspective of the player.
    #[param(default = Perspective::FirstPerson, source = "the strictest")]
    pub view: Perspective,
    /// The largest share of updates lost.
    #[param(default = 1.0, range = (0.0, 100.0), unit = "%", source = "ours: the next update repeats what matters")]
    pub loss: f64,
}

impl GameParams {
    fn check(&self) -> Result<(), ParameterError> {
        let Self { update_rate, least_rate, peak_rate, .. } = *self;
        if least_rate > update_rate {
            let allowed = format!("at most update-rate, which is {update_rate}");
            return Err(ParameterError::new("least-rate", least_rate, allowed));
        }
        if peak_rate < update_rate {
            let allowed = format!("at least update-rate, which is {update_rate}");
            return Err(ParameterError::new("peak-rate", peak_rate, allowed));
        }
        Ok(())
    }
}

impl ApplicationTranslator for GameParams {
    const NAME: &'static str = "game";
    const TITLE: &'static str = "a networked game";

    fn demands(&self) -> Vec<Demand> {
        let Self { update_rate, least_rate, peak_rate, state_size, view, loss } = *self;
        let tolerance = view.tolerance();
        let claypool = "Claypool and Claypool 2006";
        let best =
            format!("a round trip of {tolerance} does not hinder a player with this view ({})", view.name());
        let worst = "twice that one way: the player loses";
        let g1010 = if view == Perspective::FirstPerson { "ITU-T G.1010 table I.2" } else { claypool };
        vec![
            Demand::new(SpecParameter::MinRate, least_rate, "", "stated by the application"),
            Demand::new(SpecParameter::MaxRate, update_rate, "", "stated by the application"),
            Demand::new(SpecParameter::PeakRate, peak_rate, "", "stated by the application"),
            Demand::new(SpecParameter::Size, state_size, "", "an update is a message"),
            Demand::new(SpecParameter::MinDelay, tolerance / 2, claypool, best),
            Demand::new(SpecParameter::MaxDelay, tolerance * 2, g1010, worst),
            Demand::new(
                SpecParameter::Jitter,
                Duration::from_millis(50),
                "ITU-T Y.1541 table 1",
                "two updates at the least rate",
            ),
            Demand::new(SpecParameter::Loss, loss, "", "the next update repeats what matters"),
            Demand::new(
                SpecParameter::Recovery,
                Duration::from_secs(2),
                "",
                "a player who stops for longer is lost",
            ),
        ]
    }
}
