//! Connecting to any of several addresses, within a time, without waiting, and with signals.

use cutline_quality::spec::Specification;
use cutline_signal::monitor::MonitorParams;
use cutline_socket::{
    Cause, Interruptible, Peer, QosError, QosOptions, QosTcpListener, QosTcpStream, QosUdpListener,
    QosUdpSocket, Readiness, SessionEvent,
};
use cutline_sys::reactor::{PollFd, PollFlags, wait};
use cutline_units::Duration;
use rustix::net::{AddressFamily, SocketType, bind, listen, socket};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::mpsc::channel;
use std::thread;
use std::time;

/// Time that a test waits for an event.
const PATIENCE: time::Duration = time::Duration::from_secs(60);

const fn ms(time: u64) -> time::Duration {
    time::Duration::from_millis(time)
}

/// A place on this host where connections are neither accepted nor refused: the queue of a listener is full.
fn silent_place() -> (SocketAddr, OwnedFd, Vec<TcpStream>) {
    let place = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&place, &"127.0.0.1:0".parse::<SocketAddr>().unwrap()).unwrap();
    listen(&place, 0).unwrap();
    let at: SocketAddr = rustix::net::getsockname(&place).unwrap().try_into().unwrap();
    let waiting = (0..8).map_while(|_| TcpStream::connect_timeout(&at, ms(200)).ok()).collect();
    (at, place, waiting)
}

/// An address without a listener.
fn refusing_place(ip: &str) -> SocketAddr {
    UdpSocket::bind((ip, 0)).unwrap().local_addr().unwrap()
}

#[test]
fn a_stream_uses_the_answering_address() {
    let (silent, _place, _waiting) = silent_place();
    for peer in [Peer::Detect, Peer::Speaks] {
        let options = QosOptions::default().peer(peer);
        let listener = QosTcpListener::bind("127.0.0.1:0", &options).unwrap();
        let here = listener.local_addr().unwrap();
        for before in [vec![], vec![refusing_place("127.0.0.1")], vec![refusing_place("::1"), silent]] {
            let names = [&before[..], &[here]].concat();
            thread::scope(|scope| {
                let accepting = scope.spawn(|| listener.accept().unwrap());
                let stream = QosTcpStream::connect(&names[..], &options).unwrap();
                assert_eq!(stream.peer_addr(), here, "{before:?}");
                assert!(stream.has_qos_peer().unwrap());
                accepting.join().unwrap();
            });
        }
        // All have failed.
        let refusing = refusing_place("127.0.0.1");
        let error = QosTcpStream::connect(&[refusing, refusing_place("::1")][..], &QosOptions::default())
            .unwrap_err();
        assert!(
            matches!(&error, QosError::System { source, .. } if source.kind() == ErrorKind::ConnectionRefused),
            "{error}"
        );
    }
}

#[test]
fn a_plain_server_at_the_second_address_is_found() {
    let plain = TcpListener::bind("127.0.0.1:0").unwrap();
    let names = [refusing_place("::1"), plain.local_addr().unwrap()];
    let mut stream = QosTcpStream::connect(&names[..], &QosOptions::default()).unwrap();
    stream.write_all(b"hello").unwrap();
    let mut got = [0; 5];
    plain.accept().unwrap().0.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"hello");
}

#[test]
fn datagrams_use_the_answering_address() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let listener = QosUdpListener::bind("127.0.0.1:0", &QosOptions::default()).unwrap();
    let here = listener.local_addr().unwrap();
    let names = [refusing_place("::1"), silent.local_addr().unwrap(), here];
    let accepting = thread::spawn(move || listener.accept().unwrap());
    let socket = QosUdpSocket::connect(&names[..], &QosOptions::default()).unwrap();
    assert!(socket.has_qos_peer());
    assert_eq!(socket.peer_addr(), here);
    accepting.join().unwrap();
    // Where none answers, it is a plain socket to the first that is not refused.
    let socket = QosUdpSocket::connect(&names[..2], &QosOptions::default()).unwrap();
    assert_eq!((socket.peer_addr(), socket.has_qos_peer()), (names[1], false));
}

