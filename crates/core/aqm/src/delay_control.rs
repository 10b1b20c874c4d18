//! The proportional-integral controller of the queuing delay that PIE, PI2 and DualPI2 share.
//!
//! Source: RFC 8033 section 4.2; De Schepper et al. 2016, section 4. Every `t-update`:
//!
//! ```text
//! step = alpha (qdelay - target) + beta (qdelay - qdelay_old)
//! ```
//!
//! PI2 and DualPI2 add it to p' ([`Controller`]); PIE tunes it first.

use cutline_params::Parameters;
use cutline_units::Duration;

const SOURCE: &str = "RFC 8033 section 4.2";
const GAINS: (f64, f64) = (0.0, 100.0);

/// Parameters of a delay controller; the defaults are PIE's.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
pub struct DelayControlParams {
    /// The queuing delay to hold.
    #[param(
        default = Duration::from_millis(15),
        range = (Duration::from_micros(100), Duration::from_secs(10)),
        source = SOURCE
    )]
    pub target: Duration,
    /// The time between updates of the probability.
    #[param(
        default = Duration::from_millis(15),
        range = (Duration::from_millis(1), Duration::from_secs(10)),
        source = SOURCE
    )]
    pub t_update: Duration,
    /// The gain on the delay's distance from the target.
    #[param(default = 0.125, range = GAINS, unit = "per s", source = SOURCE)]
    pub alpha: f64,
    /// The gain on the delay's change since the last update.
    #[param(default = 1.25, range = GAINS, unit = "per s", source = SOURCE)]
    pub beta: f64,
}

/// The range of the factor k between scalable and classic packets.
pub(crate) const COUPLING: (f64, f64) = (1.0, 10.0);

impl DelayControlParams {
    /// Returns these parameters with a target of some 100 packets, for [`Aqm::moderate_params`](crate::Aqm::moderate_params).
    pub(crate) fn moderate(self) -> Self {
        Self { target: Duration::from_millis(60), ..self }
    }

    /// Returns the increment of an update, before any tuning; delays in s.
    pub(crate) fn step(&self, qdelay: f64, qdelay_old: f64) -> f64 {
        self.alpha * (qdelay - self.target.as_secs_f64()) + self.beta * (qdelay - qdelay_old)
    }
}

/// The controller of p' (PI2, `DualPI2`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Controller {
    params: DelayControlParams,
    pub(crate) p_prime: f64,
    /// The delay at the last update, s.
    pub(crate) qdelay_old: f64,
}

impl Controller {
    pub(crate) const fn new(params: DelayControlParams) -> Self {
        Self { params, p_prime: 0.0, qdelay_old: 0.0 }
    }

    /// Updates p' and answers whether anything has changed.
    pub(crate) fn update(&mut self, qdelay: f64) -> bool {
        let before = (self.p_prime, self.qdelay_old);
        self.p_prime = (self.p_prime + self.params.step(qdelay, self.qdelay_old)).clamp(0.0, 1.0);
        self.qdelay_old = qdelay;
        (self.p_prime, self.qdelay_old) != before
    }

    /// The probability of classic packets, p'^2.
    pub(crate) fn squared(&self) -> f64 {
        self.p_prime * self.p_prime
    }

    pub(crate) const fn reset(&mut self) {
        (self.p_prime, self.qdelay_old) = (0.0, 0.0);
    }
}
