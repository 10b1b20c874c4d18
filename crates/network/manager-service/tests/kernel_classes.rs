//! Classes of the kernel for the flows of an interface, with real packets in network namespaces. The tests require root.

use crate::common::{PATIENCE, Place, eventually, need};
use cutline_allocation::protocol::{AllocationRequest, FlowNeed};
use cutline_allocation::status::{InterfaceClassesStatus, KernelClassStatus};
use cutline_manager::resources::SchedulingClass;
use cutline_manager_service::{ManagedInterface, ManagerSpec};
use cutline_netlink::{HtbShaper, Interface, ShaperOptions, sweep};
use cutline_sys::namespace::Namespace;
use cutline_testbed::may_make_namespaces;
use cutline_units::Rate;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::process::Command;
use std::time::Duration;

const COMMAND: &str = "sudo -E cargo test -p cutline-manager-service kernel_classes::";

/// Two hosts with a link between their interfaces `east` and `west`.
fn hosts(label: &str) -> Option<[Namespace; 2]> {
    may_make_namespaces(COMMAND).then_some(())?;
    let [sender, receiver] = ["s", "r"].map(|side| Namespace::create(&format!("{label}{side}")).unwrap());
    let link = format!("link add east type veth peer name west\nlink set west netns {}", receiver.name());
    sender.ip_batch(&link).unwrap();
    sender.ip_batch("link set east up\naddress add 10.0.0.1/24 dev east").unwrap();
    receiver.ip_batch("link set west up\naddress add 10.0.0.2/24 dev west").unwrap();
    Some([sender, receiver])
}

fn place(mbps: u64) -> Place {
    let mut place = Place::new();
    let (name, rate) = ("east".to_owned(), Rate::from_mbps(mbps));
    place.spec.interfaces = vec![ManagedInterface { name, rate, has_classes: true }];
    place
}

/// A flow between the hosts, from and to these ports, of 100 kbit/s a unit.
fn flow(class: SchedulingClass, ports: [u16; 2], rate: u64) -> FlowNeed {
    FlowNeed {
        source: SocketAddr::from(([10, 0, 0, 1], ports[0])),
        destination: SocketAddr::from(([10, 0, 0, 2], ports[1])),
        desired_bps: Some(rate * 100_000),
        minimum_bps: rate * 100_000,
        ..need(class, 1)
    }
}

fn classes(place: &Place) -> InterfaceClassesStatus {
    place.status().kernel_classes.remove(0)
}

fn class(place: &Place, name: &str) -> KernelClassStatus {
    let found = classes(place).classes.into_iter().find(|class| class.class == name);
    found.unwrap_or_default()
}

