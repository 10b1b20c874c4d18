//! Two streams on the loopback interface.

use super::*;
use crate::awaited::both_ends_know;
use crate::options::Marking;
use crate::options::Peer;
use cutline_quality::spec::{Measure, Specification};
use cutline_signal::monitor::MonitorParams;
use cutline_signal::negotiation::NegotiationParams;
use cutline_signal::negotiation::OneSidedReason;
use cutline_signal::session::{Direction, SessionEvent};
use cutline_signal::violation::ViolationOrigin;
use cutline_sys::reactor::{PollFd, PollFlags, wait};
use cutline_testbed::take_again;
use cutline_units::{Bytes, Streams};
use std::net::TcpListener;
use std::thread;

const LOOPBACK: [&str; 2] = ["127.0.0.1:0", "[::1]:0"];

pub(super) fn bulk() -> Specification {
    Specification::builder().size(Bytes::new(4000)).coerce_all().build().unwrap()
}

/// Options of an end that gives up soon, and reports often, so that reports are everywhere between messages.
pub(super) fn quick(options: QosOptions) -> QosOptions {
    let [first_timeout, give_up, interval] = [20, 500, 10].map(Duration::from_millis);
    options
        .negotiation(NegotiationParams { first_timeout, give_up })
        .monitor(MonitorParams { interval, ..MonitorParams::default() })
        .detection(time::Duration::from_millis(200))
}

/// The options, with a minute for a peer that takes part: a thread of a busy machine may have no turn for seconds.
pub(super) fn patient(options: QosOptions) -> QosOptions {
    let [first_timeout, give_up] = [20, 60_000].map(Duration::from_millis);
    options.negotiation(NegotiationParams { first_timeout, give_up }).detection(time::Duration::from_secs(60))
}

/// Two connected streams: the one that has asked, and the one that was accepted.
fn pair(address: &str, asks: &QosOptions, asked: &QosOptions) -> (QosTcpStream, QosTcpStream) {
    let [asks, asked] = [asks, asked].map(|options| patient(options.clone()));
    let listener = QosTcpListener::bind(address, &asked).unwrap();
    let to = listener.local_addr().unwrap();
    thread::scope(|scope| {
        let accepted = scope.spawn(|| {
            let (stream, _) = listener.accept().unwrap();
            stream.has_qos_peer().unwrap();
            stream
        });
        let connected = QosTcpStream::connect(to, &asks).unwrap();
        (connected, accepted.join().unwrap())
    })
}

#[test]
fn bytes_cross_and_both_ends_have_the_agreement() {
    for (address, peer, key) in [
        ("127.0.0.1:0", Peer::Detect, false),
        ("[::1]:0", Peer::Speaks, false),
        ("127.0.0.1:0", Peer::Detect, true),
    ] {
        let with = |options: QosOptions| {
            let options = options.peer(peer);
            if key { options.key(&[b'k'; 32]).unwrap() } else { options }
        };
        let (mut ours, mut theirs) =
            pair(address, &with(QosOptions::sending(bulk())), &with(QosOptions::receiving(bulk())));
        assert!(ours.has_qos_peer().unwrap() && theirs.has_qos_peer().unwrap());
        assert!(matches!(
            (ours.event(), theirs.event()),
            (Some(SessionEvent::Agreed(_)), Some(SessionEvent::Agreed(_)))
        ));
        let mut buffer = [0; 1000];
        for i in 0..100_u8 {
            ours.write_all(&[i; 700]).unwrap();
            theirs.read_exact(&mut buffer[..300]).unwrap();
            theirs.read_exact(&mut buffer[300..700]).unwrap();
            assert_eq!(buffer[..700], [i; 700]);
            theirs.write_all(b"answer").unwrap();
            ours.read_exact(&mut buffer[..6]).unwrap();
        }
        let mib = theirs.mib();
        assert_eq!((mib.receive.received.messages, mib.receive.received.bytes), (100, 70_000));
        assert_eq!((mib.receive.received.lost(), mib.send.sent.messages), (0, 100));
        assert_eq!(mib.receive.contract.effective, bulk());
        assert!(mib.tcp.unwrap().congestion_window > 0);
        drop(ours);
        assert_eq!(theirs.read(&mut buffer).unwrap(), 0, "the end of the stream");
    }
}

