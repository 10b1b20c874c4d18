//! Messages in Ethernet frames below IP ("direct"), over packet sockets.
//!
//! The format of the frames is in [`cutline_wire::direct`]. This crate sends and receives them. The calls are those of datagram sockets, so
//! that the users of UDP sockets can use these as well.
//!
//! ```text
//! address   interface, link address and port; their form as a link-local address of IPv6
//! port      ports, of which each has one owner in a network namespace
//! socket    sockets with a filter for their frames
//! inbox     received messages
//! ```
//!
//! A process needs `CAP_NET_RAW`. Frames stay on their link: no router forwards them.

mod address;
mod inbox;
mod port;
mod socket;

pub use address::{AddressTextError, DirectAddress};
pub use inbox::{DirectInbox, PeekedFrame, ReceivedMessage};
pub use socket::DirectSocket;