#[test]
fn a_listener_takes_the_first_address_that_it_can_have() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let _taken = TcpListener::bind(taken).unwrap();
    let names = ["192.0.2.1:0".parse().unwrap(), taken, "127.0.0.1:0".parse().unwrap()];
    let listener = QosTcpListener::bind(&names[..], &QosOptions::default()).unwrap();
    assert!(listener.local_addr().unwrap().ip().is_loopback());
    let listener = QosUdpListener::bind(&names[..], &QosOptions::default()).unwrap();
    assert!(listener.local_addr().unwrap().ip().is_loopback());
}

#[test]
fn connecting_ends_with_its_time() {
    let (silent, _place, _waiting) = silent_place();
    // An end that accepts, and never answers.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let options = QosOptions::default().connect_timeout(ms(200));
    for (to, peer) in
        [(silent, Peer::Detect), (silent, Peer::Plain), (mute.local_addr().unwrap(), Peer::Speaks)]
    {
        let (done, outcome) = channel();
        let options = options.clone().peer(peer);
        thread::spawn(move || done.send(QosTcpStream::connect(to, &options).map(drop)));
        let error = outcome.recv_timeout(PATIENCE).expect("it waits for ever").unwrap_err();
        assert!(error.to_string().contains("connect timeout of 200"), "{error}");
        assert_eq!(io::Error::from(error).kind(), ErrorKind::TimedOut);
    }
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let options = options.peer(Peer::Speaks);
    let error = QosUdpSocket::connect(silent.local_addr().unwrap(), &options).unwrap_err();
    assert_eq!(io::Error::from(error).kind(), ErrorKind::TimedOut);
}

#[test]
fn a_program_that_waits_for_descriptors_connects_many_at_a_time() {
    let listener = QosTcpListener::bind("127.0.0.1:0", &QosOptions::default()).unwrap();
    let to = listener.local_addr().unwrap();
    let accepting = thread::spawn(move || (0..50).map(|_| listener.accept().unwrap().0).collect::<Vec<_>>());
    let mut connecting: Vec<_> =
        (0..50).map(|_| QosTcpStream::connecting(to, &QosOptions::default()).unwrap()).collect();
    let mut connected = Vec::new();
    while !connecting.is_empty() {
        connecting.retain_mut(|one| match one.advance() {
            Some(outcome) => {
                connected.push(outcome.unwrap());
                false
            }
            None => true,
        });
        let awaited: Vec<_> = connecting.iter().flat_map(cutline_socket::Connecting::awaits).collect();
        let mut fds: Vec<_> = awaited
            .iter()
            .map(|(fd, readiness)| {
                let flags = if *readiness == Readiness::Read { PollFlags::IN } else { PollFlags::OUT };
                PollFd::new(fd, flags)
            })
            .collect();
        let time = connecting.iter().map(cutline_socket::Connecting::time_left).min().unwrap_or_default();
        wait(&mut fds, Duration::from_nanos(time.as_nanos().min(1_000_000_000) as u64)).unwrap();
    }
    assert_eq!(connected.iter().filter(|stream| stream.has_qos_peer().unwrap()).count(), 50);
    assert_eq!(accepting.join().unwrap().len(), 50);
}

/// Returns the result of an interruptible call at its first interruption.
fn interrupted<T: Send + 'static>(call: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    let (done, outcome) = channel();
    thread::spawn(move || done.send(Interruptible::new().run(call)));
    outcome.recv_timeout(PATIENCE).expect("it looks for no signals")
}

