//! BLUE: the drop probability grows when the queue overflows, and falls when the link is idle.
//!
//! Source: W. Feng, K. Shin, D. Kandlur, D. Saha, "The BLUE active queue management algorithms", IEEE/ACM
//! Transactions on Networking, August 2002, section III and figure 4.
//!
//! ```text
//! upon packet loss (or q > threshold):  if now - last_update >= freeze-time:  p += d1, last_update = now
//! upon the link being idle:             if now - last_update >= freeze-time:  p -= d2, last_update = now
//! ```
//!
//! Worked numbers: overflows at 100, 150 and 200 ms give p = 0.02 and then 0.04, because the second comes too soon. An
//! idle second lowers p by ten times 0.002 (`overflow_raises_and_idleness_lowers`).
//!
//! The link is idle once its last packet is on the wire. The paper lowers p upon an idle event; here p is lowered once per
//! freeze time for as long as the link stays idle. There is no timer: the missed steps are taken when the next packet
//! comes.
//!
//! Not implemented: stochastic fair BLUE.
//!
//! # Validation
//!
//! - Rises, falls and the freeze time by hand: `overflow_raises_and_idleness_lowers`,
//!   `a_queue_beyond_the_threshold_counts_as_loss`.
//! - Frequent calls change nothing: `frequent_calls_change_nothing`.
//! - Not checked: the text of the paper was not available, so the values of configuration B4 were not compared with its
//!   table. Debian's ns-2 has no BLUE to compare with.

use crate::{Aqm, Arrival, Backlog, DrainRate, DropProbability, DropReason, Limit, Verdict, standing};
use cutline_params::{ParameterError, Parameters};
use cutline_units::{Duration, Instant, Probability, Rate};

const B4: &str = "Feng et al. 2002, configuration B4";

/// Parameters of BLUE.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
pub struct BlueParams {
    /// Increment of p at a loss.
    #[param(default = 0.02, range = (1e-6, 1.0), source = B4)]
    pub d1: f64,
    /// Decrement of p at an idle link.
    #[param(default = 0.002, range = (1e-6, 1.0), source = B4)]
    pub d2: f64,
    /// The shortest time between two changes of p.
    #[param(
        default = Duration::from_millis(100),
        range = (Duration::from_millis(1), Duration::from_secs(100)),
        source = B4
    )]
    pub freeze_time: Duration,
    /// Queue length above which an arrival counts as a loss; off counts losses alone.
    #[param(default = None, range = (0.0, 1e7), unit = "packets", source = "off: Feng et al. 2002 figure 4")]
    pub threshold: Option<f64>,
}

/// State of BLUE.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Vars {
    p: f64,
    last_update: Instant,
    /// Time at which the last packet of the queue has left the link.
    idle_from: Instant,
}

/// BLUE.
#[derive(Clone, Copy, Debug)]
pub struct Blue {
    params: BlueParams,
    threshold: f64,
    drain: DrainRate,
    vars: Vars,
}

impl Aqm for Blue {
    type Params = BlueParams;
    const NAME: &'static str = "blue";
    const TITLE: &'static str = "BLUE";
    const SOURCE: &'static str = "Feng, Shin, Kandlur, Saha, IEEE/ACM ToN 2002";

    fn build(params: &BlueParams, rate: Rate) -> Result<Self, ParameterError> {
        params.validate()?;
        let threshold = params.threshold.unwrap_or(f64::INFINITY);
        Ok(Self { params: *params, threshold, drain: DrainRate::new(rate), vars: Vars::new(Instant::ZERO) })
    }

    fn standing_delay(_params: &BlueParams, limit: Limit, rate: Rate) -> Option<Duration> {
        Some(standing::full(limit, rate))
    }
}

impl Vars {
    const fn new(now: Instant) -> Self {
        Self { p: 0.0, last_update: now, idle_from: now }
    }
}

impl DropProbability for Blue {
    #[inline]
    fn advance(&mut self, now: Instant, backlog: Backlog) {
        if backlog.packets == 0 && self.vars.p > 0.0 {
            self.rest(now);
        }
    }

    #[inline]
    fn arrive(&mut self, now: Instant, _arrival: Arrival, backlog: Backlog) -> Probability {
        if f64::from(backlog.packets) > self.threshold {
            self.raise(now);
        }
        Probability::clamped(self.vars.p)
    }

