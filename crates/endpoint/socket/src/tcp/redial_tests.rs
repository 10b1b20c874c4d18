//! Streams that break, and are made again or are not.

use super::tests::{patient, quick};
use super::*;
use crate::options::Peer;
use crate::session::{Role, begin};
use cutline_quality::spec::Specification;
use cutline_signal::negotiation::Carrier;
use cutline_signal::session::{Cause, SessionEvent};
use cutline_units::{RandomStream, Streams};
use rustix::net::sockopt::set_socket_linger;
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;

const fn ms(time: u64) -> time::Duration {
    time::Duration::from_millis(time)
}

fn within(time: u64) -> QosOptions {
    let recovers = Specification::builder().recovery(Duration::from_millis(time)).coerce_all().build();
    patient(quick(QosOptions::both(recovers.unwrap()))).reconnect(true)
}

fn listener(place: SocketAddr) -> QosTcpListener {
    // The thread that answers questions for an earlier listener leaves its socket within half a second.
    let begin = now();
    loop {
        match QosTcpListener::bind(place, &patient(quick(QosOptions::default()))) {
            Ok(listener) => return listener,
            Err(error) => assert!(now().saturating_since(begin) < Duration::from_secs(60), "{error}"),
        }
        thread::sleep(ms(10));
    }
}

/// Ends a connection with a reset, in both directions at once.
fn reset(stream: &QosTcpStream) {
    set_socket_linger(stream, Some(time::Duration::ZERO)).unwrap();
    let _reset = rustix::net::connect_unspec(stream);
}

fn loss(stream: &QosTcpStream) -> (Cause, u64, u64) {
    loop {
        match stream.wait_for_event(ms(60_000)).expect("a loss in time") {
            SessionEvent::Lost { cause, sent, reported } => return (cause, sent, reported),
            SessionEvent::Agreed(_) | SessionEvent::Violated(..) | SessionEvent::Restored { .. } => {}
            event => panic!("{event:?} before a loss"),
        }
    }
}

/// Waits for the outcome of a loss.
fn end(stream: &QosTcpStream) -> Result<Duration, (Duration, Cause)> {
    loop {
        match stream.wait_for_event(ms(60_000)).expect("an end in time") {
            SessionEvent::Recovered { after, is_new } => {
                assert!(is_new);
                return Ok(after);
            }
            SessionEvent::GaveUp { after, cause } => return Err((after, cause)),
            SessionEvent::Lost { .. } => panic!("lost again"),
            _ => {}
        }
    }
}

/// Accepts the connection that takes the place of a lost one, and waits until it is taken up. Returns it, and the time without a connection.
/// On a busy machine an attempt may have no turn for so long that it is abandoned. The next attempt then has another connection.
fn accept_again(listener: &QosTcpListener, ours: &QosTcpStream) -> (QosTcpStream, Duration) {
    listener.set_nonblocking(true).unwrap();
    let (mut last, begin) = (None, now());
    loop {
        last = listener.accept().ok().map(|(stream, _)| stream).or(last);
        match ours.event() {
            Some(SessionEvent::Recovered { after, is_new }) => {
                assert!(is_new);
                listener.set_nonblocking(false).unwrap();
                return (last.expect("it was accepted before it could agree"), after);
            }
            Some(SessionEvent::GaveUp { after, cause }) => panic!("given up after {after}: {cause}"),
            Some(_) => {}
            None => thread::sleep(ms(1)),
        }
        assert!(now().saturating_since(begin) < Duration::from_secs(120), "neither made again nor given up");
    }
}

fn is_loss(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<QosError>());
    let is_loss = matches!(inner, Some(QosError::Lost(_)));
    assert_eq!(is_loss, error.kind() == io::ErrorKind::ConnectionAborted, "{error}");
    is_loss
}

#[test]
fn reconnecting_needs_a_time_and_an_end_that_connects() {
    let options = QosOptions::default().reconnect(true);
    let text = "reconnect = true: allowed is false, unless the specification has a recovery time: set send.recovery or receive.recovery";
    let error = QosTcpStream::connect("127.0.0.1:9", &options).map(drop).unwrap_err();
    assert_eq!(error.to_string(), text);
    let error = crate::QosUdpSocket::connect("127.0.0.1:9", &options).map(drop).unwrap_err();
    assert_eq!(error.to_string(), text);
    let text = "reconnect = true: allowed is false at the end that listens: only the end that connects can connect again";
    let error = QosTcpListener::bind("127.0.0.1:0", &within(1000)).map(drop).unwrap_err();
    assert_eq!(error.to_string(), text);
    let error = crate::QosUdpListener::bind("127.0.0.1:0", &within(1000)).map(drop).unwrap_err();
    assert_eq!(error.to_string(), text);
}

