//! Encapsulation of messages: as protocol 46 with Router Alert, or in UDP for a host that cannot send those
//! (RFC 2205 appendix C).

use crate::object::Session;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The protocol number of RSVP.
pub const PROTOCOL: u8 = 46;
/// Pu: the UDP port to which hosts without raw sockets send.
pub const PORT_FROM_HOSTS: u16 = 1698;
/// Pu': the UDP port to which others send to them.
pub const PORT_TO_HOSTS: u16 = 1699;
/// G*: the group of all RSVP nodes on a link.
pub const GROUP: IpAddr = IpAddr::V4(Ipv4Addr::new(224, 0, 0, 14));
/// The same for IPv6.
pub const GROUP_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 14));

/// Carrier of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Carrier {
    /// IP itself, as protocol 46.
    Raw,
    /// UDP, to this port.
    Udp(u16),
}

/// Capabilities of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encapsulation {
    /// Raw messages; hosts on its link that send by UDP are answered by UDP, once a message from them has arrived.
    Raw,
    /// Raw messages, and by UDP as well from the beginning, because a host on its link needs it and sends no Path messages.
    RawAndUdp,
    /// UDP alone. Path messages to other networks go to this router.
    Udp {
        /// The address of the first router on the link; `None` if the link has all destinations.
        router: Option<IpAddr>,
    },
}

/// Copy of a message with its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Carrier of the copy.
    pub carrier: Carrier,
    /// Its destination.
    pub destination: IpAddr,
}

impl Encapsulation {
    /// Returns the copies of a message to a session's destination: Path, `PathTear` (figures 13 and 14 of RFC 2205 appendix C).
    /// `heard_udp` is true if a message by UDP has arrived at the interface.
    pub fn towards_session(self, session: &Session, heard_udp: bool) -> Vec<Copy> {
        let destination = session.destination;
        let raw = Copy { carrier: Carrier::Raw, destination };
        let udp = Copy { carrier: Carrier::Udp(PORT_TO_HOSTS), destination };
        match self {
            Self::Udp { .. } if session.is_multicast() => {
                let group = if destination.is_ipv4() { GROUP } else { GROUP_V6 };
                vec![Copy { carrier: Carrier::Udp(PORT_FROM_HOSTS), destination: group }]
            }
            Self::Udp { router } => {
                vec![Copy {
                    carrier: Carrier::Udp(PORT_FROM_HOSTS),
                    destination: router.unwrap_or(destination),
                }]
            }
            Self::RawAndUdp => vec![raw, udp],
            Self::Raw if heard_udp => vec![raw, udp],
            Self::Raw => vec![raw],
        }
    }

    /// Returns the encapsulation of a message to a neighbour. `neighbour_has_udp` is true if it sends by UDP itself.
    pub fn towards_neighbour(self, neighbour: IpAddr, neighbour_has_udp: bool) -> Copy {
        let carrier = match self {
            Self::Udp { .. } => Carrier::Udp(PORT_FROM_HOSTS),
            _ if neighbour_has_udp => Carrier::Udp(PORT_TO_HOSTS),
            _ => Carrier::Raw,
        };
        Copy { carrier, destination: neighbour }
    }

    /// Returns whether a message that came by this carrier is taken. One that came by UDP to a node with raw sockets is, unless
    /// it came raw as well.
    pub const fn takes(self, carrier: Carrier) -> bool {
        matches!(
            (self, carrier),
            (Self::Raw | Self::RawAndUdp, Carrier::Raw | Carrier::Udp(PORT_FROM_HOSTS))
                | (Self::Udp { .. }, Carrier::Udp(PORT_FROM_HOSTS | PORT_TO_HOSTS))
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(destination: [u8; 4]) -> Session {
        Session { destination: destination.into(), protocol: 17, port: 5000 }
    }

    /// RFC 2205 appendix C: figures 13 and 14.
    #[test]
    fn messages_use_the_encapsulation_of_the_figures() {
        let (one, group) = (session([10, 0, 0, 9]), session([239, 1, 1, 1]));
        let router = IpAddr::from([10, 0, 0, 1]);
        let host = Encapsulation::Udp { router: Some(router) };
        let copy = |carrier, destination| Copy { carrier, destination };
        let (from_host, to_host) = (Carrier::Udp(1698), Carrier::Udp(1699));
        assert_eq!(host.towards_session(&one, false), [copy(from_host, router)]);
        assert_eq!(host.towards_session(&group, false), [copy(from_host, GROUP)]);
        let local = Encapsulation::Udp { router: None };
        assert_eq!(local.towards_session(&one, false), [copy(from_host, one.destination)]);
        let raw = copy(Carrier::Raw, one.destination);
        assert_eq!(Encapsulation::Raw.towards_session(&one, false), [raw]);
        assert_eq!(Encapsulation::Raw.towards_session(&one, true), [raw, copy(to_host, one.destination)]);
        assert_eq!(Encapsulation::RawAndUdp.towards_session(&group, false).len(), 2);
        assert_eq!(Encapsulation::Raw.towards_neighbour(router, true), copy(to_host, router));
        assert_eq!(host.towards_neighbour(router, false), copy(from_host, router));
        assert!(Encapsulation::Raw.takes(from_host) && !Encapsulation::Raw.takes(to_host));
        assert!(host.takes(from_host) && host.takes(to_host) && !host.takes(Carrier::Raw));
    }
}
