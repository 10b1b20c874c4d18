//! The cost of a packet at its ends: nanoseconds per acknowledged segment, and the sizes of a flow's state.
//!
//! `cargo bench -p cutline-transport [-- part of a row's name]`. The path has no delay and no heap: segments wait in a ring,
//! so almost all of the time is that of the state machines. Segments are destructured where they are returned, as by a
//! caller that inlines `transmit`; copying one through memory first costs 5 ns more. Each number is the best of several
//! rounds, because the machine may be busy.

use std::collections::VecDeque;
use std::hint::black_box;
use std::mem::size_of;
use std::sync::Arc;

use cutline_transport::{app, tcp, tfrc, udp};
use cutline_units::{Duration, Instant};

const ROUNDS: u32 = 300;
const SEGMENTS: u64 = 20_000;

/// Returns the time of the best round in nanoseconds per segment.
#[expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "a bench measures real time")]
fn best_of(run: &dyn Fn() -> u64) -> f64 {
    (0..ROUNDS)
        .map(|_| {
            let start = std::time::Instant::now();
            let done = run();
            start.elapsed().as_nanos() as f64 / done as f64
        })
        .fold(f64::INFINITY, f64::min)
}

/// The sender without a receiver.
fn sender_alone(params: &Arc<tcp::Params>) -> u64 {
    let mut sender = tcp::Sender::new(params, Instant::ZERO);
    sender.write_unlimited();
    let mut now = Instant::ZERO;
    let mut sent_at: VecDeque<Instant> = VecDeque::with_capacity(64);
    while let Some(segment) = sender.transmit(now) {
        sent_at.push_back(segment.sent_at);
    }
    let mut ack = tcp::Ack { ack: 0, echo: now, sack: tcp::SackBlocks::NONE, ece: false, marked: 0 };
    for _ in 0..SEGMENTS {
        now += Duration::from_micros(100);
        ack.ack += 1000;
        ack.echo = sent_at.pop_front().expect("something is always out");
        sender.on_ack(now, black_box(&ack));
        while let Some(segment) = sender.transmit(now) {
            sent_at.push_back(black_box(segment.sent_at));
        }
    }
    SEGMENTS
}

/// The ring without transports, whose cost is to be subtracted from the others.
fn ring_alone() -> u64 {
    let mut ring: VecDeque<Instant> = (0..30).map(Instant::from_nanos).collect();
    let mut ack =
        tcp::Ack { ack: 0, echo: Instant::ZERO, sack: tcp::SackBlocks::NONE, ece: false, marked: 0 };
    for n in 0..SEGMENTS {
        ack.ack += 1000;
        ack.echo = ring.pop_front().expect("it is never empty");
        let segment = tcp::Segment {
            seq: black_box(&ack).ack,
            sent_at: Instant::from_nanos(n),
            len: 1000,
            retransmission: false,
            cwr: false,
            fin: false,
        };
        ring.push_back(black_box(segment.sent_at));
    }
    SEGMENTS
}

/// Both ends; one segment in `lose` is lost, none when it is 0.
fn both_ends(params: &Arc<tcp::Params>, lose: u64) -> u64 {
    let mut sender = tcp::Sender::new(params, Instant::ZERO);
    let mut receiver = tcp::Receiver::new(params);
    sender.write_unlimited();
    let mut now = Instant::ZERO;
    let mut path = VecDeque::with_capacity(4096);
    let mut sent = 0;
    while sent < SEGMENTS {
        while let Some(segment) = sender.transmit(now) {
            sent += 1;
            if lose == 0 || sent % lose != 0 {
                path.push_back(segment);
            }
        }
        now += Duration::from_micros(100);
        if let Some(segment) = path.pop_front() {
            if let Some(ack) = receiver.on_segment(now, &segment, false) {
                sender.on_ack(now, black_box(&ack));
            }
        } else {
            now = sender.deadline();
            sender.on_deadline(now);
        }
    }
    sent
}

fn tfrc_ends() -> u64 {
    let params = Arc::new(tfrc::Params::default());
    let mut sender = tfrc::Sender::new(&params, Instant::ZERO);
    let mut receiver = tfrc::Receiver::new(&params);
    sender.write_unlimited();
    let mut now = Instant::ZERO;
    let mut sent = 0;
    while sent < SEGMENTS {
        while let Some(packet) = sender.transmit(now) {
            sent += 1;
            if sent % 100 != 0
                && let Some(feedback) = receiver.on_packet(now + Duration::from_millis(50), &packet, false)
            {
                sender.on_feedback(now + Duration::from_millis(50), black_box(&feedback));
            }
        }
        now = sender.deadline().max(now);
        sender.on_deadline(now);
        if let Some(feedback) = receiver.on_deadline(now) {
            sender.on_feedback(now, black_box(&feedback));
        }
    }
    sent
}

fn sizes() {
    let rows = [
        ("tcp::Segment", size_of::<tcp::Segment>()),
        ("tcp::Ack", size_of::<tcp::Ack>()),
        ("tcp::Sender", size_of::<tcp::Sender>()),
        ("tcp::Receiver", size_of::<tcp::Receiver>()),
        ("tfrc::Packet", size_of::<tfrc::Packet>()),
        ("tfrc::Feedback", size_of::<tfrc::Feedback>()),
        ("tfrc::Sender", size_of::<tfrc::Sender>()),
        ("tfrc::Receiver", size_of::<tfrc::Receiver>()),
        ("udp::Datagram", size_of::<udp::Datagram>()),
        ("udp::Sender", size_of::<udp::Sender>()),
        ("udp::Receiver", size_of::<udp::Receiver>()),
        ("app::App", size_of::<app::App>()),
    ];
    for (name, bytes) in rows {
        println!("{name:<34} {bytes:>8} B");
    }
}

fn main() {
    // The window is limited, as in a network: with unlimited growth the cache would be measured.
    let held = tcp::Params { max_window: Some(30), ..tcp::Params::default() };
    let newreno = Arc::new(held.clone());
    let sack = Arc::new(tcp::Params { sack: true, ..held.clone() });
    let variant = tcp::Variant { grow_only_when_limited: false, ..held.variant };
    let avoiding = tcp::Params { variant, initial_ssthresh: Some(30), ..held };
    let cubic = Arc::new(tcp::Params { algorithm: tcp::Algorithm::Cubic, ..avoiding });
    let avoiding = Arc::new(avoiding);
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with("--")).unwrap_or_default();
    let row = |name: &str, run: &dyn Fn() -> u64| {
        if name.contains(&wanted) {
            println!("{name:<34} {:>8.1} ns a segment", best_of(run));
        }
    };
    row("(the bench's own ring)", &ring_alone);
    row("NewReno on_ack + transmit", &|| sender_alone(&newreno));
    row("NewReno growing", &|| sender_alone(&avoiding));
    row("SACK on_ack + transmit", &|| sender_alone(&sack));
    row("CUBIC growing", &|| sender_alone(&cubic));
    row("NewReno both ends", &|| both_ends(&newreno, 0));
    row("NewReno both ends, 1 % lost", &|| both_ends(&newreno, 100));
    row("SACK both ends, 1 % lost", &|| both_ends(&sack, 100));
    row("TFRC both ends, 1 % lost", &tfrc_ends);
    sizes();
}