#[test]
fn a_reset_stream_is_made_again_and_reported_once_per_direction() {
    for (place, peer, nonblocking) in [
        ("127.0.0.1:0", Peer::Detect, false),
        ("[::1]:0", Peer::Speaks, false),
        ("[::1]:0", Peer::Detect, true),
    ] {
        let listener = listener(place.parse().unwrap());
        let (ours, mut theirs) = connect(&listener, &within(60_000).peer(peer));
        let port = ours.local_addr().unwrap().port();
        (&ours).write_all(b"first").unwrap();
        theirs.read_exact(&mut [0; 5]).unwrap();
        while ours.mib().send.received.messages < 1 || theirs.mib().reports.used < 1 {
            thread::sleep(ms(1));
        }
        // A whole message that was not read, and the beginning of another one.
        theirs.write_all(b"whole").unwrap();
        let Participation::Joined(token) = theirs.0.connection.participation() else {
            panic!("they have agreed")
        };
        let part = cutline_signal::frame::stream_header(token, 100_000, true, now());
        (&*theirs.0.socket).write_all(&[&part[..], b"part"].concat()).unwrap();
        thread::sleep(ms(50));
        ours.set_nonblocking(nonblocking).unwrap();
        reset(&theirs);
        let (cause, sent, reported) = loss(&ours);
        assert_eq!((sent, reported), (1, 1), "{cause}");
        assert!(cause.to_string().contains("reset"), "{cause}");
        let (mut next, after) = accept_again(&listener, &ours);
        assert!(after < Duration::from_secs(60), "{after}");
        assert_ne!(ours.local_addr().unwrap().port(), port);

        let mut buffer = [0; 100];
        while !ours.has_pending() {
            thread::sleep(ms(1));
        }
        assert_eq!((&ours).read(&mut buffer).unwrap(), 5, "what was whole comes first");
        assert_eq!(&buffer[..5], b"whole");
        let error = (&ours).read(&mut buffer).unwrap_err();
        assert!(is_loss(&error), "{error}");
        assert!(is_loss(&(&ours).write(b"second").unwrap_err()));
        ours.set_nonblocking(false).unwrap();
        (&ours).write_all(b"second").unwrap();
        next.read_exact(&mut buffer[..6]).unwrap();
        assert_eq!(&buffer[..6], b"second");
        next.write_all(b"answer").unwrap();
        (&ours).read_exact(&mut buffer[..6]).unwrap();
        assert_eq!(&buffer[..6], b"answer");
        assert!(ours.has_qos_peer().unwrap() && next.has_qos_peer().unwrap() && !ours.is_reconnecting());
        let mib = ours.mib();
        assert_eq!((mib.feedback.reconnections, mib.send.sent.messages), (1, 1), "numbers begin anew");
        assert!(mib.feedback.reconnected.is_some_and(|at| at <= mib.at));
    }
}

/// Connected, and negotiated at both ends.
fn connect(listener: &QosTcpListener, options: &QosOptions) -> (QosTcpStream, QosTcpStream) {
    let to = listener.local_addr().unwrap();
    thread::scope(|scope| {
        let accepted = scope.spawn(|| {
            let (stream, _) = listener.accept().unwrap();
            stream.has_qos_peer().unwrap();
            stream
        });
        (QosTcpStream::connect(to, options).unwrap(), accepted.join().unwrap())
    })
}

