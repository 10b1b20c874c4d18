//! A controller that finds an application's delay hint: it tries hints, judges what comes of them, keeps the better.
//!
//! The TSQ paper (section 5) leaves to the future "applications that adapt their hint to the quality they get". What
//! the best hint is depends on everybody else: quality by hint is a hill (TSQ figure 10), whose place moves with the
//! load. The hill is flat at the top, steep towards small hints, and what is measured of it in some seconds is off by as
//! much as several levels are worth. So the controller is a direct search with a test of significance:
//!
//! - **Compass search** (Hooke and Jeeves 1961): from the centre c try c - s and c + s. Move to what is better and go on
//!   that way with twice the span s; where neither side is better halve it; at the finest span rest.
//! - **Pairs, in random order** (Fisher's blocks; as in PCC, Dong et al. 2015): a trial is judged by the differences of
//!   quality between intervals at the trial and intervals at the centre beside them, so that what changes slowly falls
//!   out of them. The order within a pair is drawn: others who adapt at the same time do not try in step, and what they do
//!   is noise instead of bias. A pair is a finite difference as in Kiefer and Wolfowitz 1952.
//! - **No move without a significant gain**: the mean difference must be at least `least_gain`, and `confidence` standard
//!   errors above 0. The error is that of the pairs, shrunk towards what earlier trials had (with two or three pairs a
//!   sample's own is worth little). A trial ends early when after two pairs its mean is not above 0.
//! - **Rest and wake**: at rest the hint stands still and quality is watched with a two-sided CUSUM (Page 1954: half a
//!   deviation of slack, alarm at five). An alarm means that the hill has moved: search anew with the largest span.
//!   Without one it looks again after `rest`, which doubles each time it has found nothing, up to `longest_rest`.
//!
//! Stochastic approximation proper (Kiefer-Wolfowitz, SPSA) and extremum seeking have smaller steps every time and a
//! gradient; here there are a dozen levels, a hill with a kink, whose two sides differ ten times in steepness (a pair on
//! either side of the top points the wrong way), and the top moves. A law without trials, "raise the hint while Qd > Qt",
//! would be faster, and wrong for whoever is not limited by the network: a codec of 64 kbit/s has a Qt of 0.83 whatever
//! it does.
//!
//! The controller sees what a receiver can report and a sender can count, nothing else: see [`Report`]. It has no clock
//! and no timer; reports drive it.
//!
//! The throughput of a TFRC follows its loss with a memory of eight loss intervals (RFC 5348 section 5.4), ten seconds and
//! more, while the delay changes at once. So a trial of a smaller hint looks better than it is when `settle` and `measure`
//! are short: they are what decides about the resting point's bias.

mod search;
mod trial;
mod watch;

use crate::{Class, Combination};
use cutline_params::{ParameterError, Parameters};
use cutline_units::{Duration, Hint, HintBits, Instant, RandomStream, Rate};
use search::Search;
use std::fmt;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
/// Levels of 8 bits, the most there are.
const LEVELS: u64 = 256;

/// What can be set. [`HintParams::new`] has the defaults for any number of hint bits; those here are for four.
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
    /// How long after a change of the hint nothing is judged.
    #[param(default = Duration::from_secs(5), range = (Duration::ZERO, MINUTE), source = "ours")]
    pub settle: Duration,
    /// How long an interval is that is judged.
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
    /// The most pairs of intervals in a trial: one that is not significant after so many has failed.
    #[param(default = 6, range = (2, 100), source = "ours")]
    pub pairs: u32,
    /// How many standard errors a gain must be above 0.
    #[param(default = 2.0, range = (0.1, 10.0), source = "ours")]
    pub confidence: f64,
    /// The least gain of quality that is worth a move.
    #[param(default = 0.002, range = (0.0, 1.0), source = "ours: nobody would notice less")]
    pub least_gain: f64,
    /// The first rest when nothing near is better; at most longest-rest.
    #[param(default = MINUTE, range = (Duration::ZERO, HOUR), source = "ours")]
    pub rest: Duration,
    /// The longest rest.
    #[param(default = Duration::from_secs(240), range = (Duration::ZERO, HOUR), source = "ours")]
    pub longest_rest: Duration,
    /// What is judged is the quality less this times the share of packets lost.
    #[param(default = 0.0, range = (0.0, 10.0), source = "0: TSQ's Q")]
    pub loss_weight: f64,
}

