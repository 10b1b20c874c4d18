//! Moves a sender inside its region of operation (QUANTA section 4): towards the worst acceptable rate while delay, jitter or
//! loss are outside their limits or near them, and back towards the best rate while all are well inside.
//!
//! The position is that on the region's axis of the rate: 0 at the worst, `min-rate`, and 1 at the best, `max-rate`. The
//! *headroom* of an interval is the position of the worst of these measures: 1 at the best, 0 at the limit, below 0 outside. Gaps are
//! not among them, since a lower rate makes them longer.
//!
//! - *Down*, if the headroom is below [`OperationParams::near`]: the rate becomes [`OperationParams::decrease`] times the lower one of the
//!   present rate and the delivered rate. The rate delivered while messages queue is the bottleneck's, so one step comes
//!   below it, and the queue empties. During [`OperationParams::settle`] nothing is decided.
//! - *Back*, if the headroom is above [`OperationParams::inside`] and the position below the ceiling: half of the way to it after every
//!   [`OperationParams::rest`]. The ceiling is one step below the rate that was delivered when the rate had to fall.
//! - *Probe*, at the ceiling: after the patience a step up. It has failed if the rate has to fall during [`OperationParams::trial`], or
//!   if the headroom shrinks by more than [`OperationParams::shrink`]; then two steps down empty the queue that it has made. After a
//!   probe that has not failed the ceiling is where it led, and the next one follows at once.
//! - *Retreat*: if the headroom shrinks as much outside of a probe, a queue grows slowly, and the last step was one too many. Two
//!   steps down likewise.
//! - *Patience* is [`OperationParams::rest`] at first. It doubles with each fall, retreat and probe that fails, up to
//!   [`OperationParams::longest_rest`], and is short again after a probe has led above the place of all failures.
//!
//! A sender that does not use the rate it has gets no higher one.
//!
//! A queue below `min-delay` is worth as much as none, so it does not show in the headroom. While it fills, probes lead further: by
//! as many steps as it takes trials.
//!
//! So at a bottleneck that stays as it is, the rate leaves its ceiling, after 5 failures, once in [`OperationParams::longest_rest`]: by a
//! step or two up, and once down. A bottleneck that recovers is noticed at most that much later; from there on a step of 1/20 of
//! the range is taken every 2 s. A test holds the defaults to this with bottlenecks of all rates and queues.
//!
//! Example: 60 to 80 messages/s, of which a bottleneck carries 70, with 100 ms as the limit of delay. At 80/s the delay grows by
//! 143 ms/s, so in the first interval it is beyond 90 ms the rate falls to 0.85 x 70 = 59.5, which is below the region: 60. The ceiling is
//! one step, 1/s, below 70: 69 messages/s.

use crate::monitor::{Delivery, OfferedMessages};
use crate::violation::Assessment;
use cutline_params::{ParameterError, Parameters};
use cutline_quality::spec::{Axis, Measure, Region};
use cutline_units::{Duration, Instant};

/// Parameters of the controller of the position in the region of operation.
#[derive(Clone, Debug, PartialEq, Parameters)]
#[parameters(check = OperationParams::go_together)]
pub struct OperationParams {
    /// Factor by which a step down reduces the delivered rate.
    #[param(default = 0.85, range = (0.1, 0.99), source = "ours: the rest empties a queue of 150 ms within a second")]
    pub decrease: f64,
    /// Size of a step up, as a share of the way from the worst to the best rate.
    #[param(default = 0.05, range = (0.001, 1.0), source = "ours: 20 steps from the worst to the best")]
    pub step: f64,
    /// The headroom below which the rate falls; 0 is the limit.
    #[param(default = 0.1, range = (0.0, 1.0), source = "ours: a tenth of the range before the limit")]
    pub near: f64,
    /// The headroom above which the rate may rise; at least near.
    #[param(default = 0.3, range = (0.0, 1.0), source = "ours: a step up does not lead from here to near")]
    pub inside: f64,
    /// Decrease of the headroom during a failing probe.
    #[param(default = 0.2, range = (0.0, 1.0), source = "ours: 20 ms of 100 ms, more than delays vary by themselves")]
    pub shrink: f64,
    /// Time after a step down in which nothing is decided.
    #[param(
        default = Duration::from_secs(1),
        range = (Duration::ZERO, Duration::from_secs(60)),
        source = "ours: two intervals; the first has messages from before the step"
    )]
    pub settle: Duration,
    /// Duration of a probe.
    #[param(
        default = Duration::from_secs(2),
        range = (Duration::ZERO, Duration::from_secs(600)),
        source = "ours: four intervals, in which a queue that grows by 10 ms/s shows"
    )]
    pub trial: Duration,
    /// The time between two steps towards the ceiling, and the first patience before a probe; at most longest-rest.
    #[param(
        default = Duration::from_secs(1),
        range = (Duration::from_millis(10), Duration::from_secs(600)),
        source = "ours: two intervals"
    )]
    pub rest: Duration,
    /// The longest patience before a probe.
    #[param(
        default = Duration::from_secs(32),
        range = (Duration::from_millis(10), Duration::from_secs(3600)),
        source = "ours: how late a connection notices that there is more"
    )]
    pub longest_rest: Duration,
}

