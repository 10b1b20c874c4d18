//! Control sessions between a sender and a receiver, and failed ones.
#![expect(clippy::disallowed_methods, reason = "a test waits for another thread")]

use cutline_sys::now;
use cutline_testbed::{in_time, undisturbed};
use cutline_traffic::control::message::{ControlRequest, ReverseFlows, RunRequest};
use cutline_traffic::control::{
    BothReports, ControlError, Key, Receiver, ReceiverParams, SendParams, SenderSession, send,
};
use cutline_traffic::header::{PROOF, Proof, Step};
use cutline_traffic::{DatagramOptions, FlowPlan, FlowTransport, MeterReport, PlanDirection, TcpOptions};
use cutline_transport::app::{CbrParams, FilesParams, Params, PoissonParams};
use cutline_transport::endpoint::TransportParams;
use cutline_transport::wire::Data;
use cutline_units::{Bytes, Distribution, Dscp, Duration, Rate, Streams};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

fn plans() -> Vec<FlowPlan> {
    let plan = |id, transport| FlowPlan {
        id,
        name: format!("flow.{id}"),
        direction: PlanDirection::Forward,
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
        plan(0, FlowTransport::Datagrams(TransportParams::Udp(Arc::default()))),
        plan(1, FlowTransport::Tcp(TcpOptions::default())),
    ]
}

fn params(ms: u64) -> SendParams {
    SendParams {
        duration: Duration::from_millis(ms),
        linger: Duration::from_millis(200),
        interval: Some(Duration::from_millis(100)),
        streams: Streams::new(1),
        key: None,
        datagrams: DatagramOptions::default(),
        blocking: false,
    }
}

fn call(receiver: SocketAddr, ms: u64) -> Result<BothReports, ControlError> {
    send(&[receiver], plans(), params(ms), &AtomicBool::new(false))
}

fn receiver() -> (Receiver, SocketAddr) {
    receiver_with(ReceiverParams::default())
}

fn receiver_with(params: ReceiverParams) -> (Receiver, SocketAddr) {
    let receiver = Receiver::bind(&["127.0.0.1:0".parse().unwrap()], params).unwrap();
    let address = receiver.addresses().unwrap()[0];
    (receiver, address)
}

/// Runs a receiver that serves one session, in which `sender` acts as the sender.
fn session<T>(sender: impl FnOnce(SocketAddr, &AtomicBool) -> T) -> (T, SenderSession) {
    session_with(ReceiverParams::default(), sender)
}

fn session_with<T>(
    params: ReceiverParams,
    sender: impl FnOnce(SocketAddr, &AtomicBool) -> T,
) -> (T, SenderSession) {
    let (mut receiver, address) = receiver_with(params);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let session = scope.spawn(|| receiver.session(&stop).unwrap().unwrap());
        (sender(address, &stop), session.join().unwrap())
    })
}

/// Runs a receiver that serves sessions until `senders` has ended. Returns the sessions, and the number of refused
/// connections.
fn sessions<T>(
    params: ReceiverParams,
    senders: impl FnOnce(SocketAddr) -> T,
) -> (T, Vec<SenderSession>, u64) {
    let (mut receiver, address) = receiver_with(params);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let serving = scope.spawn(|| {
            let served = std::iter::from_fn(|| receiver.session(&stop).unwrap()).collect();
            (served, receiver.refused())
        });
        // Also if the senders panic: then the scope waits for the receiver.
        let stops = Stops(&stop);
        let result = senders(address);
        drop(stops);
        let (served, refused) = serving.join().unwrap();
        (result, served, refused)
    })
}

/// Returns the result of the first attempt that has one. They get longer and longer times, ms, since the machine may be busy: an attempt has no
/// result if the flows have not begun within its time.
fn in_enough_time<T>(attempt: impl FnMut(u64) -> Option<T>) -> T {
    [300, 1500, 7500, 37_500].into_iter().find_map(attempt).expect("flows begin within 38 s")
}

/// Sets a flag after a time, ms.
fn set_after(flag: &AtomicBool, time: u64) {
    thread::sleep(std::time::Duration::from_millis(time));
    flag.store(true, Ordering::Relaxed);
}

/// Stops a receiver when it is dropped.
struct Stops<'s>(&'s AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A sender with given messages.
struct Client(BufReader<TcpStream>);

const OPEN: &str = "{\"open\":{\"nonce\":\"00\"}}";

impl Client {
    fn connect(address: SocketAddr) -> Self {
        Self(BufReader::new(TcpStream::connect(address).unwrap()))
    }

    /// Returns a client whose session is open.
    fn opened(address: SocketAddr) -> Self {
        let mut client = Self::connect(address);
        assert!(client.hears().contains("hello"));
        client.says(OPEN);
        let opened = client.hears();
        assert!(opened.contains("opened"), "{opened}");
        client
    }

