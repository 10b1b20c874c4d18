//! Requests that wait to be answered, by turns among hosts, and among the sources of a host (round robin).
//!
//! A source that sends requests without pause has no more turns than a source with one request. The first request of a source is answered after at most
//! one request of each other source of its host, and after at most as many of any other host as its own host has sources.

use cutline_sys::datagram_server::Ends;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The most requests of a source that wait. A manager sends the next request when it has the answer, or after a timeout.
pub const MOST_OF_SOURCE: usize = 16;
/// The most requests that wait, of all sources.
pub const MOST_WAITING: usize = 1024;

/// A request that was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The manager, and the address of its request.
    pub ends: Ends,
    /// The message.
    pub bytes: Box<[u8]>,
}

/// Host of a request. The addresses that one host can take at will are one: all of loopback, and those of an IPv6 subnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Asker {
    Local,
    V4(Ipv4Addr),
    Subnet(u64),
}

impl Asker {
    fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            address if address.is_loopback() => Self::Local,
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => Self::Subnet((address.to_bits() >> 64) as u64),
        }
    }
}

/// Requests of a host that wait.
#[derive(Debug, Default)]
struct HostQueue {
    /// Requests of each source; none is empty.
    sources: BTreeMap<SocketAddr, VecDeque<Request>>,
    /// The sources in the order of their turns.
    turns: VecDeque<SocketAddr>,
    waiting: usize,
}

/// Requests that wait. The memory is bounded by [`MOST_WAITING`].
#[derive(Debug, Default)]
pub struct FairQueue {
    /// Requests of each host; none is empty.
    hosts: BTreeMap<Asker, HostQueue>,
    /// The hosts in the order of their turns.
    turns: VecDeque<Asker>,
    waiting: usize,
}

impl HostQueue {
    fn push(&mut self, request: Request) {
        let source = request.ends.peer;
        let requests = self.sources.entry(source).or_default();
        if requests.is_empty() {
            self.turns.push_back(source);
        }
        requests.push_back(request);
        self.waiting += 1;
    }

    fn pop(&mut self) -> Option<Request> {
        let source = self.turns.pop_front()?;
        let requests = self.sources.get_mut(&source)?;
        let request = requests.pop_front();
        if requests.is_empty() {
            self.sources.remove(&source);
        } else {
            self.turns.push_back(source);
        }
        self.waiting -= 1;
        request
    }

    /// Removes the newest request of the source with the most.
    fn drop_newest(&mut self) {
        let longest = self.sources.iter().max_by_key(|(_, requests)| requests.len());
        let Some(source) = longest.map(|(source, _)| *source) else { return };
        let Some(requests) = self.sources.get_mut(&source) else { return };
        requests.pop_back();
        if requests.is_empty() {
            self.sources.remove(&source);
            self.turns.retain(|other| *other != source);
        }
        self.waiting -= 1;
    }
}

impl FairQueue {
    /// Adds a request. One request is dropped if its source has [`MOST_OF_SOURCE`] waiting, or there are [`MOST_WAITING`] already: then
    /// the newest one of the source with the most, of the host with the most. Returns whether none was dropped.
    pub fn push(&mut self, request: Request) -> bool {
        let source = request.ends.peer;
        let asker = Asker::of(source.ip());
        let host = self.hosts.entry(asker).or_default();
        if host.sources.get(&source).is_some_and(|requests| requests.len() >= MOST_OF_SOURCE) {
            return false;
        }
        if host.waiting == 0 {
            self.turns.push_back(asker);
        }
        host.push(request);
        self.waiting += 1;
        let has_room = self.waiting <= MOST_WAITING;
        if !has_room {
            self.drop_newest();
        }
        has_room
    }

    /// Removes the request whose turn it is.
    pub fn pop(&mut self) -> Option<Request> {
        let asker = self.turns.pop_front()?;
        let host = self.hosts.get_mut(&asker)?;
        let request = host.pop();
        if host.waiting == 0 {
            self.hosts.remove(&asker);
        } else {
            self.turns.push_back(asker);
        }
        self.waiting -= 1;
        request
    }

