//! Seeds of the corpora that the project's own writers write: each is in the corpus as it is written now.
//!
//! `CUTLINE_BLESS=1 cargo test -p cutline-fuzz seeds::` writes them; the diff is the review. Seeds of texts that people
//! write are files of the corpus like any other.

use async_snmp::message::{CommunityMessage, V3Message};
use async_snmp::{MessageSize, Oid, RequestPdu, Value, VarBind, Version};
use cutline_baseline::{BaselineDocument, BaselineRow, QueueSize};
use cutline_flow::{FlowSelector, TrafficSpec};
use cutline_fuzz::find;
use cutline_manager::feedback::{Cutoff, Directive, HostId, HostState, Loads, PathId, PathSummary, RankLoad};
use cutline_manager::resources::LoweringOrder;
use cutline_publish::{DirectionRow, LimitRow, ManagerRequest, ProgramRow, SocketRow};
use cutline_quality::spec::{CapacityProfile, ConnectionSpecification, Preset};
use cutline_records::BucketCounts;
use cutline_results::{
    DistributionRow, ExistingResults, FlowRow, Host, Planned, PointRow, QueueRow, QueueSeriesRow, Row,
    RunStore, SeriesRow, Summary, TimingRow, write_table,
};
use cutline_router_service::{
    AutorateStatistics, DirectionStatistics, HintStatistics, HostStatistics, Interface, PacketCount,
    ReloadStatus, ReservationAction, ReservationRequest, RouterDirection, RouterSpec, Statistics,
    configuration,
};
use cutline_rsvp::intserv::{Adspec, Flowspec, Tspec};
use cutline_rsvp::{message as rsvp, object};
use cutline_scenario::ScenarioFile;
use cutline_scenario::runner::plan;
use cutline_signal::clock::{ClockOffset, Echo, Stamps};
use cutline_signal::monitor::{Arrivals, Departures, MonitorParams, Report};
use cutline_signal::negotiation::message::Content;
use cutline_signal::negotiation::{self, Role};
use cutline_signal::rate_control::FeedbackMessage;
use cutline_signal::{frame, presence};
use cutline_snmp::mib::{OBJECTS, ROOT};
use cutline_traffic::control::message::{
    Begin, Carrier, ControlReply, ControlRequest, FramesTo, Hello, Law, Member, Open, PROTOCOL,
    Report as TrafficReport, ReverseFlows, RunRequest, Setting, TestParameters, write_message,
};
use cutline_traffic::header::{Message, Note, Preamble, Proof, Step};
use cutline_traffic::{
    HostUse, MeterReport, ReceivedInterval, ReceiverReport, SenderReport, SentInterval, TcpOptions,
};
use cutline_transport::wire::{self, Data, Extension};
use cutline_transport::{nada, tfrc, udp};
use cutline_units::{Bytes, Dscp, Duration, Histogram, Instant, Rate};
use cutline_wire::direct::{DirectFlow, Segments};
use etherparse::{PacketBuilder, VlanId};
use std::env;
use std::fs;
use std::sync::atomic::AtomicBool;

/// A name and the bytes.
type Seed = (String, Vec<u8>);

fn seed(name: &str, bytes: impl Into<Vec<u8>>) -> Seed {
    (name.to_owned(), bytes.into())
}

/// Holds the seeds of a target to those in its corpus, or writes them there.
fn check(target: &str, seeds: Vec<Seed>) {
    let target = find(target).expect("the target is in the table");
    for (name, bytes) in seeds {
        assert!(target.check(&bytes), "the seed {name} of {} is refused", target.name);
        let path = target.corpus_folder().join(&name);
        if env::var_os("CUTLINE_BLESS").is_some() {
            fs::create_dir_all(target.corpus_folder()).unwrap();
            fs::write(&path, &bytes).unwrap();
        }
        let stored = fs::read(&path).unwrap_or_default();
        assert!(stored == bytes, "{} is not what is written now: see this test's header", path.display());
    }
}

/// Every kind of message of a negotiation.
#[test]
fn negotiations() {
    let [send, receive] = [Preset::Video, Preset::Telemetry].map(Preset::specification);
    let specification = ConnectionSpecification { send, receive, profile: Some(CapacityProfile::Scavenger) };
    let contents = [
        ("offer", Content::Offer(specification.clone())),
        ("answer", Content::Answer { agreed: true, specification }),
        ("confirmation", Content::Confirmation),
    ];
    let bytes = |content: Content| {
        let echo = if matches!(content, Content::Offer(_)) { [0; 16] } else { [1; 16] };
        let (session, round, agreed_round, nonce) = (5, 1, 0, [7; 16]);
        negotiation::message::NegotiationMessage { session, round, agreed_round, nonce, echo, content }
            .encode(Role::Initiator, None)
    };
    check("negotiation", contents.map(|(name, content)| seed(name, bytes(content))).into());
}

