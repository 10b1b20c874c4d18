//! A traffic source and a congestion control of another crate in a scenario file: registered, checked, read, simulated, and
//! refused like one of ours.

use cutline_params::{Parameters, RegistryError};
use cutline_scenario::{Scenario, ScenarioFile};
use cutline_transport::app::{self, Application, TrafficSource, Write, register_application};
use cutline_transport::conformance;
use cutline_transport::tcp::{
    self, Acked, Acknowledgement, Algorithm, CongestionAlgorithm, CongestionControl, Window,
    register_congestion_control,
};
use cutline_units::{Bytes, Distribution, Duration, Instant, RandomStream};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

/// Parameters of [`Frames`].
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
struct FramesParams {
    /// Time from a frame to the next.
    #[param(default = Duration::from_millis(40), range = (Duration::from_millis(1), Duration::from_secs(1)),
        source = "this test")]
    period: Duration,
    /// Payload of a frame.
    #[param(example = Bytes::new(5000), range = (1, 1_000_000), unit = "B")]
    frame: Bytes,
    /// Payload of every tenth frame.
    #[param(default = Bytes::new(20_000), range = (1, 1_000_000), unit = "B", source = "this test")]
    key_frame: Bytes,
}

/// A film: a frame each period, of which every tenth is larger.
#[derive(Clone, Debug)]
struct Frames {
    params: FramesParams,
    deadline: Instant,
    number: u64,
}

impl Application for Frames {
    type Params = FramesParams;
    const NAME: &'static str = "test-frames";
    const TITLE: &'static str = "Frames";
    const SOURCE: &'static str = "this test";

    fn start(params: &FramesParams, at: Instant, _random: &mut RandomStream) -> Self {
        Self { params: *params, deadline: at, number: 0 }
    }

    fn message_size(params: &FramesParams) -> Option<Distribution> {
        (params.frame == params.key_frame).then(|| Distribution::Fixed(params.frame.get() as f64))
    }
}

impl TrafficSource for Frames {
    fn deadline(&self) -> Instant {
        self.deadline
    }

    fn poll(&mut self, now: Instant, _random: &mut RandomStream) -> Option<Write> {
        if now < self.deadline {
            return None;
        }
        let key = self.number.is_multiple_of(10);
        self.number += 1;
        self.deadline += self.params.period;
        Some(Write::Bytes(if key { self.params.key_frame } else { self.params.frame }.get()))
    }
}

/// Parameters of [`Vegas`].
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
struct VegasParams {
    /// Number of segments that are to wait in the bottleneck's queue.
    #[param(default = 3.0, range = (1.0, 1e4), unit = "packets", source = "Brakmo and Peterson 1995")]
    waiting: f64,
}

/// The window follows the delay, as in TCP Vegas: it holds a few segments in the queue.
#[derive(Clone, Debug)]
struct Vegas {
    waiting: f64,
    /// The least round-trip time, and the one of the last acknowledgement.
    base: Duration,
    last: Duration,
    /// Bytes acknowledged since the window was changed.
    credit: u64,
}

impl CongestionAlgorithm for Vegas {
    type Params = VegasParams;
    const NAME: &'static str = "test-vegas";
    const TITLE: &'static str = "Vegas";
    const SOURCE: &'static str = "Brakmo and Peterson 1995";

    fn begin(params: &VegasParams, _tcp: &tcp::Params) -> Self {
        Self { waiting: params.waiting, base: Duration::MAX, last: Duration::ZERO, credit: 0 }
    }
}

impl Vegas {
    /// Returns the part of a window that waits in the queue.
    fn queued(&self, cwnd: u64) -> f64 {
        let share = self.base.as_secs_f64() / self.last.as_secs_f64().max(1e-9);
        cwnd as f64 * (1.0 - share)
    }
}

impl CongestionControl for Vegas {
    fn acknowledged(&mut self, acknowledgement: &Acknowledgement) {
        self.last = acknowledgement.now.saturating_since(acknowledgement.echo);
        self.base = self.base.min(self.last);
    }

    fn slow_start(&mut self, window: &mut Window, acked: &Acked, most: u64) {
        window.cwnd += acked.bytes.min(most);
        if self.queued(window.cwnd) > self.waiting * most as f64 {
            window.ssthresh = window.cwnd;
        }
    }

    fn avoid(&mut self, window: &mut Window, acked: &Acked, mss: u64) {
        self.credit += acked.bytes;
        if self.credit < window.cwnd {
            return;
        }
        self.credit = 0;
        let queued = self.queued(window.cwnd) / mss as f64;
        if queued < self.waiting {
            window.cwnd += mss;
        } else if queued > self.waiting + 2.0 {
            window.cwnd = (window.cwnd - mss).max(2 * mss);
            window.ssthresh = window.ssthresh.min(window.cwnd);
        }
    }

    fn congested(&mut self, _window: &Window, flight: u64, mss: u64) -> u64 {
        (flight / 2).max(2 * mss)
    }
}

fn register() {
    static OUTCOME: OnceLock<Result<(), RegistryError>> = OnceLock::new();
    let outcome = OUTCOME.get_or_init(|| {
        register_application::<Frames>()?;
        register_congestion_control::<Vegas>()
    });
    assert_eq!(*outcome, Ok(()), "the registration");
}

fn scenario(transport: &str, app: &str) -> String {
    register();
    format!(
        "name = \"own\"\nduration = \"30 s\"\nwarm-up = \"10 s\"\n\n[dumbbell]\nrate = \"8 Mbit/s\"\n\
         delay = \"20 ms\"\naccess-rate = \"50 Mbit/s\"\naccess-delay = \"5 ms\"\n\
         queue = {{ aqm = \"drop-tail\", limit = \"200 packets\" }}\n\n\
         [[flow]]\nname = \"own\"\nclass = \"none\"\ntransport = {transport}\napp = {app}\n"
    )
}

