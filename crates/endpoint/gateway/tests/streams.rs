//! Streams through a pair of gateways on the loopback interface.

use crate::common::{Settings, Watched, pair};
use cutline_gateway::{GatewaySide, Limits, ProgramTransport};
use cutline_quality::spec::{Preset, Specification};
use cutline_socket::{Access, IfRefused, QosOptions};
use cutline_units::Bytes;
use rustix::net::SendFlags;
use rustix::net::sockopt::set_socket_linger;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{JoinHandle, scope, spawn};
use std::time::Duration;

const MB: usize = 1 << 20;
/// Time in which anything here has to happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes that repeat nowhere soon.
fn noise(length: usize, seed: u32) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

/// Data until the end, or until an error.
type Received = (Vec<u8>, Option<ErrorKind>);

/// A server that serves each connection by a function.
fn server(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    spawn(move || {
        scope(|scope| {
            for stream in listener.incoming() {
                scope.spawn(|| serve(stream.unwrap()));
            }
        });
    });
    address
}

/// A server that answers with all that it has received, behind a byte, once that has ended.
fn after_end() -> SocketAddr {
    server(|mut stream| {
        let mut request = vec![b'!'];
        stream.read_to_end(&mut request).unwrap();
        stream.write_all(&request).unwrap();
    })
}

/// A server that does not answer. The receiver gets its request of seven bytes, and then all other data with the error that ended
/// them.
fn recipient() -> (SocketAddr, Receiver<Received>) {
    let (received, receives) = channel();
    let to = server(move |mut stream| {
        let mut request = vec![0; 7];
        stream.read_exact(&mut request).unwrap();
        // The test may be over.
        let _over = received.send((request, None));
        let _over = received.send(rest(stream));
    });
    (to, receives)
}

