//! Datagram connections whose peer is gone.

use super::*;
use crate::options::Peer;
use cutline_quality::spec::Specification;
use cutline_signal::monitor::MonitorParams;
use cutline_signal::negotiation::NegotiationParams;
use cutline_signal::session::Cause;
use cutline_testbed::take_again;
use std::net::Ipv4Addr;
use std::thread;

const LOOPBACK: [&str; 2] = ["127.0.0.1:0", "[::1]:0"];

const fn ms(time: u64) -> time::Duration {
    time::Duration::from_millis(time)
}

fn quick(options: QosOptions) -> QosOptions {
    let [first_timeout, give_up, interval] = [20, 300, 20].map(Duration::from_millis);
    options
        .negotiation(NegotiationParams { first_timeout, give_up })
        .monitor(MonitorParams { interval, ..MonitorParams::default() })
}

fn within(time: u64) -> QosOptions {
    let recovers = Specification::builder().recovery(Duration::from_millis(time)).coerce_all().build();
    // An attempt that takes long on a busy machine is not given up. Otherwise the listener would accept an abandoned connection.
    let negotiation =
        NegotiationParams { first_timeout: Duration::from_millis(20), give_up: Duration::from_secs(60) };
    quick(QosOptions::both(recovers.unwrap())).negotiation(negotiation).reconnect(true)
}

fn listener(place: impl ToSocketAddrs) -> QosUdpListener {
    // What an end that does not know it is gone continues to send is no plain client.
    let options = quick(QosOptions::default()).peer(Peer::Speaks);
    take_again(|| QosUdpListener::bind(&place, &options)).unwrap()
}

fn connect(listener: &QosUdpListener, options: &QosOptions) -> [QosUdpSocket; 2] {
    let to = listener.local_addr().unwrap();
    let ends = thread::scope(|scope| {
        let accepted = scope.spawn(|| listener.accept().unwrap().0);
        [QosUdpSocket::connect(to, options).unwrap(), accepted.join().unwrap()]
    });
    for socket in &ends {
        socket.set_read_timeout(Some(ms(60_000))).unwrap();
        // Both have reported, so each knows how often the other one does.
        while socket.mib().reports.used == 0 {
            thread::sleep(ms(5));
        }
    }
    ends
}

/// Waits for an event of the connection's life.
fn next(socket: &QosUdpSocket) -> SessionEvent {
    loop {
        let event = socket.wait_for_event(ms(60_000)).expect("an event in time");
        if matches!(
            event,
            SessionEvent::Lost { .. } | SessionEvent::Recovered { .. } | SessionEvent::GaveUp { .. }
        ) {
            return event;
        }
    }
}

/// Accepts the connection that takes the place of a lost one, and waits until it is taken up. On a busy machine an attempt may have no turn for
/// so long that it is abandoned. The next attempt then has another connection.
fn accept_again(listener: &QosUdpListener, ours: &QosUdpSocket) -> QosUdpSocket {
    listener.set_nonblocking(true).unwrap();
    let (mut last, begin) = (None, now());
    loop {
        let was_up = !ours.is_reconnecting();
        while let Ok((accepted, _)) = listener.accept() {
            last = Some(accepted);
        }
        if was_up && let Some(accepted) = last {
            listener.set_nonblocking(false).unwrap();
            return accepted;
        }
        assert!(now().saturating_since(begin) < Duration::from_secs(120), "it is not made again");
        thread::sleep(ms(1));
    }
}

fn is_loss(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionAborted
}

#[test]
fn an_end_that_has_vanished_is_an_event_in_bounded_time_without_any_specification() {
    // Its network is away: it sends nothing, without an error message.
    let listener = listener(LOOPBACK[0]);
    let [ours, theirs] = connect(&listener, &quick(QosOptions::default()));
    for _ in 0..3 {
        ours.send(b"one").unwrap();
        theirs.recv(&mut [0; 9]).unwrap();
    }
    while ours.mib().send.received.messages < 3 {
        thread::sleep(ms(5));
    }
    // Events that are late would come in this time.
    thread::sleep(ms(100));
    assert!(ours.events().all(|event| matches!(event, SessionEvent::Agreed(_))), "nothing is lost before");
    // It goes to a port without a listener, where none is needed.
    let begin = now();
    let away = UdpSocket::bind("127.0.0.1:0").unwrap();
    rustix::net::connect(&theirs.0.socket, &away.local_addr().unwrap()).unwrap();
    let SessionEvent::Lost { cause: Cause::Silence(silence), sent, reported } = next(&ours) else {
        panic!("lost")
    };
    let took = now().saturating_since(begin);
    assert!(silence >= Duration::from_secs(1) && took < Duration::from_secs(60), "{silence}, {took}");
    assert_eq!((sent, reported), (3, 3));
    // It comes back.
    rustix::net::connect(&theirs.0.socket, &ours.local_addr().map(at_loopback).unwrap()).unwrap();
    let SessionEvent::Recovered { after, is_new: false } = next(&ours) else { panic!("it is heard again") };
    assert!(after >= silence && after < Duration::from_secs(60), "{after}");
    ours.send(b"two").unwrap();
    assert_eq!(theirs.recv(&mut [0; 9]).unwrap(), 3);
}

