//! Connections that are limited by the resource manager of the host.

use cutline_allocation::protocol::FlowNeed;
use cutline_allocation::{AllocatedFlow, FlowHandler, FlowNotice, ManagerConnection, allocate};
use cutline_manager::feedback::{FlowEdges, FlowReport};
use cutline_manager::resources::{Capacities, CarrierKind, ResourceParams};
use cutline_manager_service::{ManagerService, ManagerSpec};
use cutline_quality::spec::Specification;
use cutline_service::JsonLineError;
use cutline_socket::{
    AllocationOptions, AllocationState, IfRefused, Marking, Peer, QosError, QosOptions, QosTcpListener,
    QosTcpStream, QosUdpListener, QosUdpSocket, Rate, SchedulingClass, SessionEvent,
};
use cutline_testbed::{in_time, patiently, undisturbed};
use cutline_units::Bytes;
use rustix::net::connect_unspec;
use rustix::net::sockopt::set_socket_linger;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(60);

struct Host {
    _folder: TempDir,
    spec: ManagerSpec,
}

impl Host {
    /// A host that can carry so much.
    fn new(combined: Rate) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name| folder.path().join(name);
        let spec = ManagerSpec {
            socket: path("manager.sock"),
            state: path("manager.state"),
            capacities: Capacities { combined: Some(combined), ..Capacities::default() },
            resources: ResourceParams { user_share: 1.0, ..ResourceParams::default() },
            ..ManagerSpec::default()
        };
        Self { _folder: folder, spec }
    }

    fn start(&self) -> ManagerService {
        ManagerService::start(self.spec.clone(), &[], |_| {}).unwrap()
    }

    /// A client of its manager, which may be busy.
    fn client(&self) -> ManagerConnection {
        patiently(|| ManagerConnection::connect(&self.spec.socket, None), JsonLineError::is_late).unwrap()
    }

    fn options(&self, class: SchedulingClass) -> AllocationOptions {
        AllocationOptions::new(class).socket(&self.spec.socket).patience(PATIENCE)
    }
}

/// A specification with these rates of messages of 1000 B.
fn rates(min: f64, max: f64) -> Specification {
    Specification::builder().rates(min, max, max).size(Bytes::new(1000)).build().unwrap()
}

