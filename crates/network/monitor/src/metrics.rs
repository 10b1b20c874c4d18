//! The document of a host as metrics.
//!
//! Labels are bounded, because they have addresses and names, and a scraper keeps each combination of them for long: the rows that are listed one
//! by one are limited, and the sockets of a program are counted.

use crate::document::{HostDocument, ProgramEntry, ReservationState, SocketEntry};
use crate::listing::RowLimits;
use crate::reservations::HostReservation;
use cutline_openmetrics::{Metrics, TextFormat};
use cutline_router_service::{add_kernel_queue, add_statistics};
use std::collections::BTreeMap;

/// States of the reservation of a socket. A process may publish other texts, which are no labels.
const SOCKET_STATES: [&str; 5] = ["none", "waiting", "reserved", "refused", "ended"];

/// Kinds and states of reservations of `cutlined`: the styles of sessions, and `local`.
const RESERVATION_STATES: [(&str, &str); 8] = [
    ("FF", INSTALLED),
    ("FF", REQUESTED),
    ("SE", INSTALLED),
    ("SE", REQUESTED),
    ("WF", INSTALLED),
    ("WF", REQUESTED),
    (LOCAL, INSTALLED),
    (LOCAL, NOT_IN_EFFECT),
];
/// Kind of a reservation at this host alone.
const LOCAL: &str = "local";
/// State of a reservation that an interface of this host has.
const INSTALLED: &str = "installed";
/// State of a reservation that an application of this host has requested from the network.
const REQUESTED: &str = "requested";
/// State of a reservation at this host alone that no interface has.
const NOT_IN_EFFECT: &str = "not-in-effect";

/// Returns the metrics of a host.
pub fn metrics(mut document: HostDocument, format: TextFormat) -> String {
    let programs = by_program(&document);
    let states = SOCKET_STATES.map(|state| (state, sockets_in(&document, state)));
    document.shorten(RowLimits::METRICS);
    let mut metrics = Metrics::new("cutline");
    metrics.add(&["monitor"], &[], &document);
    // Of all rows, also those that are not listed.
    metrics.add(&["host"], &[], &document.totals);
    for entry in &document.sockets {
        add_socket(&mut metrics, entry);
    }
    for (program, sockets) in programs {
        let help = "QoS sockets of a program.";
        metrics.add_gauge("program_sockets", help, &[("program", &program)], sockets as f64);
    }
    for (state, sockets) in states {
        let help = "QoS sockets by the state of their reservation.";
        metrics.add_gauge("reservation_sockets", help, &[("state", state)], sockets as f64);
    }
    if let Some(state) = &document.reservations {
        add_reservations(&mut metrics, state);
    }
    for ProgramEntry { pid, row, .. } in &document.programs {
        let (pid, process) = (pid.to_string(), row.process.to_string());
        let labels = [
            ("program", row.program.as_str()),
            ("pid", &pid),
            ("process", &process),
            ("method", &row.method),
        ];
        metrics.add(&["exec"], &labels, &**row);
    }
    let mut router = Metrics::new("cutline_router");
    for entry in &document.routers {
        let pid = entry.pid.to_string();
        add_statistics(&mut router, &[("pid", &pid)], &entry.router);
    }
    metrics.append(router);
    let mut kernel = Metrics::new("cutline_qdisc");
    for entry in &document.kernel_queues {
        add_kernel_queue(&mut kernel, &entry.queue);
    }
    metrics.append(kernel);
    metrics.text(format)
}

fn add_socket(metrics: &mut Metrics, entry: &SocketEntry) {
    let SocketEntry { pid, uid, program, socket } = entry;
    let (pid, uid) = (pid.to_string(), uid.to_string());
    let labels = [
        ("program", program.as_str()),
        ("pid", &pid),
        ("uid", &uid),
        ("transport", &socket.transport),
        ("local", &socket.local),
        ("peer", &socket.peer),
    ];
    metrics.add(&["socket"], &labels, &**socket);
    for (name, direction) in [("send", &socket.send), ("receive", &socket.receive)] {
        let labels = [&labels[..], &[("direction", name)]].concat();
        metrics.add(&["socket"], &labels, direction);
        let spreads = [
            ("last_delay", &direction.last_delay),
            ("last_jitter", &direction.last_jitter),
            ("delay", &direction.delay),
            ("jitter", &direction.jitter),
        ];
        for (measure, spread) in spreads {
            if let Some(spread) = spread {
                metrics.add(&["socket", measure], &labels, spread);
            }
        }
        for limit in &direction.limits {
            let labels = [&labels[..], &[("measure", limit.measure.as_str())]].concat();
            metrics.add(&["socket", "limit"], &labels, limit);
        }
        for violation in &direction.violations {
            let more = [("measure", violation.measure.as_str()), ("origin", &violation.origin)];
            metrics.add(&["socket", "violation"], &[&labels[..], &more].concat(), violation);
        }
    }
}

