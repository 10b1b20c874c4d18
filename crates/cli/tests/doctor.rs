//! The doctor: the command as root and as `nobody`, and its judgement of known bottlenecks.
//!
//! ```text
//! host a        middle         hop           host b
//! a0 ══════ p0  router  p1 ══ h0   h1 ══════ b0
//! ```
//!
//! Most tests require root. Without it they print a message and pass: `sudo -E cargo test -p cutline-cli doctor::`.

use crate::common::{may_make_namespaces, schema};
use cutline_sys::Offloads;
use cutline_sys::namespace::{Namespace, sweep};
use cutline_testbed::{KilledChild, in_time, undisturbed};
use rustix::process::{Pid, Signal, geteuid, kill_process, test_kill_process_group};
use serde_json::Value;
use std::fs::File;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const CUTLINE: &str = env!("CARGO_BIN_EXE_cutline");
const NOBODY: u32 = 65534;

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Checks the properties of the JSON document that scripts rely on.
fn assert_schema(output: &Output) -> Value {
    let document = json(output);
    let findings = document["findings"].as_array().unwrap();
    assert!(findings.len() > 20, "{document}");
    let mut missing_for = Vec::new();
    for finding in findings {
        for key in ["group", "subject", "what"] {
            assert!(finding[key].as_str().is_some_and(|text| !text.is_empty()), "{key} of {finding}");
        }
        let state = finding["state"].as_str().unwrap();
        assert!(["ok", "note", "unknown", "warning", "missing"].contains(&state), "{finding}");
        assert!(finding["do_next"].is_null() || finding["do_next"].is_string(), "{finding}");
        let needed_for = finding["needed_for"].as_array().unwrap();
        assert_eq!(state == "missing", !needed_for.is_empty(), "{finding}");
        missing_for.extend(needed_for.iter().map(|purpose| purpose.as_str().unwrap().to_owned()));
    }
    for purpose in ["router", "laboratory"] {
        let is_missing = missing_for.iter().any(|missing| missing == purpose);
        assert_eq!(document["ready"][purpose], !is_missing, "{purpose}: {document}");
    }
    assert_eq!(output.status.code(), Some(i32::from(!missing_for.is_empty())), "{output:?}");
    document
}

fn state<'d>(document: &'d Value, subject: &str) -> &'d str {
    let findings = document["findings"].as_array().unwrap();
    findings.iter().find(|finding| finding["subject"] == subject).unwrap()["state"].as_str().unwrap()
}

fn namespace_of(process: u32) -> PathBuf {
    Path::new("/run/netns").join(format!("cutline-{process}-doctor"))
}

