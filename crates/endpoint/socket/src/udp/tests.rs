//! Two sockets on the loopback interface.

use super::*;
use crate::awaited::both_ends_know;
use crate::options::Marking;
use crate::options::Peer;
use crate::signals::sleep;
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
use cutline_testbed::{LossyPath, in_time, undisturbed};
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

/// Two connected sockets: the one that has asked, and the one that was accepted.
fn pair(address: &str, asks: &QosOptions, asked: &QosOptions) -> (QosUdpSocket, QosUdpSocket) {
    let listener = QosUdpListener::bind(address, asked).unwrap();
    let to = listener.local_addr().unwrap();
    thread::scope(|scope| {
        let accepted = scope.spawn(|| listener.accept().unwrap().0);
        let connected = QosUdpSocket::connect(to, asks).unwrap();
        (connected, accepted.join().unwrap())
    })
}

fn patient(socket: &QosUdpSocket) {
    socket.set_read_timeout(Some(time::Duration::from_secs(60))).unwrap();
}

#[test]
fn messages_cross_and_both_ends_know_what_was_agreed_on() {
    for (address, key) in LOOPBACK.into_iter().zip([None, Some([b'k'; 32])]) {
        let with_key = |options: QosOptions| match key {
            Some(key) => options.key(&key).unwrap(),
            None => options,
        };
        let (asks, asked) = (QosOptions::sending(bulk()), QosOptions::receiving(bulk()));
        let (ours, theirs) = pair(address, &with_key(asks), &with_key(asked));
        assert!(ours.has_qos_peer() && theirs.has_qos_peer());
        assert!(matches!((ours.event(), theirs.event()), (Some(Event::Agreed(_)), Some(Event::Agreed(_)))));
        patient(&theirs);
        patient(&ours);
        let mut buffer = [0; 2000];
        for i in 0..100_u8 {
            assert_eq!(ours.send(&[i; 700]).unwrap(), 700);
            assert_eq!(theirs.recv(&mut buffer).unwrap(), 700);
            assert_eq!(buffer[..700], [i; 700]);
            theirs.send(b"answer").unwrap();
            assert_eq!(ours.recv(&mut buffer[..3]).unwrap(), 3);
        }
        assert_eq!(theirs.send(b"").unwrap(), 0);
        assert_eq!(ours.recv(&mut buffer).unwrap(), 0);
        let mib = theirs.mib();
        assert_eq!((mib.receive.received.messages, mib.receive.received.bytes), (100, 70_000));
        assert_eq!((mib.receive.received.lost(), mib.send.sent.messages), (0, 101));
        assert_eq!(mib.receive.contract.effective, bulk());
        let error = ours.send(&[0; 1201]).unwrap_err();
        assert_eq!(error.to_string(), "a message of 1201 B: agreed on are at most 1200 B");
    }
}

#[test]
fn several_ends_come_to_one_listener() {
    let listener = QosUdpListener::bind("127.0.0.1:0", &QosOptions::default()).unwrap();
    let to = listener.local_addr().unwrap();
    thread::scope(|scope| {
        let ends: Vec<_> = (0..8_u8)
            .map(|i| {
                scope.spawn(move || {
                    let socket = QosUdpSocket::connect(to, &QosOptions::default()).unwrap();
                    patient(&socket);
                    socket.send(&[i]).unwrap();
                    let mut answer = [0; 8];
                    assert_eq!(socket.recv(&mut answer).unwrap(), 2);
                    assert_eq!(answer[..2], [i, i]);
                })
            })
            .collect();
        for _ in &ends {
            let (socket, _) = listener.accept().unwrap();
            patient(&socket);
            let mut message = [0; 8];
            assert_eq!(socket.recv(&mut message).unwrap(), 1);
            socket.send(&[message[0], message[0]]).unwrap();
        }
        for end in ends {
            end.join().unwrap();
        }
    });
}

#[test]
fn a_plain_peer_is_served_in_both_roles() {
    // A plain server that answers only messages that it understands.
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = server.local_addr().unwrap();
    let ours = QosUdpSocket::connect(to, &quick(QosOptions::sending(bulk()))).unwrap();
    assert!(!ours.has_qos_peer());
    assert!(matches!(ours.event(), Some(Event::OneSided(_))));
    ours.send(b"hello").unwrap();
    let mut buffer = [0; 100];
    let (length, from) = loop {
        // The offers came first.
        let (length, from) = server.recv_from(&mut buffer).unwrap();
        if buffer[0] != 0xc7 {
            break (length, from);
        }
    };
    assert_eq!(&buffer[..length], b"hello");
    server.send_to(b"hi", from).unwrap();
    patient(&ours);
    assert_eq!((ours.recv(&mut buffer).unwrap(), &buffer[..2]), (2, &b"hi"[..]));
    assert_eq!((ours.mib().receive.received.messages, ours.mib().send.sent.messages), (1, 1));

    let listener = QosUdpListener::bind("127.0.0.1:0", &QosOptions::default()).unwrap();
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(listener.local_addr().unwrap()).unwrap();
    for text in ["one", "two"] {
        client.send(text.as_bytes()).unwrap();
    }
    let (theirs, from) = listener.accept().unwrap();
    assert_eq!((from, theirs.has_qos_peer()), (client.local_addr().unwrap(), false));
    for text in ["one", "two"] {
        let length = theirs.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], text.as_bytes());
    }
    theirs.send(b"three").unwrap();
    assert_eq!(client.recv(&mut buffer).unwrap(), 5);
}

#[test]
fn an_end_that_must_take_part_and_does_not_is_an_error() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = server.local_addr().unwrap();
    for options in [QosOptions::default().peer(Peer::Speaks), QosOptions::default().key(&[7; 32]).unwrap()] {
        let error = QosUdpSocket::connect(to, &quick(options)).map(drop).unwrap_err();
        assert!(matches!(error, QosError::NoPeer(_)), "{error}");
    }
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = QosUdpSocket::connect(nobody, &quick(QosOptions::default())).map(drop).unwrap_err();
    assert!(error.to_string().starts_with("cannot reach the peer: Connection refused"), "{error}");
}

#[test]
fn what_the_ends_do_not_agree_on_is_named() {
    let strict = |loss| Specification::builder().loss(loss).build().unwrap();
    let listener = QosUdpListener::bind("127.0.0.1:0", &QosOptions::receiving(strict(0.0))).unwrap();
    let to = listener.local_addr().unwrap();
    thread::spawn(move || listener.accept().map(drop));
    let error = QosUdpSocket::connect(to, &QosOptions::sending(strict(1.0))).map(drop).unwrap_err();
    let text =
        "the peer does not agree: send: loss = 0 contradicts loss = 1 of the peer: coerce loss, or weaken it";
    assert_eq!(error.to_string(), text);
}

