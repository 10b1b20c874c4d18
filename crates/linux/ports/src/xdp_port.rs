//! An interface as a port of the router, by `AF_XDP` (the kernel's `Documentation/networking/af_xdp.rst`).
//!
//! A program directs the frames of each receive queue to a socket of ours, *past the host*: unlike those of a packet socket
//! they are no copies, and while the port is open the host itself cannot be reached by the interface. The program ends
//! with the process, also when that is killed. Frames of a queue without a socket pass to the host.
//!
//! The kernel shares the memory with the card where the driver can (zero copy); else the driver runs the program and frames
//! are copied; else the kernel runs it. Virtual interfaces have the latter two, which are no faster than a packet
//! socket. Attaching a program makes many cards restart their queues: the link may be down for a second or two.
//!
//! - *Memory*: 8 MiB for each receive queue, and 4 MiB to send from, all of it locked.
//! - *Sending* uses the first queue alone, so that frames keep their order.
//! - *Arrival*: there are no stamps; a frame arrives when it is read. So verdicts depend on when the process runs, and frames
//!   of several queues are read in turn.
//! - *VLAN tags* that the card takes out are lost, so it must not do that: [`cutline_sys::Offloads`].
//! - *Frames* of more than 3840 B do not fit into a chunk (no `XDP_USE_SG`), so an interface with a longer MTU is refused.
//! - *Checksums* that a virtual interface left to hardware that is not there are missing here, too, and not reported.
//! - *Missed* are frames for which there was no chunk or no entry in the ring (`XDP_STATISTICS`). With zero copy the card
//!   has such drops as well, in its own counters.

use crate::interface::PortInterface;
use crate::xdp::program::Program;
use crate::xdp::queue::Queue;
use crate::xdp::{PROGRAM_PATIENCE, while_busy};
use crate::{InterfacePort, PortError, PortKind, PortStats};
use cutline_router::Port;
use cutline_sys::bpf::XdpMode;
use cutline_sys::ethtool::{self, Command, RX_VLAN};
use cutline_sys::xdp::MAX_RECEIVED;
use cutline_sys::{SysError, clock, interface, packet};
use cutline_units::Instant;
use cutline_wire::ETHERNET;
use rustix::event::epoll;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::io;

/// A port by `AF_XDP`.
pub struct XdpPort {
    interface: PortInterface,
    kind: PortKind,
    /// Before the sockets: while they are closed, frames pass to the host.
    _program: Program,
    queues: Vec<Queue>,
    /// The queue that is read next.
    turn: usize,
    /// Ready when one of the sockets is.
    ready: OwnedFd,
    /// A packet socket that receives nothing. While it is open, the interface is promiscuous.
    _promiscuous: OwnedFd,
}

/// The most frames that are received before it is the other port's turn, and another queue's.
const TURN: usize = 256;
const TURN_OF_QUEUE: usize = 64;
/// A VLAN tag (IEEE 802.1Q), bytes.
const TAG: u32 = 4;
/// The most that a frame has beside its payload, bytes: a header with two tags.
const AROUND: u32 = ETHERNET as u32 + 2 * TAG;

impl XdpPort {
    /// Checks that an interface has the settings that a port on it needs, without opening it; with `fixes_offloads` its offloads do
    /// not count, because they are turned off first.
    ///
    /// # Errors
    /// When there is no such interface, its frames are too long, or it takes VLAN tags out.
    pub fn check(name: &str, fixes_offloads: bool) -> Result<(), PortError> {
        let mtu = interface::mtu(name)?;
        if mtu + AROUND > MAX_RECEIVED {
            return Err(PortError::MtuTooLarge { name: name.to_owned(), mtu, most: MAX_RECEIVED - AROUND });
        }
        if !fixes_offloads && ethtool::get(name, Command::FLAGS).is_ok_and(|flags| flags & RX_VLAN != 0) {
            return Err(PortError::VlanTagsRemoved { name: name.to_owned() });
        }
        Ok(())
    }

    /// Opens a port on an interface.
    ///
    /// # Errors
    /// As [`XdpPort::check`], and when another process uses it for XDP, the process may not, or the kernel cannot. A receive queue whose
    /// socket belongs to a process that has just ended is waited for.
    pub fn open(name: &str) -> Result<Self, PortError> {
        Self::check(name, false)?;
        let index = interface::index(name)?;
        let mtu = interface::mtu(name)?;
        // A payload of its MTU behind a header with one tag.
        let interface = PortInterface::new(name, index, mtu + ETHERNET as u32 + TAG)?;
        Self::set_up(interface, index).map_err(|error| explained(name, error))
    }

