//! PI2: a plain proportional-integral controller of the delay, whose output is squared for classic traffic.
//!
//! Source: K. De Schepper, O. Bondarenko, I. Tsang, B. Briscoe, "PI2: a linearized AQM for both classic and
//! scalable TCP", CoNEXT 2016, sections 4 and 5.
//!
//! ```text
//! p' += alpha (qdelay - target) + beta (qdelay - qdelay_old)      every t-update, clamped to 0..1
//! classic packets:   dropped or marked with probability p'^2
//! scalable packets:  marked with probability k p'                 (p_c = (p_s / k)^2)
//! ```
//!
//! The rate of a classic source (Reno, CUBIC) goes with 1 / sqrt(p), that of a scalable one (DCTCP, Prague) with 1 / p.
//! With the square, the loop's gain does not depend on p, and PIE's table of divisors is not needed. The factor k gives
//! both the same rate.
//!
//! Worked numbers: 30 ms after 20 ms give p' = 0.3125 x 0.01 + 3.125 x 0.01 = 0.034375; classic packets are hit
//! with 0.0011816, scalable ones with 0.06875 (`the_square_and_the_coupling`).
//!
//! The text of table 1 was not available. The values are those of the implementation that the authors published with the
//! paper: 80/256 and 800/256 Hz, 32 ms, 20 ms, k = 2.
//!
//! The probability that is recorded, and that TSQ scales for classic packets, is p'^2. There is no timer: missed updates are
//! taken one by one at the next call.
//!
//! Not implemented: a second queue for scalable traffic (DualPI2).
//!
//! # Validation
//!
//! - Step, square and coupling by hand: `the_square_and_the_coupling`.
//! - Both ends: `a_standing_queue_raises_the_probability_to_one_and_an_empty_one_lowers_it_to_zero`.
//! - Not checked: the paper's figures. Its text was not available, see above.

use crate::delay_control::{COUPLING, Controller, DelayControlParams};
use crate::queue_delay::{DelayEstimate, QueueDelay};
use crate::sample_clock::SampleClock;
use crate::{Aqm, Arrival, Backlog, DropProbability, Limit};
use cutline_params::{ParameterError, Parameters};
use cutline_units::{Duration, Instant, Probability, Rate};

/// Parameters of PI2.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
pub struct Pi2Params {
    /// The controller of p'.
    #[group(
        default = DelayControlParams {
            target: Duration::from_millis(20),
            t_update: Duration::from_millis(32),
            alpha: 0.3125,
            beta: 3.125,
        },
        source = "De Schepper et al. 2016 table 1"
    )]
    pub control: DelayControlParams,
    /// k: scalable packets are marked with probability k p', classic ones hit with p'^2.
    #[param(default = 2.0, range = COUPLING, source = "De Schepper et al. 2016 section 4")]
    pub coupling: f64,
    /// Estimate of the delay: backlog over link rate, sojourn time, or measured departure rate.
    #[param(
        default = DelayEstimate::LinkRate,
        source = "ours: RFC 8033 section 4.3 takes timestamps, which differ by hint under TSQ"
    )]
    pub estimate: DelayEstimate,
}

/// PI2.
#[derive(Clone, Copy, Debug)]
pub struct Pi2 {
    coupling: f64,
    delay: QueueDelay,
    clock: SampleClock,
    controller: Controller,
}

impl Aqm for Pi2 {
    type Params = Pi2Params;
    const NAME: &'static str = "pi2";
    const TITLE: &'static str = "PI2";
    const SOURCE: &'static str = "De Schepper, Bondarenko, Tsang, Briscoe, CoNEXT 2016";

    fn build(params: &Pi2Params, rate: Rate) -> Result<Self, ParameterError> {
        params.validate()?;
        Ok(Self {
            coupling: params.coupling,
            delay: QueueDelay::new(params.estimate, rate),
            clock: SampleClock::new(Instant::ZERO, params.control.t_update),
            controller: Controller::new(params.control),
        })
    }

    fn standing_delay(params: &Pi2Params, _limit: Limit, _rate: Rate) -> Option<Duration> {
        Some(params.control.target)
    }

    fn moderate_params() -> Pi2Params {
        let params = Pi2Params::default();
        Pi2Params { control: params.control.moderate(), ..params }
    }
}

impl DropProbability for Pi2 {
    #[inline]
    fn advance(&mut self, now: Instant, backlog: Backlog) {
        let Self { delay, clock, controller, .. } = self;
        clock.catch_up(now, || controller.update(delay.estimate(backlog)));
    }

    #[inline]
    fn arrive(&mut self, _now: Instant, arrival: Arrival, _backlog: Backlog) -> Probability {
        let Self { controller, coupling, .. } = self;
        let p = if arrival.scalable { *coupling * controller.p_prime } else { controller.squared() };
        Probability::clamped(p)
    }

    fn probability(&self) -> Option<Probability> {
        Some(Probability::clamped(self.controller.squared()))
    }

    #[inline]
    fn departed(&mut self, now: Instant, size: u32, arrived: Instant, backlog: Backlog) {
        self.delay.departed(now, size, arrived, backlog);
    }

    fn reorders(&mut self) {
        self.delay.reorders();
    }

    fn set_rate(&mut self, _now: Instant, rate: Rate) {
        self.delay.set_rate(rate);
    }

    fn reset(&mut self, now: Instant) {
        self.controller.reset();
        self.delay.reset();
        self.clock.restart(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::HintBits;

    /// At 8 Mbit/s a packet of 1000 B is 1 ms.
    fn packets(packets: u32) -> Backlog {
        Backlog { packets, bytes: u64::from(packets) * 1000 }
    }

    fn at(updates: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(32) * updates
    }

    #[test]
    fn the_square_and_the_coupling() {
        let mut pi2 = Pi2::build(&Pi2Params::default(), Rate::from_mbps(8)).unwrap();
        pi2.controller.qdelay_old = 0.020;
        pi2.advance(at(1), packets(30));
        assert!((pi2.controller.p_prime - 0.034_375).abs() < 1e-12);
        let classic = Arrival::new(1000, HintBits::PAPER.largest());
        let scalable = Arrival { ecn_capable: true, scalable: true, ..classic };
        assert!((pi2.arrive(at(1), classic, packets(30)).get() - 0.001_181_640_625).abs() < 1e-12);
        assert!((pi2.arrive(at(1), scalable, packets(30)).get() - 0.068_75).abs() < 1e-12);
        // p_c = (p_s / k)^2
        let p_c = pi2.probability().unwrap().get();
        assert!((p_c - (0.068_75_f64 / 2.0).powi(2)).abs() < 1e-12);
    }

    #[test]
    fn a_standing_queue_raises_the_probability_to_one_and_an_empty_one_lowers_it_to_zero() {
        let mut pi2 = Pi2::build(&Pi2Params::default(), Rate::from_mbps(8)).unwrap();
        pi2.advance(at(2000), packets(500));
        assert_eq!(pi2.probability(), Some(Probability::ONE));
        pi2.advance(at(100_000_000_000), packets(0));
        assert_eq!(pi2.probability(), Some(Probability::ZERO));
    }
}
