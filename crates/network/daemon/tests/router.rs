//! An agent that reserves in a userspace router on its host.
//!
//! ```text
//! a ── west  r1: kernel ── cut0 router cut1 ── kernel  east ── r2 ── b
//! ```
//!
//! The router drops its privileges, so it has to be a process with one thread. It is this binary again, which is why the tests do without the
//! usual harness: they run one after the other, those whose names contain an argument or all.
//!
//! The tests require root. Without it they print a message and pass: `sudo -E cargo test -p cutline-daemon`.

#[allow(dead_code, reason = "each test uses a part")]
mod common;

use common::{A, B, Net, announce, eventually, hear, reserve};
use cutline_flow::TrafficSpec;
use cutline_provision::DaemonClient;
use cutline_provision::protocol::{Reply, Request};
use cutline_provision::status::InterfaceStatus;
use cutline_router_service::{
    Listener, ReservationClient, ReservationStatistics, Router, RouterDirection, RouterSpec, Schedule,
    Statistics,
};
use cutline_sys::now;
use cutline_testbed::{KilledChild, in_time, undisturbed, wait_for_carriers};
use cutline_units::{Bytes, Duration, Instant};
use rustix::process::Signal;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, park_timeout, spawn};

const COMMAND: &str = "sudo -E cargo test -p cutline-daemon --test router";
const FOR_LONG: Duration = Duration::from_secs(4);
const PORT: u16 = 5000;
/// The variable with the router's file.
const FILE: &str = "CUTLINE_TEST_ROUTER";

struct Silent;

impl Listener for Silent {
    fn interval(&mut self, _: Statistics) {}
    fn reloaded(&mut self, _: Result<(), String>, _: &str) {}
    fn warn(&mut self, _: String) {}
    fn end(&mut self, _: Statistics) {}
    fn dropped(&self) -> u64 {
        0
    }
}

/// The network, whose node `r1` leads forwarded packets through two TUN interfaces (docs/guide/router.md).
fn network(label: &str) -> Option<(Net, PathBuf)> {
    let mut net = Net::new(label, COMMAND)?;
    let socket = net.folder.path().join("router.sock");
    let class = |direction: &str, rate: &str| {
        format!(
            "rate = '{rate}'\nshare = 0.5\ncontrol = 'router'\nrouter-socket = '{}'\nrouter-direction = '{direction}'",
            socket.display()
        )
    };
    net.others.insert(("r1", "east"), class("forward", "4 Mbit/s"));
    net.others.insert(("r1", "west"), class("reverse", "50 Mbit/s"));
    net.node("r1")
        .ip_batch(
            "tuntap add cut0 mode tun\ntuntap add cut1 mode tun\nlink set cut0 up\nlink set cut1 up\n\
             route add default dev cut0 table 100\nroute add default dev cut1 table 101\n\
             rule add iif west lookup 100\nrule add iif east lookup 101",
        )
        .unwrap();
    for tun in ["cut0", "cut1"] {
        for (key, value) in [("rp_filter", "0"), ("ignore_routes_with_linkdown", "1")] {
            let set = || std::fs::write(format!("/proc/sys/net/ipv4/conf/{tun}/{key}"), value).unwrap();
            net.node("r1").within(set).unwrap();
        }
    }
    Some((net, socket))
}

/// Starts the router of `r1`: 4 Mbit/s towards `b`, with a queue in which a flood waits for 60 ms and more.
fn start_router(net: &Net, socket: &Path) -> KilledChild {
    const QUEUE: &str = "{ aqm = 'pi', limit = '100 packets', q-ref = '30 packets' }";
    let text = format!(
        "in = 'tun:cut0'\nout = 'tun:cut1'\noverhead = 'ip'\nsocket = '{}'\nreservations = 'allowed'\n\
         forward = {{ rate = '4 Mbit/s', queue = {QUEUE} }}\nreverse = {{ rate = '50 Mbit/s', queue = {QUEUE} }}\n",
        socket.display()
    );
    let file = net.folder.path().join("router.toml");
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--ignored", "--exact", "router_process", "--test-threads=1", "--nocapture"])
        .env(FILE, file);
    let child = net.node("r1").within(|| command.stdout(Stdio::null()).spawn()).unwrap().unwrap();
    let running = KilledChild(child);
    eventually("the router answers", || reserved(socket).is_some());
    wait_for_carriers(net.node("r1"));
    running
}

/// Returns the reservations in the router; `None` while none answers.
fn reserved(socket: &Path) -> Option<Vec<ReservationStatistics>> {
    ReservationClient::connect(socket, Duration::from_secs(60)).ok()?.list().ok()
}

fn count(socket: &Path) -> usize {
    reserved(socket).map_or(0, |all| all.len())
}

