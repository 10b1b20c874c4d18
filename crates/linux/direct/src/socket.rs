//! Sockets that send and receive messages in frames.

use crate::address::DirectAddress;
use crate::port::Port;
use cutline_sys::packet::{BATCH, FrameField, FrameFilter, bind_protocol, open_without_headers, send_to};
use cutline_sys::reactor::{PollFd, PollFlags, wait};
use cutline_sys::sockopt::SO_PRIORITY;
use cutline_sys::vacant::vacate;
use cutline_sys::{SysError, interface, lock, random};
use cutline_units::{Duration, Hint};
use cutline_wire::direct::{DirectFlow, ETHERTYPE, Segments};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt;
use std::cell::RefCell;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// Places of the ports in a frame (`cutline_wire::direct`).
const DESTINATION_AT: u32 = 4;
const SOURCE_AT: u32 = 6;
/// The longest time that a message which is sent in part waits for room for its other frames.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Size of the receive buffer, bytes, which the kernel doubles. A frame of 1500 B takes 2304 B, so that the kernel's default of 212,992 B
/// holds two blocks of 64 KB; this holds twenty.
const RECEIVE_BUFFER: usize = 1 << 20;
/// The most peers whose frames the kernel keeps away from a listening socket.
pub(crate) const MOST_EXCLUDED: usize = 400;

/// A socket for messages in frames below IP, on one interface.
///
/// It receives messages with a [`DirectInbox`](crate::DirectInbox). A call that sends does not wait for room for a message, unless its frames
/// take more than half of the send buffer.
#[derive(Debug)]
pub struct DirectSocket {
    fd: OwnedFd,
    interface: u32,
    own: [u8; 6],
    port: Mutex<Arc<Port>>,
    /// The only sender of the frames that it receives, and the receiver of its messages.
    peer: Option<DirectAddress>,
    /// Peers that have a socket of their own on this port.
    excluded: Mutex<Vec<DirectAddress>>,
    mtu: AtomicU32,
    /// Number of the next message. It is locked while a message is sent, so that the frames of messages are not mixed.
    number: Mutex<u32>,
    /// Level of the delay hint of its messages; 0 for none.
    hint_level: AtomicU8,
    is_closed: AtomicBool,
}

impl DirectSocket {
    /// Opens a socket that receives the messages for a port of an interface, from any sender. With port 0 a free one is chosen.
    ///
    /// # Errors
    /// When the port is in use, there is no such interface of Ethernet, or the process lacks `CAP_NET_RAW`.
    pub fn bind(interface: u32, port: u16) -> Result<Self, SysError> {
        Self::open(interface, &take_port(interface, port)?, None)
    }

    /// Opens a socket to a peer, on a free port. It receives the messages of that peer alone.
    ///
    /// # Errors
    /// As for [`bind`](Self::bind).
    pub fn connect(peer: DirectAddress) -> Result<Self, SysError> {
        Self::open(peer.interface, &take_port(peer.interface, 0)?, Some(peer))
    }

    /// Opens a socket to a peer on the port of this one, which receives no more frames of that peer then. Frames that have come in
    /// between come to both.
    ///
    /// # Errors
    /// As for [`bind`](Self::bind).
    pub fn accept(&self, peer: DirectAddress) -> Result<Self, SysError> {
        let accepted = Self::open(self.interface, &lock(&self.port), Some(peer))?;
        let mut excluded = lock(&self.excluded);
        excluded.retain(|other| *other != peer);
        excluded.push(peer);
        drop(excluded);
        self.filter().map_err(|error| SysError::new("frames cannot be filtered", error))?;
        Ok(accepted)
    }

    /// Receives frames of a peer again, whose own socket is closed.
    pub fn release(&self, peer: DirectAddress) {
        let mut excluded = lock(&self.excluded);
        excluded.retain(|other| *other != peer);
        drop(excluded);
        // With the filter of before it only receives too little, until the next change.
        let _unchanged = self.filter();
    }

