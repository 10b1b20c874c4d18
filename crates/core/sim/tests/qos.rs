//! QoS connections: the end system's sessions as agents on links with queues. The gains of a call, a video and datagrams with TFRC are measured
//! and judged over many seeds by the study `qos` (experiments/qos).

use cutline_aqm::{Limit, QueueSpec, Verdict};
use cutline_quality::spec::{ConnectionSpecification, Measure, Preset, Specification};
use cutline_signal::authentication::Key;
use cutline_signal::mib::Mib;
use cutline_signal::negotiation::OneSidedReason;
use cutline_signal::operation::OperationParams;
use cutline_signal::rate_control::{RateControl, TfrcParams};
use cutline_signal::renegotiation::Alternatives;
use cutline_signal::session::{Direction, Policies, SessionEvent, SessionParams};
use cutline_sim::qos::{ConnectionService, QosConnection, QosRecord};
use cutline_sim::{
    FlowSpec, LinkId, LinkSpec, Network, NodeId, QueueEvent as Seen, SeenHeader, Simulation,
    SimulationSettings, Window, run,
};
use cutline_transport::app;
use cutline_transport::endpoint::TransportParams;
use cutline_units::{Bytes, Distribution, Duration, Instant, Rate};
use std::sync::Arc;

const fn ms(time: u64) -> Duration {
    Duration::from_millis(time)
}

fn at(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(seconds)
}

fn window(from: f64, until: f64) -> Window {
    Window { from: at(from), until: at(until) }
}

/// Two nodes with a link each way, 20 ms long.
struct Path {
    network: Network,
    ends: (NodeId, NodeId),
    /// To the sink, and back.
    links: [LinkId; 2],
}

impl Path {
    /// Both links have this rate, and queues of packets of 1000 B for so long. The rate of the one to the sink changes.
    fn new(rate: Rate, queue: Duration, rate_changes: Vec<(Instant, Rate)>) -> Self {
        let mut network = Network::new();
        let ends = (network.add_node("source"), network.add_node("sink"));
        let mut link = |from, to, rate_changes| {
            let packets = rate.bytes_in(queue).get() / 1000;
            let queue = QueueSpec::drop_tail(Limit::Packets(packets as u32), rate);
            network.add_link(LinkSpec { rate_changes, ..LinkSpec::new(from, to, rate, ms(20), queue) })
        };
        let links = [link(ends.0, ends.1, rate_changes), link(ends.1, ends.0, Vec::new())];
        Self { network, ends, links }
    }

    /// Adds datagrams at random times both ways, at this rate each.
    fn with_traffic(mut self, rate: Rate) -> Self {
        let group = self.network.add_group("traffic");
        for (name, [there, back]) in [("there", self.links), ("back", [self.links[1], self.links[0]])] {
            let app = app::PoissonParams { rate, size: Distribution::Fixed(1000.0) };
            let (transport, app) = (TransportParams::Udp(Arc::default()), app::Params::Poisson(app));
            let flow = FlowSpec::new(name, group, [vec![there], vec![back]], transport, app);
            self.network.add_flow(flow).unwrap();
        }
        self
    }
}

fn settings(seconds: u64, seed: u64) -> SimulationSettings {
    let duration = Duration::from_secs(seconds);
    let window = Window { from: Instant::ZERO, until: Instant::ZERO + duration };
    SimulationSettings { seed, duration, window, interval: ms(500) }
}

/// Simulates a connection's network, and returns the record of the connection.
fn record(connection: QosConnection, mut network: Network, seconds: u64, seed: u64) -> QosRecord {
    let log = connection.connect(&mut network).unwrap();
    run(&network, &settings(seconds, seed)).unwrap();
    log.take()
}

fn with_policies(policies: Policies) -> SessionParams {
    SessionParams { policies, ..SessionParams::default() }
}

fn last(mibs: &[Mib]) -> &Mib {
    mibs.last().expect("MIBs are recorded all the time")
}

