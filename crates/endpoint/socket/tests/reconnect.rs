//! A network that is cut: there is no reset and no error message.
//!
//! These tests need root, for a network namespace of their own. Without it they say so and pass:
//! `sudo -E cargo test -p cutline-socket reconnect::`.

use cutline_quality::spec::Specification;
use cutline_signal::monitor::MonitorParams;
use cutline_socket::{Cause, Peer, QosOptions, QosTcpListener, QosTcpStream, SessionEvent};
use cutline_sys::namespace::Namespace;
use cutline_sys::tcp::tcp_info;
use cutline_testbed::may_make_namespaces;
use cutline_units::Duration;
use std::io::{ErrorKind, Read, Write};
use std::thread;
use std::time;

fn often(options: QosOptions) -> QosOptions {
    let monitor = MonitorParams { interval: Duration::from_millis(20), ..MonitorParams::default() };
    options.monitor(monitor).peer(Peer::Speaks)
}

/// The next event of a connection's life.
fn next(stream: &QosTcpStream) -> SessionEvent {
    loop {
        let event = stream.wait_for_event(time::Duration::from_secs(60)).expect("an event in time");
        if matches!(
            event,
            SessionEvent::Lost { .. } | SessionEvent::Recovered { .. } | SessionEvent::GaveUp { .. }
        ) {
            return event;
        }
    }
}

/// Returns a listener in a namespace, and both ends of a connection to it whose ends have negotiated.
fn connected(namespace: &Namespace, options: &QosOptions) -> (QosTcpListener, QosTcpStream, QosTcpStream) {
    let bind = || QosTcpListener::bind("127.0.0.1:0", &often(QosOptions::default())).unwrap();
    let listener = namespace.within(bind).unwrap();
    let to = listener.local_addr().unwrap();
    let (ours, theirs) = thread::scope(|scope| {
        let accepts = scope.spawn(|| {
            let (stream, _) = listener.accept().unwrap();
            stream.has_qos_peer().unwrap();
            stream
        });
        let ours = namespace.within(|| QosTcpStream::connect(to, options).unwrap()).unwrap();
        (ours, accepts.join().unwrap())
    });
    (listener, ours, theirs)
}

/// Drops everything on its way.
fn cut(namespace: &Namespace) {
    let drops = ["route", "add", "blackhole", "127.0.0.1/32", "table", "local"];
    namespace.ip(&["route", "del", "local", "127.0.0.1/32", "table", "local"]).unwrap();
    namespace.ip(&drops).unwrap();
}

/// Accepts the connection that takes the place of a lost one, and waits until it is taken up. On a busy machine an attempt may have no turn for
/// so long that it is abandoned. The next attempt then has another connection.
fn accept_again(listener: &QosTcpListener, ours: &QosTcpStream) -> QosTcpStream {
    listener.set_nonblocking(true).unwrap();
    let (mut last, begin) = (None, time::Instant::now());
    loop {
        last = listener.accept().ok().map(|(stream, _)| stream).or(last);
        match ours.event() {
            Some(SessionEvent::Recovered { is_new: true, .. }) => {
                listener.set_nonblocking(false).unwrap();
                return last.expect("it was accepted before it could agree");
            }
            Some(SessionEvent::GaveUp { after, cause }) => panic!("given up after {after}: {cause}"),
            Some(_) => {}
            None => thread::sleep(time::Duration::from_millis(5)),
        }
        assert!(begin.elapsed() < time::Duration::from_secs(120), "neither made again nor given up");
    }
}

#[test]
fn a_stream_over_a_network_that_is_cut_is_lost_in_bounded_time_and_made_again() {
    if !may_make_namespaces("sudo -E cargo test -p cutline-socket reconnect::") {
        return;
    }
    let namespace = Namespace::create("cut").unwrap();
    let recovers = Specification::builder().recovery(Duration::from_secs(60)).coerce_all().build().unwrap();
    let asks = often(QosOptions::both(recovers));
    for reconnects in [true, false] {
        let asks = asks.clone().reconnect(reconnects);
        let (listener, ours, mut theirs) = connected(&namespace, &asks);
        (&ours).write_all(b"one").unwrap();
        theirs.read_exact(&mut [0; 3]).unwrap();
        while ours.mib().send.received.messages < 1 {
            thread::sleep(time::Duration::from_millis(5));
        }
        cut(&namespace);
        let begin = time::Instant::now();
        let SessionEvent::Lost { cause, sent, reported } = next(&ours) else { panic!("lost") };
        assert!(begin.elapsed() < time::Duration::from_secs(60), "{:?}", begin.elapsed());
        assert_eq!((sent, reported), (1, 1), "{cause}");
        assert!(matches!(cause, Cause::Silence(_) | Cause::Failed(_)), "{cause}");
        // The path is broken for some attempts.
        thread::sleep(time::Duration::from_millis(200));
        namespace.ip(&["route", "del", "blackhole", "127.0.0.1/32", "table", "local"]).unwrap();
        let local = ["route", "add", "local", "127.0.0.1/32", "dev", "lo", "table", "local", "scope", "host"];
        namespace.ip(&local).unwrap();
        if !reconnects {
            let SessionEvent::Recovered { is_new: false, .. } = next(&ours) else { panic!("heard again") };
            (&ours).write_all(b"two").unwrap();
            theirs.read_exact(&mut [0; 3]).unwrap();
            continue;
        }
        let mut again = accept_again(&listener, &ours);
        let error = (&ours).write_all(b"two").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionAborted, "{error}");
        (&ours).write_all(b"two").unwrap();
        again.read_exact(&mut [0; 3]).unwrap();
    }
}

/// A segment that no route leads to is not in flight: the kernel keeps it, and nothing waits for an acknowledgement.
#[test]
fn an_idle_stream_without_a_route_is_lost() {
    if !may_make_namespaces("sudo -E cargo test -p cutline-socket reconnect::") {
        return;
    }
    let namespace = Namespace::create("unr").unwrap();
    // Long enough for the cut between two reports.
    let monitor = MonitorParams { interval: Duration::from_millis(300), ..MonitorParams::default() };
    let (_listener, ours, _theirs) =
        connected(&namespace, &QosOptions::default().monitor(monitor).peer(Peer::Speaks));
    let is_in_flight = || tcp_info(&ours).unwrap().unacknowledged > 0;
    let begin = time::Instant::now();
    for awaited in [true, false] {
        while is_in_flight() != awaited {
            assert!(begin.elapsed() < time::Duration::from_secs(60), "reports are sent and acknowledged");
            thread::sleep(time::Duration::from_millis(1));
        }
    }
    cut(&namespace);
    let SessionEvent::Lost { cause, .. } = next(&ours) else { panic!("lost") };
    assert!(matches!(cause, Cause::Silence(_)), "{cause}");
}