#[test]
fn a_call_that_waits_is_interrupted_once_and_the_next_one_waits_for_the_connection() {
    let listener = listener("127.0.0.1:0".parse().unwrap());
    let (ours, theirs) = connect(&listener, &within(60_000));
    thread::scope(|scope| {
        let (at_read, is_reading) = channel();
        let reads = scope.spawn({
            let mut ours = ours.clone();
            move || {
                at_read.send(()).unwrap();
                let mut buffer = [0; 6];
                let error = ours.read(&mut buffer).unwrap_err();
                assert!(is_loss(&error), "{error}");
                ours.read_exact(&mut buffer).unwrap();
                buffer
            }
        });
        let writes = scope.spawn({
            let mut ours = ours.clone();
            move || {
                // Much more than there is room for.
                let error = ours.write_all(&vec![7; 50_000_000]).unwrap_err();
                assert!(is_loss(&error), "{error}");
                ours.write_all(b"request").unwrap();
            }
        });
        is_reading.recv().unwrap();
        // The reader is in its call.
        thread::sleep(ms(100));
        reset(&theirs);
        let (mut next, _) = accept_again(&listener, &ours);
        let mut buffer = [0; 7];
        next.read_exact(&mut buffer).unwrap();
        assert_eq!(&buffer, b"request", "no half of a message before it");
        next.write_all(b"answer").unwrap();
        assert_eq!(&reads.join().unwrap(), b"answer");
        writes.join().unwrap();
    });
}

/// The kernel reports a reset once. A write that had taken a part of the data gets it and succeeds all the same. The reader then sees
/// zero bytes, which must not count as the end of the stream.
#[test]
fn a_reset_in_the_middle_of_a_write_is_no_end_of_the_stream() {
    let bytes = vec![7; 1 << 20];
    for options in [within(60_000), patient(quick(QosOptions::default()))] {
        let is_partial = (0..20).any(|_| {
            // The attempt of the last round to connect again may wait at its listener.
            let listener = listener("127.0.0.1:0".parse().unwrap());
            let (ours, theirs) = connect(&listener, &options);
            let written = thread::scope(|scope| {
                let writes = scope.spawn(|| {
                    loop {
                        match (&ours).write(&bytes) {
                            Ok(written) if written == bytes.len() => {}
                            written => return written,
                        }
                    }
                });
                // The writer has filled the buffers.
                while ours.mib().send.sent.messages < 2 || ours.0.send_buffer.try_lock().is_ok() {
                    thread::sleep(ms(1));
                }
                thread::sleep(ms(20));
                reset(&theirs);
                writes.join().unwrap()
            });
            let mut reader = &ours;
            let read = reader.read(&mut [0; 10]);
            if written.is_ok() {
                let error = read.expect_err("a reset is no end");
                assert!(is_loss(&error) || error.kind() == io::ErrorKind::ConnectionReset, "{error}");
            }
            written.is_ok()
        });
        assert!(is_partial, "no write was cut in twenty");
    }
}

#[test]
fn a_listener_that_returns_in_time_is_found_and_a_later_one_is_not() {
    let place = {
        let listener = listener("127.0.0.1:0".parse().unwrap());
        listener.local_addr().unwrap()
    };
    for (peer, back_after, recovery) in
        [(Peer::Speaks, 700, 60_000), (Peer::Detect, 700, 60_000), (Peer::Speaks, 0, 600)]
    {
        let first = listener(place);
        let (ours, theirs) = connect(&first, &within(recovery).peer(peer));
        drop(first);
        reset(&theirs);
        drop(theirs);
        let lost = loss(&ours);
        assert_eq!((lost.1, lost.2), (0, 0));
        if back_after == 0 {
            let begin = now();
            let error = (&ours).write(b"first").unwrap_err();
            assert!(is_loss(&error), "{error}");
            let error = (&ours).write(b"second").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            assert!(now().saturating_since(begin) < Duration::from_secs(60));
            let (after, cause) = end(&ours).unwrap_err();
            assert!(after >= Duration::from_millis(600) && after < Duration::from_secs(60), "{after}");
            let text = format!("the connection was lost and could not be replaced within {after}: {cause}");
            assert_eq!(error.to_string(), text);
            assert!(text.contains("refused"), "{text}");
            // It stays so, in both directions, also when there is a listener again.
            let _late = listener(place);
            for _ in 0..2 {
                assert_eq!((&ours).read(&mut [0; 9]).unwrap_err().to_string(), text);
                assert_eq!((&ours).write(b"third").unwrap_err().to_string(), text);
            }
            assert!(!ours.is_reconnecting());
            continue;
        }
        ours.set_read_timeout(Some(ms(50))).unwrap();
        assert!(is_loss(&(&ours).read(&mut [0; 9]).unwrap_err()));
        let error = (&ours).read(&mut [0; 9]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "a timeout ends before there is a connection");
        assert!(ours.is_reconnecting());
        thread::sleep(ms(back_after));
        let second = listener(place);
        let (mut next, _) = accept_again(&second, &ours);
        assert!(is_loss(&(&ours).write(b"once").unwrap_err()));
        (&ours).write_all(b"again").unwrap();
        let mut buffer = [0; 5];
        next.read_exact(&mut buffer).unwrap();
        assert_eq!(&buffer, b"again");
    }
}

