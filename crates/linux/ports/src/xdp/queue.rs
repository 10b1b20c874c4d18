//! A socket for one receive queue of an interface.
//!
//! Its memory is its own. Memory that sockets share (`XDP_SHARED_UMEM`) would let a frame be sent by another interface
//! without a copy. The router copies it anyway: it keeps frames for as long as its queues need, and chunks that wait there
//! would be missing here.

use super::sender::Sender;
use super::{QUEUE_PATIENCE, while_busy};
use cutline_sys::bpf::XdpMode;
use cutline_sys::xdp::{Config, Socket, XdpCopying};
use rustix::fd::{AsFd, BorrowedFd};
use std::io;

/// A receive queue's socket.
pub(crate) struct Queue {
    socket: Socket,
    /// Sender, if this queue sends.
    sender: Option<Sender>,
    is_zero_copy: bool,
}

/// Chunks for arriving frames: 1.4 ms of the smallest at 1 Gbit/s, 25 ms of the largest.
const RECEIVE: u32 = 2048;
/// Chunks for frames to send.
const TRANSMIT: u32 = 1024;

impl Queue {
    /// Opens a socket at a receive queue, where frames arrive once the program directs them here. Memory is shared with the
    /// card if its driver can do that, and else with the kernel, which copies.
    ///
    /// # Errors
    /// When the process may not, the queue has a socket (`EBUSY`), or there is too little memory (`ENOBUFS`).
    pub(crate) fn open(interface: u32, number: u32, program: XdpMode, sends: bool) -> io::Result<Self> {
        let mut socket =
            Socket::open(Config { receive: RECEIVE, transmit: if sends { TRANSMIT } else { 0 } })?;
        let mode = match program {
            XdpMode::Driver => XdpCopying::Any,
            // With zero copy, a driver would not pass frames to a program in the kernel.
            XdpMode::Generic => XdpCopying::Copy,
        };
        while_busy(QUEUE_PATIENCE, || socket.bind(interface, number, mode))?;
        let is_zero_copy = socket.is_zero_copy()?;
        let sender = socket.transmitter().map(|transmitter| Sender::new(&transmitter, is_zero_copy));
        Ok(Self { socket, sender, is_zero_copy })
    }

    /// Returns whether the card itself reads and writes the memory.
    pub(crate) const fn is_zero_copy(&self) -> bool {
        self.is_zero_copy
    }

    /// Passes up to `most` frames that have arrived to `each`. Returns their number.
    pub(crate) fn receive(&mut self, most: usize, each: &mut dyn FnMut(&[u8])) -> usize {
        self.socket.receive(most, each)
    }

    /// Sends, if it is the queue that does: [`cutline_router::Port::send`].
    pub(crate) fn send(&mut self, frames: &mut dyn Iterator<Item = &'_ [u8]>, each: &mut dyn FnMut(bool)) {
        if let (Some(sender), Some(mut transmitter)) = (&mut self.sender, self.socket.transmitter()) {
            sender.send(&mut transmitter, frames, each);
        }
    }

    /// Returns the number of arriving frames that were dropped so far.
    ///
    /// # Errors
    /// When the kernel does not report it.
    pub(crate) fn missed(&self) -> io::Result<u64> {
        self.socket.drops()
    }
}

impl AsFd for Queue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