/// The service thread answers while the application of an accepted stream does other things. Each later call reports the disagreement, also when the
/// application has taken its event.
#[test]
fn a_disagreement_found_by_the_service_thread_is_an_error_of_each_call() {
    let strict = |loss| Specification::builder().loss(loss).build().unwrap();
    let refuses = patient(QosOptions::receiving(strict(0.0)));
    let demands = patient(QosOptions::receiving(bulk())).peer(Peer::Speaks);
    for (options, text) in [(refuses, "the peer does not agree"), (demands, "the peer")] {
        let is_refused = text == "the peer does not agree";
        let listener = QosTcpListener::bind(LOOPBACK[0], &options).unwrap();
        let to = listener.local_addr().unwrap();
        thread::scope(|scope| {
            let (over, is_over) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || {
                if is_refused {
                    let asks = patient(QosOptions::sending(strict(1.0)));
                    QosTcpStream::connect(to, &asks).map(drop).unwrap_err();
                } else {
                    let mut plain = std::net::TcpStream::connect(to).unwrap();
                    plain.write_all(b"hello").unwrap();
                    let _closed = is_over.recv();
                }
            });
            let (mut theirs, _) = listener.accept().unwrap();
            let event = theirs.wait_for_event(time::Duration::from_secs(60)).unwrap();
            assert!(matches!(event, SessionEvent::Refused { .. } | SessionEvent::OneSided(_)), "{event:?}");
            for _twice in 0..2 {
                let errors = [
                    theirs.read(&mut [0; 9]).map(drop).unwrap_err(),
                    theirs.write(b"answer").map(drop).unwrap_err(),
                    theirs.has_qos_peer().map(drop).unwrap_err().into(),
                ];
                for error in errors {
                    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused, "{error}");
                    assert!(error.to_string().starts_with(text), "{error}");
                }
            }
            drop(over);
        });
    }
}

/// A report of the peer that comes after both directions were shut down resets the connection, of which a plain socket would know nothing.
#[test]
fn writing_after_a_shutdown_is_a_broken_pipe_also_where_the_connection_was_reset() {
    let (ours, mut theirs) = pair(LOOPBACK[0], &QosOptions::default(), &QosOptions::default());
    ours.shutdown(Shutdown::Both).unwrap();
    // The kernel of the loopback interface has handled the reset at both ends when a call here fails.
    while theirs.write(b"to nowhere").is_ok() {
        thread::yield_now();
    }
    let error = (&ours).write(b"after the end").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe, "{error}");
}

#[test]
fn a_plain_peer_is_served_in_both_roles() {
    // A plain server, which sees nothing but what the application writes.
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = server.local_addr().unwrap();
    let mut ours = QosTcpStream::connect(to, &quick(QosOptions::sending(bulk()))).unwrap();
    let (mut plain, _) = server.accept().unwrap();
    assert!(!ours.has_qos_peer().unwrap());
    let mut buffer = [0; 100];
    ours.write_all(b"GET /").unwrap();
    plain.read_exact(&mut buffer[..5]).unwrap();
    assert_eq!(&buffer[..5], b"GET /");
    plain.write_all(b"200").unwrap();
    ours.read_exact(&mut buffer[..3]).unwrap();
    assert_eq!(&buffer[..3], b"200");

    let listener = QosTcpListener::bind("127.0.0.1:0", &quick(QosOptions::default())).unwrap();
    let to = listener.local_addr().unwrap();
    // A client that speaks first.
    let mut client = TcpStream::connect(to).unwrap();
    client.write_all(b"\xc7 hello").unwrap();
    let (mut theirs, from) = listener.accept().unwrap();
    assert_eq!(from, client.local_addr().unwrap());
    theirs.read_exact(&mut buffer[..7]).unwrap();
    assert_eq!(&buffer[..7], b"\xc7 hello");
    // One that waits for the server to speak first.
    let mut client = TcpStream::connect(to).unwrap();
    let (mut theirs, _) = listener.accept().unwrap();
    theirs.write_all(b"220 ready").unwrap();
    client.read_exact(&mut buffer[..9]).unwrap();
    assert_eq!(&buffer[..9], b"220 ready");
    // One that begins like an offer, and says no more.
    let mut client = TcpStream::connect(to).unwrap();
    client.write_all(b"\xc7\x51\x01").unwrap();
    let (mut theirs, _) = listener.accept().unwrap();
    theirs.read_exact(&mut buffer[..3]).unwrap();
    assert_eq!(&buffer[..3], b"\xc7\x51\x01");
    // One that goes away.
    drop(TcpStream::connect(to).unwrap());
    let (mut theirs, _) = listener.accept().unwrap();
    assert_eq!(theirs.read(&mut buffer).unwrap(), 0);
}

