//! The search: which level is tried next, when the centre moves, when it rests.

use super::trial::{Finding, Noise, Trial};
use super::watch::{Cusum, Expected};
use super::{HintControlStats, HintParams, Judged};
use cutline_units::{Duration, Instant, RandomStream};

/// A side of the centre.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Below,
    Above,
}

/// The state of the search.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// The first interval, at the centre: nothing is compared with it yet.
    Begin,
    /// A level is compared with the centre.
    Trying(Comparison),
    /// Nothing is tried.
    Resting { until: Instant, alarm: Cusum },
}

/// A trial under way.
#[derive(Clone, Copy, Debug)]
struct Comparison {
    level: u16,
    trial: Trial,
    /// True if the running interval is at the trial's level, not at the centre.
    at_level: bool,
    /// The quality of the pair's first interval.
    first: Option<f64>,
    /// True if an interval was outside the limit of the loss. Such intervals differ more than others.
    was_outside: bool,
}

/// The search of one flow.
#[derive(Clone, Debug)]
pub(super) struct Search {
    params: HintParams,
    random: RandomStream,
    centre: u16,
    span: u16,
    /// The side to try next.
    side: Side,
    /// Number of sides of this centre that have failed with this span, or need no trial.
    failed: u8,
    phase: Phase,
    next_rest: Duration,
    noise: Noise,
    expected: Expected,
    stats: HintControlStats,
}

impl Search {
    pub(super) fn new(params: &HintParams, mut random: RandomStream) -> Self {
        let side = if random.uniform() < 0.5 { Side::Below } else { Side::Above };
        Self {
            params: *params,
            random,
            centre: params.start.level(),
            span: params.span,
            side,
            failed: 0,
            phase: Phase::Begin,
            next_rest: params.rest,
            noise: Noise::new(),
            expected: Expected::default(),
            stats: HintControlStats::default(),
        }
    }

    pub(super) fn centre(&self) -> u16 {
        self.centre
    }

    pub(super) fn is_at_rest(&self) -> bool {
        matches!(self.phase, Phase::Resting { .. })
    }

    pub(super) fn stats(&self) -> HintControlStats {
        self.stats
    }

    /// Takes an interval that has ended, and returns the level of the next one.
    pub(super) fn on_interval(&mut self, now: Instant, judged: Judged) -> u16 {
        self.stats.intervals += 1;
        match self.phase {
            Phase::Begin => {
                self.expected.add(judged.quality);
                self.try_next(now)
            }
            Phase::Trying(comparison) => self.compare(now, comparison, judged),
            Phase::Resting { until, alarm } => self.watch(now, until, alarm, judged),
        }
    }

    /// An interval of a pair has ended.
    fn compare(&mut self, now: Instant, mut comparison: Comparison, judged: Judged) -> u16 {
        let Judged { quality, is_outside, .. } = judged;
        comparison.was_outside |= is_outside;
        if !comparison.at_level {
            self.expected.add(quality);
        } else if is_outside && comparison.level < self.centre {
            return self.turn(now, &comparison);
        }
        let Some(first) = comparison.first else {
            comparison.first = Some(quality);
            comparison.at_level = !comparison.at_level;
            return self.go_on(comparison);
        };
        let gain = if comparison.at_level { quality - first } else { first - quality };
        comparison.trial.add(gain);
        match comparison.trial.finding(self.noise, &self.params) {
            Finding::GoOn => self.next_pair(comparison),
            Finding::Better => self.move_to(now, &comparison),
            Finding::NotBetter => self.turn(now, &comparison),
        }
    }

    /// Begins the next trial, or rests.
    fn try_next(&mut self, now: Instant) -> u16 {
        while self.failed < 2 {
            let level = self.level_at(self.side);
            if level != self.centre {
                self.stats.trials += 1;
                return self.next_pair(Comparison {
                    level,
                    trial: Trial::default(),
                    at_level: true,
                    first: None,
                    was_outside: false,
                });
            }
            self.failed += 1;
            self.side = self.side.other();
        }
        if self.span > self.params.finest {
            self.span = (self.span / 2).max(self.params.finest);
            self.failed = 0;
            return self.try_next(now);
        }
        self.rest(now)
    }

    /// The level on a side of the centre, as far as there is one.
    fn level_at(&self, side: Side) -> u16 {
        match side {
            Side::Below => self.centre.saturating_sub(self.span).max(1),
            Side::Above => (self.centre + self.span).min(self.params.bits.levels()),
        }
    }

    /// Begins a pair, in an order that is drawn.
    fn next_pair(&mut self, comparison: Comparison) -> u16 {
        let at_level = self.random.uniform() < 0.5;
        self.go_on(Comparison { at_level, first: None, ..comparison })
    }

    fn go_on(&mut self, comparison: Comparison) -> u16 {
        self.phase = Phase::Trying(comparison);
        if comparison.at_level { comparison.level } else { self.centre }
    }

    /// The trial's level is better: it becomes the centre, and the span doubles. The old centre needs no trial.
    fn move_to(&mut self, now: Instant, comparison: &Comparison) -> u16 {
        self.learn(comparison);
        self.stats.moves += 1;
        self.centre = comparison.level;
        self.span = (self.span * 2).min(self.params.span);
        self.failed = 1;
        self.expected = Expected::default();
        self.next_rest = self.params.rest;
        self.try_next(now)
    }

    /// The trial's level is not better: tries the other side or a smaller span, or rests.
    fn turn(&mut self, now: Instant, comparison: &Comparison) -> u16 {
        self.learn(comparison);
        self.failed += 1;
        self.side = self.side.other();
        self.try_next(now)
    }

    /// Updates the noise with intervals within the limit.
    fn learn(&mut self, comparison: &Comparison) {
        if !comparison.was_outside {
            self.noise.learn(&comparison.trial);
        }
    }

    fn rest(&mut self, now: Instant) -> u16 {
        let until = now.saturating_add(self.next_rest);
        self.next_rest = (self.next_rest + self.next_rest).min(self.params.longest_rest);
        self.phase = Phase::Resting { until, alarm: Cusum::default() };
        self.centre
    }

    /// At rest: searches again if quality has changed, or the rest is over.
    fn watch(&mut self, now: Instant, until: Instant, mut alarm: Cusum, judged: Judged) -> u16 {
        let Judged { quality, is_outside, .. } = judged;
        if alarm.add(self.expected.surprise(quality)) {
            self.stats.alarms += 1;
            self.span = self.params.span;
            self.next_rest = self.params.rest;
            self.expected = Expected::default();
            if is_outside {
                self.side = Side::Above;
            }
            return self.look_again(now);
        }
        self.expected.add(quality);
        if now >= until {
            return self.look_again(now);
        }
        self.phase = Phase::Resting { until, alarm };
        self.centre
    }

    fn look_again(&mut self, now: Instant) -> u16 {
        self.failed = 0;
        self.try_next(now)
    }
}

impl Side {
    const fn other(self) -> Self {
        match self {
            Self::Below => Self::Above,
            Self::Above => Self::Below,
        }
    }
}