/// What a receiver has got so far and the sender has sent: totals, as in RTCP's reports (RFC 3550 section 6.4), so that
/// a report that is lost loses nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// When the receiver made it, by its own clock.
    pub at: Instant,
    /// Packets received.
    pub received: u64,
    /// Payload delivered to the application, bytes.
    pub delivered_bytes: u64,
    /// The sum of the one-way delays of the packets received. Without synchronised clocks: of the queuing delays, and
    /// what is known of the path's own delay on top.
    pub delay: Duration,
}

/// What has been counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HintStats {
    /// Intervals judged.
    pub intervals: u64,
    /// Trials begun.
    pub trials: u64,
    /// Trials that led to a move of the centre.
    pub moves: u64,
    /// Alarms at rest.
    pub alarms: u64,
}

/// The controller of one flow's hint.
#[derive(Clone, Debug)]
pub struct HintControl {
    params: HintParams,
    class: Class,
    combination: Combination,
    hint: Hint,
    /// When the hint was set.
    changed: Instant,
    /// The report, and the packets sent by then, from which on is judged.
    begin: Option<(Report, u64)>,
    search: Search,
}

impl HintParams {
    /// The defaults for hints of so many bits.
    pub fn new(bits: HintBits) -> Self {
        let levels = bits.levels();
        let (span, finest) = ((levels / 4).max(1), (levels / 8).max(1));
        Self { bits, start: bits.largest(), span, finest, ..Self::default() }
    }
}

/// What the number of levels, and the other parameters, allow.
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
        // Who starts together does not measure together.
        let lead = params.measure.mul_f64(random.uniform());
        Ok(Self {
            params: *params,
            class,
            combination,
            hint: params.start,
            changed: now.saturating_add(lead),
            begin: None,
            search: Search::new(params, random),
        })
    }

    /// The hint that packets bear now.
    pub fn hint(&self) -> Hint {
        self.hint
    }

    /// The hint that trials go out from, and that is kept at rest.
    pub fn centre(&self) -> Hint {
        Hint::from_level(self.search.centre())
    }

    /// Whether the hint stands still.
    pub fn is_at_rest(&self) -> bool {
        self.search.is_at_rest()
    }

    /// What has been counted.
    pub fn stats(&self) -> HintStats {
        self.search.stats()
    }

    /// A report has come, and `sent` packets have left so far: the hint of the packets from now on. A report older than
    /// one before it changes nothing.
    pub fn on_report(&mut self, now: Instant, report: &Report, sent: u64) -> Hint {
        let Some((begin, sent_before)) = self.begin else {
            if now.saturating_since(self.changed) >= self.params.settle && now >= self.changed {
                self.begin = Some((*report, sent));
            }
            return self.hint;
        };
        if report.at.saturating_since(begin.at) < self.params.measure {
            return self.hint;
        }
        let quality = self.judge(&begin, report, sent.saturating_sub(sent_before));
        // What follows is judged from here on, unless the hint changes.
        self.begin = Some((*report, sent));
        let level = self.search.on_interval(now, quality);
        if level != self.hint.level() {
            self.hint = Hint::from_level(level);
            self.changed = now;
            self.begin = None;
        }
        self.hint
    }

    /// The quality of what was received between two reports (TSQ eq. 1), less what loss costs.
    fn judge(&self, from: &Report, to: &Report, sent: u64) -> f64 {
        // A receiver that counts backwards is broken, but must not break us.
        let received = to.received.saturating_sub(from.received);
        if received == 0 {
            // Nothing to say about who sent nothing; the worst for whose packets are all lost.
            return if sent == 0 { 1.0 } else { 0.0 };
        }
        let seconds = to.at.saturating_since(from.at).as_secs_f64();
        let bits = to.delivered_bytes.saturating_sub(from.delivered_bytes) as f64 * 8.0;
        let delay = Duration::from_nanos(to.delay.saturating_sub(from.delay).as_nanos() / received);
        let quality = self.class.quality(delay, Rate::from_bps((bits / seconds) as u64), self.combination);
        let lost = (1.0 - received as f64 / sent.max(1) as f64).max(0.0);
        quality.get() - self.params.loss_weight * lost
    }
}

#[cfg(test)]
mod tests;
