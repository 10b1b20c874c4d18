//! QoS sockets that reserve through agents, in network namespaces.
//!
//! The tests require root. Without it they print a message and pass: `sudo -E cargo test -p cutline-daemon`.

#[allow(dead_code, reason = "each test uses a part")]
mod common;

use common::{B, Net, eventually};
use cutline_provision::{Access, Reason, Standing};
use cutline_quality::spec::Preset;
use cutline_socket::{
    AckPath, IfRefused, Peer, QosError, QosOptions, QosTcpListener, QosTcpStream, QosUdpListener,
    QosUdpSocket,
};
use std::net::{Ipv4Addr, SocketAddr};

const COMMAND: &str = "sudo -E cargo test -p cutline-daemon --test sockets";
const PORT: u16 = 7000;

fn options(net: &Net, node: &str, ack_path: AckPath) -> QosOptions {
    let video = Preset::Video.specification();
    let options = if node == "a" { QosOptions::sending(video) } else { QosOptions::receiving(video) };
    let access = Access { socket: net.socket(node) };
    options.peer(Peer::Speaks).service("rsvp", &access).unwrap().ack_path(ack_path)
}

/// A stream from `a` to `b`, both ends.
fn streams(
    net: &Net,
    at_a: &QosOptions,
    at_b: &QosOptions,
) -> (Result<QosTcpStream, QosError>, QosTcpStream) {
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT));
    let listener = net.node("b").within(|| QosTcpListener::bind(any, at_b).unwrap()).unwrap();
    std::thread::scope(|scope| {
        let accepted = scope.spawn(|| {
            let stream = listener.accept().unwrap().0;
            stream.has_qos_peer().unwrap();
            stream
        });
        let stream = net.node("a").within(|| QosTcpStream::connect((B, PORT), at_a)).unwrap();
        (stream, accepted.join().unwrap())
    })
}

/// QoSockets section IV: both ways of a reserved TCP, or its data alone.
#[test]
fn r_tcp_reserves_its_data_and_its_acknowledgements_if_they_are_to_be() {
    let Some(mut net) = Net::new("tcp", COMMAND) else { return };
    net.start_all();
    for (ack_path, acknowledgements) in [(AckPath::Reserved, true), (AckPath::BestEffort, false)] {
        let [at_a, at_b] = ["a", "b"].map(|node| options(&net, node, ack_path));
        let (stream, other) = streams(&net, &at_a, &at_b);
        let stream = stream.unwrap();
        let status = stream.reservation().unwrap();
        assert_eq!((status.service, &status.send), ("rsvp", &Standing::Reserved), "{status:?}");
        assert!(net.reserved("r1", "east") > 800_000, "the data");
        let expected = if acknowledgements { Standing::Reserved } else { Standing::NotAsked };
        assert_eq!(status.receive, expected, "{status:?}");
        assert_eq!(net.reserved("r1", "west") > 0, acknowledgements, "{ack_path:?}");
        let there = |standing: &Standing| *standing == Standing::Reserved;
        eventually("the other end knows", || there(&other.reservation().unwrap().receive));
        drop((stream, other));
        eventually("the reservations go with the sockets", || {
            net.reserved("r1", "east") + net.reserved("r1", "west") == 0
        });
    }
}

#[test]
fn a_refused_reservation_is_an_error_or_best_effort() {
    let Some(mut net) = Net::new("sre", COMMAND) else { return };
    net.rate = "1 Mbit/s";
    net.start_all();
    let [at_a, at_b] = ["a", "b"].map(|node| options(&net, node, AckPath::Reserved));
    let patience = std::time::Duration::from_millis(500);
    let (stream, other) = streams(&net, &at_a.clone().reservation_patience(patience), &at_b);
    let stream = stream.unwrap();
    assert_ne!(stream.reservation().unwrap().send, Standing::Reserved, "it goes on as best effort");
    let refused = |standing: &Standing| matches!(standing, Standing::Failed(refusal) if refusal.reason == Reason::Bandwidth);
    eventually("the receiver is told", || refused(&other.reservation().unwrap().receive));
    drop((stream, other));
    let at_a = at_a.if_refused(IfRefused::Fail).reservation_patience(patience);
    let (stream, _other) = streams(&net, &at_a, &at_b);
    let error = stream.map(drop).unwrap_err();
    assert!(matches!(error, QosError::Reservation(_)), "{error}");
}

#[test]
fn r_udp_reserves() {
    let Some(mut net) = Net::new("sud", COMMAND) else { return };
    net.start_all();
    let [at_a, at_b] = ["a", "b"].map(|node| options(&net, node, AckPath::Reserved));
    // Bound to one address, so that answers come from it.
    let own = SocketAddr::new(B.parse().unwrap(), PORT);
    let listener = net.node("b").within(|| QosUdpListener::bind(own, &at_b).unwrap()).unwrap();
    let (socket, _other) = std::thread::scope(|scope| {
        // It opens a socket for the connection.
        let accepted = scope.spawn(|| net.node("b").within(|| listener.accept().unwrap().0).unwrap());
        let socket = net.node("a").within(|| QosUdpSocket::connect((B, PORT), &at_a).unwrap()).unwrap();
        (socket, accepted.join().unwrap())
    });
    assert_eq!(socket.reservation().unwrap().send, Standing::Reserved);
    assert!(net.reserved("r2", "east") > 800_000);
}
