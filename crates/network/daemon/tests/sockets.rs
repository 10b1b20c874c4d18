//! QoS sockets that reserve through agents, in network namespaces.
//!
//! The tests require root. Without it they print a message and pass: `sudo -E cargo test -p cutline-daemon`.

use crate::common::{B, Net, eventually};
use cutline_bindings::{Mib, Options, ReservationEvent};
use cutline_provision::{Access, GrantState, Refusal, RefusalReason};
use cutline_quality::spec::Preset;
use cutline_socket::{
    AckPath, IfRefused, Peer, QosError, QosOptions, QosTcpListener, QosTcpStream, QosUdpListener,
    QosUdpSocket,
};
use std::net::{Ipv4Addr, SocketAddr};

const COMMAND: &str = "sudo -E cargo test -p cutline-daemon sockets::";
const PORT: u16 = 7000;

fn options(net: &Net, node: &str, ack_path: AckPath) -> QosOptions {
    let video = Preset::Video.specification();
    let options = if node == "a" { QosOptions::sending(video) } else { QosOptions::receiving(video) };
    let access = Access { socket: net.socket(node) };
    // An agent of a busy machine may have no turn for seconds.
    let patience = std::time::Duration::from_secs(60);
    options
        .peer(Peer::Speaks)
        .service("rsvp", &access)
        .unwrap()
        .ack_path(ack_path)
        .reservation_patience(patience)
}

const fn is_reserved(state: &GrantState) -> bool {
    matches!(state, GrantState::Reserved(_))
}

/// A listener. The one before, on the same port, closes in a thread of its own.
fn listener(address: SocketAddr, options: &QosOptions) -> QosTcpListener {
    let mut listener = None;
    eventually("the port is free", || {
        listener = QosTcpListener::bind(address, options).ok();
        listener.is_some()
    });
    listener.unwrap()
}

/// A stream from `a` to `b`, both ends.
fn streams(
    net: &Net,
    at_a: &QosOptions,
    at_b: &QosOptions,
) -> (Result<QosTcpStream, QosError>, QosTcpStream) {
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT));
    let listener = net.node("b").within(|| listener(any, at_b)).unwrap();
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
        assert!(status.service == "rsvp" && is_reserved(&status.send), "{status:?}");
        assert!(net.reserved("r1", "east") > 800_000, "the data");
        let expected = if acknowledgements { is_reserved } else { |it: &_| *it == GrantState::NotRequested };
        assert!(expected(&status.receive), "{status:?}");
        assert_eq!(net.reserved("r1", "west") > 0, acknowledgements, "{ack_path:?}");
        eventually("the other end knows", || is_reserved(&other.reservation().unwrap().receive));
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
    // The network says to the receiver alone why.
    let unanswered = GrantState::Failed(Refusal::new(RefusalReason::Unanswered));
    assert_eq!(stream.reservation().unwrap().send, unanswered, "it goes on as best effort");
    let refused = |state: &GrantState| matches!(state, GrantState::Failed(refusal) if refusal.reason == RefusalReason::Bandwidth);
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
    assert!(is_reserved(&socket.reservation().unwrap().send));
    assert!(net.reserved("r2", "east") > 800_000);
}

/// Options as other languages set them.
fn by_name(net: &Net, node: &str, more: &[(&str, &str)]) -> QosOptions {
    let mut options = Options::default();
    let socket = net.socket(node);
    let common =
        [("peer", "speaks"), ("service", "rsvp"), ("service-socket", socket.to_str().expect("it is text"))];
    for (name, text) in common.iter().chain(more) {
        options.set(name, text).unwrap();
    }
    options.qos_options().unwrap()
}

fn words(text: &[u8]) -> &str {
    std::str::from_utf8(text).unwrap().trim_end_matches('\0')
}