    /// Receives the permission of the run. Returns the address of the traffic and the token.
    fn ready(&mut self, address: SocketAddr) -> (SocketAddr, u64) {
        let ready: serde_json::Value = serde_json::from_str(&self.hears()).unwrap();
        let (port, token) = (ready["ready"]["port"].as_u64(), ready["ready"]["token"].as_u64());
        (SocketAddr::new(address.ip(), u16::try_from(port.unwrap()).unwrap()), token.unwrap())
    }

    fn says(&mut self, line: &str) {
        // The receiver may have closed the connection.
        let _gone = self.0.get_mut().write_all(format!("{line}\n").as_bytes());
    }

    /// Returns the next line; empty if the receiver closed the connection.
    fn hears(&mut self) -> String {
        let mut line = String::new();
        // The receiver resets a connection if it closes it with unread bytes.
        let _reset = self.0.read_line(&mut line);
        line
    }
}

fn start(flows: u64, until: u64) -> String {
    format!("{{\"start\":{{\"flows\":{flows},\"until_ns\":{until},\"interval_ns\":null}}}}")
}

/// Returns a request to begin `later` from now.
fn begin(later: Duration) -> String {
    let zero = (now() + later).as_nanos();
    format!("{{\"begin\":{{\"zero_ns\":{zero},\"offset_ns\":0}}}}")
}

fn key(first: u8) -> Key {
    Key::new(&[first; 32]).unwrap()
}

#[test]
fn both_ends_agree_on_what_was_sent() {
    in_enough_time(|time| {
        let (outcome, session) = session(|address, _| call(address, time).unwrap());
        assert!(outcome.error.is_none() && session.error.is_none(), "{outcome:?} {session:?}");
        assert!(outcome.clock.same && outcome.clock.after.is_some());
        // Serialization ignores the spare capacity of histograms.
        let sent_over = |report: &Option<MeterReport>| serde_json::to_string(report).unwrap();
        assert_eq!(sent_over(&outcome.received), sent_over(&session.report));
        let flows = outcome.received.unwrap().flows;
        if flows.len() < 2 {
            return None;
        }
        for (sent, received) in outcome.sent.iter().zip(&flows) {
            assert_eq!((sent.bytes, sent.flow), (received.bytes, received.flow));
            assert!(!received.intervals.is_empty());
        }
        flows.iter().all(|flow| flow.packets > 50).then_some(())
    });
}

#[test]
fn a_stopped_sender_gets_the_report() {
    in_enough_time(|time| {
        let (outcome, session) = session(|address, _| {
            let stop = AtomicBool::new(false);
            thread::scope(|scope| {
                scope.spawn(|| set_after(&stop, time));
                send(&[address], plans(), params(3_600_000), &stop).unwrap()
            })
        });
        assert!(outcome.error.is_none() && session.error.is_none(), "{outcome:?}");
        assert!(outcome.elapsed < Duration::from_secs(600));
        (outcome.received?.flows.len() == 2).then_some(())
    });
}

#[test]
fn a_stopped_receiver_sends_its_report() {
    in_enough_time(|time| {
        let (outcome, session) = stopped_session(time, |address| call(address, 3_600_000))?;
        assert!(matches!(outcome.error, Some(ControlError::Stopped)), "{outcome:?}");
        assert!(session.report.is_some());
        (outcome.received.unwrap().flows.len() == 2).then_some(())
    });
}

/// A session whose receiver is stopped after a time, ms; `None` if it was stopped before the session began.
fn stopped_session(
    time: u64,
    sender: impl FnOnce(SocketAddr) -> Result<BothReports, ControlError>,
) -> Option<(BothReports, SenderSession)> {
    let (mut receiver, address) = receiver_with(ReceiverParams::default());
    let stop = AtomicBool::new(false);
    let (outcome, session) = thread::scope(|scope| {
        let session = scope.spawn(|| receiver.session(&stop).unwrap());
        scope.spawn(|| set_after(&stop, time));
        let outcome = sender(address);
        let session = session.join().unwrap();
        (outcome, session)
    });
    Some((outcome.ok()?, session?))
}

#[test]
fn invalid_runs_are_refused() {
    let ask = |request: &str| {
        let (reply, session) = session(|address, _| {
            let mut client = Client::opened(address);
            client.says(request);
            client.hears()
        });
        assert!(session.report.is_none() && session.error.is_some(), "{session:?}");
        reply
    };
    assert!(ask(&start(0, 1)).contains("flows = 0: must be 1..10000 (its --max-flows)"));
    assert!(ask(&start(10_001, 1)).contains("flows = 10001"));
    assert!(
        ask(&start(1, u64::MAX)).contains("must be at most 3600 s (its --max-duration)"),
        "{}",
        ask(&start(1, u64::MAX))
    );
    assert!(ask(&start(1, 1).replace("null", "1")).contains("interval"));
    let too_many = ask(&start(1000, 3_600_000_000_000).replace("null", "1000000"));
    assert!(too_many.contains("4000000 intervals"), "{too_many}");
    let (reply, _) = session(|address, _| {
        let mut client = Client::opened(address);
        client.says(&start(1, 1));
        assert!(client.hears().contains("ready"));
        client.says(&begin(Duration::from_secs(100)));
        client.hears()
    });
    assert!(reply.contains("the run's zero is"), "{reply}");
    for nonsense in ["", "\"finish\"", OPEN, "GET / HTTP/1.1\r\n\r\n", "{\"start\":7}", &"x".repeat(5000)] {
        assert_eq!(ask(nonsense), "", "{nonsense:?}");
    }
}

