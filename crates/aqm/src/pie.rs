//! PIE, proportional integral controller enhanced: holds the queuing delay at a target.
//!
//! Source: RFC 8033 sections 4 and 5 and appendix A. Every `t-update`, with the delay of the queue now (`qdelay`)
//! and a period ago:
//!
//! ```text
//! p = alpha (qdelay - target) + beta (qdelay - qdelay_old)          section 4.2, s
//! p is divided by 2048, 512, 128, 32, 8, 2 while drop_prob is below 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1
//! p is at most 0.02 while drop_prob >= 0.1                          section 5.5
//! drop_prob += p;  drop_prob *= 0.98 if qdelay and qdelay_old are below target / 2;  clamped to 0..1
//! ```
//!
//! A packet is never dropped while a burst allowance lasts (section 4.4), while qdelay_old < target / 2 and
//! drop_prob < 0.2, or while at most two packets of `mean-packet` wait (section 4.1).
//!
//! Worked numbers: at drop_prob 0.05, a delay of 30 ms that was 20 ms gives p = (0.125 x 0.015 + 1.25 x 0.01) / 2
//! = 0.0071875 (`a_step_of_the_rfc`).
//!
//! With ECN, a packet that can be marked is marked while drop_prob is below `ecn-threshold`, and dropped beyond (section
//! 5.1). With `derandomize`, the drop_prob of passed packets adds up. While the sum is below 0.85 no packet is dropped;
//! once it has reached 8.5 the next one is, whatever is drawn (section 5.4).
//!
//! Implementations of the RFC differ on when drop_prob decays: when both delays are below target / 2, as in appendix A and
//! here, or when both are 0, as in Linux and ns-3 (after section 4.2).
//!
//! Departures: the burst allowance is renewed at updates rather than at arrivals. The default estimate is the link's rate,
//! which is known here. There is no timer: missed updates are taken one by one at the next call.
//!
//! Not implemented: switching PIE itself on and off by the queue's fill (section 5.3, optional), and scaling
//! the drop probability by packet size (which the RFC leaves open).
//!
//! # Validation
//!
//! - The RFC's own values: `a_step_of_the_rfc`, `steps_are_smaller_while_the_probability_is_small` (section 4.2),
//!   `the_probability_decays_once_the_queue_is_short`, `a_short_queue_has_no_drops` (section 4.1),
//!   `a_burst_passes_for_150_ms` (section 4.4), `packets_are_marked_below_ten_per_cent_alone` (section 5.1),
//!   `derandomized_drops_are_neither_close_nor_far` (section 5.4),
//!   `steps_are_at_most_two_per_cent_once_ten_are_dropped` (section 5.5).
//! - The three estimates agree on a standing queue: `all_three_agree_on_a_standing_queue`.
//! - Not checked against another engine: Debian's ns-2 has no PIE.

use crate::delay_control::DelayControlParams;
use crate::queue_delay::{ESTIMATE_SOURCE, Estimate, QueueDelay};
use crate::sample_clock::SampleClock;
use crate::{Aqm, Arrival, Backlog, DropProbability, DropReason, Verdict};
use cutline_params::{ParameterError, Parameters};
use cutline_units::{Duration, Instant, Probability, Rate};

const SECTION_4_2: &str = "RFC 8033 section 4.2";

/// What can be set.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
pub struct PieParams {
    /// The controller whose steps are tuned.
    #[group]
    pub control: DelayControlParams,
    /// How long a burst into a quiet queue passes untouched.
    #[param(
        default = Duration::from_millis(150),
        range = (Duration::ZERO, Duration::from_secs(10)),
        source = "RFC 8033 section 4.4"
    )]
    pub max_burst: Duration,
    /// Take smaller steps while the probability is small.
    #[param(default = true, source = SECTION_4_2)]
    pub auto_tune: bool,
    /// From this probability on, packets are dropped even if they can be marked.
    #[param(default = 0.1, range = (0.0, 1.0), source = "RFC 8033 section 5.1")]
    pub ecn_threshold: f64,
    /// Keep drops from coming too close together or too far apart.
    #[param(default = false, source = "RFC 8033 section 5.4 leaves it open")]
    pub derandomize: bool,
    /// How the delay is known: backlog over link rate, sojourn time, or measured departure rate.
    #[param(default = Estimate::LinkRate, source = ESTIMATE_SOURCE)]
    pub estimate: Estimate,
    /// A typical packet: nothing is dropped while at most two wait.
    #[param(default = 1000, range = (1, 1_000_000), unit = "B", source = "RFC 8033 appendix A has 1 KB")]
    pub mean_packet: u64,
}

/// What is remembered.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Vars {
    drop_prob: f64,
    /// The delay at the last update, s.
    qdelay_old: f64,
    burst_allowance: Duration,
    /// The sum of `drop_prob` over the packets since the last drop.
    accu_prob: f64,
}

