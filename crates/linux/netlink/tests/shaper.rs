//! Traffic control of an interface, in network namespaces, with real packets.
//!
//! The tests require root. Without it they print a message and pass: `sudo -E cargo test -p cutline-netlink`.
#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "real packets take real time")]

use cutline_flow::{FlowSelector, TrafficSpec};
use cutline_netlink::{
    ClassId, Counters, Error, HtbShaper, Interface, RootQdisc, ShaperOptions, Touched, TrafficMonitor, sweep,
};
use cutline_sys::namespace::Namespace;
use cutline_sys::packet;
use cutline_testbed::{in_time, may_make_namespaces, undisturbed};
use cutline_units::{Bytes, Rate};
use rustix::process::{Resource, Rlimit, setrlimit};
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv6Addr, UdpSocket};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

const COMMAND: &str = "sudo -E cargo test -p cutline-netlink shaper::";
const UDP: u8 = 17;

/// Two hosts with a link between their interfaces `east` and `west`.
struct Hosts {
    sender: Namespace,
    receiver: Namespace,
}

impl Hosts {
    fn new(label: &str) -> Option<Self> {
        may_make_namespaces(COMMAND).then_some(())?;
        let sender = Namespace::create(&format!("{label}s")).unwrap();
        let receiver = Namespace::create(&format!("{label}r")).unwrap();
        for host in [&sender, &receiver] {
            // Packets of IPv6 are raw frames here. The kernel's own (multicast reports) would be counted with them.
            host.set("net.ipv6.conf.all.disable_ipv6", "1").unwrap();
            host.set("net.ipv6.conf.default.disable_ipv6", "1").unwrap();
        }
        let link = format!("link add east type veth peer name west\nlink set west netns {}", receiver.name());
        sender.ip_batch(&link).unwrap();
        sender.ip_batch("link set east up\naddress add 10.0.0.1/24 dev east").unwrap();
        receiver.ip_batch("link set west up\naddress add 10.0.0.2/24 dev west").unwrap();
        Some(Self { sender, receiver })
    }

    /// Runs `work` on the sender's interface.
    fn with<T: Send>(&self, work: impl FnOnce(&Interface) -> T + Send) -> T {
        self.sender.within(|| work(&Interface::named("east").unwrap())).unwrap()
    }

    /// Runs `tc`, a program that is not ours, and returns its output.
    fn tc(&self, arguments: &str) -> String {
        let all = format!("-n {} {arguments}", self.sender.name());
        let output = Command::new("tc").args(all.split(' ')).output().unwrap();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        assert!(output.status.success(), "tc {arguments}: {text}");
        text
    }
}

fn reservation(rate: Rate, size: u64) -> TrafficSpec {
    TrafficSpec {
        rate,
        peak: rate,
        bucket: Bytes::new(3 * size),
        min_policed: Bytes::new(size),
        max_packet: Bytes::new(size),
    }
}

/// Datagrams to a port of the receiver.
fn to_port(port: u16) -> FlowSelector {
    FlowSelector {
        protocol: Some(UDP),
        destination_port: Some(port),
        ..FlowSelector::to("10.0.0.2".parse().unwrap())
    }
}

/// A flow of datagrams at a steady rate of IP packets.
#[derive(Clone, Copy)]
struct Flow {
    port: u16,
    rate: Rate,
    size: usize,
    /// Sends delayed datagrams at once. Otherwise the flow never exceeds its rate, so that a pause of the machine exceeds no reservation.
    catches_up: bool,
}

/// Outcome of a flow.
#[derive(Debug)]
struct Outcome {
    sent: usize,
    received: usize,
    /// The median of the time that a datagram was under way.
    delay: Duration,
}