#[test]
fn a_stream_that_ends_in_order_is_not_made_again() {
    let listener = listener("127.0.0.1:0".parse().unwrap());
    let (ours, theirs) = connect(&listener, &within(60_000));
    drop(theirs);
    assert_eq!((&ours).read(&mut [0; 9]).unwrap(), 0);
    // Reports do not arrive.
    thread::sleep(ms(200));
    assert!(
        !ours.events().any(|event| matches!(event, SessionEvent::Lost { .. })) && !ours.is_reconnecting()
    );
    assert_eq!((&ours).read(&mut [0; 9]).unwrap(), 0);
    // One that the application itself has ended.
    let (ours, theirs) = connect(&listener, &within(60_000));
    ours.shutdown(Shutdown::Write).unwrap();
    reset(&theirs);
    assert!(!is_loss(&(&ours).write(b"more").unwrap_err()) && !ours.is_reconnecting());
}

#[test]
fn a_plain_server_is_connected_to_again_too() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = server.local_addr().unwrap();
    let mut ours = QosTcpStream::connect(to, &within(60_000).peer(Peer::Plain)).unwrap();
    let (plain, _) = server.accept().unwrap();
    (&plain).write_all(b"left").unwrap();
    thread::sleep(ms(50));
    set_socket_linger(&plain, Some(time::Duration::ZERO)).unwrap();
    drop(plain);
    let mut buffer = [0; 9];
    // The kernel may drop undelivered data before a reset.
    let first = ours.read(&mut buffer);
    if first.is_ok() {
        assert!(is_loss(&ours.read(&mut buffer).unwrap_err()));
    }
    assert!(is_loss(&ours.write(b"GET").unwrap_err()));
    ours.write_all(b"GET").unwrap();
    let (mut plain, _) = server.accept().unwrap();
    plain.read_exact(&mut buffer[..3]).unwrap();
    assert_eq!(&buffer[..3], b"GET");
}

/// Returns the numbers of whole messages that the server's application has received over one connection.
fn serve(stream: &QosTcpStream, random: &mut RandomStream) -> Vec<u64> {
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; 10_000]);
    loop {
        let most = (random.uniform() * 9_999.0) as usize + 1;
        match { stream }.read(&mut buffer[..most]) {
            Ok(0) | Err(_) => break,
            Ok(read) => bytes.extend_from_slice(&buffer[..read]),
        }
    }
    let mut rest = &bytes[..];
    let mut numbers = Vec::new();
    while let Some((head, behind)) = rest.split_first_chunk::<16>() {
        let number = u64::from_be_bytes(head[..8].try_into().unwrap());
        let length = u64::from_be_bytes(head[8..].try_into().unwrap()) as usize;
        // The stream ends within this one, which was reported to its reader.
        let Some((body, behind)) = behind.split_at_checked(length) else { break };
        assert!(body.iter().enumerate().all(|(i, byte)| *byte == (number as usize + i) as u8), "{number}");
        numbers.push(number);
        rest = behind;
    }
    numbers
}

fn message(number: u64, random: &mut RandomStream) -> Vec<u8> {
    let length = (random.uniform().powi(3) * 60_000.0) as usize;
    let head = [number.to_be_bytes(), (length as u64).to_be_bytes()].concat();
    head.into_iter().chain((0..length).map(|i| (number as usize + i) as u8)).collect()
}

