//! SNMP beside the program whose sockets it shows: a gateway that records the values of its own sockets, during a violation, and a router
//! that has statistics of its own. Managers are programs of net-snmp: `snmpget` of both versions, `snmpwalk`, `snmpbulkwalk`,
//! `snmptable` and `snmptrapd`.
//!
//! Needs root; without it the test says so and passes.

use crate::common::call::{Bed, PATIENCE, PLAN, Plan, command};
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
/// Names of the notifications.
const NOTIFICATIONS: &str = ".1.3.6.1.4.1.8072.9999.9999.2005.0";
/// Credentials of the user, but the last one.
const USER: [&str; 12] =
    ["-v3", "-l", "authPriv", "-u", "noc", "-a", "SHA-256", "-A", "authentic password", "-x", "AES", "-X"];
/// Password by which the messages of this user are encrypted.
const PRIVACY: &str = "private password";
/// Columns of `cqosDirTable` that show all of a connection: messages, bytes, lost, late, violations, mean and longest delay.
const WHOLE: [u32; 7] = [8, 9, 10, 11, 17, 28, 32];

/// Names of these columns.
const NAMES: [&str; 7] = [
    "cqosDirReceivedMessages",
    "cqosDirReceivedBytes",
    "cqosDirLostMessages",
    "cqosDirLateMessages",
    "cqosDirViolationsBegun",
    "cqosDirDelayMean",
    "cqosDirDelayMax",
];
/// Columns of `cqosQueueTable` that stay when nothing is sent: the rate, and the frames lost with their bytes.
const KEPT: [u32; 3] = [5, 25, 26];
/// Columns of `cqosQueueTable` that rise with each message of the ends, which do not cease: frames received and sent, and their bytes.
const RISING: [u32; 4] = [7, 8, 9, 10];

/// The modules on which CUTLINE-QOS-MIB rests, as far as `snmptable` needs them to name columns: few systems have them.
const BASE_MODULES: [(&str, &str); 4] = [
    (
        "SNMPv2-SMI",
        "SNMPv2-SMI DEFINITIONS ::= BEGIN
org OBJECT IDENTIFIER ::= { iso 3 }
dod OBJECT IDENTIFIER ::= { org 6 }
internet OBJECT IDENTIFIER ::= { dod 1 }
mgmt OBJECT IDENTIFIER ::= { internet 2 }
mib-2 OBJECT IDENTIFIER ::= { mgmt 1 }
private OBJECT IDENTIFIER ::= { internet 4 }
enterprises OBJECT IDENTIFIER ::= { private 1 }
END
",
    ),
    (
        "SNMPv2-TC",
        "SNMPv2-TC DEFINITIONS ::= BEGIN
TruthValue ::= TEXTUAL-CONVENTION STATUS current DESCRIPTION \"\" SYNTAX INTEGER { true(1), false(2) }
END
",
    ),
    ("SNMPv2-CONF", "SNMPv2-CONF DEFINITIONS ::= BEGIN\nEND\n"),
    ("HCNUM-TC", include_str!("../../network/snmp/tests/modules/HCNUM-TC.txt")),
];

/// An agent with the credentials by which it is asked, and the socket of the far gateway there.
struct Agent {
    at: String,
    credentials: Vec<String>,
    socket: String,
}

impl Agent {
    /// Finds the socket that the gateway has at an address.
    fn new(at: &str, credentials: &[&str], local: &str) -> Self {
        let credentials = credentials.iter().map(|&word| word.to_owned()).collect();
        let mut agent = Self { at: at.to_owned(), credentials, socket: String::new() };
        agent.socket = agent.index(&format!("{OBJECTS}.2.1.7"), &format!("\"{local}\""));
        agent
    }

    /// Waits for the row whose value in a column contains a text, and returns its index.
    fn index(&self, column: &str, text: &str) -> String {
        let line = until(|| {
            let walked = self.ask("snmpbulkwalk", &[column]);
            let line = walked.lines().find(|line| line.contains(text));
            line.map(ToOwned::to_owned).ok_or(walked)
        });
        line.split(' ').next().unwrap().strip_prefix(column).unwrap().to_owned()
    }

    /// Returns the output of a manager about names at this agent.
    fn ask(&self, program: &str, names: &[&str]) -> String {
        let credentials: Vec<&str> = self.credentials.iter().map(String::as_str).collect();
        net_snmp(program, &[&credentials[..], &[&self.at], names].concat()).text
    }

