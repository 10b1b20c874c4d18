//! The rings by which chunks change hands: one side produces, the other consumes, and each writes its own index alone.
//!
//! An index counts all entries there have ever been, modulo 2^32; its lower bits are the place in the ring, whose size is
//! a power of two. `producer - consumer` entries wait.
//!
//! Orderings: an entry is written before the producer's index that covers it (release), and read after that index was
//! (acquire). It is read before the consumer's index passes it (release), and overwritten after that index was read
//! (acquire). And the kernel's need for a wake-up is checked after the producer's index is out, by a full fence: the
//! kernel says that it sleeps, then looks at the index again; of both sides at least one sees the other.
#![expect(unsafe_code, reason = "memory that is shared with the kernel")]

use crate::mapping::Mapping;
use crate::plain::Plain;
use rustix::fd::AsFd;
use rustix::net::xdp::XdpRingOffset;
use std::io;
use std::marker::PhantomData;
use std::mem::size_of;
use std::sync::atomic::{AtomicU32, Ordering, fence};

/// A ring, from either side. Its entries are addresses in the memory, or descriptions of frames there.
struct Ring<E> {
    memory: Mapping,
    producer: usize,
    consumer: usize,
    /// `None` before Linux 5.4.
    flags: Option<usize>,
    entries: usize,
    size: u32,
    kind: PhantomData<E>,
}

/// A ring that we put entries into.
pub(super) struct Producer<E> {
    ring: Ring<E>,
    /// The index behind our last entry, published or not.
    next: u32,
}

/// A ring that we take entries out of.
pub(super) struct Consumer<E> {
    ring: Ring<E>,
    /// The index behind the last entry that we have taken, released or not.
    next: u32,
    /// The producer's index when we last read it.
    end: u32,
}

impl<E: Plain> Ring<E> {
    /// The ring that a socket shares at `page`.
    fn shared(socket: impl AsFd, page: u64, at: &XdpRingOffset, size: u32) -> io::Result<Self> {
        let length = at.desc as usize + size as usize * size_of::<E>();
        Self::over(Mapping::shared(socket, page, length)?, at, size)
    }

    /// A ring in this memory.
    fn over(memory: Mapping, at: &XdpRingOffset, size: u32) -> io::Result<Self> {
        let [producer, consumer, entries] = [at.producer, at.consumer, at.desc].map(|at| at as usize);
        let flags = at.flags.map(|at| at as usize);
        let is_index = |at| memory.holds::<AtomicU32>(at, 1);
        let fits = is_index(producer)
            && is_index(consumer)
            && flags.is_none_or(is_index)
            && memory.holds::<E>(entries, size as usize);
        if !fits || !size.is_power_of_two() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the kernel describes a ring that cannot be",
            ));
        }
        Ok(Self { memory, producer, consumer, flags, entries, size, kind: PhantomData })
    }

    #[inline]
    fn producer(&self) -> &AtomicU32 {
        self.memory.atomic(self.producer)
    }

    #[inline]
    fn consumer(&self) -> &AtomicU32 {
        self.memory.atomic(self.consumer)
    }

    /// Returns the offset of an entry in the memory.
    #[inline]
    const fn entry(&self, index: u32) -> usize {
        self.entries + (index & (self.size - 1)) as usize * size_of::<E>()
    }
}