#[test]
fn a_server_may_speak_first_to_a_qos_client() {
    let (mut ours, mut theirs) = {
        let options = patient(QosOptions::default());
        let listener = QosTcpListener::bind("127.0.0.1:0", &options).unwrap();
        let to = listener.local_addr().unwrap();
        thread::scope(|scope| {
            let accepted = scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                stream.write_all(b"220 ready").unwrap();
                stream
            });
            (QosTcpStream::connect(to, &options).unwrap(), accepted.join().unwrap())
        })
    };
    let mut buffer = [0; 9];
    ours.read_exact(&mut buffer).unwrap();
    assert_eq!(&buffer, b"220 ready");
    assert!(ours.has_qos_peer().unwrap() && theirs.has_qos_peer().unwrap());
    ours.write_all(b"QUIT").unwrap();
    theirs.read_exact(&mut buffer[..4]).unwrap();
}

#[test]
fn a_server_that_reads_in_one_thread_may_speak_first_in_another() {
    let listener = QosTcpListener::bind("127.0.0.1:0", &quick(QosOptions::default())).unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (stream, _) = listener.accept().unwrap();
    thread::scope(|scope| {
        let reads = scope.spawn(|| {
            let mut buffer = [0; 4];
            (&stream).read_exact(&mut buffer).unwrap();
            buffer
        });
        thread::sleep(time::Duration::from_millis(20));
        (&stream).write_all(b"220").unwrap();
        client.read_exact(&mut [0; 3]).unwrap();
        client.write_all(b"QUIT").unwrap();
        assert_eq!(&reads.join().unwrap(), b"QUIT");
    });
}

#[test]
fn no_byte_is_lost_or_doubled_however_the_calls_are_cut() {
    // Calls that do not wait, of random lengths, with reports of both ends every 10 ms among them.
    for seed in 0..3 {
        let options = quick(QosOptions::default());
        let (ours, theirs) = pair(LOOPBACK[seed as usize % 2], &options, &options);
        let streams = [&ours, &theirs];
        for stream in streams {
            stream.set_nonblocking(true).unwrap();
        }
        let length = 6_000_000_usize;
        let byte = |i: usize| ((i * 31) >> 3) as u8;
        thread::scope(|scope| {
            for (side, stream) in streams.into_iter().enumerate() {
                scope.spawn(move || {
                    let mut random = Streams::new(seed).stream("write", &side.to_string());
                    let (mut sent, mut stream) = (0, stream);
                    while sent < length {
                        let most = (random.uniform().powi(4) * 200_000.0) as usize + 1;
                        let bytes: Vec<u8> = (sent..length.min(sent + most)).map(byte).collect();
                        match stream.write(&bytes) {
                            Ok(written) => sent += written,
                            Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::yield_now(),
                            Err(error) => panic!("{error}"),
                        }
                    }
                });
                scope.spawn(move || {
                    let mut random = Streams::new(seed).stream("read", &side.to_string());
                    let (mut received, mut stream) = (0, stream);
                    let mut buffer = vec![0; 100_000];
                    while received < length {
                        let most = (random.uniform().powi(4) * 99_999.0) as usize + 1;
                        match stream.read(&mut buffer[..most]) {
                            Ok(0) => panic!("the end after {received} B"),
                            Ok(read) => {
                                let is_right = |(i, found): (usize, &u8)| *found == byte(received + i);
                                assert!(buffer[..read].iter().enumerate().all(is_right), "at {received}");
                                received += read;
                            }
                            Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::yield_now(),
                            Err(error) => panic!("{error}"),
                        }
                    }
                });
            }
        });
        for stream in streams {
            let mib = stream.mib();
            assert_eq!(mib.receive.received.lost(), 0);
            assert_eq!(mib.reports.refused, 0, "{:?}", mib.reports);
        }
        let [sent, received] = [ours.mib().send.sent, theirs.mib().receive.sent];
        assert!(sent.messages >= received.messages && sent.bytes >= length as u64);
    }
}

