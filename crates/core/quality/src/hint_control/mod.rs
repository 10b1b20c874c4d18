//! A controller that finds an application's delay hint: it tries hints, judges the results, and keeps the better hint.
//!
//! The TSQ paper (section 5) leaves to the future "applications that adapt their hint to the quality they get". The best
//! hint depends on the other traffic. Quality as a function of the hint is a hill (TSQ figure 10) that moves with the
//! load. The hill is flat at the top and steep towards small hints. A measurement of some seconds has an error worth
//! several levels. So the controller is a direct search with a test of significance:
//!
//! - **Compass search** (Hooke and Jeeves 1961): from the centre c it tries c - s and c + s. It moves to the better side
//!   and continues in that direction with twice the span s. Where neither side is better it halves the span. At the finest
//!   span it rests.
//! - **Pairs, in random order** (Fisher's blocks; as in PCC, Dong et al. 2015): a trial is judged by differences of quality
//!   between intervals at the trial and neighbouring intervals at the centre, so that slow changes cancel. The order within
//!   a pair is drawn. Flows that adapt at the same time therefore do not try in step, and add noise instead of bias. A pair
//!   is a finite difference as in Kiefer and Wolfowitz 1952.
//! - **No move without a significant gain**: the mean difference must be at least `least_gain`, and `confidence` standard
//!   errors above 0. The error is that of the pairs, shrunk towards that of earlier trials, because two or three pairs show
//!   little about it. A trial ends early when its mean is not above 0 after two pairs.
//! - **Rest and wake**: at rest the hint does not change, and quality is watched with a two-sided CUSUM (Page 1954: half a
//!   deviation of slack, alarm at five). An alarm means that the hill has moved, and starts a new search with the largest
//!   span. Without an alarm a new search starts after `rest`, which doubles each time nothing was found, up to
//!   `longest_rest`.
//!
//! Stochastic approximation (Kiefer-Wolfowitz, SPSA) and extremum seeking take ever smaller steps along a gradient. Here
//! there are a dozen levels, and a moving hill with a kink, whose sides differ ten times in steepness: a pair with one level
//! on either side of the top points the wrong way. A law without trials, "raise the hint while Qd > Qt", is faster,
//! and wrong for an application that the network does not limit: a codec of 64 kbit/s always has a Qt of 0.83. It and a
//! climber that turns round when quality falls are there to compare the search with: [`HintLaw`].
//!
//! - **The limit of the loss** ([`HintControl::set_loss_limit`]) is a constraint, as in the exact penalty method (Zangwill 1967): the judged
//!   quality falls by 1 for each time that the loss exceeds the limit by as much again, which is more than delay can gain. A trial
//!   of a smaller hint ends with the first interval outside the limit, since TSQ drops more packets with a smaller hint, and so costs
//!   the application one interval. Where the largest hint is outside, too, the least loss is the best.
//!
//! The controller sees only values that a receiver can report and a sender can count: see [`DeliveryReport`]. It has no clock
//! and no timer; reports drive it.
//!
//! The throughput of a TFRC follows its loss with a memory of eight loss intervals (RFC 5348 section 5.4), ten seconds and
//! more, while the delay changes at once. So a trial of a smaller hint looks better than it is when `settle` and `measure`
//! are short. They decide the bias of the hint that is found.

mod search;
mod trial;
mod walk;
mod watch;

use crate::{Class, Combination};
use cutline_params::{Choice, ParameterError, Parameters};
use cutline_units::{Duration, Hint, HintBits, Instant, RandomStream, Rate};
use search::Search;
use std::fmt;
use walk::Walk;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
/// Levels of 8 bits, the most there are.
const LEVELS: u64 = 256;

/// The least limit of the loss by which an excess is measured: a limit of 0 has no scale.
const LEAST_LIMIT: f64 = 0.01;

/// Goal of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum HintGoal {
    /// The best quality with a loss within its limit, if there is one.
    WithinLimit,
    /// The best quality at any loss: TSQ's Q.
    Quality,
}

/// Search for the best hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum HintLaw {
    /// By trials in pairs with a test of significance, and rest.
    Search,
    /// A level up after an interval with Qd above Qt, a level down after one below. Where both are equal their minimum, TSQ's Q, is
    /// largest.
    Balance,
    /// A level after each interval, in the direction of the last step if quality did not fall, else back.
    Climb,
}

