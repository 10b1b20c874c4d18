//! The distributions that sizes, times and counts are drawn from.

#[cfg(feature = "sampling")]
use crate::RandomStream;
#[cfg(feature = "sampling")]
use rand_distr::{Distribution as _, Exp1, StandardNormal};
use std::fmt;

/// The largest standard deviation of a lognormal's logarithm: beyond it draws are zero or without bounds.
const MOST_SIGMA: f64 = 10.0;

/// A distribution of positive numbers: bytes, seconds or counts, as defined by its owner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Always the same.
    Fixed(f64),
    /// Exponential.
    Exponential {
        /// Mean, over 0.
        mean: f64,
    },
    /// Lognormal: `median exp(sigma N(0, 1))`.
    Lognormal {
        /// Median, over 0: e to the mean of the logarithm.
        median: f64,
        /// Standard deviation of the logarithm, over 0, at most 10.
        sigma: f64,
    },
    /// Pareto: `P(X > x) = (minimum / x)^shape`, cut off at the maximum if there is one.
    Pareto {
        /// Least value, over 0.
        minimum: f64,
        /// Shape, over 0; 1..2 gives heavy tails. Without a maximum the mean is infinite for shapes up to 1.
        shape: f64,
        /// Greatest value, over the minimum; `None`: there is none.
        maximum: Option<f64>,
    },
}

impl Distribution {
    /// A Pareto distribution without a maximum by its mean; `shape` must be over 1.
    pub fn pareto_with_mean(shape: f64, mean: f64) -> Self {
        Self::Pareto { minimum: mean * (shape - 1.0) / shape, shape, maximum: None }
    }

    /// The parameters in the unit of the drawn values: all but shapes.
    pub fn quantities(&self) -> impl Iterator<Item = f64> {
        let (first, second) = match *self {
            Self::Fixed(value) => (value, None),
            Self::Exponential { mean } => (mean, None),
            Self::Lognormal { median, .. } => (median, None),
            Self::Pareto { minimum, maximum, .. } => (minimum, maximum),
        };
        [first].into_iter().chain(second)
    }

    /// Returns whether the parameters describe a distribution of positive numbers.
    pub fn is_sound(&self) -> bool {
        let positive = |x: f64| x > 0.0 && x.is_finite();
        match *self {
            Self::Fixed(x) => x >= 0.0 && x.is_finite(),
            Self::Exponential { mean } => positive(mean),
            Self::Lognormal { median, sigma } => positive(median) && positive(sigma) && sigma <= MOST_SIGMA,
            Self::Pareto { minimum, shape, maximum } => {
                positive(minimum)
                    && positive(shape)
                    && maximum.is_none_or(|most| most > minimum && most.is_finite())
            }
        }
    }

    /// Returns a draw.
    #[cfg(feature = "sampling")]
    pub fn sample(&self, rng: &mut RandomStream) -> f64 {
        match *self {
            Self::Fixed(x) => x,
            Self::Exponential { mean } => {
                let unit: f64 = Exp1.sample(rng);
                mean * unit
            }
            Self::Lognormal { median, sigma } => {
                let unit: f64 = StandardNormal.sample(rng);
                (median.ln() + sigma * unit).exp()
            }
            Self::Pareto { minimum, shape, maximum: None } => {
                minimum * (1.0 - rng.uniform()).powf(-1.0 / shape)
            }
            Self::Pareto { minimum, shape, maximum: Some(maximum) } => {
                // The inverse of the distribution function.
                let cut = 1.0 - (minimum / maximum).powf(shape);
                minimum * (1.0 - rng.uniform() * cut).powf(-1.0 / shape)
            }
        }
    }

    /// The mean; infinite for a Pareto without a maximum whose shape is at most 1.
    pub fn mean(&self) -> f64 {
        match *self {
            Self::Fixed(x) => x,
            Self::Exponential { mean } => mean,
            Self::Lognormal { median, sigma } => (median.ln() + sigma * sigma / 2.0).exp(),
            Self::Pareto { minimum, shape, maximum: Some(maximum) } => {
                bounded_pareto_mean(shape, minimum, maximum)
            }
            Self::Pareto { shape, .. } if shape <= 1.0 => f64::INFINITY,
            Self::Pareto { minimum, shape, maximum: None } => shape * minimum / (shape - 1.0),
        }
    }

