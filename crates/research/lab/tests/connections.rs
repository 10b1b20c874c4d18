//! QoS connections with real packets: a call whose hint adapts and a video whose rate adapts, over a bottleneck of TSQ.
//!
//! The tests require root. Without it they print a message and pass: `sudo -E cargo test -p cutline-lab`.

use cutline_lab::{Connections, LabOptions, MeasuredConnection, RunMeasurements, measure};
use cutline_quality::spec::Preset;
use cutline_quality::{Class, HintParams};
use cutline_scenario::{Scenario, ScenarioFile};
use cutline_signal::authentication::Key;
use cutline_signal::mib::Mib;
use cutline_signal::operation::OperationParams;
use cutline_signal::session::{Policies, SessionEvent, SessionParams};
use cutline_sim::measure::Window;
use cutline_sim::qos::{ConnectionService, Passage, QosConnection, QosRecord};
use cutline_testbed::{in_time, may_make_namespaces, undisturbed};
use cutline_units::{Bytes, Duration, Hint, HintBits, Instant};
use std::sync::atomic::AtomicBool;

/// Command for the tests that need root.
const COMMAND: &str = "sudo -E cargo test -p cutline-lab";

const SCENARIO: &str = r#"
name = "connections"
duration = "8 s"
warm-up = "2 s"

# Enough for all datagrams until 4 s. From then on less than the video's best rate alone.
[dumbbell]
rate = "3 Mbit/s"
delay = "5 ms"
access-rate = "50 Mbit/s"
access-delay = "5 ms"
queue = { aqm = "pi", limit = "100 packets", q-ref = "50 packets", tsq = { bits = 4, l = "40 ms" } }
rate-changes = [{ at = "4 s", rate = "1 Mbit/s" }]

[[flow]]
name = "bulk"
class = "file-transfer"
file-size = "500 KB"
start = "4 s"
transport = { protocol = "tcp", mss = "1000 B" }
app = { kind = "bulk" }

[[flow]]
name = "call"
class = "audio"
transport = { protocol = "udp" }
app = { kind = "cbr", rate = "64 kbit/s", size = "160 B" }

[[flow]]
name = "video"
class = "video"
transport = { protocol = "udp" }
app = { kind = "cbr", rate = "1500 kbit/s", size = "1200 B" }

[[flow]]
name = "plain"
class = "audio"
transport = { protocol = "udp" }
app = { kind = "cbr", rate = "64 kbit/s", size = "160 B" }
"#;

/// The indices of the flows.
const CALL: usize = 1;
const VIDEO: usize = 2;
const PLAIN: usize = 3;

fn scenario() -> Scenario {
    ScenarioFile::parse(SCENARIO, "connections.toml").unwrap().scenario().unwrap()
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

/// The call tries another hint after half a second.
fn hint_params() -> HintParams {
    let (settle, measure) = (Duration::from_millis(100), Duration::from_millis(500));
    HintParams { settle, measure, ..HintParams::new(HintBits::PAPER) }
}

fn connections(scenario: &Scenario) -> Connections {
    let network = scenario.network().unwrap();
    let ends = |flow: usize| {
        let flow = &network.flows()[flow];
        (network.link(flow.route[0]).from, network.link(flow.return_route[0]).from)
    };
    let audio = || Preset::Audio.specification().change().size(Bytes::new(160)).build().unwrap();
    let with = |policies| SessionParams { policies, ..SessionParams::default() };
    let adapt_hint = Policies { adapt_hint: Some((Class::Audio, hint_params())), ..Policies::default() };
    let adapt_rate = Policies { adapt_rate: Some(OperationParams::default()), ..Policies::default() };
    Connections::from([
        (CALL, QosConnection { params: with(adapt_hint), ..QosConnection::new("call", ends(CALL), audio()) }),
        (
            VIDEO,
            QosConnection {
                params: with(adapt_rate),
                hint: Hint::from_level(9),
                start: at(1),
                ..QosConnection::new("video", ends(VIDEO), Preset::Video.specification())
            },
        ),
        (
            PLAIN,
            QosConnection {
                service: ConnectionService::Plain,
                hint: Hint::from_level(5),
                stop: at(4),
                ..QosConnection::new("plain", ends(PLAIN), audio())
            },
        ),
    ])
}

/// Returns the namespaces of the dumbbells of this process. The tests that make some run one after the other ([`undisturbed`]).
fn namespaces() -> Vec<String> {
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| name.starts_with(&format!("cutline-{}-lab", std::process::id()))).collect()
}

fn hints_told(connection: &MeasuredConnection) -> Vec<Hint> {
    let told = connection.record.source.events.iter().filter_map(|(_, event)| match event {
        SessionEvent::Hint(hint) => Some(*hint),
        _ => None,
    });
    told.collect()
}

