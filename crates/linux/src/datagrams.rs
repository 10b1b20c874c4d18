//! Many datagrams with one system call, each with the kernel's stamp, its sender and its traffic class.
//!
//! Of a datagram only its head is copied ([`HEAD`] bytes): whoever counts datagrams needs no more. `SO_TIMESTAMPNS`
//! stamps a datagram as it comes in from the interface, so how late the reader wakes up does not count.
#![expect(unsafe_code, reason = "recvmmsg, which no safe crate wraps")]

use crate::clock;
use cutline_units::Instant;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use std::io;
use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ptr::from_ref;

/// How many bytes of a datagram are handed over at most.
pub const HEAD: usize = 64;
/// How many datagrams one system call takes at most.
const BATCH: usize = 64;
/// Room for a socket address of any kind.
const NAME: usize = size_of::<libc::sockaddr_storage>();
/// Room for a stamp, a traffic class of either protocol and a drop counter, each behind its header.
const CONTROL: usize = 256;

/// A datagram that has come.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'i> {
    /// Its first bytes, at most [`HEAD`].
    pub head: &'i [u8],
    /// How long it was, bytes.
    pub length: usize,
    /// Who sent it.
    pub from: SocketAddr,
    /// When the kernel got it, on the scale of [`crate::now`].
    pub at: Instant,
    /// The traffic class octet, with its ECN bits; `None` where the kernel did not tell.
    pub traffic_class: Option<u8>,
    /// How many datagrams the socket has dropped so far for want of room.
    pub overflowed: u32,
}

/// Takes datagrams from a socket.
pub struct Inbox {
    heads: Box<[[u8; HEAD]; BATCH]>,
    names: Box<[[u8; NAME]; BATCH]>,
    controls: Box<[Control; BATCH]>,
}

/// Aligned as control messages are.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL]);

impl Default for Inbox {
    fn default() -> Self {
        Self {
            heads: Box::new([[0; HEAD]; BATCH]),
            names: Box::new([[0; NAME]; BATCH]),
            controls: Box::new([Control([0; CONTROL]); BATCH]),
        }
    }
}

impl Inbox {
    /// Asks the kernel for stamps, traffic classes and the count of dropped datagrams.
    ///
    /// # Errors
    /// When it has none of the stamps.
    pub fn prepare(socket: impl AsFd) -> io::Result<()> {
        let socket = socket.as_fd();
        enable(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS)?;
        enable(socket, libc::SOL_SOCKET, libc::SO_RXQ_OVFL)?;
        // A socket has one of the two, or both where it takes IPv4 as mapped addresses.
        let v4 = enable(socket, libc::IPPROTO_IP, libc::IP_RECVTOS);
        let v6 = enable(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS);
        v4.or(v6)
    }

    /// Hands over what has come, without waiting: at most as much as one call takes. How many that were.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when nothing has come.
    pub fn receive(&mut self, socket: impl AsFd, mut each: impl FnMut(Datagram<'_>)) -> io::Result<usize> {
        // SAFETY: all-zero bits are a valid iovec and a valid mmsghdr: null pointers with lengths of zero.
        let (mut parts, mut messages): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) =
            unsafe { (zeroed(), zeroed()) };
        for i in 0..BATCH {
            parts[i] = libc::iovec { iov_base: self.heads[i].as_mut_ptr().cast(), iov_len: HEAD };
            let header = &mut messages[i].msg_hdr;
            header.msg_name = self.names[i].as_mut_ptr().cast();
            header.msg_namelen = NAME as libc::socklen_t;
            header.msg_iov = &raw mut parts[i];
            header.msg_iovlen = 1;
            header.msg_control = self.controls[i].0.as_mut_ptr().cast();
            header.msg_controllen = CONTROL;
        }
        // With MSG_TRUNC the length that is told is the datagram's own, not that of what has been copied.
        let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
        // SAFETY: every message points to a part, a name and a control buffer of its own, of the lengths given; all
        // outlive the call, and nothing else refers to them during it.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_fd().as_raw_fd(),
                messages.as_mut_ptr(),
                BATCH as u32,
                flags as _,
                std::ptr::null_mut(),
            )
        };
        if count < 0 {
            return Err(io::Error::last_os_error());
        }
        let (now, wall_ahead) = (clock::now(), clock::wall_ahead());
        for (i, message) in messages.iter().enumerate().take(count as usize) {
            let length = message.msg_len as usize;
            let control = &self.controls[i].0[..message.msg_hdr.msg_controllen.min(CONTROL)];
            let told = Told::read(control);
            let at = told.stamp.map_or(now, |(seconds, nanos)| {
                clock::of_stamp(seconds as u32, nanos as u32, wall_ahead, now)
            });
            let Some(from) = address(&self.names[i]) else { continue };
            let head = &self.heads[i][..length.min(HEAD)];
            let Told { traffic_class, overflowed, .. } = told;
            each(Datagram { head, length, from, at, traffic_class, overflowed });
        }
        Ok(count as usize)
    }
}

/// What control messages tell of a datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Told {
    /// Seconds and nanoseconds of the wall clock.
    stamp: Option<(u64, u64)>,
    traffic_class: Option<u8>,
    overflowed: u32,
}

impl Told {
    /// Control messages lie one behind the other, each with its length, level and kind in front (cmsg(3)).
    fn read(mut control: &[u8]) -> Self {
        const HEADER: usize = size_of::<libc::cmsghdr>();
        const WORD: usize = size_of::<usize>();
        let mut told = Self::default();
        while let Some(length) = control.first_chunk().map(|bytes| usize::from_ne_bytes(*bytes)) {
            if length < HEADER || length > control.len() {
                break;
            }
            let number =
                |at: usize| control[at..].first_chunk().map_or(0, |bytes| i32::from_ne_bytes(*bytes));
            told.note(number(WORD), number(WORD + 4), &control[HEADER..length]);
            control = control.get(length.next_multiple_of(WORD)..).unwrap_or_default();
        }
        told
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
            _ => {}
        }
    }
}

/// A socket address of IPv4 or IPv6 as the kernel writes it.
fn address(name: &[u8; NAME]) -> Option<SocketAddr> {
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

fn enable(socket: BorrowedFd<'_>, level: i32, option: i32) -> io::Result<()> {
    let (on, length) = (1_i32, size_of::<i32>() as libc::socklen_t);
    // SAFETY: the kernel reads `length` bytes from `on`, which is that long.
    let code = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, from_ref(&on).cast(), length) };
    if code < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
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
                // The stamp is of another clock, and moved to this one: a step of it within these lines is forgiven.
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
    fn a_datagram_comes_with_its_length_sender_and_traffic_class() {
        exchange("127.0.0.1:0");
        exchange("[::1]:0");
    }

    #[test]
    fn control_messages_that_make_no_sense_are_left_out() {
        assert_eq!(Told::read(&[]), Told::default());
        assert_eq!(Told::read(&[0xff; 40]), Told::default());
        assert_eq!(Told::read(&[0; 40]), Told::default());
    }
}