/// Messages about the path and the reservation that the target's router has, and acknowledgements.
#[test]
fn rsvp_messages() {
    let at = |link: u8, end: u8| std::net::IpAddr::from([10, 0, link, end]);
    let session = object::Session { destination: at(2, 2), protocol: 17, port: 5004 };
    let sender = object::Sender::new(at(1, 2), 5000);
    let [hop, next_hop] = [(1, 9), (2, 2)].map(|(link, handle)| object::Hop { address: at(link, 2), handle });
    let tspec = Tspec::new(20_000.0, 1000.0);
    let flowspec = Some(Flowspec::ControlledLoad(tspec));
    let refresh = Duration::from_secs(30);
    let code = object::code::ADMISSION;
    let error = object::ErrorSpec { node: at(1, 2), in_place: false, not_guilty: false, code, value: 2 };
    let (policy, adspec) = (Vec::new(), Some(Adspec::new(1500)));
    let path = rsvp::Path { session, polices_entry: true, hop, refresh, policy, sender, tspec, adspec };
    let resv = |style, flows| {
        let (hop, policy) = (next_hop, Vec::new());
        rsvp::Body::Resv(rsvp::Resv {
            session,
            hop,
            refresh,
            confirm: None,
            scope: None,
            policy,
            style,
            flows,
        })
    };
    let flow = rsvp::Descriptor { flowspec, filters: vec![sender] };
    let all = rsvp::Descriptor { flowspec, filters: Vec::new() };
    let resv_error = rsvp::ResvErr {
        session,
        hop,
        error,
        scope: None,
        policy: Vec::new(),
        style: object::Style::FixedFilter,
        flow: Some(flow.clone()),
    };
    let path_error = rsvp::PathErr { session, error, policy: Vec::new(), sender, tspec: Some(tspec) };
    let resv_tear = rsvp::ResvTear {
        session,
        hop: next_hop,
        style: object::Style::FixedFilter,
        flows: vec![flow.clone()],
    };
    let confirmation = rsvp::ResvConf {
        session,
        error,
        receiver: at(2, 2),
        style: object::Style::FixedFilter,
        flows: vec![flow.clone()],
    };
    let list = object::IdList { epoch: 1, ids: object::Ids::Plain(vec![1, 2, 3]) };
    let one = rsvp::Message::new(64, rsvp::Body::Path(path.clone())).encode();
    let bodies = [
        ("path", rsvp::Body::Path(path)),
        ("path-tear", rsvp::Body::PathTear(rsvp::PathTear { session, hop, sender, tspec: Some(tspec) })),
        ("path-err", rsvp::Body::PathErr(path_error)),
        ("resv-ff", resv(object::Style::FixedFilter, vec![flow.clone()])),
        ("resv-se", resv(object::Style::SharedExplicit, vec![flow])),
        ("resv-wf", resv(object::Style::WildcardFilter, vec![all])),
        ("resv-tear", rsvp::Body::ResvTear(resv_tear)),
        ("resv-err", rsvp::Body::ResvErr(resv_error)),
        ("resv-conf", rsvp::Body::ResvConf(confirmation)),
        ("srefresh", rsvp::Body::Srefresh(vec![list])),
        ("bundle", rsvp::Body::Bundle(vec![one])),
        ("challenge", rsvp::Body::IntegrityChallenge(object::Challenge { key: 7, cookie: 8 })),
    ];
    let seeds = bodies.map(|(name, body)| {
        let is_bare = matches!(body, rsvp::Body::Bundle(_) | rsvp::Body::IntegrityChallenge(_));
        let id = (!is_bare).then_some(object::MessageId { wants_ack: true, epoch: 1, id: 2 });
        let mut bytes =
            rsvp::Message { id, reduces_refreshes: true, ..rsvp::Message::new(64, body) }.encode();
        // Without a checksum, so that changed bytes are read.
        bytes[2..4].fill(0);
        seed(name, bytes)
    });
    check("rsvp", seeds.into());
}

/// Writes the input of one end of a connection: as datagrams with their lengths in front, as a stream, and a
/// question before it. The token is that of the target.
#[test]
fn sessions() {
    const TOKEN: u32 = 0x0303_0303;
    let sent = Instant::from_nanos(1_000_000_000);
    let untagged = |content: &[u8]| frame::report(TOKEN, content, None::<fn(&[u8]) -> [u8; 32]>);
    let report = untagged(&[1; 20]);
    let data = [&frame::datagram_header(TOKEN, 0, sent, None)[..], b"hello"].concat();
    let with_lengths = |datagrams: &[&Vec<u8>]| {
        datagrams.iter().flat_map(|each| [&[each.len() as u8], &each[..]].concat()).collect::<Vec<_>>()
    };
    let datagrams = with_lengths(&[&data, &report, &data]);
    let controlled = [0, 1, 5, 6, 7].map(|number| {
        let rtt = if number == 0 { Duration::ZERO } else { Duration::from_millis(20) };
        [&frame::datagram_header(TOKEN, number, sent, Some(rtt))[..], b"hello"].concat()
    });
    let [first, last] =
        feedback().map(|content| frame::feedback(TOKEN, &content, None::<fn(&[u8]) -> [u8; 32]>));
    let [a, b, c, d, e] = &controlled;
    let controlled = with_lengths(&[a, &first, b, c, d, e, &last, &last]);
    let fragment = |bytes: &[u8], is_last| {
        [&frame::stream_header(TOKEN, bytes.len(), is_last, sent)[..], bytes].concat()
    };
    let stream = [fragment(b"hel", false), fragment(b"lo", true), report, fragment(b"", true)].concat();
    let question = presence::question([7; 16], None);
    check(
        "session",
        vec![
            seed("datagrams", datagrams),
            seed("rate-control", controlled),
            seed("stream", stream),
            seed("question", question),
        ],
    );
}

/// Feedback of rate control: the first, and one after losses.
fn feedback() -> [Vec<u8>; 2] {
    let message = |number, ms: u64, x_recv, p| {
        let (echo, t_delay) = (Instant::ZERO + Duration::from_millis(ms), Duration::from_millis(1));
        FeedbackMessage { number, feedback: tfrc::Feedback { echo, t_delay, x_recv, p } }.encode().to_vec()
    };
    [message(1, 1000, 0.0, 0.0), message(2, 2500, 5e4, 0.01)]
}

