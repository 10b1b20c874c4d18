//! Feedback of the host and the network to a socket.
//!
//! These tests need root, for network namespaces of their own. Without it they say so and pass:
//! `sudo -E cargo test -p cutline-socket feedback::`.

use cutline_quality::spec::{Measure, Specification};
use cutline_signal::violation::{Violation, ViolationOrigin};
use cutline_socket::{
    Direction, Marking, Peer, QosOptions, QosTcpListener, QosTcpStream, QosUdpListener, QosUdpSocket,
    SessionEvent,
};
use cutline_sys::namespace::Namespace;
use cutline_sys::reactor::{PollFd, PollFlags, wait};
use cutline_testbed::{may_make_namespaces, wait_for_own_addresses};
use cutline_units::{Bytes, Duration};
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{self, Instant};

const COMMAND: &str = "sudo -E cargo test -p cutline-socket feedback::";
const ENOBUFS: i32 = 105;
const EACCES: i32 = 13;
const EHOSTUNREACH: i32 = 113;
const ECONNREFUSED: i32 = 111;

/// Options of a sender, with a minute for the answer of its peer: a thread of a busy machine may have no turn for seconds.
fn sending(spec: Specification) -> QosOptions {
    QosOptions::sending(spec).detection(time::Duration::from_secs(60))
}

/// Options of a socket whose peer is none: nothing is sent but the test's messages.
fn alone() -> QosOptions {
    QosOptions::default().peer(Peer::Plain).marking(Marking::None)
}

fn tc(arguments: &str) -> String {
    let output = Command::new("tc").args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "tc {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the number of packets that the interface's queue has dropped, and of those that it has sent or
/// still has.
fn counted(interface: &str) -> (usize, usize) {
    let shown = tc(&format!("-s qdisc show dev {interface}"));
    let number = |before: &str, after: &str| -> usize {
        let (_, rest) = shown.split_once(before).unwrap_or_else(|| panic!("no `{before}` in {shown}"));
        let (number, _) = rest.split_once(after).unwrap_or_else(|| panic!("no `{after}` in {shown}"));
        number.trim().parse().unwrap_or_else(|error| panic!("{number}: {error} in {shown}"))
    };
    let waiting = shown.split_once("backlog ").and_then(|(_, rest)| rest.split_once("b ")).unwrap().1;
    let waiting: usize = waiting.split_once('p').unwrap().0.parse().unwrap();
    let sent = shown.split_once("bytes ").unwrap().1.split_once(" pkt").unwrap().0;
    (number("dropped ", ","), sent.parse::<usize>().unwrap() + waiting)
}

#[test]
fn a_full_queue_of_the_interface_is_reported_and_counted() {
    if !may_make_namespaces(COMMAND) {
        return;
    }
    for (local, neighbor) in [("10.9.0.1/24", "10.9.0.2"), ("fd09::1/64", "fd09::2")] {
        let peer = SocketAddr::new(neighbor.parse().unwrap(), 9);
        let is_v4 = peer.is_ipv4();
        let namespace = Namespace::create("full").unwrap();
        if is_v4 {
            // So that nothing but the test sends.
            namespace.set("net.ipv6.conf.all.disable_ipv6", "1").unwrap();
        }
        // The peer's address is known, so that no neighbour is asked for it.
        namespace
            .ip_batch(&format!(
                "link add eth9 type veth peer name eth8\nlink set eth8 up\nlink set eth9 up\naddress add {local} dev eth9 nodad\n\
                 neighbor add {neighbor} lladdr 02:00:00:00:00:09 dev eth9 nud permanent\n"
            ))
            .unwrap();
        if !is_v4 {
            wait_for_own_addresses(&namespace, &["fd09::1"]);
        }
        namespace
            .within(|| {
                // Room for three messages.
                tc("qdisc add dev eth9 root tbf rate 8kbit burst 2000 limit 3000");
                let (dropped_before, taken_before) = counted("eth9");
                let socket = QosUdpSocket::connect(peer, &alone()).unwrap();
                let (mut sent, mut refused) = (0, 0);
                for _ in 0..20 {
                    match socket.send(&[7; 900]) {
                        Ok(length) => {
                            assert_eq!(length, 900);
                            sent += 1;
                        }
                        Err(error) => {
                            assert_eq!(error.raw_os_error(), Some(ENOBUFS), "{error}");
                            refused += 1;
                        }
                    }
                }
                assert!(sent >= 2 && refused >= 10, "{sent} sent, {refused} refused");
                let mib = socket.mib();
                assert_eq!((mib.send.sent.messages, mib.feedback.no_buffers), (sent, refused));
                let (room, queued) = (mib.feedback.send_buffer.unwrap(), mib.feedback.send_queue.unwrap());
                assert!(queued.get() >= 900 && queued <= room, "{queued:?} of {room:?}");
                if is_v4 {
                    // Nothing was sent again.
                    let (dropped, taken) = counted("eth9");
                    assert_eq!(
                        (dropped - dropped_before, taken - taken_before),
                        (refused as usize, sent as usize)
                    );
                }
                // A plain socket gets no feedback.
                let (before, _) = counted("eth9");
                let plain = UdpSocket::bind(if is_v4 { "0.0.0.0:0" } else { "[::]:0" }).unwrap();
                plain.connect(peer).unwrap();
                (0..5).for_each(|_| assert_eq!(plain.send(&[7; 900]).unwrap(), 900));
                assert!(counted("eth9").0 > before);
            })
            .unwrap();
    }
}

/// Sends and receives until `is_over`, or an error other than that nothing has come, which it returns.
fn exchange(
    send: impl Fn() -> io::Result<usize>,
    receive: impl Fn() -> io::Result<usize>,
    is_over: impl Fn() -> bool,
) -> Option<i32> {
    let begun = Instant::now();
    while !is_over() {
        assert!(begun.elapsed() < time::Duration::from_secs(60), "no message of ICMP has come");
        if let Err(error) = send() {
            return error.raw_os_error();
        }
        thread::sleep(time::Duration::from_millis(20));
        match receive() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return error.raw_os_error(),
            Ok(length) => panic!("{length} bytes from nobody"),
        }
    }
    None
}

