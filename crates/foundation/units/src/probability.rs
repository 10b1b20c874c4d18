//! Probabilities: numbers from 0 to 1.

use std::fmt;

/// A number in 0..=1. NaN cannot be one.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Probability(f64);

/// Reason why a number is not a probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbabilityError(f64);

impl Probability {
    /// The probability 0.
    pub const ZERO: Self = Self(0.0);
    /// The probability 1.
    pub const ONE: Self = Self(1.0);

    /// `p` if it lies in 0..=1.
    ///
    /// # Errors
    /// When `p` is below 0, above 1, or not a number.
    pub fn new(p: f64) -> Result<Self, ProbabilityError> {
        if (0.0..=1.0).contains(&p) { Ok(Self(p)) } else { Err(ProbabilityError(p)) }
    }

    /// The nearest probability to `p`. NaN becomes 0.
    #[inline]
    pub const fn clamped(p: f64) -> Self {
        if p >= 1.0 {
            Self::ONE
        } else if p > 0.0 {
            Self(p)
        } else {
            Self::ZERO
        }
    }

    /// The number.
    #[inline]
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for ProbabilityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a probability is from 0 to 1, not {}", self.0)
    }
}

impl std::error::Error for ProbabilityError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_zero_to_one() {
        assert!(Probability::new(0.0).is_ok() && Probability::new(1.0).is_ok());
        for bad in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert!(Probability::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn clamping_cuts_off() {
        assert_eq!(Probability::clamped(-3.0), Probability::ZERO);
        assert_eq!(Probability::clamped(7.0), Probability::ONE);
        assert_eq!(Probability::clamped(f64::NAN), Probability::ZERO);
        assert_eq!(Probability::clamped(0.25).get(), 0.25);
    }
}