/// PIE.
#[derive(Clone, Copy, Debug)]
pub struct Pie {
    params: PieParams,
    /// `target`, s.
    target: f64,
    delay: QueueDelay,
    clock: SampleClock,
    vars: Vars,
}

impl Aqm for Pie {
    type Params = PieParams;
    const NAME: &'static str = "pie";
    const TITLE: &'static str = "PIE";
    const SOURCE: &'static str = "RFC 8033";

    fn build(params: &PieParams, rate: Rate) -> Result<Self, ParameterError> {
        params.validate()?;
        Ok(Self {
            params: *params,
            target: params.control.target.as_secs_f64(),
            delay: QueueDelay::new(params.estimate, rate),
            clock: SampleClock::new(Instant::ZERO, params.control.t_update),
            vars: Vars::new(params),
        })
    }
}

impl Vars {
    const fn new(params: &PieParams) -> Self {
        Self { drop_prob: 0.0, qdelay_old: 0.0, burst_allowance: params.max_burst, accu_prob: 0.0 }
    }
}

impl DropProbability for Pie {
    #[inline]
    fn advance(&mut self, now: Instant, backlog: Backlog) {
        let Self { params, target, delay, clock, vars } = self;
        clock.catch_up(now, || {
            let before = *vars;
            vars.update(params, *target, delay.estimate(backlog));
            *vars != before
        });
    }

    #[inline]
    fn arrive(&mut self, _now: Instant, _arrival: Arrival, backlog: Backlog) -> Probability {
        if self.is_safe(backlog) {
            return Probability::ZERO;
        }
        if self.params.derandomize {
            self.vars.derandomized()
        } else {
            Probability::clamped(self.vars.drop_prob)
        }
    }

    fn may_mark(&self) -> bool {
        self.vars.drop_prob < self.params.ecn_threshold
    }

    fn probability(&self) -> Option<Probability> {
        Some(Probability::clamped(self.vars.drop_prob))
    }

    #[inline]
    fn judged(&mut self, _now: Instant, _arrival: Arrival, verdict: Verdict) {
        if matches!(verdict, Verdict::Mark | Verdict::Drop(DropReason::Early)) {
            self.vars.accu_prob = 0.0;
        }
    }

    #[inline]
    fn departed(&mut self, now: Instant, size: u32, arrived: Instant, backlog: Backlog) {
        self.delay.departed(now, size, arrived, backlog);
    }

    fn set_rate(&mut self, _now: Instant, rate: Rate) {
        self.delay.set_rate(rate);
    }

    fn reset(&mut self, now: Instant) {
        self.vars = Vars::new(&self.params);
        self.delay.reset();
        self.clock.restart(now);
    }
}

impl Pie {
    /// Whether nothing is dropped whatever the probability (RFC 8033 sections 4.1 and 4.4).
    #[inline]
    fn is_safe(&self, backlog: Backlog) -> bool {
        let Vars { drop_prob, qdelay_old, burst_allowance, .. } = self.vars;
        !burst_allowance.is_zero()
            || (qdelay_old < self.target / 2.0 && drop_prob < 0.2)
            || backlog.bytes <= 2 * self.params.mean_packet
    }
}

impl Vars {
    /// An update (RFC 8033 sections 4.2, 4.4 and 5.5).
    fn update(&mut self, params: &PieParams, target: f64, qdelay: f64) {
        let quiet = qdelay < target / 2.0 && self.qdelay_old < target / 2.0;
        let mut p = params.control.step(qdelay, self.qdelay_old);
        if params.auto_tune {
            p /= divisor(self.drop_prob);
        }
        if self.drop_prob >= 0.1 {
            p = p.min(0.02);
        }
        let decay = if quiet { 0.98 } else { 1.0 };
        self.drop_prob = ((self.drop_prob + p) * decay).clamp(0.0, 1.0);
        self.burst_allowance = self.burst_allowance.saturating_sub(params.control.t_update);
        if quiet && self.drop_prob == 0.0 {
            self.burst_allowance = params.max_burst;
        }
        self.qdelay_old = qdelay;
    }

    /// RFC 8033 section 5.4.
    fn derandomized(&mut self) -> Probability {
        self.accu_prob = if self.drop_prob == 0.0 { 0.0 } else { self.accu_prob + self.drop_prob };
        if self.accu_prob < 0.85 {
            Probability::ZERO
        } else if self.accu_prob >= 8.5 {
            Probability::ONE
        } else {
            Probability::clamped(self.drop_prob)
        }
    }
}

/// RFC 8033 section 4.2: how much smaller steps are while the probability is small.
fn divisor(drop_prob: f64) -> f64 {
    const TABLE: [(f64, f64); 6] =
        [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];
    TABLE.iter().find(|(below, _)| drop_prob < *below).map_or(1.0, |&(_, divisor)| divisor)
}

#[cfg(test)]
#[path = "pie_tests.rs"]
mod tests;
