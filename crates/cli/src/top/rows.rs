//! Rows of the tables: values of a document and, for rates of links, of the one before it.

use super::numbers::{digits, rate};
use super::tab::Tab;
use cutline_monitor::{
    HostDocument, HostLink, HostReservation, LinkFlowInterval, LinkKey, ProgramEntry, SocketEntry,
};
use cutline_publish::{DirectionRow, unit_of};
use cutline_router::Loss;
use cutline_router_service::{DirectionInterval, DirectionStatistics, FlowStatistics, HostStatistics};
use std::net::SocketAddr;

/// A cell: its text, and its value where it is a number.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    pub text: String,
    pub value: Option<f64>,
    /// True if the cell needs attention.
    pub is_bad: bool,
}

/// A row: its identity, its cells, and its history.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub key: String,
    pub cells: Vec<Cell>,
    /// A rate (bit/s), a time (ms) and a share of losses (%), as [`Tab::charts`] names them.
    pub point: [Option<f64>; 3],
    /// Facts that the history shows, a sentence each.
    pub facts: Vec<String>,
}

/// Returns the rows of a table.
pub fn rows(tab: Tab, now: &HostDocument, before: Option<&HostDocument>) -> Vec<Row> {
    match tab {
        Tab::Links => links(now, before),
        Tab::Sockets => now.sockets.iter().map(socket).collect(),
        Tab::Programs => programs(now, before),
        Tab::Flows => flows(now, before),
        Tab::Hosts => hosts(now),
        Tab::Reservations => {
            let all = now.reservations.iter().flat_map(|state| state.reservations());
            all.map(|it| reservation(&it)).collect()
        }
    }
}

impl Cell {
    /// A text without a value.
    fn word(text: impl Into<String>) -> Self {
        Self { text: text.into(), value: None, is_bad: false }
    }

    /// A value, shown as `text` writes it; `-` for none.
    fn value(value: Option<f64>, text: impl Fn(f64) -> String) -> Self {
        Self { text: value.map_or_else(|| "-".to_owned(), text), value, is_bad: false }
    }

    /// A number with about three digits.
    fn number(value: Option<f64>) -> Self {
        Self::value(value, digits)
    }

    /// A whole number.
    fn count(value: Option<f64>) -> Self {
        Self::value(value, |count| format!("{count:.0}"))
    }

    /// A rate, bit/s.
    fn rate(value: Option<f64>) -> Self {
        Self::value(value, rate)
    }

    fn bad_if(self, is_bad: bool) -> Self {
        Self { is_bad, ..self }
    }
}

impl Row {
    /// Makes it a row of the link with this identity.
    fn of_link(self, link: &str) -> Self {
        Self { key: format!("{link} {}", self.key), ..self }
    }
}

/// Returns a link in an earlier document.
fn earlier<'d>(of: &HostLink<'_>, before: Option<&'d HostDocument>) -> Option<HostLink<'d>> {
    before?.links().find(|it| it.key == of.key)
}

fn links(now: &HostDocument, before: Option<&HostDocument>) -> Vec<Row> {
    let rows = now.links().map(|of| {
        let earlier = earlier(&of, before);
        let interval = earlier.and_then(|earlier| of.since(&earlier));
        link(&of, interval.as_ref())
    });
    rows.collect()
}

fn link(
    HostLink { key, direction: now, .. }: &HostLink<'_>,
    interval: Option<&DirectionInterval<'_>>,
) -> Row {
    let lost =
        |loss: Loss| interval.map(|interval| interval.per_second(|direction| direction.lost(loss).packets));
    let waits = interval.map(DirectionInterval::waits);
    let wait = |q| waits.as_ref().and_then(|waits| waits.quantile_ms(q));
    let sent = interval.map(DirectionInterval::sent_bps);
    let (early, full) = (lost(Loss::Early), lost(Loss::Overflow));
    let cells = vec![
        Cell::word(&now.name),
        Cell::word(&now.queue),
        Cell::rate(Some(now.rate_bps as f64)),
        Cell::rate(sent),
        Cell::number(interval.map(|interval| 100.0 * interval.utilisation())),
        Cell::number(wait(0.5)),
        Cell::number(wait(0.99)),
        Cell::count(Some(now.backlog.packets as f64)),
        Cell::number(early),
        Cell::number(full).bad_if(full.is_some_and(|full| full > 0.0)),
        Cell::number(interval.map(|interval| interval.per_second(|direction| direction.marked.packets))),
    ];
    let place = if matches!(key, LinkKey::Kernel { .. }) { " in the kernel" } else { "" };
    let mut facts = vec![format!("queue {}{place} at {}", now.queue, rate(now.rate_bps as f64))];
    if let Some(sieve) = &now.sieve {
        facts.push(format!(
            "fair share of a flow {}; {} packets below it did not wait behind others, {} above it waited for those of their flow",
            rate(sieve.fair_share_bps as f64),
            sieve.below_fair_share.packets,
            sieve.above_fair_share.packets
        ));
    }
    let dropped = now.dropped.iter().filter(|(_, count)| count.packets > 0);
    facts.extend(dropped.map(|(reason, count)| format!("{} packets dropped: {reason}", count.packets)));
    Row { key: identity(key), cells, point: [sent, wait(0.99), None], facts }
}