/// Reports of a connection, and feedback of its rate control: the first, one after losses, and a row of them.
#[test]
fn reports() {
    let params = MonitorParams::default();
    let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
    let mut arrivals = Arrivals::new(at(0), &params).unwrap();
    let mut departures = Departures::new(at(0), &params).unwrap();
    let (mut reports, mut unread, mut overflowed) = (Vec::new(), Vec::new(), Vec::new());
    for number in 1..=4_u32 {
        let begin = u64::from(number - 1) * 500;
        for message in (0..25).filter(|message| number != 2 || message % 5 > 0) {
            let sent = at(begin + message * 19);
            departures.on_send(sent, 1000);
            let in_row = u64::from(number - 1) * 25 + message;
            arrivals.on_message(
                sent + Duration::from_millis(5 + message % 3),
                in_row,
                sent,
                1000,
                Some(ClockOffset::NONE),
            );
        }
        let end = at(begin + 500);
        arrivals.on_deadline(end);
        departures.on_deadline(end);
        let echo = (number > 1).then(|| Echo { sent: at(begin), received: at(begin + 5) });
        let mut report = Report::new(number, &arrivals, &departures, None, Stamps { sent: end, echo });
        reports.push(report.encode());
        // An application that does not read.
        report.received.unread = Duration::from_millis(100);
        unread.push(report.encode());
        report.received.overflowed = number.into();
        overflowed.push(report.encode());
    }
    check(
        "report",
        vec![
            seed("first", reports[0].clone()),
            seed("losses", reports[1].clone()),
            seed("row", reports.concat()),
            seed("unread", unread.concat()),
            seed("overflowed", overflowed.concat()),
            seed("feedback", feedback().concat()),
        ],
    );
}

/// Summaries of a path: of a host without flows, of a member, and of a coordinator that has lowered two ranks.
#[test]
fn summaries_of_a_path() {
    let mut loads = Loads::default();
    loads.0[0] = RankLoad { used: 300_000, minimum: 200_000, reference: 2_000_000 };
    loads.0[4] = RankLoad { used: 900_000, minimum: 100_000, reference: 1_000_000 };
    let directive = Directive { coordinator: HostId(1), epoch: 12, cutoff: Cutoff::from_ranks(4.5) };
    let order = LoweringOrder::Priority;
    let empty = PathSummary {
        order,
        host: HostId(9),
        path: PathId(3),
        number: 5,
        directive: Directive { cutoff: Cutoff::NONE, ..directive },
        state: HostState { ahead: 1.0, ahead_of_most: 1.0, ..HostState::default() },
    };
    let queue = Duration::from_millis(80);
    let shares =
        HostState { disturbed: 0.25, queued: 0.5, ahead: -0.25, ahead_of_most: 0.5, ..HostState::default() };
    let state = HostState { is_ready: true, flows: 3, queue, loads, ..shares };
    let member = PathSummary { host: HostId(2), number: 6, directive, state, ..empty };
    let coordinator = PathSummary { host: HostId(1), number: 7, ..member };
    let order = LoweringOrder::LargestSlack;
    let seeds = [("empty", empty), ("member", member), ("coordinator", coordinator)];
    let slack = ("slack", PathSummary { order, ..member });
    let encoded = seeds.into_iter().chain([slack]).map(|(name, summary)| seed(name, summary.encode()));
    check("path-summary", encoded.collect());
}

#[test]
fn published_rows_and_requests_of_managers() {
    let row = SocketRow {
        socket: 7,
        transport: "udp".to_owned(),
        receive: DirectionRow {
            limits: vec![LimitRow { measure: "delay".to_owned(), worst: 80.0, ..LimitRow::default() }],
            delay_buckets_ms: Some(BucketCounts { bounds: vec![1.0, 5.0], counts: vec![2, 1, 4], sum: 40.0 }),
            ..DirectionRow::default()
        },
        ..SocketRow::default()
    };
    let line = |value: serde_json::Value| value.to_string() + "\n";
    let lines = [
        line(serde_json::json!({ "socket": row })),
        line(serde_json::json!({ "program": ProgramRow::default() })),
        line(serde_json::json!({ "router": Statistics::default() })),
        line(serde_json::json!({ "gone": { "kind": "program", "number": 0 } })),
    ];
    // Numbers that a process may state, whose sums have no room.
    let most = PacketCount { packets: u64::MAX, bytes: u64::MAX };
    let mut row = row;
    (row.reserved_bps, row.retransmissions) = (Some(u64::MAX), Some(u64::MAX));
    for direction in [&mut row.send, &mut row.receive] {
        direction.throughput_bps = Some(u64::MAX);
        direction.violations_begun = u64::MAX;
        (direction.lost_messages, direction.received_messages) = (u64::MAX, u64::MAX);
        direction.delay_buckets_ms =
            Some(BucketCounts { bounds: vec![5.0, 5.0], counts: vec![u64::MAX; 3], sum: f64::MAX });
    }
    let mut statistics = Statistics { elapsed_s: 1.0, ..Statistics::default() };
    for direction in [&mut statistics.forward, &mut statistics.reverse] {
        direction.dropped = ["early", "overflow", "x"].map(|reason| (reason.to_owned(), most)).into();
        (direction.received, direction.sent, direction.rate_bps) = (most, most, 1);
        direction.waits_us = BucketCounts { bounds: vec![1.0], counts: vec![u64::MAX; 2], sum: f64::MAX };
        direction.hints = vec![HintStatistics { hint: 6, departed: most, ..HintStatistics::default() }; 2];
        let host =
            HostStatistics { side: "source".to_owned(), recent_bps: u64::MAX, ..HostStatistics::default() };
        direction.hosts = vec![host; 2];
    }
    let interface = Interface { missed_packets: u64::MAX, truncated: most, ..Interface::default() };
    statistics.interfaces = vec![interface; 2];
    let sockets = [7, (1 << 32) + 3];
    let router = |statistics: &Statistics| line(serde_json::json!({ "router": statistics }));
    let mut large: Vec<String> = sockets
        .map(|socket| line(serde_json::json!({ "socket": SocketRow { socket, ..SocketRow::default() } })))
        .into();
    large.extend([router(&Statistics::default()), router(&statistics)]);
    for socket in sockets {
        row.socket = socket;
        large.push(line(serde_json::json!({ "socket": row })));
    }
    check("publication", vec![seed("every-kind", lines.concat()), seed("largest-numbers", large.concat())]);
    let limit = ManagerRequest::Limit { socket: 7, receive: true, measure: "delay".to_owned(), worst: 120.5 };
    let requests = [limit, ManagerRequest::Renegotiate { socket: 9 }].map(|request| request.line());
    check("manager-request", vec![seed("both", requests.concat())]);
    // GetNext from a name to another one, in network byte order.
    let mut message = vec![1, 6, 0x10, 0];
    for number in [7_u32, 8, 9, 28] {
        message.extend(number.to_be_bytes());
    }
    message.extend([1, 4, 1, 0, 0, 0, 0, 5, 4, 0, 0, 0]);
    for arc in [1_u32, 3, 6, 2] {
        message.extend(arc.to_be_bytes());
    }
    check("agentx", vec![seed("get-next", message)]);
    check("snmp-message", managers_requests());
}