#[test]
fn flows_have_the_class_of_their_requests_and_other_traffic_has_another() {
    let Some([sender, receiver]) = hosts("kc") else { return };
    let place = place(2);
    sender
        .within(|| {
            let service = place.start();
            let mut client = place.client();
            client.admit(1, flow(SchedulingClass::RealTime, [4000, 5000], 4)).unwrap();
            client.admit(2, flow(SchedulingClass::RealTime, [4001, 5001], 2)).unwrap();
            client.admit(3, flow(SchedulingClass::TimeShared, [4002, 5002], 3)).unwrap();
            let is_made = || {
                let [real_time, time_shared] = ["real-time", "time-shared"].map(|name| class(&place, name));
                (real_time.flows, real_time.rate_bps) == (2, 600_000)
                    && (time_shared.flows, time_shared.rate_bps) == (1, 300_000)
            };
            assert!(eventually(PATIENCE, is_made), "{:?}", place.status());
            // Five times what the link carries, of no flow; and half of what the first flow may send.
            let sink = receiver.within(|| UdpSocket::bind("10.0.0.2:5000").unwrap()).unwrap();
            let socket = |port: u16| UdpSocket::bind(("10.0.0.1", port)).unwrap();
            let (call, bulk, flood) = (socket(4000), socket(4002), socket(0));
            for number in 0_u32..100 {
                for _ in 0..20 {
                    flood.send_to(&[0; 1200], "10.0.0.2:6000").unwrap();
                }
                bulk.send_to(&[0; 200], "10.0.0.2:5002").unwrap();
                call.send_to(&[[0; 196].as_slice(), &number.to_be_bytes()].concat(), "10.0.0.2:5000")
                    .unwrap();
                std::thread::sleep(Duration::from_millis(9));
            }
            sink.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            for expected in 0_u32..100 {
                let mut buffer = [0; 300];
                assert_eq!(sink.recv(&mut buffer).unwrap(), 200);
                assert_eq!(buffer[196..200], expected.to_be_bytes(), "all of the call arrives, in order");
            }
            let [real_time, time_shared, other] =
                ["real-time", "time-shared", "other"].map(|name| class(&place, name));
            assert_eq!((real_time.sent_packets, real_time.dropped_packets), (100, 0), "{real_time:?}");
            assert_eq!((time_shared.sent_packets, time_shared.dropped_packets), (100, 0), "{time_shared:?}");
            assert!(other.sent_packets > 0 && other.dropped_packets > 1000, "{other:?}");
            // A flow that has ended is other traffic again, and a class without flows is no more.
            client.send(&AllocationRequest::Release { id: 3 });
            assert!(eventually(PATIENCE, || class(&place, "time-shared") == KernelClassStatus::default()));
            drop(client);
            assert!(eventually(PATIENCE, || classes(&place).classes.len() == 1));
            drop(service);
            assert!(!sweep(&Interface::named("east").unwrap()).unwrap(), "nothing remains");
        })
        .unwrap();
}

/// Clients that state the same packets, in one class or in two, do not disturb the classes of others: the packets have one class, and it passes to
/// the other flow when the first one ends. Packets of another host, which this host may forward, have none.
#[test]
fn the_same_packets_have_one_class_and_no_other_host_has_any() {
    let Some([sender, _receiver]) = hosts("kd") else { return };
    let place = place(2);
    sender
        .within(|| {
            let _service = place.start();
            let (mut client, mut other) = (place.client(), place.client());
            client.admit(1, flow(SchedulingClass::RealTime, [4000, 5000], 4)).unwrap();
            let has = |class: &str, flows, rate_bps| {
                let found = self::class(&place, class);
                (found.flows, found.rate_bps) == (flows, rate_bps)
            };
            assert!(eventually(PATIENCE, || has("real-time", 1, 400_000)));
            other.admit(1, flow(SchedulingClass::TimeShared, [4000, 5000], 3)).unwrap();
            other.admit(2, flow(SchedulingClass::RealTime, [4000, 5000], 2)).unwrap();
            other.admit(3, flow(SchedulingClass::TimeShared, [4001, 5001], 3)).unwrap();
            let is_shared = || has("real-time", 1, 400_000) && has("time-shared", 1, 300_000);
            assert!(eventually(PATIENCE, is_shared), "{:?}", classes(&place));
            other.send(&AllocationRequest::Release { id: 2 });
            client.send(&AllocationRequest::Release { id: 1 });
            let has_passed = || has("real-time", 0, 0) && has("time-shared", 2, 600_000);
            assert!(eventually(PATIENCE, has_passed), "{:?}", classes(&place));
            let said = place.said.lock().unwrap().clone();
            assert!(!said.iter().any(|line| line.starts_with("classes of")), "{said:?}");
            let source = SocketAddr::from(([10, 0, 0, 9], 4000));
            let foreign = FlowNeed { source, ..flow(SchedulingClass::RealTime, [4000, 5000], 1) };
            let refused = client.admit(4, foreign).unwrap_err();
            assert_eq!(refused, "source = 10.0.0.9:4000: allowed is an address of this host");
            // No host forwards packets with a link-local source, and that of frames below IP is none of its addresses.
            let zone = Interface::named("east").unwrap().index;
            let address = |last, port| {
                let ip = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0xff, 0xfe00, last);
                SocketAddr::V6(SocketAddrV6::new(ip, port, 0, zone))
            };
            let (source, destination) = (address(9, 4000), address(2, 5000));
            let frames = FlowNeed { source, destination, ..flow(SchedulingClass::RealTime, [4000, 5000], 1) };
            assert_eq!(client.admit(4, frames), Ok(100_000));
        })
        .unwrap();
}