/// Adds the reservations of `cutlined`: their numbers, the interfaces, and the counters of the protocol. A single reservation is no metric,
/// because its addresses would be labels without a bound.
fn add_reservations(metrics: &mut Metrics, state: &ReservationState) {
    metrics.add(&["reservations"], &[], state);
    metrics.add(&["cutlined"], &[], &state.status);
    metrics.add(&["rsvp"], &[], &state.status.counters);
    for interface in &state.status.interfaces {
        let labels = [("interface", interface.name.as_str())];
        metrics.add(&["reservations", "interface"], &labels, interface);
        let help =
            "1 if the interface accepts no reservations, or its reservations are not in effect; 0 otherwise.";
        let problem = f64::from(u8::from(interface.problem.is_some()));
        metrics.add_gauge("reservations_interface_problem", help, &labels, problem);
    }
    let mut numbers = [0_u32; RESERVATION_STATES.len()];
    for reservation in state.reservations() {
        let of = kind_and_state(&reservation);
        if let Some(at) = RESERVATION_STATES.iter().position(|known| *known == of) {
            numbers[at] += 1;
        }
    }
    for ((kind, state), number) in RESERVATION_STATES.into_iter().zip(numbers) {
        let help = "Reservations of cutlined that are listed, by kind and state.";
        metrics.add_gauge("reservations", help, &[("kind", kind), ("state", state)], number.into());
    }
}

/// Returns the kind of a reservation and its state, as labels.
fn kind_and_state<'d>(of: &HostReservation<'d>) -> (&'d str, &'static str) {
    match (of.style, of.interface) {
        (style, Some(_)) => (style.unwrap_or(LOCAL), INSTALLED),
        (Some(style), None) => (style, REQUESTED),
        (None, None) => (LOCAL, NOT_IN_EFFECT),
    }
}

/// Returns the number of sockets whose reservation is in a state.
fn sockets_in(document: &HostDocument, state: &str) -> usize {
    document.sockets.iter().filter(|entry| entry.socket.reservation == state).count()
}

