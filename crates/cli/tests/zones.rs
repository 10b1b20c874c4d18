//! Link-local addresses, which need the interface that leads to them: `fe80::1%eth0` wherever a command takes an address.
//!
//! Needs root, for a network namespace; without it the tests say so and pass.

use crate::common::may_make_namespaces;
use cutline_sys::namespace::Namespace;
use cutline_testbed::{KilledChild, wait_for_own_addresses};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, SocketAddrV6, TcpStream, UdpSocket};
use std::process::{Child, Command, Output, Stdio};
use std::thread::spawn;
use std::time::Duration;

/// A namespace whose loopback has two link-local addresses; `None` where this machine does not let us.
fn network(name: &str) -> Option<Namespace> {
    if !may_make_namespaces() {
        return None;
    }
    let network = Namespace::create(name).unwrap();
    for address in ["fe80::1/64", "fe80::2/64"] {
        network.ip(&["-6", "addr", "add", address, "dev", "lo", "nodad"]).unwrap();
    }
    wait_for_own_addresses(&network, &["fe80::1%1", "fe80::2%1"]);
    Some(network)
}

/// A command in a namespace.
fn start(network: &Namespace, arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cutline"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    network.within(|| command.spawn()).unwrap().unwrap()
}

/// Starts a service, whose first line of stderr names the address where it listens.
fn service(network: &Namespace, arguments: &[&str]) -> (KilledChild, SocketAddr) {
    let mut process = KilledChild(start(network, arguments));
    let mut errors = BufReader::new(process.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    spawn(move || errors.read_to_end(&mut Vec::new()));
    let at = line.split_whitespace().find_map(|word| word.parse().ok());
    (process, at.unwrap_or_else(|| panic!("{line}")))
}

#[test]
fn the_generator_measures_between_link_local_addresses_over_all_transports_and_both_ways() {
    let Some(network) = network("zones-tg") else { return };
    let (_receiver, at) = service(&network, &["tg", "receive", "--listen", "[fe80::1%lo]:5203"]);
    assert_eq!(at.to_string(), "[fe80::1%1]:5203");
    for flows in [
        &["--transport", "tcp"][..],
        &["--transport", "udp", "--rate", "1Mbit", "--from", "fe80::2%lo"],
        &["--transport", "tfrc"],
        &["--reverse"],
        &["--reverse", "--transport", "tfrc", "--from", "fe80::2%lo"],
        &["--bidirectional", "--transport", "udp", "--rate", "1Mbit"],
    ] {
        for to in ["fe80::1%lo", "[fe80::1%1]:5203"] {
            let arguments = [&["tg", "send", to, "--duration", "200ms", "--json"], flows].concat();
            let Output { status, stdout, stderr } = start(&network, &arguments).wait_with_output().unwrap();
            assert!(status.success(), "{flows:?}: {}", String::from_utf8_lossy(&stderr));
            let document: serde_json::Value = serde_json::from_slice(&stdout).unwrap();
            let flows = document["flows"].as_array().unwrap();
            let arrived = |flow: &serde_json::Value| flow["received"]["packets"].as_u64().unwrap();
            assert!(!flows.is_empty() && flows.iter().all(|flow| arrived(flow) > 0), "{document}");
        }
    }
    let rrul = ["tg", "rrul", "fe80::1%lo", "--classes", "EF", "--idle", "1s", "--duration", "3s", "--json"];
    let Output { status, stderr, .. } = start(&network, &rrul).wait_with_output().unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
}

#[test]
fn a_probe_reaches_a_link_local_address() {
    let Some(network) = network("zones-doctor") else { return };
    let arguments = ["doctor", "bottleneck", "--probe", "fe80::1%lo", "--duration", "1s"];
    let Output { status, stdout, .. } = start(&network, &arguments).wait_with_output().unwrap();
    let text = String::from_utf8(stdout).unwrap();
    // Linux answers with sockets that all namespaces share, so that beside other tests a reply may be lost.
    let answered =
        text.split(" of 10 probes were answered").next().and_then(|before| before.split(' ').next_back());
    let answered: u32 = answered.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{text}"));
    assert!(status.success() && (1..=10).contains(&answered), "{text}");
}

#[test]
fn gateways_listen_at_and_connect_to_link_local_addresses() {
    let Some(network) = network("zones-gateway") else { return };
    let (echo, server) = network
        .within(|| {
            let server = std::net::TcpListener::bind("[::1]:0").unwrap();
            let echo = UdpSocket::bind("[::1]:0").unwrap();
            (echo, server)
        })
        .unwrap();
    let (of_echo, of_server) = (echo.local_addr().unwrap(), server.local_addr().unwrap());
    spawn(move || {
        let mut buffer = [0; 100];
        while let Ok((length, from)) = echo.recv_from(&mut buffer) {
            echo.send_to(&buffer[..length], from).unwrap();
        }
    });
    spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        let mut request = Vec::new();
        stream.read_to_end(&mut request).unwrap();
        stream.write_all(&request).unwrap();
    });
    let route = |listen: &str, to: &str| format!("{listen}={to}");
    for (transport, to) in [("--tcp", of_server), ("--udp", of_echo)] {
        let (_far, at) =
            service(&network, &["gateway", "far", transport, &route("[fe80::1%lo]:0", &to.to_string())]);
        let to = format!("[fe80::1%lo]:{}", at.port());
        let (_near, at) = service(&network, &["gateway", "near", transport, &route("[fe80::2%lo]:0", &to)]);
        let SocketAddr::V6(near) = at else { panic!("{at}") };
        assert_eq!((near.ip().to_string().as_str(), near.scope_id()), ("fe80::2", 1));
        let answer =
            network.within(|| if transport == "--tcp" { ask_stream(near) } else { ask_datagram(near) });
        assert_eq!(answer.unwrap(), b"hello", "{transport}");
    }
}