    /// Returns the lower bound of all draws; `None` for distributions that begin at 0.
    pub const fn least(&self) -> Option<f64> {
        match *self {
            Self::Fixed(least) | Self::Pareto { minimum: least, .. } => Some(least),
            Self::Exponential { .. } | Self::Lognormal { .. } => None,
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(value) => value.fmt(f),
            Self::Exponential { mean } => write!(f, "exponential with mean {mean}"),
            Self::Lognormal { median, sigma } => write!(f, "lognormal with median {median}, sigma {sigma}"),
            Self::Pareto { minimum, shape, maximum } => {
                write!(f, "Pareto with minimum {minimum}, shape {shape}")?;
                maximum.map_or(Ok(()), |maximum| write!(f, ", maximum {maximum}"))
            }
        }
    }
}

fn bounded_pareto_mean(shape: f64, min: f64, max: f64) -> f64 {
    let density = shape * min.powf(shape) / (1.0 - (min / max).powf(shape));
    if (shape - 1.0).abs() < 1e-9 {
        density * (max / min).ln()
    } else {
        density * (max.powf(1.0 - shape) - min.powf(1.0 - shape)) / (1.0 - shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Streams;

    fn bounded(minimum: f64, shape: f64, maximum: f64) -> Distribution {
        Distribution::Pareto { minimum, shape, maximum: Some(maximum) }
    }

    fn sample_mean(distribution: Distribution, n: u32) -> f64 {
        let mut rng = Streams::new(3).stream("test", "distribution");
        (0..n).map(|_| distribution.sample(&mut rng)).sum::<f64>() / f64::from(n)
    }

    #[test]
    fn draws_have_the_mean_they_should() {
        for distribution in [
            Distribution::Fixed(3.0),
            Distribution::Exponential { mean: 1.004 },
            Distribution::Lognormal { median: 1_f64.exp(), sigma: 0.5 },
            Distribution::pareto_with_mean(3.0, 12.0),
            bounded(1e3, 1.2, 1e5),
            bounded(1e3, 1.0, 1e5),
        ] {
            let ratio = sample_mean(distribution, 200_000) / distribution.mean();
            assert!((ratio - 1.0).abs() < 0.03, "{distribution:?}: {ratio}");
        }
    }

    #[test]
    fn a_bounded_pareto_keeps_its_bounds() {
        let distribution = bounded(10.0, 1.1, 1000.0);
        let mut rng = Streams::new(3).stream("test", "bounds");
        assert!((0..10_000).all(|_| (10.0..=1000.0).contains(&distribution.sample(&mut rng))));
    }

    #[test]
    fn only_sound_parameters_make_a_distribution() {
        for bad in [
            Distribution::Fixed(-1.0),
            Distribution::Exponential { mean: 0.0 },
            Distribution::Lognormal { median: 1.0, sigma: f64::NAN },
            Distribution::Lognormal { median: 1.0, sigma: 10.1 },
            Distribution::Pareto { minimum: 0.0, shape: 1.5, maximum: None },
            bounded(5.0, 1.5, 5.0),
        ] {
            assert!(!bad.is_sound(), "{bad:?}");
        }
        assert!(Distribution::Fixed(0.0).is_sound() && bounded(5.0, 1.5, 6.0).is_sound());
    }

    #[test]
    fn a_distribution_is_described_by_its_parameters() {
        assert_eq!(Distribution::Fixed(160.0).to_string(), "160");
        assert_eq!(bounded(5.0, 1.5, 6.0).to_string(), "Pareto with minimum 5, shape 1.5, maximum 6");
        assert_eq!(bounded(5.0, 1.5, 6.0).quantities().collect::<Vec<_>>(), [5.0, 6.0]);
    }
}
