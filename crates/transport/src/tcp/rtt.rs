//! The round-trip time and the retransmission timeout (RFC 6298).
//!
//! With the first sample R: `SRTT = R`, `RTTVAR = R / 2`. With each further sample R':
//! `RTTVAR = 3/4 RTTVAR + 1/4 |SRTT - R'|`, then `SRTT = 7/8 SRTT + 1/8 R'`.
//! `RTO = SRTT + max(G, 4 RTTVAR)`, G or what [`Variant::least_variation`](super::Variant::least_variation) says if that is more, kept within `min_rto..max_rto`; it doubles at each timeout.
//!
//! Worked: samples of 100 ms and 140 ms give SRTT 105 ms, RTTVAR 47.5 ms, RTO 295 ms (before `min_rto`).
//!
//! Karn's rule is not needed, since timestamps tell which transmission is acknowledged (RFC 7323).

use cutline_units::Duration;

use super::Params;

/// SRTT, RTTVAR and RTO of one connection.
#[derive(Clone, Copy, Debug)]
pub struct RttEstimator {
    srtt: Duration,
    rttvar: Duration,
    rto: Duration,
}

impl RttEstimator {
    /// No sample yet: the timeout is the initial one.
    pub const fn new(params: &Params) -> Self {
        Self { srtt: Duration::ZERO, rttvar: Duration::ZERO, rto: params.initial_rto }
    }

    /// The smoothed round-trip time; zero before the first sample.
    pub const fn srtt(&self) -> Duration {
        self.srtt
    }

    /// The variation of the round-trip time.
    pub const fn rttvar(&self) -> Duration {
        self.rttvar
    }

    /// The retransmission timeout, with its backoff.
    pub const fn rto(&self) -> Duration {
        self.rto
    }

    /// Takes a sample in; a backed-off timeout falls back to what the samples say.
    pub fn sample(&mut self, sample: Duration, params: &Params) {
        let r = rounded(sample, params.clock_granularity);
        if self.srtt.is_zero() {
            // RFC 6298 2.2
            self.srtt = r;
            self.rttvar = r / 2;
        } else {
            // RFC 6298 2.3: RTTVAR first, with the old SRTT.
            self.rttvar = weighted(self.rttvar, self.srtt.abs_diff(r), 4);
            self.srtt = weighted(self.srtt, r, 8);
        }
        let least = params.clock_granularity.max(params.variant.least_variation);
        let rto = self.srtt + (self.rttvar * 4).max(least);
        // RFC 6298 2.4, 2.5
        self.rto = rto.clamp(params.min_rto, params.max_rto);
    }

    /// The timer has run out: RFC 6298 5.5.
    pub fn back_off(&mut self, params: &Params) {
        self.rto = (self.rto * 2).min(params.max_rto);
    }
}

/// `old` moved by one `n`th of the way to `new`.
fn weighted(old: Duration, new: Duration, n: u64) -> Duration {
    (old * (n - 1) + new) / n
}

/// To the nearest tick, and at least one.
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
        // RFC 6298 2.2: SRTT = R, RTTVAR = R/2, RTO = SRTT + 4 RTTVAR.
        assert_eq!((first.srtt(), first.rttvar()), (Duration::from_millis(100), Duration::from_millis(50)));
        assert_eq!(first.rto(), Duration::from_millis(300));
        let second = after(&[100, 140], &params);
        // RFC 6298 2.3
        assert_eq!(second.rttvar(), Duration::from_micros(47_500));
        assert_eq!(second.srtt(), Duration::from_millis(105));
        assert_eq!(second.rto(), Duration::from_millis(295));
    }

    #[test]
    fn a_second_at_least_and_a_minute_at_most() {
        let params = Params::default();
        // RFC 6298 2.1, 2.4, 2.5
        assert_eq!(RttEstimator::new(&params).rto(), Duration::from_secs(1));
        assert_eq!(after(&[100], &params).rto(), Duration::from_secs(1));
        assert_eq!(after(&[50_000], &params).rto(), Duration::from_secs(60));
    }

    #[test]
    fn a_steady_round_trip_leaves_the_granularity() {
        let params = Params { clock_granularity: Duration::from_millis(10), ..no_floor() };
        // RFC 6298 2.3: max(G, K RTTVAR), and samples in ticks of G: 104 ms is 100 ms.
        let rtt = after(&[104; 200], &params);
        assert_eq!(rtt.rto(), Duration::from_millis(110));
    }

    #[test]
    fn a_steady_round_trip_leaves_ns_2_three_ticks() {
        let rtt = after(&[300; 200], &Params::ns2());
        assert_eq!(rtt.rto(), Duration::from_millis(330));
    }

    #[test]
    fn backing_off_doubles_up_to_the_maximum_and_a_sample_ends_it() {
        let params = Params::default();
        let mut rtt = after(&[100], &params);
        let doubled: Vec<u64> = (0..8)
            .map(|_| {
                rtt.back_off(&params);
                rtt.rto().as_nanos() / 1_000_000_000
            })
            .collect();
        // RFC 6298 5.5, 2.5
        assert_eq!(doubled, [2, 4, 8, 16, 32, 60, 60, 60]);
        rtt.sample(Duration::from_millis(100), &params);
        assert_eq!(rtt.rto(), Duration::from_secs(1));
    }
}
