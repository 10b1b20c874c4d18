//! Negotiation, with peers of each kind.

use super::*;

#[test]
fn messages_cross_and_both_ends_have_the_agreement() {
    for (address, key) in LOOPBACK.into_iter().zip([None, Some([b'k'; 32])]) {
        let with_key = |options: QosOptions| match key {
            Some(key) => options.key(&key).unwrap(),
            None => options,
        };
        let (asks, asked) = (QosOptions::sending(bulk()), QosOptions::receiving(bulk()));
        let (ours, theirs) = pair(address, &with_key(asks), &with_key(asked));
        assert!(ours.has_qos_peer() && theirs.has_qos_peer());
        assert!(matches!(
            (ours.event(), theirs.event()),
            (Some(SessionEvent::Agreed(_)), Some(SessionEvent::Agreed(_)))
        ));
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
    assert!(matches!(ours.event(), Some(SessionEvent::OneSided(_))));
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
fn a_conflict_of_the_ends_is_named() {
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
fn either_end_can_request_another_specification() {
    let (ours, theirs) = pair("127.0.0.1:0", &QosOptions::sending(bulk()), &QosOptions::receiving(bulk()));
    let small = Specification::builder().size(Bytes::new(300)).coerce_all().build().unwrap();
    theirs.renegotiate(ConnectionSpecification { receive: small, ..ConnectionSpecification::default() });
    let wait = |socket: &QosUdpSocket| loop {
        let event = socket.wait_for_event(time::Duration::from_secs(60)).expect("an event in time");
        if let SessionEvent::Agreed(agreed) = event
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
fn a_silent_plain_server_is_recognised_within_the_time_of_detection() {
    undisturbed(|| {
        let server = UdpSocket::bind(LOOPBACK[0]).unwrap();
        let to = server.local_addr().unwrap();
        let begin = now();
        let ours = QosUdpSocket::connect(to, &QosOptions::default()).unwrap();
        let took = now().saturating_since(begin);
        assert!(took >= Duration::from_millis(300) && took < Duration::from_secs(60), "{took}");
        assert!(!ours.has_qos_peer());
        assert!(matches!(
            ours.event(),
            Some(SessionEvent::OneSided(cutline_signal::negotiation::OneSidedReason::NoAnswer))
        ));
        // It asks three times, and never again.
        thread::sleep(time::Duration::from_millis(1200));
        server.set_nonblocking(true).unwrap();
        let offers = std::iter::from_fn(|| server.recv_from(&mut [0; 1000]).ok()).count();
        assert!(offers <= 3 && ours.mib().negotiation.sent == offers as u64, "{offers}");
        in_time!(offers == 3, "{offers}");
    });
}

/// A round trip of 400 ms is longer than the 300 ms of a path of which nothing is known.
#[test]
fn a_long_path_whose_round_trip_is_known_leaves_time_for_the_answer() {
    undisturbed(|| {
        let listener = QosUdpListener::bind(LOOPBACK[0], &QosOptions::default()).unwrap();
        let to = slow_path(listener.local_addr().unwrap(), Duration::from_millis(200), None);
        let (ours, theirs) = accepted(&listener, || {
            let path = Path { rtt: Some(Duration::from_millis(400)), ..Path::default() };
            QosUdpSocket::connect(to, &QosOptions::default().path(path)).unwrap()
        });
        in_time!(ours.has_qos_peer() && theirs.has_qos_peer(), "the answer comes in time");
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