fn at_loopback(of: SocketAddr) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, of.port()).into()
}

#[test]
fn a_lost_peer_is_connected_to_again_when_a_listener_returns() {
    for place in LOOPBACK {
        let first = listener(place);
        let to = first.local_addr().unwrap();
        let [ours, theirs] = connect(&first, &within(60_000));
        let port = ours.local_addr().unwrap().port();
        for _ in 0..5 {
            ours.send(b"message").unwrap();
            theirs.recv(&mut [0; 9]).unwrap();
        }
        while ours.mib().send.received.messages < 5 {
            thread::sleep(ms(5));
        }
        theirs.send(b"left").unwrap();
        thread::sleep(ms(50));
        // The kernel reports that there is no longer a listener.
        drop((first, theirs));
        let SessionEvent::Lost { cause, sent: 5, reported: 5 } = next(&ours) else { panic!("lost") };
        assert!(cause.to_string().contains("refused"), "{cause}");
        let mut buffer = [0; 9];
        assert_eq!(ours.recv(&mut buffer).unwrap(), 4, "what came before comes first");
        thread::scope(|scope| {
            // Both wait for the new connection after they were notified.
            let receives = scope.spawn(|| {
                let mut buffer = [0; 9];
                assert!(is_loss(&ours.recv(&mut buffer).unwrap_err()));
                assert_eq!(ours.recv(&mut buffer).unwrap(), 6);
                buffer
            });
            let sends = scope.spawn(|| {
                assert!(is_loss(&ours.send(b"request").unwrap_err()));
                ours.send(b"request").unwrap();
            });
            // There is no listener for longer than between two attempts.
            thread::sleep(ms(300));
            let second = listener(to);
            let next_end = accept_again(&second, &ours);
            assert_eq!(next_end.recv(&mut buffer).unwrap(), 7);
            assert_eq!(&buffer[..7], b"request");
            next_end.send(b"answer").unwrap();
            sends.join().unwrap();
            assert_eq!(&receives.join().unwrap()[..6], b"answer");
            let SessionEvent::Recovered { after, is_new: true } = next(&ours) else { panic!("made again") };
            assert!(after >= Duration::from_millis(200) && after < Duration::from_secs(60), "{after}");
            let mib = ours.mib();
            assert_eq!((mib.feedback.reconnections, mib.send.sent.messages), (1, 1));
            assert!(mib.feedback.reconnected.is_some());
            assert_ne!(ours.local_addr().unwrap().port(), port);
            assert!(ours.has_qos_peer() && !ours.is_reconnecting());
        });
    }
}

#[test]
fn an_end_that_is_silent_is_connected_to_again_while_a_call_waits() {
    let listener = listener(LOOPBACK[0]);
    let [ours, theirs] = connect(&listener, &within(60_000));
    let away = UdpSocket::bind("127.0.0.1:0").unwrap();
    rustix::net::connect(&theirs.0.socket, &away.local_addr().unwrap()).unwrap();
    let begin = now();
    thread::scope(|scope| {
        let receives = scope.spawn(|| {
            let mut buffer = [0; 9];
            let error = ours.recv(&mut buffer).unwrap_err();
            assert!(is_loss(&error) && error.to_string().contains("has been silent"), "{error}");
            assert!(now().saturating_since(begin) < Duration::from_secs(60));
            assert_eq!(ours.recv(&mut buffer).unwrap(), 5);
        });
        let again = accept_again(&listener, &ours);
        again.send(b"hello").unwrap();
        receives.join().unwrap();
    });
}

#[test]
fn an_end_that_stays_away_is_given_up_in_bounded_time() {
    let first = listener(LOOPBACK[0]);
    let [ours, theirs] = connect(&first, &within(700));
    ours.set_nonblocking(true).unwrap();
    drop((first, theirs));
    let begin = now();
    assert!(matches!(next(&ours), SessionEvent::Lost { .. }));
    assert!(is_loss(&ours.send(b"one").unwrap_err()));
    assert_eq!(ours.send(b"two").unwrap_err().kind(), io::ErrorKind::WouldBlock);
    assert!(ours.is_reconnecting());
    let SessionEvent::GaveUp { after, cause } = next(&ours) else { panic!("given up") };
    let took = now().saturating_since(begin);
    assert!(after >= Duration::from_millis(700) && took < Duration::from_secs(60), "{after}, {took}");
    let text = format!("the connection was lost and could not be replaced within {after}: {cause}");
    assert!(text.contains("refused"), "{text}");
    for _ in 0..2 {
        assert_eq!(ours.send(b"three").unwrap_err().to_string(), text);
        assert_eq!(ours.recv(&mut [0; 9]).unwrap_err().to_string(), text);
    }
    assert!(!ours.is_reconnecting());
}
