//! The router by `AF_XDP`, between virtual pairs: with a program in the driver and copies, which is the mode that they
//! support.
//!
//! ```text
//! host a        middle                 host b
//! a0 ══════ p0  xdp:p0 router xdp:p1  p1 ══════ b0
//! ```
//!
//! Needs root; without it the tests say so and pass: `sudo -E cargo test -p cutline-cli router_xdp::`.

use crate::common::{
    Hosts, Lab, Router, assert_a_backlog_crosses, assert_sums, echo, frame, namespaces, packets,
};
use cutline_ports::PacketPort;
use cutline_router::Port;
use cutline_sys::namespace::Namespace;
use cutline_sys::xdp::{Config, Socket, XdpCopying};
use cutline_sys::{Offloads, interface, now};
use rustix::process::Signal;
use serde_json::Value;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

const PORTS: [&str; 2] = ["xdp:p0", "xdp:p1"];
const OPTIONS: [&str; 5] = ["--rate", "200Mbit", "--aqm", "pi", "--fix-offloads"];
/// Counters may differ by the packets that the kernel itself sends in these namespaces: neighbour and router discovery.
const OF_THE_KERNEL: u64 = 40;

/// `None` where this machine does not let us.
fn lab(label: &str, ports: [&str; 2], options: &[&str]) -> Option<Lab> {
    let hosts = Hosts::new(label)?;
    let router = Router::start_between(&hosts.middle, ports, options);
    Some(hosts.with(router))
}

/// Ends the process in an orderly way. Returns its counters.
fn ended(lab: &mut Lab) -> Value {
    let (code, end) = lab.router.end();
    assert_eq!((code, &end["event"]), (Some(0), &Value::from("end")));
    assert_sums(&end, "forward");
    assert_sums(&end, "reverse");
    end
}

fn port(host: &Namespace, name: &str) -> PacketPort {
    host.within(|| PacketPort::open(name).unwrap()).unwrap()
}

/// Sends this frame so often, waiting where the port is full. Returns the number of times that the port accepted it.
fn flood(port: &mut PacketPort, frame: &[u8], times: usize) -> u64 {
    let (mut settled, mut taken) = (0, 0);
    while settled < times {
        let mut rest = (settled..times).map(|_| frame);
        port.send(&mut rest, &mut |sent| {
            settled += 1;
            taken += u64::from(sent);
        })
        .unwrap();
    }
    taken
}

/// Returns the kernel's losses at a virtual pair on the way to its other end: that end's ring was full.
fn lost_on_the_way(host: &Namespace, interface: &str) -> u64 {
    let read = || {
        let table = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
        let line = table.lines().find_map(|line| line.trim().strip_prefix(&format!("{interface}:"))).unwrap();
        line.split_whitespace().nth(11).unwrap().parse().unwrap()
    };
    host.within(read).unwrap()
}

/// Returns whether the kernel shows an XDP program at an interface.
fn has_program(host: &Namespace, interface: &str) -> bool {
    let arguments = ["-n", host.name(), "-j", "link", "show", interface];
    let output = Command::new("ip").args(arguments).output().unwrap();
    let links: Value = serde_json::from_slice(&output.stdout).unwrap();
    links[0].get("xdp").is_some()
}

/// Checks that no XDP program is at an interface, which the kernel may show for a moment after the last descriptor was closed. A process
/// that another test starts has a copy of this one's descriptors until it executes its program.
fn assert_no_program(host: &Namespace, interface: &str) {
    let until = std::time::Instant::now() + Duration::from_secs(60);
    while has_program(host, interface) {
        assert!(std::time::Instant::now() < until, "{interface} still has a program");
        sleep(Duration::from_millis(10));
    }
}

/// Returns whether frames with a VLAN tag come through as they are.
fn are_tags_kept(lab: &Lab) -> bool {
    let (mut a, mut b) = (port(&lab.a, "a0"), port(&lab.b, "b0"));
    let tagged = [&[2; 12][..], &[0x81, 0x00, 0x20, 0x64, 0x88, 0xb5], &[7; 60]].concat();
    assert_eq!(flood(&mut a, &tagged, 1), 1);
    let mut found = false;
    for _ in 0..6000 {
        b.receive(now(), &mut |_, frame| found |= frame == tagged).unwrap();
        if found {
            break;
        }
        sleep(Duration::from_millis(10));
    }
    found
}