#[test]
fn a_client_without_open_has_no_session() {
    let nonsense = [
        "",
        "\"clock\"",
        "GET / HTTP/1.1\r\n\r\n",
        "{\"open\":7}",
        &format!("{OPEN}\n{OPEN}"),
        &"x".repeat(5000),
    ];
    let ((), sessions, refused) = sessions(ReceiverParams::default(), |address| {
        for line in nonsense {
            let mut client = Client::connect(address);
            assert!(client.hears().contains("hello"));
            client.says(line);
            let reply = client.hears();
            assert!(reply.is_empty() || reply.contains("the first message must be `open`"), "{reply}");
        }
        assert!(call(address, 100).unwrap().error.is_none());
    });
    assert_eq!((sessions.len(), refused), (1, nonsense.len() as u64));
}

#[test]
fn idle_clients_do_not_block_others() {
    undisturbed(idle_clients);
}

fn idle_clients() {
    let (times, sessions, refused) = sessions(ReceiverParams::default(), |address| {
        // The largest number of waiting connections from one address, less one for the sender.
        let mut idle: Vec<_> = (0..3).map(|_| Client::connect(address)).collect();
        idle[0].0.get_mut().write_all(b"{\"open").unwrap();
        let began = now();
        let outcome = call(address, 200).unwrap();
        assert!(outcome.error.is_none());
        let served = now();
        // Each is disconnected after five seconds.
        for client in &mut idle {
            assert!(client.hears().contains("hello"));
            assert_eq!(client.hears(), "");
        }
        [served, now()].map(|time| time.saturating_since(began))
    });
    assert!(sessions.len() == 1 && sessions[0].error.is_none() && refused == 3, "{sessions:?} {refused}");
    in_time!(times[0] < Duration::from_secs(4), "the idle ones are not waited for: {times:?}");
    in_time!(times[1] < Duration::from_secs(20), "each is disconnected after five seconds: {times:?}");
}

#[test]
fn connections_of_one_address_are_limited() {
    let allow = vec!["127.0.0.0/8".parse().unwrap()];
    let ((), _, refused) = sessions(ReceiverParams { allow, ..ReceiverParams::default() }, |address| {
        let mut waiting: Vec<_> = (0..6).map(|_| Client::connect(address)).collect();
        let heard: Vec<_> = waiting.iter_mut().map(Client::hears).collect();
        assert_eq!(heard.iter().filter(|line| line.contains("hello")).count(), 4, "{heard:?}");
        assert_eq!(heard.iter().filter(|line| line.contains("too many connections")).count(), 2, "{heard:?}");
        drop(waiting);
        let greeted = (0..80).filter(|_| Client::connect(address).hears().contains("hello")).count();
        assert!((30..=54).contains(&greeted), "{greeted}");
    });
    assert!(refused >= 28, "{refused}");
}

#[test]
fn other_addresses_than_the_allowed_ones_are_refused() {
    let allow = vec!["192.0.2.0/24".parse().unwrap(), "2001:db8::/32".parse().unwrap()];
    let (error, sessions, refused) =
        sessions(ReceiverParams { allow, ..ReceiverParams::default() }, |address| {
            call(address, 100).unwrap_err().to_string()
        });
    assert!(error.contains("does not serve this address"), "{error}");
    assert_eq!((sessions.len(), refused), (0, 1));
}

#[test]
fn a_second_sender_gets_the_reply_that_the_receiver_is_busy() {
    let ((), sessions, refused) = sessions(ReceiverParams::default(), |address| {
        let mut first = Client::opened(address);
        let why = call(address, 100).unwrap_err().to_string();
        assert!(why.contains("it serves another sender: try again later"), "{why}");
        first.says("\"clock\"");
        assert!(first.hears().contains("came_ns"));
    });
    assert_eq!((sessions.len(), refused), (1, 1));
}

