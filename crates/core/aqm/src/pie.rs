//! PIE, proportional integral controller enhanced: holds the queuing delay at a target.
//!
//! Source: RFC 8033 sections 4 and 5 and appendix A. Every `t-update`, with the delay of the queue now (`qdelay`)
//! and a period ago:
//!
//! ```text
//! p = alpha (qdelay - target) + beta (qdelay - qdelay_old)          section 4.2, s
//! p is divided by 2048, 512, 128, 32, 8, 2 while drop_prob is below 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1
//! p is at most 0.02 while drop_prob >= 0.1                          section 5.5
//! p += 0.02 if qdelay is above high-delay                           Linux
//! drop_prob += p;  clamped to 0..1;  falls by decay-share if the queue is quiet
//! ```
//!
//! A packet is never dropped while a burst allowance lasts (section 4.4), while the delay < target / 2 and
//! drop_prob < 0.2, or while two packets of `mean-packet` or fewer wait (section 4.1).
//!
//! Worked numbers: at drop_prob 0.05, a delay of 30 ms that was 20 ms gives p = (0.125 x 0.015 + 1.25 x 0.01) / 2
//! = 0.0071875 (`a_step_of_the_rfc`).
//!
//! With ECN, a packet that can be marked is marked while drop_prob is below `ecn-threshold`, and dropped beyond
//! (section 5.1). With `derandomize`, the drop_prob of passed packets adds up. While the sum is below 0.85 no packet is
//! dropped; once it has reached 8.5 the next packet is dropped, whatever number is drawn (section 5.4).
//!
//! Linux and the RFC differ. The defaults are Linux's, as its `pie` is since version 5.6:
//!
//! | parameter | Linux | RFC 8033 |
//! | --- | --- | --- |
//! | `estimate` | `timestamp` (`dq_rate_estimator`: `departure-rate`) | `timestamp` in appendix A, `departure-rate` in appendix B |
//! | `decay`: when drop_prob decays | `empty`: both delays are 0 (ns-3, too) | `empty` in section 4.2 and appendix A, `below-half` of the target in appendix B |
//! | `decay-share` | 1/64 | 0.02; "1/64 is sufficient" |
//! | `high-delay` | 250 ms | off |
//! | `derandomize` | `true` | optional (section 5.4) |
//! | `guard`: which delay is compared with target / 2 | `latest`: of the last departure | `last-update` |
//! | `few`: how many packets pass untouched | `below-two` | `up-to-two` (section 4.1) |
//! | `mean-packet` | the MTU and the Ethernet header | 1 KB (appendix A) |
//! | `bytemode`: small packets are dropped less | `false` | left open (appendix B) |
//!
//! Other differences from Linux's `pie`: its burst allowance falls with each departure by the time since the last one,
//! here with each update (section 4.4); its timer has the kernel's tick, so its `t-update` is 16 ms at 250 Hz; after a mark that
//! was forced at 8.5 its sum continues, here it starts again; the limit is that of the queue's description (Linux: 1000
//! packets).
//!
//! `estimate = "auto"` is `timestamp` in a FIFO. Under TSQ a sojourn time depends on the packet's hint, so there it is
//! `link-rate`, the backlog at the link's rate, which is known here. There is no timer: missed updates are taken one by one
//! at the next call.
//!
//! Not implemented: switching PIE itself on and off by the queue's fill (section 5.3, optional; Linux does not).
//!
//! # Validation
//!
//! - The RFC's own values: `a_step_of_the_rfc`, `steps_are_smaller_while_the_probability_is_small` (section 4.2),
//!   `the_probability_decays_once_the_queue_is_quiet`, `a_short_queue_has_no_drops` (section 4.1),
//!   `a_burst_passes_for_150_ms` (section 4.4), `packets_are_marked_below_ten_per_cent_alone` (section 5.1),
//!   `derandomized_drops_are_neither_close_nor_far` (section 5.4),
//!   `steps_are_at_most_two_per_cent_once_ten_are_dropped` (section 5.5).
//! - Linux's choices: `the_probability_decays_once_the_queue_is_quiet`, `steps_are_larger_beyond_the_high_delay`,
//!   `the_guard_uses_the_latest_delay`, `small_packets_are_dropped_less_in_byte_mode`,
//!   `sojourn_times_are_not_taken_of_packets_that_change_places`.
//! - The three estimates agree on a standing queue: `all_three_agree_on_a_standing_queue`.
//! - Against Linux's own, in a virtual machine: `docs/validation/linux.md`.