#[test]
fn frames_cross_and_a_killed_router_leaves_no_program() {
    let Some(mut lab) = lab("x", PORTS, &OPTIONS) else { return };
    for name in ["p0", "p1"] {
        let line = lab.router.error_line();
        assert!(line.starts_with(&format!("{name}: AF_XDP in the driver, with copies")), "{line}");
        assert!(has_program(&lab.middle, name));
    }
    assert!(lab.is_crossed(false, 5001), "IPv4");
    assert!(lab.is_crossed(true, 5002), "IPv6");
    assert!(are_tags_kept(&lab));
    let bytes: Vec<u8> = (0..1_000_000_u32).map(|number| (number % 251) as u8).collect();
    assert_eq!(echo([&lab.a, &lab.b], "10.9.0.2:5100", &bytes), bytes);
    let end = ended(&mut lab);
    assert_eq!(end["ports"][0]["kind"], "AF_XDP in the driver, with copies");
    for direction in ["forward", "reverse"] {
        // A megabyte in packets of 1500 B, at the least.
        assert!(packets(&end, &format!("/{direction}/sent/packets")) > 700, "{end}");
        assert_eq!(packets(&end, &format!("/{direction}/dropped/oversize/packets")), 0, "{end}");
    }

    lab.router = Router::start_between(&lab.middle, PORTS, &OPTIONS);
    assert!(lab.is_crossed(false, 5003), "the next router has the same interfaces at once");
    lab.router.kill();
    assert_no_program(&lab.middle, "p0");
    assert_no_program(&lab.middle, "p1");
    assert!(lab.is_apart(false, 5004), "nothing but the router joins the hosts");
    lab.router = Router::start_between(&lab.middle, PORTS, &OPTIONS);
    assert!(lab.is_crossed(true, 5005), "a router after the killed one");
    ended(&mut lab);
}

/// Traffic classes reach the queue and the other side, whichever kind the ports are.
#[test]
fn marks_and_hints_are_read_and_kept_as_with_a_packet_socket() {
    /// hint-1 with ECT(0), EF with ECT(1), CS1 with CE.
    const SENT: [u8; 3] = [0b0000_1110, 0b1011_1001, 0b0010_0011];
    for ports in [["p0", "p1"], PORTS, ["xdp:p0", "p1"], ["p0", "xdp:p1"]] {
        let options = ["--rate", "100Mbit", "--tsq", "--remark", "CS1=LE", "--fix-offloads"];
        let Some(mut lab) = lab("h", ports, &options) else { return };
        assert!(lab.is_crossed(false, 5001) && lab.is_crossed(true, 5002));
        let [socket, _sink] = lab.sockets(false, 5003);
        let mut b = port(&lab.b, "b0");
        for traffic_class in SENT {
            rustix::net::sockopt::set_ip_tos(&socket, traffic_class).unwrap();
            (0..10).for_each(|_| assert_eq!(socket.send(&[traffic_class; 100]).unwrap(), 100));
        }
        // Sent and received packets: payload and traffic class of IPv4.
        let mut seen = Vec::new();
        for _ in 0..6000 {
            b.receive(now(), &mut |_, frame| {
                if frame.len() == 14 + 20 + 8 + 100 {
                    seen.push((frame[42], frame[15]));
                }
            })
            .unwrap();
            if seen.len() >= 30 {
                break;
            }
            sleep(Duration::from_millis(10));
        }
        let count = |pair| seen.iter().filter(|&&other| other == pair).count();
        let [hinted, ef, cs1] = SENT;
        assert_eq!(
            [(hinted, hinted), (ef, ef), (cs1, 0b0000_0111)].map(count),
            [10; 3],
            "{ports:?} {seen:?}"
        );
        let end = ended(&mut lab);
        let departed = |hint: u64| {
            let hints = end["forward"]["hints"].as_array().unwrap();
            let of = hints.iter().find(|of| of["hint"] == hint).unwrap_or_else(|| panic!("{hint}: {end}"));
            of["departed"]["packets"].as_u64().unwrap()
        };
        assert_eq!((departed(1), departed(6)), (10, 10), "{ports:?} {end}");
        assert_eq!(packets(&end, "/forward/remarked/packets"), 10, "{ports:?}");
    }
}

#[test]
fn packets_queued_at_a_stopped_router_cross_once_and_in_order() {
    let Some(mut lab) = lab("b", PORTS, &["--rate", "1Gbit", "--aqm", "drop-tail", "--fix-offloads"]) else {
        return;
    };
    assert!(lab.is_crossed(false, 5001), "the hosts know each other");
    assert_a_backlog_crosses(lab.sockets(false, 5002), &mut lab.router);
    ended(&mut lab);
}

