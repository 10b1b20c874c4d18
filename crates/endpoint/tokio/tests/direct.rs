//! Messages in frames below IP, on the loopback interface and between two namespaces.

use cutline_quality::spec::Specification;
use cutline_signal::monitor::MonitorParams;
use cutline_signal::negotiation::NegotiationParams;
use cutline_sys::namespace::Namespace;
use cutline_sys::packet::open_without_headers;
use cutline_tokio::{DirectAddress, QosDirectListener, QosDirectSocket, QosError, QosOptions, SessionEvent};
use cutline_units::{Bytes, Duration};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use std::future::Future;
use std::io;
use std::thread;
use tokio::time::{sleep, timeout};

const RUN: &str = "run the tests of cutline-tokio as root";
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

fn may_run() -> bool {
    open_without_headers().map_err(|error| cutline_testbed::skip(error, RUN)).is_ok()
}

/// Runs a future in a runtime with one thread: whatever blocks it is noticed.
fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { timeout(PATIENCE, work).await.expect("it comes to its end") })
}

/// Options with short intervals, and with a minute for the peer: a thread of a busy machine may have no turn for seconds.
fn quick(specification: Specification) -> QosOptions {
    let [first_timeout, give_up, interval] = [20, 60_000, 20].map(Duration::from_millis);
    QosOptions::both(specification)
        .detection(std::time::Duration::from_secs(60))
        .negotiation(NegotiationParams { first_timeout, give_up })
        .monitor(MonitorParams { interval, ..MonitorParams::default() })
}

fn blocks(size: u64) -> Specification {
    Specification::builder().size(Bytes::new(size)).coerce_all().build().unwrap()
}

async fn meet(listener: &QosDirectListener, options: &QosOptions) -> [QosDirectSocket; 2] {
    let to = listener.local_addr().unwrap();
    let (connected, accepted) = tokio::join!(QosDirectSocket::connect(to, options), listener.accept());
    let (accepted, from) = accepted.unwrap();
    let connected = connected.unwrap();
    assert_eq!((connected.peer_addr(), connected.local_addr().unwrap()), (to, from));
    [connected, accepted]
}

#[test]
fn both_ends_are_in_one_task_and_long_messages_are_whole() {
    if !may_run() {
        return;
    }
    run(async {
        let options = quick(blocks(66_000));
        let listener = QosDirectListener::bind("lo", 0, &options).unwrap();
        let [ours, theirs] = meet(&listener, &options).await;
        assert!(ours.has_qos_peer() && theirs.has_qos_peer());
        assert!(matches!(ours.event().await, SessionEvent::Agreed(_)));
        let mut buffer = vec![0; 70_000];
        for (number, length) in (0..).zip([0, 1, 1500, 8192, 66_000]) {
            let message = vec![number; length];
            for (from, to) in [(&ours, &theirs), (&theirs, &ours)] {
                // A call that is cancelled takes nothing.
                assert!(timeout(std::time::Duration::from_millis(5), to.recv(&mut buffer)).await.is_err());
                let (sent, received) = tokio::join!(from.send(&message), to.recv(&mut buffer));
                assert_eq!((sent.unwrap(), received.unwrap()), (length, length));
                assert_eq!(buffer[..length], message);
            }
        }
        let counted = theirs.mib().receive.received;
        assert_eq!((counted.messages, counted.lost()), (5, 0));
        assert_eq!(theirs.mib().scheduling, None, "without a share");
        let error = ours.send(&vec![0; 66_001]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        // A listener waits for the next one.
        let again = meet(&listener, &options).await;
        drop(again);
    });
}

#[test]
fn tasks_that_wait_use_the_connection_that_is_made_again() {
    if !may_run() {
        return;
    }
    run(async {
        let recovers =
            Specification::builder().recovery(Duration::from_secs(60)).coerce_all().build().unwrap();
        let before = QosDirectListener::bind("lo", 0, &quick(Specification::OPEN)).unwrap();
        let to = before.local_addr().unwrap();
        let [ours, theirs] = meet(&before, &quick(recovers).reconnect(true)).await;
        while ours.mib().reports.used == 0 || theirs.mib().reports.used == 0 {
            sleep(std::time::Duration::from_millis(5)).await;
        }
        drop((before, theirs));
        // A child of another test that has not called exec yet holds a copy of the port's descriptor.
        let after = loop {
            let bound = QosDirectListener::bind("lo", to.port, &quick(Specification::OPEN));
            match bound.map_err(io::Error::from) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    sleep(std::time::Duration::from_millis(5)).await;
                }
                bound => break bound.unwrap(),
            }
        };
        let mut buffer = [0; 10];
        let receives = async {
            loop {
                match ours.recv(&mut buffer).await {
                    Ok(length) => break length,
                    // A call reports the loss once.
                    Err(error) => assert!(error.kind() == io::ErrorKind::ConnectionAborted, "{error}"),
                }
            }
        };
        let sends = async {
            let theirs = after.accept().await.unwrap().0;
            theirs.send(b"again").await.unwrap();
            theirs
        };
        let (length, _theirs) = tokio::join!(receives, sends);
        assert_eq!((length, ours.mib().feedback.reconnections), (5, 1));
    });
}

