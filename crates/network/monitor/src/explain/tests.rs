//! Explanations of made-up documents: one for each cause, and healthy ones.

use super::*;
use crate::document::{KernelQueueEntry, RouterEntry, SocketEntry};
use cutline_publish::{DirectionRow, LimitRow, SocketRow, SpreadRow, ViolationRow};
use cutline_records::BucketCounts;
use cutline_router_service::{
    DirectionStatistics, FlowStatistics, HostStatistics, Interface, PacketCount, QdiscDocument, Statistics,
};
use proptest::prelude::*;
use std::sync::Arc;

/// Length of the intervals, s.
const SECONDS: f64 = 5.0;

/// Traffic of a direction of a router within the interval.
#[derive(Clone, Debug)]
struct Traffic {
    rate_bps: u64,
    /// Share of the rate that is sent.
    utilisation: f64,
    mean_wait_ms: f64,
    dropped: u64,
    unsent: u64,
    flows: Vec<Stream>,
    hosts: Vec<HostStatistics>,
    missed: u64,
    truncated: u64,
    without_checksum: u64,
}

/// A flow of a direction within the interval.
#[derive(Clone, Debug)]
struct Stream {
    port: u16,
    protocol: u8,
    packets: u64,
    dropped: u64,
    wait_ms: f64,
    code_point: u8,
    hint: u16,
}

impl Default for Traffic {
    fn default() -> Self {
        Self {
            rate_bps: 10_000_000,
            utilisation: 0.5,
            mean_wait_ms: 2.0,
            dropped: 0,
            unsent: 0,
            flows: vec![call()],
            hosts: Vec::new(),
            missed: 0,
            truncated: 0,
            without_checksum: 0,
        }
    }
}

/// The flow of [`socket`], 50 packets a second with hint 3.
const fn call() -> Stream {
    Stream { port: 5000, protocol: 17, packets: 250, dropped: 0, wait_ms: 1.0, code_point: 11, hint: 3 }
}

fn packets(packets: u64, size: u64) -> PacketCount {
    PacketCount { packets, bytes: packets * size }
}

/// The counters at the beginning of the interval, or at its end.
fn direction(traffic: &Traffic, is_end: bool) -> DirectionStatistics {
    let so_far = |of: u64| if is_end { 1000 + of } else { 1000 };
    let sent = (traffic.utilisation * traffic.rate_bps as f64 * SECONDS / 8.0 / 1000.0) as u64;
    let lost = |reason: &str, of: u64| (reason.to_owned(), packets(so_far(of), 1000));
    let waited = if is_end { sent as f64 * traffic.mean_wait_ms * 1e3 } else { 0.0 };
    let flow = |stream: &Stream| {
        let Stream { port, protocol, packets: count, dropped, wait_ms, code_point, hint } = *stream;
        let so_far = |of: u64| if is_end { 10 + of } else { 10 };
        let departed = packets(so_far(count - dropped), 1000);
        let before = if is_end { 10.0 / departed.packets as f64 } else { 1.0 };
        FlowStatistics {
            source: "10.9.0.1".into(),
            source_port: Some(port),
            destination: "10.9.0.2".into(),
            destination_port: Some(5001),
            protocol,
            code_point,
            hint,
            recent_bps: (count as f64 * 8000.0 / SECONDS) as u64,
            received: packets(so_far(count), 1000),
            departed,
            dropped: packets(if is_end { dropped } else { 0 }, 1000),
            // The first ten packets waited as long.
            mean_wait_ms: wait_ms * (1.0 - before) + wait_ms * before,
            ..FlowStatistics::default()
        }
    };
    DirectionStatistics {
        name: "p0 -> p1".into(),
        rate_bps: traffic.rate_bps,
        queue: "sieve".into(),
        received: packets(so_far(sent + traffic.dropped + traffic.unsent), 1000),
        sent: packets(so_far(sent), 1000),
        dropped: [lost("early", traffic.dropped), lost("overflow", 0), lost("unsent", traffic.unsent)].into(),
        waits_us: BucketCounts { bounds: vec![1.0], counts: vec![0, so_far(sent)], sum: waited },
        flows: traffic.flows.iter().map(flow).collect(),
        hosts: traffic.hosts.clone(),
        ..DirectionStatistics::default()
    }
}

