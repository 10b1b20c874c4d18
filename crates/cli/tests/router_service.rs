//! The router as a service: its file and the reload of it, its reports to its manager and to clients, and its
//! privileges.
//!
//! Needs root but for the last tests; without it they say so and pass:
//! `sudo -E cargo test -p cutline-cli router_service::`.

use crate::common::home::Home;
use crate::common::{Hosts, Lab, Router, assert_sums, packets, receive_numbers, schema, send_bursts};
use cutline_sys::Offloads;
use cutline_sys::namespace::Namespace;
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Datagrams that are sent while the router is reloaded.
const DATAGRAMS: u32 = 1500;

/// The queue of the reverse direction.
const REVERSE: &str = "{ aqm = \"drop-tail\", limit = \"500 packets\" }";

fn cutline(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cutline")).arg("router").args(arguments).output().unwrap()
}

/// Bursts wait 8 ms of every 20, and are not too much for the link; meanwhile the queue is exchanged again and again. Each
/// has room for all of them and takes any wait, so that a stalled machine makes none drop its packets. (PI's
/// reference lies far beyond the room: nearer, a backlog that comes at once would have a probability.)
#[test]
fn a_reload_under_traffic_loses_no_packet() {
    let Some(hosts) = Hosts::new("sr") else { return };
    let home = Home::new(REVERSE);
    home.describe(
        "20 Mbit/s",
        "{ aqm = \"pi\", limit = \"2000 packets\", q-ref = \"1000000 packets\", tsq = true }",
    );
    let mut lab = home.start(hosts);
    assert!(lab.is_crossed(false, 5001), "the hosts know each other");
    let [source, sink] = lab.sockets(false, 5002);
    let sink = receive_numbers(sink, DATAGRAMS);
    let source = send_bursts(source, DATAGRAMS);
    let queues = [
        ("fq-codel", "20 Mbit/s", ", target = \"10 s\", interval = \"100 s\""),
        ("drop-tail", "22 Mbit/s", ", tsq = true"),
        ("codel", "22 Mbit/s", ", target = \"10 s\", interval = \"100 s\""),
        ("pi", "20 Mbit/s", ", q-ref = \"1000000 packets\""),
    ];
    for (aqm, rate, more) in queues.into_iter().cycle().take(12) {
        home.describe(rate, &format!("{{ aqm = {aqm:?}, limit = \"2000 packets\"{more} }}"));
        lab.router.signal(Signal::HUP);
        let line = lab.router.error_line();
        assert!(line.starts_with("reloaded: routing p0 -> p1 at") && line.contains(aqm), "{line}");
        sleep(Duration::from_millis(40));
    }
    source.join().unwrap();
    let arrived = sink.join().unwrap();
    let (code, end) = lab.router.end();
    assert_eq!(arrived, (0..DATAGRAMS).collect::<Vec<_>>(), "all of them, in order; {end}");
    schema::check("router", &end);
    assert_eq!((code, packets(&end, "/reload/done"), &end["reload"]["error"]), (Some(0), 12, &Value::Null));
    assert_eq!(end["forward"]["queue"], "pi");
    assert_sums(&end, "forward");
    assert!(end["forward"]["departure_error_us"]["p99"].as_f64() > Some(0.0), "{end}");
}