/// Sends the flows at the same time. Returns the delivery of each.
fn run<const N: usize>(hosts: &Hosts, flows: [Flow; N], time: Duration) -> [Outcome; N] {
    let start = Instant::now();
    let is_over = AtomicBool::new(false);
    scope(|scope| {
        let running = flows.map(|flow| {
            let sink = hosts.receiver.within(|| UdpSocket::bind(("10.0.0.2", flow.port)).unwrap()).unwrap();
            let source = hosts.sender.within(|| UdpSocket::bind("10.0.0.1:0").unwrap()).unwrap();
            source.connect(("10.0.0.2", flow.port)).unwrap();
            sink.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
            let is_over = &is_over;
            let receiver = scope.spawn(move || {
                let mut delays = Vec::new();
                let mut datagram = [0; 2000];
                loop {
                    match sink.recv(&mut datagram) {
                        Ok(_) => {
                            let sent = u64::from_ne_bytes(*datagram.first_chunk().unwrap());
                            delays.push(start.elapsed().saturating_sub(Duration::from_nanos(sent)));
                        }
                        Err(_) if is_over.load(Ordering::Relaxed) => break,
                        Err(_) => {}
                    }
                }
                delays.sort();
                delays
            });
            let sender = scope.spawn(move || send(&source, flow, start, time));
            (sender, receiver)
        });
        let (senders, receivers): (Vec<_>, Vec<_>) = running.into_iter().unzip();
        let sent: Vec<usize> = senders.into_iter().map(|sender| sender.join().unwrap()).collect();
        // Packets that wait in the shaper arrive.
        sleep(Duration::from_millis(500));
        is_over.store(true, Ordering::Relaxed);
        let received: Vec<_> = receivers.into_iter().map(|receiver| receiver.join().unwrap()).collect();
        std::array::from_fn(|i| Outcome {
            sent: sent[i],
            received: received[i].len(),
            delay: received[i].get(received[i].len() / 2).copied().unwrap_or_default(),
        })
    })
}

/// Sends a flow for `time` after `start`, and returns the number of datagrams that were sent.
fn send(source: &UdpSocket, flow: Flow, start: Instant, time: Duration) -> usize {
    let interval = Duration::from_nanos(flow.size as u64 * 8_000_000_000 / flow.rate.as_bps());
    // Without the headers of IP and UDP.
    let mut datagram = vec![0; flow.size - 28];
    let mut sent = 0;
    let mut due = start;
    while start.elapsed() < time {
        let now = Instant::now();
        datagram[..8].copy_from_slice(&(start.elapsed().as_nanos() as u64).to_ne_bytes());
        // A full buffer of the interface is no error here; another one shows as a loss.
        sent += usize::from(source.send(&datagram).is_ok());
        due += interval;
        if !flow.catches_up {
            due = due.max(now + interval);
        }
        sleep(due.saturating_duration_since(Instant::now()));
    }
    sent
}

#[test]
fn a_reserved_flow_loses_nothing_and_excess_is_best_effort() {
    undisturbed(shared_link);
}

/// The claims on shares need senders that keep to their rates, and so a machine with time for them.
fn shared_link() {
    let Some(hosts) = Hosts::new("share") else { return };
    let link = Rate::from_kbps(1500);
    // 38 B of link to 1000 B of packet: the reservation is too small if they are not counted.
    let options = ShaperOptions { overhead: 24, ..ShaperOptions::default() };
    let mut shaper = hosts.with(|east| HtbShaper::install(east, link, options).unwrap());
    let flows = [
        Flow { port: 5001, rate: Rate::from_kbps(320), size: 1000, catches_up: false },
        Flow { port: 5002, rate: Rate::from_kbps(640), size: 1000, catches_up: false },
        Flow { port: 5003, rate: Rate::from_mbps(4), size: 1000, catches_up: true },
    ];

    let [first, _, flood] = run(&hosts, flows, Duration::from_secs(2));
    in_time!(first.received * 2 < first.sent, "without a reservation it loses more than half: {first:?}");
    in_time!(flood.received * 2 < flood.sent, "the link is overloaded: {flood:?}");

    let keeps_to_it = shaper.add(&reservation(flows[0].rate, 1000), &[to_port(5001)]).unwrap();
    let half = Rate::from_kbps(320);
    let sends_twice = shaper.add(&reservation(half, 1000), &[to_port(5002)]).unwrap();
    assert_eq!(shaper.reserved().as_bps(), 2 * 332_160);
    let before = shaper.best_effort().unwrap();
    let time = Duration::from_secs(5);
    let outcomes = run(&hosts, flows, time);
    let counters = shaper.counters().unwrap();
    let best_effort = shaper.best_effort().unwrap().packets - before.packets;
    eprintln!("{outcomes:?}\n{counters:?}\nbest effort: {best_effort} packets");

    let [first, second, flood] = &outcomes;
    assert_eq!(first.sent, first.received, "what is reserved is not lost");
    assert_eq!(counters[&keeps_to_it].excess, 0, "and never exceeds the reservation");
    assert_eq!(counters[&keeps_to_it].packets as usize, first.sent);
    in_time!(first.delay * 3 < flood.delay, "it does not wait among the others: {first:?} {flood:?}");
    // 40 packets a second are reserved.
    let excess = counters[&sends_twice].excess as usize;
    let reserved = second.received - excess;
    in_time!((185..=225).contains(&reserved), "{reserved} packets within the reservation");
    in_time!(second.received < second.sent * 9 / 10, "not all of the excess fits: {second:?}");
    // The link carries 38 B with each packet; at the end, packets in the fifos leave as well, 31 packets and the buckets.
    let carried = first.received + second.received + flood.received;
    assert!(
        carried < 948,
        "{carried} packets of 1038 B in 5 s at 1.5 Mbit/s, where 903 would be due and 924 without the 24 B"
    );
    // While both wait, excess gets a sixteenth of what best effort gets: an eighth, of which this is one of two reservations.
    let best_effort = best_effort as usize;
    in_time!(excess * 32 > best_effort && excess * 8 < best_effort, "{excess} and {best_effort} packets");

    // Without other traffic, excess has the rest of the link.
    let [first, second] = run(&hosts, [flows[0], flows[1]], Duration::from_secs(2));
    assert_eq!((first.sent, second.sent), (first.received, second.received));
    // In two seconds 80 packets are reserved, and the depth of the bucket.
    let more = shaper.counters().unwrap()[&sends_twice].excess as usize - excess;
    in_time!(more + 110 > second.sent, "{more} packets of excess of {}", second.sent);

    shaper.remove(keeps_to_it).unwrap();
    let [first, _, _] = run(&hosts, flows, Duration::from_secs(2));
    in_time!(first.received * 2 < first.sent, "the reservation has ended: {first:?}");
}

