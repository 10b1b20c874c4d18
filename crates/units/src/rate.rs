//! Link rates, sizes, and the exact time a link takes to put bytes on the wire.

use crate::{Duration, Instant};
use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};

/// A rate in bits per second; zero is allowed and means that nothing passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

/// A size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

impl Rate {
    /// Nothing passes.
    pub const ZERO: Self = Self(0);

    /// `bps` bits per second.
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }

    /// `kbps` kilobits (1000 bits) per second.
    pub const fn from_kbps(kbps: u64) -> Self {
        Self(kbps * 1_000)
    }

    /// `mbps` megabits (1,000,000 bits) per second.
    pub const fn from_mbps(mbps: u64) -> Self {
        Self(mbps * 1_000_000)
    }

    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Kilobits per second.
    pub fn as_kbps_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// Nanoseconds that one byte takes; infinite at rate zero.
    pub fn nanos_per_byte(self) -> f64 {
        8e9 / self.0 as f64
    }

    /// The time `size` takes on the wire, rounded down to the nanosecond; [`Duration::MAX`] at rate zero.
    ///
    /// Use a [`Serializer`] where packets follow each other: it carries the remainder on.
    pub const fn transmission_time(self, size: Bytes) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        let bit_nanos = size.0 as u128 * 8_000_000_000;
        let ns = if bit_nanos <= u64::MAX as u128 {
            (bit_nanos as u64 / self.0) as u128
        } else {
            bit_nanos / self.0 as u128
        };
        if ns > u64::MAX as u128 { Duration::MAX } else { Duration::from_nanos(ns as u64) }
    }

    /// The bytes that pass in `time`, rounded down.
    pub const fn bytes_in(self, time: Duration) -> Bytes {
        Bytes((self.0 as u128 * time.as_nanos() as u128 / 8_000_000_000) as u64)
    }
}

impl Bytes {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// `n` bytes.
    pub const fn new(n: u64) -> Self {
        Self(n)
    }

    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number of bits.
    pub const fn bits(self) -> u64 {
        self.0 * 8
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        self.0 += other.0;
    }
}

impl Sub for Bytes {
    type Output = Bytes;
    fn sub(self, other: Bytes) -> Bytes {
        Bytes(self.0 - other.0)
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Bytes) {
        self.0 -= other.0;
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bps = self.0 as f64;
        match self.0 {
            0..1_000 => write!(f, "{} bit/s", self.0),
            1_000..1_000_000 => write!(f, "{} kbit/s", bps / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{} Mbit/s", bps / 1e6),
            _ => write!(f, "{} Gbit/s", bps / 1e9),
        }
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.0)
    }
}

/// A transmitter: knows when the wire is free, and carries the fraction of a nanosecond that each packet
/// leaves over to the next, so that a busy link sends exactly its rate for ever.
#[derive(Clone, Copy, Debug)]
pub struct Serializer {
    rate: Rate,
    free_at: Instant,
    /// What the last packet needed beyond `free_at`, in bit-nanoseconds: always less than the rate.
    remainder: u64,
}

impl Serializer {
    /// An idle transmitter of the given rate.
    pub const fn new(rate: Rate) -> Self {
        assert!(rate.0 > 0, "a rate of zero never sends anything");
        Self { rate, free_at: Instant::ZERO, remainder: 0 }
    }

    /// The rate it sends at.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// When the wire is next free.
    pub const fn free_at(&self) -> Instant {
        self.free_at
    }

    /// The rate from the next packet on; a packet on the wire ends as planned.
    pub fn set_rate(&mut self, rate: Rate) {
        assert!(rate.0 > 0, "a rate of zero never sends anything");
        self.rate = rate;
        self.remainder = 0;
    }

    /// Puts `size` on the wire at `now` or as soon as it is free, and answers when the last bit has left.
    #[inline]
    pub fn send(&mut self, now: Instant, size: Bytes) -> Instant {
        if now > self.free_at {
            self.free_at = now;
            self.remainder = 0;
        }
        let bit_nanos = size.0 * 8_000_000_000 + self.remainder;
        let ns = bit_nanos / self.rate.0;
        self.remainder = bit_nanos - ns * self.rate.0;
        self.free_at += Duration::from_nanos(ns);
        self.free_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_bytes_at_fifteen_megabit() {
        let ns = Rate::from_mbps(15).transmission_time(Bytes::new(1000)).as_nanos();
        assert_eq!(ns, 533_333);
    }

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
    fn huge_sizes_do_not_overflow() {
        let t = Rate::from_bps(1).transmission_time(Bytes::new(u64::MAX));
        assert_eq!(t, Duration::MAX);
        assert_eq!(Rate::ZERO.transmission_time(Bytes::new(1)), Duration::MAX);
    }

    #[test]
    fn rates_print_as_people_write_them() {
        assert_eq!(Rate::from_mbps(15).to_string(), "15 Mbit/s");
        assert_eq!(Rate::from_kbps(128).to_string(), "128 kbit/s");
    }
}
