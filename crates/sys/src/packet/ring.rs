//! The ring of arriving frames that a packet socket shares with the kernel (`TPACKET_V2`, the kernel's
//! `Documentation/networking/packet_mmap.rst`).
//!
//! The ring is divided into slots of equal size. The kernel fills them in order and hands each over by setting a bit of
//! its status; we read it and give it back by setting the status to zero. Blocks, which the kernel allocates the memory
//! by, hold a whole number of slots, so the ring is one array.
#![expect(unsafe_code, reason = "memory that is shared with the kernel")]

use crate::mapping::Mapping;
use crate::sockopt::SocketOption;
use rustix::fd::AsFd;
use std::io;
use std::mem::size_of;
use std::sync::atomic::Ordering;

/// A frame in the ring.
#[derive(Clone, Copy, Debug)]
pub struct Received<'r> {
    /// Its bytes, as many as had room.
    pub bytes: &'r [u8],
    /// Its length, bytes; more than there are in `bytes` when it had no room.
    pub length: u32,
    /// Arrival time by the wall clock: seconds and nanoseconds.
    pub stamp: (u32, u32),
    /// Whether its checksum was left to hardware that is not there.
    pub lacks_checksum: bool,
    /// The VLAN tag that the kernel has taken out: protocol and control information.
    pub vlan: Option<(u16, u16)>,
}

/// The ring of a packet socket.
pub struct Ring {
    memory: Mapping,
    /// Bytes of a slot, at least 128: a power of two.
    slot: usize,
    slots: usize,
    /// The slot that is filled next.
    next: usize,
}

/// The most bytes that the kernel puts before a frame in its slot: its header, an address, and alignment.
const BEFORE_FRAME: usize = 128;
/// What the kernel allocates at once, bytes: a multiple of every page size there is.
const BLOCK: usize = 1 << 17;

const VERSION: SocketOption<i32> = SocketOption::new(libc::SOL_PACKET, libc::PACKET_VERSION);
const RX_RING: SocketOption<libc::tpacket_req> = SocketOption::new(libc::SOL_PACKET, libc::PACKET_RX_RING);

impl Ring {
    /// Gives a packet socket, which is not bound yet, a ring of `slots` or a few more for frames of up to `largest` bytes.
    ///
    /// # Errors
    /// When the kernel has too little memory, or the socket has a ring already.
    pub fn new(socket: impl AsFd, largest: usize, slots: usize) -> io::Result<Self> {
        let slot = (largest + BEFORE_FRAME).next_power_of_two();
        let block = BLOCK.max(slot);
        let blocks = (slots * slot).div_ceil(block);
        let slots = blocks * (block / slot);
        VERSION.set(&socket, libc::tpacket_versions::TPACKET_V2 as i32)?;
        let request = libc::tpacket_req {
            tp_block_size: block as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: slot as u32,
            tp_frame_nr: slots as u32,
        };
        RX_RING.set(&socket, request)?;
        Ok(Self { memory: Mapping::shared(socket, 0, blocks * block)?, slot, slots, next: 0 })
    }

    /// Passes the next frame to `read`, if there is one, and gives its slot back to the kernel. Returns whether there was one.
    #[inline]
    pub fn receive(&mut self, read: impl FnOnce(Received<'_>)) -> bool {
        let at = self.next * self.slot;
        // Each slot begins with a status.
        let status = self.memory.atomic(at);
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return false;
        }
        // SAFETY: the status says that the slot is ours until we give it back below.
        read(unsafe { self.received(at) });
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.slots;
        true
    }

    /// The frame in the slot at `at`.
    ///
    /// # Safety
    /// The kernel must have handed the slot over.
    #[inline]
    unsafe fn received(&self, at: usize) -> Received<'_> {
        // SAFETY: a header is at the beginning of a slot, and the caller says that nobody writes to it.
        let header: libc::tpacket2_hdr = unsafe { self.memory.read(at) };
        let start = usize::from(header.tp_mac).clamp(size_of::<libc::tpacket2_hdr>(), self.slot);
        let length = (header.tp_snaplen as usize).min(self.slot - start);
        // SAFETY: the bytes lie in the slot, behind its status, and the caller says that nobody writes to them.
        let bytes = unsafe { self.memory.bytes(at + start, length) }.unwrap_or_default();
        let has = |status| header.tp_status & status != 0;
        let protocol =
            if has(libc::TP_STATUS_VLAN_TPID_VALID) { header.tp_vlan_tpid } else { libc::ETH_P_8021Q as u16 };
        Received {
            bytes,
            length: header.tp_len,
            stamp: (header.tp_sec, header.tp_nsec),
            lacks_checksum: has(libc::TP_STATUS_CSUMNOTREADY),
            vlan: has(libc::TP_STATUS_VLAN_VALID).then_some((protocol, header.tp_vlan_tci)),
        }
    }
}
