//! Wire format of an application's messages between two ends of this protocol; all numbers are big-endian.
//!
//! | datagram | bytes | fields |
//! | --- | --- | --- |
//! | data | 24 | magic number c7 52, the sender's round-trip time 2, token 4, number of the message 8, when it was sent 8; then the message |
//! | report | 8 and more | magic number c7 53, length of the whole 2, token 4; the report; with a key: a tag 32 |
//! | feedback | 8 and more | magic number c7 54, then as a report; of [rate control](crate::rate_control), with its content |
//!
//! The round-trip time is 0 without rate control and 1 while it is unknown. Otherwise its first 5 bits are e, the others m, and it
//! is (2048 + m) 2^e ns: 2 us to hours with an error of at most 0.025 %.
//!
//! In a stream a report looks the same. Data are fragments of messages, which are not numbered, since none is lost:
//!
//! | fragment | bytes | fields |
//! | --- | --- | --- |
//! | data | 16 | d1 for the last fragment of a message, d0 for one that more follow 1, length of its payload 3, token 4, when it was sent 8 |
//!
//! The messages of a [negotiation](crate::negotiation) come among them and begin with c7 51. Times are nanoseconds of the
//! sender's clock. The token is a number that follows from the session, so that no host outside of the path can add messages
//! to a connection.
//!
//! The header in a stream is as long as the alignment of memory that a copy is fast for: with 12 B, processors that copy slowly to
//! addresses a few bytes further on took 2.5 times as long for a message of 64 KB.
//!
//! Received bytes are not trusted: a frame that this version would not write is [`Frame::Foreign`] or [`Broken`].

use crate::authentication::TAG;
use crate::negotiation::{Framing, framing};
use cutline_units::{Duration, Instant};
use cutline_wire::{Reader, Writer};

/// The length of the header before a message in a datagram, bytes.
pub const DATAGRAM_HEADER: usize = 24;
/// The length of the header before a fragment of a message in a stream, bytes.
pub const STREAM_HEADER: usize = 16;
/// The longest payload of a fragment in a stream, bytes.
pub const LONGEST_FRAGMENT: usize = 0xff_ffff;
/// The longest report with its header and its tag, bytes.
pub const LONGEST_REPORT: usize = 512;
/// The length of a report's header, bytes.
const REPORT_HEADER: usize = 8;
const NEGOTIATION: [u8; 2] = [0xc7, 0x51];
const DATA: [u8; 2] = [0xc7, 0x52];
const REPORT: [u8; 2] = [0xc7, 0x53];
const FEEDBACK: [u8; 2] = [0xc7, 0x54];
/// Bits after the exponent of a round-trip time.
const MANTISSA: u32 = 11;
const UNKNOWN_RTT: u16 = 1;
/// The shortest and the longest round-trip time that two bytes can express, ns.
const SHORTEST_RTT: u64 = (1 << MANTISSA) + 2;
const LONGEST_RTT: u64 = ((2 << MANTISSA) - 1) << 31;
const LAST_FRAGMENT: u8 = 0xd1;
const FRAGMENT: u8 = 0xd0;

/// Kind of a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A message of the application: the bytes after the header.
    Data {
        /// The number of the message, from 0.
        number: u64,
        /// Time of sending, on the sender's clock.
        sent: Instant,
        /// The sender's round-trip time, if it has rate control; zero while it is unknown.
        rtt: Option<Duration>,
    },
    /// A message of an application whose end does not speak this protocol: all of the bytes.
    Plain,
    /// A report.
    Report,
    /// Feedback of rate control.
    Feedback,
    /// A message of a negotiation.
    Negotiation,
    /// Other bytes: the peer does not speak this protocol, or the token is not that of the session.
    Foreign,
}

/// Returns the header of a message in a datagram. `rtt` is the sender's round-trip time, if it has rate control; zero while it is
/// unknown.
#[inline]
pub fn datagram_header(
    token: u32,
    number: u64,
    sent: Instant,
    rtt: Option<Duration>,
) -> [u8; DATAGRAM_HEADER] {
    let mut bytes = [0; DATAGRAM_HEADER];
    let rtt = rtt.map_or(0, pack_rtt);
    Writer::new(&mut bytes).put(&DATA).u16(rtt).u32(token).u64(number).instant(sent);
    bytes
}