fn client(near: &Watched) -> TcpStream {
    let stream = TcpStream::connect(near.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// Returns the data until the end or an error.
fn rest(mut stream: TcpStream) -> Received {
    let mut all = Vec::new();
    let error = stream.read_to_end(&mut all).err();
    (all, error.map(|error| error.kind()))
}

#[test]
fn megabytes_cross_intact_in_both_directions_at_once_and_each_end_is_carried_over() {
    let there = noise(8 * MB, 1);
    let back = noise(5 * MB, 2);
    let (expected, answer) = (there.clone(), back.clone());
    let to = server(move |mut stream| {
        let mut writer = stream.try_clone().unwrap();
        let answer = answer.clone();
        let writing = spawn(move || {
            writer.write_all(&answer).unwrap();
            // This direction ends while the other one continues.
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let mut request = Vec::new();
        stream.read_to_end(&mut request).unwrap();
        assert!(request == expected, "{} bytes of {}", request.len(), expected.len());
        writing.join().unwrap();
    });
    // Messages of an agreed size, and of any.
    let sized = Specification::builder().size(Bytes::new(5000)).coerce_all().build().unwrap();
    for options in [QosOptions::default(), QosOptions::both(sized)] {
        let (mut near, mut far) =
            pair(ProgramTransport::Tcp, to, &Settings { options, ..Settings::default() });
        let stream = client(&near);
        let mut writer = stream.try_clone().unwrap();
        let there = there.clone();
        let writing: JoinHandle<()> = spawn(move || {
            writer.write_all(&there).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let (received, error) = rest(stream);
        writing.join().unwrap();
        assert!((&received, error) == (&back, None), "{} bytes, {error:?}", received.len());
        near.wait_for_ends(1);
        far.wait_for_ends(1);
        let (near_end, far_end) = (near.stop(), far.stop());
        assert_eq!((near.told.text().as_str(), far.told.text().as_str()), ("", ""));
        let [of_near, of_far] = [&near_end, &far_end].map(|document| &document.connections[0]);
        assert_eq!(of_near.sent.sent_bytes, 8 * MB as u64);
        assert_eq!(of_far.received.received_bytes, 8 * MB as u64);
        // The far gateway's greeting is a byte.
        assert_eq!(of_far.sent.sent_bytes, 5 * MB as u64 + 1);
        assert_eq!(of_near.received.received_bytes, 5 * MB as u64 + 1);
        assert_eq!(of_far.received.lost, 0);
        assert_eq!(of_near.ending, "both directions have ended");
        assert!(!of_near.failed && !of_far.failed);
    }
}

#[test]
fn an_answer_after_the_end_of_the_request_comes_back() {
    let (near, _far) = pair(ProgramTransport::Tcp, after_end(), &Settings::default());
    let mut stream = client(&near);
    stream.write_all(b"request").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    // Longer than between two reports, which the ended direction can no longer carry.
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!(rest(stream), (b"!request".to_vec(), None));
}

#[test]
fn a_refusing_server_resets_the_program_and_is_named() {
    // There is no longer a listener.
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (mut near, mut far) = pair(ProgramTransport::Tcp, nobody, &Settings::default());
    let (received, error) = rest(client(&near));
    assert_eq!((received, error), (Vec::new(), Some(ErrorKind::ConnectionReset)));
    near.told.wait_for("the server refuses connections");
    far.told.wait_for(&format!("the server {nobody} cannot be reached: Connection refused"));
    let (of_near, of_far) = (near.stop(), far.stop());
    for document in [of_near, of_far] {
        let totals = &document.routes[0].totals;
        assert_eq!((totals.accepted, totals.failed), (1, 1), "{document:?}");
    }
}

#[test]
fn without_a_far_gateway_the_program_is_reset() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let near = Watched::start(GatewaySide::Near, ProgramTransport::Tcp, nobody, &Settings::default());
    assert_eq!(rest(client(&near)), (Vec::new(), Some(ErrorKind::ConnectionReset)));
    near.told
        .wait_for(&format!("the far gateway {nobody} cannot be reached: cannot connect: Connection refused"));
}

#[test]
fn a_reset_of_a_server_never_becomes_an_end_of_stream() {
    let to = server(|mut stream| {
        stream.read_exact(&mut [0; 7]).unwrap();
        stream.write_all(&[b'x'; 1000]).unwrap();
        // The peer has read what came before the reset.
        stream.read_exact(&mut [0; 4]).unwrap();
        set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
    });
    let (near, far) = pair(ProgramTransport::Tcp, to, &Settings::default());
    let mut stream = client(&near);
    stream.write_all(b"request").unwrap();
    let mut answer = [0; 1000];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer, [b'x'; 1000]);
    stream.write_all(b"read").unwrap();
    assert_eq!(rest(stream), (Vec::new(), Some(ErrorKind::ConnectionReset)));
    far.told.wait_for("the server has ended it: Connection reset");
    near.told.wait_for("the other gateway has ended it");
}

#[test]
fn a_program_that_breaks_off_resets_the_server() {
    let (to, ends) = recipient();
    let (near, _far) = pair(ProgramTransport::Tcp, to, &Settings::default());
    let mut stream = client(&near);
    stream.write_all(b"request").unwrap();
    assert_eq!(ends.recv_timeout(PATIENCE).unwrap(), (b"request".to_vec(), None));
    set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
    drop(stream);
    assert_eq!(ends.recv_timeout(PATIENCE).unwrap(), (Vec::new(), Some(ErrorKind::ConnectionReset)));
}

#[test]
fn a_gateway_that_ends_resets_its_connections() {
    for ends in [GatewaySide::Near, GatewaySide::Far] {
        let (to, received) = recipient();
        let (mut near, mut far) = pair(ProgramTransport::Tcp, to, &Settings::default());
        let mut stream = client(&near);
        stream.write_all(b"request").unwrap();
        assert_eq!(received.recv_timeout(PATIENCE).unwrap(), (b"request".to_vec(), None));
        let document = if ends == GatewaySide::Near { near.stop() } else { far.stop() };
        assert_eq!(document.connections[0].ending, "the gateway was stopped");
        assert_eq!(rest(stream), (Vec::new(), Some(ErrorKind::ConnectionReset)), "{ends:?}");
    }
}

#[test]
fn the_far_gateway_serves_only_gateways() {
    let reached = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let of_server = reached.clone();
    let to = server(move |_| of_server.store(true, std::sync::atomic::Ordering::Relaxed));
    let far = Watched::start(GatewaySide::Far, ProgramTransport::Tcp, to, &Settings::default());
    let mut stream = client(&far);
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let (received, _) = rest(stream);
    assert_eq!(received, b"");
    far.told.wait_for("the peer is no near gateway");
    assert!(!reached.load(std::sync::atomic::Ordering::Relaxed), "the server saw nothing of it");
    // A server that is no gateway is recognised by a near gateway, too.
    let plain = server(|mut stream| {
        let _gone = stream.write_all(b"220 mail.example ESMTP\r\n");
        let _gone = stream.read_to_end(&mut Vec::new());
    });
    let near = Watched::start(GatewaySide::Near, ProgramTransport::Tcp, plain, &Settings::default());
    assert_eq!(rest(client(&near)).0, b"");
    near.told.wait_for("the peer is no QoS socket");
}

#[test]
fn a_key_excludes_other_hosts() {
    let with =
        |key: u8| Settings { options: QosOptions::default().key(&[key; 32]).unwrap(), ..Settings::default() };
    let far = Watched::start(GatewaySide::Far, ProgramTransport::Tcp, after_end(), &with(1));
    for (key, expected) in [(1, b"!ask".as_slice()), (2, b"")] {
        let near = Watched::start(GatewaySide::Near, ProgramTransport::Tcp, far.address(), &with(key));
        let mut stream = client(&near);
        stream.write_all(b"ask").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(rest(stream).0, expected);
    }
}

/// TCP's urgent byte is a byte of the stream (RFC 6093): a relay that leaves it out changes what the application has sent.
#[test]
fn urgent_bytes_stay_at_their_place_in_both_directions() {
    let send = |stream: &TcpStream, bytes: &[u8], flags| {
        assert_eq!(rustix::net::send(stream, bytes, flags).unwrap(), bytes.len());
    };
    let words = move |stream: &TcpStream| {
        // One at the beginning, two together, one within, one at the end.
        for (bytes, is_urgent) in
            [("!", true), ("?", true), ("abc", false), ("xy!", true), ("def", false), ("#", true)]
        {
            let flags = if is_urgent { SendFlags::OOB } else { SendFlags::empty() };
            send(stream, bytes.as_bytes(), flags);
            std::thread::sleep(Duration::from_millis(20));
        }
        stream.shutdown(Shutdown::Write).unwrap();
    };
    let (heard, hears) = std::sync::mpsc::channel();
    let to = server(move |stream| {
        words(&stream);
        heard.send(rest(stream).0).unwrap();
    });
    let (near, _far) = pair(ProgramTransport::Tcp, to, &Settings::default());
    let stream = client(&near);
    words(&stream);
    assert_eq!(rest(stream), (b"!?abcxy!def#".to_vec(), None));
    assert_eq!(hears.recv().unwrap(), b"!?abcxy!def#");
}

#[test]
fn a_hundred_connections_at_once_are_kept_apart() {
    let (near, mut far) = pair(ProgramTransport::Tcp, after_end(), &Settings::default());
    scope(|scope| {
        for number in 0..100_u32 {
            let near = &near;
            scope.spawn(move || {
                let request = noise(10_000 + number as usize, number);
                let mut stream = client(near);
                stream.write_all(&request).unwrap();
                stream.shutdown(Shutdown::Write).unwrap();
                let (answer, error) = rest(stream);
                assert!(answer[1..] == request && error.is_none(), "{number}: {error:?}");
            });
        }
    });
    far.wait_for_ends(100);
    let totals = far.stop().routes[0].totals.clone();
    assert_eq!((totals.accepted, totals.failed, totals.turned_away), (100, 0, 0));
}

#[test]
fn more_connections_than_allowed_are_turned_away() {
    let limits = Limits { connections: 2, ..Limits::default() };
    let (near, _far) = pair(ProgramTransport::Tcp, after_end(), &Settings { limits, ..Settings::default() });
    let _two = [client(&near), client(&near)];
    let totals = || near.gateway.as_ref().unwrap().document().routes[0].totals.clone();
    let begin = std::time::Instant::now();
    while totals().accepted < 2 {
        assert!(begin.elapsed() < PATIENCE, "{:?}", totals());
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(rest(client(&near)), (Vec::new(), Some(ErrorKind::ConnectionReset)));
    let totals = totals();
    assert_eq!((totals.accepted, totals.turned_away), (2, 1));
    assert_eq!(near.told.text().lines().count(), 1);
    near.told.wait_for("there are 2 connections: further ones are refused (--max-connections)");
}

#[test]
fn a_server_that_does_not_read_holds_the_program_back() {
    let (let_read, may_read) = std::sync::mpsc::channel::<()>();
    let may_read = std::sync::Mutex::new(may_read);
    let to = server(move |mut stream| {
        may_read.lock().unwrap().recv().unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        stream.write_all(&(all.len() as u64).to_be_bytes()).unwrap();
    });
    let (near, _far) = pair(ProgramTransport::Tcp, to, &Settings::default());
    let mut stream = client(&near);
    stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    let block = noise(MB, 3);
    let mut written = 0;
    // Buffers of the kernel and of the gateways fill, and then nothing more is taken.
    loop {
        match stream.write(&block) {
            Ok(bytes) => written += bytes as u64,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                break;
            }
        }
        assert!(written < 100 * MB as u64, "somebody keeps everything");
    }
    let_read.send(()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = [0; 8];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(u64::from_be_bytes(answer), written);
}

#[test]
fn a_refused_reservation_is_reported_or_is_an_error() {
    let to = after_end();
    let video = Preset::Video.specification();
    let options = QosOptions::sending(video).service("rsvp", &Access { socket: "/nosuch/agent".into() });
    let (of_far, options) = (Settings::default(), options.unwrap());
    let start = |options: &QosOptions| {
        let far = Watched::start(GatewaySide::Far, ProgramTransport::Tcp, to, &of_far);
        let of_near = Settings { options: options.clone(), ..Settings::default() };
        (Watched::start(GatewaySide::Near, ProgramTransport::Tcp, far.address(), &of_near), far)
    };
    let (mut near, _far) = start(&options);
    let mut stream = client(&near);
    stream.write_all(b"hello").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(rest(stream), (b"!hello".to_vec(), None), "it goes on");
    near.wait_for_ends(1);
    let why = "cutlined cannot be reached: cutlined at /nosuch/agent";
    near.told.wait_for(&format!("send continues as best effort: {why}"));
    let sent = &near.stop().connections[0].sent;
    assert!(sent.refusal.as_ref().is_some_and(|refusal| refusal.starts_with(why)), "{sent:?}");
    assert_eq!(sent.reserved_bps, None);

    let (near, _far) = start(&options.if_refused(IfRefused::Fail));
    let (got, error) = rest(client(&near));
    assert_eq!((got.len(), error), (0, Some(ErrorKind::ConnectionReset)));
    near.told.wait_for(&format!("the reservation is refused: {why}"));
}