fn router(traffic: &Traffic, is_end: bool) -> RouterEntry {
    let of = |count: u64| if is_end { count } else { 0 };
    let input = Interface {
        name: "p0".into(),
        missed_packets: of(traffic.missed),
        truncated: packets(of(traffic.truncated), 9000),
        without_checksum: packets(of(traffic.without_checksum), 1000),
        ..Interface::default()
    };
    let output = Interface { name: "p1".into(), ..Interface::default() };
    let statistics = Statistics {
        elapsed_s: if is_end { 100.0 + SECONDS } else { 100.0 },
        forward: direction(traffic, is_end),
        reverse: DirectionStatistics { rate_bps: 50_000_000, ..DirectionStatistics::default() },
        interfaces: vec![input, output],
        ..Statistics::default()
    };
    RouterEntry { pid: 7, uid: 0, router: statistics.into() }
}

/// A sending socket with a limit of 100 ms, which has sent 250 messages in the interval.
fn socket(change: impl Fn(&mut SocketRow, bool), is_end: bool) -> SocketEntry {
    let so_far = |of: u64| if is_end { 100 + of } else { 100 };
    let limit =
        |measure: &str, worst: f64| LimitRow { measure: measure.into(), worst, ..LimitRow::default() };
    let send = DirectionRow {
        sent_messages: so_far(250),
        received_messages: so_far(250),
        last_delay: Some(spread(12.0)),
        limits: vec![limit("delay", 100.0), limit("loss", 1.0)],
        ..DirectionRow::default()
    };
    let receive = DirectionRow { last_delay: Some(spread(11.0)), ..DirectionRow::default() };
    let mut row = SocketRow {
        socket: 1,
        transport: "udp".into(),
        local: "10.9.0.1:5000".into(),
        peer: "10.9.0.2:5001".into(),
        hint: Some(3),
        rtt_ms: Some(23.0),
        clock_error_ms: Some(2.0),
        reservation: "none".into(),
        send,
        receive,
        ..SocketRow::default()
    };
    change(&mut row, is_end);
    SocketEntry { pid: 8, uid: 0, program: "call".into(), socket: Arc::new(row) }
}

fn spread(mean_ms: f64) -> SpreadRow {
    SpreadRow { mean_ms, p99_ms: mean_ms * 1.2, max_ms: mean_ms * 1.3, ..SpreadRow::default() }
}

fn violation(measure: &str, limit: f64, measured: f64, origin: &str) -> ViolationRow {
    ViolationRow { measure: measure.into(), limit, measured, origin: origin.into(), for_s: 4.0 }
}

fn documents(traffic: Option<&Traffic>, change: impl Fn(&mut SocketRow, bool)) -> [HostDocument; 2] {
    [false, true].map(|is_end| HostDocument {
        event: "host".into(),
        at_unix_s: if is_end { 1e9 + SECONDS } else { 1e9 },
        routers: traffic.map(|traffic| router(traffic, is_end)).into_iter().collect(),
        sockets: vec![socket(&change, is_end)],
        ..HostDocument::default()
    })
}

fn explained(traffic: Option<&Traffic>, change: impl Fn(&mut SocketRow, bool)) -> Explanation {
    probed(traffic, change, &[])
}

fn probed(
    traffic: Option<&Traffic>,
    change: impl Fn(&mut SocketRow, bool),
    interfaces: &[InterfaceEvidence],
) -> Explanation {
    let [before, after] = documents(traffic, change);
    explain(&HostEvidence { before: &before, after: &after, interfaces })
}

/// A delay of this mean violates the limit of 100 ms.
fn late(mean_ms: f64) -> impl Fn(&mut SocketRow, bool) {
    move |row, _| {
        row.send.last_delay = Some(spread(mean_ms));
        row.send.violations = vec![violation("delay", 100.0, mean_ms * 1.2, "network")];
    }
}

const fn untouched(_: &mut SocketRow, _: bool) {}

#[track_caller]
fn assert_cause(explanation: &Explanation, cause: DeliveryCause, words: &[&str]) {
    let first =
        explanation.findings.first().unwrap_or_else(|| panic!("{cause:?} is not found: {explanation:#?}"));
    assert_eq!(first.cause, cause, "{explanation:#?}");
    assert_eq!(first.sentence, explanation.summary);
    for word in words {
        assert!(first.sentence.contains(word), "no `{word}` in: {}", first.sentence);
    }
    assert!(!first.rests_on.is_empty() && !first.do_next.is_empty());
    for other in &explanation.findings[1..] {
        assert!(other.cause > cause || other.strength < first.strength, "{explanation:#?}");
    }
}

