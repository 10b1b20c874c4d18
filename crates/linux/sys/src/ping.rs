//! Round-trip times by ICMP echo (RFC 792, RFC 4443), as `ping` measures them.
//!
//! The kernel has sockets for this purpose, which need no privileges where `net.ipv4.ping_group_range` allows the process's
//! group; otherwise a raw socket is tried, which needs `CAP_NET_RAW`. A reply is recognised by the process's number, a sequence number, and
//! 64 random bits in the payload, which a host returns (RFC 792, RFC 4443 section 4.2). So a host that does not see the requests cannot forge
//! replies, and one that sees them cannot reply before a request. The time when a request was sent is kept here.

use crate::address::ZonedIp;
use crate::reactor::{PollFd, PollFlags, wait};
use crate::{SysError, now};
use cutline_units::{Duration, Instant};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, ipproto, recv, send, socket_with,
};
use rustix::rand::{GetRandomFlags, getrandom};
use std::net::IpAddr;

/// A socket that sends echo requests to one host.
#[derive(Debug)]
pub struct Echo {
    socket: OwnedFd,
    target: IpAddr,
    /// True if the kernel passes IP headers, and replies to other processes.
    raw: bool,
    identifier: u16,
    /// Number of requests sent.
    sent: usize,
    /// The last of them that have no reply yet, at the places of their sequence numbers.
    waiting: [Option<Request>; WAITING],
}

/// A request without a reply.
#[derive(Clone, Copy, Debug)]
struct Request {
    sequence: u16,
    nonce: Nonce,
    sent: Instant,
}

/// The random part of a payload.
type Nonce = [u8; 8];

/// Number of requests that may wait for their replies. An older one's reply is no longer recognised.
const WAITING: usize = 256;

/// The length of a request, bytes: 8 of header, 56 of payload.
const LENGTH: usize = 64;
/// The value of all other payload bytes. It makes the payload easy to recognise in a capture.
const PAYLOAD: u8 = 0x5a;

impl Echo {
    /// Opens a socket for this host.
    ///
    /// # Errors
    /// When the process lacks the privilege, or there is no route to the host.
    pub fn open(target: ZonedIp) -> Result<Self, SysError> {
        let (address, target) = (target, target.ip());
        let failed = |errno: Errno| {
            SysError::privileged(format!("echo requests cannot be sent to {address}"), "CAP_NET_RAW", errno)
        };
        let (socket, raw) = match open(target, SocketType::DGRAM) {
            Ok(socket) => (socket, false),
            Err(_) => (open(target, SocketType::RAW).map_err(failed)?, true),
        };
        connect(&socket, &address.with_port(0)).map_err(failed)?;
        Ok(Self {
            socket,
            target,
            raw,
            identifier: std::process::id() as u16,
            sent: 0,
            waiting: [None; WAITING],
        })
    }

    /// Returns the number of sent requests.
    pub const fn sent(&self) -> usize {
        self.sent
    }

    /// Sends a request. One that the network does not accept counts as lost.
    pub fn request(&mut self) {
        let sequence = self.sent as u16;
        self.sent += 1;
        let mut nonce = Nonce::default();
        // Up to 256 bytes come at once (getrandom(2)), except in the first moments of a machine: then there is no request.
        if getrandom(&mut nonce, GetRandomFlags::NONBLOCK).is_err() {
            return;
        }
        let request = encode(self.target, self.identifier, sequence, nonce);
        self.waiting[usize::from(sequence) % WAITING] = Some(Request { sequence, nonce, sent: now() });
        let _lost = send(&self.socket, &request, SendFlags::DONTWAIT);
    }

    /// Waits until `deadline` for replies; calls `replied` with the round-trip time of each.
    ///
    /// # Errors
    /// When waiting fails.
    pub fn wait(&mut self, deadline: Instant, replied: &mut dyn FnMut(Duration)) -> Result<(), SysError> {
        loop {
            let left = deadline.saturating_since(now());
            let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
            let ready = wait(&mut fds, left);
            if ready.map_err(|error| SysError::new("waiting for echo replies failed", error))? {
                self.take(replied);
            } else if now() >= deadline {
                return Ok(());
            }
        }
    }

    /// Takes the replies that have arrived; calls `replied` with the round-trip time of each. An error of the network, such as an
    /// unreachable host, ends it until the next call.
    pub fn take(&mut self, replied: &mut dyn FnMut(Duration)) {
        let mut buffer = [0; 2048];
        while let Ok((length, _)) = recv(&self.socket, &mut buffer, RecvFlags::DONTWAIT) {
            let at = now();
            let identifier = self.raw.then_some(self.identifier);
            let reply = reply(self.target, &buffer[..length], self.raw, identifier);
            let request = reply.and_then(|(sequence, nonce)| {
                let is_its = |request: &mut Request| request.sequence == sequence && request.nonce == nonce;
                self.waiting[usize::from(sequence) % WAITING].take_if(is_its)
            });
            if let Some(request) = request {
                replied(at - request.sent);
            }
        }
    }
}