#[test]
fn a_bad_file_changes_nothing() {
    let Some(hosts) = Hosts::new("sb") else { return };
    let home = Home::new(REVERSE);
    let queue = "{ aqm = \"pi\", limit = \"500 packets\" }";
    home.describe("20 Mbit/s", queue);
    let mut lab = home.start(hosts);
    let refused = |lab: &mut Lab, why: &str| {
        lab.router.signal(Signal::HUP);
        assert_eq!(lab.router.error_line(), "reload failed; keeping the previous configuration:\n");
        let line = lab.router.error_line();
        assert!(line.contains(why), "{line}");
        let status = home.ask("reload status");
        schema::check("router-socket", &status);
        assert!(status["reload"]["error"].as_str().unwrap().contains(why), "{status}");
        assert_eq!(home.ask("config")["config"]["forward"]["rate_bps"], 20_000_000);
    };
    let good = std::fs::read_to_string(home.path("r.toml")).unwrap();
    std::fs::write(home.path("r.toml"), good.replace("\"p1\"", "\"p7\"")).unwrap();
    refused(&mut lab, "key \"out\": cannot change while the router runs: restart it");
    std::fs::remove_file(home.path("r.toml")).unwrap();
    refused(&mut lab, "r.toml: cannot be read");
    home.describe("20 MB/s", queue);
    refused(&mut lab, "r.toml:5:8: key \"forward.rate\": value \"20 MB/s\" is not allowed");
    // The excerpt: margin, line, carets.
    (0..3).for_each(|_| drop(lab.router.error_line()));
    assert!(lab.is_crossed(false, 5001), "it goes on");
    home.describe("30 Mbit/s", queue);
    lab.router.signal(Signal::HUP);
    assert!(lab.router.error_line().starts_with("reloaded: routing p0 -> p1 at 30 Mbit/s"));
    let status = home.ask("reload status");
    assert_eq!((packets(&status, "/reload/done"), packets(&status, "/reload/refused")), (1, 3));
    assert_eq!(home.ask("config")["config"]["forward"]["rate_bps"], 30_000_000);
}

#[test]
fn a_reload_warns_of_a_queue_that_is_smaller_than_a_frame() {
    let Some(hosts) = Hosts::new("sw") else { return };
    let home = Home::new(REVERSE);
    home.describe("20 Mbit/s", "{ aqm = \"drop-tail\", limit = \"500 packets\" }");
    let mut lab = home.start(hosts);
    assert!(lab.is_crossed(false, 5001), "the router runs");
    home.describe("20 Mbit/s", "{ aqm = \"drop-tail\", limit = \"1000 B\" }");
    lab.router.signal(Signal::HUP);
    assert!(lab.router.error_line().starts_with("reloaded: routing p0 -> p1 at 20 Mbit/s"));
    assert_eq!(
        lab.router.error_line(),
        "p0 -> p1: the queue holds 1000 B, and a full frame has 1514 B: it drops all of them\n"
    );
}

#[test]
fn the_socket_answers_and_a_killed_routers_is_replaced() {
    let Some(hosts) = Hosts::new("ss") else { return };
    let home = Home::new(REVERSE);
    let (socket, path) = (home.text("s.sock"), home.path("s.sock"));
    let options = ["--in", "p0", "--out", "p1", "--rate", "50Mbit", "--socket", &socket];
    let router = Router::spawn(&hosts.middle, &options, &[]);
    let mut lab = hosts.with(router);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
    assert!(lab.is_crossed(true, 5001));

    let json = cutline(&["stats", &socket, "--json"]);
    let document: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert!(packets(&document, "/forward/sent/packets") > 0 && document["event"] == "stats", "{document}");
    schema::check("router", &document);
    for request in ["stats", "config", "reload status", "stat"] {
        schema::check("router-socket", &home.ask(request));
    }
    let text = String::from_utf8(cutline(&["stats", &socket]).stdout).unwrap();
    assert!(text.contains("p0 -> p1 at 50 Mbit/s through sieve") && text.contains("us (p99)"), "{text}");
    assert_eq!(home.ask("config")["config"]["forward"]["queue"]["aqm"], "sieve");
    assert_eq!(home.ask("reload status")["reload"], Value::Null, "it has no file");
    assert!(home.ask("stat")["error"].as_str().unwrap().contains("allowed are stats"));
    narrow(&socket);
    watch(&socket);

    lab.middle.ip(&["link", "add", "q0", "type", "veth", "peer", "name", "q1"]).unwrap();
    let at_other_interfaces = ["--in", "q0", "--out", "q1", "--rate", "50Mbit", "--socket", &socket];
    let swapped = ["--in", "p1", "--out", "p0", "--rate", "50Mbit"];
    for (second, what) in [
        (&options[..], "another router, process "),
        (&swapped, "has interface `p1`: end it first"),
        (&at_other_interfaces, "another process serves it"),
    ] {
        let second = lab.middle.within(|| cutline(second)).unwrap();
        let message = String::from_utf8(second.stderr).unwrap();
        assert!(second.status.code() == Some(1) && message.contains(what), "{message}");
    }
    lab.router.kill();
    assert!(path.exists(), "nobody could remove it");
    let gone = cutline(&["stats", &socket]);
    assert_eq!(gone.status.code(), Some(1));
    lab.router = Router::spawn(&lab.middle, &options, &[]);
    assert_eq!(home.ask("stats")["event"], "stats");
    assert_eq!(lab.router.end().0, Some(0));
    assert!(!path.exists(), "it goes with the router");
}

