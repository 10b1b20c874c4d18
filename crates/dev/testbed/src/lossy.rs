//! A path on the loopback interface that loses datagrams.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

/// The longest datagram, bytes.
const LONGEST: usize = 65_535;
/// Time that the path sleeps when there is nothing to forward.
const NAP: Duration = Duration::from_micros(500);

/// A path to a server, which loses some of the datagrams to it, and none of its answers. Which ones follows from a seed.
#[derive(Debug)]
pub struct LossyPath {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    is_over: AtomicBool,
    forwarded: AtomicU64,
    lost: AtomicU64,
}

impl LossyPath {
    /// Opens a path to an address. Of the datagrams that `may_lose` names, each is lost with a probability of `loss`.
    ///
    /// # Panics
    /// When the system refuses a socket.
    pub fn start(
        to: SocketAddr,
        loss: f64,
        seed: u64,
        may_lose: impl Fn(&[u8]) -> bool + Send + 'static,
    ) -> Self {
        let socket = open();
        let address = socket.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let mut random = Random(seed);
        let lose = move |datagram: &[u8]| may_lose(datagram) && random.next() < loss;
        let thread = spawn(move || forward(&socket, to, lose, &of_thread));
        Self { address, shared, thread: Some(thread) }
    }

    /// Returns the address to send to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the number of datagrams that were forwarded to the server, and the number of lost ones.
    pub fn counts(&self) -> (u64, u64) {
        (self.shared.forwarded.load(Ordering::Relaxed), self.shared.lost.load(Ordering::Relaxed))
    }
}

impl Drop for LossyPath {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn open() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("the loopback interface has a free port");
    socket.set_nonblocking(true).expect("a socket need not wait");
    socket
}

fn forward(socket: &UdpSocket, to: SocketAddr, mut lose: impl FnMut(&[u8]) -> bool, shared: &Shared) {
    let mut clients: BTreeMap<SocketAddr, UdpSocket> = BTreeMap::new();
    let mut buffer = vec![0; LONGEST];
    while !shared.is_over.load(Ordering::Relaxed) {
        let mut is_idle = true;
        match socket.recv_from(&mut buffer) {
            Ok((length, from)) => {
                is_idle = false;
                let datagram = &buffer[..length];
                let outlet = clients.entry(from).or_insert_with(open);
                if lose(datagram) {
                    shared.lost.fetch_add(1, Ordering::Relaxed);
                } else {
                    // Counted first, so that a server that has received something finds it in the counts.
                    shared.forwarded.fetch_add(1, Ordering::Relaxed);
                    if outlet.send_to(datagram, to).is_err() {
                        shared.forwarded.fetch_sub(1, Ordering::Relaxed);
                    }
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => is_idle = false,
        }
        for (client, outlet) in &clients {
            if let Ok((length, _)) = outlet.recv_from(&mut buffer) {
                is_idle = false;
                // An answer to a client that has gone is lost, as on any path.
                let _gone = socket.send_to(&buffer[..length], client);
            }
        }
        if is_idle {
            sleep(NAP);
        }
    }
}

/// Numbers from 0 to 1 that follow from a seed: `SplitMix64`.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_selected_datagrams_is_lost_and_answers_return() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        server.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let path = LossyPath::start(server.local_addr().unwrap(), 0.2, 7, |datagram| datagram != b"end");
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.connect(path.address()).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        for _ in 0..200 {
            client.send(b"one").unwrap();
        }
        client.send(b"end").unwrap();
        let (mut buffer, mut received) = ([0; 16], 0);
        let from = loop {
            let (length, from) = server.recv_from(&mut buffer).unwrap();
            if &buffer[..length] == b"end" {
                break from;
            }
            received += 1;
        };
        let (forwarded, lost) = path.counts();
        assert_eq!((forwarded, forwarded + lost), (received + 1, 201));
        assert!((20..60).contains(&lost), "{lost} of 200");
        server.send_to(b"answer", from).unwrap();
        assert_eq!(client.recv(&mut buffer).unwrap(), 6);
    }
}
