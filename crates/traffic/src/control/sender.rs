//! The sender's side of a session: clock comparison, the run, the receiver's report.

use super::exchange::ClockReport;
use super::key::{Key, Role, nonce};
use super::line::{Line, Waited};
use super::message::{
    Hello, LONGEST_REPLY, LONGEST_REQUEST, Open, PROTOCOL, Reply, Request, Start, write_message,
};
use super::{ControlError, boot_id};
use crate::generator::Generator;
use crate::plan::FlowPlan;
use crate::report::{MeterReport, SenderReport};
use crate::socket::connect_control;
use cutline_signal::clock::{self, Estimate, Exchange};
use cutline_sys::now;
use cutline_units::{Duration, Instant, Streams};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The interval at which the connection and the stop flag are checked.
const LOOK: Duration = Duration::from_millis(50);
/// The longest time that the receiver may take for a reply.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest time that the receiver may take for its report.
const LONGEST_REPORT: Duration = Duration::from_secs(600);
/// The number of exchanges of a clock comparison.
const EXCHANGES: usize = 16;
/// The time between the request to start and the run's zero. Both ends must be ready by then.
const LEAD: Duration = Duration::from_millis(100);

/// The parameters of a session.
#[derive(Clone, Copy, Debug)]
pub struct SendParams {
    /// The planned duration of sending.
    pub duration: Duration,
    /// How long the receiver continues after the end of sending, to receive what is still in flight.
    pub linger: Duration,
    /// The width of the intervals; `None` for no intervals.
    pub interval: Option<Duration>,
    /// The source of random numbers.
    pub streams: Streams,
    /// The key that the receiver must have; `None` for none.
    pub key: Option<Key>,
}

/// The reports of both ends.
#[derive(Debug)]
pub struct Outcome {
    /// The senders' reports, in the order of the plans.
    pub sent: Vec<SenderReport>,
    /// The receiver's report; `None` if the connection to it was lost.
    pub received: Option<MeterReport>,
    /// The relation of the two clocks.
    pub clock: ClockReport,
    /// The actual duration of sending.
    pub elapsed: Duration,
    /// The error that ended the session early; `None` if there was none or `stop` was set.
    pub error: Option<ControlError>,
}

/// Sends flows to a receiver. The function sets their `to` to the port that the receiver reports. The connection to the receiver
/// has the source address of the first flow, because a receiver accepts traffic from no other one. The function returns when the
/// duration is over, when `stop` is set or when the connection to the receiver is lost. In each case the outcome has
/// the measurements up to then.
///
/// # Errors
/// Returns an error if the session fails before sending starts, or if the generator fails.
pub fn send(
    receiver: SocketAddr,
    plans: Vec<FlowPlan>,
    params: SendParams,
    stop: &AtomicBool,
) -> Result<Outcome, ControlError> {
    let from = plans.first().and_then(|plan| plan.from).map(|from| from.ip());
    let mut line = connect(receiver, from)?;
    let their_boot_id = open(&mut line, receiver, params.key.as_ref())?;
    let before = compare(&mut line)?;
    let is_within_error = before.offset.as_nanos().unsigned_abs() <= before.error.as_nanos();
    let same = !their_boot_id.is_empty() && their_boot_id == boot_id() && is_within_error;
    let clock = ClockReport { same, before, after: None };
    let zero = now() + LEAD + before.round_trip * 2;
    let (port, token) = ask_to_start(&mut line, plans.len(), zero, &clock, params)?;
    let data = SocketAddr::new(receiver.ip(), port);
    let plans = plans.into_iter().map(|plan| FlowPlan { to: data, ..plan }).collect();
    let generator = Generator::new(plans, params.streams)?.with_clock(clock.offset()).with_token(token);
    let generator = params.interval.map_or(generator.clone(), |width| generator.with_intervals(width));
    let (sent, watched) = run(&line, generator, zero, params.duration, stop);
    let (sent, elapsed) = (sent?, now().saturating_since(zero).min(params.duration));
    let mut outcome = Outcome { sent, received: None, clock, elapsed, error: None };
    let ended = watched.and_then(|watched| {
        let lingered = if watched == Watched::Over { linger(&line, params.linger, stop)? } else { watched };
        bring_together(&mut line, lingered, &mut outcome)
    });
    outcome.error = ended.err();
    Ok(outcome)
}

/// Requests the receiver's report. A receiver that was stopped has sent it without a request.
fn bring_together(line: &mut Line, watched: Watched, outcome: &mut Outcome) -> Result<(), ControlError> {
    if watched == Watched::Message {
        let reply = line.receive(LONGEST_REPLY, LONGEST_REPORT)?;
        let Some(Reply::Report(report)) = reply else {
            return Err(ControlError::Unexpected("a reply without a request".to_owned()));
        };
        outcome.received = Some(*report);
        return Err(ControlError::Stopped);
    }
    outcome.clock.after = Some(compare(line)?);
    match ask_within(line, &Request::Finish, LONGEST_REPORT)? {
        Reply::Report(report) => outcome.received = Some(*report),
        other => return unexpected(&other),
    }
    Ok(())
}

fn connect(receiver: SocketAddr, from: Option<IpAddr>) -> Result<Line, ControlError> {
    let line = connect_control(from, receiver, PATIENCE).and_then(|stream| Line::new(stream, None));
    line.map_err(|source| ControlError::Unreachable { address: receiver.to_string(), source })
}

