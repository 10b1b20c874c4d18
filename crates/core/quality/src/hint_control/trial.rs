//! One trial: differences of quality between the trial's level and the centre, and the test of their significance.

use super::HintParams;

/// The weight of earlier trials' variance, as a number of differences.
const PRIOR: f64 = 3.0;

/// The variance of the difference between two intervals at the same level, before any trial.
const FIRST_VARIANCE: f64 = 0.03 * 0.03;

/// The weight of a finished trial's variance in that of the noise.
const LEARNT: f64 = 0.3;

/// Finding from the pairs of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// The pairs do not decide yet.
    GoOn,
    /// The trial's level is better.
    Better,
    /// Not better, or not significantly better.
    NotBetter,
}

/// The variance of differences, as learnt from the trials so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noise {
    variance: f64,
}

/// The differences of a trial.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trial {
    n: u32,
    mean: f64,
    /// The sum of the squared deviations from the mean (Welford 1962).
    squares: f64,
}

impl Noise {
    pub(super) const fn new() -> Self {
        Self { variance: FIRST_VARIANCE }
    }

    /// Learns from a trial that has ended.
    pub(super) fn learn(&mut self, trial: &Trial) {
        if trial.n >= 2 {
            let found = trial.squares / f64::from(trial.n - 1);
            self.variance += LEARNT * (found - self.variance);
        }
    }
}

impl Trial {
    /// Adds a pair: the quality of the trial's level less that of the centre.
    pub(super) fn add(&mut self, difference: f64) {
        self.n += 1;
        let before = difference - self.mean;
        self.mean += before / f64::from(self.n);
        self.squares += before * (difference - self.mean);
    }

    /// Returns the finding from the pairs so far.
    pub(super) fn finding(&self, noise: Noise, params: &HintParams) -> Finding {
        if self.n < 2 {
            return Finding::GoOn;
        }
        let error = (self.variance(noise) / f64::from(self.n)).sqrt();
        if self.mean >= params.least_gain && self.mean > params.confidence * error {
            Finding::Better
        } else if self.mean <= 0.0 || self.n >= params.pairs {
            Finding::NotBetter
        } else {
            Finding::GoOn
        }
    }

    /// The variance of a difference: that of the sample, with that of earlier trials as `PRIOR` more differences.
    fn variance(&self, noise: Noise) -> f64 {
        (self.squares + PRIOR * noise.variance) / (f64::from(self.n) - 1.0 + PRIOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::HintBits;

    fn trial(differences: &[f64]) -> Trial {
        let mut trial = Trial::default();
        for difference in differences {
            trial.add(*difference);
        }
        trial
    }

    fn finding(differences: &[f64]) -> Finding {
        trial(differences).finding(Noise::new(), &HintParams::new(HintBits::PAPER))
    }

    #[test]
    fn one_pair_is_not_significant() {
        assert_eq!(finding(&[0.5]), Finding::GoOn);
    }

    #[test]
    fn a_clear_gain_is_found_with_two_pairs_and_a_loss_too() {
        assert_eq!(finding(&[0.06, 0.08]), Finding::Better);
        assert_eq!(finding(&[-0.01, 0.005]), Finding::NotBetter);
    }

    #[test]
    fn a_small_gain_needs_more_pairs_and_an_uncertain_one_fails() {
        assert_eq!(finding(&[0.02, 0.02]), Finding::GoOn);
        assert_eq!(finding(&[0.02; 6]), Finding::Better);
        assert_eq!(finding(&[0.06, -0.05, 0.06, -0.05, 0.06, -0.05]), Finding::NotBetter);
    }

    #[test]
    fn a_gain_below_the_threshold_does_not_count() {
        assert_eq!(finding(&[0.001; 6]), Finding::NotBetter);
        let mut noise = Noise::new();
        let trial = trial(&[0.001; 6]);
        (0..100).for_each(|_| noise.learn(&trial));
        assert_eq!(trial.finding(noise, &HintParams::new(HintBits::PAPER)), Finding::NotBetter);
    }

    /// Three differences with a sample variance of 0.0004 and a prior of 0.0009: (2 x 0.0004 + 3 x 0.0009) / 5.
    #[test]
    fn the_variance_of_a_sample_is_shrunk_towards_the_prior() {
        assert!((trial(&[0.0, 0.02, 0.04]).variance(Noise::new()) - 0.0007).abs() < 1e-12);
    }
}