#[test]
fn with_a_key_both_ends_are_authenticated() {
    let with = |ours: Option<u8>, theirs: Option<u8>, time: u64| {
        let receiver = ReceiverParams { key: ours.map(key), ..ReceiverParams::default() };
        let (result, sessions, _) = sessions(receiver, |address| {
            let params = SendParams { key: theirs.map(key), ..params(time) };
            send(&[address], plans(), params, &AtomicBool::new(false))
        });
        (result, sessions)
    };
    in_enough_time(|time| {
        let (outcome, sessions) = with(Some(1), Some(1), time);
        let outcome = outcome.unwrap();
        assert!(outcome.error.is_none() && outcome.clock.same, "{outcome:?}");
        assert!(sessions.len() == 1 && sessions[0].error.is_none(), "{sessions:?}");
        (outcome.received.unwrap().flows.len() == 2).then_some(())
    });
    let cases = [
        (Some(1), Some(2), "it has another key"),
        (Some(1), None, "requires a key: use --key-file"),
        (None, Some(1), "the receiver has no key"),
    ];
    for (ours, theirs, expected) in cases {
        let (result, sessions) = with(ours, theirs, 200);
        let why = result.unwrap_err().to_string();
        assert!(why.contains(expected) && sessions.is_empty(), "{why} {sessions:?}");
    }
}

#[test]
fn a_sender_without_the_key_is_refused_at_any_message() {
    let params = ReceiverParams { key: Some(key(1)), ..ReceiverParams::default() };
    let ((), sessions, refused) = sessions(params, |address| {
        for open in [OPEN.to_owned(), format!("{} {OPEN}", "0".repeat(64))] {
            let mut client = Client::connect(address);
            assert!(client.hears().contains("\"key\":true"));
            client.says(&open);
            let reply = client.hears();
            assert!(reply.contains("refused") && reply.contains("key"), "{reply}");
            assert_eq!(client.hears(), "");
        }
    });
    assert_eq!((sessions.len(), refused), (0, 2));
}

/// Returns the lines that take the place of a line, given its number.
type Change = fn(usize, String) -> Vec<String>;

/// Carries lines between a sender and a receiver, and changes the lines that `change` returns.
fn in_the_middle(to: SocketAddr, change: Change) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (sender, receiver) = (listener.accept().unwrap().0, TcpStream::connect(to).unwrap());
        let (mut to_sender, mut to_receiver) = (sender.try_clone().unwrap(), receiver.try_clone().unwrap());
        thread::spawn(move || {
            let _gone = std::io::copy(&mut &receiver, &mut to_sender);
            to_sender.shutdown(Shutdown::Both)
        });
        for (i, line) in BufReader::new(sender).lines().map_while(Result::ok).enumerate() {
            for line in change(i, line) {
                let _gone = to_receiver.write_all(format!("{line}\n").as_bytes());
            }
        }
    });
    address
}

#[test]
fn a_man_in_the_middle_cannot_change_a_session() {
    // The lines of a sender: open, 16 times clock, start, begin, 16 times clock, finish.
    let changes: [(&str, Change); 3] = [
        ("a changed plan", |i, line| {
            vec![if i == 17 { line.replace("\"flows\":2", "\"flows\":3") } else { line }]
        }),
        ("a repeated line", |i, line| if i == 5 { vec![line.clone(), line] } else { vec![line] }),
        ("a line without a tag", |i, line| if i == 17 { vec![start(2, 1)] } else { vec![line] }),
    ];
    for (name, change) in changes {
        let receiver = ReceiverParams { key: Some(key(1)), ..ReceiverParams::default() };
        let (result, sessions, _) = sessions(receiver, |address| {
            let params = SendParams { key: Some(key(1)), ..params(200) };
            send(&[in_the_middle(address, change)], plans(), params, &AtomicBool::new(false))
        });
        assert!(result.is_err(), "{name}");
        let [SenderSession { report: None, error: Some(ControlError::Forged), .. }] = &sessions[..] else {
            panic!("{name}: {sessions:?}")
        };
    }
}

/// Packets with a spoofed source: they have the token, but come from another address than the session's peer.
#[test]
fn no_packet_goes_to_another_address_than_the_peers() {
    let ask = |from: &'static str, of_token: fn(u64) -> u64, time| {
        session(move |address, _| {
            let mut client = Client::opened(address);
            client.says(&start(1, 1_000_000_000));
            let (to, token) = client.ready(address);
            client.says(&begin(Duration::ZERO));
            assert!(client.hears().contains("begun"));
            let socket = UdpSocket::bind((from, 0)).unwrap();
            socket.set_read_timeout(Some(time)).unwrap();
            for seq in 0..5 {
                let extension = tfrc();
                let token = of_token(token);
                let data = Data { flow: 0, dscp: Dscp::DEFAULT, token, seq, sent_at: now(), extension };
                socket.send_to(&data.write(), to).unwrap();
            }
            let replied = socket.recv_from(&mut [0; 100]).is_ok();
            client.says("\"finish\"");
            assert!(client.hears().contains("report"));
            replied
        })
    };
    let (replied, session) = ask("127.0.0.1", |token| token, SURELY);
    let report = session.report.unwrap();
    assert!(replied && report.strangers == 0 && report.flows[0].packets == 5, "{report:?}");
    for (from, of_token) in
        [("127.0.0.2", (|token| token) as fn(u64) -> u64), ("127.0.0.1", |token| token ^ 1)]
    {
        let (replied, session) = ask(from, of_token, SOON);
        let report = session.report.unwrap();
        assert!(!replied, "nothing goes to {from}");
        assert!(report.flows.is_empty() && report.strangers == 5, "{report:?}");
    }
}

