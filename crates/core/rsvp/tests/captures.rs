//! The messages of whole exchanges as captures: they are the bytes that are committed, and tshark and tcpdump read them.

use crate::common::{SECOND, World, line, line_of, session, tspec};
use cutline_rsvp::encapsulation::{Carrier, Encapsulation};
use cutline_rsvp::engine::{Datagram, EngineParams};
use cutline_rsvp::integrity::{Algorithm, IntegrityConfig, SecurityKey};
use cutline_rsvp::message::{Body, Message, MessageType};
use cutline_rsvp::object::Style;
use cutline_testbed::skip;
use cutline_units::{Duration, Rate};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The captures: name and packets.
fn captures() -> Vec<(&'static str, Vec<u8>)> {
    let integrity = |algorithm| {
        IntegrityConfig::new(vec![SecurityKey::new(7, algorithm, *b"a secret of both neighbours")])
    };
    let secured = |algorithm| {
        let mut world = line(1, 2, &EngineParams::default());
        world.set_integrity(&integrity(algorithm));
        world
    };
    let mut v6 = World::new(1);
    v6.is_v6 = true;
    let mut udp = line(1, 1, &EngineParams::default());
    let router = udp.address(1, 1);
    udp.set_udp(0, Encapsulation::Udp { router: Some(router) });
    vec![
        ("ipv4", exchange(line(1, 2, &EngineParams::default()))),
        ("ipv6", exchange(line_of(v6, 2, &EngineParams::default()))),
        ("hmac-md5", exchange(secured(Algorithm::HmacMd5))),
        ("hmac-sha-256", exchange(secured(Algorithm::HmacSha256))),
        ("udp", exchange(udp)),
        ("group", groups()),
    ]
}

/// Everything that happens to a reservation: set-up, refreshes, an error, errors about paths, the end.
fn exchange(mut world: World) -> Vec<u8> {
    world.keeps_messages = true;
    let last = world.nodes.len() - 1;
    let session = session(world.address(last, 1), 5004);
    let sender = world.send_path(0, session, tspec(6e6));
    world.run(SECOND * 3);
    world.reserve(last, session, Style::FixedFilter, &[sender], 100_000.0);
    world.run(SECOND * 100);
    world.reserve(last, session, Style::FixedFilter, &[sender], 5e6);
    world.send_path(0, cutline_rsvp::object::Session { port: 5005, ..session }, tspec(1000.0));
    world.run(SECOND * 3);
    let without_port = cutline_rsvp::object::Session { port: 0, ..session };
    let local = cutline_rsvp::engine::LocalSender {
        sender: cutline_rsvp::object::Sender::new(sender.address, 0),
        tspec: tspec(1000.0),
        interface: cutline_rsvp::engine::InterfaceId(1),
        next_hop: None,
        advertise: false,
    };
    let now = world.now;
    world.engine(0).send_path(now, without_port, &local).unwrap();
    world.collect(0);
    world.release(last, session);
    world.run(SECOND);
    world.end_path(0, session, sender);
    world.run(SECOND);
    capture(&world)
}

/// The shared styles, to a group.
fn groups() -> Vec<u8> {
    let mut world = World::new(1);
    for _ in 0..4 {
        world.add_node(EngineParams::default());
    }
    for (a, b) in [(0, 2), (1, 2), (2, 3)] {
        world.join(a, b, Rate::from_mbps(10));
    }
    world.keeps_messages = true;
    let group = IpAddr::from([239, 1, 2, 3]);
    world.groups.insert(group, vec![3]);
    for (port, style) in [(5004, Style::SharedExplicit), (5006, Style::WildcardFilter)] {
        let session = session(group, port);
        let senders = [0, 1].map(|node| world.send_path(node, session, tspec(1e5)));
        world.run(SECOND);
        let listed = if style == Style::WildcardFilter { &[][..] } else { &senders };
        world.reserve(3, session, style, listed, 1e5);
        world.run(SECOND);
        world.release(3, session);
        world.run(SECOND);
    }
    capture(&world)
}

