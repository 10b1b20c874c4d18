//! The ring of arriving frames that a packet socket shares with the kernel (`TPACKET_V2`).
//!
//! The ring is divided into places of equal size. The kernel fills the places in order and hands each over by setting a
//! bit of its status; we read it and give it back by setting the status to zero. Blocks, which the kernel allocates
//! the memory by, hold a whole number of places, so the ring is one array.
#![expect(unsafe_code, reason = "memory that is shared with the kernel")]

use crate::socket::set_option;
use rustix::fd::{AsRawFd, BorrowedFd};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// A frame in the ring.
pub(crate) struct Received<'r> {
    /// The frame, as much of it as had room.
    pub(crate) bytes: &'r [u8],
    /// The frame's own length, bytes.
    pub(crate) length: u32,
    /// What the kernel says of it: `TP_STATUS_*`.
    pub(crate) status: u32,
    /// When it arrived, by the wall clock: seconds and nanoseconds.
    pub(crate) stamp: (u32, u32),
    /// The VLAN tag that the kernel has taken out: protocol and control information.
    pub(crate) vlan: Option<(u16, u16)>,
}

/// The ring of one socket, which must stay open as long as the ring is used.
pub(crate) struct Ring {
    memory: NonNull<u8>,
    /// Bytes of a place.
    place: usize,
    places: usize,
    /// The place that is filled next.
    next: usize,
}

/// How much the kernel puts before a frame in its place, at most, bytes: its header, an address, and alignment.
const BEFORE_A_FRAME: usize = 128;
/// What the kernel allocates at once, bytes: a multiple of every page size there is.
const BLOCK: usize = 1 << 17;

// SAFETY: the memory belongs to the ring alone, is not tied to a thread, and is only touched through `&mut self`.
unsafe impl Send for Ring {}

impl Ring {
    /// A ring of `places` or a few more for frames of up to `largest` bytes.
    ///
    /// # Errors
    /// When the kernel has not as much memory.
    pub(crate) fn new(socket: BorrowedFd<'_>, largest: usize, places: usize) -> io::Result<Self> {
        let place = (largest + BEFORE_A_FRAME).next_power_of_two();
        let block = BLOCK.max(place);
        let blocks = (places * place).div_ceil(block);
        let places = blocks * (block / place);
        set_option(socket, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as i32))?;
        let request = libc::tpacket_req {
            tp_block_size: block as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: place as u32,
            tp_frame_nr: places as u32,
        };
        set_option(socket, libc::PACKET_RX_RING, &request)?;
        let memory = map(socket, blocks * block)?;
        Ok(Self { memory, place, places, next: 0 })
    }

    /// Hands over the next frame, if there is one, and gives its place back to the kernel.
    #[inline]
    pub(crate) fn take(&mut self, read: impl FnOnce(Received<'_>)) -> bool {
        // SAFETY: `next` is below the number of places, so its place lies in the mapping.
        let place = unsafe { self.memory.add(self.next * self.place) };
        // SAFETY: each place begins with the 32-bit status, aligned because places are at least 16-byte aligned; the
        // kernel writes it atomically, and the mapping lives as long as `self`.
        let status = unsafe { AtomicU32::from_ptr(place.cast().as_ptr()) };
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return false;
        }
        // SAFETY: the status says that the place is ours until we give it back below, so nobody writes to it now; a
        // tpacket2_hdr is at its beginning and valid for any bits.
        read(unsafe { self.received(place) });
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.places;
        true
    }

    /// The frame in a place.
    ///
    /// # Safety
    /// `place` must be a place of this ring, and the kernel must have handed it over.
    #[inline]
    unsafe fn received(&self, place: NonNull<u8>) -> Received<'_> {
        // SAFETY: the caller says that a header is there that nobody writes to.
        let header = unsafe { place.cast::<libc::tpacket2_hdr>().read() };
        let start = usize::from(header.tp_mac).min(self.place);
        let length = (header.tp_snaplen as usize).min(self.place - start);
        // SAFETY: `start + length` is at most the size of the place, whose bytes nobody writes to.
        let bytes = unsafe { std::slice::from_raw_parts(place.add(start).as_ptr(), length) };
        let tpid = if header.tp_status & libc::TP_STATUS_VLAN_TPID_VALID == 0 {
            libc::ETH_P_8021Q as u16
        } else {
            header.tp_vlan_tpid
        };
        let has_tag = header.tp_status & libc::TP_STATUS_VLAN_VALID != 0;
        Received {
            bytes,
            length: header.tp_len,
            status: header.tp_status,
            stamp: (header.tp_sec, header.tp_nsec),
            vlan: has_tag.then_some((tpid, header.tp_vlan_tci)),
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `map` made, of this very length, and no slice of it outlives `self`. That
        // it cannot be unmapped could only mean that it is none.
        let code = unsafe { libc::munmap(self.memory.as_ptr().cast(), self.place * self.places) };
        debug_assert_eq!(code, 0, "a mapping that was made can be unmapped");
    }
}

fn map(socket: BorrowedFd<'_>, length: usize) -> io::Result<NonNull<u8>> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
    let memory =
        unsafe { libc::mmap(std::ptr::null_mut(), length, access, libc::MAP_SHARED, socket.as_raw_fd(), 0) };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(NonNull::new(memory.cast()).expect("the kernel maps nothing at address 0"))
}
