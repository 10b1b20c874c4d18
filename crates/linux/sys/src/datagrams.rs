//! Many datagrams with one system call, each with the kernel's time stamp, its sender and its traffic class.
//!
//! `SO_TIMESTAMPNS` stamps a datagram when it comes in from the interface, so the stamp does not depend on when the reader
//! wakes up. An inbox for measurements copies only the first [`HEAD`] bytes of each.
#![expect(unsafe_code, reason = "recvmmsg, which no safe crate wraps")]

use crate::clock;
use crate::local_address::LocalAddress;
use crate::sockopt::{SO_RXQ_OVFL, SO_TIMESTAMPNS, SocketOption, check};
use cutline_units::{Duration, Instant};
use rustix::fd::{AsFd, AsRawFd};
use rustix::net::sockopt::{set_ip_recvtos, set_ipv6_recvtclass};
use std::fmt;
use std::io;
use std::mem::{MaybeUninit, size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Enough bytes of a datagram to measure it.
pub const HEAD: usize = 64;
/// Default number of datagrams that one system call returns.
const BATCH: usize = 64;
/// Room for a socket address of any kind, bytes.
pub(crate) const NAME: usize = size_of::<libc::sockaddr_storage>();
/// Room for a time stamp, a traffic class of either protocol and a drop counter, each behind its header, bytes.
pub(crate) const CONTROL: usize = 256;
/// Option with the figures of a socket's memory, each an `u32` (`SK_MEMINFO_...` in `linux/sock_diag.h`).
const SO_MEMINFO: SocketOption<u32> = SocketOption::new(libc::SOL_SOCKET, libc::SO_MEMINFO);
/// Place of the number of dropped datagrams among these figures, bytes (`SK_MEMINFO_DROPS`).
const MEMINFO_DROPS: usize = 8 * 4;
/// Largest waiting time of a datagram behind which no other one is likely to wait.
const FRESH: Duration = Duration::from_micros(15);
/// Time after which no processor can still be about to put a datagram into the queue of a socket that was connected meanwhile. It
/// takes microseconds, or as long as a virtual processor stands still.
const SETTLES: Duration = Duration::from_secs(10);
/// Time for which the offset of the wall clock is taken to be constant.
const OFFSET_LASTS: Duration = Duration::from_millis(10);

/// A datagram that was received.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'i> {
    /// Its first bytes, as many as the inbox has room for.
    pub head: &'i [u8],
    /// Its length, bytes.
    pub length: usize,
    /// The sender's address.
    pub from: SocketAddr,
    /// Arrival time at the kernel, on the scale of [`crate::now`].
    pub at: Instant,
    /// The traffic class octet, with its ECN bits; `None` where the kernel does not report it.
    pub traffic_class: Option<u8>,
    /// Number of datagrams that the socket has dropped so far because its buffer was full.
    pub overflowed: u32,
    /// The local address that it has come to, if the socket was asked for it ([`local_address::ask`](crate::local_address::ask)).
    pub to: Option<LocalAddress>,
}

/// Waiting of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Returns at once.
    No,
    /// Waits until the first datagram, as long as the socket waits ([`std::net::UdpSocket::set_read_timeout`]).
    ForOne,
}

/// Receives datagrams from a socket.
pub struct Inbox {
    /// Room for the first bytes of a datagram.
    room: usize,
    // Vectors, not boxes: a box that is moved may not be referred to by pointers. Memory that no datagram has needed is not initialised, so
    // that it takes no memory, also where the allocator uses a former block again.
    heads: Vec<MaybeUninit<u8>>,
    names: Vec<[u8; NAME]>,
    controls: Vec<Control>,
    /// Point into `heads`.
    _parts: Vec<libc::iovec>,
    /// Point into `names`, `_parts` and `controls`.
    messages: Vec<libc::mmsghdr>,
    /// Control messages of the last call, and times of arrival of the datagrams.
    ancillaries: Vec<(Ancillary, Instant)>,
    /// Peer of the socket, if it is connected.
    peer: Option<SocketAddr>,
    /// Set if the kernel names the sender of each datagram, which it need not where all are of the peer.
    names_senders: bool,
    /// Time after which all that arrives is of the peer, if there is one.
    settled: Instant,
    /// Number of datagrams that the next call may return.
    next: usize,
    /// The end of the last call, and the offset of the wall clock then.
    now: Instant,
    offset: u64,
    /// Time at which the offset was read.
    offset_at: Instant,
    /// Time of arrival of the last datagram of the last call.
    latest: Instant,
}

