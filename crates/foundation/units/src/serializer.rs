//! The exact time a link takes to put bytes on the wire, packet after packet.
//!
//! A link of rate r sends one bit in 10^9 / r nanoseconds, which is seldom whole. The fraction of a nanosecond that a
//! packet leaves over is carried to the next packet. So a busy link sends exactly at its rate.

use crate::{Bytes, Duration, Instant, Rate};

/// A rate as a divisor: exact division in the time of a multiplication.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    rate: Rate,
    /// 1 / rate, in s/bit, rounded.
    inverse: f64,
}

/// Time at which a wire becomes free, with the remainder of the division by the rate. The rate is a separate
/// [`Pace`], because many links share one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Line {
    free_at: Instant,
    /// Transmission time of the last packet beyond `free_at`, in bit-nanoseconds: always less than the rate.
    remainder: u64,
}

/// A transmitter: a line and its pace.
#[derive(Clone, Copy, Debug)]
pub struct Serializer {
    pace: Pace,
    line: Line,
}

/// A number of bit-nanoseconds below this may be divided by way of floating point.
const SMALL: u64 = 1 << 50;
/// Added to a number below 2^52, this leaves the nearest integer in the mantissa.
const TO_INTEGER: f64 = (1_u64 << 52) as f64;

impl Pace {
    /// The pace of a link of this rate, which must not be zero.
    pub const fn new(rate: Rate) -> Self {
        assert!(rate.as_bps() > 0, "a rate of zero never sends anything");
        Self { rate, inverse: 1.0 / rate.as_bps() as f64 }
    }

    /// The rate.
    pub const fn rate(self) -> Rate {
        self.rate
    }

    /// Returns the transmission time of `size` on a link of 1 bit/s, in nanoseconds.
    #[inline]
    pub const fn bit_nanos(size: Bytes) -> u64 {
        size.get() * 8_000_000_000
    }

    /// `bit_nanos` divided by the rate: whole nanoseconds, and the remainder.
    ///
    /// Below 2^50 the product with the rounded inverse is off by less than 1/4; rounded to an integer it is the
    /// quotient or one more, and the remainder's sign tells which.
    #[inline]
    pub const fn divide(self, bit_nanos: u64) -> (u64, u64) {
        let rate = self.rate.as_bps();
        if bit_nanos >= SMALL {
            return (bit_nanos / rate, bit_nanos % rate);
        }
        let product = bit_nanos as i64 as f64 * self.inverse;
        let rounded = (product + TO_INTEGER).to_bits() - TO_INTEGER.to_bits();
        let remainder = bit_nanos.wrapping_sub(rounded.wrapping_mul(rate)) as i64;
        let one_less = remainder >> 63;
        (rounded.wrapping_add(one_less as u64), (remainder + (rate as i64 & one_less)) as u64)
    }
}

impl Line {
    /// A line that is busy until `free_at`, with a remainder then, in bit-nanoseconds.
    #[inline]
    pub const fn new(free_at: Instant, remainder: u64) -> Self {
        Self { free_at, remainder }
    }

    /// Returns the time at which the wire is next free.
    #[inline]
    pub const fn free_at(&self) -> Instant {
        self.free_at
    }

    /// Puts `size` on the wire at `now` or as soon as it is free. Returns the time at which the last bit has left.
    #[inline]
    pub fn send(&mut self, now: Instant, size: Bytes, pace: Pace) -> Instant {
        if now > self.free_at {
            *self = Self { free_at: now, remainder: 0 };
        }
        let (ns, remainder) = pace.divide(Pace::bit_nanos(size) + self.remainder);
        self.remainder = remainder;
        self.free_at += Duration::from_nanos(ns);
        self.free_at
    }
}

impl Serializer {
    /// An idle transmitter of the given rate.
    pub const fn new(rate: Rate) -> Self {
        Self { pace: Pace::new(rate), line: Line { free_at: Instant::ZERO, remainder: 0 } }
    }

    /// The rate it sends at.
    pub const fn rate(&self) -> Rate {
        self.pace.rate
    }

    /// Returns the time at which the wire is next free.
    pub const fn free_at(&self) -> Instant {
        self.line.free_at
    }

    /// Sets the rate from `now` on. The rest of the packet on the wire continues at the new rate.
    pub fn set_rate(&mut self, now: Instant, rate: Rate) {
        let old = std::mem::replace(&mut self.pace, Pace::new(rate)).rate;
        if self.line.free_at < now {
            self.line.remainder = 0;
            return;
        }
        let left = u128::from((self.line.free_at - now).as_nanos()) * u128::from(old.as_bps())
            + u128::from(self.line.remainder);
        let rate = u128::from(rate.as_bps());
        let ns = u64::try_from(left / rate).unwrap_or(u64::MAX);
        self.line = Line::new(now.saturating_add(Duration::from_nanos(ns)), (left % rate) as u64);
    }

