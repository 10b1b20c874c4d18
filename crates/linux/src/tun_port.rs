//! A TUN interface as a port of the router, for hosts that route (the kernel's Documentation/networking/tuntap.rst).
//!
//! What the host routes into the interface comes here, and here alone: no copies, unlike a packet socket. What is sent
//! here arrives at the host as if from a link, and is routed on. These are packets without a link's header; the
//! router gets them behind an Ethernet header of zeros and the packet's type, which is also what they will have on the
//! next Ethernet and so what its accounting wants. It is taken off again on the way out.
//!
//! With offloads at zero, which is the interface's state without a header before the packet (`IFF_VNET_HDR`), the kernel
//! cuts aggregates and fills in checksums before it hands a packet over.
//!
//! There are no stamps of the kernel: a packet counts as coming when it is read.

use crate::packet_port::{PortKind, PortStats};
use crate::socket::attach_tun;
use crate::{LinuxError, LinuxPort, clock, interface};
use cutline_router::{ETHERNET, Port};
use cutline_units::Instant;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, read, write};
use std::io;

/// What a TUN interface gives and takes.
pub struct TunPort {
    name: String,
    index: u32,
    largest: u32,
    file: OwnedFd,
    /// The header, and room for a packet behind it.
    frame: Vec<u8>,
    /// What the kernel had dropped before the port was opened.
    dropped_before: u64,
}

/// How many packets are told of before the other port has its turn.
const TURN: usize = 256;

impl TunPort {
    /// Takes the far end of a TUN interface that is there already: one with routes, which outlive the router.
    ///
    /// # Errors
    /// When there is no such interface, it is no TUN interface, another process has it, or the process may not.
    pub fn open(name: &str) -> Result<Self, LinuxError> {
        let index = interface::index(name)?;
        let largest = interface::mtu(name)? + ETHERNET as u32;
        let failed =
            |error: io::Error| LinuxError::of(format!("TUN interface `{name}` cannot be opened"), error);
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = open("/dev/net/tun", flags, Mode::empty()).map_err(|errno| failed(errno.into()))?;
        attach_tun(file.as_fd(), name).map_err(|error| match error.raw_os_error() {
            Some(libc::EINVAL) => LinuxError::NoTun { name: name.to_owned() },
            _ => failed(error),
        })?;
        let dropped_before = interface::dropped_towards(name);
        let frame = vec![0; ETHERNET + usize::from(u16::MAX)];
        Ok(Self { name: name.to_owned(), index, largest, file, frame, dropped_before })
    }

    fn gone(&self) -> LinuxError {
        LinuxError::Gone { name: self.name.clone() }
    }
}

impl AsFd for TunPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl LinuxPort for TunPort {
    fn name(&self) -> &str {
        &self.name
    }

    /// A packet of its MTU, with the Ethernet header that the router sees.
    fn largest_frame(&self) -> u32 {
        self.largest
    }

    /// Only what came faster than it was read can go wrong here.
    fn stats(&mut self) -> Result<PortStats, LinuxError> {
        let dropped = interface::dropped_towards(&self.name);
        let missed = dropped.saturating_sub(self.dropped_before);
        Ok(PortStats { kind: PortKind::Tun, missed, ..PortStats::default() })
    }

    fn check(&self) -> Result<(), LinuxError> {
        if interface::exists(self.index)? { Ok(()) } else { Err(self.gone()) }
    }
}

impl Port for TunPort {
    type Error = LinuxError;

    fn receive(&mut self, now: Instant, each: &mut dyn FnMut(Instant, &[u8])) -> Result<usize, LinuxError> {
        for count in 0..TURN {
            match read(&self.file, &mut self.frame[ETHERNET..]) {
                Ok(length) => {
                    let kind = ether_type(&self.frame[ETHERNET..ETHERNET + length]);
                    self.frame[ETHERNET - 2..ETHERNET].copy_from_slice(&kind);
                    each(now, &self.frame[..ETHERNET + length]);
                }
                Err(Errno::BADFD) => return Err(self.gone()),
                // Nothing is there, or a signal came; either way the caller asks again.
                Err(_) => return Ok(count),
            }
        }
        Ok(TURN)
    }

    fn send(
        &mut self,
        frames: &mut dyn Iterator<Item = &'_ [u8]>,
        each: &mut dyn FnMut(bool),
    ) -> Result<(), LinuxError> {
        for frame in frames {
            match write(&self.file, &frame[ETHERNET..]) {
                Ok(_) => each(true),
                Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
                Err(Errno::BADFD) => return Err(self.gone()),
                // The interface is down, or this is no packet that the kernel knows: lost, the next one may not be.
                Err(_) => each(false),
            }
        }
        Ok(())
    }

    fn clock(&self) -> Option<Instant> {
        Some(clock::now())
    }
}

/// The Ethernet type of a packet by its version; zero for what is neither IPv4 nor IPv6.
fn ether_type(packet: &[u8]) -> [u8; 2] {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) => [0x08, 0x00],
        Some(6) => [0x86, 0xdd],
        _ => [0, 0],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_has_the_type_of_its_version() {
        assert_eq!(ether_type(&[0x45, 0]), [0x08, 0x00]);
        assert_eq!(ether_type(&[0x60]), [0x86, 0xdd]);
        assert_eq!((ether_type(&[0x15]), ether_type(&[])), ([0, 0], [0, 0]));
    }
}