// SAFETY: the pointers are to memory on the heap that the inbox owns and that only its methods refer to.
unsafe impl Send for Inbox {}

/// Aligned as control messages are.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(crate) struct Control(pub(crate) [u8; CONTROL]);

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox")
            .field("room", &self.room)
            .field("batch", &self.messages.len())
            .finish_non_exhaustive()
    }
}

impl Default for Inbox {
    /// An inbox for measuring: it copies [`HEAD`] bytes of each datagram.
    fn default() -> Self {
        Self::new(HEAD, BATCH)
    }
}

impl Inbox {
    /// Returns an inbox that takes at most `batch` datagrams with one system call, and copies at most `room` bytes of each.
    /// Memory that no datagram has needed is not used.
    ///
    /// # Panics
    /// When one of them is zero.
    pub fn new(room: usize, batch: usize) -> Self {
        assert!(room > 0 && batch > 0, "an inbox has room");
        let mut heads: Vec<MaybeUninit<u8>> = Vec::with_capacity(room * batch);
        // SAFETY: there is room for so many, and a `MaybeUninit` need not be initialised.
        unsafe { heads.set_len(room * batch) };
        let mut names = vec![[0; NAME]; batch];
        let mut controls = vec![Control([0; CONTROL]); batch];
        let part =
            |head: &mut [MaybeUninit<u8>]| libc::iovec { iov_base: head.as_mut_ptr().cast(), iov_len: room };
        let mut parts: Vec<libc::iovec> = heads.chunks_exact_mut(room).map(part).collect();
        let places = names.iter_mut().zip(&mut controls).zip(&mut parts);
        let message = |((name, control), part): ((&mut [u8; NAME], &mut Control), &mut libc::iovec)| {
            // SAFETY: all-zero bits are a valid mmsghdr: null pointers with lengths of zero.
            let mut message: libc::mmsghdr = unsafe { zeroed() };
            message.msg_hdr.msg_name = name.as_mut_ptr().cast();
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
            message
        };
        let messages = places.map(message).collect();
        let zero = Instant::ZERO;
        let (offset, next) = (0, batch);
        Self {
            room,
            heads,
            names,
            controls,
            _parts: parts,
            messages,
            ancillaries: vec![(Ancillary::default(), zero); batch],
            peer: None,
            names_senders: true,
            settled: Instant::FAR_FUTURE,
            next,
            now: zero,
            offset,
            offset_at: zero,
            latest: zero,
        }
    }

    /// Returns an inbox for a socket that is connected to this peer.
    ///
    /// It requests one datagram at a time as long as that one has just arrived, since requesting a second one that is not there takes
    /// time; where datagrams wait, it takes as many as it can.
    ///
    /// # Panics
    /// When it has no room.
    #[must_use]
    pub fn connected(room: usize, batch: usize, peer: SocketAddr) -> Self {
        Self { peer: Some(peer), names_senders: false, next: 1, ..Self::new(room, batch) }
    }

    /// As [`Inbox::connected`], for a socket that was bound before it was connected. The kernel may have put datagrams of other
    /// senders into its queue before, and, where another processor was about to, even shortly afterwards. [`Inbox::is_of_peer`]
    /// tells them apart until the first datagram that arrives ten seconds later.
    ///
    /// # Panics
    /// When it has no room.
    #[must_use]
    pub fn accepted(room: usize, batch: usize, peer: SocketAddr) -> Self {
        let settled = clock::now().saturating_add(SETTLES);
        Self { names_senders: true, settled, ..Self::connected(room, batch, peer) }
    }

