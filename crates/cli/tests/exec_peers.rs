//! `cutline exec` with programs that people use: a browser, a web server, `curl`, `iperf3`. tshark reads the marks.
//!
//! `make validate-exec` installs all of them, and runs this. A test whose program is not installed says so and passes. Needs root, for a
//! network namespace.

use crate::common::exec::library;
use crate::common::may_make_namespaces;
use cutline_sys::namespace::Namespace;
use cutline_testbed::{in_time, skip, undisturbed};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// The hint of all tests, and its code point as tshark writes it.
const HINT: &str = "6";
const DSCP: &str = "23";
const WEB_PORT: &str = "8000";

/// Returns whether all these programs are installed; prints the missing ones.
fn has(programs: &[&str]) -> bool {
    let is_missing = |program: &&&str| {
        let version =
            Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        version.is_err()
    };
    match programs.iter().find(is_missing) {
        Some(program) => {
            skip(format_args!("{program} is not installed"), "make validate-exec");
            false
        }
        None => may_make_namespaces(),
    }
}

fn exec(options: &[&str], command: &[&str]) -> Command {
    let mut exec = Command::new(env!("CARGO_BIN_EXE_cutline"));
    exec.env("CUTLINE_EXEC_LIBRARY", library()).args(["exec", "--hint", HINT, "--quiet"]).args(options);
    exec.arg("--").args(command).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    exec
}

fn spawn(namespace: &Namespace, command: &mut Command) -> Child {
    namespace.within(|| command.spawn()).unwrap().unwrap()
}

fn output(namespace: &Namespace, command: &mut Command) -> Output {
    let output = namespace.within(|| command.output()).unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Capture of a namespace's loopback by tshark.
struct Shark {
    process: Child,
    file: PathBuf,
}

impl Shark {
    fn start(namespace: &Namespace, folder: &Path) -> Self {
        let file = folder.join("packets.pcap");
        let mut command = Command::new("tshark");
        command.args(["-l", "-i", "lo", "-s", "100", "-w"]).arg(&file).stderr(Stdio::piped());
        let mut process = spawn(namespace, &mut command);
        // It says when it has begun.
        let lines = BufReader::new(process.stderr.take().unwrap()).lines().map_while(Result::ok);
        let begun =
            lines.take(20).any(|line| line.contains("Capturing on") || line.contains("Capture started"));
        assert!(begun, "tshark does not capture");
        // tshark says that it captures a little before it does.
        sleep(Duration::from_millis(500));
        Self { process, file }
    }

    /// Returns the number of packets of TCP and UDP, by code point.
    fn marks(mut self) -> BTreeMap<String, usize> {
        // It writes its data in pieces.
        sleep(Duration::from_secs(1));
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        self.process.wait().unwrap();
        let fields = ["ip.dsfield.dscp", "ipv6.tclass.dscp"].map(|field| ["-e", field]).concat();
        let mut read = Command::new("tshark");
        read.arg("-r").arg(&self.file).args(["-Y", "tcp or udp", "-T", "fields"]).args(fields);
        let output = read.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut marks = BTreeMap::new();
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            *marks.entry(line.trim().to_owned()).or_default() += 1;
        }
        marks
    }
}

/// Fails unless there are so many packets, all with the mark.
#[track_caller]
fn all_are_marked(marks: &BTreeMap<String, usize>, least: usize) {
    let marked = marks.get(DSCP).copied().unwrap_or(0);
    assert!(marks.len() == 1 && marked >= least, "at least {least} packets with {DSCP}: {marks:?}");
}

/// A web server in a folder, under `cutline exec`, that ends when this is dropped.
struct Server(Child);

impl Server {
    fn start(namespace: &Namespace, folder: &Path) -> Self {
        let mut command = exec(&[], &["python3", "-m", "http.server", WEB_PORT, "--bind", "127.0.0.1"]);
        let server = Self(spawn(namespace, command.current_dir(folder)));
        let is_there = || TcpStream::connect(format!("127.0.0.1:{WEB_PORT}")).is_ok();
        let comes = (0..600).any(|_| {
            // Polls.
            sleep(Duration::from_millis(100));
            namespace.within(is_there).unwrap()
        });
        assert!(comes, "the web server answers");
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        let _ended = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ended = self.0.wait();
    }
}

