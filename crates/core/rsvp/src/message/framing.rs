//! The header of a message, its length and checksum, bundles, and the walk over objects.

use super::{DecodeError, HEADER, LONGEST, MessageType, VERSION};
use crate::object::OBJECT_HEADER;

/// Writes length and checksum into the header of a message.
///
/// # Panics
/// When the message is longer than [`LONGEST`].
pub(crate) fn finish(bytes: &mut [u8]) {
    assert!(bytes.len() <= LONGEST, "a message has at most {LONGEST} bytes");
    let length = bytes.len() as u16;
    bytes[6..8].copy_from_slice(&length.to_be_bytes());
    bytes[2..4].fill(0);
    let sum = checksum(bytes);
    bytes[2..4].copy_from_slice(&sum.to_be_bytes());
}

/// Returns the checksum of a message whose checksum field is 0 (RFC 2205 section 3.1.1); 0 of one whose field is right.
fn checksum(bytes: &[u8]) -> u16 {
    let words =
        bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | word.get(1).map_or(0, |low| u32::from(*low)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Returns the message at the beginning of a packet's payload, without the bytes after it.
pub fn whole_message(bytes: &[u8]) -> &[u8] {
    let stated = bytes.get(6..8).map_or(0, |stated| usize::from(u16::from_be_bytes([stated[0], stated[1]])));
    bytes.get(..stated).filter(|_| stated >= HEADER).unwrap_or(bytes)
}

/// Checks a message's header, and returns its type.
pub(super) fn check_header(bytes: &[u8]) -> Result<MessageType, DecodeError> {
    let Some(header) = bytes.first_chunk::<HEADER>() else {
        return Err(DecodeError::Length { found: bytes.len(), stated: HEADER });
    };
    if header[0] >> 4 != VERSION {
        return Err(DecodeError::Version(header[0] >> 4));
    }
    let stated = usize::from(u16::from_be_bytes([header[6], header[7]]));
    if stated != bytes.len() || stated > LONGEST {
        return Err(DecodeError::Length { found: bytes.len(), stated });
    }
    // RFC 2205 section 3.1.1: zero means that no checksum was sent.
    if header[2..4] != [0, 0] && checksum(bytes) != 0 {
        return Err(DecodeError::Checksum);
    }
    MessageType::from_number(header[1]).ok_or(DecodeError::Kind(header[1]))
}

/// Returns the messages of a bundle (RFC 2961 section 3.2). Each is checked when it is read.
pub(super) fn split_bundle(mut rest: &[u8]) -> Result<Vec<Vec<u8>>, DecodeError> {
    let mut messages = Vec::new();
    while !rest.is_empty() {
        let length = rest
            .first_chunk::<HEADER>()
            .map(|header| usize::from(u16::from_be_bytes([header[6], header[7]])));
        let length = length.filter(|length| *length >= HEADER && *length <= rest.len());
        let (message, after) =
            rest.split_at(length.ok_or(DecodeError::Malformed("a bundle's message is cut off"))?);
        if message[1] == MessageType::Bundle as u8 {
            return Err(DecodeError::Malformed("a bundle in a bundle"));
        }
        messages.push(message.to_vec());
        rest = after;
    }
    if messages.is_empty() { Err(DecodeError::Malformed("an empty bundle")) } else { Ok(messages) }
}

/// Walks over the objects of a message.
pub(crate) struct Objects<'b>(pub(crate) &'b [u8]);

/// An object as it is on the wire: its class, its type, its content.
pub(crate) type RawObject<'b> = (u8, u8, &'b [u8]);

impl<'b> Iterator for Objects<'b> {
    type Item = Result<RawObject<'b>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let header = match self.0.first_chunk::<OBJECT_HEADER>() {
            Some(header) => header,
            None if self.0.is_empty() => return None,
            None => {
                self.0 = &[];
                return Some(Err(DecodeError::Malformed("the header of an object is cut off")));
            }
        };
        let length = usize::from(u16::from_be_bytes([header[0], header[1]]));
        if length < OBJECT_HEADER || !length.is_multiple_of(4) || length > self.0.len() {
            self.0 = &[];
            return Some(Err(DecodeError::Malformed("the length of an object is not possible")));
        }
        let (object, rest) = self.0.split_at(length);
        self.0 = rest;
        Some(Ok((header[2], header[3], &object[OBJECT_HEADER..])))
    }
}
