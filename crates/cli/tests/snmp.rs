//! SNMP beside the program whose sockets it shows: a gateway that records the values of its own sockets, during a violation.
//!
//! Needs root; without it the test says so and passes.

use crate::common::call::{Bed, PATIENCE, PLAN, Plan};
use cutline_testbed::{NetSnmpDaemon, free_address, net_snmp};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Objects of CUTLINE-QOS-MIB.
const OBJECTS: &str = ".1.3.6.1.4.1.8072.9999.9999.2005.1";
/// Community that reads everything.
const COMMUNITY: &str = "everything";
/// Intervals in which both are compared.
const INTERVALS: usize = 4;

/// Columns of `cqosDirTable` that show the last interval: throughput, loss, mean and longest delay.
const LAST: [u32; 4] = [14, 15, 18, 22];
/// Columns of `cqosDirTable` that show all of a connection: messages, bytes, lost, late, violations, mean and longest delay.
const WHOLE: [u32; 7] = [8, 9, 10, 11, 17, 28, 32];

/// An agent, and the socket of the far gateway there.
struct Agent {
    at: String,
    socket: String,
}

impl Agent {
    /// Finds the socket that the gateway has at an address.
    fn new(at: &str, local: &str) -> Self {
        let column = format!("{OBJECTS}.2.1.7");
        let line = until(|| {
            let text = walk(at, &column);
            let line = text.lines().find(|line| line.contains(&format!("\"{local}\"")));
            line.map(ToOwned::to_owned).ok_or(text)
        });
        let name = line.split(' ').next().unwrap();
        Self { at: at.to_owned(), socket: name.strip_prefix(&column).unwrap().to_owned() }
    }

    /// Returns columns of the row of what the socket receives. An interval in which nothing has arrived has no delay; then
    /// the text of the reply is the error.
    fn received<const N: usize>(&self, columns: [u32; N]) -> Result<[u64; N], String> {
        let names = columns.map(|column| format!("{OBJECTS}.3.1.{column}{}.2", self.socket));
        let text = get(&self.at, &names);
        let values: Vec<u64> = text.lines().filter_map(value).collect();
        values.try_into().map_err(|_| text)
    }

    /// Returns the measured value of a violation under way, in thousandths of its unit, by the number of its measure.
    fn violation(&self, measure: u32) -> Option<u64> {
        let name = format!("{OBJECTS}.5.1.3{}.2.{measure}", self.socket);
        value(&get(&self.at, &[name]))
    }
}

fn get(at: &str, names: &[String]) -> String {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    net_snmp("snmpget", &[&["-v2c", "-c", COMMUNITY, at][..], &names].concat()).text
}

fn walk(at: &str, below: &str) -> String {
    net_snmp("snmpbulkwalk", &["-v2c", "-c", COMMUNITY, at, below]).text
}

/// Returns the number at the end of a line such as `.1.3 = Gauge32: 5`.
fn value(line: &str) -> Option<u64> {
    line.rsplit_once(": ")?.1.trim().parse().ok()
}

/// Tries until something is there.
fn until<T, E: std::fmt::Debug>(mut attempt: impl FnMut() -> Result<T, E>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        match attempt() {
            Ok(found) => return found,
            Err(why) => assert!(Instant::now() < end, "{why:?}"),
        }
        // Polls.
        sleep(Duration::from_millis(50));
    }
}

/// Reads the lines of a recording of this kind.
fn recorded(file: &Path, kind: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["kind"] == kind).collect()
}

/// Returns fields of a recorded line in the units of the MIB.
fn in_units<const N: usize>(line: &Value, fields: [(&str, f64); N]) -> Option<[u64; N]> {
    let values: Option<Vec<u64>> =
        fields.iter().map(|(field, factor)| Some((line[*field].as_f64()? * factor).round() as u64)).collect();
    values?.try_into().ok()
}