/// The first violation of a measure, and the time of its event.
fn first_violation(events: &[(Instant, SessionEvent)], of: Direction, measure: Measure) -> Option<Instant> {
    let is_it = |event: &SessionEvent| matches!(event, SessionEvent::Violated(direction, violation) if *direction == of && violation.measure == measure);
    events.iter().find(|(_, event)| is_it(event)).map(|(at, _)| *at)
}

/// The mean delay of the messages that arrived in a time of the sink's clock, which is ahead.
fn mean_delay(record: &QosRecord, (since, until): (Instant, Instant), ahead: Duration) -> Option<Duration> {
    let arrived = |arrived: &Instant| (since..until).contains(&(*arrived + ahead));
    let delays = record.messages.iter().filter(|message| message.arrived.as_ref().is_some_and(arrived));
    let delays: Vec<u64> = delays.filter_map(|message| Some(message.delay()?.as_nanos())).collect();
    (!delays.is_empty()).then(|| Duration::from_nanos(delays.iter().sum::<u64>() / delays.len() as u64))
}

/// One packet in six is lost in both directions, those of the negotiation included.
#[test]
fn both_ends_agree_over_a_lossy_path_and_know_what_the_simulator_knows() {
    let ahead = Duration::from_secs(1000);
    let (mut sent_again, mut clocks) = (0, 0_u64);
    for seed in 1..=10 {
        let Path { mut network, ends, links } =
            Path::new(Rate::from_mbps(1), ms(100), Vec::new()).with_traffic(Rate::from_kbps(1100));
        network.watch(links[0]);
        let key = Key::new(&[b'k'; 32], b"test").ok().filter(|_| seed % 2 == 0);
        let connection = QosConnection {
            key,
            clock_ahead: ahead,
            start: at(5.0),
            stop: at(55.0),
            ..QosConnection::new("audio", ends, Preset::Audio.specification())
        };
        let log = connection.connect(&mut network).unwrap();
        let mut simulation = Simulation::new(&network, &settings(60, seed)).unwrap();
        let (mut seen, mut dropped) = (0, 0);
        for second in 1..=60 {
            simulation.advance(at(f64::from(second)));
            for observation in simulation.take_observations() {
                let SeenHeader::Message(_) = observation.packet.header else { continue };
                // A message with both headers is 212 B long; reports and offers are not.
                if let (Seen::Arrived(verdict), 212) = (observation.event, observation.packet.size) {
                    seen += 1;
                    dropped += u64::from(matches!(verdict, Verdict::Drop(_)));
                }
            }
        }
        let record = log.take();

        let agreed = |events: &[(Instant, SessionEvent)]| match &events[0].1 {
            SessionEvent::Agreed(agreed) => agreed.clone(),
            other => panic!("seed {seed}: {other:?}"),
        };
        let (ours, theirs) = (agreed(&record.source.events), agreed(&record.sink.events));
        assert_eq!(ours.send.effective, theirs.receive.effective);
        let (ours, theirs) = (last(&record.source.mibs), last(&record.sink.mibs));
        sent_again += ours.negotiation.sent_again + theirs.negotiation.sent_again;

        // The bottleneck has counted the sent and the lost packets.
        let arrived = record.messages.iter().filter(|message| message.arrived.is_some()).count() as u64;
        assert!(seen > 2000 && dropped > seen / 10, "seed {seed}: {dropped} of {seen} are lost");
        assert_eq!((ours.send.sent.messages, seen), (seen, record.messages.len() as u64), "seed {seed}");
        assert_eq!((theirs.receive.received.messages, arrived), (seen - dropped, seen - dropped));
        assert_eq!((ours.send.received, theirs.receive.sent.messages), (theirs.receive.received, seen));
        assert_eq!(ours.reports.refused + theirs.reports.refused, 0, "seed {seed}");

        // The rest is the agreement, or nothing where an interval had a message more.
        let most = ours.send.contract.effective.max_throughput().unwrap();
        let sent = ours.send.last_sent.unwrap().throughput();
        let left = most.as_bps().saturating_sub(sent.as_bps());
        assert_eq!(ours.send.residual.unwrap().throughput, Some(Rate::from_bps(left)), "seed {seed}");
        assert_eq!(ours.feedback.send_queue, None, "there is no socket");

        // Delays are those of the simulator, within the error that is stated, although one clock is ahead.
        for two in record.sink.mibs.windows(2) {
            let ([Some(before), Some(now)], Some(delivery)) =
                ([two[0].clock, two[1].clock], two[1].receive.last)
            else {
                continue;
            };
            let Some(measured) = delivery.delay else { continue };
            let truth = mean_delay(&record, (delivery.since, delivery.until), ahead).unwrap();
            let error = before.error.max(now.error);
            assert!(
                truth.abs_diff(measured.mean) <= error,
                "seed {seed}: {truth} is measured as {} +- {error}",
                measured.mean
            );
            clocks += u64::from(error < ms(60));
        }
    }
    assert!(sent_again > 0, "the path loses parts of negotiations");
    assert!(clocks > 800, "{clocks} intervals with a small error");
}

