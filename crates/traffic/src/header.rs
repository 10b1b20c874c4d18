//! The headers of a TCP connection and of the messages in it; all numbers are big-endian. Those of datagrams are the
//! transports' ([`cutline_transport::wire`]).
//!
//! | header | bytes | what |
//! | --- | --- | --- |
//! | preamble of a TCP connection | 16 | magic 4, version 1, flags 1, DSCP 1, 0, flow 4, receive buffer 4 |
//! | message, 16 B and more | 16 | length with the highest bit set 8, when it was written 8 |
//! | message below 16 B | 1 | length |
//! | note to a sender | 16 | bytes delivered 8, when the last came 8 |
//!
//! Headers are part of the payload that an application asked for, so rates and sizes are exact; a preamble is not, it
//! belongs to the handshake. Times are nanoseconds of the receiver's clock. A reader returns `None` if a magic number, a
//! version or a length is not one of these, or if a value is out of its range. It ignores flags that have no meaning yet, and
//! the last byte of a preamble's first half.

use cutline_transport::wire::{Reader, Writer};
use cutline_units::{Dscp, Instant};

/// The header of a message over TCP, bytes. Shorter ones have a length alone, and no latency is measured of them.
pub const MESSAGE_HEADER: usize = 16;
/// The preamble of a TCP connection, bytes.
pub const PREAMBLE: usize = 16;
/// The note that tells a sender how much has arrived, bytes.
pub const NOTE: usize = 16;

const STREAM_MAGIC: [u8; 4] = *b"CtlT";
const VERSION: u8 = 1;
const LONG: u64 = 1 << 63;

/// Which flow a TCP connection carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preamble {
    /// The flow's number.
    pub flow: u32,
    /// Whether the sender wants to know when a message has arrived whole.
    pub notify: bool,
    /// The code point of the acknowledgements.
    pub dscp: Dscp,
    /// The receiver's buffer, bytes; zero leaves it to the kernel.
    pub receive_buffer: u32,
}

/// How a message begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Its length, header included, and when it was written.
    Long(u64, Instant),
    /// Its length, 1..=15.
    Short(u8),
}

/// What has arrived at the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// Payload that the receiver has read, bytes.
    pub delivered: u64,
    /// When it read the last of it.
    pub at: Instant,
}

/// The bytes of a header of known length.
fn header<const N: usize>(write: impl FnOnce(&mut Writer<'_>)) -> [u8; N] {
    let mut bytes = [0; N];
    let mut writer = Writer::new(&mut bytes);
    write(&mut writer);
    debug_assert_eq!(writer.length(), N, "a header has the length that it is said to have");
    bytes
}

impl Preamble {
    /// Its bytes.
    pub fn write(&self) -> [u8; PREAMBLE] {
        let word = [VERSION, u8::from(self.notify), self.dscp.get(), 0];
        header(|to| {
            to.put(&STREAM_MAGIC).put(&word).u32(self.flow).u32(self.receive_buffer);
        })
    }

    /// Reads a preamble; `None` if the connection is none of ours.
    pub fn read(bytes: &[u8; PREAMBLE]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let (magic, [version, flags, dscp, _]) = (reader.take::<4>()?, reader.take::<4>()?);
        if magic != STREAM_MAGIC || version != VERSION {
            return None;
        }
        let (flow, receive_buffer) = (reader.u32()?, reader.u32()?);
        Some(Self { flow, notify: flags & 1 != 0, dscp: Dscp::new(dscp)?, receive_buffer })
    }
}

impl Message {
    /// The beginning of a message of `length` bytes, at least 1, and how many bytes of it count.
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

    /// How long the beginning is, as its first byte says.
    pub const fn header_length(first: u8) -> usize {
        if first & 0x80 == 0 { 1 } else { MESSAGE_HEADER }
    }

    /// Reads a beginning of [`Message::header_length`] bytes; `None` if no message begins so.
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
    /// Its bytes.
    pub fn write(&self) -> [u8; NOTE] {
        header(|to| {
            to.u64(self.delivered).instant(self.at);
        })
    }

    /// Reads a note. Every value is possible.
    pub fn read(bytes: [u8; NOTE]) -> Self {
        let halves = u128::from_be_bytes(bytes);
        Self { delivered: (halves >> 64) as u64, at: Instant::from_nanos(halves as u64) }
    }
}

#[cfg(test)]
#[path = "header_tests.rs"]
mod tests;
