//! A packet of the simulator: the transport's header, and the fields for the network.

use crate::calendar::{EventHandle, Payload};
use cutline_transport::endpoint::{DataHeader, PackedHeader, ReplyHeader, WideHeader};
use cutline_units::{Duration, Ecn, Hint, HintBudget, Instant};

/// A packet in transit. It is written once as the payload of its calendar entry, and then moved by its handle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// Time spent waiting in queues so far.
    pub(crate) queued: Duration,
    /// The number of the [transport's header](Packet::header), and in the lower 16 bits the upper ones of its time.
    number_and_time: u64,
    /// The lower 32 bits of the header's time.
    time: u32,
    /// Its position on its route: an index into [`crate::route::Routes`].
    pub(crate) position: u32,
    /// The mark (congestion experienced, RFC 3168) in the lowest bit, and then the ECN field, the bits of the header, the hint, the length of
    /// the payload, and the size on the wire.
    fields: u64,
}

// Millions of packets are in transit in a large network.
const _: () = assert!(size_of::<Packet>() <= 32, "a packet has 32 bytes");

/// The first bit of each part of [`Packet::fields`] but the mark.
const ECN: u32 = 1;
const BITS: u32 = ECN + 2;
const HINT: u32 = BITS + 4;
const LEN: u32 = HINT + 8;
const SIZE: u32 = LEN + PackedHeader::LEN_BITS;

/// The bits of the header's time that have no room beside its number.
const LOWER: u32 = u32::BITS;
/// The bits of the header's time beside its number.
const UPPER: u32 = PackedHeader::TIME_BITS - LOWER;
const _: () =
    assert!(PackedHeader::NUMBER_BITS + UPPER <= u64::BITS, "the number and the upper bits of the time fit");

impl Packet {
    /// The payload of a calendar entry before its first packet, and of a timer's entry.
    pub(crate) const NONE: Self = Self::new(PackedHeader::WIDE, 0, 0, Hint::LEAST_DELAY, Ecn::NotEct);

    /// The limit of a packet's size, bytes: every packet is smaller.
    pub(crate) const SIZE_LIMIT: u32 = 1 << (u64::BITS - SIZE);

    /// Returns a packet that leaves its endpoint. The size is below [`Packet::SIZE_LIMIT`], and the header [fits](PackedHeader::fits).
    #[inline]
    pub(crate) const fn new(header: PackedHeader, size: u32, position: u32, hint: Hint, ecn: Ecn) -> Self {
        debug_assert!(size < Self::SIZE_LIMIT, "a packet is smaller than 16 MiB");
        let (number_and_time, time) = number_and_time(header);
        let fields =
            fields_of(header) | (size as u64) << SIZE | (hint.lane() as u64) << HINT | (ecn as u64) << ECN;
        Self { queued: Duration::ZERO, number_and_time, time, position, fields }
    }

    /// Returns a packet without a header, such as an agent's message.
    #[inline]
    pub(crate) const fn without_header(size: u32, position: u32, hint: Hint) -> Self {
        Self::new(PackedHeader::WIDE, size, position, hint, Ecn::NotEct)
    }

    /// Returns the transport's header; [`PackedHeader::WIDE`] if it is stored in [`WideHeaders`].
    #[inline]
    pub(crate) const fn header(&self) -> PackedHeader {
        let len = (self.fields >> LEN) as u32 & ((1 << PackedHeader::LEN_BITS) - 1);
        let bits = (self.fields >> BITS) as u32 & 0xf;
        PackedHeader::from_bits(self.number_and_time >> UPPER, self.sent_at(), len, bits)
    }

    /// Replaces the transport's header.
    pub(crate) fn set_header(&mut self, header: PackedHeader) {
        (self.number_and_time, self.time) = number_and_time(header);
        let others =
            !fields_of(PackedHeader::from_bits(0, Instant::ZERO, (1 << PackedHeader::LEN_BITS) - 1, 0xf));
        self.fields = self.fields & others | fields_of(header);
    }

    /// Returns the departure time in the header of a data packet.
    #[inline]
    pub(crate) const fn sent_at(&self) -> Instant {
        let upper = self.number_and_time & ((1 << UPPER) - 1);
        Instant::from_nanos(upper << LOWER | self.time as u64)
    }

    /// Returns the size on the wire, headers included, bytes.
    #[inline]
    pub(crate) const fn size(&self) -> u32 {
        (self.fields >> SIZE) as u32
    }

    /// Returns the delay hint.
    #[inline]
    pub(crate) const fn hint(&self) -> Hint {
        Hint::from_level((self.fields >> HINT) as u8 as u16 + 1)
    }

    /// Returns the ECN field with which it left its endpoint.
    #[inline]
    pub(crate) const fn ecn(&self) -> Ecn {
        Ecn::from_bits((self.fields >> ECN) as u8)
    }

