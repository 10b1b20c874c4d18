//! The memory that frames lie in while they pass between process and kernel: a mapping divided into chunks of equal size.
//!
//! A chunk belongs to one side at a time, and changes hands by the rings. 256 B before an arriving frame are the kernel's
//! (`XDP_PACKET_HEADROOM`), so that the longest has 3840 B; frames over several chunks (`XDP_USE_SG`) are not used.
#![expect(unsafe_code, reason = "memory that is shared with the kernel")]

use crate::mapping::Mapping;
use rustix::net::xdp::{XdpUmemReg, XdpUmemRegFlags};
use std::io;

/// Bytes of a chunk: the most that every machine allows, which is that of its smallest page.
const CHUNK: u32 = 4096;
/// Headroom of the kernel before an arriving frame, bytes.
const HEADROOM: u32 = 256;
/// The longest frame that can be received, bytes.
pub const MAX_RECEIVED: u32 = CHUNK - HEADROOM;
/// The longest frame that can be sent, bytes.
pub const MAX_SENT: usize = CHUNK as usize;

/// The memory of one socket.
pub(super) struct Umem(Mapping);

impl Umem {
    /// Allocates so many chunks.
    ///
    /// # Errors
    /// When the kernel has too little memory.
    pub(super) fn new(chunks: u32) -> io::Result<Self> {
        Mapping::anonymous(chunks as usize * CHUNK as usize).map(Self)
    }

    /// Returns the description for the kernel, which may read and write it once a socket has this.
    pub(super) fn registration(&self) -> XdpUmemReg {
        XdpUmemReg {
            addr: self.0.address(),
            len: self.0.length() as u64,
            chunk_size: CHUNK,
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        }
    }

    /// The start of a chunk by its number.
    pub(super) const fn address(number: u32) -> u64 {
        number as u64 * CHUNK as u64
    }

    /// The start of the chunk that an address lies in.
    pub(super) const fn chunk_of(address: u64) -> u64 {
        address & !(CHUNK as u64 - 1)
    }

    /// The bytes of a frame; `None` when they would lie outside.
    ///
    /// # Safety
    /// The frame's chunk must be ours, and remain so for as long as the bytes are borrowed.
    #[inline]
    pub(super) unsafe fn frame(&self, address: u64, length: u32) -> Option<&[u8]> {
        // SAFETY: as the caller guarantees.
        unsafe { self.0.bytes(usize::try_from(address).ok()?, length as usize) }
    }

    /// Writes a frame of at most [`MAX_SENT`] bytes to the start of a chunk.
    ///
    /// # Safety
    /// The chunk must be ours, and nothing of it borrowed.
    #[inline]
    pub(super) unsafe fn write(&mut self, chunk: u64, frame: &[u8]) {
        assert!(frame.len() <= MAX_SENT, "a frame fits into its chunk");
        // SAFETY: by the assertion nothing but the chunk is written to, which the caller says is ours.
        unsafe { self.0.copy_from(chunk as usize, frame) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_lie_in_their_chunks_and_nothing_outside() {
        let mut memory = Umem::new(4).unwrap();
        let frame: Vec<u8> = (0..=255).collect();
        // SAFETY: there is no kernel that knows of this memory, and reads have ended before the next writing.
        unsafe {
            memory.write(Umem::address(3), &frame);
            assert_eq!(memory.frame(3 * 4096, 256), Some(&frame[..]));
            assert_eq!(memory.frame(2 * 4096 + 4000, 96), Some(&[0; 96][..]));
            assert_eq!(memory.frame(4 * 4096 - 10, 10), Some(&[0; 10][..]));
            assert_eq!(memory.frame(4 * 4096 - 10, 11), None);
            assert_eq!(memory.frame(u64::MAX, 1), None);
        }
    }

    #[test]
    fn an_arriving_frame_starts_behind_the_headroom_of_its_chunk() {
        assert_eq!(Umem::chunk_of(Umem::address(7) + 256), Umem::address(7));
        assert_eq!(Umem::chunk_of(Umem::address(7) + 4095), Umem::address(7));
        assert_eq!(MAX_RECEIVED, 3840);
    }
}
