//! Ten thousand reservations through one agent, with real messages and the kernel's traffic control. All flows go to one host. The
//! other agents do not control the traffic: so the kernel of this machine has the classes of one router only.
//!
//! Requires root: `sudo -E cargo test -p cutline-daemon capacity:: -- --ignored --nocapture --test-threads 1`.

use crate::common::{Net, announce, reserve};
use cutline_flow::TrafficSpec;
use cutline_provision::DaemonClient;
use cutline_provision::protocol::{Reply, Request};
use cutline_provision::status::{ProtocolCounters, Status};
use cutline_sys::now;
use cutline_units::{Bytes, Duration, Instant};
use rustix::process::Signal;
use std::collections::BTreeMap;

const COMMAND: &str =
    "sudo -E cargo test -p cutline-daemon capacity:: -- --ignored --nocapture --test-threads 1";
const RESERVATIONS: usize = 10_000;
/// Time that all set-ups may take, and each other event.
const PATIENCE: Duration = Duration::from_secs(180);
/// Twice the refresh period.
const OBSERVED: Duration = Duration::from_secs(60);
/// The node through which all go, and its interface towards the receivers.
const ROUTER: &str = "r1";
const OUT: &str = "east";

/// The processor time of an agent, s, and its memory, kB.
fn used(net: &Net, node: &str) -> (f64, f64) {
    let id = net.agents[Net::at(node)].as_ref().unwrap().id();
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let memory = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    (ticks / 100.0, memory.split_whitespace().nth(1).unwrap().parse().unwrap())
}

/// A request for one of many flows: all buckets together fit the largest burst.
fn small(request: Request) -> Request {
    let bucket = |bucket| TrafficSpec { bucket: Bytes::new(1500), ..bucket };
    match request {
        Request::Announce { id, flow, bucket: its } => Request::Announce { id, flow, bucket: bucket(its) },
        Request::Reserve { id, transport, destination, senders, bucket: its, confirm } => {
            Request::Reserve { id, transport, destination, senders, bucket: bucket(its), confirm }
        }
        other => other,
    }
}

fn drain(client: &mut DaemonClient, mut each: impl FnMut(Reply)) {
    while let Some(reply) = client.reply(Duration::ZERO).unwrap() {
        each(reply);
    }
}

fn seconds(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e9
}

/// Waits until something holds. Returns the time that this took, s.
fn until(what: &str, mut holds: impl FnMut() -> bool) -> f64 {
    let begun = now();
    while !holds() {
        assert!(now() < begun + PATIENCE, "{what}: it does not after {PATIENCE}");
        // Each look takes time of the router, which is measured.
        std::thread::park_timeout(std::time::Duration::from_millis(100));
    }
    seconds(now() - begun)
}

/// The agents, and the applications of both ends.
struct Run {
    net: Net,
    label: &'static str,
    sender: DaemonClient,
    receiver: DaemonClient,
}

impl Run {
    fn new(label: &'static str, name: &str, rsvp: &'static str) -> Option<Self> {
        let mut net = Net::new(name, COMMAND)?;
        net.rsvp = rsvp;
        net.rate = "1 Gbit/s";
        net.controlled = vec![ROUTER];
        net.start_all();
        let (sender, receiver) = (net.client("a"), net.client("b"));
        Some(Self { net, label, sender, receiver })
    }

    /// Sets all up, in batches.
    fn set_up(&mut self, at_a_time: usize) {
        let empty = used(&self.net, ROUTER).1;
        let mut asked: BTreeMap<u64, Instant> = BTreeMap::new();
        let mut latencies: Vec<f64> = Vec::new();
        let begun = now();
        while latencies.len() < RESERVATIONS {
            let confirmed = latencies.len();
            if now() >= begun + PATIENCE {
                let counters = self.net.status(ROUTER).counters;
                panic!("{confirmed} of {RESERVATIONS} are confirmed after {PATIENCE}; {counters:?}");
            }
            let number = asked.len();
            if number < RESERVATIONS.min(confirmed + at_a_time) {
                let (id, port) = (number as u64, 10_000 + number as u16);
                asked.insert(id, now());
                self.receiver.send(&small(reserve(id, port, 10_000))).unwrap();
                self.sender.send(&small(announce(id, port, 10_000))).unwrap();
            } else {
                std::thread::park_timeout(std::time::Duration::from_micros(200));
            }
            drain(&mut self.sender, |reply| {
                if let Reply::Failed { id, refusal, .. } = reply {
                    panic!("{id}: {refusal}");
                }
            });
            drain(&mut self.receiver, |reply| match reply {
                Reply::Confirmed { id, .. } => latencies.push(seconds(now() - asked[&id]) * 1000.0),
                Reply::Failed { id, refusal, .. } => panic!("{id}: {refusal}"),
                _ => {}
            });
        }
        let took = seconds(now() - begun);
        latencies.sort_by(f64::total_cmp);
        let at = |share: f64| latencies[(latencies.len() as f64 * share) as usize];
        let (cpu, memory) = used(&self.net, ROUTER);
        let status = self.net.status(ROUTER);
        println!(
            "{}, {at_a_time} at a time: {took:.1} s, {:.0} set-ups/s; latency {:.0} ms median, {:.0} ms p99; router: {cpu:.1} s of \
             processor, {:.1} kB each, {} messages sent, {} of them again",
            self.label,
            RESERVATIONS as f64 / took,
            at(0.5),
            at(0.99),
            (memory - empty) / RESERVATIONS as f64,
            sent(&status),
            status.counters.sent_again,
        );
        assert_eq!(status.sessions.len(), RESERVATIONS);
        for node in ["a", ROUTER, "r2", "b"] {
            let counters = self.net.status(node).counters;
            let ProtocolCounters { overflowed, unsent, not_installed, full, .. } = counters;
            assert_eq!((overflowed, unsent, not_installed, full), (0, 0, 0, 0), "{node}");
        }
        let net = &self.net;
        assert_eq!((net.classes(ROUTER, OUT), filters(net)), (RESERVATIONS, RESERVATIONS));
    }

