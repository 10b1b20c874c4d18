//! An interface as a port of the router, by `AF_XDP` (the kernel's `Documentation/networking/af_xdp.rst`).
//!
//! A program leads what comes in by each receive queue to a socket of ours, and *past the host*: unlike a packet socket
//! these are no copies, and while the port is open the host itself cannot be reached by the interface. The program goes
//! with the process, also when that is killed; what is behind a queue without a socket passes to the host.
//!
//! The kernel shares the memory with the card where the driver can (zero copy); else the driver's program runs and frames
//! are copied; else the kernel's does. The latter two are what virtual interfaces have, and no faster than a packet
//! socket. Attaching a program makes many cards restart their queues: the link may be gone for a second or two.
//!
//! - *Memory*: 8 MiB for each receive queue, and 4 MiB to send from, all of it locked.
//! - *Sending* goes by the first queue alone, so that frames keep their order.
//! - *Arrival*: there are no stamps; a frame counts as coming when it is read. So verdicts depend on when the process
//!   runs, and frames of several queues are read in turn.
//! - *VLAN tags* that the card takes out are lost, so it must not: [`crate::Offloads`].
//! - *Frames* of more than 3840 B do not fit into a chunk (no `XDP_USE_SG`), so an interface with a longer MTU is refused.
//! - *Checksums* that a virtual interface left to hardware that is not there are missing here, too, and not told of.
//! - *Missed* are frames for which there was no chunk or no place in the ring (`XDP_STATISTICS`). With zero copy the card
//!   has such drops as well, in its own counters.

use crate::packet_port::{PortKind, PortStats};
use crate::socket::make_promiscuous;
use crate::xdp::program::{Place, Program};
use crate::xdp::queue::Queue;
use crate::xdp::umem::LARGEST;
use crate::xdp::while_busy;
use crate::{LinuxError, LinuxPort, clock, interface, offload};
use cutline_router::{ETHERNET, Port};
use cutline_units::Instant;
use rustix::event::epoll;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::io;

/// What an interface gives and takes.
pub struct XdpPort {
    name: String,
    index: u32,
    largest: u32,
    kind: PortKind,
    /// Before the sockets: while they are closed, frames pass to the host.
    _program: Program,
    queues: Vec<Queue>,
    /// The queue that is read next.
    turn: usize,
    /// Ready when one of the sockets is.
    ready: OwnedFd,
    /// The interface takes frames for others for as long as this is open.
    _promiscuous: OwnedFd,
}

/// How many frames are told of before the other port has its turn, and before another queue has.
const TURN: usize = 256;
const TURN_OF_QUEUE: usize = 64;
/// A VLAN tag (IEEE 802.1Q), bytes.
const TAG: u32 = 4;
/// What a frame has beside its payload, two tags at most, bytes.
const AROUND: u32 = ETHERNET as u32 + 2 * TAG;

impl XdpPort {
    /// Opens an interface.
    ///
    /// # Errors
    /// When there is no such interface, its frames are too long, it takes VLAN tags out, another process has it, the
    /// process may not, or the kernel cannot.
    pub fn open(name: &str) -> Result<Self, LinuxError> {
        let index = interface::index(name)?;
        let mtu = interface::mtu(name)?;
        if mtu + AROUND > LARGEST {
            return Err(LinuxError::TooLong { name: name.to_owned(), mtu, most: LARGEST - AROUND });
        }
        if offload::removes_tags(name) {
            return Err(LinuxError::TagsRemoved { name: name.to_owned() });
        }
        let largest = mtu + ETHERNET as u32 + TAG;
        Self::set_up(name, index, largest).map_err(|error| explained(name, error))
    }

    fn set_up(name: &str, index: u32, largest: u32) -> io::Result<Self> {
        let count = interface::receive_queues(name, index);
        let promiscuous = promiscuous(index)?;
        let program = while_busy(|| Program::attach(index, count))?;
        let ready = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut queues = Vec::new();
        for number in 0..count {
            let queue = Queue::open(index, number, program.place(), number == 0)?;
            epoll::add(&ready, &queue, epoll::EventData::new_u64(number.into()), epoll::EventFlags::IN)?;
            queues.push(queue);
        }
        // Not before all are there, so that none is led into a router that does not come about.
        for (number, queue) in (0..).zip(&queues) {
            program.lead(number, queue.as_fd())?;
        }
        let kind = kind(program.place(), &queues);
        let name = name.to_owned();
        Ok(Self {
            name,
            index,
            largest,
            kind,
            _program: program,
            queues,
            turn: 0,
            ready,
            _promiscuous: promiscuous,
        })
    }
}

