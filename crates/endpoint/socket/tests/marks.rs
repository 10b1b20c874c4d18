//! The mark of every packet that QoS sockets send, as it is on the wire.
//!
//! These tests need root, for a network namespace of their own. Without it they say so and pass:
//! `sudo -E cargo test -p cutline-socket marks::`.

use cutline_quality::spec::{Preset, Specification};
use cutline_signal::monitor::MonitorParams;
use cutline_socket::{
    Marking, Peer, QosOptions, QosTcpListener, QosTcpStream, QosUdpListener, QosUdpSocket, SessionEvent,
};
use cutline_sys::namespace::Namespace;
use cutline_testbed::capture::{ACK, Capture, Captured, RST, SYN, check_all, has_all_kinds};
use cutline_testbed::{may_make_namespaces, take_again};
use cutline_translate::Path;
use cutline_units::{Dscp, Duration, Hint};
use rustix::net::connect_unspec;
use rustix::net::sockopt::set_socket_linger;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, UdpSocket};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time;

const COMMAND: &str = "sudo -E cargo test -p cutline-socket marks::";
/// Addresses of the listening end, and of it as the connecting end sees it: both protocols of IP, and IPv4 to
/// a socket of IPv6.
const PLACES: [(IpAddr, IpAddr); 3] = [
    (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V4(Ipv4Addr::LOCALHOST)),
    (IpAddr::V6(Ipv6Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)),
    (IpAddr::V6(Ipv6Addr::UNSPECIFIED), IpAddr::V4(Ipv4Addr::LOCALHOST)),
];

/// The code point of a hint.
const fn dscp(hint: u8) -> u8 {
    (hint - 1) << 2 | 3
}

fn hint(level: u8) -> Marking {
    Marking::Fixed(Hint::from_level(level.into()))
}

/// Options of an end that reports often.
fn talkative(options: QosOptions) -> QosOptions {
    options.monitor(MonitorParams { interval: Duration::from_millis(10), ..MonitorParams::default() })
}

/// Returns the packets on a namespace's loopback while `work` runs in it, and a little longer.
fn captured(label: &str, work: impl FnOnce() + Send) -> Option<Vec<Captured>> {
    if !may_make_namespaces(COMMAND) {
        return None;
    }
    let namespace = Namespace::create(label).unwrap();
    let capture = Capture::start(&namespace);
    namespace.within(work).unwrap();
    // The capture sees the last packets.
    thread::sleep(time::Duration::from_millis(300));
    Some(capture.packets())
}

/// Returns an address to listen at. No other listener has its port, and no connecting end: the kernel chooses theirs above 32767.
fn own_port(ip: IpAddr) -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(7001);
    SocketAddr::new(ip, NEXT.fetch_add(1, Ordering::Relaxed))
}

fn at(ip: IpAddr, listener: SocketAddr) -> SocketAddr {
    SocketAddr::new(ip, listener.port())
}

/// Waits until a condition holds.
fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let end = time::Instant::now() + time::Duration::from_secs(60);
    while !holds() {
        assert!(time::Instant::now() < end, "{what}");
        // A report comes every 10 ms, later on a busy machine.
        thread::sleep(time::Duration::from_millis(5));
    }
}

/// Waits until both ends have received reports of the other one.
fn wait_for_reports(both: &Barrier, received: impl Fn() -> u64) {
    wait_until("reports come", || received() >= 2);
    // An end that is gone reports no more.
    both.wait();
}

/// Two streams, one of which is closed by the end that has connected first, and one by the peer.
fn streams((listen, ip): (IpAddr, IpAddr), asks: &QosOptions, asked: &QosOptions) -> u16 {
    let listener = QosTcpListener::bind(own_port(listen), asked).unwrap();
    let to = at(ip, listener.local_addr().unwrap());
    for connecting_end_closes in [true, false] {
        let both = &Barrier::new(2);
        thread::scope(|scope| {
            let exchange = |mut stream: QosTcpStream, closes: bool| {
                let mut buffer = vec![0; 50_000];
                stream.write_all(&buffer).unwrap();
                stream.read_exact(&mut buffer).unwrap();
                wait_for_reports(both, || stream.mib().reports.used);
                if closes {
                    stream.shutdown(Shutdown::Write).unwrap();
                }
                while stream.read(&mut buffer).unwrap() > 0 {}
            };
            scope.spawn(move || exchange(QosTcpStream::connect(to, asks).unwrap(), connecting_end_closes));
            exchange(listener.accept().unwrap().0, !connecting_end_closes);
        });
    }
    to.port()
}

