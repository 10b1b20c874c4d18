//! The memory that frames lie in while they pass between process and kernel: a mapping divided into chunks of equal size.
//!
//! A chunk belongs to one side at a time, and changes hands by the rings. 256 B before an arriving frame are the kernel's
//! (`XDP_PACKET_HEADROOM`), so that the longest has 3840 B; frames over several chunks (`XDP_USE_SG`) are not asked for.
#![expect(unsafe_code, reason = "memory that is shared with the kernel")]

use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::net::xdp::{XdpUmemReg, XdpUmemRegFlags};
use std::io;
use std::ptr::{NonNull, null_mut};

/// Bytes of a chunk: the largest that every machine takes, that of its smallest page.
pub(crate) const CHUNK: u32 = 4096;
/// What the kernel keeps before an arriving frame, bytes.
const HEADROOM: u32 = 256;
/// The longest frame, bytes.
pub(crate) const LARGEST: u32 = CHUNK - HEADROOM;

/// Memory that is unmapped when this is dropped.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: a mapping is not tied to the thread that made it, and whoever has it has it alone.
unsafe impl Send for Mapping {}

impl Mapping {
    /// New memory, all zeros.
    ///
    /// # Errors
    /// When there is not as much.
    pub(crate) fn new(length: usize) -> io::Result<Self> {
        Self::map(length, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
    }

    /// What a socket shares at this offset.
    ///
    /// # Errors
    /// When it shares nothing there.
    pub(crate) fn of(socket: BorrowedFd<'_>, offset: u64, length: usize) -> io::Result<Self> {
        Self::map(length, libc::MAP_SHARED, socket.as_raw_fd(), offset as libc::off_t)
    }

    fn map(length: usize, kind: i32, file: i32, offset: libc::off_t) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = kind | libc::MAP_POPULATE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let start = unsafe { libc::mmap(null_mut(), length, access, kind, file, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).expect("the kernel maps nothing at address 0");
        Ok(Self { start, length })
    }

    /// Its first byte.
    pub(crate) const fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Bytes.
    pub(crate) const fn length(&self) -> usize {
        self.length
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `map` made it with this very length, and what was borrowed from it is gone with `self`.
        let code = unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
        debug_assert_eq!(code, 0, "a mapping that was made can be unmapped");
    }
}

/// The memory of one socket.
pub(crate) struct Umem {
    memory: Mapping,
}

impl Umem {
    /// Room for so many chunks.
    ///
    /// # Errors
    /// When there is not as much memory.
    pub(crate) fn new(chunks: u32) -> io::Result<Self> {
        Mapping::new(chunks as usize * CHUNK as usize).map(|memory| Self { memory })
    }

    /// What the kernel is told of it.
    pub(crate) fn registration(&self) -> XdpUmemReg {
        XdpUmemReg {
            addr: self.memory.start().as_ptr() as u64,
            len: self.memory.length() as u64,
            chunk_size: CHUNK,
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        }
    }

    /// The beginning of a chunk by its number.
    pub(crate) const fn address(number: u32) -> u64 {
        number as u64 * CHUNK as u64
    }

    /// The beginning of the chunk that an address lies in.
    pub(crate) const fn chunk_of(address: u64) -> u64 {
        address & !(CHUNK as u64 - 1)
    }

    /// The bytes of a frame; `None` when they would lie outside.
    ///
    /// # Safety
    /// The chunk must be ours, and remain so for as long as the bytes are looked at.
    #[inline]
    pub(crate) unsafe fn frame(&self, address: u64, length: u32) -> Option<&[u8]> {
        let end = address.checked_add(u64::from(length))?;
        if end > self.memory.length() as u64 {
            return None;
        }
        // SAFETY: from `address` to `end` lies in the mapping, which lives as long as `self`; the caller says that nobody
        // writes there.
        Some(unsafe {
            std::slice::from_raw_parts(self.memory.start().add(address as usize).as_ptr(), length as usize)
        })
    }

    /// Writes a frame to the beginning of a chunk.
    ///
    /// # Safety
    /// The chunk must be ours, and nothing borrowed from it.
    #[inline]
    pub(crate) unsafe fn write(&mut self, chunk: u64, frame: &[u8]) {
        assert!(frame.len() <= CHUNK as usize, "a frame has to fit into a chunk");
        assert!(chunk + u64::from(CHUNK) <= self.memory.length() as u64, "a chunk lies in the memory");
        // SAFETY: by the assertions both lie in memory of their own, and the caller says that the chunk is ours alone.
        unsafe {
            let to = self.memory.start().add(chunk as usize);
            std::ptr::copy_nonoverlapping(frame.as_ptr(), to.as_ptr(), frame.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_lie_in_their_chunks_and_nothing_outside() {
        let mut memory = Umem::new(4).unwrap();
        let frame: Vec<u8> = (0..=255).collect();
        // SAFETY: there is no kernel that knows of this memory, and what is read is gone before the next writing.
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
    fn an_arriving_frame_begins_behind_the_headroom_of_its_chunk() {
        assert_eq!(Umem::chunk_of(Umem::address(7) + 256), Umem::address(7));
        assert_eq!(Umem::chunk_of(Umem::address(7) + 4095), Umem::address(7));
        assert_eq!(LARGEST, 3840);
    }
}