/// Jumbo frames: the queue of a class holds ten of them, as that of an ordinary interface holds ten of its own.
#[test]
fn a_class_has_room_for_the_largest_packets_of_its_interface() {
    let Some([sender, receiver]) = hosts("kj") else { return };
    for (host, interface) in [(&sender, "east"), (&receiver, "west")] {
        host.ip(&["link", "set", interface, "mtu", "9000"]).unwrap();
    }
    let place = place(2);
    sender
        .within(|| {
            let _service = place.start();
            let mut client = place.client();
            client.admit(1, flow(SchedulingClass::RealTime, [4000, 5000], 4)).unwrap();
            assert!(eventually(PATIENCE, || class(&place, "real-time").flows == 1), "{:?}", place.status());
            let sink = receiver.within(|| UdpSocket::bind("10.0.0.2:5000").unwrap()).unwrap();
            let socket = UdpSocket::bind("10.0.0.1:4000").unwrap();
            for _ in 0..8 {
                assert_eq!(socket.send_to(&[0; 8900], "10.0.0.2:5000").unwrap(), 8900);
            }
            sink.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            let mut buffer = [0; 9000];
            for _ in 0..8 {
                assert_eq!(sink.recv(&mut buffer).unwrap(), 8900);
            }
            assert_eq!(class(&place, "real-time").dropped_packets, 0);
        })
        .unwrap();
}

/// Rules may lead marked packets elsewhere: a flow counts at the interface by which its packets leave.
#[test]
fn a_flow_is_at_the_interface_to_which_rules_lead_its_mark() {
    let Some([sender, _receiver]) = hosts("km") else { return };
    sender
        .ip_batch(
            "link add north type veth peer name south\nlink set north up\nlink set south up\n\
             route add 10.0.0.2 dev north table 88\nrule add fwmark 7 lookup 88",
        )
        .unwrap();
    for (route_mark, interface) in [(0, "east"), (7, "north")] {
        let mut place = place(2);
        let (name, rate) = ("north".to_owned(), Rate::from_mbps(2));
        place.spec.interfaces.push(ManagedInterface { name, rate, has_classes: false });
        place.spec.route_mark = route_mark;
        sender
            .within(|| {
                let _service = place.start();
                let mut client = place.client();
                client.admit(1, flow(SchedulingClass::RealTime, [4000, 5000], 4)).unwrap();
                let found = client.status().flows.remove(0).interface;
                assert_eq!(found.as_deref(), Some(interface), "mark {route_mark}");
            })
            .unwrap();
    }
}

/// More filters than a turn of the manager has time for.
#[test]
fn hundreds_of_flows_have_their_class_in_turns() {
    const FLOWS: u16 = 500;
    let Some([sender, _receiver]) = hosts("kt") else { return };
    let place = place(100);
    sender
        .within(|| {
            let _service = place.start();
            let mut client = place.client();
            for number in 0..FLOWS {
                client
                    .admit(number.into(), flow(SchedulingClass::RealTime, [4000 + number, 5000], 1))
                    .unwrap();
            }
            let made = || (class(&place, "real-time").flows, class(&place, "real-time").rate_bps);
            assert!(eventually(PATIENCE, || made() == (500, 50_000_000)), "{:?}", made());
            drop(client);
            assert!(eventually(PATIENCE, || classes(&place).classes.len() == 1));
        })
        .unwrap();
}