#[test]
fn a_sender_is_held_to_its_rate() {
    let spec =
        Specification::builder().rates(1.0, 20.0, 20.0).size(Bytes::new(100)).coerce_all().build().unwrap();
    // So slow that no pause of the machine is long enough for another message.
    let slow = spec.clone().change().rates(0.01, 0.02, 0.02).build().unwrap();
    for (pacing, expected) in [(Pacing::Refuse, 2), (Pacing::Count, 10)] {
        let options = QosOptions::sending(slow.clone()).pacing(pacing);
        let (ours, _theirs) = pair("127.0.0.1:0", &options, &QosOptions::default());
        // Ten at once: two are allowed, since timers may be late.
        let sent = (0..10).filter(|_| ours.send(&[1; 100]).is_ok()).count();
        assert_eq!(sent, expected, "{pacing:?}");
        let feedback = ours.mib().feedback;
        assert_eq!(feedback.pacing_waits as usize + sent, 10, "{feedback:?}");
        assert!(feedback.unpaced >= if pacing == Pacing::Count { 7 } else { 0 });
    }
    let (ours, _theirs) = pair("127.0.0.1:0", &QosOptions::sending(spec), &QosOptions::default());
    let begin = now();
    (0..7).for_each(|_| assert_eq!(ours.send(&[1; 100]).unwrap(), 100));
    // Five of them wait for 50 ms each. Nothing makes it shorter.
    assert!(now().saturating_since(begin) >= Duration::from_millis(249));
    assert!(ours.mib().feedback.waited >= Duration::from_millis(240));
}

#[test]
fn every_datagram_has_the_code_point() {
    for address in LOOPBACK {
        let server = UdpSocket::bind(address).unwrap();
        Inbox::prepare(&server).unwrap();
        let options = quick(QosOptions::default().marking(Marking::Fixed(Hint::from_level(6))));
        let ours = QosUdpSocket::connect(server.local_addr().unwrap(), &options).unwrap();
        for _ in 0..5 {
            ours.send(b"marked").unwrap();
        }
        let (mut inbox, mut seen) = (Inbox::default(), 0);
        while seen < 6 {
            // Offers, and the messages: (6 - 1) << 2 | 3 is the code point, with the ECN bits behind it.
            let count = inbox.fill(&server, Wait::ForOne).unwrap();
            for number in 0..count {
                assert_eq!(inbox.datagram(number).unwrap().traffic_class, Some(((6 - 1) << 2 | 3) << 2));
            }
            seen += count;
        }
    }
}

#[test]
fn reports_come_without_the_application_doing_anything() {
    let (ours, theirs) =
        pair("127.0.0.1:0", &QosOptions::sending(Preset::Audio.specification()), &QosOptions::default());
    ours.send(&[1; 160]).unwrap();
    let begin = now();
    while ours.mib().send.received.messages == 0 {
        assert!(now().saturating_since(begin) < Duration::from_secs(60), "{:?}", theirs.mib());
        thread::sleep(time::Duration::from_millis(5));
    }
    let mut buffer = [0; 200];
    assert_eq!(theirs.recv(&mut buffer).unwrap(), 160, "what was measured can still be read");
}

#[test]
fn either_end_can_ask_for_something_else() {
    let (ours, theirs) = pair("127.0.0.1:0", &QosOptions::sending(bulk()), &QosOptions::receiving(bulk()));
    let small = Specification::builder().size(Bytes::new(300)).coerce_all().build().unwrap();
    theirs.renegotiate(ConnectionSpecification { receive: small, ..ConnectionSpecification::default() });
    let wait = |socket: &QosUdpSocket| loop {
        let event = socket.wait_for_event(time::Duration::from_secs(60)).expect("an event in time");
        if let Event::Agreed(agreed) = event
            && agreed.send.effective.size.or(agreed.receive.effective.size) == Some(Bytes::new(300))
        {
            return;
        }
    };
    wait(&ours);
    wait(&theirs);
    assert!(ours.send(&[0; 301]).is_err() && ours.send(&[0; 300]).is_ok());
}

#[test]
fn the_descriptor_shows_messages_that_nobody_has_received() {
    let often = |options: QosOptions| {
        let interval = Duration::from_millis(10);
        quick(options).monitor(cutline_signal::monitor::MonitorParams { interval, ..Default::default() })
    };
    let (ours, theirs) = pair(LOOPBACK[0], &often(QosOptions::default()), &often(QosOptions::default()));
    let _watched = theirs.as_fd();
    let begin = now();
    while theirs.mib().reports.used <= 3 {
        let waited = now().saturating_since(begin);
        assert!(waited < Duration::from_secs(60), "the keeper takes reports: {:?}", theirs.mib());
        thread::sleep(time::Duration::from_millis(10));
    }
    for message in [b"one", b"two"] {
        ours.send(message).unwrap();
    }
    // The thread that serves connections could take the messages in this time, and must not.
    thread::sleep(time::Duration::from_millis(300));
    assert!(wait(&mut [PollFd::new(&theirs, PollFlags::IN)], Duration::ZERO).unwrap());
    assert!(!theirs.has_pending());
    let mut buffer = [0; 3];
    assert_eq!((theirs.recv(&mut buffer).unwrap(), &buffer), (3, b"one"));
    let is_shown = wait(&mut [PollFd::new(&theirs, PollFlags::IN)], Duration::ZERO).unwrap();
    assert!(theirs.has_pending() != is_shown, "it was received with the first one, or is in the kernel");
    assert_eq!((theirs.recv(&mut buffer).unwrap(), &buffer), (3, b"two"));
    assert!(!theirs.has_pending());
}

