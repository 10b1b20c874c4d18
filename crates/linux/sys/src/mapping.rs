//! Memory that is shared with the kernel: the rings of packet sockets, and the rings and frames of `AF_XDP` sockets.
//!
//! Every access is checked against the mapping's bounds. The right to access bytes cannot be checked here at any
//! moment: the owner of a [`Mapping`] follows the protocol that the kernel documents for it, and the accesses that
//! depend on that are `unsafe`.
#![expect(unsafe_code, reason = "memory that is shared with the kernel")]

use crate::plain::Plain;
use rustix::fd::AsFd;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use std::io;
use std::mem::{align_of, size_of};
use std::ptr::{NonNull, copy_nonoverlapping, null_mut};
use std::slice::from_raw_parts;
use std::sync::atomic::AtomicU32;

/// Memory that is unmapped when this is dropped. It starts at the beginning of a page.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: a mapping is not tied to the thread that made it, and its owner has it alone.
unsafe impl Send for Mapping {}

impl Mapping {
    const ACCESS: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

    /// Maps new memory, all zeros.
    ///
    /// # Errors
    /// When the kernel has too little memory.
    pub(crate) fn anonymous(length: usize) -> io::Result<Self> {
        // Miri knows no other flag.
        let populate = if cfg!(miri) { MapFlags::empty() } else { MapFlags::POPULATE };
        let flags = MapFlags::PRIVATE | populate;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let start = unsafe { mmap_anonymous(null_mut(), length, Self::ACCESS, flags) }?;
        Ok(Self::new(start.cast(), length))
    }

    /// Maps the memory that a socket shares at `offset`.
    ///
    /// # Errors
    /// When it shares nothing there.
    pub(crate) fn shared(socket: impl AsFd, offset: u64, length: usize) -> io::Result<Self> {
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: as above.
        let start = unsafe { mmap(null_mut(), length, Self::ACCESS, flags, socket, offset) }?;
        Ok(Self::new(start.cast(), length))
    }

    fn new(start: *mut u8, length: usize) -> Self {
        Self { start: NonNull::new(start).expect("the kernel maps nothing at address 0"), length }
    }

    /// The address of its first byte.
    pub(crate) fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    /// Returns the length, bytes.
    pub(crate) const fn length(&self) -> usize {
        self.length
    }

    /// Returns whether `count` aligned values of type `T` lie at `at`.
    #[inline]
    pub(crate) fn holds<T>(&self, at: usize, count: usize) -> bool {
        let end = count.checked_mul(size_of::<T>()).and_then(|length| at.checked_add(length));
        at.is_multiple_of(align_of::<T>()) && end.is_some_and(|end| end <= self.length)
    }

    /// The four bytes at `at`, which both sides read and write as a whole.
    #[inline]
    pub(crate) fn atomic(&self, at: usize) -> &AtomicU32 {
        assert!(self.holds::<AtomicU32>(at, 1), "an atomic lies in its mapping");
        // SAFETY: by the assertion four aligned bytes are there. Nothing else but atomics touches them: the unsafe
        // accesses below are for other bytes, or for those that are not written meanwhile.
        unsafe { AtomicU32::from_ptr(self.start.add(at).cast().as_ptr()) }
    }

    /// Reads a value.
    ///
    /// # Safety
    /// No other code or process may write to it meanwhile.
    #[inline]
    pub(crate) unsafe fn read<T: Plain>(&self, at: usize) -> T {
        assert!(self.holds::<T>(at, 1), "a value lies in its mapping");
        // SAFETY: by the assertion the aligned bytes of a `T` are there, any bits are one, and the caller says that
        // nothing writes to them.
        unsafe { self.start.add(at).cast().read() }
    }

    /// Writes a value.
    ///
    /// # Safety
    /// No other code or process may read or write it meanwhile.
    #[inline]
    pub(crate) unsafe fn write<T: Plain>(&self, at: usize, value: T) {
        assert!(self.holds::<T>(at, 1), "a value lies in its mapping");
        // SAFETY: by the assertion there are aligned bytes for a `T`, which the caller says are ours alone.
        unsafe { self.start.add(at).cast().write(value) }
    }

    /// Bytes of it; `None` when they do not all lie in it.
    ///
    /// # Safety
    /// No other code or process may write to them as long as they are borrowed.
    #[inline]
    pub(crate) unsafe fn bytes(&self, at: usize, length: usize) -> Option<&[u8]> {
        // SAFETY: the bytes lie in the mapping, which lives as long as `self`; the caller guarantees that nothing writes there.
        self.holds::<u8>(at, length).then(|| unsafe { from_raw_parts(self.start.add(at).as_ptr(), length) })
    }

    /// Copies bytes into it.
    ///
    /// # Safety
    /// No other code or process may read or write there meanwhile.
    #[inline]
    pub(crate) unsafe fn copy_from(&self, at: usize, bytes: &[u8]) {
        assert!(self.holds::<u8>(at, bytes.len()), "a copy lies in its mapping");
        // SAFETY: by the assertion there is room, and a slice lies elsewhere as the caller guarantees that this is ours alone.
        unsafe { copy_nonoverlapping(bytes.as_ptr(), self.start.add(at).as_ptr(), bytes.len()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is a mapping of this very length, and borrows from it have ended with `self`.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
        debug_assert!(unmapped.is_ok(), "a mapping that was made can be unmapped: {unmapped:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn written_memory_is_read_back() {
        let memory = Mapping::anonymous(4096).unwrap();
        // SAFETY: this memory has no other owner, and borrows have ended before the next writing.
        unsafe {
            memory.write(4088, u64::MAX);
            memory.copy_from(4, &[1, 2, 3]);
            assert_eq!(memory.read::<u64>(4088), u64::MAX);
            assert_eq!(memory.bytes(3, 5), Some(&[0, 1, 2, 3, 0][..]));
        }
        memory.atomic(8).store(7, Ordering::Relaxed);
        // SAFETY: as above.
        assert_eq!(unsafe { memory.read::<u32>(8) }, 7);
    }

    #[test]
    fn nothing_is_outside_or_between() {
        let memory = Mapping::anonymous(4096).unwrap();
        assert!(memory.holds::<u64>(0, 512) && !memory.holds::<u64>(8, 512) && !memory.holds::<u64>(4, 1));
        assert!(!memory.holds::<u8>(usize::MAX, 2) && !memory.holds::<u64>(0, usize::MAX / 4));
        // SAFETY: this memory has no other owner.
        assert!(unsafe { memory.bytes(4090, 7) }.is_none() && unsafe { memory.bytes(4090, 6) }.is_some());
    }

    #[test]
    #[should_panic(expected = "lies in its mapping")]
    fn an_atomic_behind_the_end_is_refused() {
        let _outside = Mapping::anonymous(4096).unwrap().atomic(4096);
    }
}
