//! `AF_XDP` sockets (the kernel's `Documentation/networking/af_xdp.rst`): frames in memory that is shared with the kernel, or
//! with the network card itself.
//!
//! ```text
//!            fill ring: empty chunks           receive ring: chunks with frames
//! process ────────────────────────────> kernel ────────────────────────────────> process
//!            transmit ring: chunks with frames  completion ring: empty chunks
//! process ────────────────────────────> kernel ────────────────────────────────> process
//! ```
//!
//! A [`Socket`] owns its memory and its rings, and no chunk of it is ever handed out, so a chunk cannot be used by both
//! sides at a time. Its memory is not shared with other sockets (`XDP_SHARED_UMEM`).
#![expect(unsafe_code, reason = "memory that is shared with the kernel")]

mod ring;
mod umem;

pub use umem::{MAX_RECEIVED, MAX_SENT};

use crate::clock::timespec;
use cutline_units::Duration;
use ring::{Consumer, Producer};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING, XDP_UMEM_PGOFF_COMPLETION_RING,
    XDP_UMEM_PGOFF_FILL_RING, XdpOptionsFlags,
};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, bind, send, socket_with, sockopt};
use std::io;
use umem::Umem;

/// Sizes of a socket's memory and rings. Each number is a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Chunks for arriving frames, and entries of the receive ring.
    pub receive: u32,
    /// Chunks for frames to send, and entries of the transmit and completion rings; zero for a socket that does not send.
    pub transmit: u32,
}

/// Sharing of a socket's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpCopying {
    /// With the network card where its driver can do that, and else with the kernel, which copies.
    Any,
    /// With the kernel, which copies.
    Copy,
    /// With the network card, or not at all.
    ZeroCopy,
}

/// A socket for one receive queue of an interface.
pub struct Socket {
    fd: OwnedFd,
    memory: Umem,
    fill: Producer<u64>,
    /// Chunks that are ours: to be given to the kernel.
    spare: Vec<u64>,
    received: Consumer<libc::xdp_desc>,
    transmit: Option<Transmit>,
}

/// The half of a socket that sends.
struct Transmit {
    ring: Producer<libc::xdp_desc>,
    completed: Consumer<u64>,
    /// Chunks that hold no frame.
    free: Vec<u64>,
}

/// Interface of the sending half of a socket. It is a trait so that a sender can be tested without a socket.
/// Indices count frames, modulo 2^32.
pub trait TransmitQueue {
    /// Copies a frame of at most [`MAX_SENT`] bytes into the transmit ring. Returns false when there is no free chunk or no
    /// entry.
    fn push(&mut self, frame: &[u8]) -> bool;

    /// Publishes the pushed entries to the kernel.
    fn submit(&mut self);

    /// Takes back the chunks of frames that have been sent.
    fn reap(&mut self);

    /// Returns whether there is a free chunk.
    fn has_free_chunk(&self) -> bool;

    /// Returns the index behind the last frame that was pushed.
    fn pushed(&self) -> u32;

    /// Returns the index behind the last frame that the kernel has taken.
    fn taken(&self) -> u32;

    /// Returns whether the kernel must be woken to take submitted entries.
    fn needs_wakeup(&self) -> bool;

    /// Wakes the kernel. Without zero copy, this is when it takes frames, at most 32.
    ///
    /// # Errors
    /// `EBUSY` when the interface has lost the last of the frames that were taken; `ENETDOWN`, `ENXIO` or `ENODEV` when the
    /// interface is down or has been removed; others, such as `EAGAIN`, when the kernel takes no more for the moment.
    fn wake(&self) -> io::Result<()>;
}

/// The half of a socket that sends, borrowed.
pub struct Transmitter<'s> {
    socket: BorrowedFd<'s>,
    memory: &'s mut Umem,
    transmit: &'s mut Transmit,
}

/// Every socket must have a completion ring, also one that does not send.
const UNUSED: u32 = 64;

