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
//! | parameter | unit | range | default | from |
//! | --- | --- | --- | --- | --- |
//! | `start` | level | 1..2^n | the largest | what unmarked traffic has |
//! | `settle` | time | 0..60 s | 5 s | ours: after a change of the hint, reports of so long are not judged |
//! | `measure` | time | 100 ms..600 s | 10 s | ours: the interval that is judged, above a TFRC's or TCP's own cycles |
//! | `span` | levels | 1..2^n / 2 | 2^n / 4 | ours: the first and largest distance of a trial |
//! | `finest` | levels | 1..`span` | 2^n / 8 | ours: one level more or less is not worth the trials |
//! | `pairs` | | 2..100 | 6 | ours: after so many pairs a trial that is not significant has failed |
//! | `confidence` | | 0.1..10 | 2 | ours: standard errors |
//! | `least_gain` | quality | 0..1 | 0.002 | ours: nobody would notice less |
//! | `rest`, `longest_rest` | time | 0..1 h | 60 s, 240 s | ours |
//! | `loss_weight` | | 0..10 | 0 | ours: what is judged is Q - `loss_weight` times the share lost; 0 is TSQ's Q |
//!
//! The throughput of a TFRC follows its loss with a memory of eight loss intervals (RFC 5348 section 5.4), ten seconds and
//! more, while the delay changes at once. So a trial of a smaller hint looks better than it is when `settle` and `measure`
//! are short: they are what decides about the resting point's bias.

mod search;
mod trial;
mod watch;

use crate::{Class, Combination};
use cutline_units::{Duration, Hint, HintBits, Instant, RandomStream, Rate};
use search::Search;
use std::fmt;

/// What can be set; see the table above.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HintParams {
    /// n: hints are 1 to 2^n.
    pub bits: HintBits,
    /// The first hint.
    pub start: Hint,
    /// How long after a change of the hint nothing is judged.
    pub settle: Duration,
    /// How long an interval is that is judged.
    pub measure: Duration,
    /// The largest distance of a trial from the centre, levels.
    pub span: u16,
    /// The smallest, levels.
    pub finest: u16,
    /// The most pairs of a trial.
    pub pairs: u32,
    /// How many standard errors above 0 a gain must be.
    pub confidence: f64,
    /// The least gain worth a move, quality.
    pub least_gain: f64,
    /// The first rest.
    pub rest: Duration,
    /// The longest rest.
    pub longest_rest: Duration,
    /// What is judged is Q - this times the share of packets lost.
    pub loss_weight: f64,
}

/// A parameter outside its range.
#[derive(Clone, Debug, PartialEq)]
pub struct HintParamError {
    /// The parameter's name.
    pub field: &'static str,
    /// The value it had.
    pub value: String,
    /// What it may be.
    pub allowed: String,
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
        Self {
            bits,
            start: bits.largest(),
            settle: Duration::from_secs(5),
            measure: Duration::from_secs(10),
            span: (levels / 4).max(1),
            finest: (levels / 8).max(1),
            pairs: 6,
            confidence: 2.0,
            least_gain: 0.002,
            rest: Duration::from_secs(60),
            longest_rest: Duration::from_secs(240),
            loss_weight: 0.0,
        }
    }

    /// Whether every parameter is in its range.
    ///
    /// # Errors
    /// The first that is not.
    pub fn validate(&self) -> Result<(), HintParamError> {
        let levels = self.bits.levels();
        let (tenth, ten_minutes) = (Duration::from_millis(100), Duration::from_secs(600));
        let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3600));
        within("start", self.start.level(), 1, levels)?;
        within("settle", self.settle, Duration::ZERO, minute)?;
        within("measure", self.measure, tenth, ten_minutes)?;
        within("span", self.span, 1, (levels / 2).max(1))?;
        within("finest", self.finest, 1, self.span)?;
        within("pairs", self.pairs, 2, 100)?;
        within("confidence", self.confidence, 0.1, 10.0)?;
        within("least-gain", self.least_gain, 0.0, 1.0)?;
        within("longest-rest", self.longest_rest, Duration::ZERO, hour)?;
        within("rest", self.rest, Duration::ZERO, self.longest_rest)?;
        within("loss-weight", self.loss_weight, 0.0, 10.0)
    }
}

/// Whether `low <= value <= high`; NaN is not.
fn within<T: Copy + PartialOrd + fmt::Display>(
    field: &'static str,
    value: T,
    low: T,
    high: T,
) -> Result<(), HintParamError> {
    if low <= value && value <= high {
        return Ok(());
    }
    Err(HintParamError { field, value: value.to_string(), allowed: format!("from {low} to {high}") })
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
    ) -> Result<Self, HintParamError> {
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

impl fmt::Display for HintParamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}: allowed is {}", self.field, self.value, self.allowed)
    }
}

impl std::error::Error for HintParamError {}

#[cfg(test)]
mod tests;
