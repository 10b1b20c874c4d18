//! Detection of a policer: a token bucket that lets a burst pass and then drops packets above its rate.
//!
//! The largest rate of the last round trips would be that of the burst, and most data above the policer's rate would be lost.
//! So the rate is measured over intervals that begin and end with a loss. Two successive intervals with much loss and nearly the same rate
//! mean a policer, and their mean is the rate of the model for 48 round trips. Then it probes again.
//!
//! An interval has 4 to 16 round trips. Much loss is 50 lost bytes to 256 delivered. Rates are nearly the same if they differ by an eighth or
//! by 4 kbit/s.
//!
//! Worked: intervals of 100 and 110 kB/s give 105 kB/s; of 100 and 120 kB/s nothing (`two_equal_intervals_with_much_loss_mean_a_policer`).

use crate::tcp::RateSample;
use cutline_units::{Duration, Instant};

const LEAST_ROUNDS: u32 = 4;
const MOST_ROUNDS: u32 = 4 * LEAST_ROUNDS;
/// Lost to delivered, from which on a loss is much.
const MUCH: f64 = 50.0 / 256.0;
const NEAR_SHARE: f64 = 1.0 / 8.0;
/// 4 kbit/s in bytes per second.
const NEAR: f64 = 500.0;
/// Round trips for which the rate of a policer is used.
const USE_ROUNDS: u32 = 48;
const SHORTEST: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Policer {
    is_sampling: bool,
    is_found: bool,
    rounds: u32,
    /// Rate of the last interval, bytes per second; 0 if there was none.
    rate: f64,
    from: Instant,
    delivered: u64,
    lost: u64,
}

impl Policer {
    /// Returns the rate of the policer, bytes per second.
    pub(super) fn rate(&self) -> Option<f64> {
        self.is_found.then_some(self.rate)
    }

    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    fn begin_interval(&mut self, sample: &RateSample) {
        self.rounds = 0;
        (self.from, self.delivered, self.lost) = (sample.now, sample.total_delivered, sample.total_lost);
    }

    /// Takes an acknowledgement. Returns true if the policer's rate has been used long enough and probing begins again.
    pub(super) fn update(
        &mut self,
        sample: &RateSample,
        is_round: bool,
        has_losses: bool,
        probes: bool,
    ) -> bool {
        if self.is_found {
            if probes && is_round {
                self.rounds += 1;
            }
            let ends = self.rounds >= USE_ROUNDS;
            if ends {
                self.reset();
            }
            return ends;
        }
        if !self.is_sampling {
            if !has_losses {
                return false;
            }
            // A policer's bucket is empty when its first loss is seen.
            self.begin_interval(sample);
            self.is_sampling = true;
        }
        if sample.is_app_limited {
            self.reset();
            return false;
        }
        self.rounds += u32::from(is_round);
        if self.rounds > MOST_ROUNDS {
            self.reset();
        } else if self.rounds >= LEAST_ROUNDS && has_losses {
            self.end_interval(sample);
        }
        false
    }

    fn end_interval(&mut self, sample: &RateSample) {
        let lost = sample.total_lost - self.lost;
        let delivered = sample.total_delivered - self.delivered;
        let time = sample.now.saturating_since(self.from);
        if delivered == 0 || (lost as f64) < MUCH * delivered as f64 || time < SHORTEST {
            return;
        }
        let rate = delivered as f64 / time.as_secs_f64();
        let difference = (rate - self.rate).abs();
        if self.rate > 0.0 && (difference <= NEAR_SHARE * self.rate || difference <= NEAR) {
            self.rate = f64::midpoint(self.rate, rate);
            self.is_found = true;
            self.rounds = 0;
            return;
        }
        self.rate = rate;
        self.begin_interval(sample);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    /// Intervals of four round trips of 100 ms each, with this rate in bytes per second and this share of losses. Returns the rate found.
    fn found(rates: [f64; 3], share: f64) -> Option<f64> {
        let mut policer = Policer::default();
        let (mut delivered, mut lost, mut ms) = (0.0, 0.0, 1000);
        let mut ack = |delivered: f64, lost: f64, ms: u64, is_round: bool, losses: bool| {
            let totals = (delivered as u64, lost as u64);
            let sample = RateSample { total_delivered: totals.0, total_lost: totals.1, ..sample(ms) };
            policer.update(&sample, is_round, losses, true);
            policer.rate()
        };
        ack(0.0, 0.0, ms, false, true);
        let mut last = None;
        for rate in rates {
            for round in 1..=4 {
                ms += 100;
                delivered += rate / 10.0;
                lost += rate / 10.0 * share;
                last = ack(delivered, lost, ms, true, round == 4);
            }
        }
        last
    }

    #[test]
    fn two_equal_intervals_with_much_loss_mean_a_policer() {
        let rate = found([50e3, 100e3, 110e3], 0.25).unwrap();
        assert!((rate - 105e3).abs() < 1.0, "{rate}");
        assert_eq!(found([50e3, 100e3, 120e3], 0.25), None, "the rates differ by more than an eighth");
        assert_eq!(found([100e3, 100e3, 100e3], 0.1), None, "too little loss");
    }

    #[test]
    fn after_48_round_trips_it_probes_again() {
        let mut policer = Policer { is_found: true, rate: 1e5, ..Policer::default() };
        let rounds = (1..100).find(|_| policer.update(&sample(1000), true, false, true));
        assert_eq!((rounds, policer.rate()), (Some(48), None));
    }
}