    fn open(interface: u32, port: &Arc<Port>, peer: Option<DirectAddress>) -> Result<Self, SysError> {
        let name = interface::name(interface).ok_or_else(|| SysError::NoInterface {
            name: interface.to_string(),
            known: interface::names(),
        })?;
        let failed = |error| SysError::privileged("a packet socket cannot be opened", "CAP_NET_RAW", error);
        let number = u32::from_ne_bytes(random().map_err(|error| SysError::new("no random bytes", error))?);
        let socket = Self {
            fd: open_without_headers().map_err(failed)?,
            interface,
            own: interface::link_address(&name)?,
            port: Mutex::new(Arc::clone(port)),
            peer,
            excluded: Mutex::default(),
            mtu: AtomicU32::new(interface::mtu(&name)?),
            number: Mutex::new(number),
            hint_level: AtomicU8::new(0),
            is_closed: AtomicBool::new(false),
        };
        socket.make_room();
        // The filter comes first, so that no other frame is ever in the queue.
        let bound = socket.filter().and_then(|()| bind_protocol(&socket.fd, interface, ETHERTYPE));
        bound
            .map_err(|error| SysError::new(format!("a packet socket cannot be bound to `{name}`"), error))?;
        Ok(socket)
    }

    /// Makes the receive buffer larger than the kernel's default, where the kernel allows it.
    fn make_room(&self) {
        if sockopt::set_socket_recv_buffer_size_force(&self.fd, RECEIVE_BUFFER).is_err() {
            // Without CAP_NET_ADMIN the kernel limits the size to net.core.rmem_max.
            let _cut = sockopt::set_socket_recv_buffer_size(&self.fd, RECEIVE_BUFFER);
        }
    }

    /// Sets a filter that passes only the frames of this socket.
    fn filter(&self) -> io::Result<()> {
        if self.is_closed.load(Ordering::Relaxed) {
            return FrameFilter::none().attach(&self.fd);
        }
        let of_peer =
            |peer: &DirectAddress| [FrameField::Half(SOURCE_AT, peer.port), FrameField::Sender(peer.link)];
        let mut fields = vec![FrameField::Half(DESTINATION_AT, self.local().port)];
        fields.extend(self.peer.as_ref().into_iter().flat_map(of_peer));
        let excluded = lock(&self.excluded);
        let exceptions: Vec<_> = excluded.iter().take(MOST_EXCLUDED).map(of_peer).collect();
        FrameFilter::new(&fields, exceptions.iter().map(|fields| &fields[..]))?.attach(&self.fd)
    }

    /// Returns the address of this socket.
    pub fn local(&self) -> DirectAddress {
        DirectAddress { interface: self.interface, link: self.own, port: lock(&self.port).number() }
    }

    /// Returns the address of the peer; `None` if it is connected to none.
    pub const fn peer(&self) -> Option<DirectAddress> {
        self.peer
    }

    /// Moves a connected socket to another port, as its peer may keep the state of a connection from the one before.
    ///
    /// # Errors
    /// When no port is free, or the kernel refuses the filter.
    pub fn change_port(&self) -> io::Result<()> {
        *lock(&self.port) = Arc::new(Port::take(self.interface, 0)?);
        self.is_closed.store(false, Ordering::Relaxed);
        self.filter()
    }

    /// Receives no more frames, until the port is changed.
    ///
    /// # Errors
    /// When the kernel refuses the filter.
    pub fn close(&self) -> io::Result<()> {
        self.is_closed.store(true, Ordering::Relaxed);
        self.filter()
    }

    /// Closes the socket at once although a thread may still use it, so that its port is free. Such a thread gets the errors of a socket
    /// that is not bound. Sockets that were accepted on this port keep it.
    ///
    /// # Errors
    /// When the system has no room for another descriptor. The port is free, too.
    pub fn vacate(&self) -> io::Result<()> {
        let vacated = vacate(&self.fd);
        // Not before: the next owner's frames are for no other socket.
        let mut port = lock(&self.port);
        *port = Arc::new(Port::released(port.number()));
        vacated
    }