    /// Measures the cost of keeping the reservations.
    fn observe(&mut self) {
        let before = (self.net.status(ROUTER), used(&self.net, ROUTER).0);
        let end = now() + OBSERVED;
        while now() < end {
            drain(&mut self.sender, drop);
            drain(&mut self.receiver, drop);
            // The clients take little time of the processor, which is measured.
            std::thread::park_timeout(std::time::Duration::from_millis(100));
        }
        // Each status costs the router some of its time, which is not counted.
        let cpu = used(&self.net, ROUTER).0 - before.1;
        let after = self.net.status(ROUTER);
        println!(
            "{}: then {:.1} messages/s, {:.1} kB/s, {:.1} % of a processor",
            self.label,
            (sent(&after) - sent(&before.0)) as f64 / seconds(OBSERVED),
            (after.counters.sent_bytes - before.0.counters.sent_bytes) as f64 / seconds(OBSERVED) / 1000.0,
            cpu / seconds(OBSERVED) * 100.0
        );
        assert_eq!(after.sessions.len(), RESERVATIONS, "all are kept");
    }

    /// The router is killed, and sweeps when it starts again. Its neighbours give it its state back.
    fn kill_router(&mut self) {
        self.net.end(ROUTER, Signal::KILL);
        assert_eq!(self.net.classes(ROUTER, OUT), RESERVATIONS, "nobody has removed them");
        let begun = now();
        self.net.start(ROUTER);
        let took = seconds(now() - begun);
        let left = self.net.classes(ROUTER, OUT);
        assert!(left < RESERVATIONS / 2, "{left}");
        let net = &self.net;
        let restored = until("all are there again", || net.classes(ROUTER, OUT) == RESERVATIONS);
        println!(
            "{}: a killed router sweeps and answers after {took:.1} s, has all again {restored:.0} s later",
            self.label
        );
    }

    /// The applications end, and so does all that is installed.
    fn leave(self) {
        let Self { net, label, sender, receiver } = self;
        drop((sender, receiver));
        let took = until("all classes are gone", || net.classes(ROUTER, OUT) == 0);
        // The senders' messages may come later than those of the receivers.
        let later = until("all sessions are gone", || net.status(ROUTER).sessions.is_empty());
        println!(
            "{label}: all classes are removed {took:.1} s after the applications have ended, all sessions {later:.1} s later"
        );
        let status = net.status(ROUTER);
        let reserved: Vec<_> = status.interfaces.iter().map(|its| its.reserved_bps).collect();
        assert_eq!((status.sessions.len(), reserved, filters(&net)), (0, vec![Some(0); 3], 0));
    }

    /// The router's agent ends, with all that it has.
    fn stop(mut self) {
        let begun = now();
        self.net.end(ROUTER, Signal::TERM);
        let took = seconds(now() - begun);
        println!("{}: the router has ended and removed everything after {took:.1} s", self.label);
        assert!(self.net.tc(ROUTER, "qdisc", OUT).contains("noqueue"));
    }
}

fn sent(status: &Status) -> u64 {
    status.counters.sent.iter().map(|its| its.count).sum()
}

/// Returns the number of filters that lead to classes of reservations.
fn filters(net: &Net) -> usize {
    let shown = net.tc(ROUTER, "filter", &format!("{OUT} parent c071:"));
    let all = shown.matches("flowid c071:").count();
    // Those of control messages.
    all - shown.matches("flowid c071:2 ").count()
}

#[test]
#[ignore = "takes minutes: make validate-rsvp runs it, as root"]
fn ten_thousand_reservations_at_once() {
    let Some(mut run) = Run::new("with refresh reduction", "cac", "refresh-reduction = true") else { return };
    run.set_up(RESERVATIONS);
    run.leave();
}

#[test]
#[ignore = "takes minutes: make validate-rsvp runs it, as root"]
fn ten_thousand_reservations_with_and_without_refresh_reduction() {
    let Some(mut run) = Run::new("with refresh reduction", "caa", "refresh-reduction = true") else { return };
    run.set_up(100);
    run.observe();
    run.kill_router();
    run.stop();
    let Some(mut run) = Run::new("without", "cab", "refresh-reduction = false") else { return };
    run.set_up(100);
    run.observe();
    run.leave();
}
