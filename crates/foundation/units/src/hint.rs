//! The delay hint (TSQ section 3.1): the tolerance of a packet for delay, and its encoding in a packet.
//!
//! With n bits there are 2^n levels. Level 1 requests as little delay as possible, level 2^n throughput
//! only; unmarked traffic has the latter. The paper's n is 4.

use crate::Dscp;
use std::fmt;

/// Number of bits of a hint: 1..=8. The paper uses 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HintBits(u8);

/// A delay hint: a level from 1 to 2^n.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hint {
    /// The level less one, which fits a byte for every n up to 8.
    index: u8,
}

/// Reason why a number is not a hint, or not a number of hint bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintError {
    /// The number of bits requested; 1..=8 is allowed.
    Bits(u64),
    /// The level requested, and the largest level there is.
    Level(u64, u16),
}

impl HintBits {
    /// The paper's four bits, sixteen levels (TSQ section 3.1).
    pub const PAPER: Self = Self(4);

    /// `n` bits.
    ///
    /// # Errors
    /// When `n` is not in 1..=8.
    pub const fn new(n: u64) -> Result<Self, HintError> {
        if n >= 1 && n <= 8 { Ok(Self(n as u8)) } else { Err(HintError::Bits(n)) }
    }

    /// The number of bits, n.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The number of levels, 2^n.
    pub const fn levels(self) -> u16 {
        1 << self.0
    }

    /// The hint of throughput-only and of unmarked traffic: level 2^n.
    pub const fn largest(self) -> Hint {
        Hint { index: (self.levels() - 1) as u8 }
    }

    /// The hint of a level.
    ///
    /// # Errors
    /// When `level` is not in 1..=2^n.
    pub const fn hint(self, level: u64) -> Result<Hint, HintError> {
        if level >= 1 && level <= self.levels() as u64 {
            Ok(Hint { index: (level - 1) as u8 })
        } else {
            Err(HintError::Level(level, self.levels()))
        }
    }
}

impl Hint {
    /// As little delay as possible: level 1 at any number of bits.
    pub const LEAST_DELAY: Self = Self { index: 0 };

    /// The hint of a level that is known to be in 1..=256.
    #[inline]
    pub const fn from_level(level: u16) -> Self {
        assert!(level >= 1 && level <= 256, "a hint's level is from 1 to 256");
        Self { index: (level - 1) as u8 }
    }

    /// The level, 1..=2^n: the d of TSQ eq. 2.
    #[inline]
    pub const fn level(self) -> u16 {
        self.index as u16 + 1
    }

    /// The lane of a queue that serves this level: the level less one.
    #[inline]
    pub const fn lane(self) -> usize {
        self.index as usize
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.level().fmt(f)
    }
}

impl fmt::Display for HintError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bits(n) => write!(f, "a delay hint has 1 to 8 bits, not {n}"),
            Self::Level(level, largest) => {
                write!(f, "a delay hint is from 1 to {largest}, not {level}")
            }
        }
    }
}

impl std::error::Error for HintError {}

/// Encoding of a hint in a packet's header field `F`.
pub trait HintCodec<F> {
    /// The field's value for a hint, `None` when the field is too small for it.
    fn encode(&self, hint: Hint) -> Option<F>;
    /// The hint that a field's value carries, `None` when it carries none.
    fn decode(&self, field: F) -> Option<Hint>;
}

/// Four-bit hints in the sixteen code points `xxxx11` of DSCP pool 2, which RFC 2474 section 6 leaves to
/// experimental and local use: `dscp = (level - 1) << 2 | 3`.
#[derive(Clone, Copy, Debug, Default)]
pub struct DscpPool2;

impl HintCodec<Dscp> for DscpPool2 {
    fn encode(&self, hint: Hint) -> Option<Dscp> {
        (hint.level() <= HintBits::PAPER.levels()).then(|| Dscp::new(hint.index << 2 | 0b11))?
    }

    fn decode(&self, dscp: Dscp) -> Option<Hint> {
        (dscp.get() & 0b11 == 0b11).then_some(Hint { index: dscp.get() >> 2 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_travels_in_a_code_point_of_pool_2() {
        for level in 1..=16 {
            let hint = HintBits::PAPER.hint(level).unwrap();
            let dscp = DscpPool2.encode(hint).unwrap();
            assert_eq!(dscp.get() & 0b11, 0b11);
            assert_eq!(DscpPool2.decode(dscp), Some(hint));
        }
        assert_eq!(DscpPool2.encode(Hint::from_level(17)), None);
    }

    #[test]
    fn code_points_of_other_pools_carry_no_hint() {
        let standard = [0, 8, 10, 34, 46, 0b10_1100];
        for dscp in standard {
            assert_eq!(DscpPool2.decode(Dscp::new(dscp).unwrap()), None, "{dscp}");
        }
    }

    #[test]
    fn levels_outside_the_bits_are_refused() {
        assert_eq!(HintBits::new(0), Err(HintError::Bits(0)));
        assert_eq!(HintBits::new(9), Err(HintError::Bits(9)));
        assert_eq!(HintBits::PAPER.hint(0), Err(HintError::Level(0, 16)));
        assert_eq!(HintBits::PAPER.hint(17).unwrap_err().to_string(), "a delay hint is from 1 to 16, not 17");
        assert_eq!(HintBits::new(8).unwrap().largest().level(), 256);
    }
}