impl Socket {
    /// Opens a socket and allocates its memory.
    ///
    /// # Errors
    /// When the process may not, or there is too little memory (`ENOBUFS`).
    pub fn open(Config { receive, transmit }: Config) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::XDP, SocketType::RAW, flags, None)?;
        let memory = Umem::new(receive + transmit)?;
        // The kernel says that it has taken chunks only after it has handed over frames in them, or when it has taken
        // all that it knew of: up to as many as there are. So a chunk may come back while its old entry is in use.
        let fill_entries = 2 * receive;
        sockopt::set_xdp_umem_reg(&socket, memory.registration())?;
        sockopt::set_xdp_umem_fill_ring_size(&socket, fill_entries)?;
        sockopt::set_xdp_umem_completion_ring_size(&socket, transmit.max(UNUSED))?;
        sockopt::set_xdp_rx_ring_size(&socket, receive)?;
        let of_receive = receive..receive + transmit;
        let transmit = if transmit > 0 { Some(Transmit::open(&socket, transmit, of_receive)?) } else { None };
        let at = sockopt::xdp_mmap_offsets(&socket)?;
        let received = Consumer::shared(&socket, XDP_PGOFF_RX_RING, &at.rx, receive)?;
        let mut fill = Producer::shared(&socket, XDP_UMEM_PGOFF_FILL_RING, &at.fr, fill_entries)?;
        let mut spare = (0..receive).map(Umem::address).collect();
        give(&mut fill, &mut spare);
        Ok(Self { fd: socket, memory, fill, spare, received, transmit })
    }

    /// Binds the socket to a receive queue of an interface. Frames arrive once a program directs them here.
    ///
    /// # Errors
    /// When the queue has a socket (`EBUSY`), or the driver refuses the mode (`EOPNOTSUPP`).
    pub fn bind(&self, interface: u32, queue: u32, mode: XdpCopying) -> io::Result<()> {
        let mode = match mode {
            XdpCopying::Any => SocketAddrXdpFlags::empty(),
            XdpCopying::Copy => SocketAddrXdpFlags::XDP_COPY,
            XdpCopying::ZeroCopy => SocketAddrXdpFlags::XDP_ZEROCOPY,
        };
        let flags = mode | SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
        Ok(bind(&self.fd, &SocketAddrXdp::new(flags, interface, queue))?)
    }

    /// Returns whether the network card itself reads and writes the memory.
    ///
    /// # Errors
    /// When the kernel does not report it.
    pub fn is_zero_copy(&self) -> io::Result<bool> {
        Ok(sockopt::xdp_options(&self.fd)?.contains(XdpOptionsFlags::XDP_OPTIONS_ZEROCOPY))
    }

    /// Passes up to `most` frames that have arrived to `each`, and gives their chunks back. Returns their number.
    pub fn receive(&mut self, most: usize, each: &mut dyn FnMut(&[u8])) -> usize {
        let mut count = 0;
        while count < most {
            let Some(entry) = self.received.pop() else { break };
            // SAFETY: the chunk of a frame that has arrived is ours until we give it back below.
            if let Some(frame) = unsafe { self.memory.frame(entry.addr, entry.len) } {
                each(frame);
            }
            self.spare.push(Umem::chunk_of(entry.addr));
            count += 1;
        }
        if count > 0 {
            self.received.release();
            give(&mut self.fill, &mut self.spare);
            if self.fill.needs_wakeup() {
                self.wake_receiver();
            }
        }
        count
    }

    /// Wakes a driver that has run out of chunks.
    fn wake_receiver(&self) {
        // The call alone wakes it. The next look at the ring shows its result as well.
        let mut polled = [PollFd::new(&self.fd, PollFlags::IN)];
        let _ready = poll(&mut polled, Some(&timespec(Duration::ZERO)));
    }

    /// Returns the half that sends, if it has one.
    pub fn transmitter(&mut self) -> Option<Transmitter<'_>> {
        let transmit = self.transmit.as_mut()?;
        Some(Transmitter { socket: self.fd.as_fd(), memory: &mut self.memory, transmit })
    }

    /// Returns the number of arriving frames that were dropped so far: there was no chunk, no entry of the ring, or a chunk was too
    /// short.
    ///
    /// # Errors
    /// When the kernel does not report it.
    pub fn drops(&self) -> io::Result<u64> {
        let statistics = sockopt::xdp_statistics(&self.fd)?;
        Ok(statistics.rx_dropped + statistics.rx_ring_full.unwrap_or(0))
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Transmit {
    fn open(socket: &OwnedFd, entries: u32, chunks: std::ops::Range<u32>) -> io::Result<Self> {
        sockopt::set_xdp_tx_ring_size(socket, entries)?;
        let at = sockopt::xdp_mmap_offsets(socket)?;
        let ring = Producer::shared(socket, XDP_PGOFF_TX_RING, &at.tx, entries)?;
        let completed = Consumer::shared(socket, XDP_UMEM_PGOFF_COMPLETION_RING, &at.cr, entries)?;
        Ok(Self { ring, completed, free: chunks.map(Umem::address).collect() })
    }

    fn push(&mut self, memory: &mut Umem, frame: &[u8]) -> bool {
        let Some(chunk) = self.free.pop() else { return false };
        // SAFETY: a free chunk has no other owner.
        unsafe { memory.write(chunk, frame) };
        let entry = libc::xdp_desc { addr: chunk, len: frame.len() as u32, options: 0 };
        let has_room = self.ring.push(entry);
        if !has_room {
            self.free.push(chunk);
        }
        has_room
    }

    fn reap(&mut self) {
        while let Some(address) = self.completed.pop() {
            self.free.push(Umem::chunk_of(address));
        }
        self.completed.release();
    }
}

impl TransmitQueue for Transmitter<'_> {
    fn push(&mut self, frame: &[u8]) -> bool {
        self.transmit.push(self.memory, frame)
    }

    fn submit(&mut self) {
        self.transmit.ring.publish();
    }

    fn reap(&mut self) {
        self.transmit.reap();
    }

    fn has_free_chunk(&self) -> bool {
        !self.transmit.free.is_empty()
    }

    fn pushed(&self) -> u32 {
        self.transmit.ring.next()
    }

    fn taken(&self) -> u32 {
        self.transmit.ring.taken()
    }

    fn needs_wakeup(&self) -> bool {
        self.transmit.ring.needs_wakeup()
    }

    fn wake(&self) -> io::Result<()> {
        Ok(send(self.socket, &[], SendFlags::DONTWAIT).map(drop)?)
    }
}

