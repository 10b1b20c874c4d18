//! Protection of a receiver beside other work of its processor: remedies, and their cost.
//!
//! A sender with priority on one processor, a receiver on another one beside threads that compute without end. Each row is a way of
//! receiving; rows take turns, so that the rest of the machine disturbs them alike. `cargo bench -p cutline-socket --bench protection --
//! [MBIT/S] [COMPETITORS] [TURNS]`, 65 Mbit/s, 4 competitors and 7 turns of 1 s by default. Requires two processors, and for the raised
//! priorities `CAP_SYS_NICE`.
//!
//! A second table has the processor time of receiving a message that waits, by the number of messages that one call receives.

use cutline_socket::{Peer, ProtectedThread, QosOptions, QosUdpListener, QosUdpSocket, RaisedPriority};
use cutline_sys::datagrams::{Inbox, Wait};
use cutline_sys::now;
use cutline_sys::thread::{cpu_time, set_realtime};
use cutline_units::{Duration, Instant};
use rustix::net::sockopt;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::hint::{black_box, spin_loop};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time;

const SIZE: usize = 8192;
const TURN: Duration = Duration::from_secs(1);
const LARGE_BUFFER: usize = 4 << 20;
/// Time after which a receiver without messages ends.
const SILENCE: time::Duration = time::Duration::from_millis(200);

/// The most messages that one call receives; 16 is that of the library.
const BATCHES: [usize; 5] = [1, 4, 16, 64, 256];
/// Number of messages that wait, and of times that they are received.
const WAITING: usize = 256;
const ROUNDS: usize = 200;

/// A method of receiving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Plain,
    LargeBuffer,
    /// The thread requests messages all the time.
    Polling,
    Raised(RaisedPriority),
    /// Raised, with the large buffer.
    Both(RaisedPriority),
}

const METHODS: [(&str, Method); 6] = [
    ("as it is", Method::Plain),
    ("buffer of 4 MiB", Method::LargeBuffer),
    ("busy polling", Method::Polling),
    ("nice -10", Method::Raised(RaisedPriority::Nice)),
    ("real time", Method::Raised(RaisedPriority::RealTime)),
    ("real time, buffer of 4 MiB", Method::Both(RaisedPriority::RealTime)),
];

/// Lost messages in per cent, the 99th percentile of the delay in ms, and the receiver's processor time in us per message.
type Values = [f64; 3];

fn main() {
    let numbers: Vec<u32> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let (mbps, competitors) = (numbers.first().copied().unwrap_or(65), numbers.get(1).copied().unwrap_or(4));
    let turns = numbers.get(2).copied().unwrap_or(7);
    let allowed = sched_getaffinity(None).expect("the kernel says so");
    let all: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
    let [.., sending, receiving] = all[..] else { panic!("two processors are needed") };
    let mut values: Vec<Vec<Values>> = vec![Vec::new(); METHODS.len()];
    for _ in 0..turns {
        for ((_, method), values) in METHODS.iter().zip(&mut values) {
            values.push(measure(*method, mbps, competitors, [sending, receiving]));
        }
    }
    println!(
        "{mbps} Mbit/s in messages of {SIZE} B beside {competitors} competitors; {turns} turns of {TURN}; median (smallest to largest)"
    );
    println!("| receiver | lost, % | delay of 99 %, ms | processor, us per message |");
    println!("| --- | --- | --- | --- |");
    for ((name, _), values) in METHODS.iter().zip(&values) {
        let cells: Vec<String> =
            (0..3).map(|at| cell(values.iter().map(|value| value[at]).collect())).collect();
        println!("| {name} | {} |", cells.join(" | "));
    }
    println!();
    println!(
        "{WAITING} waiting messages of {SIZE} B, received {ROUNDS} times; {turns} turns; median (smallest to largest)"
    );
    println!("| most messages of a call | processor, us per message |");
    println!("| --- | --- |");
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); BATCHES.len()];
    for _ in 0..turns {
        for (batch, times) in BATCHES.iter().zip(&mut times) {
            times.push(time_of_batch(*batch));
        }
    }
    for (batch, times) in BATCHES.iter().zip(times) {
        println!("| {batch} | {} |", cell(times));
    }
}