/// Counters of the controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperationStats {
    /// Number of falls of the rate, in one step or in several.
    pub falls: u64,
    /// Probes begun.
    pub probes: u64,
    /// Probes of them that have failed.
    pub failed: u64,
    /// Retreats outside of probes.
    pub retreats: u64,
}

/// The controller of a sender's position in its region of operation.
#[derive(Clone, Debug)]
pub struct Operation {
    params: OperationParams,
    axis: Axis,
    position: f64,
    /// Time at which the position changed.
    changed: Instant,
    /// Up to where the last rate that was delivered reaches.
    ceiling: f64,
    /// The best headroom of the last intervals.
    usual: f64,
    /// The highest position of a failure since the patience was short.
    failed_at: f64,
    patience: Duration,
    phase: Phase,
    /// Time since which the position has been 0.
    worst_since: Option<Instant>,
    stats: OperationStats,
}

/// Phase of the controller.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// The rate has fallen, and no interval has been away from the limits since.
    Falling,
    /// All is well, or not so bad that the rate falls.
    Steady,
    /// A probe is under way.
    Probing {
        /// The position before it.
        from: f64,
        /// The headroom before it.
        headroom: f64,
    },
}

/// The measures that a lower rate makes better.
pub const DEPENDENT: [Measure; 3] = [Measure::Delay, Measure::Jitter, Measure::Loss];
/// The weight of an interval whose headroom is smaller than usual.
const FORGETTING: f64 = 1.0 / 64.0;
/// The share of its rate that a sender must use before it gets a higher one.
const USED: f64 = 0.9;

impl OperationParams {
    fn go_together(&self) -> Result<(), ParameterError> {
        if self.near > self.inside {
            let most = format!("at most inside, which is {}", self.inside);
            return Err(ParameterError::new("near", self.near, most));
        }
        if self.rest > self.longest_rest {
            let most = format!("at most longest-rest, which is {}", self.longest_rest);
            return Err(ParameterError::new("rest", self.rest, most));
        }
        Ok(())
    }
}

impl Operation {
    /// A controller that begins at the best rate; `None` if the region has only one rate, or any.
    ///
    /// # Errors
    /// When a parameter is not allowed.
    pub fn new(
        now: Instant,
        region: &Region,
        params: OperationParams,
    ) -> Result<Option<Self>, ParameterError> {
        params.validate()?;
        let Some(axis) = region.axis(Measure::Rate).copied().filter(|axis| axis.best > axis.worst) else {
            return Ok(None);
        };
        let patience = params.rest;
        Ok(Some(Self {
            params,
            axis,
            position: 1.0,
            changed: now,
            ceiling: 1.0,
            usual: 0.0,
            failed_at: 0.0,
            patience,
            phase: Phase::Steady,
            worst_since: None,
            stats: OperationStats::default(),
        }))
    }

    /// The position: 0 at the worst acceptable rate, 1 at the best.
    pub const fn position(&self) -> f64 {
        self.position
    }

    /// The rate at which the application should send, messages/s.
    pub fn target(&self) -> f64 {
        self.axis.at(self.position)
    }

    /// Returns the time since which the rate has been the worst acceptable; `None` if it is higher. Then a
    /// lower rate cannot improve anything.
    pub const fn worst_since(&self) -> Option<Instant> {
        self.worst_since
    }

    /// Returns the counters.
    pub const fn stats(&self) -> OperationStats {
        self.stats
    }