fn status(net: &Net, interface: &str) -> InterfaceStatus {
    net.status("r1").interfaces.into_iter().find(|its| its.name == interface).unwrap()
}

/// A bucket for a sender that stands still for a second.
fn deep(request: Request) -> Request {
    let deeper = |bucket: TrafficSpec| TrafficSpec { bucket: Bytes::new(110_000), ..bucket };
    match request {
        Request::Announce { id, flow, bucket } => Request::Announce { id, flow, bucket: deeper(bucket) },
        Request::Reserve { id, transport, destination, senders, bucket, confirm } => {
            Request::Reserve { id, transport, destination, senders, bucket: deeper(bucket), confirm }
        }
        other => other,
    }
}

fn set_up(net: &Net, port: u16) -> (DaemonClient, DaemonClient) {
    let (mut sender, mut receiver) = (net.client("a"), net.client("b"));
    sender.send(&deep(announce(1, port, 1_000_000))).unwrap();
    receiver.send(&deep(reserve(2, port, 1_000_000))).unwrap();
    hear(&mut receiver, |reply| matches!(reply, Reply::Confirmed { id: 2, .. }));
    (sender, receiver)
}

/// Sends datagrams from `a` that carry their time of departure. Returns their number.
fn send(net: &Net, port: u16, size: usize, every_us: u64) -> JoinHandle<u64> {
    let socket = net.node("a").within(|| UdpSocket::bind((A, port)).unwrap()).unwrap();
    spawn(move || {
        let mut payload = vec![0; size];
        let (start, every, mut sent) = (now(), Duration::from_micros(every_us), 0_u64);
        while now() < start + FOR_LONG {
            // Late datagrams are sent at once, so that the rate holds on a busy machine.
            let left = (start + Duration::from_nanos(every.as_nanos() * sent)).saturating_since(now());
            park_timeout(std::time::Duration::from_nanos(left.as_nanos()));
            payload[..8].copy_from_slice(&now().as_nanos().to_be_bytes());
            sent += u64::from(socket.send_to(&payload, (B, port)).is_ok());
        }
        sent
    })
}

/// Returns the delays of the packets that arrive at `b`, ms, until all are sent and no more arrive.
fn receive(net: &Net, port: u16, all_sent: &Arc<AtomicBool>) -> JoinHandle<Vec<f64>> {
    let all_sent = Arc::clone(all_sent);
    let socket = net.node("b").within(|| UdpSocket::bind((B, port)).unwrap()).unwrap();
    socket.set_read_timeout(Some(std::time::Duration::from_secs(1))).unwrap();
    spawn(move || {
        let (mut delays, mut buffer) = (Vec::new(), [0; 2000]);
        loop {
            let was_all_sent = all_sent.load(Ordering::Relaxed);
            match socket.recv(&mut buffer) {
                Ok(_) => {}
                Err(_) if was_all_sent => return delays,
                Err(_) => continue,
            }
            let sent = Instant::from_nanos(u64::from_be_bytes(*buffer.first_chunk().unwrap()));
            delays.push((now() - sent).as_millis_f64());
        }
    })
}

/// Sends packets of 1000 B of the reserved flow under a flood of 6 Mbit/s. Returns the number of sent ones, and the delays of those that
/// arrived; and the same of the flood.
fn under_flood(net: &Net, every_us: u64) -> [(u64, Vec<f64>); 2] {
    let flows = [(PORT, 972, every_us), (PORT + 1, 1472, 2000)];
    let all_sent = Arc::default();
    let arrivals = flows.map(|(port, ..)| receive(net, port, &all_sent));
    let sent = flows.map(|(port, size, every_us)| send(net, port, size, every_us));
    let sent = sent.map(|sender| sender.join().unwrap());
    all_sent.store(true, Ordering::Relaxed);
    let mut each = sent.into_iter().zip(arrivals).map(|(sent, arrived)| (sent, arrived.join().unwrap()));
    [each.next().unwrap(), each.next().unwrap()]
}

fn median(delays: &mut [f64]) -> f64 {
    delays.sort_by(f64::total_cmp);
    delays[delays.len() / 2]
}