/// The frames of a sender, made by hand.
mod frame {
    use std::net::{Ipv4Addr, Ipv6Addr};

    fn ethernet(kind: u16, packet: &[u8]) -> Vec<u8> {
        [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1][..], &kind.to_be_bytes(), packet, &[0; 20]].concat()
    }

    pub fn arp() -> Vec<u8> {
        ethernet(0x0806, &[0; 28])
    }

    /// A packet of IPv4 from 10.0.0.1, with words of options.
    pub fn v4(destination: Ipv4Addr, protocol: u8, ports: [u16; 2], options: u8, fragment: u16) -> Vec<u8> {
        let mut packet = vec![0; 20];
        packet[0] = 0x45 + options;
        packet[6..8].copy_from_slice(&fragment.to_be_bytes());
        packet[9] = protocol;
        packet[12..16].copy_from_slice(&[10, 0, 0, 1]);
        packet[16..20].copy_from_slice(&destination.octets());
        packet.resize(20 + 4 * usize::from(options), 1);
        packet.extend(ports.map(u16::to_be_bytes).concat());
        ethernet(0x0800, &packet)
    }

    /// A packet of IPv6 from `fd00::1`.
    pub fn v6(destination: Ipv6Addr, protocol: u8, behind: [u8; 4], label: u32) -> Vec<u8> {
        let mut packet = (6_u32 << 28 | label).to_be_bytes().to_vec();
        packet.extend([0, 24, protocol, 64]);
        packet.extend("fd00::1".parse::<Ipv6Addr>().unwrap().octets());
        packet.extend(destination.octets());
        packet.extend(behind);
        ethernet(0x86dd, &packet)
    }
}

/// Sends frames, and returns how many packets each of the classes, and best effort, has sent of them.
fn picked(hosts: &Hosts, shaper: &mut HtbShaper, classes: &[ClassId], frames: &[Vec<u8>]) -> Vec<u32> {
    let packets = |shaper: &mut HtbShaper| {
        let counters = shaper.counters().unwrap();
        let mut all: Vec<Counters> = classes.iter().map(|class| counters[class]).collect();
        all.push(shaper.best_effort().unwrap());
        all
    };
    let before = packets(shaper);
    let socket = hosts.with(|east| {
        let socket = packet::open().unwrap();
        packet::bind(&socket, east.index).unwrap();
        socket
    });
    for frame in frames {
        assert_eq!(packet::send(&socket, &[frame]).unwrap(), 1);
    }
    for _ in 0..3000 {
        if packets(shaper).iter().all(|counters| counters.waiting == 0) {
            break;
        }
        sleep(Duration::from_millis(20));
    }
    packets(shaper).iter().zip(before).map(|(after, before)| after.packets - before.packets).collect()
}