    /// Enables time stamps of the kernel.
    ///
    /// # Errors
    /// When it has none.
    pub fn stamp(socket: impl AsFd) -> io::Result<()> {
        SO_TIMESTAMPNS.set(&socket, 1)
    }

    /// Enables the count of datagrams that the kernel drops because the receive buffer is full ([`Inbox::overflowed`]). Returns how many
    /// it has dropped so far, as far as it reports that.
    ///
    /// # Errors
    /// When it cannot count them.
    pub fn enable_overflow_count(socket: impl AsFd) -> io::Result<u32> {
        SO_RXQ_OVFL.set(&socket, 1)?;
        let mut values = [0; MEMINFO_DROPS + 4];
        // Since Linux 4.12.
        let values = SO_MEMINFO.get_bytes(&socket, &mut values).unwrap_or_default();
        Ok(values
            .get(MEMINFO_DROPS..)
            .and_then(<[u8]>::first_chunk)
            .map_or(0, |drops| u32::from_ne_bytes(*drops)))
    }

    /// Enables time stamps, traffic classes and the count of dropped datagrams.
    ///
    /// # Errors
    /// When it does not have one of them.
    pub fn prepare(socket: impl AsFd) -> io::Result<()> {
        SO_TIMESTAMPNS.set(&socket, 1)?;
        SO_RXQ_OVFL.set(&socket, 1)?;
        // A socket has one of the two, or both where it takes IPv4 as mapped addresses.
        let (v4, v6) = (set_ip_recvtos(&socket, true), set_ipv6_recvtclass(&socket, true));
        Ok(v4.or(v6)?)
    }

