//! Statistics over replications: mean and confidence interval, ratios of pairs, distributions.
//!
//! A simulation is repeated with n seeds, which gives n independent values of each measure. Their mean is approximately
//! normally distributed, so its confidence interval is that of Student's t (Law, Simulation Modeling and Analysis, 5th
//! ed., eq. 4.12):
//!
//! ```text
//! mean ± t(n-1, 0.975) s / sqrt(n),  s² = sum((x - mean)²) / (n - 1)
//! ```
//!
//! Two systems that run with the same seeds are compared in pairs (Law, section 10.2.1): the ratio of the two values is
//! taken for each seed, then the mean and the interval of these ratios. The variation between seeds cancels.
//!
//! Worked numbers: 1, 2, 3, 4, 5 have mean 3, s = 1.5811 and t(4, 0.975) = 2.7764. The interval is 3 ± 1.9633.

mod cdf;
mod comparison;
mod estimate;
mod holm;
mod rounding;

pub use cdf::Cdf;
pub use comparison::{Comparison, Pairing};
pub use estimate::{Estimate, t_quantile_975};
pub use holm::holm;
pub use rounding::{decimals, significant};