#[test]
fn filters_pick_their_packets_and_no_others() {
    let Some(hosts) = Hosts::new("pick") else { return };
    let mut shaper =
        hosts.with(|east| HtbShaper::install(east, Rate::from_mbps(100), ShaperOptions::default()).unwrap());
    let v4 = |last: u8| std::net::Ipv4Addr::new(10, 0, 0, last);
    let v6 = |last: u16| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last);
    let source = Some("10.0.0.1".parse().unwrap());
    let rate = reservation(Rate::from_mbps(1), 1500);
    let mut add = |filters: &[FlowSelector]| shaper.add(&rate, filters).unwrap();
    let classes = [
        // Style WF: any sender to a port.
        add(&[to_port(9)]),
        // Style FF: one sender. It wins over the one before.
        add(&[FlowSelector { source, source_port: Some(7), ..to_port(9) }]),
        // Style SE: two senders.
        add(&[8, 9].map(|port| FlowSelector { source, source_port: Some(port), ..to_port(10) })),
        // No ports: everything to a host, fragments included.
        add(&[FlowSelector::to(v4(3).into())]),
        add(&[FlowSelector {
            protocol: Some(UDP),
            destination_port: Some(9),
            ..FlowSelector::to(v6(2).into())
        }]),
        add(&[FlowSelector {
            flow_label: Some(0xabcde),
            source: Some(v6(1).into()),
            ..FlowSelector::to(v6(2).into())
        }]),
    ];
    let wildcard = [
        frame::v4(v4(2), UDP, [6, 9], 0, 0),
        frame::v4(v4(2), UDP, [6, 9], 1, 0),
        frame::v4(v4(2), UDP, [6, 9], 10, 0x4000),
    ];
    let fixed = [frame::v4(v4(2), UDP, [7, 9], 0, 0), frame::v4(v4(2), UDP, [7, 9], 3, 0)];
    let shared = [frame::v4(v4(2), UDP, [8, 10], 0, 0), frame::v4(v4(2), UDP, [9, 10], 0, 0)];
    let host = [
        frame::v4(v4(3), 1, [0, 0], 0, 0),
        frame::v4(v4(3), UDP, [7, 9], 0, 0x2000),
        frame::v4(v4(3), UDP, [7, 9], 5, 0x0001),
        frame::v4(v4(3), 6, [7, 9], 0, 0),
    ];
    let ports_v6 = [frame::v6(v6(2), UDP, [0, 7, 0, 9], 0)];
    let label = [frame::v6(v6(2), 6, [0, 7, 0, 9], 0xabcde), frame::v6(v6(2), UDP, [0, 7, 0, 8], 0xabcde)];
    let others = [
        frame::v4(v4(2), 6, [6, 9], 0, 0),
        frame::v4(v4(2), UDP, [9, 6], 0, 0),
        frame::v4(v4(4), UDP, [6, 9], 0, 0),
        // The same last byte, so the same bucket.
        frame::v4([10, 0, 1, 2].into(), UDP, [6, 9], 0, 0),
        // Fragments have no ports, whatever stands there.
        frame::v4(v4(2), UDP, [6, 9], 0, 0x2000),
        frame::v4(v4(2), UDP, [6, 9], 0, 0x0001),
        frame::v4(v4(2), UDP, [10, 10], 0, 0),
        frame::v6(v6(2), 6, [0, 7, 0, 9], 0),
        frame::v6(v6(3), UDP, [0, 7, 0, 9], 0),
        frame::v6(v6(2), UDP, [0, 7, 0, 8], 0xabcdf),
    ];
    // They have a class of their own, which is not counted here.
    let control = [
        frame::arp(),
        frame::v4(v4(2), 46, [0, 0], 1, 0),
        frame::v4(v4(2), UDP, [7, 1698], 0, 0),
        frame::v6(v6(2), 46, [0; 4], 0),
        frame::v6(v6(2), UDP, [0, 7, 0x06, 0xa3], 0),
        frame::v6(v6(2), 58, [135, 0, 0, 0], 0),
    ];
    for (i, group) in
        [&wildcard[..], &fixed, &shared, &host, &ports_v6, &label, &others].into_iter().enumerate()
    {
        let mut expected = vec![0; classes.len() + 1];
        expected[i] = group.len() as u32;
        assert_eq!(picked(&hosts, &mut shaper, &classes, group), expected, "group {i}");
    }
    assert_eq!(picked(&hosts, &mut shaper, &classes, &control), [0; 7], "control");

    // A filter that is removed picks nothing; the other filter of its class stays.
    let removed = FlowSelector { source, source_port: Some(8), ..to_port(10) };
    shaper.remove_filter(classes[2], &removed).unwrap();
    assert_eq!(picked(&hosts, &mut shaper, &classes, &shared), [0, 0, 1, 0, 0, 0, 1]);
    shaper.add_filter(classes[4], &removed).unwrap();
    assert_eq!(picked(&hosts, &mut shaper, &classes, &shared), [0, 0, 1, 0, 1, 0, 0]);
    let error = shaper.add_filter(classes[0], &removed).unwrap_err().to_string();
    assert!(
        error.starts_with("filter = from 10.0.0.1 port 8 to 10.0.0.2 port 10, protocol 17: allowed is one"),
        "{error}"
    );
    // Nothing is left of a removed class: its packets use the other classes.
    shaper.remove(classes[1]).unwrap();
    let rest: Vec<ClassId> = classes.iter().copied().filter(|class| *class != classes[1]).collect();
    assert_eq!(picked(&hosts, &mut shaper, &rest, &fixed), [2, 0, 0, 0, 0, 0]);
}