/// A host, and the next router on its way to anywhere: one that has no way to some networks, and bars the way to others.
fn host_and_router([host, router]: [&str; 2]) -> (Namespace, Namespace) {
    let (host, router) = (Namespace::create(host).unwrap(), Namespace::create(router).unwrap());
    host.ip(&["link", "add", "eth9", "type", "veth", "peer", "name", "eth8", "netns", router.name()])
        .unwrap();
    for (namespace, interface, last) in [(&host, "eth9", 1), (&router, "eth8", 2)] {
        let v4 = format!("address add 10.9.0.{last}/24 dev {interface}");
        let v6 = format!("address add fd09::{last}/64 dev {interface} nodad");
        namespace.ip_batch(&format!("{v4}\n{v6}\nlink set {interface} up\n")).unwrap();
    }
    wait_for_own_addresses(&host, &["fd09::1"]);
    wait_for_own_addresses(&router, &["fd09::2"]);
    host.ip_batch("route add default via 10.9.0.2\nroute add default via fd09::2\n").unwrap();
    for (parameter, value) in [
        ("net.ipv4.ip_forward", "1"),
        ("net.ipv6.conf.all.forwarding", "1"),
        ("net.ipv4.icmp_ratelimit", "0"),
        ("net.ipv6.icmp.ratelimit", "0"),
    ] {
        router.set(parameter, value).unwrap();
    }
    for route in
        ["unreachable 10.9.2.0/24", "prohibit 10.9.3.0/24", "unreachable fd09:2::/64", "prohibit fd09:3::/64"]
    {
        let [kind, network] = route.split(' ').collect::<Vec<_>>()[..] else { panic!("{route}") };
        router.ip(&["route", "add", kind, network]).unwrap();
    }
    (host, router)
}