/// Parameters of the controller. [`HintParams::new`] has the defaults for any number of hint bits; those here
/// are for four.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
#[parameters(check = check)]
pub struct HintParams {
    /// n: hints are 1 to 2^n.
    #[param(default = HintBits::PAPER, skip)]
    pub bits: HintBits,
    /// The first hint.
    #[param(
        default = HintBits::PAPER.largest(),
        range = (1, LEVELS),
        source = "the largest: what unmarked traffic has"
    )]
    pub start: Hint,
    /// Search for the best hint. `balance` and `climb` know settle, measure and least-gain alone.
    #[param(default = HintLaw::Search, source = "ours")]
    pub law: HintLaw,
    /// Time after a change of the hint in which nothing is judged.
    #[param(default = Duration::from_secs(5), range = (Duration::ZERO, MINUTE), source = "ours")]
    pub settle: Duration,
    /// Length of an interval that is judged.
    #[param(
        default = Duration::from_secs(10),
        range = (Duration::from_millis(100), Duration::from_secs(600)),
        source = "ours: above a TFRC's or TCP's own cycles"
    )]
    pub measure: Duration,
    /// The first and largest distance of a trial from the centre, in levels; at most 2^n / 2.
    #[param(default = 4, range = (1, LEVELS / 2), source = "ours: 2^n / 4")]
    pub span: u16,
    /// The smallest distance of a trial, in levels; at most span.
    #[param(
        default = 2,
        range = (1, LEVELS / 2),
        source = "ours: 2^n / 8, as one level more or less is not worth the trials"
    )]
    pub finest: u16,
    /// The most pairs of intervals in a trial. A trial that is not significant after these has failed.
    #[param(default = 6, range = (2, 100), source = "ours")]
    pub pairs: u32,
    /// Number of standard errors by which a gain must exceed 0.
    #[param(default = 2.0, range = (0.1, 10.0), source = "ours")]
    pub confidence: f64,
    /// The least gain of quality that is worth a move.
    #[param(default = 0.002, range = (0.0, 1.0), source = "ours: less is not noticeable")]
    pub least_gain: f64,
    /// The first rest when nothing near is better; at most longest-rest.
    #[param(default = MINUTE, range = (Duration::ZERO, HOUR), source = "ours")]
    pub rest: Duration,
    /// The longest rest.
    #[param(default = Duration::from_secs(240), range = (Duration::ZERO, HOUR), source = "ours")]
    pub longest_rest: Duration,
    /// Weight of the share of lost packets, which is subtracted from the quality that is judged.
    #[param(default = 0.0, range = (0.0, 10.0), source = "0: TSQ's Q")]
    pub loss_weight: f64,
    /// Goal of the controller. It matters where there is a [limit](HintControl::set_loss_limit).
    #[param(default = HintGoal::WithinLimit, skip)]
    pub goal: HintGoal,
}

/// An interval, as it was judged.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Judged {
    /// The quality, less the cost of loss.
    quality: f64,
    /// Delay quality less throughput quality.
    balance: f64,
    /// True if more was lost than the limit allows.
    is_outside: bool,
}

/// Totals of a receiver so far, as in RTCP's reports (RFC 3550 section 6.4), so that a lost report does no
/// harm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeliveryReport {
    /// Time of the report, by the receiver's clock.
    pub at: Instant,
    /// Packets received.
    pub received: u64,
    /// Payload delivered to the application, bytes.
    pub delivered_bytes: u64,
    /// The sum of the one-way delays of the packets received. Without synchronised clocks it is the sum of the queuing
    /// delays plus the known part of the path's delay.
    pub delay: Duration,
}

/// The counters of a controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HintControlStats {
    /// Number of intervals that were judged.
    pub intervals: u64,
    /// Number of trials that began.
    pub trials: u64,
    /// Number of trials that moved the centre.
    pub moves: u64,
    /// Number of alarms at rest.
    pub alarms: u64,
}

/// The controller of one flow's hint.
#[derive(Clone, Debug)]
pub struct HintControl {
    params: HintParams,
    class: Class,
    combination: Combination,
    /// The largest acceptable share of packets lost; `None` if any is.
    loss_limit: Option<f64>,
    hint: Hint,
    /// Time of the last change of the hint.
    changed: Instant,
    /// The report at which the present interval began, and the packets sent by then.
    begin: Option<(DeliveryReport, u64)>,
    search: Search,
    walk: Walk,
}

impl HintParams {
    /// Returns the defaults for hints of this many bits.
    pub fn new(bits: HintBits) -> Self {
        let levels = bits.levels();
        let (span, finest) = ((levels / 4).max(1), (levels / 8).max(1));
        Self { bits, start: bits.largest(), span, finest, ..Self::default() }
    }
}

/// Checks the parameters that limit each other.
fn check(params: &HintParams) -> Result<(), ParameterError> {
    let HintParams { bits, start, span, finest, rest, longest_rest, .. } = *params;
    let levels = bits.levels();
    within("start", start.level(), 1, levels)?;
    within("span", span, 1, (levels / 2).max(1))?;
    within("finest", finest, 1, span)?;
    within("rest", rest, Duration::ZERO, longest_rest)
}

