//! Unread messages: they cost the agent nothing but the messages.
//!
//! The tests require root. Without it they print a message and pass: `sudo -E cargo test -p cutline-daemon output::`.

use crate::common::{Net, announce, eventually, hear, reserve};
use cutline_provision::DaemonClient;
use cutline_provision::protocol::Reply;
use cutline_sys::namespace::Namespace;
use cutline_testbed::outputs::{full_pipe, terminated};
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Command, Stdio};

const COMMAND: &str = "sudo -E cargo test -p cutline-daemon output::";

/// Starts a node's agent with this standard error.
fn start(net: &mut Net, node: &str, errors: Stdio) {
    let file = net.describe(node);
    let child = Command::new("ip")
        .args(["netns", "exec", net.node(node).name(), env!("CARGO_BIN_EXE_cutlined"), "--config"])
        .arg(file)
        .stderr(errors)
        .spawn()
        .unwrap();
    net.agents[Net::at(node)] = Some(child);
    let socket = net.socket(node);
    eventually("the agent answers", || DaemonClient::connect(&socket).is_ok());
}

#[test]
fn an_agent_with_unread_messages_serves_and_ends() {
    let Some(mut net) = Net::new("out", COMMAND) else { return };
    for node in ["a", "r2", "b"] {
        net.start(node);
    }
    let (_reader, writer) = full_pipe();
    start(&mut net, "r1", writer.into());
    let pid = Pid::from_child(net.agents[Net::at("r1")].as_ref().unwrap());
    // Reloads and an interface whose address comes and goes are reported: more than the queue has room for.
    for round in 0..50 {
        kill_process(pid, Signal::HUP).unwrap();
        net.node("r1").ip_batch("address del 10.1.3.1/24 dev south").unwrap();
        let address = |net: &Net| net.status("r1").interfaces[2].address;
        eventually("it sees that the address has gone", || address(&net).is_none());
        net.node("r1").ip_batch("address add 10.1.3.1/24 dev south").unwrap();
        eventually("it sees that the address is back", || address(&net).is_some());
        if round % 10 == 0 {
            let (mut sender, mut receiver) = (net.client("a"), net.client("b"));
            sender.send(&announce(1, 5000, 1_000_000)).unwrap();
            receiver.send(&reserve(2, 5000, 1_000_000)).unwrap();
            hear(&mut receiver, |reply| matches!(reply, Reply::Confirmed { id: 2, .. }));
        }
    }
    assert!(net.status("r1").dropped_output > 0);
    let status = terminated(net.agents[Net::at("r1")].as_mut().unwrap()).expect("SIGTERM ends it");
    assert_eq!(status.code(), Some(0));
    assert!(!net.tc("r1", "qdisc", "east").contains("htb"), "all is removed");
}

/// A reload warns of the same as the start, once.
#[test]
fn a_reload_has_the_warnings_of_the_start() {
    let Some(mut net) = Net::new("wrn", COMMAND) else { return };
    let (keys, log) = (net.folder.path().join("keys"), net.folder.path().join("log"));
    let key = "[[key]]\nid = 1\nalgorithm = 'hmac-md5'\nsecret = '00112233445566778899aabbccddeeff'\n";
    std::fs::write(&keys, key).unwrap();
    std::fs::set_permissions(&keys, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let keyed = format!("rate = '10 Mbit/s'\nshare = 0.5\ncontrol = 'none'\nkeys = '{}'", keys.display());
    net.others.insert(("r1", "west"), keyed);
    start(&mut net, "r1", std::fs::File::create(&log).unwrap().into());
    let messages = |part: &str| std::fs::read_to_string(&log).unwrap().matches(part).count();
    let warning = "warning: interface.keys: west authenticate";
    eventually("the start warns", || messages(warning) == 1);
    for reloads in 1..=2 {
        kill_process(net.process("r1"), Signal::HUP).unwrap();
        eventually("it has reloaded its file", || messages("reloaded: ") == reloads);
        assert_eq!(messages(warning), 1 + reloads, "a warning for each reload");
    }
}

/// A full disk is no reason to end, either.
#[test]
fn an_agent_whose_messages_cannot_be_written_serves_and_ends() {
    let Some(mut net) = Net::new("ouf", COMMAND) else { return };
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    start(&mut net, "a", full.into());
    let pid = Pid::from_child(net.agents[Net::at("a")].as_ref().unwrap());
    kill_process(pid, Signal::HUP).unwrap();
    eventually("it is counted", || net.status("a").dropped_output >= 2);
    let status = terminated(net.agents[Net::at("a")].as_mut().unwrap()).expect("SIGTERM ends it");
    assert_eq!(status.code(), Some(0));
}

/// A problem of the file is shown with its place, on lines of their own. A text from outside ends no line.
#[test]
fn problems_of_the_file_have_lines_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a\nb.toml");
    std::fs::write(&file, "[[interface]]\nname = 'lo'\nrate = '8 kbit/s'\nshare = '150 %'\n").unwrap();
    let mut check = Command::new(env!("CARGO_BIN_EXE_cutlined"));
    let output = check.args(["--check", "--config"]).arg(&file).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("cutlined: ") && lines[0].contains(r"a\nb.toml:3:8: key"), "{said}");
    assert_eq!(lines[1..4], ["     |", "   3 | rate = '8 kbit/s'", "     |        ^^^^^^^^^^"], "{said}");
    assert!(lines[5].starts_with("  /") && lines[5].contains(r"a\nb.toml:4:9: key"), "{said}");
    assert!(lines[1..].iter().all(|line| line.is_empty() || line.starts_with("  ")), "{said}");
}

