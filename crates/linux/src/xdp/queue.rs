//! A socket for one receive queue of an interface, with memory and rings of its own.
//!
//! Memory that sockets share (`XDP_SHARED_UMEM`) would let a frame go out by another interface without a copy. The router
//! copies it anyway: it keeps frames for as long as its queues want, and chunks that wait there would be missing here.
#![expect(unsafe_code, reason = "memory that is shared with the kernel")]

use super::program::Place;
use super::rings::{Consumer, Producer};
use super::sender::Sender;
use super::umem::Umem;
use super::while_busy;
use crate::clock::timespec;
use cutline_units::Duration;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING, XDP_UMEM_PGOFF_COMPLETION_RING,
    XDP_UMEM_PGOFF_FILL_RING, XdpOptionsFlags,
};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use std::io;

/// A receive queue's socket.
pub(crate) struct Queue {
    socket: OwnedFd,
    memory: Umem,
    fill: Producer<u64>,
    /// Chunks that are ours: to be given to the kernel.
    spare: Vec<u64>,
    arrived: Consumer<libc::xdp_desc>,
    sender: Option<Sender>,
    zero_copy: bool,
}

/// Chunks for arriving frames, and places in their ring: 1.4 ms of the smallest frames at 1 Gbit/s, 25 ms of the largest.
const ARRIVING: u32 = 2048;
/// Places in the fill ring. The kernel says that it has taken chunks only after it has handed over frames in them, or when
/// it has taken all that it knew of: up to as many as there are. So a chunk may come back while its old place is not free.
const FILL: u32 = 2 * ARRIVING;
/// Chunks for frames to send, and places in their rings.
const SENDING: u32 = 1024;
/// Each memory must have a completion ring, also one that nothing is sent from.
const UNUSED: u32 = 64;

impl Queue {
    /// Opens a socket at a receive queue, which frames come to once the program leads them there. The kernel shares its
    /// memory with the card if that can be, and copies if not.
    ///
    /// # Errors
    /// When the process may not, the queue is taken (`EBUSY`), or there is no memory (`ENOBUFS`).
    pub(crate) fn open(interface: u32, number: u32, place: Place, sends: bool) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::XDP, SocketType::RAW, flags, None)?;
        let sending = if sends { SENDING } else { 0 };
        let memory = Umem::new(ARRIVING + sending)?;
        sockopt::set_xdp_umem_reg(&socket, memory.registration())?;
        sockopt::set_xdp_umem_fill_ring_size(&socket, FILL)?;
        sockopt::set_xdp_umem_completion_ring_size(&socket, sending.max(UNUSED))?;
        sockopt::set_xdp_rx_ring_size(&socket, ARRIVING)?;
        let mut sender = if sends { Some(sender(socket.as_fd())?) } else { None };
        let at = sockopt::xdp_mmap_offsets(&socket)?;
        let arrived = Consumer::of(socket.as_fd(), XDP_PGOFF_RX_RING, &at.rx, ARRIVING)?;
        let mut fill = Producer::of(socket.as_fd(), XDP_UMEM_PGOFF_FILL_RING, &at.fr, FILL)?;
        let mut spare = (0..ARRIVING).map(Umem::address).collect();
        give(&mut fill, &mut spare);
        let zero_copy = take_queue(&socket, interface, number, place)?;
        if let Some(sender) = &mut sender {
            sender.set_zero_copy(zero_copy);
        }
        Ok(Self { socket, memory, fill, spare, arrived, sender, zero_copy })
    }

    /// Whether the card writes into the memory itself.
    pub(crate) const fn is_zero_copy(&self) -> bool {
        self.zero_copy
    }

    /// Tells of up to so many frames that have come, and gives their chunks back; answers how many.
    pub(crate) fn receive(&mut self, most: usize, each: &mut dyn FnMut(&[u8])) -> usize {
        let mut count = 0;
        while count < most {
            let Some(entry) = self.arrived.pop() else { break };
            // SAFETY: the chunk of a frame that has come is ours until we give it back below.
            if let Some(frame) = unsafe { self.memory.frame(entry.addr, entry.len) } {
                each(frame);
            }
            self.spare.push(Umem::chunk_of(entry.addr));
            count += 1;
        }
        if count > 0 {
            self.arrived.release();
            give(&mut self.fill, &mut self.spare);
            if self.fill.needs_wakeup() {
                self.wake();
            }
        }
        count
    }

    /// Lets the driver go on that has run out of chunks.
    fn wake(&self) {
        // Asking alone wakes it; what it answers, the next look at the ring will tell as well.
        let mut asked = [PollFd::new(&self.socket, PollFlags::IN)];
        let _ready = poll(&mut asked, Some(&timespec(Duration::ZERO)));
    }

    /// Sends by it, if it is one to send by: [`cutline_router::Port::send`].
    pub(crate) fn send(&mut self, frames: &mut dyn Iterator<Item = &'_ [u8]>, each: &mut dyn FnMut(bool)) {
        if let Some(sender) = &mut self.sender {
            sender.send(self.socket.as_fd(), &mut self.memory, frames, each);
        }
    }

    /// How many frames have come for which there was no chunk, no place in the ring, or a chunk too short.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub(crate) fn missed(&self) -> io::Result<u64> {
        let stats = sockopt::xdp_statistics(&self.socket)?;
        Ok(stats.rx_dropped + stats.rx_ring_full.unwrap_or(0))
    }
}