/// Returns the identity of a link's row. Its flows and hosts begin with it: two routers may have interfaces of the same names.
fn identity(of: &LinkKey) -> String {
    match of {
        LinkKey::Router { pid, is_reverse } => format!("{pid}/{is_reverse}"),
        LinkKey::Kernel { interface } => format!("kernel/{interface}"),
    }
}

/// The direction that an application uses more: its delays and losses are shown.
fn used(entry: &SocketEntry) -> &DirectionRow {
    let (send, receive) = (&entry.socket.send, &entry.socket.receive);
    if receive.received_bytes >= send.sent_bytes { receive } else { send }
}

fn socket(entry: &SocketEntry) -> Row {
    let (it, used) = (&entry.socket, used(entry));
    let directions = [("sends", &it.send), ("receives", &it.receive)];
    let violated: Vec<&str> = directions
        .iter()
        .flat_map(|(_, direction)| &direction.violations)
        .map(|violation| violation.measure.as_str())
        .collect();
    let bps = |throughput: Option<u64>| throughput.map(|bps| bps as f64);
    let delay = used.last_delay.as_ref();
    let median = used.delay.as_ref().and_then(|delay| delay.p50_ms);
    let loss = used.loss_percent;
    let cells = vec![
        Cell::word(format!("{} ({})", entry.program, entry.pid)),
        Cell::word(&it.transport),
        Cell::word(&it.peer),
        Cell::word(&it.state).bad_if(it.state == "reconnecting"),
        Cell::word(if violated.is_empty() { "-".to_owned() } else { violated.join(", ") })
            .bad_if(!violated.is_empty()),
        Cell::count(it.hint.map(f64::from)),
        Cell::rate(bps(it.send.throughput_bps)),
        Cell::rate(bps(it.receive.throughput_bps)),
        Cell::number(median),
        Cell::number(delay.map(|delay| delay.p99_ms)),
        Cell::number(loss),
    ];
    let facts = directions.iter().flat_map(|(title, direction)| direction_facts(title, direction));
    let mut facts: Vec<String> = facts.collect();
    if it.reservation != "none" {
        let why = it.refusal.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        facts.push(format!("reservation: {}{why}", it.reservation));
    }
    let key = format!("{}/{}", entry.pid, it.socket);
    Row { key, cells, point: [bps(used.throughput_bps), delay.map(|delay| delay.p99_ms), loss], facts }
}

fn direction_facts(title: &str, direction: &DirectionRow) -> Vec<String> {
    if direction.effective.is_empty() && direction.sent_messages == 0 {
        return Vec::new();
    }
    let agreed = if direction.effective.is_empty() { "nothing is demanded" } else { &direction.effective };
    let counted = format!(
        "{title}: {agreed}; {} messages sent, {} received, {} lost",
        direction.sent_messages, direction.received_messages, direction.lost_messages
    );
    let violated = direction.violations.iter().map(|violation| {
        format!(
            "  violated for {} s: {} is {} {unit}, the limit is {} {unit}; origin: {}",
            digits(violation.for_s),
            violation.measure,
            digits(violation.measured),
            digits(violation.limit),
            violation.origin,
            unit = unit_of(&violation.measure)
        )
    });
    std::iter::once(counted).chain(host_fact(direction)).chain(violated).collect()
}

