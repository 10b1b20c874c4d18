//! SFC: state feedback. The probability follows the queue's distance from a reference and its rate of change.
//!
//! Source: Y. Gao, J. Hou, "A state feedback control approach to stabilizing queues for ECN-enabled TCP
//! connections", INFOCOM 2003; the model of TCP is that of V. Misra, W. Gong, D. Towsley, SIGCOMM 2000, linearised
//! in C. Hollot, V. Misra, D. Towsley, W. Gong, INFOCOM 2001. **The text of Gao and Hou was not available. The form of
//! the law is theirs (the state is the queue and its derivative). The gains are derived here.**
//!
//! N flows with round-trip time R through a link of C packets a second are in equilibrium at p0 = 2 N^2 / (R C)^2. Around
//! that point, a change dp of the probability moves the queue by
//!
//! ```text
//! q(s) = - (C^2 / 2N) e^(-sR) / ((s + 2N / (R^2 C)) (s + 1/R)) dp(s)
//! ```
//!
//! The feedback dp = k1 (q - qref) + k2 dq/dt has a zero at -k1 / k2. With k1 = k2 / R the zero cancels the pole at -1/R,
//! which leaves a loop of (C^2 / 2N) k2 e^(-sR) / (s + 2N / (R^2 C)), which crosses 1 near w = (C^2 / 2N) k2. With
//! w = 1 / (2R) the delay takes half a radian, and 61 degrees of phase are left. So k2 = N / (R C^2), and
//!
//! ```text
//! p = N / (R C)^2 (q - qref + 2 N + R dq/dt)         clamped to 0..1;  k1 = N / (R C)^2, k2 = R k1, p0 = 2 N k1
//! ```
//!
//! It is sampled: every `interval`, dq/dt = (q(k) - q(k-1)) / interval.
//!
//! Worked numbers: 15 Mbit/s of 1000 B are C = 1875; N = 100 and R = 300 ms give k1 = 3.1605e-4 and p0 = 0.06321;
//! 50 packets too many, growing by 10 packets in 20 ms, give p = k1 (50 + 200 + 150) = 0.12642 (`the_law`).
//!
//! State feedback does not remember past errors, as PI's integral does. Where N and R are not as set, the queue settles
//! elsewhere: at qref + 2 N (p / p0 - 1) packets, if p is the probability that the traffic needs.
//!
//! The queue is always measured in bytes and divided by `mean-packet`. There is no timer: missed samples are taken one by
//! one at the next call.
//!
//! # Validation
//!
//! - The law by hand: `the_law`.
//! - The fluid model of Misra et al., integrated beside it, settles within 10 packets of `q-ref` and does not
//!   oscillate: `the_queue_of_the_model_settles_at_the_reference`.
//! - Not compared with the paper by Gao and Hou. According to its abstract, its model of TCP halves the window once a
//!   round trip and includes delayed acknowledgements, which ours does not. Its gains differ from these.

use crate::sample_clock::SampleClock;
use crate::{Aqm, Arrival, Backlog, DropProbability, Limit, standing};
use cutline_params::{ParameterError, Parameters};
use cutline_units::{Bytes, Duration, Instant, Probability, Rate};

const TIMES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(10));

/// Parameters of SFC.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
pub struct SfcParams {
    /// N: number of TCP flows for which the gains are computed.
    #[param(default = 60, range = (1, 1_000_000), source = "Hollot et al. 2001 section IV")]
    pub flows: u64,
    /// R: round-trip time for which the gains are computed, queue included.
    #[param(default = Duration::from_millis(246), range = TIMES, source = "Hollot et al. 2001 section IV")]
    pub rtt: Duration,
    /// The length at which the queue is held.
    #[param(default = 200.0, range = (0.0, 1e7), unit = "packets", source = "as PI's, for comparison")]
    pub q_ref: f64,
    /// Packet size that converts bytes to packets.
    #[param(default = 1000, range = (1, 1_000_000), unit = "B", source = "TSQ section 4.1")]
    pub mean_packet: u64,
    /// The time between samples.
    #[param(default = Duration::from_millis(20), range = TIMES, source = "ours: about a twelfth of the rtt")]
    pub interval: Duration,
}

/// The law for one link rate.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Gains {
    /// On the queue's distance from its reference, per packet.
    k1: f64,
    /// On its change between two samples, per packet.
    per_sample: f64,
    /// The queue at which p would be 0 if it stood still, packets.
    zero: f64,
}

/// SFC.
#[derive(Clone, Copy, Debug)]
pub struct Sfc {
    params: SfcParams,
    gains: Gains,
    clock: SampleClock,
    /// At the last sample.
    p: Probability,
    /// At the last sample, packets.
    q_old: f64,
}

impl Aqm for Sfc {
    type Params = SfcParams;
    const NAME: &'static str = "sfc";
    const TITLE: &'static str = "SFC";
    const SOURCE: &'static str = "after Gao, Hou, INFOCOM 2003; gains derived here";

