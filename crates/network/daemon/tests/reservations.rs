//! Agents of hosts and routers, in network namespaces, with the kernel's traffic control.
//!
//! The tests require root. Without it they print a message and pass: `sudo -E cargo test -p cutline-daemon`.

use crate::common::{A, B, Net, announce, bucket, eventually, hear, reserve};
use cutline_provision::protocol::{Reply, Request};
use cutline_provision::{Access, DaemonClient, Demand, Direction, GrantEvent, RefusalReason, open};
use cutline_sys::ip_socket::{IpSocket, OutgoingPacket};
use cutline_units::{Duration, IpVersion};
use rustix::process::Signal;
use std::net::UdpSocket;

const COMMAND: &str = "sudo -E cargo test -p cutline-daemon reservations::";
/// Rate of a reservation of 1 Mbit/s on the wire: 18 bytes more on packets of 100.
const ON_WIRE: u64 = 1_180_000;

/// Sets up a reservation, of which the sender has heard, too. Returns the clients.
fn set_up(net: &Net, port: u16) -> (DaemonClient, DaemonClient) {
    let (mut sender, receiver) = net.set_up(port);
    hear(&mut sender, |reply| matches!(reply, Reply::Reserved { id: 1, bucket: Some(_) }));
    (sender, receiver)
}

/// Sends datagrams from `a` to `b`.
fn send_packets(net: &Net, port: u16, count: u32) {
    let send = || {
        let socket = UdpSocket::bind((A, port)).unwrap();
        for _ in 0..count {
            socket.send_to(&[0; 500], (B, port)).unwrap();
        }
    };
    net.node("a").within(send).unwrap();
}

fn reserved_packets(net: &Net, node: &str, interface: &str) -> u64 {
    let status = net.status(node);
    status.interfaces.iter().find(|its| its.name == interface).unwrap().reserved_packets
}

#[test]
fn a_reservation_is_installed_along_the_path_and_removed_by_each_way_of_ending_it() {
    let Some(mut net) = Net::new("set", COMMAND) else { return };
    net.start_all();
    let (mut sender, receiver) = set_up(&net, 5000);
    for (node, interface) in [("a", "eth0"), ("r1", "east"), ("r2", "east")] {
        assert_eq!(net.reserved(node, interface), ON_WIRE, "{node}");
        assert_eq!(net.classes(node, interface), 1, "{node}");
    }
    assert_eq!(net.reserved("r1", "south"), 0);
    send_packets(&net, 5000, 20);
    send_packets(&net, 5001, 20);
    for (node, interface) in [("a", "eth0"), ("r1", "east"), ("r2", "east")] {
        eventually("each packet of the flow uses its class", || {
            reserved_packets(&net, node, interface) == 20
        });
    }

    // The receiver's application is killed.
    drop(receiver);
    hear(&mut sender, |reply| matches!(reply, Reply::Reserved { id: 1, bucket: None }));
    eventually("all classes go", || net.classes("a", "eth0") + net.classes("r1", "east") == 0);

    // The sender withdraws.
    drop(sender);
    let (mut other, _receiver) = set_up(&net, 5001);
    other.send(&Request::Withdraw { id: 1 }).unwrap();
    eventually("all classes go", || net.classes("r1", "east") + net.classes("r2", "east") == 0);
    eventually("nothing is left at the routers", || {
        ["r1", "r2"].iter().all(|node| net.status(node).sessions.is_empty())
    });
}