/// A capture of the first messages of each type between two nodes, and of a bundle with the first two of all.
fn capture(world: &World) -> Vec<u8> {
    let mut counts: BTreeMap<(u8, usize, usize, Carrier), u32> = BTreeMap::new();
    let mut file = Vec::new();
    // A capture of packets that begin with the header of IP (link type 101), with times in microseconds.
    for word in [0xa1b2_c3d4_u32, 0x0002_0004, 0, 0, 65_535, 101] {
        file.extend(word.to_be_bytes());
    }
    let mut add = |at: Duration, datagram: &Datagram| {
        let packet = packet(datagram);
        let us = at.as_nanos() / 1000;
        for word in [us / 1_000_000, us % 1_000_000, packet.len() as u64, packet.len() as u64] {
            file.extend((word as u32).to_be_bytes());
        }
        file.extend(packet);
    };
    for passed in &world.passed {
        let count = counts
            .entry((passed.datagram.bytes[1], passed.from, passed.to, passed.datagram.carrier))
            .or_default();
        *count += 1;
        if *count <= 3 {
            add(passed.at.saturating_since(cutline_units::Instant::ZERO), &passed.datagram);
        }
    }
    let first = &world.passed[0].datagram;
    let messages = world.passed.iter().take(2).map(|passed| passed.datagram.bytes.clone()).collect();
    let bytes = Message::new(64, Body::Bundle(messages)).encode();
    add(
        world.now.saturating_since(cutline_units::Instant::ZERO),
        &Datagram { bytes, router_alert: false, ..first.clone() },
    );
    file
}

/// A message with its headers of IP and UDP.
fn packet(datagram: &Datagram) -> Vec<u8> {
    let mut payload = datagram.bytes.clone();
    let protocol = match datagram.carrier {
        Carrier::Raw => 46,
        Carrier::Udp(port) => {
            let length = (payload.len() + 8) as u16;
            let header = [port, port, length, 0].map(u16::to_be_bytes).concat();
            payload.splice(0..0, header);
            17
        }
    };
    let alert = datagram.router_alert;
    match (datagram.source, datagram.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let header_length = if alert { 24 } else { 20 };
            let length = (header_length + payload.len()) as u16;
            let mut header = vec![0x40 | (header_length / 4) as u8, 0xc0];
            header.extend(length.to_be_bytes());
            header.extend([0, 0, 0, 0, datagram.ttl, protocol, 0, 0]);
            header.extend(source.octets());
            header.extend(destination.octets());
            if alert {
                header.extend([148, 4, 0, 0]);
            }
            let sum: u32 = header.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
            let sum = !(((sum & 0xffff) + (sum >> 16)) as u16);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
            [header, payload].concat()
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let options: &[u8] = if alert { &[46, 0, 5, 2, 0, 1, 1, 0] } else { &[] };
            let length = (options.len() + payload.len()) as u16;
            let mut header = vec![0x6c, 0, 0, 0];
            header.extend(length.to_be_bytes());
            header.extend([if alert { 0 } else { protocol }, datagram.ttl]);
            header.extend(source.octets());
            header.extend(destination.octets());
            header.extend(options);
            [header, payload].concat()
        }
        both => panic!("{both:?} are of both versions"),
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures")
}

/// `CUTLINE_BLESS=1` writes them again.
#[test]
fn exchanges_are_byte_for_byte_those_that_are_committed() {
    for (name, bytes) in captures() {
        let path = folder().join(format!("{name}.pcap"));
        if env::var_os("CUTLINE_BLESS").is_some() {
            fs::create_dir_all(folder()).unwrap();
            fs::write(&path, &bytes).unwrap();
        }
        let committed = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(committed == bytes, "{name}: the messages are others than those that are committed");
    }
}

