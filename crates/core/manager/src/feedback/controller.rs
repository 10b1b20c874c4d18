//! Controller of a path: decides on the cutoff, from the reports of all hosts.
//!
//! - *Lower*: if the worst predicted headroom is below [`FeedbackParams::near`], and at least
//!   [`FeedbackParams::corroboration`] of the flows are disturbed, the cutoff is raised until flows deliver
//!   [`FeedbackParams::decrease`] of their present deliveries. Deliveries while a queue grows are at the bottleneck's
//!   rate, so one step comes below it, and the queue empties.
//! - *Drain*: a queue of Q empties in [`FeedbackParams::drain`] T, if flows are lowered to `1 - Q / T` of the rate
//!   delivered, at least a half.
//! - *Correct*: deliveries are reported late. As long as there is a queue, it is the bottleneck's rate, so flows are
//!   lowered further at once if later reports say that it is less than was known.
//! - *Evidence*: the next decision is made from reports of traffic that was sent after all hosts had followed the last
//!   one ([`PathFeedback`](super::PathFeedback) takes care of that). So the controller never acts on a fault that it has mended
//!   already, however long the delays are.
//! - *Return*: when the queue has emptied, flows get the share of [`FeedbackParams::decrease`] again.
//! - *Raise*: if nearly all hosts have reports, the headroom is above [`FeedbackParams::inside`] and less than half as
//!   many flows are disturbed as it takes to lower: half of the way to the ceiling after every
//!   [`FeedbackParams::rest`]. The ceiling is a step below the rate that was delivered when flows had to be lowered.
//! - *Probe*: at the ceiling, a step after the patience, or half a one up to a rate that has failed before. It has
//!   failed if flows have to be lowered then, and leads two steps below the bottleneck. After a probe that has not
//!   failed the next one follows at once.
//! - *Patience* is [`FeedbackParams::rest`] at first. It doubles with each time that flows are lowered, up to
//!   [`FeedbackParams::longest_rest`], and is short again after a probe has led above all failures.
//!
//! These are the rules of a connection's own controller ([`cutline_signal::operation`]), for all flows of a path, with
//! evidence in the place of a fixed time to settle. Multiplicative decrease follows Chiu and Jain (1989).

use super::cutoff::{Cutoff, Loads};
use super::params::FeedbackParams;
use cutline_units::{Duration, Instant};

/// State of a path, from the summaries of all hosts that report and have flows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathView {
    /// Number of hosts.
    pub hosts: u32,
    /// Hosts of them with enough reports since the last decision; a raise needs nearly all of them.
    pub ready: u32,
    /// The share of disturbed flows, averaged over all hosts; those without a report since the last decision
    /// count as undisturbed.
    pub disturbed: f64,
    /// The worst predicted headroom of the other hosts; 1 if there are none.
    pub ahead: f64,
    /// The predicted headroom that most of them have; 1 if there are none.
    pub ahead_of_most: f64,
    /// The share of flows that see a queue, averaged over all hosts.
    pub queued: f64,
    /// Median of the hosts' queues.
    pub queue: Duration,
    /// Loads of all hosts.
    pub loads: Loads,
}

/// Counters of a controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControllerStats {
    /// Times that flows were lowered.
    pub lowered: u64,
    /// Times that flows were raised.
    pub raised: u64,
    /// Raises of them that were probes.
    pub probes: u64,
    /// Probes that have failed.
    pub failed: u64,
}

/// Phase of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Flows were lowered, and it has not been calm since.
    Falling,
    Steady,
    Probing,
}

/// Controller of a path.
#[derive(Clone, Debug)]
pub struct PathController {
    cutoff: Cutoff,
    changed: Instant,
    phase: Phase,
    /// Rate of all flows up to which they are raised without a probe, bit/s.
    ceiling: f64,
    /// The highest rate of all flows at a failure since the patience was short, bit/s.
    failed_at: f64,
    patience: Duration,
    /// Share of the delivered rate that flows were lowered to.
    factor: f64,
    /// Rate delivered when flows were lowered, bit/s.
    delivered: f64,
    /// Rate to which flows return when the queue has emptied, bit/s.
    drained: f64,
    stats: ControllerStats,
}

/// The share of hosts that have to be ready for a raise: with a loss of 30 % a few are always late.
const NEARLY_ALL: f64 = 0.9;
/// The least share of the delivered rate that flows are lowered to at once.
const LEAST_FACTOR: f64 = 0.5;

impl PathController {
    /// A controller that begins with a cutoff.
    pub const fn new(now: Instant, cutoff: Cutoff, params: &FeedbackParams) -> Self {
        Self {
            cutoff,
            changed: now,
            phase: Phase::Steady,
            ceiling: 0.0,
            failed_at: 0.0,
            patience: params.rest,
            factor: params.decrease,
            delivered: 0.0,
            drained: 0.0,
            stats: ControllerStats { lowered: 0, raised: 0, probes: 0, failed: 0 },
        }
    }