fn tfrc() -> cutline_transport::wire::Extension {
    let rtt = Duration::from_millis(1);
    cutline_transport::wire::Extension::Tfrc(cutline_transport::tfrc::Extension {
        rtt,
        segment_size: 1000,
        history_discounting: true,
        ecn: false,
    })
}

#[test]
fn a_sender_connects_from_the_address_of_its_flows() {
    in_enough_time(|time| {
        let (outcome, session) = session(|address, _| {
            let from = Some("127.0.0.3:0".parse().unwrap());
            let plans = plans().into_iter().map(|plan| FlowPlan { from, ..plan }).collect();
            send(&[address], plans, params(time), &AtomicBool::new(false)).unwrap()
        });
        assert_eq!(session.peer.ip().to_string(), "127.0.0.3");
        (outcome.received.unwrap().flows.len() == 2).then_some(())
    });
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
    assert!(other.contains("version 99") && other.contains("version 5"), "{other}");
    let broken = why("{\"hello\":{\"cutline_tg\":5}}\n");
    assert!(broken.contains("broke"), "{broken}");
    let older = why("{\"hello\":{\"cutline_tg\":1,\"boot_id\":\"x\"}}\n");
    assert!(older.contains("version 1 of the protocol"), "{older}");
    let refused = why("{\"refused\":\"\\u001b[2J\\n\\u009b\"}\n");
    assert!(refused.ends_with("the receiver refused the request: \\u{1b}[2J\\n\\u{9b}"), "{refused}");
    let (_, closed) = { receiver() };
    let unreachable = call(closed, 100).unwrap_err().to_string();
    assert!(unreachable.contains("is `cutline tg receive` running there?"), "{unreachable}");
}

fn reversed(plans: Vec<FlowPlan>) -> Vec<FlowPlan> {
    plans.into_iter().map(|plan| FlowPlan { direction: PlanDirection::Reverse, ..plan }).collect()
}

/// TCP, UDP and TFRC, a constant rate each, and files over TCP, which need notes of the receiving end.
fn one_of_each() -> Vec<FlowPlan> {
    let [udp, tcp] = <[FlowPlan; 2]>::try_from(plans()).unwrap();
    let transport = FlowTransport::Datagrams(TransportParams::Tfrc(Arc::default()));
    let tfrc = FlowPlan { id: 2, name: "flow.2".to_owned(), transport, ..udp.clone() };
    let (size, think_time) = (Distribution::Fixed(20_000.0), Distribution::Fixed(0.01));
    let app = Params::Files(FilesParams { size, think_time });
    let files = FlowPlan { id: 3, name: "flow.3".to_owned(), app, ..tcp.clone() };
    vec![udp, tcp, tfrc, files]
}

#[test]
fn a_receiver_sends_and_its_sender_measures() {
    undisturbed(sent_by_a_receiver);
}

fn sent_by_a_receiver() {
    let (outcome, session) = session(|address, _| {
        send(&[address], reversed(one_of_each()), params(500), &AtomicBool::new(false)).unwrap()
    });
    assert!(outcome.error.is_none() && session.error.is_none(), "{outcome:?} {session:?}");
    assert!(session.report.as_ref().unwrap().flows.is_empty() && session.sent.len() == 4, "{session:?}");
    let received = outcome.received.unwrap();
    assert_eq!(received.strangers, 0);
    // A flow that does not begin within the run has no report of the receiver.
    in_time!(received.flows.len() == 4, "{received:?}");
    for ((sent, received), theirs) in outcome.sent.iter().zip(&received.flows).zip(&session.sent) {
        assert_eq!((sent.error.as_ref(), received.error.as_ref()), (None, None));
        assert_eq!((sent.bytes, sent.flow, &*sent.name), (received.bytes, received.flow, &*theirs.name));
        assert!(sent.bytes > 0 && sent.bytes == theirs.bytes, "{sent:?}");
        in_time!(received.packets > 5, "{received:?}");
        assert!(!received.intervals.is_empty() && !sent.intervals.is_empty());
    }
    // 100 messages a second, and one more for the random phase.
    assert!((1..=101).contains(&received.flows[0].packets), "{:?}", received.flows[0]);
    assert!(outcome.sent[1].tcp.is_some() && outcome.sent[2].tfrc_rtt.is_some(), "{:?}", outcome.sent);
    let files = &outcome.sent[3];
    assert!(files.responses.count() > 0, "{files:?}");
    in_time!(
        files.responses.count() > 2 && files.responses.max() < Some(Duration::from_secs(1)),
        "{files:?}"
    );
}

#[test]
fn both_ends_send_at_once() {
    undisturbed(sent_by_both_ends);
}

