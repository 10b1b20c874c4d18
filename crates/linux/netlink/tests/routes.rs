//! Interfaces, routes and their changes, in network namespaces.
//!
//! The tests require root. Without it they print a message and pass: `sudo -E cargo test -p cutline-netlink`.

use cutline_netlink::{
    Address, Hop, Interface, InterfaceUse, KernelRoute, Monitor, NetworkChanges, NoRoute, Question,
    RouteLookup, interfaces, uses,
};
use cutline_sys::namespace::Namespace;
use cutline_sys::reactor::{PollFd, PollFlags, wait};
use cutline_testbed::{may_make_namespaces, wait_for_carriers};
use cutline_units::{Bytes, Duration, IpVersion};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use std::net::IpAddr;

const COMMAND: &str = "sudo -E cargo test -p cutline-netlink routes::";

/// A host with an interface `east`, and routes of each kind.
fn host(label: &str) -> Option<Namespace> {
    may_make_namespaces(COMMAND).then_some(())?;
    let namespace = Namespace::create(label).unwrap();
    // The kernel would take up link-local addresses, which it chooses by itself, seconds later on a busy machine.
    let set_up = "link add east mtu 1400 type veth peer name west\n\
                  link set east addrgenmode none\nlink set west addrgenmode none\n\
                  link set east up\nlink set west up\n\
                  address add 10.0.0.1/24 dev east\naddress add 10.0.0.9/32 peer 10.8.8.8 dev east\n\
                  address add fd00::1/64 dev east nodad\n\
                  route add 10.2.0.0/16 via 10.0.0.2\nroute add blackhole 10.3.0.0/16\n\
                  route add prohibit 10.4.0.0/16\nroute add unreachable 10.5.0.0/16\n\
                  route add 10.6.0.0/16 via inet6 fd00::2 dev east\n\
                  route add fd02::/64 via fd00::2\nroute add blackhole fd03::/64\n\
                  route add prohibit fd04::/64\nroute add unreachable fd05::/64\n\
                  rule add from 10.0.0.9 to 10.7.0.0/16 lookup 77\nroute add 10.7.0.0/16 via 10.0.0.7 table 77";
    namespace.ip_batch(set_up).unwrap();
    wait_for_carriers(&namespace);
    // The kernel takes up an address of IPv6 in its own time.
    let mut monitor = namespace.within(|| Monitor::open().unwrap()).unwrap();
    let mut router = namespace.within(|| RouteLookup::open().unwrap()).unwrap();
    for _ in 0..100 {
        if router.route(ip("fd00::1")).unwrap() == KernelRoute::Local {
            return Some(namespace);
        }
        wait(&mut [PollFd::new(&monitor, PollFlags::IN)], Duration::from_secs(1)).unwrap();
        monitor.take().unwrap();
    }
    panic!("the address fd00::1 is not taken up");
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn interfaces_have_their_addresses() {
    let Some(host) = host("interfaces") else { return };
    let found = host.within(|| interfaces().unwrap()).unwrap();
    let names: Vec<&str> = found.iter().map(|interface| interface.name.as_str()).collect();
    assert_eq!(names, ["lo", "west", "east"], "in the order of their numbers");
    let east = &found[2];
    assert_eq!(
        (east.mtu, east.header, east.is_up, east.is_loopback),
        (Bytes::new(1400), Bytes::new(14), true, false)
    );
    let address = |text, prefix| Address { address: ip(text), prefix };
    for own in [address("10.0.0.1", 24), address("10.0.0.9", 32), address("fd00::1", 64)] {
        assert!(east.addresses.contains(&own), "{own:?} in {:?}", east.addresses);
    }
    assert!(found[0].is_loopback && found[0].addresses.contains(&address("::1", 128)));
    let missing = host.within(|| Interface::named("north").unwrap_err().to_string()).unwrap();
    assert_eq!(missing, "there is no interface `north`; there are: lo, west, east");
}

#[test]
fn a_route_is_the_one_that_a_packet_takes() {
    let Some(host) = host("routes") else { return };
    let mut router = host.within(|| RouteLookup::open().unwrap()).unwrap();
    let east = host.within(|| Interface::named("east").unwrap().index).unwrap();
    let leaves = |next_hop: Option<&str>, source: &str| {
        KernelRoute::Leaves(Hop { interface: east, next_hop: next_hop.map(ip), source: Some(ip(source)) })
    };
    let expected = [
        ("10.0.0.7", leaves(None, "10.0.0.1")),
        ("10.2.3.4", leaves(Some("10.0.0.2"), "10.0.0.1")),
        ("10.6.0.1", leaves(Some("fd00::2"), "10.0.0.1")),
        ("fd00::7", leaves(None, "fd00::1")),
        ("fd02::7", leaves(Some("fd00::2"), "fd00::1")),
        ("10.0.0.1", KernelRoute::Local),
        ("127.0.0.1", KernelRoute::Local),
        ("fd00::1", KernelRoute::Local),
        ("10.3.0.1", KernelRoute::None(NoRoute::Blackhole)),
        ("10.4.0.1", KernelRoute::None(NoRoute::Prohibited)),
        ("10.5.0.1", KernelRoute::None(NoRoute::Unreachable)),
        ("10.7.0.1", KernelRoute::None(NoRoute::Unreachable)),
        ("192.0.2.1", KernelRoute::None(NoRoute::Unreachable)),
        ("fd03::1", KernelRoute::None(NoRoute::Blackhole)),
        ("fd04::1", KernelRoute::None(NoRoute::Prohibited)),
        ("fd05::1", KernelRoute::None(NoRoute::Unreachable)),
        ("2001:db8::1", KernelRoute::None(NoRoute::Unreachable)),
    ];
    for (destination, route) in expected {
        assert_eq!(router.route(ip(destination)).unwrap(), route, "{destination}");
    }
}

#[test]
fn a_route_may_depend_on_the_source() {
    let Some(host) = host("sources") else { return };
    let mut router = host.within(|| RouteLookup::open().unwrap()).unwrap();
    let east = host.within(|| Interface::named("east").unwrap().index).unwrap();
    let mut next_hop = |destination: &str, source: &str, incoming| {
        let question = Question { source: Some(ip(source)), incoming, ..Question::from(ip(destination)) };
        router.route(question).map(|route| match route {
            KernelRoute::Leaves(hop) => Ok(hop.next_hop),
            other => Err(other),
        })
    };
    assert_eq!(next_hop("10.7.0.1", "10.0.0.9", None).unwrap(), Ok(Some(ip("10.0.0.7"))));
    let unreachable = Err(KernelRoute::None(NoRoute::Unreachable));
    assert_eq!(next_hop("10.7.0.1", "10.0.0.1", None).unwrap(), unreachable);
    // The source of another host says nothing without the interface at which its packets arrive.
    assert_eq!(next_hop("10.2.0.1", "10.0.0.77", None).unwrap(), Ok(Some(ip("10.0.0.2"))));
    assert_eq!(next_hop("10.3.0.1", "10.0.0.77", None).unwrap(), Err(KernelRoute::None(NoRoute::Blackhole)));
    assert_eq!(next_hop("10.2.0.1", "10.0.0.77", Some(east)).unwrap(), unreachable, "it does not forward");
    host.set("net.ipv4.ip_forward", "1").unwrap();
    assert_eq!(next_hop("10.2.0.1", "10.0.0.77", Some(east)).unwrap(), Ok(Some(ip("10.0.0.2"))));
    let error = next_hop("10.2.0.1", "fd00::1", None).unwrap_err().to_string();
    assert_eq!(error, "source = fd00::1: allowed is an address of the destination's protocol");
}

#[test]
fn a_monitor_receives_changes() {
    let Some(host) = host("changes") else { return };
    let mut monitor = host.within(|| Monitor::open().unwrap()).unwrap();
    let mut changes = |command: &str| {
        // What the kernel does by itself, such as taking up an address of IPv6, comes late.
        while wait(&mut [PollFd::new(&monitor, PollFlags::IN)], Duration::from_secs(1)).unwrap() {
            monitor.take().unwrap();
        }
        assert!(!monitor.take().unwrap().any());
        host.ip_batch(command).unwrap();
        let mut fds = [PollFd::new(&monitor, PollFlags::IN)];
        assert!(wait(&mut fds, Duration::from_secs(90)).unwrap(), "{command}: nothing to read");
        monitor.take().unwrap()
    };
    let routes = NetworkChanges { routes: true, ..NetworkChanges::default() };
    assert_eq!(changes("route add 10.9.0.0/16 via 10.0.0.2"), routes);
    assert_eq!(changes("route del 10.9.0.0/16"), routes);
    assert_eq!(changes("route add fd09::/64 via fd00::2"), routes);
    assert_eq!(changes("rule add from 10.0.0.3 lookup 78"), routes);
    assert!(changes("address add 10.0.0.4/32 dev east").addresses);
    assert!(changes("link set west down").links);
    // Lost messages may have been any.
    set_socket_recv_buffer_size(&monitor, 1).unwrap();
    let many: Vec<String> = (0..200).map(|i| format!("route add 10.10.{i}.0/24 via 10.0.0.2")).collect();
    host.ip_batch(&many.join("\n")).unwrap();
    assert_eq!(monitor.take().unwrap(), NetworkChanges::ALL);
}

/// Each use of an interface is found, and an interface that is merely switched on has none.
#[test]
fn the_uses_of_an_interface() {
    if !may_make_namespaces(COMMAND) {
        return;
    }
    let host = Namespace::create("uses").unwrap();
    let set_up = "link add p0 type veth peer name p1\nlink set p0 up\nlink set p1 up\n\
                  link add b0 type bridge\nlink add q0 type veth peer name q1";
    host.ip_batch(set_up).unwrap();
    let of = |name: &str| {
        let found = || uses(cutline_sys::interface::index(name).unwrap()).unwrap();
        host.within(found).unwrap().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let switch = |path: &str| {
        host.within(|| std::fs::write(format!("/proc/sys/net/{path}"), "1").unwrap()).unwrap();
    };
    assert_eq!(of("p0"), [""; 0], "a link-local address and its routes are no use");
    for (command, expected) in [
        ("link set p0 master b0", "member of `b0`"),
        ("address add 10.1.0.1/24 dev p0", "address 10.1.0.1/24"),
        ("address add fd01::1/64 dev p0 nodad", "address fd01::1/64"),
        ("route add 10.2.0.0/16 dev p0", "route to 10.2.0.0/16"),
        ("route add default dev p0 table 70", "route to everywhere"),
        ("route add 10.3.0.0/16 nexthop dev p0 nexthop dev p1", "route to 10.3.0.0/16"),
        ("route add fd03::/64 dev p0", "route to fd03::/64"),
        ("link set p0 nomaster\nlink add link p0 name m0 type macvlan", "below `m0`"),
    ] {
        assert!(!of("p0").contains(&expected.to_owned()), "{command}: {:?}", of("p0"));
        host.ip_batch(command).unwrap();
        assert!(of("p0").contains(&expected.to_owned()), "{command}: {:?}", of("p0"));
    }
    assert_eq!(of("p1"), ["route to 10.3.0.0/16"], "the other end of a pair is not below it");
    switch("ipv4/conf/q0/forwarding");
    assert_eq!(of("q0"), [InterfaceUse::Forwarding(IpVersion::V4).to_string()]);
    assert_eq!(of("q1"), [""; 0]);
    switch("ipv6/conf/all/forwarding");
    assert_eq!(of("q1"), ["IPv6 forwarding"]);
}

/// Rules by source, incoming interface, mark, protocol and ports, and the choice among links by ports, are those of packets.
#[test]
fn a_flow_is_routed_as_its_packets_are() {
    let Some(host) = host("policy") else { return };
    let set_up = "link add south type veth peer name north\nlink set south up\nlink set north up\n\
                  address add 10.20.0.1/24 dev south\n\
                  route add 10.9.0.0/16 via 10.0.0.2\nroute add 10.9.0.0/16 via 10.20.0.2 table 88\n\
                  rule add from 10.0.0.9 to 10.9.1.0/24 lookup 88\nrule add iif west to 10.9.2.0/24 lookup 88\n\
                  rule add fwmark 7 to 10.9.3.0/24 lookup 88\n\
                  rule add ipproto udp dport 5004 to 10.9.4.0/24 lookup 88\n\
                  rule add ipproto tcp sport 80 to 10.9.5.0/24 lookup 88\n\
                  route add 10.10.0.0/16 nexthop via 10.0.0.2 nexthop via 10.20.0.2";
    host.ip_batch(set_up).unwrap();
    host.within(|| {
        for (name, value) in [("ip_forward", "1"), ("conf/all/rp_filter", "0"), ("conf/west/rp_filter", "0")]
        {
            std::fs::write(format!("/proc/sys/net/ipv4/{name}"), value).unwrap();
        }
        // By the ports, too.
        std::fs::write("/proc/sys/net/ipv4/fib_multipath_hash_policy", "1").unwrap();
    })
    .unwrap();
    let mut router = host.within(|| RouteLookup::open().unwrap()).unwrap();
    let west = host.within(|| Interface::named("west").unwrap().index).unwrap();
    let mut by = |question: Question| match router.route(question).unwrap() {
        KernelRoute::Leaves(hop) => hop.next_hop.unwrap().to_string(),
        other => panic!("{question:?}: {other:?}"),
    };
    let (usual, other) = ("10.0.0.2", "10.20.0.2");
    let to = |text: &str| Question::from(ip(text));
    assert_eq!(by(to("10.9.1.1")), usual);
    assert_eq!(by(Question { source: Some(ip("10.0.0.9")), ..to("10.9.1.1") }), other);
    let arrives = Question { source: Some(ip("10.0.0.77")), incoming: Some(west), ..to("10.9.2.1") };
    assert_eq!(
        (by(Question { incoming: None, ..arrives }), by(arrives)),
        (usual.to_owned(), other.to_owned())
    );
    assert_eq!(
        (by(to("10.9.3.1")), by(Question { mark: 7, ..to("10.9.3.1") })),
        (usual.into(), other.into())
    );
    let udp = |ports| Question { transport: Some((17, ports)), ..to("10.9.4.1") };
    assert_eq!((by(udp((1, 5003))), by(udp((1, 5004)))), (usual.into(), other.into()));
    let tcp = |ports| Question { transport: Some((6, ports)), ..to("10.9.5.1") };
    assert_eq!((by(tcp((81, 1))), by(tcp((80, 1)))), (usual.into(), other.into()));
    // A protocol of which the kernel takes no ports is requested without them.
    assert_eq!(by(Question { transport: Some((132, (1, 5004))), ..to("10.9.4.1") }), usual);
    let mut chosen = |port| by(Question { transport: Some((17, (port, 5004))), ..to("10.10.0.1") });
    let links: std::collections::BTreeSet<String> = (1..100).map(&mut chosen).collect();
    assert_eq!(links.len(), 2, "flows share both links");
    assert_eq!(chosen(5), chosen(5), "and each keeps to one");
}