/// Returns the waits of both applications, and the datagrams that the receiving host dropped; `None` without any.
fn host_fact(direction: &DirectionRow) -> Option<String> {
    let waited = |what: &str, ms: f64| (ms > 0.0).then(|| format!("{what} for {} ms", digits(ms)));
    let dropped = direction.overflowed_datagrams;
    let facts = [
        waited("the sending application was held back", direction.held_ms),
        waited("the receiving application left data unread", direction.unread_ms),
        (dropped > 0).then(|| format!("{dropped} datagrams did not fit into the receive buffer")),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    (!facts.is_empty()).then(|| format!("  in all: {}", facts.join("; ")))
}

fn flows(now: &HostDocument, before: Option<&HostDocument>) -> Vec<Row> {
    let rows = now.links().flat_map(|of| {
        // The counters of a link that was started again have restarted.
        let earlier = earlier(&of, before).filter(|earlier| of.since(earlier).is_some());
        let link = identity(&of.key);
        let of_flow = move |it: &FlowStatistics| {
            let interval = earlier.as_ref().map(|earlier| LinkFlowInterval::new(earlier.direction, it));
            flow(of.direction, it, interval).of_link(&link)
        };
        of.direction.flows.iter().map(of_flow).collect::<Vec<_>>()
    });
    rows.collect()
}

fn hosts(now: &HostDocument) -> Vec<Row> {
    let rows = now.links().flat_map(|of| {
        let link = identity(&of.key);
        of.direction.hosts.iter().map(move |it| host(of.direction, it).of_link(&link))
    });
    rows.collect()
}

/// Returns a share in per cent; `None` of nothing.
fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| 100.0 * part as f64 / whole as f64)
}

fn flow(direction: &DirectionStatistics, it: &FlowStatistics, interval: Option<LinkFlowInterval<'_>>) -> Row {
    let end = |address: &str, port: Option<u16>| match port {
        Some(port) if address.contains(':') => format!("[{address}]:{port}"),
        Some(port) => format!("{address}:{port}"),
        None => address.to_owned(),
    };
    let words = [
        direction.name.clone(),
        end(&it.source, it.source_port),
        end(&it.destination, it.destination_port),
        protocol(it.protocol),
    ];
    let share = |of: fn(&LinkFlowInterval<'_>) -> u64| {
        interval.as_ref().and_then(|interval| percent(of(interval), interval.received.packets))
    };
    let dropped = share(|interval| interval.dropped);
    let bps = it.recent_bps as f64;
    let facts = vec![format!(
        "since it was listed: waits {} ms on average and {} ms at most; of {} frames {} dropped and {} marked",
        digits(it.mean_wait_ms),
        digits(it.longest_wait_ms),
        it.received.packets,
        it.dropped.packets,
        it.marked.packets
    )];
    let numbers = [
        Cell::count(Some(f64::from(it.hint))),
        Cell::rate(Some(bps)),
        Cell::number(percent(it.recent_bps, direction.rate_bps)),
        Cell::number(it.wait_p50_ms),
        Cell::number(it.wait_p99_ms),
        Cell::number(dropped),
        Cell::number(share(|interval| interval.marked)),
    ];
    Row {
        key: words.join(" "),
        cells: words.into_iter().map(Cell::word).chain(numbers).collect(),
        point: [Some(bps), it.wait_p99_ms, dropped],
        facts,
    }
}

fn host(direction: &DirectionStatistics, it: &HostStatistics) -> Row {
    let words = [direction.name.clone(), it.host.clone(), it.side.clone()];
    let bps = it.recent_bps as f64;
    let numbers = [
        Cell::count(Some(it.flows as f64)),
        Cell::rate(Some(bps)),
        Cell::number(percent(it.recent_bps, direction.rate_bps)),
        Cell::number(Some(it.mean_wait_ms)),
        Cell::number(Some(it.dropped_percent)),
    ];
    Row {
        key: words.join(" "),
        cells: words.into_iter().map(Cell::word).chain(numbers).collect(),
        point: [Some(bps), Some(it.mean_wait_ms), Some(it.dropped_percent)],
        facts: vec![format!("{} flows of this host as {}", it.flows, it.side)],
    }
}

