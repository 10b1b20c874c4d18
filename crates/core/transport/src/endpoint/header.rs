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
    /// Three flags.
    pub flags: [bool; 3],
    is_wide: bool,
}

impl PackedHeader {
    /// Marks a header that does not fit 24 bytes. The packet then has a [`WideHeader`] as well.
    pub const WIDE: Self = Self { number: 0, time: Instant::ZERO, len: 0, flags: [false; 3], is_wide: true };

    /// Returns a header that fits.
    #[inline]
    pub const fn new(number: u64, time: Instant, len: u32, flags: [bool; 3]) -> Self {
        Self { number, time, len, flags, is_wide: false }
    }

    /// The bit of [`PackedHeader::bits`] for [`PackedHeader::WIDE`].
    const WIDE_BIT: u8 = 8;

    /// Returns the flags in four bits, of which the last one is [`PackedHeader::is_wide`].
    #[inline]
    pub const fn bits(&self) -> u8 {
        let [first, second, third] = self.flags;
        first as u8 + 2 * second as u8 + 4 * third as u8 + Self::WIDE_BIT * self.is_wide as u8
    }

    /// Returns the header with these numbers, and with the flags of [`PackedHeader::bits`].
    #[inline]
    pub const fn from_bits(number: u64, time: Instant, len: u32, bits: u8) -> Self {
        let flags = [bits & 1 != 0, bits & 2 != 0, bits & 4 != 0];
        Self { number, time, len, flags, is_wide: bits & Self::WIDE_BIT != 0 }
    }

    /// Returns whether this is [`PackedHeader::WIDE`].
    #[inline]
    pub const fn is_wide(&self) -> bool {
        self.is_wide
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