/// The smallest frames as fast as a neighbour can send them, to a router at work, and to one that does not look.
#[test]
fn frames_lost_in_the_rings_are_reported() {
    let Some(mut lab) = lab("f", PORTS, &["--rate", "1Gbit", "--aqm", "fq-codel", "--fix-offloads"]) else {
        return;
    };
    assert!(lab.is_crossed(false, 5001));
    let (mut a, lost) = (port(&lab.a, "a0"), lost_on_the_way(&lab.a, "a0"));
    flood(&mut a, &frame(60), 50_000);
    // The first flood leaves the rings.
    sleep(Duration::from_millis(100));
    lab.router.signal(Signal::STOP);
    flood(&mut a, &frame(60), 10_000);
    lab.router.signal(Signal::CONT);
    assert!(lab.is_crossed(false, 5002), "IPv4 after the flood");
    assert!(lab.is_crossed(true, 5003), "IPv6 after the flood");
    let lost = lost_on_the_way(&lab.a, "a0") - lost;
    let end = ended(&mut lab);
    let missed = packets(&end, "/ports/0/missed_packets");
    let came = packets(&end, "/forward/received/packets") + missed;
    assert!(missed > 1000, "more came to a stopped router than there are chunks: {end}");
    // Nothing vanishes uncounted, and nothing comes twice. The kernel may count a frame as lost that a0 sent again.
    let told = format!("{came} came, {lost} lost on the way: {end}");
    assert!(came + lost >= 60_000, "{told}");
    assert!(came < 60_000 + OF_THE_KERNEL, "{told}");
    assert_eq!(packets(&end, "/forward/dropped/unsent/packets"), 0, "{end}");
}

/// Down and up, each of the two; then one is removed.
#[test]
fn an_interface_goes_down_and_comes_back() {
    let Some(mut lab) = lab("d", PORTS, &OPTIONS) else { return };
    assert!(lab.is_crossed(false, 5001));
    for (down, source, name) in [("p1", &lab.a, "a0"), ("p0", &lab.b, "b0")] {
        let mut source = port(source, name);
        lab.middle.ip(&["link", "set", down, "down"]).unwrap();
        assert_eq!(flood(&mut source, &frame(500), 200), 200);
        // The time for which the interface is down.
        sleep(Duration::from_millis(100));
        lab.middle.ip(&["link", "set", down, "up"]).unwrap();
        assert!(lab.is_crossed(false, 5002), "IPv4 after {down} was down");
        assert!(lab.is_crossed(true, 5003), "IPv6 after {down} was down");
    }
    // The hosts' own ends: the carrier goes, and the interface takes frames and loses them.
    let mut b = port(&lab.b, "b0");
    lab.a.ip(&["link", "set", "a0", "down"]).unwrap();
    assert_eq!(flood(&mut b, &frame(500), 200), 200);
    // The time for which the carrier is gone.
    sleep(Duration::from_millis(100));
    lab.a.ip(&["link", "set", "a0", "up"]).unwrap();
    assert!(lab.is_crossed(false, 5004), "after a carrier was lost");
    lab.middle.ip(&["link", "delete", "p1"]).unwrap();
    let (code, end) = lab.router.ended();
    let messages = lab.router.messages();
    assert_eq!(code, Some(1), "{messages}");
    assert!(messages.contains("`p1` has been removed"), "{messages}");
    for direction in ["forward", "reverse"] {
        assert_sums(&end, direction);
        let unsent = packets(&end, &format!("/{direction}/dropped/unsent/packets"));
        assert!(unsent > 100, "frames for an interface that is down are lost there: {end}");
    }
}

/// Each receive queue has a socket: flows come by any of them.
#[test]
fn frames_of_every_receive_queue_cross() {
    const FLOWS: u16 = 40;
    let Some(hosts) = Hosts::new("q") else { return };
    let (a, middle) = (&hosts.a, &hosts.middle);
    a.ip(&["link", "delete", "a0"]).unwrap();
    let queues = ["numtxqueues", "3", "numrxqueues", "3"];
    let near = [&["link", "add", "a0"][..], &queues, &["type", "veth", "peer", "name", "p0"]].concat();
    a.ip(&[&near[..], &queues, &["netns", middle.name()]].concat()).unwrap();
    a.ip(&["address", "add", "10.9.0.1/24", "dev", "a0"]).unwrap();
    a.ip(&["link", "set", "a0", "up"]).unwrap();
    middle.ip(&["link", "set", "p0", "up"]).unwrap();
    a.within(|| Offloads::turn_off("a0").unwrap().keep()).unwrap();
    let router = Router::start_between(middle, PORTS, &OPTIONS);
    let mut lab = hosts.with(router);
    assert!(lab.is_crossed(false, 5001));
    for flow in 0..FLOWS {
        assert!(lab.is_crossed(false, 6000 + flow), "flow {flow}");
    }
    let end = ended(&mut lab);
    assert_eq!(packets(&end, "/ports/0/missed_packets"), 0, "{end}");
}