/// Waits until an interval of a recording has these values.
fn has<const N: usize>(recording: &Path, fields: [(&str, f64); N], values: [u64; N]) {
    until(|| {
        let intervals = recorded(recording, "received");
        let inside: Vec<_> = intervals.iter().filter_map(|line| in_units(line, fields)).collect();
        if inside.contains(&values) { Ok(()) } else { Err(format!("{values:?} is none of {inside:?}")) }
    });
}

#[test]
fn what_managers_read_is_what_the_program_reads() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let text = |name: &str| path(name).to_str().unwrap().to_owned();
    let [own, master] = [free_address(), free_address()].map(|address| address.to_string());
    std::fs::write(path("community"), COMMUNITY).unwrap();
    std::fs::set_permissions(path("community"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let settings = format!(
        "listen = '{own}'\ncommunity-file = '{}'\nstate = '{}'\nagentx = '{}'\n",
        text("community"),
        text("state.toml"),
        text("agentx.sock")
    );
    std::fs::write(path("snmp.toml"), settings).unwrap();
    let _daemon = NetSnmpDaemon::start(
        "snmpd",
        folder.path(),
        &format!("master agentx\nagentXSocket {}\nrocommunity {COMMUNITY}\n", text("agentx.sock")),
        &format!("udp:{master}"),
    );
    // Room for 0.16 s of what comes with the flood, which is more than the rate: the call is late, and loses some of its messages.
    let router = ["--rate", "5Mbit", "--aqm", "drop-tail", "--limit", "100 packets"];
    let plan = Plan {
        label: "sn",
        router: &router,
        monitor: &["--snmp", &text("snmp.toml")],
        far: &["--record", &text("far.jsonl")],
        ..PLAN
    };
    let Some(mut bed) = Bed::new(&plan) else { return };
    bed.call();
    bed.flood(5012, Duration::from_millis(1));
    let agents = [&own, &master].map(|at| Agent::new(at, "10.9.0.2:6000"));

    let recording = path("far.jsonl");
    let received =
        [("throughput_bps", 1.0), ("loss_percent", 1e4), ("mean_delay_ms", 1e3), ("max_delay_ms", 1e3)];
    for agent in &agents {
        // Violations of the delay (2) and of the loss (5). The delay is a high percentile of one of the intervals.
        let delay = until(|| agent.violation(2).ok_or("no violation"));
        let longest = until(|| {
            let intervals = recorded(&recording, "received");
            let longest = intervals.iter().filter_map(|line| in_units(line, [("max_delay_ms", 1e3)])).max();
            longest.filter(|[longest]| *longest >= delay).ok_or((delay, longest))
        });
        assert!((100_000..=longest[0]).contains(&delay), "{delay} of at most {longest:?}");
        until(|| agent.violation(5).ok_or("no violation"));
        let mut seen = Vec::new();
        while seen.len() < INTERVALS {
            let values = until(|| agent.received(LAST));
            if seen.last() == Some(&values) {
                // Polls: the next interval ends after half a second.
                sleep(Duration::from_millis(100));
                continue;
            }
            has(&recording, received, values);
            seen.push(values);
        }
    }

    bed.quiet();
    // Longer than the oldest row of a connection that has had messages.
    sleep(Duration::from_secs(11));
    let values = agents.map(|agent| {
        until(|| {
            let [before, after] = [(); 2].map(|()| {
                // Longer than it takes to publish a row.
                sleep(Duration::from_millis(1500));
                agent.received(WHOLE)
            });
            if before == after { after } else { Err(format!("{before:?}, {after:?}")) }
        })
    });
    bed.end_far();
    let close = recorded(&recording, "close").pop().unwrap();
    let whole = [
        ("received_messages", 1.0),
        ("received_bytes", 1.0),
        ("lost", 1.0),
        ("late", 1.0),
        ("violations", 1.0),
        ("mean_delay_ms", 1e3),
        ("max_delay_ms", 1e3),
    ];
    let inside = in_units(&close["delivered"]["received"], whole).unwrap();
    assert_eq!(values, [inside; 2]);
    assert!(inside[2] > 0 && inside[4] >= 2, "{inside:?}");
}
