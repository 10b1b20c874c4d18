//! Segmentation of messages into frames.

use super::{CHECKSUM, DirectFlow, DirectHeader, HEADER, LEAST_PAYLOAD, LONGEST_MESSAGE, checksum};
use std::fmt;
use std::ops::Range;

/// The frames of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    flow: DirectFlow,
    number: u32,
    hint: Option<u8>,
    total: usize,
    /// The longest payload of a frame, bytes.
    payload: usize,
}

/// The reason why a message cannot be cut into frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentError {
    /// A message longer than [`LONGEST_MESSAGE`].
    Message(usize),
    /// An MTU that leaves less than [`LEAST_PAYLOAD`].
    Mtu(usize),
}

impl fmt::Display for SegmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(length) => write!(f, "a message of {length} B: at most {LONGEST_MESSAGE} B"),
            Self::Mtu(mtu) => {
                write!(f, "MTU = {mtu} B: at least {} B", HEADER + CHECKSUM + LEAST_PAYLOAD)
            }
        }
    }
}

impl std::error::Error for SegmentError {}

impl Segments {
    /// Returns the frames of a message of this length over an interface with this MTU, the longest payload of its own header, bytes.
    /// `hint` is the level of the delay hint.
    ///
    /// # Errors
    /// When the message is too long or the MTU too small.
    pub const fn new(
        flow: DirectFlow,
        number: u32,
        hint: Option<u8>,
        length: usize,
        mtu: usize,
    ) -> Result<Self, SegmentError> {
        if length > LONGEST_MESSAGE {
            return Err(SegmentError::Message(length));
        }
        let payload = mtu.saturating_sub(HEADER + CHECKSUM);
        if payload < LEAST_PAYLOAD {
            return Err(SegmentError::Mtu(mtu));
        }
        let payload = if payload > u16::MAX as usize { u16::MAX as usize } else { payload };
        Ok(Self { flow, number, hint, total: length, payload })
    }

    /// Returns the number of frames, at least one.
    pub const fn count(&self) -> usize {
        let frames = self.total.div_ceil(self.payload);
        if frames == 0 { 1 } else { frames }
    }

    /// Returns the length of all frames, bytes.
    pub const fn on_wire(&self) -> usize {
        self.total + self.count() * HEADER + CHECKSUM
    }

    /// Appends all frames to `frames`, and returns their places there. The message is in parts, which follow one another.
    ///
    /// # Panics
    /// When the parts have another length than was announced.
    pub fn write(
        &self,
        parts: &[&[u8]],
        frames: &mut Vec<u8>,
    ) -> impl ExactSizeIterator<Item = Range<usize>> + use<> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        assert_eq!(length, self.total, "the parts are the message");
        let Self { flow, number, hint, total, payload } = *self;
        let begin = frames.len();
        frames.reserve(self.on_wire());
        let mut sum = checksum(flow, number, total as u32);
        let mut parts = parts.iter().copied();
        let mut part: &[u8] = &[];
        for index in 0..self.count() {
            let offset = index * payload;
            let length = payload.min(total - offset);
            let header = DirectHeader {
                flow,
                hint,
                number,
                total: total as u32,
                offset: offset as u32,
                length: length as u16,
            };
            header.write(frames);
            let mut left = length;
            while left > 0 {
                if part.is_empty() {
                    part = parts.next().expect("the parts are as long as the message");
                    continue;
                }
                let (taken, rest) = part.split_at(left.min(part.len()));
                sum.update(taken);
                frames.extend_from_slice(taken);
                (left, part) = (left - taken.len(), rest);
            }
        }
        frames.extend_from_slice(&sum.finalize().to_be_bytes());
        let (count, end) = (self.count(), frames.len());
        (0..count).map(move |index| {
            let start = begin + index * (HEADER + payload);
            start..if index + 1 == count { end } else { start + HEADER + payload }
        })
    }
}