    /// The cutoff.
    pub const fn cutoff(&self) -> Cutoff {
        self.cutoff
    }

    /// Returns whether all flows are at their minima, so that no lower rate is possible.
    pub fn is_exhausted(&self) -> bool {
        self.cutoff == Cutoff::ALL
    }

    /// Returns the counters.
    pub const fn stats(&self) -> ControllerStats {
        self.stats
    }

    /// Decides. Returns whether the cutoff has changed.
    pub fn decide(&mut self, now: Instant, view: &PathView, params: &FeedbackParams) -> bool {
        if view.hosts == 0 {
            return false;
        }
        if view.ahead < params.near && view.disturbed >= params.corroboration {
            return self.lower(now, view, params);
        }
        if f64::from(view.ready) < NEARLY_ALL * f64::from(view.hosts) {
            return false;
        }
        let is_calm = view.ahead_of_most >= params.inside && view.disturbed < params.corroboration / 2.0;
        is_calm && self.raise(now, view, params)
    }

    fn lower(&mut self, now: Instant, view: &PathView, params: &FeedbackParams) -> bool {
        let may_send = self.cutoff.limit_of_all(&view.loads);
        let load = view.loads.used().min(may_send);
        self.factor = if self.phase == Phase::Probing { 1.0 - 2.0 * params.step } else { params.decrease };
        let cutoff = self.cutoff.lowered_to(&view.loads, load * self.factor_for(view, params));
        if self.phase != Phase::Falling {
            self.stats.failed += u64::from(self.phase == Phase::Probing);
            self.ceiling = load * (1.0 - params.step);
            self.failed_at = self.failed_at.max(may_send);
            self.patience = (self.patience + self.patience).min(params.longest_rest);
        }
        (self.delivered, self.drained) = (load, load * self.factor);
        self.phase = Phase::Falling;
        self.stats.lowered += u64::from(cutoff != self.cutoff);
        self.move_to(now, cutoff)
    }

    /// Lowers flows further after they were lowered, if there is a queue and less is delivered than was known then: it
    /// is the bottleneck's rate, however old the reports are, and no evidence has to be awaited. Returns whether the
    /// cutoff has changed.
    pub fn correct(&mut self, now: Instant, view: &PathView, params: &FeedbackParams) -> bool {
        if self.phase != Phase::Falling || view.queued < params.corroboration {
            return false;
        }
        let load = view.loads.used();
        if load >= self.delivered * (1.0 - params.step) {
            return false;
        }
        self.delivered = load;
        let cutoff = self.cutoff.lowered_to(&view.loads, load * self.factor_for(view, params));
        self.ceiling = self.ceiling.min(load * (1.0 - params.step));
        self.drained = load * self.factor;
        self.move_to(now, cutoff)
    }

    /// The share of the delivered rate at which the queue empties in time.
    fn factor_for(&self, view: &PathView, params: &FeedbackParams) -> f64 {
        let drain = 1.0 - view.queue.as_secs_f64() / params.drain.as_secs_f64();
        self.factor.min(drain.max(LEAST_FACTOR))
    }

    fn raise(&mut self, now: Instant, view: &PathView, params: &FeedbackParams) -> bool {
        let may_send = self.cutoff.limit_of_all(&view.loads);
        let mut patience = self.patience;
        if self.phase == Phase::Probing {
            // The probe has not failed: the next one follows at once.
            self.ceiling = may_send;
            patience = Duration::ZERO;
            if may_send > self.failed_at {
                (self.patience, self.failed_at) = (params.rest, 0.0);
            }
        }
        self.phase = Phase::Steady;
        if self.cutoff == Cutoff::NONE {
            return false;
        }
        let (age, step) = (now.saturating_since(self.changed), may_send * params.step);
        let is_below = may_send + step / 2.0 < self.ceiling;
        if age < if is_below { params.rest } else { patience } {
            return false;
        }
        // Up to a rate that has failed, probes are half as large.
        let probe = if may_send <= self.failed_at { step / 2.0 } else { step };
        let halfway = f64::midpoint(may_send, self.ceiling).max(may_send + step / 2.0).max(self.drained);
        let target = if is_below { halfway } else { may_send + probe };
        self.stats.raised += 1;
        if !is_below {
            self.stats.probes += 1;
            self.phase = Phase::Probing;
        }
        let cutoff = self.cutoff.raised_to(&view.loads, target);
        self.move_to(now, cutoff)
    }

    fn move_to(&mut self, now: Instant, cutoff: Cutoff) -> bool {
        let has_changed = cutoff != self.cutoff;
        if has_changed {
            (self.cutoff, self.changed) = (cutoff, now);
        }
        has_changed
    }
}