/// On a terminal no line is wider than it.
fn narrow(socket: &str) {
    let cutline = env!("CARGO_BIN_EXE_cutline");
    let command = format!("stty rows 40 cols 60; {cutline} router stats {socket}");
    let mut terminal = Command::new("script");
    terminal.args(["--quiet", "--return", "--command", &command, "/dev/null"]).env("NO_COLOR", "1");
    let output = terminal.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("below the fair share"), "{text}");
    assert!(text.lines().all(|line| line.trim_end().chars().count() <= 60), "{text}");
}

/// Documents come until the client goes, and the client goes when its output is not read.
fn watch(socket: &str) {
    let arguments = ["router", "stats", socket, "--watch", "100ms", "--json"];
    let mut client =
        Command::new(env!("CARGO_BIN_EXE_cutline")).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(client.stdout.take().unwrap()).lines();
    let times: Vec<f64> = lines
        .take(3)
        .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap()["elapsed_s"].as_f64().unwrap())
        .collect();
    assert_eq!(client.wait().unwrap().code(), Some(0));
    assert!(times.len() == 3 && times.is_sorted_by(|a, b| a < b), "{times:?}");
    let arguments = ["router", "stats", socket, "--watch", "100ms"];
    let mut client =
        Command::new(env!("CARGO_BIN_EXE_cutline")).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
    let lines: Vec<String> =
        BufReader::new(client.stdout.take().unwrap()).lines().take(4).map(Result::unwrap).collect();
    client.wait().unwrap();
    // The first lines are about everything since the start: packets have crossed.
    assert!(lines[0].contains(" ms  backlog 0 packets (0.0 ms)  dropped 0"), "{lines:?}");
    assert!(lines[0].contains("  wait 0.") && lines[2].contains("  wait "), "{lines:?}");
}

/// The size of a full frame in the queues is that of the interfaces, at the start and after a reload, unless
/// it was set.
#[test]
fn jumbo_frames_are_full_frames() {
    let Some(hosts) = Hosts::new("jf") else { return };
    let home = Home::new(REVERSE);
    for (host, name) in [(&hosts.a, "a0"), (&hosts.middle, "p0"), (&hosts.middle, "p1"), (&hosts.b, "b0")] {
        host.ip(&["link", "set", name, "mtu", "9000"]).unwrap();
    }
    home.describe("20 Mbit/s", "{ aqm = \"fq-codel\", limit = \"500 packets\" }");
    let mut router = Router::spawn(&hosts.middle, &["--config", &home.text("r.toml")], &[]);
    let parameter = |name: &str| home.ask("config")["config"]["forward"]["queue"]["parameters"][name].clone();
    assert_eq!((parameter("quantum"), parameter("mtu")), ("9014".into(), "9014".into()));
    home.describe("20 Mbit/s", "{ aqm = \"fq-codel\", limit = \"500 packets\", quantum = \"300 B\" }");
    router.signal(Signal::HUP);
    while home.ask("reload status")["reload"]["done"] != 1 {
        assert_eq!(home.ask("reload status")["reload"]["refused"], 0);
        sleep(Duration::from_millis(20));
    }
    assert_eq!((parameter("quantum"), parameter("mtu")), ("300".into(), "9014".into()));
    assert_eq!(router.end().0, Some(0));
}