    /// Keeps the wire busy until `at`, which is not before it is free. The remainder stays.
    pub fn skip_to(&mut self, at: Instant) {
        debug_assert!(at >= self.line.free_at, "a wire cannot be freed by skipping");
        self.line.free_at = at;
    }

    /// Frees the wire at `at` if it would be busy for longer.
    pub fn free_by(&mut self, at: Instant) {
        self.line.free_at = self.line.free_at.min(at);
    }

    /// Puts `size` on the wire at `now` or as soon as it is free. Returns the time at which the last bit has left.
    #[inline]
    pub fn send(&mut self, now: Instant, size: Bytes) -> Instant {
        self.line.send(now, size, self.pace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Streams;
    use rand_core::Rng;

    #[test]
    fn a_busy_link_sends_exactly_its_rate() {
        let mut wire = Serializer::new(Rate::from_mbps(15));
        for _ in 0..187_500 {
            wire.send(Instant::ZERO, Bytes::new(1000));
        }
        assert_eq!(wire.free_at(), Instant::ZERO + Duration::from_secs(100));
    }

    #[test]
    fn an_idle_link_starts_at_the_packets_own_time() {
        let mut wire = Serializer::new(Rate::from_mbps(8));
        let end = wire.send(Instant::from_nanos(500), Bytes::new(1));
        assert_eq!(end, Instant::from_nanos(1500));
    }

    #[test]
    fn the_rest_of_a_packet_is_sent_at_the_new_rate() {
        let mut wire = Serializer::new(Rate::from_bps(8));
        wire.send(Instant::ZERO, Bytes::new(10));
        assert_eq!(wire.free_at(), Instant::ZERO + Duration::from_secs(10));
        // Two bytes have left; the other eight take a microsecond each.
        wire.set_rate(Instant::ZERO + Duration::from_secs(2), Rate::from_mbps(8));
        assert_eq!(wire.free_at(), Instant::ZERO + Duration::from_secs(2) + Duration::from_micros(8));
        // And five of these, that are left after 3 us, take a second each.
        let later = Instant::ZERO + Duration::from_secs(2) + Duration::from_micros(3);
        wire.set_rate(later, Rate::from_bps(8));
        assert_eq!(wire.free_at(), later + Duration::from_secs(5));
        wire.set_rate(later + Duration::from_secs(9), Rate::from_bps(16));
        assert_eq!(wire.free_at(), later + Duration::from_secs(5), "an idle wire stays free");
    }

    /// Each change rounds up or down by less than a bit; the remainder carries it on, so nothing accumulates.
    #[test]
    fn changes_of_rate_neither_make_nor_lose_time() {
        let mut random = Streams::new(1).stream("rates", "test");
        let mut wire = Serializer::new(Rate::from_bps(1_000_003));
        let (mut bit_nanos, mut now) = (0_u128, Instant::ZERO);
        for _ in 0..100_000 {
            wire.send(now, Bytes::new(1 + random.next_u64() % 1500));
            while wire.free_at() > now {
                let step = Duration::from_nanos(random.next_u64() % 3_000_000).min(wire.free_at() - now);
                let before = u128::from((wire.free_at() - now).as_nanos()) * u128::from(wire.rate().as_bps())
                    + u128::from(wire.line.remainder);
                let sent = u128::from(step.as_nanos()) * u128::from(wire.rate().as_bps());
                now += step;
                wire.set_rate(now, Rate::from_bps(1 + random.next_u64() % 20_000_000));
                let left = u128::from((wire.free_at() - now).as_nanos()) * u128::from(wire.rate().as_bps())
                    + u128::from(wire.line.remainder);
                assert_eq!(before, sent + left);
                bit_nanos += sent;
            }
        }
        assert!(bit_nanos > 0);
    }

    /// Random numbers of every length, and those around multiples of the rate, where rounding could go wrong.
    #[test]
    fn dividing_by_multiplication_is_exact() {
        let mut random = Streams::new(1).stream("pace", "test");
        for _ in 0..200_000 {
            let rate = (random.next_u64() >> (random.next_u64() % 63)).max(1) >> 1 | 1;
            let pace = Pace::new(Rate::from_bps(rate));
            let any = random.next_u64() >> (random.next_u64() % 64);
            let multiple = (any / rate).max(1) * rate;
            for bit_nanos in [any, multiple - 1, multiple, multiple.saturating_add(1)] {
                assert_eq!(
                    pace.divide(bit_nanos),
                    (bit_nanos / rate, bit_nanos % rate),
                    "{bit_nanos} / {rate}"
                );
            }
        }
    }
}
