//! The simulator's end of a connection decides as a QoS socket does.
//!
//! Real sockets exchange messages through a relay that loses or delays them. The session of each end records its inputs and outputs
//! ([`QosOptions::trace`]). Then an end of the simulator is given the same ([`cutline_sim::qos::replay`]).
//!
//! It shows that decisions depend on nothing but what the trace has: no clock, no random number, no other thread. Both ends have the same
//! control messages byte for byte, the same header for each message and time at which it may leave, the same events, hints and rates, and
//! equal MIBs. Of datagrams, the control messages are also those that were on the wire.
//!
//! It does not show that a socket and an agent call the session in the same order for what comes: a socket takes datagrams in batches, and
//! an agent takes them one by one. Nor that the application's times are the same: they are inputs here. The laboratory compares those as
//! means (`cutline reproduce qos`).

use cutline_quality::spec::{ConnectionSpecification, Specification};
use cutline_quality::{Class, HintParams};
use cutline_signal::monitor::MonitorParams;
use cutline_signal::operation::OperationParams;
use cutline_signal::renegotiation::{Alternatives, RenegotiationParams};
use cutline_signal::session::trace::{Input, Output, SessionTrace, TraceRecord};
use cutline_sim::qos::replay;
use cutline_socket::{
    Marking, Mib, Peer, QosOptions, QosTcpListener, QosTcpStream, QosUdpListener, QosUdpSocket, RateControl,
    SessionEvent, TfrcParams,
};
use cutline_units::{Bytes, Duration, HintBits};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{self, Instant};

const ANY: &str = "127.0.0.1:0";
const SIZE: usize = 500;
/// Time for which the application sends, and its upper bound if the awaited event has not happened.
const LASTS: time::Duration = time::Duration::from_millis(2500);
const AT_MOST: time::Duration = time::Duration::from_secs(60);
const PATIENCE: time::Duration = time::Duration::from_millis(20);
/// Time for which the relay keeps the data of a stream, once both ends know the offset of their clocks.
const DELAY: time::Duration = time::Duration::from_millis(100);
const AFTER: time::Duration = time::Duration::from_millis(500);

const fn ms(time: u64) -> Duration {
    Duration::from_millis(time)
}

/// The datagrams that have come to the relay from the first end, as one sequence of bytes.
type Passed = Arc<Mutex<Vec<u8>>>;

/// Passes datagrams on both ways, but loses each `lost`-th message of the first end. Returns the address to which the first end sends.
fn relay_datagrams(to: SocketAddr, lost: usize, is_over: &Arc<AtomicBool>) -> (SocketAddr, Passed) {
    let [front, back] = [ANY, ANY].map(|address| UdpSocket::bind(address).unwrap());
    back.connect(to).unwrap();
    let (address, passed) = (front.local_addr().unwrap(), Passed::default());
    for socket in [&front, &back] {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
    }
    let (seen, is_over) = (Arc::clone(&passed), [Arc::clone(is_over), Arc::clone(is_over)]);
    let [until, stop] = is_over;
    let (front_too, back_too) = (front.try_clone().unwrap(), back.try_clone().unwrap());
    let first = Arc::new(Mutex::new(None));
    let caller = Arc::clone(&first);
    thread::spawn(move || {
        let (mut buffer, mut messages) = ([0; 2000], 0);
        while !until.load(Ordering::Relaxed) {
            let Ok((length, from)) = front.recv_from(&mut buffer) else { continue };
            *first.lock().unwrap() = Some(from);
            messages += usize::from(length > SIZE);
            seen.lock().unwrap().extend(&buffer[..length]);
            if length <= SIZE || messages % lost > 0 {
                let _gone = back.send(&buffer[..length]);
            }
        }
    });
    thread::spawn(move || {
        let mut buffer = [0; 2000];
        while !stop.load(Ordering::Relaxed) {
            let Ok(length) = back_too.recv(&mut buffer) else { continue };
            if let Some(caller) = *caller.lock().unwrap() {
                let _gone = front_too.send_to(&buffer[..length], caller);
            }
        }
    });
    (address, passed)
}

/// Passes a stream on, after a while with a delay for the data of the first end. Returns the address to which that end connects.
fn relay_stream(to: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind(ANY).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let front = listener.accept().unwrap().0;
        let back = TcpStream::connect(to).unwrap();
        let (front_too, back_too) = (front.try_clone().unwrap(), back.try_clone().unwrap());
        thread::spawn(move || pass_on(back_too, front_too, false));
        pass_on(front, back, true);
    });
    address
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, delays: bool) {
    let (mut buffer, since) = ([0; 1 << 12], Instant::now());
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if delays && since.elapsed() > AFTER {
            thread::sleep(DELAY);
        }
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _closed = to.shutdown(Shutdown::Write);
}

/// 50 to 400 messages/s with at most 5 % lost and 20 ms of delay, which the relays do not keep.
fn video() -> Specification {
    let video = Specification::builder().rates(50.0, 400.0, 400.0).size(Bytes::new(SIZE as u64));
    video.loss(5.0).max_delay(ms(20)).build().unwrap()
}