fn sent_by_both_ends() {
    let (outcome, session) = session(|address, _| {
        let reverse = reversed(one_of_each()).into_iter().map(|plan| FlowPlan { id: plan.id + 4, ..plan });
        let plans = one_of_each().into_iter().chain(reverse).collect();
        send(&[address], plans, params(400), &AtomicBool::new(false)).unwrap()
    });
    assert!(outcome.error.is_none() && session.error.is_none(), "{outcome:?} {session:?}");
    let received = outcome.received.unwrap();
    let numbers = |flows: &mut dyn Iterator<Item = u32>| flows.collect::<Vec<_>>();
    // A flow that does not begin within the run has no report of the receiver.
    let arrived = numbers(&mut received.flows.iter().map(|flow| flow.flow));
    in_time!(arrived == (0..8).collect::<Vec<_>>(), "{arrived:?}");
    assert_eq!(numbers(&mut outcome.sent.iter().map(|flow| flow.flow)), (0..8).collect::<Vec<_>>());
    assert_eq!(numbers(&mut session.sent.iter().map(|flow| flow.flow)), (4..8).collect::<Vec<_>>());
    for (sent, received) in outcome.sent.iter().zip(&received.flows) {
        assert_eq!((sent.error.as_ref(), sent.bytes), (None, received.bytes), "{sent:?}");
    }
}

#[test]
fn measurements_survive_a_vanished_receiver() {
    in_enough_time(|time| {
        let (outcome, session) = stopped_session(time, |address| {
            send(&[address], reversed(plans()), params(3_600_000), &AtomicBool::new(false))
        })?;
        assert!(matches!(outcome.error, Some(ControlError::Stopped)) && session.sent.len() == 2);
        let flows = outcome.received.unwrap().flows;
        (flows.len() == 2 && flows.iter().all(|flow| flow.packets > 0)).then_some(())
    });
}

/// Returns a request to send one flow over UDP to the client.
fn start_reverse(plan: FlowPlan) -> String {
    let reverse = ReverseFlows::of(&reversed(vec![plan]));
    let start = RunRequest {
        frames_from: None,
        flows: 1,
        until_ns: 60_000_000_000,
        interval_ns: None,
        seed: 1,
        receive_buffer: None,
        reverse,
    };
    serde_json::to_string(&ControlRequest::Start(start)).unwrap()
}

fn proof(step: Step, token: u64, nonce: u64) -> [u8; PROOF] {
    Proof { step, flow: 0, token, nonce }.write()
}

/// A minute, for something that comes also on a busy machine.
const SURELY: std::time::Duration = std::time::Duration::from_secs(60);
/// Time to wait for a message that should not arrive.
const SOON: std::time::Duration = std::time::Duration::from_millis(500);

/// Returns a socket of this address.
fn socket(address: &str) -> UdpSocket {
    let socket = UdpSocket::bind((address, 0)).unwrap();
    socket.set_read_timeout(Some(SURELY)).unwrap();
    socket
}

/// Returns the challenge's nonce; `None` if nothing comes within `time`.
fn challenged(socket: &UdpSocket, time: std::time::Duration) -> Option<u64> {
    socket.set_read_timeout(Some(time)).unwrap();
    let mut bytes = [0; 1500];
    let count = socket.recv(&mut bytes).ok()?;
    let challenge = Proof::read(&bytes[..count]).expect("nothing but proofs comes before the run");
    assert!(challenge.step == Step::Challenge && count == PROOF, "{challenge:?}");
    Some(challenge.nonce)
}

#[test]
fn an_address_that_does_not_return_the_nonce_gets_no_traffic() {
    // Who calls with which token, whether it is challenged, and the error of the nonce in its answer.
    let cases: [(&str, u64, bool, u64); 4] = [
        ("127.0.0.2", 0, false, 0),
        ("127.0.0.1", 1, false, 0),
        ("127.0.0.1", 0, true, 1),
        // It does not answer.
        ("127.0.0.1", 0, true, 0),
    ];
    for (i, (from, of_token, is_challenged, of_nonce)) in cases.into_iter().enumerate() {
        let ((), session) = session(|address, _| {
            let mut client = Client::opened(address);
            client.says(&start_reverse(plans().remove(0)));
            let (to, token) = client.ready(address);
            let socket = socket(from);
            socket.send_to(&proof(Step::Call, token ^ of_token, 0), to).unwrap();
            let nonce = challenged(&socket, if is_challenged { SURELY } else { SOON });
            assert_eq!(nonce.is_some(), is_challenged, "case {i}");
            if of_nonce > 0 {
                socket.send_to(&proof(Step::Answer, token, nonce.unwrap() ^ of_nonce), to).unwrap();
                assert_eq!(challenged(&socket, SOON), None);
            }
            client.says("\"gather\"");
            let refused = client.hears();
            assert!(refused.contains("1 of the 1 flows that it sends have no path"), "{refused}");
            // The session is over, and no data has come.
            assert_eq!((client.hears().as_str(), challenged(&socket, SOON)), ("", None));
        });
        assert!(session.sent.is_empty() && session.error.is_some());
    }
}