/// Connections between two ends, each of which is cut at one byte or another, until `cuts` are used up.
fn cutting_proxy(to: SocketAddr, cuts: Vec<usize>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let here = listener.local_addr().unwrap();
    thread::spawn(move || {
        let mut cuts = cuts.into_iter();
        loop {
            let (front, _) = listener.accept().unwrap();
            let back = TcpStream::connect(to).unwrap();
            let cut = cuts.next();
            thread::scope(|scope| {
                for (mut from, mut to) in [(&front, &back), (&back, &front)] {
                    scope.spawn(move || {
                        let (mut left, mut bytes) = (cut.unwrap_or(usize::MAX), vec![0; 5000]);
                        while left > 0 {
                            let most = left.min(bytes.len());
                            let read = from.read(&mut bytes[..most]).unwrap_or(0);
                            if read == 0 || to.write_all(&bytes[..read]).is_err() {
                                let _gone = to.shutdown(Shutdown::Write);
                                return;
                            }
                            left -= read;
                        }
                        for socket in [from, to] {
                            set_socket_linger(socket, Some(time::Duration::ZERO)).unwrap();
                            let _reset = rustix::net::connect_unspec(socket);
                        }
                        let _gone = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
                    });
                }
            });
        }
    });
    here
}

/// Sends messages with numbers, and repeats after each loss unreported ones. Returns those that were sent more than once.
fn send_all(ours: &QosTcpStream, messages: u64, random: &mut RandomStream) -> (Vec<u64>, usize) {
    // The number of the message that is the first one of this connection.
    let (mut first, mut next, mut again, mut losses) = (0, 0, Vec::new(), 0);
    while first < messages {
        let mut is_lost = false;
        if next < messages {
            let bytes = message(next, random);
            let mut sent = 0;
            while sent < bytes.len() && !is_lost {
                match { ours }.write(&bytes[sent..]) {
                    Ok(taken) => sent += taken,
                    Err(error) if is_loss(&error) => is_lost = true,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::yield_now(),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => panic!("{error}"),
                }
            }
            next += u64::from(!is_lost);
        } else if ours.mib().send.received.messages == messages - first {
            return (again, losses);
        } else {
            thread::sleep(ms(1));
            is_lost = ours.is_reconnecting();
            if is_lost {
                assert!(is_loss(&wait_for_loss(ours)));
            }
        }
        // On a busy machine a connection may be lost before the first call that would use it. One failed call then stands for two losses.
        let mut is_down = false;
        while is_lost {
            let event = if is_down { ours.wait_for_event(ms(60_000)) } else { ours.event() };
            match event {
                None => {
                    assert!(!is_down, "neither made again nor given up");
                    is_lost = false;
                }
                Some(SessionEvent::Lost { sent, reported, .. }) => {
                    assert_eq!(sent, next - first, "whole messages were sent");
                    assert!(reported <= sent);
                    again.extend(first + reported..next);
                    (first, next) = (first + reported, first + reported);
                    losses += 1;
                    is_down = true;
                }
                Some(SessionEvent::Recovered { .. }) => is_down = false,
                Some(SessionEvent::GaveUp { after, cause }) => panic!("given up after {after}: {cause}"),
                Some(_) => {}
            }
        }
    }
    (again, losses)
}

fn wait_for_loss(mut ours: &QosTcpStream) -> io::Error {
    loop {
        match ours.write(b"") {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::yield_now(),
            Err(error) => return error,
            Ok(_) => thread::sleep(ms(1)),
        }
    }
}

fn received(listener: &QosTcpListener, seed: u64, done: &Receiver<()>) -> Vec<Vec<u64>> {
    let mut random = Streams::new(seed).stream("read", "server");
    listener.set_nonblocking(true).unwrap();
    let mut all = Vec::new();
    while done.try_recv() == Err(TryRecvError::Empty) {
        match listener.accept() {
            Ok((stream, _)) => all.push(serve(&stream, &mut random)),
            Err(_) => thread::sleep(ms(1)),
        }
    }
    all
}

