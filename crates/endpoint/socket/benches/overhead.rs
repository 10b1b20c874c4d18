//! Cost of a QoS socket beside a plain one that does the same work (QoSockets: less than 1 %).
//!
//! One thread sends messages over the loopback interface and receives them, so that no scheduling comes in: `cargo bench -p
//! cutline-socket --bench overhead [-- udp|tfrc|tcp] [bursts|single] [BYTES]`. *Bursts* of 16 messages are sent before they are received, as a busy connection has them; *single*
//! ones are received before the next one is sent, as on an idle one. The kinds of socket take turns, so that the machine is the same for all; a ratio
//! is the median over all turns, with its 97 % confidence interval (order statistics of the binomial distribution).
//!
//! Both are compared with a third program, too. It has plain sockets and does the same as any program that measures losses and delays: it puts
//! a number and a time in front of each message, and takes the kernel's time of arrival of datagrams from `recvmsg`. In a stream, whose
//! messages the kernel does not tell apart, it puts the length there as well, and takes the time itself.
//!
//! The rows `tfrc` have datagrams with TFRC in the place of QoS, and QoS without it in the place of the third program. Messages do not wait for
//! their turn ([`Pacing::Count`]), which is separate from their cost.
//!
//! With the word `once` each program runs once, for counting the instructions of `exchange_datagrams` and `exchange_streams` (callgrind): those of
//! the programs, without the kernel's. `RUSTFLAGS="--cfg rustix_use_libc"` builds a program that valgrind understands.