#[test]
fn a_listener_need_not_wait() {
    let listener = QosUdpListener::bind(LOOPBACK[0], &quick(QosOptions::default())).unwrap();
    listener.set_nonblocking(true).unwrap();
    assert_eq!(listener.accept().err().unwrap().kind(), io::ErrorKind::WouldBlock);
    let to = listener.local_addr().unwrap();
    let asks = thread::spawn(move || QosUdpSocket::connect(to, &quick(QosOptions::default())).unwrap());
    let accepted = loop {
        match listener.accept() {
            Ok((accepted, _)) => break accepted,
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
        wait(&mut [PollFd::new(&listener, PollFlags::IN)], Duration::from_millis(10)).unwrap();
    };
    assert!(accepted.has_qos_peer() && asks.join().unwrap().has_qos_peer());
}

#[test]
fn reports_do_not_make_a_timeout_longer_or_shorter() {
    for interval in [10, 90] {
        a_timeout_is_kept(Duration::from_millis(interval));
    }
}

fn a_timeout_is_kept(interval: Duration) {
    let often = |options: QosOptions| {
        quick(options).monitor(cutline_signal::monitor::MonitorParams { interval, ..Default::default() })
    };
    let (ours, theirs) = pair(LOOPBACK[0], &often(QosOptions::default()), &often(QosOptions::default()));
    ours.set_read_timeout(Some(time::Duration::from_millis(250))).unwrap();
    let begin = now();
    assert_eq!(ours.recv(&mut [0; 10]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    let took = now().saturating_since(begin);
    assert!(took >= Duration::from_millis(250) && took < Duration::from_secs(60), "{took}");
    assert!(theirs.has_qos_peer());
}

#[test]
fn a_silent_plain_server_is_recognised_within_the_time_of_detection() {
    let server = UdpSocket::bind(LOOPBACK[0]).unwrap();
    let to = server.local_addr().unwrap();
    let begin = now();
    let ours = QosUdpSocket::connect(to, &QosOptions::default()).unwrap();
    let took = now().saturating_since(begin);
    assert!(took >= Duration::from_millis(300) && took < Duration::from_secs(60), "{took}");
    assert!(!ours.has_qos_peer());
    assert!(matches!(
        ours.event(),
        Some(Event::OneSided(cutline_signal::negotiation::OneSidedReason::NoAnswer))
    ));
    // It asks three times, and never again.
    thread::sleep(time::Duration::from_millis(1200));
    server.set_nonblocking(true).unwrap();
    let offers = std::iter::from_fn(|| server.recv_from(&mut [0; 1000]).ok()).count();
    assert_eq!(offers, 3);
    assert_eq!(ours.mib().negotiation.sent, 3);
}

/// Datagrams between two ends, each after some time. Of those of the end that connects each `lost`-th is lost. Ends when both have
/// been silent for two seconds.
fn slow_path(listener: SocketAddr, delay: Duration, lost: Option<u64>) -> SocketAddr {
    let [front, back] = [0, 0].map(|_: u8| UdpSocket::bind(LOOPBACK[0]).unwrap());
    let here = front.local_addr().unwrap();
    back.connect(listener).unwrap();
    for socket in [&front, &back] {
        socket.set_nonblocking(true).unwrap();
    }
    thread::spawn(move || {
        let mut under_way = VecDeque::<(Instant, bool, Vec<u8>)>::new();
        let (mut client, mut heard, mut bytes) = (None, now(), [0; 2000]);
        let mut number = 0;
        while now().saturating_since(heard) < Duration::from_secs(2) {
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

/// A round trip of 400 ms is longer than the 300 ms of a path of which nothing is known.
#[test]
fn a_long_path_whose_round_trip_is_known_leaves_time_for_the_answer() {
    let listener = QosUdpListener::bind(LOOPBACK[0], &QosOptions::default()).unwrap();
    let to = slow_path(listener.local_addr().unwrap(), Duration::from_millis(200), None);
    thread::scope(|scope| {
        let accepts = scope.spawn(|| listener.accept().unwrap().0);
        let path = Path { rtt: Some(Duration::from_millis(400)), ..Path::default() };
        let ours = QosUdpSocket::connect(to, &QosOptions::default().path(path)).unwrap();
        assert!(ours.has_qos_peer());
        assert!(accepts.join().unwrap().has_qos_peer());
    });
}

#[test]
fn an_answer_that_comes_after_the_time_of_detection_does_no_harm() {
    let listener = QosUdpListener::bind(LOOPBACK[0], &QosOptions::default()).unwrap();
    let to = slow_path(listener.local_addr().unwrap(), Duration::from_millis(200), None);
    thread::scope(|scope| {
        let accepts = scope.spawn(|| listener.accept().unwrap().0);
        let options = QosOptions::default().detection(time::Duration::from_millis(100));
        let ours = QosUdpSocket::connect(to, &options).unwrap();
        assert!(!ours.has_qos_peer());
        // While the answers are under way.
        for i in 0..50_u8 {
            ours.send(&[i; 30]).unwrap();
            thread::sleep(time::Duration::from_millis(10));
        }
        let theirs = accepts.join().unwrap();
        assert!(!theirs.has_qos_peer(), "both ends take each other for plain ones");
        patient(&theirs);
        patient(&ours);
        let mut buffer = [0; 100];
        for i in 0..50_u8 {
            assert_eq!((theirs.recv(&mut buffer).unwrap(), buffer[0]), (30, i));
            theirs.send(&[i; 20]).unwrap();
        }
        for i in 0..50_u8 {
            assert_eq!((ours.recv(&mut buffer).unwrap(), buffer[0]), (20, i), "answers are no messages");
        }
    });
}

#[test]
fn receiving_ends_when_the_direction_was_shut_down() {
    let shut = |ours: &QosUdpSocket| {
        let messages = ours.mib().receive.received.messages;
        rustix::net::shutdown(ours, rustix::net::Shutdown::Read).unwrap();
        for _ in 0..3 {
            assert_eq!(ours.recv(&mut [0; 100]).unwrap(), 0);
        }
        assert_eq!(ours.mib().receive.received.messages, messages, "what was not sent is not counted");
        ours.send(b"sending goes on").unwrap();
    };
    let (ours, theirs) = pair(LOOPBACK[0], &QosOptions::default(), &QosOptions::default());
    theirs.send(b"before").unwrap();
    patient(&ours);
    assert_eq!(ours.recv(&mut [0; 100]).unwrap(), 6);
    shut(&ours);
    patient(&theirs);
    assert_eq!(theirs.recv(&mut [0; 100]).unwrap(), 15);

    let plain = UdpSocket::bind(LOOPBACK[0]).unwrap();
    let to = plain.local_addr().unwrap();
    shut(&QosUdpSocket::connect(to, &QosOptions::default().peer(Peer::Plain)).unwrap());
    assert_eq!(plain.recv(&mut [0; 100]).unwrap(), 15);
}

#[test]
fn the_kernel_says_what_waits_and_what_is_left_is_known() {
    let spec = || {
        Specification::builder()
            .rates(10.0, 1000.0, 2000.0)
            .size(Bytes::new(500))
            .coerce_all()
            .build()
            .unwrap()
    };
    let (ours, _theirs) = pair(LOOPBACK[0], &QosOptions::sending(spec()), &QosOptions::receiving(spec()));
    let mib = ours.mib();
    assert!(mib.feedback.send_buffer.unwrap() >= Bytes::new(500), "{:?}", mib.feedback);
    // On the loopback, sent datagrams have arrived.
    ours.send(&[0; 500]).unwrap();
    assert_eq!(ours.mib().feedback.send_queue, Some(Bytes::new(0)));
    let residual = || ours.mib().send.residual;
    while residual().is_none() {
        sleep(Duration::from_millis(10)).unwrap();
    }
    // 1000 messages/s of 500 B, minus the one that was sent in 500 ms; or none, if it came into the next interval.
    let left = residual().unwrap();
    assert!([998.0, 1000.0].contains(&left.rate), "{left:?}");
    assert_eq!(left.throughput.unwrap().as_bps() as f64, left.rate * 4000.0);
}

#[test]
fn an_application_that_reads_its_errors_itself_goes_on_to_do_so() {
    // An address at which no other test listens, so that its port stays closed.
    let nobody = UdpSocket::bind("127.0.0.77:0").unwrap().local_addr().unwrap();
    let socket = UdpSocket::bind(LOOPBACK[0]).unwrap();
    socket.connect(nobody).unwrap();
    assert!(cutline_sys::error_queue::enable(&socket).unwrap());
    let own = socket.try_clone().unwrap();
    let over = QosUdpSocket::over(socket, &QosOptions::default().peer(Peer::Plain)).unwrap();
    over.send(b"message").unwrap();
    over.set_nonblocking(true).unwrap();
    over.send(b"again").unwrap_err();
    assert!(cutline_sys::error_queue::take(&own).unwrap().is_some());
}

#[test]
fn an_error_that_the_service_thread_meets_is_that_of_the_next_call() {
    let nobody = UdpSocket::bind("127.0.0.78:0").unwrap().local_addr().unwrap();
    let socket = QosUdpSocket::connect(nobody, &QosOptions::default().peer(Peer::Plain)).unwrap();
    for receives in [false, true] {
        socket.send(b"message").unwrap();
        // Whether the thread has met it already is chance, so it is done here as well, when the thread is not at it.
        socket.0.hear(&mut lock(&socket.0.reader));
        let error =
            if receives { socket.recv(&mut [0; 9]).unwrap_err() } else { socket.send(b"again").unwrap_err() };
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused, "{error}");
    }
}

/// An end that sends its last message and closes at once: reports to it are refused, and the kernel reports that before the
/// message.
#[test]
fn a_message_that_came_before_an_error_is_received_before_it() {
    for nonblocking in [false, true] {
        let listener = UdpSocket::bind(LOOPBACK[0]).unwrap();
        let socket =
            QosUdpSocket::connect(listener.local_addr().unwrap(), &QosOptions::default().peer(Peer::Plain))
                .unwrap();
        socket.set_nonblocking(nonblocking).unwrap();
        socket.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        for last in [&b"last"[..], b"message"] {
            listener.send_to(last, socket.local_addr().unwrap()).unwrap();
        }
        drop(listener);
        // Its port is closed, which the loopback interface answers at once.
        socket.send(b"report").unwrap();
        let mut buffer = [0; 9];
        assert_eq!(socket.recv(&mut buffer).unwrap(), 4);
        assert_eq!(socket.recv(&mut buffer).unwrap(), 7);
        let error = socket.recv(&mut buffer).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused, "{error}");
    }
}

fn controlled() -> QosOptions {
    QosOptions::sending(bulk()).rate_control(RateControl::Tfrc(TfrcParams::default()))
}

/// An application that only sends, to one that only receives: who sends feedback and who takes it is the library. The equation with
/// 1200 B, 20 ms and a loss of 1 % gives 560 messages/s. The proxy adds about a millisecond to the path; the rule allows half of it to
/// once and a half, since the machine may be busy.
#[test]
fn a_rate_that_is_fair_to_tcp_is_found_over_a_path_that_loses() {
    undisturbed(rate_over_a_path_that_loses);
}

fn rate_over_a_path_that_loses() {
    let listener = QosUdpListener::bind(LOOPBACK[0], &QosOptions::default()).unwrap();
    let to = slow_path(listener.local_addr().unwrap(), Duration::from_millis(10), Some(100));
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let receives = scope.spawn(|| {
            let theirs = listener.accept().unwrap().0;
            theirs.set_read_timeout(Some(time::Duration::from_millis(100))).unwrap();
            while !is_over.load(Ordering::SeqCst) {
                let _length_or_time_out = theirs.recv(&mut [0; 2000]);
            }
            theirs.mib()
        });
        let ours = QosUdpSocket::connect(to, &controlled()).unwrap();
        let first = ours.mib().tfrc.expect("there is rate control");
        // RFC 5348 section 4.2: a segment per second, until there is feedback.
        assert_eq!((first.rate, first.rtt, first.feedback), (cutline_units::Rate::from_bps(9600), None, 0));
        let send_for = |seconds| {
            let (begin, mut sent) = (now(), 0);
            while now().saturating_since(begin) < Duration::from_secs(seconds) {
                ours.send(&[1; 1200]).unwrap();
                sent += 1;
            }
            sent / seconds
        };
        send_for(2);
        let rate = send_for(4);
        let (figures, feedback) = (ours.mib().tfrc.unwrap(), ours.mib().feedback);
        println!("{rate} messages/s, {figures:?}, {feedback:?}");
        is_over.store(true, Ordering::SeqCst);
        let rtt = figures.rtt.expect("there was feedback");
        assert!(rtt >= Duration::from_millis(20) && figures.refused == 0, "{figures:?}");
        assert!(rate > 0 && figures.feedback > 0 && figures.loss_event_rate > 0.0, "{figures:?}");
        let theirs = receives.join().unwrap();
        assert_eq!(theirs.tfrc, None, "it sends nothing that is controlled");

        in_time!(rtt < Duration::from_millis(40), "{figures:?}");
        in_time!((280..=840).contains(&rate), "{rate} messages/s, {figures:?}");
        in_time!(figures.feedback > 80, "{figures:?}");
        in_time!((0.003..0.03).contains(&figures.loss_event_rate), "{figures:?}");
        in_time!(feedback.pacing_waits > 1000, "{feedback:?}");
    });
}

#[test]
fn rate_control_refuses_counts_or_blocks_as_pacing_does() {
    // Neither application receives: only the library handles feedback.
    let deadline = || now().saturating_add(Duration::from_secs(20));
    let (ours, _theirs) = pair(LOOPBACK[0], &controlled().pacing(Pacing::Refuse), &QosOptions::default());
    let mut sent = 0;
    let until = deadline();
    while sent < 50 {
        sent += u32::from(ours.send(&[1; 1200]).is_ok());
        assert!(now() < until, "{sent} sent, {:?}", ours.mib().tfrc);
    }
    let mib = ours.mib();
    assert!(mib.feedback.pacing_waits > 0 && mib.tfrc.unwrap().feedback > 0, "{mib:?}");

    let (ours, _theirs) = pair(LOOPBACK[0], &controlled().pacing(Pacing::Count), &QosOptions::default());
    assert!((0..50).all(|_| ours.send(&[1; 1200]).is_ok()));
    assert!(ours.mib().feedback.unpaced > 0);

    let (ours, theirs) = pair(
        LOOPBACK[1],
        &controlled().key(&[7; 32]).unwrap(),
        &QosOptions::default().key(&[7; 32]).unwrap(),
    );
    ours.set_nonblocking(true).unwrap();
    let (mut sent, until) = (0, deadline());
    while sent < 50 {
        match ours.send(&[1; 1200]) {
            Ok(_) => sent += 1,
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
        // The descriptor of an application that is waited for shows messages for it, and they stay there.
        assert!(now() < until, "{sent} sent, {:?}", ours.mib().tfrc);
    }
    theirs.send(b"answer").unwrap();
    patient(&theirs);
    (0..50).for_each(|_| assert_eq!(theirs.recv(&mut [0; 2000]).unwrap(), 1200));
    assert_eq!(ours.mib().tfrc.unwrap().refused, 0);
}

#[test]
fn rate_control_needs_another_qos_socket_and_datagrams() {
    let server = UdpSocket::bind(LOOPBACK[0]).unwrap();
    let to = server.local_addr().unwrap();
    let error = QosUdpSocket::connect(to, &quick(controlled())).map(drop).unwrap_err();
    assert!(matches!(error, QosError::NoPeer(_)), "{error}");
    let error = QosUdpSocket::connect(to, &controlled().peer(Peer::Plain)).map(drop).unwrap_err();
    let text = "rate-control = tfrc: allowed is agreed with peer = plain: a plain socket sends no feedback";
    assert_eq!(error.to_string(), text);
    let text = "rate-control = tfrc: allowed is agreed for a stream, whose transport controls the rate";
    for peer in [Peer::Detect, Peer::Speaks, Peer::Plain] {
        let error = crate::QosTcpStream::connect(to, &controlled().peer(peer)).map(drop).unwrap_err();
        assert_eq!(error.to_string(), text);
    }
    let error = crate::QosTcpListener::bind(LOOPBACK[0], &controlled()).map(drop).unwrap_err();
    assert_eq!(error.to_string(), text);
    let params = TfrcParams { q: 2.0, ..TfrcParams::default() };
    let error = QosUdpListener::bind(LOOPBACK[0], &controlled().rate_control(RateControl::Tfrc(params)));
    assert!(error.map(drop).unwrap_err().to_string().starts_with("q = 2: allowed is"));
}

/// A path that repeats, replays and reorders datagrams, and loses none.
fn wild_path(listener: SocketAddr, seed: u64, is_over: &Arc<AtomicBool>) -> SocketAddr {
    let is_over = Arc::clone(is_over);
    let [front, back] = [0, 0].map(|_: u8| UdpSocket::bind(LOOPBACK[0]).unwrap());
    let here = front.local_addr().unwrap();
    back.connect(listener).unwrap();
    for socket in [&front, &back] {
        socket.set_nonblocking(true).unwrap();
    }
    thread::spawn(move || {
        let mut random = cutline_units::Streams::new(seed).stream("path", "wild");
        let mut ways: [Vec<Vec<u8>>; 2] = Default::default();
        let mut history: [Vec<Vec<u8>>; 2] = Default::default();
        let (mut client, mut bytes) = (None, [0; 2000]);
        while !is_over.load(Ordering::SeqCst) {
            thread::sleep(time::Duration::from_micros(200));
            if let Ok((length, from)) = front.recv_from(&mut bytes) {
                client = Some(from);
                ways[0].push(bytes[..length].to_vec());
            }
            if let Ok(length) = back.recv(&mut bytes) {
                ways[1].push(bytes[..length].to_vec());
            }
            for way in [0, 1] {
                let send = |bytes: &[u8]| match way {
                    0 => drop(back.send(bytes)),
                    _ => drop(front.send_to(bytes, client.unwrap())),
                };
                while random.uniform() < 0.8 && !ways[way].is_empty() {
                    let place = (random.uniform() * ways[way].len() as f64) as usize;
                    let datagram = ways[way].swap_remove(place);
                    (0..=(random.uniform() * 3.0) as usize).for_each(|_| send(&datagram));
                    history[way].push(datagram);
                    // An old one, perhaps of the negotiation.
                    let old = (random.uniform() * history[way].len() as f64) as usize;
                    send(&history[way][old]);
                }
            }
        }
    });
    here
}

#[test]
fn what_the_path_repeats_replays_and_reorders_arrives_once() {
    for (seed, key) in [(1, false), (2, true), (3, false), (4, true)] {
        let with = |options: QosOptions| {
            let options = options.peer(Peer::Speaks);
            if key { options.key(&[b'k'; 32]).unwrap() } else { options }
        };
        let listener = QosUdpListener::bind(LOOPBACK[0], &with(QosOptions::default())).unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let to = wild_path(listener.local_addr().unwrap(), seed, &is_over);
        let (ours, theirs) = thread::scope(|scope| {
            let accepts = scope.spawn(|| listener.accept().unwrap().0);
            (QosUdpSocket::connect(to, &with(QosOptions::default())).unwrap(), accepts.join().unwrap())
        });
        for (from, to) in [(&ours, &theirs), (&theirs, &ours)] {
            let sent: Vec<[u8; 40]> = (0..200).map(|i| [i; 40]).collect();
            thread::scope(|scope| {
                scope.spawn(|| {
                    for message in &sent {
                        from.send(message).unwrap();
                        thread::sleep(time::Duration::from_micros(300));
                    }
                });
                to.set_read_timeout(Some(time::Duration::from_millis(700))).unwrap();
                let mut received = Vec::new();
                let mut buffer = [0; 100];
                let begun = now();
                // After the last one, repeated ones may come.
                loop {
                    match to.recv(&mut buffer) {
                        Ok(length) => received.push(<[u8; 40]>::try_from(&buffer[..length]).unwrap()),
                        Err(_) if received.len() < 200 && now() - begun < Duration::from_secs(60) => {}
                        Err(_) => break,
                    }
                }
                received.sort_unstable();
                let times = |number: u8| received.iter().filter(|message| **message == [number; 40]).count();
                let wrong: Vec<_> =
                    (0..200).map(|i| (i, times(i))).filter(|(_, times)| *times != 1).collect();
                assert!(
                    wrong.is_empty() && received.len() == 200,
                    "seed {seed}: number and times: {wrong:?}"
                );
            });
            let mib = to.mib();
            assert!(mib.receive.received.duplicated > 0 && mib.receive.received.messages == 200);
        }
        is_over.store(true, Ordering::SeqCst);
    }
}

#[test]
fn datagrams_that_nobody_should_send_are_no_messages() {
    let (ours, theirs) = pair(LOOPBACK[0], &QosOptions::default(), &QosOptions::default());
    let Standing::Joined(token) = theirs.0.connection.standing() else { panic!("they have agreed") };
    let mut random = cutline_units::Streams::new(5).stream("datagrams", "wrong");
    theirs.set_read_timeout(Some(time::Duration::from_millis(100))).unwrap();
    let (stop, drained) = (Arc::new(AtomicBool::new(false)), theirs.clone());
    let stopped = Arc::clone(&stop);
    let drains = thread::spawn(move || {
        let mut messages = 0;
        loop {
            match drained.recv(&mut [0; 400]) {
                Ok(_) => messages += 1,
                Err(_) if stopped.load(Ordering::Relaxed) => return messages,
                Err(_) => {}
            }
        }
    });
    let mut lies = 0;
    for i in 0..2000_u64 {
        let noise: Vec<u8> =
            (0..(random.uniform() * 300.0) as usize).map(|_| (random.uniform() * 256.0) as u8).collect();
        let head = match i % 6 {
            0 => vec![],
            1 => datagram_header(token ^ 1, i, now(), None).to_vec(),
            2 => datagram_header(token, u64::MAX - i, now(), None)[..20].to_vec(),
            3 => vec![0xc7, 0x51, (i % 4) as u8, 1, 0, 40],
            4 => vec![0xc7, 0x53, 0xff, 0xff],
            _ => {
                lies += 1;
                let none = None::<fn(&[u8]) -> [u8; 32]>;
                ours.0.socket.send(&cutline_signal::frame::report(token, &noise, none)).unwrap();
                continue;
            }
        };
        // Past the layer, as another program could that sees the path.
        ours.0.socket.send(&[head, noise].concat()[..]).unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    assert_eq!(drains.join().unwrap(), 0, "nothing of it is a message");
    patient(&theirs);
    ours.send(b"honest").unwrap();
    let mut buffer = [0; 400];
    let length = theirs.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"honest");
    let mib = theirs.mib();
    assert_eq!(mib.receive.received.messages, 1);
    // A busy machine's socket loses some of them.
    assert!((1..=lies).contains(&mib.reports.refused) && mib.reports.used == 0, "{:?}", mib.reports);
    assert!(theirs.has_qos_peer());
}

/// Waits until something holds.
fn soon(what: &str, holds: impl Fn() -> bool) {
    let begin = now();
    while !holds() {
        assert!(now().saturating_since(begin) < Duration::from_secs(60), "{what}");
        thread::sleep(time::Duration::from_millis(2));
    }
}

#[test]
fn a_handler_is_called_with_each_event_and_may_call_the_socket() {
    let (ours, theirs) = pair(LOOPBACK[0], &QosOptions::sending(bulk()), &QosOptions::receiving(bulk()));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (kept, socket) = (Arc::clone(&seen), ours.clone());
    ours.on_event(move |event| {
        let name = thread::current().name().map(str::to_owned);
        // No lock is held.
        let _mib = (socket.mib(), socket.has_pending(), socket.local_addr());
        lock(&kept).push((event, name));
        panic!("on purpose, which ends nothing");
    });
    soon("what was agreed on before", || lock(&seen).len() == 1);
    let ask = |size| {
        let spec = Specification::builder().size(Bytes::new(size)).coerce_all().build().unwrap();
        theirs.renegotiate(ConnectionSpecification { receive: spec, ..ConnectionSpecification::default() });
    };
    ask(300);
    soon("a second event, after a panic", || lock(&seen).len() == 2);
    for (event, name) in lock(&seen).iter() {
        assert!(matches!(event, Event::Agreed(_)), "{event:?}");
        assert_eq!(name.as_deref(), Some("cutline-qos"));
    }
    assert_eq!(ours.events().count(), 2, "they can be taken as well");
    // Another one, that removes itself.
    let (count, socket) = (Arc::new(Mutex::new(0)), ours.clone());
    let counted = Arc::clone(&count);
    ours.on_event(move |_| {
        *lock(&counted) += 1;
        socket.remove_handler();
    });
    ask(200);
    soon("the other handler", || *lock(&count) == 1);
    ask(100);
    soon("a third event", || {
        ours.events().any(
            |event| matches!(event, Event::Agreed(it) if it.send.effective.size == Some(Bytes::new(100))),
        )
    });
    assert_eq!((*lock(&count), lock(&seen).len()), (1, 2));
    // The socket holds itself as a socket and as a connection.
    soon("both handlers are gone, and with them their clones", || Arc::strong_count(&ours.0) == 2);
}

#[test]
fn a_handler_that_was_removed_is_running_no_more() {
    let (ours, _theirs) = pair(LOOPBACK[0], &QosOptions::default(), &QosOptions::default());
    let (begun, ended) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (begins, ends) = (Arc::clone(&begun), Arc::clone(&ended));
    ours.on_event(move |_| {
        begins.store(true, Ordering::SeqCst);
        // A handler that takes its time.
        thread::sleep(time::Duration::from_millis(100));
        ends.store(true, Ordering::SeqCst);
    });
    soon("the handler", || begun.load(Ordering::SeqCst));
    ours.remove_handler();
    assert!(ended.load(Ordering::SeqCst));
}

/// A plain socket at a port of this host, or at any.
fn at_port(port: u16) -> UdpSocket {
    UdpSocket::bind(("127.0.0.1", port)).unwrap()
}

/// Both ends of a connection that is made while the listener accepts.
fn met(listener: &QosUdpListener, connect: impl FnOnce() -> QosUdpSocket) -> (QosUdpSocket, QosUdpSocket) {
    thread::scope(|scope| {
        let accepting = scope.spawn(|| listener.accept().unwrap().0);
        let ours = connect();
        (ours, accepting.join().unwrap())
    })
}

/// A program that ends and is started again with the same port. The peer does not know yet, and its reports still come.
#[test]
fn a_connection_from_the_same_port_takes_the_place_of_the_one_before() {
    let options = quick(QosOptions::sending(bulk()));
    let listener = QosUdpListener::bind(LOOPBACK[0], &quick(QosOptions::receiving(bulk()))).unwrap();
    let to = listener.local_addr().unwrap();
    let connect = |port| {
        let socket = at_port(port);
        socket.connect(to).unwrap();
        QosUdpSocket::over(socket, &options).unwrap()
    };
    let (first, theirs) = met(&listener, || connect(0));
    let port = first.local_addr().unwrap().port();
    soon("a report", || first.mib().reports.used > 0);
    let waiting = thread::spawn(move || theirs.recv(&mut [0; 10]));
    drop(first);
    let (second, theirs) = met(&listener, || connect(port));
    assert!(second.has_qos_peer(), "reports of the connection before are no messages of a plain end");
    assert_eq!(theirs.peer_addr().port(), port);
    let error = waiting.join().unwrap().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{error}");
    patient(&second);
    second.send(b"anew").unwrap();
    let mut buffer = [0; 10];
    patient(&theirs);
    assert_eq!(theirs.recv(&mut buffer).unwrap(), 4);
    theirs.send(b"and back").unwrap();
    assert_eq!(second.recv(&mut buffer).unwrap(), 8);
    soon("reports of the new one", || second.mib().reports.used > 0 && theirs.mib().reports.used > 0);
}

/// A thread of this library may be serving a socket that its application closes.
#[test]
fn the_port_of_a_closed_socket_is_free() {
    let listener = QosUdpListener::bind("127.0.0.1:0", &QosOptions::default()).unwrap();
    let to = listener.local_addr().unwrap();
    let socket = at_port(0);
    socket.connect(to).unwrap();
    let (ours, theirs) = met(&listener, || QosUdpSocket::over(socket, &QosOptions::default()).unwrap());
    let port = ours.local_addr().unwrap().port();
    // As that thread does.
    let [served, served_there] = [&ours, &theirs].map(|socket| Arc::clone(&socket.0));
    let copy = ours.clone();
    drop(ours);
    assert!(UdpSocket::bind(("127.0.0.1", port)).is_err(), "a clone keeps it open");
    drop(copy);
    at_port(port);
    let entrance = Arc::clone(&listener.entrance);
    drop((theirs, listener));
    at_port(to.port());
    // It meets no connection and no data.
    served.serve(now());
    served_there.serve(now());
    drop(entrance);
}

/// Programs that run one after another often get the port of one before, whose connection the peer still has.
#[test]
fn the_first_messages_from_the_port_of_an_end_before_arrive() {
    let listener = QosUdpListener::bind("127.0.0.1:0", &QosOptions::default()).unwrap();
    let to = listener.local_addr().unwrap();
    thread::spawn(move || {
        while let Ok((socket, _)) = listener.accept() {
            thread::spawn(move || {
                let mut data = [0; 100];
                while socket.recv(&mut data).is_ok_and(|length| socket.send(&data[..length]).is_ok()) {}
            });
        }
    });
    let port = at_port(0).local_addr().unwrap().port();
    for round in 0..50 {
        let socket = at_port(port);
        socket.connect(to).unwrap();
        let ours = QosUdpSocket::over(socket, &QosOptions::default()).unwrap();
        patient(&ours);
        let sent = [[round; 100], [round + 100; 100]];
        assert!(sent.iter().all(|message| ours.send(message).unwrap() == 100));
        let mut got = [[0; 100]; 2];
        assert!(got.iter_mut().all(|message| ours.recv(message).unwrap() == 100), "round {round}");
        // The second one may go past the first one while the connection before passes that on.
        got.sort_unstable();
        assert_eq!(got, sent);
    }
}

/// The kernel puts a datagram of another end into the queue of a connection if it found its socket before it was connected.
#[test]
fn a_message_of_another_end_in_the_queue_of_a_connection_goes_to_its_own() {
    let listener = QosUdpListener::bind("127.0.0.1:0", &QosOptions::default()).unwrap();
    let to = listener.local_addr().unwrap();
    let (ours, theirs) = met(&listener, || QosUdpSocket::connect(to, &QosOptions::default()).unwrap());
    listener.set_nonblocking(true).unwrap();
    for reads_itself in [false, true] {
        theirs.0.is_watched.store(reads_itself, Ordering::Relaxed);
        let other = at_port(0);
        other.connect(to).unwrap();
        {
            // The service thread would receive it before the socket is connected again.
            let _reader = lock(&theirs.0.reader);
            rustix::net::connect_unspec(&theirs.0.socket).unwrap();
            other.send(b"of another end").unwrap();
            rustix::net::connect(&theirs.0.socket, &ours.local_addr().unwrap()).unwrap();
            assert!(ioctl_fionread(&theirs.0.socket).unwrap() > 0, "the kernel prefers the newest socket");
        }
        theirs.0.hear(&mut lock(&theirs.0.reader));
        assert!(!theirs.has_pending());
        let accepted = RefCell::new(None);
        soon("a connection of its own", || {
            *accepted.borrow_mut() = listener.accept().ok();
            accepted.borrow().is_some()
        });
        let (its_own, peer) = accepted.take().unwrap();
        assert_eq!(peer, other.local_addr().unwrap());
        let mut buffer = [0; 20];
        patient(&its_own);
        assert_eq!(its_own.recv(&mut buffer).unwrap(), 14);
        assert_eq!(&buffer[..14], b"of another end");
    }
}

/// Offers in the peer's name are answered to it, and change nothing until it agrees.
#[test]
fn nobody_ends_a_connection_in_the_name_of_its_other_end() {
    let options = quick(QosOptions::sending(bulk()));
    let listener = QosUdpListener::bind(LOOPBACK[0], &quick(QosOptions::receiving(bulk()))).unwrap();
    let to = listener.local_addr().unwrap();
    let (ours, theirs) = met(&listener, || QosUdpSocket::connect(to, &options).unwrap());
    // The offer of another client, as its first datagram is.
    let other = at_port(0);
    let offer = {
        let (place, options) = (other.local_addr().unwrap(), options.clone());
        let connecting = thread::spawn(move || drop(QosUdpSocket::connect(place, &options)));
        let mut buffer = [0; 2000];
        let length = other.recv(&mut buffer).unwrap();
        connecting.join().unwrap();
        buffer[..length].to_vec()
    };
    listener.set_nonblocking(true).unwrap();
    for datagram in [&offer[..], b"plain", &offer, b"plain"] {
        ours.0.socket.send(datagram).unwrap();
        let before = theirs.mib().reports.used;
        soon("it goes on to hear reports", || theirs.mib().reports.used > before);
        assert!(listener.accept().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock));
    }
    patient(&theirs);
    ours.send(b"still").unwrap();
    assert_eq!(theirs.recv(&mut [0; 10]).unwrap(), 5);
}

/// A program with a listener is started again. What connections with the one before send is not taken for messages of plain ends.
#[test]
fn a_listener_that_was_started_again_takes_no_report_for_a_message() {
    let (options, asked) = (quick(QosOptions::sending(bulk())), quick(QosOptions::receiving(bulk())));
    let listener = QosUdpListener::bind(LOOPBACK[0], &asked).unwrap();
    let to = listener.local_addr().unwrap();
    let (ours, theirs) = met(&listener, || QosUdpSocket::connect(to, &options).unwrap());
    drop((theirs, listener));
    let listener = QosUdpListener::bind(to, &asked).unwrap();
    listener.set_nonblocking(true).unwrap();
    let sent = || ours.mib().send.last_sent.map(|last| last.since);
    let (until, before) = (now().saturating_add(Duration::from_millis(300)), sent());
    while now() < until || sent() == before {
        assert!(listener.accept().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock));
        let _refused_before_it_was_there = ours.send(b"from before");
        thread::sleep(time::Duration::from_millis(5));
    }
    listener.set_nonblocking(false).unwrap();
    let (new, theirs) = met(&listener, || QosUdpSocket::connect(to, &options).unwrap());
    assert_eq!(theirs.peer_addr().port(), new.local_addr().unwrap().port());
}

#[test]
fn both_ends_know_that_an_application_does_not_read() {
    let spec = Specification::builder().rates(40.0, 80.0, 80.0).size(Bytes::new(100));
    let spec = spec.max_gap(Duration::from_millis(500)).coerce_all().build().unwrap();
    let (ours, theirs) = pair(LOOPBACK[0], &QosOptions::sending(spec.clone()), &QosOptions::receiving(spec));
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                ours.send(&[7; 100]).unwrap();
            }
        });
        both_ends_know(ViolationOrigin::ReceivingHost, &ours.0.connection, &theirs.0.connection, &is_over);
    });
}