impl<E: Plain> Producer<E> {
    /// The ring of this size that a socket shares at `page`.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn shared(socket: impl AsFd, page: u64, at: &XdpRingOffset, size: u32) -> io::Result<Self> {
        Ring::shared(socket, page, at, size).map(Self::new)
    }

    fn new(ring: Ring<E>) -> Self {
        let next = ring.producer().load(Ordering::Relaxed);
        Self { ring, next }
    }

    /// Puts an entry in, which the other side sees after [`Producer::publish`]. Returns false where there is no room.
    #[inline]
    pub(super) fn push(&mut self, entry: E) -> bool {
        if self.waiting() >= self.ring.size {
            return false;
        }
        // SAFETY: the consumer has passed the previous entry of this place (acquire), and does not know of the new one.
        unsafe { self.ring.memory.write(self.ring.entry(self.next), entry) };
        self.next = self.next.wrapping_add(1);
        true
    }

    /// Publishes new entries to the other side.
    #[inline]
    pub(super) fn publish(&mut self) {
        self.ring.producer().store(self.next, Ordering::Release);
    }

    /// Returns the number of entries that the other side has not taken.
    #[inline]
    pub(super) fn waiting(&self) -> u32 {
        self.next.wrapping_sub(self.taken())
    }

    /// The index behind the last entry that the other side has taken.
    #[inline]
    pub(super) fn taken(&self) -> u32 {
        self.ring.consumer().load(Ordering::Acquire)
    }

    /// The index behind the last entry.
    #[inline]
    pub(super) const fn next(&self) -> u32 {
        self.next
    }

    /// Returns whether the kernel must be woken to take published entries. Kernels that cannot say always
    /// must.
    #[inline]
    pub(super) fn needs_wakeup(&self) -> bool {
        let Some(at) = self.ring.flags else { return true };
        fence(Ordering::SeqCst);
        self.ring.memory.atomic(at).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

impl<E: Plain> Consumer<E> {
    /// The ring of this size that a socket shares at `page`.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn shared(socket: impl AsFd, page: u64, at: &XdpRingOffset, size: u32) -> io::Result<Self> {
        Ring::shared(socket, page, at, size).map(Self::new)
    }

    fn new(ring: Ring<E>) -> Self {
        let next = ring.consumer().load(Ordering::Relaxed);
        Self { ring, next, end: next }
    }

    /// Takes the next entry, if there is one. The other side does not use its place again before [`Consumer::release`].
    #[inline]
    pub(super) fn pop(&mut self) -> Option<E> {
        if self.next == self.end {
            self.end = self.ring.producer().load(Ordering::Acquire);
            if self.next == self.end {
                return None;
            }
        }
        // SAFETY: the producer has published this entry (acquire), and does not touch it until we release it.
        let entry = unsafe { self.ring.memory.read(self.ring.entry(self.next)) };
        self.next = self.next.wrapping_add(1);
        Some(entry)
    }

    /// Returns the places of taken entries.
    #[inline]
    pub(super) fn release(&mut self) {
        self.ring.consumer().store(self.next, Ordering::Release);
    }
}

/// The kernel's side of a ring, for tests.
#[cfg(test)]
pub(super) mod kernel {
    use super::*;

    pub(super) const AT: XdpRingOffset =
        XdpRingOffset { producer: 0, consumer: 64, desc: 192, flags: Some(128) };

    fn ring<E: Plain>(size: u32) -> Ring<E> {
        Ring::over(Mapping::anonymous(1 << 16).unwrap(), &AT, size).unwrap()
    }

    impl<E: Plain> Producer<E> {
        /// A ring without a socket.
        pub(in crate::xdp) fn detached(size: u32) -> Self {
            Self::new(ring(size))
        }

        /// Takes so many entries, as the consumer.
        pub(in crate::xdp) fn take(&self, count: u32) -> Vec<E> {
            let start = self.taken();
            assert!(count <= self.ring.producer().load(Ordering::Acquire).wrapping_sub(start));
            // SAFETY: these entries have been published, and this memory has no other owner.
            let entry =
                |number: u32| unsafe { self.ring.memory.read(self.ring.entry(start.wrapping_add(number))) };
            let entries = (0..count).map(entry).collect();
            self.ring.consumer().store(start.wrapping_add(count), Ordering::Release);
            entries
        }
    }

    impl<E: Plain> Consumer<E> {
        /// A ring without a socket.
        pub(in crate::xdp) fn detached(size: u32) -> Self {
            Self::new(ring(size))
        }