/// Requests of managers for the system's name, for the objects behind the root of CUTLINE-QOS-MIB, and to change an object.
fn managers_requests() -> Vec<Seed> {
    let name = |arcs: &[u32]| Oid::new(arcs.iter().copied());
    let objects = [ROOT, &[OBJECTS]].concat();
    let (system, ours) = (name(&[1, 3, 6, 1, 2, 1, 1, 5, 0]), name(&objects));
    let change = vec![VarBind::new(name(&[&*objects, &[2, 1, 1, 1]].concat()), Value::Integer(2))];
    let community = |pdu: RequestPdu| CommunityMessage::v2c("public", pdu).unwrap().encode().unwrap();
    let version = Version::V2c;
    let discovery = V3Message::discovery_request(7, MessageSize::new(1472).unwrap()).unwrap();
    vec![
        seed("get", community(RequestPdu::get(version, 7, &[system]).unwrap())),
        seed("get-next", community(RequestPdu::get_next(version, 8, &[ours]).unwrap())),
        seed("set", community(RequestPdu::set(version, 9, change).unwrap())),
        seed("discovery", discovery.encode().unwrap()),
    ]
}

/// A dynamic program of this machine: an ELF header, a program header, and the dynamic linker's name.
#[test]
fn programs() {
    let program = |machine: u16, linker: &[u8]| {
        let mut bytes = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0];
        bytes.resize(16, 0);
        let halves = |bytes: &mut Vec<u8>, values: &[u16]| {
            bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        };
        let longs = |bytes: &mut Vec<u8>, values: &[u64]| {
            bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        };
        halves(&mut bytes, &[2, machine, 1, 0]);
        longs(&mut bytes, &[0, 64, 0]);
        halves(&mut bytes, &[0, 0, 64, 56, 1, 64, 0, 0]);
        // PT_INTERP, readable; offset, addresses, sizes, alignment.
        halves(&mut bytes, &[3, 0, 4, 0]);
        longs(&mut bytes, &[120, 0, 0, linker.len() as u64, linker.len() as u64, 1]);
        bytes.extend(linker);
        bytes
    };
    let seeds = if cfg!(target_arch = "aarch64") {
        vec![seed("aarch64", program(183, b"/lib/ld-linux-aarch64.so.1\0"))]
    } else {
        vec![seed("x86-64", program(62, b"/lib64/ld-linux-x86-64.so.2\0"))]
    };
    check("program-file", seeds);
}

/// Control messages as QUIC libraries write them.
#[test]
fn marks() {
    let message = |level: i32, kind: i32, data: &[u8]| {
        let mut bytes = (16 + data.len()).to_ne_bytes().to_vec();
        bytes.extend([level, kind].iter().flat_map(|value| value.to_ne_bytes()));
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    };
    let seeds = vec![
        seed("v4", message(0, 1, &2_i32.to_ne_bytes())),
        seed("v4-octet", message(0, 1, &[1])),
        seed("v6", message(41, 67, &1_i32.to_ne_bytes())),
        seed(
            "segments",
            [message(17, 103, &1200_u16.to_ne_bytes()), message(41, 67, &0_i32.to_ne_bytes())].concat(),
        ),
    ];
    check("program-marks", seeds);
}

