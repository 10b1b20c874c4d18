//! Laws without trials: one level after each interval, or none.

use super::{HintControlStats, HintParams, Judged};

/// The state of `balance` and `climb`.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    level: u16,
    most: u16,
    least_gain: f64,
    /// The direction of the last step of `climb`, and the quality before it.
    rises: bool,
    before: Option<f64>,
    stats: HintControlStats,
}

impl Walk {
    pub(super) fn new(params: &HintParams) -> Self {
        Self {
            level: params.start.level(),
            most: params.bits.levels(),
            least_gain: params.least_gain,
            rises: false,
            before: None,
            stats: HintControlStats::default(),
        }
    }

    pub(super) fn stats(&self) -> HintControlStats {
        self.stats
    }

    /// The level after an interval that ended so: up if delay is the better of the two qualities, down if throughput is.
    pub(super) fn balance(&mut self, judged: Judged) -> u16 {
        if judged.balance.abs() < self.least_gain {
            self.stats.intervals += 1;
            return self.level;
        }
        self.step(judged.balance > 0.0)
    }

    /// The level after an interval that ended so: on in the same direction, or back if quality fell.
    pub(super) fn climb(&mut self, judged: Judged) -> u16 {
        let has_fallen = self.before.is_some_and(|before| judged.quality < before - self.least_gain);
        // At either end there is only one way.
        let is_at_end = self.level == if self.rises { self.most } else { 1 };
        self.rises ^= has_fallen || is_at_end;
        self.before = Some(judged.quality);
        self.step(self.rises)
    }

    fn step(&mut self, rises: bool) -> u16 {
        let level = if rises { (self.level + 1).min(self.most) } else { self.level.saturating_sub(1).max(1) };
        self.stats.intervals += 1;
        self.stats.moves += u64::from(level != self.level);
        self.level = level;
        level
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(quality: f64, balance: f64) -> Judged {
        Judged { quality, balance, is_outside: false }
    }

    #[test]
    fn balance_goes_where_both_qualities_are_the_same() {
        let mut walk = Walk::new(&HintParams::default());
        // Delay quality is 1 - level / 20, throughput quality level / 20: they meet at 10.
        for _ in 0..40 {
            let level = f64::from(walk.level);
            walk.balance(judged(0.0, 1.0 - level / 10.0));
        }
        assert_eq!(walk.level, 10);
        assert_eq!(walk.stats().moves, 6, "from 16");
    }

    #[test]
    fn the_climber_continues_while_quality_rises_and_turns_when_it_falls() {
        let mut walk = Walk::new(&HintParams::default());
        // A hill with its top at 7.
        let hill = |level: u16| 1.0 - (f64::from(level) - 7.0).abs() / 20.0;
        let levels: Vec<u16> = (0..30).map(|_| walk.climb(judged(hill(walk.level), 0.0))).collect();
        assert_eq!(levels[..9], [15, 14, 13, 12, 11, 10, 9, 8, 7]);
        assert!(levels[9..].iter().all(|level| (5..=9).contains(level)), "{levels:?}");
    }

    #[test]
    fn neither_leaves_the_levels() {
        let mut walk = Walk::new(&HintParams::default());
        (0..40).for_each(|_| assert!((1..=16).contains(&walk.balance(judged(0.0, -1.0)))));
        assert_eq!(walk.level, 1);
        (0..40).for_each(|_| assert!((1..=16).contains(&walk.climb(judged(0.5, 0.0)))));
        (0..40).for_each(|_| {
            walk.balance(judged(0.0, 1.0));
        });
        assert_eq!(walk.level, 16);
    }
}
