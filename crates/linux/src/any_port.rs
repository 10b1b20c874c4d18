//! A port of whatever kind was asked for, by its name.
//!
//! The kind is told apart once for a batch of frames and not for each, so that it costs nothing that can be measured.

use crate::{LinuxError, PacketPort, PortStats, TunPort, clock};
use cutline_router::Port;
use cutline_units::Instant;
use rustix::fd::{AsFd, BorrowedFd};

/// What the loop that drives a router needs of a port, beside frames.
pub trait LinuxPort: Port<Error = LinuxError> + AsFd {
    /// The interface's name.
    fn name(&self) -> &str;

    /// The longest frame that it sends, Ethernet header included, bytes.
    fn largest_frame(&self) -> u32;

    /// What has been counted.
    ///
    /// # Errors
    /// When the kernel does not tell.
    fn stats(&mut self) -> Result<PortStats, LinuxError>;

    /// Looks whether the interface is still there.
    ///
    /// # Errors
    /// When it has been removed.
    fn check(&self) -> Result<(), LinuxError>;
}

/// A port of any kind.
pub enum AnyPort {
    /// An interface by a packet socket.
    Packet(PacketPort),
    /// A TUN interface.
    Tun(TunPort),
}

/// What goes before the name of a TUN interface.
const TUN: &str = "tun:";

impl AnyPort {
    /// Opens `NAME` as a packet socket, `tun:NAME` as the far end of a TUN interface.
    ///
    /// # Errors
    /// As the kinds of port tell.
    pub fn open(name: &str) -> Result<Self, LinuxError> {
        match name.strip_prefix(TUN) {
            Some(name) => TunPort::open(name).map(Self::Tun),
            None => PacketPort::open(name).map(Self::Packet),
        }
    }

    /// Opens two ports to join: both carry frames, or both carry packets.
    ///
    /// # Errors
    /// As [`AnyPort::open`], and when they are not of one kind: packets have no link's addresses to be sent to.
    pub fn open_pair(names: [&str; 2]) -> Result<[Self; 2], LinuxError> {
        if names[0].starts_with(TUN) != names[1].starts_with(TUN) {
            return Err(LinuxError::Unlike { names: names.map(ToOwned::to_owned) });
        }
        Ok([Self::open(names[0])?, Self::open(names[1])?])
    }

    fn as_port(&self) -> &dyn LinuxPort {
        match self {
            Self::Packet(port) => port,
            Self::Tun(port) => port,
        }
    }
}

impl AsFd for AnyPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Packet(port) => port.as_fd(),
            Self::Tun(port) => port.as_fd(),
        }
    }
}

impl Port for AnyPort {
    type Error = LinuxError;

    #[inline]
    fn receive(&mut self, now: Instant, each: &mut dyn FnMut(Instant, &[u8])) -> Result<usize, LinuxError> {
        match self {
            Self::Packet(port) => port.receive(now, each),
            Self::Tun(port) => port.receive(now, each),
        }
    }

    #[inline]
    fn send(
        &mut self,
        frames: &mut dyn Iterator<Item = &'_ [u8]>,
        each: &mut dyn FnMut(bool),
    ) -> Result<(), LinuxError> {
        match self {
            Self::Packet(port) => port.send(frames, each),
            Self::Tun(port) => port.send(frames, each),
        }
    }

    #[inline]
    fn clock(&self) -> Option<Instant> {
        Some(clock::now())
    }
}

impl LinuxPort for AnyPort {
    fn name(&self) -> &str {
        self.as_port().name()
    }

    fn largest_frame(&self) -> u32 {
        self.as_port().largest_frame()
    }

    fn stats(&mut self) -> Result<PortStats, LinuxError> {
        match self {
            Self::Packet(port) => port.stats(),
            Self::Tun(port) => port.stats(),
        }
    }

    fn check(&self) -> Result<(), LinuxError> {
        self.as_port().check()
    }
}

impl LinuxPort for PacketPort {
    fn name(&self) -> &str {
        self.name()
    }

    fn largest_frame(&self) -> u32 {
        self.largest_frame()
    }

    fn stats(&mut self) -> Result<PortStats, LinuxError> {
        self.stats()
    }

    fn check(&self) -> Result<(), LinuxError> {
        self.check()
    }
}
