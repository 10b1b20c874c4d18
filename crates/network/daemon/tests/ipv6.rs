//! Agents over IPv6: raw messages with Router Alert (RFC 2711), u32 classifiers, and both versions of IP at one interface.
//!
//! The tests require root. Without it they print a message and pass: `sudo -E cargo test -p cutline-daemon`.

use crate::common;

use crate::common::{Net, announce, eventually, hear, reserve};
use cutline_provision::protocol::{Reply, Request, Senders};
use cutline_provision::{DaemonClient, Flow};
use cutline_testbed::wait_for_own_addresses;
use rustix::process::Signal;
use std::net::{SocketAddr, UdpSocket};

const COMMAND: &str = "sudo -E cargo test -p cutline-daemon ipv6::";
const A: &str = "fd00:1::1";
const B: &str = "fd00:9::9";
const PORT: u16 = 5000;
/// Rate of a reservation of 1 Mbit/s on the wire: 18 bytes more on packets of 100.
const ON_WIRE: u64 = 1_180_000;

/// The addresses and routes of each node beside those of IPv4.
const NODES: [(&str, &str); 5] = [
    ("a", "address add fd00:1::1/64 dev eth0 nodad\nroute add default via fd00:1::2"),
    (
        "r1",
        "address add fd00:1::2/64 dev west nodad\naddress add fd00:2::1/64 dev east nodad\naddress add fd00:3::1/64 dev south nodad\n\
         route add fd00:9::9 via fd00:2::2\nroute add fd00:4::/64 via fd00:2::2",
    ),
    (
        "r2",
        "address add fd00:2::2/64 dev west nodad\naddress add fd00:4::1/64 dev east nodad\n\
         route add fd00:9::9 via fd00:4::2\nroute add fd00:1::/64 via fd00:2::1",
    ),
    ("r3", "address add fd00:3::2/64 dev west nodad\naddress add fd00:5::1/64 dev east nodad"),
    (
        "b",
        "address add fd00:4::2/64 dev eth0 nodad\naddress add fd00:5::2/64 dev eth1 nodad\naddress add fd00:9::9/128 dev lo\n\
         route add default via fd00:4::1",
    ),
];

/// A network whose agents speak both versions of IP at each interface.
fn network(label: &str) -> Option<Net> {
    let mut net = Net::new(label, COMMAND)?;
    for (node, lines) in NODES {
        let forward = || std::fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1").unwrap();
        net.node(node).within(forward).unwrap();
        net.node(node).ip_batch(lines).unwrap();
        let added = lines.lines().filter_map(|line| line.strip_prefix("address add ")?.split('/').next());
        wait_for_own_addresses(net.node(node), &added.collect::<Vec<_>>());
    }
    net.both_versions = true;
    Some(net)
}

fn address(ip: &str, port: u16) -> SocketAddr {
    SocketAddr::new(ip.parse().unwrap(), port)
}

/// The same requests with addresses of IPv6.
fn over_v6(request: Request) -> Request {
    let port = |address: SocketAddr| address.port();
    match request {
        Request::Announce { id, flow, bucket } => {
            let (source, destination) = (address(A, port(flow.source)), address(B, port(flow.destination)));
            Request::Announce { id, flow: Flow { source, destination, ..flow }, bucket }
        }
        Request::Reserve { id, transport, destination, bucket, confirm, .. } => {
            let port = port(destination);
            let senders = Senders::Fixed { senders: vec![address(A, port)] };
            Request::Reserve { id, transport, destination: address(B, port), senders, bucket, confirm }
        }
        other => other,
    }
}

fn set_up(net: &Net, change: impl Fn(Request) -> Request) -> (DaemonClient, DaemonClient) {
    let (mut sender, mut receiver) = (net.client("a"), net.client("b"));
    sender.send(&change(announce(1, PORT, 1_000_000))).unwrap();
    receiver.send(&change(reserve(2, PORT, 1_000_000))).unwrap();
    hear(&mut receiver, |reply| matches!(reply, Reply::Confirmed { id: 2, .. }));
    hear(&mut sender, |reply| matches!(reply, Reply::Reserved { id: 1, bucket: Some(_) }));
    (sender, receiver)
}

/// Returns the reservations at an interface, and the number of packets that have used them, with each
/// version.
fn reserved(net: &Net, node: &str, interface: &str) -> Vec<(bool, u64, u64)> {
    let interfaces = net.status(node).interfaces.into_iter().filter(|its| its.name == interface);
    interfaces
        .map(|its| (its.address.unwrap().is_ipv6(), its.reserved_bps.unwrap(), its.reserved_packets))
        .collect()
}

