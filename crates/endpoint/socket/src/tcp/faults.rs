//! Effects of faults on a stream: whatever is cut, the received data are a prefix of the sent data, whole and
//! in order, and the end that has lost something learns it.

use super::tests::{bulk, patient, quick};
use super::*;
use crate::options::Peer;
use cutline_quality::spec::{Measure, Specification};
use cutline_signal::frame;
use cutline_signal::negotiation::OneSidedReason;
use cutline_signal::session::SessionEvent;
use cutline_units::{RandomStream, Streams};
use rustix::net::sockopt::{set_socket_linger, set_socket_recv_buffer_size, set_socket_send_buffer_size};
use std::net::TcpListener;
use std::thread;

const fn ms(time: u64) -> time::Duration {
    time::Duration::from_millis(time)
}

/// Fault of a proxy between two ends, in each direction.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// Delivers one byte at a time.
    Bytes,
    /// Pieces of random lengths, with pauses of random lengths.
    Pieces,
    /// After so many bytes of a direction it ends both.
    Close(usize),
    /// After so many bytes of a direction it resets both.
    Reset(usize),
    /// After so many bytes of a direction it is silent forever.
    Silence(usize),
}

/// Longer than any end waits. The proxy's threads end with the process.
const FOREVER: time::Duration = time::Duration::from_secs(60);

/// Starts a proxy for one connection. Returns its address.
fn proxy(to: SocketAddr, fault: Fault, seed: u64) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let here = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (front, _) = listener.accept().unwrap();
        let back = TcpStream::connect(to).unwrap();
        thread::scope(|scope| {
            for (name, from, to) in [("forward", &front, &back), ("reverse", &back, &front)] {
                from.set_nodelay(true).unwrap();
                from.set_read_timeout(Some(FOREVER)).unwrap();
                scope.spawn(move || relay(from, to, fault, Streams::new(seed).stream("proxy", name)));
            }
        });
    });
    here
}

fn relay(mut from: &TcpStream, mut to: &TcpStream, fault: Fault, mut random: RandomStream) {
    let (mut passed, mut bytes) = (0, vec![0; 10_000]);
    loop {
        let most = if fault == Fault::Bytes { 100 } else { (random.uniform() * 9_999.0) as usize + 1 };
        let read = from.read(&mut bytes[..most]).unwrap_or(0);
        let left = match fault {
            Fault::Close(left) | Fault::Reset(left) | Fault::Silence(left) => left - passed,
            Fault::Bytes | Fault::Pieces => read + 1,
        };
        let length = read.min(left);
        let piece = if fault == Fault::Bytes { 1 } else { length.max(1) };
        if bytes[..length].chunks(piece).any(|piece| to.write_all(piece).is_err()) || read == 0 {
            let _gone = to.shutdown(Shutdown::Write);
            return;
        }
        passed += length;
        if length == left {
            match fault {
                Fault::Silence(_) => thread::sleep(FOREVER),
                Fault::Reset(_) => {
                    for socket in [from, to] {
                        set_socket_linger(socket, Some(time::Duration::ZERO)).unwrap();
                        // Connecting to no address resets (connect(2)), also while others have the socket.
                        let _reset = rustix::net::connect_unspec(socket);
                    }
                }
                Fault::Close(_) | Fault::Bytes | Fault::Pieces => {}
            }
            let _gone = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
            return;
        }
        if fault == Fault::Pieces && random.uniform() < 0.1 {
            thread::sleep(time::Duration::from_micros((random.uniform() * 5000.0) as u64));
        }
    }
}

/// Connected through a proxy. Both are known to be QoS sockets.
fn through(fault: Fault, seed: u64, asks: QosOptions, asked: QosOptions) -> Option<[QosTcpStream; 2]> {
    let [asks, asked] = [asks, asked].map(|options| patient(options).peer(Peer::Speaks));
    let listener = QosTcpListener::bind("127.0.0.1:0", &asked).unwrap();
    let to = proxy(listener.local_addr().unwrap(), fault, seed);
    thread::scope(|scope| {
        let accepts = scope.spawn(|| {
            let (stream, _) = listener.accept().unwrap();
            stream.has_qos_peer().map(|_| stream)
        });
        let connected = QosTcpStream::connect(to, &asks);
        Some([connected.ok()?, accepts.join().unwrap().ok()?])
    })
}

const fn byte(i: usize) -> u8 {
    ((i * 31) >> 3) as u8
}

/// Writes messages of random lengths until all are written or writing fails. Returns the number of accepted bytes, and the places where calls that
/// were taken as a whole end.
fn write(mut stream: &QosTcpStream, length: usize, random: &mut RandomStream) -> (usize, Vec<usize>) {
    let (mut sent, mut ends) = (0, vec![0]);
    while sent < length {
        let most = (random.uniform().powi(3) * 60_000.0) as usize + 1;
        let bytes: Vec<u8> = (sent..length.min(sent + most)).map(byte).collect();
        match stream.write(&bytes) {
            Ok(written) => sent += written,
            Err(error) if retry(&error) => continue,
            Err(_) => break,
        }
        ends.push(sent);
    }
    (sent, ends)
}

