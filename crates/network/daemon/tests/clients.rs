//! Clients that send too many requests, read nothing, or name requests of others.
//!
//! The tests require root. Without it they print a message and pass: `sudo -E cargo test -p cutline-daemon clients::`.

use crate::common::{A, B, Net, announce, bucket, eventually, flow, hear, reserve};
use cutline_provision::protocol::{Reply, Request, Senders};
use cutline_provision::{DaemonClient, Flow, RefusalReason, TransportProtocol};
use cutline_service::JsonLineError;
use cutline_testbed::{KilledChild, patiently};
use cutline_units::Duration;
use rustix::process::{Resource, Rlimit, Uid, prlimit};
use rustix::thread::set_thread_res_uid;
use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::process::Command;

const COMMAND: &str = "sudo -E cargo test -p cutline-daemon clients::";
/// Time that a client which reads waits.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(90);

/// The memory of a node's agent now, kB.
fn memory(net: &Net, node: &str) -> u64 {
    let id = net.agents[Net::at(node)].as_ref().unwrap().id();
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// A connection that has said hello, and reads nothing.
fn silent(net: &Net, node: &str) -> UnixStream {
    let mut stream = UnixStream::connect(net.socket(node)).unwrap();
    stream.write_all(Request::Hello { version: 1 }.line().as_bytes()).unwrap();
    stream
}

/// Sends a line so often, or as often as there is room. Returns the number of lines that were written completely.
fn pour(mut stream: &UnixStream, line: &str, most: usize) -> usize {
    stream.set_nonblocking(true).unwrap();
    let written = match stream.write(line.repeat(most).as_bytes()) {
        Ok(length) => length,
        Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
        Err(error) => panic!("{error}"),
    };
    stream.set_nonblocking(false).unwrap();
    written / line.len()
}

/// A network where one agent has many flows of its own host.
fn busy(label: &str, flows: u64) -> Option<(Net, DaemonClient)> {
    let mut net = Net::new(label, COMMAND)?;
    net.rsvp = "refresh = '30 s'";
    net.start("a");
    let mut sender = net.client("a");
    for id in 0..flows {
        sender.send(&announce(id, 10_000 + id as u16, 10_000)).unwrap();
        while sender.reply(Duration::ZERO).unwrap().is_some() {}
    }
    eventually("all are announced", || net.status("a").sessions.len() as u64 == flows);
    Some((net, sender))
}

/// The kernel states no process number of such a client: a service in a container, and a program outside of it.
#[test]
fn a_client_in_another_pid_namespace_is_served() {
    let Some(net) = Net::new("clp", COMMAND) else { return };
    let service = Command::new("ip")
        .args(["netns", "exec", net.node("a").name(), "unshare", "--pid", "--fork", "--kill-child"])
        .args([env!("CARGO_BIN_EXE_cutlined"), "--config"])
        .arg(net.describe("a"))
        .spawn();
    let _service = KilledChild(service.unwrap());
    eventually("the service answers", || DaemonClient::connect(&net.socket("a")).is_ok());
    let mut client = net.client("a");
    client.send(&announce(1, 10_000, 10_000)).unwrap();
    eventually("it is announced", || net.status("a").sessions.len() == 1);
}

/// A client that sends ten thousand requests and reads nothing, and twenty others, cost little memory and delay no other; and a client that reads gets all.
#[test]
fn a_client_that_does_not_read_is_not_read() {
    let Some((net, _sender)) = busy("cls", 200) else { return };
    let before = memory(&net, "a");
    let greedy = silent(&net, "a");
    let asked = pour(&greedy, &Request::Status {}.line(), 12_000);
    assert!(asked > 1000, "{asked}");
    let others: Vec<UnixStream> = (0..20).map(|_| silent(&net, "a")).collect();
    for other in &others {
        assert!(pour(other, &Request::Status {}.line(), 100) > 0);
    }
    for _ in 0..20 {
        assert_eq!(net.status("a").sessions.len(), 200, "somebody else is served");
    }
    let most = memory(&net, "a");
    assert!(most < before + 30_000, "{before} kB, then {most} kB");
    // A status is some 70 kB, and each is whole.
    greedy.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut lines = BufReader::new(&greedy).lines();
    assert!(lines.next().unwrap().unwrap().contains("welcome"));
    for _ in 0..asked.min(300) {
        let line = lines.next().unwrap().unwrap();
        let Reply::Status { status } = serde_json::from_str(&line).unwrap() else { panic!("{line}") };
        assert_eq!(status["sessions"].as_array().unwrap().len(), 200);
    }
    drop(others);
    eventually("they are gone", || net.status("a").clients <= 3);
}

/// A status of many slices contains all announced and shaped flows once, also while flows come and go.
#[test]
fn a_long_status_is_whole() {
    let Some((net, mut sender)) = busy("clw", 1000) else { return };
    for id in 0..200 {
        let shape = Request::Shape { id: 5000 + id, flow: flow(20_000 + id as u16), bucket: bucket(8000) };
        sender.send(&shape).unwrap();
        while sender.reply(Duration::ZERO).unwrap().is_some() {}
    }
    eventually("all are shaped", || net.status("a").local.len() == 200);
    for round in 0..10 {
        // The first ones go, and new ones come, while it is written.
        let mut reader = net.client("a");
        reader.send(&Request::Status {}).unwrap();
        for id in 0..10 {
            sender.send(&Request::Withdraw { id: round * 10 + id }).unwrap();
            sender
                .send(&announce(9000 + round * 10 + id, 40_000 + (round * 10 + id) as u16, 10_000))
                .unwrap();
        }
        let Some(Reply::Status { status }) = reader.reply(Duration::from_secs(90)).unwrap() else {
            panic!("no status")
        };
        let status: cutline_provision::status::Status = serde_json::from_value(status).unwrap();
        let mut ports: Vec<u16> = status.sessions.iter().map(|its| its.destination.port()).collect();
        let count = ports.len();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), count, "each is there once");
        let stay = (10_100..11_000_u16).filter(|port| ports.binary_search(port).is_ok()).count();
        assert_eq!((stay, status.local.len()), (900, 200));
        while sender.reply(Duration::ZERO).unwrap().is_some() {}
    }
}

