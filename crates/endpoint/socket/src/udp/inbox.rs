//! Received datagrams of either kind of socket.

use super::carrier::DatagramCarrier;
use cutline_direct::{DirectAddress, DirectInbox};
use cutline_sys::datagrams::{Inbox, Wait};
use cutline_sys::local_address::LocalAddress;
use cutline_units::Instant;
use std::io;
use std::net::SocketAddr;

/// The longest datagram, bytes.
pub const LONGEST: usize = 65_535;

/// Received datagrams, by their numbers in the last call.
#[derive(Debug)]
pub enum CarrierInbox {
    Udp(Box<Inbox>),
    Direct(Box<DirectInbox>),
}

impl CarrierInbox {
    /// Returns the inbox of a connected socket, for so many datagrams with one system call. `lost` datagrams were lost before, in the
    /// kernel's count.
    pub fn connected(
        carrier: &DatagramCarrier,
        batch: usize,
        (peer, is_accepted): (SocketAddr, bool),
        lost: u32,
    ) -> Self {
        match carrier {
            DatagramCarrier::Udp(_) if is_accepted => {
                Self::Udp(Box::new(Inbox::accepted(LONGEST, batch, peer)))
            }
            DatagramCarrier::Udp(_) => Self::Udp(Box::new(Inbox::connected(LONGEST, batch, peer))),
            DatagramCarrier::Direct(_) => Self::Direct(Box::new(DirectInbox::new(lost))),
        }
    }

    /// Returns the inbox of a listening socket.
    pub fn listening(carrier: &DatagramCarrier, batch: usize) -> Self {
        match carrier {
            DatagramCarrier::Udp(_) => Self::Udp(Box::new(Inbox::new(LONGEST, batch))),
            DatagramCarrier::Direct(_) => Self::Direct(Box::default()),
        }
    }

    /// Receives datagrams, in the place of those that were there. Returns their number; 0 if frames have arrived that complete no message.
    ///
    /// # Panics
    /// If the socket is of another kind than the inbox.
    pub fn fill(&mut self, carrier: &DatagramCarrier, wait: Wait) -> io::Result<usize> {
        match (self, carrier) {
            (Self::Udp(inbox), DatagramCarrier::Udp(socket)) => inbox.fill(socket, wait),
            (Self::Direct(inbox), DatagramCarrier::Direct(socket)) => inbox.fill(socket, wait),
            _ => unreachable!("a socket keeps its kind"),
        }
    }

    pub fn head(&self, number: usize) -> &[u8] {
        match self {
            Self::Udp(inbox) => inbox.head(number),
            Self::Direct(inbox) => &inbox.messages()[number].bytes,
        }
    }

    pub fn length(&self, number: usize) -> usize {
        match self {
            Self::Udp(inbox) => inbox.length(number),
            Self::Direct(inbox) => inbox.messages()[number].bytes.len(),
        }
    }

    pub fn arrival(&self, number: usize) -> Instant {
        match self {
            Self::Udp(inbox) => inbox.arrival(number),
            Self::Direct(inbox) => inbox.messages()[number].at,
        }
    }

    pub fn overflowed(&self, number: usize) -> u32 {
        match self {
            Self::Udp(inbox) => inbox.overflowed(number),
            Self::Direct(inbox) => inbox.messages()[number].overflowed,
        }
    }

    /// Returns whether a datagram is from the peer of the socket. The filter of a direct socket passes no other.
    pub fn is_of_peer(&self, number: usize) -> bool {
        match self {
            Self::Udp(inbox) => inbox.is_of_peer(number),
            Self::Direct(_) => true,
        }
    }

    pub fn sender(&self, number: usize) -> Option<SocketAddr> {
        match self {
            Self::Udp(inbox) => inbox.sender(number),
            Self::Direct(inbox) => Some(inbox.messages()[number].from.socket_addr()),
        }
    }

    /// Returns the address of this host that a datagram has come to, if the socket was asked for it.
    pub fn receiver(&self, number: usize) -> Option<LocalAddress> {
        match self {
            Self::Udp(inbox) => inbox.datagram(number).and_then(|datagram| datagram.to),
            Self::Direct(_) => None,
        }
    }

    /// Takes the incomplete messages of a peer over from the inbox of the listening socket, which has received its earlier messages.
    pub fn take_over(&mut self, listening: &mut Self, peer: SocketAddr, port: u16) {
        if let (Self::Direct(inbox), Self::Direct(listening), Some(peer)) =
            (self, listening, DirectAddress::of(peer))
        {
            inbox.take_over(listening, peer, port);
        }
    }
}