/// RFC 2211 sections 4 and 7, and the end of reservations with the application.
fn a_reserved_flow_has_its_rate_in_the_router_and_its_excess_is_best_effort() {
    undisturbed(|| {
        let Some((mut net, socket)) = network("rtr") else { return };
        let router = start_router(&net, &socket);
        net.start_all();
        assert_eq!((status(&net, "east").problem, status(&net, "east").control), (None, "router".to_owned()));
        assert!(!net.tc("r1", "qdisc", "east").contains("htb"), "the kernel shapes nothing there");
        let (_, mut delays) = {
            let [(sent, arrived), _] = under_flood(&net, 10_000);
            assert!((arrived.len() as u64) < sent, "without a reservation the flood takes the link");
            (sent, arrived)
        };
        let before = median(&mut delays);

        let (sender, mut receiver) = set_up(&net, PORT);
        let all = reserved(&socket).unwrap();
        assert_eq!((all.len(), all[0].direction, all[0].rate_bps), (1, RouterDirection::Forward, 1_000_000));
        let [(sent, mut delays), (flood, drained)] = under_flood(&net, 10_000);
        let its = status(&net, "east");
        assert_eq!((its.excess_packets, its.dropped_packets), (0, 0), "{its:?}");
        assert_eq!((delays.len() as u64, its.reserved_packets), (sent, sent), "none is lost: {its:?}");
        let after = median(&mut delays);
        assert!(
            (drained.len() as u64) < flood * 9 / 10,
            "the flood is too much: {} of {flood}",
            drained.len()
        );

        let earlier = its.reserved_packets;
        let [(sent, delays), _] = under_flood(&net, 4_000);
        let its = status(&net, "east");
        let conforming = its.reserved_packets - earlier;
        assert_eq!(conforming + its.excess_packets, sent, "{its:?}");
        assert!((delays.len() as u64) < sent && delays.len() as u64 >= conforming, "the queue drops excess");

        // The receiver withdraws it.
        receiver.send(&Request::Withdraw { id: 2 }).unwrap();
        eventually("the router has room again", || count(&socket) == 0);
        assert_eq!(status(&net, "east").reserved_bps, Some(0));
        drop((sender, router));
        in_time!(after < 30.0 && before > 40.0, "{after} ms, {before} ms before");
        // 1 Mbit/s and the bucket in four seconds; twice as much was sent.
        in_time!((450..=680).contains(&conforming), "{conforming} packets within the reservation: {its:?}");
    });
}

fn a_killed_agent_leaves_nothing_and_a_router_that_comes_back_is_told_again() {
    let Some((mut net, socket)) = network("rtk") else { return };
    // Without the router: the agent starts, says so, and refuses.
    net.start_all();
    let problem = status(&net, "east").problem.unwrap();
    assert!(problem.contains("router.sock") && problem.contains("0 reservations wait"), "{problem}");
    let router = start_router(&net, &socket);
    eventually("the agent finds the router", || status(&net, "east").problem.is_none());

    let (mut sender, mut receiver) = set_up(&net, PORT);
    assert_eq!(count(&socket), 1);
    net.end("r1", Signal::KILL);
    eventually("the router keeps nothing that a killed agent has reserved", || count(&socket) == 0);
    net.start("r1");
    eventually("the neighbours bring the state back", || count(&socket) == 1);

    drop(router);
    eventually("the status says that the router is away", || {
        status(&net, "east").problem.is_some_and(|why| why.contains("1 reservations wait"))
    });
    let refused = net.status("r1").counters.not_installed;
    sender.send(&announce(3, PORT + 1, 100_000)).unwrap();
    receiver.send(&reserve(4, PORT + 1, 100_000)).unwrap();
    let reply = hear(&mut receiver, |reply| matches!(reply, Reply::Failed { id: 4, .. }));
    let Reply::Failed { refusal, .. } = &reply else { unreachable!() };
    assert_eq!(refusal.node, Some("10.1.2.1".parse().unwrap()), "{refusal}");
    assert!(net.status("r1").counters.not_installed > refused);
    receiver.send(&Request::Withdraw { id: 4 }).unwrap();

    let _router = start_router(&net, &socket);
    eventually("what was reserved is reserved again", || count(&socket) == 1);
    eventually("the problem has ended", || status(&net, "east").problem.is_none());
    assert_eq!(reserved(&socket).unwrap()[0].filters[0].destination_port, Some(PORT));

    // The agent ends.
    net.end("r1", Signal::TERM);
    eventually("nothing is left", || count(&socket) == 0);
}

fn main() {
    if let Ok(file) = std::env::var(FILE) {
        let spec = RouterSpec::load(Path::new(&file)).unwrap_or_else(|errors| panic!("{errors}"));
        let router = Router::open(spec).unwrap();
        return router.run(Schedule::default(), &AtomicBool::new(false), &mut Silent).unwrap();
    }
    let tests: [(&str, fn()); 2] = [
        (
            "a_reserved_flow_has_its_rate_in_the_router_and_its_excess_is_best_effort",
            a_reserved_flow_has_its_rate_in_the_router_and_its_excess_is_best_effort,
        ),
        (
            "a_killed_agent_leaves_nothing_and_a_router_that_comes_back_is_told_again",
            a_killed_agent_leaves_nothing_and_a_router_that_comes_back_is_told_again,
        ),
    ];
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    for (name, test) in tests {
        if wanted.is_empty() || wanted.iter().any(|part| name.contains(part)) {
            test();
            println!("test {name} ... ok");
        }
    }
}
