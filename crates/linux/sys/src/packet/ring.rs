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
pub struct ReceivedFrame<'r> {
    /// Its bytes, as many as had room.
    pub bytes: &'r [u8],
    /// Its length, bytes; more than there are in `bytes` when it had no room.
    pub length: u32,
    /// Arrival time by the wall clock: seconds and nanoseconds.
    pub stamp: (u32, u32),
    /// True if the checksum was left to hardware that is not there.
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
/// Unit in which the kernel allocates, bytes: a multiple of every page size.
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
    pub fn receive(&mut self, read: impl FnOnce(ReceivedFrame<'_>)) -> bool {
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
    unsafe fn received(&self, at: usize) -> ReceivedFrame<'_> {
        // SAFETY: a header is at the beginning of a slot, and the caller guarantees that nothing writes to it.
        let header: libc::tpacket2_hdr = unsafe { self.memory.read(at) };
        let start = usize::from(header.tp_mac).clamp(size_of::<libc::tpacket2_hdr>(), self.slot);
        let length = (header.tp_snaplen as usize).min(self.slot - start);
        // SAFETY: the bytes lie in the slot, behind its status, and the caller guarantees that nothing writes to them.
        let bytes = unsafe { self.memory.bytes(at + start, length) }.unwrap_or_default();
        let has = |status| header.tp_status & status != 0;
        let protocol =
            if has(libc::TP_STATUS_VLAN_TPID_VALID) { header.tp_vlan_tpid } else { libc::ETH_P_8021Q as u16 };
        ReceivedFrame {
            bytes,
            length: header.tp_len,
            stamp: (header.tp_sec, header.tp_nsec),
            lacks_checksum: has(libc::TP_STATUS_CSUMNOTREADY),
            vlan: has(libc::TP_STATUS_VLAN_VALID).then_some((protocol, header.tp_vlan_tci)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: usize = 256;

    /// A ring of two slots without a socket.
    fn ring() -> Ring {
        Ring { memory: Mapping::anonymous(2 * SLOT).unwrap(), slot: SLOT, slots: 2, next: 0 }
    }

    /// Fills a slot as the kernel does: the bytes, the rest of the header, and then the status.
    fn fill(ring: &Ring, slot: usize, header: libc::tpacket2_hdr, frame: &[u8]) {
        let at = slot * SLOT;
        // SAFETY: this memory has no other owner, and the slot is not handed over before the next line.
        unsafe {
            ring.memory.copy_from(at + usize::from(header.tp_mac), frame);
            ring.memory.write(at, libc::tpacket2_hdr { tp_status: 0, ..header });
        }
        ring.memory.atomic(at).store(header.tp_status, Ordering::Release);
    }

    fn header(start: u16, stored: u32) -> libc::tpacket2_hdr {
        libc::tpacket2_hdr {
            tp_status: libc::TP_STATUS_USER,
            tp_len: stored,
            tp_snaplen: stored,
            tp_mac: start,
            tp_net: start + 14,
            tp_sec: 1,
            tp_nsec: 2,
            tp_vlan_tci: 5,
            tp_vlan_tpid: 0x88a8,
            tp_padding: [0; 4],
        }
    }

    type Seen = (Vec<u8>, u32, Option<(u16, u16)>);

    /// The next frame's bytes, its length, and its tag.
    fn next(ring: &mut Ring) -> Option<Seen> {
        let mut frame = None;
        ring.receive(|received| frame = Some((received.bytes.to_vec(), received.length, received.vlan)));
        frame
    }

    #[test]
    fn frames_are_received_in_order_and_slots_given_back() {
        let mut ring = ring();
        assert_eq!(next(&mut ring), None);
        for round in 0..3 {
            fill(&ring, 0, header(82, 3), &[round, 1, 2]);
            fill(&ring, 1, header(66, 2), &[round, 7]);
            assert_eq!(next(&mut ring), Some((vec![round, 1, 2], 3, None)));
            assert_eq!(next(&mut ring), Some((vec![round, 7], 2, None)));
            assert_eq!(next(&mut ring), None, "both are the kernel's again");
        }
    }

    #[test]
    fn a_tag_has_its_protocol_or_that_of_a_customer() {
        let mut ring = ring();
        for (more, protocol) in [(libc::TP_STATUS_VLAN_TPID_VALID, 0x88a8), (0, 0x8100)] {
            let status = libc::TP_STATUS_USER | libc::TP_STATUS_VLAN_VALID | more;
            let slot = ring.next;
            fill(&ring, slot, libc::tpacket2_hdr { tp_status: status, ..header(82, 1) }, &[9]);
            assert_eq!(next(&mut ring), Some((vec![9], 1, Some((protocol, 5)))));
        }
    }

    #[test]
    fn a_header_with_any_numbers_describes_bytes_of_its_slot() {
        let mut ring = ring();
        for (start, stored, bytes) in [
            (82, u32::MAX, SLOT - 82),
            (0, 10, 10),
            (0, u32::MAX, SLOT - size_of::<libc::tpacket2_hdr>()),
            (u16::MAX - 14, 10, 0),
            (255, 2, 1),
        ] {
            let slot = ring.next;
            // SAFETY: this memory has no other owner.
            unsafe { ring.memory.write(slot * SLOT, header(start, stored)) };
            let (received, length, _) = next(&mut ring).expect("the slot was handed over");
            assert_eq!((received.len(), length), (bytes, stored), "tp_mac {start}, tp_snaplen {stored}");
        }
    }
}
