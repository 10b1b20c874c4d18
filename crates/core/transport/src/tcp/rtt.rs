//! The round-trip time and the retransmission timeout (RFC 6298).
//!
//! The first sample R sets `SRTT = R` and `RTTVAR = R / 2`. Each further sample R' sets
//! `RTTVAR = 3/4 RTTVAR + 1/4 |SRTT - R'|`, and then `SRTT = 7/8 SRTT + 1/8 R'`.
//!
//! `RTO = SRTT + max(G, 4 RTTVAR)`, kept within `min_rto..=max_rto`. G is the granularity of the clock, or
//! [`Variant::least_variation`](super::Variant::least_variation) if that is more. Each timeout doubles the RTO.
//!
//! Worked: samples of 100 ms and 140 ms give SRTT 105 ms, RTTVAR 47.5 ms, RTO 295 ms (before `min_rto`).
//!
//! *Peaks* ([`RttSampling::Peaks`](super::RttSampling::Peaks)): samples of each acknowledgement would let RTTVAR forget within a window.
//! Linux keeps a short average of the deviation, `4 mdev = 3/4 (4 mdev) + |SRTT - R'|`, in which a sample that is shorter than SRTT by more
//! than the average counts an eighth. The variation 4 RTTVAR follows a peak of it at once, and falls by a quarter of the
//! difference to the largest one of each round trip, which is at least
//! [`Variant::least_variation`](super::Variant::least_variation).
//!
//! Karn's algorithm (RFC 6298 section 3) is needed only without timestamps: a timestamp identifies the transmission that
//! is acknowledged. The sender applies it with [`RttSampling::OneSegment`](super::RttSampling::OneSegment).

use cutline_units::{Duration, Instant};

use super::Params;

/// The SRTT, RTTVAR and RTO of one connection.
#[derive(Clone, Copy, Debug)]
pub struct RttEstimator {
    srtt: Duration,
    rttvar: Duration,
    rto: Duration,
}

/// The state for [peaks](super::RttSampling::Peaks), which other samples do not need.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Peaks {
    /// Four times the short average of the deviation.
    deviation: Duration,
    /// The largest one of this round trip.
    peak: Duration,
    /// Time at which this round trip began.
    round_from: Instant,
}

impl Peaks {
    /// Returns whether the echo of a segment that left at `echo` begins a new round trip at `now`.
    pub(super) fn begins_round(&mut self, now: Instant, echo: Instant) -> bool {
        let begins = echo >= self.round_from;
        if begins {
            self.round_from = now;
        }
        begins
    }
}

impl RttEstimator {
    /// Creates an estimator without samples. Its timeout is the initial one (RFC 6298 section 2.1).
    pub const fn new(params: &Params) -> Self {
        let zero = Duration::ZERO;
        Self { srtt: zero, rttvar: zero, rto: params.initial_rto }
    }

    /// Returns the smoothed round-trip time; zero before the first sample.
    pub const fn srtt(&self) -> Duration {
        self.srtt
    }

    /// Returns the variation of the round-trip time.
    pub const fn rttvar(&self) -> Duration {
        self.rttvar
    }

    /// Returns the retransmission timeout, including its backoff.
    pub const fn rto(&self) -> Duration {
        self.rto
    }

    /// Adds a sample. This ends a backoff: the timeout is again the one that the samples give.
    pub fn sample(&mut self, sample: Duration, params: &Params) {
        let r = rounded(sample, params.clock_granularity);
        if self.srtt.is_zero() {
            // RFC 6298 section 2.2
            self.srtt = r;
            self.rttvar = r / 2;
        } else {
            // RTTVAR is first, with the old SRTT (RFC 6298 section 2.3).
            self.rttvar = weighted(self.rttvar, self.srtt.abs_diff(r), 4);
            self.srtt = weighted(self.srtt, r, 8);
        }
        let least = params.clock_granularity.max(params.variant.least_variation);
        let rto = self.srtt + (self.rttvar * 4).max(least);
        // RFC 6298 sections 2.4 and 2.5
        self.rto = rto.clamp(params.min_rto, params.max_rto);
    }

    /// Adds a sample, and follows the peaks of the deviation. `is_new_round` is true if a round trip has passed since it was last true.
    pub(super) fn sample_peak(
        &mut self,
        sample: Duration,
        is_new_round: bool,
        peaks: &mut Peaks,
        params: &Params,
    ) {
        let r = rounded(sample, params.clock_granularity);
        let least = params.clock_granularity.max(params.variant.least_variation);
        let mut variation = self.rttvar * 4;
        if self.srtt.is_zero() {
            (self.srtt, peaks.deviation) = (r, r * 2);
            variation = peaks.deviation.max(least);
            peaks.peak = variation;
        } else {
            let error = self.srtt.abs_diff(r);
            let mean = peaks.deviation / 4;
            // A round trip that becomes shorter is no reason to wait longer.
            let counts = if r < self.srtt && error > mean { mean + (error - mean) / 8 } else { error };
            peaks.deviation = peaks.deviation - mean + counts;
            self.srtt = weighted(self.srtt, r, 8);
            peaks.peak = peaks.peak.max(peaks.deviation);
            variation = variation.max(peaks.peak);
            if is_new_round {
                variation -= (variation - peaks.peak.min(variation)) / 4;
                peaks.peak = least;
            }
        }
        self.rttvar = variation / 4;
        self.rto = (self.srtt + variation).clamp(params.min_rto, params.max_rto);
    }

    /// Doubles the timeout after the timer has expired (RFC 6298 section 5.5).
    pub fn back_off(&mut self, params: &Params) {
        self.rto = (self.rto * 2).min(params.max_rto);
    }
}