/// A line of `/proc/PID/task/TID/status`, for every thread.
fn of_threads(process: u32, key: &str) -> Vec<String> {
    let folder = format!("/proc/{process}/task");
    let status = |thread: PathBuf| std::fs::read_to_string(thread.join("status")).unwrap();
    let value = |text: String| {
        let line = text.lines().find(|line| line.starts_with(key)).unwrap().to_owned();
        line.split_once(':').unwrap().1.trim().to_owned()
    };
    std::fs::read_dir(folder).unwrap().map(|thread| value(status(thread.unwrap().path()))).collect()
}

fn assert_capabilities(process: u32, expected: u64) {
    for key in ["CapEff", "CapPrm", "CapBnd"] {
        let sets = of_threads(process, key);
        assert!(sets.len() >= 3, "the router, signals, statistics: {sets:?}");
        assert!(sets.iter().all(|set| u64::from_str_radix(set, 16) == Ok(expected)), "{key}: {sets:?}");
    }
    for key in ["CapInh", "CapAmb"] {
        assert!(of_threads(process, key).iter().all(|set| set == "0000000000000000"), "{key}");
    }
    assert!(of_threads(process, "NoNewPrivs").iter().all(|set| set == "1"));
}

#[test]
fn privileges_are_given_up() {
    const NET_ADMIN: u64 = 1 << 12;
    let Some(hosts) = Hosts::new("sp") else { return };
    let home = Home::new(REVERSE);
    let socket = home.text("s.sock");
    let options = ["--in", "p0", "--out", "p1", "--rate", "50Mbit", "--socket", &socket];
    let start = |middle: &Namespace, more: &[&str]| Router::spawn(middle, &[&options, more].concat(), &[]);
    let router = start(&hosts.middle, &[]);
    let mut lab = hosts.with(router);
    assert_capabilities(lab.router.id(), 0);
    assert!(lab.is_crossed(false, 5001), "an open port takes no capability");
    lab.middle.ip(&["link", "set", "p1", "down"]).unwrap();
    lab.middle.ip(&["link", "set", "p1", "up"]).unwrap();
    assert!(lab.is_crossed(false, 5002), "nor does one that was down");
    lab.router.end();

    lab.router = start(&lab.middle, &["--fix-offloads"]);
    assert_capabilities(lab.router.id(), NET_ADMIN);
    lab.router.end();
    let offloads = lab.middle.within(|| format!("{:?}", Offloads::turn_off("p0").unwrap())).unwrap();
    assert!(!offloads.contains("were_on: []"), "they were turned on again: {offloads}");

    lab.router = start(&lab.middle, &["--user", "nobody"]);
    assert_capabilities(lab.router.id(), 0);
    let nobody = std::fs::metadata(&socket).unwrap().uid();
    assert_ne!(nobody, 0, "the socket is the user's");
    let ids = [nobody.to_string().as_str(); 4].join("\t");
    assert!(
        of_threads(lab.router.id(), "Uid").iter().all(|uid| *uid == ids),
        "real, effective, saved, file system"
    );
    assert!(of_threads(lab.router.id(), "Groups").iter().all(String::is_empty));
    assert!(lab.is_crossed(false, 5003));
    assert_eq!(lab.router.end().0, Some(0));
}