/// A wrong name would otherwise be a limit that is missing, without a word.
#[test]
fn an_interface_that_is_missing_is_named_until_it_comes() {
    let Some([sender, _receiver]) = hosts("ki") else { return };
    let interface = |name: &str| ManagedInterface {
        name: name.to_owned(),
        rate: Rate::from_mbps(50),
        has_classes: false,
    };
    let mut place = Place::new();
    place.spec.interfaces = vec![interface("later")];
    sender
        .within(|| {
            let service = place.start();
            let said =
                |what: &str| place.said.lock().unwrap().iter().filter(|line| line.contains(what)).count();
            let has_capacity = || place.status().capacities.iter().any(|its| its.resource == "later");
            assert!(eventually(PATIENCE, || said("interface `later` is not there") == 1));
            assert!(!has_capacity());
            sender.ip_batch("link set east down\nlink set east name later").unwrap();
            assert!(eventually(PATIENCE, || said("interface `later` is there now") == 1));
            assert!(has_capacity());
            let other = |name: &str| {
                let interfaces = vec![interface(name)];
                service.reconfigure(ManagerSpec { interfaces, ..place.spec.clone() });
            };
            other("never");
            assert!(eventually(PATIENCE, || said("interface `never` is not there") == 1));
            assert!(eventually(PATIENCE, || !has_capacity()));
            other("later");
            assert!(eventually(PATIENCE, has_capacity));
            assert_eq!((said("interface `later`"), said("interface `never`")), (2, 1));
        })
        .unwrap();
}

#[test]
fn classes_that_another_program_removes_are_made_again() {
    let Some([sender, _receiver]) = hosts("kr") else { return };
    let place = place(100);
    sender
        .within(|| {
            let _service = place.start();
            let mut client = place.client();
            client.admit(1, flow(SchedulingClass::RealTime, [4000, 5000], 10)).unwrap();
            let is_made = || class(&place, "real-time").flows == 1;
            assert!(eventually(PATIENCE, is_made));
            assert!(sweep(&Interface::named("east").unwrap()).unwrap());
            let said = |what: &str| place.said.lock().unwrap().iter().any(|line| line.contains(what));
            assert!(eventually(PATIENCE, || said("another program has removed or changed them")));
            assert!(eventually(PATIENCE, is_made));
            assert!(sweep(&Interface::named("east").unwrap()).unwrap(), "they are there again");
        })
        .unwrap();
}

/// The state names the interfaces at which a killed manager has left classes. A discipline of the same kind that the state does not name is
/// that of another process.
#[test]
fn disciplines_of_a_killed_manager_are_removed_where_no_classes_are_configured() {
    let Some([sender, _receiver]) = hosts("kl") else { return };
    let (place, killed) = (place(100), Place::new());
    sender
        .within(|| {
            let east = Interface::named("east").unwrap();
            let leave = || {
                let options = ShaperOptions::default();
                std::mem::forget(HtbShaper::install(&east, Rate::from_mbps(100), options).unwrap());
            };
            let service = place.start();
            assert!(eventually(PATIENCE, || classes(&place).classes.len() == 1));
            for name in ["manager.state", "manager.state.journal"] {
                std::fs::copy(place.path(name), killed.path(name)).unwrap();
            }
            drop(service);
            leave();
            drop(killed.start());
            assert!(!sweep(&east).unwrap(), "nothing is left");
            let said = killed.said.lock().unwrap().join("\n");
            assert!(said.contains("classes of `east`: those that an earlier resource manager"), "{said}");
            leave();
            drop(killed.start());
            assert!(sweep(&east).unwrap(), "it is that of another process");
        })
        .unwrap();
}

