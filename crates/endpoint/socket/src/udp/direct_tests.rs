//! Sockets for frames below IP, on the loopback interface and between two namespaces.

use super::*;
use crate::options::Marking;
use cutline_direct::DirectAddress;
use cutline_quality::spec::Specification;
use cutline_signal::monitor::MonitorParams;
use cutline_signal::negotiation::NegotiationParams;
use cutline_signal::rate_control::{RateControl, TfrcParams};
use cutline_sys::namespace::Namespace;
use cutline_sys::packet::open_without_headers;
use cutline_units::{Bytes, Rate};
use std::sync::mpsc::channel;
use std::thread;

const RUN: &str = "run the tests of cutline-socket as root";

fn may_run() -> bool {
    open_without_headers().map_err(|error| cutline_testbed::skip(error, RUN)).is_ok()
}

fn blocks(size: u64) -> Specification {
    Specification::builder().size(Bytes::new(size)).coerce_all().build().unwrap()
}

/// Options with short intervals, and with a minute for the peer: a thread of a busy machine may have no turn for seconds.
fn quick(options: QosOptions) -> QosOptions {
    let [first_timeout, give_up, interval] = [20, 60_000, 20].map(Duration::from_millis);
    options
        .detection(time::Duration::from_secs(60))
        .negotiation(NegotiationParams { first_timeout, give_up })
        .monitor(MonitorParams { interval, ..MonitorParams::default() })
}

fn patient(socket: &QosDirectSocket) {
    socket.set_read_timeout(Some(time::Duration::from_secs(60))).unwrap();
}

fn meet(listener: &QosDirectListener, options: &QosOptions) -> [QosDirectSocket; 2] {
    let to = listener.local_addr().unwrap();
    let ends = thread::scope(|scope| {
        let accepted = scope.spawn(|| listener.accept().unwrap().0);
        [QosDirectSocket::connect(to, options).unwrap(), accepted.join().unwrap()]
    });
    ends.iter().for_each(patient);
    ends
}

fn listener(options: QosOptions) -> QosDirectListener {
    QosDirectListener::bind("lo", 0, &quick(options)).unwrap()
}

fn soon(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = now().saturating_add(Duration::from_secs(60));
    while !is_so() {
        assert!(now() < until, "{what} comes");
        thread::sleep(time::Duration::from_millis(2));
    }
}

#[test]
fn both_ends_negotiate_send_and_measure_as_over_udp() {
    if !may_run() {
        return;
    }
    let listener = listener(QosOptions::both(blocks(65_536)).marking(Marking::Fixed(Hint::from_level(3))));
    let [ours, theirs] = meet(&listener, &quick(QosOptions::both(blocks(65_536))));
    assert!(ours.has_qos_peer() && theirs.has_qos_peer());
    let mut buffer = vec![0; 70_000];
    for (seed, length) in [1, 1024, 8192, 65_536].into_iter().enumerate() {
        let block = vec![seed as u8; length];
        for (from, to) in [(&ours, &theirs), (&theirs, &ours)] {
            assert_eq!(from.send(&block).unwrap(), length);
            assert_eq!(to.recv(&mut buffer).unwrap(), length);
            assert_eq!(buffer[..length], block);
        }
    }
    let mib = theirs.mib();
    assert_eq!((mib.receive.received.messages, mib.receive.received.lost()), (4, 0));
    assert_eq!(
        (mib.receive.contract.effective.clone(), mib.hint.map(Hint::level)),
        (blocks(65_536), Some(3))
    );
    soon("a report", || ours.mib().reports.used > 0);
    assert_eq!(ours.0.0.transport(), "direct");
    assert_eq!(theirs.peer_addr(), ours.local_addr().unwrap());
    let error = ours.send(&vec![0; 65_537]).unwrap_err();
    assert_eq!(error.to_string(), "a message of 65537 B: agreed on are at most 65536 B");
}

#[test]
fn several_ends_have_connections_on_one_port_and_the_listener_gets_none_of_their_frames() {
    if !may_run() {
        return;
    }
    let listener = listener(QosOptions::default());
    let ends: Vec<_> = (0..8).map(|_| meet(&listener, &quick(QosOptions::default()))).collect();
    let mut buffer = [0; 8];
    for (number, [ours, theirs]) in (0..).zip(&ends) {
        ours.send(&[number]).unwrap();
        assert_eq!((theirs.recv(&mut buffer).unwrap(), buffer[0]), (1, number));
    }
    listener.set_nonblocking(true).unwrap();
    assert_eq!(listener.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    // What an end sends before it is accepted is not lost.
    let to = listener.local_addr().unwrap();
    listener.set_nonblocking(false).unwrap();
    let (told, sent) = channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            let socket = QosDirectSocket::connect(to, &quick(QosOptions::default())).unwrap();
            (0..20_u8).for_each(|number| assert_eq!(socket.send(&[number; 3000]).unwrap(), 3000));
            told.send(socket).unwrap();
        });
        let accepted = listener.accept().unwrap().0;
        patient(&accepted);
        let mut buffer = [0; 4000];
        for number in 0..20 {
            assert_eq!((accepted.recv(&mut buffer).unwrap(), buffer[2999]), (3000, number));
        }
        drop(sent.recv().unwrap());
    });
}

