//! Checks that every application and every congestion control must pass. Any crate can run them over its own.
//!
//! A crate that registers one calls [`check_application`] or [`check_congestion_control`] in a test. A check that fails
//! panics with a message:
//!
//! ```
//! use cutline_params::ParameterValue;
//! use cutline_transport::{app, conformance, tcp};
//!
//! let cbr = [("rate", ParameterValue::Count(64_000)), ("size", ParameterValue::Count(160))];
//! conformance::check_application(&app::Params::from_values("cbr", cbr).unwrap());
//! conformance::check_congestion_control(&tcp::Algorithm::from_values("cubic", []).unwrap());
//! ```
//!
//! The module is part of the library because tests of other crates use it.

use crate::app::{self, App, Completion, TrafficSource as _, Write};
use crate::tcp::{
    self, Ack, Acked, Acknowledgement, Algorithm, CongestionControl as _, DynControl, LossState, LostSegment,
    RateSample, Segment, Window,
};
use cutline_params::conformance::Made;
use cutline_params::{ParameterValue, conformance};
use cutline_units::{Duration, Ecn, Instant, RandomStream, Streams};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Runs every check over an application with its parameters.
///
/// # Panics
/// When a check fails. The message names the application and the failure.
pub fn check_application(params: &app::Params) {
    the_application_is_described(params);
    a_source_writes_as_described(params);
    nothing_happens_before_the_deadline(params);
    the_same_seed_gives_the_same_writes(params);
    a_copy_of_a_source_behaves_as_the_original(params);
}

/// Runs every check over a congestion control with its parameters.
///
/// # Panics
/// When a check fails. The message names the congestion control and the failure.
pub fn check_congestion_control(algorithm: &Algorithm) {
    the_control_is_described(algorithm);
    windows_stay_within_bounds(algorithm);
    the_same_events_give_the_same_windows(algorithm);
    a_copy_of_a_control_behaves_as_the_original(algorithm);
    a_transfer_arrives_whole(algorithm);
}

/// The description has a title, a source, and parameters that accept the described values.
pub fn the_application_is_described(params: &app::Params) {
    let name = params.name();
    let about = app::describe().into_iter().find(|about| about.name == name);
    let about = about.unwrap_or_else(|| panic!("{name}: it should be described"));
    assert!(!about.title.is_empty() && !about.source.is_empty(), "{name}: title and source");
    let make = |values: &[(&str, ParameterValue)]| -> Made {
        app::Params::from_values(name, values.iter().cloned()).map(|params| params.values())
    };
    parameters(name, &about.parameters, &make);
}

/// The description has a title, a source, and parameters that accept the described values.
pub fn the_control_is_described(algorithm: &Algorithm) {
    let name = algorithm.name();
    let about = tcp::congestion_controls().into_iter().find(|about| about.name == name);
    let about = about.unwrap_or_else(|| panic!("{name}: it should be described"));
    assert!(!about.title.is_empty() && !about.source.is_empty(), "{name}: title and source");
    let make = |values: &[(&str, ParameterValue)]| -> Made {
        Algorithm::from_values(name, values.iter().cloned()).map(|algorithm| algorithm.values())
    };
    parameters(name, &about.parameters, &make);
}

fn parameters(name: &str, parameters: &[&cutline_params::Parameter], make: conformance::Make<'_>) {
    assert!(conformance::is_kebab(name), "{name}: a name in kebab-case");
    conformance::parameters_are_complete(name, parameters);
    conformance::defaults_are_what_the_description_says(name, parameters, make);
    conformance::bad_parameters_are_refused_by_name(name, parameters, make);
}

/// An event in a run of an application.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    Written(Instant, Write),
    Completed(Instant, Completion),
}

/// An application over a path that delivers written data 50 ms later.
#[derive(Clone)]
struct Run {
    name: &'static str,
    app: App,
    random: RandomStream,
    written: u64,
    /// Bytes in order at the receiver, and the time of their arrival.
    on_the_way: VecDeque<(Instant, u64)>,
    events: Vec<Event>,
}