#[test]
fn a_peer_that_breaks_the_protocol_is_an_error() {
    let (ours, mut theirs) = pair("127.0.0.1:0", &QosOptions::default(), &QosOptions::default());
    // Past the layer, as another program could.
    (&*ours.0.socket).write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let error = theirs.read(&mut [0; 100]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    assert_eq!(error.to_string(), "the peer has sent bytes that are no message of this protocol");
}

#[test]
fn an_accepting_application_that_does_not_read_delays_no_peer() {
    let listener = QosTcpListener::bind("127.0.0.1:0", &QosOptions::default()).unwrap();
    let to = listener.local_addr().unwrap();
    thread::scope(|scope| {
        let connects = scope.spawn(|| QosTcpStream::connect(to, &QosOptions::default()).unwrap());
        let (stream, _) = listener.accept().unwrap();
        assert!(connects.join().unwrap().has_qos_peer().unwrap());
        assert!(stream.has_qos_peer().unwrap());
    });
}

#[test]
fn an_end_that_must_take_part_and_does_not_is_an_error() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = server.local_addr().unwrap();
    for options in [QosOptions::default().peer(Peer::Speaks), QosOptions::default().key(&[7; 32]).unwrap()] {
        let error = QosTcpStream::connect(to, &quick(options)).map(drop).unwrap_err();
        assert!(matches!(error, QosError::NoPeer(_)), "{error}");
    }
    drop(server);
    let error = QosTcpStream::connect(to, &quick(QosOptions::default())).map(drop).unwrap_err();
    assert_eq!(error.to_string(), "cannot connect: Connection refused (os error 111)");
}

#[test]
fn an_unanswered_offer_breaks_the_connection() {
    // A plain server beside another process that answers for the same port number of UDP.
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = server.local_addr().unwrap();
    let datagrams = std::net::UdpSocket::bind(to).unwrap();
    let answers = thread::spawn(move || {
        let mut bytes = [0; 100];
        let (length, from) = datagrams.recv_from(&mut bytes).unwrap();
        let answer = cutline_signal::presence::answer(&bytes[..length], None).unwrap();
        datagrams.send_to(&answer, from).unwrap();
    });
    let patient = quick(QosOptions::default()).detection(time::Duration::from_secs(60));
    let error = QosTcpStream::connect(to, &patient).map(drop).unwrap_err();
    assert!(matches!(error, QosError::NoPeer(OneSidedReason::NoAnswer)), "{error}");
    answers.join().unwrap();
}

#[test]
fn a_conflict_of_the_ends_is_named_at_both() {
    let strict = |loss| Specification::builder().loss(loss).build().unwrap();
    let listener = QosTcpListener::bind("127.0.0.1:0", &QosOptions::receiving(strict(0.0))).unwrap();
    let to = listener.local_addr().unwrap();
    thread::scope(|scope| {
        let refused = scope.spawn(|| listener.accept().unwrap().0.read(&mut [0; 9]).unwrap_err().to_string());
        let error = QosTcpStream::connect(to, &QosOptions::sending(strict(1.0))).map(drop).unwrap_err();
        let conflict = "loss = 0 contradicts loss = 1 of the peer: coerce loss, or weaken it";
        assert_eq!(error.to_string(), format!("the peer does not agree: send: {conflict}"));
        assert_eq!(refused.join().unwrap(), format!("the peer does not agree: receive: {conflict}"));
    });
}

#[test]
fn the_kernel_paces_at_the_agreed_rate() {
    let rates = Specification::builder()
        .rates(1.0, 100.0, 200.0)
        .size(Bytes::new(1200))
        .coerce_all()
        .build()
        .unwrap();
    let (ours, _theirs) = pair("127.0.0.1:0", &QosOptions::sending(rates), &QosOptions::default());
    // 200 messages/s of 1200 B, and 16 B of header each: 1,945,600 bit/s.
    let rate = cutline_sys::sockopt::SO_MAX_PACING_RATE.get(&ours).unwrap();
    assert_eq!(rate, 200 * 1216);
}

#[test]
fn both_ends_of_a_stream_are_marked() {
    for address in LOOPBACK {
        let options = QosOptions::default().marking(Marking::Fixed(Hint::from_level(6)));
        let (ours, theirs) = pair(address, &options, &options);
        let octet = ((6 - 1) << 2 | 3) << 2;
        for stream in [&ours, &theirs] {
            let marked = if ours.peer_addr().is_ipv4() {
                rustix::net::sockopt::ip_tos(stream).unwrap()
            } else {
                rustix::net::sockopt::ipv6_tclass(stream).unwrap() as u8
            };
            assert_eq!(marked & 0xfc, octet);
        }
    }
}

