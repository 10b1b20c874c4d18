//! What a connection, a message and a datagram of ours begin with; all numbers big-endian.
//!
//! | header | bytes | what |
//! | --- | --- | --- |
//! | preamble of a TCP connection | 16 | magic 4, version 1, flags 1, DSCP 1, 0, flow 4, receive buffer 4 |
//! | message, 16 B and more | 16 | length with the highest bit set 8, when it was written 8 |
//! | message below 16 B | 1 | length |
//! | note to a sender | 16 | bytes delivered 8, when the last came 8 |
//! | datagram | 24 | magic 2, kind 1, DSCP 1, flow 4, sequence 8, when it was sent 8 |
//! | TFRC datagram | 36 | the same, round-trip time 8, segment size 3, flags 1 |
//! | TFRC feedback | 40 | magic 2, kind 1, 0, flow 4, echo 8, delay 8, rate received 8, loss event rate 8 |
//!
//! Headers are part of the payload that an application asked for, so rates and sizes are exact; a preamble is not, it
//! belongs to the handshake. Times are nanoseconds of the receiver's clock. Readers answer `None` to whatever is not
//! exactly of this form: nothing of the wire is believed.

use cutline_transport::tfrc;
use cutline_units::{Dscp, Duration, Instant};

/// The header of a UDP datagram, bytes: no datagram is shorter.
pub const DATAGRAM_HEADER: usize = 24;
/// The header of a TFRC datagram, bytes: no datagram is shorter.
pub const TFRC_HEADER: usize = 36;
/// The header of a message over TCP, bytes. Shorter ones have a length alone, and no latency is measured of them.
pub const MESSAGE_HEADER: usize = 16;
/// What a connection begins with, bytes.
pub(crate) const PREAMBLE: usize = 16;
/// What tells a sender that something has arrived whole, bytes.
pub(crate) const NOTE: usize = 16;
/// A TFRC feedback datagram, bytes.
pub(crate) const FEEDBACK: usize = 40;

const STREAM_MAGIC: [u8; 4] = *b"CtlT";
const VERSION: u8 = 1;
const DATAGRAM_MAGIC: [u8; 2] = [0xc7, 0x71];
const LONG: u64 = 1 << 63;
/// Longer than any round trip that is believed.
const LONGEST_RTT: Duration = Duration::from_secs(3600);

/// Who a TCP connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Preamble {
    pub(crate) flow: u32,
    /// Whether the sender wants to know when a message has arrived whole.
    pub(crate) notify: bool,
    /// What acknowledgements are marked with.
    pub(crate) dscp: Dscp,
    /// The receiver's buffer, bytes; zero leaves it to the kernel.
    pub(crate) receive_buffer: u32,
}

/// How a message begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// Its length, header included, and when it was written.
    Long(u64, Instant),
    /// Its length, 1..=15.
    Short(u8),
}

/// What has arrived at the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) delivered: u64,
    pub(crate) at: Instant,
}

/// A data datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Data {
    pub(crate) flow: u32,
    pub(crate) dscp: Dscp,
    pub(crate) seq: u64,
    pub(crate) sent_at: Instant,
    pub(crate) tfrc: Option<TfrcData>,
}

/// What a TFRC sender tells its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TfrcData {
    pub(crate) rtt: Duration,
    pub(crate) segment_size: u32,
    pub(crate) history_discounting: bool,
    pub(crate) ecn: bool,
}

/// What a TFRC receiver tells its sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Feedback {
    pub(crate) flow: u32,
    pub(crate) report: tfrc::Feedback,
}

/// Numbers out of bytes, one after the other.
struct Cursor<'b>(&'b [u8]);

impl Cursor<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take().map(|[byte]| byte)
    }

    fn instant(&mut self) -> Option<Instant> {
        self.u64().map(Instant::from_nanos)
    }

    /// A number that is no infinity and not below zero.
    fn number(&mut self) -> Option<f64> {
        self.u64().map(f64::from_bits).filter(|number| number.is_finite() && *number >= 0.0)
    }
}

