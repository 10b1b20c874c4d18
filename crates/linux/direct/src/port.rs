//! Ports of direct sockets.
//!
//! The kernel knows no ports of packet sockets. A port belongs to the process that has bound a Unix socket to its name in the abstract
//! namespace (unix(7)), which is one per network namespace. It is free when the socket is closed, also by the end of the process.
//! As with ports of TCP, a child process that inherits the descriptor keeps the port until it executes its program or ends.

use cutline_sys::random;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with};
use std::io;

/// The first of the ports that are chosen for sockets that need any (RFC 6335 section 6: dynamic ports).
const FIRST_DYNAMIC: u16 = 49_152;
/// Number of ports that are tried before none counts as free.
const TRIES: usize = 64;

/// A port of an interface that no other socket has.
#[derive(Debug)]
pub(crate) struct Port {
    number: u16,
    /// `None` after its release.
    _name: Option<OwnedFd>,
}

impl Port {
    /// Takes a port; 0 for any that is free.
    pub(crate) fn take(interface: u32, number: u16) -> io::Result<Self> {
        if number > 0 {
            return Self::try_take(interface, number);
        }
        for _ in 0..TRIES {
            let number = u16::from_ne_bytes(random()?) | FIRST_DYNAMIC;
            match Self::try_take(interface, number) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                taken => return taken,
            }
        }
        Err(Errno::ADDRINUSE.into())
    }

    fn try_take(interface: u32, number: u16) -> io::Result<Self> {
        let name = format!("cutline-direct/{interface}/{number}");
        let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        bind(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
        Ok(Self { number, _name: Some(socket) })
    }

    /// The number of a port that others may take.
    pub(crate) const fn released(number: u16) -> Self {
        Self { number, _name: None }
    }

    pub(crate) const fn number(&self) -> u16 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_testbed::patiently;

    #[test]
    fn a_port_has_one_owner_and_is_free_afterwards() {
        let any = Port::take(7, 0).unwrap();
        assert!(any.number() >= FIRST_DYNAMIC);
        let again = Port::take(7, any.number()).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AddrInUse);
        let elsewhere = Port::take(8, any.number()).unwrap();
        let number = elsewhere.number();
        drop((any, elsewhere));
        // A child that another test has started has a copy of the descriptor until it executes its program.
        let in_use = |error: &io::Error| error.kind() == io::ErrorKind::AddrInUse;
        assert_eq!(patiently(|| Port::take(7, number), in_use).unwrap().number(), number);
    }
}