/// Hundreds of filters for one host are in tables of their own, which are found by each byte that tells filters apart.
#[test]
fn many_filters_for_one_host_pick_their_packets() {
    let Some(hosts) = Hosts::new("many") else { return };
    let mut shaper =
        hosts.with(|east| HtbShaper::install(east, Rate::from_mbps(100), ShaperOptions::default()).unwrap());
    let before = hosts.tc("filter show dev east").matches("fh ").count();
    let (v4, v6) = (std::net::Ipv4Addr::new(10, 0, 0, 2), Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2));
    let rate = reservation(Rate::from_mbps(1), 1500);
    let source = Some("10.0.0.1".parse().unwrap());
    let to_port_v6 = |port| FlowSelector { destination: v6.into(), ..to_port(port) };
    let groups: [Vec<FlowSelector>; 4] = [
        (2000..2400).map(to_port).collect(),
        // One port here, many there.
        (2000..2400).map(|port| FlowSelector { source, source_port: Some(port), ..to_port(9) }).collect(),
        (2000..2400).map(to_port_v6).collect(),
        // The bytes of ports are the same: the senders tell them apart.
        (0..400_u16)
            .map(|n| FlowSelector {
                source: Some(std::net::Ipv4Addr::new(10, 7, (n >> 8) as u8, n as u8).into()),
                source_port: Some(256 * (1 + n % 3)),
                ..to_port(256)
            })
            .collect(),
    ];
    let classes: Vec<ClassId> = groups.iter().map(|filters| shaper.add(&rate, filters).unwrap()).collect();
    let ports = [2000, 2063, 2064, 2399];
    let frames: [Vec<Vec<u8>>; 5] = [
        [0, 1, 10]
            .into_iter()
            .flat_map(|words| ports.map(|to| frame::v4(v4, UDP, [6, to], words, 0)))
            .collect(),
        [0, 2, 9]
            .into_iter()
            .flat_map(|words| ports.map(|from| frame::v4(v4, UDP, [from, 9], words, 0)))
            .collect(),
        ports.map(|to| frame::v6(v6, UDP, [0, 7, (to >> 8) as u8, to as u8], 0)).to_vec(),
        Vec::new(),
        // Another port, another protocol, a fragment, a host with the same last byte.
        vec![
            frame::v4(v4, UDP, [6, 2400], 0, 0),
            frame::v4(v4, UDP, [2400, 9], 3, 0),
            frame::v4(v4, 6, [6, 2399], 0, 0),
            frame::v4(v4, UDP, [6, 2399], 0, 0x2000),
            frame::v4([10, 0, 1, 2].into(), UDP, [6, 2399], 0, 0),
            frame::v6(v6, UDP, [0, 7, 9, 96], 0),
        ],
    ];
    for (i, group) in frames.iter().enumerate() {
        let mut expected = vec![0; classes.len() + 1];
        expected[i] = group.len() as u32;
        assert_eq!(picked(&hosts, &mut shaper, &classes, group), expected, "group {i}");
    }
    // Those that were removed pick nothing, the others do.
    for filter in groups[0].iter().filter(|filter| filter.destination_port != Some(2399)) {
        shaper.remove_filter(classes[0], filter).unwrap();
    }
    assert_eq!(picked(&hosts, &mut shaper, &classes, &frames[0]), [3, 0, 0, 0, 9]);
    for class in classes {
        shaper.remove(class).unwrap();
    }
    let left = hosts.tc("filter show dev east");
    assert_eq!(left.matches("fh ").count(), before + 4, "tables stay: {left}");
    // Tables that are there are used again, by other bytes.
    let again = shaper.add(&rate, &groups[1]).unwrap();
    assert_eq!(picked(&hosts, &mut shaper, &[again], &frames[1]), [12, 0]);
}

