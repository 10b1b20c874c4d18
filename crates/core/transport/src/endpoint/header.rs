//! A packet's header as it travels through a simulation.

use super::{DataHeader, ReplyHeader};
use cutline_units::Instant;

/// A transport's header in 24 bytes, or the statement that the header does not fit. The transport defines the meaning of the fields.
// The struct is flat because an `Option` of it would be copied field by field at each move of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedHeader {
    /// A sequence or acknowledgement number.
    pub number: u64,
    /// Departure time of a data packet, or its echo.
    pub time: Instant,
    /// Payload, bytes.
    pub len: u32,
    /// Three flags, and [`PackedHeader::WIDE_BIT`]. A packet in transit keeps them so, so that only its receiver takes them apart.
    bits: u8,
}

impl PackedHeader {
    /// Marks a header that does not fit 24 bytes. The packet then has a [`WideHeader`] as well.
    pub const WIDE: Self = Self { number: 0, time: Instant::ZERO, len: 0, bits: Self::WIDE_BIT };

    /// The bit of [`PackedHeader::WIDE`].
    const WIDE_BIT: u8 = 8;

    /// Returns a header that fits.
    #[inline]
    pub const fn new(number: u64, time: Instant, len: u32, flags: [bool; 3]) -> Self {
        let [first, second, third] = flags;
        Self { number, time, len, bits: first as u8 + 2 * second as u8 + 4 * third as u8 }
    }

    /// Returns the three flags.
    #[inline]
    pub const fn flags(&self) -> [bool; 3] {
        [self.bits & 1 != 0, self.bits & 2 != 0, self.bits & 4 != 0]
    }

    /// Returns the flags in four bits, of which the last one is [`PackedHeader::is_wide`].
    #[inline]
    pub const fn bits(&self) -> u8 {
        self.bits
    }

    /// Returns the header with these numbers, and with the flags of [`PackedHeader::bits`].
    #[inline]
    pub const fn from_bits(number: u64, time: Instant, len: u32, bits: u8) -> Self {
        Self { number, time, len, bits }
    }

    /// Returns whether this is [`PackedHeader::WIDE`].
    #[inline]
    pub const fn is_wide(&self) -> bool {
        self.bits & Self::WIDE_BIT != 0
    }
}

/// A header that does not fit 24 bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WideHeader {
    /// The header of a data packet.
    Data(DataHeader),
    /// The header of a reply.
    Reply(ReplyHeader),
}

/// A packet's header.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Header {
    /// The header, or [`PackedHeader::WIDE`].
    pub packed: PackedHeader,
    /// The header, if it does not fit 24 bytes.
    pub wide: Option<WideHeader>,
}

impl Header {
    #[inline]
    pub(super) fn new(packed: PackedHeader, wide: impl FnOnce() -> WideHeader) -> Self {
        let wide = packed.is_wide().then(wide);
        Self { packed, wide }
    }
}