#[test]
fn the_application_sends_the_agreed_rate() {
    let needs = |rate: f64, size: u64| {
        Specification::builder().rates(1.0, rate, rate).size(Bytes::new(size)).coerce_all().build().unwrap()
    };
    let Path { network, ends, .. } = Path::new(Rate::from_mbps(10), ms(100), Vec::new());
    let connection =
        QosConnection { receive: needs(25.0, 100), ..QosConnection::new("a", ends, needs(50.0, 400)) };
    let record = record(connection, network, 11, 1);
    let passed = record.passed(window(1.0, 10.0));
    assert_eq!((passed.made, passed.lost), (225, 0));
    assert!(record.messages.iter().all(|message| message.bytes == 100 && message.sent == message.made));
    assert_eq!(passed.throughput, Rate::from_kbps(20));
}

#[test]
fn ends_that_do_not_agree_send_nothing() {
    let needs = |loss| Preset::Audio.specification().change().loss(loss).build().unwrap();
    let strict = |loss| Specification { coerced: Specification::OPEN.coerced, ..needs(loss) };
    let Path { network, ends, .. } = Path::new(Rate::from_mbps(10), ms(100), Vec::new());
    let connection = QosConnection { receive: strict(0.0), ..QosConnection::new("a", ends, strict(1.0)) };
    let record = record(connection, network, 20, 1);
    assert!(record.messages.is_empty());
    assert!(
        matches!(record.source.events[..], [(_, SessionEvent::Refused { send: Some(_), .. })]),
        "{:?}",
        record.source.events
    );
}

/// No link leads back, so no answer ever comes.
#[test]
fn without_an_answer_the_messages_are_those_of_a_plain_connection() {
    let mut network = Network::new();
    let ends = (network.add_node("source"), network.add_node("sink"));
    let Path { network: both, links, .. } = Path::new(Rate::from_mbps(10), ms(100), Vec::new());
    network.add_link(both.link(links[0]).clone());
    let record = record(QosConnection::new("a", ends, Preset::Audio.specification()), network, 20, 1);
    let given_up = at(5.0);
    assert_eq!(record.source.events, [(given_up, SessionEvent::OneSided(OneSidedReason::NoAnswer))]);
    assert!(
        matches!(record.sink.events[..], [(_, SessionEvent::OneSided(OneSidedReason::Foreign))]),
        "{:?}",
        record.sink.events
    );
    let passed = record.passed(window(5.0, 19.0));
    assert!((699..=700).contains(&passed.made) && passed.lost == 0, "{passed:?}");
    assert_eq!(last(&record.sink.mibs).receive.received.messages, record.messages.len() as u64 - 1);
}

#[test]
fn a_plain_connection_is_not_measured() {
    let Path { network, ends, .. } = Path::new(Rate::from_mbps(10), ms(100), Vec::new());
    let spec = Preset::Audio.specification();
    let connection =
        QosConnection { service: ConnectionService::Plain, ..QosConnection::new("a", ends, spec) };
    let record = record(connection, network, 10, 1);
    assert!(record.source.events.is_empty() && record.sink.events.is_empty());
    assert_eq!(last(&record.source.mibs).send.received.messages, 0);
    let passed = record.passed(window(0.0, 9.0));
    assert_eq!((passed.made, passed.lost), (450, 0));
    // 160 B and both headers at 10 Mbit/s, and 20 ms.
    assert_eq!(passed.longest, ms(20) + Duration::from_nanos((160 + 28) * 800));
}