#[test]
fn the_descriptor_is_readable_while_data_is_unread() {
    let (mut ours, mut theirs) =
        pair(LOOPBACK[0], &quick(QosOptions::default()), &quick(QosOptions::default()));
    let is_readable =
        |stream: &QosTcpStream| wait(&mut [PollFd::new(stream, PollFlags::IN)], Duration::ZERO).unwrap();
    // The service thread comes by many times: there are reports each 10 ms.
    let begin = now();
    while theirs.mib().reports.used <= 3 {
        let waited = now().saturating_since(begin);
        assert!(waited < Duration::from_secs(60), "the service thread takes reports: {:?}", theirs.mib());
        thread::sleep(time::Duration::from_millis(10));
    }
    ours.write_all(b"two words").unwrap();
    // The thread that serves connections could take the words in this time, and must not.
    thread::sleep(time::Duration::from_millis(300));
    assert!(is_readable(&theirs) && !theirs.has_pending());
    let mut buffer = [0; 9];
    theirs.read_exact(&mut buffer[..4]).unwrap();
    assert!(theirs.has_pending(), "the rest was received with it");
    theirs.read_exact(&mut buffer[4..]).unwrap();
    assert!(!theirs.has_pending());
    assert_eq!(&buffer, b"two words");
}

#[test]
fn the_descriptor_of_a_stream_shows_a_plain_clients_first_words() {
    let listener = QosTcpListener::bind(LOOPBACK[0], &quick(QosOptions::default())).unwrap();
    listener.set_nonblocking(true).unwrap();
    assert_eq!(listener.accept().err().unwrap().kind(), io::ErrorKind::WouldBlock);
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    wait(&mut [PollFd::new(&listener, PollFlags::IN)], Duration::from_secs(60)).unwrap();
    let (mut theirs, _) = listener.accept().unwrap();
    client.write_all(b"GET /").unwrap();
    // The thread that serves connections could take the words in this time, and must not.
    thread::sleep(time::Duration::from_millis(100));
    assert!(wait(&mut [PollFd::new(&theirs, PollFlags::IN)], Duration::ZERO).unwrap());
    let mut buffer = [0; 5];
    theirs.read_exact(&mut buffer).unwrap();
    assert_eq!(&buffer, b"GET /");
}

#[test]
fn calls_without_bytes_wait_for_nothing() {
    let key = |options: QosOptions| options.key(&[b'k'; 32]).unwrap();
    let listener = QosTcpListener::bind(LOOPBACK[0], &key(QosOptions::default())).unwrap();
    // A client that does not begin, although it must.
    let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(time::Duration::from_secs(60))).unwrap();
    stream.set_write_timeout(Some(time::Duration::from_secs(60))).unwrap();
    assert_eq!((stream.read(&mut []).unwrap(), stream.write(b"").unwrap()), (0, 0));
    assert!(stream.is_joining());
    // Of a peer that has begun, neither.
    let (mut ours, mut theirs) = pair(LOOPBACK[0], &QosOptions::default(), &QosOptions::default());
    for _ in 0..2 {
        assert_eq!((ours.read(&mut []).unwrap(), ours.write(b"").unwrap()), (0, 0));
        theirs.write_all(b"message").unwrap();
    }
    let mut buffer = [0; 14];
    ours.read_exact(&mut buffer).unwrap();
    assert_eq!((&buffer, ours.mib().send.sent.messages), (b"messagemessage", 0));
}