#[test]
fn both_ends_know_that_the_network_loses_messages() {
    let spec = Specification::builder().rates(20.0, 40.0, 80.0).size(Bytes::new(100)).loss(0.05);
    let spec = spec.coerce_all().build().unwrap();
    let listener = QosUdpListener::bind(LOOPBACK[0], &QosOptions::receiving(spec.clone())).unwrap();
    // Messages begin with the number of their kind of frame.
    let is_message = |datagram: &[u8]| datagram.starts_with(&[0xc7, 0x52]);
    let path = LossyPath::start(listener.local_addr().unwrap(), 0.5, 7, is_message);
    let (ours, theirs) =
        met(&listener, || QosUdpSocket::connect(path.address(), &QosOptions::sending(spec)).unwrap());
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                ours.send(&[7; 100]).unwrap();
            }
        });
        // The application reads all that comes.
        scope.spawn(|| {
            theirs.set_read_timeout(Some(time::Duration::from_millis(100))).unwrap();
            while !is_over.load(Ordering::SeqCst) {
                let _length_or_time_out = theirs.recv(&mut [0; 100]);
            }
        });
        both_ends_know(ViolationOrigin::Network, &ours.0.connection, &theirs.0.connection, &is_over);
    });
    assert!(path.counts().1 > 0);
}