    /// Takes an interval: the delivered and the offered rate, and the quality of the delivery. Returns the rate from now on,
    /// messages/s. An interval in which nothing depends on the rate changes nothing.
    pub fn on_interval(
        &mut self,
        now: Instant,
        delivery: &Delivery,
        demand: OfferedMessages,
        assessment: &Assessment,
    ) -> f64 {
        if let Some(headroom) = assessment.worst(&DEPENDENT) {
            self.decide(now, headroom, delivery.rate(), demand);
        }
        self.target()
    }

    fn decide(&mut self, now: Instant, headroom: f64, delivered: f64, demand: OfferedMessages) {
        let age = now.saturating_since(self.changed);
        if self.phase == Phase::Falling && age < self.params.settle {
            return;
        }
        self.usual = headroom.max(self.usual + (headroom - self.usual) * FORGETTING);
        if headroom < self.params.near {
            self.fall(now, delivered);
            return;
        }
        match self.phase {
            Phase::Probing { from, headroom: before } => {
                if headroom < before - self.params.shrink {
                    self.retreat(now, from, headroom, delivered);
                    return;
                }
                if age < self.params.trial {
                    return;
                }
                self.ceiling = self.position;
                if self.position > self.failed_at {
                    (self.patience, self.failed_at) = (self.params.rest, 0.0);
                }
                self.rise(now, headroom, demand, Duration::ZERO);
            }
            Phase::Steady if headroom < self.usual - self.params.shrink && age >= self.params.settle => {
                self.retreat(now, self.position - self.params.step, headroom, delivered);
            }
            Phase::Steady => self.rise(now, headroom, demand, self.patience),
            Phase::Falling => {
                self.phase = Phase::Steady;
                self.rise(now, headroom, demand, self.patience);
            }
        }
    }

    /// Lowers the rate.
    fn fall(&mut self, now: Instant, delivered: f64) {
        let rate = delivered.min(self.target());
        if self.phase != Phase::Falling {
            self.stats.falls += 1;
            self.fail();
            let held = self.axis.position(rate).min(self.position);
            self.ceiling = (held - self.params.step).max(0.0);
        }
        let position = self.axis.position(rate * self.params.decrease).clamp(0.0, self.position);
        self.move_to(now, position, Phase::Falling);
        self.usual = self.params.near;
    }

    /// Lowers the rate to one step below a ceiling, or below the delivered rate if that is less, so that the backlog drains.
    fn retreat(&mut self, now: Instant, ceiling: f64, headroom: f64, delivered: f64) {
        self.stats.retreats += u64::from(self.phase == Phase::Steady);
        self.fail();
        let ceiling = ceiling.min(self.axis.position(delivered)).max(0.0);
        (self.ceiling, self.usual) = (ceiling, headroom);
        self.move_to(now, (ceiling - self.params.step).max(0.0), Phase::Steady);
    }

    /// Raises the rate back to the ceiling, or probes above it after `patience`.
    fn rise(&mut self, now: Instant, headroom: f64, demand: OfferedMessages, patience: Duration) {
        self.phase = Phase::Steady;
        let age = now.saturating_since(self.changed);
        if headroom <= self.params.inside || !demand.reaches(self.target() * USED) {
            return;
        }
        let (from, step) = (self.position, self.params.step);
        if from < self.ceiling {
            if age >= self.params.rest {
                let half = f64::midpoint(from, self.ceiling);
                self.move_to(now, half.max(from + step).min(self.ceiling), Phase::Steady);
            }
        } else if from < 1.0 && age >= patience {
            self.stats.probes += 1;
            self.move_to(now, (from + step).min(1.0), Phase::Probing { from, headroom });
        }
    }

    /// Counts a failure at the present position.
    fn fail(&mut self) {
        self.stats.failed += u64::from(matches!(self.phase, Phase::Probing { .. }));
        self.failed_at = self.failed_at.max(self.position);
        self.patience = (self.patience + self.patience).min(self.params.longest_rest);
    }

    fn move_to(&mut self, now: Instant, position: f64, phase: Phase) {
        (self.position, self.changed, self.phase) = (position, now, phase);
        self.worst_since = (position <= 0.0).then(|| self.worst_since.unwrap_or(now));
    }
}

#[cfg(test)]
mod tests;