/// For each interval that the receiving session has measured: the mean delay that it states, the bounds of the true
/// one, and the error that it states. The session reads the time of sending after the application has made a message
/// and before it has sent it.
fn delays_measured(zero: Instant, connection: &MeasuredConnection) -> Vec<[Duration; 4]> {
    let QosRecord { messages, sink, .. } = &connection.record;
    let scenario = |at: Instant| Instant::ZERO + at.saturating_since(zero);
    let mean = |of: &dyn Fn(&Passage) -> Option<Duration>, part: &[&Passage]| {
        let sum: Duration =
            part.iter().filter_map(|message| of(message)).fold(Duration::ZERO, |sum, one| sum + one);
        Duration::from_nanos(sum.as_nanos() / part.len() as u64)
    };
    let interval = |two: &[Mib]| {
        let (delivery, clocks) = (two[1].receive.last?, [two[0].clock?, two[1].clock?]);
        let (since, until) = (scenario(delivery.since), scenario(delivery.until));
        let is_in = |message: &&Passage| message.arrived.is_some_and(|at| since <= at && at < until);
        let part: Vec<&Passage> = messages.iter().filter(is_in).collect();
        // One that arrives when an interval ends may be counted in the next one.
        let counted = (part.len() as u64).abs_diff(delivery.messages) == 0 && !part.is_empty();
        let from_sent = |message: &Passage| Some(message.arrived?.saturating_since(message.sent));
        let bounds = counted.then(|| [mean(&from_sent, &part), mean(&Passage::delay, &part)])?;
        let error = clocks.map(|clock| clock.error).into_iter().max()?;
        Some([delivery.delay?.mean, bounds[0], bounds[1], error])
    };
    sink.mibs.windows(2).filter_map(interval).collect()
}

#[test]
fn a_call_and_a_video_agree_deliver_adapt_and_are_marked() {
    if !may_make_namespaces(COMMAND) {
        return;
    }
    undisturbed(|| {
        let scenario = scenario();
        let connections = connections(&scenario);
        let cancel = AtomicBool::new(false);
        let measured = measure(&scenario, &connections, 1, &LabOptions::default(), &cancel).unwrap();
        assert_eq!(namespaces(), Vec::<String>::new());
        let RunMeasurements { connections: both, outcome, timing, .. } = &measured;
        assert_eq!(timing.failed_flows, 0);
        let [call, video, plain] = [CALL, VIDEO, PLAIN].map(|flow| &both[&flow]);

        for connection in [call, video] {
            for end in [&connection.record.source, &connection.record.sink] {
                assert!(matches!(end.events[0].1, SessionEvent::Agreed(_)), "{:?}", end.events);
                assert!((10..=16).contains(&end.mibs.len()), "every 0.5 s: {}", end.mibs.len());
            }
        }
        let negotiated = |(_, event): &(Instant, SessionEvent)| {
            matches!(event, SessionEvent::Agreed(_) | SessionEvent::OneSided(_))
        };
        let of_plain = || plain.record.source.events.iter().chain(&plain.record.sink.events);
        assert!(!of_plain().any(negotiated), "{:?}", of_plain().collect::<Vec<_>>());

        // As long as the link carries all datagrams, they arrive in what the path takes.
        for (connection, window, rate) in [
            (call, Window { from: at(1), until: at(4) }, 50.0),
            (video, Window { from: at(2), until: at(4) }, 156.25),
            (plain, Window { from: at(1), until: at(4) }, 50.0),
        ] {
            let passed = connection.record.passed(window);
            let expected = rate * window.length().as_secs_f64();
            in_time!((passed.made as f64 - expected).abs() <= 2.0, "{passed:?}: {expected} expected");
            let delay = passed.delay.unwrap();
            assert!(delay >= Duration::from_millis(15), "no less than the path takes: {passed:?}");
            in_time!(passed.lost == 0 && delay < Duration::from_millis(40), "{passed:?}");
        }
        assert!(plain.record.messages.iter().all(|message| message.made < at(4)));
        // The receiving session has counted the arrivals.
        let arrived = |connection: &MeasuredConnection| {
            connection.record.messages.iter().filter(|message| message.arrived.is_some()).count() as u64
        };
        let counted = video.record.sink.mibs.last().unwrap().receive.received.messages;
        assert!(counted <= arrived(video) && counted + 100 > arrived(video), "{counted} {}", arrived(video));

        // Each end knows the delays of the messages, which have one clock here, within the error that it states.
        let delays = delays_measured(measured.zero, video);
        in_time!(delays.len() >= 8, "{delays:?}");
        for [stated, least, most, error] in delays {
            let range = least.saturating_sub(error)..=most + error;
            assert!(range.contains(&stated), "{least} to {most} is measured as {stated} +- {error}");
        }

        // The video moves inside its region when the link shrinks, and each end gets the reason.
        let rates = video.record.source.events.iter().filter_map(|(told, event)| match event {
            SessionEvent::Rate(rate) => Some((*told, *rate)),
            _ => None,
        });
        let rates: Vec<(Instant, f64)> = rates.collect();
        in_time!(rates.iter().any(|(told, rate)| *told > at(4) && *rate < 120.0), "{rates:?}");
        let sent_late = video.record.passed(Window { from: at(7), until: at(8) }).made;
        in_time!(sent_late < 125, "{sent_late} messages in the last second");

        // Each packet has the hint that its session or its description says, and the call has tried several.
        let of = |connection: &MeasuredConnection| connection.hints.keys().copied().collect::<Vec<_>>();
        assert_eq!((of(video), of(plain)), (vec![Hint::from_level(9)], vec![Hint::from_level(5)]));
        let mut told = hints_told(call);
        told.push(hint_params().start);
        in_time!(told.len() > 2, "{told:?}");
        assert!(of(call).iter().all(|hint| told.contains(hint)), "{:?} {told:?}", of(call));
        assert!(of(call).len() >= 2, "{:?}", of(call));
        let packets = |connection: &MeasuredConnection| connection.hints.values().sum::<u64>();
        let made = |connection: &MeasuredConnection| connection.record.messages.len() as u64;
        assert_eq!(packets(plain), made(plain));
        assert!(packets(video) > made(video), "reports have hints, too");

        // The rows of the other flow are as ever, and there is one of each flow.
        assert!(outcome.flows[0].record.delivered_bytes > 10_000);
        assert_eq!(measured.rows(&scenario).flows.len(), 4);
    });
}