/// Bursts of 40 messages into a receive buffer that has room for fewer, of an application that reads all that is there every 5 ms.
#[test]
fn both_ends_know_that_the_receiving_host_drops_messages() {
    let spec = Specification::builder().rates(20.0, 40.0, 80.0).size(Bytes::new(100)).loss(0.05);
    let spec = spec.coerce_all().build().unwrap();
    let sending = QosOptions::sending(spec.clone()).pacing(Pacing::Count);
    let (ours, theirs) = pair(LOOPBACK[0], &sending, &QosOptions::receiving(spec));
    rustix::net::sockopt::set_socket_recv_buffer_size(&theirs.0.socket, 4096).unwrap();
    theirs.set_nonblocking(true).unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                (0..40).for_each(|_| assert_eq!(ours.send(&[7; 100]).unwrap(), 100));
                sleep(Duration::from_millis(50)).unwrap();
            }
        });
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                while theirs.recv(&mut [0; 100]).is_ok() {}
                sleep(Duration::from_millis(5)).unwrap();
            }
        });
        both_ends_know(ViolationOrigin::ReceivingHost, &ours.0.connection, &theirs.0.connection, &is_over);
    });
    let received = theirs.mib().receive.received;
    // Reports may be dropped, too, and the last messages may be dropped unseen.
    assert!(received.overflowed > 0 && received.overflowed >= received.lost(), "{received:?}");
}