/// Reads until the end or an error, and checks each byte. Returns their number.
fn read(mut stream: &QosTcpStream, length: usize, random: &mut RandomStream) -> (usize, io::Result<()>) {
    let (mut received, mut buffer) = (0, vec![0; 70_000]);
    while received < length {
        let most = (random.uniform().powi(3) * 69_999.0) as usize + 1;
        match stream.read(&mut buffer[..most]) {
            Ok(0) => return (received, Ok(())),
            Ok(read) => {
                let is_right = |(i, found): (usize, &u8)| *found == byte(received + i);
                assert!(buffer[..read].iter().enumerate().all(is_right), "in {read} B at {received}");
                received += read;
            }
            Err(error) if retry(&error) => {}
            Err(error) => return (received, Err(error)),
        }
    }
    (received, Ok(()))
}

fn retry(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

#[test]
fn no_byte_is_lost_or_doubled_at_any_result_of_the_kernel() {
    for seed in 0..8 {
        let options = || quick(QosOptions::default());
        let [ours, theirs] = through(Fault::Pieces, seed, options(), options()).unwrap();
        for stream in [&ours, &theirs] {
            set_socket_send_buffer_size(stream, 4096).unwrap();
            set_socket_recv_buffer_size(stream, 1 << 15).unwrap();
            stream.set_nodelay(true).unwrap();
            stream.set_nonblocking(seed % 2 == 0).unwrap();
        }
        let length = 40_000;
        thread::scope(|scope| {
            for (name, stream) in [("ours", &ours), ("theirs", &theirs)] {
                let random = move |what: &str| Streams::new(seed).stream(what, name);
                scope.spawn(move || {
                    kernel::inject(random("calls that write"));
                    assert_eq!(write(stream, length, &mut random("write")).0, length);
                });
                scope.spawn(move || {
                    kernel::inject(random("calls that read"));
                    let (received, end) = read(stream, length, &mut random("read"));
                    assert_eq!(received, length, "{end:?}");
                });
            }
        });
        for stream in [&ours, &theirs] {
            assert_eq!((stream.mib().receive.received.lost(), stream.mib().reports.refused), (0, 0));
        }
    }
}

#[test]
fn received_bytes_are_a_prefix_and_a_loss_is_an_error() {
    let mut random = Streams::new(7).stream("faults", "where");
    let mut place = || (random.uniform().powi(2) * 120_000.0) as usize + 1;
    let mut cut_within_messages = 0;
    for seed in 0..40 {
        let fault = match seed % 5 {
            0 => Fault::Bytes,
            1 => Fault::Pieces,
            2 => Fault::Reset(place()),
            _ => Fault::Close(place()),
        };
        let options = || quick(QosOptions::default());
        // A fault within the negotiation is an error of connecting, in bounded time.
        let Some([ours, theirs]) = through(fault, seed, options(), options()) else { continue };
        let length = if fault == Fault::Bytes { 20_000 } else { 200_000 };
        let is_cut = matches!(fault, Fault::Close(_) | Fault::Reset(_));
        thread::scope(|scope| {
            let mut within_messages = Vec::new();
            for (one, other) in [(&ours, &theirs), (&theirs, &ours)] {
                one.set_read_timeout(Some(time::Duration::from_secs(30))).unwrap();
                one.set_write_timeout(Some(time::Duration::from_secs(30))).unwrap();
                let (mut of_writer, mut of_reader) =
                    (Streams::new(seed).stream("write", "x"), Streams::new(seed).stream("read", "x"));
                let writes = scope.spawn(move || write(one, length, &mut of_writer));
                let reads = scope.spawn(move || read(other, length, &mut of_reader));
                let cut = scope.spawn(move || {
                    let ((sent, ends), (received, end)) = (writes.join().unwrap(), reads.join().unwrap());
                    assert!(received <= sent, "{fault:?}: {received} of {sent}");
                    if !is_cut {
                        assert_eq!((received, sent), (length, length), "{fault:?}");
                        return 0;
                    }
                    match end {
                        Ok(()) => {
                            assert!(
                                ends.contains(&received),
                                "{fault:?}: an end within a message, at {received}"
                            );
                            0
                        }
                        Err(error) => {
                            let kind = error.kind();
                            let told = [io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset];
                            assert!(told.contains(&kind), "{fault:?}: {error}");
                            usize::from(kind == io::ErrorKind::UnexpectedEof)
                        }
                    }
                });
                within_messages.push(cut);
            }
            cut_within_messages += within_messages.into_iter().map(|it| it.join().unwrap()).sum::<usize>();
        });
    }
    assert!(
        cut_within_messages > 5,
        "{cut_within_messages}: ends of a connection are mostly within messages"
    );
}

#[test]
fn a_stream_that_ends_within_a_message_is_an_error() {
    let options = || quick(QosOptions::default());
    let [ours, mut theirs] = through(Fault::Pieces, 1, options(), options()).unwrap();
    (&ours).write_all(b"whole").unwrap();
    // Past the layer: a header that announces more than comes.
    let Participation::Joined(token) = ours.0.connection.participation() else { panic!("they have agreed") };
    (&*ours.0.socket).write_all(&frame::stream_header(token, 100, true, now())).unwrap();
    (&*ours.0.socket).write_all(b"part").unwrap();
    ours.shutdown(Shutdown::Write).unwrap();
    let mut arrived = [0; 9];
    theirs.read_exact(&mut arrived).unwrap();
    assert_eq!(&arrived, b"wholepart");
    let error = theirs.read(&mut arrived).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    assert_eq!(error.to_string(), "the stream ends within a message: its rest is missing");
}

#[test]
fn a_vanished_peer_is_reported_within_the_recovery_time() {
    // Silent from the beginning: connecting fails when the negotiation gives up.
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let begin = now();
    let options = quick(QosOptions::default()).peer(Peer::Speaks);
    let error = QosTcpStream::connect(nobody.local_addr().unwrap(), &options).map(drop).unwrap_err();
    assert!(matches!(error, QosError::NoPeer(OneSidedReason::NoAnswer)), "{error}");
    assert!(now().saturating_since(begin) < Duration::from_secs(60));
    // Silent later: an event, calls that have a timeout end, and nothing grows.
    let recovers =
        || Specification::builder().recovery(Duration::from_millis(200)).coerce_all().build().unwrap();
    let options = || quick(QosOptions::both(recovers()));
    let [ours, _theirs] = through(Fault::Silence(3000), 3, options(), options()).unwrap();
    ours.set_read_timeout(Some(ms(300))).unwrap();
    ours.set_write_timeout(Some(ms(300))).unwrap();
    let begin = now();
    loop {
        let event = ours.wait_for_event(ms(60_000)).expect("an event in time");
        if matches!(&event, SessionEvent::Violated(_, violation) if violation.measure == Measure::Recovery) {
            break;
        }
    }
    assert!(now().saturating_since(begin) < Duration::from_secs(60));
    while (&ours).read(&mut [0; 1000]).is_ok() {}
    while (&ours).write(&vec![0; 100_000]).is_ok() {}
    thread::sleep(ms(300));
    assert!(lock(&ours.0.send_buffer).pending_bytes() < 1 << 14, "control messages that wait are bounded");
}

#[test]
fn invalid_frames_are_errors() {
    let mut random = Streams::new(11).stream("frames", "wrong");
    for seed in 0..60_u64 {
        let options = || quick(QosOptions::sending(bulk()));
        let [ours, theirs] = through(Fault::Pieces, seed, options(), options()).unwrap();
        let Participation::Joined(token) = theirs.0.connection.participation() else {
            panic!("they have agreed")
        };
        theirs.set_read_timeout(Some(ms(200))).unwrap();
        let mut noise =
            |length: usize| (0..length).map(|_| (random.uniform() * 256.0) as u8).collect::<Vec<u8>>();
        let none = None::<fn(&[u8]) -> [u8; 32]>;
        let bytes = match seed % 6 {
            0 => noise(300),
            // A report that is none, and one that lies about its length.
            1 => frame::report(token, &noise(180), none),
            2 => [&[0xc7, 0x53, 0xff, 0xff], &token.to_be_bytes()[..], &noise(100)].concat(),
            // A message of a negotiation: of another version, and of this one.
            3 => [&[0xc7, 0x51, 9, 1, 0, 40][..], &noise(34)].concat(),
            4 => [&[0xc7, 0x51, 1, 1, 0, 60][..], &noise(54)].concat(),
            // The longest fragment, of which little comes.
            _ => {
                [&frame::stream_header(token, frame::LONGEST_FRAGMENT, true, now())[..], &noise(50)].concat()
            }
        };
        (&*ours.0.socket).write_all(&bytes).unwrap();
        ours.shutdown(Shutdown::Write).unwrap();
        let mut taken = 0;
        let end = loop {
            match (&theirs).read(&mut [0; 1000]) {
                Ok(0) => break None,
                Ok(read) => taken += read,
                Err(error) if retry(&error) => {}
                Err(error) => break Some(error.kind()),
            }
        };
        assert!(taken <= bytes.len(), "{seed}: {taken} B");
        let allowed = [None, Some(io::ErrorKind::InvalidData), Some(io::ErrorKind::UnexpectedEof)];
        assert!(allowed.contains(&end), "{seed}: {end:?}");
        if seed % 6 == 1 {
            assert_eq!(theirs.mib().reports.refused, 1, "a report that lies is refused and counted");
        }
    }
}
