//! Unknown hosts at gateways: those that are silent, and those that send in others' names. They take no thread and no other host's place.

use crate::common::{Settings, Watched, echo, is_answered, pair};
use cutline_gateway::{GatewayRoute, GatewaySide, Limits, ProgramTransport};
use cutline_socket::QosOptions;
use cutline_units::{Duration as Time, lock};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Mutex, MutexGuard};
use std::thread::spawn;
use std::time::Duration;

/// Tests that count the threads of this process run one after the other.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    lock(&ALONE)
}

/// A server that answers each connection with all that it has received, behind a byte, once that has ended.
fn after_end() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    spawn(move || {
        for stream in listener.incoming() {
            spawn(move || {
                let mut stream = stream.unwrap();
                let mut request = vec![b'!'];
                let asked = stream.read_to_end(&mut request);
                let _gone = asked.and_then(|_| stream.write_all(&request));
            });
        }
    });
    address
}

/// Returns the answer that a program gets.
fn ask(near: &Watched) -> Vec<u8> {
    let mut stream = TcpStream::connect(near.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(b"ask").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    let _reset = stream.read_to_end(&mut answer);
    answer
}

/// A program behind the near gateway.
fn program(near: &Watched) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(near.address()).unwrap();
    socket
}

/// Waits until a check holds.
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let until = std::time::Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(std::time::Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The threads of this process.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

#[test]
fn silent_connections_have_no_threads_and_leave_places_for_others() {
    let _alone = alone();
    let options = QosOptions::default().key(&[1; 32]).unwrap();
    let limits = Limits { connections: 5, ..Limits::default() };
    let settings = Settings { options, limits, ..Settings::default() };
    let (near, far) = pair(ProgramTransport::Tcp, after_end(), &settings);
    let before = threads();
    let silent: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(far.address()).unwrap()).collect();
    // Of one address, 128 may wait; those that came first have been reset.
    let strangers = || far.gateway.as_ref().unwrap().document().routes[0].totals.strangers;
    wait_until("the oldest have left", || strangers() >= 300 - 128);
    // Threads of other tests come and go; those of silent connections would stay.
    wait_until("they have no threads", || threads() < before + 50);
    for _ in 0..10 {
        assert_eq!(ask(&near), b"!ask");
    }
    let totals = far.gateway.as_ref().unwrap().document().routes[0].totals.clone();
    assert_eq!((totals.accepted, totals.failed, totals.turned_away), (10, 0, 0));
    far.told.wait_for("further unknown peers are counted, but not printed");
    drop(silent);
}

#[test]
fn one_address_does_not_get_all_connections_unless_it_has_proved_a_key() {
    let _alone = alone();
    for (key, expected) in [(None, 3), (Some([7; 32]), 5)] {
        let options = key.iter().fold(QosOptions::default(), |options, key| options.key(key).unwrap());
        let limits = Limits { connections: 5, of_one_address: 3, ..Limits::default() };
        let settings = Settings { options, limits, ..Settings::default() };
        let far = Watched::start_at(
            "0.0.0.0:0",
            GatewaySide::Far,
            ProgramTransport::Tcp,
            &after_end().to_string(),
            &settings,
        );
        let Some(own) = own_address() else { return };
        let to = SocketAddr::new(own, far.address().port());
        // Programs of this host may have as many as there are.
        let near = Watched::start(GatewaySide::Near, ProgramTransport::Tcp, to, &settings);
        let streams: Vec<TcpStream> = (0..5).map(|_| TcpStream::connect(near.address()).unwrap()).collect();
        let totals = || far.gateway.as_ref().unwrap().document().routes[0].totals.clone();
        wait_until("all have come", || totals().accepted + totals().turned_away == 5);
        assert_eq!(totals().accepted, expected);
        if key.is_none() {
            far.told.wait_for(&format!("{own} has 3 connections: further ones from it are refused"));
            // A place that is given back is another one's.
            drop(streams);
            wait_until("they have ended", || {
                totals().failed + far.gateway.as_ref().unwrap().document().connections.len() as u64 >= 3
            });
            assert_eq!(ask(&near), b"!ask");
        }
    }
}

