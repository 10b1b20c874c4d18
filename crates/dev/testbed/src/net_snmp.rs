//! Programs of net-snmp for tests: managers such as `snmpget`, and the daemons `snmpd` and `snmptrapd`.

use crate::KilledChild;
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Time that an answer may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Returns an address of this host with a port that is free, of TCP and of UDP, another one with each call. It is found without a socket: a child process
/// that another test starts would have a copy of the socket, and so the port, until it executes its program.
pub fn free_address() -> SocketAddr {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    loop {
        // Below the ports that the kernel chooses (ip_local_port_range), and other ones in each process.
        let number = std::process::id().wrapping_mul(61).wrapping_add(CALLS.fetch_add(1, Ordering::Relaxed));
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 20_000 + (number % 12_000) as u16));
        if !is_port_taken(address.port()) {
            return address;
        }
    }
}

/// Returns whether a socket of this network namespace has a port.
fn is_port_taken(port: u16) -> bool {
    let end = format!(":{port:04X}");
    // Number of the line, own address, address of the peer.
    let has_port = |line: &str| line.split_whitespace().nth(1).is_some_and(|own| own.ends_with(&end));
    ["tcp", "tcp6", "udp", "udp6"].iter().any(|table| {
        let sockets = std::fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
        sockets.lines().any(has_port)
    })
}

/// Result of a program of net-snmp.
pub struct SnmpAnswer {
    /// True if it has succeeded.
    pub is_ok: bool,
    /// Its output, and then its errors.
    pub text: String,
}

/// Runs a program of net-snmp, such as `snmpget`, with names and values as numbers.
///
/// # Panics
/// If the program is not there.
pub fn net_snmp(program: &str, arguments: &[&str]) -> SnmpAnswer {
    let output = Command::new(program)
        .args(["-m", "", "-On", "-Ot", "-Oe", "-t", "20", "-r", "2"])
        .args(arguments)
        .env("SNMPCONFPATH", "/nonexistent")
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}: run tools/setup.sh"));
    let text = [output.stdout, output.stderr].concat();
    SnmpAnswer { is_ok: output.status.success(), text: String::from_utf8_lossy(&text).into_owned() }
}

/// Folder into which daemons of net-snmp are unpacked. They are not installed: a daemon that is installed runs as a service.
fn unpacked() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/snmp/usr")
}

/// Returns the folders of the libraries that belong to these daemons.
fn libraries() -> String {
    let folders = std::fs::read_dir(unpacked().join("lib")).into_iter().flatten().flatten();
    let folders: Vec<String> = folders.map(|folder| folder.path().display().to_string()).collect();
    folders.join(":")
}

/// Returns the path of a daemon of net-snmp.
fn daemon(name: &str) -> PathBuf {
    let unpacked = unpacked().join("sbin").join(name);
    if unpacked.exists() { unpacked } else { Path::new("/usr/sbin").join(name) }
}

/// A daemon of net-snmp, `snmpd` or `snmptrapd`, with the lines that it writes. It ends when this is dropped.
pub struct NetSnmpDaemon {
    _child: KilledChild,
    lines: mpsc::Receiver<String>,
}

impl NetSnmpDaemon {
    /// Starts a daemon with a file of settings, at an address such as `udp:127.0.0.1:1161`.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(name: &str, folder: &Path, settings: &str, address: &str) -> Self {
        let file = folder.join(format!("{name}.conf"));
        std::fs::write(&file, settings).unwrap();
        let program = daemon(name);
        let child = Command::new(&program)
            .args(["-f", "-Lo", "-C", "-c"])
            .arg(&file)
            .args((name == "snmptrapd").then_some("-On"))
            .arg(address)
            .env("SNMP_PERSISTENT_DIR", folder.join(name))
            .env("MIBS", "")
            .env("LD_LIBRARY_PATH", libraries())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}: run tools/setup.sh", program.display()));
        let mut child = KilledChild(child);
        let (sender, lines) = mpsc::channel();
        for output in [
            Box::new(child.stdout.take().unwrap()) as Box<dyn std::io::Read + Send>,
            Box::new(child.stderr.take().unwrap()),
        ] {
            let sender = sender.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    let _sent = sender.send(line);
                }
            });
        }
        Self { _child: child, lines }
    }

    /// Waits for a line with all of these parts, and returns it.
    ///
    /// # Panics
    /// If there is none after two minutes.
    pub fn wait_for(&self, parts: &[&str]) -> String {
        let end = Instant::now() + PATIENCE;
        let mut seen = Vec::new();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                panic!("no line with {parts:?} in {seen:#?}")
            };
            if parts.iter().all(|part| line.contains(part)) {
                return line;
            }
            seen.push(line);
        }
    }
}
