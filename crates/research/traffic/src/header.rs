//! The headers of a TCP connection and of the messages in it. All numbers are big-endian. The headers of datagrams are
//! in [`cutline_transport::wire`].
//!
//! | header | bytes | fields and their bytes |
//! | --- | --- | --- |
//! | preamble of a TCP connection | 24 | magic 4, version 1, flags 1, DSCP 1, 0, flow 4, receive buffer 4, token 8 |
//! | message of 16 B or more | 16 | length with the highest bit set 8, time of writing 8 |
//! | message below 16 B | 1 | length |
//! | note to a sender | 16 | bytes delivered 8, arrival time of the last byte 8 |
//! | proof of a path, a datagram | 24 | magic 2, step 1, 0, flow 4, token 8, nonce 8 |
//!
//! A message's header counts as payload of the application, so rates and sizes are exact. A preamble does not; it
//! belongs to the handshake. The end that opens a connection writes the preamble. If the receiver of the session sends the
//! flow's data, the preamble is marked as reverse, and the receiver writes one, too, before the messages. Times are nanoseconds of the receiver's clock. A reader returns `None` if the magic
//! number, the version or a length is unknown, or if a value is out of range. It ignores undefined flags and the last
//! byte of the preamble's first eight.

use cutline_transport::wire::{Reader, Writer};
use cutline_units::{Dscp, Instant};

/// The length of a message's header over TCP, bytes. A shorter message carries only its length; its latency is not
/// measured.
pub const MESSAGE_HEADER: usize = 16;
/// The length of a TCP connection's preamble, bytes.
pub const PREAMBLE: usize = 24;
/// The length of the note to a sender with the number of bytes that have arrived, bytes.
pub const NOTE: usize = 16;

const STREAM_MAGIC: [u8; 4] = *b"CtlT";
const VERSION: u8 = 3;
const NOTIFY: u8 = 1;
const REVERSE: u8 = 2;
const PROOF_MAGIC: [u8; 2] = [0xc7, 0x72];
const LONG: u64 = 1 << 63;

/// The length of a datagram that proves a path, bytes.
pub const PROOF: usize = 24;

/// The first bytes of a TCP connection. They name the flow that it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preamble {
    /// The flow's number.
    pub flow: u32,
    /// True if the receiver sends a note when a message is complete.
    pub notify: bool,
    /// True if the end that accepts the connection sends the flow's data.
    pub reverse: bool,
    /// The code point of the acknowledgements.
    pub dscp: Dscp,
    /// The size of the receiver's buffer, bytes; zero for the kernel's default.
    pub receive_buffer: u32,
    /// The session's token ([`cutline_transport::wire`]).
    pub token: u64,
}

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// The length, header included, and the time of writing.
    Long(u64, Instant),
    /// The length, 1..=15.
    Short(u8),
}

/// The progress of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// Payload that the receiver has read, bytes.
    pub delivered: u64,
    /// The time at which the receiver read the last of them.
    pub at: Instant,
}

/// A step of the proof that the end that requests a run receives packets to the address of its datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// To the receiver of the session: "send this flow to the address that this comes from".
    Call,
    /// From the receiver to that address: a nonce.
    Challenge,
    /// To the receiver: the nonce.
    Answer,
    /// From the receiver: the address is proven.
    Accepted,
}

/// A datagram that proves a path. All steps have the same length, so a receiver sends no more than it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The step.
    pub step: Step,
    /// The flow's number.
    pub flow: u32,
    /// The session's token.
    pub token: u64,
    /// The nonce; zero in [`Step::Call`].
    pub nonce: u64,
}

impl Step {
    const ALL: [Self; 4] = [Self::Call, Self::Challenge, Self::Answer, Self::Accepted];
}

impl Proof {
    /// Returns the encoded bytes.
    pub fn write(&self) -> [u8; PROOF] {
        header(|to| {
            to.put(&PROOF_MAGIC).u8(self.step as u8 + 1).u8(0).u32(self.flow).u64(self.token).u64(self.nonce);
        })
    }