/// Datagrams both ways, and an end that is refused.
fn datagrams((listen, ip): (IpAddr, IpAddr), asks: &QosOptions, asked: &QosOptions) -> u16 {
    let listener = QosUdpListener::bind(own_port(listen), asked).unwrap();
    let to = at(ip, listener.local_addr().unwrap());
    let both = &Barrier::new(2);
    thread::scope(|scope| {
        let exchange = |socket: QosUdpSocket| {
            for _ in 0..5 {
                socket.send(b"message").unwrap();
                socket.recv(&mut [0; 100]).unwrap();
            }
            wait_for_reports(both, || socket.mib().reports.used);
        };
        scope.spawn(move || exchange(QosUdpSocket::connect(to, asks).unwrap()));
        exchange(listener.accept().unwrap().0);
    });
    to.port()
}

/// Checks that whatever a port has sent has one mark, and everything else the other one.
fn check(packets: &[Captured], listening: &[u16], [asks, asked]: [u8; 2]) {
    let (theirs, ours): (Vec<_>, Vec<_>) =
        packets.iter().copied().partition(|packet| listening.contains(&packet.ports[0]));
    check_all(&ours, asks);
    check_all(&theirs, asked);
    for packets in [&ours, &theirs] {
        // Two connections, and the loopback shows each packet twice.
        has_all_kinds(packets, [("SYN", 4), ("FIN", 4), ("ACK", 16), ("data", 8)]);
        assert_eq!(packets.iter().filter(|it| it.tcp_flags & RST != 0).count(), 0, "nobody has reset");
        let mut datagrams = BTreeMap::<_, usize>::new();
        for packet in packets.iter().filter(|packet| !packet.is_tcp) {
            *datagrams.entry((packet.begins[1], packet.is_v6)).or_default() += 1;
        }
        for is_v6 in [false, true] {
            // Negotiation, messages, reports, and questions and answers about who is there.
            for (kind, least) in [(0x51, 2), (0x52, 10), (0x53, 4), (0x54, 4)] {
                let found = datagrams.get(&(kind, is_v6)).copied().unwrap_or(0);
                assert!(found >= least, "{found} datagrams of kind {kind:x}, IPv6 {is_v6}: {datagrams:?}");
            }
        }
    }
    assert!(theirs.iter().any(|packet| packet.tcp_flags & (SYN | ACK) == SYN | ACK));
}

