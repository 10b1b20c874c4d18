//! The clock offset of a connection, from all of its exchanges.
//!
//! Each exchange bounds the offset on both sides: it is at most T2 - T1, since the first message took some time, and at least
//! T3 - T4. The estimator keeps the tightest bound of each side, which are often of different exchanges: the fastest message of
//! each direction. The estimate is the middle of the bounds; its error is half of their distance. So it is never worse than
//! NTP's estimate from the exchange with the shortest round trip.
//!
//! Clocks drift, so a bound loosens with its age: by [`ClockParams::drift`] times it. All loosen alike, so a bound that is
//! tighter than another stays so, and the estimator has to remember one of each side.
//!
//! Bounds that exclude each other show that a clock was set or drifts faster: the computer was suspended, for example. Then
//! the latest exchange counts alone.

use super::{ClockEstimate, ClockOffset, Exchange};
use cutline_params::{ParameterError, Parameters};
use cutline_units::{Duration, Instant};

/// Parameters of the estimation of a clock's offset.
#[derive(Clone, Debug, PartialEq, Parameters)]
pub struct ClockParams {
    /// Largest drift between the clocks.
    #[param(
        default = 100.0,
        range = (0.0, 1000.0),
        unit = "ppm",
        source = "ours: two crystals of 50 ppm each; RFC 5905's PHI of 15 ppm is for clocks that are disciplined"
    )]
    pub drift: f64,
    /// Precision of a time stamp.
    #[param(
        default = Duration::from_micros(5),
        range = (Duration::ZERO, Duration::from_millis(100)),
        source = "ours: the kernel's stamps are of another clock and converted"
    )]
    pub precision: Duration,
}

/// The offset of the peer's clock, from exchanges.
#[derive(Clone, Debug)]
pub struct OffsetEstimator {
    params: ClockParams,
    bounds: Option<Bounds>,
    round_trip: Duration,
    steps: u64,
}

/// The tightest bounds of the offset.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    low: Bound,
    high: Bound,
}

/// A bound of the offset: its value, ns, and the time of its measurement.
#[derive(Clone, Copy, Debug)]
struct Bound {
    ns: i64,
    at: Instant,
}

impl OffsetEstimator {
    /// An estimator without an exchange.
    ///
    /// # Errors
    /// When a parameter is not allowed.
    pub fn new(params: ClockParams) -> Result<Self, ParameterError> {
        params.validate()?;
        Ok(Self { params, bounds: None, round_trip: Duration::ZERO, steps: 0 })
    }

    /// Takes an exchange. One whose times are impossible changes nothing.
    pub fn add(&mut self, exchange: &Exchange) {
        let Some((low, high)) = exchange.bounds() else { return };
        let precision = self.params.precision.as_nanos() as i64;
        let new = Bounds {
            low: Bound { ns: low.saturating_sub(precision), at: exchange.returned },
            high: Bound { ns: high.saturating_add(precision), at: exchange.sent },
        };
        let now = exchange.returned;
        self.round_trip = Duration::from_nanos(high.abs_diff(low));
        self.bounds = Some(match self.bounds {
            None => new,
            Some(old) => {
                let tightest = Bounds {
                    low: if self.low(new.low, now) > self.low(old.low, now) { new.low } else { old.low },
                    high: if self.high(new.high, now) < self.high(old.high, now) {
                        new.high
                    } else {
                        old.high
                    },
                };
                if self.low(tightest.low, now) <= self.high(tightest.high, now) {
                    tightest
                } else {
                    self.steps += 1;
                    new
                }
            }
        });
    }

    /// Returns the offset at `now` and its error; `None` before the first exchange. The round trip is that of the latest
    /// exchange.
    pub fn estimate(&self, now: Instant) -> Option<ClockEstimate> {
        let Bounds { low, high } = self.bounds?;
        let (low, high) = (self.low(low, now), self.high(high, now));
        Some(ClockEstimate {
            offset: ClockOffset::from_nanos(low.midpoint(high)),
            error: Duration::from_nanos(high.abs_diff(low).div_ceil(2)),
            round_trip: self.round_trip,
        })
    }

    /// Returns the number of times that a clock was set, or drifted faster than it may, as exchanges show.
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    fn low(&self, bound: Bound, now: Instant) -> i64 {
        bound.ns.saturating_sub_unsigned(self.drifted(bound, now))
    }

    fn high(&self, bound: Bound, now: Instant) -> i64 {
        bound.ns.saturating_add_unsigned(self.drifted(bound, now))
    }