/// Opens the session, and returns the receiver's boot id. With a key, both ends have proved that they have it.
fn open(line: &mut Line, receiver: SocketAddr, key: Option<&Key>) -> Result<String, ControlError> {
    let (hello, sent) = greet(line, receiver)?;
    let nonce = nonce().map_err(ControlError::Broken)?;
    let message = write_message(&Request::Open(Open { nonce })).map_err(ControlError::Broken)?;
    match key {
        None if hello.key => return Err(ControlError::KeyRequired),
        Some(_) if !hello.key => return Err(ControlError::Keyless),
        Some(key) => line.seal(key, Role::Sender, &sent, message.trim_ascii_end()),
        None => {}
    }
    line.send_bytes(&message, PATIENCE)?;
    match reply(line, PATIENCE)? {
        Reply::Opened { boot_id } => Ok(boot_id),
        other => unexpected(&other),
    }
}

/// Receives the first message of the receiver, also as it was sent.
fn greet(line: &mut Line, receiver: SocketAddr) -> Result<(Hello, Vec<u8>), ControlError> {
    let stranger = || ControlError::Stranger(receiver.to_string());
    let sent = line.receive_line(LONGEST_REQUEST, PATIENCE).ok().flatten().ok_or_else(stranger)?;
    match serde_json::from_slice(&sent) {
        Ok(Reply::Hello(hello)) if hello.cutline_tg == PROTOCOL => Ok((hello, sent)),
        Ok(Reply::Hello(hello)) => Err(ControlError::Version { theirs: hello.cutline_tg }),
        Ok(Reply::Refused(why)) => Err(ControlError::Refused(why)),
        Ok(_) | Err(_) => Err(stranger()),
    }
}

fn ask(line: &mut Line, request: &Request) -> Result<Reply, ControlError> {
    ask_within(line, request, PATIENCE)
}

fn ask_within(line: &mut Line, request: &Request, time: Duration) -> Result<Reply, ControlError> {
    line.send(request, PATIENCE)?;
    reply(line, time)
}

fn reply(line: &mut Line, time: Duration) -> Result<Reply, ControlError> {
    match line.receive(LONGEST_REPLY, time)? {
        Some(Reply::Refused(why)) => Err(ControlError::Refused(why)),
        Some(reply) => Ok(reply),
        None => Err(ControlError::Broken(std::io::ErrorKind::UnexpectedEof.into())),
    }
}

fn unexpected<T>(reply: &Reply) -> Result<T, ControlError> {
    let shown: String = format!("{reply:?}").chars().take(60).collect();
    Err(ControlError::Unexpected(shown))
}

fn compare(line: &mut Line) -> Result<Estimate, ControlError> {
    let mut exchanges = Vec::new();
    for _ in 0..EXCHANGES {
        let sent = now();
        match ask(line, &Request::Clock)? {
            Reply::Clock { came_ns, left_ns } => exchanges.push(Exchange {
                sent,
                received: Instant::from_nanos(came_ns),
                replied: Instant::from_nanos(left_ns),
                returned: now(),
            }),
            other => return unexpected(&other),
        }
    }
    clock::best(&exchanges)
        .ok_or_else(|| ControlError::Unexpected("invalid times in the clock exchange".to_owned()))
}

fn ask_to_start(
    line: &mut Line,
    flows: usize,
    zero: Instant,
    clock: &ClockReport,
    params: SendParams,
) -> Result<(u16, u64), ControlError> {
    let start = Start {
        flows: flows.try_into().unwrap_or(u32::MAX),
        zero_ns: clock.offset().theirs(zero).as_nanos(),
        until_ns: params.duration.as_nanos(),
        interval_ns: params.interval.map(Duration::as_nanos),
    };
    match ask(line, &Request::Start(start))? {
        Reply::Ready { port, token } => Ok((port, token)),
        other => unexpected(&other),
    }
}

/// Runs the generator in a thread, and watches the connection to the receiver meanwhile.
fn run(
    line: &Line,
    generator: Generator,
    zero: Instant,
    duration: Duration,
    stop: &AtomicBool,
) -> (Result<Vec<SenderReport>, crate::TrafficError>, Result<Watched, ControlError>) {
    let (halt, done) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let generator = scope.spawn(|| {
            let sent = generator.run(zero, duration, &halt);
            done.store(true, Ordering::Relaxed);
            sent
        });
        let watched = watch(line, Duration::MAX, stop, &done);
        halt.store(true, Ordering::Relaxed);
        (generator.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), watched)
    })
}

/// How watching the connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watched {
    /// The time is over, or a stop was requested.
    Over,
    /// The receiver has sent a message.
    Message,
}

/// Waits for what is still in flight.
fn linger(line: &Line, time: Duration, stop: &AtomicBool) -> Result<Watched, ControlError> {
    watch(line, time, stop, &AtomicBool::new(false))
}

/// Watches the connection until `time` is over, or `stop` or `done` is set. Returns an error if the connection is lost.
fn watch(line: &Line, time: Duration, stop: &AtomicBool, done: &AtomicBool) -> Result<Watched, ControlError> {
    let end = now().saturating_add(time);
    while !stop.load(Ordering::Relaxed) && !done.load(Ordering::Relaxed) {
        let left = end.saturating_since(now());
        if left.is_zero() {
            break;
        }
        match line.wait(left.min(LOOK))? {
            Waited::Nothing => {}
            Waited::Message => return Ok(Watched::Message),
            Waited::End => return Err(ControlError::Broken(std::io::ErrorKind::UnexpectedEof.into())),
        }
    }
    Ok(Watched::Over)
}
