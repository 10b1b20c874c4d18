//! Changes of routes, links, addresses and traffic control (the multicast groups of rtnetlink(7)).
//!
//! The kernel sends a message for each change. Its contents are not read: the listener queries the state that it needs again, so a message
//! that is lost does no harm as long as the loss is noticed, and the kernel reports it.

use crate::Error;
use crate::channel;
use cutline_sys::SysError;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::SocketFlags;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
use std::collections::BTreeSet;

/// The groups: links, addresses, routes and rules of IPv4 and IPv6, next hops.
const GROUPS: u32 = group(1) | group(5) | group(7) | group(8) | group(9) | group(11) | group(19) | group(32);

/// The group of traffic control.
const TRAFFIC_CONTROL: u32 = group(4);
/// Room for reports of our own changes, of which a few hundred may come before they are read, bytes.
const BUFFER: usize = 8 << 20;

const fn group(number: u32) -> u32 {
    1 << (number - 1)
}

/// Changes in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkChanges {
    /// Interfaces: one is new, gone, renamed, up, down, or otherwise different. Routes may have gone with it: the kernel does
    /// not report each route of IPv4 that goes with its link.
    pub links: bool,
    /// Addresses of interfaces.
    pub addresses: bool,
    /// Routes, rules or next hops.
    pub routes: bool,
}

impl NetworkChanges {
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

    /// Returns the changes since the last call, without waiting. If messages were lost, everything counts as changed.
    ///
    /// # Errors
    /// When the kernel cannot be queried.
    pub fn take(&mut self) -> Result<NetworkChanges, Error> {
        let mut changes = NetworkChanges::default();
        loop {
            let datagram = match channel::receive(&self.socket) {
                Ok(datagram) => datagram,
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::AGAIN) => return Ok(changes),
                    Some(Errno::NOBUFS) => {
                        changes = NetworkChanges::ALL;
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

/// Interfaces whose traffic control another process has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Interfaces with a changed root or a changed discipline of ours.
    pub interfaces: BTreeSet<u32>,
    /// Reports were lost, so it may be any.
    pub is_incomplete: bool,
}

/// Hears of changes of traffic control in the network namespace of the thread that opened it. Its descriptor becomes readable with one.
#[derive(Debug)]
pub struct TrafficMonitor {
    socket: OwnedFd,
}

impl TrafficMonitor {
    /// Begins to listen.
    ///
    /// # Errors
    /// When a socket cannot be opened.
    pub fn open() -> Result<Self, Error> {
        let socket = channel::socket(SocketFlags::NONBLOCK, TRAFFIC_CONTROL)?;
        // Without CAP_NET_ADMIN the buffer is as large as the system lets it be.
        if set_socket_recv_buffer_size_force(&socket, BUFFER).is_err() {
            let _smaller = set_socket_recv_buffer_size(&socket, BUFFER);
        }
        Ok(Self { socket })
    }

    /// Returns the changes by other programs since the last call, without waiting. `is_ours` returns whether a change was made over a socket of this
    /// process ([`HtbShaper::port`](crate::HtbShaper::port)).
    ///
    /// # Errors
    /// When the kernel cannot be queried.
    pub fn take(&mut self, is_ours: impl Fn(u32) -> bool) -> Result<Touched, Error> {
        let mut touched = Touched::default();
        loop {
            let datagram = match channel::receive(&self.socket) {
                Ok(datagram) => datagram,
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::AGAIN) => return Ok(touched),
                    Some(Errno::NOBUFS) => {
                        touched.is_incomplete = true;
                        continue;
                    }
                    _ => {
                        return Err(
                            SysError::new("changes of traffic control cannot be received", error).into()
                        );
                    }
                },
            };
            for message in channel::split(&datagram) {
                if let Some(change) = TrafficChange::read(message)
                    && !is_ours(change.port)
                    && change.concerns_us()
                {
                    touched.interfaces.insert(change.interface);
                }
            }
        }
    }
}

impl AsFd for TrafficMonitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A report about traffic control (`struct nlmsghdr`, `struct tcmsg`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TrafficChange {
    /// Number of the socket that made the change; 0 for the kernel.
    port: u32,
    interface: u32,
    handle: u32,
    parent: u32,
}

impl TrafficChange {
    fn read(message: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_ne_bytes(*message.get(at..)?.first_chunk()?));
        let kind = u16::from_ne_bytes([*message.get(4)?, *message.get(5)?]);
        // RTM_NEWQDISC, RTM_DELQDISC; RTM_NEWTCLASS, RTM_DELTCLASS; RTM_NEWTFILTER, RTM_DELTFILTER
        matches!(kind, 36 | 37 | 40 | 41 | 44 | 45).then_some(())?;
        Some(Self { port: word(12)?, interface: word(20)?, handle: word(24)?, parent: word(28)? })
    }

    /// Returns whether the change concerns the root of the interface, or our discipline.
    const fn concerns_us(&self) -> bool {
        const ROOT: u32 = u32::MAX;
        let ours = crate::MAJOR as u32;
        self.parent == ROOT || self.parent >> 16 == ours || self.handle >> 16 == ours
    }
}