#[test]
fn a_healthy_host_has_no_cause() {
    let explanation = explained(Some(&Traffic::default()), untouched);
    assert_eq!(explanation.findings, []);
    assert_eq!((explanation.sockets, explanation.routers, explanation.bad_directions), (1, 1, 0));
    assert!(
        explanation.summary.starts_with(
            "nothing is wrong: in 5.0 s, 1 QoS socket kept its limits and 1 router shows no fault"
        ),
        "{explanation:?}"
    );
    // A busy link whose queue is short is as it should be, also with transfers that lose a little.
    let download =
        Stream { port: 80, protocol: 6, packets: 6000, dropped: 60, wait_ms: 20.0, code_point: 0, hint: 16 };
    let busy = Traffic {
        utilisation: 0.98,
        mean_wait_ms: 20.0,
        dropped: 60,
        flows: vec![call(), download],
        ..Traffic::default()
    };
    assert_eq!(explained(Some(&busy), untouched).findings, []);
    assert_eq!(explained(None, untouched).findings, []);
}

#[test]
fn a_lost_or_refused_reservation() {
    let lost = explained(Some(&Traffic::default()), |row, is_end| {
        row.reservation = if is_end { "ended" } else { "reserved" }.into();
        row.reserved_bps = (!is_end).then_some(640_000);
        row.refusal = is_end.then(|| "it has ended".to_owned());
    });
    assert_cause(
        &lost,
        DeliveryCause::ReservationLost,
        &["was lost", "640 kbit/s", "it has ended", "`call`"],
    );
    for state in ["refused", "ended"] {
        let refused = explained(None, |row, _| row.reservation = state.into());
        assert_cause(&refused, DeliveryCause::ReservationLost, &["as best effort"]);
    }
}

#[test]
fn offloads_that_break_packets() {
    let long = Traffic { truncated: 40, ..Traffic::default() };
    let evidence = [InterfaceEvidence {
        name: "p0".into(),
        offloads: vec!["gro".into(), "tso".into()],
        ..InterfaceEvidence::default()
    }];
    assert_cause(
        &probed(Some(&long), untouched, &evidence),
        DeliveryCause::Offloads,
        &["40 frames were longer", "`p0`", "gro, tso"],
    );
    let empty = Traffic { without_checksum: 300, ..Traffic::default() };
    assert_cause(
        &explained(Some(&empty), untouched),
        DeliveryCause::Offloads,
        &["300 frames", "without checksums"],
    );
    let few = Traffic { truncated: 3, without_checksum: 9, ..Traffic::default() };
    assert_eq!(explained(Some(&few), untouched).findings, []);
}

#[test]
fn losses_before_the_queue() {
    let missed = Traffic { missed: 400, ..Traffic::default() };
    assert_cause(
        &explained(Some(&missed), untouched),
        DeliveryCause::LossBeforeQueue,
        &["lost 400 frames", "`p0`"],
    );
    // 250 messages were sent, 225 have reached the router.
    let way = Traffic { flows: vec![Stream { packets: 225, ..call() }], ..Traffic::default() };
    let lossy = |row: &mut SocketRow, is_end: bool| {
        if is_end {
            (row.send.received_messages, row.send.lost_messages) = (325, 25);
        }
        row.send.violations = vec![violation("loss", 1.0, 10.0, "network")];
    };
    let words = ["sent 250 messages, of which 225 reached the router", "25 (10 %)"];
    assert_cause(&explained(Some(&way), lossy), DeliveryCause::LossBeforeQueue, &words);
    // Without a limit of loss, ten per cent are bad as well.
    let unlimited = |row: &mut SocketRow, is_end: bool| {
        lossy(row, is_end);
        row.send.violations.clear();
        row.send.limits.clear();
    };
    assert_cause(&explained(Some(&way), unlimited), DeliveryCause::LossBeforeQueue, &words);
    // The router has seen all of them: they were lost behind it.
    assert_cause(
        &explained(Some(&Traffic::default()), lossy),
        DeliveryCause::BottleneckElsewhere,
        &["behind the router"],
    );
    let unknown = explained(None, lossy);
    assert_cause(&unknown, DeliveryCause::NotExplained, &["violates its loss"]);
    assert!(unknown.not_examined[0].starts_with("queues: "), "{unknown:?}");
}