fn kind(place: Place, queues: &[Queue]) -> PortKind {
    match place {
        Place::Driver if queues.iter().all(Queue::is_zero_copy) => PortKind::XdpZeroCopy,
        Place::Driver => PortKind::XdpDriver,
        Place::Kernel => PortKind::XdpKernel,
    }
}

/// A packet socket of no protocol, which gets nothing.
fn promiscuous(index: u32) -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    make_promiscuous(socket.as_fd(), index)?;
    Ok(socket)
}

/// What is missing, where that is plain.
fn explained(name: &str, error: io::Error) -> LinuxError {
    let name = name.to_owned();
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => LinuxError::NotPermitted {
            doing: format!("interface `{name}` cannot be had by AF_XDP"),
            capability: "CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF",
        },
        Some(libc::EBUSY | libc::EEXIST) => LinuxError::Taken { name },
        Some(libc::EAFNOSUPPORT) => LinuxError::NoXdp { name },
        Some(libc::ENOBUFS | libc::ENOMEM) => {
            let doing = format!(
                "the memory for AF_XDP at `{name}` cannot be locked; give it CAP_IPC_LOCK, or raise RLIMIT_MEMLOCK \
                 (ulimit -l) to 12 MiB for each such interface and 8 MiB for each further receive queue"
            );
            LinuxError::System { doing, source: error }
        }
        _ => {
            LinuxError::System { doing: format!("interface `{name}` cannot be had by AF_XDP"), source: error }
        }
    }
}

impl AsFd for XdpPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }
}

impl LinuxPort for XdpPort {
    fn name(&self) -> &str {
        &self.name
    }

    /// A payload of its MTU behind a header with one tag.
    fn largest_frame(&self) -> u32 {
        self.largest
    }

    fn stats(&mut self) -> Result<PortStats, LinuxError> {
        let missed: io::Result<u64> = self.queues.iter().map(Queue::missed).sum();
        let missed = missed.map_err(|error| {
            LinuxError::of(format!("the counters of `{}` cannot be read", self.name), error)
        })?;
        Ok(PortStats { kind: self.kind, missed, ..PortStats::default() })
    }

    fn check(&self) -> Result<(), LinuxError> {
        if interface::exists(self.index)? {
            Ok(())
        } else {
            Err(LinuxError::Gone { name: self.name.clone() })
        }
    }
}

impl Port for XdpPort {
    type Error = LinuxError;

    fn receive(&mut self, now: Instant, each: &mut dyn FnMut(Instant, &[u8])) -> Result<usize, LinuxError> {
        let (mut count, mut empty) = (0, 0);
        while count < TURN && empty < self.queues.len() {
            let received = self.queues[self.turn].receive(TURN_OF_QUEUE, &mut |frame| each(now, frame));
            self.turn = (self.turn + 1) % self.queues.len();
            empty = if received == 0 { empty + 1 } else { 0 };
            count += received;
        }
        Ok(count)
    }

    /// Of an interface that has been removed, frames are lost until [`LinuxPort::check`] tells.
    fn send(
        &mut self,
        frames: &mut dyn Iterator<Item = &'_ [u8]>,
        each: &mut dyn FnMut(bool),
    ) -> Result<(), LinuxError> {
        self.queues[0].send(frames, each);
        Ok(())
    }

    #[inline]
    fn clock(&self) -> Option<Instant> {
        Some(clock::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told() {
        let told = |code| explained("eth0", io::Error::from_raw_os_error(code)).to_string();
        assert!(told(libc::EPERM).contains("CAP_BPF"));
        assert!(told(libc::EBUSY).contains("has an XDP program already"));
        assert!(told(libc::EAFNOSUPPORT).contains("CONFIG_XDP_SOCKETS"));
        assert!(told(libc::ENOBUFS).contains("RLIMIT_MEMLOCK"));
        assert!(told(libc::EOPNOTSUPP).starts_with("interface `eth0` cannot be had by AF_XDP: "));
    }
}