/// Loopback has packets of 64 KiB, which a hundredth of a low rate does not hold: the start would refuse it.
#[test]
fn a_rate_is_checked_against_the_packets_of_the_interface() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cutlined.toml");
    let check = |rate: &str| {
        std::fs::write(&file, format!("[[interface]]\nname = 'lo'\nrate = '{rate}'\n")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutlined"));
        let output = command.args(["--check", "--config"]).arg(&file).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = check("64 kbit/s");
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("rate = 64 kbit/s") && said.contains("on `lo`, whose packets have up to"),
        "{said}"
    );
    let (code, said) = check("200 kbit/s");
    assert_eq!(code, Some(0), "{said}");
}

/// The start is refused where another program has set a discipline, or where the socket has no folder, and so does the check.
#[test]
fn a_check_finds_the_obstacles_of_an_agent() {
    if !cutline_testbed::may_make_namespaces(COMMAND) {
        return;
    }
    let host = Namespace::create("chk").unwrap();
    let discipline = |name: &str| {
        host.ip_batch(&format!("link add {name} type veth peer name {name}p\naddress add 10.7.1.1/24 dev {name}\nlink set {name} up")).unwrap();
        let run = || {
            let mut command = Command::new("tc");
            command.args(["qdisc", "add", "dev", name, "root", "tbf"]);
            command.args(["rate", "1mbit", "burst", "10k", "latency", "50ms"]).status().unwrap()
        };
        assert!(host.within(run).unwrap().success());
    };
    discipline("foreign0");
    host.ip_batch(
        "link add free0 type veth peer name free1\naddress add 10.7.2.1/24 dev free0\nlink set free0 up",
    )
    .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let file = path("cutlined.toml");
    let text = |name: &str, socket: &str, more: &str| {
        format!("socket = '{socket}'\n[[interface]]\nname = '{name}'\nrate = '10 Mbit/s'\n{more}")
    };
    let run = |text: &str, more: &[&str]| {
        std::fs::write(&file, text).unwrap();
        let run = || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_cutlined"));
            command.args(["--config", &file]).args(more).output().unwrap()
        };
        let output = host.within(run).unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let foreign = text("foreign0", &path("c.sock"), "");
    let lost = text("free0", &path("no-folder/c.sock"), "");
    for (text, why) in [(&foreign, "tbf"), (&lost, "No such file or directory")] {
        for more in [&["--check"][..], &[]] {
            let (code, said) = run(text, more);
            assert!(code == Some(1) && said.contains(why), "{more:?}: {code:?} {said}");
        }
    }
    // An interface without an address is not taken over yet.
    host.ip_batch("address flush dev foreign0").unwrap();
    assert_eq!(run(&foreign, &["--check"]), (Some(0), String::new()));
    host.ip_batch("address add 10.7.1.1/24 dev foreign0").unwrap();
    // A discipline that may be replaced, or does not matter, and the folder that a unit makes.
    for fine in [
        text("free0", &path("c.sock"), ""),
        text("foreign0", &path("c.sock"), "replace = true\n"),
        text("foreign0", &path("c.sock"), "control = 'none'\n"),
        text("nosuch0", "/run/cutline-nosuchunit/c.sock", ""),
    ] {
        assert_eq!(run(&fine, &["--check"]), (Some(0), String::new()), "{fine}");
    }
    // An agent that runs is no obstacle: its file is checked before it is reloaded.
    let running = text("free0", &path("c.sock"), "");
    std::fs::write(&file, &running).unwrap();
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutlined"));
        command.args(["--config", &file]).stderr(std::process::Stdio::null()).spawn().unwrap()
    };
    let mut agent = host.within(start).unwrap();
    eventually("it serves", || DaemonClient::connect(path("c.sock").as_ref()).is_ok());
    assert_eq!(run(&running, &["--check"]), (Some(0), String::new()));
    assert!(terminated(&mut agent).expect("SIGTERM ends it").success());
}
