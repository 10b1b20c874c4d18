//! Origin of a message: interface, sender and key.

use super::params::InterfaceId;
use std::net::IpAddr;

/// Origin of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    /// The interface at which it arrived.
    pub interface: InterfaceId,
    /// The address of the node that sent it: that in its `RSVP_HOP` object, or else its source.
    pub sender: IpAddr,
    /// The number of the key with which it was authenticated; `None` at an interface without keys.
    pub key: Option<u64>,
}
