//! A packet's header as it travels through a simulation.

use super::{DataHeader, ReplyHeader};
use cutline_units::Instant;

/// A transport's header in 24 bytes. What the fields mean is its transport's business.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedHeader {
    /// A sequence or acknowledgement number.
    pub number: u64,
    /// When a data packet left, or an echo of that.
    pub time: Instant,
    /// Payload, bytes.
    pub len: u32,
    /// Anything that is either so or not.
    pub flags: [bool; 3],
}

/// A header that does not fit 24 bytes, as it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WideHeader {
    /// A data packet's.
    Data(DataHeader),
    /// A reply's.
    Reply(ReplyHeader),
}

/// A packet's header: one of the two is there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Header {
    /// The header, where it fits 24 bytes.
    pub packed: Option<PackedHeader>,
    /// The header, where it does not.
    pub wide: Option<WideHeader>,
}

impl Header {
    #[inline]
    pub(super) fn new(packed: Option<PackedHeader>, wide: impl FnOnce() -> WideHeader) -> Self {
        let wide = if packed.is_some() { None } else { Some(wide()) };
        Self { packed, wide }
    }
}
