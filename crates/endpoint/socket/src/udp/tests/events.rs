//! Handlers of events, and the origins of violations.

use super::*;

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
        assert!(matches!(event, SessionEvent::Agreed(_)), "{event:?}");
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
            |event| matches!(event, SessionEvent::Agreed(it) if it.send.effective.size == Some(Bytes::new(100))),
        )
    });
    assert_eq!((*lock(&count), lock(&seen).len()), (1, 2));
    // The socket holds itself as a socket and as a connection.
    soon("both handlers are gone, and with them their clones", || Arc::strong_count(&ours.0) == 2);
}

/// The descriptor of a connection does not report a datagram that the listener has received and handed over.
#[test]
fn a_handler_of_activity_is_called_for_a_message_that_the_descriptor_does_not_report() {
    let (ours, _theirs) = pair(LOOPBACK[0], &QosOptions::default(), &QosOptions::default());
    let pending = Arc::new(Mutex::new(0_u32));
    let counted = Arc::clone(&pending);
    ours.on_activity(move |event| *lock(&counted) += u32::from(event.is_none()));
    ours.0.hand_over([(now(), b"handed over".to_vec())]);
    soon("the handler", || *lock(&pending) == 1);
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
    let (ours, theirs) = accepted(&listener, || {
        QosUdpSocket::connect(path.address(), &with_time(&QosOptions::sending(spec))).unwrap()
    });
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