fn ask_stream(to: SocketAddrV6) -> Vec<u8> {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(b"hello").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}

fn ask_datagram(to: SocketAddrV6) -> Vec<u8> {
    let socket = UdpSocket::bind("[::]:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket.connect(to).unwrap();
    socket.send(b"hello").unwrap();
    let mut buffer = [0; 100];
    let length = socket.recv(&mut buffer).unwrap();
    buffer[..length].to_vec()
}

#[test]
fn a_monitor_has_its_page_at_a_link_local_address() {
    let Some(network) = network("zones-monitor") else { return };
    let folder = tempfile::tempdir().unwrap();
    let [token, publish, query] = ["token", "publish", "query"].map(|name| folder.path().join(name));
    std::fs::write(&token, "a-token-of-letters-and-dashes\n").unwrap();
    std::fs::set_permissions(&token, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let [token, publish, query] = [&token, &publish, &query].map(|path| path.to_str().unwrap());
    let arguments =
        ["monitor", "--listen", "[fe80::1%lo]:0", "--token-file", token, "--publish-socket", publish];
    let mut monitor = start(&network, &[&arguments[..], &["--socket", query]].concat());
    let mut errors = BufReader::new(monitor.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    let _monitor = KilledChild(monitor);
    let at = line.split("http://").nth(1).and_then(|rest| rest.split('/').next()?.parse().ok());
    let SocketAddr::V6(at) = at.unwrap_or_else(|| panic!("{line}")) else { panic!("{line}") };
    let bearer = "Authorization: Bearer a-token-of-letters-and-dashes";
    let host = format!("Host: [fe80::1%lo]:{}", at.port());
    let request = format!("GET /metrics HTTP/1.1\r\n{host}\r\n{bearer}\r\nConnection: close\r\n\r\n");
    let ask = || {
        let mut stream = TcpStream::connect(at).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = network.within(ask).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn an_address_without_its_interface_is_an_error_that_says_what_to_write() {
    for arguments in [
        &["tg", "send", "fe80::1"][..],
        &["tg", "send", "fe80::1%lo", "--from", "fe80::2"],
        &["tg", "receive", "--listen", "[fe80::1]:5203"],
        &["tg", "rrul", "[fe80::1]:5203"],
        &["doctor", "bottleneck", "--probe", "fe80::1"],
        &["gateway", "near", "--tcp", "8080=[fe80::1]:80"],
        &["monitor", "--listen", "[fe80::1]:9466"],
        &[
            "router",
            "--in",
            "a",
            "--out",
            "b",
            "--rate",
            "1Mbit",
            "--autorate",
            "1Mbit..2Mbit",
            "--reflector",
            "fe80::1",
        ],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_cutline")).args(arguments).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.contains("%INTERFACE, one of "), "{arguments:?}: {text}");
    }
}