#[test]
fn an_incomplete_reservation_is_undone() {
    let Some(hosts) = Hosts::new("undo") else { return };
    let mut shaper =
        hosts.with(|east| HtbShaper::install(east, Rate::from_mbps(10), ShaperOptions::default()).unwrap());
    let rate = reservation(Rate::from_mbps(1), 1000);
    let first = shaper.add(&rate, &[to_port(1)]).unwrap();
    let (reserved, classes) = (shaper.reserved(), hosts.tc("class show dev east"));
    assert!(classes.contains("rate 1014Kbit"), "{classes}");

    shaper.add(&rate, &[to_port(2), to_port(1)]).unwrap_err();
    // The kernel refuses, too: there is another filter in its place.
    let theirs = "protocol ipv6 pref 3 handle 2:2:800 u32 ht 2:2: match u32 0 0 flowid c071:3";
    hosts.tc(&format!("filter add dev east parent c071: {theirs}"));
    let v6 = FlowSelector::to("fd00::2".parse().unwrap());
    let error = shaper.add(&rate, &[to_port(2), v6]).unwrap_err();
    assert!(
        matches!(&error, Error::Refused { failure, .. } if failure == "a filter of `east` cannot be added"),
        "{error}"
    );
    assert_eq!((shaper.reserved(), hosts.tc("class show dev east")), (reserved, classes.clone()));
    assert_eq!(hosts.tc("filter show dev east").matches("flowid c071:10").count(), 1);

    // 98 of 100 parts can be reserved.
    let error = shaper.add(&reservation(Rate::from_mbps(9), 1000), &[]).unwrap_err().to_string();
    assert_eq!(
        error,
        "rate = 9.126 Mbit/s: allowed is up to 8.786 Mbit/s on `east`, headers of the link included"
    );
    shaper.change(first, &reservation(Rate::from_mbps(9), 1000)).unwrap();
    assert!(hosts.tc("class show dev east").contains("rate 9126Kbit"));
    shaper.change(first, &reservation(Rate::from_mbps(10), 1000)).unwrap_err();
    // A bucket of more than four minutes cannot be said to the kernel.
    let deep = TrafficSpec { bucket: Bytes::new(1_000_000), ..reservation(Rate::from_kbps(8), 1000) };
    shaper.change(first, &deep).unwrap_err();
    assert!(hosts.tc("class show dev east").contains("rate 9126Kbit"), "it is as it was");
    shaper.remove(first).unwrap();
    assert_eq!(
        shaper.remove(first).unwrap_err().to_string(),
        "class = c071:10: allowed is one of the 0 that were added"
    );
    assert_eq!(shaper.reserved(), Rate::ZERO);
    shaper.uninstall().unwrap();
    assert!(hosts.tc("qdisc show dev east").contains("qdisc noqueue 0:"), "the default is there again");
}