#[test]
fn an_excessive_reservation_is_refused_with_reason_node_and_available_rate() {
    let Some(mut net) = Net::new("ref", COMMAND) else { return };
    net.start_all();
    let (_sender, _receiver) = set_up(&net, 5000);
    let address = |ip: &str, port: u16| (ip.parse::<std::net::IpAddr>().unwrap(), port).into();
    let flow = cutline_provision::Flow {
        transport: cutline_provision::TransportProtocol::Udp,
        source: address(A, 5002),
        destination: address(B, 5002),
    };
    let demand = bucket(6_000_000);
    let rsvp = |node: &str| open("rsvp", &Access { socket: net.socket(node) }).unwrap();
    let mut grant = rsvp("a").request(&Demand::sending(flow, demand)).unwrap();
    let mut other = rsvp("b").request(&Demand::receiving(flow, demand)).unwrap();
    let refusal = other.wait(Duration::from_secs(60)).unwrap_err();
    assert_eq!(refusal.reason, RefusalReason::Bandwidth, "{refusal}");
    // The first node that the request comes to from `b`.
    assert_eq!(refusal.node, Some("10.1.4.1".parse().unwrap()));
    assert_eq!(refusal.available_bps, Some(5_000_000), "half of 10 Mbit/s");
    assert!(matches!(other.event(), Some(GrantEvent::Lost(Direction::Receive, _))));
    assert!(grant.event().is_none(), "nothing was reserved for the sender");
    assert_eq!(net.reserved("r2", "east"), ON_WIRE, "what was there stays");

    // At this host alone: the refusal has the remaining rate.
    let local = open("local", &Access { socket: net.socket("a") }).unwrap();
    let mut class = local.request(&Demand::sending(flow, bucket(1_000_000))).unwrap();
    class.wait(Duration::from_secs(60)).unwrap();
    assert_eq!(net.reserved("a", "eth0"), 2 * ON_WIRE);
    assert_eq!(net.classes("a", "eth0"), 2);
    let second = cutline_provision::Flow { source: address(A, 5003), ..flow };
    let mut more = local.request(&Demand::sending(second, bucket(4_000_000))).unwrap();
    let refusal = more.wait(Duration::from_secs(60)).unwrap_err();
    assert_eq!(refusal.available_bps, Some(5_000_000 - 2 * ON_WIRE), "{refusal}");
    drop(class);
    eventually("the class goes with the application", || net.classes("a", "eth0") == 1);
}

#[test]
fn an_agent_that_ends_leaves_nothing_and_one_that_was_killed_has_its_state_back() {
    let Some(mut net) = Net::new("end", COMMAND) else { return };
    net.start_all();
    let (_sender, _receiver) = set_up(&net, 5000);
    net.end("r1", Signal::TERM);
    assert!(!net.tc("r1", "qdisc", "east").contains("htb"), "{}", net.tc("r1", "qdisc", "east"));
    assert!(!net.socket("r1").exists());
    net.start("r1");
    eventually("the state comes back", || net.classes("r1", "east") == 1);

    net.end("r2", Signal::KILL);
    assert!(net.tc("r2", "qdisc", "east").contains("htb"), "nobody could remove it");
    net.start("r2");
    eventually("the state comes back", || net.reserved("r2", "east") == ON_WIRE);
    assert_eq!(net.classes("r2", "east"), 1);
    send_packets(&net, 5000, 10);
    eventually("its packets are reserved again", || reserved_packets(&net, "r2", "east") >= 10);
}

#[test]
fn a_host_that_vanishes_is_forgotten_after_the_lifetime() {
    let Some(mut net) = Net::new("van", COMMAND) else { return };
    net.rsvp = "refresh = '200 ms'";
    net.start_all();
    let (_sender, mut receiver) = set_up(&net, 5000);
    net.end("a", Signal::KILL);
    hear(&mut receiver, |reply| matches!(reply, Reply::SenderGone { id: 2, .. }));
    eventually("the classes go", || net.classes("r1", "east") + net.classes("r2", "east") == 0);
    assert!(net.status("r1").counters.expired > 0);
}

