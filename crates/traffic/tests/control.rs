//! Control sessions between a sender and a receiver, and failed ones.
#![expect(clippy::disallowed_methods, reason = "a test waits for another thread")]

use cutline_traffic::control::{ControlError, Outcome, Receiver, SendParams, Session, send};
use cutline_traffic::{FlowPlan, MeterReport, TcpOptions, Transport};
use cutline_transport::app::{CbrParams, Params};
use cutline_transport::endpoint::TransportParams;
use cutline_units::{Bytes, Dscp, Duration, Rate, Streams};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

fn plans() -> Vec<FlowPlan> {
    let plan = |id, transport| FlowPlan {
        id,
        name: format!("flow.{id}"),
        transport,
        app: Params::Cbr(CbrParams::new(Rate::from_kbps(800), Bytes::new(500))),
        from: None,
        to: "127.0.0.1:0".parse().unwrap(),
        dscp: Dscp::DEFAULT,
        ecn: false,
        start: Duration::ZERO,
        stop: None,
    };
    vec![
        plan(0, Transport::Datagrams(TransportParams::Udp(Arc::default()))),
        plan(1, Transport::Tcp(TcpOptions::default())),
    ]
}

fn params(ms: u64) -> SendParams {
    SendParams {
        duration: Duration::from_millis(ms),
        linger: Duration::from_millis(200),
        interval: Some(Duration::from_millis(100)),
        streams: Streams::new(1),
    }
}

fn call(receiver: SocketAddr, ms: u64) -> Result<Outcome, ControlError> {
    send(receiver, plans(), params(ms), &AtomicBool::new(false))
}

fn receiver() -> (Receiver, SocketAddr) {
    let receiver = Receiver::bind("127.0.0.1:0".parse().unwrap(), 0).unwrap();
    let address = receiver.address().unwrap();
    (receiver, address)
}

/// Runs a receiver that serves one session, in which `sender` acts as the sender.
fn session<T>(sender: impl FnOnce(SocketAddr, &AtomicBool) -> T) -> (T, Session) {
    let (receiver, address) = receiver();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let session = scope.spawn(|| receiver.session(&stop).unwrap().unwrap());
        (sender(address, &stop), session.join().unwrap())
    })
}

#[test]
fn both_ends_agree_on_what_was_sent() {
    let (outcome, session) = session(|address, _| call(address, 400).unwrap());
    assert!(outcome.error.is_none() && session.error.is_none(), "{outcome:?} {session:?}");
    assert!(outcome.clock.same && outcome.clock.after.is_some());
    // Serialization ignores the spare capacity of histograms.
    let sent_over = |report: &Option<MeterReport>| serde_json::to_string(report).unwrap();
    assert_eq!(sent_over(&outcome.received), sent_over(&session.report));
    let received = outcome.received.unwrap();
    for (sent, received) in outcome.sent.iter().zip(&received.flows) {
        assert_eq!((sent.bytes, sent.flow), (received.bytes, received.flow));
        assert!(received.packets > 50 && !received.intervals.is_empty());
    }
}

#[test]
fn a_stopped_sender_gets_the_report() {
    let (outcome, session) = session(|address, _| {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(std::time::Duration::from_millis(500));
                stop.store(true, Ordering::Relaxed);
            });
            send(address, plans(), params(3_600_000), &stop).unwrap()
        })
    });
    assert!(outcome.error.is_none() && session.error.is_none(), "{outcome:?}");
    assert!(outcome.elapsed < Duration::from_secs(600) && outcome.received.unwrap().flows.len() == 2);
}

#[test]
fn a_stopped_receiver_sends_its_report() {
    let (outcome, session) = session(|address, stop| {
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(std::time::Duration::from_millis(500));
                stop.store(true, Ordering::Relaxed);
            });
            call(address, 3_600_000).unwrap()
        })
    });
    assert!(matches!(outcome.error, Some(ControlError::Stopped)), "{outcome:?}");
    assert_eq!(outcome.received.unwrap().flows.len(), 2);
    assert!(session.report.is_some());
}

#[test]
fn invalid_runs_are_refused() {
    let ask = |request: &str| {
        let (reply, session) = session(|address, _| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            BufReader::new(stream).lines().nth(1).map(Result::unwrap_or_default).unwrap_or_default()
        });
        assert!(session.report.is_none() && session.error.is_some(), "{session:?}");
        reply
    };
    let start = |flows: u64, until: u64| {
        let zero = cutline_sys::now().as_nanos();
        format!(
            "{{\"start\":{{\"flows\":{flows},\"zero_ns\":{zero},\"until_ns\":{until},\"interval_ns\":null}}}}\n"
        )
    };
    assert!(ask(&start(0, 1)).contains("flows = 0: must be 1..100000"));
    assert!(ask(&start(1, u64::MAX)).contains("duration"));
    assert!(ask(&start(1, 1).replace("null", "1")).contains("interval"));
    let far =
        "{\"start\":{\"flows\":1,\"zero_ns\":18446744073709551615,\"until_ns\":1,\"interval_ns\":null}}\n";
    assert!(ask(far).contains("zero"));
    for nonsense in ["", "\n", "\"finish\"\n", "GET / HTTP/1.1\r\n\r\n", "{\"start\":7}\n", &"x".repeat(5000)]
    {
        assert_eq!(ask(nonsense), "", "{nonsense:?}");
    }
}

/// Starts a server that sends `says` to the first client and closes the connection. Returns its address.
fn server(says: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || listener.accept().unwrap().0.write_all(says.as_bytes()).unwrap());
    address
}

#[test]
fn errors_distinguish_other_servers() {
    let why = |says| call(server(says), 100).unwrap_err().to_string();
    assert!(why("SSH-2.0-OpenSSH_9.2\r\n").contains("does not answer as a receiver of cutline tg"));
    assert!(why("").contains("does not answer as a receiver of cutline tg"));
    let other = why("{\"hello\":{\"cutline_tg\":99,\"boot_id\":\"\"}}\n");
    assert!(other.contains("version 99") && other.contains("version 1"), "{other}");
    let broken = why("{\"hello\":{\"cutline_tg\":1,\"boot_id\":\"\"}}\n");
    assert!(broken.contains("broke"), "{broken}");
    let (_, closed) = { receiver() };
    let unreachable = call(closed, 100).unwrap_err().to_string();
    assert!(unreachable.contains("is `cutline tg receive` running there?"), "{unreachable}");
}