#[test]
fn a_socket_shows_the_errors_that_a_plain_one_shows() {
    if !may_make_namespaces(COMMAND) {
        return;
    }
    let (host, _router) = host_and_router(["shows", "router1"]);
    host.within(|| {
        for (place, peer, shown) in [
            ("0.0.0.0:0", "10.9.2.1:9", None),
            ("0.0.0.0:0", "10.9.3.1:9", Some(EHOSTUNREACH)),
            ("0.0.0.0:0", "10.9.0.2:9", Some(ECONNREFUSED)),
            ("[::]:0", "[fd09:2::1]:9", None),
            ("[::]:0", "[fd09:3::1]:9", Some(EACCES)),
            ("[::]:0", "[fd09::2]:9", Some(ECONNREFUSED)),
            // IPv4 of a socket of IPv6.
            ("[::]:0", "[::ffff:10.9.2.1]:9", None),
            ("[::]:0", "[::ffff:10.9.0.2]:9", Some(ECONNREFUSED)),
        ] {
            let plain = UdpSocket::bind(place).unwrap();
            plain.connect(peer).unwrap();
            let over = plain.try_clone().unwrap();
            plain.set_nonblocking(true).unwrap();
            if shown.is_some() {
                let found = exchange(|| plain.send(b"plain"), || plain.recv(&mut [0; 9]), || false);
                assert_eq!(found, shown, "a plain socket to {peer}");
            }
            let socket = QosUdpSocket::over(over, &alone()).unwrap();
            socket.set_nonblocking(true).unwrap();
            let unreachable = || socket.mib().feedback.unreachable;
            let found =
                exchange(|| socket.send(b"message"), || socket.recv(&mut [0; 9]), || unreachable() > 0);
            assert_eq!((found, unreachable() > 0), (shown, shown.is_none()), "to {peer}");
            // Judged errors leave nothing behind that makes the descriptor ready.
            thread::sleep(time::Duration::from_millis(50));
            let _late = socket.recv(&mut [0; 9]);
            let mut ready = [PollFd::new(&socket, PollFlags::IN)];
            assert!(!wait(&mut ready, Duration::ZERO).unwrap(), "{peer}: {:?}", ready[0].revents());
        }
    })
    .unwrap();
}

#[test]
fn a_waiting_call_continues_to_wait() {
    if !may_make_namespaces(COMMAND) {
        return;
    }
    let (host, _router) = host_and_router(["waits", "router2"]);
    host.within(|| {
        let socket = QosUdpSocket::connect("10.9.2.1:9", &alone()).unwrap();
        let patience = time::Duration::from_millis(500);
        socket.set_read_timeout(Some(patience)).unwrap();
        let all = Instant::now();
        // On a busy machine the router answers a message when the call is over.
        while socket.mib().feedback.unreachable == 0 {
            socket.send(b"message").unwrap();
            let begun = Instant::now();
            let error = socket.recv(&mut [0; 9]).unwrap_err();
            let waited = begun.elapsed();
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}");
            assert!(patience <= waited && all.elapsed() < time::Duration::from_secs(60), "{waited:?}");
        }
    })
    .unwrap();
}

/// A video of 80 messages/s, of which 40 are needed, through a queue of its own host that carries 36 of them.
#[test]
fn a_queue_of_the_own_host_that_is_too_slow_is_a_violation_as_long_as_it_is() {
    if !may_make_namespaces(COMMAND) {
        return;
    }
    let namespace = Namespace::create("blocked").unwrap();
    namespace.ip(&["link", "set", "lo", "mtu", "1500"]).unwrap();
    namespace
        .within(|| {
            let spec = Specification::builder()
                .rates(40.0, 80.0, 80.0)
                .size(Bytes::new(1000))
                .coerce_all()
                .build()
                .unwrap();
            let listener = QosUdpListener::bind("127.0.0.1:0", &QosOptions::receiving(spec.clone())).unwrap();
            let to = listener.local_addr().unwrap();
            let (ours, theirs) = thread::scope(|scope| {
                let connecting = scope.spawn(|| QosUdpSocket::connect(to, &sending(spec)).unwrap());
                let (theirs, _) = listener.accept().unwrap();
                (connecting.join().unwrap(), theirs)
            });
            // The send buffer is smaller than the queue, so that calls block and nothing is lost.
            tc("qdisc add dev lo root tbf rate 300kbit burst 2000 limit 100000");
            let ends = AtomicBool::new(false);
            thread::scope(|scope| {
                scope.spawn(|| {
                    while !ends.load(Ordering::SeqCst) {
                        ours.send(&[7; 1000]).unwrap();
                    }
                });
                scope.spawn(|| {
                    theirs.set_read_timeout(Some(time::Duration::from_millis(100))).unwrap();
                    while !ends.load(Ordering::SeqCst) {
                        let _late = theirs.recv(&mut [0; 2000]);
                    }
                });
                let next = |socket: &QosUdpSocket, side: Direction| loop {
                    match socket.wait_for_event(time::Duration::from_secs(60)).expect("no event comes") {
                        SessionEvent::Violated(direction, violation)
                            if direction == side && violation.measure == Measure::Rate =>
                        {
                            break (violation, None);
                        }
                        SessionEvent::Restored { direction, violation, measured, .. }
                            if direction == side && violation.measure == Measure::Rate =>
                        {
                            break (violation, Some(measured));
                        }
                        _ => {}
                    }
                };
                for (socket, side) in [(&ours, Direction::Send), (&theirs, Direction::Receive)] {
                    let (violation, restored) = next(socket, side);
                    assert_eq!((violation.origin, restored), (ViolationOrigin::SendingHost, None), "{violation:?}");
                    assert!(violation.measured < 40.0, "{violation:?}");
                }
                // It lasts as long as the queue is slow: ten intervals.
                thread::sleep(time::Duration::from_secs(5));
                for socket in [&ours, &theirs] {
                    let over = socket.events().find(|event| {
                        matches!(event, SessionEvent::Restored { violation, .. } if violation.measure == Measure::Rate)
                    });
                    assert_eq!(over, None);
                }
                tc("qdisc del dev lo root");
                for (socket, side) in [(&ours, Direction::Send), (&theirs, Direction::Receive)] {
                    let (violation, restored) = next(socket, side);
                    assert!(restored.is_some_and(|now| now >= 38.0), "{restored:?}");
                    assert!(violation.measured < 40.0, "the worst: {violation:?}");
                }
                ends.store(true, Ordering::SeqCst);
            });
        })
        .unwrap();
}