impl AsFd for Queue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Gives the kernel chunks to put frames into, as many as have room.
fn give(fill: &mut Producer<u64>, spare: &mut Vec<u64>) {
    while let Some(&chunk) = spare.last() {
        if !fill.push(chunk) {
            break;
        }
        spare.pop();
    }
    fill.publish();
}

/// What a socket sends by, from the chunks behind those for arriving frames.
fn sender(socket: BorrowedFd<'_>) -> io::Result<Sender> {
    sockopt::set_xdp_tx_ring_size(socket, SENDING)?;
    let at = sockopt::xdp_mmap_offsets(socket)?;
    let ring = Producer::of(socket, XDP_PGOFF_TX_RING, &at.tx, SENDING)?;
    let completed = Consumer::of(socket, XDP_UMEM_PGOFF_COMPLETION_RING, &at.cr, SENDING)?;
    Ok(Sender::new(ring, completed, (ARRIVING..ARRIVING + SENDING).map(Umem::address).collect()))
}

/// Binds a socket to a receive queue; answers whether without copies. With a program in the kernel there can be none, and
/// a driver that were asked for it would keep its frames from the program.
fn take_queue(socket: &OwnedFd, interface: u32, number: u32, place: Place) -> io::Result<bool> {
    let copy = match place {
        Place::Driver => SocketAddrXdpFlags::empty(),
        Place::Kernel => SocketAddrXdpFlags::XDP_COPY,
    };
    let address = SocketAddrXdp::new(copy | SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP, interface, number);
    while_busy(|| Ok(bind(socket, &address)?))?;
    Ok(sockopt::xdp_options(socket)?.contains(XdpOptionsFlags::XDP_OPTIONS_ZEROCOPY))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel tells late that it has taken chunks: those that come back meanwhile wait for a place.
    #[test]
    fn chunks_without_a_place_in_the_fill_ring_are_given_later() {
        let mut fill = Producer::of_tests(8);
        let mut spare: Vec<u64> = (0..10).map(Umem::address).collect();
        give(&mut fill, &mut spare);
        assert_eq!((fill.waiting(), spare.len()), (8, 2));
        give(&mut fill, &mut spare);
        assert_eq!((fill.waiting(), spare.len()), (8, 2));
        assert_eq!(fill.take(5), [9, 8, 7, 6, 5].map(Umem::address));
        give(&mut fill, &mut spare);
        assert_eq!((fill.take(5), spare.len()), ([4, 3, 2, 1, 0].map(Umem::address).to_vec(), 0));
    }
}