/// Waits for an event that `pick` takes.
fn next<T>(socket: &cutline_socket::ConnectionHandle, mut pick: impl FnMut(SessionEvent) -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let event = socket.wait_for_event(left).expect("the event comes in time");
        if let Some(found) = pick(event) {
            return found;
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is passed as a function of events")]
fn allocated(event: SessionEvent) -> Option<(Option<Rate>, Rate)> {
    match event {
        SessionEvent::Allocated { before, rate } => Some((before, rate)),
        _ => None,
    }
}

/// A pair of datagram sockets, the first of which is managed.
fn pair(options: &QosOptions) -> (QosUdpSocket, QosUdpSocket) {
    let listener = QosUdpListener::bind("127.0.0.1:0", &QosOptions::default()).unwrap();
    let to = listener.local_addr().unwrap();
    let options = options.clone();
    let connecting = thread::spawn(move || QosUdpSocket::connect(to, &options).unwrap());
    let (accepted, _) = listener.accept().unwrap();
    (connecting.join().unwrap(), accepted)
}

/// Sends messages of 1000 B for so long. Returns the rate of the messages, bit/s.
fn measure(socket: &QosUdpSocket, time: Duration) -> f64 {
    let (begin, mut sent) = (Instant::now(), 0_u32);
    while begin.elapsed() < time {
        socket.send(&[7; 1000]).unwrap();
        sent += 1;
    }
    f64::from(sent) * 8000.0 / begin.elapsed().as_secs_f64()
}

#[test]
fn the_granted_rate_limits_datagrams_and_changes_while_they_are_sent() {
    let host = Host::new(Rate::from_mbps(8));
    let service = host.start();
    // 2000 messages of 1000 B a second are 16 Mbit/s.
    let options = QosOptions::sending(rates(10.0, 2000.0)).peer(Peer::Speaks);
    let options = options.allocation(host.options(SchedulingClass::RealTime));
    let (socket, _other) = pair(&options);
    // 6 Mbit/s may be promised, headers included.
    let (before, rate) = next(&socket, allocated);
    assert!(before.is_none() && rate < Rate::from_mbps(6) && rate > Rate::from_kbps(5600), "{rate}");
    assert_eq!(socket.allocation(), Some(AllocationState::Granted(Rate::from_mbps(6))));
    let measured = measure(&socket, Duration::from_secs(1));
    assert!(measured < rate.as_bps() as f64 * 1.05, "{measured} of {rate}");
    let mut spec = host.spec.clone();
    spec.capacities.combined = Some(Rate::from_mbps(2));
    service.reconfigure(spec);
    let (before, lower) = next(&socket, allocated);
    assert!(before == Some(rate) && lower < Rate::from_kbps(1500), "{lower}");
    let measured = measure(&socket, Duration::from_secs(1));
    assert!(measured < lower.as_bps() as f64 * 1.05, "{measured} of {lower}");
    service.reconfigure(host.spec.clone());
    assert_eq!(next(&socket, allocated), (Some(lower), rate));
}

#[test]
fn a_stream_is_paced_at_the_granted_rate() {
    let host = Host::new(Rate::from_mbps(8));
    let _service = host.start();
    let listener = QosTcpListener::bind("127.0.0.1:0", &QosOptions::default()).unwrap();
    let to = listener.local_addr().unwrap();
    let reading = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        bytes.len()
    });
    // An open parameter has no highest rate: it gets all of the host.
    let options = QosOptions::sending(Specification::OPEN).marking(Marking::None);
    let options = options.allocation(host.options(SchedulingClass::TimeShared));
    let mut stream = QosTcpStream::connect(to, &options).unwrap();
    let (_, rate) = next(&stream, allocated);
    assert!(rate > Rate::from_mbps(6) && rate < Rate::from_mbps(8), "{rate}");
    let begin = Instant::now();
    stream.write_all(&vec![1; 2_000_000]).unwrap();
    drop(stream);
    assert_eq!(reading.join().unwrap(), 2_000_000);
    // 16 Mbit, of which the socket's buffer and the first window leave early.
    let took = begin.elapsed();
    assert!(took > Duration::from_millis(1500), "{took:?}");
}

#[test]
fn without_a_manager_nothing_is_limited_and_a_later_one_limits() {
    undisturbed(|| {
        let host = Host::new(Rate::from_mbps(8));
        let options = QosOptions::sending(rates(10.0, 500.0)).peer(Peer::Speaks);
        let options = options.allocation(host.options(SchedulingClass::RealTime));
        let begin = Instant::now();
        let (socket, _other) = pair(&options);
        let connecting = begin.elapsed();
        assert!(
            matches!(socket.allocation(), Some(AllocationState::Away(why)) if why.contains("manager.sock"))
        );
        assert!(
            socket
                .events()
                .all(|event| !matches!(event, SessionEvent::Allocated { .. } | SessionEvent::Unallocated(_)))
        );
        socket.send(&[1; 1000]).unwrap();
        let service = host.start();
        let (before, rate) = next(&socket, allocated);
        assert_eq!((before, rate), (None, Rate::from_mbps(4)));
        // The rate stays when the manager goes, and when it comes back.
        drop(service);
        let service = host.start();
        assert_eq!(service.taken_over(), 1);
        assert!(matches!(socket.allocation(), Some(AllocationState::Granted(_))));
        // Nothing is to happen, so there is no event to wait for.
        thread::sleep(Duration::from_millis(500));
        assert!(
            socket
                .events()
                .all(|event| !matches!(event, SessionEvent::Allocated { .. } | SessionEvent::Unallocated(_)))
        );
        in_time!(connecting < Duration::from_millis(900), "without a manager connecting took {connecting:?}");
    });
}