    fn drop_newest(&mut self) {
        let longest = self.hosts.iter().max_by_key(|(_, host)| host.waiting).map(|(asker, _)| *asker);
        let Some(asker) = longest else { return };
        let Some(host) = self.hosts.get_mut(&asker) else { return };
        host.drop_newest();
        if host.waiting == 0 {
            self.hosts.remove(&asker);
            self.turns.retain(|other| *other != asker);
        }
        self.waiting -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn request(source: &str, number: u32) -> Request {
        let ends = Ends { peer: source.parse().unwrap(), local: None };
        Request { ends, bytes: number.to_be_bytes().into() }
    }

    fn sources(queue: &mut FairQueue) -> Vec<String> {
        std::iter::from_fn(|| queue.pop()).map(|request| request.ends.peer.to_string()).collect()
    }

    #[test]
    fn a_source_that_floods_has_one_turn_like_every_other() {
        let mut queue = FairQueue::default();
        let flood = (0..1000).filter(|number| queue.push(request("192.0.2.1:1000", *number))).count();
        assert_eq!(flood, MOST_OF_SOURCE);
        assert!(queue.push(request("192.0.2.1:2000", 0)) && queue.push(request("192.0.2.2:1000", 0)));
        let order = sources(&mut queue);
        assert_eq!(order.len(), MOST_OF_SOURCE + 2);
        assert_eq!(order[..3], ["192.0.2.1:1000", "192.0.2.2:1000", "192.0.2.1:2000"]);
    }

    #[test]
    fn ports_and_addresses_that_a_host_takes_at_will_are_no_further_hosts() {
        let mut queue = FairQueue::default();
        let flood =
            (1..=50).map(|n| format!("127.0.0.{n}:{n}")).chain((1..=50).map(|n| format!("[::1]:{n}")));
        for source in flood.chain((1..=50).map(|n| format!("[::ffff:127.0.0.1]:{n}"))) {
            assert!(queue.push(request(&source, 0)));
        }
        for n in 1..=50 {
            assert!(queue.push(request(&format!("[2001:db8::{n}]:{n}"), 0)));
        }
        assert!(queue.push(request("[2001:db8:0:1::1]:161", 0)) && queue.push(request("192.0.2.2:1000", 0)));
        let order = sources(&mut queue);
        // Local, the first subnet, the second one, the host.
        assert_eq!(order[2..4], ["[2001:db8:0:1::1]:161", "192.0.2.2:1000"]);
    }

    #[test]
    fn a_full_queue_drops_requests_of_the_busiest_source() {
        let mut queue = FairQueue::default();
        assert!(queue.push(request("192.0.2.2:1000", 0)));
        let greedy = |port: usize| format!("192.0.2.1:{}", 1000 + port % 200);
        let kept = (0..5000).filter(|port| queue.push(request(&greedy(*port), 0))).count();
        assert_eq!(kept, MOST_WAITING - 1);
        assert!(!queue.push(request("192.0.2.3:1000", 0)), "one of the greedy host is dropped");
        let order = sources(&mut queue);
        assert_eq!(order.len(), MOST_WAITING);
        assert_eq!(order[..3], ["192.0.2.2:1000", &greedy(0), "192.0.2.3:1000"]);
    }

    proptest! {
        /// Any requests and turns: no source overtakes itself, and the first request of a source waits for at most one of each other
        /// source of its host, and for at most as many of another host as its host has sources.
        #[test]
        fn the_first_request_of_a_source_waits_for_a_bounded_number(
            steps in prop::collection::vec((0_u8..5, 0_u8..5, any::<bool>()), 1..400),
        ) {
            let mut queue = FairQueue::default();
            let mut number = 0;
            // Of each source that waits: the sources of its host when its first request became the first, and those answered since.
            let mut first: BTreeMap<SocketAddr, (usize, Vec<SocketAddr>)> = BTreeMap::new();
            let sources_of = |queue: &FairQueue, source: &SocketAddr| {
                queue.hosts.get(&Asker::of(source.ip())).map_or(0, |host| host.sources.len())
            };
            for (host, port, is_push) in steps {
                if is_push {
                    number += 1;
                    let request = request(&format!("192.0.2.{host}:{port}"), number);
                    let source = request.ends.peer;
                    if queue.push(request) {
                        first.entry(source).or_insert((sources_of(&queue, &source), Vec::new()));
                    }
                } else if let Some(answered) = queue.pop() {
                    let source = answered.ends.peer;
                    let (of_host, before) = first.remove(&source).unwrap();
                    for other in &before {
                        let times = before.iter().filter(|of| if of.ip() == source.ip() { *of == other } else { of.ip() == other.ip() });
                        let most = if other.ip() == source.ip() { 1 } else { of_host };
                        prop_assert!(times.count() <= most, "{source} after {before:?}");
                    }
                    for (_, before) in first.values_mut() {
                        before.push(source);
                    }
                    let host = queue.hosts.get(&Asker::of(source.ip()));
                    if let Some(next) = host.and_then(|host| host.sources.get(&source)) {
                        prop_assert!(next.front().unwrap().bytes > answered.bytes, "in order");
                        first.insert(source, (sources_of(&queue, &source), Vec::new()));
                    }
                }
                prop_assert_eq!(queue.waiting, queue.hosts.values().map(|host| host.waiting).sum::<usize>());
            }
        }
    }
}