/// Returns the numbers of sockets by program. A program that publishes has one name, so there are no more names than publishers.
fn by_program(document: &HostDocument) -> BTreeMap<String, usize> {
    let mut programs: BTreeMap<String, usize> = BTreeMap::new();
    for SocketEntry { program, .. } in &document.sockets {
        match programs.get_mut(program) {
            Some(sockets) => *sockets += 1,
            None => drop(programs.insert(program.clone(), 1)),
        }
    }
    programs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{HostTotals, KernelQueueEntry, RouterEntry};
    use cutline_flow::TrafficSpec;
    use cutline_provision::status::{InterfaceStatus, LocalStatus, ReservationStatus, SessionStatus, Status};
    use cutline_provision::{Flow, TransportProtocol};
    use cutline_publish::{DirectionRow, LimitRow, ProgramRow, SocketRow, SpreadRow, ViolationRow};
    use cutline_records::BucketCounts;
    use cutline_router_service::{
        AutorateStatistics, HintStatistics, Interface, PacketCount, QdiscDocument, SieveStatistics,
        Statistics,
    };
    use cutline_units::{Bytes, Rate};

    const BUCKET: TrafficSpec = TrafficSpec {
        rate: Rate::from_kbps(64),
        bucket: Bytes::new(1500),
        peak: TrafficSpec::UNKNOWN_PEAK,
        min_policed: Bytes::new(40),
        max_packet: Bytes::new(200),
    };

    fn entry(number: u64) -> SocketEntry {
        let buckets = BucketCounts { bounds: vec![1.0, 5.0], counts: vec![2, 1, 0], sum: 4.0 };
        let receive = DirectionRow {
            held_ms: 900.0,
            received_messages: 7,
            unread_ms: 2500.0,
            overflowed_datagrams: 31,
            loss_percent: Some(2.0),
            last_delay: Some(SpreadRow { p99_ms: 12.0, ..SpreadRow::default() }),
            delay_buckets_ms: Some(buckets),
            ..DirectionRow::default()
        };
        let local = format!("10.0.0.1:{number}");
        let socket =
            SocketRow { socket: number, transport: "udp".into(), local, receive, ..SocketRow::default() };
        SocketEntry { pid: 9, uid: 1000, program: "video".into(), socket: socket.into() }
    }

    fn program(process: u64) -> ProgramEntry {
        let row = ProgramRow {
            process,
            program: "ls".into(),
            method: "preload".into(),
            waits: Some(0),
            ..ProgramRow::default()
        };
        ProgramEntry { pid: 9, uid: 1000, row: row.into() }
    }

    fn router(pid: u32) -> RouterEntry {
        RouterEntry { pid, ..RouterEntry::default() }
    }

    #[test]
    fn a_program_whose_messages_are_not_counted_has_no_counters() {
        let row = ProgramRow { program: "ls".into(), method: "cgroup".into(), ..ProgramRow::default() };
        let entry = ProgramEntry { pid: 9, uid: 1000, row: row.into() };
        let document = HostDocument { programs: vec![program(1), entry], ..HostDocument::default() };
        let text = metrics(document, TextFormat::Prometheus);
        assert_eq!(text.matches("cutline_exec_waits_total{").count(), 1, "{text}");
        assert!(!text.contains("cutline_exec_messages_total{"), "{text}");
    }

    #[test]
    fn a_socket_has_metrics_with_its_labels() {
        let document = HostDocument { sockets: vec![entry(5)], ..HostDocument::default() };
        let text = metrics(document, TextFormat::Prometheus);
        let labels = "program=\"video\",pid=\"9\",uid=\"1000\",transport=\"udp\",local=\"10.0.0.1:5\",peer=\"\",direction=\"receive\"";
        for line in [
            format!("cutline_socket_received_messages_total{{{labels}}} 7"),
            format!("cutline_socket_loss_ratio{{{labels}}} 0.02"),
            format!("cutline_socket_held_seconds_total{{{labels}}} 0.9"),
            format!("cutline_socket_unread_seconds_total{{{labels}}} 2.5"),
            format!("cutline_socket_overflowed_datagrams_total{{{labels}}} 31"),
            format!("cutline_socket_last_delay_p99_seconds{{{labels}}} 0.012"),
            format!("cutline_socket_delay_seconds_bucket{{{labels},le=\"0.005\"}} 3"),
            format!("cutline_socket_delay_seconds_sum{{{labels}}} 0.004"),
            "cutline_program_sockets{program=\"video\"} 1".to_owned(),
        ] {
            assert!(text.lines().any(|found| found == line), "no {line} in\n{text}");
        }
    }

    /// `cutline qdisc show --metrics` has the same names and labels.
    #[test]
    fn a_queue_in_the_kernel_has_metrics_of_its_own() {
        let mut queue = QdiscDocument { interface: "eth0".to_owned(), ..QdiscDocument::default() };
        queue.statistics.queue = "sieve".to_owned();
        queue.statistics.sent.packets = 80;
        let queue = KernelQueueEntry { index: 2, queue: queue.into() };
        let document = HostDocument { kernel_queues: vec![queue], ..HostDocument::default() };
        let text = metrics(document, TextFormat::Prometheus);
        let line = "cutline_qdisc_sent_packets_total{interface=\"eth0\",queue=\"sieve\"} 80";
        assert!(text.lines().any(|found| found == line), "no {line} in\n{text}");
        assert!(!text.contains("cutline_router_"), "{text}");
    }

    /// Returns the reservations of a host with one session: at two interfaces and of an application, and two at this host alone.
    fn reservations() -> ReservationState {
        let reservation = |style: &str, interface: Option<&str>| ReservationStatus {
            interface: interface.map(str::to_owned),
            next: None,
            style: style.to_owned(),
            senders: Vec::new(),
            bucket: BUCKET,
        };
        let session = SessionStatus {
            number: 1,
            protocol: 17,
            destination: "192.0.2.1:5000".parse().unwrap(),
            senders: Vec::new(),
            reservations: vec![
                reservation("WF", Some("eth0")),
                reservation("WF", Some("eth1")),
                reservation("WF", None),
            ],
        };
        let local = |interface: Option<&str>| LocalStatus {
            flow: Flow {
                transport: TransportProtocol::Udp,
                source: "10.0.1.2:5000".parse().unwrap(),
                destination: "10.0.2.2:5001".parse().unwrap(),
            },
            bucket: BUCKET,
            interface: interface.map(str::to_owned),
        };
        let interface = InterfaceStatus {
            name: "eth0".to_owned(),
            rate_bps: 10_000_000,
            reservable_bps: Some(8_000_000),
            reserved_bps: Some(64_000),
            reservations: Some(1),
            ..InterfaceStatus::default()
        };
        let mut status = Status {
            interfaces: vec![interface],
            sessions: vec![session],
            local: vec![local(Some("eth0")), local(None)],
            ..Status::default()
        };
        status.counters.not_admitted = 3;
        ReservationState { status, unlisted_sessions: 4, unlisted_local: 0 }
    }

    #[test]
    fn reservations_are_counted_by_labels_that_are_bounded() {
        let with = |number, reservation: &str| {
            let of = entry(number);
            let row = SocketRow { reservation: reservation.to_owned(), ..(*of.socket).clone() };
            SocketEntry { socket: row.into(), ..of }
        };
        let states = ["reserved", "refused", "reserved", "text of a process"];
        let sockets = (1..).zip(states).map(|(number, state)| with(number, state)).collect();
        let state = reservations();
        let document = HostDocument { sockets, reservations: Some(state.into()), ..HostDocument::default() };
        let text = metrics(document, TextFormat::Prometheus);
        for line in [
            "cutline_reservation_sockets{state=\"reserved\"} 2",
            "cutline_reservation_sockets{state=\"refused\"} 1",
            "cutline_reservation_sockets{state=\"waiting\"} 0",
            "cutline_reservations{kind=\"WF\",state=\"installed\"} 2",
            "cutline_reservations{kind=\"WF\",state=\"requested\"} 1",
            "cutline_reservations{kind=\"FF\",state=\"installed\"} 0",
            "cutline_reservations{kind=\"local\",state=\"installed\"} 1",
            "cutline_reservations{kind=\"local\",state=\"not-in-effect\"} 1",
            "cutline_reservations_unlisted_sessions 4",
            "cutline_reservations_interface_rate_bytes_per_second{interface=\"eth0\"} 1250000",
            "cutline_reservations_interface_reservable_bytes_per_second{interface=\"eth0\"} 1000000",
            "cutline_reservations_interface_reserved_bytes_per_second{interface=\"eth0\"} 8000",
            "cutline_reservations_interface_reservations{interface=\"eth0\"} 1",
            "cutline_reservations_interface_problem{interface=\"eth0\"} 0",
            "cutline_rsvp_not_admitted_total 3",
            "cutline_cutlined_clients 0",
        ] {
            assert!(text.lines().any(|found| found == line), "no {line} in\n{text}");
        }
        for unbounded in ["192.0.2.1", "10.0.2.2", "text of a process"] {
            assert!(!text.contains(unbounded), "{unbounded} is a label in\n{text}");
        }
    }

    /// A reader without access to all rows has no document of reservations.
    #[test]
    fn without_cutlined_there_are_no_metrics_of_it() {
        let text = metrics(HostDocument::default(), TextFormat::Prometheus);
        for name in ["cutline_reservations", "cutline_cutlined", "cutline_rsvp"] {
            assert!(!text.contains(name), "{text}");
        }
    }

    /// The host has two of everything that a process may state twice, and all numbers are as large as they can be.
    #[test]
    fn no_series_is_there_twice() {
        let buckets = || BucketCounts { bounds: vec![1.0, 1.0], counts: vec![u64::MAX; 3], sum: f64::MAX };
        let spread = || Some(SpreadRow { p50_ms: Some(1.0), p90_ms: Some(1.0), ..SpreadRow::default() });
        let limit = LimitRow { measure: "delay".into(), worst_measured: Some(1.0), ..LimitRow::default() };
        let violation = ViolationRow { measure: "delay".into(), ..ViolationRow::default() };
        let way = || DirectionRow {
            violations_begun: u64::MAX,
            throughput_bps: Some(u64::MAX),
            last_delay: spread(),
            last_jitter: spread(),
            delay: spread(),
            jitter: spread(),
            delay_buckets_ms: Some(buckets()),
            limits: vec![limit.clone(); 2],
            violations: vec![violation.clone(); 2],
            ..DirectionRow::default()
        };
        let row = SocketRow { send: way(), receive: way(), hint: Some(3), ..SocketRow::default() };
        let socket = SocketEntry { pid: 9, uid: 1000, program: "video".into(), socket: row.into() };
        let mut statistics =
            Statistics { autorate: Some(AutorateStatistics::default()), ..Statistics::default() };
        for direction in [&mut statistics.forward, &mut statistics.reverse] {
            direction.dropped.insert("early".into(), PacketCount { packets: u64::MAX, bytes: u64::MAX });
            direction.waits_us = buckets();
            direction.sieve = Some(SieveStatistics::default());
            direction.hints = vec![HintStatistics::default(); 2];
        }
        statistics.interfaces = vec![Interface::default(); 2];
        let queue = QdiscDocument { statistics: statistics.forward.clone(), ..QdiscDocument::default() };
        let routed = RouterEntry { router: statistics.into(), ..router(9) };
        let queue = KernelQueueEntry { index: 2, queue: queue.into() };
        let mut reserved = reservations();
        reserved.status.interfaces = vec![InterfaceStatus::default(); 2];
        let document = HostDocument {
            reservations: Some(reserved.into()),
            sockets: vec![socket; 2],
            programs: vec![program(7), program(7), program(8)],
            routers: vec![routed; 2],
            kernel_queues: vec![queue; 2],
            unlisted_sockets: 3,
            ..HostDocument::default()
        };
        for format in [TextFormat::Prometheus, TextFormat::OpenMetrics] {
            let text = metrics(document.clone(), format);
            let series: Vec<&str> = text
                .lines()
                .filter(|line| !line.starts_with('#'))
                .map(|line| line.rsplit_once(' ').unwrap().0)
                .collect();
            let mut once = series.clone();
            once.sort_unstable();
            once.dedup();
            assert_eq!(once.len(), series.len(), "{text}");
            assert!(series.len() > 200, "{}", series.len());
            assert!(text.contains("\ncutline_monitor_unlisted_sockets 3\n"), "{text}");
            // Two programs of one process are two.
            assert_eq!(text.matches("\ncutline_exec_waits_total{").count(), 2, "{text}");
        }
    }

    #[test]
    fn the_number_of_labels_is_bounded() {
        let most = RowLimits::METRICS;
        let sockets = (0..most.sockets as u64 + 50).map(entry).collect();
        let programs = (0..most.programs as u64 + 20).map(program).collect();
        let routers = (0..most.routers as u32 + 7).map(router).collect();
        let totals = HostTotals { sockets: 1050, violations: 1020, ..HostTotals::default() };
        let document = HostDocument { totals, sockets, programs, routers, ..HostDocument::default() };
        let text = metrics(document, TextFormat::OpenMetrics);
        for line in ["cutline_host_sockets 1050", "cutline_host_violations 1020"] {
            assert!(text.lines().any(|found| found == line), "totals are of all rows: no {line}");
        }
        let listed = |name: &str| text.lines().filter(|line| line.starts_with(name)).count();
        assert_eq!(listed("cutline_socket_waits_total"), most.sockets);
        assert_eq!(listed("cutline_exec_waits_total"), most.programs);
        assert_eq!(listed("cutline_router_elapsed_seconds_total"), most.routers);
        for (kind, number) in [("sockets", 50), ("programs", 20), ("routers", 7)] {
            let name = format!("cutline_monitor_unlisted_{kind} ");
            let found: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix(&name)).collect();
            assert_eq!(found, [number.to_string()], "{kind}");
        }
    }
}