#[test]
fn other_languages_read_the_reservation_of_each_direction() {
    let Some(mut net) = Net::new("lang", COMMAND) else { return };
    net.start_all();
    let patience = ("reservation-patience", "60 s");
    let at_a = by_name(&net, "a", &[("send.class", "video"), patience]);
    let at_b = by_name(&net, "b", &[("receive.class", "video"), patience]);
    let (stream, _other) = streams(&net, &at_a, &at_b);
    let stream = stream.unwrap();
    let found = Mib::from(&stream.mib()).reservation;
    assert_eq!((words(&found.service), found.send.state, found.receive.state), ("rsvp", 2, 2));
    // RSVP carries floating-point numbers of 32 bits.
    let (requested, reserved) = (found.send.requested, found.send.reserved);
    assert!(
        requested.rate_bps > 800_000 && requested.rate_bps.abs_diff(reserved.rate_bps) < 100,
        "{found:?}"
    );
    assert_eq!(requested.bucket_bytes, reserved.bucket_bytes);
    // The acknowledgements take less than the data.
    assert!((1..requested.rate_bps / 2).contains(&found.receive.reserved.rate_bps), "{found:?}");
    let events: Vec<_> = std::iter::from_fn(|| stream.reservation_event()).collect();
    let granted =
        events.iter().map(ReservationEvent::from).find(|event| (event.kind, event.direction) == (1, 1));
    assert_eq!(granted.expect("it is granted").reserved, reserved);
}

#[test]
fn a_refusal_has_reason_and_available_rate_in_other_languages() {
    let Some(mut net) = Net::new("offer", COMMAND) else { return };
    net.rate = "1 Mbit/s";
    net.start_all();
    // The receiver gets the event, so it is the one that connects.
    let at_b = by_name(&net, "b", &[("send.class", "video")]);
    let wants = |if_refused| by_name(&net, "a", &[("receive.class", "video"), ("if-refused", if_refused)]);
    let (stream, _other) = streams(&net, &wants("fail"), &at_b);
    let error = stream.map(drop).unwrap_err().to_string();
    let why = "the bandwidth is not available at 10.1.1.2; 500 kbit/s would be granted";
    assert_eq!(error, format!("the reservation is refused: {why}"));

    let (stream, _other) = streams(&net, &wants("best-effort"), &at_b);
    let stream = stream.unwrap();
    let found = Mib::from(&stream.mib()).reservation.receive;
    assert_eq!((found.state, found.reserved.rate_bps), (3, -1));
    assert!(found.requested.rate_bps > 500_000, "{found:?}");
    assert_eq!((found.refusal.reason, found.refusal.available_bps), (1, 500_000));
    assert_eq!((words(&found.refusal.node), words(&found.refusal.text)), ("10.1.1.2", why));
    let events: Vec<_> = std::iter::from_fn(|| stream.reservation_event()).collect();
    let lost =
        events.iter().map(ReservationEvent::from).find(|event| (event.kind, event.direction) == (4, 2));
    assert_eq!(lost.expect("it is an event").refusal, found.refusal);
}

#[test]
fn the_reason_is_a_missing_answer_until_one_comes() {
    let Some(mut net) = Net::new("silent", COMMAND) else { return };
    net.start_all();
    let patience = ("reservation-patience", "300 ms");
    let at_a = by_name(&net, "a", &[("send.class", "video"), ("ack-path", "best-effort"), patience]);
    // It requests nothing.
    let at_b = QosOptions::receiving(Preset::Video.specification()).peer(Peer::Speaks);
    let (stream, other) = streams(&net, &at_a, &at_b);
    let stream = stream.unwrap();
    let found = Mib::from(&stream.mib()).reservation;
    assert_eq!((found.send.state, found.send.refusal.reason), (3, 8), "{found:?}");
    assert_eq!(words(&found.send.refusal.text), "there was no answer in time");
    assert!(stream.reservation_event().is_none());

    // At last a receiver reserves for the announced flow.
    let access = Access { socket: net.socket("b") };
    let bucket = stream.reservation().unwrap().demand.unwrap().send.unwrap();
    let flow = cutline_provision::Flow {
        transport: cutline_provision::TransportProtocol::Tcp,
        source: stream.local_addr().unwrap(),
        destination: stream.peer_addr(),
    };
    let demand = cutline_provision::Demand::receiving(flow, bucket);
    let _grant = cutline_provision::open("rsvp", &access).unwrap().request(&demand).unwrap();
    eventually("what is announced is reserved", || is_reserved(&stream.mib().reservation.unwrap().send));
    drop(other);
}
