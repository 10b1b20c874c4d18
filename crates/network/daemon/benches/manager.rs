//! The resource manager of `cutlined` with 1,000 managed flows: time from a request to its answer over the local socket,
//! CPU time while all flows report twice a second, memory, and the time of a restart after a kill.
//!
//! `cargo bench -p cutline-daemon --bench manager` needs root. The aim is less than 100 us for a decision, and 1,000
//! requests a second. The time over the socket includes the changes between both processes, which wait for a
//! processor where other programs use it; `cargo bench -p cutline-manager` has the decision alone.
#![expect(clippy::disallowed_methods, reason = "a bench waits in real time")]

use cutline_allocation::ManagerConnection;
use cutline_allocation::protocol::{AllocationReply, AllocationRequest, FlowNeed, ReportLine};
use cutline_manager::resources::{CarrierKind, SchedulingClass};
use cutline_service::JsonLineError;
use cutline_units::Duration;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

const CLIENTS: u64 = 100;
const FLOWS: u64 = 10;
const CALLS: usize = 5000;
const PATIENCE: Duration = Duration::from_secs(20);
/// The aim for a decision, ns.
const AIM_NS: u64 = 100_000;

fn now_ns() -> u64 {
    cutline_sys::now().as_nanos()
}

struct Host {
    folder: TempDir,
    agent: Child,
}

impl Host {
    fn start(folder: TempDir) -> Self {
        let path = |name: &str| folder.path().join(name).display().to_string();
        let text = format!(
            "socket = '{}'\n[manager]\nsocket = '{}'\nstate = '{}'\ndatagrams = '8 Gbit/s'\ncombined = '8 Gbit/s'\n\
             cpu = 400\ndatagrams-cpu = 20\n[manager.resources]\nuser-share = 1.0\nmost-flows-per-user = 4096\n\
             [[manager.interface]]\nname = 'lo'\nrate = '8 Gbit/s'\n\
             [[manager.path]]\nnumber = 1\ndestinations = ['127.0.0.0/8']\n",
            path("c.sock"),
            path("m.sock"),
            path("m.state")
        );
        std::fs::write(folder.path().join("c.toml"), text).unwrap();
        let agent = Command::new(env!("CARGO_BIN_EXE_cutlined"))
            .arg("--config")
            .arg(folder.path().join("c.toml"))
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let host = Self { folder, agent };
        while host.connect(None).is_err() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        host
    }

    fn connect(&self, session: Option<&str>) -> Result<ManagerConnection, JsonLineError> {
        ManagerConnection::connect(&self.folder.path().join("m.sock"), session)
    }

    fn kill(mut self) -> TempDir {
        self.agent.kill().unwrap();
        self.agent.wait().unwrap();
        self.folder
    }

    /// CPU time of the process, ns.
    fn cpu(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.agent.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
        let ticks: u64 = fields[11..13].iter().map(|field| field.parse::<u64>().unwrap()).sum();
        ticks * 10_000_000
    }

