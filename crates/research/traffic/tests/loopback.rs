//! Both ends over the loopback interface, without privileges.
#![expect(clippy::disallowed_methods, reason = "a test waits for packets in flight")]

use cutline_sys::now;
use cutline_testbed::{in_time, undisturbed};
use cutline_traffic::{
    FlowPlan, FlowTransport, Generator, Meter, MeterParams, MeterReport, PlanDirection, SenderReport,
    TcpOptions, TrafficError, Window,
};
use cutline_transport::app::{CbrParams, FilesParams, Params, PoissonParams};
use cutline_transport::endpoint::TransportParams;
use cutline_transport::tfrc;
use cutline_units::{
    Bytes, Distribution, Dscp, DscpPool2, Duration, Hint, HintCodec, Histogram, Instant, Rate, Streams,
};
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const LOOPBACK: &str = "127.0.0.1:0";

fn plan(id: u32, transport: FlowTransport, app: Params) -> FlowPlan {
    FlowPlan {
        direction: PlanDirection::Forward,
        id,
        name: format!("flow.{id}"),
        transport,
        app,
        from: None,
        to: LOOPBACK.parse().unwrap(),
        dscp: Dscp::DEFAULT,
        ecn: false,
        start: Duration::ZERO,
        stop: None,
    }
}

fn cbr(rate: Rate, size: u64) -> Params {
    Params::Cbr(CbrParams::new(rate, Bytes::new(size)))
}

fn udp() -> FlowTransport {
    FlowTransport::Datagrams(TransportParams::Udp(Arc::default()))
}

fn tcp() -> FlowTransport {
    FlowTransport::Tcp(TcpOptions::default())
}

/// Returns whether a flow has sent anything. One whose thread had no turn during the run has not.
fn has_sent(report: &SenderReport) -> bool {
    report.bytes > 0
}

