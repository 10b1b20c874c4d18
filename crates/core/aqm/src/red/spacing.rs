//! Spacing of hits.

use cutline_params::Choice;
use cutline_units::Probability;

/// Spacing of hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Spacing {
    /// Uniformly over 1 to 1 / p - 1 (Floyd and Jacobson 1993 figure 2).
    Uniform,
    /// Uniformly over 1 / p to 2 / p - 1, as ns-2 does by default.
    Wait,
    /// Each packet for itself: geometrically.
    None,
}

impl Spacing {
    /// p_a of the packet that is the `count`-th since the last hit (uniform: Floyd and Jacobson 1993 eq. 4).
    #[inline]
    pub(super) fn probability(self, p_b: f64, count: f64) -> Probability {
        let passed = count * p_b;
        Probability::clamped(match self {
            _ if p_b <= 0.0 => 0.0,
            Self::Uniform if passed < 1.0 => p_b / (1.0 - passed),
            Self::Wait if passed < 1.0 => 0.0,
            Self::Wait if passed < 2.0 => p_b / (2.0 - passed),
            Self::Uniform | Self::Wait => 1.0,
            Self::None => p_b,
        })
    }
}
