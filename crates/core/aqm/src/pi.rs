//! PI: a proportional-integral controller that holds a queue at a reference length.
//!
//! Source: C. Hollot, V. Misra, D. Towsley, W. Gong, "On designing improved controllers for AQM routers
//! supporting TCP flows", INFOCOM 2001, section IV; as the TSQ paper uses it (section 4.1).
//!
//! ```text
//! p(k) = a (q(k) - qref) - b (q(k-1) - qref) + p(k-1),   clamped to 0..1
//! ```
//!
//! `q(k)` is the backlog in packets at the k-th sample, and `qref` the reference. a > b: their difference is the integral
//! gain, which acts until the error is gone.
//!
//! With `mean-packet` the queue is measured in bytes and divided by it. A buffer limited in bytes, or one full of small
//! packets, is then held at the bytes of `q-ref` such packets.
//!
//! Worked number: from p = 0 and a queue that stood at 200 packets, a sample of 300 gives
//! p = 1.822e-5 x 100 = 0.001822, and another of 300 adds 0.06e-5 x 100 = 0.000006
//! (`a_hundred_packets_above_the_reference`).
//!
//! A queue that starts empty has q(0) = 0. Its first packets therefore raise p by b (200 - 0) once q reaches `qref`.
//!
//! There is no timer. The backlog between two calls is constant, so [`Pi::advance`] takes the samples it has missed one by
//! one, and stops when another one would change nothing. The first sample is one period after the epoch. The period is rounded to the nanosecond (5,882,353 ns at 170 Hz).
//!
//! Not implemented: choosing a, b and the frequency from link rate, flow number and round-trip time, as
//! section III of the paper does.
//!
//! # Validation
//!
//! - The paper's recursion by hand, with its gains: `a_hundred_packets_above_the_reference`.
//! - Samples taken late are those that are taken on time: `late_calls_have_the_results_of_punctual_ones`.
//! - Against ns-2's PI, with the parameters matched: the cases named pi of docs/validation/ns2.md, and the TSQ
//!   paper's own (audio, video, cheat, mixed) without TSQ.
//! - Not checked: the gains against the design rules of section III; they are taken as printed.

use crate::sample_clock::first_after;
use crate::{Aqm, Arrival, Backlog, DropProbability, Limit, standing};
use cutline_params::{ParameterError, Parameters};
use cutline_units::{Duration, Instant, Probability, Rate};

/// Parameters of PI.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
#[parameters(check = check)]
pub struct PiParams {
    /// The gain on the present error of the queue.
    #[param(
        default = 1.822e-5,
        range = (0.0, 1.0),
        unit = "per packet",
        source = "Hollot et al. 2001 section IV"
    )]
    pub a: f64,
    /// The gain on the error one sample ago; below `a`.
    #[param(
        default = 1.816e-5,
        range = (0.0, 1.0),
        unit = "per packet",
        source = "Hollot et al. 2001 section IV"
    )]
    pub b: f64,
    /// Sampling frequency of the queue.
    #[param(default = 170.0, range = (0.001, 1e6), hertz, source = "Hollot et al. 2001 section IV")]
    pub frequency: f64,
    /// The length at which the queue is held.
    #[param(
        default = 200.0,
        range = (0.0, 1e7),
        unit = "packets",
        source = "Hollot et al. 2001 section V; TSQ section 4.1"
    )]
    pub q_ref: f64,
    /// Packet size by which the queue in bytes is divided; off counts whole packets.
    #[param(
        default = None,
        range = (1, 1_000_000),
        unit = "B",
        source = "off: whole packets are counted, as in the paper"
    )]
    pub mean_packet: Option<u64>,
}

/// A gain on the older error that is not the smaller one makes the integral push the wrong way.
fn check(params: &PiParams) -> Result<(), ParameterError> {
    let PiParams { a, b, .. } = *params;
    if a > b { Ok(()) } else { Err(ParameterError::new("b", b, format!("less than a = {a}"))) }
}

/// State of PI.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Vars {
    /// p(k-1).
    p: Probability,
    /// q(k-1), packets.
    q_old: f64,
    /// Time of sample k.
    next_sample: Instant,
}

/// The controller.
#[derive(Clone, Copy, Debug)]
pub struct Pi {
    params: PiParams,
    period: Duration,
    vars: Vars,
}

impl Aqm for Pi {
    type Params = PiParams;
    const NAME: &'static str = "pi";
    const TITLE: &'static str = "PI";
    const SOURCE: &'static str = "Hollot, Misra, Towsley, Gong, INFOCOM 2001";

    fn build(params: &PiParams, _rate: Rate) -> Result<Self, ParameterError> {
        params.validate()?;
        let period = Duration::from_secs_f64(1.0 / params.frequency);
        Ok(Self { params: *params, period, vars: Vars::new(Instant::ZERO, period) })
    }

    fn standing_delay(params: &PiParams, _limit: Limit, rate: Rate) -> Option<Duration> {
        let packet = params.mean_packet.map_or(standing::PACKET_BYTES, |bytes| bytes as f64);
        Some(standing::bytes(params.q_ref * packet, rate))
    }

    fn moderate_params() -> PiParams {
        PiParams { q_ref: 100.0, a: 2e-4, b: 1.9e-4, ..PiParams::default() }
    }
}