const LATENCY: Duration = Duration::from_millis(50);
const MOST_EVENTS: usize = 20_000;
const AN_HOUR: Instant = Instant::from_nanos(3_600_000_000_000);

impl Run {
    fn new(params: &app::Params) -> Self {
        let mut random = Streams::new(7).stream("conformance", "app");
        let app = params.start(Instant::from_nanos(1_000_000_000), &mut random);
        let (name, on_the_way, events) = (params.name(), VecDeque::new(), Vec::new());
        Self { name, app, random, written: 0, on_the_way, events }
    }

    /// Runs for a number of events, or for an hour.
    fn until(&mut self, events: usize) {
        while self.events.len() < events {
            let arrival = self.on_the_way.front().map_or(Instant::FAR_FUTURE, |(at, _)| *at);
            let now = arrival.min(self.app.deadline());
            if now > AN_HOUR {
                break;
            }
            if now == arrival {
                self.deliver(now);
            }
            self.poll(now);
        }
    }

    fn deliver(&mut self, now: Instant) {
        let Some((_, total)) = self.on_the_way.pop_front() else { return };
        if let Some(completion) = self.app.on_delivered(now, total) {
            let Completion { started, latency, bytes } = completion;
            let sound = started + latency == now && bytes > 0 && bytes <= total;
            assert!(sound, "{}: {completion:?} at {now} with {total} B delivered", self.name);
            self.events.push(Event::Completed(now, completion));
        }
    }

    fn poll(&mut self, now: Instant) {
        let before = self.events.len();
        while let Some(write) = self.app.poll(now, &mut self.random) {
            if let Write::Bytes(bytes) = write {
                self.written += bytes;
                self.on_the_way.push_back((now + LATENCY, self.written));
            }
            self.events.push(Event::Written(now, write));
            let writes = self.events.len() - before;
            assert!(writes <= MOST_EVENTS, "{}: it writes without end at {now}", self.name);
        }
        let deadline = self.app.deadline();
        assert!(deadline > now, "{}: at {now} nothing is due, but the deadline is {deadline}", self.name);
    }

    fn all(mut self) -> Vec<Event> {
        self.until(MOST_EVENTS);
        self.events
    }
}

/// Messages are not empty and have the sizes in the application's description; it writes without end if it is described so; it completes
/// something only if it waits for delivery. After all that was due has been written, the deadline is later than now.
pub fn a_source_writes_as_described(params: &app::Params) {
    let (name, events) = (params.name(), Run::new(params).all());
    assert!(!events.is_empty(), "{name}: it writes nothing");
    for event in events {
        match event {
            Event::Written(_, Write::Unlimited) => assert!(params.is_endless(), "{name}: it is not endless"),
            Event::Written(at, Write::Bytes(bytes)) => {
                assert!(bytes > 0 && !params.is_endless(), "{name}: {bytes} B at {at}");
                let right = params.message_size().is_none_or(|size| bytes == size)
                    && params.least_message().is_none_or(|least| bytes >= least);
                assert!(right, "{name}: {bytes} B at {at} is not the size it says");
            }
            Event::Completed(at, _) => {
                assert!(params.needs_reliability(), "{name}: a completion at {at}, but it waits for none");
            }
        }
    }
}

/// A call before the deadline writes nothing, draws nothing and moves no deadline.
pub fn nothing_happens_before_the_deadline(params: &app::Params) {
    let mut run = Run::new(params);
    for events in 1..100 {
        let (deadline, random) = (run.app.deadline(), run.random.clone());
        if deadline < Instant::FAR_FUTURE {
            let early = Instant::from_nanos(deadline.as_nanos().saturating_sub(1));
            let written = run.app.poll(early, &mut run.random);
            let idle = written.is_none() && run.random == random && run.app.deadline() == deadline;
            assert!(idle, "{}: {written:?} before the deadline {deadline}", run.name);
        }
        run.until(events);
    }
}