#[test]
fn a_link_that_is_slower_than_configured() {
    let refused = Traffic { unsent: 90, ..Traffic::default() };
    assert_cause(
        &explained(Some(&refused), untouched),
        DeliveryCause::LinkRateLower,
        &["the 10 Mbit/s that the router is configured for", "`p1` refused 90 frames", "5 Mbit/s were sent"],
    );
    let evidence = |queued_packets, dropped_packets, speed_bps| {
        [InterfaceEvidence {
            name: "p1".into(),
            queued_packets,
            dropped_packets,
            speed_bps,
            ..Default::default()
        }]
    };
    let of_kernel = probed(Some(&Traffic::default()), untouched, &evidence(40, 30, None));
    assert_cause(&of_kernel, DeliveryCause::LinkRateLower, &["held 40 packets and dropped 30"]);
    let busy = Traffic { utilisation: 0.97, ..Traffic::default() };
    let of_wire = probed(Some(&busy), untouched, &evidence(0, 0, Some(10_000_000)));
    assert_cause(&of_wire, DeliveryCause::LinkRateLower, &["the wire of `p1` has 10 Mbit/s"]);
    assert_eq!(probed(Some(&busy), untouched, &evidence(0, 0, Some(100_000_000))).findings, []);
    // The router sends at its rate, and packets wait behind it.
    assert_cause(&explained(Some(&busy), late(400.0)), DeliveryCause::LinkRateLower, &["97 %", "400 ms"]);
}

#[test]
fn marks_that_are_rewritten() {
    let washed = Traffic { flows: vec![Stream { code_point: 0, hint: 16, ..call() }], ..Traffic::default() };
    let words = ["hint 3 (code point 11)", "code point 0", "hint 16"];
    assert_cause(&explained(Some(&washed), untouched), DeliveryCause::MarksRewritten, &words);
    // A router whose table gives the hint to another code point rewrites nothing.
    let table = Traffic { flows: vec![Stream { code_point: 46, hint: 3, ..call() }], ..Traffic::default() };
    assert_eq!(explained(Some(&table), untouched).findings, []);
    // Nor does a socket whose hint has just changed.
    let adapts = |row: &mut SocketRow, is_end: bool| row.hint = Some(if is_end { 4 } else { 3 });
    assert_eq!(explained(Some(&Traffic::default()), adapts).findings, []);
    // Rewritten marks explain a delay in a queue better than its length does, and both are named.
    let waits = Traffic {
        flows: vec![Stream { code_point: 0, hint: 16, wait_ms: 140.0, ..call() }],
        utilisation: 0.97,
        mean_wait_ms: 60.0,
        ..Traffic::default()
    };
    let both = explained(Some(&waits), late(150.0));
    assert_cause(&both, DeliveryCause::MarksRewritten, &words);
    assert_eq!(both.findings[1].cause, DeliveryCause::QueueTooLong);
}

#[test]
fn clocks_that_are_not_known() {
    let far = explained(Some(&Traffic::default()), |row, _| row.clock_error_ms = Some(80.0));
    assert_cause(&far, DeliveryCause::ClockError, &["exact to 80 ms", "80 % of their limit of 100 ms"]);
    // One way takes longer than there and back, and the other way takes no time at all.
    let wrong = explained(Some(&Traffic::default()), |row, _| {
        row.send.last_delay = Some(spread(500.0));
        row.send.violations = vec![violation("delay", 100.0, 520.0, "network")];
        row.receive.last_delay = Some(spread(0.0));
    });
    assert_cause(&wrong, DeliveryCause::ClockError, &["500 ms one way", "round-trip time of 23 ms"]);
}