/// Returns the processor time of receiving a message that waits, us, with at most `batch` messages in a call.
fn time_of_batch(batch: usize) -> f64 {
    let [from, to] = ["127.0.0.1:0"; 2].map(|address| UdpSocket::bind(address).expect("the address is free"));
    let peer = from.local_addr().expect("it is bound");
    from.connect(to.local_addr().expect("it is bound")).expect("the address is known");
    to.connect(peer).expect("the address is known");
    sockopt::set_socket_recv_buffer_size_force(&to, LARGE_BUFFER).expect("the process may have it");
    Inbox::prepare(&to).expect("the kernel stamps datagrams");
    let mut inbox = Inbox::connected(SIZE, batch, peer);
    let message = [0_u8; SIZE];
    let (mut received, mut spent) = (0_usize, Duration::ZERO);
    for _ in 0..ROUNDS {
        for _ in 0..WAITING {
            from.send(&message).expect("the receiver is there");
        }
        let began = cpu_time();
        while let Ok(count) = inbox.fill(&to, Wait::No) {
            received += count;
        }
        spent += cpu_time().saturating_sub(began);
    }
    spent.as_secs_f64() * 1e6 / received.max(1) as f64
}

fn cell(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    format!("{:.2} ({:.2} to {:.2})", values[values.len() / 2], values[0], values[values.len() - 1])
}

fn pin(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).expect("the processor is available");
}

fn measure(method: Method, mbps: u32, competitors: u32, [sending, receiving]: [usize; 2]) -> Values {
    let options = || QosOptions::default().peer(Peer::Speaks).publish(false);
    let listener = QosUdpListener::bind("127.0.0.1:0", &options()).expect("the address is free");
    let to = listener.local_addr().expect("it is bound");
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..competitors {
            scope.spawn(|| {
                pin(receiving);
                let mut work = 0_u64;
                while !over.load(Ordering::Relaxed) {
                    work = black_box(work.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
                }
            });
        }
        let receiver = scope.spawn(|| {
            pin(receiving);
            let received = receive(&listener, method);
            over.store(true, Ordering::Relaxed);
            received
        });
        pin(sending);
        let sent = thread::spawn(move || {
            pin(sending);
            set_realtime();
            send(&QosUdpSocket::connect(to, &options()).expect("the peer listens"), mbps)
        });
        let sent = sent.join().expect("the sender works");
        let (mut delays, time) = receiver.join().expect("the receiver works");
        delays.sort_unstable();
        let late = delays.get(delays.len() * 99 / 100).map_or(f64::NAN, |delay| delay.as_millis_f64());
        let lost = 100.0 * (1.0 - delays.len() as f64 / sent as f64);
        [lost, late, time.as_secs_f64() * 1e6 / delays.len().max(1) as f64]
    })
}

/// Sends for a turn, and returns the number of messages.
fn send(socket: &QosUdpSocket, mbps: u32) -> u64 {
    let interval = Duration::from_secs_f64(SIZE as f64 * 8.0 / (f64::from(mbps) * 1e6));
    let (mut message, mut sent) = (vec![0; SIZE], 0);
    let (mut next, end) = (now(), now() + TURN);
    while next < end {
        let left = next.saturating_since(now());
        if !left.is_zero() {
            thread::park_timeout(time::Duration::from_nanos(left.as_nanos()));
            continue;
        }
        message[..8].copy_from_slice(&now().as_nanos().to_be_bytes());
        socket.send(&message).expect("the receiver is there");
        sent += 1;
        next += interval;
    }
    sent
}

/// Receives until nothing more arrives. Returns the delays, and the processor time of the thread.
fn receive(listener: &QosUdpListener, method: Method) -> (Vec<Duration>, Duration) {
    let protected = match method {
        Method::Raised(priority) | Method::Both(priority) => {
            Some(ProtectedThread::with(priority).expect("the process may raise it"))
        }
        Method::Plain | Method::LargeBuffer | Method::Polling => None,
    };
    let (socket, _) = listener.accept().expect("the peer connects");
    if matches!(method, Method::LargeBuffer | Method::Both(_)) {
        sockopt::set_socket_recv_buffer_size_force(&socket, LARGE_BUFFER).expect("the process may have it");
    }
    socket.set_read_timeout(Some(SILENCE)).expect("the time is allowed");
    socket.set_nonblocking(method == Method::Polling).expect("it can be set");
    let (mut buffer, mut delays, began) = (vec![0; SIZE], Vec::new(), cpu_time());
    let mut last = now();
    loop {
        if let Ok(length) = socket.recv(&mut buffer) {
            last = now();
            let at = buffer[..length]
                .first_chunk()
                .map(|bytes| Instant::ZERO + Duration::from_nanos(u64::from_be_bytes(*bytes)));
            delays.extend(at.map(|at| last.saturating_since(at)));
        } else if now().saturating_since(last) > Duration::from_millis(200) {
            break;
        } else {
            spin_loop();
        }
    }
    drop(protected);
    (delays, cpu_time().saturating_sub(began))
}
