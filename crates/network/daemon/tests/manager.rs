//! The resource manager in `cutlined`: a table of its file. It outlives a kill of its process.

use crate::common::{Net, eventually};
use cutline_allocation::protocol::FlowNeed;
use cutline_allocation::status::ManagerStatus;
use cutline_allocation::{AllocationState, FlowHandler, FlowNotice, ManagerConnection, allocate};
use cutline_daemon::{DaemonConfig, remove_installed};
use cutline_manager::feedback::FlowReport;
use cutline_manager::resources::{CarrierKind, SchedulingClass};
use cutline_netlink::{HtbShaper, Interface, ShaperOptions, sweep};
use cutline_provision::DaemonClient;
use cutline_provision::protocol::Request;
use cutline_service::JsonLineError;
use cutline_sys::namespace::Namespace;
use cutline_testbed::outputs::terminated;
use cutline_testbed::{KilledChild, patiently};
use cutline_units::{Duration, Rate};
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};
use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, Weak};
use tempfile::TempDir;

const COMMAND: &str = "sudo -E cargo test -p cutline-daemon manager::";

fn need(class: SchedulingClass, mbps: u64) -> FlowNeed {
    FlowNeed {
        class,
        carrier: CarrierKind::Datagrams,
        source: "127.0.0.1:4000".parse().unwrap(),
        destination: "127.0.0.1:5000".parse().unwrap(),
        desired_bps: Some(mbps * 1_000_000),
        minimum_bps: 1_000_000,
        priority: 5,
        weight: 1,
        delay_ms: None,
        loss_percent: None,
    }
}

fn status(socket: &Path) -> ManagerStatus {
    let connected = patiently(|| ManagerConnection::connect(socket, None), JsonLineError::is_late);
    connected.unwrap().status(Duration::from_secs(60)).unwrap()
}

/// Handler that records its notices.
#[derive(Default)]
struct Noted(Mutex<Vec<FlowNotice>>);

impl FlowHandler for Noted {
    fn on_notice(&self, notice: FlowNotice) {
        self.0.lock().unwrap().push(notice);
    }

    fn report(&self) -> Option<FlowReport> {
        None
    }
}

struct Host {
    agent: Option<KilledChild>,
    folder: TempDir,
}

impl Host {
    fn new() -> Self {
        let host = Self { folder: tempfile::tempdir().unwrap(), agent: None };
        let path = |name: &str| host.path(name).display().to_string();
        let text = format!(
            "socket = '{}'\n[manager]\nsocket = '{}'\nstate = '{}'\ndatagrams = '100 Mbit/s'\n\
             [manager.resources]\nuser-share = 1.0\n",
            path("c.sock"),
            path("m.sock"),
            path("m.state")
        );
        std::fs::write(host.path("c.toml"), text).unwrap();
        host
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start(&mut self) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutlined"));
        command.arg("--config").arg(self.path("c.toml")).stdin(Stdio::null());
        self.agent = Some(KilledChild(command.spawn().unwrap()));
        let (manager, agent) = (self.path("m.sock"), self.path("c.sock"));
        eventually("the manager answers", || ManagerConnection::connect(&manager, None).is_ok());
        // The agent begins later.
        let answers = || DaemonClient::connect(&agent)?.status(Duration::from_secs(60));
        eventually("the agent answers", || answers().is_ok());
    }
}

