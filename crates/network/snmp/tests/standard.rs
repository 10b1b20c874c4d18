//! RSVP-MIB and INTSRV-MIB, asked by the programs of net-snmp.

use crate::common::{COMMUNITY, Host};
use cutline_flow::TrafficSpec;
use cutline_monitor::ReservationState;
use cutline_provision::status::{
    InterfaceStatus, LocalStatus, ReservationStatus, SenderStatus, SessionStatus, Status,
};
use cutline_provision::{Flow, TransportProtocol};
use cutline_testbed::net_snmp;
use cutline_units::{Bytes, Rate};

const BUCKET: TrafficSpec = TrafficSpec {
    rate: Rate::from_kbps(64),
    bucket: Bytes::new(1500),
    peak: TrafficSpec::UNKNOWN_PEAK,
    min_policed: Bytes::new(40),
    max_packet: Bytes::new(200),
};

/// A router with one session over two interfaces.
fn status() -> Status {
    let interface = |name: &str, index: u32, reserved: u64| InterfaceStatus {
        name: name.to_owned(),
        index: Some(index),
        address: None,
        control: "tc".to_owned(),
        problem: None,
        rate_bps: 10_000_000,
        reservable_bps: Some(5_000_000),
        reserved_bps: Some(reserved),
        reservations: Some(u64::from(reserved > 0)),
        reserved_packets: 0,
        reserved_bytes: 0,
        excess_packets: 0,
        dropped_packets: 0,
        is_authenticated: false,
    };
    let sender = SenderStatus {
        source: "10.0.1.2:5000".parse().unwrap(),
        bucket: BUCKET,
        from_interface: Some("left".to_owned()),
        from: Some("10.0.1.2".parse().unwrap()),
        to_interfaces: vec!["right".to_owned()],
    };
    let reservation = ReservationStatus {
        interface: Some("right".to_owned()),
        next: Some("10.0.2.2".parse().unwrap()),
        style: "FF".to_owned(),
        senders: vec![sender.source],
        bucket: BUCKET,
    };
    let session = SessionStatus {
        number: 3,
        protocol: 17,
        destination: "10.0.2.2:5001".parse().unwrap(),
        senders: vec![sender],
        reservations: vec![reservation],
    };
    let interfaces = vec![interface("right", 12, 64_000), interface("left", 11, 0)];
    // Reservations at this host alone: one in effect, and one without a route.
    let local = |port: u16, interface: Option<&str>| LocalStatus {
        flow: Flow {
            transport: TransportProtocol::Udp,
            source: "10.0.2.1:5000".parse().unwrap(),
            destination: ([10, 0, 3, 3], port).into(),
        },
        bucket: BUCKET,
        interface: interface.map(str::to_owned),
    };
    let local = vec![local(5002, None), local(5003, Some("left"))];
    Status { interfaces, sessions: vec![session], local, ..Status::default() }
}

#[test]
fn reservations_are_in_the_standard_modules() {
    let host = Host::start();
    let mut status = status();
    status.counters.malformed = 7;
    host.monitored.set_reservations(ReservationState { status, ..ReservationState::default() });
    let (service, _) = host.serve(&host.open_options());
    let at = service.address().unwrap().to_string();
    let walk = |name: &str| net_snmp("snmpbulkwalk", &["-v2c", "-c", COMMUNITY, &at, name]).text;
    let rsvp = walk(".1.3.6.1.2.1.51");
    for line in [
        // Session 3: its destination, its port, and one sender.
        ".51.1.1.1.3.3 = Hex-STRING: 0A 00 02 02",
        ".51.1.1.1.6.3 = Hex-STRING: 13 89",
        ".51.1.1.1.7.3 = Gauge32: 1",
        ".51.1.2.1.4.3.1 = Hex-STRING: 0A 00 01 02",
        ".51.1.2.1.13.3.1 = INTEGER: 11",
        ".51.1.2.1.14.3.1 = INTEGER: 64000",
        // A peak rate that is not known is the largest.
        ".51.1.2.1.15.3.1 = INTEGER: 2147483647",
        ".51.1.4.1.12.3.1 = INTEGER: 12",
        ".51.1.4.1.13.3.1 = INTEGER: 5",
        ".51.1.4.1.23.3.1 = INTEGER: 2",
        ".51.1.6.1.9.11 = INTEGER: 1",
        ".51.2.1.0 = Gauge32: 7",
    ] {
        assert!(
            rsvp.lines().any(|found| found.trim_end() == format!(".1.3.6.1.2.1{line}")),
            "no {line} in\n{rsvp}"
        );
    }
    let got = net_snmp("snmpget", &["-v2c", "-c", COMMUNITY, &at, ".1.3.6.1.2.1.51.1.1.1.7.3"]).text;
    assert!(got.contains("Gauge32: 1"), "{got}");
    let intsrv = walk(".1.3.6.1.2.1.52");
    for line in [
        ".52.1.1.1.1.11 = INTEGER: 0",
        ".52.1.1.1.1.12 = INTEGER: 64000",
        ".52.1.1.1.2.12 = INTEGER: 5000000",
        ".52.1.1.1.4.12 = Gauge32: 1",
        ".52.1.2.1.4.1 = Hex-STRING: 0A 00 02 02",
        ".52.1.2.1.12.1 = INTEGER: 12",
        ".52.1.2.1.14.1 = INTEGER: 64000",
        // RSVP owns the first flow, this host alone the second one.
        ".52.1.2.1.3.1 = INTEGER: 2",
        ".52.1.2.1.3.2 = INTEGER: 1",
        ".52.1.2.1.4.2 = Hex-STRING: 0A 00 03 03",
        ".52.1.2.1.5.2 = Hex-STRING: 0A 00 02 01",
        ".52.1.2.1.8.2 = INTEGER: 17",
        ".52.1.2.1.12.2 = INTEGER: 11",
        ".52.1.2.1.15.2 = INTEGER: 1500",
    ] {
        assert!(
            intsrv.lines().any(|found| found.trim_end() == format!(".1.3.6.1.2.1{line}")),
            "no {line} in\n{intsrv}"
        );
    }
    assert!(!intsrv.contains(".52.1.2.1.3.3 "), "one that is not in effect: {intsrv}");
    // Who may see queues alone sees no reservations.
    let closed = Host::start();
    closed
        .monitored
        .set_reservations(ReservationState { status: self::status(), ..ReservationState::default() });
    let (service, _) = closed.serve(&closed.options(""));
    let at = service.address().unwrap().to_string();
    let answer = net_snmp("snmpbulkwalk", &["-v2c", "-c", "public", &at, ".1.3.6.1.2.1.51"]).text;
    assert!(!answer.contains(".51.1."), "{answer}");
}