/// An application makes requests for its host's traffic, and not for others.
#[test]
fn flows_of_other_hosts_are_refused() {
    let Some(mut net) = Net::new("cll", COMMAND) else { return };
    net.start("a");
    let mut client = net.client("a");
    let mut refused = |request: &Request| {
        client.send(request).unwrap();
        let reply = hear(&mut client, |reply| matches!(reply, Reply::Failed { .. } | Reply::Accepted { .. }));
        match reply {
            Reply::Failed { refusal, .. } => match refusal.reason {
                RefusalReason::Invalid(why) => Some(why),
                other => panic!("{other:?}"),
            },
            _ => None,
        }
    };
    let foreign = Flow {
        transport: TransportProtocol::Udp,
        source: "10.1.1.99:5000".parse().unwrap(),
        destination: format!("{B}:5000").parse().unwrap(),
    };
    let why = "flow.source = 10.1.1.99: allowed is an address of this host";
    let said = refused(&Request::Announce { id: 1, flow: foreign, bucket: bucket(8000) });
    assert_eq!(said.as_deref(), Some(why));
    let said = refused(&Request::Shape { id: 1, flow: foreign, bucket: bucket(8000) });
    assert_eq!(said.as_deref(), Some(why));
    let reserve = |id, destination: &str| Request::Reserve {
        id,
        transport: TransportProtocol::Udp,
        destination: destination.parse().unwrap(),
        senders: Senders::Fixed { senders: vec!["10.9.9.9:5000".parse().unwrap()] },
        bucket: bucket(8000),
        confirm: false,
    };
    let said = refused(&reserve(1, "10.1.1.99:5000"));
    let why = "destination = 10.1.1.99: allowed is an address of this host or a group";
    assert_eq!(said.as_deref(), Some(why));
    assert_eq!(refused(&reserve(1, &format!("{A}:5000"))), None);
    assert_eq!(refused(&reserve(2, "239.1.1.1:5000")), None);
    assert_eq!(refused(&announce(3, 5000, 8000)), None);
    assert_eq!(net.status("a").sessions.len(), 3);
}

/// A client that sends without end takes its turn with others, and its requests are carried out.
#[test]
fn a_client_that_never_stops_takes_turns() {
    let Some(mut net) = Net::new("clt", COMMAND) else { return };
    net.start_all();
    let busy = silent(&net, "a");
    let mut written = 0;
    let mut writer = &busy;
    for id in 0..3000 {
        writer.write_all(announce(id, 10_000 + id as u16, 10_000).line().as_bytes()).unwrap();
        writer.write_all(Request::Withdraw { id }.line().as_bytes()).unwrap();
        written += 2;
        if id == 100 {
            // Its replies wait in its socket; this one has its own.
            let (mut sender, mut receiver) = (net.client("a"), net.client("b"));
            sender.send(&announce(1, 5000, 10_000)).unwrap();
            receiver.send(&reserve(2, 5000, 10_000)).unwrap();
            hear(&mut receiver, |reply| matches!(reply, Reply::Confirmed { id: 2, .. }));
        }
        // It reads slowly: unread replies keep it from being served.
        if id % 10 == 0 {
            busy.set_nonblocking(true).unwrap();
            let _some = std::io::Read::read(&mut &busy, &mut vec![0; 1 << 16]);
            busy.set_nonblocking(false).unwrap();
        }
    }
    assert_eq!(written, 6000);
    drop(busy);
    eventually("nothing is left of it", || net.status("a").sessions.is_empty());
}