#[test]
fn one_unresponsive_flow() {
    let flood =
        Stream { port: 9, packets: 5000, dropped: 2500, wait_ms: 80.0, code_point: 0, hint: 16, ..call() };
    let way = Traffic {
        utilisation: 0.97,
        dropped: 2500,
        mean_wait_ms: 150.0,
        flows: vec![call(), flood.clone()],
        ..Traffic::default()
    };
    let words =
        ["UDP from 10.9.0.1:9 to 10.9.0.2:5001", "50 % of its packets are dropped", "a link of 10 Mbit/s"];
    let explanation = explained(Some(&way), late(160.0));
    assert_cause(&explanation, DeliveryCause::UnresponsiveFlow, &words);
    assert_eq!(explanation.findings[1].cause, DeliveryCause::QueueTooLong, "its effect is named as well");
    // A flow that sends half as much at the end of the interval as at its beginning has slowed down, such as a TCP
    // after slow start.
    let [mut before, after] = documents(Some(&way), late(160.0));
    let mut statistics = (*before.routers[0].router).clone();
    statistics.forward.flows[1].recent_bps *= 2;
    before.routers[0].router = statistics.into();
    let explanation = explain(&HostEvidence { before: &before, after: &after, interfaces: &[] });
    assert_cause(&explanation, DeliveryCause::QueueTooLong, &[]);
    // A TCP over a short path fills half a link with four segments, and loses much: 370 packets a second that wait 10 ms.
    let short = Stream { packets: 1850, dropped: 205, wait_ms: 10.0, protocol: 6, ..flood.clone() };
    let short = Traffic { mean_wait_ms: 10.0, flows: vec![call(), short], ..way.clone() };
    assert_eq!(explained(Some(&short), untouched).findings, []);
    // Bursts of others make it lose several packets at a time, to which it responds once: 400 packets a second that wait 22.5 ms.
    let beside = Stream { packets: 2000, dropped: 220, wait_ms: 22.5, protocol: 6, ..flood.clone() };
    let among = |stream: &Stream| {
        let flows = vec![call(), stream.clone()];
        Traffic { mean_wait_ms: 22.5, dropped: stream.dropped, flows, ..way.clone() }
    };
    assert_eq!(explained(Some(&among(&beside)), untouched).findings, []);
    let datagrams = Stream { protocol: 17, ..beside };
    assert_cause(
        &explained(Some(&among(&datagrams)), untouched),
        DeliveryCause::UnresponsiveFlow,
        &["11 % of its packets"],
    );
    // In a queue of 700 ms slow start lasts for seconds. A TCP that still does so in a short queue is none that responds.
    let tcp = |wait_ms| {
        let flows = vec![call(), Stream { protocol: 6, wait_ms, ..flood.clone() }];
        explained(Some(&Traffic { mean_wait_ms: wait_ms, flows, ..way.clone() }), late(wait_ms + 10.0))
    };
    assert_cause(&tcp(700.0), DeliveryCause::QueueTooLong, &[]);
    assert_cause(&tcp(150.0), DeliveryCause::UnresponsiveFlow, &["TCP from 10.9.0.1:9"]);
    // A flow that loses one per cent has slowed down.
    let responsive = Stream { dropped: 50, ..flood };
    let way = Traffic { dropped: 50, mean_wait_ms: 20.0, flows: vec![call(), responsive], ..way };
    assert_eq!(explained(Some(&way), untouched).findings, []);
}

fn host(host: &str, flows: u64, recent_bps: u64, dropped_percent: f64) -> HostStatistics {
    let side = "source".to_owned();
    HostStatistics { host: host.into(), side, flows, recent_bps, dropped_percent, mean_wait_ms: 15.0 }
}

#[test]
fn many_flows_of_one_host() {
    let hosts = vec![host("10.9.0.3", 20, 9_000_000, 2.0), host("10.9.0.1", 1, 450_000, 4.0)];
    let way = Traffic { utilisation: 0.97, dropped: 200, hosts, ..Traffic::default() };
    assert_cause(
        &explained(Some(&way), untouched),
        DeliveryCause::ManyFlowsOfHost,
        &["10.9.0.3 has 20 flows and 95.2 %", "10.9.0.1, one of 2 hosts, loses 4 %"],
    );
    // The host of a socket whose limits are violated suffers, too.
    let hosts = vec![host("10.9.0.3", 20, 9_000_000, 2.0), host("10.9.0.1", 1, 450_000, 0.0)];
    let suffers = Traffic { hosts, ..way.clone() };
    assert_cause(&explained(Some(&suffers), late(150.0)), DeliveryCause::ManyFlowsOfHost, &[]);
    assert_eq!(explained(Some(&suffers), untouched).findings, [], "nobody suffers");
    let discovery = vec![host("10.9.0.3", 20, 9_000_000, 2.0), host("fe80::1", 1, 12, 50.0)];
    assert_eq!(explained(Some(&Traffic { hosts: discovery, ..way.clone() }), untouched).findings, []);
    let few = vec![host("10.9.0.3", 4, 9_000_000, 2.0), host("10.9.0.1", 1, 450_000, 4.0)];
    assert_eq!(explained(Some(&Traffic { hosts: few, ..way }), untouched).findings, []);
}