fn send(net: &Net, from: &str, to: &str, count: u32) {
    let send = || {
        let socket = UdpSocket::bind((from, PORT)).unwrap();
        for _ in 0..count {
            socket.send_to(&[0; 500], (to, PORT)).unwrap();
        }
    };
    net.node("a").within(send).unwrap();
}

const ON_THE_PATH: [(&str, &str); 3] = [("a", "eth0"), ("r1", "east"), ("r2", "east")];

#[test]
fn a_reservation_over_ipv6_is_set_up_used_and_removed() {
    let Some(mut net) = network("sxs") else { return };
    net.start_all();
    let (mut sender, receiver) = set_up(&net, over_v6);
    for (node, interface) in ON_THE_PATH {
        assert_eq!(reserved(&net, node, interface), [(false, 0, 0), (true, ON_WIRE, 0)], "{node}");
        assert_eq!(net.classes(node, interface), 1, "{node}");
    }
    let session = &net.status("r1").sessions[0];
    assert_eq!(session.destination, address(B, PORT));
    assert_eq!(session.senders[0].from, Some(A.parse().unwrap()), "{session:?}");
    send(&net, A, B, 20);
    for (node, interface) in ON_THE_PATH {
        eventually("each packet of the flow uses its class", || {
            reserved(&net, node, interface)[1] == (true, ON_WIRE, 20)
        });
    }

    // A flow of IPv4 beside it, in the same shaper.
    let beside = set_up(&net, |request| request);
    send(&net, common::A, common::B, 10);
    for (node, interface) in ON_THE_PATH {
        eventually("both have a class", || {
            reserved(&net, node, interface) == [(false, ON_WIRE, 10), (true, ON_WIRE, 20)]
        });
        assert_eq!(net.classes(node, interface), 2, "{node}");
    }
    drop(beside);

    // A killed agent has its state back.
    net.end("r1", Signal::KILL);
    net.start("r1");
    eventually("the state comes back", || reserved(&net, "r1", "east")[1].1 == ON_WIRE);

    // The receiver's application ends.
    drop(receiver);
    hear(&mut sender, |reply| matches!(reply, Reply::Reserved { id: 1, bucket: None }));
    for (node, interface) in ON_THE_PATH {
        eventually("all classes go", || net.classes(node, interface) == 0);
    }
    drop(sender);
    eventually("nothing is left at the routers", || {
        ["r1", "r2"].iter().all(|node| net.status(node).sessions.is_empty())
    });
}

/// A rule sends the flow by another link, and so does its reservation; when the rule goes, it comes back.
#[test]
fn a_reservation_over_ipv6_uses_the_route_of_the_rules() {
    let Some(mut net) = network("sxp") else { return };
    net.rsvp = "refresh = '500 ms'\nlocal-repair = '100 ms'";
    net.node("r3")
        .ip_batch("route add fd00:9::9 via fd00:5::2\nroute add fd00:1::/64 via fd00:3::1")
        .unwrap();
    net.node("r1").ip_batch("route add fd00:9::9 via fd00:3::2 table 88").unwrap();
    let rule = |net: &Net, what| {
        let words = ["-6", "rule", what, "ipproto", "udp", "dport", "5000", "lookup", "88"];
        net.node("r1").ip(&words).unwrap();
    };
    rule(&net, "add");
    net.start_all();
    let (mut sender, mut receiver) = (net.client("a"), net.client("b"));
    sender.send(&over_v6(announce(1, PORT, 1_000_000))).unwrap();
    receiver.send(&over_v6(reserve(2, PORT, 1_000_000))).unwrap();
    let there = |interface| reserved(&net, "r1", interface)[1];
    eventually("it is where the rule leads", || (there("east").1, there("south").1) == (0, ON_WIRE));
    send(&net, A, B, 20);
    eventually("its packets leave there", || there("south").2 == 20);
    rule(&net, "del");
    eventually("it comes back", || (there("east").1, there("south").1) == (ON_WIRE, 0));
    send(&net, A, B, 20);
    eventually("its packets leave there, too", || there("east").2 == 20);
}

/// RFC 2205 appendix C, over IPv6.
#[test]
fn a_host_without_raw_sockets_uses_udp_over_ipv6() {
    let Some(mut net) = network("sxu") else { return };
    for node in ["r1", "r2", "r3", "b"] {
        net.start(node);
    }
    net.both_versions = false;
    net.interface = "version = 6\nencapsulation = 'udp'\nrouter = 'fd00:1::2'".to_owned();
    net.start("a");
    let (_sender, _receiver) = set_up(&net, over_v6);
    assert_eq!(reserved(&net, "r1", "east")[1].1, ON_WIRE);
}