#[test]
fn a_watched_descriptor_shows_messages_and_control_messages_are_taken() {
    if !may_run() {
        return;
    }
    let listener = listener(QosOptions::default());
    let [ours, theirs] = meet(&listener, &quick(QosOptions::default()));
    theirs.set_nonblocking(true).unwrap();
    let mut buffer = vec![0; 70_000];
    assert_eq!(theirs.recv(&mut buffer).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    let reports = theirs.mib().reports.used;
    soon("reports", || theirs.mib().reports.used > reports + 3);
    for length in [10, 66_000] {
        ours.send(&vec![1; length]).unwrap();
        soon("a message", || {
            let mut fds = [cutline_sys::reactor::PollFd::new(&theirs, cutline_sys::reactor::PollFlags::IN)];
            cutline_sys::reactor::wait(&mut fds, Duration::ZERO).unwrap()
                && matches!(theirs.recv(&mut buffer), Ok(received) if received == length)
        });
    }
}

#[test]
fn rate_control_paces_and_receives_feedback() {
    if !may_run() {
        return;
    }
    let listener = listener(QosOptions::default());
    let controlled = QosOptions::sending(blocks(1200)).rate_control(RateControl::Tfrc(TfrcParams::default()));
    let [ours, theirs] = meet(&listener, &quick(controlled));
    let first = ours.mib().tfrc.expect("there is rate control");
    // RFC 5348 section 4.2: a segment per second, until there is feedback.
    assert_eq!((first.rate, first.feedback), (Rate::from_bps(9600), 0));
    thread::scope(|scope| {
        let receives = scope.spawn(|| (0..200).all(|_| theirs.recv(&mut [0; 1300]).unwrap() == 1200));
        (0..200).for_each(|_| assert_eq!(ours.send(&[0; 1200]).unwrap(), 1200));
        assert!(receives.join().unwrap());
    });
    let figures = ours.mib().tfrc.unwrap();
    assert!(figures.feedback > 0 && figures.rate > first.rate, "{figures:?}");
}

/// Listens at a port that was closed. A child of another test that has not called exec yet holds a copy of its descriptor.
fn listen_again(port: u16, options: &QosOptions) -> QosDirectListener {
    let mut bound = None;
    soon("a free port", || {
        bound = QosDirectListener::bind("lo", port, options).ok();
        bound.is_some()
    });
    bound.unwrap()
}

#[test]
fn a_connection_whose_listener_starts_again_recovers() {
    if !may_run() {
        return;
    }
    let before = listener(QosOptions::default());
    let recovers = Specification::builder().recovery(Duration::from_secs(60)).coerce_all().build();
    let [ours, theirs] = meet(&before, &quick(QosOptions::both(recovers.unwrap())).reconnect(true));
    soon("reports of both", || ours.mib().reports.used > 0 && theirs.mib().reports.used > 0);
    let (to, own) = (before.local_addr().unwrap(), ours.local_addr().unwrap());
    drop((before, theirs));
    let after = listen_again(to.port, &quick(QosOptions::default()));
    let theirs = after.accept().unwrap().0;
    patient(&theirs);
    soon("a new session", || ours.mib().feedback.reconnections == 1);
    assert_ne!(ours.local_addr().unwrap(), own, "it has another port");
    let mut buffer = [0; 10];
    soon("a message", || ours.send(b"anew").is_ok());
    assert_eq!(theirs.recv(&mut buffer).unwrap(), 4);
}

/// A thread of this library may be serving a socket that its application closes.
#[test]
fn the_port_of_closed_sockets_is_free() {
    if !may_run() {
        return;
    }
    let before = listener(QosOptions::default());
    let [ours, theirs] = meet(&before, &quick(QosOptions::default()));
    let port = before.local_addr().unwrap().port;
    // As that thread does.
    let served = [&ours, &theirs].map(|socket| Arc::clone(&socket.0.0));
    drop(before);
    let again = QosDirectListener::bind("lo", port, &QosOptions::default());
    assert!(again.is_err(), "a connection keeps it");
    drop((ours, theirs));
    let _after = listen_again(port, &QosOptions::default());
    // It meets no connection and no data.
    for connection in served {
        connection.serve(now());
    }
}

#[test]
fn options_and_addresses_that_are_not_possible_are_named() {
    if !may_run() {
        return;
    }
    let options = QosOptions::default();
    let says = |error: QosError| error.to_string();
    let error = says(QosDirectListener::bind("nosuch0", 1, &options).unwrap_err());
    assert!(error.starts_with("cannot listen: there is no interface `nosuch0`; there are: "), "{error}");
    let held = listener(options.clone());
    let error = says(QosDirectListener::bind("lo", held.local_addr().unwrap().port, &options).unwrap_err());
    assert!(error.contains(" of frames cannot be used: "), "{error}");
    let reserved = options.clone().service("local", &crate::Access::default()).unwrap();
    let error = says(QosDirectListener::bind("lo", 0, &reserved).unwrap_err());
    assert!(error.contains("frames below IP cross no router"), "{error}");
}

#[test]
fn messages_that_a_full_buffer_loses_are_counted_and_the_others_are_whole() {
    if !may_run() {
        return;
    }
    let listener = listener(QosOptions::default());
    let [ours, theirs] = meet(&listener, &quick(QosOptions::default()));
    // So the thread that serves connections leaves messages in the kernel.
    rustix::net::sockopt::set_socket_recv_buffer_size(&theirs, 65_536).unwrap();
    (0..100_u8).for_each(|number| assert_eq!(ours.send(&[number; 8192]).unwrap(), 8192));
    theirs.set_nonblocking(true).unwrap();
    let (mut buffer, mut received) = (vec![0; 9000], 0);
    // On a busy machine some come later.
    let mut has_last = || {
        while let Ok(length) = theirs.recv(&mut buffer) {
            if length == 4 {
                return true;
            }
            assert_eq!(length, 8192);
            assert!(buffer[..length].iter().all(|byte| *byte == buffer[0]));
            received += 1;
        }
        false
    };
    assert!(!has_last());
    ours.send(b"last").unwrap();
    soon("the last", has_last);
    assert!((1..100).contains(&received), "{received}");
    let counted = theirs.mib().receive.received;
    assert_eq!((counted.messages, counted.lost()), (received + 1, 100 - received));
    // Of both kinds: control messages may have been among them.
    assert!(counted.overflowed >= 100 - received, "{counted:?}");
}

/// Frames of 1500 B between two hosts, of which each has its own interface and link address.
#[test]
fn long_messages_cross_a_link_whole() {
    if !may_run() || !cutline_testbed::may_make_namespaces(RUN) {
        return;
    }
    let [a, b] = ["direa", "direb"].map(|label| Namespace::create(label).unwrap());
    let veth = "link add host type veth peer name host netns";
    a.ip_batch(&format!("{veth} {}\nlink set host address 02:00:00:00:00:0a up\n", b.name())).unwrap();
    b.ip_batch("link set host address 02:00:00:00:00:0b up\n").unwrap();
    let (ready, listening) = channel();
    let (finished, over) = channel::<()>();
    let options = quick(QosOptions::both(blocks(65_536)));
    thread::scope(|scope| {
        let (options, b) = (&options, &b);
        let receives = scope.spawn(move || {
            b.within(move || {
                let listener = QosDirectListener::bind("host", 7000, options).unwrap();
                ready.send(()).unwrap();
                let (socket, peer) = listener.accept().unwrap();
                assert_eq!(peer.link, [2, 0, 0, 0, 0, 10]);
                patient(&socket);
                let mut buffer = vec![0; 70_000];
                let received: Vec<_> = (0..20)
                    .map(|_| {
                        let length = socket.recv(&mut buffer).unwrap();
                        assert!(buffer[..length].iter().all(|byte| *byte == buffer[0]));
                        (length, buffer[0])
                    })
                    .collect();
                over.recv().unwrap();
                (received, socket.mib().receive.received)
            })
        });
        listening.recv().unwrap();
        let lengths: Vec<_> = (0..20_u8).map(|number| (1 + usize::from(number) * 3449, number)).collect();
        a.within(|| {
            let to: DirectAddress = "direct:host/02:00:00:00:00:0b:7000".parse().unwrap();
            let socket = QosDirectSocket::connect(to, options).unwrap();
            for (length, number) in &lengths {
                // One at a time: the buffer of the receiver has room for three of the longest.
                soon("room", || socket.send(&vec![*number; *length]).is_ok());
                thread::sleep(time::Duration::from_millis(5));
            }
            finished.send(()).unwrap();
        })
        .unwrap();
        let (received, counted) = receives.join().unwrap().unwrap();
        assert_eq!(received, lengths);
        assert_eq!((counted.messages, counted.lost()), (20, 0));
    });
}