#[test]
fn a_service_manager_is_notified() {
    let Some(hosts) = Hosts::new("sm") else { return };
    let home = Home::new(REVERSE);
    home.describe("20 Mbit/s", "{ aqm = \"pi\", limit = \"500 packets\" }");
    let manager = UnixDatagram::bind(home.path("notify")).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(90))).unwrap();
    let environment = [("NOTIFY_SOCKET", home.text("notify")), ("WATCHDOG_USEC", "200000".to_owned())];
    let environment = environment.each_ref().map(|(name, value)| (*name, value.as_str()));
    let router = Router::spawn(&hosts.middle, &["--config", &home.text("r.toml")], &environment);
    let mut lab = hosts.with(router);
    // The next that says this; pings come in between.
    let hear = |what: &str| {
        let mut buffer = [0; 500];
        (0..1000).any(|_| {
            let length = manager.recv(&mut buffer).unwrap();
            std::str::from_utf8(&buffer[..length]).unwrap().contains(what)
        })
    };
    assert!(hear("READY=1\nSTATUS=p0 -> p1 at 20 Mbit/s"));
    assert!((0..3).all(|_| hear("WATCHDOG=1")));
    lab.router.signal(Signal::HUP);
    assert!(hear("RELOADING=1\nMONOTONIC_USEC=") && hear("READY=1\n") && hear("WATCHDOG=1"));
    home.describe("20 Mbot/s", "{ aqm = \"pi\", limit = \"500 packets\" }");
    lab.router.signal(Signal::HUP);
    assert!(hear("RELOADING=1\n") && hear("; its present file was refused"));
    lab.router.end();
    assert!(hear("STOPPING=1"));
}

/// As the unit starts it: another user, and the one capability.
#[test]
fn one_capability_is_enough() {
    let Some(hosts) = Hosts::new("sc") else { return };
    let set = ["--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"];
    let sets = ["--inh-caps=+net_raw", "--ambient-caps=+net_raw", "--bounding-set=-all,+net_raw"];
    let run = |program: &[&str]| {
        let command = || Command::new("setpriv").args(set).args(sets).args(program).output();
        hosts.middle.within(command).unwrap()
    };
    let binary = env!("CARGO_BIN_EXE_cutline");
    match run(&[binary, "--version"]) {
        Ok(output) if output.status.success() => {}
        other => {
            let why = format!("`setpriv` cannot run {binary} as another user here: {other:?}");
            return cutline_testbed::skip(why, "util-linux, in a folder that anybody may enter");
        }
    }
    let options = ["router", "--in", "p0", "--out", "p1", "--rate", "9Mbit", "--duration", "200ms", "--json"];
    let output = run(&[&[binary], &options[..]].concat()).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let end: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(end["event"], "end");
    schema::check("router", &end);
}

