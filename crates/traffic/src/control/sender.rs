//! The sender's side of a session: clocks, the run, what the receiver found.

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

/// How often the connection and a request to stop are looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How long the receiver may take for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many times clocks are compared.
const EXCHANGES: usize = 16;
/// From the start's request to the run's zero: both ends have to be ready by then.
const LEAD: Duration = Duration::from_millis(100);

/// What is set for a session.
#[derive(Clone, Copy, Debug)]
pub struct SendParams {
    /// How long is sent.
    pub duration: Duration,
    /// How long the receiver goes on afterwards, for what is still on its way.
    pub linger: Duration,
    /// The width of the intervals that are kept.
    pub interval: Option<Duration>,
    /// Where random numbers come from.
    pub streams: Streams,
}

/// What both ends have found.
#[derive(Debug)]
pub struct Outcome {
    /// What was sent, in the order of the plans.
    pub sent: Vec<SenderReport>,
    /// What came; `None` if the receiver was lost.
    pub received: Option<MeterReport>,
    /// The two clocks.
    pub clock: ClockReport,
    /// How long was sent.
    pub elapsed: Duration,
    /// Why it ended before its time, if not by a request to stop.
    pub error: Option<ControlError>,
}

/// Sends flows to a receiver; their `to` is set to the port that it says. Ends at its time, or when `stop` is set, or when
/// the receiver is gone: then with what there is.
///
/// # Errors
/// When it did not come to sending.
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

/// Asks for what the receiver has found, unless it has told by itself because it was stopped.
fn bring_together(line: &mut Line, watched: Watched, outcome: &mut Outcome) -> Result<(), ControlError> {
    if watched == Watched::Told {
        let reply = line.receive(LONGEST_REPLY).map_err(ControlError::Broken)?;
        let Some(Reply::Report(report)) = reply else {
            return Err(ControlError::Unexpected("an answer to no question".to_owned()));
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
    estimate(&exchanges).ok_or_else(|| ControlError::Unexpected("times that cannot be".to_owned()))
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

/// The generator at work, and somebody who watches whether the receiver is still there.
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
    /// The time is over, or one was asked to stop.
    Over,
    /// The receiver has something to tell.
    Told,
}

/// Lets what is on its way arrive.
fn linger(line: &Line, time: Duration, stop: &AtomicBool) -> Result<Watched, ControlError> {
    watch(line, time, stop, &AtomicBool::new(false))
}

/// Until `time` is over, or `stop` or `done` is set; an error if the receiver is lost before.
fn watch(line: &Line, time: Duration, stop: &AtomicBool, done: &AtomicBool) -> Result<Watched, ControlError> {
    let end = now().saturating_add(time);
    while !stop.load(Ordering::Relaxed) && !done.load(Ordering::Relaxed) {
        let left = end.saturating_since(now());
        if left.is_zero() {
            break;
        }
        match line.wait(left.min(LOOK)).map_err(ControlError::Broken)? {
            Waited::Nothing => {}
            Waited::Message => return Ok(Watched::Told),
            Waited::End => return Err(ControlError::Broken(std::io::ErrorKind::UnexpectedEof.into())),
        }
    }
    Ok(Watched::Over)
}