/// Gives the kernel chunks to put frames into, as many as there is room for.
fn give(fill: &mut Producer<u64>, spare: &mut Vec<u64>) {
    while let Some(&chunk) = spare.last() {
        if !fill.push(chunk) {
            break;
        }
        spare.pop();
    }
    fill.publish();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel says late that it has taken chunks: those that come back meanwhile wait for an entry.
    #[test]
    fn chunks_without_an_entry_in_the_fill_ring_are_given_later() {
        let mut fill = Producer::detached(8);
        let mut spare: Vec<u64> = (0..10).map(Umem::address).collect();
        give(&mut fill, &mut spare);
        assert_eq!((fill.waiting(), spare.len()), (8, 2));
        give(&mut fill, &mut spare);
        assert_eq!((fill.waiting(), spare.len()), (8, 2));
        assert_eq!(fill.take(5), [9, 8, 7, 6, 5].map(Umem::address));
        give(&mut fill, &mut spare);
        assert_eq!((fill.take(5), spare.len()), ([4, 3, 2, 1, 0].map(Umem::address).to_vec(), 0));
    }

    /// Returns the frames that the kernel finds in the ring.
    fn sent(transmit: &Transmit, memory: &Umem, count: u32) -> Vec<Vec<u8>> {
        // SAFETY: there is no kernel, and nothing is written while this is read.
        let frame = |entry: libc::xdp_desc| unsafe { memory.frame(entry.addr, entry.len) }.unwrap().to_vec();
        transmit.ring.take(count).into_iter().map(frame).collect()
    }

    #[test]
    fn a_frame_has_a_chunk_of_its_own_until_it_is_completed() {
        let mut memory = Umem::new(3).unwrap();
        let free = (1..3).map(Umem::address).collect();
        let mut transmit = Transmit { ring: Producer::detached(8), completed: Consumer::detached(8), free };
        assert!(transmit.push(&mut memory, &[1; 60]) && transmit.push(&mut memory, &[2; 4096]));
        assert!(!transmit.push(&mut memory, &[3; 60]), "no chunk is left");
        transmit.ring.publish();
        assert_eq!(sent(&transmit, &memory, 2), [vec![1; 60], vec![2; 4096]]);
        transmit.reap();
        assert!(!transmit.push(&mut memory, &[3; 60]), "neither is completed");
        transmit.completed.offer(Umem::address(1));
        transmit.reap();
        assert!(transmit.push(&mut memory, &[3; 60]));
        transmit.ring.publish();
        assert_eq!(sent(&transmit, &memory, 1), [vec![3; 60]]);
    }

    #[test]
    fn a_frame_without_an_entry_keeps_no_chunk() {
        let mut memory = Umem::new(4).unwrap();
        let free = (0..4).map(Umem::address).collect();
        let mut transmit = Transmit { ring: Producer::detached(2), completed: Consumer::detached(2), free };
        assert!(transmit.push(&mut memory, &[1]) && transmit.push(&mut memory, &[2]));
        assert!(!transmit.push(&mut memory, &[3]) && transmit.free.len() == 2);
    }
}