fn reservation(of: &HostReservation<'_>) -> Row {
    let senders: Vec<String> = of.senders.iter().map(SocketAddr::to_string).collect();
    let next = of.next.map(|next| next.to_string());
    // A session without a next hop ends at an application of this host.
    let next = next.unwrap_or_else(|| if of.style.is_some() { "this host" } else { "-" }.to_owned());
    let is_in_effect = of.style.is_some() || of.interface.is_some();
    let words = [
        format!("{} {}", protocol(of.protocol), of.destination),
        if senders.is_empty() { "all".to_owned() } else { senders.join(", ") },
        of.interface.unwrap_or(if is_in_effect { "-" } else { "none: not in effect" }).to_owned(),
        next,
        of.style.unwrap_or("local").to_owned(),
    ];
    let (bps, depth) = (of.bucket.rate.as_bps() as f64, of.bucket.bucket.get() as f64);
    let state = if is_in_effect { "reserved" } else { "not in effect, as no interface has it" };
    let facts = vec![format!("{state}: {} with a bucket of {depth:.0} B", rate(bps))];
    Row {
        key: words.join(" "),
        cells: words
            .into_iter()
            .map(Cell::word)
            .chain([Cell::rate(Some(bps)), Cell::count(Some(depth))])
            .collect(),
        point: [is_in_effect.then_some(bps), None, None],
        facts,
    }
}

/// Returns the name of a protocol above IP.
fn protocol(number: u8) -> String {
    match number {
        6 => "tcp".to_owned(),
        17 => "udp".to_owned(),
        number => format!("protocol {number}"),
    }
}

fn programs(now: &HostDocument, before: Option<&HostDocument>) -> Vec<Row> {
    let rows = now.programs.iter().map(|entry| {
        let before = before.filter(|before| now.elapsed_s > before.elapsed_s);
        let sent_bps = before.and_then(|before| {
            let was = before.programs.iter().find(|was| was.pid == entry.pid)?;
            let bytes = entry.row.bytes?.checked_sub(was.row.bytes?)?;
            Some(8.0 * bytes as f64 / (now.elapsed_s - before.elapsed_s))
        });
        program(entry, sent_bps)
    });
    rows.collect()
}