/// Tunnels and labels around an IPv4 packet and a frame of IPv6.
fn tunnels(v4: &[u8], v6: &[u8]) -> Vec<(String, Vec<u8>)> {
    let around = |protocol: u8, inner: &[u8]| {
        let length = (20 + inner.len() as u16).to_be_bytes();
        let head =
            [0x45, 0, length[0], length[1], 0, 7, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 9, 10, 0, 0, 8];
        [&[2; 12], &[8, 0][..], &head, inner].concat()
    };
    let datagram = |port: u16, inner: &[u8]| {
        let length = (8 + inner.len() as u16).to_be_bytes();
        around(17, &[&[0x13, 0x88], &port.to_be_bytes()[..], &length, &[0, 0], inner].concat())
    };
    let first = |frame: Vec<u8>| {
        let mut frame = frame;
        frame[20] = 0x20;
        frame
    };
    vec![
        seed("ip-in-ip", around(4, v4)),
        seed("6in4", around(41, &v6[14..])),
        seed("gre-key", around(47, &[&[0x20, 0, 8, 0, 0, 0, 0, 5][..], v4].concat())),
        seed("gre-ethernet", around(47, &[&[0, 0, 0x65, 0x58][..], v6].concat())),
        seed("pptp", around(47, &[&[0x20, 1, 0x88, 0x0b, 0, 9, 0, 5, 0xff, 3, 0, 0x21][..], v4].concat())),
        seed("mpls", [&[2; 12], &[0x88, 0x47, 0, 6, 0x40, 64, 0, 6, 0x41, 64][..], v4].concat()),
        seed("vxlan", datagram(4789, &[&[8, 0, 0, 0, 0, 0, 5, 0][..], v6].concat())),
        seed("geneve", datagram(6081, &[&[1, 0, 0x65, 0x58, 0, 0, 5, 0, 1, 2, 3, 4][..], v6].concat())),
        seed("tunnel-fragment", first(around(4, v4))),
        seed("vlan-8", [&[2; 12], &[0x81, 0, 0, 1].repeat(8)[..], &[8, 0], v4].concat()),
    ]
}

/// The frames that a router meets.
#[test]
fn frames() {
    let ethernet = || PacketBuilder::ethernet2([2; 6], [4; 6]);
    let (source, destination) = ([10, 0, 0, 1], [10, 0, 1, 1]);
    let mut seeds = Vec::new();
    let mut add = |name: &str, write: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = Vec::new();
        write(&mut bytes);
        seeds.push((name.to_owned(), bytes));
    };
    add("ipv4-tcp", &|to| {
        ethernet().ipv4(source, destination, 64).tcp(20_000, 5001, 7, 8192).write(to, b"GET /").unwrap();
    });
    add("ipv4-udp", &|to| {
        ethernet().ipv4(source, destination, 64).udp(5000, 5001).write(to, &[0; 12]).unwrap();
    });
    add("ipv6-tcp", &|to| {
        ethernet().ipv6([1; 16], [2; 16], 64).tcp(20_000, 5001, 7, 8192).syn().write(to, &[]).unwrap();
    });
    add("ipv6-udp", &|to| ethernet().ipv6([1; 16], [2; 16], 64).udp(5000, 5001).write(to, &[0; 12]).unwrap());
    let tag = VlanId::try_new(100).unwrap();
    add("vlan-ipv4-udp", &|to| {
        ethernet().single_vlan(tag).ipv4(source, destination, 64).udp(53, 5353).write(to, &[1; 4]).unwrap();
    });
    add("qinq-ipv6-udp", &|to| {
        ethernet().double_vlan(tag, tag).ipv6([1; 16], [2; 16], 64).udp(53, 5353).write(to, &[1; 4]).unwrap();
    });
    let packet = |frame: &[u8]| frame[14..].to_vec();
    let pppoe = |protocol: u16, packet: &[u8]| {
        let length = (packet.len() as u16 + 2).to_be_bytes();
        [&[2; 12], &[0x88, 0x64, 0x11, 0, 0, 1][..], &length, &protocol.to_be_bytes(), packet].concat()
    };
    let in_session =
        [("pppoe-ipv4", 0x0021, packet(&seeds[0].1)), ("pppoe-ipv6", 0x0057, packet(&seeds[2].1))];
    seeds.extend(in_session.map(|(name, protocol, packet)| seed(name, pppoe(protocol, &packet))));
    // Hop-by-hop options, a fragment, then UDP.
    let inner =
        [&[44, 0, 1, 4, 0, 0, 0, 0][..], &[17, 0, 0, 1, 0, 0, 0, 9], &[0x13, 0x88, 0x13, 0x89, 0, 8, 0, 0]]
            .concat();
    let head = [&[0x60, 0, 0, 0, 0, inner.len() as u8, 0, 64][..], &[1; 16], &[2; 16]].concat();
    seeds.push(seed("ipv6-fragment", [&[2; 12][..], &[0x86, 0xdd], &head, &inner].concat()));
    seeds.extend(tunnels(&packet(&seeds[1].1), &seeds[3].1));
    check("frame-headers", seeds);
}

/// Messages in frames below IP: in one frame, in several, and in the wrong order.
#[test]
fn direct_frames() {
    let flow = DirectFlow { destination: 7000, source: 50_000 };
    let frames = |number, hint, length: usize, mtu| {
        let segments = Segments::new(flow, number, hint, length, mtu).unwrap();
        let mut bytes = Vec::new();
        let ranges = segments.write(&[&vec![number as u8; length]], &mut bytes);
        let frame =
            |range: std::ops::Range<usize>| [&(range.len() as u16).to_be_bytes()[..], &bytes[range]].concat();
        ranges.map(frame).collect::<Vec<_>>()
    };
    let several = frames(2, None, 300, 100);
    let mut order = several.clone();
    order.reverse();
    let mut lost = frames(u32::MAX, Some(16), 200, 100);
    lost.remove(1);
    lost.extend(frames(0, Some(1), 0, 1500));
    check(
        "direct-frames",
        vec![
            seed("one", frames(1, Some(6), 40, 1500).concat()),
            seed("several", several.concat()),
            seed("order", order.concat()),
            seed("lost", lost.concat()),
        ],
    );
}