/// A virtual pair's driver takes no program where a frame would not fit into its page.
#[test]
fn long_frames_cross_by_a_program_in_the_kernel() {
    let Some(hosts) = Hosts::new("k") else { return };
    for (host, name) in [(&hosts.a, "a0"), (&hosts.middle, "p0"), (&hosts.middle, "p1"), (&hosts.b, "b0")] {
        host.ip(&["link", "set", name, "mtu", "3700"]).unwrap();
    }
    let mut router = Router::start_between(&hosts.middle, PORTS, &OPTIONS);
    for name in ["p0", "p1"] {
        let line = router.error_line();
        assert!(line.starts_with(&format!("{name}: AF_XDP in the kernel, with copies")), "{line}");
    }
    let mut lab = hosts.with(router);
    assert!(lab.is_crossed(false, 5001) && lab.is_crossed(true, 5002));
    let [a, b] = lab.sockets(false, 5003);
    let (sent, mut buffer) = ([5; 3600], [0; 4000]);
    for (from, to) in [(&a, &b), (&b, &a)] {
        assert_eq!(from.send(&sent).unwrap(), sent.len());
        let length = to.recv(&mut buffer).unwrap();
        assert_eq!(buffer[..length], sent);
    }
    assert!(are_tags_kept(&lab));
    let bytes: Vec<u8> = (0..1_000_000_u32).map(|number| (number % 251) as u8).collect();
    assert_eq!(echo([&lab.a, &lab.b], "10.9.0.2:5100", &bytes), bytes);
    ended(&mut lab);
    assert_no_program(&lab.middle, "p0");
}

/// The kernel frees the queues of a process that has ended late, on a busy machine after seconds. Here a socket without a program has the
/// queue for two.
#[test]
fn a_queue_that_is_not_free_yet_is_waited_for() {
    let Some([host, ..]) = namespaces("wq") else { return };
    host.ip(&["link", "add", "p0", "type", "veth", "peer", "name", "p1"]).unwrap();
    let hold = || {
        Offloads::turn_off_after("p0", true, &mut |_| {}).unwrap().keep();
        let socket = Socket::open(Config { receive: 64, transmit: 0 }).unwrap();
        socket.bind(interface::index("p0").unwrap(), 0, XdpCopying::Copy).unwrap();
        socket
    };
    let socket = host.within(hold).unwrap();
    let begin = std::time::Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // The time for which the queue is in use.
            sleep(Duration::from_secs(2));
            drop(socket);
        });
        host.within(|| drop(cutline_ports::XdpPort::open("p0").unwrap())).unwrap();
    });
    assert!(begin.elapsed() >= Duration::from_secs(2), "the queue was in use");
}

#[test]
fn unavailable_features_are_refused_with_the_reason() {
    let Some([host, ..]) = namespaces("w") else { return };
    host.ip(&["link", "add", "p0", "type", "veth", "peer", "name", "p1"]).unwrap();
    let refused = |arguments: &[&str], code: i32, what: &str| {
        let arguments = [&["router", "--rate", "8Mbit"], arguments].concat();
        let run = || Command::new(env!("CARGO_BIN_EXE_cutline")).args(arguments).output().unwrap();
        let output = host.within(run).unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{message}");
        assert!(message.contains(what), "{message}");
    };
    refused(&["--in", "xdp:p0", "--out", "p1"], 2, "`ethtool -K p0 rxvlan off`, or --fix-offloads");
    refused(&["--in", "xdp:p0", "--out", "p0"], 2, "`xdp:p0` and `p0` are the same interface");
    refused(&["--in", "xdp:p0", "--out", "tun:p1"], 2, "both must be TUN interfaces, or neither");
    refused(&["--in", "xdp:q0", "--out", "p1"], 2, "there is no interface `q0`");
    host.ip(&["link", "set", "p0", "mtu", "4000"]).unwrap();
    refused(&["--in", "xdp:p0", "--out", "p1"], 2, "`p0` has an MTU of 4000 B; AF_XDP allows at most 3818 B");
    host.ip(&["link", "set", "p0", "mtu", "1500"]).unwrap();
    let mut router = Router::start_between(&host, PORTS, &OPTIONS);
    refused(&["--in", "xdp:p0", "--out", "p1"], 1, "has interface `p0`: end it first");
    assert_eq!(router.end().0, Some(0));
    // Something else than a router has it.
    let offloads =
        host.within(|| cutline_sys::Offloads::turn_off_after("p0", true, &mut |_| {}).unwrap()).unwrap();
    let other = host.within(|| cutline_ports::XdpPort::open("p0").unwrap()).unwrap();
    refused(&["--in", "xdp:p0", "--out", "p1"], 1, "interface `p0` has an XDP program already");
    drop((other, offloads));
    assert_no_program(&host, "p0");
}