#[test]
fn root_can_test_everything_and_no_namespace_is_left() {
    if !may_make_namespaces() {
        return;
    }
    let child = Command::new(CUTLINE)
        .args(["doctor", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let namespace = namespace_of(child.id());
    let output = child.wait_with_output().unwrap();
    let document = assert_schema(&output);
    assert_eq!(state(&document, "namespaces, veth"), "ok", "{document}");
    assert_eq!(state(&document, "packet sockets"), "ok", "{document}");
    assert!(document["count"]["unknown"].is_u64() && !namespace.exists(), "{document}");
}

#[test]
fn without_root_features_that_cannot_be_tested_are_unknown() {
    // Where the binary was built, the user `nobody` may not be allowed to look.
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("cutline");
    // By another process: a child that a test beside this one starts would have the file open for writing, which cannot be run then.
    assert!(Command::new("cp").arg(CUTLINE).arg(&copy).status().unwrap().success());
    for path in [folder.path(), &copy] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = Command::new(&copy);
    command.args(["doctor", "--json"]);
    if geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command.output().unwrap();
    let document = assert_schema(&output);
    assert_eq!(state(&document, "packet sockets"), "unknown", "{document}");
    assert_eq!(state(&document, "CAP_NET_RAW"), "missing", "{document}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("the router needs CAP_NET_RAW"), "{output:?}");
}

#[test]
fn the_text_has_groups_readiness_and_next_steps() {
    let output = Command::new(CUTLINE).args(["doctor", "lo"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for part in
        ["privileges\n", "\ntimers\n", "\ninterface lo\n", "\nrouter: ", "\nlaboratory: ", "what to do next"]
    {
        assert!(text.contains(part), "{part:?} is in {text}");
    }
    assert!(text.contains("warning  addresses"), "the finding is of the host: {text}");
    assert!(!text.contains('\u{1b}'), "no colours without a terminal: {text:?}");
}

#[test]
fn an_interrupted_doctor_removes_its_namespace_and_the_next_one_removes_that_of_a_killed_one() {
    if !may_make_namespaces() {
        return;
    }
    for (signal, is_left) in [(Signal::INT, false), (Signal::KILL, true)] {
        let start = || {
            let mut command = Command::new(CUTLINE);
            command.arg("doctor").stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn()
        };
        let mut doctor = KilledChild(start().unwrap());
        let namespace = namespace_of(doctor.0.id());
        let patience = Instant::now() + Duration::from_secs(90);
        while !namespace.exists() && Instant::now() < patience {
            sleep(Duration::from_millis(2));
        }
        kill_process(Pid::from_child(&doctor.0), signal).unwrap();
        doctor.0.wait().unwrap();
        // Programs that it had just started may still be making the namespace.
        let group = Pid::from_child(&doctor.0);
        while test_kill_process_group(group).is_ok() && Instant::now() < patience {
            sleep(Duration::from_millis(2));
        }
        // Another test may have removed the namespace of the killed one.
        assert!(is_left || !namespace.exists(), "{signal:?}");
        start().unwrap().wait().unwrap();
        assert!(!namespace.exists(), "{signal:?}, after the next");
    }
}

#[test]
fn invalid_arguments_are_named() {
    let refused = |options: &[&str], code: i32, what: &str| {
        let output = Command::new(CUTLINE).arg("doctor").args(options).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{message}");
        assert!(message.contains(what), "{message}");
    };
    refused(&["nosuch0"], 2, "there is no interface `nosuch0`; there are: ");
    refused(&["bottleneck"], 2, "--stats, --probe and --out");
    refused(&["bottleneck", "--out", "nosuch0"], 2, "`nosuch0`");
    refused(&["bottleneck", "--out", "lo", "--hint", "17"], 2, "17");
    refused(&["bottleneck", "--out", "lo", "--duration", "2h"], 2, "from 1 s to 3600 s");
    refused(&["bottleneck", "--out", "lo", "--overhead", "atm"], 2, "pppoe-atm");
    refused(&["bottleneck", "--stats", "/nosuch/file"], 1, "/nosuch/file");
    refused(&["bottleneck", "--stats", "/dev/null"], 1, "statistics arrived 0 times");
}

/// The namespaces of the diagram above and the router, which forwards 8 Mbit/s of IP packets. The router is dropped first.
struct Chain {
    _router: KilledChild,
    a: Namespace,
    b: Namespace,
    middle: Namespace,
    _hop: Namespace,
    statistics: PathBuf,
    _folder: tempfile::TempDir,
}

impl Chain {
    /// `hop_queue` has the options of `tc` for a queue discipline on the hop's interface to b.
    fn new(label: &str, hop_queue: &[&str]) -> Self {
        sweep().unwrap();
        let [a, b, middle, hop] =
            ["a", "b", "m", "h"].map(|host| Namespace::create(&format!("{label}{host}")).unwrap());
        join((&a, "a0"), (&middle, "p0"));
        join((&hop, "h0"), (&middle, "p1"));
        join((&hop, "h1"), (&b, "b0"));
        let addresses = [
            (&a, "a0", "10.9.0.1/24"),
            (&hop, "h0", "10.9.0.2/24"),
            (&hop, "h1", "10.9.1.1/24"),
            (&b, "b0", "10.9.1.2/24"),
        ];
        for (host, end, address) in addresses {
            host.ip(&["address", "add", address, "dev", end]).unwrap();
        }
        a.ip(&["route", "add", "default", "via", "10.9.0.2"]).unwrap();
        b.ip(&["route", "add", "default", "via", "10.9.1.1"]).unwrap();
        hop.within(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")).unwrap().unwrap();
        // A host that sends to the router over a veth pair must compute its checksums.
        for (host, end) in [(&a, "a0"), (&hop, "h0")] {
            host.within(|| Offloads::turn_off(end).unwrap().keep()).unwrap();
        }
        if !hop_queue.is_empty() {
            let on = ["-n", hop.name(), "qdisc", "add", "dev", "h1", "root"];
            assert!(Command::new("tc").args(on).args(hop_queue).status().unwrap().success());
        }
        let folder = tempfile::tempdir().unwrap();
        let statistics = folder.path().join("router.jsonl");
        let router = router(&middle, &statistics);
        Self { _router: router, a, b, middle, _hop: hop, statistics, _folder: folder }
    }

    /// Starts the doctor in a namespace.
    fn doctor(&self, host: &Namespace, options: &[&str]) -> KilledChild {
        let start = || {
            Command::new(CUTLINE)
                .args(["doctor", "bottleneck", "--json", "--overhead", "ip", "--duration", "5s", "--stats"])
                .arg(&self.statistics)
                .args(options)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
        };
        KilledChild(host.within(start).unwrap().unwrap())
    }

    /// Sends datagrams of 1000 B from a to b at a rate for some seconds.
    fn load(&self, bps: u64, seconds: f64) {
        let sink = self.b.within(|| UdpSocket::bind("10.9.1.2:9009").unwrap()).unwrap();
        let source = self.a.within(|| UdpSocket::bind("10.9.0.1:9009").unwrap()).unwrap();
        source.connect(sink.local_addr().unwrap()).unwrap();
        let (start, mut sent) = (Instant::now(), 0_u64);
        while start.elapsed().as_secs_f64() < seconds {
            // Late datagrams are sent at once, which keeps the rate on a busy machine.
            while (sent * 8000) as f64 / (bps as f64) < start.elapsed().as_secs_f64() {
                let _lost = source.send(&[0; 972]);
                sent += 1;
            }
            sleep(Duration::from_millis(2));
        }
    }
}

fn join((host, end): (&Namespace, &str), (other, port): (&Namespace, &str)) {
    host.ip(&["link", "add", end, "type", "veth", "peer", "name", port, "netns", other.name()]).unwrap();
    host.ip(&["link", "set", end, "up"]).unwrap();
    other.ip(&["link", "set", port, "up"]).unwrap();
}

/// Starts the router. Its queue holds 60 ms. If permitted, it has real-time priority, so that a busy machine adds no
/// bottleneck.
fn router(middle: &Namespace, statistics: &Path) -> KilledChild {
    let first = |program: &str| {
        let mut command = Command::new("chrt");
        command.args(["--fifo", "1", program]);
        command
    };
    let may = first("true").status().is_ok_and(|status| status.success());
    let mut command = if may { first(CUTLINE) } else { Command::new(CUTLINE) };
    command
        .args(["router", "--in", "p0", "--out", "p1", "--rate", "8Mbit", "--overhead", "ip"])
        .args(["--aqm", "drop-tail", "--limit", "60 packets", "--json", "--stats", "500ms"])
        .stdout(File::create(statistics).unwrap())
        .stderr(Stdio::null());
    KilledChild(middle.within(|| command.spawn()).unwrap().unwrap())
}

/// Returns the judgement that a process has printed.
fn judgement(mut doctor: KilledChild) -> Value {
    let child = &mut doctor.0;
    let (mut text, mut errors) = (String::new(), String::new());
    std::io::Read::read_to_string(&mut child.stdout.take().unwrap(), &mut text).unwrap();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut errors).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{errors}");
    let document = serde_json::from_str(&text).unwrap();
    schema::check("doctor-bottleneck", &document);
    document
}

#[test]
fn the_routers_queue_is_found_to_be_the_bottleneck() {
    if !may_make_namespaces() {
        return;
    }
    let path = Chain::new("o", &[]);
    undisturbed(|| {
        let through = path.doctor(&path.a, &["--probe", "10.9.1.2"]);
        let beside = path.doctor(&path.middle, &["--out", "p1"]);
        // Both doctors must have begun to measure before the load begins, and do not say so.
        sleep(Duration::from_millis(1500));
        path.load(12_000_000, 3.0);
        let [found, beside] = [through, beside].map(judgement);
        in_time!(found["judgement"]["place"] == "ours", "{found}");
        in_time!(found["judgement"]["confidence"] != "low", "{found}");
        in_time!(found["observed"]["path"]["answered"].as_u64().unwrap() > 10, "{found}");
        in_time!(beside["judgement"]["place"] == "ours", "{beside}");
        assert_eq!(beside["observed"]["port"]["name"], "p1", "{beside}");
        assert_eq!(
            beside["judgement"]["confidence"], "medium",
            "nothing behind the interface was looked at: {beside}"
        );
    });
}

#[test]
fn a_slower_hop_behind_the_router_is_found() {
    if !may_make_namespaces() {
        return;
    }
    let path = Chain::new("e", &["tbf", "rate", "3mbit", "burst", "16kb", "latency", "200ms"]);
    undisturbed(|| {
        let doctor = path.doctor(&path.a, &["--probe", "10.9.1.2"]);
        // The doctor must have begun to measure before the load begins, and does not say so.
        sleep(Duration::from_millis(1500));
        path.load(6_000_000, 3.0);
        let found = judgement(doctor);
        in_time!(found["judgement"]["place"] == "elsewhere", "{found}");
        in_time!(found["judgement"]["confidence"] != "low", "{found}");
    });
}