fn data(extension: Extension) -> Data {
    let dscp = Dscp::new(46).unwrap();
    Data { flow: 7, dscp, token: 1 << 50, seq: 1 << 40, sent_at: Instant::from_nanos(123_456_789), extension }
}

fn preamble() -> Preamble {
    let dscp = Dscp::new(10).unwrap();
    Preamble { flow: 3, notify: true, reverse: false, dscp, receive_buffer: 65_536, token: 1 << 50 }
}

#[test]
fn headers_of_the_generator() {
    let kind = |kind: u8, bytes: &[u8]| [&[kind], bytes].concat();
    let message = |length| {
        let (bytes, used) = Message::write(length, Instant::from_nanos(77));
        kind(1, &bytes[..used])
    };
    let tfrc = tfrc::Extension {
        rtt: Duration::from_millis(300),
        segment_size: 1460,
        history_discounting: true,
        ecn: true,
    };
    let report = tfrc::Feedback {
        echo: Instant::from_nanos(5),
        t_delay: Duration::from_micros(3),
        x_recv: 1e5,
        p: 0.01,
    };
    let nada = nada::Extension { rtt: Duration::from_millis(300), feedback_ms: 100, window_ms: 500 };
    let measured = nada::Feedback {
        echo: Instant::from_nanos(5),
        queuing_delay: Duration::from_millis(30),
        largest_delay: Duration::from_millis(40),
        lost: 0.01,
        received: Rate::from_kbps(900),
        loss_interval: 100.0,
        since_loss: 7,
        ..nada::Feedback::default()
    };
    let header = |extension| {
        let data = data(extension);
        data.write()[..data.header_length()].to_vec()
    };
    let reply = |report| {
        let reply = wire::Reply { flow: 3, token: 1 << 50, report };
        reply.write()[..reply.length()].to_vec()
    };
    let note = Note { delivered: 1 << 50, at: Instant::from_nanos(99) };
    check(
        "traffic-headers",
        vec![
            seed("preamble", kind(0, &preamble().write())),
            seed("message-short", message(9)),
            seed("message-long", message(100_000)),
            seed("note", kind(2, &note.write())),
            seed("data-udp", kind(3, &header(Extension::Udp(udp::NoExtension)))),
            seed("data-tfrc", kind(3, &header(Extension::Tfrc(tfrc)))),
            seed("data-nada", kind(3, &header(Extension::Nada(nada)))),
            seed("feedback", kind(4, &reply(wire::Report::Tfrc(report)))),
            seed("feedback-nada", kind(4, &reply(wire::Report::Nada(measured)))),
            seed("proof-call", kind(5, &proof(Step::Call))),
            seed("proof-accepted", kind(5, &proof(Step::Accepted))),
        ],
    );
}

fn proof(step: Step) -> [u8; 24] {
    Proof { step, flow: 3, token: 1 << 50, nonce: 1 << 40 }.write()
}

#[test]
fn streams_of_the_generator() {
    let stream = |lengths: &[u64]| {
        let mut bytes = preamble().write().to_vec();
        for &length in lengths {
            let (header, used) = Message::write(length, Instant::from_nanos(length * 1000));
            bytes.extend_from_slice(&header[..used]);
            bytes.resize(bytes.len() + length as usize - used, b'.');
        }
        bytes
    };
    check(
        "traffic-stream",
        vec![
            seed("short-messages", stream(&[1, 15, 7])),
            seed("long-messages", stream(&[16, 160, 40])),
            seed("both", stream(&[3, 100, 1, 17])),
        ],
    );
}

#[expect(clippy::default_trait_access, reason = "the type is of a crate that this one does not depend on")]
fn report() -> TrafficReport {
    let sent = SenderReport {
        flow: 5,
        name: "reverse".to_owned(),
        bytes: 160_000,
        packets: 200,
        timeouts: Some(1),
        tcp: Some(Default::default()),
        tfrc_rtt: Some(Duration::from_millis(20)),
        intervals: vec![SentInterval { bytes: 1600, packets: 10 }; 2],
        ..SenderReport::default()
    };
    TrafficReport { received: received(), sent: vec![sent], host: HostUse::default() }
}

/// A group over TCP, and one over UDP.
fn reverse() -> Vec<ReverseFlows> {
    let tcp = TestParameters {
        transport: Carrier::Tcp(TcpOptions { send_buffer: Some(100_000), ..TcpOptions::default() }),
        app: "files".to_owned(),
        app_settings: vec![
            ("size".to_owned(), Setting::Distribution(Law::Exponential, vec![20e3_f64.to_bits()])),
            ("think_time".to_owned(), Setting::Distribution(Law::Fixed, vec![0.1_f64.to_bits()])),
        ],
        messages: Vec::new(),
        repeat_ns: None,
        dscp: 46,
        ecn: false,
        stop_ns: Some(5_000_000_000),
    };
    let udp = TestParameters {
        transport: Carrier::Datagrams {
            name: "udp".to_owned(),
            settings: vec![("max_datagram".to_owned(), Setting::Count(500))],
            ecn: 2,
        },
        app: "trace".to_owned(),
        app_settings: Vec::new(),
        messages: vec![(0, 100), (20_000_000, 200)],
        repeat_ns: Some(20_000_000),
        ecn: true,
        ..tcp.clone()
    };
    let member = |flow, start_ns| Member { flow, name: format!("f.{flow}"), start_ns };
    vec![
        ReverseFlows { members: vec![member(0, 0), member(1, 1000)], parameters: tcp },
        ReverseFlows { members: vec![member(2, 0)], parameters: udp },
    ]
}

