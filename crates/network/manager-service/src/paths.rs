//! Datagrams between the managers of the hosts of a path.
//!
//! | bytes | field |
//! | --- | --- |
//! | 1 | version: 1 |
//! | 8 | number of the key |
//! | up to 449 | summary ([`PathSummary`](cutline_manager::feedback::PathSummary)) |
//! | 32 | tag: HMAC-SHA-256 of all before it |
//!
//! All hosts of a path know its keys. The first key of the file signs, and every key is accepted, so that keys can be
//! replaced one host after the other. A datagram counts if its tag is right, it comes from the address of the host that
//! it names, its number is higher than that of all before, and the host has not sent too many. A dropped one gets no
//! answer.

use crate::config::{ManagedPath, PathKey};
use cutline_manager::feedback::{HostId, PathId, PathSummary};
use cutline_signal::authentication::{Key, TAG};
use cutline_sys::SysError;
use cutline_units::{Duration, Instant};
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// Purpose of the keys.
const PURPOSE: &[u8] = b"cutline path summary";
const VERSION: u8 = 1;
const HEAD: usize = 9;
/// The longest datagram, bytes.
const LONGEST: usize = HEAD + PathSummary::LONGEST + TAG;
/// The most datagrams of a host in an interval of summaries that are used: a manager sends at most five.
const MOST_IN_INTERVAL: f64 = 8.0;
/// The most datagrams that are read before anything else is done.
const TURN: usize = 64;

/// Counters of the datagrams of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramCounts {
    pub sent: u64,
    pub received: u64,
    pub forged: u64,
    pub refused: u64,
}

/// A host on a path.
#[derive(Debug)]
struct Neighbour {
    address: SocketAddr,
    /// The highest number of its summaries.
    number: u64,
    /// Datagrams that it may still send, and the time of that.
    budget: (f64, Instant),
}

/// The socket, the keys and the hosts.
#[derive(Debug)]
pub struct PathSocket {
    socket: UdpSocket,
    keys: Vec<(u64, Key)>,
    hosts: BTreeMap<(PathId, HostId), Neighbour>,
    counts: BTreeMap<PathId, DatagramCounts>,
    /// Datagrams that were dropped before their path was known.
    pub strangers: u64,
    interval: Duration,
}

/// A summary that has come, with its sender.
#[derive(Debug)]
pub struct Arrived {
    pub path: PathId,
    pub host: HostId,
    pub message: Vec<u8>,
}

impl PathSocket {
    /// Opens a socket at `listen` for these paths.
    ///
    /// # Errors
    /// When a key is too short, or the address cannot be listened at.
    pub fn open(
        listen: SocketAddr,
        keys: &[PathKey],
        paths: &[ManagedPath],
        interval: Duration,
    ) -> Result<Self, SysError> {
        let failed = |error| SysError::new(format!("summaries cannot be received at {listen}"), error);
        let socket = UdpSocket::bind(listen).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        let keys = check_keys(keys)
            .map_err(|why| SysError::new("a key of summaries cannot be used", io::Error::other(why)))?;
        let budget = (MOST_IN_INTERVAL, Instant::ZERO);
        let hosts = paths.iter().flat_map(|path| {
            let each = path.peers.iter();
            each.map(|peer| ((path.path, peer.host), Neighbour { address: peer.address, number: 0, budget }))
        });
        let counts = paths.iter().map(|path| (path.path, DatagramCounts::default())).collect();
        Ok(Self { socket, keys, hosts: hosts.collect(), counts, strangers: 0, interval })
    }

    /// Sends a summary to a host, or to all hosts of the path. A summary that cannot be sent counts as lost by the network.
    pub fn send(&mut self, path: PathId, to: Option<HostId>, message: &[u8]) {
        let Some((id, key)) = self.keys.first() else { return };
        let mut datagram = Vec::with_capacity(LONGEST);
        datagram.push(VERSION);
        datagram.extend(id.to_be_bytes());
        datagram.extend(message);
        let tag = key.tag(&[&datagram]);
        datagram.extend(tag);
        let range = match to {
            Some(host) => (path, host)..=(path, host),
            None => (path, HostId(0))..=(path, HostId(u64::MAX)),
        };
        let mut sent = 0;
        for host in self.hosts.range(range).map(|(_, host)| host) {
            sent += u64::from(self.socket.send_to(&datagram, host.address).is_ok());
        }
        self.counts.entry(path).or_default().sent += sent;
    }