#[test]
fn no_message_is_lost_and_only_those_are_doubled_that_were_not_reported() {
    let mut total = 0;
    for seed in 0..16_u64 {
        let mut random = Streams::new(seed).stream("write", "client");
        // At every byte of the negotiation and of the first messages, and anywhere.
        let cuts = (0..4).map(|i| match i {
            0 => 60 + seed as usize * 40,
            _ => (random.uniform().powi(2) * 300_000.0) as usize + 500,
        });
        let cuts: Vec<usize> = cuts.collect();
        let (tell, done) = channel();
        let options = patient(quick(QosOptions::default())).peer(Peer::Speaks);
        let listener = QosTcpListener::bind("127.0.0.1:0", &options).unwrap();
        // The first connection is whole until both ends have agreed.
        let to =
            cutting_proxy(listener.local_addr().unwrap(), [vec![2000 + seed as usize * 777], cuts].concat());
        thread::scope(|scope| {
            // If this fails, it ends the server as well, for which the scope waits.
            let tell = tell;
            let listener = &listener;
            let serves = scope.spawn(move || received(listener, seed, &done));
            let connects = scope.spawn(|| QosTcpStream::connect(to, &within(60_000).peer(Peer::Speaks)));
            let ours = connects.join().unwrap().unwrap();
            ours.set_nonblocking(seed % 2 == 0).unwrap();
            kernel::inject(Streams::new(seed).stream("calls", "client"));
            let messages = 60;
            let (again, losses) = send_all(&ours, messages, &mut random);
            drop(ours);
            tell.send(()).unwrap();
            let connections = serves.join().unwrap();
            let mut times = vec![0_usize; messages as usize];
            for numbers in &connections {
                assert!(
                    numbers.is_sorted() && numbers.windows(2).all(|two| two[1] == two[0] + 1),
                    "{numbers:?}"
                );
                for number in numbers {
                    times[*number as usize] += 1;
                }
            }
            for (number, times) in times.into_iter().enumerate() {
                let repeated = again.iter().filter(|again| **again == number as u64).count();
                assert!((1..=1 + repeated).contains(&times), "{seed}: {number} came {times} times");
            }
            total += losses;
        });
    }
    assert!(total > 30, "{total} losses");
}

#[test]
fn a_stream_that_is_dropped_while_it_is_made_again_is_closed() {
    let listener = listener("127.0.0.1:0".parse().unwrap());
    let (ours, theirs) = connect(&listener, &within(60_000));
    drop(listener);
    reset(&theirs);
    loss(&ours);
    let weak = Arc::downgrade(&ours.0);
    drop(ours);
    let begin = now();
    while weak.upgrade().is_some() {
        assert!(now().saturating_since(begin) < Duration::from_secs(60), "nothing holds it");
        thread::sleep(ms(5));
    }
}

/// A stream as a child by fork(2) has it, of which the parent may make the connection again.
fn inherited() -> QosTcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (peer, options) = (socket.peer_addr().unwrap(), within(60_000));
    let session = begin(&options, &Role::Alone, Carrier::Stream).unwrap();
    let recovery = (Recovery::of(&options).unwrap(), None);
    let QosTcpStream(inner, handle) =
        QosTcpStream::new(socket, peer, session, &options, (false, false), recovery);
    drop(handle);
    let mut inner = Arc::into_inner(inner).expect("no thread serves it");
    inner.connection.inherit();
    let inner = Arc::new(inner);
    QosTcpStream(Arc::clone(&inner), ConnectionHandle::new(inner))
}

#[test]
fn no_call_of_an_inherited_stream_waits_for_a_lock() {
    let stream = inherited();
    let (done, outcome) = channel();
    thread::spawn(move || {
        let connection = &stream.0.connection;
        // As if other threads of the parent had held them at the fork.
        let _held = (connection.outbound(), connection.inbound());
        let recovery = stream.0.recovery.as_ref().expect("it is made again");
        recovery.between_attempts(|| {
            stream.sample(10);
            stream.renegotiate(QosOptions::default().specification);
            let (mib, (samples, forgotten)) = (stream.mib(), stream.take_samples());
            assert_eq!((mib.send.sent.messages, mib.tcp, samples.len(), forgotten), (0, None, 0, 0));
            assert!(stream.event().is_none() && stream.wait_for_event(ms(1)).is_none());
            assert!(stream.reservation().is_none() && stream.reservation_event().is_none());
            assert!(stream.allocation().is_none() && stream.scheduling().is_none());
            assert!(stream.is_inherited() && !stream.is_reconnecting());
            // They would change the parent's socket.
            let set = [
                stream.set_nonblocking(true),
                stream.set_nodelay(true),
                stream.set_read_timeout(Some(ms(1))),
                stream.set_write_timeout(Some(ms(1))),
            ];
            assert!(set.iter().all(Result::is_err), "{set:?}");
        });
        done.send(()).unwrap();
    });
    outcome.recv_timeout(ms(60_000)).expect("every call returns");
}