fn received() -> MeterReport {
    let mut delay = Histogram::default();
    (1..40).for_each(|ms| delay.record(Duration::from_millis(ms * ms)));
    let interval = ReceivedInterval {
        bytes: 1600,
        packets: 10,
        lost: -1,
        marked: 2,
        delay_ns: 1 << 30,
        ipdv_ns: 1 << 20,
    };
    let flow = ReceiverReport {
        flow: 3,
        bytes: 160_000,
        packets: 1000,
        lost: 9,
        reordered: 1,
        window_lost: -2,
        ipdv: delay.clone(),
        delay,
        first: Some(Duration::from_millis(3)),
        traffic_class: Some(0xb8),
        loss_event_rate: Some(0.01),
        intervals: vec![interval; 2],
        ..ReceiverReport::default()
    };
    MeterReport {
        flows: vec![
            flow,
            ReceiverReport { flow: 4, error: Some("gone".to_owned()), ..ReceiverReport::default() },
        ],
        strangers: 1,
        overflowed: 2,
    }
}

#[test]
fn messages_of_the_control_protocol() {
    let requests = [
        ("open", ControlRequest::Open(Open { nonce: "5f".repeat(32) })),
        ("clock", ControlRequest::Clock),
        (
            "start",
            ControlRequest::Start(RunRequest {
                flows: 3,
                until_ns: 10_000_000_000,
                interval_ns: Some(1_000_000_000),
                seed: 7,
                receive_buffer: Some(212_992),
                frames_from: Some([2, 0, 0, 0, 0, 1]),
                reverse: reverse(),
            }),
        ),
        ("gather", ControlRequest::Gather),
        ("begin", ControlRequest::Begin(Begin { zero_ns: 1 << 60, offset_ns: -5 })),
        ("alive", ControlRequest::Alive),
        ("finish", ControlRequest::Finish),
    ];
    let mut seeds: Vec<_> =
        requests.map(|(name, request)| seed(name, write_message(&request).unwrap())).into();
    seeds.push(seed("tag", [&[b'a'; 64][..], b" \"clock\"\n"].concat()));
    check("control-request", seeds);
    let replies = [
        (
            "hello",
            ControlReply::Hello(Hello {
                cutline_tg: PROTOCOL,
                boot_id: String::new(),
                key: true,
                nonce: "a0".repeat(32),
            }),
        ),
        ("opened", ControlReply::Opened { boot_id: "3f0c2a52-0000-4000-8000-000000000000".to_owned() }),
        ("clock", ControlReply::Clock { came_ns: 1, left_ns: 1 << 60 }),
        (
            "ready",
            ControlReply::Ready {
                port: 5204,
                token: 1 << 60,
                frames_to: Some(FramesTo { link: [2, 0, 0, 0, 0, 2], port: 50_001 }),
            },
        ),
        ("gathered", ControlReply::Gathered),
        ("begun", ControlReply::Begun),
        ("report", ControlReply::Report(Box::new(report()))),
        ("refused", ControlReply::Refused("interval = 1 ns: at least 1 ms".to_owned())),
    ];
    check("control-reply", replies.map(|(name, reply)| seed(name, write_message(&reply).unwrap())).into());
}

fn direction(packets: u64) -> DirectionStatistics {
    let counted = |packets| PacketCount { packets, bytes: packets * 1000 };
    let hint = |hint| HintStatistics {
        hint,
        departed: counted(packets),
        mean_wait_ms: 3.5,
        ..HintStatistics::default()
    };
    DirectionStatistics {
        name: "lan0 -> wan0".to_owned(),
        rate_bps: 9_500_000,
        queue: "TSQ over pi".to_owned(),
        received: counted(packets + 9),
        sent: counted(packets),
        dropped: [("early".to_owned(), counted(3)), ("overflow".to_owned(), counted(2))].into(),
        queued_packets: 4,
        backlog: counted(4),
        probability: Some(0.02),
        slipped_ms: packets as f64 / 8.0,
        hints: vec![hint(1), hint(16)],
        ..DirectionStatistics::default()
    }
}

#[test]
fn replies_of_a_router() {
    let interface = Interface {
        name: "lan0".to_owned(),
        kind: "packet".to_owned(),
        missed_packets: 1,
        ..Interface::default()
    };
    let reload =
        ReloadStatus { done: 2, refused: 1, last_s: Some(8.0), error: Some("in: missing".to_owned()) };
    let document = |elapsed_s: f64, packets| Statistics {
        dropped_output: 5,
        refused_clients: 6,
        event: "interval".to_owned(),
        elapsed_s,
        forward: direction(packets),
        reverse: direction(packets / 2),
        interfaces: vec![interface.clone()],
        reload: Some(reload.clone()),
        autorate: Some(AutorateStatistics {
            requests: 90,
            replies: 88,
            delay_ms: Some(3.5),
            ..Default::default()
        }),
    };
    let text = include_str!("../../../../packaging/router.toml");
    let spec = RouterSpec::parse(text, "router.toml").unwrap_or_else(|errors| panic!("{errors}"));
    let config = serde_json::json!({ "event": "config", "config": configuration(&spec) });
    check(
        "router-reply",
        vec![
            seed("intervals", format!("{}\n{}\n", document(1.0, 1000).json(), document(2.0, 3000).json())),
            seed("configuration", format!("{config}\n")),
        ],
    );
}