/// The round trip is longer than a socket waits for an answer if it does not know the kind of the peer.
#[test]
fn ends_over_a_long_path_take_part() {
    if !may_make_namespaces(COMMAND) {
        return;
    }
    let mut file = ScenarioFile::parse(SCENARIO, "connections.toml").unwrap();
    for (path, value) in
        [("duration", "4 s"), ("warm-up", "1 s"), ("dumbbell.delay", "150 ms"), ("flow.bulk.start", "3 s")]
    {
        file.set(path, value).unwrap();
    }
    let scenario = file.scenario().unwrap();
    let mut connections = connections(&scenario);
    connections.retain(|flow, _| *flow == CALL);
    undisturbed(|| {
        let measured =
            measure(&scenario, &connections, 1, &LabOptions::default(), &AtomicBool::new(false)).unwrap();
        let record = &measured.connections[&CALL].record;
        for end in [&record.source, &record.sink] {
            assert!(matches!(end.events[0].1, SessionEvent::Agreed(_)), "{:?}", end.events);
        }
    });
}

#[test]
fn features_of_the_simulator_alone_are_refused() {
    let scenario = scenario();
    let refused = |change: fn(&mut Connections)| {
        let mut connections = connections(&scenario);
        change(&mut connections);
        let cancel = AtomicBool::new(false);
        measure(&scenario, &connections, 1, &LabOptions::default(), &cancel).unwrap_err().to_string()
    };
    assert_eq!(
        refused(|connections| {
            let call = connections.remove(&CALL).unwrap();
            connections.insert(0, call);
        }),
        "flow `bulk`: a QoS connection in the place of a flow that is not UDP is not available in the laboratory; set \
         `protocol = \"udp\"`"
    );
    assert_eq!(
        refused(|connections| {
            let call = connections.remove(&CALL).unwrap();
            connections.insert(7, call);
        }),
        "connection `call`: flow number 7; allowed is 0..4, without the end"
    );
    assert_eq!(
        refused(|all| all.get_mut(&CALL).unwrap().clock_ahead = Duration::from_secs(1)),
        "flow `call`: a QoS connection whose clocks differ is not available in the laboratory; set the offset to 0"
    );
    assert_eq!(
        refused(|all| all.get_mut(&CALL).unwrap().key = Key::new(&[1; 32], b"test").ok()),
        "flow `call`: a QoS connection with a key is not available in the laboratory; leave it out"
    );
    assert_eq!(
        refused(|all| all.get_mut(&VIDEO).unwrap().send.max_rate = None),
        "flow `video`: max-rate = off: allowed is a rate, which the application uses"
    );
}

/// The ends of a connection that do not agree are an error of the run.
#[test]
fn ends_that_do_not_agree_end_the_run() {
    if !may_make_namespaces(COMMAND) {
        return;
    }
    undisturbed(|| {
        let scenario = scenario();
        let mut connections = connections(&scenario);
        connections.retain(|flow, _| *flow == VIDEO);
        let video = connections.get_mut(&VIDEO).unwrap();
        let strict = |loss: f64| {
            let open = cutline_quality::spec::Specification::OPEN.coerced;
            let needs = Preset::Video.specification().change().loss(loss).build().unwrap();
            cutline_quality::spec::Specification { coerced: open, ..needs }
        };
        (video.send, video.receive) = (strict(1.0), strict(0.0));
        let cancel = AtomicBool::new(false);
        let error =
            measure(&scenario, &connections, 1, &LabOptions::default(), &cancel).unwrap_err().to_string();
        assert!(error.starts_with("flow `video`: the peer does not agree: send: loss"), "{error}");
        assert_eq!(namespaces(), Vec::<String>::new());
    });
}