/// A member of the group that connects without end leaves room for others: for other users, and for root.
#[test]
fn a_user_has_a_part_of_the_connections() {
    const LIMIT: usize = 512;
    let Some(mut net) = Net::new("clu", COMMAND) else { return };
    std::fs::set_permissions(net.folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    net.start("a");
    // The users' threads keep their group, which is the socket's.
    let connect = |user: u32, count: usize| -> Vec<UnixStream> {
        let path = net.socket("a");
        let become_user = move || {
            let user = Uid::from_raw(user);
            set_thread_res_uid(user, user, user).unwrap();
            (0..count).map(|_| UnixStream::connect(&path).unwrap()).collect()
        };
        std::thread::spawn(become_user).join().unwrap()
    };
    let greedy = connect(65_534, LIMIT);
    eventually("they are connected", || net.status("a").clients as usize > LIMIT);
    for (user, is_refused) in [(65_534, true), (65_533, false), (0, false)] {
        let mut client = connect(user, 1).remove(0);
        // The daemon may have refused the connection already, and closed it.
        let sent = client.write_all(Request::Hello { version: 1 }.line().as_bytes());
        assert!(is_refused || sent.is_ok(), "{user}: {sent:?}");
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut line = String::new();
        BufReader::new(&client).read_line(&mut line).unwrap();
        let wanted = if is_refused { "client limit reached (512 of a user)" } else { "welcome" };
        assert!(line.contains(wanted), "{user}: {line}");
    }
    assert_eq!(net.status("a").refused_clients, 1);
    drop(greedy);
    eventually("they are gone", || net.status("a").clients <= 3);
    assert_eq!(connect(65_534, 1).len(), 1);
}

/// A member of the group that announces flows without end leaves room for others, with as many connections as it may have.
#[test]
fn a_user_has_a_part_of_the_requests() {
    let Some(mut net) = Net::new("clr", COMMAND) else { return };
    std::fs::set_permissions(net.folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    net.rsvp = "most-per-neighbour = 10";
    net.start("a");
    // The users' threads keep their group, which is the socket's.
    let connect = |user: u32| -> DaemonClient {
        let path = net.socket("a");
        let become_user = move || {
            let user = Uid::from_raw(user);
            set_thread_res_uid(user, user, user).unwrap();
            patiently(|| DaemonClient::connect(&path), JsonLineError::is_late).unwrap()
        };
        std::thread::spawn(become_user).join().unwrap()
    };
    let refusal = |client: &mut DaemonClient, id: u64, port: u16| {
        client.send(&announce(id, port, 10_000)).unwrap();
        let is_answer = |reply: &Reply| match reply {
            Reply::Accepted { id: its } | Reply::Failed { id: its, .. } => *its == id,
            _ => false,
        };
        match hear(client, is_answer) {
            Reply::Failed { refusal, .. } => Some(refusal.reason),
            _ => None,
        }
    };
    let [mut first, mut second, mut other, mut root] = [65_534, 65_534, 65_533, 0].map(connect);
    for id in 0..5 {
        assert_eq!(refusal(&mut first, id, 5000 + id as u16), None);
        assert_eq!(refusal(&mut second, id, 5100 + id as u16), None);
    }
    let why = RefusalReason::Invalid("a user may have 10 requests at a time".to_owned());
    assert_eq!(refusal(&mut first, 5, 5005), Some(why));
    assert_eq!(refusal(&mut other, 5, 5205), None);
    for id in 0..12 {
        assert_eq!(refusal(&mut root, id, 5300 + id as u16), None);
    }
    second.send(&Request::Withdraw { id: 0 }).unwrap();
    hear(&mut second, |reply| matches!(reply, Reply::Withdrawn { id: 0 }));
    assert_eq!(refusal(&mut first, 6, 5006), None);
}

/// Without a free descriptor, a further client is refused with the reason, and the others are served.
#[test]
fn a_client_is_refused_without_a_free_descriptor() {
    const CLIENTS: usize = 60;
    let Some(mut net) = Net::new("cln", COMMAND) else { return };
    net.start("a");
    let mut before = net.client("a");
    let agent = net.process("a");
    let open = std::fs::read_dir(format!("/proc/{}/fd", agent.as_raw_pid())).unwrap().count() as u64;
    let limit = Some(open + 20);
    prlimit(Some(agent), Resource::Nofile, Rlimit { current: limit, maximum: limit }).unwrap();
    let mut clients: Vec<UnixStream> =
        (0..CLIENTS).map(|_| UnixStream::connect(net.socket("a")).unwrap()).collect();
    let mut refused = 0;
    for client in &mut clients {
        let _refused = client.write_all(Request::Hello { version: 1 }.line().as_bytes());
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut line = String::new();
        BufReader::new(&*client).read_line(&mut line).unwrap();
        let is_refused = line.contains("no file descriptor is left");
        assert!(is_refused || line.contains("welcome"), "{line}");
        refused += u64::from(is_refused);
    }
    assert!(refused > 0 && refused < CLIENTS as u64, "{refused}");
    assert_eq!(before.status(Duration::from_secs(90)).unwrap().refused_clients, refused);
    // Those that leave make room.
    drop(clients);
    eventually("a client is served", || DaemonClient::connect(&net.socket("a")).is_ok());
}