impl Vars {
    const fn new(now: Instant, period: Duration) -> Self {
        Self { p: Probability::ZERO, q_old: 0.0, next_sample: now.saturating_add(period) }
    }
}

impl DropProbability for Pi {
    #[inline]
    fn advance(&mut self, now: Instant, backlog: Backlog) {
        if now >= self.vars.next_sample {
            self.take_samples(now, length(&self.params, backlog));
        }
    }

    #[inline]
    fn arrive(&mut self, _now: Instant, _arrival: Arrival, _backlog: Backlog) -> Probability {
        self.vars.p
    }

    fn probability(&self) -> Option<Probability> {
        Some(self.vars.p)
    }

    fn reset(&mut self, now: Instant) {
        self.vars = Vars::new(now, self.period);
    }
}

impl Pi {
    /// Takes every sample that is due, all of the same `q`.
    #[cold]
    fn take_samples(&mut self, now: Instant, q: f64) {
        while self.vars.next_sample <= now {
            let before = (self.vars.p, self.vars.q_old);
            self.vars.p = next_p(&self.params, q, self.vars.q_old, self.vars.p);
            self.vars.q_old = q;
            self.vars.next_sample += self.period;
            if (self.vars.p, self.vars.q_old) == before {
                self.vars.next_sample = first_after(now, self.vars.next_sample, self.period);
            }
        }
    }
}

/// Hollot et al. 2001 section IV; TSQ section 4.1.
fn next_p(params: &PiParams, q: f64, q_old: f64, p: Probability) -> Probability {
    let PiParams { a, b, q_ref, .. } = *params;
    Probability::clamped(a * (q - q_ref) - b * (q_old - q_ref) + p.get())
}

/// The queue's length in packets.
fn length(params: &PiParams, backlog: Backlog) -> f64 {
    params.mean_packet.map_or(f64::from(backlog.packets), |size| backlog.bytes as f64 / size as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: u64 = 5_882_353;

    fn pi(params: PiParams) -> Pi {
        Pi::build(&params, Rate::from_mbps(15)).expect("the test's parameters are allowed")
    }

    fn packets(packets: u32) -> Backlog {
        Backlog { packets, bytes: u64::from(packets) * 1000 }
    }

    fn at(samples: u64) -> Instant {
        Instant::from_nanos(samples * PERIOD)
    }

    #[test]
    fn a_hundred_packets_above_the_reference() {
        // Hollot et al. 2001 section IV, with the values of TSQ section 4.1.
        let mut pi = pi(PiParams::default());
        pi.vars.q_old = 200.0;
        pi.advance(at(1), packets(300));
        assert!((pi.vars.p.get() - 0.001_822).abs() < 1e-15, "{}", pi.vars.p);
        pi.advance(at(2), packets(300));
        assert!((pi.vars.p.get() - 0.001_828).abs() < 1e-15, "{}", pi.vars.p);
    }

    #[test]
    fn late_calls_have_the_results_of_punctual_ones() {
        let (mut late, mut punctual) = (pi(PiParams::default()), pi(PiParams::default()));
        let backlogs = [0, 250, 800, 800, 10, 0, 0, 400];
        for (step, backlog) in backlogs.into_iter().enumerate() {
            let (from, to) = (step as u64 * 7, (step as u64 + 1) * 7);
            ((from + 1)..=to).for_each(|sample| punctual.advance(at(sample), packets(backlog)));
            late.advance(at(to), packets(backlog));
            assert_eq!(late.vars, punctual.vars, "after {backlog} packets");
        }
        assert!(late.vars.p.get() > 0.0, "the comparison is of something");
    }

    #[test]
    fn centuries_of_idleness_cost_nothing_and_keep_the_period() {
        let mut pi = pi(PiParams::default());
        pi.advance(at(10), packets(800));
        assert!(pi.vars.p.get() > 0.0);
        pi.advance(at(1_000_000_000_000), packets(0));
        assert_eq!(pi.vars, Vars { p: Probability::ZERO, q_old: 0.0, next_sample: at(1_000_000_000_001) });
    }

    #[test]
    fn bytes_count_as_packets_of_the_mean_size() {
        let params = PiParams { mean_packet: Some(500), ..PiParams::default() };
        assert_eq!(length(&params, Backlog { packets: 7, bytes: 10_000 }), 20.0);
        assert_eq!(length(&PiParams::default(), Backlog { packets: 7, bytes: 10_000 }), 7.0);
    }

    #[test]
    fn the_probability_stays_one() {
        let mut pi = pi(PiParams { a: 1.0, b: 0.5, ..PiParams::default() });
        pi.advance(at(3), packets(800));
        assert_eq!(pi.vars.p, Probability::ONE);
        pi.advance(at(4), packets(0));
        assert_eq!(pi.vars.p, Probability::ZERO);
    }

    #[test]
    fn an_integral_gain_that_pushes_the_wrong_way_is_refused() {
        let params = PiParams { b: 2e-5, ..PiParams::default() };
        let error = Pi::build(&params, Rate::from_mbps(15)).unwrap_err().to_string();
        assert_eq!(error, "b = 0.00002: allowed is less than a = 0.00001822");
    }
}