    /// Passes the datagrams that have arrived to `each`, without waiting. One call may leave some for the next. Returns how
    /// many there were.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when none has arrived.
    pub fn receive(&mut self, socket: impl AsFd, each: impl FnMut(Datagram<'_>)) -> io::Result<usize> {
        let count = self.fill(socket, Wait::No)?;
        (0..count).filter_map(|number| self.datagram(number)).for_each(each);
        Ok(count)
    }

    /// Receives datagrams into the inbox, in the place of those that were there. Returns their number.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when none has arrived in time; another one when the socket has an error.
    pub fn fill(&mut self, socket: impl AsFd, wait: Wait) -> io::Result<usize> {
        let most = self.next;
        // The queue has an order, so later entries arrived later.
        self.names_senders &= self.latest <= self.settled;
        for message in &mut self.messages[..most] {
            message.msg_hdr.msg_namelen = if self.names_senders { NAME as libc::socklen_t } else { 0 };
            message.msg_hdr.msg_controllen = CONTROL;
        }
        let count =
            if most == 1 { self.fill_one(&socket, wait)? } else { self.fill_many(&socket, most, wait)? };
        self.now = clock::now();
        if self.now.saturating_since(self.offset_at) > OFFSET_LASTS {
            (self.offset, self.offset_at) = (clock::wall_clock_offset(), self.now);
        }
        let (now, offset) = (self.now, self.offset);
        let places = self.messages.iter().zip(&self.controls).zip(&mut self.ancillaries);
        for ((message, control), (ancillary, at)) in places.take(count) {
            *ancillary = Ancillary::read(&control.0[..message.msg_hdr.msg_controllen.min(CONTROL)]);
            // A datagram without a stamp of the kernel counts as received now.
            *at = ancillary.stamp.map_or(now, |(seconds, nanos)| {
                clock::from_wall_clock(seconds as u32, nanos as u32, offset, now)
            });
        }
        self.latest = self.ancillaries[count.max(1) - 1].1;
        if self.peer.is_some() {
            let waited = now.saturating_since(self.ancillaries[0].1);
            self.next = if waited > FRESH { self.messages.len() } else { 1 };
        }
        Ok(count)
    }

    /// Receives one datagram, for which `recvmsg` takes less time than `recvmmsg`.
    fn fill_one(&mut self, socket: impl AsFd, wait: Wait) -> io::Result<usize> {
        let flags = match wait {
            Wait::No => libc::MSG_DONTWAIT,
            Wait::ForOne => 0,
        };
        let message = &mut self.messages[0];
        // With MSG_TRUNC the length returned is that of the datagram, not that of the copied part.
        // SAFETY: the message points to a part, a name and a control buffer of its own, of the lengths given; all are the inbox's,
        // which is borrowed for the call.
        let length = unsafe {
            libc::recvmsg(socket.as_fd().as_raw_fd(), &raw mut message.msg_hdr, libc::MSG_TRUNC | flags)
        };
        message.msg_len = check(length as i64)? as u32;
        Ok(1)
    }

    /// Receives at most so many datagrams.
    fn fill_many(&mut self, socket: impl AsFd, most: usize, wait: Wait) -> io::Result<usize> {
        let flags = match wait {
            Wait::No => libc::MSG_DONTWAIT,
            Wait::ForOne => libc::MSG_WAITFORONE,
        };
        // SAFETY: every message points to a part, a name and a control buffer of its own, of the lengths given; all are
        // the inbox's, which is borrowed for the call.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_fd().as_raw_fd(),
                self.messages.as_mut_ptr(),
                most as u32,
                (libc::MSG_TRUNC | flags) as _,
                std::ptr::null_mut(),
            )
        };
        Ok(check(count.into())? as usize)
    }

    /// Returns a datagram of the last call, by its number from 0; `None` if its sender has no address of IPv4 or IPv6.
    ///
    /// # Panics
    /// When the inbox has no room for so many.
    pub fn datagram(&self, number: usize) -> Option<Datagram<'_>> {
        let length = self.length(number);
        let (Ancillary { traffic_class, overflowed, to, .. }, at) = self.ancillaries[number];
        let from = self.sender(number)?;
        Some(Datagram { head: self.head(number), length, from, at, traffic_class, overflowed, to })
    }

    /// Returns the address of the sender of a datagram of the last call; `None` if it is none of IPv4 or IPv6.
    ///
    /// # Panics
    /// As [`datagram`](Self::datagram).
    pub fn sender(&self, number: usize) -> Option<SocketAddr> {
        match self.peer {
            Some(peer) if !self.names_senders => Some(peer),
            _ => address(&self.names[number]),
        }
    }

    /// Returns the address on its link of the sender of a frame of the last call, which a packet socket has received; `None` if it is
    /// another kind of socket.
    ///
    /// # Panics
    /// As [`datagram`](Self::datagram).
    pub fn link_sender(&self, number: usize) -> Option<[u8; 6]> {
        // The fields of sockaddr_ll: family, protocol, interface, hardware, kind, and the length of the address.
        let name = self.names_senders.then_some(&self.names[number])?;
        let is_packet = i32::from(u16::from_ne_bytes([name[0], name[1]])) == libc::AF_PACKET;
        name[12..].first_chunk().copied().filter(|_| is_packet && name[11] == 6)
    }

    /// Returns whether a datagram of the last call is from the peer of the socket.
    ///
    /// # Panics
    /// As [`datagram`](Self::datagram).
    #[inline]
    pub fn is_of_peer(&self, number: usize) -> bool {
        !self.names_senders || self.peer.is_some() && self.sender(number) == self.peer
    }

    /// Returns the length of a datagram of the last call, bytes.
    ///
    /// # Panics
    /// As [`datagram`](Self::datagram).
    pub fn length(&self, number: usize) -> usize {
        self.messages[number].msg_len as usize
    }

    /// Returns the first bytes of a datagram of the last call, as many as the inbox has room for.
    ///
    /// # Panics
    /// As [`datagram`](Self::datagram).
    pub fn head(&self, number: usize) -> &[u8] {
        let head = &self.heads[number * self.room..][..self.length(number).min(self.room)];
        // SAFETY: the kernel has written so many bytes there: the length is that of the last datagram in this place, or zero before the first.
        unsafe { &*(std::ptr::from_ref(head) as *const [u8]) }
    }

    /// Returns the number of datagrams that the socket had dropped when a datagram of the last call came into its queue; 0 if none, or if the caller has not
    /// asked for it. It wraps around.
    ///
    /// # Panics
    /// As [`datagram`](Self::datagram).
    #[inline]
    pub fn overflowed(&self, number: usize) -> u32 {
        self.ancillaries[number].0.overflowed
    }

    /// Returns the time at which a datagram of the last call arrived at the kernel, on the scale of [`crate::now`].
    ///
    /// # Panics
    /// As [`datagram`](Self::datagram).
    pub fn arrival(&self, number: usize) -> Instant {
        self.ancillaries[number].1
    }
}