        /// Puts an entry in, as the producer.
        pub(in crate::xdp) fn offer(&self, entry: E) {
            let index = self.ring.producer().load(Ordering::Relaxed);
            // SAFETY: the entry is not published before the next line, and this memory has no other owner.
            unsafe { self.ring.memory.write(self.ring.entry(index), entry) };
            self.ring.producer().store(index.wrapping_add(1), Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::kernel::AT;
    use super::*;
    const SIZE: u32 = 8;

    /// A ring whose indices stand shortly before they wrap.
    fn ring<E: Plain>() -> Ring<E> {
        let ring = Ring::over(Mapping::anonymous(4096).unwrap(), &AT, SIZE).unwrap();
        let start = u32::MAX - 2;
        ring.producer().store(start, Ordering::Relaxed);
        ring.consumer().store(start, Ordering::Relaxed);
        ring
    }

    #[test]
    fn a_producer_fills_the_ring_over_the_wrap_and_not_further() {
        let mut fill = Producer::new(ring::<u64>());
        let start = fill.next();
        for entry in 0..u64::from(SIZE) {
            assert!(fill.push(entry));
        }
        assert!(!fill.push(99), "full");
        assert_eq!(
            fill.ring.producer().load(Ordering::Relaxed),
            start,
            "nothing is seen before it is published"
        );
        fill.publish();
        assert_eq!(fill.ring.producer().load(Ordering::Relaxed), start.wrapping_add(SIZE));
        assert_eq!(fill.waiting(), SIZE);
        // The kernel takes three.
        fill.ring.consumer().store(start.wrapping_add(3), Ordering::Relaxed);
        assert_eq!((fill.waiting(), fill.taken()), (5, 0));
        for entry in 10..13 {
            assert!(fill.push(entry));
        }
        assert!(!fill.push(99), "full again");
        // SAFETY: this memory has no other owner.
        let held: Vec<u64> =
            (0..SIZE).map(|index| unsafe { fill.ring.memory.read(fill.ring.entry(index)) }).collect();
        assert_eq!(held, [3, 4, 5, 6, 7, 10, 11, 12], "in their places: the index 0 is the fourth");
    }

    #[test]
    fn a_consumer_takes_published_entries_over_the_wrap_in_order() {
        let mut arrived = Consumer::new(ring::<libc::xdp_desc>());
        let start = arrived.next;
        assert!(arrived.pop().is_none());
        for number in 0..5_u32 {
            let entry = libc::xdp_desc { addr: u64::from(number) * 4096 + 256, len: 60 + number, options: 0 };
            // SAFETY: this memory has no other owner.
            unsafe { arrived.ring.memory.write(arrived.ring.entry(start.wrapping_add(number)), entry) };
        }
        arrived.ring.producer().store(start.wrapping_add(5), Ordering::Relaxed);
        for number in 0..5 {
            let entry = arrived.pop().unwrap();
            assert_eq!((entry.addr, entry.len), (u64::from(number) * 4096 + 256, 60 + number));
        }
        assert!(arrived.pop().is_none());
        assert_eq!(arrived.ring.consumer().load(Ordering::Relaxed), start, "still ours");
        arrived.release();
        assert_eq!(arrived.ring.consumer().load(Ordering::Relaxed), start.wrapping_add(5));
    }

    #[test]
    fn the_kernel_is_woken_on_its_flag_or_without_flags() {
        let mut sending = Producer::new(ring::<u64>());
        assert!(!sending.needs_wakeup());
        sending.ring.memory.atomic(128).store(libc::XDP_RING_NEED_WAKEUP, Ordering::Relaxed);
        assert!(sending.needs_wakeup());
        sending.ring.memory.atomic(128).store(0, Ordering::Relaxed);
        sending.ring.flags = None;
        assert!(sending.needs_wakeup());
    }

    #[test]
    fn a_ring_that_does_not_fit_its_memory_is_refused() {
        let over =
            |at: XdpRingOffset, size| Ring::<u64>::over(Mapping::anonymous(256).unwrap(), &at, size).is_ok();
        assert!(over(AT, 8));
        assert!(!over(AT, 9), "no power of two");
        assert!(!over(AT, 16), "entries behind the end");
        assert!(!over(XdpRingOffset { producer: 254, ..AT }, 8));
        assert!(!over(XdpRingOffset { consumer: 66, ..AT }, 8), "not aligned");
        assert!(!over(XdpRingOffset { desc: 196, ..AT }, 4), "not aligned");
        assert!(!over(XdpRingOffset { flags: Some(u64::MAX - 1), ..AT }, 8));
    }
}