/// A discipline for each of three transmit queues, as two programs would set them.
#[test]
fn every_transmit_queue_has_a_discipline_below_mq() {
    let Some(hosts) = Hosts::new("each") else { return };
    hosts.sender.ip_batch("link add many numtxqueues 3 type veth peer name other\nlink set many up").unwrap();
    let with_many = |work: fn(&Interface)| {
        hosts.sender.within(|| work(&Interface::named("many").unwrap())).unwrap();
    };
    with_many(|many| {
        assert_eq!((many.transmit_queues, many.used_transmit_queues()), (3, 3));
        RootQdisc::add_for_each_queue(many, "pfifo", 3, false).unwrap();
        let found = RootQdisc::of(many).unwrap().unwrap();
        assert_eq!(found.kind, "mq");
        assert_eq!(found.below, [1, 2, 3].map(|queue| (queue, "pfifo".to_owned())).into());
        assert_eq!(RootQdisc::all().unwrap(), [(many.index, found)].into());
        RootQdisc::add_for_each_queue(many, "pfifo", 3, false).unwrap_err();
    });
    assert_eq!(hosts.tc("qdisc show dev many").matches("qdisc pfifo ").count(), 3);
    // Another program replaces that of one transmit queue.
    let found = hosts.sender.within(|| RootQdisc::of(&Interface::named("many").unwrap()).unwrap().unwrap());
    hosts.tc(&format!("qdisc replace dev many parent {:x}:2 bfifo", found.unwrap().handle));
    with_many(|many| {
        let found = RootQdisc::of(many).unwrap().unwrap();
        let kinds = [(1, "pfifo"), (2, "bfifo"), (3, "pfifo")];
        assert_eq!(found.below, kinds.map(|(queue, kind)| (queue, kind.to_owned())).into());
        assert_eq!(RootQdisc::all().unwrap(), [(many.index, found)].into());
    });
    with_many(|many| {
        RootQdisc::remove(many).unwrap();
        // Nothing is left of one that the kernel does not know.
        let refused = RootQdisc::add_for_each_queue(many, "cutline_none", 3, false).unwrap_err().to_string();
        assert!(
            refused.contains("cutline_none") && refused.contains("transmit queue 1 of `many`"),
            "{refused}"
        );
        assert_eq!(RootQdisc::of(many).unwrap(), None);
        RootQdisc::add(many, "pfifo", false).unwrap();
        RootQdisc::add_for_each_queue(many, "pfifo", 3, true).unwrap();
        assert_eq!(RootQdisc::of(many).unwrap().unwrap().kind, "mq");
        // A driver that has allocated three queues, of which one is in use.
        RootQdisc::remove(many).unwrap();
        RootQdisc::add_for_each_queue(many, "pfifo", 1, false).unwrap();
    });
    assert_eq!(hosts.tc("qdisc show dev many").matches("qdisc pfifo ").count(), 1);
    with_many(|many| {
        let found = RootQdisc::of(many).unwrap().unwrap();
        assert_eq!(found.below, [(1, "pfifo".to_owned())].into());
        assert_eq!(RootQdisc::all().unwrap(), [(many.index, found)].into());
    });
}

/// The owner of a shaper makes it again after a report of a change. A look must not be reported as one.
#[test]
fn a_look_at_a_shaper_is_no_change_of_it() {
    let Some(hosts) = Hosts::new("look") else { return };
    let shaper =
        hosts.with(|east| HtbShaper::install(east, Rate::from_mbps(10), ShaperOptions::default()).unwrap());
    hosts.with(|east| {
        let mut monitor = TrafficMonitor::open().unwrap();
        let found = RootQdisc::of(east).unwrap().unwrap();
        assert_eq!(found.kind, "htb");
        assert_eq!(monitor.take(|_| false).unwrap(), Touched::default());
    });
    drop(shaper);
}

/// An interface is the same with one request as in the list of all, apart from its addresses.
#[test]
fn an_interface_is_found_without_a_list() {
    let Some(hosts) = Hosts::new("alone") else { return };
    hosts.with(|east| {
        let found = Interface::without_addresses("east").unwrap();
        assert_eq!(found, Interface { addresses: Vec::new(), ..east.clone() });
        for none in ["none", "a-name-that-is-too-long-for-the-kernel", ""] {
            let error = Interface::without_addresses(none).unwrap_err().to_string();
            assert!(error.contains(&format!("no interface `{none}`")), "{error}");
        }
    });
}

/// A veth allocates a transmit queue for each processor, and the kernel sends to one of them unless more are asked for. `/sys` shows the interfaces of
/// another network namespace here.
#[test]
fn transmit_queues_that_are_not_in_use_do_not_count() {
    let Some(hosts) = Hosts::new("used") else { return };
    hosts.sender.ip_batch("link add plain type veth peer name other").unwrap();
    let plain = hosts.sender.within(|| Interface::named("plain").unwrap()).unwrap();
    let used = hosts.sender.within(|| Interface::named("plain").unwrap().used_transmit_queues()).unwrap();
    assert_eq!(used, 1, "of {}", plain.transmit_queues);
}

