//! Two sockets on the loopback interface.

mod agreement;
mod events;
mod hostile;
mod ports;
mod rate;
mod receiving;

use super::*;
use crate::awaited::both_ends_know;
use crate::options::Marking;
use crate::options::Peer;
use crate::signals::{Interruptible, sleep};
use cutline_quality::spec::{Preset, Specification};
use cutline_signal::frame::datagram_header;
use cutline_signal::negotiation::NegotiationParams;
use cutline_signal::rate_control::{RateControl, TfrcParams};
use cutline_signal::violation::ViolationOrigin;
use cutline_sys::datagrams::Inbox;
use cutline_sys::datagrams::Wait;
use cutline_sys::lock;
use cutline_sys::reactor::PollFd;
use cutline_sys::reactor::PollFlags;
use cutline_sys::reactor::wait;
use cutline_testbed::{LossyPath, in_time, take_again, undisturbed};
use cutline_translate::Path;
use cutline_units::Bytes;
use rustix::io::ioctl_fionread;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::thread;

const LOOPBACK: [&str; 2] = ["127.0.0.1:0", "[::1]:0"];

fn bulk() -> Specification {
    Specification::builder().size(Bytes::new(1200)).coerce_all().build().unwrap()
}

/// Options of an end that gives up soon.
fn quick(options: QosOptions) -> QosOptions {
    let [first_timeout, give_up] = [20, 300].map(Duration::from_millis);
    options.negotiation(NegotiationParams { first_timeout, give_up })
}

/// The options, with a minute for a peer that takes part: a thread of a busy machine may have no turn for seconds.
fn with_time(options: &QosOptions) -> QosOptions {
    let NegotiationParams { first_timeout, .. } = options.negotiation;
    let negotiation = NegotiationParams { first_timeout, give_up: Duration::from_secs(60) };
    options.clone().negotiation(negotiation).detection(time::Duration::from_secs(60))
}

/// Two connected sockets: the one that has asked, and the one that was accepted.
fn pair(address: &str, asks: &QosOptions, asked: &QosOptions) -> (QosUdpSocket, QosUdpSocket) {
    let [asks, asked] = [asks, asked].map(with_time);
    let listener = QosUdpListener::bind(address, &asked).unwrap();
    let to = listener.local_addr().unwrap();
    thread::scope(|scope| {
        let accepted = scope.spawn(|| listener.accept().unwrap().0);
        let connected = QosUdpSocket::connect(to, &asks).unwrap();
        (connected, accepted.join().unwrap())
    })
}

fn patient(socket: &QosUdpSocket) {
    socket.set_read_timeout(Some(time::Duration::from_secs(60))).unwrap();
}

/// The sockets of a path to a listener, which do not block: one towards the end that connects, and one towards the listener; and the address of the
/// first.
fn path_to(listener: SocketAddr) -> (UdpSocket, UdpSocket, SocketAddr) {
    let [front, back] = [0, 0].map(|_: u8| UdpSocket::bind(LOOPBACK[0]).unwrap());
    let here = front.local_addr().unwrap();
    back.connect(listener).unwrap();
    for socket in [&front, &back] {
        socket.set_nonblocking(true).unwrap();
    }
    (front, back, here)
}

/// Datagrams between two ends, each after some time. Of those of the end that connects each `lost`-th is lost. Ends when both have
/// been silent for two seconds.
fn slow_path(listener: SocketAddr, delay: Duration, lost: Option<u64>) -> SocketAddr {
    let (front, back, here) = path_to(listener);
    thread::spawn(move || {
        let mut under_way = VecDeque::<(Instant, bool, Vec<u8>)>::new();
        let (mut client, mut heard, mut bytes) = (None, now(), [0; 2000]);
        let mut number = 0;
        while now().saturating_since(heard) < Duration::from_secs(60) {
            while let Ok((length, from)) = front.recv_from(&mut bytes) {
                (client, heard, number) = (Some(from), now(), number + 1);
                if lost.is_none_or(|lost| number % lost > 0) {
                    under_way.push_back((heard + delay, true, bytes[..length].to_vec()));
                }
            }
            while let Ok(length) = back.recv(&mut bytes) {
                heard = now();
                under_way.push_back((heard + delay, false, bytes[..length].to_vec()));
            }
            while let Some((_, forward, bytes)) = under_way.pop_front_if(|it| it.0 <= now()) {
                let _lost = if forward { back.send(&bytes) } else { front.send_to(&bytes, client.unwrap()) };
            }
            thread::sleep(time::Duration::from_micros(500));
        }
    });
    here
}

/// Waits until something holds.
fn soon(what: &str, holds: impl Fn() -> bool) {
    let begin = now();
    while !holds() {
        assert!(now().saturating_since(begin) < Duration::from_secs(60), "{what}");
        thread::sleep(time::Duration::from_millis(2));
    }
}

/// Both ends of a connection that is made while the listener accepts.
fn accepted(
    listener: &QosUdpListener,
    connect: impl FnOnce() -> QosUdpSocket,
) -> (QosUdpSocket, QosUdpSocket) {
    thread::scope(|scope| {
        let accepting = scope.spawn(|| listener.accept().unwrap().0);
        let ours = connect();
        (ours, accepting.join().unwrap())
    })
}