#[test]
fn each_blocking_call_returns_for_signals() {
    let options = QosOptions::default();
    let datagrams = QosUdpListener::bind("127.0.0.1:0", &options).unwrap();
    let to = datagrams.local_addr().unwrap();
    let slow = Specification::builder().max_rate(0.001).coerce_all().build().unwrap();
    let sending = QosOptions::sending(slow).detection(PATIENCE);
    let joining = thread::spawn(move || QosUdpSocket::connect(to, &sending).unwrap());
    let _theirs = datagrams.accept().unwrap();
    let ours = joining.join().unwrap();
    let is_interrupted =
        |outcome: io::Result<()>| assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Interrupted);
    is_interrupted(interrupted(move || datagrams.accept().map(drop)));
    let receives = ours.clone();
    is_interrupted(interrupted(move || receives.recv(&mut [0; 9]).map(drop)));
    is_interrupted(interrupted(move || (0..100).try_for_each(|_| ours.send(b"slow").map(drop))));
    let (silent, _place, _waiting) = silent_place();
    is_interrupted(interrupted(move || Ok(QosTcpStream::connect(silent, &QosOptions::default()).map(drop)?)));
    let streams = QosTcpListener::bind("127.0.0.1:0", &options).unwrap();
    let _plain = TcpStream::connect(streams.local_addr().unwrap()).unwrap();
    let (accepted, _) = streams.accept().unwrap();
    is_interrupted(interrupted(move || Ok(accepted.has_qos_peer().map(drop)?)));
}

/// A signal may come after the last look for signals and before the system call, which then waits in spite of it.
#[test]
fn a_stream_does_not_wait_in_the_kernel_where_a_signal_may_be_missed() {
    let is_interrupted =
        |outcome: io::Result<()>| assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Interrupted);
    for peer in [Peer::Detect, Peer::Plain] {
        let options = QosOptions::default().peer(peer).detection(PATIENCE);
        let listener = QosTcpListener::bind("127.0.0.1:0", &options).unwrap();
        let to = listener.local_addr().unwrap();
        let accepting = thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            stream.has_qos_peer().unwrap();
            (listener, stream)
        });
        let ours = QosTcpStream::connect(to, &options).unwrap();
        assert_eq!(ours.has_qos_peer().unwrap(), peer == Peer::Detect);
        let (listener, theirs) = accepting.join().unwrap();
        is_interrupted(interrupted(move || listener.accept().map(drop)));
        let reads = ours.clone();
        is_interrupted(interrupted(move || (&reads).read(&mut [0; 9]).map(drop)));
        let reads = ours.clone();
        reads.set_read_timeout(Some(PATIENCE)).unwrap();
        is_interrupted(interrupted(move || (&reads).read(&mut [0; 9]).map(drop)));
        // The peer takes nothing: in the end a call waits for room. A call that has written a part of its bytes returns how many.
        is_interrupted(interrupted(move || {
            let mut written = 0;
            loop {
                written += (&ours).write(&[0; 1000])?;
                assert!(written < 1 << 30, "it never waits");
            }
        }));
        drop(theirs);
    }
}

#[test]
fn datagrams_of_a_plain_peer_are_not_waited_for_in_the_kernel() {
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    let options = QosOptions::default().peer(Peer::Plain);
    let ours = QosUdpSocket::connect(peer.local_addr().unwrap(), &options).unwrap();
    let error = interrupted(move || ours.recv(&mut [0; 9])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted);
}

/// The peer's reports end each wait of a call early, so that none takes as long as the time until it looks for signals.
#[test]
fn a_call_checks_signals_while_reports_arrive() {
    let monitor = MonitorParams { interval: Duration::from_millis(20), ..MonitorParams::default() };
    let options = QosOptions::default().monitor(monitor).detection(PATIENCE);
    let streams = QosTcpListener::bind("127.0.0.1:0", &options).unwrap();
    let datagrams = QosUdpListener::bind("127.0.0.1:0", &options).unwrap();
    let (to_stream, to_datagrams) = (streams.local_addr().unwrap(), datagrams.local_addr().unwrap());
    let theirs = options.clone();
    let connecting = thread::spawn(move || {
        let stream = QosTcpStream::connect(to_stream, &theirs).unwrap();
        (stream, QosUdpSocket::connect(to_datagrams, &theirs).unwrap())
    });
    let (stream, _) = streams.accept().unwrap();
    assert!(stream.has_qos_peer().unwrap());
    let (datagrams, _) = datagrams.accept().unwrap();
    let _theirs = connecting.join().unwrap();
    let error = interrupted(move || (&stream).read(&mut [0; 9])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted);
    let error = interrupted(move || datagrams.recv(&mut [0; 9])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted);
}

