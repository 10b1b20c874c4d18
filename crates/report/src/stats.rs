//! Statistics over replications: mean and confidence interval, ratios of pairs, distributions.
//!
//! A simulation is repeated with n seeds, which gives n independent values of each measure. Their mean is
//! normal enough for the interval of Student's t (Law, Simulation Modeling and Analysis, 5th ed., eq. 4.12):
//!
//! ```text
//! mean ± t(n-1, 0.975) s / sqrt(n),  s² = sum((x - mean)²) / (n - 1)
//! ```
//!
//! Two systems that run with the same seeds are compared pair by pair (Law, section 10.2.1): the ratio of each
//! seed's two values, then mean and interval of these ratios. What varies with the seed alone cancels.
//!
//! Worked: 1, 2, 3, 4, 5 has mean 3, s = 1.5811, t(4, 0.975) = 2.7764, so 3 ± 1.9633.

mod cdf;
mod comparison;
mod estimate;

pub use cdf::Cdf;
pub use comparison::{Comparison, Pairing};
pub use estimate::{Estimate, t_quantile_975};
