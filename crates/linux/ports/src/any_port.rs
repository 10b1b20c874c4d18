//! A port of any kind, by its name.
//!
//! The kind is looked at once for each batch of frames, not for each frame, so its cost cannot be measured.

use crate::{InterfacePort, PacketPort, PortError, PortStats, TunPort, XdpPort};
use cutline_router::Port;
use cutline_sys::{Offloads, SysError, clock, interface};
use cutline_units::Instant;
use rustix::fd::{AsFd, BorrowedFd};

/// A port of any kind.
pub enum AnyPort {
    /// An interface by a packet socket.
    Packet(PacketPort),
    /// A TUN interface.
    Tun(TunPort),
    /// An interface by `AF_XDP`.
    Xdp(XdpPort),
}

/// The prefix of a TUN interface's name.
const TUN: &str = "tun:";
/// The prefix of an interface's name for a port by `AF_XDP`.
const XDP: &str = "xdp:";

/// Evaluates an expression of the port, whichever kind it is.
macro_rules! with_port {
    ($any:expr, $port:ident => $value:expr) => {
        match $any {
            Self::Packet($port) => $value,
            Self::Tun($port) => $value,
            Self::Xdp($port) => $value,
        }
    };
}

impl AnyPort {
    /// Opens `NAME` by a packet socket, `tun:NAME` as the far end of a TUN interface, `xdp:NAME` by `AF_XDP`.
    ///
    /// # Errors
    /// As the kinds of ports.
    pub fn open(name: &str) -> Result<Self, PortError> {
        if let Some(name) = name.strip_prefix(TUN) {
            return TunPort::open(name).map(Self::Tun);
        }
        match name.strip_prefix(XDP) {
            Some(name) => XdpPort::open(name).map(Self::Xdp),
            None => PacketPort::open(name).map(Self::Packet),
        }
    }

    /// Returns the name of the interface in the name of a port: without `tun:` or `xdp:`.
    pub fn interface_of(port: &str) -> &str {
        interface_of(port)
    }

    /// Returns whether the name of a port is that of a TUN interface.
    pub fn is_tun(port: &str) -> bool {
        port.starts_with(TUN)
    }

    /// Turns off the offloads that a port of this name cannot work with. A TUN interface has none. Before that, `note` is
    /// called with the interface's own name and the names of the offloads, unless there is nothing to turn off.
    ///
    /// # Errors
    /// As [`Offloads::turn_off`].
    pub fn turn_offloads_off(
        name: &str,
        note: &mut dyn FnMut(&str, &[&'static str]),
    ) -> Result<Option<Offloads>, SysError> {
        if name.starts_with(TUN) {
            return Ok(None);
        }
        let (interface, is_xdp) = (interface_of(name), name.starts_with(XDP));
        Offloads::turn_off_after(interface, is_xdp, &mut |names| note(interface, names)).map(Some)
    }

    /// Checks that two ports can be joined, as far as that shows without opening them: both carry frames, or both carry packets,
    /// and their interfaces have the settings that such ports need. With `fixes_offloads` offloads do not count, because they are
    /// turned off first. A process that has an interface is no obstacle.
    ///
    /// # Errors
    /// When they are one interface; when one carries frames and the other packets, which lack the link addresses that frames need;
    /// when an interface is missing; and when one is unsuitable.
    pub fn check_pair(names: [&str; 2], fixes_offloads: bool) -> Result<(), PortError> {
        let [first, second] = names.map(interface_of);
        // An interface may have several names.
        if first == second || interface::index(first)? == interface::index(second)? {
            return Err(PortError::SameInterface { names: names.map(ToOwned::to_owned) });
        }
        if Self::is_tun(names[0]) != Self::is_tun(names[1]) {
            return Err(PortError::Mismatch { names: names.map(ToOwned::to_owned) });
        }
        names.into_iter().try_for_each(|port| match port.strip_prefix(XDP) {
            Some(name) => XdpPort::check(name, fixes_offloads),
            None if Self::is_tun(port) => TunPort::check(interface_of(port)),
            None => Ok(()),
        })
    }

    /// Opens two ports to join.
    ///
    /// # Errors
    /// As [`AnyPort::check_pair`] and [`AnyPort::open`].
    pub fn open_pair(names: [&str; 2]) -> Result<[Self; 2], PortError> {
        Self::check_pair(names, false)?;
        Ok([Self::open(names[0])?, Self::open(names[1])?])
    }
}

/// The interface's own name.
fn interface_of(port: &str) -> &str {
    [TUN, XDP].into_iter().find_map(|kind| port.strip_prefix(kind)).unwrap_or(port)
}

impl AsFd for AnyPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        with_port!(self, port => port.as_fd())
    }
}

impl Port for AnyPort {
    type Error = PortError;

    #[inline]
    fn receive(&mut self, now: Instant, each: &mut dyn FnMut(Instant, &[u8])) -> Result<usize, PortError> {
        with_port!(self, port => port.receive(now, each))
    }

    #[inline]
    fn send(
        &mut self,
        frames: &mut dyn Iterator<Item = &'_ [u8]>,
        each: &mut dyn FnMut(bool),
    ) -> Result<(), PortError> {
        with_port!(self, port => port.send(frames, each))
    }

    #[inline]
    fn clock(&self) -> Option<Instant> {
        Some(clock::now())
    }
}

impl InterfacePort for AnyPort {
    fn name(&self) -> &str {
        with_port!(self, port => port.name())
    }

    fn largest_frame(&self) -> u32 {
        with_port!(self, port => port.largest_frame())
    }

    fn largest_packet(&self) -> u32 {
        with_port!(self, port => port.largest_packet())
    }

    fn stats(&mut self) -> Result<PortStats, PortError> {
        with_port!(self, port => port.stats())
    }

    fn check(&self) -> Result<(), PortError> {
        with_port!(self, port => port.check())
    }
}