/// A client that has proven the path of a flow and begun the run. Returns its connection and its socket.
fn begun(address: SocketAddr, plan: FlowPlan) -> (Client, UdpSocket) {
    let mut client = Client::opened(address);
    client.says(&start_reverse(plan));
    let (to, token) = client.ready(address);
    let socket = socket("127.0.0.1");
    socket.send_to(&proof(Step::Call, token, 0), to).unwrap();
    let nonce = challenged(&socket, SURELY).unwrap();
    socket.send_to(&proof(Step::Answer, token, nonce), to).unwrap();
    let mut bytes = [0; 1500];
    assert_eq!(socket.recv(&mut bytes).unwrap(), PROOF);
    // A second address cannot take the flow over.
    let thief = self::socket("127.0.0.1");
    thief.send_to(&proof(Step::Call, token, 0), to).unwrap();
    assert_eq!(challenged(&thief, SOON), None);
    client.says("\"gather\"");
    assert!(client.hears().contains("gathered"));
    client.says(&begin(Duration::ZERO));
    assert!(client.hears().contains("begun"));
    assert_eq!(socket.recv(&mut bytes).unwrap(), 500);
    (client, socket)
}

#[test]
fn a_lost_control_connection_ends_the_traffic_of_the_receiver() {
    let ((), session) = session(|address, _| {
        let (client, socket) = begun(address, plans().remove(0));
        drop(client);
        socket.set_read_timeout(Some(SOON)).unwrap();
        let mut bytes = [0; 1500];
        // The run has a minute. Reading ends when nothing has come for half a second.
        assert!((0..5000).any(|_| socket.recv(&mut bytes).is_err()));
    });
    assert!(session.error.is_some() && !session.sent.is_empty());
}

#[test]
fn a_closed_port_ends_its_flow() {
    let error = in_enough_time(|time| {
        let ((), mut session) = session(|address, _| {
            let (mut client, socket) = begun(address, plans().remove(0));
            drop(socket);
            // The flow meets the closed port.
            thread::sleep(std::time::Duration::from_millis(time));
            client.says("\"finish\"");
            assert!(client.hears().contains("report"));
        });
        session.sent.remove(0).error
    });
    assert!(error.contains("refused"), "{error}");
}

#[test]
fn a_receiver_bounds_its_own_traffic() {
    let ask = |plans: Vec<FlowPlan>| {
        let most_rate = Rate::from_kbps(1000);
        let receiver = ReceiverParams { most_rate, most_flows: 3, ..ReceiverParams::default() };
        let (result, session) = session_with(receiver, |address, _| {
            send(&[address], reversed(plans), params(100), &AtomicBool::new(false))
        });
        assert!(session.sent.is_empty(), "{session:?}");
        result.unwrap_err().to_string()
    };
    let (udp, tcp) = (plans().remove(0), plans().remove(1));
    let two = vec![udp.clone(), FlowPlan { id: 2, ..udp.clone() }];
    let why = ask(two);
    assert!(why.contains("rate = 1.6 Mbit/s of UDP: must be at most 1 Mbit/s (its --max-rate)"), "{why}");
    let why = ask((0..4).map(|id| FlowPlan { id, ..tcp.clone() }).collect());
    assert!(why.contains("flows = 4: must be 1..3 (its --max-flows)"), "{why}");
    let options = TcpOptions { congestion_control: Some("nosuch".to_owned()), ..TcpOptions::default() };
    let why = ask(vec![FlowPlan { transport: FlowTransport::Tcp(options), ..tcp }]);
    assert!(why.contains("congestion control \"nosuch\""), "{why}");
}

#[test]
fn bursts_above_the_largest_rate_are_not_sent() {
    let receiver = ReceiverParams { most_rate: Rate::from_kbps(400), ..ReceiverParams::default() };
    let (outcome, _) = session_with(receiver, |address, _| {
        // The mean is 300 kbit/s, but messages of up to 60 kB come at random.
        let size = Distribution::Pareto { minimum: 100.0, shape: 1.1, maximum: Some(60_000.0) };
        let app = Params::Poisson(PoissonParams { rate: Rate::from_kbps(390), size });
        let plan = FlowPlan { app, ..plans().remove(0) };
        send(&[address], reversed(vec![plan]), params(2000), &AtomicBool::new(false)).unwrap()
    });
    let sent = &outcome.sent[0];
    // 100 kB in two seconds, and a burst of a tenth of a second.
    assert!(sent.bytes <= 100_000 + 5_000 + 1472, "{sent:?}");
    assert!(sent.bytes > 0 && outcome.received.unwrap().flows[0].bytes == sent.bytes);
}