#[test]
fn a_router_is_found_without_a_path_and_scraped() {
    let Some(hosts) = Hosts::new("sm") else { return };
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    hosts.middle.ip(&["link", "set", "lo", "up"]).unwrap();
    let ask = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutline"));
        let output = command.arg("router").args(arguments).env("RUNTIME_DIRECTORY", place).output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    assert!(ask(&["stats"]).2.contains("no router answers in"));
    let options = ["--in", "p0", "--out", "p1", "--rate", "20Mbit"];
    let scraped = [&options[..], &["--metrics", "127.0.0.1:9105", "--view"]].concat();
    let mut router = Router::spawn(&hosts.middle, &scraped, &[("RUNTIME_DIRECTORY", place)]);

    let (code, text, _) = ask(&["stats"]);
    assert_eq!(code, Some(0));
    for part in [
        "p0 -> p1 at 20 Mbit/s through sieve",
        "limit 1000 packets",
        "rtt 100 ms",
        "received ",
        "waiting: 0 packets",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    let config: Value = serde_json::from_str(&ask(&["config"]).1).unwrap();
    schema::check("router-socket", &config);
    assert_eq!(config["config"]["metrics"], "127.0.0.1:9105");
    let (_, status, _) = ask(&["status"]);
    assert!(
        status.contains("p0 -> p1") && status.contains("20 Mbit/s") && status.contains("sieve"),
        "{status}"
    );

    let fetch = |request: &str| {
        let talk = || {
            let mut stream = std::net::TcpStream::connect("127.0.0.1:9105").unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let mut reply = String::new();
            stream.read_to_string(&mut reply).unwrap();
            reply
        };
        hosts.middle.within(talk).unwrap()
    };
    let reply = fetch("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    assert!(
        head.starts_with("HTTP/1.1 200 OK") && head.contains(&format!("Content-Length: {}", body.len())),
        "{head}"
    );
    assert!(
        body.contains(
            "cutline_router_rate_bytes_per_second{direction=\"forward\",link=\"p0 -> p1\",queue=\"sieve\"} 2500000"
        ),
        "{body}"
    );
    assert!(body.contains("cutline_router_sent_packets_total{"), "{body}");
    // The page of this router, and its metrics there.
    let page = |path: &str| {
        let talk = || {
            let mut stream = std::net::TcpStream::connect("127.0.0.1:9467").unwrap();
            let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:9467\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).unwrap();
            let mut reply = String::new();
            stream.read_to_string(&mut reply).unwrap();
            reply
        };
        hosts.middle.within(talk).unwrap()
    };
    assert!(page("/").contains("<!doctype html>") || page("/").contains("<!DOCTYPE html>"), "{}", page("/"));
    let rate = "cutline_router_rate_bytes_per_second{pid=";
    let has_rate = || {
        // The page has the statistics after a second.
        std::thread::sleep(std::time::Duration::from_millis(100));
        page("/metrics").contains(rate)
    };
    assert!((0..600).any(|_| has_rate()));
    let refused = ask(&["--in", "p0", "--out", "p1", "--rate", "1Mbit", "--view", "10.0.0.1:80"]);
    assert!(refused.0 == Some(2) && refused.2.contains("loopback"), "{}", refused.2);
    assert!(fetch("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    assert!(fetch("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));

    // A second one, and what a killed one leaves.
    let both = ask(&["stats"]);
    assert_eq!(both.0, Some(0));
    router.kill();
    let mut other = Router::spawn(&hosts.middle, &options, &[("RUNTIME_DIRECTORY", place)]);
    assert_eq!(ask(&["stats"]).0, Some(0), "only one answers");
    let left = std::fs::read_dir(folder.path()).unwrap().flatten();
    let sockets = left.filter(|entry| entry.path().extension().is_some_and(|end| end == "sock")).count();
    assert_eq!(sockets, 1, "the killed one's is removed");
    assert_eq!(other.end().0, Some(0));
}

fn packaging(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name)
}

