//! `cutline router --check` refuses the configurations that the start refuses, for the same reasons, and no others.
//!
//! Needs root; without it the tests say so and pass: `sudo -E cargo test -p cutline-cli router_check::`.

use crate::common::namespaces;
use cutline_sys::namespace::Namespace;
use std::process::{Command, Output};

/// A host with two pairs of virtual interfaces, a TUN and a TAP interface.
fn host(label: &str) -> Option<Namespace> {
    let [host, ..] = namespaces(label)?;
    host.ip_batch(
        "link add p0 type veth peer name p1\nlink add q0 type veth peer name q1\nlink property add dev p0 altname lan-of-the-home\n\
         link set p0 mtu 9000\nlink set p0 up\nlink set q0 up\n\
         tuntap add t0 mode tun\ntuntap add t1 mode tun\ntuntap add a0 mode tap",
    )
    .unwrap();
    Some(host)
}

fn router(host: &Namespace, arguments: &[&str]) -> Output {
    let run = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutline"));
        command.args(["router", "--rate", "5Mbit"]).args(arguments).output().unwrap()
    };
    host.within(run).unwrap()
}

/// Each obstacle is found by both, in the same words.
#[test]
fn a_check_finds_all_obstacles_of_a_router() {
    let Some(host) = host("g") else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("file"), "").unwrap();
    let (lost, file) = (path("no-folder/r.sock"), path("file"));
    let autorate = ["--in", "p0", "--out", "q0", "--autorate", "1Mbit..9Mbit", "--reflector", "192.0.2.1"];
    let fine = ["--in", "p0", "--out", "q0"];
    let obstacles: [(&[&str], &[&str], &str); 12] = [
        (&fine, &["--user", "nosuchuser"], "there is no user `nosuchuser` in /etc/passwd"),
        (&fine, &["--socket", &lost], "No such file or directory"),
        (&fine, &["--socket", &file], "the file there is not a socket"),
        (&fine, &["--metrics", "192.0.2.7:9105"], "metrics = 192.0.2.7:9105: cannot listen there"),
        (&autorate, &[], "echo requests cannot be sent to 192.0.2.1"),
        (&["--in", "tun:t0", "--out", "q0"], &[], "both must be TUN interfaces, or neither"),
        (&["--in", "tun:a0", "--out", "tun:t0"], &[], "interface `a0` is not a TUN interface"),
        (&["--in", "tun:q0", "--out", "tun:t0"], &[], "interface `q0` is not a TUN interface"),
        (&["--in", "xdp:p0", "--out", "q0"], &[], "has an MTU of 9000 B; AF_XDP allows at most"),
        (&["--in", "p0", "--out", "xdp:p0"], &[], "`p0` and `xdp:p0` are the same interface"),
        (&["--in", "p0", "--out", "lan-of-the-home"], &[], "are the same interface"),
        (&["--in", "tun:t0", "--out", "tun:t9"], &[], "there is no interface `t9`"),
    ];
    for (interfaces, more, why) in obstacles {
        let arguments = [interfaces, more].concat();
        for last in [&["--check"][..], &["--duration", "100ms"]] {
            let output = router(&host, &[&arguments[..], last].concat());
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(
                matches!(output.status.code(), Some(1 | 2)) && said.contains(why),
                "{arguments:?} {last:?}: {said}"
            );
        }
    }
    // A file says so at the line.
    let text = "in = 'p0'\nout = 'xdp:p0'\nforward = { rate = '5 Mbit/s', queue = { aqm = 'pi', limit = '9 packets' } }\n\
                reverse = { rate = '5 Mbit/s', queue = { aqm = 'pi', limit = '9 packets' } }\n";
    std::fs::write(path("r.toml"), text).unwrap();
    let run = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutline"));
        command.args(["router", "--config", &path("r.toml"), "--check"]).output().unwrap()
    };
    let output = host.within(run).unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && said.contains("it is the same interface as \"in\""), "{said}");
}

/// Routers that start pass their check, also beside one that runs.
#[test]
fn a_check_passes_where_a_router_starts_and_while_it_runs() {
    let Some(host) = host("h") else { return };
    host.ip_batch("link set q1 up\nlink set p1 up\nlink set p0 mtu 1500").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("r.sock").to_str().unwrap().to_owned();
    let started = |arguments: &[&str]| {
        let end = router(&host, &[arguments, &["--duration", "100ms"]].concat());
        assert!(end.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&end.stderr));
    };
    let checked = |arguments: &[&str]| {
        let end = router(&host, &[arguments, &["--check"]].concat());
        assert!(end.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&end.stderr));
        String::from_utf8(end.stdout).unwrap()
    };
    let packet = ["--in", "p0", "--out", "q0", "--socket", &socket, "--metrics", "127.0.0.1:9105"];
    host.ip(&["link", "set", "lo", "up"]).unwrap();
    for arguments in [&packet[..], &["--in", "tun:t0", "--out", "tun:t1"]] {
        checked(arguments);
        started(arguments);
    }
    // The folder of a unit is made with it.
    let unit = ["--in", "p0", "--out", "q0", "--socket", "/run/cutline-nosuchunit/stats.sock"];
    let said = checked(&unit);
    assert!(said.contains("the folder /run/cutline-nosuchunit of the socket does not exist"), "{said}");

    for arguments in [&packet[..], &["--in", "tun:t0", "--out", "tun:t1"]] {
        let spawn = || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_cutline"));
            command.args(["router", "--rate", "5Mbit", "--json", "--stats", "10ms"]).args(arguments);
            command.stdout(std::process::Stdio::piped()).spawn().unwrap()
        };
        let mut running = host.within(spawn).unwrap();
        // It has all when it prints its first line.
        let mut first = String::new();
        let mut output = std::io::BufReader::new(running.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut output, &mut first).unwrap();
        checked(arguments);
        running.kill().unwrap();
        running.wait().unwrap();
    }
}

/// A limit below the interface's own full frame, whatever its MTU.
#[test]
fn a_limit_is_compared_with_the_frames_of_the_interface() {
    let Some(host) = host("f") else { return };
    let warned = |input: &str, output: &str, limit: &str| {
        let end = router(&host, &["--in", input, "--out", output, "--limit", limit, "--check"]);
        assert!(end.status.success(), "{}", String::from_utf8_lossy(&end.stderr));
        let text = String::from_utf8(end.stdout).unwrap();
        text.lines().filter(|line| line.contains("drops all")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(warned("p0", "q0", "8000 B"), Vec::<String>::new(), "only frames of 1514 B pass both");
    host.ip_batch("link set q0 mtu 9000").unwrap();
    let large = "q0 -> p0: the queue holds 8000 B, and a full frame has 9014 B: it drops all of them";
    let other = "p0 -> q0: the queue holds 8000 B, and a full frame has 9014 B: it drops all of them";
    assert_eq!(warned("p0", "q0", "8000 B"), [other, large]);
    assert_eq!(warned("p0", "q0", "9014 B"), Vec::<String>::new());
    // A TUN interface with small packets.
    host.ip_batch("link set t0 mtu 1280\nlink set t1 mtu 1280").unwrap();
    assert_eq!(warned("tun:t0", "tun:t1", "1294 B"), Vec::<String>::new());
    assert_eq!(warned("tun:t0", "tun:t1", "1293 B").len(), 2);
}
