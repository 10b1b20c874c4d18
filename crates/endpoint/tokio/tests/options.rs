//! Every option, and the state of connections, by the names of this crate alone.

use cutline_tokio::{
    Access, AckPath, AllocationOptions, AllocationState, Alternatives, Class, ConnectionReservation,
    ConnectionSpecification, Direction, Dscp, Duration, Hint, HintBits, HintGoal, HintParams, IfRefused,
    IpVersion, Marking, MonitorParams, NegotiationParams, OperationParams, Pacing, Path, Peer, Preset,
    QosOptions, QosTcpListener, QosTcpStream, QosUdpListener, QosUdpSocket, Rate, RateControl,
    RenegotiationParams, Sample, SchedulingClass, SchedulingStats, SessionTrace, TfrcParams, UnknownService,
};
use std::time;

const _: Direction = Direction::Send;

const WAIT: time::Duration = time::Duration::from_secs(60);

/// Each option once, with a value that is not its default where it has several.
fn every_option(trace: &SessionTrace) -> Result<QosOptions, UnknownService> {
    let specification = Preset::Audio.specification();
    let both = ConnectionSpecification { send: specification.clone(), receive: specification, profile: None };
    let params = RenegotiationParams { patience: Duration::from_secs(9), ..RenegotiationParams::default() };
    let alternatives = Alternatives { specifications: vec![both.clone()], params };
    let path = Path { rate: Some(Rate::from_mbps(4)), ip: IpVersion::V6, ..Path::default() };
    let hint = HintParams { goal: HintGoal::Quality, ..HintParams::new(HintBits::PAPER) };
    let allocation = AllocationOptions::new(SchedulingClass::RealTime).if_refused(IfRefused::BestEffort);
    QosOptions::new(both)
        .peer(Peer::Speaks)
        .pacing(Pacing::Count)
        .rate_control(RateControl::Tfrc(TfrcParams::default()))
        .marking(Marking::Adaptive(Class::Audio, hint))
        .key(&[7; 32])
        .expect("it is long enough")
        .path(path)
        .adapt_rate(OperationParams::default())
        .alternatives(alternatives)
        .detection(WAIT)
        .reconnect(true)
        .connect_timeout(WAIT)
        .linger(WAIT)
        .negotiation(NegotiationParams::default())
        .monitor(MonitorParams::default())
        .trace(trace)
        .publish(false)
        .managed(false)
        .allocation(allocation)
        .service("mark", &Access::default())
        .map(|options| {
            options.ack_path(AckPath::BestEffort).if_refused(IfRefused::Fail).reservation_patience(WAIT)
        })
}

#[test]
fn every_option_can_be_set() {
    let options = format!("{:?}", every_option(&SessionTrace::default()).unwrap());
    for expected in
        ["Adaptive", "goal: Quality", "Tfrc", "RealTime", "BestEffort", "ip: V6", "Count", "SessionTrace"]
    {
        assert!(options.contains(expected), "{expected}: {options}");
    }
    for marking in [Marking::Fixed(Hint::from_level(3)), Marking::Dscp(Dscp::new(46).unwrap())] {
        assert!(format!("{:?}", QosOptions::default().marking(marking)).contains("marking"));
    }
    let error: UnknownService = QosOptions::default().service("nosuch", &Access::default()).unwrap_err();
    assert!(error.to_string().contains("rsvp"), "{error}");
}

/// Programs derive `Debug` for types that hold these, and wait for descriptors in their own ways.
#[test]
fn all_types_can_be_shown_and_sockets_have_descriptors() {
    fn is_shown<T: std::fmt::Debug>() {}
    fn has_descriptor<T: std::fmt::Debug + std::os::fd::AsFd>() {}
    is_shown::<cutline_tokio::ReadHalf<'static>>();
    is_shown::<cutline_tokio::WriteHalf<'static>>();
    is_shown::<cutline_tokio::OwnedReadHalf>();
    is_shown::<cutline_tokio::OwnedWriteHalf>();
    has_descriptor::<QosTcpStream>();
    has_descriptor::<QosTcpListener>();
    has_descriptor::<QosUdpSocket>();
    has_descriptor::<QosUdpListener>();
    has_descriptor::<cutline_tokio::QosDirectSocket>();
    has_descriptor::<cutline_tokio::QosDirectListener>();
}

/// The state that a connection has of the services that its options request.
type State = (Option<ConnectionReservation>, Option<AllocationState>, Option<SchedulingStats>);

#[tokio::test]
async fn a_connection_reports_its_reservation_its_share_and_its_messages() {
    let service = QosOptions::default().service("mark", &Access::default()).unwrap();
    let listener = QosUdpListener::bind("127.0.0.1:0", &service).await.unwrap();
    let to = listener.local_addr().unwrap();
    let (ours, theirs) = tokio::join!(QosUdpSocket::connect(to, &service), listener.accept());
    let (ours, (theirs, _)) = (ours.unwrap(), theirs.unwrap());
    let (reservation, share, scheduling): State = (ours.reservation(), ours.allocation(), ours.scheduling());
    assert_eq!(reservation.unwrap().service, "mark");
    assert!(share.is_none() && scheduling.is_none());

    theirs.sample(10);
    ours.send(&[7; 100]).await.unwrap();
    assert_eq!(theirs.recv(&mut [0; 200]).await.unwrap(), 100);
    let (samples, forgotten): (Vec<Sample>, u64) = theirs.take_samples();
    assert_eq!((samples.len(), forgotten), (1, 0));

    let listener = QosTcpListener::bind("127.0.0.1:0", &QosOptions::default()).await.unwrap();
    let to = listener.local_addr().unwrap();
    let options = QosOptions::default();
    let (stream, _accepted) = tokio::join!(QosTcpStream::connect(to, &options), listener.accept());
    let stream = stream.unwrap();
    let none: State = (stream.reservation(), stream.allocation(), stream.scheduling());
    assert!(matches!(none, (None, None, None)), "{none:?}");
}