/// The MIB has the hint of every way to mark, not only one that adapts.
#[test]
fn the_mib_has_the_hint_that_packets_have() {
    let video = || QosOptions::sending(Preset::Video.specification()).peer(Peer::Plain);
    let level = |address: &str, options: &QosOptions| {
        let plain = UdpSocket::bind(address).unwrap();
        let socket = QosUdpSocket::connect(plain.local_addr().unwrap(), options).unwrap();
        socket.mib().hint.map(Hint::level)
    };
    for address in ["127.0.0.1:0", "[::1]:0"] {
        assert_eq!(level(address, &video().marking(hint(6))), Some(6), "{address}");
        assert!(level(address, &video()).is_some(), "{address}: the translated hint of a video");
        assert_eq!(level(address, &video().marking(Marking::None)), None, "{address}");
        // Expedited forwarding is no hint.
        assert_eq!(
            level(address, &video().marking(Marking::Dscp(Dscp::new(46).unwrap()))),
            None,
            "{address}"
        );
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = QosTcpStream::connect(listener.local_addr().unwrap(), &video().marking(hint(3))).unwrap();
    assert_eq!(stream.mib().hint.map(Hint::level), Some(3));
}

#[test]
fn every_packet_has_the_hint_of_the_end_that_sends_it() {
    let [asks, asked] = [6, 11].map(|level| talkative(QosOptions::default().marking(hint(level))));
    let mut ports = Vec::new();
    let packets = captured("fixed", || {
        for place in PLACES {
            ports.push(streams(place, &asks, &asked));
            ports.push(datagrams(place, &asks, &asked));
        }
    });
    let Some(packets) = packets else { return };
    check(&packets, &ports, [dscp(6), dscp(11)]);
}

#[test]
fn every_packet_has_the_hint_that_fits_the_specification() {
    // docs/guide/translation.md: audio has hint 6 over a round trip of 300 ms, and 9 over one of 50 ms.
    let audio = |rtt| {
        let path = Path { rtt: Some(Duration::from_millis(rtt)), ..Path::default() };
        talkative(QosOptions::both(Preset::Audio.specification()).path(path))
    };
    let [asks, asked] = [audio(300), audio(50)];
    let mut ports = Vec::new();
    let packets = captured("spec", || {
        for place in PLACES {
            ports.push(streams(place, &asks, &asked));
            ports.push(datagrams(place, &asks, &asked));
        }
    });
    let Some(packets) = packets else { return };
    check(&packets, &ports, [dscp(6), dscp(9)]);
}

#[test]
fn packets_to_disagreeing_or_plain_peers_are_marked() {
    let strict = |loss| Specification::builder().loss(loss).build().unwrap();
    let asks = QosOptions::sending(strict(1.0)).marking(hint(6));
    let asked = QosOptions::receiving(strict(0.0)).marking(hint(11));
    let quick = QosOptions::default().marking(hint(6)).detection(time::Duration::from_millis(60));
    let mut ports = Vec::new();
    let mut plain = Vec::new();
    let packets = captured("alone", || {
        for (listen, ip) in PLACES {
            // Refused, by datagram and in a stream.
            let listener = QosUdpListener::bind(own_port(listen), &asked).unwrap();
            let to = at(ip, listener.local_addr().unwrap());
            thread::scope(|scope| {
                listener.set_nonblocking(true).unwrap();
                let asking = scope.spawn(|| QosUdpSocket::connect(to, &asks).map(drop).unwrap_err());
                while !asking.is_finished() {
                    let _nobody = listener.accept();
                    thread::sleep(time::Duration::from_millis(1));
                }
            });
            ports.push(to.port());
            let listener = QosTcpListener::bind(own_port(listen), &asked).unwrap();
            let to = at(ip, listener.local_addr().unwrap());
            thread::scope(|scope| {
                scope.spawn(|| QosTcpStream::connect(to, &asks).map(drop).unwrap_err());
                listener.accept().unwrap().0.read(&mut [0; 9]).unwrap_err();
            });
            ports.push(to.port());
            // A plain server.
            let server = TcpListener::bind(own_port(listen)).unwrap();
            let to = at(ip, server.local_addr().unwrap());
            let silent = UdpSocket::bind(to).unwrap();
            QosTcpStream::connect(to, &quick).unwrap().write_all(b"hello").unwrap();
            QosUdpSocket::connect(to, &quick).unwrap().send(b"hello").unwrap();
            drop((server, silent));
            plain.push(to.port());
        }
    });
    let Some(packets) = packets else { return };
    let packets: Vec<_> = packets.into_iter().filter(|packet| !plain.contains(&packet.ports[0])).collect();
    let (theirs, ours): (Vec<_>, Vec<_>) =
        packets.iter().copied().partition(|packet| ports.contains(&packet.ports[0]));
    check_all(&ours, dscp(6));
    check_all(&theirs, dscp(11));
    has_all_kinds(&ours, [("SYN", 4), ("data", 4), ("datagram", 10)]);
    has_all_kinds(&theirs, [("SYN", 2), ("datagram", 4)]);
    assert!(plain.iter().all(|port| packets.iter().any(|it| !it.is_tcp && it.ports[1] == *port)));
}

/// Returns whether a socket of TCP listens at a port in the network namespace of this thread.
fn is_listened_at(port: u16) -> bool {
    let tables = ["tcp", "tcp6"]
        .map(|table| std::fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap());
    // The second column is the local address, the fourth the state (proc_net_tcp.txt of the kernel): 0A is LISTEN.
    let ends = format!(":{port:04X}");
    tables.iter().flat_map(|table| table.lines()).any(|line| {
        let columns: Vec<_> = line.split_ascii_whitespace().collect();
        columns.get(3) == Some(&"0A") && columns[1].ends_with(&ends)
    })
}

/// A socket resets with its own mark. Without a socket, the kernel resets, and copies the mark of the packet that it answers.
#[test]
fn a_reset_of_the_kernel_has_the_mark_of_the_answered_segment() {
    let [asks, asked] = [6, 11].map(|level| QosOptions::default().marking(hint(level)).peer(Peer::Speaks));
    let mut ports = Vec::new();
    let packets = captured("reset", || {
        for &(listen, ip) in &PLACES[..2] {
            let listener = QosTcpListener::bind(own_port(listen), &asked).unwrap();
            let to = at(ip, listener.local_addr().unwrap());
            ports.push(to.port());
            let (ours, theirs) = thread::scope(|scope| {
                let asking = scope.spawn(|| QosTcpStream::connect(to, &asks).unwrap());
                let (theirs, _) = listener.accept().unwrap();
                theirs.has_qos_peer().unwrap();
                (asking.join().unwrap(), theirs)
            });
            (&theirs).write_all(b"unread").unwrap();
            // The data lie unread at this end.
            thread::sleep(time::Duration::from_millis(100));
            // The application wants a reset.
            set_socket_linger(&ours, Some(time::Duration::ZERO)).unwrap();
            drop(ours);
            drop((theirs, listener));
            // A process that another test has just forked may keep the listener open for a moment.
            while is_listened_at(to.port()) {
                thread::sleep(time::Duration::from_millis(5));
            }
            QosTcpStream::connect(to, &asks).map(drop).unwrap_err();
        }
    });
    let Some(packets) = packets else { return };
    for is_v6 in [false, true] {
        let resets = |of_listener: bool| -> Vec<u8> {
            let of = packets.iter().filter(|it| it.is_v6 == is_v6 && it.tcp_flags & RST != 0);
            of.filter(|it| ports.contains(&it.ports[0]) == of_listener).map(|it| it.dscp).collect()
        };
        assert_eq!(
            resets(false),
            [dscp(6); 2],
            "of the socket that was closed, which the loopback shows twice"
        );
        assert_eq!(resets(true), [dscp(6); 2], "of the kernel, to a SYN with our mark");
    }
    let rest: Vec<_> = packets.into_iter().filter(|it| it.tcp_flags & RST == 0).collect();
    let (theirs, ours): (Vec<_>, Vec<_>) =
        rest.iter().copied().partition(|packet| ports.contains(&packet.ports[0]));
    check_all(&ours, dscp(6));
    check_all(&theirs, dscp(11));
    has_all_kinds(&ours, [("SYN", 4), ("data", 2)]);
    has_all_kinds(&theirs, [("SYN-ACK", 2), ("data", 2)]);
}

/// Waits until a connection is known to be lost.
fn lost(event: impl Fn(time::Duration) -> Option<SessionEvent>) {
    loop {
        let event = event(time::Duration::from_secs(60)).expect("it is lost in time");
        if matches!(event, SessionEvent::Lost { .. }) {
            return;
        }
    }
}

/// Waits until a connection that was lost is there again.
fn made_again(mut event: impl FnMut(time::Duration) -> Option<SessionEvent>) {
    loop {
        match event(time::Duration::from_secs(60)).expect("it is made again in time") {
            SessionEvent::Recovered { is_new: true, .. } => return,
            SessionEvent::GaveUp { after, cause } => panic!("given up after {after}: {cause}"),
            _ => {}
        }
    }
}

#[test]
fn every_packet_of_a_connection_that_was_made_again_has_the_hint_of_its_end() {
    let recovers = Specification::builder().recovery(Duration::from_secs(60)).coerce_all().build().unwrap();
    let asks = talkative(QosOptions::both(recovers).marking(hint(6))).reconnect(true);
    let asked = talkative(QosOptions::default().marking(hint(11)));
    let (mut listening, mut ours) = (Vec::new(), Vec::new());
    let packets = captured("again", || {
        for &(listen, ip) in &PLACES[..2] {
            let listener = QosTcpListener::bind(own_port(listen), &asked).unwrap();
            let to = at(ip, listener.local_addr().unwrap());
            listening.push(to.port());
            thread::scope(|scope| {
                let connects = scope.spawn(|| QosTcpStream::connect(to, &asks).unwrap());
                let (theirs, _) = listener.accept().unwrap();
                theirs.has_qos_peer().unwrap();
                let mut stream = connects.join().unwrap();
                ours.push(stream.local_addr().unwrap().port());
                set_socket_linger(&theirs, Some(time::Duration::ZERO)).unwrap();
                connect_unspec(&theirs).unwrap();
                listener.set_nonblocking(true).unwrap();
                let mut next = None;
                made_again(|time| {
                    // On a busy machine an attempt may be abandoned; the next one has another connection.
                    let until = time::Instant::now() + time;
                    loop {
                        next = listener.accept().ok().map(|(accepted, _)| accepted).or(next.take());
                        let event = stream.wait_for_event(time::Duration::from_millis(5));
                        if event.is_some() || time::Instant::now() >= until {
                            return event;
                        }
                    }
                });
                let mut next = next.expect("it was accepted before it could agree");
                ours.push(stream.local_addr().unwrap().port());
                stream.write_all(b"lost").unwrap_err();
                stream.write_all(b"again").unwrap();
                next.read_exact(&mut [0; 5]).unwrap();
                // The acknowledgement is captured.
                thread::sleep(time::Duration::from_millis(100));
            });
            let listener = QosUdpListener::bind(own_port(listen), &asked).unwrap();
            let to = at(ip, listener.local_addr().unwrap());
            listening.push(to.port());
            let (socket, theirs) = thread::scope(|scope| {
                let connects = scope.spawn(|| QosUdpSocket::connect(to, &asks).unwrap());
                let (theirs, _) = listener.accept().unwrap();
                (connects.join().unwrap(), theirs)
            });
            ours.push(socket.local_addr().unwrap().port());
            drop((theirs, listener));
            // There is no listener meanwhile.
            lost(|time| socket.wait_for_event(time));
            let listener = take_again(|| QosUdpListener::bind(to, &asked)).unwrap();
            let (next, _) = listener.accept().unwrap();
            made_again(|time| socket.wait_for_event(time));
            ours.push(socket.local_addr().unwrap().port());
            socket.send(b"lost").unwrap_err();
            socket.send(b"again").unwrap();
            next.recv(&mut [0; 9]).unwrap();
            // Reports of both ends are captured.
            wait_until("reports come", || next.mib().reports.used >= 8 && socket.mib().reports.used >= 8);
        }
    });
    let Some(packets) = packets else { return };
    // To a segment of a connection that it no longer knows, the kernel answers with its mark.
    let (theirs, sent): (Vec<_>, Vec<_>) =
        packets.iter().copied().partition(|packet| listening.contains(&packet.ports[0]));
    let theirs: Vec<_> = theirs.into_iter().filter(|packet| packet.tcp_flags & RST == 0).collect();
    check_all(&sent, dscp(6));
    check_all(&theirs, dscp(11));
    has_all_kinds(&sent, [("SYN", 4), ("data", 8), ("datagram", 16)]);
    has_all_kinds(&theirs, [("SYN-ACK", 4), ("datagram", 16)]);
    assert_eq!(ours.len(), 8);
    for port in ours {
        let of = sent.iter().filter(|packet| packet.ports[0] == port).count();
        assert!(of >= 4, "{of} packets of port {port}, of one connection or the other");
    }
}