#[test]
#[ignore = "programs in real time: `make validate-exec`"]
fn a_browser_and_curl_and_a_web_server_are_marked() {
    if !has(&["chromium", "curl", "python3", "tshark"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let image: Vec<u8> = (0..300_000_u32).map(|number| number as u8).collect();
    std::fs::write(folder.path().join("image.png"), &image).unwrap();
    std::fs::write(folder.path().join("index.html"), "<p>from the server</p><img src=image.png>").unwrap();
    let namespace = Namespace::create("peers").unwrap();
    let server = Server::start(&namespace, folder.path());
    let shark = Shark::start(&namespace, folder.path());
    let page = format!("http://127.0.0.1:{WEB_PORT}/");
    let profile = format!("--user-data-dir={}", folder.path().join("profile").display());
    // Root's browser has no sandbox.
    let browser = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", &profile, "--dump-dom", &page];
    let text = output(&namespace, &mut exec(&[], &browser)).stdout;
    assert!(String::from_utf8_lossy(&text).contains("from the server"));
    let fetched = output(&namespace, &mut exec(&[], &["curl", "-s", &format!("{page}image.png")])).stdout;
    assert!(fetched == image, "curl got {} B", fetched.len());
    let marks = shark.marks();
    drop(server);
    // Three connections with a page and twice an image in packets of at most 64 KB, and what begins and ends them.
    all_are_marked(&marks, 40);
}

/// The rate that iperf3's receiver has measured, bit/s, and the packets that tshark has captured.
fn iperf3(options: &[&str], rate: &str) -> (f64, BTreeMap<String, usize>) {
    let folder = tempfile::tempdir().unwrap();
    let namespace = Namespace::create("iperf").unwrap();
    let shark = Shark::start(&namespace, folder.path());
    let mut server = exec(&[], &["iperf3", "--server", "--one-off", "--forceflush"]);
    let mut server = spawn(&namespace, &mut server);
    // It prints when it listens; its later output is not needed.
    let listens = BufReader::new(server.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(listens.take(5).any(|line| line.contains("listening")), "iperf3 listens");
    // The first second is left out: the first window of TCP leaves at once.
    let client =
        [&["iperf3", "--client", "127.0.0.1", "--json", "--time", "2", "--omit", "1"], options].concat();
    let document = output(&namespace, &mut exec(&["--rate", rate], &client)).stdout;
    server.wait().unwrap();
    let document: Value = serde_json::from_slice(&document).unwrap();
    let end = &document["end"];
    let received = ["sum_received", "sum"].iter().find_map(|sum| end[sum]["bytes_per_second"].as_f64());
    (received.unwrap_or_else(|| panic!("iperf3 measures what was received: {end:#}")), shark.marks())
}

/// A sixth of the rate gives a sixth of the throughput. Every packet is marked.
fn iperf3_is_marked_and_paced(options: &[&str]) {
    if !has(&["iperf3", "tshark"]) {
        return;
    }
    undisturbed(|| {
        let [slow, fast] = ["5Mbit", "30Mbit"].map(|rate| iperf3(options, rate));
        all_are_marked(&slow.1, 50);
        all_are_marked(&fast.1, 50);
        in_time!((5.0..7.0).contains(&(fast.0 / slow.0)), "{} and {} bit/s", fast.0, slow.0);
    });
}

#[test]
#[ignore = "programs in real time: `make validate-exec`"]
fn iperf3_over_tcp_is_marked_and_paced() {
    iperf3_is_marked_and_paced(&[]);
}

#[test]
#[ignore = "programs in real time: `make validate-exec`"]
fn iperf3_over_udp_is_marked_and_paced() {
    // As fast as the socket takes it: only the rate of `cutline exec` slows it down.
    iperf3_is_marked_and_paced(&["--udp", "--bitrate", "0", "--length", "1200"]);
}