#[test]
fn disciplines_of_others_are_kept() {
    let Some(hosts) = Hosts::new("others") else { return };
    let rate = Rate::from_mbps(10);
    // A number of theirs, ours with another kind, and ours with the same kind but not the mark.
    for theirs in [
        "handle 8: tbf rate 5mbit burst 5kb latency 50ms",
        "handle c071: pfifo",
        "handle c071: htb default 3",
    ] {
        hosts.tc(&format!("qdisc add dev east root {theirs}"));
        let before = hosts.tc("qdisc show dev east");
        let error = hosts.with(|east| HtbShaper::install(east, rate, ShaperOptions::default()).unwrap_err());
        assert!(matches!(error, Error::OtherQdisc { .. }), "{theirs}: {error}");
        assert!(!hosts.with(|east| sweep(east).unwrap()), "{theirs}");
        assert_eq!(hosts.tc("qdisc show dev east"), before);
        hosts.tc("qdisc delete dev east root");
    }
    hosts.tc("qdisc add dev east root handle 8: pfifo limit 7");
    hosts.with(|east| {
        let found = RootQdisc::of(east).unwrap().unwrap();
        assert_eq!((found.kind.as_str(), found.handle), ("pfifo", 8));
        // The others have the kernel's default.
        assert_eq!(RootQdisc::all().unwrap(), [(east.index, found)].into());
    });
    let error =
        hosts.with(|east| HtbShaper::install(east, rate, ShaperOptions::default()).unwrap_err().to_string());
    assert_eq!(
        error,
        "interface `east` has the queueing discipline pfifo 8:, which is not Cutline's: remove it, or allow it to be replaced"
    );
    let replace = ShaperOptions { replace: true, ..ShaperOptions::default() };
    let shaper = hosts.with(|east| HtbShaper::install(east, rate, replace).unwrap());
    let error = hosts.with(|east| HtbShaper::install(east, rate, replace).unwrap_err());
    assert!(matches!(error, Error::Installed { .. }), "{error}");
    drop(shaper);
    assert!(hosts.tc("qdisc show dev east").contains("qdisc noqueue 0:"));
    for (wrong, field) in [
        (ShaperOptions { best_effort_weight: 0, ..replace }, "best_effort_weight"),
        (ShaperOptions { best_effort_weight: 65, ..replace }, "best_effort_weight"),
    ] {
        let error = hosts.with(|east| HtbShaper::install(east, rate, wrong).unwrap_err().to_string());
        assert!(error.starts_with(field), "{error}");
    }
    let error =
        hosts.with(|east| HtbShaper::install(east, Rate::from_kbps(63), replace).unwrap_err().to_string());
    assert_eq!(error, "rate = 63 kbit/s: allowed is at least 64 kbit/s");
}

#[test]
fn a_discipline_of_a_killed_process_is_removed() {
    let Some(hosts) = Hosts::new("killed") else { return };
    let program = std::env::current_exe().unwrap();
    let mut child = Command::new("ip")
        .args(["netns", "exec", hosts.sender.name()])
        .arg(program)
        .args(["--exact", "shaper::holds_an_interface", "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let is_held = lines.map_while(Result::ok).any(|line| line.contains("east is held"));
    child.kill().unwrap();
    assert_eq!((is_held, child.wait().unwrap().signal()), (true, Some(9)));

    assert!(hosts.tc("class show dev east").contains("class htb c071:10"), "it is still there");
    let error = hosts
        .with(|east| HtbShaper::install(east, Rate::from_mbps(10), ShaperOptions::default()).unwrap_err());
    assert!(matches!(error, Error::Installed { .. }), "{error}");
    assert!(hosts.with(|east| sweep(east).unwrap()));
    assert!(hosts.tc("qdisc show dev east").contains("qdisc noqueue 0:"));
    assert!(!hosts.with(|east| sweep(east).unwrap()), "there is nothing left");
    hosts.with(|east| HtbShaper::install(east, Rate::from_mbps(10), ShaperOptions::default()).unwrap());
}

/// The process that the test above kills.
#[test]
#[ignore = "another test runs it in a process of its own"]
fn holds_an_interface() {
    let east = Interface::named("east").unwrap();
    let mut shaper = HtbShaper::install(&east, Rate::from_mbps(10), ShaperOptions::default()).unwrap();
    shaper.add(&reservation(Rate::from_mbps(1), 1000), &[to_port(1)]).unwrap();
    println!("east is held");
    // It is killed meanwhile.
    sleep(Duration::from_secs(60));
}

#[test]
fn a_check_needs_no_further_descriptor() {
    let Some(hosts) = Hosts::new("fds") else { return };
    let output = Command::new("ip")
        .args(["netns", "exec", hosts.sender.name()])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "shaper::checks_without_a_descriptor", "--ignored", "--nocapture"])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("east is whole"), "{output:?}");
}

/// The process that the test above starts: its limit of descriptors would be that of all tests.
#[test]
#[ignore = "another test runs it in a process of its own"]
fn checks_without_a_descriptor() {
    let east = Interface::named("east").unwrap();
    let mut shaper = HtbShaper::install(&east, Rate::from_mbps(10), ShaperOptions::default()).unwrap();
    setrlimit(Resource::Nofile, Rlimit { current: Some(0), maximum: Some(0) }).unwrap();
    assert!(!shaper.restore(true).unwrap());
    println!("east is whole");
}