#[test]
fn a_network_is_simulated_again_with_the_same_outcome() {
    let Path { mut network, ends, .. } =
        Path::new(Rate::from_mbps(1), ms(100), Vec::new()).with_traffic(Rate::from_mbps(1));
    let log = QosConnection::new("a", ends, Preset::Audio.specification()).connect(&mut network).unwrap();
    let again = |seed| {
        run(&network, &settings(10, seed)).unwrap();
        log.record()
    };
    let first = again(1);
    assert_eq!(first, again(1));
    assert_ne!(first.messages, again(2).messages);
}

#[test]
fn a_connection_without_a_rate_or_with_wrong_parameters_is_refused() {
    let Path { mut network, ends, .. } = Path::new(Rate::from_mbps(1), ms(100), Vec::new());
    let audio = Preset::Audio.specification();
    let with = |send: Specification| QosConnection::new("call", ends, send);
    let policies =
        |adapt_rate| with_policies(Policies { adapt_rate: Some(adapt_rate), ..Policies::default() });
    let refused = [
        (with(Specification::OPEN), "max-rate = off: allowed is a rate, which the application uses"),
        (
            with(Specification { size: None, ..audio.clone() }),
            "size = off: allowed is at least 8 B, which the application uses",
        ),
        (
            with(Specification { size: Some(Bytes::new(7)), ..audio.clone() }),
            "size = 7: allowed is at least 8 B, which the application uses",
        ),
        (
            QosConnection {
                params: policies(OperationParams { decrease: 1.0, ..OperationParams::default() }),
                ..with(audio.clone())
            },
            "decrease = 1: allowed is a number from 0.1 to 0.99",
        ),
        (
            QosConnection {
                service: ConnectionService::Plain,
                params: SessionParams {
                    rate_control: RateControl::Tfrc(TfrcParams::default()),
                    ..SessionParams::default()
                },
                ..with(audio.clone())
            },
            "rate-control = tfrc: allowed is agreed between plain sockets, which send no feedback",
        ),
        (
            QosConnection { sample: Duration::ZERO, ..with(audio.clone()) },
            "sample = 0 ns: allowed is above 0",
        ),
    ];
    for (connection, reason) in refused {
        let error = connection.connect(&mut network).unwrap_err().to_string();
        assert_eq!(error, format!("connection `call`: {reason}"));
    }
    with(audio.clone()).connect(&mut network).unwrap();
    let error = with(audio).connect(&mut network).unwrap_err().to_string();
    assert_eq!(error, "agent `call.source`: `call.source` is at port 1 of node `source` already");
}

/// A video whose rate adapts, over a bottleneck of 2 Mbit/s that has another rate from 60 s until `until`.
fn video(queue: Duration, (narrow, until): (Rate, f64), policies: Policies, seconds: u64) -> QosRecord {
    let changes = vec![(at(60.0), narrow), (at(until), Rate::from_mbps(2))];
    let Path { network, ends, .. } = Path::new(Rate::from_mbps(2), queue, changes);
    let policies = Policies { adapt_rate: Some(OperationParams::default()), ..policies };
    let spec = Preset::Video.specification();
    let connection =
        QosConnection { params: with_policies(policies), ..QosConnection::new("video", ends, spec) };
    record(connection, network, seconds, 1)
}