fn options(spec: Specification) -> QosOptions {
    let options = QosOptions::sending(spec).peer(Peer::Speaks);
    options.monitor(MonitorParams { interval: ms(50), ..MonitorParams::default() })
}

/// The hint adapts; nothing else does.
fn adapting_hint() -> QosOptions {
    let params = HintParams { settle: ms(50), measure: ms(100), ..HintParams::default() };
    options(video()).marking(Marking::Adaptive(Class::Video, params))
}

/// The rate moves inside the region, and then the socket requests a weaker specification.
fn adapting_rate() -> QosOptions {
    let slow = video().change().rates(40.0, 50.0, 50.0).build().unwrap();
    let specifications = vec![ConnectionSpecification { send: slow, ..Default::default() }];
    let params = RenegotiationParams { patience: ms(500), ..RenegotiationParams::default() };
    let operation = OperationParams { settle: ms(100), decrease: 0.5, ..OperationParams::default() };
    options(video()).adapt_rate(operation).alternatives(Alternatives { specifications, params })
}

/// Returns the options of the end that listens: anything may be weaker.
fn accepting(trace: &SessionTrace) -> QosOptions {
    let any = Specification::builder().size(Bytes::new(SIZE as u64)).coerce_all().build().unwrap();
    let options = QosOptions::receiving(any).trace(trace).peer(Peer::Speaks);
    options.monitor(MonitorParams { interval: ms(50), ..MonitorParams::default() })
}

/// Condition for the end of a test.
type Enough = fn(&[SessionEvent]) -> bool;

/// Sends messages until enough has happened. Returns all events.
fn send(
    mut send: impl FnMut(),
    of: impl Fn() -> (Mib, Vec<SessionEvent>),
    enough: Enough,
) -> Vec<SessionEvent> {
    let (since, mut events) = (Instant::now(), Vec::new());
    while since.elapsed() < LASTS || (!enough(&events) && since.elapsed() < AT_MOST) {
        send();
        let (mib, told) = of();
        events.extend(told);
        thread::sleep(pause(&mib));
    }
    let (_noted, told) = of();
    events.extend(told);
    events
}

/// The time between two messages of an application that keeps to its rate.
fn pause(mib: &Mib) -> time::Duration {
    let rate = mib.send.target_rate.or(mib.send.contract.effective.max_rate).unwrap();
    time::Duration::from_secs_f64(rate.recip())
}

/// Records of both ends, and events of the first one.
struct Outcome {
    records: [TraceRecord; 2],
    events: Vec<SessionEvent>,
    /// Packets that have left the first end, if they are known.
    passed: Option<Passed>,
}

fn record(trace: &SessionTrace) -> TraceRecord {
    let mut record = trace.records().pop().unwrap();
    // Until here the outputs are known.
    let last = record.steps.iter().rposition(|step| matches!(step.input, Input::Mib(..))).unwrap();
    record.steps.truncate(last + 1);
    record
}

fn over_datagrams(options: QosOptions, lost: usize, enough: Enough) -> Outcome {
    let traces = [SessionTrace::default(), SessionTrace::default()];
    let [is_over, all_sent] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let is_last = Arc::clone(&all_sent);
    let listener = QosUdpListener::bind(ANY, &accepting(&traces[1])).unwrap();
    let (to, passed) = relay_datagrams(listener.local_addr().unwrap(), lost, &is_over);
    let receiver = thread::spawn(move || {
        let receiver = listener.accept().unwrap().0;
        receiver.set_read_timeout(Some(time::Duration::from_millis(500))).unwrap();
        let mut buffer = [0; 2000];
        // Until all is sent and no more comes.
        while receiver.recv(&mut buffer).is_ok() || !is_last.load(Ordering::Relaxed) {}
        let _noted = receiver.mib();
    });
    let sender = QosUdpSocket::connect(to, &options.trace(&traces[0])).unwrap();
    let (hearing, until) = (sender.clone(), Arc::clone(&is_over));
    hearing.set_read_timeout(Some(PATIENCE)).unwrap();
    let hears = thread::spawn(move || {
        while !until.load(Ordering::Relaxed) {
            // Nothing comes for the application, and at the end the peer is gone.
            assert!(hearing.recv(&mut [0; 100]).is_err());
        }
    });
    let message = || assert_eq!(sender.send(&[7; SIZE]).unwrap(), SIZE);
    let events = send(message, || (sender.mib(), sender.events().collect()), enough);
    all_sent.store(true, Ordering::Relaxed);
    receiver.join().unwrap();
    is_over.store(true, Ordering::Relaxed);
    hears.join().unwrap();
    Outcome { records: traces.map(|trace| record(&trace)), events, passed: Some(passed) }
}

