//! A packet's header as it travels through a simulation.

use super::{DataHeader, ReplyHeader};
use cutline_units::Instant;

/// A transport's header with as many bits as a packet has room for, or the statement that the header does not fit. The transport defines the
/// meaning of the fields.
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
    // A whole word: bytes without a meaning beside a smaller one would be copied, too.
    bits: u32,
}

impl PackedHeader {
    /// Marks a header that does not fit. The packet then has a [`WideHeader`] as well.
    pub const WIDE: Self = Self { number: 0, time: Instant::ZERO, len: 0, bits: Self::WIDE_BIT };

    /// The bits of the number in a header that fits.
    pub const NUMBER_BITS: u32 = 48;
    /// The bits of the time, which are three days in nanoseconds.
    pub const TIME_BITS: u32 = 48;
    /// The bits of the payload's length.
    pub const LEN_BITS: u32 = 25;

    /// The bit of [`PackedHeader::WIDE`].
    const WIDE_BIT: u32 = 8;

    /// Returns a header, which may be one that does not [fit](PackedHeader::fits).
    #[inline]
    pub const fn new(number: u64, time: Instant, len: u32, flags: [bool; 3]) -> Self {
        let [first, second, third] = flags;
        Self { number, time, len, bits: first as u32 + 2 * second as u32 + 4 * third as u32 }
    }

    /// Returns whether a packet has room for the number, the time and the length.
    #[inline]
    pub const fn fits(&self) -> bool {
        let numbers_fit =
            self.number >> Self::NUMBER_BITS == 0 && self.time.as_nanos() >> Self::TIME_BITS == 0;
        numbers_fit && self.len >> Self::LEN_BITS == 0
    }

    /// Returns the three flags.
    #[inline]
    pub const fn flags(&self) -> [bool; 3] {
        [self.bits & 1 != 0, self.bits & 2 != 0, self.bits & 4 != 0]
    }

    /// Returns the flags in four bits, of which the last one is [`PackedHeader::is_wide`].
    #[inline]
    pub const fn bits(&self) -> u32 {
        self.bits
    }

    /// Returns the header with these numbers, and with the flags of [`PackedHeader::bits`].
    #[inline]
    pub const fn from_bits(number: u64, time: Instant, len: u32, bits: u32) -> Self {
        Self { number, time, len, bits }
    }

    /// Returns this header if it fits. Otherwise puts the unpacked header into `wide`, and returns [`PackedHeader::WIDE`].
    // A wide header in the result would be copied with the result, also when there is none.
    #[inline]
    pub(super) fn or_wide(
        self,
        wide: &mut Option<WideHeader>,
        unpacked: impl FnOnce() -> WideHeader,
    ) -> Self {
        if self.fits() && !self.is_wide() {
            return self;
        }
        *wide = Some(unpacked());
        Self::WIDE
    }

    /// Returns what `unpack` makes of this header, or the header that `wide` returns if this is [`PackedHeader::WIDE`].
    #[inline]
    pub(super) fn unpacked<H>(self, unpack: impl FnOnce(Self) -> H, wide: impl FnOnce() -> H) -> H {
        if self.is_wide() { wide() } else { unpack(self) }
    }

    /// Returns whether this is [`PackedHeader::WIDE`].
    #[inline]
    pub const fn is_wide(&self) -> bool {
        self.bits & Self::WIDE_BIT != 0
    }
}

/// A header that does not fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WideHeader {
    /// The header of a data packet.
    Data(DataHeader),
    /// The header of a reply.
    Reply(ReplyHeader),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::{Receiver, Sender, Transport as _, TransportParams};
    use crate::{tcp, udp};
    use std::sync::Arc;

    #[test]
    fn a_header_that_needs_more_bits_is_wide() {
        let at = Instant::from_nanos;
        let datagram = |seq, sent_at, len| udp::Datagram { seq, sent_at, len };
        let most = datagram((1 << 48) - 1, at((1 << 48) - 1), (1 << 25) - 1);
        let header = |of: udp::Datagram| {
            let mut wide = None;
            let packed = udp::Udp::pack_data(&of);
            (packed.or_wide(&mut wide, || WideHeader::Data(DataHeader::Udp(of))), wide)
        };
        assert_eq!(header(most), (udp::Udp::pack_data(&most), None));
        for (packed, wide) in [
            datagram(1 << 48, most.sent_at, most.len),
            datagram(most.seq, at(1 << 48), most.len),
            datagram(most.seq, most.sent_at, 1 << 25),
        ]
        .map(header)
        {
            assert!(packed.is_wide() && wide.is_some(), "{wide:?}");
        }
    }

    /// Three days are 2^48 ns.
    #[test]
    fn packets_cross_the_third_day_of_a_run() {
        let params = TransportParams::Tcp(Arc::new(tcp::Params::default()));
        for (now, is_wide) in [((1 << 48) - 1, false), (1 << 48, true)] {
            let now = Instant::from_nanos(now);
            let (mut sender, mut receiver) = (Sender::new(&params, now), Receiver::new(&params));
            sender.write(crate::Write::Bytes(1000));
            let (mut wide, mut wide_reply) = (None, None);
            let packed = sender.transmit(now, &mut wide).expect("the window is open").header;
            assert_eq!(packed.is_wide(), is_wide);
            let data = || match wide {
                Some(WideHeader::Data(data)) => data,
                _ => unreachable!("only a wide header is asked for"),
            };
            let receipt = receiver.on_data(now, packed, false, data, &mut wide_reply);
            assert_eq!((receipt.sent_at, receiver.delivered()), (now, 1000));
        }
    }
}