    /// Returns the largest possible drift between the clocks since a bound was measured, ns.
    fn drifted(&self, bound: Bound, now: Instant) -> u64 {
        (now.saturating_since(bound.at).as_nanos() as f64 * self.params.drift * 1e-6).ceil() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_params::{ParameterValue, conformance};
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn estimator(drift: f64) -> OffsetEstimator {
        OffsetEstimator::new(ClockParams { drift, precision: Duration::ZERO }).unwrap()
    }

    /// An exchange that begins at `sent` with an offset, and takes `forward` and `reverse`; all in ns.
    fn exchange(sent: u64, offset: i64, forward: u64, reverse: u64) -> Exchange {
        let received = sent + forward;
        let there = |ours: u64| Instant::from_nanos(ours.saturating_add_signed(offset));
        Exchange {
            sent: Instant::from_nanos(sent),
            received: there(received),
            replied: there(received),
            returned: Instant::from_nanos(received + reverse),
        }
    }

    #[test]
    fn the_parameters_are_described_and_bad_ones_refused() {
        let parameters = ClockParams::describe();
        let make = |values: &[(&str, ParameterValue)]| {
            ClockParams::from_values(values.iter().map(|(name, value)| (*name, value.clone())))
                .map(|params| params.values())
        };
        conformance::parameters_are_complete("clock", &parameters);
        conformance::defaults_are_what_the_description_says("clock", &parameters, &make);
        conformance::bad_parameters_are_refused_by_name("clock", &parameters, &make);
    }

    #[test]
    fn the_fastest_message_of_each_direction_counts() {
        let mut estimator = estimator(0.0);
        assert_eq!(estimator.estimate(Instant::ZERO), None);
        // 2 ms and 20 ms: an offset between 100 - 20 and 100 + 2 ms.
        estimator.add(&exchange(0, 100 * MS as i64, 2 * MS, 20 * MS));
        let found = estimator.estimate(Instant::ZERO).unwrap();
        assert_eq!((found.offset.as_nanos(), found.error.as_nanos()), (91 * MS as i64, 11 * MS));
        // 30 ms and 4 ms: at least 100 - 4 ms. The shorter round trip alone would give an error of 11 ms.
        estimator.add(&exchange(500 * MS, 100 * MS as i64, 30 * MS, 4 * MS));
        let found = estimator.estimate(Instant::ZERO).unwrap();
        assert_eq!((found.offset.as_nanos(), found.error.as_nanos()), (99 * MS as i64, 3 * MS));
        assert_eq!(found.round_trip, Duration::from_millis(34));
    }

    #[test]
    fn an_estimate_loosens_by_the_drift_until_there_is_a_newer_one() {
        let mut estimator = estimator(100.0);
        estimator.add(&exchange(0, 0, MS, MS));
        // 100 ppm of 10 s is 1 ms on each side. The lower bound is 2 ms younger.
        let found = estimator.estimate(Instant::from_nanos(10_000 * MS)).unwrap();
        assert_eq!((found.offset.as_nanos(), found.error.as_nanos()), (100, 2 * MS - 100));
        // A round trip of 3 ms is better than one of 2 ms that is 10 s old.
        estimator.add(&exchange(10_000 * MS, 0, 3 * MS / 2, 3 * MS / 2));
        let found = estimator.estimate(Instant::from_nanos(10_003 * MS)).unwrap();
        assert_eq!(found.error.as_nanos(), 3 * MS / 2 + 150);
    }

    #[test]
    fn a_clock_that_was_set_is_followed() {
        let mut estimator = estimator(100.0);
        estimator.add(&exchange(0, 0, MS, MS));
        estimator.add(&exchange(10_000 * MS, -5_000 * (MS as i64), MS, 2 * MS));
        let found = estimator.estimate(Instant::from_nanos(10_003 * MS)).unwrap();
        assert_eq!(estimator.steps(), 1);
        assert!(found.offset.as_nanos().abs_diff(-5_000 * (MS as i64)) <= found.error.as_nanos());
        let impossible = Exchange { sent: Instant::from_nanos(9), ..exchange(0, 0, 1, 1) };
        estimator.add(&impossible);
        assert_eq!(estimator.estimate(Instant::from_nanos(10_003 * MS)), Some(found));
    }

    proptest! {
        /// The true offset is within the error at all times while the clocks drift no faster than they may, and the error
        /// is never above that of the best single exchange.
        #[test]
        fn the_true_offset_is_within_the_error(
            trips in prop::collection::vec((0_u64..50 * MS, 0_u64..50 * MS), 1..40), drift_ppm in -100_i64..=100, ahead in -(1_i64 << 40)..1 << 40,
        ) {
            let mut estimator = estimator(101.0);
            let offset = |at: u64| ahead + at as i64 / 1_000_000 * drift_ppm;
            for (number, (forward, reverse)) in trips.into_iter().enumerate() {
                let sent = (1 << 42) + number as u64 * 500 * MS;
                let (received, returned) = (sent + forward, sent + forward + reverse);
                let there = |ours: u64| Instant::from_nanos(ours.saturating_add_signed(offset(ours)));
                estimator.add(&Exchange {
                    sent: Instant::from_nanos(sent),
                    received: there(received),
                    replied: there(received),
                    returned: Instant::from_nanos(returned),
                });
                for age in [0, 400 * MS] {
                    let found = estimator.estimate(Instant::from_nanos(returned + age)).unwrap();
                    let off = found.offset.as_nanos().abs_diff(offset(returned + age));
                    // Rounding of the offset in this test is 100 ns.
                    prop_assert!(off <= found.error.as_nanos() + 100, "{found:?} is off by {off}");
                    // Half the round trip, and 101 ppm of the time since it was measured.
                    let aged = (forward + reverse + age) as f64 * 101e-6;
                    let alone = (forward + reverse).div_ceil(2) + aged.ceil() as u64 + 1;
                    prop_assert!(found.error.as_nanos() <= alone);
                }
            }
            prop_assert_eq!(estimator.steps(), 0);
        }

        #[test]
        fn no_times_cause_a_panic(times: Vec<[u64; 4]>, now: u64) {
            let mut estimator = estimator(1000.0);
            for times in times {
                let [sent, received, replied, returned] = times.map(Instant::from_nanos);
                estimator.add(&Exchange { sent, received, replied, returned });
                let _ = estimator.estimate(Instant::from_nanos(now));
            }
        }
    }
}