#[test]
fn reports_do_not_make_a_timeout_longer() {
    let (mut ours, theirs) = pair(LOOPBACK[0], &quick(QosOptions::default()), &quick(QosOptions::default()));
    ours.set_read_timeout(Some(time::Duration::from_millis(100))).unwrap();
    let begin = now();
    assert_eq!(ours.read(&mut [0; 10]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    let took = now().saturating_since(begin);
    assert!(took >= Duration::from_millis(100) && took < Duration::from_secs(60), "{took}");
    assert!(theirs.has_qos_peer().unwrap());
}

#[test]
fn unread_data_is_in_the_send_queue() {
    for peer in [Peer::Detect, Peer::Plain] {
        let options = QosOptions::default().peer(peer);
        let (mut ours, _theirs) = pair(LOOPBACK[0], &options, &options);
        ours.set_nonblocking(true).unwrap();
        while ours.write(&[0; 10_000]).is_ok() {}
        let feedback = ours.mib().feedback;
        let (queued, room) = (feedback.send_queue.unwrap(), feedback.send_buffer.unwrap());
        assert!(Bytes::new(10_000) < queued && queued <= room, "{feedback:?}");
        assert!(feedback.queue_full >= 1, "{peer:?}: {feedback:?}");
    }
}

/// A call waits for room also where the kernel takes a part of its message at once, and where the peer takes no part.
#[test]
fn the_time_for_which_a_call_waits_for_room_is_counted() {
    // More than the kernel queues at both ends.
    const LENGTH: usize = 64_000_000;
    for peer in [Peer::Detect, Peer::Plain] {
        let options = QosOptions::default().peer(peer);
        let (ours, mut theirs) = pair(LOOPBACK[0], &options, &options);
        thread::scope(|scope| {
            let mut sending = &ours;
            scope.spawn(move || sending.write_all(&vec![7; LENGTH]).unwrap());
            let begun = now();
            while ours.mib().feedback.queue_full == 0 {
                assert!(now() - begun < Duration::from_secs(60), "the queue is never full");
                thread::sleep(time::Duration::from_millis(1));
            }
            // The call waits for at least this time.
            thread::sleep(time::Duration::from_millis(100));
            let (mut buffer, mut received) = (vec![0; 1 << 16], 0);
            while received < LENGTH {
                received += theirs.read(&mut buffer).unwrap();
            }
        });
        let mib = ours.mib();
        assert!(mib.feedback.waited >= Duration::from_millis(100), "{peer:?}: {:?}", mib.feedback);
        // The application would have offered more.
        assert!(mib.send.sent.held >= Duration::from_millis(100), "{peer:?}: {:?}", mib.send.sent);
    }
}

/// Not from the time at which there was nothing before them: a gap between messages is none of the application's.
#[test]
fn data_are_unread_from_their_first_sighting() {
    let (mut ours, mut theirs) = pair(LOOPBACK[0], &QosOptions::default(), &QosOptions::default());
    // A gap that is longer than all that follows, unless the machine is busy.
    thread::sleep(time::Duration::from_millis(200));
    let begun = now();
    ours.write_all(b"message").unwrap();
    while !theirs.0.connection.is_unread() {
        assert!(now() - begun < Duration::from_secs(60), "the data are never seen");
        theirs.0.serve(now());
    }
    theirs.read_exact(&mut [0; 7]).unwrap();
    let unread = theirs.mib().receive.received.unread;
    let took = now() - begun;
    assert!(unread <= took, "{unread} in {took}");
}

#[test]
fn a_shut_down_direction_keeps_no_reports_and_the_other_one_continues() {
    let (ours, mut theirs) = pair(
        LOOPBACK[0],
        &quick(QosOptions::default().peer(Peer::Speaks)),
        &quick(QosOptions::default().peer(Peer::Speaks)),
    );
    ours.shutdown(Shutdown::Write).unwrap();
    theirs.write_all(b"answer").unwrap();
    // Many intervals, each of which ends with a report.
    thread::sleep(time::Duration::from_millis(300));
    assert_eq!(lock(&ours.0.send_buffer).pending_bytes(), 0);
    let mut buffer = [0; 6];
    (&mut &ours).read_exact(&mut buffer).unwrap();
    assert_eq!(&buffer, b"answer");
    assert_eq!((&mut &ours).write(b"more").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}

#[test]
fn messages_are_sampled_as_they_are_received() {
    let (mut ours, mut theirs) =
        pair(LOOPBACK[0], &quick(QosOptions::default()), &quick(QosOptions::default()));
    theirs.sample(10);
    let mut buffer = [0; 1000];
    for length in [1000, 10] {
        ours.write_all(&buffer[..length]).unwrap();
        theirs.read_exact(&mut buffer[..length]).unwrap();
    }
    let (samples, forgotten) = theirs.take_samples();
    let found: Vec<_> = samples.iter().map(|sample| (sample.number, sample.bytes)).collect();
    assert_eq!((found, forgotten), (vec![(0, 1000), (1, 10)], 0));
    assert!(samples[1].arrived >= samples[0].arrived && samples[1].jitter.is_some());
}

#[test]
fn both_ends_know_that_an_application_does_not_read() {
    let spec = Specification::builder()
        .rates(40.0, 80.0, 80.0)
        .size(Bytes::new(100))
        .max_gap(Duration::from_millis(500));
    let spec = spec.coerce_all().build().unwrap();
    let (mut ours, mut theirs) =
        pair("127.0.0.1:0", &QosOptions::sending(spec.clone()), &QosOptions::receiving(spec));
    ours.write_all(&[7; 100]).unwrap();
    theirs.read_exact(&mut [0; 100]).unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut sending = &ours;
            while !is_over.load(Ordering::SeqCst) {
                sending.write_all(&[7; 100]).unwrap();
                thread::sleep(time::Duration::from_millis(15));
            }
        });
        both_ends_know(ViolationOrigin::ReceivingHost, &ours.0.connection, &theirs.0.connection, &is_over);
    });
}

