//! Ports of the router on interfaces of this machine, and the loop that waits for frames and deadlines.
//!
//! `cutline-router` decides about frames; this crate receives and sends them. There is no `unsafe` code:
//! system calls and memory that is shared with the kernel are behind `cutline-sys`.
//!
//! ```text
//! port          calls of the loop on a port beside frames; counters of a port
//! interface     the interface of a port: name, longest frame, existence
//! packet_port   an interface by a packet socket (AF_PACKET)
//! tun_port      a TUN interface, for hosts that route
//! xdp_port      an interface by AF_XDP
//!   xdp         its program, its sockets, and the sending by one of them
//! any_port      any of them, by name
//! run           the router's loop
//! error         why a port cannot be opened, or has failed
//! ```

mod any_port;
mod error;
mod interface;
mod packet_port;
mod port;
mod run;
mod tun_port;
mod xdp;
mod xdp_port;

pub use any_port::AnyPort;
pub use error::PortError;
pub use packet_port::PacketPort;
pub use port::{InterfacePort, PortKind, PortStats};
pub use run::{Observer, run, wait};
pub use tun_port::TunPort;
pub use xdp_port::XdpPort;
