//! Messages in a byte stream: the queue of messages to write (`Outbox`), and the parser of a stream ([`Inlet`]). Both
//! work on bytes in memory, without input or output.

use crate::header::{Message, PREAMBLE, Preamble};
use cutline_units::{Duration, Instant};
use std::collections::VecDeque;

/// The length of a message of an unlimited supply, bytes.
const BULK_MESSAGE: u64 = 4096;
/// The largest number of bytes that are prepared at once.
const LARGEST_CHUNK: usize = 1 << 16;

/// The queue of messages that a sender has not passed to the kernel yet.
#[derive(Debug)]
pub(crate) struct Outbox {
    waiting: VecDeque<(u64, Instant)>,
    /// The sum of the lengths of the waiting messages.
    waiting_bytes: u64,
    /// The largest number of bytes that may wait.
    limit: u64,
    unlimited: bool,
    /// Bytes of the current message that are not in `ready` yet.
    rest: u64,
    /// The prepared bytes. Those before `taken` have been sent.
    ready: Vec<u8>,
    taken: usize,
    /// End of each message that has begun and not left, as an offset in the stream, and its time of writing; `None` if
    /// not requested.
    ends: Option<VecDeque<(u64, Instant)>>,
    /// Offset of the end of the last message that has begun.
    end: u64,
    /// Prepared bytes that belong to the preamble and are not payload.
    preamble: usize,
    /// The number of bytes to prepare next. It grows while the kernel takes all of them. So messages of an unlimited
    /// supply get their time stamps shortly before they leave.
    chunk: usize,
}

impl Outbox {
    /// Returns the queue of a flow that begins with a preamble.
    pub(crate) fn new(preamble: &Preamble, limit: Option<u64>) -> Self {
        Self {
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            limit: limit.unwrap_or(u64::MAX),
            unlimited: false,
            rest: 0,
            ready: preamble.write().to_vec(),
            taken: 0,
            ends: None,
            end: PREAMBLE as u64,
            preamble: PREAMBLE,
            chunk: BULK_MESSAGE as usize,
        }
    }

    /// Queues a message of the application. Returns false if it does not fit and `always` is false.
    pub(crate) fn write(&mut self, bytes: u64, now: Instant, always: bool) -> bool {
        let fits = always || self.waiting_bytes + self.rest + bytes <= self.limit;
        if fits && bytes > 0 {
            self.waiting.push_back((bytes, now));
            self.waiting_bytes += bytes;
        }
        fits
    }

    /// Starts an unlimited supply of messages.
    pub(crate) fn write_unlimited(&mut self) {
        self.unlimited = true;
    }

    /// Ends the unlimited supply after the current message.
    pub(crate) fn end_supply(&mut self) {
        self.unlimited = false;
    }

    /// Returns whether everything has been sent.
    pub(crate) fn is_empty(&self) -> bool {
        !self.unlimited && self.waiting.is_empty() && self.rest == 0 && self.taken == self.ready.len()
    }

    /// Returns the bytes to send next; empty if there are none.
    pub(crate) fn next(&mut self, now: Instant) -> &[u8] {
        if self.taken == self.ready.len() {
            self.ready.clear();
            self.taken = 0;
            while self.ready.len() < self.chunk && self.prepare(now) {}
        }
        &self.ready[self.taken..]
    }

    /// Records that `bytes` bytes have been sent, and returns how many of them were payload.
    pub(crate) fn taken(&mut self, bytes: usize) -> u64 {
        self.taken += bytes;
        let all = self.taken == self.ready.len();
        self.chunk = if all { (self.chunk * 2).min(LARGEST_CHUNK) } else { BULK_MESSAGE as usize };
        let preamble = bytes.min(self.preamble);
        self.preamble -= preamble;
        (bytes - preamble) as u64
    }

    /// Remembers the messages that have begun until [`Outbox::left`] reports that they have left.
    pub(crate) fn remember(&mut self) {
        self.ends.get_or_insert_default();
    }

    /// Returns whether messages are remembered.
    pub(crate) fn has_waiting(&self) -> bool {
        self.ends.as_ref().is_some_and(|ends| !ends.is_empty())
    }

    /// Forgets the messages whose last byte has left: those that end at or before the offset `until.1` at the time `until.0`. Calls
    /// `each` with the wait of each message, from its writing. Between the offset `from.1` at `from.0` and `until` the stream is
    /// taken to have left at a constant rate.
    pub(crate) fn left(
        &mut self,
        from: (Instant, u64),
        until: (Instant, u64),
        mut each: impl FnMut(Duration),
    ) {
        let (time, bytes) = (until.0.saturating_since(from.0), until.1.saturating_sub(from.1));
        let Some(ends) = &mut self.ends else { return };
        while let Some(&(end, written)) = ends.front().filter(|(end, _)| *end <= until.1) {
            ends.pop_front();
            let share = end.saturating_sub(from.1) as f64 / bytes.max(1) as f64;
            let left = from.0.saturating_add(time.mul_f64(share.min(1.0)));
            each(left.saturating_since(written));
        }
    }

