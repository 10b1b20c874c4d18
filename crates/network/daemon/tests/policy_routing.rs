//! Routes that depend on more than the destination: reservations follow the packets.
//!
//! The tests require root. Without it they print a message and pass: `sudo -E cargo test -p cutline-daemon policy_routing::`.

use crate::common::{A, B, Net, announce, eventually, hear, reserve};
use cutline_provision::DaemonClient;
use cutline_provision::protocol::Reply;
use std::net::UdpSocket;

const COMMAND: &str = "sudo -E cargo test -p cutline-daemon policy_routing::";
/// Rate of a reservation of 1 Mbit/s on the wire: 18 bytes more on packets of 100.
const ON_WIRE: u64 = 1_180_000;

fn set_up(net: &Net, port: u16) -> (DaemonClient, DaemonClient) {
    let (mut sender, mut receiver) = (net.client("a"), net.client("b"));
    sender.send(&announce(1, port, 1_000_000)).unwrap();
    receiver.send(&reserve(2, port, 1_000_000)).unwrap();
    // A confirmation is sent once, and may be lost where a neighbour's address on its link is not known yet.
    hear(&mut sender, |reply| matches!(reply, Reply::Reserved { id: 1, bucket: Some(_) }));
    (sender, receiver)
}

/// Sends packets of a flow, and waits until all of them have left the router as reserved ones by this interface.
fn packets_leave_by(net: &Net, port: u16, interface: usize) {
    let reserved = |net: &Net| net.status("r1").interfaces[interface].reserved_packets;
    let before = reserved(net);
    let send = || {
        let socket = UdpSocket::bind((A, port)).unwrap();
        (0..10).for_each(|_| assert_eq!(socket.send_to(&[0; 500], (B, port)).unwrap(), 500));
    };
    net.node("a").within(send).unwrap();
    eventually("its packets leave there", || reserved(net) >= before + 10);
}

const EAST: usize = 1;
const SOUTH: usize = 2;

/// Each kind of rule sends one of two flows by another link, and so does its reservation; when the rule goes, it comes back.
#[test]
fn a_reservation_uses_the_route_of_the_rules() {
    let Some(mut net) = Net::new("pol", COMMAND) else { return };
    net.rsvp = "refresh = '500 ms'\nlocal-repair = '100 ms'";
    net.start_all();
    net.node("r1").ip_batch("route add 10.9.9.9 via 10.1.3.2 table 88").unwrap();
    let at = |net: &Net, interface: usize| net.status("r1").interfaces[interface].reserved_bps.unwrap();
    for (number, rule) in [
        "ipproto udp dport 5000",
        "ipproto udp sport 5000",
        "iif west ipproto udp dport 5000",
        "from 10.1.1.1 ipproto udp dport 5000",
    ]
    .into_iter()
    .enumerate()
    {
        net.node("r1").ip_batch(&format!("rule add {rule} lookup 88")).unwrap();
        let clients = (set_up(&net, 5000), set_up(&net, 5001));
        eventually(rule, || (at(&net, EAST), at(&net, SOUTH)) == (ON_WIRE, ON_WIRE));
        packets_leave_by(&net, 5000, SOUTH);
        packets_leave_by(&net, 5001, EAST);
        net.node("r1").ip_batch(&format!("rule del {rule} lookup 88")).unwrap();
        eventually("it comes back", || (at(&net, EAST), at(&net, SOUTH)) == (2 * ON_WIRE, 0));
        if number == 0 {
            packets_leave_by(&net, 5000, EAST);
        }
        drop(clients);
        eventually("nothing is left of it", || {
            ["a", "r1", "r2", "r3", "b"].iter().all(|node| net.status(node).sessions.is_empty())
        });
    }
}

/// A packet filter may mark packets before they are routed. The mark is in the file.
#[test]
fn a_reservation_uses_the_route_of_the_mark_in_the_file() {
    let Some(mut net) = Net::new("pom", COMMAND) else { return };
    net.root = "route-mark = 7";
    net.rsvp = "refresh = '500 ms'\nlocal-repair = '100 ms'";
    net.start_all();
    net.node("r1").ip_batch("route add 10.9.9.9 via 10.1.3.2 table 88\nrule add fwmark 7 lookup 88").unwrap();
    let at = |net: &Net, interface: usize| net.status("r1").interfaces[interface].reserved_bps.unwrap();
    let clients = set_up(&net, 5000);
    eventually("the rule counts", || (at(&net, EAST), at(&net, SOUTH)) == (0, ON_WIRE));
    net.node("r1").ip_batch("rule del fwmark 7 lookup 88").unwrap();
    eventually("it comes back", || (at(&net, EAST), at(&net, SOUTH)) == (ON_WIRE, 0));
    drop(clients);
}

/// Of two links of equal cost, each flow has its reservation on the one that the kernel chooses for its ports.
#[test]
fn a_reservation_uses_the_link_selected_by_its_ports() {
    let Some(mut net) = Net::new("ecm", COMMAND) else { return };
    net.rate = "100 Mbit/s";
    let policy = || std::fs::write("/proc/sys/net/ipv4/fib_multipath_hash_policy", "1").unwrap();
    net.node("r1").within(policy).unwrap();
    net.node("r1").ip_batch("route replace 10.9.9.9 nexthop via 10.1.2.2 nexthop via 10.1.3.2").unwrap();
    net.start_all();
    let flows: Vec<_> = (5000..5006).map(|port| (port, set_up(&net, port))).collect();
    let there = |net: &Net| [EAST, SOUTH].map(|at| net.status("r1").interfaces[at].reservations.unwrap());
    let [east, south] = there(&net);
    assert_eq!(east + south, 6);
    let total = |net: &Net| {
        let status = net.status("r1");
        status.interfaces[EAST].reserved_packets + status.interfaces[SOUTH].reserved_packets
    };
    for (port, _) in &flows {
        let before = total(&net);
        let send = || {
            let socket = UdpSocket::bind((A, *port)).unwrap();
            (0..10).for_each(|_| assert_eq!(socket.send_to(&[0; 500], (B, *port)).unwrap(), 500));
        };
        net.node("a").within(send).unwrap();
        eventually("all of its packets are reserved ones", || total(&net) >= before + 10);
    }
}