#[test]
fn a_refusal_is_an_event_or_an_error() {
    let host = Host::new(Rate::from_mbps(1));
    let _service = host.start();
    let options = QosOptions::sending(rates(400.0, 500.0)).peer(Peer::Plain);
    let allocation = host.options(SchedulingClass::RealTime);
    let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = receiver.local_addr().unwrap();
    let socket = QosUdpSocket::connect(to, &options.clone().allocation(allocation.clone())).unwrap();
    let reason = next(&socket, |event| match event {
        SessionEvent::Unallocated(reason) => Some(reason),
        _ => None,
    });
    assert!(reason.contains("TCP and datagrams together is exhausted"), "{reason}");
    assert_eq!(socket.allocation(), Some(AllocationState::Refused(reason)));
    let failing = options.clone().allocation(allocation.if_refused(IfRefused::Fail));
    let error = QosUdpSocket::connect(to, &failing).unwrap_err();
    assert!(matches!(error, QosError::Unallocated(_)), "{error}");
    let open = QosOptions::sending(Specification::OPEN).peer(Peer::Plain);
    let error =
        QosUdpSocket::connect(to, &open.allocation(host.options(SchedulingClass::RealTime))).unwrap_err();
    let said = "allocation = real-time: allowed is time-shared, unless send.max-rate and send.size are set";
    assert_eq!(error.to_string(), said);
}

/// An end that accepts is managed as well, and a share returns when its socket is dropped.
#[test]
fn the_share_of_a_socket_returns_when_it_is_dropped() {
    let host = Host::new(Rate::from_mbps(8));
    let _service = host.start();
    let options = QosOptions::sending(rates(1.0, 700.0)).allocation(host.options(SchedulingClass::RealTime));
    let listener = QosUdpListener::bind("127.0.0.1:0", &options).unwrap();
    let to = listener.local_addr().unwrap();
    let other = thread::spawn(move || QosUdpSocket::connect(to, &QosOptions::default()).unwrap());
    let (accepted, _) = listener.accept().unwrap();
    let _other = other.join().unwrap();
    let (_, rate) = next(&accepted, allocated);
    assert_eq!(rate, Rate::from_kbps(5600));
    let (second, _third) = pair(&options.clone().peer(Peer::Speaks));
    let less = |event| allocated(event).map(|(_, rate)| rate).or(Some(Rate::ZERO));
    let first = next(&second, less);
    assert!(first < Rate::from_mbps(1), "{first}");
    drop(accepted);
    let until = Instant::now() + PATIENCE;
    while socket_rate(&second) < Rate::from_mbps(5) {
        assert!(Instant::now() < until, "the share returns");
        thread::sleep(Duration::from_millis(10));
    }
}

fn socket_rate(socket: &QosUdpSocket) -> Rate {
    match socket.allocation() {
        Some(AllocationState::Granted(rate)) => rate,
        _ => Rate::ZERO,
    }
}