/// The bottleneck carries 80 of the 156 messages/s that are the best rate of video.
#[test]
fn video_moves_inside_its_region_when_the_bottleneck_shrinks_and_returns() {
    let record = video(ms(500), (Rate::from_kbps(800), 120.0), Policies::default(), 240);
    let rates: Vec<(f64, f64)> = (record.source.events.iter())
        .filter_map(|(at, event)| match event {
            SessionEvent::Rate(rate) => Some((at.as_secs_f64(), *rate)),
            _ => None,
        })
        .collect();
    let rate_at =
        |seconds: f64| rates.iter().rfind(|(at, _)| *at <= seconds).map_or(156.25, |(_, rate)| *rate);
    // It sends no more than the bottleneck carries, 800 kbit/s, within four intervals of 0.5 s.
    let carried = 800e3 / (8.0 * (1200.0 + 24.0 + 28.0));
    assert!(rates[0].0 > 60.0 && rate_at(62.0) < carried, "{rates:?}");
    // Then it probes with a patience of 2 s, 4 s, ... after each failure: at most 6 failures in a minute. A probe leads a step or
    // two (1/20 of 116 messages/s) beyond what the bottleneck carries, and another one while the queue is below `min-delay`.
    let later: Vec<f64> =
        rates.iter().filter(|(at, _)| (62.0..120.0).contains(at)).map(|(_, rate)| *rate).collect();
    let failures = later.windows(3).filter(|three| three[0] < three[1] && three[1] > three[2]).count();
    assert!(failures <= 6, "{failures} failures: {later:?}");
    assert!(later.iter().all(|rate| *rate < carried + 3.0 * 116.25 / 20.0), "{later:?}");
    // It notices the recovery after 32 s at the latest, and takes 20 steps of 2 s at most.
    assert_eq!(rate_at(120.0 + 32.0 + 40.0 + 2.0), 156.25, "{rates:?}");

    // The first message that is later than the limit and the clocks' error allow is a violation at the end of its interval, and
    // at the sender a report's way later.
    let error = last(&record.sink.mibs).clock.unwrap().error;
    let is_late = |delay: Duration| delay > ms(400) + error;
    let late = record.messages.iter().find(|message| message.delay().is_some_and(is_late));
    let late = late.and_then(|message| message.arrived).expect("the queue is longer than the limit");
    let reported = |of, direction| first_violation(of, direction, Measure::Delay).expect("a violation");
    let theirs = reported(&record.sink.events[..], Direction::Receive);
    let ours = reported(&record.source.events[..], Direction::Send);
    assert!(late <= theirs && theirs <= late + ms(500), "{late:?} {theirs:?}");
    assert!(theirs < ours && ours <= theirs + ms(30), "{theirs:?} {ours:?}");
}

/// The bottleneck carries 20 messages/s, half of the least that the video needs, and the application accepts 10 to 40 messages/s. The
/// weaker specification is agreed on within 15 s and stays while the bottleneck is narrow: the rate inside its region shows that the
/// first one cannot be kept. That one is agreed on again within 32 s + 20 steps of 2 s + 30 s between trials + 10 s.
#[test]
fn video_leaves_its_region_with_permission_and_returns() {
    let spec = Preset::Video.specification();
    let send = spec.change().rates(10.0, 40.0, 40.0).build().unwrap();
    let specifications = vec![ConnectionSpecification { send, ..ConnectionSpecification::default() }];
    let renegotiate = Some(Alternatives { specifications, ..Alternatives::default() });
    let policies = Policies { renegotiate, ..Policies::default() };
    let record = video(ms(100), (Rate::from_kbps(200), 180.0), policies, 480);
    let agreed: Vec<(f64, f64)> = (record.source.events.iter())
        .filter_map(|(at, event)| match event {
            SessionEvent::Agreed(agreed) => Some((at.as_secs_f64(), agreed.send.effective.min_rate?)),
            _ => None,
        })
        .collect();
    let weaker = agreed.iter().find(|(_, least)| *least == 10.0).expect("a weaker one is agreed on").0;
    assert!((60.0..75.0).contains(&weaker), "{agreed:?}");
    assert!(!agreed.iter().any(|(at, least)| (75.0..180.0).contains(at) && *least == 40.0), "{agreed:?}");
    let last_return = agreed.last().expect("there are some");
    assert!(last_return.1 == 40.0 && last_return.0 < 180.0 + 112.0, "{agreed:?}");
    let rate = last(&record.source.mibs).send.target_rate;
    assert!(rate.is_some_and(|rate| rate > 150.0), "{rate:?}");
    assert_eq!(last(&record.sink.mibs).receive.contract.effective.min_rate, Some(40.0));
}
