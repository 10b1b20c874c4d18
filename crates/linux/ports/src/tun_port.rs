//! A TUN interface as a port of the router, for hosts that route (the kernel's Documentation/networking/tuntap.rst).
//!
//! Packets that the host routes into the interface arrive here, and only here: they are no copies, unlike those of a packet
//! socket. Packets that are sent here arrive at the host as if from a link, and are routed on. They have no link header;
//! the router gets them behind an Ethernet header of zeros and the packet's type. They will have such a header on the
//! next Ethernet, so accounting counts it. It is removed again before a packet is sent.
//!
//! The kernel cuts aggregates and fills in checksums before it hands a packet over ([`cutline_sys::tun`]).
//!
//! The kernel does not stamp packets: a packet arrives when it is read.

use crate::interface::PortInterface;
use crate::{InterfacePort, PortError, PortKind, PortStats};
use cutline_router::Port;
use cutline_sys::{SysError, clock, interface, tun};
use cutline_units::Instant;
use cutline_wire::ETHERNET;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, read, write};
use std::io;

/// A port by a TUN interface.
pub struct TunPort {
    interface: PortInterface,
    file: OwnedFd,
    /// The header, and room for a packet behind it.
    frame: Vec<u8>,
    /// Packets that the kernel had dropped before the port was opened.
    dropped_before: u64,
    /// Packets that it has dropped since, as of the last look.
    missed: u64,
}

/// The most packets that are received before it is the other port's turn.
const TURN: usize = 256;

impl TunPort {
    /// Checks that an interface is a TUN interface, without opening it.
    ///
    /// # Errors
    /// When it is not, or there is no such interface.
    pub fn check(name: &str) -> Result<(), PortError> {
        interface::index(name)?;
        if tun::is_tun(name) { Ok(()) } else { Err(PortError::NotTun { name: name.to_owned() }) }
    }

    /// Opens the far end of a TUN interface that exists already, with routes, which outlive the router.
    ///
    /// # Errors
    /// When there is no such interface, it is not a TUN interface, another process has it, or the process may not.
    pub fn open(name: &str) -> Result<Self, PortError> {
        let index = interface::index(name)?;
        // A packet of its MTU behind the Ethernet header that the router sees.
        let largest = interface::mtu(name)? + ETHERNET as u32;
        let file = tun::attach(name).map_err(|error| explained(name, error))?;
        let mut interface = PortInterface::new(name, index, largest)?;
        let dropped_before = interface.watch.transmit_drops().unwrap_or(0);
        let frame = vec![0; ETHERNET + usize::from(u16::MAX)];
        Ok(Self { interface, file, frame, dropped_before, missed: 0 })
    }
}

impl AsFd for TunPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl InterfacePort for TunPort {
    fn name(&self) -> &str {
        &self.interface.name
    }

    fn largest_frame(&self) -> u32 {
        self.interface.largest_frame
    }

    /// Returns the largest frame without its header, as there are no tags.
    fn largest_packet(&self) -> u32 {
        self.interface.largest_frame - ETHERNET as u32
    }

    /// Packets can only be missed here.
    fn stats(&mut self) -> Result<PortStats, PortError> {
        if let Some(dropped) = self.interface.watch.transmit_drops() {
            self.missed = dropped.saturating_sub(self.dropped_before);
        }
        Ok(PortStats { kind: PortKind::Tun, missed: self.missed, ..PortStats::default() })
    }

    fn check(&self) -> Result<(), PortError> {
        self.interface.check()
    }
}

impl Port for TunPort {
    type Error = PortError;

    fn receive(&mut self, now: Instant, each: &mut dyn FnMut(Instant, &[u8])) -> Result<usize, PortError> {
        for count in 0..TURN {
            match read(&self.file, &mut self.frame[ETHERNET..]) {
                Ok(length) => {
                    let kind = ether_type(&self.frame[ETHERNET..ETHERNET + length]);
                    self.frame[ETHERNET - 2..ETHERNET].copy_from_slice(&kind);
                    each(now, &self.frame[..ETHERNET + length]);
                }
                Err(Errno::BADFD) => return Err(self.interface.removed()),
                // There is no packet, or a signal arrived; either way the caller tries again.
                Err(_) => return Ok(count),
            }
        }
        Ok(TURN)
    }

    fn send(
        &mut self,
        frames: &mut dyn Iterator<Item = &'_ [u8]>,
        each: &mut dyn FnMut(bool),
    ) -> Result<(), PortError> {
        for frame in frames {
            match write(&self.file, &frame[ETHERNET..]) {
                Ok(_) => each(true),
                Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
                Err(Errno::BADFD) => return Err(self.interface.removed()),
                // The interface is down, or the kernel does not know the packet's kind: it is lost, the next may not be.
                Err(_) => each(false),
            }
        }
        Ok(())
    }

    fn clock(&self) -> Option<Instant> {
        Some(clock::now())
    }
}

/// An error of opening the file, with its likely cause.
fn explained(name: &str, error: io::Error) -> PortError {
    if Errno::from_io_error(&error) == Some(Errno::INVAL) {
        return PortError::NotTun { name: name.to_owned() };
    }
    SysError::privileged(format!("TUN interface `{name}` cannot be opened"), "CAP_NET_ADMIN", error).into()
}

/// The Ethernet type of a packet by its version; zero for packets that are neither IPv4 nor IPv6.
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
