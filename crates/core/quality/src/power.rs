//! The power metric of RED-Worcester section 3: `QoS = T^alpha / D^beta` with alpha + beta = 1.
//!
//! T is throughput in bit/s, D queuing delay in s. Alpha gives the preference of an application: 1 is throughput alone,
//! 0.5 is the classic power of Giessler and others (1978), for which both matter equally, and web traffic lies between.
//! The number has no absolute scale: it is compared with that under another queue.
//!
//! Worked: T = 1 Mbit/s, D = 10 ms, alpha = 0.5: `1000 / 0.1 = 10,000`; with D = 40 ms half of that.
//!
//! A D of zero makes it infinite for every alpha below 1, as the formula says; compare means over time, in which
//! no queue is always empty.

use cutline_units::{Duration, Rate};
use std::fmt;

/// The power metric of one kind of traffic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Power {
    alpha: f64,
}

/// An alpha that is outside 0..1, or not a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerError(f64);

impl Power {
    /// Throughput-sensitive traffic: alpha = 1, so delay does not count (RED-Worcester section 3).
    pub const THROUGHPUT: Self = Self { alpha: 1.0 };
    /// Delay-sensitive traffic: alpha = beta = 0.5 (RED-Worcester section 3).
    pub const DELAY: Self = Self { alpha: 0.5 };
    /// Between the two, such as web: alpha = 0.75, the middle of the paper's 0.5..1.
    pub const BETWEEN: Self = Self { alpha: 0.75 };

    /// The metric of a given alpha.
    ///
    /// # Errors
    /// When alpha is below 0, above 1, or not a number.
    pub fn new(alpha: f64) -> Result<Self, PowerError> {
        if (0.0..=1.0).contains(&alpha) { Ok(Self { alpha }) } else { Err(PowerError(alpha)) }
    }

    /// The exponent of throughput.
    pub const fn alpha(self) -> f64 {
        self.alpha
    }

    /// The exponent of delay, 1 - alpha.
    pub const fn beta(self) -> f64 {
        1.0 - self.alpha
    }

    /// The metric of a throughput and a queuing delay.
    pub fn qos(self, throughput: Rate, queuing_delay: Duration) -> f64 {
        let (t, d) = (throughput.as_bps() as f64, queuing_delay.as_secs_f64());
        t.powf(self.alpha) / d.powf(self.beta())
    }
}

impl fmt::Display for PowerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "alpha of the power metric is from 0 to 1, not {}", self.0)
    }
}

impl std::error::Error for PowerError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_sensitive_worked_values() {
        let at = |ms| Power::DELAY.qos(Rate::from_mbps(1), Duration::from_millis(ms));
        assert!((at(10) - 10_000.0).abs() < 1e-6);
        assert!((at(40) - 5_000.0).abs() < 1e-6);
    }

    #[test]
    fn throughput_sensitive_ignores_delay() {
        for ms in [0, 1, 1000] {
            assert_eq!(Power::THROUGHPUT.qos(Rate::from_kbps(64), Duration::from_millis(ms)), 64_000.0);
        }
    }

    #[test]
    fn a_value_between_two_points_is_their_geometric_mean() {
        let (t, d) = (Rate::from_mbps(2), Duration::from_millis(30));
        let neighbours = Power::DELAY.qos(t, d) * Power::THROUGHPUT.qos(t, d);
        assert!((Power::BETWEEN.qos(t, d) / neighbours.sqrt() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn alpha_and_beta_make_one() {
        assert_eq!(Power::new(0.7).map(|p| p.alpha() + p.beta()), Ok(1.0));
        assert_eq!(
            Power::new(1.5).unwrap_err().to_string(),
            "alpha of the power metric is from 0 to 1, not 1.5"
        );
    }
}
