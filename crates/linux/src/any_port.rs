//! A port of whatever kind was asked for, by its name.
//!
//! The kind is told apart once for a batch of frames and not for each, so that it costs nothing that can be measured.

use crate::{LinuxError, Offloads, PacketPort, PortStats, TunPort, XdpPort, clock};
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
    /// An interface by `AF_XDP`.
    Xdp(XdpPort),
}

/// What goes before the name of a TUN interface.
const TUN: &str = "tun:";
/// And of an interface that is to be had by `AF_XDP`.
const XDP: &str = "xdp:";

impl AnyPort {
    /// Opens `NAME` as a packet socket, `tun:NAME` as the far end of a TUN interface, `xdp:NAME` by `AF_XDP`.
    ///
    /// # Errors
    /// As the kinds of port tell.
    pub fn open(name: &str) -> Result<Self, LinuxError> {
        if let Some(name) = name.strip_prefix(TUN) {
            return TunPort::open(name).map(Self::Tun);
        }
        match name.strip_prefix(XDP) {
            Some(name) => XdpPort::open(name).map(Self::Xdp),
            None => PacketPort::open(name).map(Self::Packet),
        }
    }

    /// Turns off what the card does to frames and a port of this name cannot do with.
    ///
    /// # Errors
    /// As [`Offloads::turn_off`].
    pub fn turn_offloads_off(name: &str) -> Result<Option<Offloads>, LinuxError> {
        if name.starts_with(TUN) {
            // The kernel undoes what it does for TUN interfaces itself.
            return Ok(None);
        }
        let offloads = match name.strip_prefix(XDP) {
            Some(name) => Offloads::turn_off_with_tags(name),
            None => Offloads::turn_off(name),
        };
        offloads.map(Some)
    }

    /// Opens two ports to join: both carry frames, or both carry packets.
    ///
    /// # Errors
    /// As [`AnyPort::open`]; when they are one interface; and when one carries frames and the other packets, which have
    /// no link's addresses to be sent to.
    pub fn open_pair(names: [&str; 2]) -> Result<[Self; 2], LinuxError> {
        let [first, second] = names.map(interface_of);
        if first == second {
            return Err(LinuxError::Same { names: names.map(ToOwned::to_owned) });
        }
        if names[0].starts_with(TUN) != names[1].starts_with(TUN) {
            return Err(LinuxError::Unlike { names: names.map(ToOwned::to_owned) });
        }
        Ok([Self::open(names[0])?, Self::open(names[1])?])
    }

    fn as_port(&self) -> &dyn LinuxPort {
        match self {
            Self::Packet(port) => port,
            Self::Tun(port) => port,
            Self::Xdp(port) => port,
        }
    }
}

/// The interface's own name.
fn interface_of(port: &str) -> &str {
    [TUN, XDP].into_iter().find_map(|kind| port.strip_prefix(kind)).unwrap_or(port)
}

impl AsFd for AnyPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Packet(port) => port.as_fd(),
            Self::Tun(port) => port.as_fd(),
            Self::Xdp(port) => port.as_fd(),
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
            Self::Xdp(port) => port.receive(now, each),
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
            Self::Xdp(port) => port.send(frames, each),
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
            Self::Xdp(port) => port.stats(),
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
