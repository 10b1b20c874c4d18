//! The proportional-integral controller of the queuing delay that PIE, PI2 and DualPI2 share.
//!
//! Source: RFC 8033 section 4.2; De Schepper et al. 2016, section 4. Every `t-update`:
//!
//! ```text
//! step = alpha (qdelay - target) + beta (qdelay - qdelay_old)
//! ```
//!
//! PI2 and DualPI2 add it to p' ([`Controller`]); PIE tunes it first.

use crate::{Field, Parameter, Value};
use cutline_units::Duration;

/// What can be set of such a controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DelayControlParams {
    /// The delay to hold.
    pub target: Duration,
    /// The time between updates.
    pub t_update: Duration,
    /// The gain on the delay's distance from the target, Hz.
    pub alpha: f64,
    /// The gain on the delay's change, Hz.
    pub beta: f64,
}

impl DelayControlParams {
    /// What an update adds, before any tuning; delays in s.
    pub(crate) fn step(&self, qdelay: f64, qdelay_old: f64) -> f64 {
        self.alpha * (qdelay - self.target.as_secs_f64()) + self.beta * (qdelay - qdelay_old)
    }
}

/// Parameters that have such a controller's among them.
pub(crate) trait HasDelayControl {
    /// Its defaults.
    const DEFAULT: DelayControlParams;
    /// Where they come from.
    const SOURCE: &'static str;
    fn control(&self) -> &DelayControlParams;
    fn control_mut(&mut self) -> &mut DelayControlParams;
}

pub(crate) const fn target<P: HasDelayControl>() -> Field<P> {
    let range = (Duration::from_micros(100), Duration::from_secs(10));
    let doc = "the queuing delay to hold";
    Field {
        about: Parameter::time("target", range, Some(P::DEFAULT.target), P::SOURCE, doc),
        get: |params| Some(Value::Duration(params.control().target)),
        set: |params, value| params.control_mut().target = value.duration(),
    }
}

pub(crate) const fn t_update<P: HasDelayControl>() -> Field<P> {
    let range = (Duration::from_millis(1), Duration::from_secs(10));
    let doc = "the time between updates of the probability";
    Field {
        about: Parameter::time("t-update", range, Some(P::DEFAULT.t_update), P::SOURCE, doc),
        get: |params| Some(Value::Duration(params.control().t_update)),
        set: |params, value| params.control_mut().t_update = value.duration(),
    }
}

const GAINS: (f64, f64) = (0.0, 100.0);

pub(crate) const fn alpha<P: HasDelayControl>() -> Field<P> {
    let doc = "gain on the delay's distance from the target";
    Field {
        about: Parameter::number("alpha", "per s", GAINS, Some(P::DEFAULT.alpha), P::SOURCE, doc),
        get: |params| Some(Value::Number(params.control().alpha)),
        set: |params, value| params.control_mut().alpha = value.number(),
    }
}

pub(crate) const fn beta<P: HasDelayControl>() -> Field<P> {
    let doc = "gain on the delay's change since the last update";
    Field {
        about: Parameter::number("beta", "per s", GAINS, Some(P::DEFAULT.beta), P::SOURCE, doc),
        get: |params| Some(Value::Number(params.control().beta)),
        set: |params, value| params.control_mut().beta = value.number(),
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

    /// Answers whether anything has changed.
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

/// Parameters that have the factor between scalable and classic packets among them.
pub(crate) trait HasCoupling {
    fn coupling(&self) -> f64;
    fn coupling_mut(&mut self) -> &mut f64;
}

pub(crate) const fn coupling<P: HasCoupling>(source: &'static str) -> Field<P> {
    let doc = "k: scalable packets are marked with k p', classic ones hit with p'^2";
    Field {
        about: Parameter::number("coupling", "", (1.0, 10.0), Some(2.0), source, doc),
        get: |params| Some(Value::Number(params.coupling())),
        set: |params, value| *params.coupling_mut() = value.number(),
    }
}