    /// Receives some of the datagrams that have come.
    pub fn receive(&mut self, now: Instant) -> Vec<Arrived> {
        let mut arrived = Vec::new();
        let mut buffer = [0; LONGEST + 1];
        for _ in 0..TURN {
            match self.socket.recv_from(&mut buffer) {
                Ok((length, from)) => arrived.extend(self.take(now, &buffer[..length], from)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // An error of a datagram that was sent before.
                Err(_) => {}
            }
        }
        arrived
    }

    fn take(&mut self, now: Instant, datagram: &[u8], from: SocketAddr) -> Option<Arrived> {
        let mut from = from;
        // A link-local address keeps its zone.
        if from.ip().to_canonical().is_ipv4() {
            from.set_ip(from.ip().to_canonical());
        }
        let parsed = parse(datagram);
        let Some((id, signed, message, tag)) = parsed else {
            self.strangers += 1;
            return None;
        };
        let key = self.keys.iter().find(|(number, _)| *number == id).map(|(_, key)| *key);
        let is_genuine = key.is_some_and(|key| key.verifies(&[signed], tag));
        let Ok(summary) = PathSummary::decode(message) else {
            self.strangers += 1;
            return None;
        };
        let (path, host) = (summary.path, summary.host);
        let known = self.hosts.get_mut(&(path, host)).filter(|known| known.address == from);
        let Some(known) = known else {
            self.strangers += 1;
            return None;
        };
        let counts = self.counts.entry(path).or_default();
        if !is_genuine {
            counts.forged += 1;
            return None;
        }
        let (left, since) = known.budget;
        let earned = now.saturating_since(since).as_secs_f64() / self.interval.as_secs_f64();
        let left = (left + earned * MOST_IN_INTERVAL).min(MOST_IN_INTERVAL);
        known.budget = (left, now);
        if left < 1.0 || summary.number <= known.number {
            counts.refused += 1;
            return None;
        }
        known.budget.0 -= 1.0;
        known.number = summary.number;
        counts.received += 1;
        Some(Arrived { path, host, message: message.to_vec() })
    }

    /// Notes that a summary was refused by the manager.
    pub fn note_refused(&mut self, path: PathId) {
        let counts = self.counts.entry(path).or_default();
        counts.received -= 1;
        counts.refused += 1;
    }

    /// The counters of a path.
    pub fn counts(&self, path: PathId) -> DatagramCounts {
        self.counts.get(&path).copied().unwrap_or_default()
    }

    /// The highest numbers of summaries, by path and host.
    pub fn numbers(&self) -> Vec<(u64, u64, u64)> {
        self.hosts.iter().map(|((path, host), known)| (path.0, host.0, known.number)).collect()
    }

    /// Continues from the highest numbers of an earlier process, so that old summaries stay refused.
    pub fn set_numbers(&mut self, numbers: &[(u64, u64, u64)]) {
        for (path, host, number) in numbers {
            if let Some(known) = self.hosts.get_mut(&(PathId(*path), HostId(*host))) {
                known.number = *number;
            }
        }
    }

    /// The address at which summaries are received.
    ///
    /// # Errors
    /// When the system does not know it.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

impl AsFd for PathSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Finds whether the clock was set forward, from which the numbers of this host's summaries begin.
///
/// A host without a battery for its clock starts in the past, and its summaries are refused as old ones. It learns the right time later.
#[derive(Debug)]
pub struct ClockWatch {
    /// Time since 1970 at the zero of the monotonic clock, the latest one, ns.
    origin: u64,
}

impl ClockWatch {
    /// Steps up to this one are none: the clock is only made faster or slower.
    const LEAST_STEP: Duration = Duration::from_secs(1);

    /// Begins at a time of the monotonic clock, with the time since 1970.
    pub const fn new(now: Instant, unix: Duration) -> Self {
        Self { origin: unix.as_nanos().saturating_sub(now.as_nanos()) }
    }

    /// Returns whether the clock was set forward since the last time that it was.
    pub const fn is_set_forward(&mut self, now: Instant, unix: Duration) -> bool {
        let origin = Self::new(now, unix).origin;
        let is_set = origin > self.origin.saturating_add(Self::LEAST_STEP.as_nanos());
        if is_set {
            self.origin = origin;
        }
        is_set
    }
}

/// Makes keys of their contents.
pub fn check_keys(keys: &[PathKey]) -> Result<Vec<(u64, Key)>, String> {
    let key = |key: &PathKey| {
        Key::new(&key.secret, PURPOSE)
            .map(|made| (key.id, made))
            .map_err(|allowed| format!("the secret of key {} {allowed}", key.id))
    };
    keys.iter().map(key).collect()
}

/// Number of the key, signed bytes, summary, tag.
type Parts<'b> = (u64, &'b [u8], &'b [u8], &'b [u8]);

fn parse(datagram: &[u8]) -> Option<Parts<'_>> {
    if datagram.len() > LONGEST || datagram.first() != Some(&VERSION) {
        return None;
    }
    let (signed, tag) = datagram.split_at_checked(datagram.len().checked_sub(TAG)?)?;
    let (head, message) = signed.split_at_checked(HEAD)?;
    Some((u64::from_be_bytes(head[1..].try_into().ok()?), signed, message, tag))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ManagerPeer;
    use cutline_manager::feedback::{Cutoff, Directive, HostState};
    use cutline_manager::resources::LoweringOrder;

    const PATH: PathId = PathId(7);

    fn keys(ids: &[u64]) -> Vec<PathKey> {
        ids.iter().map(|id| PathKey { id: *id, secret: vec![*id as u8 + 65; 32] }).collect()
    }

