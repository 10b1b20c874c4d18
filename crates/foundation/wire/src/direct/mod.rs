//! Messages in frames below IP: the "direct" transport.
//!
//! QUANTA (section 4.1.3) compares TCP with connections that use AAL5 directly. There a block is a packet of AAL5, which is cut into
//! cells, and the loss of one cell loses the whole. Here a message is cut into Ethernet frames with an Ethernet type of their own, and the loss
//! of one frame loses the message.
//!
//! A frame behind its Ethernet header, numbers in network order:
//!
//! ```text
//! byte  0      version (1) in the high four bits; flags in the low ones, all 0
//!       1      delay hint: its level, or 0 for none
//!       2..4   payload of this frame, bytes
//!       4..6   destination port
//!       6..8   source port
//!       8..12  number of the message at its sender; it wraps around
//!      12..16  length of the message, bytes
//!      16..20  place of the payload in the message, bytes
//!      20..    payload; in the last frame of a message followed by the checksum, 4 bytes
//! ```
//!
//! Length and checksum have the same purpose as in the trailer of an AAL5 CPCS-PDU (RFC 2684 section 4): they detect lost, foreign and changed
//! parts. The checksum has AAL5's generator polynomial in the bit order of Ethernet (IEEE Std 802.3 section 3.2.9), for which processors
//! have instructions. It covers ports, number and length, and then the payload of the message. Whatever follows is the padding of a short
//! frame and is ignored.
//!
//! ```
//! use cutline_wire::direct::{DirectFlow, Reassembly, Segments};
//!
//! let flow = DirectFlow { destination: 7000, source: 50_000 };
//! let segments = Segments::new(flow, 1, None, 3000, 1500)?;
//! let mut frames = Vec::new();
//! let ranges = segments.write(&[&[7; 3000]], &mut frames);
//! assert_eq!(ranges.len(), 3);
//!
//! let mut reassembly = Reassembly::new(1);
//! let mut messages = Vec::new();
//! for range in ranges {
//!     messages.extend(reassembly.take([2, 0, 0, 0, 0, 1], &frames[range]).unwrap());
//! }
//! assert_eq!(messages[0].bytes, [7; 3000]);
//! # Ok::<(), cutline_wire::direct::SegmentError>(())
//! ```

mod reassembly;
mod segments;

pub use reassembly::{DirectMessage, DirectSource, Reassembly, ReassemblyStats};
pub use segments::{SegmentError, Segments};

use crate::{Reader, Writer};
use std::fmt;

/// Ethernet type of the frames: local experimental Ethernet type 1 (IEEE Std 802a-2003 section 3.2). It has no meaning outside of a
/// network whose owner has given it one, and bridges forward it like any other.
pub const ETHERTYPE: u16 = 0x88b5;
/// Version of the format.
pub const VERSION: u8 = 1;
/// Length of the header of a frame, bytes.
pub const HEADER: usize = 20;
/// Length of the checksum behind the payload of a message's last frame, bytes.
pub const CHECKSUM: usize = 4;
/// The longest message, bytes: the largest block of QUANTA, 64 KB, with the header of a QoS socket.
pub const LONGEST_MESSAGE: usize = 65_536 + 1024;
/// The shortest payload of a frame that is not the last of its message, bytes. It bounds the number of frames of a message.
pub const LEAST_PAYLOAD: usize = 40;

/// The ports of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DirectFlow {
    /// Port of the receiver.
    pub destination: u16,
    /// Port of the sender.
    pub source: u16,
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectHeader {
    /// Ports.
    pub flow: DirectFlow,
    /// Level of the delay hint; `None` for none.
    pub hint: Option<u8>,
    /// Number of the message.
    pub number: u32,
    /// Length of the message, bytes.
    pub total: u32,
    /// Place of the frame's payload in the message, bytes.
    pub offset: u32,
    /// Payload of the frame, bytes.
    pub length: u16,
}

/// The reason why bytes are no frame of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectFrameError {
    /// Fewer bytes than the header and its payload.
    Truncated,
    /// A version of the format other than [`VERSION`], or flags that it does not have.
    Version(u8),
    /// A message that is longer than [`LONGEST_MESSAGE`].
    TooLong(u32),
    /// The payload is not inside the message, is shorter than [`LEAST_PAYLOAD`] although it is not the last, or overlaps another one.
    Place {
        /// Place in the message, bytes.
        offset: u32,
        /// Payload, bytes.
        length: u16,
        /// Length of the message, bytes.
        total: u32,
    },
    /// The checksum of the message is another one.
    Checksum,
}

impl fmt::Display for DirectFrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the frame is shorter than the length in its header"),
            Self::Version(byte) => {
                write!(f, "version and flags = {byte:#04x}: expected {:#04x}", VERSION << 4)
            }
            Self::TooLong(total) => {
                write!(f, "length of the message = {total} B: at most {LONGEST_MESSAGE} B")
            }
            Self::Place { offset, length, total } => {
                write!(f, "payload of {length} B at {offset} of a message of {total} B")
            }
            Self::Checksum => f.write_str("the checksum of the message is wrong"),
        }
    }
}

impl std::error::Error for DirectFrameError {}

impl DirectHeader {
    /// Returns whether the frame is the last one of its message, which has the checksum.
    pub const fn is_last(&self) -> bool {
        self.offset + self.length as u32 == self.total
    }