    fn get(&self, names: &[String]) -> String {
        self.ask("snmpget", &names.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Returns columns of a row.
    fn row<const N: usize>(&self, table: u32, columns: [u32; N], index: &str) -> Result<[u64; N], String> {
        let text = self.get(&columns.map(|column| format!("{OBJECTS}.{table}.1.{column}{index}")));
        let values: Vec<u64> = text.lines().filter_map(value).collect();
        values.try_into().map_err(|_| text)
    }

    /// Returns columns of the socket's receiving direction. An interval in which nothing has arrived has no delay; then
    /// the text of the reply is the error.
    fn received<const N: usize>(&self, columns: [u32; N]) -> Result<[u64; N], String> {
        self.row(3, columns, &format!("{}.2", self.socket))
    }

    /// Returns [`WHOLE`] as `snmptable` and, the first one alone, as `snmpwalk` prints them.
    fn tabulated(&self, modules: &str) -> Result<([u64; 7], u64), String> {
        // Titles are names and indices are numbers.
        let options = ["-M", modules, "-m", "CUTLINE-QOS-MIB", "-Os", "-Ob", "-OU", "-Ci", "-Cf", "|"];
        let credentials: Vec<&str> = self.credentials.iter().map(String::as_str).collect();
        let table = ["CUTLINE-QOS-MIB::cqosDirTable"];
        let text = net_snmp("snmptable", &[&options[..], &credentials, &[&self.at], &table].concat()).text;
        let mut lines = text.lines().filter(|line| line.contains('|')).map(|line| line.split('|'));
        let head: Vec<&str> = lines.next().ok_or_else(|| text.clone())?.map(str::trim).collect();
        let is_own = |index: &str| format!(".{index}").ends_with(&format!("{}.2", self.socket));
        let row = lines.map(Iterator::collect::<Vec<_>>).find(|row| is_own(row[0].trim()));
        let row = row.ok_or_else(|| text.clone())?;
        let cell = |name: &str| {
            let place = head.iter().position(|title| *title == name)?;
            row.get(place)?.trim().parse().ok()
        };
        let cells: Option<Vec<u64>> = NAMES.into_iter().map(cell).collect();
        let cells = cells.and_then(|cells| cells.try_into().ok()).ok_or(text)?;
        let column = format!("{OBJECTS}.3.1.{}", WHOLE[0]);
        let walked = self.ask("snmpwalk", &[&column]);
        let name = format!("{column}{}.2 ", self.socket);
        let line = walked.lines().find(|line| line.starts_with(&name));
        let first = line.and_then(value).ok_or(walked)?;
        Ok((cells, first))
    }

    /// Returns the measured value of a violation under way, in thousandths of its unit, by the number of its measure.
    fn violation(&self, measure: u32) -> Option<u64> {
        let name = format!("{OBJECTS}.5.1.3{}.2.{measure}", self.socket);
        value(&self.get(&[name]))
    }

    /// Checks a queue: its counters are those that the router with this socket reports itself.
    fn has_the_counters_of(&self, socket: &str) {
        let index = self.index(&format!("{OBJECTS}.8.1.4"), "\"p0 -> p1\"");
        let kept = until(|| {
            let (kept, before) = router_statistics(socket);
            // Longer than it takes to publish a row.
            sleep(Duration::from_millis(2500));
            let seen = (self.row(8, KEPT, &index)?, self.row(8, RISING, &index)?);
            let (still, after) = router_statistics(socket);
            let is_between = (0..RISING.len()).all(|at| (before[at]..=after[at]).contains(&seen.1[at]));
            if seen.0 == kept && still == kept && is_between {
                return Ok(kept);
            }
            Err(format!("{seen:?} is not between {before:?} and {after:?} with {kept:?}, {still:?}"))
        });
        assert!(kept[0] == 5_000_000 && kept[1] > 0 && kept[2] > 0, "{kept:?}");
    }

    /// Checks the violations under way of the socket: of its delay (2) and of its loss (5).
    fn has_violations(&self, recording: &Path) {
        // The delay is a high percentile of one of the intervals.
        let delay = until(|| self.violation(2).ok_or("no violation"));
        let longest = until(|| {
            let intervals = recorded(recording, "received");
            let longest = intervals.iter().filter_map(|line| in_units(line, [("max_delay_ms", 1e3)])).max();
            longest.filter(|[longest]| *longest >= delay).ok_or((delay, longest))
        });
        assert!((100_000..=longest[0]).contains(&delay), "{delay} of at most {longest:?}");
        until(|| self.violation(5).ok_or("no violation"));
    }
}

/// Asks a router for its statistics: of the direction from `--in` to `--out`, [`KEPT`] and [`RISING`].
fn router_statistics(socket: &str) -> ([u64; 3], [u64; 4]) {
    let output = command("off", &["router", "stats", socket, "--json"]).output().unwrap();
    let statistics: Value = serde_json::from_slice(&output.stdout).unwrap();
    let forward = &statistics["forward"];
    let lost = |unit: &str| {
        let reasons = forward["dropped"].as_object().unwrap().values();
        reasons.map(|count| count[unit].as_u64().unwrap()).sum()
    };
    let at = |path: &str| forward.pointer(path).and_then(Value::as_u64).unwrap();
    let kept = [at("/rate_bps"), lost("packets"), lost("bytes")];
    (kept, ["/received/packets", "/received/bytes", "/sent/packets", "/sent/bytes"].map(at))
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

/// Writes the settings of an agent at `own`, which informs a manager at `to_own` as the user, with its secrets, and the modules
/// for `snmptable`.
fn write_files(folder: &Path, own: &str, to_own: &str) {
    let path = |name: &str| folder.join(name);
    let text = |name: &str| path(name).to_str().unwrap().to_owned();
    for (name, secret) in [("community", COMMUNITY), ("auth", USER[8]), ("privacy", PRIVACY)] {
        std::fs::write(path(name), secret).unwrap();
        std::fs::set_permissions(path(name), std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    let settings = format!(
        "listen = '{own}'\ncommunity-file = '{}'\nstate = '{}'\nagentx = '{}'\n\
         [[user]]\nname = 'noc'\nauth-file = '{}'\nprivacy-file = '{}'\n\
         [[manager]]\naddress = '{to_own}'\nuser = 'noc'\n",
        text("community"),
        text("state.toml"),
        text("agentx.sock"),
        text("auth"),
        text("privacy"),
    );
    std::fs::write(path("snmp.toml"), settings).unwrap();
    for (name, module) in BASE_MODULES {
        std::fs::create_dir_all(path("modules")).unwrap();
        std::fs::write(path("modules").join(format!("{name}.txt")), module).unwrap();
    }
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/CUTLINE-QOS-MIB.txt");
    std::fs::copy(module, path("modules").join("CUTLINE-QOS-MIB.txt")).unwrap();
}

/// Starts a manager at an address, which takes notifications of the user and of a community.
fn manager(folder: &Path, at: &str) -> NetSnmpDaemon {
    std::fs::create_dir(folder).unwrap();
    let password = USER[8];
    let allowed = format!(
        "createUser noc SHA-256 \"{password}\" AES \"{PRIVACY}\"\nauthUser log noc priv\nauthCommunity log managers\n"
    );
    let daemon = NetSnmpDaemon::start("snmptrapd", folder, &allowed, &format!("udp:{at}"));
    daemon.wait_for(&["NET-SNMP version"]);
    daemon
}

#[test]
fn managers_and_the_program_read_the_same_values() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let text = |name: &str| path(name).to_str().unwrap().to_owned();
    let [own, master, to_own, to_master] = [(); 4].map(|()| free_address().to_string());
    write_files(folder.path(), &own, &to_own);
    let managers =
        [(&to_own, "of-own"), (&to_master, "of-master")].map(|(at, name)| manager(&path(name), at));
    let _daemon = NetSnmpDaemon::start(
        "snmpd",
        folder.path(),
        &format!(
            "master agentx\nagentXSocket {}\nrocommunity {COMMUNITY}\ntrap2sink {to_master} managers\n",
            text("agentx.sock")
        ),
        &format!("udp:{master}"),
    );
    // Room for 0.16 s of what comes with the flood, which is more than the rate: the call is late, and loses some of its messages.
    let socket = text("router.sock");
    let router = ["--rate", "5Mbit", "--aqm", "drop-tail", "--limit", "100 packets", "--socket", &socket];
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
    let by_community = ["-v2c", "-c", COMMUNITY];
    let by_user = [&USER[..], &[PRIVACY]].concat();
    let agents = [(&own, &by_community[..]), (&own, &by_user), (&master, &by_community)]
        .map(|(at, credentials)| Agent::new(at, credentials, "10.9.0.2:6000"));
    // The violation of the delay that the socket receives with reaches the managers of both agents.
    let violation = format!("{}.2.2 = ", agents[0].socket);
    for manager in &managers {
        manager.wait_for(&[&format!("{NOTIFICATIONS}.1"), "\"10.9.0.2:6000\"", &violation]);
    }

    let recording = path("far.jsonl");
    let received =
        [("throughput_bps", 1.0), ("loss_percent", 1e4), ("mean_delay_ms", 1e3), ("max_delay_ms", 1e3)];
    for agent in &agents {
        agent.has_violations(&recording);
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
    // The far gateway forgets a client that is silent for long: its rows are read first.
    let modules = text("modules");
    let values = agents.each_ref().map(|agent| {
        until(|| {
            let [before, after] = [(); 2].map(|()| {
                // Longer than it takes to publish a row.
                sleep(Duration::from_millis(1500));
                agent.received(WHOLE)
            });
            let (before, after) = (before?, after?);
            let others = agent.tabulated(&modules)?;
            let is_same = before == after && others == (after, after[0]);
            if is_same { Ok(after) } else { Err(format!("{before:?}, {after:?}, {others:?}")) }
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
    assert_eq!(values, [inside; 3]);
    assert!(inside[2] > 0 && inside[4] >= 2, "{inside:?}");
    for manager in &managers {
        manager.wait_for(&[&format!("{NOTIFICATIONS}.2"), "\"10.9.0.2:6000\"", &violation]);
    }
    for agent in &agents {
        agent.has_the_counters_of(&socket);
    }
}