#[test]
fn messages_lost_on_a_broken_link_are_sent_again() {
    let Some(mut net) = Net::new("los", COMMAND) else { return };
    net.start_all();
    // Path messages from r1 find the neighbour, but nothing comes back from r2 to r1.
    let neighbour = "10.1.2.1 dev west lladdr 02:00:00:00:00:01 nud permanent";
    net.node("r2").ip_batch(&format!("neigh replace {neighbour}")).unwrap();
    let (mut sender, mut receiver) = (net.client("a"), net.client("b"));
    sender.send(&announce(1, 5000, 1_000_000)).unwrap();
    receiver.send(&reserve(2, 5000, 1_000_000)).unwrap();
    hear(&mut receiver, |reply| matches!(reply, Reply::Sender { id: 2, .. }));
    eventually("the last link is reserved", || net.reserved("r2", "east") == ON_WIRE);
    assert_eq!(net.reserved("r1", "east"), 0, "its messages are lost");
    net.node("r2").ip_batch("neigh del 10.1.2.1 dev west").unwrap();
    hear(&mut sender, |reply| matches!(reply, Reply::Reserved { id: 1, bucket: Some(_) }));
    assert_eq!(net.reserved("r1", "east"), ON_WIRE);
}

#[test]
fn a_reservation_follows_its_route() {
    let Some(mut net) = Net::new("rou", COMMAND) else { return };
    net.rsvp = "refresh = '500 ms'\nlocal-repair = '100 ms'";
    net.start_all();
    let (_sender, _receiver) = set_up(&net, 5000);
    net.node("r1").ip_batch("route replace 10.9.9.9 via 10.1.3.2").unwrap();
    eventually("the other way is reserved", || {
        net.reserved("r1", "south") == ON_WIRE && net.reserved("r3", "east") == ON_WIRE
    });
    eventually("the first way is not any more", || {
        net.classes("r1", "east") == 0 && net.classes("r2", "east") == 0
    });
}

/// RFC 2747: a message that is unsigned, wrongly signed or repeated changes nothing, and is counted.
#[test]
fn forged_and_replayed_messages_are_refused_and_counted() {
    let Some(mut net) = Net::new("key", COMMAND) else { return };
    let keys = net.folder.path().join("keys");
    let text = "[[key]]\nid = 1\nalgorithm = 'hmac-sha-256'\nsecret = '00112233445566778899aabbccddeeff'\n";
    std::fs::write(&keys, text).unwrap();
    std::fs::set_permissions(&keys, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    net.interface = format!("keys = '{}'", keys.display());
    // It gets the router's messages.
    let mut spy = net.node("r1").within(|| IpSocket::raw(IpVersion::V4, 46, true).unwrap()).unwrap();
    net.start_all();
    let (_sender, _receiver) = set_up(&net, 5000);
    let mut path = None;
    eventually("a Path message passes", || {
        while let Some(received) = spy.receive().unwrap() {
            if received.payload[1] == 1 && received.source.to_string() == A {
                path = Some(received.payload.to_vec());
            }
        }
        path.is_some()
    });
    let recorded = path.unwrap();
    let attacker = net.node("a").within(|| IpSocket::raw(IpVersion::V4, 46, false).unwrap()).unwrap();
    let index = net.node("a").within(|| cutline_netlink::Interface::named("eth0").unwrap().index).unwrap();
    let send = |payload: &[u8]| {
        let (source, destination) = (A.parse().unwrap(), (B.parse().unwrap(), 0));
        let message =
            OutgoingPacket { interface: index, source, destination, ttl: 64, router_alert: true, payload };
        attacker.send(&message).unwrap();
    };
    let before = net.status("r1").counters;
    send(&recorded);
    let mut forged = recorded.clone();
    *forged.last_mut().unwrap() ^= 1;
    // The checksum is zero with a digest's message, or made right for the change.
    forged[2..4].fill(0);
    send(&forged);
    eventually("both are counted", || {
        let counters = net.status("r1").counters;
        counters.replayed > before.replayed && counters.forged > before.forged
    });
    assert_eq!(net.reserved("r1", "east"), ON_WIRE, "nothing has changed");
}

#[test]
fn a_host_without_raw_sockets_uses_udp() {
    let Some(mut net) = Net::new("udp", COMMAND) else { return };
    for node in ["r1", "r2", "r3", "b"] {
        net.start(node);
    }
    net.interface = "encapsulation = 'udp'\nrouter = '10.1.1.2'".to_owned();
    net.start("a");
    let (_sender, _receiver) = set_up(&net, 5000);
    assert_eq!(net.reserved("r1", "east"), ON_WIRE);
}
