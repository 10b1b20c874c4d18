//! Reassembly of messages from frames: whole or not at all.

use super::{DirectFlow, DirectFrameError, DirectHeader, checksum};

/// The most incomplete messages of a sender. A link keeps the order of frames, but processors at both of its ends may change the order of
/// a few.
const MOST_OF_SOURCE: usize = 2;

/// The sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DirectSource {
    /// Address of its interface on the link.
    pub link: [u8; 6],
    /// Ports.
    pub flow: DirectFlow,
}

/// A message that is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectMessage {
    /// Its sender.
    pub source: DirectSource,
    /// Its number at its sender.
    pub number: u32,
    /// Level of the delay hint of the frame that has completed it.
    pub hint: Option<u8>,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Counters of a reassembly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReassemblyStats {
    /// Frames that were accepted.
    pub frames: u64,
    /// Frames that are no part of a message, or whose message has a wrong checksum.
    pub malformed: u64,
    /// Messages that were given up because a frame was missing.
    pub incomplete: u64,
}

/// Incomplete messages of a number of senders.
///
/// A message that lacks a frame is given up when its sender has begun two others, or when there is no room for another sender. It needs no
/// clock.
#[derive(Debug)]
pub struct Reassembly {
    /// In the order of their first frames.
    partial: Vec<Partial>,
    most: usize,
    stats: ReassemblyStats,
    /// Buffers of messages that were taken, for later ones.
    spare: Vec<Vec<u8>>,
}

/// An incomplete message.
#[derive(Clone, Debug)]
struct Partial {
    source: DirectSource,
    number: u32,
    bytes: Vec<u8>,
    /// Parts that have come: their beginnings and ends, in order. Neighbours are one.
    parts: Vec<(u32, u32)>,
    checksum: Option<u32>,
}

/// Buffers that are kept for later messages.
const MOST_SPARE: usize = 4;

impl Reassembly {
    /// Returns a reassembly with room for so many incomplete messages; at least one.
    pub const fn new(most: usize) -> Self {
        let most = if most == 0 { 1 } else { most };
        Self {
            partial: Vec::new(),
            most,
            stats: ReassemblyStats { frames: 0, malformed: 0, incomplete: 0 },
            spare: Vec::new(),
        }
    }

    /// Returns the counters.
    pub const fn stats(&self) -> ReassemblyStats {
        self.stats
    }

    /// Returns the buffer of a message that was handled, so that a later one need not be allocated.
    pub fn reuse(&mut self, bytes: Vec<u8>) {
        if self.spare.len() < MOST_SPARE {
            self.spare.push(bytes);
        }
    }

    /// Takes a frame, without its Ethernet header, from an address on the link. Returns the message that it completes.
    ///
    /// # Errors
    /// When it is no frame of a message, or the message that it completes has a wrong checksum.
    pub fn take(&mut self, link: [u8; 6], frame: &[u8]) -> Result<Option<DirectMessage>, DirectFrameError> {
        let taken = self.try_take(link, frame);
        match taken {
            Ok(_) => self.stats.frames += 1,
            Err(_) => self.stats.malformed += 1,
        }
        taken
    }

    fn try_take(&mut self, link: [u8; 6], frame: &[u8]) -> Result<Option<DirectMessage>, DirectFrameError> {
        let (header, payload, sum) = DirectHeader::read(frame)?;
        let DirectHeader { flow, hint, number, total, .. } = header;
        let source = DirectSource { link, flow };
        if payload.len() as u32 == total {
            let mut bytes = self.buffer(0);
            bytes.extend_from_slice(payload);
            return finish(source, number, bytes, sum)
                .map(|bytes| Some(DirectMessage { source, number, hint, bytes }));
        }
        let at = self.place(source, number, total);
        let partial = &mut self.partial[at];
        partial.add(&header, payload)?;
        partial.checksum = partial.checksum.or(sum);
        if partial.parts[..] != [(0, total)] {
            return Ok(None);
        }
        let Partial { bytes, checksum, .. } = self.partial.remove(at);
        finish(source, number, bytes, checksum)
            .map(|bytes| Some(DirectMessage { source, number, hint, bytes }))
    }

    /// Moves the incomplete messages of a sender to another reassembly, which receives its frames from now on, also those that were
    /// received here already.
    pub fn hand_over(&mut self, link: [u8; 6], flow: DirectFlow, to: &mut Self) {
        let source = DirectSource { link, flow };
        let mut at = 0;
        while at < self.partial.len() {
            if self.partial[at].source == source {
                to.partial.push(self.partial.remove(at));
            } else {
                at += 1;
            }
        }
        while to.partial.len() > to.most {
            to.give_up(0);
        }
    }

    /// Returns the place of a message among the incomplete ones, where it is put if it is not there.
    fn place(&mut self, source: DirectSource, number: u32, total: u32) -> usize {
        let is_it = |it: &Partial| it.source == source && it.number == number;
        if let Some(at) = self.partial.iter().rposition(is_it) {
            if self.partial[at].bytes.len() == total as usize {
                return at;
            }
            // The sender was started again, or another host uses its address.
            self.give_up(at);
        }
        if self.partial.iter().filter(|it| it.source == source).count() >= MOST_OF_SOURCE
            && let Some(oldest) = self.partial.iter().position(|it| it.source == source)
        {
            self.give_up(oldest);
        }
        if self.partial.len() >= self.most {
            self.give_up(0);
        }
        let bytes = self.buffer(total as usize);
        self.partial.push(Partial { source, number, bytes, parts: Vec::new(), checksum: None });
        self.partial.len() - 1
    }

    fn give_up(&mut self, at: usize) {
        let Partial { bytes, .. } = self.partial.remove(at);
        self.stats.incomplete += 1;
        self.reuse(bytes);
    }

    fn buffer(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.resize(length, 0);
        bytes
    }
}

impl Partial {
    /// Adds a part. One that has come already is ignored.
    fn add(&mut self, header: &DirectHeader, payload: &[u8]) -> Result<(), DirectFrameError> {
        let (begin, end) = (header.offset, header.offset + u32::from(header.length));
        let next = self.parts.partition_point(|part| part.0 <= begin);
        let before = next.checked_sub(1).map(|at| self.parts[at]);
        if before.is_some_and(|part| part.1 >= end) {
            return Ok(());
        }
        let after = self.parts.get(next).copied();
        if before.is_some_and(|part| part.1 > begin) || after.is_some_and(|part| part.0 < end) {
            let &DirectHeader { offset, length, total, .. } = header;
            return Err(DirectFrameError::Place { offset, length, total });
        }
        self.bytes[begin as usize..end as usize].copy_from_slice(payload);
        match (before.filter(|part| part.1 == begin), after.filter(|part| part.0 == end)) {
            (Some(_), Some(after)) => {
                self.parts[next - 1].1 = after.1;
                self.parts.remove(next);
            }
            (Some(_), None) => self.parts[next - 1].1 = end,
            (None, Some(_)) => self.parts[next].0 = begin,
            (None, None) => self.parts.insert(next, (begin, end)),
        }
        Ok(())
    }
}

/// Returns the bytes of a message whose checksum is right.
fn finish(
    source: DirectSource,
    number: u32,
    bytes: Vec<u8>,
    expected: Option<u32>,
) -> Result<Vec<u8>, DirectFrameError> {
    let mut sum = checksum(source.flow, number, bytes.len() as u32);
    sum.update(&bytes);
    if expected == Some(sum.finalize()) { Ok(bytes) } else { Err(DirectFrameError::Checksum) }
}
