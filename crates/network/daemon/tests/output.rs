//! Unread messages: they cost the agent nothing but the messages.
//!
//! The tests require root. Without it they print a message and pass: `sudo -E cargo test -p cutline-daemon output::`.

use crate::common::{Net, announce, eventually, hear, reserve};
use cutline_provision::DaemonClient;
use cutline_provision::protocol::Reply;
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
fn an_agent_whose_messages_nobody_reads_serves_and_ends() {
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