/// Control messages of a datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ancillary {
    /// Arrival time by the wall clock: seconds and nanoseconds.
    stamp: Option<(u64, u64)>,
    traffic_class: Option<u8>,
    overflowed: u32,
    to: Option<LocalAddress>,
}

impl Ancillary {
    fn read(control: &[u8]) -> Self {
        let mut read = Self::default();
        each_control(control, |level, kind, data| read.note(level, kind, data));
        read
    }

    fn note(&mut self, level: i32, kind: i32, data: &[u8]) {
        match (level, kind) {
            (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS) if data.len() == 16 => {
                let long = |at: usize| data[at..].first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
                self.stamp = Some((long(0), long(8)));
            }
            (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                self.overflowed = data.first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes));
            }
            // One octet, or an int.
            (libc::IPPROTO_IP, libc::IP_TOS) => self.traffic_class = data.first().copied(),
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                self.traffic_class = data.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes) as u8);
            }
            _ => self.to = LocalAddress::read(level, kind, data).or(self.to),
        }
    }
}

/// Passes the level, kind and data of each control message on. They follow one another, each with its length, level and kind in front
/// (cmsg(3)).
pub(crate) fn each_control(mut control: &[u8], mut each: impl FnMut(i32, i32, &[u8])) {
    const HEADER: usize = size_of::<libc::cmsghdr>();
    const WORD: usize = size_of::<usize>();
    while let Some(header) = control.first_chunk::<HEADER>() {
        let word =
            |at: usize| i32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let length = header.first_chunk().map_or(0, |bytes| usize::from_ne_bytes(*bytes));
        if length < HEADER || length > control.len() {
            break;
        }
        each(word(WORD), word(WORD + 4), &control[HEADER..length]);
        control = control.get(length.next_multiple_of(WORD)..).unwrap_or_default();
    }
}