/// The mean queue of the bottleneck, packets, and the share of its rate that is used.
fn simulated(transport: &str, app: &str) -> (f64, f64) {
    let file = ScenarioFile::parse(&scenario(transport, app), "own.toml").expect("it is TOML");
    let scenario = file.scenario().unwrap_or_else(|problems| panic!("{problems}"));
    let result = scenario.simulate(1, &AtomicBool::new(false)).expect("it can be simulated");
    let queue =
        result.queues.iter().find(|queue| &*queue.link == "r1->r2").expect("the bottleneck has a row");
    (queue.backlog_mean_packets, queue.utilisation)
}

fn refusal(transport: &str, app: &str) -> String {
    let file = ScenarioFile::parse(&scenario(transport, app), "own.toml").expect("it is TOML");
    file.scenario().map(|_: Scenario| ()).expect_err("it should be refused").to_string()
}

const BULK: &str = "{ kind = \"bulk\" }";

#[test]
fn both_conform() {
    register();
    let frame = [("frame", cutline_params::ParameterValue::Count(5000))];
    let frames = app::Params::from_values("test-frames", frame).unwrap();
    conformance::check_application(&frames);
    conformance::check_congestion_control(&Algorithm::from_values("test-vegas", []).unwrap());
}

#[test]
fn a_scenario_uses_a_congestion_control_by_name_with_its_parameters() {
    let vegas = |waiting| {
        let keys = format!("congestion-control = \"test-vegas\", waiting = \"{waiting} packets\"");
        simulated(&format!("{{ protocol = \"tcp\", sack = true, {keys} }}"), BULK)
    };
    let (short, used) = vegas(3);
    let (long, _) = vegas(40);
    let (newreno, _) = simulated("{ protocol = \"tcp\", sack = true }", BULK);
    assert!(
        (2.0..8.0).contains(&short) && used > 0.95,
        "three segments wait, and the link is full: {short}, {used}"
    );
    assert!((35.0..50.0).contains(&long), "forty segments wait: {long}");
    assert!(newreno > long, "one that waits for losses fills the queue: {newreno}");
}

#[test]
fn a_scenario_uses_a_source_by_name_with_its_parameters() {
    let used = |app| simulated("{ protocol = \"udp\", header = \"0 B\" }", app).1;
    // 25 frames a second: 22.5 of 5 kB and 2.5 of 20 kB are 1.3 Mbit/s.
    let share = used("{ kind = \"test-frames\", frame = \"5 KB\" }");
    assert!((share - 1.3 / 8.0).abs() < 0.002, "{share}");
    let twice = used("{ kind = \"test-frames\", frame = \"5 KB\", period = \"20 ms\" }");
    assert!((twice - 2.6 / 8.0).abs() < 0.004, "{twice}");
}

#[test]
fn errors_are_those_of_built_in_code() {
    let tcp = |keys: &str| refusal(&format!("{{ protocol = \"tcp\", {keys} }}"), BULK);
    let wrong = tcp("congestion-control = \"test-vegas\", waiting = \"0 packets\"");
    assert!(wrong.contains("from 1 to 10000 packets"), "{wrong}");
    let unknown = tcp("congestion-control = \"test-vegas\", waitin = \"3 packets\"");
    assert!(unknown.contains("waitin") && unknown.contains("did you mean \"waiting\"?"), "{unknown}");
    let others = tcp("congestion-control = \"cubic\", waiting = \"3 packets\"");
    assert!(others.contains("waiting"), "{others}");
    let misspelt = tcp("congestion-control = \"test-vegsa\"");
    assert!(misspelt.contains("did you mean \"test-vegas\"?"), "{misspelt}");
    let udp = "{ protocol = \"udp\" }";
    let missing = refusal(udp, "{ kind = \"test-frames\" }");
    assert!(missing.contains("key \"flow.own.app.frame\" is missing: expected a size such as"), "{missing}");
    let misspelt = refusal(udp, "{ kind = \"test-frame\", frame = \"5 KB\" }");
    assert!(misspelt.contains("did you mean \"test-frames\"?"), "{misspelt}");
}

#[test]
fn names_and_parameters_of_ours_are_taken() {
    /// A control whose parameter is one of TCP's.
    #[derive(Clone, Debug, PartialEq, Parameters)]
    struct Clash {
        /// A segment.
        #[param(default = 1, range = (1, 2), source = "this test")]
        mss: u32,
    }

    #[derive(Clone, Debug)]
    struct Clashing;

    impl CongestionAlgorithm for Clashing {
        type Params = Clash;
        const NAME: &'static str = "test-clashing";
        const TITLE: &'static str = "Clashing";
        const SOURCE: &'static str = "this test";

        fn begin(_params: &Clash, _tcp: &tcp::Params) -> Self {
            Self
        }
    }

    impl CongestionControl for Clashing {
        fn avoid(&mut self, _window: &mut Window, _acked: &Acked, _mss: u64) {}

        fn congested(&mut self, _window: &Window, _flight: u64, mss: u64) -> u64 {
            2 * mss
        }
    }

    register();
    let taken = register_application::<Frames>().unwrap_err().to_string();
    assert_eq!(taken, "there is a \"test-frames\" already");
    let key = register_congestion_control::<Clashing>().unwrap_err().to_string();
    assert_eq!(key, "no parameter can have the name \"mss\": it is a key of its own");
    let names: Vec<_> = tcp::congestion_controls().iter().map(|control| control.name).collect();
    assert_eq!(
        (names.first(), names.last()),
        (Some(&"newreno"), Some(&"test-vegas")),
        "its own first: {names:?}"
    );
}