/// Waits until a meter has read all connections to their ends. It closes them then, and the kernel has no open one at its port.
fn wait_for_ends(meter: SocketAddr) {
    /// `TCP_ESTABLISHED` and `TCP_CLOSE_WAIT` of `linux/tcp_states.h`.
    const OPEN: [&str; 2] = ["01", "08"];
    let port = format!(":{:04X}", meter.port());
    let is_open = |line: &str| {
        // Number, own address, address of the peer, state.
        let mut fields = line.split_whitespace().skip(1);
        let (own, state) = (fields.next().unwrap_or_default(), fields.nth(1).unwrap_or_default());
        own.ends_with(&port) && OPEN.contains(&state)
    };
    let has_open = |table: &str| std::fs::read_to_string(table).unwrap_or_default().lines().any(is_open);
    let begin = now();
    while ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().any(has_open) {
        assert!(now().saturating_since(begin) < Duration::from_secs(60), "connections are not read");
        thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// Sends the flows for `time` to a meter, which runs at least 200 ms longer, and until it has read all connections.
fn measure_at(
    address: &str,
    plans: Vec<FlowPlan>,
    params: MeterParams,
    time: Duration,
) -> (Vec<SenderReport>, MeterReport) {
    let meter = Meter::bind(address.parse().unwrap(), params).unwrap();
    let to = meter.address();
    let plans: Vec<_> = plans.into_iter().map(|plan| FlowPlan { to, ..plan }).collect();
    let (zero, stop) = (now(), AtomicBool::new(false));
    thread::scope(|scope| {
        let meter = scope.spawn(|| meter.run(zero, Duration::from_secs(60), &stop).unwrap());
        let generator = Generator::new(plans, Streams::new(1)).unwrap();
        let generator = generator.with_intervals(Duration::from_millis(100)).with_window(params.window);
        let sent = generator.run(zero, time, &AtomicBool::new(false)).unwrap();
        wait_for_ends(to);
        // The last datagrams arrive.
        thread::sleep(std::time::Duration::from_millis(200));
        stop.store(true, Ordering::Relaxed);
        (sent, meter.join().unwrap())
    })
}

fn measure(plans: Vec<FlowPlan>, time_ms: u64) -> (Vec<SenderReport>, MeterReport) {
    let params = MeterParams { interval: Some(Duration::from_millis(100)), ..MeterParams::default() };
    measure_at(LOOPBACK, plans, params, Duration::from_millis(time_ms))
}

#[test]
fn every_datagram_of_a_constant_rate_arrives() {
    undisturbed(|| {
        for address in [LOOPBACK, "[::1]:0"] {
            let flow = plan(0, udp(), cbr(Rate::from_mbps(4), 500));
            let params = MeterParams { interval: Some(Duration::from_millis(100)), ..MeterParams::default() };
            let (sent, received) = measure_at(address, vec![flow], params, Duration::from_millis(600));
            in_time!(sent.iter().all(has_sent), "{sent:?}");
            let (sent, flow) = (&sent[0], &received.flows[0]);
            assert_eq!((sent.error.as_ref(), flow.error.as_ref()), (None, None));
            assert_eq!((sent.packets, sent.bytes), (flow.packets, flow.bytes), "{received:?}");
            // 1000 messages a second. After a pause of the machine the generator catches up.
            in_time!((540..=601).contains(&sent.packets), "{}", sent.packets);
            assert_eq!((flow.lost, flow.duplicated, flow.traffic_class), (0, 0, Some(0)));
            assert_eq!((flow.delay.count(), flow.ipdv.count()), (sent.packets, sent.packets - 1));
            in_time!(flow.delay.quantile(0.5).unwrap() < Duration::from_millis(500), "{:?}", flow.delay);
            assert_eq!(flow.intervals.iter().map(|interval| interval.bytes).sum::<u64>(), flow.bytes);
            assert_eq!(sent.intervals.iter().map(|interval| interval.packets).sum::<u64>(), sent.packets);
            assert_eq!(sent.lateness.count(), sent.messages);
        }
    });
}

#[test]
fn tcp_carries_bulk_data_in_order() {
    undisturbed(|| {
        let paced = TcpOptions {
            max_pacing_rate: Some(Rate::from_mbps(80)),
            congestion_control: Some("reno".to_owned()),
            max_segment: Some(1012),
            not_sent_lowat: Some(16_384),
            send_buffer: Some(200_000),
            receive_buffer: Some(200_000),
            no_delay: true,
            write_queue: None,
        };
        let plans = vec![plan(0, FlowTransport::Tcp(paced), Params::BULK), plan(1, tcp(), Params::BULK)];
        let (sent, received) = measure(plans, 500);
        in_time!(sent.iter().all(has_sent), "{sent:?}");
        for (sent, flow) in sent.iter().zip(&received.flows) {
            assert_eq!((sent.error.as_ref(), flow.error.as_ref()), (None, None));
            assert_eq!((sent.flow, sent.bytes), (flow.flow, flow.bytes));
            in_time!(flow.packets > 10, "{flow:?}");
            assert_eq!(flow.delay.count(), flow.packets, "{flow:?}");
        }
        let info = sent[0].tcp.unwrap();
        // A segment has 1012 bytes minus 12 of the time stamp option. The preamble adds 24 bytes to the payload. All of them have left
        // where the generator had no turn for a while.
        assert_eq!(info.max_segment, 1000, "{info:?}");
        assert!(info.bytes_sent - info.bytes_retransmitted <= sent[0].bytes + 24, "{info:?}");
        let bytes = [sent[0].bytes, sent[1].bytes];
        assert!(bytes[0] < 12_000_000, "{bytes:?}");
        in_time!(bytes[0] < bytes[1], "{bytes:?}");
    });
}

#[test]
fn files_complete_with_their_last_byte() {
    undisturbed(|| {
        let (size, think_time) = (Distribution::Fixed(50_000.0), Distribution::Fixed(0.02));
        let short = Distribution::Fixed(3.0);
        let files = |size| Params::Files(FilesParams { size, think_time });
        let (sent, received) = measure(vec![plan(0, tcp(), files(size)), plan(1, tcp(), files(short))], 600);
        for (sent, flow) in sent.iter().zip(&received.flows) {
            let responses = sent.responses.count();
            in_time!(responses >= 5, "{responses} of {}", sent.messages);
            assert!(sent.messages - responses <= 1, "{responses} of {}", sent.messages);
            assert!(flow.packets >= responses);
            in_time!(sent.responses.min().unwrap() < Duration::from_millis(500), "{:?}", sent.responses);
            // With think times of 20 ms there are at most 30 files after the first one.
            assert!(sent.messages <= 31, "{}", sent.messages);
        }
        assert_eq!(sent[0].bytes % 50_000, 0);
        assert_eq!((sent[1].bytes, received.flows[1].delay.count()), (sent[1].messages * 3, 0));
    });
}

#[test]
fn tfrc_gets_feedback() {
    undisturbed(|| {
        let params = Arc::new(tfrc::Params { segment_size: 500, ..tfrc::Params::default() });
        let limited = plan(
            0,
            FlowTransport::Datagrams(TransportParams::Tfrc(params.clone())),
            cbr(Rate::from_kbps(800), 500),
        );
        let bulk = plan(1, FlowTransport::Datagrams(TransportParams::Tfrc(params.clone())), Params::BULK);
        let (sent, received) = measure(vec![limited, bulk], 700);
        let (cbr, bulk) = (&sent[0], &sent[1]);
        // 140 messages are due. Without feedback, or without turns of the bulk flow, there are far fewer.
        in_time!(cbr.packets > 120 && bulk.packets > 1000, "{} {}", cbr.packets, bulk.packets);
        let rtt = cbr.tfrc_rtt.unwrap();
        in_time!(rtt < Duration::from_millis(200), "{rtt}");
        assert_eq!(cbr.error, None);
        // The kernel drops what a receiver that gets no turn does not read.
        in_time!(received.flows[0].lost == 0, "{} lost", received.flows[0].lost);
        assert_eq!(received.flows[0].loss_event_rate, Some(0.0));
        assert_eq!(cbr.packets, received.flows[0].packets);
    });
}

#[test]
fn two_hundred_flows_share_a_thread() {
    undisturbed(|| {
        let flow = |id: u32| {
            let transport = if id.is_multiple_of(2) { udp() } else { tcp() };
            let size = Distribution::Pareto { minimum: 100.0, shape: 1.2, maximum: Some(1000.0) };
            let app = if id % 4 < 2 {
                cbr(Rate::from_kbps(64), 160)
            } else {
                Params::Poisson(PoissonParams { rate: Rate::from_kbps(64), size })
            };
            plan(id, transport, app)
        };
        let (sent, received) = measure((0..200).map(flow).collect(), 800);
        assert_eq!((sent.len(), received.strangers, received.overflowed), (200, 0, 0));
        let heard: Vec<_> = sent.iter().filter(|flow| flow.bytes > 0).collect();
        in_time!(heard.len() > 150, "{}", heard.len());
        assert_eq!(heard.len(), received.flows.len());
        for (sent, flow) in heard.iter().zip(&received.flows) {
            assert_eq!((sent.flow, sent.bytes, &sent.error), (flow.flow, flow.bytes, &None));
            assert_eq!(flow.lost, 0);
        }
        let seconds = 0.8;
        let rate = sent.iter().map(|flow| flow.bytes).sum::<u64>() as f64 * 8.0 / seconds;
        in_time!((0.8..1.2).contains(&(rate / 200.0 / 64e3)), "{rate} bit/s");
    });
}

#[test]
fn the_code_point_is_on_the_wire() {
    let hint = DscpPool2.encode(Hint::from_level(6)).unwrap();
    let flows = vec![
        FlowPlan { dscp: hint, ecn: true, ..plan(0, udp(), cbr(Rate::from_kbps(800), 100)) },
        FlowPlan { dscp: "EF".parse().unwrap(), ..plan(1, udp(), cbr(Rate::from_kbps(800), 100)) },
    ];
    for address in [LOOPBACK, "[::1]:0"] {
        let time = Duration::from_millis(100);
        let (_, received) = measure_at(address, flows.clone(), MeterParams::default(), time);
        let classes: Vec<_> = received.flows.iter().map(|flow| flow.traffic_class).collect();
        // Level 6 is 010111, followed by ECT(0). EF is 101110.
        assert_eq!(classes, [Some(0b0101_1110), Some(0b1011_1000)]);
    }
}

#[test]
fn the_window_excludes_the_warm_up() {
    undisturbed(|| {
        let window = Window { from: Duration::from_millis(200), until: Duration::from_millis(400) };
        let params = MeterParams { window, ..MeterParams::default() };
        let flow = plan(0, udp(), cbr(Rate::from_mbps(4), 500));
        let (sent, received) = measure_at(LOOPBACK, vec![flow], params, Duration::from_millis(500));
        let flow = &received.flows[0];
        in_time!(flow.window_packets > 0 && flow.window_packets < flow.packets * 7 / 10, "{flow:?}");
        assert_eq!(flow.delay.count(), flow.window_packets);
        in_time!(sent[0].window_packets > 0 && sent[0].window_packets < sent[0].packets, "{sent:?}");
    });
}

#[test]
fn a_flow_keeps_its_start_and_stop_times() {
    undisturbed(|| {
        let (start, stop) = (Duration::from_millis(200), Some(Duration::from_millis(300)));
        let flow = FlowPlan { start, stop, ..plan(0, tcp(), cbr(Rate::from_mbps(4), 500)) };
        let (sent, received) = measure(vec![flow], 500);
        let flow = &received.flows[0];
        assert!(flow.first.unwrap() >= start, "{flow:?}");
        // 100 messages in 100 ms; the random phase may add one.
        in_time!((95..=101).contains(&sent[0].messages), "{}", sent[0].messages);
        assert_eq!((sent[0].bytes, &sent[0].error), (flow.bytes, &None));
    });
}

#[test]
fn a_full_queue_refuses_whole_messages() {
    // Nothing reads from the connections of this listener.
    let listener = TcpListener::bind(LOOPBACK).unwrap();
    let options = TcpOptions {
        send_buffer: Some(4096),
        write_queue: Some(20_000),
        receive_buffer: Some(4096),
        ..TcpOptions::default()
    };
    let flow = FlowPlan {
        to: listener.local_addr().unwrap(),
        ..plan(0, FlowTransport::Tcp(options), cbr(Rate::from_mbps(400), 10_000))
    };
    let sent = send(vec![flow], 400).unwrap();
    assert!(sent[0].refused_bytes > 0 && sent[0].refused_bytes.is_multiple_of(10_000), "{sent:?}");
    assert!(sent[0].messages * 10_000 >= sent[0].refused_bytes + sent[0].bytes);
}

fn send(plans: Vec<FlowPlan>, time_ms: u64) -> Result<Vec<SenderReport>, TrafficError> {
    let time = Duration::from_millis(time_ms);
    Generator::new(plans, Streams::new(1))?.run(now(), time, &AtomicBool::new(false))
}

/// Returns the address of a closed port, and that of a server that closes its first connection at once.
fn closed_port_and_closing_server() -> (SocketAddr, SocketAddr) {
    let closed = UdpSocket::bind(LOOPBACK).unwrap().local_addr().unwrap();
    let listener = TcpListener::bind(LOOPBACK).unwrap();
    let closing = listener.local_addr().unwrap();
    thread::spawn(move || listener.accept().map(drop));
    (closed, closing)
}

#[test]
fn a_flow_that_fails_does_not_end_the_others() {
    undisturbed(|| {
        let meter = UdpSocket::bind(LOOPBACK).unwrap();
        let (closed, closing) = closed_port_and_closing_server();
        let to = meter.local_addr().unwrap();
        let unknown = TcpOptions { congestion_control: Some("nosuch".to_owned()), ..TcpOptions::default() };
        let slow = || cbr(Rate::from_kbps(400), 500);
        let sent = send(
            vec![
                FlowPlan { to: closed, ..plan(0, tcp(), slow()) },
                FlowPlan { to: closing, ..plan(1, tcp(), slow()) },
                FlowPlan { to: closed, ..plan(2, udp(), slow()) },
                FlowPlan { to, ..plan(3, FlowTransport::Tcp(unknown), slow()) },
                FlowPlan { to, ..plan(4, udp(), slow()) },
            ],
            400,
        )
        .unwrap();
        let error = |flow: usize| sent[flow].error.clone().unwrap_or_default();
        assert!(error(0).contains("refused"), "{}", error(0));
        // The error depends on whether the reset arrives before the next write.
        let has_ended = ["closed", "reset", "Broken pipe"].iter().any(|why| error(1).contains(why));
        assert!(has_ended, "{}", error(1));
        assert!(error(2).contains("no meter at this port") && sent[2].unsent > 0, "{}", error(2));
        assert!(error(3).contains("\"nosuch\""), "{}", error(3));
        in_time!(sent[4].packets > 30, "{:?}", sent[4]);
        assert_eq!(sent[4].error, None);
    });
}

#[test]
fn a_generator_ends_when_all_flows_have_failed() {
    let (closed, _) = closed_port_and_closing_server();
    let sent = send(vec![FlowPlan { to: closed, ..plan(0, tcp(), Params::BULK) }], 3_600_000).unwrap();
    assert!(sent[0].error.is_some());
}

#[test]
fn a_bad_plan_is_refused_before_a_socket_is_opened() {
    let refused = |plans| send(plans, 1).unwrap_err().to_string();
    let short = refused(vec![plan(0, udp(), cbr(Rate::from_kbps(8), 20))]);
    assert!(short.contains("size = 20 B: at least 32 B"), "{short}");
    let twice = refused(vec![plan(3, tcp(), Params::BULK), plan(3, tcp(), Params::BULK)]);
    assert!(twice.contains("id = 3: must be unique"), "{twice}");
}

/// The socket of a flow that the receiver sends is closed at the end of the run, while the sender's last replies are on their way to its port.
#[test]
fn a_late_reply_of_the_session_is_no_stranger() {
    let meter = Meter::bind(LOOPBACK.parse().unwrap(), MeterParams { token: 7, ..MeterParams::default() });
    let meter = meter.unwrap();
    let to = meter.address();
    let peer = UdpSocket::bind(LOOPBACK).unwrap();
    // Replies of TFRC and NADA, to flow 2.
    for (token, kind, length) in [(7, 3, 48), (7, 5, 88), (8, 3, 48), (8, 5, 88)] {
        let mut reply = vec![0; length];
        reply[..8].copy_from_slice(&[0xc7, 0x71, kind, 0, 0, 0, 0, 2]);
        reply[8..16].copy_from_slice(&u64::to_be_bytes(token));
        peer.send_to(&reply, to).unwrap();
    }
    // They wait in the socket, which is read first.
    let report = meter.run(now(), Duration::from_secs(1), &AtomicBool::new(false)).unwrap();
    assert_eq!((report.strangers, report.flows.len()), (2, 0), "those of another session are");
}

#[test]
fn strangers_are_counted_and_ignored() {
    undisturbed(|| {
        let meter =
            Meter::bind(LOOPBACK.parse().unwrap(), MeterParams { flows: 2, ..MeterParams::default() })
                .unwrap();
        let to = meter.address();
        let outside = FlowPlan { to, ..plan(2, udp(), cbr(Rate::from_mbps(1), 100)) };
        let outside_tcp = FlowPlan { to, ..plan(3, tcp(), cbr(Rate::from_mbps(1), 100)) };
        let inside = FlowPlan { to, ..plan(1, tcp(), cbr(Rate::from_mbps(1), 100)) };
        let (zero, stop) = (now(), AtomicBool::new(false));
        let report = thread::scope(|scope| {
            let meter = scope.spawn(|| meter.run(zero, Duration::from_secs(60), &stop).unwrap());
            let noise = UdpSocket::bind(LOOPBACK).unwrap();
            for length in [0, 1, 24, 36, 1000] {
                noise.send_to(&vec![0xc7; length], to).unwrap();
            }
            let mut http = std::net::TcpStream::connect(to).unwrap();
            http.write_all(b"GET / HTTP/1.1\r\nHost: meter\r\n\r\n").unwrap();
            send(vec![inside, outside, outside_tcp], 200).unwrap();
            wait_for_ends(to);
            // The last datagrams arrive.
            thread::sleep(std::time::Duration::from_millis(100));
            stop.store(true, Ordering::Relaxed);
            meter.join().unwrap()
        });
        assert_eq!(report.flows.len(), 1, "{report:?}");
        in_time!(report.flows[0].packets > 100 && report.strangers > 5 + 1 + 100, "{report:?}");
    });
}

#[test]
fn an_overloaded_generator_ends_in_time() {
    undisturbed(|| {
        let meter = UdpSocket::bind(LOOPBACK).unwrap();
        let to = meter.local_addr().unwrap();
        // Ten million datagrams a second.
        let flow = |id| FlowPlan { to, ..plan(id, udp(), cbr(Rate::from_mbps(800), 100)) };
        let sent = send((0..10).map(flow).collect(), 300).unwrap();
        let messages: u64 = sent.iter().map(|flow| flow.messages).sum();
        // A run that caught up completely would send all of them.
        in_time!(messages > 1000 && messages < 2_900_000, "{messages}");
        assert!(sent.iter().all(|flow| flow.packets > 0 && flow.lateness.max().unwrap() > Duration::ZERO));
    });
}

#[test]
fn a_run_may_start_in_the_future() {
    undisturbed(|| {
        let meter = UdpSocket::bind(LOOPBACK).unwrap();
        let flow =
            FlowPlan { to: meter.local_addr().unwrap(), ..plan(0, udp(), cbr(Rate::from_mbps(1), 500)) };
        let zero = Instant::from_nanos(now().as_nanos() + 150_000_000);
        let generator = Generator::new(vec![flow], Streams::new(1)).unwrap();
        let sent = generator.run(zero, Duration::from_millis(100), &AtomicBool::new(false)).unwrap();
        assert!(now() >= zero + Duration::from_millis(100));
        in_time!((20..=26).contains(&sent[0].packets), "{}", sent[0].packets);
    });
}

#[test]
fn the_wait_in_the_senders_buffer_is_part_of_the_delay() {
    undisturbed(|| {
        let paced = TcpOptions {
            max_pacing_rate: Some(Rate::from_mbps(8)),
            send_buffer: Some(200_000),
            ..TcpOptions::default()
        };
        let meter = Meter::bind(LOOPBACK.parse().unwrap(), MeterParams::default()).unwrap();
        let bulk = plan(0, FlowTransport::Tcp(paced), Params::BULK);
        let sparse = plan(1, tcp(), cbr(Rate::from_kbps(80), 200));
        let to = meter.address();
        let plans = [bulk, sparse].into_iter().map(|plan| FlowPlan { to, ..plan }).collect();
        let (zero, stop) = (now(), AtomicBool::new(false));
        let (sent, received) = thread::scope(|scope| {
            let meter = scope.spawn(|| meter.run(zero, Duration::from_secs(60), &stop).unwrap());
            let generator =
                Generator::new(plans, Streams::new(1)).unwrap().with_buffer_waits(Duration::from_secs(5));
            let sent = generator.run(zero, Duration::from_millis(1500), &AtomicBool::new(false)).unwrap();
            wait_for_ends(to);
            stop.store(true, Ordering::Relaxed);
            (sent, meter.join().unwrap())
        });
        let mean = |histogram: &Histogram| histogram.mean().unwrap();
        // A full buffer at 1 MB/s takes hundreds of milliseconds; the network of the loopback takes next to nothing.
        let (wait, delay) = (mean(&sent[0].buffer_wait), mean(&received.flows[0].delay));
        in_time!(wait > Duration::from_millis(50), "{wait}");
        in_time!(wait > delay * 9 / 10 && wait < delay * 11 / 10, "{wait} of {delay}");
        // What finds an empty buffer does not wait.
        let sparse = &sent[1].buffer_wait;
        assert!(sparse.count() > 10, "{sparse:?}");
        in_time!(mean(sparse) < Duration::from_millis(10), "{sparse:?}");
    });
}