fn within<T: Copy + PartialOrd + fmt::Display>(
    parameter: &str,
    value: T,
    low: T,
    high: T,
) -> Result<(), ParameterError> {
    if low <= value && value <= high {
        return Ok(());
    }
    Err(ParameterError::new(parameter, value, format!("from {low} to {high}")))
}

impl HintControl {
    /// A controller that begins at `now` with the hint `start`, for an application of this class.
    ///
    /// # Errors
    /// When a parameter is outside its range.
    pub fn new(
        params: &HintParams,
        class: Class,
        combination: Combination,
        now: Instant,
        mut random: RandomStream,
    ) -> Result<Self, ParameterError> {
        params.validate()?;
        // Flows that start together do not measure together.
        let lead = params.measure.mul_f64(random.uniform());
        Ok(Self {
            params: *params,
            class,
            combination,
            loss_limit: None,
            hint: params.start,
            changed: now.saturating_add(lead),
            begin: None,
            walk: Walk::new(params),
            search: Search::new(params, random),
        })
    }

    /// Sets the largest share of packets that may be lost, 0 to 1; `None` if any may be, as at first. It counts from the interval under
    /// way on, unless the [goal](HintGoal) is the quality alone.
    pub fn set_loss_limit(&mut self, limit: Option<f64>) {
        self.loss_limit = limit;
    }

    /// The hint that packets carry now.
    pub fn hint(&self) -> Hint {
        self.hint
    }

    /// The hint that trials start from, and that is kept at rest.
    pub fn centre(&self) -> Hint {
        match self.params.law {
            HintLaw::Search => Hint::from_level(self.search.centre()),
            HintLaw::Balance | HintLaw::Climb => self.hint,
        }
    }

    /// Returns whether the controller rests: no trial is under way.
    pub fn is_at_rest(&self) -> bool {
        self.search.is_at_rest()
    }

    /// The counters of a controller.
    pub fn stats(&self) -> HintControlStats {
        match self.params.law {
            HintLaw::Search => self.search.stats(),
            HintLaw::Balance | HintLaw::Climb => self.walk.stats(),
        }
    }

    /// Takes a report, by which `sent` packets had been sent in all, and returns the hint of the packets from now on. A
    /// report that is older than the one before it changes nothing.
    pub fn on_report(&mut self, now: Instant, report: &DeliveryReport, sent: u64) -> Hint {
        let Some((begin, sent_before)) = self.begin else {
            if now.saturating_since(self.changed) >= self.params.settle && now >= self.changed {
                self.begin = Some((*report, sent));
            }
            return self.hint;
        };
        if report.at.saturating_since(begin.at) < self.params.measure {
            return self.hint;
        }
        let judged = self.judge(&begin, report, sent.saturating_sub(sent_before));
        // The next interval begins here, unless the hint changes.
        self.begin = Some((*report, sent));
        let level = match self.params.law {
            HintLaw::Search => self.search.on_interval(now, judged),
            HintLaw::Balance => self.walk.balance(judged),
            HintLaw::Climb => self.walk.climb(judged),
        };
        if level != self.hint.level() {
            self.hint = Hint::from_level(level);
            self.changed = now;
            self.begin = None;
        }
        self.hint
    }

    /// The quality of the delivery between two reports (TSQ eq. 1), less the cost of loss.
    fn judge(&self, from: &DeliveryReport, to: &DeliveryReport, sent: u64) -> Judged {
        // The totals of a broken receiver may fall.
        let received = to.received.saturating_sub(from.received);
        if sent == 0 && received == 0 {
            // Nothing was sent, so there is nothing to judge.
            return Judged { quality: 1.0, balance: 0.0, is_outside: false };
        }
        let (all, lost) = (sent.max(received) as f64, sent.saturating_sub(received) as f64);
        let limit = self.loss_limit.filter(|_| self.params.goal == HintGoal::WithinLimit);
        let excess =
            limit.map_or(0.0, |limit| (lost - limit * all).max(0.0) / (limit.max(LEAST_LIMIT) * all));
        let is_outside = excess > 0.0;
        if received == 0 {
            // If all packets were lost it is the worst.
            return Judged { quality: -excess, balance: 1.0, is_outside };
        }
        let seconds = to.at.saturating_since(from.at).as_secs_f64();
        let bits = to.delivered_bytes.saturating_sub(from.delivered_bytes) as f64 * 8.0;
        let delay = Duration::from_nanos(to.delay.saturating_sub(from.delay).as_nanos() / received);
        let rate = Rate::from_bps((bits / seconds) as u64);
        let quality = self.class.quality(delay, rate, self.combination).get();
        let balance = self.class.delay_quality(delay).get() - self.class.throughput_quality(rate).get();
        Judged { quality: quality - self.params.loss_weight * lost / all - excess, balance, is_outside }
    }
}

#[cfg(test)]
mod tests;
