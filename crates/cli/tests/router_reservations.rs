//! Reserved flows through a router at work: the reservations of a client of its socket have priority, and only for as
//! long as the client is there.
//!
//! Needs root; without it the tests say so and pass: `sudo -E cargo test -p cutline-cli router_reservations::`.

use crate::common::home::Home;
use crate::common::{Arrivals, Hosts, Lab, assert_sums, packets, receive, schema, send};
use cutline_flow::{FlowSelector, TrafficSpec};
use cutline_router_service::{ReservationClient, RouterDirection};
use cutline_testbed::{in_time, undisturbed};
use cutline_units::{Bytes, Rate};
use rustix::process::Signal;
use serde_json::Value;
use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

const FOR_LONG: Duration = Duration::from_secs(4);
/// The queue behind which a flood waits for 60 ms and more.
const QUEUE: &str = "{ aqm = \"pi\", limit = \"100 packets\", q-ref = \"20 packets\", tsq = true }";

/// A router at 1.5 Mbit/s, with a line of its file about reservations.
fn start(label: &str, reservations: &str) -> Option<(Home, Lab)> {
    let hosts = Hosts::new(label)?;
    let home = Home::new(QUEUE);
    let text = format!(
        "in = \"p0\"\nout = \"p1\"\noverhead = \"ip\"\nsocket = {:?}\n{reservations}\n[forward]\nrate = \"1.5 Mbit/s\"\n\
         queue = {QUEUE}\n[reverse]\nrate = \"50 Mbit/s\"\nqueue = {QUEUE}\n",
        home.text("s.sock"),
    );
    fs::write(home.path("r.toml"), text).unwrap();
    let lab = home.start(hosts);
    assert!(lab.is_crossed(false, 5001), "the hosts know each other");
    Some((home, lab))
}

fn client(home: &Home) -> ReservationClient {
    ReservationClient::connect(&home.path("s.sock"), cutline_units::Duration::from_secs(60)).unwrap()
}

/// 640 kbit/s, and a bucket for a sender that stands still for 0.4 s.
const BUCKET: TrafficSpec = TrafficSpec {
    rate: Rate::from_kbps(640),
    bucket: Bytes::new(32_000),
    peak: TrafficSpec::UNKNOWN_PEAK,
    min_policed: Bytes::new(64),
    max_packet: Bytes::new(1500),
};

fn to_port(port: u16) -> FlowSelector {
    FlowSelector {
        protocol: Some(17),
        destination_port: Some(port),
        source: Some("10.9.0.1".parse().unwrap()),
        source_port: Some(port),
        ..FlowSelector::to("10.9.0.2".parse().unwrap())
    }
}

/// Packets of 1000 B, one each `every`, to port 5004, under a flood of 4 Mbit/s.
fn under_flood(lab: &Lab, every: Duration) -> Arrivals {
    let [[source, sink], [flood, drain]] = [5004, 5005].map(|port| lab.sockets(false, port));
    let (arrivals, drained) = (receive(sink), receive(drain));
    let senders = [send(flood, 1472, Duration::from_millis(3), FOR_LONG), send(source, 972, every, FOR_LONG)];
    for sender in senders {
        sender.join().unwrap();
    }
    drained.join().unwrap();
    arrivals.join().unwrap()
}

fn reserved(statistics: &Value, what: &str) -> u64 {
    packets(statistics, &format!("/forward/reserved/{what}"))
}

// RFC 2211 section 4: little or no loss, little or no queueing delay, whatever else comes.
#[test]
fn a_reserved_flow_loses_nothing_and_hardly_waits_under_a_flood() {
    undisturbed(|| {
        let Some((home, mut lab)) = start("ra", "reservations = \"allowed\"") else { return };
        let mut client = client(&home);
        assert_eq!(client.interfaces().unwrap(), ["p0", "p1"]);
        client.reserve(RouterDirection::Forward, 1, BUCKET, &[to_port(5004)]).unwrap();
        let mut arrivals = under_flood(&lab, Duration::from_micros(12_500));
        let own = client.list().unwrap().remove(0);
        let document = serde_json::to_value(&own).unwrap();
        schema::check("router-socket", &document);
        schema::check("router-socket", &home.ask("config"));
        assert!(own.own && own.excess.packets == 0 && own.dropped.packets == 0, "{own:?}");
        assert!(own.conforming.packets > 200, "{own:?}");
        assert_eq!(arrivals.delays_ms.len() as u64, own.conforming.packets, "each of them has arrived");
        let (code, end) = lab.router.end();
        schema::check("router", &end);
        assert_sums(&end, "forward");
        assert_eq!((code, reserved(&end, "conforming/packets")), (Some(0), own.conforming.packets));
        let at = |path: &str| end.pointer(path).and_then(Value::as_f64).unwrap();
        // One frame and the bucket at the link's rate.
        let bound = 8e3 * (32_000.0 + 1500.0) / 1.5e6 + at("/forward/slipped_ms");
        assert!(at("/forward/reserved/longest_wait_ms") <= bound, "{end}");
        let lost = packets(&end, "/forward/dropped/early/packets")
            + packets(&end, "/forward/dropped/overflow/packets");
        assert!(lost > 500, "the flood is too much for the link: {end}");
        in_time!(arrivals.median_delay_ms() < 30.0, "{} ms", arrivals.median_delay_ms());
    });
}