/// A socket address of IPv4 or IPv6 as the kernel writes it.
pub(crate) fn address(name: &[u8; NAME]) -> Option<SocketAddr> {
    let family = i32::from(u16::from_ne_bytes([name[0], name[1]]));
    let port = u16::from_be_bytes([name[2], name[3]]);
    let ip: IpAddr = match family {
        libc::AF_INET => Ipv4Addr::from(*name[4..].first_chunk::<4>()?).into(),
        libc::AF_INET6 => Ipv6Addr::from(*name[8..].first_chunk::<16>()?).into(),
        _ => return None,
    };
    let scope = u32::from_ne_bytes(*name[24..].first_chunk()?);
    Some(match ip {
        IpAddr::V6(ip) => SocketAddr::V6(std::net::SocketAddrV6::new(ip, port, 0, scope)),
        IpAddr::V4(_) => SocketAddr::new(ip, port),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::Duration;
    use std::net::UdpSocket;

    fn exchange(address: &str) {
        let [a, b] = [address, address].map(|address| UdpSocket::bind(address).unwrap());
        Inbox::prepare(&b).unwrap();
        if address.starts_with('[') {
            rustix::net::sockopt::set_ipv6_tclass(&a, 0x0e).unwrap();
        } else {
            rustix::net::sockopt::set_ip_tos(&a, 0x0e).unwrap();
        }
        a.send_to(&[7; 3], b.local_addr().unwrap()).unwrap();
        a.send_to(&[8; 900], b.local_addr().unwrap()).unwrap();
        let mut seen = Vec::new();
        let count = Inbox::default()
            .receive(&b, |it| {
                // The stamp is converted from another clock, which may be stepped within these lines.
                let age = clock::now().saturating_since(it.at);
                assert!(age < Duration::from_secs(60) && it.at <= clock::now(), "{it:?}");
                assert_eq!((it.from, it.traffic_class), (a.local_addr().unwrap(), Some(0x0e)));
                seen.push((it.head.to_vec(), it.length));
            })
            .unwrap();
        assert_eq!(count, 2);
        assert_eq!(seen, [(vec![7; 3], 3), (vec![8; HEAD], 900)]);
        let error = Inbox::default().receive(&b, |_| {}).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs a datagram socket, which Miri has not")]
    fn a_datagram_has_its_length_sender_and_traffic_class() {
        exchange("127.0.0.1:0");
        exchange("[::1]:0");
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs a datagram socket, which Miri has not")]
    fn an_accepted_socket_separates_datagrams_of_others_until_its_queue_settles() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let [ours, peer, other] = [(); 3].map(|()| UdpSocket::bind(address).unwrap());
            let to = ours.local_addr().unwrap();
            other.send_to(b"before", to).unwrap();
            ours.connect(peer.local_addr().unwrap()).unwrap();
            Inbox::stamp(&ours).unwrap();
            peer.send_to(b"after", to).unwrap();
            let mut inbox = Inbox::accepted(HEAD, 1, peer.local_addr().unwrap());
            assert_eq!(inbox.fill(&ours, Wait::ForOne).unwrap(), 1);
            assert_eq!((inbox.is_of_peer(0), inbox.sender(0)), (false, other.local_addr().ok()));
            assert_eq!(inbox.fill(&ours, Wait::ForOne).unwrap(), 1);
            assert_eq!((inbox.is_of_peer(0), inbox.head(0)), (true, &b"after"[..]));
            assert!(inbox.names_senders);
            inbox.settled = Instant::ZERO;
            peer.send_to(b"later", to).unwrap();
            assert_eq!(inbox.fill(&ours, Wait::ForOne).unwrap(), 1);
            assert!(inbox.is_of_peer(0) && !inbox.names_senders);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs a datagram socket, which Miri has not")]
    fn dropped_datagrams_are_counted_also_those_of_before() {
        let [a, b] = ["127.0.0.1:0"; 2].map(|address| UdpSocket::bind(address).unwrap());
        a.connect(b.local_addr().unwrap()).unwrap();
        rustix::net::sockopt::set_socket_recv_buffer_size(&b, 4096).unwrap();
        let overflow = || (0..100).for_each(|_| assert_eq!(a.send(&[7; 500]).unwrap(), 500));
        let mut inbox = Inbox::connected(HEAD, 1, a.local_addr().unwrap());
        overflow();
        let before = Inbox::enable_overflow_count(&b).unwrap();
        let taken = std::iter::from_fn(|| inbox.fill(&b, Wait::No).ok()).count() as u32;
        assert!(taken > 0 && taken + before == 100, "{taken} + {before}");
        overflow();
        let mut seen = Vec::new();
        while inbox.fill(&b, Wait::No).is_ok() {
            seen.push(inbox.overflowed(0));
        }
        a.send(b"last").unwrap();
        inbox.fill(&b, Wait::No).unwrap();
        assert!(
            seen.iter().all(|dropped| *dropped == before),
            "the queue was not full before them: {seen:?}"
        );
        assert_eq!(inbox.overflowed(0), before + 100 - seen.len() as u32);
    }

    #[test]
    fn malformed_control_messages_are_ignored() {
        assert_eq!(Ancillary::read(&[]), Ancillary::default());
        assert_eq!(Ancillary::read(&[0xff; 40]), Ancillary::default());
        assert_eq!(Ancillary::read(&[0; 40]), Ancillary::default());
    }
}