    /// Resident memory, KiB.
    fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.agent.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

fn need(class: SchedulingClass, bps: u64) -> FlowNeed {
    FlowNeed {
        class,
        carrier: CarrierKind::Datagrams,
        source: "127.0.0.1:4000".parse().unwrap(),
        destination: "127.0.0.1:5000".parse().unwrap(),
        desired_bps: Some(bps),
        minimum_bps: bps / 10,
        priority: 5,
        weight: 1,
        delay_ms: Some((0.0, 100.0)),
        loss_percent: None,
    }
}

/// Waits for the answer about a flow.
fn answer(client: &mut ManagerConnection, wanted: u64) -> bool {
    loop {
        match client.reply(PATIENCE).unwrap().expect("it answers") {
            AllocationReply::Admitted { id, .. } if id == wanted => return true,
            AllocationReply::Refused { id, .. } if id == wanted => return false,
            AllocationReply::Released { id } if id == wanted => return true,
            _ => {}
        }
    }
}

fn print(name: &str, mut times: Vec<u64>) {
    times.sort_unstable();
    let us = |share: f64| times[(times.len() as f64 * share) as usize] as f64 / 1e3;
    let mean = times.iter().sum::<u64>() as f64 / times.len() as f64 / 1e3;
    let within = 100.0 * times.partition_point(|time| *time < AIM_NS) as f64 / times.len() as f64;
    println!(
        "{name:<42} median {:>7.1} us, 90 % {:>7.1}, 99 % {:>7.1}; mean {mean:.1}; {within:.1} % below 100 us",
        us(0.5),
        us(0.9),
        us(0.99)
    );
}

/// Times admissions and releases of a flow by one more client.
fn decisions(host: &Host, name: &str, class: SchedulingClass, bps: u64) {
    let mut client = host.connect(None).unwrap();
    let (mut admissions, mut releases) = (Vec::new(), Vec::new());
    for id in 0..CALLS as u64 {
        let begin = now_ns();
        client.send(&AllocationRequest::Admit { id, need: need(class, bps) }).unwrap();
        let is_admitted = answer(&mut client, id);
        admissions.push(now_ns() - begin);
        if is_admitted {
            let begin = now_ns();
            client.send(&AllocationRequest::Release { id }).unwrap();
            answer(&mut client, id);
            releases.push(now_ns() - begin);
        }
    }
    print(&format!("{name}: request to answer"), admissions);
    if !releases.is_empty() {
        print(&format!("{name}: release to answer"), releases);
    }
}

fn report(client: &mut ManagerConnection, id: u64, bps: u64) {
    let until_ns = now_ns();
    let report = ReportLine {
        since_ns: until_ns - 500_000_000,
        until_ns,
        sent: 500,
        messages: 500,
        bytes: bps / 16,
        lost: 0,
        delay_ns: Some([10_000_000 + until_ns % 5_000_000; 3]),
        backlog: 0,
    };
    client.send(&AllocationRequest::Report { id, report }).unwrap();
}

fn drain(client: &mut ManagerConnection) {
    while client.reply(Duration::ZERO).unwrap().is_some() {}
}

/// CPU time and latency while all flows report twice a second for 20 s.
fn load(host: &Host, clients: &mut [ManagerConnection]) {
    let (begin, cpu) = (now_ns(), host.cpu());
    for _ in 0..40 {
        let turn = now_ns();
        for client in &mut *clients {
            for id in 0..FLOWS {
                report(client, id, 4_000_000);
            }
            client.send(&AllocationRequest::Renew {}).unwrap();
            drain(client);
        }
        let left = 500_000_000_u64.saturating_sub(now_ns() - turn);
        std::thread::sleep(std::time::Duration::from_nanos(left));
    }
    let share = (host.cpu() - cpu) as f64 / (now_ns() - begin) as f64;
    println!("1,000 flows report twice a second: {:.1} % of a CPU", share * 100.0);
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |about| about.len())
}

fn main() {
    let host = Host::start(tempfile::tempdir().unwrap());
    let empty = host.memory();
    let mut clients: Vec<ManagerConnection> = (0..CLIENTS).map(|_| host.connect(None).unwrap()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        for id in 0..FLOWS {
            let class = if (number as u64 + id).is_multiple_of(2) {
                SchedulingClass::RealTime
            } else {
                SchedulingClass::TimeShared
            };
            // Real-time flows take 3 of 6 Gbit/s that may be promised; the time-shared ones want more than is left.
            client
                .send(&AllocationRequest::Admit { id, need: need(class, 6_000_000 + 30_000 * id) })
                .unwrap();
            assert!(answer(client, id));
        }
    }
    clients.iter_mut().for_each(drain);
    println!("1,000 flows of 100 clients: {} KiB more, {} KiB in all", host.memory() - empty, host.memory());
    // Every client is read, so that nothing waits for it.
    let reader = {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            while stopped.try_recv().is_err() {
                for client in &mut clients {
                    client.send(&AllocationRequest::Renew {}).unwrap();
                    drain(client);
                }
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            clients
        });
        (stop, thread)
    };
    let cpu = host.cpu();
    decisions(&host, "real-time flow", SchedulingClass::RealTime, 4_000_000);
    decisions(&host, "time-shared flow", SchedulingClass::TimeShared, 4_000_000);
    decisions(&host, "refused", SchedulingClass::RealTime, 100_000_000_000);
    let (requests, spent) = (CALLS * 5, host.cpu() - cpu);
    println!(
        "CPU time of these {requests} requests: {:.2} s, {:.1} us each",
        spent as f64 / 1e9,
        spent as f64 / 1e3 / requests as f64
    );
    reader.0.send(()).unwrap();
    let mut clients = reader.1.join().unwrap();
    load(&host, &mut clients);
    println!("memory after that: {} KiB", host.memory());
    let state = host.folder.path().join("m.state");
    let journal = host.folder.path().join("m.state.journal");
    println!("state: {} B, journal: {} B", length(&state), length(&journal));
    let sessions: Vec<String> = clients.iter().map(|client| client.session().to_owned()).collect();
    let begin = now_ns();
    let host = Host::start(host.kill());
    let up = now_ns() - begin;
    let back: Vec<ManagerConnection> =
        sessions.iter().map(|session| host.connect(Some(session)).unwrap()).collect();
    let held: usize = back.iter().map(|client| client.held().len()).sum();
    assert_eq!(held, 1000, "all flows are there");
    println!(
        "after a kill: serves in {:.0} ms, all 1,000 flows are claimed in {:.0} ms",
        up as f64 / 1e6,
        (now_ns() - begin) as f64 / 1e6
    );
    drop(host.kill());
}