/// The addresses of a name are tried in their order: those that refuse are left, and so are those of another family than the flows' source.
#[test]
fn every_address_of_a_receiver_is_tried() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let v6: SocketAddr = "[::1]:9".parse().unwrap();
    in_enough_time(|time| {
        let (outcome, _) = session(|address, _| {
            let from = Some("127.0.0.3:0".parse().unwrap());
            let plans = plans().into_iter().map(|plan| FlowPlan { from, ..plan }).collect();
            let sent = send(&[v6, nobody, address], plans, params(time), &AtomicBool::new(false)).unwrap();
            assert_eq!(sent.receiver, address);
            sent
        });
        (outcome.received.unwrap().flows.len() == 2).then_some(())
    });
    let error = send(&[v6, nobody], plans(), params(200), &AtomicBool::new(false)).unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot connect to {nobody}: Connection refused")), "{error}");
    let none = send(&[], plans(), params(200), &AtomicBool::new(false)).unwrap_err().to_string();
    assert_eq!(none, "the receiver has no address");
}

/// A process that was stopped says nothing, but its kernel still answers. The receiver is free after 15 s, not at the end of an hour.
#[test]
fn a_sender_that_was_stopped_does_not_keep_the_receiver() {
    let ((), session) = session(|address, _| {
        let mut client = Client::opened(address);
        client.says(&start(1, 3_600_000_000_000));
        client.ready(address);
        client.says(&begin(Duration::from_millis(100)));
        assert!(client.hears().contains("begun"));
        // One sign of life, and no other one; the connection stays open until the receiver ends it.
        client.says("\"alive\"");
        let began = now();
        assert_eq!(client.hears(), "");
        assert!(now().saturating_since(began) >= Duration::from_secs(14), "silence is not noticed at once");
    });
    assert!(matches!(session.error, Some(ControlError::Silent(_))), "{:?}", session.error);
    assert_eq!(session.until, Duration::from_secs(3600));
}

/// A sender says that it continues, also while it waits for what its kernel still sends.
#[test]
fn a_sender_that_continues_is_not_silent() {
    let (outcome, session) = session(|address, _| {
        let slow = SendParams { linger: Duration::from_millis(300), interval: None, ..params(18_000) };
        send(&[address], plans(), slow, &AtomicBool::new(false)).unwrap()
    });
    assert!(outcome.error.is_none() && session.error.is_none(), "{outcome:?} {session:?}");
}

fn frames(id: u32, size: u64) -> FlowPlan {
    FlowPlan {
        id,
        name: format!("frames.{id}"),
        transport: FlowTransport::Direct { largest: size as u32 },
        app: Params::Cbr(CbrParams::new(Rate::from_mbps(8), Bytes::new(size))),
        ..plans().remove(0)
    }
}

fn may_send_frames() -> bool {
    let opened = cutline_sys::packet::open_without_headers();
    opened.map_err(|error| cutline_testbed::skip(error, "run the tests of cutline-traffic as root")).is_ok()
}

#[test]
fn messages_in_frames_are_measured_beside_udp() {
    if !may_send_frames() {
        return;
    }
    undisturbed(|| {
        let plans = vec![frames(0, 1000), plans().remove(1), frames(2, 65_507)];
        let (reports, session) =
            session(|receiver, stop| send(&[receiver], plans.clone(), params(500), stop).unwrap());
        assert!(session.error.is_none() && reports.error.is_none());
        let received = reports.received.unwrap();
        assert_eq!(received.strangers, 0);
        for (flow, size) in [(0, 1000), (2, 65_507)] {
            let (sent, received) = (&reports.sent[flow], &received.flows[flow]);
            assert!(sent.error.is_none() && sent.packets > 0, "{sent:?}");
            assert_eq!(sent.bytes, sent.packets * size);
            assert_eq!(received.bytes, received.packets * size);
            in_time!(received.packets == sent.packets, "{sent:?} {received:?}");
        }
    });
}

#[test]
fn a_receiver_beyond_a_router_or_of_an_earlier_version_cannot_receive_frames() {
    if !may_send_frames() || !cutline_testbed::may_make_namespaces("run the tests of cutline-traffic as root")
    {
        return;
    }
    // The address of a host's own interface: the kernel sends to it over the loopback, and no host is on that link.
    let space = cutline_sys::namespace::Namespace::create("trafa").unwrap();
    space.ip_batch("link add v0 type veth peer name v1\naddress add 198.18.35.1/30 dev v0\nlink set v0 up\nlink set v1 up\n").unwrap();
    let error = space.within(|| {
        let mut receiver =
            Receiver::bind(&["198.18.35.1:0".parse().unwrap()], ReceiverParams::default()).unwrap();
        let address = receiver.addresses().unwrap()[0];
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let serving = scope.spawn(|| receiver.session(&stop).map(drop));
            let error = send(&[address], vec![frames(0, 1000)], params(100), &stop).unwrap_err();
            serving.join().unwrap().unwrap();
            error.to_string()
        })
    });
    let error = error.unwrap();
    assert!(error.contains("198.18.35.1") && error.ends_with("frames cross no router"), "{error}");
}