// RFC 2211 section 7: what exceeds the bucket is forwarded on a best-effort basis.
#[test]
fn packets_above_the_reservation_are_best_effort() {
    undisturbed(|| {
        let Some((home, mut lab)) = start("rb", "reservations = \"allowed\"") else { return };
        let mut client = client(&home);
        client.reserve(RouterDirection::Forward, 1, BUCKET, &[to_port(5004)]).unwrap();
        let arrivals = under_flood(&lab, Duration::from_micros(6250));
        let own = client.list().unwrap().remove(0);
        let arrived = arrivals.delays_ms.len() as u64;
        assert!(arrived >= own.conforming.packets, "{arrived} of {own:?}");
        assert_sums(&lab.router.end().1, "forward");
        // At most 4.1 s at 640 kbit/s, and the bucket; as much again was sent.
        assert!(own.conforming.packets <= 370, "{own:?}");
        in_time!(own.conforming.packets >= 250 && own.excess.packets > 200, "{own:?}");
        let sent = own.conforming.packets + own.excess.packets;
        in_time!(arrived < sent, "the queue drops excess: {arrived} of {own:?}");
    });
}

/// A reload keeps the reservations. When the client is killed, they are removed within a second.
#[test]
fn reservations_of_a_killed_client_are_removed() {
    let Some((home, mut lab)) = start("rc", "reservations = \"allowed\"\nreservation-limit = 1") else {
        return;
    };
    let script = "import socket, sys, time\ns = socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n\
                  s.sendall(sys.stdin.readline().encode())\nprint(s.makefile().readline(), end='', flush=True)\ntime.sleep(600)\n";
    let mut command = Command::new("python3");
    command.args(["-c", script, &home.text("s.sock")]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let line = r#"{"request":"reserve","direction":"forward","reservation":3,"rate_bps":640000,"bucket_bytes":32000,"min_policed_bytes":64,"max_packet_bytes":1500,"filters":[{"destination":"10.9.0.2","protocol":17}]}"#;
    writeln!(process.stdin.take().unwrap(), "{line}").unwrap();
    let mut reply = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut reply).unwrap();
    assert_eq!(reply, "{\"event\":\"done\",\"reservation\":3}\n");
    schema::check("router-socket", &serde_json::from_str(&reply).unwrap());
    lab.router.signal(Signal::HUP);
    assert!(lab.router.error_line().starts_with("reloaded: "));
    let statistics = home.ask("stats");
    assert_eq!((reserved(&statistics, "reservations"), reserved(&statistics, "rate_bps")), (1, 640_000));
    assert!(lab.is_crossed(false, 5004));
    let conforming = reserved(&home.ask("stats"), "conforming/packets");
    assert!(conforming > 0);
    let error = client(&home).reserve(RouterDirection::Forward, 3, BUCKET, &[to_port(5004)]).unwrap_err();
    assert!(error.is_refusal() && error.to_string().contains("at most 1 in a direction"), "{error}");
    process.kill().unwrap();
    process.wait().unwrap();
    let is_gone = (0..1500).any(|_| {
        sleep(Duration::from_millis(50));
        reserved(&home.ask("stats"), "reservations") == 0
    });
    assert!(is_gone, "{}", home.ask("stats"));
    assert!(lab.is_crossed(false, 5004));
    assert_eq!(
        reserved(&home.ask("stats"), "conforming/packets"),
        conforming,
        "its packets are like any others"
    );
    client(&home)
        .reserve(RouterDirection::Forward, 3, BUCKET, &[to_port(5004)])
        .expect("there is room for another one");
}

/// Nothing can be reserved unless the file allows it, and not by users who may not use the socket.
#[test]
fn unauthorised_reservations_are_refused() {
    let Some((home, lab)) = start("rd", "") else { return };
    let error = client(&home).reserve(RouterDirection::Forward, 1, BUCKET, &[to_port(5004)]).unwrap_err();
    assert!(error.is_refusal() && error.to_string().contains("reservations = \"none\""), "{error}");
    assert_eq!(home.ask("config")["config"]["reservations"], Value::Null);
    fs::set_permissions(home.folder(), Permissions::from_mode(0o755)).unwrap();
    let script = "import socket, sys\ntry:\n socket.socket(socket.AF_UNIX).connect(sys.argv[1])\nexcept PermissionError:\n print('refused')\n";
    let mut command = Command::new("python3");
    command.args(["-c", script, &home.text("s.sock")]).uid(65_534).gid(65_534).current_dir("/");
    assert_eq!(String::from_utf8(command.output().unwrap().stdout).unwrap(), "refused\n");
    drop(lab);
}
