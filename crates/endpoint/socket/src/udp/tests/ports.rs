//! Ports that are used again.

use super::*;

/// A plain socket at a port of this host, which may just have been closed, or at any.
fn at_port(port: u16) -> UdpSocket {
    take_again(|| UdpSocket::bind(("127.0.0.1", port))).unwrap()
}

/// A program that ends and is started again with the same port. The peer does not know yet, and its reports still come.
#[test]
fn a_connection_from_the_same_port_takes_the_place_of_the_one_before() {
    let options = with_time(&quick(QosOptions::sending(bulk())));
    let listener =
        QosUdpListener::bind(LOOPBACK[0], &with_time(&quick(QosOptions::receiving(bulk())))).unwrap();
    let to = listener.local_addr().unwrap();
    let connect = |port| {
        let socket = at_port(port);
        socket.connect(to).unwrap();
        QosUdpSocket::over(socket, &options).unwrap()
    };
    let (first, theirs) = accepted(&listener, || connect(0));
    let port = first.local_addr().unwrap().port();
    soon("a report", || first.mib().reports.used > 0);
    let waiting = thread::spawn(move || theirs.recv(&mut [0; 10]));
    drop(first);
    let (second, theirs) = accepted(&listener, || connect(port));
    assert!(second.has_qos_peer(), "reports of the connection before are no messages of a plain end");
    assert_eq!(theirs.peer_addr().port(), port);
    let error = waiting.join().unwrap().unwrap_err();
    // A report to the port may have come while it was closed. The kernel's answer to that is the error of the next call, as of plain sockets.
    let expected = [io::ErrorKind::ConnectionReset, io::ErrorKind::ConnectionRefused];
    assert!(expected.contains(&error.kind()), "{error}");
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
    let (ours, theirs) = accepted(&listener, || QosUdpSocket::over(socket, &QosOptions::default()).unwrap());
    let port = ours.local_addr().unwrap().port();
    // As that thread does.
    let [served, served_there] = [&ours, &theirs].map(|socket| Arc::clone(&socket.0));
    let copy = ours.clone();
    drop(ours);
    assert!(UdpSocket::bind(("127.0.0.1", port)).is_err(), "a clone keeps it open");
    drop(copy);
    at_port(port);
    let state = Arc::clone(&listener.state);
    drop((theirs, listener));
    at_port(to.port());
    // It meets no connection and no data.
    served.serve(now());
    served_there.serve(now());
    drop(state);
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

/// The kernel may queue another host's datagram that it assigned before `connect`.
#[test]
fn a_message_of_another_end_in_the_queue_of_a_connection_goes_to_its_own() {
    let listener = QosUdpListener::bind("127.0.0.1:0", &QosOptions::default()).unwrap();
    let to = listener.local_addr().unwrap();
    let (ours, theirs) = accepted(&listener, || QosUdpSocket::connect(to, &QosOptions::default()).unwrap());
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
            soon("the kernel prefers the newest socket", || ioctl_fionread(&theirs.0.socket).unwrap() > 0);
            rustix::net::connect(&theirs.0.socket, &ours.local_addr().unwrap()).unwrap();
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
fn forged_offers_of_the_peer_do_not_end_a_connection() {
    let options = with_time(&quick(QosOptions::sending(bulk())));
    let listener =
        QosUdpListener::bind(LOOPBACK[0], &with_time(&quick(QosOptions::receiving(bulk())))).unwrap();
    let to = listener.local_addr().unwrap();
    let (ours, theirs) = accepted(&listener, || QosUdpSocket::connect(to, &options).unwrap());
    // The offer of another client, as its first datagram is. It gives up soon, since no answer comes.
    let other = at_port(0);
    let offer = {
        let (place, options) = (other.local_addr().unwrap(), quick(QosOptions::sending(bulk())));
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

/// A program with a listener is started again. Messages of connections with the one before are not taken for those of plain ends.
#[test]
fn a_listener_that_was_started_again_takes_no_report_for_a_message() {
    let [options, asked] = [QosOptions::sending(bulk()), QosOptions::receiving(bulk())]
        .map(|options| with_time(&quick(options)));
    let listener = QosUdpListener::bind(LOOPBACK[0], &asked).unwrap();
    let to = listener.local_addr().unwrap();
    let (ours, theirs) = accepted(&listener, || QosUdpSocket::connect(to, &options).unwrap());
    drop((theirs, listener));
    let listener = take_again(|| QosUdpListener::bind(to, &asked)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let sent = || ours.mib().send.last_sent.map(|last| last.since);
    let (until, before) = (now().saturating_add(Duration::from_millis(300)), sent());
    while now() < until || sent() == before {
        assert!(listener.accept().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock));
        let _refused_before_it_was_there = ours.send(b"from before");
        thread::sleep(time::Duration::from_millis(5));
    }
    listener.set_nonblocking(false).unwrap();
    let (new, theirs) = accepted(&listener, || QosUdpSocket::connect(to, &options).unwrap());
    assert_eq!(theirs.peer_addr().port(), new.local_addr().unwrap().port());
}