#[test]
fn the_example_is_right() {
    let file = packaging("router.toml").to_str().unwrap().to_owned();
    let output = cutline(&["--config", &file, "--check"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(output.status.code(), Some(1), "this machine has no such interfaces");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("the router cannot start now: there is no interface `lan0`"), "{said}");
    assert_eq!(
        lines[0],
        "routing lan0 -> wan0 at 19 Mbit/s through sieve, reverse at 95 Mbit/s through sieve"
    );
    let json: Value =
        serde_json::from_slice(&cutline(&["--config", &file, "--check", "--json"]).stdout).unwrap();
    assert_eq!(json["forward"]["overhead"], "ethernet");

    // The recommended defaults are those of the options.
    let options = [
        "--in",
        "lan0",
        "--out",
        "wan0",
        "--rate",
        "19Mbit",
        "--reverse-rate",
        "95Mbit",
        "--check",
        "--json",
    ];
    let defaults: Value = serde_json::from_slice(&cutline(&options).stdout).unwrap();
    for direction in ["forward", "reverse"] {
        let queue = |document: &Value, key: &str| document[direction]["queue"][key].clone();
        for key in ["aqm", "parameters", "ecn"] {
            assert_eq!(queue(&json, key), queue(&defaults, key), "{direction} {key}");
        }
    }

    // The second example is right, too, and is what `up` writes.
    let text = std::fs::read_to_string(packaging("router.toml")).unwrap();
    let (_, second) = text.split_once("# --- A host that routes").unwrap();
    let second: String =
        second.lines().skip(1).map(|line| line.trim_start_matches("# ").to_owned() + "\n").collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tun.toml");
    std::fs::write(&file, &second).unwrap();
    let output = cutline(&["--config", file.to_str().unwrap(), "--check", "--json"]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&json["in"], &json["forward"]["overhead"]), (&"tun:cut0".into(), &"pppoe-ptm".into()));
    let up = [
        "up",
        "--lan",
        "lo",
        "--wan",
        "wan0",
        "--rate",
        "9.5Mbit",
        "--reverse-rate",
        "48Mbit",
        "--overhead",
        "pppoe-ptm",
    ];
    let output = cutline(&[&up[..], &["--nat", "none", "--dry-run"]].concat());
    let written = String::from_utf8(output.stdout).unwrap();
    let (_, written) = written.split_once("# router.toml\n").unwrap();
    std::fs::write(&file, format!("socket = \"/run/cutline/cut/stats.sock\"\n{written}")).unwrap();
    let output = cutline(&["--config", file.to_str().unwrap(), "--check", "--json"]);
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap(), json, "{written}\n{second}");
}

#[test]
fn the_unit_is_right() {
    let unit = std::fs::read_to_string(packaging("cutline-router@.service")).unwrap();
    let installed = "/usr/local/bin/cutline";
    assert!(unit.contains(&format!("ExecStart={installed} router --config /etc/cutline/router/%i.toml\n")));
    let home = Home::new(REVERSE);
    let here = home.path("cutline-router@.service");
    std::fs::write(&here, unit.replace(installed, env!("CARGO_BIN_EXE_cutline"))).unwrap();
    match Command::new("systemd-analyze").arg("verify").arg(&here).output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success() && !said.contains("cutline-router@"), "{said}");
        }
        Err(error) => {
            cutline_testbed::skip(format_args!("systemd-analyze cannot be run: {error}"), "install systemd");
        }
    }
}

#[test]
fn a_file_or_options_but_not_both() {
    let home = Home::new(REVERSE);
    home.describe("20 Mbit/s", "{ aqm = \"pi\", limit = \"500 packets\" }");
    let file = home.text("r.toml");
    let beside: [&[&str]; 19] = [
        &["--in", "p0"],
        &["--out", "p0"],
        &["--rate", "1Mbit"],
        &["--reverse-rate", "1Mbit"],
        &["--aqm", "pi"],
        &["--reverse-aqm", "pi"],
        &["--set", "a=1"],
        &["--reverse-set", "a=1"],
        &["--tsq"],
        &["--reverse-tsq"],
        &["--limit", "9 packets"],
        &["--overhead", "ip"],
        &["--hint", "EF=1"],
        &["--remark", "CS1=LE"],
        &["--spin"],
        &["--fix-offloads"],
        &["--force-bridge"],
        &["--socket", "/tmp/x"],
        &["--user", "nobody"],
    ];
    for options in beside {
        let output = cutline(&[&["--config", &file, "--check"], options].concat());
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        assert!(message.contains("cannot be used with") && message.contains(options[0]), "{message}");
    }
    let output = cutline(&["--config", &file, "--check", "--stats", "1s", "--duration", "1s"]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "the options are right, and the interfaces missing: {message}");
    assert!(message.contains("the router cannot start now: there is no interface `p0`"), "{message}");
    home.describe("0 bit/s", "{ aqm = \"pi\" }");
    let output = cutline(&["--config", &file, "--check"]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        message.contains("r.toml:5:8: key \"forward.rate\"")
            && message.contains("\"forward.queue.limit\" is missing"),
        "{message}"
    );
}