    fn set_up(interface: PortInterface, index: u32) -> io::Result<Self> {
        let count = interface::receive_queues(&interface.name, index);
        let promiscuous = packet::open()?;
        packet::make_promiscuous(&promiscuous, index)?;
        let program = while_busy(PROGRAM_PATIENCE, || Program::attach(index, count))?;
        let ready = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut queues = Vec::new();
        for number in 0..count {
            let queue = Queue::open(index, number, program.mode(), number == 0)?;
            epoll::add(&ready, &queue, epoll::EventData::new_u64(number.into()), epoll::EventFlags::IN)?;
            queues.push(queue);
        }
        // Not before all are open, so that no frame is lost when one cannot be.
        for (number, queue) in (0..).zip(&queues) {
            program.redirect(number, queue)?;
        }
        Ok(Self {
            interface,
            kind: kind(program.mode(), &queues),
            _program: program,
            queues,
            turn: 0,
            ready,
            _promiscuous: promiscuous,
        })
    }
}

fn kind(mode: XdpMode, queues: &[Queue]) -> PortKind {
    match mode {
        XdpMode::Driver if queues.iter().all(Queue::is_zero_copy) => PortKind::XdpZeroCopy,
        XdpMode::Driver => PortKind::XdpDriver,
        XdpMode::Generic => PortKind::XdpKernel,
    }
}

/// An error with its likely cause.
fn explained(name: &str, error: io::Error) -> PortError {
    let failure = format!("AF_XDP is not available for interface `{name}`");
    let name = name.to_owned();
    match Errno::from_io_error(&error) {
        Some(Errno::PERM | Errno::ACCESS) => {
            let capability = "CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF";
            SysError::NotPermitted { failure, capability }.into()
        }
        Some(Errno::BUSY | Errno::EXIST) => PortError::Busy { name },
        Some(Errno::AFNOSUPPORT) => PortError::NoXdp { name },
        Some(Errno::NOBUFS | Errno::NOMEM) => {
            let failure = format!(
                "the memory for AF_XDP at `{name}` cannot be locked; give it CAP_IPC_LOCK, or raise RLIMIT_MEMLOCK \
                 (ulimit -l) to 12 MiB for each such interface and 8 MiB for each further receive queue"
            );
            SysError::new(failure, error).into()
        }
        _ => SysError::new(failure, error).into(),
    }
}

impl AsFd for XdpPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }
}

impl InterfacePort for XdpPort {
    fn name(&self) -> &str {
        &self.interface.name
    }

    fn largest_frame(&self) -> u32 {
        self.interface.largest_frame
    }

    fn stats(&mut self) -> Result<PortStats, PortError> {
        let missed: io::Result<u64> = self.queues.iter().map(Queue::missed).sum();
        let missed = missed.map_err(|error| self.interface.uncounted(error))?;
        Ok(PortStats { kind: self.kind, missed, ..PortStats::default() })
    }

    fn check(&self) -> Result<(), PortError> {
        self.interface.check()
    }
}

impl Port for XdpPort {
    type Error = PortError;

    fn receive(&mut self, now: Instant, each: &mut dyn FnMut(Instant, &[u8])) -> Result<usize, PortError> {
        let (mut count, mut empty) = (0, 0);
        while count < TURN && empty < self.queues.len() {
            let received = self.queues[self.turn].receive(TURN_OF_QUEUE, &mut |frame| each(now, frame));
            self.turn = (self.turn + 1) % self.queues.len();
            empty = if received == 0 { empty + 1 } else { 0 };
            count += received;
        }
        Ok(count)
    }

    /// Frames to an interface that has been removed are lost until [`InterfacePort::check`] reports it.
    fn send(
        &mut self,
        frames: &mut dyn Iterator<Item = &'_ [u8]>,
        each: &mut dyn FnMut(bool),
    ) -> Result<(), PortError> {
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
    fn an_error_names_its_cause() {
        let message = |errno: Errno| explained("eth0", errno.into()).to_string();
        assert!(message(Errno::PERM).contains("CAP_BPF"));
        assert!(message(Errno::BUSY).contains("has an XDP program already"));
        assert!(message(Errno::AFNOSUPPORT).contains("CONFIG_XDP_SOCKETS"));
        assert!(message(Errno::NOBUFS).contains("RLIMIT_MEMLOCK"));
        let other = message(Errno::OPNOTSUPP);
        assert!(other.starts_with("AF_XDP is not available for interface `eth0`: "), "{other}");
    }
}