/// Ready when a reply has arrived.
impl AsFd for Echo {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn open(target: IpAddr, kind: SocketType) -> Result<OwnedFd, Errno> {
    let (family, protocol) = match target {
        IpAddr::V4(_) => (AddressFamily::INET, ipproto::ICMP),
        IpAddr::V6(_) => (AddressFamily::INET6, ipproto::ICMPV6),
    };
    socket_with(family, kind, SocketFlags::CLOEXEC, Some(protocol))
}

/// The types of requests and replies, by version.
const fn types(target: IpAddr) -> [u8; 2] {
    match target {
        IpAddr::V4(_) => [8, 0],
        IpAddr::V6(_) => [128, 129],
    }
}

/// Encodes a request. The kernel fills in the identifier of unprivileged sockets and the checksum of IPv6.
fn encode(target: IpAddr, identifier: u16, sequence: u16, nonce: Nonce) -> [u8; LENGTH] {
    let mut bytes = [PAYLOAD; LENGTH];
    bytes[..4].copy_from_slice(&[types(target)[0], 0, 0, 0]);
    bytes[4..6].copy_from_slice(&identifier.to_be_bytes());
    bytes[6..8].copy_from_slice(&sequence.to_be_bytes());
    bytes[8..16].copy_from_slice(&nonce);
    let checksum = checksum(&bytes);
    bytes[2..4].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

/// RFC 1071: the complement of the sum of 16-bit words in ones' complement.
fn checksum(bytes: &[u8; LENGTH]) -> u16 {
    let words = bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

/// Returns the sequence number and the random part of a reply to us; `None` for anything else.
fn reply(target: IpAddr, packet: &[u8], raw: bool, identifier: Option<u16>) -> Option<(u16, Nonce)> {
    // Raw IPv4 sockets give the IP header, too.
    let header = if raw && target.is_ipv4() { usize::from(packet.first()? & 15) * 4 } else { 0 };
    let (&[kind, code, _, _, i0, i1, s0, s1], payload) = packet.get(header..)?.split_first_chunk::<8>()?;
    let nonce = *payload.first_chunk()?;
    let ours = identifier.is_none_or(|identifier| identifier == u16::from_be_bytes([i0, i1]));
    (kind == types(target)[1] && code == 0 && ours).then(|| (u16::from_be_bytes([s0, s1]), nonce))
}

#[cfg(test)]
mod tests {
    use super::*;

    const V4: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn a_request_sums_to_nothing() {
        let bytes = encode(V4, 0xabcd, 7, [9; 8]);
        assert_eq!((bytes[0], checksum(&bytes)), (8, 0));
    }

    #[test]
    fn only_replies_to_us_count() {
        let nonce = [1, 2, 3, 4, 5, 6, 7, 8];
        let mut packet = [&[0x45; 20][..], &encode(V4, 5, 9, nonce)].concat();
        let read = |packet: &[u8], identifier| reply(V4, packet, true, Some(identifier));
        assert_eq!(read(&packet, 5), None, "a request");
        packet[20] = 0;
        assert_eq!((read(&packet, 5), read(&packet, 6)), (Some((9, nonce)), None));
        assert_eq!(reply(V4, &packet[20..], false, None), Some((9, nonce)));
        for length in [27, 35] {
            assert_eq!((read(&packet[..length], 5), read(&[], 5)), (None, None), "cut off");
        }
    }

    /// A reply that has the right numbers and not the random bits is forged.
    #[test]
    fn forged_replies_do_not_count() {
        let Ok(mut echo) = Echo::open(V4.into()) else { return };
        echo.request();
        let Request { sequence, nonce, .. } = echo.waiting[0].unwrap();
        let forged = |nonce| {
            let mut packet = encode(V4, echo.identifier, sequence, nonce);
            packet[0] = 0;
            reply(V4, &packet, false, None).unwrap()
        };
        assert_eq!(forged(nonce), (sequence, nonce));
        assert_ne!(forged([PAYLOAD; 8]).1, nonce);
        echo.request();
        assert_ne!(echo.waiting[1].unwrap().nonce, nonce, "each request has bits of its own");
        // The true reply of the second one is refused once other bits are expected.
        echo.waiting[1].as_mut().unwrap().nonce = nonce;
        let mut times = Vec::new();
        echo.wait(now() + Duration::from_millis(200), &mut |time| times.push(time)).unwrap();
        assert_eq!(times.len(), 1, "{times:?}");
    }

    /// This host replies, if either kind of socket and this version of IP are available.
    #[test]
    fn this_host_replies() {
        for target in [V4, IpAddr::V6(std::net::Ipv6Addr::LOCALHOST)] {
            let Ok(mut echo) = Echo::open(target.into()) else { continue };
            let mut times = Vec::new();
            for _ in 0..3 {
                echo.request();
                echo.wait(now() + Duration::from_millis(100), &mut |time| times.push(time)).unwrap();
            }
            assert_eq!((echo.sent(), times.len()), (3, 3), "{target}");
            assert!(times.iter().all(|time| *time > Duration::ZERO), "{times:?}");
        }
    }
}
