//! The distributions that sizes and times are drawn from.

use cutline_units::RandomStream;
use rand_distr::{Distribution as _, Exp1, StandardNormal};

use crate::error::require;
use cutline_params::ParameterError;

/// A distribution of positive numbers: bytes, seconds or counts, as the field that holds it says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Always the same.
    Fixed(f64),
    /// Exponential.
    Exponential {
        /// Mean, over 0.
        mean: f64,
    },
    /// Lognormal: `exp(mu + sigma N(0, 1))`.
    Lognormal {
        /// Mean of the logarithm.
        mu: f64,
        /// Standard deviation of the logarithm, over 0, at most 10.
        sigma: f64,
    },
    /// Pareto: `P(X > x) = (scale / x)^shape`. Its mean is infinite for shapes up to 1.
    Pareto {
        /// Shape, over 0; 1..2 gives heavy tails.
        shape: f64,
        /// Least value, over 0.
        scale: f64,
    },
    /// Pareto cut off at both ends.
    BoundedPareto {
        /// Shape, over 0.
        shape: f64,
        /// Least value, over 0.
        min: f64,
        /// Greatest value, over `min`.
        max: f64,
    },
}

impl Distribution {
    /// A Pareto distribution by its mean; `shape` must be over 1.
    pub fn pareto_with_mean(shape: f64, mean: f64) -> Self {
        Self::Pareto { shape, scale: mean * (shape - 1.0) / shape }
    }

    /// Checks the parameters; `field` is what holds the distribution.
    pub(crate) fn validate(&self, field: &'static str) -> Result<(), ParameterError> {
        let positive = |x: f64| x > 0.0 && x.is_finite();
        let value = format!("{self:?}");
        match *self {
            Self::Fixed(x) => require(x >= 0.0 && x.is_finite(), field, value, "a number from 0"),
            Self::Exponential { mean } => require(positive(mean), field, value, "a mean over 0"),
            Self::Lognormal { mu, sigma } => {
                let holds = mu.is_finite() && positive(sigma) && sigma <= 10.0;
                require(holds, field, value, "a finite mu and a sigma over 0, at most 10")
            }
            Self::Pareto { shape, scale } => {
                require(positive(shape) && positive(scale), field, value, "shape and scale over 0")
            }
            Self::BoundedPareto { shape, min, max } => {
                let holds = positive(shape) && positive(min) && max > min && max.is_finite();
                require(holds, field, value, "shape over 0 and 0 < min < max")
            }
        }
    }

    /// One draw.
    pub fn sample(&self, rng: &mut RandomStream) -> f64 {
        match *self {
            Self::Fixed(x) => x,
            Self::Exponential { mean } => {
                let unit: f64 = Exp1.sample(rng);
                mean * unit
            }
            Self::Lognormal { mu, sigma } => {
                let unit: f64 = StandardNormal.sample(rng);
                (mu + sigma * unit).exp()
            }
            Self::Pareto { shape, scale } => scale * (1.0 - rng.uniform()).powf(-1.0 / shape),
            Self::BoundedPareto { shape, min, max } => {
                // The inverse of the distribution function.
                let cut = 1.0 - (min / max).powf(shape);
                min * (1.0 - rng.uniform() * cut).powf(-1.0 / shape)
            }
        }
    }

    /// The mean; infinite for a Pareto whose shape is at most 1.
    pub fn mean(&self) -> f64 {
        match *self {
            Self::Fixed(x) => x,
            Self::Exponential { mean } => mean,
            Self::Lognormal { mu, sigma } => (mu + sigma * sigma / 2.0).exp(),
            Self::Pareto { shape, .. } if shape <= 1.0 => f64::INFINITY,
            Self::Pareto { shape, scale } => shape * scale / (shape - 1.0),
            Self::BoundedPareto { shape, min, max } => bounded_pareto_mean(shape, min, max),
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
    use cutline_units::Streams;

    fn sample_mean(distribution: Distribution, n: u32) -> f64 {
        let mut rng = Streams::new(3).stream("test", "distribution");
        (0..n).map(|_| distribution.sample(&mut rng)).sum::<f64>() / f64::from(n)
    }

    #[test]
    fn draws_have_the_mean_they_should() {
        for distribution in [
            Distribution::Fixed(3.0),
            Distribution::Exponential { mean: 1.004 },
            Distribution::Lognormal { mu: 1.0, sigma: 0.5 },
            Distribution::pareto_with_mean(3.0, 12.0),
            Distribution::BoundedPareto { shape: 1.2, min: 1e3, max: 1e5 },
            Distribution::BoundedPareto { shape: 1.0, min: 1e3, max: 1e5 },
        ] {
            let ratio = sample_mean(distribution, 200_000) / distribution.mean();
            assert!((ratio - 1.0).abs() < 0.03, "{distribution:?}: {ratio}");
        }
    }

    #[test]
    fn a_bounded_pareto_keeps_its_bounds() {
        let distribution = Distribution::BoundedPareto { shape: 1.1, min: 10.0, max: 1000.0 };
        let mut rng = Streams::new(3).stream("test", "bounds");
        assert!((0..10_000).all(|_| (10.0..=1000.0).contains(&distribution.sample(&mut rng))));
    }

    #[test]
    fn bad_parameters_are_refused() {
        for bad in [
            Distribution::Fixed(-1.0),
            Distribution::Exponential { mean: 0.0 },
            Distribution::Lognormal { mu: 0.0, sigma: f64::NAN },
            Distribution::Pareto { shape: 1.5, scale: 0.0 },
            Distribution::BoundedPareto { shape: 1.5, min: 5.0, max: 5.0 },
        ] {
            assert_eq!(bad.validate("size").unwrap_err().parameter, "size", "{bad:?}");
        }
    }
}