/// A round-trip time in two bytes, rounded to the nearest.
fn pack_rtt(rtt: Duration) -> u16 {
    if rtt.is_zero() {
        return UNKNOWN_RTT;
    }
    let rtt = rtt.as_nanos().clamp(SHORTEST_RTT, LONGEST_RTT);
    let e = rtt.ilog2() - MANTISSA;
    let rounded = (rtt + ((1 << e) >> 1)) >> e;
    // Where it is rounded up to the next power of two, the exponent rises with it.
    ((u64::from(e) << MANTISSA) + rounded - (1 << MANTISSA)).min(u64::from(u16::MAX)) as u16
}

/// The round-trip time that two bytes are; `None` without rate control.
fn unpack_rtt(packed: u16) -> Option<Duration> {
    match packed {
        0 => None,
        UNKNOWN_RTT => Some(Duration::ZERO),
        _ => {
            let (e, m) = (packed >> MANTISSA, packed & ((1 << MANTISSA) - 1));
            Some(Duration::from_nanos(u64::from((1 << MANTISSA) + m) << e))
        }
    }
}

/// Returns the header of a fragment of a message in a stream. `length` is at most [`LONGEST_FRAGMENT`].
pub fn stream_header(token: u32, length: usize, is_last: bool, sent: Instant) -> [u8; STREAM_HEADER] {
    debug_assert!(length <= LONGEST_FRAGMENT, "a fragment has at most {LONGEST_FRAGMENT} B");
    let kind = if is_last { LAST_FRAGMENT } else { FRAGMENT };
    let mut bytes = [0; STREAM_HEADER];
    Writer::new(&mut bytes).u32(u32::from(kind) << 24 | length as u32).u32(token).instant(sent);
    bytes
}

/// Returns whether this is the header of a fragment of a message.
pub const fn is_data(header: &[u8; STREAM_HEADER]) -> bool {
    is_data_kind(header[0])
}

/// Returns whether the header of a fragment of a message begins with this byte.
pub const fn is_data_kind(first: u8) -> bool {
    matches!(first, FRAGMENT | LAST_FRAGMENT)
}

/// Returns a report as a datagram or a part of a stream. `tag` computes the tag of the bytes before it, if there is a key.
///
/// # Panics
/// When it is longer than [`LONGEST_REPORT`].
pub fn report(token: u32, content: &[u8], tag: Option<impl FnOnce(&[u8]) -> [u8; TAG]>) -> Vec<u8> {
    with_header(REPORT, token, content, tag)
}

/// Returns feedback of rate control as a datagram. `tag` computes the tag of the bytes before it, if there is a key.
///
/// # Panics
/// When it is longer than [`LONGEST_REPORT`].
pub fn feedback(token: u32, content: &[u8], tag: Option<impl FnOnce(&[u8]) -> [u8; TAG]>) -> Vec<u8> {
    with_header(FEEDBACK, token, content, tag)
}

fn with_header(
    kind: [u8; 2],
    token: u32,
    content: &[u8],
    tag: Option<impl FnOnce(&[u8]) -> [u8; TAG]>,
) -> Vec<u8> {
    let length = REPORT_HEADER + content.len() + tag.as_ref().map_or(0, |_| TAG);
    assert!(length <= LONGEST_REPORT, "a report has at most {LONGEST_REPORT} B");
    let mut bytes = vec![0; REPORT_HEADER + content.len()];
    Writer::new(&mut bytes).put(&kind).u16(length as u16).u32(token).put(content);
    if let Some(tag) = tag {
        let tag = tag(&bytes);
        bytes.extend(tag);
    }
    bytes
}

/// Returns the frame in a datagram. `token` is that of the session; data and reports with another one are foreign. There is none while
/// the peer does not take part: then whatever is no message of a negotiation is [plain](Frame::Plain).
#[inline]
pub fn datagram(bytes: &[u8], token: Option<u32>) -> Frame {
    let Some(token) = token else {
        let is_whole = framing(bytes) == Framing::Whole(bytes.len());
        return if is_whole { Frame::Negotiation } else { Frame::Plain };
    };
    match bytes.first_chunk() {
        Some(&DATA) => data(bytes, token).unwrap_or(Frame::Foreign),
        Some(&REPORT) if report_at(bytes, token) == Some(bytes.len()) => Frame::Report,
        Some(&FEEDBACK) if report_at(bytes, token) == Some(bytes.len()) => Frame::Feedback,
        Some(&NEGOTIATION) => Frame::Negotiation,
        _ => Frame::Foreign,
    }
}