    /// Prepares more of the current message, or of the next one. Returns false if the chunk is full or no message is
    /// left.
    fn prepare(&mut self, now: Instant) -> bool {
        if self.rest == 0 {
            let Some((length, written)) = self.begin(now) else { return false };
            self.end += length;
            if let Some(ends) = &mut self.ends {
                ends.push_back((self.end, written));
            }
            let (header, used) = Message::write(length, written);
            self.ready.extend_from_slice(&header[..used]);
            self.rest = length - used as u64;
        }
        let room = LARGEST_CHUNK.saturating_sub(self.ready.len()) as u64;
        let now_ready = self.rest.min(room) as usize;
        self.ready.resize(self.ready.len() + now_ready, FILLER);
        self.rest -= now_ready as u64;
        self.rest == 0
    }

    fn begin(&mut self, now: Instant) -> Option<(u64, Instant)> {
        if let Some((length, written)) = self.waiting.pop_front() {
            self.waiting_bytes -= length;
            return Some((length, written));
        }
        self.unlimited.then_some((BULK_MESSAGE, now))
    }
}

/// The byte that payload after the header consists of.
const FILLER: u8 = b'.';

/// An element that an [`Inlet`] finds in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The preamble, which names the flow.
    Flow(Preamble),
    /// This number of payload bytes.
    Payload(u64),
    /// The end of a message, and its time of writing if its header has one.
    End(Option<Instant>),
}

/// The parser of a stream. It keeps the bytes of an incomplete header.
#[derive(Debug, Default)]
pub struct Inlet {
    introduced: bool,
    /// The first bytes of an incomplete header.
    partial: [u8; PREAMBLE],
    held: usize,
    /// Bytes of the current message that have not arrived yet.
    rest: u64,
    written: Option<Instant>,
}

/// The error for a stream that does not begin with a preamble, or has a message of an invalid length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stream is not from cutline tg")]
pub struct ProtocolError;

impl Inlet {
    /// Parses the next bytes of the stream and calls `found` for each element in them.
    ///
    /// # Errors
    /// Returns an error if the stream is not from Cutline. The caller must not call `feed` again after an error.
    pub fn feed(&mut self, mut bytes: &[u8], mut found: impl FnMut(Found)) -> Result<(), ProtocolError> {
        while !bytes.is_empty() {
            if self.rest > 0 {
                let taken = self.rest.min(bytes.len() as u64);
                self.rest -= taken;
                bytes = &bytes[taken as usize..];
                found(Found::Payload(taken));
                self.end(&mut found);
            } else if self.gather(&mut bytes, &mut found) {
                self.begin(&mut found)?;
            } else if !self.introduced && !Preamble::may_begin_with(&self.partial[..self.held]) {
                return Err(ProtocolError);
            }
        }
        Ok(())
    }

    /// Moves bytes of a header into `partial`. Returns true when the header is complete. Those of a message are payload even if the stream ends
    /// before the header does, because the sender counts them.
    fn gather(&mut self, bytes: &mut &[u8], found: &mut impl FnMut(Found)) -> bool {
        let first = if self.held > 0 { self.partial[0] } else { bytes[0] };
        let length = if self.introduced { Message::header_length(first) } else { PREAMBLE };
        let taken = (length - self.held).min(bytes.len());
        self.partial[self.held..self.held + taken].copy_from_slice(&bytes[..taken]);
        self.held += taken;
        *bytes = &bytes[taken..];
        if self.introduced {
            found(Found::Payload(taken as u64));
        }
        self.held == length
    }

    fn begin(&mut self, found: &mut impl FnMut(Found)) -> Result<(), ProtocolError> {
        let held = std::mem::take(&mut self.held);
        if !self.introduced {
            found(Found::Flow(Preamble::read(&self.partial).ok_or(ProtocolError)?));
            self.introduced = true;
            return Ok(());
        }
        let (length, written) = match Message::read(&self.partial[..held]).ok_or(ProtocolError)? {
            Message::Long(length, written) => (length, Some(written)),
            Message::Short(length) => (u64::from(length), None),
        };
        (self.rest, self.written) = (length - held as u64, written);
        self.end(found);
        Ok(())
    }