    /// Sets the delay hint of its messages: in the header of frames, and as the priority in the host's queues, which an interface with
    /// 802.1Q tags writes into the tag as its administrator has chosen (`egress-qos-map` of ip-link(8)).
    ///
    /// # Errors
    /// When the kernel refuses the priority.
    pub fn set_hint(&self, hint: Option<Hint>) -> io::Result<()> {
        let level = hint.map_or(0, |hint| u8::try_from(hint.level()).unwrap_or(u8::MAX));
        SO_PRIORITY.set(&self.fd, hint.map_or(0, priority))?;
        self.hint_level.store(level, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the delay hint of its messages; `None` if they have none.
    pub fn hint(&self) -> Option<Hint> {
        self.hint_level().map(|level| Hint::from_level(level.into()))
    }

    /// Returns the level of the delay hint, as it is in the header of frames.
    fn hint_level(&self) -> Option<u8> {
        Some(self.hint_level.load(Ordering::Relaxed)).filter(|level| *level > 0)
    }

    /// Sends a message in parts to the peer. Returns its length.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when the socket has no room for a message of one frame, or half of the send buffer is taken and it has
    /// several; then the descriptor is not ready for writing either. `ENOBUFS` when the interface's queue has no room for one of its frames,
    /// which loses the message; [`io::ErrorKind::InvalidInput`] when it is too long.
    pub fn send(&self, parts: &[&[u8]]) -> io::Result<usize> {
        self.send_to(parts, self.peer.ok_or(io::ErrorKind::NotConnected)?)
    }

    /// As [`send`](Self::send), to a peer on the same link.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_to(&self, parts: &[&[u8]], peer: DirectAddress) -> io::Result<usize> {
        match self.try_send(parts, peer) {
            Err(error) if Errno::from_io_error(&error) == Some(Errno::MSGSIZE) => {
                // The MTU was changed.
                let name = interface::name(self.interface).ok_or(Errno::NODEV)?;
                let mtu = interface::mtu(&name).map_err(io::Error::other)?;
                if self.mtu.swap(mtu, Ordering::Relaxed) == mtu {
                    return Err(error);
                }
                self.try_send(parts, peer)
            }
            sent => sent,
        }
    }

    fn try_send(&self, parts: &[&[u8]], peer: DirectAddress) -> io::Result<usize> {
        thread_local! {
            static FRAMES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        let length = parts.iter().map(|part| part.len()).sum();
        let flow = DirectFlow { destination: peer.port, source: self.local().port };
        let mut number = lock(&self.number);
        let mtu = self.mtu.load(Ordering::Relaxed) as usize;
        let segments = Segments::new(flow, *number, self.hint_level(), length, mtu)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        // Once it has begun, a message has to wait for room for all of its frames.
        if segments.count() > 1 && !self.has_room(Duration::ZERO)? {
            return Err(Errno::AGAIN.into());
        }
        FRAMES.with_borrow_mut(|bytes| {
            bytes.clear();
            let mut ranges = segments.write(parts, bytes);
            let to = (self.interface, ETHERTYPE, peer.link);
            let mut is_begun = false;
            let mut frames: [&[u8]; BATCH] = [&[]; BATCH];
            loop {
                let mut count = 0;
                for (place, range) in frames.iter_mut().zip(&mut ranges) {
                    *place = &bytes[range];
                    count += 1;
                }
                if count == 0 {
                    return Ok(length);
                }
                let mut left = &frames[..count];
                while !left.is_empty() {
                    match send_to(&self.fd, to, left) {
                        Ok(sent) => {
                            left = &left[sent..];
                            if !is_begun {
                                // A number that was on the wire is not used again.
                                *number = number.wrapping_add(1);
                                is_begun = true;
                            }
                        }
                        Err(error) if is_begun && error.kind() == io::ErrorKind::WouldBlock => {
                            if !self.has_room(LONGEST_WAIT)? {
                                return Err(Errno::NOBUFS.into());
                            }
                        }
                        Err(error) => return Err(error),
                    }
                }
            }
        })
    }

    /// Returns whether less than half of the send buffer is taken, for which it waits so long.
    fn has_room(&self, patience: Duration) -> io::Result<bool> {
        wait(&mut [PollFd::new(&self.fd, PollFlags::OUT)], patience)
    }
}

impl AsFd for DirectSocket {
    /// The descriptor is readable when a frame has come, which need not complete a message.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Returns the priority of a hint in Linux's numbers, those that the kernel derives from IPv4's types of service (`TC_PRIO_*` of
/// `linux/pkt_sched.h`): interactive, interactive bulk, best effort and bulk, for a quarter of the 16 levels each.
fn priority(hint: Hint) -> i32 {
    match hint.level() {
        ..=4 => 6,
        5..=8 => 4,
        9..=12 => 0,
        _ => 2,
    }
}

fn take_port(interface: u32, number: u16) -> Result<Arc<Port>, SysError> {
    let taken = Port::take(interface, number);
    let failed = |error| SysError::new(format!("port {number} of frames cannot be used"), error);
    Ok(Arc::new(taken.map_err(failed)?))
}

#[cfg(test)]
#[path = "socket_tests.rs"]
mod tests;