#[test]
fn a_kill_of_the_daemon_loses_no_flow_and_no_account() {
    if !rustix::process::geteuid().is_root() {
        return cutline_testbed::skip("it needs root", COMMAND);
    }
    let mut host = Host::new();
    host.start();
    let socket = host.path("m.sock");
    let handlers: Vec<Arc<Noted>> = (0..20).map(|_| Arc::default()).collect();
    let flows: Vec<_> = handlers
        .iter()
        .enumerate()
        .map(|(number, handler)| {
            let class = if number % 2 == 0 { SchedulingClass::RealTime } else { SchedulingClass::TimeShared };
            let weak: Weak<Noted> = Arc::downgrade(handler);
            allocate(&socket, need(class, 2 + number as u64 % 5), weak).unwrap()
        })
        .collect();
    let granted = || flows.iter().all(|flow| matches!(flow.state(), AllocationState::Granted(_)));
    eventually("all flows are granted", granted);
    let before = status(&socket);
    let rates = |status: &ManagerStatus| {
        let each = status.flows.iter().map(|flow| (flow.flow, flow.promised_bps, flow.granted_bps));
        each.collect::<Vec<_>>()
    };
    for round in 0..3 {
        let mut agent = host.agent.take().unwrap();
        agent.kill().unwrap();
        agent.wait().unwrap();
        // The flows keep their rates.
        assert!(granted(), "round {round}");
        host.start();
        let after = status(&socket);
        assert_eq!((rates(&after), after.taken_over), (rates(&before), 20), "round {round}");
        let back = || status(&socket).flows.iter().all(|flow| flow.pid == Some(std::process::id()));
        eventually("the client has come back", back);
        assert!(granted());
    }
    // There were no notices but the first rates.
    for handler in &handlers {
        let notices = handler.0.lock().unwrap();
        assert!(matches!(notices[..], [FlowNotice::Rate { before: None, .. }]), "{notices:?}");
    }
    // All of it returns.
    drop(flows);
    eventually("all flows end", || status(&socket).all_flows == 0);
    assert_eq!(status(&socket).capacities[0].promised, 0);
    let ended = terminated(host.agent.as_mut().unwrap()).expect("SIGTERM ends it");
    assert_eq!(ended.code(), Some(0));
}

/// A flow is requested when there is a manager, and is not limited before.
#[test]
fn a_manager_that_is_started_later_serves_the_flows_that_are_there() {
    if !rustix::process::geteuid().is_root() {
        return cutline_testbed::skip("it needs root", COMMAND);
    }
    let mut host = Host::new();
    let handler: Arc<Noted> = Arc::default();
    let weak: Weak<Noted> = Arc::downgrade(&handler);
    let flow = allocate(&host.path("m.sock"), need(SchedulingClass::RealTime, 5), weak).unwrap();
    eventually("it is known that nobody is there", || matches!(flow.state(), AllocationState::Away(_)));
    assert!(handler.0.lock().unwrap().is_empty());
    host.start();
    let rate = Rate::from_mbps(5);
    eventually("the flow is granted", || flow.state() == AllocationState::Granted(rate));
    flow.change(Some(Rate::from_mbps(90)), rate, need(SchedulingClass::RealTime, 5).edges());
    let rate = Rate::from_mbps(75);
    eventually("the flow is raised", || flow.state() == AllocationState::Granted(rate));
}

