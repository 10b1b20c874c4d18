//! What a QoS socket costs beside a plain one that does the same work (QoSockets: less than 1 %).
//!
//! One thread sends messages over the loopback interface and receives them, so that no scheduling comes in: `cargo bench -p
//! cutline-socket --bench overhead`. *Bursts* of 16 messages are sent before they are received, as a busy connection has them; *single*
//! ones are received before the next one is sent, as on an idle one. Both kinds of socket take turns, so that the machine is the same for both; the ratio
//! is the median over all turns, with its 95 % confidence interval (order statistics of the binomial distribution).

use cutline_socket::{Peer, QosOptions, QosTcpListener, QosTcpStream, QosUdpListener, QosUdpSocket};
use cutline_sys::now;
use cutline_sys::thread::cpu_time;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::thread;

const BURST: usize = 16;
/// The most bytes of a burst, so that a socket's buffer has room for it.
const MOST: usize = 1 << 15;
/// How many messages a turn has.
const MESSAGES: usize = 4_000;
const TURNS: usize = 41;
const ANY: &str = "127.0.0.1:0";

fn main() {
    println!("QoS sockets / plain sockets: time and CPU time of a message, sent and received");
    println!(
        "{:>5} {:>7} {:>8}  {:>10} {:>10}  {:>24}",
        "", "B", "", "plain, ns", "QoS, ns", "ratio of CPU time"
    );
    for burst in [BURST, 1] {
        for size in [64, 1024, 8192] {
            let burst = burst.min(MOST / size);
            let (plain, qos) = (plain_datagrams(), qos_datagrams());
            compare("udp", size, burst, &|bytes| exchange_datagrams(&plain, bytes, burst), &|bytes| {
                exchange_datagrams(&qos, bytes, burst);
            });
        }
        for size in [64, 1024, 8192, 65_536] {
            let burst = burst.min((MOST / size).max(1));
            let (plain, qos) = (plain_streams(), qos_streams());
            compare(
                "tcp",
                size,
                burst,
                &|bytes| exchange_streams(&plain.0, &plain.1, bytes, burst),
                &|bytes| {
                    exchange_streams(&qos.0, &qos.1, bytes, burst);
                },
            );
        }
    }
}

trait Datagrams {
    fn send(&self, bytes: &[u8]);
    fn recv(&self, bytes: &mut [u8]) -> usize;
}

impl Datagrams for UdpSocket {
    fn send(&self, bytes: &[u8]) {
        assert_eq!(UdpSocket::send(self, bytes).unwrap(), bytes.len());
    }

    fn recv(&self, bytes: &mut [u8]) -> usize {
        UdpSocket::recv(self, bytes).unwrap()
    }
}

impl Datagrams for QosUdpSocket {
    fn send(&self, bytes: &[u8]) {
        assert_eq!(QosUdpSocket::send(self, bytes).unwrap(), bytes.len());
    }

    fn recv(&self, bytes: &mut [u8]) -> usize {
        QosUdpSocket::recv(self, bytes).unwrap()
    }
}

fn plain_datagrams() -> [UdpSocket; 2] {
    let [a, b] = [ANY, ANY].map(|address| UdpSocket::bind(address).unwrap());
    a.connect(b.local_addr().unwrap()).unwrap();
    b.connect(a.local_addr().unwrap()).unwrap();
    [a, b]
}

fn qos_datagrams() -> [QosUdpSocket; 2] {
    let listener = QosUdpListener::bind(ANY, &QosOptions::default()).unwrap();
    let to = listener.local_addr().unwrap();
    thread::scope(|scope| {
        let accepted = scope.spawn(|| listener.accept().unwrap().0);
        [QosUdpSocket::connect(to, &QosOptions::default()).unwrap(), accepted.join().unwrap()]
    })
}

fn plain_streams() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(ANY).unwrap();
    let a = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let b = listener.accept().unwrap().0;
    a.set_nodelay(true).unwrap();
    (a, b)
}

fn qos_streams() -> (QosTcpStream, QosTcpStream) {
    let options = QosOptions::default().peer(Peer::Speaks);
    let listener = QosTcpListener::bind(ANY, &options).unwrap();
    let to = listener.local_addr().unwrap();
    thread::scope(|scope| {
        let accepted = scope.spawn(|| listener.accept().unwrap().0);
        let connected = QosTcpStream::connect(to, &options).unwrap();
        connected.set_nodelay(true).unwrap();
        (connected, accepted.join().unwrap())
    })
}

fn exchange_datagrams(ends: &[impl Datagrams; 2], bytes: &mut [u8], burst: usize) {
    for _ in 0..MESSAGES / burst {
        (0..burst).for_each(|_| ends[0].send(bytes));
        for _ in 0..burst {
            assert_eq!(ends[1].recv(bytes), bytes.len());
        }
    }
}

fn exchange_streams<S>(mut from: &S, mut to: &S, bytes: &mut [u8], burst: usize)
where
    for<'s> &'s S: Read + Write,
{
    for _ in 0..MESSAGES / burst {
        (0..burst).for_each(|_| from.write_all(bytes).unwrap());
        (0..burst).for_each(|_| to.read_exact(bytes).unwrap());
    }
}

/// Runs both by turns and prints what a message takes.
fn compare(name: &str, size: usize, burst: usize, plain: &dyn Fn(&mut [u8]), qos: &dyn Fn(&mut [u8])) {
    let mut bytes = vec![7; size];
    let measure = |run: &dyn Fn(&mut [u8]), bytes: &mut [u8]| {
        let (time, cpu) = (now(), cpu_time());
        run(bytes);
        let each = |ns: u64| ns as f64 / MESSAGES as f64;
        (each(now().saturating_since(time).as_nanos()), each((cpu_time().saturating_sub(cpu)).as_nanos()))
    };
    measure(plain, &mut bytes);
    measure(qos, &mut bytes);
    let mut turns: Vec<_> = (0..TURNS)
        .map(|turn| {
            let mut both = [(0.0, 0.0); 2];
            // Neither is always the first.
            for i in if turn % 2 == 0 { [0, 1] } else { [1, 0] } {
                both[i] = measure(if i == 0 { plain } else { qos }, &mut bytes);
            }
            (both[0].0, both[1].0, both[1].1 / both[0].1)
        })
        .collect();
    let median = |turns: &mut Vec<(f64, f64, f64)>, of: fn(&(f64, f64, f64)) -> f64| {
        turns.sort_by(|a, b| of(a).total_cmp(&of(b)));
        of(&turns[TURNS / 2])
    };
    let (a, b) = (median(&mut turns, |turn| turn.0), median(&mut turns, |turn| turn.1));
    let ratio = median(&mut turns, |turn| turn.2);
    // The 14th and the 28th of 41 values: a confidence of 97 %.
    let (low, high) = (turns[13].2, turns[27].2);
    let kind = if burst > 1 { "bursts" } else { "single" };
    println!("{name:>5} {size:>7} {kind:>8}  {a:>10.0} {b:>10.0}  {ratio:>8.3} [{low:.3}, {high:.3}]");
}