/// Each way in which another program changes the content of the discipline: the filters go, a rate changes, a class goes. All of it is
/// there again, and further flows have their classes.
#[test]
fn classes_that_another_program_changes_are_made_again() {
    let Some([sender, _receiver]) = hosts("kx") else { return };
    let place = place(100);
    let try_tc = |arguments: &str| {
        let all = format!("-n {} {arguments}", sender.name());
        let output = Command::new("tc").args(all.split(' ')).output().unwrap();
        if output.status.success() { Ok(String::from_utf8(output.stdout).unwrap()) } else { Err(output) }
    };
    let tc = |arguments: &str| try_tc(arguments).unwrap_or_else(|output| panic!("{arguments}: {output:?}"));
    // Between two commands the service may make everything again, and for that removes the class of the second one.
    let in_a_row = |commands: &[&str]| {
        let all_work = || commands.iter().all(|command| try_tc(command).is_ok());
        assert!(eventually(PATIENCE, all_work), "{commands:?}");
    };
    sender
        .within(|| {
            let _service = place.start();
            let mut client = place.client();
            client.admit(1, flow(SchedulingClass::RealTime, [4000, 5000], 10)).unwrap();
            assert!(eventually(PATIENCE, || class(&place, "real-time").flows == 1));
            let first = tc("class show dev east");
            assert!(first.contains("class htb c071:10 "), "{first}");
            // Classes are listed by a hash, and the kernel chooses the numbers of their fifos.
            let sorted = |text: String| {
                let without_fifo = |line: &str| {
                    let (class, rest) = line.split_once(" leaf ").unwrap_or((line, ""));
                    format!("{class} {}", rest.split_once(' ').map_or("", |(_number, rest)| rest))
                };
                let mut lines: Vec<String> = text.lines().map(without_fifo).collect();
                lines.sort();
                lines
            };
            let is_whole = || {
                let filters = try_tc("filter show dev east parent c071:");
                sorted(tc("class show dev east")) == sorted(first.clone())
                    && filters.is_ok_and(|filters| filters.contains("flowid c071:10"))
            };
            for commands in [
                &["filter del dev east parent c071:"][..],
                &["class change dev east parent c071:1 classid c071:10 htb rate 8kbit"],
                &["filter del dev east parent c071:", "class del dev east classid c071:10"],
            ] {
                in_a_row(commands);
                assert!(
                    eventually(PATIENCE, is_whole),
                    "{commands:?}: {} {:?} {:?}",
                    tc("class show dev east"),
                    classes(&place),
                    place.said.lock().unwrap()
                );
            }
            let said = || {
                let said = place.said.lock().unwrap();
                said.iter().filter(|line| line.contains("another program has")).count()
            };
            assert!(eventually(PATIENCE, || said() >= 2), "{:?}", place.said.lock().unwrap());
            // A change of flows before the report is noticed, too, and none of its own changes is taken for another's.
            in_a_row(&["filter del dev east parent c071:", "class del dev east classid c071:10"]);
            client.admit(2, flow(SchedulingClass::RealTime, [4001, 5001], 10)).unwrap();
            let both = || class(&place, "real-time").flows == 2;
            assert!(eventually(PATIENCE, both), "{:?}", classes(&place));
            let filters = || try_tc("filter show dev east parent c071:").unwrap_or_default();
            let shown = || filters().matches("flowid c071:10").count();
            assert!(eventually(PATIENCE, || shown() == 2), "{}", filters());
            assert_eq!(classes(&place).problem, None);
            let before = said();
            client.admit(3, flow(SchedulingClass::TimeShared, [4002, 5002], 10)).unwrap();
            assert!(eventually(PATIENCE, || class(&place, "time-shared").flows == 1));
            // Two checks, one a second.
            std::thread::sleep(Duration::from_millis(2500));
            assert_eq!(said(), before, "{:?}", place.said.lock().unwrap());
        })
        .unwrap();
}

#[test]
fn the_discipline_of_an_operator_stays_and_the_manager_works_without_classes() {
    let Some([sender, _receiver]) = hosts("ko") else { return };
    let tc = |arguments: &str| {
        let all = format!("-n {} {arguments}", sender.name());
        let output = Command::new("tc").args(all.split(' ')).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    tc("qdisc replace dev east root handle 1: tbf rate 50mbit burst 20kb latency 50ms");
    let place = place(100);
    sender
        .within(|| {
            let service = place.start();
            let mut client = place.client();
            assert_eq!(client.admit(1, flow(SchedulingClass::RealTime, [4000, 5000], 10)), Ok(1_000_000));
            let problem = || classes(&place).problem.unwrap_or_default();
            assert!(eventually(PATIENCE, || problem().contains("tbf")), "{}", problem());
            assert_eq!(classes(&place).classes, []);
            let count = place.said.lock().unwrap().iter().filter(|line| line.contains("tbf")).count();
            assert_eq!(count, 1, "it is said once");
            drop(service);
        })
        .unwrap();
    assert!(tc("qdisc show dev east").contains("qdisc tbf 1: root"));
}