fn data(bytes: &[u8], token: u32) -> Option<Frame> {
    let mut reader = Reader::new(bytes);
    let (_magic, rtt, theirs) = (reader.u16()?, reader.u16()?, reader.u32()?);
    let (number, sent) = (reader.u64()?, reader.instant()?);
    (theirs == token).then(|| Frame::Data { number, sent, rtt: unpack_rtt(rtt) })
}

/// Returns the contents of a report or feedback: the bytes after its header. The tag has been removed.
pub fn report_content(untagged: &[u8]) -> &[u8] {
    untagged.get(REPORT_HEADER..).unwrap_or_default()
}

/// The length of the report or feedback that begins here, header included.
fn report_at(bytes: &[u8], token: u32) -> Option<usize> {
    let mut reader = Reader::new(bytes);
    let (_magic, length, theirs) = (reader.u16()?, usize::from(reader.u16()?), reader.u32()?);
    ((REPORT_HEADER..=LONGEST_REPORT).contains(&length) && theirs == token).then_some(length)
}

/// Returns the token of a datagram that has the form of a message, report or feedback of some session. A datagram of an end that takes no
/// part has this form only by chance.
pub fn token_of(bytes: &[u8]) -> Option<u32> {
    let token = u32::from_be_bytes(*bytes.get(4..)?.first_chunk()?);
    let has_its_form = match bytes.first_chunk()? {
        &DATA => bytes.len() >= DATAGRAM_HEADER,
        &REPORT | &FEEDBACK => report_at(bytes, token) == Some(bytes.len()),
        _ => false,
    };
    has_its_form.then_some(token)
}

/// Next item of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamItem {
    /// Payload of the application, with its length. `end` is that of a message, with the time when it was sent and its
    /// length, if the message ends with them.
    Payload {
        /// Number of bytes.
        bytes: usize,
        /// The end of the message.
        end: Option<End>,
    },
    /// Message of a negotiation, with its length.
    Negotiation(usize),
    /// Report, with its length.
    Report(usize),
}

/// The end of a message in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Time at which the message was sent, on the sender's clock.
    pub sent: Instant,
    /// Its length, bytes.
    pub length: u64,
}

/// A stream with a frame that this version would not write. Later bytes cannot be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the peer has sent bytes that are no message of this protocol")]
pub struct Broken;

/// Finds the messages in a stream. It keeps no bytes.
#[derive(Clone, Debug, Default)]
pub struct StreamReader {
    /// Payload of the present fragment that has not come yet, bytes.
    rest: usize,
    is_last: bool,
    /// Time at which the message was sent; `None` between messages.
    sent: Option<Instant>,
    /// Payload of the present message so far, bytes.
    length: u64,
}

impl StreamReader {
    /// Payload that comes next without a header in between, bytes.
    pub const fn rest(&self) -> usize {
        self.rest
    }

    /// Returns whether a message has begun and not ended.
    pub const fn is_within_message(&self) -> bool {
        self.sent.is_some()
    }

    /// Returns the next item at the beginning of `bytes`, and the length of the header before it, which is skipped; `None`
    /// while there are too few bytes. The caller takes the header and the item from the stream, and calls again.
    ///
    /// # Errors
    /// When the bytes are no item of this session. The caller must not call again.
    pub fn next(&mut self, bytes: &[u8], token: u32) -> Result<Option<(usize, StreamItem)>, Broken> {
        if self.rest > 0 {
            return Ok((!bytes.is_empty()).then(|| (0, self.payload(bytes.len()))));
        }
        match bytes.first().copied() {
            None => Ok(None),
            Some(kind @ (FRAGMENT | LAST_FRAGMENT)) => {
                let Some(header) = bytes.first_chunk::<STREAM_HEADER>() else { return Ok(None) };
                let (length, sent) = fragment(header, token).ok_or(Broken)?;
                (self.rest, self.is_last) = (length, kind == LAST_FRAGMENT);
                self.sent.get_or_insert(sent);
                Ok(Some((STREAM_HEADER, self.payload(bytes.len() - STREAM_HEADER))))
            }
            Some(_) => control(bytes, token),
        }
    }