    /// Returns whether a queue has marked it: congestion experienced (RFC 3168).
    #[inline]
    pub(crate) const fn is_marked(&self) -> bool {
        self.fields & 1 != 0
    }

    /// Marks it, if a queue has decided so.
    #[inline]
    pub(crate) fn mark_if(&mut self, is_marked: bool) {
        self.fields |= u64::from(is_marked);
    }

    /// Returns the packet after a link has transmitted it: it has waited in the link's queue, which has marked it at its departure if
    /// `marked`, and its hint is the rest of its delay budget.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "inlined, a packet in transit stays in registers")]
    pub(crate) fn transmitted(mut self, waited: Duration, marked: bool, pass_on: Option<HintBudget>) -> Self {
        if let Some(budget) = pass_on {
            let hint = budget.after(self.hint(), waited);
            self.fields = self.fields & !(0xff << HINT) | (hint.lane() as u64) << HINT;
        }
        self.queued += waited;
        self.mark_if(marked);
        self.position += 1;
        self
    }
}

/// Returns the number of a header with the upper bits of its time, and the lower ones of the time.
#[inline]
const fn number_and_time(header: PackedHeader) -> (u64, u32) {
    debug_assert!(header.fits(), "a header that does not fit is wide");
    let time = header.time.as_nanos();
    (header.number << UPPER | time >> LOWER, time as u32)
}

/// Returns the other parts of a header, at their places in [`Packet::fields`].
#[inline]
const fn fields_of(header: PackedHeader) -> u64 {
    (header.len as u64) << LEN | (header.bits() as u64) << BITS
}

/// The packets that arrive somewhere at the same time are handled in the order of their positions, so by flow. Packets of the same
/// position come from the same link, which sent them one after the other.
impl Payload for Packet {
    #[inline]
    fn rank(&self) -> u32 {
        self.position
    }
}

/// The long headers, by the handles of their packets. The vector ends at the greatest handle of such a packet.
#[derive(Default)]
pub(crate) struct WideHeaders {
    headers: Vec<Option<WideHeader>>,
}

impl WideHeaders {
    /// Returns the header of a data packet.
    pub(crate) fn data(&self, handle: EventHandle) -> DataHeader {
        let WideHeader::Data(header) = self.get(handle) else { unreachable!("only data reaches a sink") };
        *header
    }

    /// Returns the header of a reply.
    pub(crate) fn reply(&self, handle: EventHandle) -> ReplyHeader {
        let WideHeader::Reply(header) = self.get(handle) else { unreachable!("only replies reach a source") };
        *header
    }

    #[inline]
    pub(crate) fn get(&self, handle: EventHandle) -> &WideHeader {
        self.headers[handle as usize].as_ref().expect("a packet whose header is wide has put it here")
    }

    pub(crate) fn put(&mut self, handle: EventHandle, header: WideHeader) {
        if handle as usize >= self.headers.len() {
            self.headers.resize(handle as usize + 1, None);
        }
        self.headers[handle as usize] = Some(header);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::HintBits;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_packet_keeps_its_fields(
            (number, time, len) in (0..1_u64 << 48, 0..1_u64 << 48, 0..1_u32 << 25),
            flags: [bool; 3],
            (size, position) in (0..Packet::SIZE_LIMIT, any::<u32>()),
            (level, ecn) in (1_u16..=256, 0_u8..4),
            (waited, is_marked) in (any::<u32>(), any::<bool>()),
        ) {
            let (hint, ecn) = (Hint::from_level(level), Ecn::from_bits(ecn));
            let header = PackedHeader::new(number, Instant::from_nanos(time), len, flags);
            let mut packet = Packet::new(header, size, position, hint, ecn);
            let fields = |packet: &Packet| (packet.size(), packet.hint(), packet.ecn(), packet.is_marked());
            prop_assert_eq!((packet.header(), packet.sent_at()), (header, header.time));
            prop_assert_eq!((fields(&packet), packet.position), ((size, hint, ecn, false), position));
            for other in [PackedHeader::WIDE, header] {
                packet.set_header(other);
                prop_assert_eq!((packet.header(), fields(&packet)), (other, (size, hint, ecn, false)));
            }
            let waited = Duration::from_nanos(waited.into());
            let budget = HintBudget { bits: HintBits::PAPER, step: HintBudget::STEP, largest: true };
            packet.position = position / 2;
            for (pass_on, left) in [(None, hint), (Some(budget), budget.after(hint, waited))] {
                let passed = packet.transmitted(waited, is_marked, pass_on);
                prop_assert_eq!((passed.header(), fields(&passed)), (header, (size, left, ecn, is_marked)));
                prop_assert_eq!((passed.queued, passed.position), (waited, position / 2 + 1));
            }
        }
    }
}