/// Two threads of one process that send as fast as they may: the class keeps to the grant, and messages that wait
/// longer than they may are counted, here and at the manager.
#[test]
fn missed_deadlines_are_counted_and_reported() {
    let host = Host::new(Rate::from_mbps(8));
    let _service = host.start();
    // A delay of 1 us has passed when the message leaves.
    let strict = Specification::builder()
        .rates(1.0, 200.0, 200.0)
        .size(Bytes::new(1000))
        .max_delay(cutline_units::Duration::from_micros(1))
        .build()
        .unwrap();
    let options = QosOptions::sending(strict).peer(Peer::Plain);
    let options = options.allocation(host.options(SchedulingClass::RealTime));
    let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = receiver.local_addr().unwrap();
    let sockets: Vec<_> = (0..2).map(|_| QosUdpSocket::connect(to, &options).unwrap()).collect();
    for socket in &sockets {
        next(socket, allocated);
    }
    let threads: Vec<_> = sockets
        .iter()
        .map(|socket| {
            let socket = socket.clone();
            thread::spawn(move || (0..100).for_each(|_| assert_eq!(socket.send(&[1; 1000]).unwrap(), 1000)))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    for socket in &sockets {
        let stats = socket.scheduling().unwrap();
        assert_eq!((stats.sent, socket.mib().scheduling), (100, Some(stats)));
        assert!(stats.missed > 50 && stats.latest > cutline_units::Duration::ZERO, "{stats:?}");
    }
    let until = Instant::now() + PATIENCE;
    let mut client = host.client();
    loop {
        let status = client.status(cutline_units::Duration::from_secs(60)).unwrap();
        if status.flows.len() == 2 && status.flows.iter().all(|flow| flow.missed_deadlines > 50) {
            break;
        }
        assert!(Instant::now() < until, "{status:?}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// A stream that is made again has another port. The manager learns of it: classes of the kernel and reservations are for its packets.
#[test]
fn the_manager_has_the_port_of_a_stream_that_is_made_again() {
    let host = Host::new(Rate::from_mbps(8));
    let _service = host.start();
    let recovers =
        Specification::builder().recovery(cutline_units::Duration::from_secs(60)).coerce_all().build();
    let options = QosOptions::both(recovers.unwrap()).reconnect(true).peer(Peer::Speaks);
    let options = options.allocation(host.options(SchedulingClass::TimeShared));
    let listener = QosTcpListener::bind("127.0.0.1:0", &QosOptions::default()).unwrap();
    let to = listener.local_addr().unwrap();
    let (ours, theirs) = thread::scope(|scope| {
        let accepted = scope.spawn(|| {
            let (stream, _) = listener.accept().unwrap();
            stream.has_qos_peer().unwrap();
            stream
        });
        (QosTcpStream::connect(to, &options).unwrap(), accepted.join().unwrap())
    });
    next(&ours, allocated);
    let sources = || -> Vec<SocketAddr> {
        let mut client = host.client();
        let status = client.status(cutline_units::Duration::from_secs(60)).unwrap();
        status.flows.iter().map(|flow| flow.source).collect()
    };
    let before = ours.local_addr().unwrap();
    assert_eq!(sources(), [before]);
    // A reset, in both directions at once.
    set_socket_linger(&theirs, Some(Duration::ZERO)).unwrap();
    let _reset = connect_unspec(&theirs);
    // On a busy machine an attempt may be abandoned; the next one has another connection.
    listener.set_nonblocking(true).unwrap();
    let (mut again, until) = (Vec::new(), Instant::now() + 2 * PATIENCE);
    while !ours.events().any(|event| matches!(event, SessionEvent::Recovered { is_new: true, .. })) {
        again.extend(listener.accept());
        assert!(Instant::now() < until, "it is made again");
        thread::sleep(Duration::from_millis(5));
    }
    let after = ours.local_addr().unwrap();
    assert_ne!(before, after);
    let until = Instant::now() + PATIENCE;
    while sources() != [after] {
        assert!(Instant::now() < until, "{:?} is {after}", sources());
        thread::sleep(Duration::from_millis(10));
    }
    assert!(matches!(ours.allocation(), Some(AllocationState::Granted(_))));
}

/// A flow that measures nothing.
struct Silent;

impl FlowHandler for Silent {
    fn on_notice(&self, _: FlowNotice) {}

    fn report(&self) -> Option<FlowReport> {
        None
    }
}

/// A change for which there is no room is repeated, as a refused request is.
#[test]
fn a_change_that_was_refused_is_made_when_there_is_room() {
    let host = Host::new(Rate::from_mbps(80));
    let _service = host.start();
    let silent: Arc<dyn FlowHandler> = Arc::new(Silent);
    let flow = |mbps: u64| {
        let need = FlowNeed {
            class: SchedulingClass::RealTime,
            carrier: CarrierKind::Datagrams,
            source: "127.0.0.1:4000".parse().unwrap(),
            destination: "127.0.0.1:5000".parse().unwrap(),
            desired_bps: Some(mbps * 1_000_000),
            minimum_bps: mbps * 1_000_000,
            priority: 7,
            weight: 1,
            delay_ms: None,
            loss_percent: None,
        };
        allocate(&host.spec.socket, need, Arc::downgrade(&silent)).unwrap()
    };
    let wait = |flow: &AllocatedFlow, mbps: u64| {
        let until = Instant::now() + PATIENCE;
        while flow.state() != AllocationState::Granted(Rate::from_mbps(mbps)) {
            assert!(Instant::now() < until, "{:?}", flow.state());
            thread::sleep(Duration::from_millis(10));
        }
    };
    // 60 may be promised.
    let (first, second) = (flow(40), flow(10));
    wait(&first, 40);
    wait(&second, 10);
    second.change(Some(Rate::from_mbps(50)), Rate::from_mbps(50), FlowEdges::default());
    let mut client = host.client();
    let until = Instant::now() + PATIENCE;
    while client.status(cutline_units::Duration::from_secs(60)).unwrap().counters.refused == 0 {
        assert!(Instant::now() < until, "the change is refused");
        thread::sleep(Duration::from_millis(10));
    }
    wait(&second, 10);
    drop(first);
    wait(&second, 50);
}