#[test]
fn a_queue_that_is_too_long() {
    let way = Traffic { utilisation: 0.97, mean_wait_ms: 240.0, ..Traffic::default() };
    let words = ["`sieve` of `p0 -> p1`", "waited 240 ms", "97 % of its 10 Mbit/s"];
    assert_cause(&explained(Some(&way), untouched), DeliveryCause::QueueTooLong, &words);
    // 70 ms are no fault by themselves; those of a call with a limit of 100 ms are.
    let flows = vec![Stream { wait_ms: 90.0, ..call() }];
    let way = Traffic { utilisation: 0.97, mean_wait_ms: 70.0, flows, ..Traffic::default() };
    assert_eq!(explained(Some(&way), untouched).findings, []);
    assert_cause(
        &explained(Some(&way), late(110.0)),
        DeliveryCause::QueueTooLong,
        &["waits 90 ms of its 110 ms"],
    );
    // A link that is hardly used has no long queue, however long its few packets waited.
    let idle = Traffic { utilisation: 0.1, mean_wait_ms: 240.0, ..Traffic::default() };
    assert_eq!(explained(Some(&idle), untouched).findings, []);
}

#[test]
fn a_bottleneck_elsewhere() {
    let explanation = explained(Some(&Traffic::default()), late(300.0));
    let words =
        ["50 % utilised", "the delay of `call` (10.9.0.1:5000 to 10.9.0.2:5001) is 300 ms, and only 1 ms"];
    assert_cause(&explanation, DeliveryCause::BottleneckElsewhere, &words);
    assert_eq!(explanation.findings[0].strength, Strength::Strong);
    // A flow that no router lists: the routers wait less than it does.
    let unlisted = Traffic { flows: Vec::new(), ..Traffic::default() };
    let explanation = explained(Some(&unlisted), late(300.0));
    assert_cause(&explanation, DeliveryCause::BottleneckElsewhere, &["only 2 ms"]);
    assert_eq!(explanation.findings[0].strength, Strength::Medium);
    assert!(
        explanation.not_examined.iter().any(|line| line.starts_with("flows and hosts")),
        "{explanation:?}"
    );
}

/// A queue in the kernel of `eth0`, with the counters of this traffic.
fn kernel_queue(traffic: &Traffic, is_end: bool) -> KernelQueueEntry {
    let statistics = DirectionStatistics {
        name: "eth0".into(),
        flows: Vec::new(),
        hosts: Vec::new(),
        ..direction(traffic, is_end)
    };
    let elapsed_s = if is_end { 50.0 + SECONDS } else { 50.0 };
    let queue = QdiscDocument { interface: "eth0".into(), elapsed_s, statistics, ..QdiscDocument::default() };
    KernelQueueEntry { index: 2, queue: queue.into() }
}

/// Explains a host without a router, with a queue in its kernel.
fn with_kernel_queue(
    traffic: &Traffic,
    change: impl Fn(&mut SocketRow, bool),
    interfaces: &[InterfaceEvidence],
) -> Explanation {
    let [before, after] = documents(None, change);
    let [before, after] = [(before, false), (after, true)].map(|(document, is_end)| HostDocument {
        kernel_queues: vec![kernel_queue(traffic, is_end)],
        ..document
    });
    explain(&HostEvidence { before: &before, after: &after, interfaces })
}