use crate::delay_control::DelayControlParams;
use crate::queue_delay::{DelayEstimate, QueueDelay};
use crate::sample_clock::SampleClock;
use crate::{Aqm, Arrival, Backlog, DropProbability, Limit, Verdict};
use cutline_params::{Choice, ParameterError, Parameters};
use cutline_units::{Duration, Instant, Probability, Rate};

const SECTION_4_2: &str = "RFC 8033 section 4.2";

/// Parameters of PIE.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
pub struct PieParams {
    /// The controller whose steps are tuned.
    #[group]
    pub control: DelayControlParams,
    /// Duration of a burst into an empty queue of which no packet is dropped.
    #[param(
        default = Duration::from_millis(150),
        range = (Duration::ZERO, Duration::from_secs(10)),
        source = "RFC 8033 section 4.4"
    )]
    pub max_burst: Duration,
    /// Smaller steps while the probability is small.
    #[param(default = true, source = SECTION_4_2)]
    pub auto_tune: bool,
    /// Probability from which packets are dropped even if they can be marked.
    #[param(default = 0.1, range = (0.0, 1.0), source = "RFC 8033 section 5.1")]
    pub ecn_threshold: f64,
    /// Limits of the distance between drops, which are then neither close nor far apart.
    #[param(default = true, source = "Linux; RFC 8033 section 5.4 leaves it open")]
    pub derandomize: bool,
    /// Estimate of the delay: sojourn time, backlog over link rate, or measured departure rate. Auto: sojourn
    /// time, but link rate under TSQ.
    #[param(default = DelayEstimate::Auto, source = "Linux and RFC 8033 appendix A, except under TSQ")]
    pub estimate: DelayEstimate,
    /// Size of a typical packet; no packet is dropped while the backlog is a few of them.
    #[param(
        default = 1514,
        range = (1, 1_000_000),
        unit = "B",
        source = "Linux: the MTU and the Ethernet header; RFC 8033 appendix A has 1 KB"
    )]
    pub mean_packet: u64,
    /// Backlog in typical packets at which no packet is dropped: below two, or up to two.
    #[param(default = SmallBacklog::BelowTwo, source = "Linux; RFC 8033 section 4.1 has up-to-two")]
    pub few: SmallBacklog,
    /// Condition of the probability's decay: a delay of 0, or one below half of the target.
    #[param(default = Decay::Empty, source = "Linux, ns-3, RFC 8033 section 4.2; its appendix B has below-half")]
    pub decay: Decay,
    /// Share of the probability that an update removes during decay.
    #[param(default = 1.0 / 64.0, range = (0.0, 1.0), source = "Linux; RFC 8033 section 4.2 has 0.02")]
    pub decay_share: f64,
    /// Delay above which the probability rises by 0.02 more in each update.
    #[param(
        default = Some(Duration::from_millis(250)),
        range = (Duration::from_millis(1), Duration::from_secs(100)),
        source = "Linux; off in RFC 8033"
    )]
    pub high_delay: Option<Duration>,
    /// Delay that must reach half of the target before packets are dropped: the latest, or that of the last update.
    #[param(default = Guard::Latest, source = "Linux; RFC 8033 section 4.1 has last-update")]
    pub guard: Guard,
    /// Smaller probability for packets below `mean-packet`, in proportion to their size.
    #[param(default = false, source = "Linux; RFC 8033 appendix B leaves it open")]
    pub bytemode: bool,
}

/// Condition of the probability's decay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Decay {
    /// Decay while this delay and the last one are 0 (Linux, ns-3, RFC 8033 section 4.2).
    Empty,
    /// Decay while both are below half of the target (RFC 8033 appendix B).
    BelowHalf,
}

/// Number of packets of the typical size that pass untouched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum SmallBacklog {
    /// Less than two (Linux).
    BelowTwo,
    /// Two or less (RFC 8033 section 4.1).
    UpToTwo,
}