/// Every kind of request that reserves.
#[test]
fn reservations_in_a_router() {
    let bucket = TrafficSpec {
        rate: Rate::from_kbps(640),
        bucket: Bytes::new(2000),
        peak: TrafficSpec::UNKNOWN_PEAK,
        min_policed: Bytes::new(64),
        max_packet: Bytes::new(1500),
    };
    let any = FlowSelector {
        protocol: Some(17),
        destination_port: Some(5004),
        ..FlowSelector::to("10.0.1.1".parse().unwrap())
    };
    let full = FlowSelector {
        destination: "fd00::2".parse().unwrap(),
        source: Some("fd00::1".parse().unwrap()),
        source_port: Some(4000),
        ..any
    };
    let actions = [
        ("reserve", ReservationAction::Reserve(bucket, vec![any, full])),
        ("change", ReservationAction::Change(bucket)),
        ("add-filter", ReservationAction::AddFilter(full)),
        ("remove-filter", ReservationAction::RemoveFilter(any)),
        ("release", ReservationAction::Release),
    ];
    let line = |(name, action)| {
        seed(name, ReservationRequest { direction: RouterDirection::Forward, number: 7, action }.to_string())
    };
    check("router-reservation", actions.map(line).into());
}

/// Writes the requests of applications to `cutlined`.
#[test]
fn requests_to_cutlined() {
    use cutline_provision::protocol::{Request, Senders};
    use cutline_provision::{Flow, TransportProtocol};
    use std::net::SocketAddr;
    let [one, other]: [SocketAddr; 2] = ["10.0.1.2:5000", "[fd00::2]:6000"].map(|text| text.parse().unwrap());
    let bucket = TrafficSpec {
        rate: Rate::from_bps(100_000),
        bucket: Bytes::new(3000),
        peak: Rate::from_bps(1_000_000),
        min_policed: Bytes::new(64),
        max_packet: Bytes::new(200),
    };
    let flow = Flow { transport: TransportProtocol::Tcp, source: one, destination: one };
    let reserve = |senders| Request::Reserve {
        id: 2,
        transport: TransportProtocol::Udp,
        destination: other,
        senders,
        bucket,
        confirm: true,
    };
    let requests = [
        ("hello", Request::Hello { version: 1 }),
        ("announce", Request::Announce { id: 1, flow, bucket }),
        ("reserve-fixed", reserve(Senders::Fixed { senders: vec![one] })),
        ("reserve-shared", reserve(Senders::Shared { senders: vec![other, one] })),
        ("reserve-any", reserve(Senders::Any {})),
        ("shape", Request::Shape { id: 3, flow, bucket }),
        ("withdraw", Request::Withdraw { id: u64::MAX }),
        ("status", Request::Status {}),
    ];
    let line = |(name, request): (&str, Request)| seed(name, request.line().trim_end().to_owned());
    check("cutlined-request", requests.map(line).into());
}

/// Writes the results of a short simulation, and a table of the laboratory's.
#[test]
fn results_of_a_run() {
    let text = include_str!("../src/targets/settings.toml");
    let file = ScenarioFile::parse(text, "settings.toml").unwrap();
    let points = file.expand().unwrap();
    let jobs = plan(&points, "0");
    let job = &jobs[0];
    let mut result = job.scenario.simulate(job.key.seed, &AtomicBool::new(false)).unwrap();
    result.stamp(&job.key);
    let timing = [TimingRow { run: "0".into(), timing_ok: true, ..TimingRow::default() }];
    let host = Host { kernel: "linux 6.1".to_owned(), cpu: "Example 3000".to_owned(), cores: 2 };
    let summary = Summary { host, ..file.summary(&points, &jobs, "0", "2000-01-01T00:00:00Z".to_owned()) };
    let settings: Vec<PointRow> =
        points.iter().flat_map(|point| PointRow::from_settings(&point.label(), &point.settings)).collect();
    let folder = tempfile::tempdir().unwrap();
    let keys = std::slice::from_ref(&job.key);
    let store =
        RunStore::begin(folder.path(), Planned { summary: &summary, keys }, ExistingResults::Repeat).unwrap();
    store.write_run(&job.key, result.clone()).unwrap();
    store.conclude(keys, &settings, &summary).unwrap();
    let summary = fs::read_to_string(folder.path().join("summary.json")).unwrap();
    check("result-summary", vec![seed("summary", summary)]);
    check(
        "result-tables",
        vec![
            table::<FlowRow>(&result.flows),
            table::<QueueRow>(&result.queues),
            table::<SeriesRow>(&result.series[..20]),
            table::<QueueSeriesRow>(&result.queue_series[..8]),
            table::<DistributionRow>(&result.distributions[..30]),
            table::<TimingRow>(&timing),
            table(&settings),
        ],
    );
}

fn table<R: Row>(rows: &[R]) -> Seed {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(R::FILE);
    write_table(&path, rows).unwrap();
    (R::FILE.to_owned(), fs::read(path).unwrap())
}

#[test]
fn tables_of_baselines() {
    let row = BaselineRow {
        protocol: "udp".into(),
        block: 8192,
        load_bps: Some(10_000_000),
        throughput_bps: 9.5e6,
        loss_ratio: Some(0.05),
        delay_ms: Some(0.4),
        ..BaselineRow::default()
    };
    let with = |percent: u32, loss: f64, ms: f64| BaselineRow {
        requested_percent: Some(percent),
        loss_ratio: Some(loss),
        delay_ms: Some(ms),
        ..row.clone()
    };
    let large = BaselineRow { queue: QueueSize::Large, loss_ratio: Some(0.0), ..row.clone() };
    let document = BaselineDocument {
        format: cutline_baseline::FORMAT,
        complete: true,
        rows: vec![row.clone(), large, with(100, 0.11, 12.0), with(140, 0.0, 0.2)],
        ..BaselineDocument::default()
    };
    let text = serde_json::to_string_pretty(&document).unwrap();
    check("baseline-table", vec![seed("table", text)]);
}
