//! Receiving, its timeouts and errors, and the marks of sent datagrams.

use super::*;

/// Not with the next call: the application may work for a while before it, or the kernel waits in it.
#[test]
fn a_message_is_unread_until_the_call_that_receives_it() {
    let plain = UdpSocket::bind(LOOPBACK[0]).unwrap();
    let options = QosOptions::default().peer(Peer::Plain);
    let socket = QosUdpSocket::connect(plain.local_addr().unwrap(), &options).unwrap();
    plain.connect(socket.local_addr().unwrap()).unwrap();
    for _ in 0..3 {
        plain.send(b"message").unwrap();
        soon("the message is seen", || socket.0.connection.is_unread());
        assert_eq!(socket.recv(&mut [0; 9]).unwrap(), 7);
        assert!(!socket.0.connection.is_unread());
    }
    plain.send(b"one").unwrap();
    plain.send(b"two").unwrap();
    soon("a message is seen", || socket.0.connection.is_unread());
    assert_eq!(socket.recv(&mut [0; 9]).unwrap(), 3);
    assert!(socket.0.connection.is_unread(), "the other one waits");
}

/// As with a stream: a gap before a message that the application leaves in the kernel is none of the application's.
#[test]
fn a_message_in_the_kernel_is_unread_from_its_first_sighting() {
    let (ours, theirs) = pair(LOOPBACK[0], &QosOptions::default(), &QosOptions::default());
    theirs.set_nonblocking(true).unwrap();
    // A gap that is longer than all that follows, unless the machine is busy.
    thread::sleep(time::Duration::from_millis(200));
    let begun = now();
    ours.send(b"message").unwrap();
    while !theirs.0.connection.is_unread() {
        assert!(now() - begun < Duration::from_secs(60), "the message is never seen");
        theirs.0.serve(now());
    }
    assert_eq!(theirs.recv(&mut [0; 9]).unwrap(), 7);
    let unread = theirs.mib().receive.received.unread;
    let took = now() - begun;
    assert!(unread <= took, "{unread} in {took}");
}

#[test]
fn the_longest_datagram_crosses_and_a_longer_one_is_refused() {
    let header = cutline_signal::frame::DATAGRAM_HEADER;
    let (ours, theirs) = pair("127.0.0.1:0", &QosOptions::default(), &QosOptions::default());
    patient(&theirs);
    // 65,535 B with the headers of IPv4 and UDP.
    let (mut message, mut buffer) = (vec![7; 65_507 - header], vec![0; 1 << 16]);
    assert_eq!(ours.send(&message).unwrap(), message.len());
    assert_eq!(theirs.recv(&mut buffer).unwrap(), message.len());
    assert!(buffer[..message.len()] == message);
    message.push(7);
    let error = ours.send(&message).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::MSGSIZE.raw_os_error()), "{error}");
    // It has no number, so it is not missing.
    ours.send(b"next").unwrap();
    assert_eq!(theirs.recv(&mut buffer).unwrap(), 4);
    assert_eq!((ours.mib().send.sent.messages, theirs.mib().receive.received.lost()), (2, 0));
}

#[test]
fn empty_datagrams_of_a_plain_peer_are_messages() {
    let plain = UdpSocket::bind(LOOPBACK[0]).unwrap();
    let options = QosOptions::default().peer(Peer::Plain);
    let socket = QosUdpSocket::connect(plain.local_addr().unwrap(), &options).unwrap();
    plain.connect(socket.local_addr().unwrap()).unwrap();
    plain.set_read_timeout(Some(time::Duration::from_secs(60))).unwrap();
    patient(&socket);
    for nonblocking in [false, true] {
        plain.send(b"").unwrap();
        // On the loopback, sent datagrams have arrived.
        socket.set_nonblocking(nonblocking).unwrap();
        assert_eq!(socket.recv(&mut [0; 9]).unwrap(), 0);
        assert_eq!(socket.send(b"").unwrap(), 0);
        assert_eq!(plain.recv(&mut [0; 9]).unwrap(), 0);
    }
    let mib = socket.mib();
    assert_eq!((mib.receive.received.messages, mib.send.sent.messages), (2, 2));
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
fn reports_arrive_without_calls_of_the_application() {
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
fn the_descriptor_is_readable_while_messages_are_unread() {
    let often = |options: QosOptions| {
        let interval = Duration::from_millis(10);
        quick(options).monitor(cutline_signal::monitor::MonitorParams { interval, ..Default::default() })
    };
    let (ours, theirs) = pair(LOOPBACK[0], &often(QosOptions::default()), &often(QosOptions::default()));
    let _watched = theirs.as_fd();
    let begin = now();
    while theirs.mib().reports.used <= 3 {
        let waited = now().saturating_since(begin);
        assert!(waited < Duration::from_secs(60), "the service thread takes reports: {:?}", theirs.mib());
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
    // A report that has just arrived is shown, too.
    assert!(theirs.has_pending() || is_shown, "it was received with the first one, or is in the kernel");
    assert_eq!((theirs.recv(&mut buffer).unwrap(), &buffer), (3, b"two"));
    assert!(!theirs.has_pending());
}

#[test]
fn a_listener_need_not_wait() {
    let options = with_time(&quick(QosOptions::default()));
    let listener = QosUdpListener::bind(LOOPBACK[0], &options).unwrap();
    listener.set_nonblocking(true).unwrap();
    assert_eq!(listener.accept().err().unwrap().kind(), io::ErrorKind::WouldBlock);
    let to = listener.local_addr().unwrap();
    let asks = thread::spawn(move || QosUdpSocket::connect(to, &options).unwrap());
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
fn the_kernel_reports_unread_bytes_and_the_remaining_room_is_known() {
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
    // As in the next test.
    over.0.hear(&mut lock(&over.0.reader));
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
fn a_message_before_an_error_is_received_before_it() {
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
        // Its port is closed, which the loopback interface answers, on a busy machine later.
        socket.send(b"report").unwrap();
        let receive = || {
            let (begin, mut buffer) = (now(), [0; 9]);
            loop {
                match socket.recv(&mut buffer) {
                    Err(error) if nonblocking && error.kind() == io::ErrorKind::WouldBlock => {
                        thread::yield_now();
                    }
                    received => break received,
                }
                assert!(now().saturating_since(begin) < Duration::from_secs(60), "nothing is received");
            }
        };
        assert_eq!(receive().unwrap(), 4);
        assert_eq!(receive().unwrap(), 7);
        let error = receive().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused, "{error}");
    }
}

/// As above, where the service thread has met one refusal, and the next one comes before the message is received.
#[test]
fn a_message_before_a_second_error_is_received_before_both() {
    let listener = UdpSocket::bind("127.0.0.79:0").unwrap();
    let there = listener.local_addr().unwrap();
    let socket = QosUdpSocket::connect(there, &QosOptions::default().peer(Peer::Plain)).unwrap();
    drop(listener);
    // The answer of the loopback interface comes later on a busy machine.
    let is_refused = || socket.0.fault.load(Ordering::Relaxed) != 0;
    socket.0.socket.send(b"report").unwrap();
    while !is_refused() {
        socket.0.hear(&mut lock(&socket.0.reader));
    }
    let listener = take_again(|| UdpSocket::bind(there)).unwrap();
    listener.send_to(b"last", socket.local_addr().unwrap()).unwrap();
    drop(listener);
    socket.0.socket.send(b"report").unwrap();
    assert_eq!(socket.recv(&mut [0; 9]).unwrap(), 4);
    assert_eq!(socket.recv(&mut [0; 9]).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
}
