//! Parameters of a negotiation.

use cutline_params::Parameters;
use cutline_units::Duration;

/// Parameters of a negotiation.
#[derive(Clone, Debug, PartialEq, Parameters)]
pub struct NegotiationParams {
    /// Time to wait for an answer before a message is sent again; it doubles with each repetition.
    #[param(
        default = Duration::from_millis(250),
        range = (Duration::from_millis(10), Duration::from_secs(10)),
        source = "ours: above most round-trip times"
    )]
    pub first_timeout: Duration,
    /// Total time to wait for an answer.
    #[param(
        default = Duration::from_secs(5),
        range = (Duration::from_millis(10), Duration::from_secs(600)),
        source = "ours: four messages at the default first-timeout"
    )]
    pub give_up: Duration,
}
