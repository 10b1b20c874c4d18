//! Link rates and sizes.

use crate::Duration;
use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};

/// A rate in bits per second; zero is allowed and means that nothing passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

/// A size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

impl Rate {
    /// 0 bit/s.
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
    /// Use a [`Serializer`](crate::Serializer) where packets follow each other: it carries the remainder on.
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
    /// 0 bytes.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_bytes_at_fifteen_megabit() {
        let ns = Rate::from_mbps(15).transmission_time(Bytes::new(1000)).as_nanos();
        assert_eq!(ns, 533_333);
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