    fn end(&mut self, found: &mut impl FnMut(Found)) {
        if self.rest == 0 {
            found(Found::End(self.written));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::Dscp;
    use proptest::prelude::*;

    const PREAMBLE_OF_3: Preamble =
        Preamble { flow: 3, notify: false, reverse: false, dscp: Dscp::DEFAULT, receive_buffer: 0, token: 7 };

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    /// Moves up to `step` bytes at a time into an inlet. Returns the elements found and the payload bytes sent.
    fn carry(outbox: &mut Outbox, step: usize, most: usize) -> (Vec<Found>, u64) {
        let (mut inlet, mut all, mut payload, mut carried) = (Inlet::default(), Vec::new(), 0, 0);
        while carried < most {
            let bytes = outbox.next(at(9));
            let taken = bytes.len().min(step);
            if taken == 0 {
                break;
            }
            inlet.feed(&bytes[..taken], |found| all.push(found)).unwrap();
            payload += outbox.taken(taken);
            carried += taken;
        }
        (all, payload)
    }

    fn payload(found: &[Found]) -> u64 {
        found.iter().map(|found| if let Found::Payload(bytes) = found { *bytes } else { 0 }).sum()
    }

    proptest! {
        #[test]
        fn messages_survive_any_segmentation(
            lengths in prop::collection::vec(1_u64..200_000, 1..12), step in 1_usize..70_000,
        ) {
            let mut outbox = Outbox::new(&PREAMBLE_OF_3, None);
            for (i, length) in lengths.iter().enumerate() {
                prop_assert!(outbox.write(*length, at(i as u64), false));
            }
            let (found, sent) = carry(&mut outbox, step, usize::MAX);
            prop_assert!(outbox.is_empty());
            prop_assert_eq!(found[0], Found::Flow(PREAMBLE_OF_3));
            prop_assert_eq!((payload(&found), sent), (lengths.iter().sum(), lengths.iter().sum()));
            let ends: Vec<_> = found.iter().filter_map(|it| if let Found::End(at) = it { Some(*at) } else { None }).collect();
            let expected: Vec<_> =
                lengths.iter().enumerate().map(|(i, length)| (*length >= 16).then_some(at(i as u64))).collect();
            prop_assert_eq!(ends, expected);
        }

        /// A stream whose writer is stopped may end in the middle of a header.
        #[test]
        fn both_ends_count_the_same_bytes_wherever_the_stream_ends(
            lengths in prop::collection::vec(1_u64..100, 1..12), step in 1_usize..20, most in 0_usize..600,
        ) {
            let mut outbox = Outbox::new(&PREAMBLE_OF_3, None);
            for length in lengths {
                prop_assert!(outbox.write(length, at(1), false));
            }
            let (found, sent) = carry(&mut outbox, step, most);
            prop_assert_eq!(payload(&found), sent);
        }

        #[test]
        fn random_bytes_yield_no_more_payload_than_their_length(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..9)) {
            for introduced in [false, true] {
                let mut inlet = Inlet { introduced, ..Inlet::default() };
                let mut bytes = 0;
                for piece in &pieces {
                    if inlet.feed(piece, |found| if let Found::Payload(n) = found { bytes += n; }).is_err() {
                        break;
                    }
                }
                prop_assert!(bytes <= pieces.iter().map(|piece| piece.len() as u64).sum());
            }
        }
    }

    #[test]
    fn an_unlimited_supply_ends_with_a_complete_message() {
        let mut outbox = Outbox::new(&PREAMBLE_OF_3, None);
        outbox.write_unlimited();
        let (found, _) = carry(&mut outbox, 1000, 100_000);
        assert!(payload(&found) > 90_000 && !outbox.is_empty());
        outbox.end_supply();
        let mut rest = 0;
        while !outbox.next(at(9)).is_empty() {
            let bytes = outbox.next(at(9)).len();
            rest += outbox.taken(bytes);
        }
        assert!(outbox.is_empty() && (payload(&found) + rest).is_multiple_of(BULK_MESSAGE));
    }

    #[test]
    fn the_wait_of_a_message_ends_when_its_last_byte_leaves() {
        let mut outbox = Outbox::new(&PREAMBLE_OF_3, None);
        outbox.remember();
        for written in [0, 50] {
            assert!(outbox.write(100, at(written), false));
        }
        assert!(!outbox.has_waiting());
        let (_, payload) = carry(&mut outbox, 1000, usize::MAX);
        assert!(outbox.has_waiting() && payload == 200);
        let mut waits = Vec::new();
        let preamble = PREAMBLE as u64;
        // 50 bytes have left at 100 ns, 150 at 200 ns: the first message ends between them, at 150 ns.
        outbox.left((at(0), 0), (at(100), preamble + 50), |wait| waits.push(wait.as_nanos()));
        outbox.left((at(100), preamble + 50), (at(200), preamble + 150), |wait| waits.push(wait.as_nanos()));
        outbox.left((at(200), preamble + 150), (at(300), preamble + 200), |wait| waits.push(wait.as_nanos()));
        assert_eq!((waits, outbox.has_waiting()), (vec![150, 250], false));
    }

    #[test]
    fn a_message_that_does_not_fit_is_refused_completely() {
        let mut outbox = Outbox::new(&PREAMBLE_OF_3, Some(1000));
        assert!(outbox.write(900, at(1), false));
        assert!(!outbox.write(200, at(1), false));
        assert!(outbox.write(100, at(1), false) && outbox.write(10_000, at(1), true));
        assert_eq!(payload(&carry(&mut outbox, 77, usize::MAX).0), 11_000);
    }

    #[test]
    fn other_protocols_are_refused() {
        let refused = |bytes: &[u8]| Inlet::default().feed(bytes, |_| {});
        assert_eq!(refused(b"GET / HTTP/1.1\r\n\r\n"), Err(ProtocolError));
        let zero_length = [&PREAMBLE_OF_3.write()[..], &[0]].concat();
        assert_eq!(refused(&zero_length), Err(ProtocolError));
    }
}
