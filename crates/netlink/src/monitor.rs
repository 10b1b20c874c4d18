//! Changes of routes, links and addresses (the multicast groups of rtnetlink(7)).
//!
//! The kernel sends a message for each change. What is in it is not read: the listener asks again for what it needs, so a message
//! that is lost does no harm as long as the loss is noticed, and the kernel reports it.

use crate::Error;
use crate::channel;
use cutline_sys::SysError;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::SocketFlags;

/// The groups: links, addresses, routes and rules of IPv4 and IPv6, next hops.
const GROUPS: u32 = group(1) | group(5) | group(7) | group(8) | group(9) | group(11) | group(19) | group(32);

const fn group(number: u32) -> u32 {
    1 << (number - 1)
}

/// What has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Interfaces: one is new, gone, renamed, up, down, or otherwise different. Routes may have gone with it: the kernel does
    /// not report each route of IPv4 that goes with its link.
    pub links: bool,
    /// Addresses of interfaces.
    pub addresses: bool,
    /// Routes, rules or next hops.
    pub routes: bool,
}

impl Changes {
    /// Everything may have changed.
    pub const ALL: Self = Self { links: true, addresses: true, routes: true };

    /// Returns whether anything has changed.
    pub const fn any(self) -> bool {
        self.links || self.addresses || self.routes
    }

    /// Adds the change that a message is about.
    fn add(&mut self, message_type: u16) {
        match message_type {
            // RTM_NEWLINK, RTM_DELLINK
            16 | 17 => self.links = true,
            // RTM_NEWADDR, RTM_DELADDR
            20 | 21 => self.addresses = true,
            // RTM_NEWROUTE, RTM_DELROUTE; RTM_NEWRULE, RTM_DELRULE; RTM_NEWNEXTHOP, RTM_DELNEXTHOP
            24 | 25 | 32 | 33 | 104 | 105 => self.routes = true,
            _ => {}
        }
    }
}

/// Hears of changes in the network namespace of the thread that opened it. Its descriptor becomes readable with one.
#[derive(Debug)]
pub struct Monitor {
    socket: OwnedFd,
}

impl Monitor {
    /// Begins to listen.
    ///
    /// # Errors
    /// When a socket cannot be opened.
    pub fn open() -> Result<Self, Error> {
        Ok(Self { socket: channel::socket(SocketFlags::NONBLOCK, GROUPS)? })
    }

    /// Returns what has changed since the last call; it does not wait. If messages were lost, that is everything.
    ///
    /// # Errors
    /// When the kernel cannot be asked.
    pub fn take(&mut self) -> Result<Changes, Error> {
        let mut changes = Changes::default();
        loop {
            let datagram = match channel::receive(&self.socket) {
                Ok(datagram) => datagram,
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::AGAIN) => return Ok(changes),
                    Some(Errno::NOBUFS) => {
                        changes = Changes::ALL;
                        continue;
                    }
                    _ => return Err(SysError::new("changes of routes cannot be received", error).into()),
                },
            };
            for message in channel::split(&datagram) {
                changes.add(u16::from_ne_bytes([message[4], message[5]]));
            }
        }
    }
}

impl AsFd for Monitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