fn over_a_stream(options: QosOptions, enough: Enough) -> Outcome {
    let traces = [SessionTrace::default(), SessionTrace::default()];
    let listener = QosTcpListener::bind(ANY, &accepting(&traces[1])).unwrap();
    let to = relay_stream(listener.local_addr().unwrap());
    let receiver = thread::spawn(move || {
        let mut receiver = listener.accept().unwrap().0;
        let mut buffer = [0; 2000];
        while receiver.read(&mut buffer).unwrap() > 0 {}
        let _noted = receiver.mib();
    });
    let sender = QosTcpStream::connect(to, &options.trace(&traces[0])).unwrap();
    let mut hearing = sender.clone();
    let hears = thread::spawn(move || hearing.read(&mut [0; 100]));
    let message = || (&sender).write_all(&[7; SIZE]).unwrap();
    let events = send(message, || (sender.mib(), sender.events().collect()), enough);
    sender.shutdown(Shutdown::Write).unwrap();
    receiver.join().unwrap();
    let _ended = hears.join().unwrap();
    Outcome { records: traces.map(|trace| record(&trace)), events, passed: None }
}

/// The simulator's ends decide as both sockets did. Returns the first one's events.
fn is_repeated(outcome: &Outcome) -> &[SessionEvent] {
    let Outcome { records, events, passed } = outcome;
    for (end, record) in records.iter().enumerate() {
        let found = replay(record, HintBits::PAPER.largest()).unwrap();
        assert_eq!(found.record.steps.len(), record.steps.len());
        for (number, (ours, theirs)) in record.steps.iter().zip(&found.record.steps).enumerate() {
            assert!(
                ours == theirs,
                "end {end}, step {number}: the socket {ours:?}, the simulator {theirs:?}"
            );
        }
        let Some([Output::Mib(mib)]) = record.steps.last().map(|step| &step.outputs[..]) else { panic!() };
        let (hint, send) = (mib.hint, &mib.send);
        assert!(hint.is_none_or(|hint| hint == found.hint), "{hint:?} and {:?}", found.hint);
        assert_eq!(send.target_rate.or(send.contract.effective.max_rate), found.rate);
        assert!(!found.sent.is_empty());
        if end == 0 {
            assert_eq!(events[..found.events.len()], found.events);
            if let Some(passed) = passed {
                // The simulator's messages equal those on the wire, between the data.
                let (passed, mut from) = (passed.lock().unwrap(), 0);
                for message in &found.sent {
                    let place = passed[from..].windows(message.len()).position(|bytes| bytes == message);
                    from += place.expect("a control message") + message.len();
                }
            }
        } else {
            // With a message less it decides otherwise.
            let is_message = |input: &Input| match input {
                Input::Datagram(_, bytes) => bytes.len() > SIZE,
                input => matches!(input, Input::Message { .. }),
            };
            let place = record.steps.iter().position(|step| is_message(&step.input)).unwrap();
            let mut less = record.clone();
            less.steps.remove(place);
            assert!(replay(&less, HintBits::PAPER.largest()).unwrap().record.steps != less.steps);
        }
    }
    &events[..]
}

fn count(events: &[SessionEvent], kind: fn(&SessionEvent) -> bool) -> usize {
    events.iter().filter(|event| kind(event)).count()
}

fn has_adapted_and_agreed_again(events: &[SessionEvent]) -> bool {
    count(events, |event| matches!(event, SessionEvent::Violated(..))) > 0
        && count(events, |event| matches!(event, SessionEvent::Rate(_))) > 1
        && count(events, |event| matches!(event, SessionEvent::Requested(1))) > 0
        && count(events, |event| matches!(event, SessionEvent::Agreed(_))) > 1
}

fn has_tried_hints(events: &[SessionEvent]) -> bool {
    count(events, |event| matches!(event, SessionEvent::Hint(_))) > 2
}

/// Checks that the awaited event has happened, and that the simulator repeats it.
fn check(outcome: &Outcome, enough: Enough) {
    let events = is_repeated(outcome);
    assert!(enough(events), "{events:?}");
}

#[test]
fn datagrams_whose_rate_adapts_and_that_are_negotiated_again() {
    let enough = has_adapted_and_agreed_again;
    check(&over_datagrams(adapting_rate(), 5, enough), enough);
}

#[test]
fn datagrams_whose_hint_adapts() {
    check(&over_datagrams(adapting_hint(), 5, has_tried_hints), has_tried_hints);
}

#[test]
fn datagrams_with_tfrc() {
    let tfrc = RateControl::Tfrc(TfrcParams::default());
    let outcome = over_datagrams(options(video()).rate_control(tfrc), 50, |_| true);
    is_repeated(&outcome);
    let mib = outcome.records[0].steps.last().and_then(|step| step.outputs.first());
    let Some(Output::Mib(mib)) = mib else { panic!("{mib:?}") };
    let tfrc = mib.tfrc.unwrap();
    assert!(tfrc.feedback > 5 && tfrc.loss_event_rate > 0.0, "{tfrc:?}");
}

#[test]
fn a_stream_whose_rate_adapts_and_that_is_negotiated_again() {
    let enough = has_adapted_and_agreed_again;
    check(&over_a_stream(adapting_rate(), enough), enough);
}

#[test]
fn a_stream_whose_hint_adapts() {
    check(&over_a_stream(adapting_hint(), has_tried_hints), has_tried_hints);
}