/// The same parameters and the same seed give the same writes at the same times.
pub fn the_same_seed_gives_the_same_writes(params: &app::Params) {
    let (first, second) = (Run::new(params).all(), Run::new(params).all());
    assert!(first == second, "{}: two runs with one seed differ", params.name());
}

/// A clone writes the same as the original.
pub fn a_copy_of_a_source_behaves_as_the_original(params: &app::Params) {
    let mut run = Run::new(params);
    run.until(50);
    let (copy, original) = (run.clone().all(), run.all());
    assert!(copy == original, "{}: a copy differs from the original", params.name());
}

/// TCP's defaults with this congestion control.
fn with(algorithm: &Algorithm) -> tcp::Params {
    tcp::Params { algorithm: algorithm.clone(), ..tcp::Params::default() }
}

const MSS: u64 = 1000;
/// The upper bound of windows, bytes.
const MOST_WINDOW: u64 = 1 << 40;

/// A congestion control, its window, and the events that change it.
#[derive(Clone)]
struct Drive {
    name: &'static str,
    is_paced: bool,
    control: Box<dyn DynControl>,
    window: Window,
    random: RandomStream,
    now: Instant,
    una: u64,
    /// Bytes lost, and those of them that the next acknowledgement of a paced control tells.
    lost: (u64, u64),
    state: LossState,
    /// Bytes marked, of the next acknowledgement of a paced control.
    marked: u64,
}

impl Drive {
    fn new(algorithm: &Algorithm) -> Self {
        let tcp = tcp::Params { ecn: Ecn::Ect0, ..with(algorithm) };
        Self {
            name: algorithm.name(),
            is_paced: algorithm.is_paced(),
            control: algorithm.begin(&tcp),
            window: Window { cwnd: 10 * MSS, ssthresh: u64::MAX },
            random: Streams::new(7).stream("conformance", "control"),
            now: Instant::from_nanos(1_000_000_000),
            una: 0,
            lost: (0, 0),
            state: LossState::Open,
            marked: 0,
        }
    }

    /// Feeds `steps` acknowledgements, and now and then a loss, a mark, a timeout, or an application that has nothing to send.
    fn windows(&mut self, steps: u32) -> Vec<Window> {
        let step = |_| {
            self.step();
            self.window
        };
        (0..steps).map(step).collect()
    }

    fn step(&mut self) {
        if self.is_paced {
            return self.step_paced();
        }
        let chance = self.random.uniform();
        let marked = (0.01..0.05).contains(&chance);
        let (window, flight) = (self.window, self.window.cwnd);
        self.acknowledge(marked, chance > 0.9);
        if chance < 0.005 {
            let threshold = self.control.congested(&self.window, flight, MSS);
            self.reduce(threshold, flight);
        } else if chance < 0.007 {
            let threshold = self.control.congested(&self.window, flight, MSS);
            self.reduce(threshold, flight);
            self.control.timed_out();
            self.window.cwnd = MSS;
        } else if marked && chance < 0.02 {
            let threshold = self.control.marked(&self.window, flight, MSS);
            self.reduce(threshold, flight);
        }
        let Window { cwnd, ssthresh } = self.window;
        let sound = (MSS..=MOST_WINDOW).contains(&cwnd) && ssthresh >= 2 * MSS;
        assert!(sound, "{}: {:?} after {window:?} is out of bounds", self.name, self.window);
    }

