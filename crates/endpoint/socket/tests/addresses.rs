//! Servers on all addresses of a host answer from the one in the question, and their ports are not shared.

use cutline_signal::presence::{is_answer, question};
use cutline_socket::address::{lookup, lookup_listen_address};
use cutline_socket::{Marking, Peer, QosOptions, QosTcpListener, QosTcpStream, QosUdpListener, QosUdpSocket};
use cutline_sys::namespace::Namespace;
use cutline_testbed::{may_make_namespaces, take_again, wait_for_own_addresses};
use rustix::net::sockopt::{ip_tos, ipv6_tclass, set_socket_reuseaddr, set_socket_reuseport};
use rustix::net::{AddressFamily, SocketType, bind, socket};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

/// Servers on all addresses, and addresses at which they are asked. All of 127.0.0.0/8 is this host's.
const ASKED: [(&str, &str); 4] =
    [("0.0.0.0:0", "127.0.0.1"), ("0.0.0.0:0", "127.0.0.9"), ("[::]:0", "127.0.0.9"), ("[::]:0", "::1")];

fn at(ip: &str, of: SocketAddr) -> SocketAddr {
    SocketAddr::new(ip.parse().unwrap(), of.port())
}

/// A plain client that is connected to a server. It does not hear answers from another address. One of IPv4 sends from 127.0.0.1, from where
/// a server would answer to it without an explicit address.
fn plain(to: SocketAddr) -> UdpSocket {
    let client = UdpSocket::bind(if to.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" }).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    client.connect(to).unwrap();
    client
}

#[test]
fn a_datagram_server_answers_from_the_addressed_address() {
    for (listen, ip) in ASKED {
        let listener = QosUdpListener::bind(listen, &QosOptions::default()).unwrap();
        let to = at(ip, listener.local_addr().unwrap());
        // A QoS socket, which would otherwise be a plain one.
        let connecting =
            thread::spawn(move || QosUdpSocket::connect(to, &QosOptions::default().peer(Peer::Speaks)));
        let (theirs, _) = listener.accept().unwrap();
        let ours = connecting.join().unwrap().unwrap();
        assert_eq!(theirs.local_addr().unwrap().ip().to_canonical(), to.ip(), "{listen}");
        theirs.send(b"hello").unwrap();
        assert_eq!(ours.recv(&mut [0; 9]).unwrap(), 5);
        // A plain client.
        let client = plain(to);
        client.send(b"question").unwrap();
        let (theirs, _) = listener.accept().unwrap();
        assert_eq!(theirs.recv(&mut [0; 9]).unwrap(), 8);
        theirs.send(b"answer").unwrap();
        assert_eq!(client.recv(&mut [0; 9]).unwrap(), 6, "{listen} at {ip}");
    }
}

#[test]
fn the_query_of_a_stream_is_answered_from_the_addressed_address() {
    for (listen, ip) in ASKED {
        let listener = QosTcpListener::bind(listen, &QosOptions::default()).unwrap();
        let to = at(ip, listener.local_addr().unwrap());
        let client = plain(to);
        client.send(&question([7; 16], None)).unwrap();
        let mut answer = [0; 100];
        let length = client.recv(&mut answer).unwrap();
        assert!(is_answer(&answer[..length], [7; 16], None));
        let connecting = thread::spawn(move || QosTcpStream::connect(to, &patient()).unwrap());
        let (theirs, _) = listener.accept().unwrap();
        assert!(theirs.has_qos_peer().unwrap(), "{listen} at {ip}");
        assert!(connecting.join().unwrap().has_qos_peer().unwrap());
    }
}

/// The standard library reads no name of a zone.
#[test]
fn a_text_names_the_interface_of_a_link_local_address() {
    if !may_make_namespaces("sudo -E cargo test -p cutline-socket addresses::") {
        return;
    }
    let host = Namespace::create("zoned").unwrap();
    host.ip(&["address", "add", "fe80::1/64", "dev", "lo", "nodad"]).unwrap();
    wait_for_own_addresses(&host, &["fe80::1%1"]);
    let exchange = || {
        let here = lookup_listen_address("[fe80::1%lo]:0").unwrap();
        let listener = QosTcpListener::bind(&here[..], &patient()).unwrap();
        let port = listener.local_addr().unwrap().port();
        let to = lookup(&format!("[fe80::1%lo]:{port}"), None).unwrap();
        let connecting = thread::spawn(move || QosTcpStream::connect(&to[..], &patient()).unwrap());
        let (theirs, _) = listener.accept().unwrap();
        assert!(theirs.has_qos_peer().unwrap() && connecting.join().unwrap().has_qos_peer().unwrap());
    };
    host.within(exchange).unwrap();
    let why = lookup("[fe80::1]:80", None).unwrap_err().to_string();
    assert!(why.contains("write fe80::1%INTERFACE"), "{why}");
}

#[test]
fn packets_have_the_code_point_of_the_options() {
    let options = QosOptions::default().peer(Peer::Plain).marking(Marking::Dscp("EF".parse().unwrap()));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    let own = UdpSocket::bind("[::1]:0").unwrap();
    options.prepare(&own, own.local_addr().unwrap()).unwrap();
    assert_eq!(ip_tos(QosTcpStream::connect(to, &options).unwrap()).unwrap(), 46 << 2);
    assert_eq!(ip_tos(QosUdpSocket::connect(to, &options).unwrap()).unwrap(), 46 << 2);
    assert_eq!(ip_tos(QosTcpListener::bind("127.0.0.1:0", &options).unwrap()).unwrap(), 46 << 2);
    assert_eq!(ip_tos(QosUdpListener::bind("127.0.0.1:0", &options).unwrap()).unwrap(), 46 << 2);
    assert_eq!(ipv6_tclass(&own).unwrap(), 46 << 2);
}

fn in_use<T: std::fmt::Debug>(outcome: Result<T, impl Into<io::Error>>) {
    assert_eq!(outcome.map_err(Into::into).unwrap_err().kind(), ErrorKind::AddrInUse);
}

/// Options with a minute for the answer of a peer: a thread of a busy machine may have no turn for seconds.
fn patient() -> QosOptions {
    QosOptions::default().detection(Duration::from_secs(60))
}

#[test]
fn a_port_has_one_datagram_listener() {
    for listen in ["127.0.0.1:0", "[::1]:0", "0.0.0.0:0"] {
        let listener = QosUdpListener::bind(listen, &QosOptions::default()).unwrap();
        let here = listener.local_addr().unwrap();
        let to = if here.ip().is_unspecified() { at("127.0.0.1", here) } else { here };
        let connecting = thread::spawn(move || QosUdpSocket::connect(to, &patient()).unwrap());
        let (theirs, _) = listener.accept().unwrap();
        let ours = connecting.join().unwrap();
        in_use(QosUdpListener::bind(here, &QosOptions::default()));
        in_use(UdpSocket::bind(here));
        for shares_port in [true, false] {
            let family = if here.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
            let other = socket(family, SocketType::DGRAM, None).unwrap();
            if shares_port {
                set_socket_reuseport(&other, true).unwrap();
            } else {
                set_socket_reuseaddr(&other, true).unwrap();
            }
            in_use(bind(&other, &here));
        }
        // A server that starts again while connections of the one before are there.
        drop(listener);
        let again = take_again(|| QosUdpListener::bind(here, &QosOptions::default())).unwrap();
        in_use(QosUdpListener::bind(here, &QosOptions::default()));
        theirs.send(b"on").unwrap();
        assert_eq!(ours.recv(&mut [0; 9]).unwrap(), 2);
        let connecting = thread::spawn(move || QosUdpSocket::connect(to, &patient()).unwrap());
        let (theirs, _) = again.accept().unwrap();
        theirs.send(b"again").unwrap();
        assert_eq!(connecting.join().unwrap().recv(&mut [0; 9]).unwrap(), 5);
    }
}

#[test]
fn a_stream_server_without_its_datagram_port_names_the_remedy() {
    // The stream's port must be free as well: other tests do not use this address.
    let taken = UdpSocket::bind("127.41.7.3:0").unwrap();
    let here = taken.local_addr().unwrap();
    let error = QosTcpListener::bind(here, &QosOptions::default()).unwrap_err();
    assert!(error.to_string().contains("peer = speaks"), "{error}");
    assert_eq!(io::Error::from(error).kind(), ErrorKind::AddrInUse);
    for peer in [Peer::Speaks, Peer::Plain] {
        QosTcpListener::bind(here, &QosOptions::default().peer(peer)).unwrap();
    }
}