    /// Takes payload that has been read past this reader: the caller has put the next bytes elsewhere.
    pub fn take(&mut self, bytes: usize) -> Option<End> {
        match self.payload(bytes) {
            StreamItem::Payload { end, .. } => end,
            StreamItem::Negotiation(_) | StreamItem::Report(_) => None,
        }
    }

    fn payload(&mut self, there: usize) -> StreamItem {
        let bytes = self.rest.min(there);
        self.rest -= bytes;
        self.length += bytes as u64;
        let is_end = self.rest == 0 && self.is_last;
        let end = self.sent.filter(|_| is_end).map(|sent| End { sent, length: self.length });
        if is_end {
            (self.sent, self.length) = (None, 0);
        }
        StreamItem::Payload { bytes, end }
    }
}

/// The length of a fragment's payload, and the time at which its message was sent; `None` if it is not of this session.
fn fragment(header: &[u8; STREAM_HEADER], token: u32) -> Option<(usize, Instant)> {
    let mut reader = Reader::new(header);
    let (kind_and_length, theirs, sent) = (reader.u32()?, reader.u32()?, reader.instant()?);
    (theirs == token).then_some(((kind_and_length & 0xff_ffff) as usize, sent))
}

/// A control message at the beginning of `bytes`.
fn control(bytes: &[u8], token: u32) -> Result<Option<(usize, StreamItem)>, Broken> {
    let item = match bytes.first_chunk() {
        None if bytes[0] == REPORT[0] => None,
        Some(&REPORT) => match report_at(bytes, token) {
            None if bytes.len() < REPORT_HEADER => None,
            None => return Err(Broken),
            Some(length) => (bytes.len() >= length).then_some(StreamItem::Report(length)),
        },
        _ => match framing(bytes) {
            Framing::Foreign => return Err(Broken),
            Framing::Part => None,
            Framing::Whole(length) => Some(StreamItem::Negotiation(length)),
        },
    };
    Ok(item.map(|item| (0, item)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TOKEN: u32 = 77;

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    #[test]
    fn a_datagram_is_read_as_it_was_written() {
        let sent = at(123);
        let message = [&datagram_header(TOKEN, 9, sent, None)[..], b"hello"].concat();
        assert_eq!(datagram(&message, Some(TOKEN)), Frame::Data { number: 9, sent, rtt: None });
        assert_eq!(datagram(&message, Some(TOKEN + 1)), Frame::Foreign);
        assert_eq!(datagram(&message[..23], Some(TOKEN)), Frame::Foreign);
        let bytes = report(TOKEN, b"content", Some(|_: &[u8]| [5; TAG]));
        assert_eq!(datagram(&bytes, Some(TOKEN)), Frame::Report);
        assert_eq!(report_content(&bytes[..15]), b"content");
        let again = feedback(TOKEN, b"content", Some(|_: &[u8]| [5; TAG]));
        assert_eq!((datagram(&again, Some(TOKEN)), &again[2..]), (Frame::Feedback, &bytes[2..]));
        assert_eq!(datagram(&again[..20], Some(TOKEN)), Frame::Foreign);
        assert_eq!(report_content(&bytes[..3]), b"");
        for wrong in [&bytes[..20], b"GET / HTTP/1.1", b"", b"\xc7"] {
            assert_eq!(datagram(wrong, Some(TOKEN)), Frame::Foreign);
        }
    }

    #[test]
    fn a_round_trip_time_is_encoded_in_two_bytes() {
        let through = |rtt: Duration| {
            let bytes = datagram_header(TOKEN, 9, at(123), Some(rtt));
            match datagram(&bytes, Some(TOKEN)) {
                Frame::Data { rtt, .. } => rtt.unwrap(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(through(Duration::ZERO), Duration::ZERO);
        // 2048 + 2, and 4095 x 2^31: what two bytes cannot say is the nearest that they can.
        assert_eq!(through(Duration::from_nanos(1)), Duration::from_nanos(2050));
        assert_eq!(through(Duration::MAX), Duration::from_nanos(4095 << 31));
        // 20 ms is 2441.4 x 2^13 ns.
        assert_eq!(through(Duration::from_millis(20)), Duration::from_nanos(2441 << 13));
        let mut rtt = 2050_u64;
        while rtt < 4095 << 31 {
            let said = through(Duration::from_nanos(rtt)).as_nanos();
            assert!(said.abs_diff(rtt) as f64 <= rtt as f64 * 0.000_25, "{rtt} is said as {said}");
            rtt += rtt / 1000 + 1;
        }
    }

    /// A message with its end, or a control message.
    type Found = (Vec<u8>, Option<End>);

    /// Everything that a reader finds in bytes that come in pieces.
    fn read(bytes: &[u8], pieces: &[usize]) -> Result<Vec<Found>, Broken> {
        let mut reader = StreamReader::default();
        let (mut buffer, mut found, mut message) = (Vec::new(), Vec::new(), Vec::new());
        let mut rest = bytes;
        for piece in pieces.iter().chain([&bytes.len()]) {
            let (now, later) = rest.split_at((*piece).min(rest.len()));
            rest = later;
            buffer.extend_from_slice(now);
            while let Some((header, item)) = reader.next(&buffer, TOKEN)? {
                buffer.drain(..header);
                let (StreamItem::Payload { bytes, .. }
                | StreamItem::Negotiation(bytes)
                | StreamItem::Report(bytes)) = item;
                let taken: Vec<u8> = buffer.drain(..bytes).collect();
                match item {
                    StreamItem::Payload { end, .. } => {
                        message.extend(taken);
                        if end.is_some() {
                            found.push((std::mem::take(&mut message), end));
                        }
                    }
                    StreamItem::Negotiation(_) | StreamItem::Report(_) => found.push((taken, None)),
                }
            }
        }
        Ok(found)
    }

    proptest! {
        #[test]
        fn a_stream_is_read_as_it_was_written(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..8),
            fragment in 1_usize..200, pieces in prop::collection::vec(1_usize..90, 0..80),
        ) {
            let (mut bytes, mut expected) = (Vec::new(), Vec::new());
            for (i, message) in messages.iter().enumerate() {
                let sent = at(i as u64);
                let parts: Vec<&[u8]> = message.chunks(fragment).collect();
                let parts = if parts.is_empty() { vec![&[][..]] } else { parts };
                for (k, part) in parts.iter().enumerate() {
                    let is_last = k + 1 == parts.len();
                    bytes.extend(stream_header(TOKEN, part.len(), is_last, at(i as u64 + 1000 * k as u64)));
                    bytes.extend_from_slice(part);
                }
                expected.push((message.clone(), Some(End { sent, length: message.len() as u64 })));
                let control = report(TOKEN, &[7; 9], None::<fn(&[u8]) -> [u8; TAG]>);
                bytes.extend(&control);
                expected.push((control, None));
            }
            prop_assert_eq!(read(&bytes, &pieces), Ok(expected));
        }

        #[test]
        fn random_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..200), pieces in prop::collection::vec(1_usize..20, 0..20)) {
            let _ = read(&bytes, &pieces);
            let _ = datagram(&bytes, Some(TOKEN));
        }
    }

    #[test]
    fn invalid_bytes_break_a_stream() {
        assert_eq!(read(b"GET /", &[]), Err(Broken));
        assert_eq!(read(&[0xc7, 0x53, 0xff, 0xff, 0, 0, 0, TOKEN as u8], &[]), Err(Broken));
        let other = report(TOKEN + 1, &[], None::<fn(&[u8]) -> [u8; TAG]>);
        assert_eq!(read(&other, &[]), Err(Broken));
        let none = None::<fn(&[u8]) -> [u8; TAG]>;
        assert_eq!(read(&feedback(TOKEN, &[], none), &[]), Err(Broken), "streams have none");
        let part = stream_header(TOKEN, 5, true, at(0));
        assert_eq!(read(&part, &[]), Ok(vec![]));
        assert_eq!(read(&stream_header(TOKEN + 1, 5, true, at(0)), &[]), Err(Broken));
    }
}