fn program(entry: &ProgramEntry, sent_bps: Option<f64>) -> Row {
    let row = &entry.row;
    let cells = vec![
        Cell::word(format!("{} ({})", row.program, entry.pid)),
        Cell::word(&row.method),
        Cell::count(row.hint.map(f64::from)),
        Cell::count(row.sockets.map(|count| count as f64)),
        Cell::count(row.messages.map(|count| count as f64)),
        Cell::count(row.bytes.map(|count| count as f64)),
    ];
    let facts = if row.is_counted { Vec::new() } else { vec!["its messages are not counted".to_owned()] };
    Row { key: entry.pid.to_string(), cells, point: [sent_bps, None, None], facts }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use cutline_flow::TrafficSpec;
    use cutline_monitor::{KernelQueueEntry, ReservationState, RouterEntry};
    use cutline_provision::status::{LocalStatus, ReservationStatus, SessionStatus, Status};
    use cutline_provision::{Flow, TransportProtocol};
    use cutline_publish::{ProgramRow, SocketRow};
    use cutline_router_service::{PacketCount, QdiscDocument, Statistics};
    use cutline_units::{Bytes, Rate};

    /// The token bucket of a call.
    pub const BUCKET: TrafficSpec = TrafficSpec {
        rate: Rate::from_kbps(64),
        bucket: Bytes::new(1500),
        peak: TrafficSpec::UNKNOWN_PEAK,
        min_policed: Bytes::new(40),
        max_packet: Bytes::new(200),
    };

    #[test]
    fn reservations_of_the_host_alone_are_listed_and_those_without_a_route_are_not_in_effect() {
        let local = |interface: Option<&str>| LocalStatus {
            flow: Flow {
                transport: TransportProtocol::Udp,
                source: "10.0.1.2:5000".parse().unwrap(),
                destination: "10.0.2.2:5001".parse().unwrap(),
            },
            bucket: BUCKET,
            interface: interface.map(str::to_owned),
        };
        let status = Status { local: vec![local(Some("eth0")), local(None)], ..Status::default() };
        let state = ReservationState { status, unlisted_sessions: 3, unlisted_local: 4 };
        let document = HostDocument { reservations: Some(state.into()), ..HostDocument::default() };
        let found = rows(Tab::Reservations, &document, None);
        let texts = |row: &Row| row.cells.iter().map(|cell| cell.text.clone()).collect::<Vec<_>>();
        let words = ["udp 10.0.2.2:5001", "10.0.1.2:5000", "eth0", "-", "local", "64.0 kbit/s", "1500"];
        assert_eq!(texts(&found[0]), words);
        assert_eq!(found[0].facts, ["reserved: 64.0 kbit/s with a bucket of 1500 B"]);
        assert_eq!((found[1].cells[2].text.as_str(), found[1].point[0]), ("none: not in effect", None));
        let note = Tab::Reservations.note(&document).unwrap();
        assert!(note.starts_with("3 more sessions and 4 more local reservations are not shown"), "{note}");
    }

    #[test]
    fn a_link_has_the_rates_of_the_last_second() {
        let document = |seconds: u64| {
            let mut router = Statistics { elapsed_s: seconds as f64, ..Statistics::default() };
            router.forward.name = "a -> b".to_owned();
            router.forward.rate_bps = 16_000_000;
            router.forward.sent.bytes = seconds * 1_000_000;
            router.forward.waits_us.bounds = vec![1000.0, 2000.0];
            router.forward.waits_us.counts = vec![0, 10 * seconds, 0];
            let routers = vec![RouterEntry { pid: 5, uid: 0, router: router.into() }];
            HostDocument { routers, ..HostDocument::default() }
        };
        let rows = rows(Tab::Links, &document(3), Some(&document(2)));
        assert_eq!(rows.len(), 2);
        let texts: Vec<&str> = rows[0].cells.iter().map(|cell| cell.text.as_str()).collect();
        assert_eq!(texts[..7], ["a -> b", "", "16.0 Mbit/s", "8.00 Mbit/s", "50.0", "1.50", "1.99"]);
        assert_eq!(super::rows(Tab::Links, &document(3), None)[0].cells[3].text, "-");
    }

    #[test]
    fn a_flow_has_the_shares_of_the_last_second_and_recent_waits() {
        let document = |seconds: u64, dropped: u64| {
            let mut router = Statistics { elapsed_s: seconds as f64, ..Statistics::default() };
            router.forward.flows.push(FlowStatistics {
                source: "10.0.0.1".to_owned(),
                received: PacketCount { packets: 100 * seconds, bytes: 0 },
                dropped: PacketCount { packets: dropped, bytes: 0 },
                marked: PacketCount { packets: 3 * seconds, bytes: 0 },
                mean_wait_ms: 40.0,
                wait_p50_ms: Some(2.0),
                wait_p99_ms: Some(7.0),
                ..FlowStatistics::default()
            });
            let program =
                ProgramRow { bytes: Some(1000 * seconds), is_counted: true, ..ProgramRow::default() };
            HostDocument {
                elapsed_s: seconds as f64,
                routers: vec![RouterEntry { pid: 5, uid: 0, router: router.into() }],
                programs: vec![ProgramEntry { row: program.into(), ..ProgramEntry::default() }],
                ..HostDocument::default()
            }
        };
        // Before the last second it lost half of its frames, in it a tenth.
        let (before, now) = (document(2, 100), document(3, 110));
        let found = rows(Tab::Flows, &now, Some(&before));
        let texts: Vec<&str> = found[0].cells[7..].iter().map(|cell| cell.text.as_str()).collect();
        assert_eq!(texts, ["2.00", "7.00", "10.0", "3.00"]);
        assert_eq!(found[0].point, [Some(0.0), Some(7.0), Some(10.0)]);
        assert!(found[0].facts[0].starts_with("since it was listed: waits 40.0 ms"), "{:?}", found[0].facts);
        assert!(
            found[0].facts[0].ends_with("of 300 frames 110 dropped and 9 marked"),
            "{:?}",
            found[0].facts
        );
        assert_eq!(rows(Tab::Flows, &now, None)[0].point[2], None);
        // A router that was started again counts from zero.
        assert_eq!(rows(Tab::Flows, &before, Some(&now))[0].point[2], None);
        assert_eq!(rows(Tab::Programs, &now, Some(&before))[0].point, [Some(8000.0), None, None]);
        // The messages of a program need not be counted.
        let uncounted = HostDocument { programs: vec![ProgramEntry::default()], ..HostDocument::default() };
        let found = rows(Tab::Programs, &uncounted, None);
        assert!(found[0].cells[3..].iter().all(|cell| cell.text == "-"));
    }

    #[test]
    fn a_socket_has_the_waits_of_its_applications_and_the_datagrams_that_did_not_fit() {
        let mut row = SocketRow { reservation: "none".to_owned(), ..SocketRow::default() };
        (row.send.sent_messages, row.send.held_ms) = (9, 900.0);
        let receive = &mut row.receive;
        (receive.sent_messages, receive.unread_ms, receive.overflowed_datagrams) = (9, 2500.0, 31);
        let facts = socket(&SocketEntry { socket: row.into(), ..SocketEntry::default() }).facts;
        let expected = [
            "sends: nothing is demanded; 9 messages sent, 0 received, 0 lost",
            "  in all: the sending application was held back for 900 ms",
            "receives: nothing is demanded; 9 messages sent, 0 received, 0 lost",
            "  in all: the receiving application left data unread for 2500 ms; 31 datagrams did not fit into the receive buffer",
        ];
        assert_eq!(facts, expected);
    }

    /// Two routers in namespaces of their own have interfaces of the same names, and so the same flow.
    #[test]
    fn flows_and_hosts_of_two_routers_are_different_rows() {
        let router = |pid: u32| {
            let mut router = Statistics::default();
            router.forward.flows.push(FlowStatistics::default());
            router.forward.hosts.push(HostStatistics::default());
            RouterEntry { pid, uid: 0, router: router.into() }
        };
        let document = HostDocument { routers: vec![router(5), router(6)], ..HostDocument::default() };
        for tab in [Tab::Flows, Tab::Hosts] {
            let found = rows(tab, &document, Some(&document));
            assert_eq!((found.len(), found[0].key == found[1].key), (2, false), "{tab:?}: {found:?}");
        }
    }

    #[test]
    fn a_queue_in_the_kernel_is_a_link() {
        let document = |seconds: u64| {
            let mut queue = QdiscDocument { elapsed_s: seconds as f64, ..QdiscDocument::default() };
            queue.interface.push_str("eth0");
            let statistics = &mut queue.statistics;
            statistics.name.push_str("eth0");
            statistics.queue.push_str("sieve");
            statistics.rate_bps = 16_000_000;
            statistics.sent.bytes = seconds * 1_000_000;
            let kernel_queues = vec![KernelQueueEntry { index: 2, queue: queue.into() }];
            HostDocument { kernel_queues, ..HostDocument::default() }
        };
        let rows = rows(Tab::Links, &document(3), Some(&document(2)));
        let texts: Vec<&str> = rows[0].cells.iter().map(|cell| cell.text.as_str()).collect();
        assert_eq!(texts[..5], ["eth0", "sieve", "16.0 Mbit/s", "8.00 Mbit/s", "50.0"]);
        assert_eq!((rows.len(), rows[0].key.as_str()), (1, "kernel/eth0"));
        assert_eq!(rows[0].facts, ["queue sieve in the kernel at 16.0 Mbit/s"]);
    }

    #[test]
    fn every_row_has_a_cell_for_each_column() {
        let mut document = HostDocument::default();
        document.sockets.push(SocketEntry::default());
        document.programs.push(ProgramEntry::default());
        let mut router = Statistics::default();
        router.forward.flows.push(FlowStatistics {
            source: "::1".to_owned(),
            source_port: Some(5),
            ..FlowStatistics::default()
        });
        router.forward.hosts.push(HostStatistics::default());
        document.routers.push(RouterEntry { router: router.into(), ..RouterEntry::default() });
        let reservation = ReservationStatus {
            interface: Some("eth0".to_owned()),
            next: None,
            style: "WF".to_owned(),
            senders: Vec::new(),
            bucket: BUCKET,
        };
        let session = SessionStatus {
            number: 1,
            protocol: 17,
            destination: "192.0.2.1:5000".parse().unwrap(),
            senders: Vec::new(),
            reservations: vec![reservation],
        };
        let status = Status { sessions: vec![session], ..Status::default() };
        document.reservations = Some(ReservationState { status, ..ReservationState::default() }.into());
        for tab in Tab::ALL {
            let found = rows(tab, &document, Some(&document));
            assert!(!found.is_empty());
            assert!(found.iter().all(|row| row.cells.len() == tab.columns().len()), "{tab:?}");
            let numbers = tab.columns().iter().skip_while(|column| !column.is_number);
            assert!(numbers.into_iter().all(|column| column.is_number), "{tab:?}: words come first");
        }
    }
}
