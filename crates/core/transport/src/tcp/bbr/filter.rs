//! Filters and random numbers of both versions of BBR.

use cutline_units::{Duration, Instant, Rate};

/// Largest value of the last `N` round trips. It is exact: it keeps the largest value of each round trip.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundMax<const N: usize> {
    /// Largest value of a round trip, at its number modulo N.
    values: [f64; N],
    round: u64,
}

impl<const N: usize> Default for RoundMax<N> {
    fn default() -> Self {
        Self { values: [0.0; N], round: 0 }
    }
}

impl<const N: usize> RoundMax<N> {
    /// Adds a value of a round trip, which is not earlier than that of the last value.
    pub(super) fn add(&mut self, round: u64, value: f64) {
        for passed in (self.round + 1..=round).take(N) {
            self.values[(passed % N as u64) as usize] = 0.0;
        }
        self.round = round;
        let place = &mut self.values[(round % N as u64) as usize];
        *place = place.max(value);
    }

    /// Returns the largest value of the last N round trips up to that of the last value.
    pub(super) fn max(&self) -> f64 {
        self.values.iter().fold(0.0, |most, value| value.max(most))
    }

    /// Returns the largest value of the round trip of the last value.
    pub(super) fn last(&self) -> f64 {
        self.values[(self.round % N as u64) as usize]
    }
}

/// Returns a number from 0 to 1 that depends on the time and on nothing else, so that runs repeat: the output function of
/// `SplitMix64`. Flows whose acknowledgements arrive at different nanoseconds draw different numbers.
pub(super) fn draw(now: Instant) -> f64 {
    let mut bits = now.as_nanos().wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Returns the rate of so many bytes per second, from 1 kbit/s to 1 Tbit/s.
pub(super) fn rate(bytes_per_second: f64) -> Rate {
    Rate::from_bps((bytes_per_second * 8.0).round().clamp(1e3, 1e12) as u64)
}

/// Returns the bytes that a rate in bytes per second delivers in this time.
pub(super) fn volume(bytes_per_second: f64, time: Duration) -> f64 {
    bytes_per_second * time.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_forgotten_after_its_round_trips() {
        let mut filter = RoundMax::<10>::default();
        filter.add(3, 7.0);
        filter.add(4, 5.0);
        filter.add(12, 4.0);
        assert_eq!((filter.max(), filter.last()), (7.0, 4.0));
        filter.add(13, 1.0);
        assert_eq!(filter.max(), 5.0, "round 3 is more than nine round trips ago");
        filter.add(100, 2.0);
        assert_eq!(filter.max(), 2.0);
    }

    #[test]
    fn draws_are_spread_and_repeat() {
        let draws = (0..1000).map(|n| draw(Instant::from_nanos(n * 1_000_000)));
        let (mean, least) = draws.fold((0.0, 1.0_f64), |(sum, least), x| (sum + x / 1000.0, least.min(x)));
        assert!((mean - 0.5).abs() < 0.05 && least < 0.01, "{mean} {least}");
        assert_eq!(draw(Instant::from_nanos(5)).to_bits(), draw(Instant::from_nanos(5)).to_bits());
    }
}