/// Every type of message but the integrity handshake is in the captures without keys, and that is in those with keys.
#[test]
fn the_captures_have_every_type_of_message() {
    let kinds = |world: Vec<u8>| {
        let mut kinds = Vec::new();
        let mut rest = &world[24..];
        while let Some((header, after)) = rest.split_at_checked(16) {
            let length = u32::from_be_bytes(header[8..12].try_into().unwrap()) as usize;
            let packet = &after[..length];
            let begin = 4 * usize::from(packet[0] & 15);
            kinds.push(packet[begin + 1]);
            rest = &after[length..];
        }
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    };
    let captures: BTreeMap<_, _> = captures().into_iter().collect();
    let all: Vec<u8> = MessageType::ALL.map(|kind| kind as u8).into();
    assert_eq!(kinds(captures["hmac-sha-256"].clone()), all);
}

/// tshark finds no message malformed, and nothing else to remark.
#[test]
fn tshark_reads_every_message() {
    if Command::new("tshark").arg("--version").output().is_err() {
        return skip("tshark is not installed", "make validate-rsvp");
    }
    for (name, _) in captures() {
        let path = folder().join(format!("{name}.pcap"));
        let fields = ["rsvp.msg", "_ws.malformed", "_ws.expert.message", "ip.checksum.status"];
        let mut command = Command::new("tshark");
        command.args([
            "-r",
            &path.to_string_lossy(),
            "-o",
            "ip.check_checksum:TRUE",
            "-T",
            "fields",
            "-E",
            "separator=/t",
        ]);
        command.args(["-d", "udp.port==1698,rsvp", "-d", "udp.port==1699,rsvp"]);
        command.args(fields.iter().flat_map(|field| ["-e", field]));
        let output = command.output().expect("tshark is installed");
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.lines().count() > 10, "{name}: {text}");
        for (number, line) in (1..).zip(text.lines()) {
            let values: Vec<&str> = line.split('\t').collect();
            assert!(!values[0].is_empty(), "{name}, packet {number} is not dissected: {line}");
            // The handshake has no session, which the dissector remarks on.
            let is_handshake = ["25", "26"].contains(&values[0]) && values[2] == "Unknown session type";
            assert!(
                values[1].is_empty() && (values[2].is_empty() || is_handshake),
                "{name}, packet {number}: {line}"
            );
            assert!(["", "1", "Good"].contains(&values[3]), "{name}, packet {number}: {line}");
        }
    }
}

/// tcpdump reads every message to its end. It has no names for the two messages of the handshake and their object, and does not look into RSVP over UDP.
#[test]
fn tcpdump_reads_every_message() {
    if Command::new("tcpdump").arg("--version").output().is_err() {
        return skip("tcpdump is not installed", "make validate-rsvp");
    }
    for (name, _) in captures() {
        let mut command = Command::new("tcpdump");
        command.args(["-nn", "-v", "-r"]).arg(folder().join(format!("{name}.pcap")));
        let output = command.output().expect("tcpdump is installed");
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        // A packet begins with its time, a message with its version, its objects with spaces or tabs.
        let packets = text.lines().filter(|line| line.contains("(46)")).count();
        let messages = text.lines().filter(|line| line.starts_with("\tRSVPv1 ")).count();
        assert!(
            packets > 5 && messages >= packets,
            "{name}: {messages} messages in {packets} packets:\n{text}"
        );
        for line in text.lines() {
            let is_handshake = ["unknown, type: 25 ", "unknown, type: 26 ", "Unknown Object (64) "]
                .into_iter()
                .any(|name| line.contains(name));
            let complaint =
                ["RSVPv1 unknown", "invalid", "[|", "ERROR", "Unknown Object", "bad ", "incorrect"]
                    .into_iter()
                    .find(|word| line.contains(word) && !is_handshake);
            assert_eq!(complaint, None, "{name}: {line}");
        }
    }
}