    fn build(params: &SfcParams, rate: Rate) -> Result<Self, ParameterError> {
        params.validate()?;
        let clock = SampleClock::new(Instant::ZERO, params.interval);
        Ok(Self { params: *params, gains: Gains::new(params, rate), clock, p: Probability::ZERO, q_old: 0.0 })
    }

    fn standing_delay(params: &SfcParams, _limit: Limit, rate: Rate) -> Option<Duration> {
        Some(standing::bytes(params.q_ref * params.mean_packet as f64, rate))
    }

    fn moderate_params() -> SfcParams {
        SfcParams { q_ref: 150.0, flows: 100, ..SfcParams::default() }
    }
}

impl Gains {
    fn new(params: &SfcParams, rate: Rate) -> Self {
        let n = params.flows as f64;
        let r = params.rtt.as_secs_f64();
        let c = rate.as_bps() as f64 / Bytes::new(params.mean_packet).bits() as f64;
        let k1 = n / (r * c).powi(2);
        Self { k1, per_sample: k1 * r / params.interval.as_secs_f64(), zero: params.q_ref - 2.0 * n }
    }

    fn probability(self, q: f64, q_old: f64) -> Probability {
        Probability::clamped(self.k1 * (q - self.zero) + self.per_sample * (q - q_old))
    }
}

impl DropProbability for Sfc {
    #[inline]
    fn advance(&mut self, now: Instant, backlog: Backlog) {
        let Self { params, gains, clock, p, q_old } = self;
        clock.catch_up(now, || {
            let (before, q) = ((*p, *q_old), backlog.bytes as f64 / params.mean_packet as f64);
            (*p, *q_old) = (gains.probability(q, *q_old), q);
            (*p, *q_old) != before
        });
    }

    #[inline]
    fn arrive(&mut self, _now: Instant, _arrival: Arrival, _backlog: Backlog) -> Probability {
        self.p
    }

    fn probability(&self) -> Option<Probability> {
        Some(self.p)
    }

    fn set_rate(&mut self, _now: Instant, rate: Rate) {
        self.gains = Gains::new(&self.params, rate);
    }

    fn reset(&mut self, now: Instant) {
        self.clock.restart(now);
        (self.p, self.q_old) = (Probability::ZERO, 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate::from_mbps(15);

    fn params() -> SfcParams {
        SfcParams { flows: 100, rtt: Duration::from_millis(300), ..SfcParams::default() }
    }

    fn packets(packets: u32) -> Backlog {
        Backlog { packets, bytes: u64::from(packets) * 1000 }
    }

    #[test]
    fn the_law() {
        let mut sfc = Sfc::build(&params(), RATE).unwrap();
        assert!((sfc.gains.k1 - 3.160_5e-4).abs() < 1e-8);
        assert!((sfc.gains.probability(200.0, 200.0).get() - 0.063_21).abs() < 1e-5, "p0");
        sfc.q_old = 240.0;
        sfc.advance(Instant::ZERO + Duration::from_millis(20), packets(250));
        assert!((sfc.p.get() - 0.126_42).abs() < 1e-5, "{}", sfc.p);
        sfc.advance(Instant::ZERO + Duration::from_millis(40), packets(250));
        assert!((sfc.p.get() - 250.0 * 3.160_5e-4).abs() < 1e-5, "it no longer grows: {}", sfc.p);
    }

    /// The fluid model that the gains are for (Misra et al. 2000), in steps of a millisecond, from an empty queue.
    #[test]
    fn the_queue_of_the_model_settles_at_the_reference() {
        let (n, c, base_rtt) = (100.0, 1875.0, 0.3 - 200.0 / 1875.0);
        let mut sfc = Sfc::build(&params(), RATE).unwrap();
        let (mut w, mut q) = (1.0_f64, 0.0_f64);
        let mut past = vec![(w, 0.0, base_rtt); 301];
        let mut late = Vec::new();
        for ms in 1..=60_000_u64 {
            sfc.advance(Instant::ZERO + Duration::from_millis(ms), packets(q.round() as u32));
            let r = base_rtt + q / c;
            let (w_then, p_then, r_then) = past[(ms as usize + 1) % 301];
            w += 0.001 * (1.0 / r - w * w_then / (2.0 * r_then) * p_then);
            q = (q + 0.001 * (n * w / r - c)).max(0.0);
            past[ms as usize % 301] = (w, sfc.p.get(), r);
            if ms > 40_000 {
                late.push(q);
            }
        }
        let mean = late.iter().sum::<f64>() / late.len() as f64;
        assert!((mean - 200.0).abs() < 10.0, "{mean}");
        let spread = late.iter().map(|q| (q - mean).abs()).fold(0.0, f64::max);
        assert!(spread < 20.0, "it does not swing: {spread}");
    }
}