/// Returns the average of `old` with weight `n - 1` and `new` with weight 1.
fn weighted(old: Duration, new: Duration, n: u64) -> Duration {
    (old * (n - 1) + new) / n
}

/// Rounds to the nearest tick, and to at least one.
fn rounded(sample: Duration, tick: Duration) -> Duration {
    let ticks = (sample.as_nanos() + tick.as_nanos() / 2) / tick.as_nanos();
    tick * ticks.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(samples_ms: &[u64], params: &Params) -> RttEstimator {
        let mut rtt = RttEstimator::new(params);
        for &ms in samples_ms {
            rtt.sample(Duration::from_millis(ms), params);
        }
        rtt
    }

    fn no_floor() -> Params {
        Params { min_rto: Duration::from_millis(1), ..Params::default() }
    }

    #[test]
    fn the_worked_numbers() {
        let params = no_floor();
        let first = after(&[100], &params);
        // RFC 6298 section 2.2: SRTT = R, RTTVAR = R/2, RTO = SRTT + 4 RTTVAR.
        assert_eq!((first.srtt(), first.rttvar()), (Duration::from_millis(100), Duration::from_millis(50)));
        assert_eq!(first.rto(), Duration::from_millis(300));
        let second = after(&[100, 140], &params);
        // RFC 6298 section 2.3: RTTVAR = 3/4 * 50 + 1/4 * 40, SRTT = 7/8 * 100 + 1/8 * 140.
        assert_eq!(second.rttvar(), Duration::from_micros(47_500));
        assert_eq!(second.srtt(), Duration::from_millis(105));
        assert_eq!(second.rto(), Duration::from_millis(295));
    }

    #[test]
    fn the_timeout_is_between_a_second_and_a_minute() {
        let params = Params::default();
        // RFC 6298 section 2.1: 1 s before the first sample.
        assert_eq!(RttEstimator::new(&params).rto(), Duration::from_secs(1));
        // RFC 6298 section 2.4: 300 ms are rounded up to 1 s.
        assert_eq!(after(&[100], &params).rto(), Duration::from_secs(1));
        // RFC 6298 section 2.5: 150 s are limited to 60 s.
        assert_eq!(after(&[50_000], &params).rto(), Duration::from_secs(60));
    }

    #[test]
    fn a_constant_round_trip_adds_the_granularity() {
        let params = Params { clock_granularity: Duration::from_millis(10), ..no_floor() };
        // RFC 6298 section 2.3: max(G, K RTTVAR) is G. Samples are in ticks of G, so 104 ms counts as 100 ms.
        let rtt = after(&[104; 200], &params);
        assert_eq!(rtt.rto(), Duration::from_millis(110));
    }

    #[test]
    fn a_constant_round_trip_adds_three_ticks_in_ns_2() {
        let rtt = after(&[300; 200], &Params::ns2());
        assert_eq!(rtt.rto(), Duration::from_millis(330));
    }

    #[test]
    fn the_timeout_follows_a_peak_at_once_and_falls_slowly() {
        let least_variation = Duration::from_millis(200);
        let variant = crate::tcp::Variant { least_variation, ..crate::tcp::Variant::default() };
        let params = Params { variant, ..no_floor() };
        let (mut rtt, mut peaks) = (RttEstimator::new(&params), Peaks::default());
        let mut sample = |rtt: &mut RttEstimator, time, is_new_round| {
            rtt.sample_peak(time, is_new_round, &mut peaks, &params);
        };
        let ms = Duration::from_millis;
        // The first deviation is twice the sample: 100 + 200.
        sample(&mut rtt, ms(100), true);
        assert_eq!(rtt.rto(), ms(300));
        for _ in 0..100 {
            sample(&mut rtt, ms(100), true);
        }
        assert_eq!(rtt.rto(), ms(300), "never below the least variation");
        // 400 ms: SRTT 137.5 ms, and the deviation is 300 ms.
        sample(&mut rtt, ms(400), false);
        // Samples are rounded to whole milliseconds.
        let near = |time: Duration, us| time.abs_diff(Duration::from_micros(us)) < ms(1);
        assert!(near(rtt.srtt(), 137_500) && near(rtt.rto(), 437_500), "{rtt:?}");
        // Within the round trip, samples of SRTT change nothing but the average.
        for _ in 0..20 {
            sample(&mut rtt, Duration::from_micros(137_500), false);
        }
        assert!(near(rtt.rto(), 437_500), "{rtt:?}");
        // The first round has had the peak; the next one, of 200 ms, takes a quarter of the difference.
        for expected in [437_500, 412_500] {
            sample(&mut rtt, Duration::from_micros(137_500), true);
            assert!(near(rtt.rto(), expected), "{rtt:?}");
        }
    }

    #[test]
    fn backoff_doubles_the_timeout_up_to_the_maximum_and_a_sample_ends_it() {
        let params = Params::default();
        let mut rtt = after(&[100], &params);
        let doubled: Vec<u64> = (0..8)
            .map(|_| {
                rtt.back_off(&params);
                rtt.rto().as_nanos() / 1_000_000_000
            })
            .collect();
        // RFC 6298 section 5.5: doubled each time, and limited as in RFC 6298 section 2.5.
        assert_eq!(doubled, [2, 4, 8, 16, 32, 60, 60, 60]);
        // RFC 6298 section 5: a new sample ends the backoff.
        rtt.sample(Duration::from_millis(100), &params);
        assert_eq!(rtt.rto(), Duration::from_secs(1));
    }
}