#[test]
fn a_queue_in_the_kernel_is_evidence_like_a_routers() {
    let healthy = with_kernel_queue(&Traffic::default(), untouched, &[]);
    assert_eq!((&healthy.findings[..], healthy.routers, healthy.kernel_queues), (&[][..], 0, 1));
    assert!(healthy.summary.ends_with("and 1 queue in the kernel shows none"), "{healthy:?}");
    assert!(healthy.not_examined.iter().all(|line| !line.starts_with("queues")), "{healthy:?}");
    let long = Traffic { utilisation: 0.97, mean_wait_ms: 240.0, ..Traffic::default() };
    let explanation = with_kernel_queue(&long, untouched, &[]);
    let words = ["of `eth0`", "waited 240 ms", "97 % of its 10 Mbit/s"];
    assert_cause(&explanation, DeliveryCause::QueueTooLong, &words);
    assert_eq!(explanation.findings[0].rests_on[0], "kernel_queues[0].statistics.waits_us");
    assert!(explanation.findings[0].do_next.contains("cutline qdisc add"), "{explanation:?}");
    // It lists no flows, so a socket that sends may wait there.
    let waits = Traffic { utilisation: 0.97, mean_wait_ms: 70.0, ..Traffic::default() };
    let explanation = with_kernel_queue(&waits, late(110.0), &[]);
    assert_cause(&explanation, DeliveryCause::QueueTooLong, &["waits 70 ms of its 110 ms"]);
    assert_eq!(explanation.findings[0].strength, Strength::Medium);
    let explanation = with_kernel_queue(&Traffic::default(), late(300.0), &[]);
    let words = ["elsewhere than at the kernel, whose link is 50 % utilised", "in the queue of the kernel"];
    assert_cause(&explanation, DeliveryCause::BottleneckElsewhere, &words);
}

/// Received packets have left another host, and not this one.
#[test]
fn a_queue_in_the_kernel_is_no_cause_for_received_traffic() {
    let long = Traffic { utilisation: 0.97, mean_wait_ms: 240.0, ..Traffic::default() };
    let receives_late = |row: &mut SocketRow, _| {
        row.receive.last_delay = Some(spread(260.0));
        row.receive.violations = vec![violation("delay", 100.0, 300.0, "network")];
        row.rtt_ms = Some(400.0);
    };
    let explanation = with_kernel_queue(&long, receives_late, &[]);
    let causes: Vec<DeliveryCause> = explanation.findings.iter().map(|finding| finding.cause).collect();
    assert_eq!(causes, [DeliveryCause::QueueTooLong, DeliveryCause::NotExplained], "{explanation:#?}");
}

#[test]
fn a_wire_that_is_slower_than_the_kernels_queue() {
    let busy = Traffic { utilisation: 0.9, unsent: 500, ..Traffic::default() };
    let wire = |speed_bps| InterfaceEvidence {
        name: "eth0".into(),
        speed_bps: Some(speed_bps),
        // These are the counters of the queue itself.
        queued_packets: 40,
        dropped_packets: 4000,
        ..InterfaceEvidence::default()
    };
    let explanation = with_kernel_queue(&busy, untouched, &[wire(8_000_000)]);
    let words = ["less than the 10 Mbit/s that the kernel is configured for", "`eth0` has 8 Mbit/s"];
    assert_cause(&explanation, DeliveryCause::LinkRateLower, &words);
    assert!(explanation.findings[0].do_next.contains("cutline qdisc change dev eth0"), "{explanation:?}");
    assert_eq!(with_kernel_queue(&busy, untouched, &[wire(1_000_000_000)]).findings, []);
}

#[test]
fn queues_in_the_kernel_that_cannot_be_read_are_not_examined() {
    let [before, after] = documents(None, untouched);
    let after = HostDocument { kernel_queues_problem: Some("not permitted".into()), ..after };
    let explanation = explain(&HostEvidence { before: &before, after: &after, interfaces: &[] });
    assert_eq!(explanation.not_examined[0], "queues in the kernel: not permitted");
}