#[test]
fn the_check_reports_the_errors_of_the_start() {
    let host = Host::new();
    let text = std::fs::read_to_string(host.path("c.toml")).unwrap();
    let keys = host.path("keys");
    let with_path = format!(
        "{}host = 1\nlisten = '127.0.0.1:0'\nkeys = '{}'\n[[manager.path]]\nnumber = 1\n\
         destinations = ['10.0.0.0/8']\n[[manager.path.peer]]\nhost = 2\naddress = '10.0.0.2:9467'\n",
        text.replace("[manager.resources]\nuser-share = 1.0\n", ""),
        keys.display()
    );
    let run = |text: &str, more: &[&str]| {
        std::fs::write(host.path("c.toml"), text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutlined"));
        let output = command.arg("--config").arg(host.path("c.toml")).args(more).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(run(&text, &["--check"]).0, Some(0));
    let wrong = text.replace("user-share = 1.0", "user-share = 1.5");
    let (code, said) = run(&wrong, &["--check"]);
    assert!(code == Some(2) && said.contains("user-share") && said.contains("0 to 1"), "{said}");
    let key = "[[key]]\nid = 1\nalgorithm = 'hmac-sha-256'\nsecret = 'SECRET'\n";
    let write_key = |secret: &str, mode: u32| {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::write(&keys, key.replace("SECRET", secret)).unwrap();
        std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    for (secret, mode, says) in [
        ("00112233445566778899aabbccddeeff", 0o600, "32"),
        ("00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff", 0o644, "its mode is 644"),
    ] {
        write_key(secret, mode);
        for more in [&["--check"][..], &[]] {
            let (code, said) = run(&with_path, more);
            assert!(code != Some(0) && said.contains(says), "{more:?}: {said}");
        }
    }
    write_key("00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff", 0o600);
    assert_eq!(run(&with_path, &["--check"]), (Some(0), String::new()));
}

/// Starts `cutlined` with a manager whose interface has 10 Mbit/s, of which 7.5 may be promised. Returns the manager's socket.
fn managed(net: &mut Net) -> PathBuf {
    let path = |name: &str| net.folder.path().join(name).display().to_string();
    let text = format!(
        "refresh = '500 ms'\n[manager]\nsocket = '{}'\nstate = '{}'\n[manager.resources]\nuser-share = 1.0\n\
         [[manager.interface]]\nname = 'eth0'\nrate = '10 Mbit/s'\n",
        path("m.sock"),
        path("m.state")
    );
    let socket = net.folder.path().join("m.sock");
    net.rsvp = Box::leak(text.into_boxed_str());
    net.start("a");
    socket
}

/// A reservation at an interface counts against its capacity, and returns.
#[test]
fn reservations_of_cutlined_reduce_the_capacity_for_flows() {
    let Some(mut net) = Net::new("mgr", COMMAND) else { return };
    let socket = managed(&mut net);
    let reserved = || status(&socket).capacities[0].reserved;
    assert_eq!(reserved(), 0);
    let mut client = net.client("a");
    let (flow, bucket) = (crate::common::flow(5000), crate::common::bucket(2_000_000));
    client.send(&Request::Shape { id: 1, flow, bucket }).unwrap();
    eventually("the reservation is known", || reserved() >= 2_000_000);
    let taken = reserved();
    let to_b = FlowNeed {
        source: "10.1.1.1:4000".parse().unwrap(),
        destination: "10.9.9.9:5000".parse().unwrap(),
        ..need(SchedulingClass::RealTime, 20)
    };
    let handler: Arc<Noted> = Arc::default();
    let weak: Weak<Noted> = Arc::downgrade(&handler);
    let flow = allocate(&socket, to_b, weak).unwrap();
    let rate = Rate::from_bps(7_500_000 - taken);
    eventually("the flow gets what is left", || flow.state() == AllocationState::Granted(rate));
    assert_eq!(status(&socket).flows[0].interface.as_deref(), Some("eth0"));
    client.send(&Request::Withdraw { id: 1 }).unwrap();
    let rate = Rate::from_bps(7_500_000);
    eventually("the flow is raised", || flow.state() == AllocationState::Granted(rate));
    net.end("a", Signal::TERM);
}

/// A flow with a reservation and a share is charged once at its interface.
#[test]
fn a_flow_whose_rate_is_reserved_is_not_charged_again() {
    let Some(mut net) = Net::new("mgo", COMMAND) else { return };
    let socket = managed(&mut net);
    let mut client = net.client("a");
    let (packets, bucket) = (crate::common::flow(5000), crate::common::bucket(4_000_000));
    client.send(&Request::Shape { id: 1, flow: packets, bucket }).unwrap();
    let interface = || status(&socket).capacities[0].clone();
    eventually("the reservation is known", || interface().reserved >= 4_000_000);
    let free = 7_500_000 - interface().reserved;
    let share = |need| {
        let handler: Arc<Noted> = Arc::default();
        let weak: Weak<Noted> = Arc::downgrade(&handler);
        (allocate(&socket, need, weak).unwrap(), handler)
    };
    let granted = |flow: &cutline_allocation::AllocatedFlow, bps| {
        flow.state() == AllocationState::Granted(Rate::from_bps(bps))
    };
    let of_reservation = FlowNeed {
        source: packets.source,
        destination: packets.destination,
        minimum_bps: 4_000_000,
        ..need(SchedulingClass::RealTime, 4)
    };
    let (own, _handler) = share(of_reservation);
    eventually("there is no room for it beside the reservation", || granted(&own, 4_000_000));
    assert_eq!(interface().promised, 0);
    let other_port = |port| SocketAddr::new(packets.destination.ip(), port);
    let (other, _handler) = share(FlowNeed {
        destination: other_port(5001),
        ..FlowNeed { minimum_bps: 1_000_000, ..of_reservation }
    });
    eventually("another flow gets what is free", || granted(&other, free.min(4_000_000)));
    client.send(&Request::Withdraw { id: 1 }).unwrap();
    eventually("both are charged", || interface().promised == 7_500_000);
    eventually("both know it", || granted(&own, 4_000_000) && granted(&other, 3_500_000));
    net.end("a", Signal::TERM);
}

/// Returns the numbers of the open descriptors of a process.
fn open_descriptors(process: u32) -> HashSet<u64> {
    let entries = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap()).collect()
}

/// Without a free descriptor an interface cannot be looked up. Its capacity counts nevertheless.
#[test]
#[expect(clippy::disallowed_methods, reason = "capacities that stay have no event to wait for")]
fn an_interface_counts_while_no_descriptor_is_left() {
    if !rustix::process::geteuid().is_root() {
        return cutline_testbed::skip("it needs root", COMMAND);
    }
    let mut host = Host::new();
    let file = host.path("c.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let interface = "[[manager.interface]]\nname = 'lo'\nrate = '80 Mbit/s'\n";
    std::fs::write(&file, text + interface).unwrap();
    host.start();
    let connect = || ManagerConnection::connect(&host.path("m.sock"), None);
    let mut viewer = patiently(connect, JsonLineError::is_late).unwrap();
    let mut capacities = || -> Vec<String> {
        let status = viewer.status(Duration::from_secs(60)).unwrap();
        status.capacities.into_iter().map(|its| its.resource).collect()
    };
    let before = capacities();
    assert!(before.contains(&"lo".to_owned()), "{before:?}");
    let agent = host.agent.as_ref().unwrap();
    // A lower limit than the number of polled descriptors would end the agent: `poll` refuses them. So each gap below, as that of a file
    // which was closed, is filled by a connection. Standard input and the two outputs are not polled, so that there is room for three
    // descriptors that the agent has only for a moment.
    let mut others = Vec::new();
    let lowest = loop {
        let open = open_descriptors(agent.id());
        let lowest = (0..1024).find(|number| !open.contains(number)).unwrap();
        if open.len() as u64 == lowest {
            break Some(lowest);
        }
        others.push(patiently(connect, JsonLineError::is_late).unwrap());
    };
    let none = Rlimit { current: lowest, maximum: lowest };
    prlimit(Some(Pid::from_child(agent)), Resource::Nofile, none).unwrap();
    // Interfaces are looked up once a second.
    std::thread::sleep(std::time::Duration::from_millis(2500));
    assert_eq!(capacities(), before);
}

/// A `cutlined` that ends by a panic removes the classes of the manager as it removes reservations.
#[test]
fn the_classes_of_a_manager_are_removed_after_a_panic() {
    if !cutline_testbed::may_make_namespaces(COMMAND) {
        return;
    }
    let namespace = Namespace::create("mgp").unwrap();
    namespace.ip_batch("link add east type veth peer name west\nlink set east up").unwrap();
    let text = "[manager]\n[[manager.interface]]\nname = 'east'\nrate = '10 Mbit/s'\nclasses = true\n";
    let config = DaemonConfig::parse(text, "cutlined.toml").unwrap();
    namespace
        .within(|| {
            let east = Interface::named("east").unwrap();
            let shaper = HtbShaper::install(&east, Rate::from_mbps(10), ShaperOptions::default()).unwrap();
            // A program that aborts drops nothing.
            std::mem::forget(shaper);
            assert_eq!(remove_installed(&config), Vec::<String>::new());
            assert!(!sweep(&east).unwrap(), "nothing is left");
        })
        .unwrap();
}

/// The agent removes leftovers from an interface that it does not control, and the manager's classes are none.
#[test]
#[expect(clippy::disallowed_methods, reason = "checks that change nothing have no event to wait for")]
fn the_agent_leaves_the_classes_of_the_manager_at_its_interface() {
    let Some(mut net) = Net::new("mgt", COMMAND) else { return };
    net.controlled.clear();
    let mut host = Host::new();
    let path = |name: &str| host.path(name).display().to_string();
    let text = format!(
        "refresh = '500 ms'\n[manager]\nsocket = '{}'\nstate = '{}'\n\
         [[manager.interface]]\nname = 'eth0'\nrate = '10 Mbit/s'\nclasses = true\n",
        path("m.sock"),
        path("m.state")
    );
    net.rsvp = Box::leak(text.into_boxed_str());
    let mut command = Command::new("ip");
    command.args(["netns", "exec", net.node("a").name(), env!("CARGO_BIN_EXE_cutlined"), "--config"]);
    command.arg(net.describe("a")).stderr(std::fs::File::create(host.path("log")).unwrap());
    host.agent = Some(KilledChild(command.spawn().unwrap()));
    eventually("the classes are there", || net.tc("a", "qdisc", "eth0").contains("qdisc htb c071:"));
    // Two checks, one a second.
    std::thread::sleep(std::time::Duration::from_millis(2500));
    let ended = terminated(host.agent.as_mut().unwrap()).expect("SIGTERM ends it");
    let said = std::fs::read_to_string(host.path("log")).unwrap();
    assert_eq!(ended.code(), Some(0), "{said}");
    assert!(!said.contains("another program"), "{said}");
}

/// The record of the killed process names its interfaces: the next file names neither of them. A discipline elsewhere is that of another process.
#[test]
fn disciplines_of_a_killed_cutlined_are_removed_by_a_start_without_its_interfaces() {
    if !cutline_testbed::may_make_namespaces(COMMAND) {
        return;
    }
    let namespace = Namespace::create("mgk").unwrap();
    for (one, other) in [("east", "west"), ("north", "south"), ("theirs0", "theirs1")] {
        namespace
            .ip_batch(&format!("link add {one} type veth peer name {other}\nlink set {one} up"))
            .unwrap();
    }
    namespace.ip(&["address", "add", "10.7.0.1/24", "dev", "north"]).unwrap();
    let mut host = Host::new();
    let path = |host: &Host, name: &str| host.path(name).display().to_string();
    let socket = format!("socket = '{}'\n", path(&host, "c.sock"));
    let full = format!(
        "{socket}[[interface]]\nname = 'north'\nrate = '10 Mbit/s'\n[manager]\nsocket = '{}'\nstate = '{}'\n\
         [[manager.interface]]\nname = 'east'\nrate = '10 Mbit/s'\nclasses = true\n",
        path(&host, "m.sock"),
        path(&host, "m.state")
    );
    let bare = format!(
        "{socket}[monitor]\nlisten = 'off'\nsocket = '{}'\npublish-socket = '{}'\n",
        path(&host, "monitor.sock"),
        path(&host, "publish.sock")
    );
    let start = |host: &mut Host, text: &str, log: &str| {
        std::fs::write(host.path("c.toml"), text).unwrap();
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace.name(), env!("CARGO_BIN_EXE_cutlined"), "--config"]);
        command.arg(host.path("c.toml")).stdin(Stdio::null());
        command.stderr(std::fs::File::create(host.path(log)).unwrap());
        host.agent = Some(KilledChild(command.spawn().unwrap()));
    };
    let tc = |interface: &str| {
        let command = ["-n", namespace.name(), "qdisc", "show", "dev", interface];
        let output = Command::new("tc").args(command).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let is_shaped = |interface: &str| tc(interface).contains("qdisc htb c071:");
    let record = host.path("c.sock.interfaces");
    let install = || {
        let interface = Interface::named("theirs0").unwrap();
        HtbShaper::install(&interface, Rate::from_mbps(10), ShaperOptions::default()).unwrap()
    };
    let theirs = namespace.within(install).unwrap();
    start(&mut host, &full, "log.1");
    eventually("both disciplines are there", || is_shaped("east") && is_shaped("north") && record.exists());
    assert_eq!(std::fs::read_to_string(&record).unwrap(), "east\nnorth\n");
    let agent = host.agent.as_mut().unwrap();
    agent.kill().unwrap();
    agent.wait().unwrap();
    assert!(is_shaped("east") && is_shaped("north"));
    start(&mut host, &bare, "log.2");
    eventually("nothing is left", || !is_shaped("east") && !is_shaped("north"));
    assert!(is_shaped("theirs0"), "it is that of another process");
    let said = || std::fs::read_to_string(host.path("log.2")).unwrap();
    for name in ["east", "north"] {
        let line =
            format!("interface `{name}`: the traffic control that an earlier cutlined had left is removed");
        eventually("it is reported", || said().contains(&line));
    }
    let said = said();
    let ended = terminated(host.agent.as_mut().unwrap()).expect("SIGTERM ends it");
    assert_eq!(ended.code(), Some(0), "{said}");
    assert!(!record.exists());
    drop(theirs);
}