/// Ends the threads of a test, also of one that fails.
struct EndOfThreads<'t>(&'t AtomicBool);

impl Drop for EndOfThreads<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Waits for the begin or the end of a violation of the rate.
fn rate_violation(stream: &QosTcpStream, side: Direction, is_end: bool) -> Violation {
    loop {
        let (direction, violation, ends) =
            match stream.wait_for_event(time::Duration::from_secs(60)).expect("no event comes") {
                SessionEvent::Violated(direction, violation) => (direction, violation, false),
                SessionEvent::Restored { direction, violation, .. } => (direction, violation, true),
                _ => continue,
            };
        if (direction, violation.measure, ends) == (side, Measure::Rate, is_end) {
            return violation;
        }
    }
}

/// A stream of 80 messages/s, of which 60 are needed, through a queue of its own host that carries 35 of them. Reports wait in the queue
/// behind data.
#[test]
fn a_queue_of_the_own_host_that_holds_a_stream_back_is_known_to_both_ends() {
    if !may_make_namespaces(COMMAND) {
        return;
    }
    let namespace = Namespace::create("held").unwrap();
    namespace.ip(&["link", "set", "lo", "mtu", "1500"]).unwrap();
    namespace
        .within(|| {
            let spec = Specification::builder()
                .rates(60.0, 80.0, 80.0)
                .size(Bytes::new(1000))
                .coerce_all()
                .build()
                .unwrap();
            let listener = QosTcpListener::bind("127.0.0.1:0", &QosOptions::receiving(spec.clone())).unwrap();
            let to = listener.local_addr().unwrap();
            let (ours, theirs) = thread::scope(|scope| {
                let connecting = scope.spawn(|| QosTcpStream::connect(to, &sending(spec)).unwrap());
                let (theirs, _) = listener.accept().unwrap();
                assert!(theirs.has_qos_peer().unwrap());
                (connecting.join().unwrap(), theirs)
            });
            theirs.set_read_timeout(Some(time::Duration::from_millis(100))).unwrap();
            let ends = AtomicBool::new(false);
            thread::scope(|scope| {
                let _ends = EndOfThreads(&ends);
                scope.spawn(|| {
                    let mut sending = &ours;
                    while !ends.load(Ordering::SeqCst) {
                        sending.write_all(&[7; 1000]).unwrap();
                    }
                });
                scope.spawn(|| {
                    let (mut receiving, mut buffer) = (&theirs, [0; 4000]);
                    while !ends.load(Ordering::SeqCst) {
                        let _late = receiving.read(&mut buffer);
                    }
                });
                let begun = Instant::now();
                while theirs.mib().receive.sent.held.is_zero() {
                    assert!(
                        begun.elapsed() < time::Duration::from_secs(60),
                        "no report of a full send queue"
                    );
                    thread::sleep(time::Duration::from_millis(10));
                }
                let sides = [(&ours, Direction::Send), (&theirs, Direction::Receive)];
                for round in 1.. {
                    tc("qdisc add dev lo root tbf rate 300kbit burst 2000 limit 100000");
                    let origins = sides.map(|(stream, side)| rate_violation(stream, side, false).origin);
                    tc("qdisc del dev lo root");
                    for (stream, side) in sides {
                        assert!(rate_violation(stream, side, true).measured < 60.0);
                    }
                    if origins == [ViolationOrigin::SendingHost; 2] {
                        break;
                    }
                    // A pause of the machine may have begun a violation of another origin before.
                    assert!(round < 5, "{origins:?}");
                }
            });
        })
        .unwrap();
}