#[test]
fn hosts_that_are_the_origin() {
    let held = explained(Some(&Traffic::default()), |row, _| {
        row.send.held_ms = 900.0;
        row.send.violations = vec![violation("rate", 60.0, 20.0, "sending-host")];
    });
    assert_cause(&held, DeliveryCause::SendingHost, &["violates its rate", "900 ms"]);
    let unread = explained(None, |row, _| {
        row.send.unread_ms = 2500.0;
        row.send.violations = vec![violation("delay", 100.0, 700.0, "receiving-host")];
    });
    assert_cause(&unread, DeliveryCause::ReceivingHost, &["violates its delay", "2500 ms"]);
    let dropped = explained(None, |row, _| {
        row.send.overflowed_datagrams = 31;
        row.send.violations = vec![violation("loss", 2.0, 7.0, "receiving-host")];
    });
    assert_cause(&dropped, DeliveryCause::ReceivingHost, &["violates its loss", "31 did not fit"]);
    let silent = explained(None, |row, _| {
        row.send.violations = vec![violation("recovery", 500.0, 3000.0, "sending-host")];
    });
    assert_cause(&silent, DeliveryCause::SendingHost, &["violates its recovery", "reports wait"]);
}

#[test]
fn a_restarted_router_and_a_new_socket_are_left_out() {
    let [mut before, after] = documents(Some(&Traffic { missed: 400, ..Traffic::default() }), late(300.0));
    let mut statistics = (*before.routers[0].router).clone();
    statistics.elapsed_s = 1000.0;
    before.routers[0].router = statistics.into();
    before.sockets.clear();
    let explanation = explain(&HostEvidence { before: &before, after: &after, interfaces: &[] });
    assert_eq!(explanation.findings, []);
}

#[test]
fn texts_of_other_programs_are_escaped() {
    let explanation = explained(Some(&Traffic::default()), |row, is_end| {
        late(300.0)(row, is_end);
        row.peer = "\u{1b}[2J".into();
    });
    assert!(!explanation.summary.contains('\u{1b}'), "{explanation:?}");
}

#[test]
fn names_of_causes_are_those_in_documents() {
    for cause in [DeliveryCause::ReservationLost, DeliveryCause::ManyFlowsOfHost, DeliveryCause::NotExplained]
    {
        assert_eq!(serde_json::to_value(cause).unwrap(), cause.name());
    }
}

proptest! {
    /// Healthy: waits up to 60 ms in the mean, losses of a flow up to 5 %, messages lost within the limit of 1 %, delays below the limit,
    /// clocks exact to a fifth of it, a few frames that an interface does not like, hosts with any number of flows of which none loses 1 %.
    #[test]
    fn healthy_hosts_with_noise_have_no_cause(
        utilisation in 0.0..1.02_f64,
        mean_wait_ms in 0.0..60.0_f64,
        flow_packets in prop::collection::vec((1..4000_u64, 0.0..0.05_f64, 0.0..60.0_f64), 0..10),
        hosts in prop::collection::vec((1..40_u64, 1..10_000_000_u64, 0.0..0.9_f64), 0..6),
        odd in prop::array::uniform4(0..10_u64),
        lost in 0..3_u64,
        delays in prop::array::uniform2(0.0..90.0_f64),
        clock_error_ms in 0.0..20.0_f64,
    ) {
        let stream = |(place, &(packets, loss, wait_ms)): (usize, &(u64, f64, f64))| Stream {
            port: 80 + place as u16,
            packets,
            dropped: (packets as f64 * loss) as u64,
            wait_ms,
            code_point: 0,
            hint: 16,
            protocol: 6,
        };
        let flows: Vec<Stream> = flow_packets.iter().enumerate().map(stream).chain([call()]).collect();
        let hosts = hosts.iter().enumerate().map(|(place, &(flows, bps, loss))| HostStatistics {
            mean_wait_ms,
            ..host(&format!("10.9.1.{place}"), flows, bps, loss)
        });
        let [missed, truncated, without_checksum, unsent] = odd;
        let traffic = Traffic {
            utilisation,
            mean_wait_ms,
            dropped: flows.iter().map(|flow| flow.dropped).sum(),
            flows,
            hosts: hosts.collect(),
            missed,
            truncated,
            without_checksum,
            unsent,
            ..Traffic::default()
        };
        let explanation = explained(Some(&traffic), |row, is_end| {
            if is_end {
                row.send.lost_messages = lost;
                row.send.received_messages -= lost;
            }
            row.clock_error_ms = Some(clock_error_ms);
            row.rtt_ms = Some(delays[0] + delays[1]);
            row.send.last_delay = Some(spread(delays[0]));
            row.receive.last_delay = Some(spread(delays[1]));
        });
        prop_assert_eq!(explanation.findings, []);
    }
}