    /// A step of a paced control: a segment is delivered, and now and then one is lost or marked, or the timer expires. Losses and marks
    /// leave the threshold, and there is always a rate.
    fn step_paced(&mut self) {
        let chance = self.random.uniform();
        let (before, flight) = (self.window, self.window.cwnd);
        let (mut threshold, mut state) = (before.ssthresh, self.state);
        if chance < 0.01 {
            if self.state == LossState::Open {
                threshold = self.control.congested(&self.window, flight, MSS);
                state = LossState::Recovery;
            }
            self.lose(flight);
        } else if chance < 0.012 {
            threshold = self.control.congested(&self.window, flight, MSS);
            self.control.timed_out();
            self.window.cwnd = MSS;
            state = LossState::Timeout;
            self.lose(flight);
        } else if chance < 0.02 {
            threshold = self.control.marked(&self.window, flight, MSS);
            self.marked = MSS;
        } else if chance < 0.05 {
            state = LossState::Open;
        } else if chance < 0.06 {
            self.control.restarted(&mut self.window, self.now);
        } else if chance < 0.065 {
            self.control.spurious();
        }
        self.state = state;
        self.deliver(flight, chance > 0.9);
        let Window { cwnd, ssthresh } = self.window;
        let sound = (MSS..=MOST_WINDOW).contains(&cwnd) && ssthresh == before.ssthresh;
        assert!(sound, "{}: {:?} after {before:?} is out of bounds", self.name, self.window);
        assert!(threshold == before.ssthresh, "{}: a paced control leaves the threshold", self.name);
        let rate = self.control.pacing_rate().map_or(0, cutline_units::Rate::as_bps);
        assert!(rate > 0, "{}: a pacing rate of {rate} bit/s", self.name);
    }

    fn lose(&mut self, flight: u64) {
        self.lost.0 += MSS;
        self.lost.1 += MSS;
        let lost_since_sent = self.lost.1;
        let (now, seq, total_delivered, is_app_limited) = (self.now, self.una, self.una, false);
        let tx_in_flight = flight.max(MSS);
        let loss = LostSegment {
            now,
            seq,
            bytes: MSS,
            total_delivered,
            tx_in_flight,
            lost_since_sent,
            is_app_limited,
        };
        self.control.lost(&self.window, &loss);
    }

    /// Delivers a segment to a paced control, at a rate of a window in a round trip of 40 to 60 ms.
    fn deliver(&mut self, flight: u64, is_app_limited: bool) {
        let rtt = Duration::from_millis(40) + Duration::from_secs_f64(self.random.uniform() * 0.02);
        self.now += Duration::from_micros(500);
        self.una += MSS;
        let newly_lost = std::mem::take(&mut self.lost.1);
        let sample = RateSample {
            now: self.now,
            newly_delivered: MSS,
            newly_lost,
            newly_marked: std::mem::take(&mut self.marked),
            total_delivered: self.una,
            total_lost: self.lost.0,
            prior_delivered: Some(self.una.saturating_sub(flight)),
            delivered: self.una.min(flight),
            interval: rtt,
            is_app_limited,
            rtt: Some(rtt),
            is_ack_delayed: false,
            srtt: rtt,
            prior_in_flight: flight,
            in_flight: flight - MSS.min(flight),
            tx_in_flight: flight,
            lost_since_sent: newly_lost,
            is_window_limited: !is_app_limited,
            next_send: self.now,
            state: self.state,
        };
        self.control.delivered(&mut self.window, &sample);
    }

    fn acknowledge(&mut self, marked: bool, application_limited: bool) {
        let srtt = Duration::from_millis(40);
        self.now += Duration::from_micros(500);
        self.una += MSS;
        let (now, una, next) = (self.now, self.una, self.una + self.window.cwnd);
        let echo = Instant::from_nanos(now.as_nanos() - srtt.as_nanos());
        self.control.acknowledged(&Acknowledgement { now, bytes: MSS, marked, una, next, echo });
        let acked = Acked { bytes: MSS, now, srtt };
        if application_limited {
            self.control.application_limited(now);
        } else if self.window.cwnd < self.window.ssthresh {
            self.control.slow_start(&mut self.window, &acked, MSS);
        } else {
            self.control.avoid(&mut self.window, &acked, MSS);
        }
    }