use cutline_socket::{
    Pacing, Peer, QosOptions, QosTcpListener, QosTcpStream, QosUdpListener, QosUdpSocket, RateControl,
    TfrcParams,
};
use cutline_sys::datagrams::{Inbox, Wait};
use cutline_sys::now;
use cutline_sys::thread::cpu_time;
use std::cell::{Cell, RefCell};
use std::io::{IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::thread;

const BURST: usize = 16;
/// The most bytes of a burst, so that a socket's buffer has room for it.
const MOST: usize = 1 << 15;
/// Number of messages in a turn.
const MESSAGES: usize = 4_000;
const TURNS: usize = 41;
const ANY: &str = "127.0.0.1:0";

fn main() {
    println!("time and CPU time of a message, sent and received");
    println!(
        "{:>5} {:>7} {:>8}  {:>10} {:>10}  {:>24}  {:>24}",
        "", "B", "", "plain, ns", "QoS, ns", "CPU time, QoS / plain", "QoS / plain, measured"
    );
    println!("{:>5} {:>48}  {:>24}", "", "TFRC / plain", "TFRC / QoS");
    for burst in [BURST, 1] {
        for size in [64, 1024, 8192] {
            let burst = burst.min(MOST / size);
            let (plain, qos, measured) =
                (plain_datagrams(), qos_datagrams(&QosOptions::default()), measured_datagrams());
            compare(
                ("udp", size, burst),
                &[
                    &|bytes| exchange_datagrams(&plain, bytes, burst),
                    &|bytes| exchange_datagrams(&qos, bytes, burst),
                    &|bytes| exchange_datagrams(&measured, bytes, burst),
                ],
            );
            let tfrc = qos_datagrams(&with_tfrc());
            compare(
                ("tfrc", size, burst),
                &[
                    &|bytes| exchange_datagrams(&plain, bytes, burst),
                    &|bytes| exchange_datagrams(&tfrc, bytes, burst),
                    &|bytes| exchange_datagrams(&qos, bytes, burst),
                ],
            );
        }
        for size in [64, 1024, 8192, 65_536] {
            let burst = burst.min((MOST / size).max(1));
            let (plain, qos) = (plain_streams(), qos_streams());
            let measured = plain_streams();
            compare(
                ("tcp", size, burst),
                &[
                    &|bytes| exchange_streams(&plain.0, &plain.1, bytes, burst),
                    &|bytes| exchange_streams(&qos.0, &qos.1, bytes, burst),
                    &|bytes| exchange_measured(&measured.0, &measured.1, bytes, burst),
                ],
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

/// A plain socket whose messages are numbered and have the times when they were sent and when they arrived.
struct Measured {
    socket: UdpSocket,
    number: Cell<u64>,
    inbox: RefCell<Inbox>,
    outgoing: RefCell<Vec<u8>>,
    /// The sum of all delays, so that they are computed.
    delay: Cell<u64>,
}

/// The bytes of a number and a time.
const MEASURED: usize = 16;

impl Datagrams for Measured {
    fn send(&self, bytes: &[u8]) {
        let mut outgoing = self.outgoing.borrow_mut();
        outgoing.clear();
        outgoing.extend(self.number.replace(self.number.get() + 1).to_be_bytes());
        outgoing.extend(now().as_nanos().to_be_bytes());
        outgoing.extend(bytes);
        assert_eq!(self.socket.send(&outgoing).unwrap(), outgoing.len());
    }

    fn recv(&self, bytes: &mut [u8]) -> usize {
        let mut inbox = self.inbox.borrow_mut();
        inbox.fill(&self.socket, Wait::ForOne).unwrap();
        let datagram = inbox.datagram(0).unwrap();
        let (header, message) = datagram.head.split_at(MEASURED);
        let number = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().unwrap());
        assert_eq!(number(&header[..8]), self.number.replace(self.number.get() + 1));
        self.delay.set(self.delay.get() + (datagram.at.as_nanos() - number(&header[8..])));
        bytes[..message.len()].copy_from_slice(message);
        message.len()
    }
}

fn measured_datagrams() -> [Measured; 2] {
    plain_datagrams().map(|socket| {
        Inbox::stamp(&socket).unwrap();
        let inbox = RefCell::new(Inbox::connected(1 << 16, 1, socket.peer_addr().unwrap()));
        let (number, outgoing, delay) = (Cell::new(0), RefCell::default(), Cell::new(0));
        Measured { socket, number, inbox, outgoing, delay }
    })
}

fn plain_datagrams() -> [UdpSocket; 2] {
    let [a, b] = [ANY, ANY].map(|address| UdpSocket::bind(address).unwrap());
    a.connect(b.local_addr().unwrap()).unwrap();
    b.connect(a.local_addr().unwrap()).unwrap();
    [a, b]
}

fn with_tfrc() -> QosOptions {
    QosOptions::default().rate_control(RateControl::Tfrc(TfrcParams::default())).pacing(Pacing::Count)
}

/// The first end has these options.
fn qos_datagrams(options: &QosOptions) -> [QosUdpSocket; 2] {
    let listener = QosUdpListener::bind(ANY, &QosOptions::default()).unwrap();
    let to = listener.local_addr().unwrap();
    thread::scope(|scope| {
        let accepted = scope.spawn(|| listener.accept().unwrap().0);
        [QosUdpSocket::connect(to, options).unwrap(), accepted.join().unwrap()]
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

#[inline(never)]
fn exchange_datagrams(ends: &[impl Datagrams; 2], bytes: &mut [u8], burst: usize) {
    for _ in 0..MESSAGES / burst {
        (0..burst).for_each(|_| ends[0].send(bytes));
        for _ in 0..burst {
            assert_eq!(ends[1].recv(bytes), bytes.len());
        }
    }
}

#[inline(never)]
fn exchange_streams<S>(mut from: &S, mut to: &S, bytes: &mut [u8], burst: usize)
where
    for<'s> &'s S: Read + Write,
{
    for _ in 0..MESSAGES / burst {
        (0..burst).for_each(|_| from.write_all(bytes).unwrap());
        (0..burst).for_each(|_| to.read_exact(bytes).unwrap());
    }
}

/// The bytes of a length, a number and a time.
const MEASURED_IN_STREAM: usize = 20;

/// The same by a program that measures by itself.
#[inline(never)]
fn exchange_measured(mut from: &TcpStream, mut to: &TcpStream, bytes: &mut [u8], burst: usize) {
    let (mut sent, mut received, mut delay) = (0_u64, 0_u64, 0);
    for _ in 0..MESSAGES / burst {
        for _ in 0..burst {
            let mut header = [0; MEASURED_IN_STREAM];
            header[..4].copy_from_slice(&(bytes.len() as u32).to_be_bytes());
            header[4..12].copy_from_slice(&sent.to_be_bytes());
            header[12..].copy_from_slice(&now().as_nanos().to_be_bytes());
            let parts = [IoSlice::new(&header), IoSlice::new(bytes)];
            assert_eq!(from.write_vectored(&parts).unwrap(), header.len() + bytes.len());
            sent += 1;
        }
        for _ in 0..burst {
            let mut header = [0; MEASURED_IN_STREAM];
            to.read_exact(&mut header).unwrap();
            let length = u32::from_be_bytes(header[..4].try_into().unwrap()) as usize;
            to.read_exact(&mut bytes[..length]).unwrap();
            let number = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().unwrap());
            assert_eq!(number(&header[4..12]), received);
            delay += now().as_nanos() - number(&header[12..]);
            received += 1;
        }
    }
    assert!(delay > 0);
}

/// The word that requests one turn.
const ONCE: &str = "once";

fn words() -> impl Iterator<Item = String> {
    std::env::args().skip(1).filter(|word| !word.starts_with('-'))
}

/// Returns whether the command line selects this comparison: it names a protocol, a kind, a size, some of
/// them, or nothing.
fn is_wanted(name: &str, kind: &str, size: usize) -> bool {
    let size = size.to_string();
    words().all(|word| [name, kind, &size, ONCE].contains(&word.as_str()))
}

/// A program that sends and receives messages in this memory.
type Run<'r> = &'r dyn Fn(&mut [u8]);
/// The time and the CPU time of a message, ns, of each program.
type Turn = Vec<(f64, f64)>;

/// Runs all by turns and prints the cost of a message: plain sockets, QoS sockets, and others for comparison.
fn compare((name, size, burst): (&str, usize, usize), programs: &[Run<'_>]) {
    let kind = if burst > 1 { "bursts" } else { "single" };
    if !is_wanted(name, kind, size) {
        return;
    }
    let mut bytes = vec![7; size];
    let mut measure = |program: usize| {
        let (time, cpu) = (now(), cpu_time());
        programs[program](&mut bytes);
        let each = |ns: u64| ns as f64 / MESSAGES as f64;
        (each(now().saturating_since(time).as_nanos()), each((cpu_time().saturating_sub(cpu)).as_nanos()))
    };
    (0..programs.len()).for_each(|program| {
        measure(program);
    });
    if words().any(|word| word == ONCE) {
        return;
    }
    let turns: Vec<Turn> = (0..TURNS)
        .map(|turn| {
            let mut all = vec![(0.0, 0.0); programs.len()];
            // None is always the first.
            for program in (0..programs.len()).map(|i| (i + turn) % programs.len()) {
                all[program] = measure(program);
            }
            all
        })
        .collect();
    let sorted = |of: &dyn Fn(&Turn) -> f64| {
        let mut values: Vec<f64> = turns.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let times = [0, 1].map(|program| sorted(&|turn| turn[program].0)[TURNS / 2]);
    let ratio = |other: usize| {
        let ratios = sorted(&|turn| turn[1].1 / turn[other].1);
        // The 14th and the 28th of 41 values: a confidence of 97 %.
        format!("{:>8.3} [{:.3}, {:.3}]", ratios[TURNS / 2], ratios[13], ratios[27])
    };
    let ratios: Vec<String> = (0..programs.len()).filter(|other| *other != 1).map(ratio).collect();
    println!("{name:>5} {size:>7} {kind:>8}  {:>10.0} {:>10.0}  {}", times[0], times[1], ratios.join("  "));
}
