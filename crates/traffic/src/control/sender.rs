//! The sender's side of a session: clock comparison, the run, the receiver's report.

use super::exchange::{ClockEstimate, ClockReport, Exchange, estimate};
use super::{
    ControlError, Hello, LONGEST_REPLY, Line, PROTOCOL, Reply, Request, Start, Waited, boot_id, std,
};
use crate::generator::Generator;
use crate::plan::FlowPlan;
use crate::report::{MeterReport, SenderReport};
use cutline_sys::now;
use cutline_units::{Duration, Instant, Streams};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The interval at which the connection and the stop flag are checked.
const LOOK: Duration = Duration::from_millis(50);
/// The longest time that the receiver may take for a reply.
const PATIENCE: Duration = Duration::from_secs(10);
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

/// Sends flows to a receiver. The function sets their `to` to the port that the receiver reports. It returns when the
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
    let mut line = connect(receiver)?;
    let hello = greet(&mut line, receiver)?;
    let before = compare(&mut line)?;
    let is_within_error = before.offset.as_nanos().unsigned_abs() <= before.error().as_nanos();
    let same = !hello.boot_id.is_empty() && hello.boot_id == boot_id() && is_within_error;
    let clock = ClockReport { same, before, after: None };
    let zero = now() + LEAD + before.round_trip * 2;
    let data = SocketAddr::new(receiver.ip(), ask_to_start(&mut line, plans.len(), zero, &clock, params)?);
    let plans = plans.into_iter().map(|plan| FlowPlan { to: data, ..plan }).collect();
    let generator = Generator::new(plans, params.streams)?.with_clock(clock.offset());
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
        let reply = line.receive(LONGEST_REPLY).map_err(ControlError::Broken)?;
        let Some(Reply::Report(report)) = reply else {
            return Err(ControlError::Unexpected("a reply without a request".to_owned()));
        };
        outcome.received = Some(*report);
        return Err(ControlError::Stopped);
    }
    outcome.clock.after = Some(compare(line)?);
    match ask(line, &Request::Finish)? {
        Reply::Report(report) => outcome.received = Some(*report),
        other => return unexpected(&other),
    }
    Ok(())
}

fn connect(receiver: SocketAddr) -> Result<Line, ControlError> {
    let stream = TcpStream::connect_timeout(&receiver, std(PATIENCE));
    let line = stream.and_then(|stream| {
        stream.set_read_timeout(Some(std(PATIENCE)))?;
        stream.set_write_timeout(Some(std(PATIENCE)))?;
        Line::new(stream)
    });
    line.map_err(|source| ControlError::Unreachable { address: receiver.to_string(), source })
}

fn greet(line: &mut Line, receiver: SocketAddr) -> Result<Hello, ControlError> {
    let stranger = || ControlError::Stranger(receiver.to_string());
    match line.receive(super::LONGEST_REQUEST) {
        Ok(Some(Reply::Hello(hello))) if hello.cutline_tg == PROTOCOL => Ok(hello),
        Ok(Some(Reply::Hello(hello))) => Err(ControlError::Version { theirs: hello.cutline_tg }),
        Ok(_) | Err(_) => Err(stranger()),
    }
}

fn ask(line: &mut Line, request: &Request) -> Result<Reply, ControlError> {
    line.send(request).map_err(ControlError::Broken)?;
    line.stream().set_read_timeout(Some(std(PATIENCE))).map_err(ControlError::Broken)?;
    match line.receive(LONGEST_REPLY).map_err(ControlError::Broken)? {
        Some(Reply::Refused(why)) => Err(ControlError::Refused(why)),
        Some(reply) => Ok(reply),
        None => Err(ControlError::Broken(std::io::ErrorKind::UnexpectedEof.into())),
    }
}

fn unexpected<T>(reply: &Reply) -> Result<T, ControlError> {
    let shown: String = format!("{reply:?}").chars().take(60).collect();
    Err(ControlError::Unexpected(shown))
}

fn compare(line: &mut Line) -> Result<ClockEstimate, ControlError> {
    let mut exchanges = Vec::new();
    for _ in 0..EXCHANGES {
        let left = now().as_nanos();
        match ask(line, &Request::Clock)? {
            Reply::Clock { came_ns, left_ns } => exchanges.push(Exchange {
                left,
                came: came_ns,
                left_there: left_ns,
                came_back: now().as_nanos(),
            }),
            other => return unexpected(&other),
        }
    }
    estimate(&exchanges)
        .ok_or_else(|| ControlError::Unexpected("invalid times in the clock exchange".to_owned()))
}

fn ask_to_start(
    line: &mut Line,
    flows: usize,
    zero: Instant,
    clock: &ClockReport,
    params: SendParams,
) -> Result<u16, ControlError> {
    let start = Start {
        flows: flows.try_into().unwrap_or(u32::MAX),
        zero_ns: clock.offset().theirs(zero).as_nanos(),
        until_ns: params.duration.as_nanos(),
        interval_ns: params.interval.map(Duration::as_nanos),
    };
    match ask(line, &Request::Start(start))? {
        Reply::Ready { port } => Ok(port),
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
        match line.wait(left.min(LOOK)).map_err(ControlError::Broken)? {
            Waited::Nothing => {}
            Waited::Message => return Ok(Watched::Message),
            Waited::End => return Err(ControlError::Broken(std::io::ErrorKind::UnexpectedEof.into())),
        }
    }
    Ok(Watched::Over)
}
