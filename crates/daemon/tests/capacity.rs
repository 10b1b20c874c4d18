//! Ten thousand reservations through one agent, with real messages and the kernel's traffic control.
//!
//! Requires root: `sudo -E cargo test -p cutline-daemon --test capacity -- --ignored --nocapture`.

#[allow(dead_code, reason = "each test uses a part")]
mod common;

use common::{Net, announce, reserve};
use cutline_provision::protocol::{Bucket, Reply, Request};
use cutline_provision::{Client, Flow};
use cutline_sys::now;
use cutline_units::{Duration, Instant};
use std::collections::BTreeMap;
use std::net::SocketAddr;

const COMMAND: &str = "sudo -E cargo test -p cutline-daemon --test capacity -- --ignored --nocapture";
const RESERVATIONS: u64 = 10_000;
/// Between two set-ups.
const EVERY: Duration = Duration::from_millis(1);
const OBSERVED: Duration = Duration::from_secs(60);
/// The node through which all go.
const ROUTER: &str = "r1";

/// The processor time of an agent, s, and its memory, MB.
fn used(net: &Net, node: &str) -> (f64, f64) {
    let id = net.agents[Net::at(node)].as_ref().unwrap().id();
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let memory = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    let kilobytes: f64 = memory.split_whitespace().nth(1).unwrap().parse().unwrap();
    (ticks / 100.0, kilobytes / 1000.0)
}

/// A request for one of many flows: the filters of traffic control have room for some two thousand to a destination.
fn small(request: Request, number: u64) -> Request {
    let place = |address: SocketAddr| {
        let host = 10 + (number / 1000) as u8;
        SocketAddr::new([10, 9, 9, host].into(), address.port())
    };
    match request {
        Request::Announce { id, flow, bucket } => Request::Announce {
            id,
            flow: Flow { destination: place(flow.destination), ..flow },
            bucket: Bucket { bucket_bytes: 1500, ..bucket },
        },
        Request::Reserve { id, transport, destination, senders, bucket, confirm } => {
            let bucket = Bucket { bucket_bytes: 1500, ..bucket };
            Request::Reserve { id, transport, destination: place(destination), senders, bucket, confirm }
        }
        other => other,
    }
}

fn drain(client: &mut Client, mut each: impl FnMut(Reply)) {
    while let Some(reply) = client.reply(Duration::ZERO).unwrap() {
        each(reply);
    }
}

fn diagnose(net: &Net) {
    for node in ["a", "r1", "r2", "b"] {
        let status = net.status(node);
        eprintln!("{node}: {} sessions, cpu {:?}", status.sessions.len(), used(net, node));
        eprintln!("{:?}", status.counters);
        for interface in ["eth0", "east", "west"] {
            eprintln!(
                "{}",
                net.tc(node, "class", interface)
                    .split("class htb ")
                    .filter(|c| c.starts_with("c071:1 ")
                        || c.starts_with("c071:2 ")
                        || c.starts_with("c071:3 "))
                    .collect::<String>()
            );
        }
        let o = std::process::Command::new("ip").args(["netns", "exec", net.node(node).name(), "sh", "-c", "cat /proc/net/raw; netstat -s 2>/dev/null | head -30; cat /proc/net/softnet_stat; grep Ip: /proc/net/snmp"]).output().unwrap();
        eprintln!("{}", String::from_utf8_lossy(&o.stdout));
    }
}

fn measure(label: &str, rsvp: &'static str) {
    let Some(mut net) = Net::new(label, COMMAND) else { return };
    net.rsvp = rsvp;
    net.rate = "1 Gbit/s";
    net.node("b").ip_batch("address add 10.9.9.1/24 dev lo").unwrap();
    net.node("r1").ip_batch("route add 10.9.9.0/24 via 10.1.2.2").unwrap();
    net.node("r2").ip_batch("route add 10.9.9.0/24 via 10.1.4.2").unwrap();
    net.start_all();
    let empty = used(&net, ROUTER).1;
    let (mut sender, mut receiver) = (net.client("a"), net.client("b"));
    let mut asked: BTreeMap<u64, Instant> = BTreeMap::new();
    let mut latencies: Vec<f64> = Vec::new();
    let begun = now();
    let mut next = 0;
    while (latencies.len() as u64) < RESERVATIONS {
        if now() > begun + Duration::from_secs(60) {
            diagnose(&net);
            panic!("{} of {RESERVATIONS} are confirmed", latencies.len());
        }
        if next < RESERVATIONS && now() >= begun + EVERY * next {
            let port = 10_000 + next as u16;
            asked.insert(next, now());
            receiver.send(&small(reserve(next, port, 10_000), next)).unwrap();
            sender.send(&small(announce(next, port, 10_000), next)).unwrap();
            next += 1;
        } else {
            std::thread::park_timeout(std::time::Duration::from_micros(200));
        }
        drain(&mut sender, drop);
        drain(&mut receiver, |reply| match reply {
            Reply::Confirmed { id, .. } => latencies.push((now() - asked[&id]).as_nanos() as f64 / 1e6),
            Reply::Failed { id, refusal, .. } => panic!("{id}: {refusal}"),
            _ => {}
        });
    }
    let took = (now() - begun).as_nanos() as f64 / 1e9;
    latencies.sort_by(f64::total_cmp);
    let at = |share: f64| latencies[(latencies.len() as f64 * share) as usize];
    let (cpu, memory) = used(&net, ROUTER);
    println!(
        "{rsvp}: {took:.1} s, latency {:.1} ms median, {:.1} ms p99; router: {cpu:.1} s of processor, {:.1} kB each",
        at(0.5),
        at(0.99),
        (memory - empty) * 1000.0 / RESERVATIONS as f64
    );
    assert_eq!(net.status(ROUTER).sessions.len() as u64, RESERVATIONS);
    // Sizes before and after a window without set-ups; each answer costs the router some of its time.
    let before = (net.status(ROUTER).counters, used(&net, ROUTER).0);
    let until = now() + OBSERVED;
    while now() < until {
        drain(&mut sender, drop);
        drain(&mut receiver, drop);
        std::thread::park_timeout(std::time::Duration::from_millis(100));
    }
    let cpu = used(&net, ROUTER).0 - before.1;
    let after = net.status(ROUTER);
    let sent = |counters: &cutline_daemon::status::ProtocolCounters| {
        counters.sent.iter().map(|its| its.count).sum::<u64>()
    };
    let seconds = OBSERVED.as_nanos() as f64 / 1e9;
    println!(
        "{rsvp}: then {:.1} messages/s, {:.1} kB/s, {:.1} % of a processor",
        (sent(&after.counters) - sent(&before.0)) as f64 / seconds,
        (after.counters.sent_bytes - before.0.sent_bytes) as f64 / seconds / 1000.0,
        cpu / seconds * 100.0
    );
    assert_eq!(after.sessions.len() as u64, RESERVATIONS, "all are kept");
}

#[test]
#[ignore = "takes three minutes"]
fn ten_thousand_reservations_with_and_without_refresh_reduction() {
    measure("caa", "refresh-reduction = true");
    measure("cab", "refresh-reduction = false");
}