/// Time without data is not time in which data lie unread, also if the service thread sees them first.
#[test]
fn data_are_unread_from_the_time_on_at_which_they_are_seen() {
    let (mut ours, mut theirs) = pair(LOOPBACK[0], &QosOptions::default(), &QosOptions::default());
    ours.write_all(b"message").unwrap();
    theirs.read_exact(&mut [0; 7]).unwrap();
    let before = theirs.mib().receive.received.unread;
    // A time without data, which has no event of its own.
    crate::signals::sleep(Duration::from_millis(300)).unwrap();
    let begun = now();
    ours.write_all(b"message").unwrap();
    while !theirs.0.connection.is_unread() {
        assert!(now() - begun < Duration::from_secs(60), "it is not seen");
        theirs.0.serve(now());
    }
    theirs.read_exact(&mut [0; 7]).unwrap();
    let (unread, at_most) = (theirs.mib().receive.received.unread - before, now() - begun);
    assert!(Duration::ZERO < unread && unread <= at_most, "{unread:?} of {at_most:?}");
}

/// An end whose application does not read does not see reports, which wait behind data. It does not call that the network's.
#[test]
fn an_end_that_does_not_read_knows_why_it_hears_no_reports() {
    let spec = Specification::builder().recovery(Duration::from_millis(100)).coerce_all().build().unwrap();
    let asks = quick(QosOptions::sending(spec.clone()));
    let (ours, mut theirs) = pair(LOOPBACK[0], &asks, &quick(QosOptions::receiving(spec)));
    // Our application does not read this, and the reports come behind it.
    theirs.write_all(&[7; 1000]).unwrap();
    let violation = loop {
        match ours.wait_for_event(time::Duration::from_secs(60)).expect("no event comes") {
            SessionEvent::Violated(Direction::Send, violation) if violation.measure == Measure::Recovery => {
                break violation;
            }
            _ => {}
        }
    };
    assert_eq!(violation.origin, ViolationOrigin::SendingHost, "{violation:?}");
}

#[test]
fn the_port_of_a_closed_listener_is_free_for_another_one() {
    let first = QosTcpListener::bind(LOOPBACK[0], &QosOptions::default()).unwrap();
    let address = first.local_addr().unwrap();
    drop(first);
    for _ in 0..20 {
        drop(take_again(|| QosTcpListener::bind(address, &QosOptions::default())).unwrap());
    }
    take_again(|| std::net::UdpSocket::bind(address)).unwrap();
}

/// A client that never sends anything holds no server up, with and without a key, however many calls wait for it.
#[test]
fn a_timeout_ends_the_wait_for_a_peer_that_does_not_begin() {
    for has_key in [false, true] {
        let mut options = quick(QosOptions::default());
        if has_key {
            options = options.key(b"a key of thirty-two bytes, or so.").unwrap();
        }
        let listener = QosTcpListener::bind("127.0.0.1:0", &options).unwrap();
        let silent = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (ours, _) = listener.accept().unwrap();
        let time = Some(time::Duration::from_millis(50));
        ours.set_read_timeout(time).unwrap();
        ours.set_write_timeout(time).unwrap();
        thread::scope(|scope| {
            let read = || (&ours).read(&mut [0; 10]).map_err(|error| error.kind());
            let reads = [(); 2].map(|()| scope.spawn(read));
            if has_key {
                assert_eq!((&ours).write(b"220 hello").unwrap_err().kind(), io::ErrorKind::WouldBlock);
            }
            for reads in reads {
                assert_eq!(reads.join().unwrap(), Err(io::ErrorKind::WouldBlock), "has a key: {has_key}");
            }
        });
        assert!(ours.has_qos_peer().is_err());
        drop(silent);
    }
}