    /// Appends the header to `frame`.
    pub fn write(&self, frame: &mut Vec<u8>) {
        let mut header = [0; HEADER];
        let mut writer = Writer::new(&mut header);
        writer.u8(VERSION << 4).u8(self.hint.unwrap_or(0)).u16(self.length);
        writer.u16(self.flow.destination).u16(self.flow.source);
        writer.u32(self.number).u32(self.total).u32(self.offset);
        frame.extend(header);
    }

    /// Reads the header of a frame. Returns it with the payload, and the checksum of the message if the frame is the last one.
    ///
    /// # Errors
    /// When the bytes are no frame of a message.
    pub fn read(frame: &[u8]) -> Result<(Self, &[u8], Option<u32>), DirectFrameError> {
        let (header, rest) = Self::fields(frame).ok_or(DirectFrameError::Truncated)?;
        if frame[0] != VERSION << 4 {
            return Err(DirectFrameError::Version(frame[0]));
        }
        let Self { total, offset, length, .. } = header;
        if total as usize > LONGEST_MESSAGE {
            return Err(DirectFrameError::TooLong(total));
        }
        let end = offset.checked_add(u32::from(length)).filter(|end| *end <= total);
        let is_short = end != Some(total) && usize::from(length) < LEAST_PAYLOAD;
        // An empty payload at the end would be a second last frame.
        let is_empty = length == 0 && total > 0;
        if end.is_none() || is_short || is_empty {
            return Err(DirectFrameError::Place { offset, length, total });
        }
        let (payload, rest) = rest.split_at_checked(length.into()).ok_or(DirectFrameError::Truncated)?;
        let checksum = if header.is_last() {
            Some(u32::from_be_bytes(*rest.first_chunk().ok_or(DirectFrameError::Truncated)?))
        } else {
            None
        };
        Ok((header, payload, checksum))
    }

    fn fields(frame: &[u8]) -> Option<(Self, &[u8])> {
        let mut reader = Reader::new(frame);
        let _version = reader.u8()?;
        let hint = Some(reader.u8()?).filter(|level| *level > 0);
        let length = reader.u16()?;
        let flow = DirectFlow { destination: reader.u16()?, source: reader.u16()? };
        let (number, total, offset) = (reader.u32()?, reader.u32()?, reader.u32()?);
        Some((Self { flow, hint, number, total, offset, length }, &frame[HEADER..]))
    }
}

/// Checksum of a message under way.
fn checksum(flow: DirectFlow, number: u32, total: u32) -> crc32fast::Hasher {
    let mut head = [0; 12];
    head[..2].copy_from_slice(&flow.destination.to_be_bytes());
    head[2..4].copy_from_slice(&flow.source.to_be_bytes());
    head[4..8].copy_from_slice(&number.to_be_bytes());
    head[8..].copy_from_slice(&total.to_be_bytes());
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&head);
    checksum
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: DirectFlow = DirectFlow { destination: 0x1b58, source: 0xc350 };

    #[test]
    fn a_frame_is_written_byte_by_byte() {
        let mut frame = Vec::new();
        let segments = Segments::new(FLOW, 0x0102_0304, Some(6), 3, 1500).unwrap();
        let ranges: Vec<_> = segments.write(&[b"abc"], &mut frame).collect();
        assert!(ranges.len() == 1 && ranges[0] == (0..27), "{ranges:?}");
        let header = [0x10, 6, 0, 3, 0x1b, 0x58, 0xc3, 0x50, 1, 2, 3, 4, 0, 0, 0, 3, 0, 0, 0, 0];
        assert_eq!(frame[..20], header);
        assert_eq!(frame[20..23], *b"abc");
        // IEEE 802.3's CRC-32, bit by bit.
        let crc = [&header[4..12], &[0, 0, 0, 3], b"abc"].concat().iter().fold(u32::MAX, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
                (crc >> 1) ^ (0xedb8_8320 & 0_u32.wrapping_sub(crc & 1))
            })
        });
        assert_eq!(frame[23..], (!crc).to_be_bytes());
    }

    #[test]
    fn a_malformed_frame_names_its_field() {
        let mut good = Vec::new();
        let frames = Segments::new(FLOW, 1, None, 100, 1500).unwrap().write(&[&[1; 100]], &mut good);
        assert_eq!(frames.len(), 1);
        let changed = |at: usize, value: u8| {
            let mut frame = good.clone();
            frame[at] = value;
            DirectHeader::read(&frame).map(|(header, ..)| header).unwrap_err()
        };
        assert_eq!(changed(0, 0x20), DirectFrameError::Version(0x20));
        assert_eq!(changed(0, 0x11), DirectFrameError::Version(0x11));
        assert_eq!(changed(3, 101), DirectFrameError::Place { offset: 0, length: 101, total: 100 });
        assert_eq!(changed(3, 20), DirectFrameError::Place { offset: 0, length: 20, total: 100 });
        assert_eq!(changed(19, 1), DirectFrameError::Place { offset: 1, length: 100, total: 100 });
        assert_eq!(changed(13, 2), DirectFrameError::TooLong(0x0002_0064));
        assert_eq!(DirectHeader::read(&good[..good.len() - 1]).unwrap_err(), DirectFrameError::Truncated);
        assert_eq!(DirectHeader::read(&good[..19]).unwrap_err(), DirectFrameError::Truncated);
        assert!(changed(13, 2).to_string().contains("at most 66560 B"));
    }
}