/// Time without messages is not time in which a message lies unread, also if the service thread sees the message first.
#[test]
fn a_message_is_unread_from_its_arrival_on() {
    for is_watched in [false, true] {
        let (ours, theirs) = pair(LOOPBACK[0], &QosOptions::default(), &QosOptions::default());
        theirs.set_nonblocking(is_watched).unwrap();
        patient(&theirs);
        let exchange = |is_seen: bool| {
            let before = now();
            ours.send(b"message").unwrap();
            if is_seen {
                soon("it arrives", || {
                    let mut readable = [PollFd::new(&theirs.0.socket, PollFlags::IN)];
                    theirs.has_pending() || wait(&mut readable, Duration::ZERO).unwrap()
                });
                theirs.0.serve(now());
                assert!(theirs.0.connection.is_unread());
            }
            soon("it is read", || theirs.recv(&mut [0; 100]).is_ok());
            theirs.set_nonblocking(true).unwrap();
            let nothing = theirs.recv(&mut [0; 100]).map_err(|error| error.kind());
            assert_eq!(nothing.unwrap_err(), io::ErrorKind::WouldBlock);
            theirs.set_nonblocking(is_watched).unwrap();
            now() - before
        };
        exchange(false);
        let unread = || theirs.mib().receive.received.unread;
        let before = unread();
        // A time without data, which has no event of its own.
        sleep(Duration::from_millis(300)).unwrap();
        let at_most = exchange(true);
        assert!(before < unread() && unread() - before <= at_most, "{:?} of {at_most:?}", unread() - before);
    }
}