#[test]
fn the_timeout_of_a_call_continues_when_it_is_repeated() {
    let listener = QosUdpListener::bind("127.0.0.1:0", &QosOptions::default()).unwrap();
    let to = listener.local_addr().unwrap();
    let joining = thread::spawn(move || QosUdpSocket::connect(to, &QosOptions::default()).unwrap());
    let _theirs = listener.accept().unwrap();
    let ours = joining.join().unwrap();
    ours.set_read_timeout(Some(ms(300))).unwrap();
    let (done, outcome) = channel();
    thread::spawn(move || {
        let call = Interruptible::new();
        let mut interruptions = 0;
        loop {
            match call.run(|| ours.recv(&mut [0; 9])) {
                Err(error) if error.kind() == ErrorKind::Interrupted => interruptions += 1,
                outcome => return done.send((outcome.map_err(|error| error.kind()), interruptions)),
            }
        }
    });
    let (outcome, interruptions) = outcome.recv_timeout(PATIENCE).expect("the time begins anew each time");
    assert_eq!(outcome, Err(ErrorKind::WouldBlock));
    assert!((1..20).contains(&interruptions), "{interruptions}");
}

#[test]
fn a_frozen_end_of_datagrams_ends_a_call_that_receives() {
    let monitor = MonitorParams { interval: Duration::from_millis(20), ..MonitorParams::default() };
    let spec = Specification::builder().recovery(Duration::from_millis(500)).coerce_all().build().unwrap();
    let options = QosOptions::both(spec).monitor(monitor);
    let listener = UdpSocket::bind("127.0.0.1:0").unwrap();
    let front = listener.local_addr().unwrap();
    let server = QosUdpListener::bind("127.0.0.1:0", &options).unwrap();
    let behind = server.local_addr().unwrap();
    let back = UdpSocket::bind("127.0.0.1:0").unwrap();
    back.connect(behind).unwrap();
    // A path that falls silent on request, in both directions, and recovers.
    let is_cut = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let cut = is_cut.clone();
    thread::spawn(move || {
        for socket in [&listener, &back] {
            socket.set_read_timeout(Some(ms(1))).unwrap();
        }
        let (mut buffer, mut client) = ([0; 2000], None);
        loop {
            let is_cut = cut.load(std::sync::atomic::Ordering::SeqCst);
            if let Ok((length, from)) = listener.recv_from(&mut buffer) {
                client = Some(from);
                let _sent = (!is_cut).then(|| back.send(&buffer[..length]));
            }
            if let (Ok(length), Some(client)) = (back.recv(&mut buffer), client) {
                let _sent = (!is_cut).then(|| listener.send_to(&buffer[..length], client));
            }
        }
    });
    let connecting = thread::spawn(move || QosUdpSocket::connect(front, &options).unwrap());
    let (theirs, _) = server.accept().unwrap();
    let ours = connecting.join().unwrap();
    // Reports have come.
    while ours.mib().reports.used < 2 {
        thread::sleep(ms(5));
    }
    theirs.send(b"before").unwrap();
    assert_eq!(ours.recv(&mut [0; 9]).unwrap(), 6);
    is_cut.store(true, std::sync::atomic::Ordering::SeqCst);
    for nonblocking in [false, true] {
        ours.set_nonblocking(nonblocking).unwrap();
        let (done, outcome) = channel();
        let receives = ours.clone();
        thread::spawn(move || done.send(receives.recv(&mut [0; 9])));
        let error = outcome.recv_timeout(PATIENCE).expect("it waits for ever").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
        assert!(error.to_string().contains("the peer has been silent for"), "{error}");
    }
    let gave_up =
        |event: &SessionEvent| matches!(event, SessionEvent::GaveUp { cause: Cause::Silence(_), .. });
    assert_eq!(ours.events().filter(gave_up).count(), 1);
    // It is heard again.
    is_cut.store(false, std::sync::atomic::Ordering::SeqCst);
    ours.set_nonblocking(false).unwrap();
    let until = time::Instant::now() + PATIENCE;
    loop {
        theirs.send(b"after").unwrap();
        match ours.recv(&mut [0; 9]) {
            Ok(length) => break assert_eq!(length, 5),
            Err(error) => assert!(time::Instant::now() < until, "{error}"),
        }
    }
}