    fn probability(&self) -> Option<Probability> {
        Some(Probability::clamped(self.vars.p))
    }

    #[inline]
    fn judged(&mut self, now: Instant, _arrival: Arrival, verdict: Verdict) {
        if verdict == Verdict::Drop(DropReason::Overflow) {
            self.raise(now);
        }
    }

    #[inline]
    fn departed(&mut self, now: Instant, size: u32, _arrived: Instant, backlog: Backlog) {
        if backlog.packets == 0 {
            self.vars.idle_from = now.saturating_add(self.drain.time(u64::from(size)));
        }
    }

    fn set_rate(&mut self, _now: Instant, rate: Rate) {
        self.drain = DrainRate::new(rate);
    }

    fn reset(&mut self, now: Instant) {
        self.vars = Vars::new(now);
    }
}

impl Blue {
    /// Feng et al. 2002 figure 4: upon packet loss.
    #[cold]
    fn raise(&mut self, now: Instant) {
        if now.saturating_since(self.vars.last_update) >= self.params.freeze_time {
            self.vars.p = (self.vars.p + self.params.d1).min(1.0);
            self.vars.last_update = now;
        }
    }

    /// Feng et al. 2002 figure 4: upon the link being idle, again and again until `now`.
    #[cold]
    fn rest(&mut self, now: Instant) {
        while self.vars.p > 0.0 {
            let due = self.vars.last_update.saturating_add(self.params.freeze_time).max(self.vars.idle_from);
            if due > now {
                return;
            }
            self.vars.p = (self.vars.p - self.params.d2).max(0.0);
            self.vars.last_update = due;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::HintBits;

    fn blue(params: BlueParams) -> Blue {
        Blue::build(&params, Rate::from_mbps(8)).expect("the parameters are allowed")
    }

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn overflow(blue: &mut Blue, at: u64) {
        let arrival = Arrival::new(1000, HintBits::PAPER.largest());
        blue.judged(ms(at), arrival, Verdict::Drop(DropReason::Overflow));
    }

    const ONE: Backlog = Backlog { packets: 1, bytes: 1000 };
    const NONE: Backlog = Backlog { packets: 0, bytes: 0 };

    #[test]
    fn overflow_raises_and_idleness_lowers() {
        // Feng et al. 2002 figure 4.
        let mut blue = blue(BlueParams::default());
        for at in [100, 150, 200] {
            overflow(&mut blue, at);
        }
        assert_eq!(blue.vars.p, 0.04);
        blue.advance(ms(999), ONE);
        assert_eq!(blue.vars.p, 0.04, "a busy link changes nothing");
        blue.departed(ms(999), 1000, ms(100), NONE);
        // The last bit leaves at 1000 ms; ten freeze times from there.
        blue.advance(ms(999), NONE);
        assert_eq!(blue.vars.p, 0.04, "it is not idle yet");
        blue.advance(ms(1000 + 900), NONE);
        assert!((blue.vars.p - 0.02).abs() < 1e-12, "{}", blue.vars.p);
    }

    #[test]
    fn frequent_calls_change_nothing() {
        let mut seen = blue(BlueParams { d2: 0.003, ..BlueParams::default() });
        (1..=40).for_each(|i| overflow(&mut seen, 100 * i));
        let mut unseen = seen;
        (4000..9000).for_each(|at| seen.advance(ms(at), NONE));
        unseen.advance(ms(8999), NONE);
        assert_eq!(seen.vars, unseen.vars);
        assert!(seen.vars.p > 0.0 && seen.vars.p < 0.8);
    }

    #[test]
    fn a_queue_beyond_the_threshold_counts_as_loss() {
        let mut blue = blue(BlueParams { threshold: Some(50.0), ..BlueParams::default() });
        let arrival = Arrival::new(1000, HintBits::PAPER.largest());
        let mut at = |packets, ms_| blue.arrive(ms(ms_), arrival, Backlog { packets, bytes: 0 }).get();
        assert_eq!(at(50, 200), 0.0);
        assert_eq!(at(51, 201), 0.02);
    }

    #[test]
    fn the_probability_stops_at_one() {
        let mut blue = blue(BlueParams { d1: 0.4, ..BlueParams::default() });
        for at in [100, 200, 300, 400] {
            overflow(&mut blue, at);
        }
        assert_eq!(blue.probability(), Some(Probability::ONE));
    }
}
