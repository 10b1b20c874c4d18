//! `cutline qdisc` on the host that runs the tests, which need not have such queues in its kernel. `make test-vm` uses it where the kernel has them.

use crate::common::schema;

use cutline_sys::bpf::queueing_disciplines;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn qdisc(line: &str) -> Output {
    let words = line.split_whitespace();
    Command::new(env!("CARGO_BIN_EXE_cutline")).arg("qdisc").args(words).output().unwrap()
}

/// Returns the exit code and the message.
fn said(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn without_such_queues_in_the_kernel_the_router_is_named() {
    if queueing_disciplines().is_ok() {
        return;
    }
    for line in ["add dev lo --rate 10Mbit", "add lo --rate 1Gbit --aqm pi --tsq l=60ms --unshaped"] {
        let (code, message) = said(&qdisc(line));
        assert_eq!(code, Some(1), "{line}: {message}");
        assert!(message.contains("CONFIG_") && message.contains("`cutline router up`"), "{line}: {message}");
    }
    assert!(!Path::new("/sys/fs/bpf/cutline").exists());
}

#[test]
fn arguments_are_checked_before_any_system_call() {
    for (line, words) in [
        ("add dev lo", "--rate"),
        ("add dev lo --rate 1bit", "--rate"),
        ("add --rate 10Mbit", "dev INTERFACE"),
        ("add on lo --rate 10Mbit", "write `dev INTERFACE`"),
        ("add dev lo --rate 10Mbit --aqm pie --tsq", "aqm = pie"),
        ("add dev lo --rate 10Mbit --aqm pi", "law for --tsq"),
        ("add dev lo --rate 10Mbit --set rtt=1us", "rtt = 1us"),
        ("add dev lo --rate 10Mbit --overhead pppoe-atm", "overhead = pppoe-atm"),
        ("add dev lo --rate 10Mbit --limit 2000000packets", "limit = 2000000 packets"),
        ("add dev cutline-none0 --rate 10Mbit", "no interface `cutline-none0`"),
        ("change dev lo --unshaped", "--rate"),
        ("change dev lo", "no change is given"),
        ("change dev cutline-none0 --rate 10Mbit", "no interface `cutline-none0`"),
        ("show dev cutline-none0", "no interface `cutline-none0`"),
        ("del dev cutline-none0", "no interface `cutline-none0`"),
    ] {
        let (code, message) = said(&qdisc(line));
        assert_eq!(code, Some(2), "{line}: {message}");
        assert!(message.contains(words), "{line}: {message}");
    }
}

#[test]
fn an_interface_without_a_queue_is_a_failure_and_no_interface_an_empty_list() {
    let (code, message) = said(&qdisc("show dev lo"));
    assert_eq!(code, Some(1));
    assert!(message.contains("`lo` has no queue of Cutline's in the kernel"), "{message}");
    let listed = qdisc("show --json");
    assert!(listed.status.success());
    let document: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert!(document.is_array());
    schema::check("qdisc", &document);
}

#[test]
fn a_place_without_a_bpffs_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (code, message) = said(&qdisc(&format!("del dev lo --bpffs {}", folder.path().display())));
    assert_eq!(code, Some(1), "{message}");
    let reason = if queueing_disciplines().is_ok() { "is no bpffs" } else { "CONFIG_" };
    assert!(message.contains(reason), "{message}");
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

/// The monitor reads the queues by bpf(2) and netlink. A forbidden system call would end it.
#[test]
fn the_units_of_the_monitor_allow_reading_the_queues() {
    for name in ["cutlined.service", "cutline-monitor.service"] {
        let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name);
        let unit = std::fs::read_to_string(unit).unwrap();
        let allows = |key: &str, value: &str| {
            unit.lines()
                .filter_map(|line| line.strip_prefix(key))
                .any(|line| line.split(' ').any(|it| it == value))
        };
        assert!(allows("SystemCallFilter=", "bpf"), "{name}");
        assert!(allows("RestrictAddressFamilies=", "AF_NETLINK"), "{name}");
        assert!(
            !unit.contains("CAP_SYS_ADMIN") && !unit.contains("User="),
            "{name}: root reads them without it"
        );
    }
}

#[test]
fn help_has_examples_for_each_action() {
    for action in ["", "add", "change", "show", "del"] {
        let help = qdisc(&format!("{action} --help"));
        let text = String::from_utf8_lossy(&help.stdout);
        assert!(help.status.success() && text.contains("Example"), "{action}: {text}");
        assert!(text.contains("cutline qdisc"), "{action}: {text}");
    }
}

#[test]
fn the_unit_has_the_options_of_the_command() {
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/cutline-qdisc@.service");
    let unit = std::fs::read_to_string(unit).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for line in ["ExecStart=", "ExecReload=", "ExecStop=-"] {
        let command = unit.lines().find_map(|text| text.strip_prefix(line)).expect(line);
        let words = command.strip_prefix("/usr/local/bin/cutline qdisc ").expect(command);
        let words = words.replace("%I", "lo").replace("$OPTIONS", "--rate 10Mbit --mq");
        // A folder that is no bpffs: nothing happens to the host where the kernel has such queues.
        let words = format!("{words} --bpffs {}", folder.path().display());
        let (code, message) = said(&qdisc(&words));
        // Exit code 2 would be an option that the command does not have.
        assert_eq!(code, Some(1), "{words}: {message}");
    }
}

/// An interface may come after the start of the machine, and come again: a USB adapter, a modem, a tunnel.
#[test]
fn the_unit_comes_and_goes_with_its_interface() {
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/cutline-qdisc@.service");
    let unit = std::fs::read_to_string(unit).unwrap();
    for key in ["BindsTo=", "WantedBy="] {
        let values: Vec<_> = unit.lines().filter_map(|line| line.strip_prefix(key)).collect();
        assert_eq!(values, ["sys-subsystem-net-devices-%i.device"], "{key}");
    }
}