    /// Two hosts on loopback, each of which knows the other.
    fn pair(of_first: &[u64], of_second: &[u64]) -> [PathSocket; 2] {
        let addresses: Vec<SocketAddr> =
            (0..2).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()).collect();
        let open = |own: usize, ids: &[u64]| {
            let other = 1 - own;
            let peer = ManagerPeer { host: HostId(other as u64), address: addresses[other] };
            let path = ManagedPath { path: PATH, destinations: Vec::new(), peers: vec![peer] };
            PathSocket::open(addresses[own], &keys(ids), &[path], Duration::from_millis(500)).unwrap()
        };
        [open(0, of_first), open(1, of_second)]
    }

    fn summary(host: u64, number: u64) -> Vec<u8> {
        let directive = Directive { coordinator: HostId(0), epoch: 1, cutoff: Cutoff::NONE };
        let (order, state) = (LoweringOrder::Priority, HostState::default());
        PathSummary { order, host: HostId(host), path: PATH, number, directive, state }.encode()
    }

    fn received(socket: &mut PathSocket, at_ms: u64) -> usize {
        std::thread::sleep(std::time::Duration::from_millis(20));
        socket.receive(Instant::from_nanos(at_ms * 1_000_000)).len()
    }

    #[test]
    fn a_summary_of_a_known_host_is_received_once() {
        let [mut first, mut second] = pair(&[1], &[2, 1]);
        first.send(PATH, None, &summary(0, 5));
        assert_eq!(received(&mut second, 1000), 1, "any key of the file is accepted");
        first.send(PATH, Some(HostId(1)), &summary(0, 5));
        first.send(PATH, Some(HostId(1)), &summary(0, 4));
        assert_eq!((received(&mut second, 1000), second.counts(PATH).refused), (0, 2));
        // A number survives a restart.
        let numbers = second.numbers();
        assert_eq!(numbers, [(7, 0, 5)]);
        second.set_numbers(&[(7, 0, 9)]);
        first.send(PATH, None, &summary(0, 9));
        assert_eq!(received(&mut second, 1000), 0);
    }

    #[test]
    fn a_clock_that_is_set_forward_is_found_once() {
        let at = |s: u64| Instant::from_nanos(s * 1_000_000_000);
        let mut clock = ClockWatch::new(at(10), Duration::from_secs(20));
        for (now, unix, is_set) in [
            (11, 21, false),
            // A second is no step. Then the right time is set.
            (12, 23, false),
            (13, 1_800_000_000, true),
            (14, 1_800_000_001, false),
            // Back, and forward again to less than before.
            (15, 30, false),
            (16, 1_700_000_000, false),
            (17, 1_900_000_000, true),
        ] {
            assert_eq!(clock.is_set_forward(at(now), Duration::from_secs(unix)), is_set, "{now} s");
        }
    }

    /// A link-local address is the same at another link, and an IPv4 address may come as an IPv6 one.
    #[test]
    fn a_host_has_its_zone() {
        let open = |address| {
            let peers = vec![ManagerPeer { host: HostId(0), address }];
            let path = ManagedPath { path: PATH, destinations: Vec::new(), peers };
            let here = "127.0.0.1:0".parse().unwrap();
            PathSocket::open(here, &keys(&[1]), &[path], Duration::from_millis(500)).unwrap()
        };
        let witness = UdpSocket::bind("127.0.0.1:0").unwrap();
        open(witness.local_addr().unwrap()).send(PATH, None, &summary(0, 1));
        let mut datagram = [0; LONGEST];
        let length = witness.recv(&mut datagram).unwrap();
        for (known, from, is_known) in [
            ("[fe80::1%2]:9", "[fe80::1%2]:9", true),
            ("[fe80::1%2]:9", "[fe80::1%3]:9", false),
            ("192.0.2.1:9", "[::ffff:192.0.2.1]:9", true),
        ] {
            let mut socket = open(known.parse().unwrap());
            let arrived = socket.take(Instant::ZERO, &datagram[..length], from.parse().unwrap());
            assert_eq!(arrived.is_some(), is_known, "{known}, {from}");
        }
    }

    #[test]
    fn forged_foreign_and_excess_summaries_are_dropped_and_counted() {
        let [mut first, mut second] = pair(&[1], &[2]);
        first.send(PATH, None, &summary(0, 1));
        assert_eq!((received(&mut second, 1), second.counts(PATH).forged), (0, 1), "an unknown key");
        let [mut first, mut second] = pair(&[1], &[1]);
        // The host of another address.
        first.send(PATH, None, &summary(9, 1));
        let target = second.local_addr().unwrap();
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        for bytes in [&[][..], &[1; 8], &[1; 41], &[0; 200], &[1; 600]] {
            stranger.send_to(bytes, target).unwrap();
        }
        assert_eq!((received(&mut second, 1), second.strangers), (0, 6));
        for number in 1..=20 {
            first.send(PATH, None, &summary(0, number));
        }
        assert_eq!((received(&mut second, 1000), second.counts(PATH).refused), (8, 12));
        first.send(PATH, None, &summary(0, 21));
        assert_eq!(received(&mut second, 1500), 1, "the next interval has its own budget");
        let short = PathKey { id: 1, secret: vec![1; 31] };
        assert!(check_keys(&[short]).unwrap_err().contains("32"));
    }
}