#[test]
fn messages_cross_a_link_between_two_hosts() {
    if !may_run() || !cutline_testbed::may_make_namespaces(RUN) {
        return;
    }
    let [a, b] = ["dirta", "dirtb"].map(|label| Namespace::create(label).unwrap());
    let veth = "link add host type veth peer name host netns";
    a.ip_batch(&format!("{veth} {}\nlink set host address 02:00:00:00:00:0a up\n", b.name())).unwrap();
    b.ip_batch("link set host address 02:00:00:00:00:0b up\n").unwrap();
    let options = quick(blocks(66_000));
    let (ready, listening) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        let (options, b) = (&options, &b);
        let echoes = scope.spawn(move || {
            b.within(move || {
                run(async {
                    let listener = QosDirectListener::bind("host", 7000, options).unwrap();
                    ready.send(()).unwrap();
                    let (socket, peer) = listener.accept().await.unwrap();
                    assert_eq!(peer.link, [2, 0, 0, 0, 0, 10]);
                    let mut buffer = vec![0; 70_000];
                    loop {
                        let length = socket.recv(&mut buffer).await.unwrap();
                        assert_eq!(socket.send(&buffer[..length]).await.unwrap(), length);
                        if length == 0 {
                            return socket.mib().receive.received;
                        }
                    }
                })
            })
        });
        listening.recv().unwrap();
        a.within(|| {
            run(async {
                let to: DirectAddress = "direct:host/02:00:00:00:00:0b:7000".parse().unwrap();
                let socket = QosDirectSocket::connect(to, options).await.unwrap();
                let mut buffer = vec![0; 70_000];
                for number in (0..20_u8).rev() {
                    let message = vec![number; usize::from(number) * 3450];
                    assert_eq!(socket.send(&message).await.unwrap(), message.len());
                    assert_eq!(socket.recv(&mut buffer).await.unwrap(), message.len());
                    assert_eq!(buffer[..message.len()], message);
                }
            });
        })
        .unwrap();
        let counted = echoes.join().unwrap().unwrap();
        assert_eq!((counted.messages, counted.lost()), (20, 0));
    });
}

#[test]
fn without_the_capability_errors_name_it() {
    if !may_run() {
        return;
    }
    // The capabilities of a thread are its own.
    thread::spawn(|| {
        let mut sets = capabilities(None).unwrap();
        sets.effective.remove(CapabilitySet::NET_RAW);
        set_capabilities(None, sets).unwrap();
        run(async {
            let options = QosOptions::default();
            let to = "direct:lo/00:00:00:00:00:00:7000".parse().unwrap();
            let errors = [
                QosDirectListener::bind("lo", 0, &options).unwrap_err(),
                QosDirectSocket::connect(to, &options).await.unwrap_err(),
            ];
            for error in errors {
                assert!(error.to_string().contains("CAP_NET_RAW"), "{error}");
                let QosError::System { source, .. } = error else { panic!("{error}") };
                assert_eq!(source.kind(), io::ErrorKind::PermissionDenied);
            }
        });
    })
    .join()
    .unwrap();
}