/// Delay that is compared with half of the target when a packet arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Guard {
    /// The estimate as it is (Linux).
    Latest,
    /// The estimate at the last update (RFC 8033 section 4.1).
    LastUpdate,
}

/// State of PIE.
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

    fn standing_delay(params: &PieParams, _limit: Limit, _rate: Rate) -> Option<Duration> {
        Some(params.control.target)
    }

    fn moderate_params() -> PieParams {
        let params = PieParams::default();
        PieParams { control: params.control.moderate(), ..params }
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
            vars.update(params, *target, delay.estimate(backlog), backlog);
            *vars != before
        });
    }

    #[inline]
    fn arrive(&mut self, _now: Instant, arrival: Arrival, backlog: Backlog) -> Probability {
        if self.is_safe(backlog) {
            return Probability::ZERO;
        }
        let share = (u64::from(arrival.size) as f64 / self.params.mean_packet as f64).min(1.0);
        let drop_prob = self.vars.drop_prob * if self.params.bytemode { share } else { 1.0 };
        if self.params.derandomize {
            self.vars.derandomized(drop_prob)
        } else {
            Probability::clamped(drop_prob)
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
        if verdict != Verdict::Pass {
            self.vars.accu_prob = 0.0;
        }
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
        self.vars = Vars::new(&self.params);
        self.delay.reset();
        self.clock.restart(now);
    }
}

impl Pie {
    /// Returns whether nothing is dropped whatever the probability (RFC 8033 sections 4.1 and 4.4).
    #[inline]
    fn is_safe(&self, backlog: Backlog) -> bool {
        let Vars { drop_prob, qdelay_old, burst_allowance, .. } = self.vars;
        let few = match self.params.few {
            SmallBacklog::BelowTwo => backlog.bytes < 2 * self.params.mean_packet,
            SmallBacklog::UpToTwo => backlog.bytes <= 2 * self.params.mean_packet,
        };
        let qdelay = match self.params.guard {
            Guard::Latest => self.delay.estimate(backlog),
            Guard::LastUpdate => qdelay_old,
        };
        !burst_allowance.is_zero() || (qdelay < self.target / 2.0 && drop_prob < 0.2) || few
    }
}

impl Vars {
    /// An update (RFC 8033 sections 4.2, 4.4 and 5.5).
    fn update(&mut self, params: &PieParams, target: f64, qdelay: f64, backlog: Backlog) {
        let quiet = qdelay < target / 2.0 && self.qdelay_old < target / 2.0;
        let mut p = params.control.step(qdelay, self.qdelay_old);
        if params.auto_tune {
            p /= divisor(self.drop_prob);
        }
        if self.drop_prob >= 0.1 {
            p = p.min(0.02);
        }
        if params.high_delay.is_some_and(|high| qdelay > high.as_secs_f64()) {
            p += 0.02;
        }
        let decays = match params.decay {
            Decay::Empty => qdelay == 0.0 && self.qdelay_old == 0.0 && backlog.packets == 0,
            Decay::BelowHalf => quiet,
        };
        let kept = if decays { 1.0 - params.decay_share } else { 1.0 };
        self.drop_prob = (self.drop_prob + p).clamp(0.0, 1.0) * kept;
        self.burst_allowance = self.burst_allowance.saturating_sub(params.control.t_update);
        if quiet && self.drop_prob == 0.0 {
            self.burst_allowance = params.max_burst;
        }
        self.qdelay_old = qdelay;
    }

    /// RFC 8033 section 5.4.
    fn derandomized(&mut self, drop_prob: f64) -> Probability {
        self.accu_prob = if drop_prob == 0.0 { 0.0 } else { self.accu_prob + drop_prob };
        if self.accu_prob < 0.85 {
            Probability::ZERO
        } else if self.accu_prob >= 8.5 {
            Probability::ONE
        } else {
            Probability::clamped(drop_prob)
        }
    }
}

/// RFC 8033 section 4.2: factor of steps while the probability is small.
fn divisor(drop_prob: f64) -> f64 {
    const TABLE: [(f64, f64); 6] =
        [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];
    TABLE.iter().find(|(below, _)| drop_prob < *below).map_or(1.0, |&(_, divisor)| divisor)
}

#[cfg(test)]
#[path = "pie_tests.rs"]
mod tests;
