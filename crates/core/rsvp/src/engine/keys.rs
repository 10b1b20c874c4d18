//! Keys of the state of an engine: sessions, paths and neighbours.

use super::params::InterfaceId;
use crate::object::Sender;
use std::net::IpAddr;

/// The number of a session in this engine.
pub(super) type SessionId = u64;

/// A sender of a session, and for a group the interface at which its messages arrive. For one destination the previous hop may change
/// (RFC 2205 section 3.1.3).
pub(super) type PathKey = (Sender, Option<InterfaceId>);

/// A neighbour: the interface to it, and its address. The same address at another interface is another neighbour, because nothing proves
/// that both are the same node.
pub(super) type NeighbourKey = (InterfaceId, IpAddr);

/// A neighbour towards the senders.
pub(super) type UpKey = NeighbourKey;