    /// Reads a datagram; returns `None` if it is not a proof of a path.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        if reader.take()? != PROOF_MAGIC {
            return None;
        }
        let (step, zero) = (reader.u8()?, reader.u8()?);
        let step = *Step::ALL.get(usize::from(step).checked_sub(1)?)?;
        let (flow, token, nonce) = (reader.u32()?, reader.u64()?, reader.u64()?);
        (zero == 0 && reader.is_at_end()).then_some(Self { step, flow, token, nonce })
    }
}

/// Returns the bytes of a header of known length.
fn header<const N: usize>(write: impl FnOnce(&mut Writer<'_>)) -> [u8; N] {
    let mut bytes = [0; N];
    let mut writer = Writer::new(&mut bytes);
    write(&mut writer);
    debug_assert_eq!(writer.length(), N, "a header has its declared length");
    bytes
}

impl Preamble {
    /// Returns the encoded bytes.
    pub fn write(&self) -> [u8; PREAMBLE] {
        let flags = (u8::from(self.notify) * NOTIFY) | (u8::from(self.reverse) * REVERSE);
        let word = [VERSION, flags, self.dscp.get(), 0];
        header(|to| {
            to.put(&STREAM_MAGIC).put(&word).u32(self.flow).u32(self.receive_buffer).u64(self.token);
        })
    }

    /// Returns whether a preamble may begin with these bytes.
    pub fn may_begin_with(bytes: &[u8]) -> bool {
        bytes.iter().zip(STREAM_MAGIC).all(|(byte, expected)| *byte == expected)
    }

    /// Reads a preamble; returns `None` if the bytes are not a preamble of this protocol.
    pub fn read(bytes: &[u8; PREAMBLE]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let (magic, [version, flags, dscp, _]) = (reader.take::<4>()?, reader.take::<4>()?);
        if magic != STREAM_MAGIC || version != VERSION {
            return None;
        }
        let (flow, receive_buffer, token) = (reader.u32()?, reader.u32()?, reader.u64()?);
        let (notify, reverse) = (flags & NOTIFY != 0, flags & REVERSE != 0);
        Some(Self { flow, notify, reverse, dscp: Dscp::new(dscp)?, receive_buffer, token })
    }
}

impl Message {
    /// Returns the header of a message of `length` bytes (at least 1), and the number of bytes of it that are used.
    pub fn write(length: u64, written: Instant) -> ([u8; MESSAGE_HEADER], usize) {
        debug_assert!((1..LONG).contains(&length), "a message has at least a byte");
        if length < MESSAGE_HEADER as u64 {
            let mut bytes = [0; MESSAGE_HEADER];
            bytes[0] = length as u8;
            return (bytes, 1);
        }
        let bytes = header(|to| {
            to.u64(length | LONG).instant(written);
        });
        (bytes, MESSAGE_HEADER)
    }

    /// Returns the length of the header that begins with the byte `first`.
    pub const fn header_length(first: u8) -> usize {
        if first & 0x80 == 0 { 1 } else { MESSAGE_HEADER }
    }

    /// Reads a header of [`Message::header_length`] bytes; returns `None` if it is invalid.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let first = *bytes.first()?;
        if first & 0x80 == 0 {
            return (1..MESSAGE_HEADER as u8).contains(&first).then_some(Self::Short(first));
        }
        let mut reader = Reader::new(bytes);
        let (length, written) = (reader.u64()? & !LONG, reader.instant()?);
        (length >= MESSAGE_HEADER as u64).then_some(Self::Long(length, written))
    }
}

impl Note {
    /// Returns the encoded bytes.
    pub fn write(&self) -> [u8; NOTE] {
        header(|to| {
            to.u64(self.delivered).instant(self.at);
        })
    }

    /// Reads a note. Every value is valid.
    pub fn read(bytes: [u8; NOTE]) -> Self {
        let halves = u128::from_be_bytes(bytes);
        Self { delivered: (halves >> 64) as u64, at: Instant::from_nanos(halves as u64) }
    }
}

#[cfg(test)]
#[path = "header_tests.rs"]
mod tests;