/// An address of this host that is not the loopback's; `None` if it has none.
fn own_address() -> Option<std::net::IpAddr> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect("192.0.2.1:9").ok()?;
    Some(socket.local_addr().unwrap().ip())
}

#[test]
fn forged_datagrams_have_no_threads_and_keep_no_program_out() {
    let _alone = alone();
    // The places would be taken for an hour.
    let limits = Limits { connections: 40, idle: Time::from_secs(3600), ..Limits::default() };
    let settings = Settings { limits, ..Settings::default() };
    let (mut near, far) = pair(ProgramTransport::Udp, echo(), &settings);
    let known = program(&near);
    assert!(is_answered(&known) && is_answered(&known));
    let before = threads();
    // Each comes from an address of its own. Other tests of this process have threads, too, up to a few hundred.
    let mut most = 0;
    for number in 0..2000_u32 {
        let from = Ipv4Addr::from_bits(0x7f01_0000 + number);
        let forged = UdpSocket::bind((from, 0)).unwrap();
        forged.send_to(b"forged", near.address()).unwrap();
        most = most.max(threads());
    }
    assert!(most < before + 500, "{most} threads, {before} before");
    // Another program finds a place, and one that was answered before has kept its own.
    assert!(is_answered(&program(&near)));
    let port = known.local_addr().unwrap();
    assert!(is_answered(&known));
    let document = near.stop();
    let of_known: Vec<_> = document.connections.iter().filter(|it| it.peer == port.to_string()).collect();
    assert_eq!(of_known.len(), 1, "{of_known:?}");
    assert!(document.connections.iter().any(|it| it.ending == "another exchange has taken its place"));
    drop(far);
}

/// The near gateway has a place for the program, and the far one has none for a second.
#[test]
fn a_program_waits_for_a_place_at_the_far_gateway() {
    let _alone = alone();
    let limits = Limits { connections: 1, ..Limits::default() };
    let far = Watched::start(
        GatewaySide::Far,
        ProgramTransport::Udp,
        echo(),
        &Settings { limits, ..Settings::default() },
    );
    let near = Watched::start(GatewaySide::Near, ProgramTransport::Udp, far.address(), &Settings::default());
    for _ in 0..3 {
        assert!(is_answered(&program(&near)));
    }
}

#[test]
fn datagrams_leave_places_for_streams() {
    let _alone = alone();
    let limits = Limits { connections: 40, idle: Time::from_secs(3600), ..Limits::default() };
    let settings = Settings { limits, ..Settings::default() };
    let route = |transport, to: SocketAddr| GatewayRoute {
        transport,
        listen: "127.0.0.1:0".parse().unwrap(),
        to: to.to_string(),
    };
    let far = [(ProgramTransport::Tcp, after_end()), (ProgramTransport::Udp, echo())]
        .map(|(transport, to)| Watched::start(GatewaySide::Far, transport, to, &Settings::default()));
    let routes =
        vec![route(ProgramTransport::Tcp, far[0].address()), route(ProgramTransport::Udp, far[1].address())];
    let mut near = Watched::with_routes(GatewaySide::Near, routes, &settings);
    let udp = near.gateway.as_ref().unwrap().addresses()[1];
    let forge = |most: u32| {
        for number in 0..most {
            let forged = UdpSocket::bind((Ipv4Addr::from_bits(0x7f02_0000 + number), 0)).unwrap();
            forged.send_to(b"forged", udp).unwrap();
        }
    };
    forge(200);
    wait_until("its places are taken", || {
        near.gateway.as_ref().unwrap().document().routes[1].totals.turned_away > 0
    });
    for _ in 0..10 {
        assert_eq!(ask(&near), b"!ask");
    }
    let document = near.stop();
    assert_eq!(document.routes[0].totals.turned_away, 0);
    assert!(document.routes[1].totals.accepted >= 30);
}
