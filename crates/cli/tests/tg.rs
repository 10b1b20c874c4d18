//! The traffic generator from the command line, over the loopback.
//!
//! One test sends through a router between network namespaces and requires root. Without it the test prints a message and
//! passes: `sudo -E cargo test -p cutline-cli tg::`.

use crate::common::{Lab, cutline};
use cutline_sys::namespace::Namespace;
use cutline_testbed::{KilledChild, free_address, in_time, undisturbed};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{ChildStderr, Command, Output};
use std::thread::sleep;
use std::time::Duration;

/// A running program that is killed when it is dropped.
struct Running(KilledChild);

impl Running {
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    /// Waits for the end. Returns the exit code and the output.
    fn end(mut self) -> (Option<i32>, String) {
        let mut text = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        (self.0.wait().unwrap().code(), text)
    }
}

/// Returns the first line of a program's stderr, and its open reader.
fn first_line(program: &mut Running) -> (String, BufReader<ChildStderr>) {
    let mut reader = BufReader::new(program.0.stderr.take().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    (line, reader)
}

/// Starts a receiver. Returns its address, too.
fn receiver(options: &[&str]) -> (Running, String, BufReader<ChildStderr>) {
    let all = [&["tg", "receive", "--listen", "127.0.0.1:0"], options].concat();
    let mut receiver = Running(KilledChild(cutline(&all).spawn().unwrap()));
    let (line, rest) = first_line(&mut receiver);
    let address = line.trim().strip_prefix("listening at ").unwrap_or_else(|| panic!("{line}"));
    (receiver, address.to_owned(), rest)
}

fn send(address: &str, options: &[&str]) -> Output {
    cutline(&[&["tg", "send", address], options].concat()).output().unwrap()
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(bytes)))
}

fn at<'v>(document: &'v Value, path: &str) -> &'v Value {
    document.pointer(path).unwrap_or_else(|| panic!("{path} is in {document}"))
}

