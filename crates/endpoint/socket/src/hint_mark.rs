//! The delay hint as the mark of a socket's packets.

use cutline_sys::traffic_class::{set_traffic_class, traffic_class};
use cutline_units::{Dscp, DscpPool2, Hint, HintCodec as _};
use rustix::fd::AsFd;
use std::io;
use std::net::SocketAddr;

/// Marks a socket's packets with a hint.
pub fn mark(socket: impl AsFd, peer: SocketAddr, hint: Hint) -> io::Result<()> {
    let dscp = DscpPool2.encode(hint).ok_or_else(|| {
        let allowed = format!("hint {}: a code point carries 1 to 16", hint.level());
        io::Error::new(io::ErrorKind::InvalidInput, allowed)
    })?;
    set_traffic_class(socket, peer, dscp.in_traffic_class(0))
}

/// Returns the hint of a socket's packets to this peer; `None` if they have none.
pub fn hint_of(socket: impl AsFd, peer: SocketAddr) -> Option<Hint> {
    let octet = traffic_class(socket, peer).ok()?;
    DscpPool2.decode(Dscp::from_traffic_class(octet))
}