/// Puts parts one behind the other.
fn join<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut bytes = [0; N];
    let mut at = 0;
    for part in parts {
        bytes[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    debug_assert_eq!(at, N, "a header has the length that it is said to have");
    bytes
}

impl Preamble {
    pub(crate) fn write(&self) -> [u8; PREAMBLE] {
        let word = [VERSION, u8::from(self.notify), self.dscp.get(), 0];
        join(&[&STREAM_MAGIC, &word, &self.flow.to_be_bytes(), &self.receive_buffer.to_be_bytes()])
    }

    pub(crate) fn read(bytes: &[u8; PREAMBLE]) -> Option<Self> {
        let mut cursor = Cursor(bytes);
        let (magic, [version, flags, dscp, _]) = (cursor.take::<4>()?, cursor.take::<4>()?);
        if magic != STREAM_MAGIC || version != VERSION {
            return None;
        }
        let (flow, receive_buffer) = (cursor.u32()?, cursor.u32()?);
        Some(Self { flow, notify: flags & 1 != 0, dscp: Dscp::new(dscp)?, receive_buffer })
    }
}

impl Message {
    /// The beginning of a message of `length` bytes, at least 1, and how many bytes of it count.
    pub(crate) fn write(length: u64, written: Instant) -> ([u8; MESSAGE_HEADER], usize) {
        debug_assert!((1..LONG).contains(&length), "a message has at least a byte");
        if length < MESSAGE_HEADER as u64 {
            let mut bytes = [0; MESSAGE_HEADER];
            bytes[0] = length as u8;
            return (bytes, 1);
        }
        (join(&[&(length | LONG).to_be_bytes(), &written.as_nanos().to_be_bytes()]), MESSAGE_HEADER)
    }

    /// How long the beginning is, as its first byte says.
    pub(crate) const fn header_length(first: u8) -> usize {
        if first & 0x80 == 0 { 1 } else { MESSAGE_HEADER }
    }

    /// Reads a beginning of [`Message::header_length`] bytes.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let first = *bytes.first()?;
        if first & 0x80 == 0 {
            return (1..MESSAGE_HEADER as u8).contains(&first).then_some(Self::Short(first));
        }
        let mut cursor = Cursor(bytes);
        let (length, written) = (cursor.u64()? & !LONG, cursor.instant()?);
        (length >= MESSAGE_HEADER as u64).then_some(Self::Long(length, written))
    }
}

impl Note {
    pub(crate) fn write(&self) -> [u8; NOTE] {
        join(&[&self.delivered.to_be_bytes(), &self.at.as_nanos().to_be_bytes()])
    }

    pub(crate) fn read(bytes: [u8; NOTE]) -> Self {
        let halves = u128::from_be_bytes(bytes);
        Self { delivered: (halves >> 64) as u64, at: Instant::from_nanos(halves as u64) }
    }
}

impl Data {
    const UDP: u8 = 1;
    const TFRC: u8 = 2;

    /// How long its header is, bytes.
    pub(crate) const fn header_length(&self) -> usize {
        if self.tfrc.is_some() { TFRC_HEADER } else { DATAGRAM_HEADER }
    }

    /// The header; of it [`Data::header_length`] bytes count.
    pub(crate) fn write(&self) -> [u8; TFRC_HEADER] {
        let kind = if self.tfrc.is_some() { Self::TFRC } else { Self::UDP };
        let tfrc = self.tfrc.map_or([0; 12], |tfrc| {
            let flags = u32::from(tfrc.history_discounting) | u32::from(tfrc.ecn) << 1;
            join(&[&tfrc.rtt.as_nanos().to_be_bytes(), &(tfrc.segment_size << 8 | flags).to_be_bytes()])
        });
        join(&[
            &DATAGRAM_MAGIC,
            &[kind, self.dscp.get()],
            &self.flow.to_be_bytes(),
            &self.seq.to_be_bytes(),
            &self.sent_at.as_nanos().to_be_bytes(),
            &tfrc,
        ])
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let mut cursor = Cursor(bytes);
        if cursor.take()? != DATAGRAM_MAGIC {
            return None;
        }
        let (kind, dscp) = (cursor.u8()?, Dscp::new(cursor.u8()?)?);
        let (flow, seq, sent_at) = (cursor.u32()?, cursor.u64()?, cursor.instant()?);
        let tfrc = match kind {
            Self::UDP => None,
            Self::TFRC => Some(TfrcData::read(&mut cursor)?),
            _ => return None,
        };
        Some(Self { flow, dscp, seq, sent_at, tfrc })
    }
}

impl TfrcData {
    fn read(cursor: &mut Cursor<'_>) -> Option<Self> {
        let (rtt, word) = (Duration::from_nanos(cursor.u64()?), cursor.u32()?);
        let segment_size = word >> 8;
        let holds = rtt <= LONGEST_RTT && (1..=65_535).contains(&segment_size);
        let (history_discounting, ecn) = (word & 1 != 0, word & 2 != 0);
        holds.then_some(Self { rtt, segment_size, history_discounting, ecn })
    }
}

impl Feedback {
    const KIND: u8 = 3;

    pub(crate) fn write(&self) -> [u8; FEEDBACK] {
        let tfrc::Feedback { echo, t_delay, x_recv, p } = self.report;
        join(&[
            &DATAGRAM_MAGIC,
            &[Self::KIND, 0],
            &self.flow.to_be_bytes(),
            &echo.as_nanos().to_be_bytes(),
            &t_delay.as_nanos().to_be_bytes(),
            &x_recv.to_bits().to_be_bytes(),
            &p.to_bits().to_be_bytes(),
        ])
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let mut cursor = Cursor(bytes);
        if bytes.len() != FEEDBACK || cursor.take()? != DATAGRAM_MAGIC || cursor.take()? != [Self::KIND, 0] {
            return None;
        }
        let (flow, echo) = (cursor.u32()?, cursor.instant()?);
        let t_delay = Duration::from_nanos(cursor.u64()?);
        let (x_recv, p) = (cursor.number()?, cursor.number()?);
        let holds = p <= 1.0 && t_delay <= LONGEST_RTT && x_recv <= 1e15;
        holds.then_some(Self { flow, report: tfrc::Feedback { echo, t_delay, x_recv, p } })
    }
}

#[cfg(test)]
#[path = "header_tests.rs"]
mod tests;