#[test]
fn both_ends_report_the_same_packets() {
    undisturbed(|| {
        let (receiver, address, _rest) = receiver(&["--once", "--json"]);
        let options =
            ["--transport", "udp", "--rate", "400kbit", "--size", "500", "--flows", "5", "--hint", "6"];
        let more = ["--duration", "500ms", "--interval", "100ms", "--json"];
        let output = send(&address, &[&options[..], &more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let document = json(&output.stdout);
        let total = at(&document, "/total");
        // 100 messages per second and flow.
        let packets = total["received_packets"].as_u64().unwrap();
        in_time!((200..=255).contains(&packets), "{total}");
        assert_eq!((&total["sent_packets"], &total["lost"]), (&total["received_packets"], &Value::from(0)));
        assert_eq!(total["delay_ms"]["count"], total["received_packets"]);
        assert_eq!(at(&document, "/clock/same"), &Value::from(true));
        assert_eq!(at(&document, "/groups/0/name"), &Value::from("udp-cbr"));
        // Level 6 in pool 2: 010111, and no ECN.
        assert_eq!(at(&document, "/flows/4/received/traffic_class"), &Value::from(0b0101_1100));
        assert!(at(&document, "/total/intervals").as_array().unwrap().len() >= 5);

        let (code, text) = receiver.end();
        let other = json(text.as_bytes());
        assert_eq!(code, Some(0));
        let bytes: u64 =
            at(&other, "/flows").as_array().unwrap().iter().map(|it| it["bytes"].as_u64().unwrap()).sum();
        assert_eq!(Value::from(bytes), total["received_bytes"]);
    });
}

#[test]
fn a_plan_has_several_groups() {
    undisturbed(|| {
        let (_receiver, address, _rest) = receiver(&[]);
        let mut plan = tempfile::NamedTempFile::new().unwrap();
        plan.write_all(
            br#"
duration = "600 ms"
seed = 7

[[flow]]
name = "files"
count = 3
hint = 12
transport = { protocol = "tcp", congestion-control = "cubic" }
app = { kind = "files", size = { distribution = "exponential", mean = "20 KB" }, think-time = "20 ms" }

[[flow]]
name = "audio"
count = 2
hint = 6
start = { from = "0 s", to = "100 ms" }
transport = { protocol = "tfrc", packet-size = "160 B" }
app = { kind = "talk-spurt", rate = "64 kbit/s", size = "160 B", talk = "1 s", silence = "10 ms" }

[[flow]]
name = "nothing"
count = 0
transport = { protocol = "udp" }
app = { kind = "cbr", rate = "8 kbit/s", size = "500 B" }

[[flow]]
name = "background"
transport = { protocol = "udp" }
app = { kind = "poisson", rate = "800 kbit/s", size = "500 B" }
"#,
        )
        .unwrap();
        let path = plan.path().to_str().unwrap();
        let output = send(&address, &["--plan", path, "--json"]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let document = json(&output.stdout);
        assert_eq!(at(&document, "/seed"), &Value::from(7));
        let names: Vec<_> =
            (0..6).map(|i| at(&document, &format!("/flows/{i}/name")).as_str().unwrap()).collect();
        assert_eq!(names, ["files.1", "files.2", "files.3", "audio.1", "audio.2", "background"]);
        in_time!(at(&document, "/groups/0/response_ms/count").as_u64().unwrap() > 10, "{document}");
        in_time!(at(&document, "/groups/1/received_packets").as_u64().unwrap() > 10, "{document}");
        in_time!(at(&document, "/groups/2/received_packets").as_u64().unwrap() > 50, "{document}");
        assert_eq!(at(&document, "/flows/0/sent/tcp/max_segment"), &Value::from(1000));

        let text = send(&address, &["--plan", path, "--interval", "200ms"]).stdout;
        let text = String::from_utf8_lossy(&text);
        for expected in ["background", "response time, ms", "all", "from s", "Both ends use the same clock."]
        {
            assert!(text.contains(expected), "{expected} is in {text}");
        }
    });
}

#[test]
fn a_receiver_sends() {
    undisturbed(|| {
        let (receiver, address, _rest) = receiver(&["--once", "--json"]);
        let options =
            ["--reverse", "--transport", "udp", "--rate", "400kbit", "--size", "500", "--flows", "3"];
        let more = ["--hint", "6", "--duration", "500ms", "--interval", "100ms", "--json"];
        let output = send(&address, &[&options[..], &more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let document = json(&output.stdout);
        let total = at(&document, "/total");
        in_time!(total["received_packets"].as_u64().unwrap() > 20, "{total}");
        assert_eq!((&total["sent_packets"], &total["lost"]), (&total["received_packets"], &Value::from(0)));
        assert_eq!(at(&document, "/groups/0/direction"), "reverse");
        assert_eq!(at(&document, "/flows/2/direction"), "reverse");
        assert_eq!(at(&document, "/flows/2/received/traffic_class"), &Value::from(0b0101_1100));
        assert!(String::from_utf8_lossy(&output.stderr).contains("receiving 3 flows from"));
        let (code, text) = receiver.end();
        let sent = at(&json(text.as_bytes()), "/sent").clone();
        let bytes: u64 = sent.as_array().unwrap().iter().map(|flow| flow["bytes"].as_u64().unwrap()).sum();
        assert_eq!((code, Value::from(bytes)), (Some(0), total["received_bytes"].clone()));
    });
}

#[test]
fn both_ends_send() {
    let (_receiver, address, _rest) = receiver(&[]);
    let text = send(&address, &["--bidirectional", "--rate", "800kbit", "--duration", "300ms"]);
    assert_eq!(text.status.code(), Some(0), "{}", String::from_utf8_lossy(&text.stderr));
    let text = String::from_utf8(text.stdout).unwrap();
    for expected in ["direction", "tcp-cbr.reverse", "forward", "reverse"] {
        assert!(text.contains(expected), "{expected} is in {text}");
    }
    let mut plan = tempfile::NamedTempFile::new().unwrap();
    let flow = |name: &str, direction: &str| {
        format!(
            "[[flow]]\nname = '{name}'\ncount = 2\ndirection = '{direction}'\n\
             transport = {{ protocol = 'udp' }}\napp = {{ kind = 'cbr', rate = '400 kbit/s', size = '500 B' }}\n"
        )
    };
    plan.write_all(
        (flow("up", "forward") + &flow("down", "reverse") + &flow("call", "bidirectional")).as_bytes(),
    )
    .unwrap();
    let path = plan.path().to_str().unwrap();
    let output = send(&address, &["--plan", path, "--duration", "300ms", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let document = json(&output.stdout);
    let groups: Vec<_> = at(&document, "/groups")
        .as_array()
        .unwrap()
        .iter()
        .map(|group| (group["name"].as_str().unwrap(), group["direction"].as_str().unwrap()))
        .collect();
    let expected = [("up", "forward"), ("down", "reverse"), ("call", "forward"), ("call.reverse", "reverse")];
    assert_eq!(groups, expected);
    assert_eq!(at(&document, "/flows/7/name"), "call.reverse.2");
    for flow in at(&document, "/flows").as_array().unwrap() {
        assert_eq!(flow["sent"]["bytes"], flow["received"]["bytes"], "{flow}");
    }
}

#[test]
fn each_flow_has_a_row_and_a_series() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (_receiver, address, _rest) = receiver(&[]);
    let file = path("both.flent.gz");
    let options = ["--bidirectional", "--flows", "2", "--rate", "800kbit", "--duration", "600ms"];
    let output = send(&address, &[&options[..], &["--per-flow", "--flent", &file]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    for expected in ["tcp-cbr.2", "tcp-cbr.reverse.1", "own buffer", "network"] {
        assert!(text.contains(expected), "{expected} is in {text}");
    }
    assert!(!text.contains("from s"), "the intervals of the file are not printed: {text}");
    let zipped = std::fs::read(&file).unwrap();
    assert_eq!(zipped[..2], [0x1f, 0x8b], "gzip");
    let output = send(&address, &["--flent", &file, "--duration", "100ms"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("exists and is kept; --force"), "{output:?}");
    assert_eq!(std::fs::read(&file).unwrap(), zipped);
    let output = send(&address, &["--flent", &file, "--duration", "100ms", "--force"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_ne!(std::fs::read(&file).unwrap(), zipped);
    let output = send(&address, &["--flent", &path("x.json"), "--duration", "100ms"]);
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && why.contains("must end in .gz, such as"), "{why}");
}

#[test]
fn delay_under_load_has_a_table_a_picture_and_a_grade() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (_receiver, address, _rest) = receiver(&[]);
    let always =
        ["tg", "rrul", &address, "--idle", "500ms", "--duration", "2s", "--classes", "default,hint-6"];
    let (picture, file) = (path("rrul.svg"), path("rrul.flent.gz"));
    let output = cutline(&[&always[..], &["--plot", &picture, "--flent", &file]].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    for expected in ["hint-6", "forward", "reverse", "added ms", "Grade ", "round trips per minute"] {
        assert!(text.contains(expected), "{expected} is in {text}");
    }
    let svg = std::fs::read_to_string(&picture).unwrap();
    assert!(svg.contains("load begins") && svg.contains("hint-6"), "{svg}");
    assert!(std::fs::metadata(&file).unwrap().len() > 500);

    undisturbed(|| {
        let output = cutline(&[&always[..], &["--json"]].concat()).output().unwrap();
        let document = json(&output.stdout);
        let class = at(&document, "/classes/1");
        assert_eq!((&class["name"], &class["dscp"]), (&Value::from("hint-6"), &Value::from(0b01_0111)));
        for direction in ["forward", "reverse"] {
            // 25 probes when idle, 50 under load; TCP fills the loopback.
            in_time!(class[direction]["idle_ms"]["count"].as_u64().unwrap() > 5, "{class}");
            in_time!(class[direction]["loaded_ms"]["count"].as_u64().unwrap() > 5, "{class}");
            in_time!(class[direction]["goodput_bps"].as_f64().unwrap() > 1e6, "{class}");
        }
        in_time!(class["round_trips_per_minute"].as_f64().is_some_and(|trips| trips > 1.0), "{class}");
    });

    for (options, what) in [
        (["--classes", "EF,46"], "the code point of 46 is named twice"),
        (["--classes", "hint-99"], "hint-99"),
        (["--duration", "1s"], "must be above 1 s"),
        (["--probe-interval", "10us"], "must be 1 ms to 1 s"),
        (["--plot", "x.gif"], ".svg, .png or .pdf"),
    ] {
        let output = cutline(&[&["tg", "rrul", "127.0.0.1:9"][..], &options].concat()).output().unwrap();
        let why = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && why.contains(what), "{what} is in {why}");
    }
}

#[test]
fn invalid_options_are_refused_before_anything_is_sent() {
    let refused = |options: &[&str], what: &str| {
        let output = send("127.0.0.1:9", options);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(what), "{what} is in {message}");
    };
    refused(&["--transport", "udp"], "--rate is missing");
    refused(&["--reverse", "--bidirectional"], "cannot be used with");
    refused(&["--transport", "udp", "--rate", "8kbit", "--size", "20"], "size = 20 B: at least 32 B");
    refused(&["--transport", "udp", "--app", "bulk"], "UDP does not adapt its rate");
    refused(&["--transport", "udp", "--app", "files"], "waits for delivery, which needs TCP");
    refused(&["--transport", "direct"], "--rate is missing");
    refused(
        &["--transport", "direct", "--rate", "1Mbit", "--reverse"],
        "direction = reverse: forward: the receiver sends no frames",
    );
    refused(&["--transport", "direct", "--rate", "1Mbit", "--ecn"], "frames have no ECN");
    refused(&["--hint", "17"], "a delay hint is from 1 to 16");
    refused(&["--dscp", "EFF"], "EFF");
    refused(&["--app", "bulk", "--rate", "8kbit"], "--rate has no effect on tcp-bulk");
    refused(&["--transport", "tfrc", "--pacing", "8kbit"], "--pacing is only allowed with TCP");
    refused(&["--app", "files", "--size", "pareto:4KB"], "pareto:MINIMUM:SHAPE");
    refused(&["--trace", "/nonexistent/trace"], "/nonexistent/trace");
    refused(&["--app", "trace"], "--trace is missing");
    refused(&["--plan", "/nonexistent/plan.toml"], "cannot be read");
    let plan = |text: &str, what: &str| {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        refused(&["--plan", file.path().to_str().unwrap()], what);
    };
    plan("duration = '1 s'", "at least one [[flow]]");
    let flow = "[[flow]]\nname = 'a'\napp = { kind = 'bulk' }\ntransport = { protocol = 'tcp' }\n";
    plan(&format!("{flow}from = 'x'"), "from the sender to the receiver");
    plan(&flow.replace("'tcp'", "'tcp', sack = true"), "the kernel's TCP: remove it");
    plan(&format!("{flow}hnit = 3"), "did you mean \"hint\"?");
}

/// Starts a receiver with these options. Returns the first two lines of its messages.
fn announced(options: &[&str]) -> String {
    let all = [&["tg", "receive", "--duration", "300ms"], options].concat();
    let output = cutline(&all).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stderr).unwrap()
}

fn key_file(mode: u32) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&[b'k'; 64]).unwrap();
    std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
    file
}

#[test]
fn a_receiver_listens_at_the_loopback_by_default() {
    let port = free_address().port();
    let local = announced(&["--listen", &port.to_string()]);
    assert!(local.starts_with(&format!("listening at 127.0.0.1:{port}")), "{local}");
    assert!(local.contains("only this host can send to it: --listen ::"), "{local}");
    let explicit = announced(&["--listen", "127.0.0.1:0"]);
    assert_eq!(explicit.lines().count(), 1, "{explicit}");

    let everywhere = announced(&["--listen", "0.0.0.0:0"]);
    assert!(
        everywhere.contains("warning: every host that can reach it can start a measurement"),
        "{everywhere}"
    );
    let some = announced(&["--listen", "0.0.0.0:0", "--allow", "192.0.2.0/24"]);
    assert!(some.contains("warning: every allowed address can start a measurement"), "{some}");
    let key = key_file(0o600);
    let with_key = announced(&["--listen", "0.0.0.0:0", "--key-file", key.path().to_str().unwrap()]);
    assert!(!with_key.contains("warning"), "{with_key}");
}

#[test]
fn a_receiver_with_a_key_serves_senders_with_the_key() {
    let key = key_file(0o600);
    let path = key.path().to_str().unwrap();
    let (_receiver, address, _rest) = receiver(&["--key-file", path]);
    let udp = ["--transport", "udp", "--rate", "400kbit", "--duration", "200ms"];
    let with = send(&address, &[&udp[..], &["--key-file", path]].concat());
    assert_eq!(with.status.code(), Some(0), "{}", String::from_utf8_lossy(&with.stderr));
    let without = send(&address, &udp);
    let why = String::from_utf8_lossy(&without.stderr);
    assert!(without.status.code() == Some(1) && why.contains("the receiver requires a key"), "{why}");

    let readable = key_file(0o644);
    let path = readable.path().to_str().unwrap();
    for arguments in
        [&["tg", "send", "127.0.0.1:9", "--key-file", path][..], &["tg", "receive", "--key-file", path]]
    {
        let output = cutline(arguments).output().unwrap();
        let why = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && why.contains(&format!("run chmod 600 {path}")), "{why}");
    }
}

#[test]
fn a_receiver_bounds_flows_and_durations() {
    let (_receiver, address, _rest) = receiver(&["--max-flows", "2", "--max-duration", "1s"]);
    for (options, what) in [
        (["--flows", "3", "--duration", "1s"], "flows = 3: must be 1..2 (its --max-flows)"),
        (["--flows", "2", "--duration", "2s"], "must be at most 1 s (its --max-duration)"),
    ] {
        let output = send(&address, &options);
        let why = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && why.contains(what), "{why}");
    }
}

/// Returns whether something was measured in one of these attempts, each of which gives the ends more time, s, before it ends them: on a busy
/// machine they may have had no turn.
fn is_measured_in_time(attempt: impl FnMut(u64) -> bool) -> bool {
    [2, 10, 60].into_iter().any(attempt)
}

#[test]
fn a_receiver_that_is_killed_ends_the_sender() {
    // The sent bytes are printed nevertheless.
    assert!(is_measured_in_time(|time| {
        let (receiver, address, _rest) = receiver(&[]);
        let options = ["tg", "send", &address, "--rate", "800kbit", "--duration", "1h", "--json"];
        let mut sender = Running(KilledChild(cutline(&options).spawn().unwrap()));
        let (_, mut rest) = first_line(&mut sender);
        // Traffic flows when the receiver is killed.
        sleep(Duration::from_secs(time));
        receiver.signal(Signal::KILL);
        let (code, text) = sender.end();
        let mut error = String::new();
        rest.read_to_string(&mut error).unwrap();
        assert_eq!(code, Some(1), "{error}");
        assert!(error.contains("broke"), "{error}");
        at(&json(text.as_bytes()), "/total/sent_bytes").as_u64().unwrap() > 0
    }));
}

#[test]
fn an_interrupted_sender_prints_its_measurements() {
    assert!(is_measured_in_time(|time| {
        let (_receiver, address, _rest) = receiver(&[]);
        let options =
            ["tg", "send", &address, "--transport", "udp", "--rate", "800kbit", "--duration", "1h", "--json"];
        let mut sender = Running(KilledChild(cutline(&options).spawn().unwrap()));
        let (_, mut rest) = first_line(&mut sender);
        // Traffic flows when the sender is interrupted.
        sleep(Duration::from_secs(time));
        sender.signal(Signal::INT);
        let (code, text) = sender.end();
        let mut error = String::new();
        rest.read_to_string(&mut error).unwrap();
        assert_eq!(code, Some(1), "{error}");
        assert!(error.contains("interrupted after"), "{error}");
        let document = json(text.as_bytes());
        assert!(at(&document, "/elapsed_s").as_f64().unwrap() < 3000.0);
        at(&document, "/total/received_packets").as_u64().unwrap() > 0
    }));
}

/// Two hosts with a router between, of which the first has these rules of its firewall, and a receiver on the second; `None` where this machine
/// lets us do none of it.
fn behind(label: &str, rules: &str) -> Option<(Lab, Running, BufReader<ChildStderr>)> {
    let network = Lab::new(label, &["--rate", "20Mbit"])?;
    let Ok(set) = network.a.within(|| Command::new("nft").arg(rules).status()).unwrap() else {
        println!("left out: there is no nft on this machine; tools/setup.sh base installs it");
        return None;
    };
    assert!(set.success(), "{rules}");
    let options = ["tg", "receive", "--listen", "10.9.0.2:5203"];
    let mut receiver = Running(KilledChild(network.b.within(|| cutline(&options).spawn().unwrap()).unwrap()));
    let (line, rest) = first_line(&mut receiver);
    assert!(line.starts_with("listening"), "{line}");
    Some((network, receiver, rest))
}

/// Data sent both ways arrive both ways, over each transport.
fn both_directions_work(network: &Lab) {
    for transport in [&["--transport", "udp", "--rate", "400kbit"][..], &["--transport", "tfrc"], &[]] {
        let options = ["tg", "send", "10.9.0.2", "--bidirectional", "--duration", "1s", "--json"];
        let output =
            network.a.within(|| cutline(&[&options[..], transport].concat()).output()).unwrap().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let document = json(&output.stdout);
        for group in at(&document, "/groups").as_array().unwrap() {
            assert!(group["received_packets"].as_u64().unwrap() > 5, "{group}");
        }
    }
}

/// Drops everything that the host has not requested.
const FIREWALL: &str = "add table inet filter; \
    add chain inet filter input { type filter hook input priority 0; policy drop; }; \
    add rule inet filter input ct state established accept; \
    add rule inet filter input iif lo accept";

#[test]
fn a_receiver_sends_through_a_firewall() {
    let Some((network, _receiver, _rest)) = behind("tgfw", FIREWALL) else { return };
    both_directions_work(&network);
    let options = [
        "tg",
        "rrul",
        "10.9.0.2",
        "--idle",
        "1s",
        "--duration",
        "4s",
        "--classes",
        "default,hint-1",
        "--json",
    ];
    let output = network.a.within(|| cutline(&options).output()).unwrap().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let document = json(&output.stdout);
    for direction in ["forward", "reverse"] {
        let goodput =
            |class: u8| at(&document, &format!("/classes/{class}/{direction}/goodput_bps")).as_f64().unwrap();
        let both = goodput(0) + goodput(1);
        // The router has 20 Mbit/s in each direction, and its queue is emptied after the end.
        assert!((1e6..24e6).contains(&both), "{both} {document}");
    }
    assert!(at(&document, "/grade").is_string(), "{document}");
}

/// The sender has another address and other ports than it knows of, as behind masquerading.
#[test]
fn a_receiver_sends_through_a_translation_of_addresses() {
    let rules = "; add table ip nat; \
                 add chain ip nat out { type nat hook postrouting priority 100; }; \
                 add rule ip nat out ip saddr 10.9.0.1 meta l4proto { tcp, udp } counter snat to 10.9.0.77:40000-50000";
    let Some((network, _receiver, _rest)) = behind("tgnat", &(FIREWALL.to_owned() + rules)) else { return };
    network.a.ip(&["address", "add", "10.9.0.77/24", "dev", "a0"]).unwrap();
    both_directions_work(&network);
    let listed =
        network.a.within(|| Command::new("nft").args(["list", "chain", "ip", "nat", "out"]).output());
    let listed = String::from_utf8(listed.unwrap().unwrap().stdout).unwrap();
    assert!(listed.contains("counter packets") && !listed.contains("counter packets 0"), "{listed}");
}

#[test]
fn a_router_on_the_path_counts_the_hint() {
    let Some(mut network) = Lab::new("tg", &["--rate", "20Mbit", "--tsq"]) else { return };
    let options = ["tg", "receive", "--listen", "10.9.0.2:5203", "--once"];
    let mut receiver = Running(KilledChild(network.b.within(|| cutline(&options).spawn().unwrap()).unwrap()));
    let (line, _rest) = first_line(&mut receiver);
    assert!(line.starts_with("listening"), "{line}");
    let options = ["tg", "send", "10.9.0.2", "--transport", "udp", "--rate", "400kbit", "--size", "500"];
    let more = ["--hint", "6", "--flows", "4", "--duration", "1s", "--linger", "3s", "--json"];
    let sent = network.a.within(|| cutline(&[&options[..], &more].concat()).output().unwrap()).unwrap();
    assert_eq!(sent.status.code(), Some(0), "{}", String::from_utf8_lossy(&sent.stderr));
    let total = json(&sent.stdout)["total"].clone();
    let (_, end) = network.router.end();
    let hints = at(&end, "/forward/hints").as_array().unwrap();
    let six = hints.iter().find(|hint| hint["hint"] == 6).unwrap_or_else(|| panic!("{end}"));
    assert_eq!(six["departed"]["packets"], total["received_packets"], "{end}");
    assert!(total["received_packets"].as_u64().unwrap() > 200, "{total}");
}

/// Two hosts on one link.
#[test]
fn frames_below_ip_carry_messages_between_two_hosts() {
    if !cutline_testbed::may_make_namespaces("sudo -E cargo test -p cutline-cli tg::") {
        return;
    }
    let [a, b] = ["tgdia", "tgdib"].map(|label| Namespace::create(label).unwrap());
    let pair = format!("link add host type veth peer name host netns {}\n", b.name());
    a.ip_batch(&format!("{pair}address add 198.18.36.1/30 dev host\nlink set host up\n")).unwrap();
    b.ip_batch("address add 198.18.36.2/30 dev host\nlink set host up\n").unwrap();
    undisturbed(|| {
        let options = ["tg", "receive", "--listen", "198.18.36.2:5203", "--once"];
        let mut receiver = Running(KilledChild(b.within(|| cutline(&options).spawn().unwrap()).unwrap()));
        let (line, _rest) = first_line(&mut receiver);
        assert!(line.starts_with("listening"), "{line}");
        let options =
            ["tg", "send", "198.18.36.2", "--transport", "direct", "--rate", "10Mbit", "--size", "8192"];
        let more = ["--hint", "6", "--duration", "500ms", "--json"];
        let sent = a.within(|| cutline(&[&options[..], &more].concat()).output().unwrap()).unwrap();
        assert_eq!(sent.status.code(), Some(0), "{}", String::from_utf8_lossy(&sent.stderr));
        let document = json(&sent.stdout);
        let total = at(&document, "/total");
        // 152 messages per second, of six frames each.
        in_time!((60..=77).contains(&total["received_packets"].as_u64().unwrap()), "{total}");
        in_time!(total["lost"] == 0, "{total}");
        assert_eq!(at(&document, "/groups/0/transport"), &Value::from("direct"));
        assert_eq!(
            total["received_bytes"].as_u64().unwrap(),
            total["received_packets"].as_u64().unwrap() * 8192
        );
    });
}