    fn reduce(&mut self, threshold: u64, flight: u64) {
        let most = flight.max(self.window.cwnd).max(2 * MSS);
        let sound = (2 * MSS..=most).contains(&threshold);
        let allowed = format!("from two segments, {}, to the window, {most}", 2 * MSS);
        assert!(sound, "{}: a threshold of {threshold} B after congestion, allowed is {allowed}", self.name);
        self.window = Window { cwnd: threshold.min(self.window.cwnd), ssthresh: threshold };
    }
}

/// A window has at least one segment and at most the upper bound, a threshold at least two segments, and congestion makes no
/// window larger. A paced control always has a rate above zero, and leaves the threshold.
pub fn windows_stay_within_bounds(algorithm: &Algorithm) {
    Drive::new(algorithm).windows(20_000);
}

/// The same events give the same windows.
pub fn the_same_events_give_the_same_windows(algorithm: &Algorithm) {
    let windows = || Drive::new(algorithm).windows(5000);
    assert!(windows() == windows(), "{}: two runs of the same events differ", algorithm.name());
}

/// A clone has the same windows as the original.
pub fn a_copy_of_a_control_behaves_as_the_original(algorithm: &Algorithm) {
    let mut original = Drive::new(algorithm);
    original.windows(2000);
    let mut copy = original.clone();
    let same = copy.windows(2000) == original.windows(2000);
    assert!(same, "{}: a copy differs from the original", algorithm.name());
}

/// A packet on the path of [`a_transfer_arrives_whole`].
#[derive(Clone, Copy)]
enum Packet {
    Data(Segment, bool),
    Reply(Ack),
}

/// A megabyte arrives, over a path of 20 ms each way that loses every 50th segment and, where segments can be marked, marks
/// every 30th.
pub fn a_transfer_arrives_whole(algorithm: &Algorithm) {
    const BYTES: u64 = 1_000_000;
    let ecn = if algorithm.is_scalable() { Ecn::Ect0 } else { Ecn::NotEct };
    let params = Arc::new(tcp::Params { ecn, sack: true, rack: algorithm.is_paced(), ..with(algorithm) });
    let (mut sender, mut receiver) = (tcp::Sender::new(&params, Instant::ZERO), tcp::Receiver::new(&params));
    let mut path: BTreeMap<(Instant, u64), Packet> = BTreeMap::new();
    let (mut now, mut sent) = (Instant::ZERO, 0_u64);
    let one_way = Duration::from_millis(20);
    sender.write(BYTES);
    sender.close();
    loop {
        while let Some(segment) = sender.transmit(now) {
            sent += 1;
            if !sent.is_multiple_of(50) {
                let marked = params.ecn_capable(&segment) && sent.is_multiple_of(30);
                path.insert((now + one_way, sent), Packet::Data(segment, marked));
            }
        }
        if sender.is_finished() {
            break;
        }
        let arrival = path.first_key_value().map_or(Instant::FAR_FUTURE, |((at, _), _)| *at);
        now = arrival.min(sender.deadline()).min(receiver.deadline());
        assert!(
            now < AN_HOUR,
            "{}: a transfer does not end; {} B are acknowledged",
            algorithm.name(),
            sender.acked()
        );
        if now == arrival
            && let Some((_, packet)) = path.pop_first()
        {
            let reply = match packet {
                Packet::Data(segment, marked) => receiver.on_segment(now, &segment, marked),
                Packet::Reply(ack) => {
                    sender.on_ack(now, &ack);
                    None
                }
            };
            sent += u64::from(reply.is_some());
            path.extend(reply.map(|ack| ((now + one_way, sent), Packet::Reply(ack))));
        }
        sender.on_deadline(now);
        if now >= receiver.deadline() {
            sent += 1;
            path.extend(receiver.on_deadline(now).map(|ack| ((now + one_way, sent), Packet::Reply(ack))));
        }
    }
    assert!(
        receiver.delivered() == BYTES,
        "{}: {} B of {BYTES} B arrived",
        algorithm.name(),
        receiver.delivered()
    );
}
