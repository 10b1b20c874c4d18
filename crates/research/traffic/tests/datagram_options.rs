//! Rate control, buffers and blocking writes of the flows of a session.

use cutline_testbed::{in_time, undisturbed};
use cutline_traffic::control::{BothReports, ControlError, Receiver, ReceiverParams, SendParams, send};
use cutline_traffic::{
    DatagramOptions, FlowPlan, FlowTransport, FlowsSummary, PlanDirection, RateShaper, TcpOptions,
};
use cutline_transport::app::{CbrParams, Params};
use cutline_transport::endpoint::TransportParams;
use cutline_transport::udp;
use cutline_units::{Bytes, Dscp, Duration, Rate, Streams};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

/// Sends one flow of blocks for 300 ms to a receiver of this process.
fn run(
    transport: FlowTransport,
    rate: Rate,
    block: u64,
    datagrams: DatagramOptions,
    blocking: bool,
) -> Result<BothReports, ControlError> {
    let loopback = "127.0.0.1:0".parse().unwrap();
    let mut receiver = Receiver::bind(&[loopback], ReceiverParams::default()).unwrap();
    let address = receiver.addresses().unwrap()[0];
    let plan = FlowPlan {
        id: 0,
        name: "blocks".to_owned(),
        direction: PlanDirection::Forward,
        transport,
        app: Params::Cbr(CbrParams { random_phase: false, ..CbrParams::new(rate, Bytes::new(block)) }),
        from: None,
        to: address,
        dscp: Dscp::DEFAULT,
        ecn: false,
        start: Duration::ZERO,
        stop: None,
    };
    let params = SendParams {
        duration: Duration::from_millis(300),
        linger: Duration::from_millis(200),
        interval: None,
        streams: Streams::new(1),
        key: None,
        datagrams,
        blocking,
    };
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let session = scope.spawn(|| receiver.session(&stop).unwrap());
        let reports = send(&[address], vec![plan], params, &AtomicBool::new(false));
        session.join().unwrap();
        reports
    })
}

fn blocks(size: u32) -> FlowTransport {
    let params = udp::Params { max_datagram: size, ..udp::Params::default() };
    FlowTransport::Datagrams(TransportParams::Udp(Arc::new(params)))
}

fn summary(reports: &BothReports) -> FlowsSummary {
    let mut summary = FlowsSummary::default();
    let received = reports.received.as_ref().and_then(|report| report.flows.first());
    summary.add(&reports.sent[0], received);
    summary
}

#[test]
fn datagrams_above_the_rate_of_a_shaper_wait_or_are_dropped() {
    let shaper = |rate| RateShaper { rate, queue: 5_000, mtu: 65_535 };
    let with = |rate: Rate| DatagramOptions { shaper: Some(shaper(rate)), ..DatagramOptions::default() };
    undisturbed(|| {
        // 240 blocks of 1 kB at 6.4 Mbit/s, into 3.2 Mbit/s with headers.
        let narrow =
            run(blocks(1000), Rate::from_kbps(6400), 1000, with(Rate::from_kbps(3200)), false).unwrap();
        let sent = &narrow.sent[0];
        in_time!((115..=128).contains(&sent.packets), "{sent:?}");
        assert!(sent.unsent + 5 + sent.packets >= sent.messages, "at most 5 kB still wait: {sent:?}");
        // Five blocks before it take 12.8 ms; the delay counts from the application's write.
        let delay = summary(&narrow).delay.quantile(0.5).unwrap();
        in_time!((Duration::from_millis(9)..Duration::from_millis(16)).contains(&delay), "{delay}");

        let wide =
            run(blocks(1000), Rate::from_kbps(6400), 1000, with(Rate::from_kbps(12_800)), false).unwrap();
        let sent = &wide.sent[0];
        in_time!(sent.unsent == 0 && sent.packets >= 230, "{sent:?}");
        assert_eq!(summary(&wide).lost, 0);
    });
}

#[test]
fn blocking_applications_send_what_the_socket_takes() {
    let fast = Rate::from_bps(1_000_000_000_000);
    let (plain, udp) = (DatagramOptions::default(), blocks(8192));
    let reports =
        run(udp, fast, 8192, DatagramOptions { receive_buffer: Some(100_000), ..plain }, true).unwrap();
    let sent = &reports.sent[0];
    assert!(sent.packets > 100, "{sent:?}");
    assert_eq!((sent.unsent, sent.refused_bytes, &sent.error), (0, 0, &None), "what does not fit waits");
    assert!(sent.messages - sent.packets <= 1, "{sent:?}");
    let host = reports.receiver_host.unwrap();
    assert!(host.receive_buffer.is_some_and(|bytes| (100_000..=250_000).contains(&bytes)), "{host:?}");
    // The kernel may count other datagrams of this namespace, too.
    let received = reports.received.as_ref().unwrap();
    assert!(host.drops.receive_buffer >= received.overflowed, "{host:?}");

    let reports = run(FlowTransport::Tcp(TcpOptions::default()), fast, 8192, plain, true).unwrap();
    let (sent, summary) = (&reports.sent[0], summary(&reports));
    assert!(summary.received_packets > 100, "{summary:?}");
    assert!(sent.messages - summary.received_packets < 3_000, "messages wait in the kernel only: {sent:?}");
    assert!(reports.sender_host.thread_share().unwrap() > 0.05, "{:?}", reports.sender_host);
}

#[test]
fn a_buffer_out_of_range_is_refused() {
    let options = DatagramOptions { receive_buffer: Some(0), ..DatagramOptions::default() };
    let refused = run(blocks(1000), Rate::from_kbps(800), 1000, options, false).unwrap_err().to_string();
    assert!(refused.contains("receive_buffer = 0 B: must be 1..67108864 B"), "{refused}");
}
