//! The sender's side of a session: clock comparison, the run, the receiver's report.

use super::exchange::ClockReport;
use super::key::{Key, Role, nonce};
use super::line::{Line, Waited, std};
use super::message::{
    BEAT, Begin, ControlReply, ControlRequest, FramesTo, Hello, LONGEST_REPLY, LONGEST_REQUEST,
    LONGEST_START, Open, PROTOCOL, Report, RunRequest, write_message,
};
use super::reverse::ReverseFlows;
use super::{ControlError, boot_id};
use crate::TrafficError;
use crate::generator::{Generator, check_ecn};
use crate::host::{HostUse, HostWatch};
use crate::meter::{Meter, MeterParams};
use crate::plan::{DatagramOptions, FlowPlan, FlowTransport, PlanDirection};
use crate::rendezvous::{Called, call};
use crate::report::{MeterReport, SenderReport};
use crate::socket::{check_on_link, connect_control, link_of};
use cutline_direct::DirectAddress;
use cutline_signal::clock::{self, ClockEstimate, Exchange};
use cutline_sys::address::with_port;
use cutline_sys::now;
use cutline_sys::packet::LinkAddress;
use cutline_sys::thread::{SetOnPanic, joined};
use cutline_units::{Duration, Instant, Streams};
use std::collections::BTreeMap;
use std::net::SocketAddr;
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
    /// Time for which the receiver continues after the end of sending, to receive packets in flight.
    pub linger: Duration,
    /// The width of the intervals; `None` for no intervals.
    pub interval: Option<Duration>,
    /// The source of random numbers.
    pub streams: Streams,
    /// The key that the receiver must have; `None` for none.
    pub key: Option<Key>,
    /// The options of forward flows over datagrams.
    pub datagrams: DatagramOptions,
    /// True if the applications of forward flows wait until their last message has left the process, as with blocking sockets.
    pub blocking: bool,
}

/// The reports of both ends.
#[derive(Debug)]
pub struct BothReports {
    /// The receiver's address that was reached.
    pub receiver: SocketAddr,
    /// The senders' reports, in the order of the plans. Those of reverse flows have an error if the connection to the receiver
    /// was lost.
    pub sent: Vec<SenderReport>,
    /// The report of the flows' receivers: of the peer for forward flows, of this one for reverse flows. `None` if the
    /// connection to the receiver was lost and there are no reverse flows.
    pub received: Option<MeterReport>,
    /// The relation of the two clocks.
    pub clock: ClockReport,
    /// The actual duration of sending.
    pub elapsed: Duration,
    /// Work and losses of this host: of the thread that sends.
    pub sender_host: HostUse,
    /// Work and losses of the receiver's host: of the thread that receives there. `None` without its report.
    pub receiver_host: Option<HostUse>,
    /// The error that ended the session early; `None` if there was none or `stop` was set.
    pub error: Option<ControlError>,
}

/// Sends flows to a receiver, and receives those that it sends. The receiver's addresses are tried in their order; those of another family than
/// the first flow's source are left out. The function sets their `to` to the port that the receiver
/// reports. The connection to the receiver has the source address of the first flow, because a receiver accepts traffic from no
/// other one. The function returns when the duration is over, when `stop` is set or when the connection to the receiver is lost.
/// In each case the outcome has the measurements up to then.
///
/// # Errors
/// Returns an error if the session fails before sending starts, or if the generator or the meter fails.
pub fn send(
    receivers: &[SocketAddr],
    plans: Vec<FlowPlan>,
    params: SendParams,
    stop: &AtomicBool,
) -> Result<BothReports, ControlError> {
    let from = plans.first().and_then(|plan| plan.from);
    // The generator checks the plans of forward flows, and that all numbers are unique.
    Generator::new(plans.clone(), params.streams)?;
    check_ecn(plans.iter()).map_err(TrafficError::from)?;
    let (mut line, receiver) = connect_first(receivers, from)?;
    let their_boot_id = open(&mut line, receiver, params.key.as_ref())?;
    let before = compare(&mut line)?;
    let is_within_error = before.offset.as_nanos().unsigned_abs() <= before.error.as_nanos();
    let same = !their_boot_id.is_empty() && their_boot_id == boot_id() && is_within_error;
    let clock = ClockReport { same, before, after: None };
    let link = own_link(&line, &plans)?;
    let Started { port, token, frames_to } = ask_to_start(&mut line, &plans, params, link)?;
    let data = with_port(receiver, port);
    let frames = link.map(|link| receiver_of_frames(link, frames_to, receiver)).transpose()?;
    let plans: Vec<_> = plans.into_iter().map(|plan| addressed(plan, data, frames)).collect();
    let names: Vec<_> = plans.iter().map(|plan| (plan.id, plan.name.clone())).collect();
    let (forward, reverse): (Vec<_>, Vec<_>) =
        plans.into_iter().partition(|plan| plan.direction == PlanDirection::Forward);
    let called = open_paths(&mut line, &reverse, token, stop)?;
    let zero = begin(&mut line, &clock)?;
    let run = Run { forward, reverse, called, address: data, zero, token, clock: &clock, params };
    let (mut reports, (elapsed, sender_host), outcome) = run.execute(&mut line, stop)?;
    let Ending { report, after, error } = outcome;
    let receiver_host = report.as_ref().map(|report| report.host);
    let received = match (report, reports.received) {
        (Some(theirs), ours) => Some(join_reports(theirs, ours, &mut reports.sent)),
        (None, ours) => ours,
    };
    let sent = in_order(&names, reports.sent);
    let clock = ClockReport { after, ..clock };
    Ok(BothReports { receiver, sent, received, clock, elapsed, sender_host, receiver_host, error })
}

/// Measurements of this end.
struct Reports {
    sent: Vec<SenderReport>,
    /// `None` without reverse flows.
    received: Option<MeterReport>,
}

/// End of a session.
struct Ending {
    report: Option<Report>,
    after: Option<ClockEstimate>,
    error: Option<ControlError>,
}

/// Adds the receiver's measurements to ours. Its reports of flows that it did not receive, or did not send, are ignored.
fn join_reports(theirs: Report, ours: Option<MeterReport>, sent: &mut Vec<SenderReport>) -> MeterReport {
    let is_forward = |flow: u32| sent.iter().any(|report| report.flow == flow);
    let mut received = theirs.received;
    received.flows.retain(|report| is_forward(report.flow));
    let reverse = theirs.sent.into_iter().filter(|report| !is_forward(report.flow)).collect::<Vec<_>>();
    if let Some(ours) = ours {
        received.flows.extend(ours.flows);
        received.strangers = received.strangers.saturating_add(ours.strangers);
        received.overflowed = received.overflowed.saturating_add(ours.overflowed);
    }
    received.flows.sort_by_key(|report| report.flow);
    sent.extend(reverse);
    received
}

/// Returns a report for each flow, in the order of `names`, with the names that this end knows.
fn in_order(names: &[(u32, String)], sent: Vec<SenderReport>) -> Vec<SenderReport> {
    let mut by_flow: BTreeMap<u32, SenderReport> =
        sent.into_iter().map(|report| (report.flow, report)).collect();
    let report = |(flow, name): &(u32, String)| {
        let lost = || SenderReport {
            flow: *flow,
            error: Some("the receiver, which sent it, has not reported".to_owned()),
            ..SenderReport::default()
        };
        SenderReport { name: name.clone(), ..by_flow.remove(flow).unwrap_or_else(lost) }
    };
    names.iter().map(report).collect()
}

/// A run that the receiver has allowed.
struct Run<'r> {
    forward: Vec<FlowPlan>,
    reverse: Vec<FlowPlan>,
    called: Called,
    /// The port of the receiver's traffic.
    address: SocketAddr,
    zero: Instant,
    token: u64,
    clock: &'r ClockReport,
    params: SendParams,
}

impl Run<'_> {
    /// Sends and receives in threads, and watches the connection to the receiver meanwhile. Returns the duration of sending and the
    /// work of this host, too.
    fn execute(
        self,
        line: &mut Line,
        stop: &AtomicBool,
    ) -> Result<(Reports, (Duration, HostUse), Ending), ControlError> {
        let Self { forward, reverse, called, address, zero, token, clock, params } = self;
        let SendParams { duration, linger, interval, streams, datagrams, blocking, .. } = params;
        let (sends, receives) = (!forward.is_empty(), !reverse.is_empty());
        let generator = Generator::new(forward, streams)?
            .with_clock(clock.offset())
            .with_token(token)
            .with_buffer_waits(linger)
            .with_datagram_options(datagrams);
        let generator = if blocking { generator.with_blocking_writes() } else { generator };
        let generator = match interval {
            Some(width) => generator.with_intervals(width),
            None => generator,
        };
        let flows = reverse.iter().map(|plan| plan.id + 1).max().unwrap_or(0);
        let peer = Some(address.ip());
        let meter_params = MeterParams { flows, interval, token, peer, ..MeterParams::default() };
        let meter = Meter::of_called(called, address, meter_params);
        let (halt, done, close) = (AtomicBool::new(false), AtomicBool::new(false), AtomicBool::new(false));
        let (sent, received, elapsed, ending) = thread::scope(|scope| {
            let _ends = (SetOnPanic(&halt), SetOnPanic(&close));
            let generator = scope.spawn(|| {
                let _done = SetOnPanic(&done);
                let watch = HostWatch::begin();
                let sent = generator.run(zero, duration, &halt);
                let host = watch.end();
                // The flows of a direction may all have failed.
                done.store(sends && !receives, Ordering::Relaxed);
                (sent, host)
            });
            // It receives packets in flight until the receiver has reported.
            let meter = receives.then(|| scope.spawn(|| meter.run(zero, Duration::MAX, &close)));
            let end = zero.saturating_add(duration);
            let watched = watch(line, end.saturating_since(now()), stop, &done);
            // At the end of the run the generator ends by itself, and measures packets that its kernel still sends.
            let is_early = stop.load(Ordering::Relaxed) || !matches!(watched, Ok(Watched::Over));
            halt.store(is_early, Ordering::Relaxed);
            let elapsed = now().saturating_since(zero).min(duration);
            let mut beat = Beat::new();
            while !generator.is_finished() {
                // Messages of the receiver meanwhile are read below.
                beat.send(line);
                thread::park_timeout(std(LOOK));
            }
            let sent = joined(generator);
            let linger = end.saturating_add(linger).saturating_since(now());
            let mut ending = Ending { report: None, after: None, error: None };
            let ended = watched.and_then(|watched| {
                let lingered = if watched == Watched::Over { pause(line, linger, stop)? } else { watched };
                bring_together(line, lingered, &mut ending)
            });
            ending.error = ended.err();
            close.store(true, Ordering::Relaxed);
            (sent, meter.map(joined).transpose(), elapsed, ending)
        });
        let (sent, host) = sent;
        Ok((Reports { sent: sent?, received: received? }, (elapsed, host), ending))
    }
}

/// Requests the receiver's report. A receiver that was stopped has sent it without a request.
fn bring_together(line: &mut Line, watched: Watched, ending: &mut Ending) -> Result<(), ControlError> {
    if watched == Watched::Message {
        let reply = line.receive(LONGEST_REPLY, LONGEST_REPORT)?;
        let Some(ControlReply::Report(report)) = reply else {
            return Err(ControlError::Unexpected("a reply without a request".to_owned()));
        };
        ending.report = Some(*report);
        return Err(ControlError::Stopped);
    }
    ending.after = Some(compare(line)?);
    match ask_within(line, &ControlRequest::Finish, LONGEST_REPORT)? {
        ControlReply::Report(report) => ending.report = Some(*report),
        other => return unexpected(&other),
    }
    Ok(())
}

/// Connects to the first address that accepts.
fn connect_first(
    receivers: &[SocketAddr],
    from: Option<SocketAddr>,
) -> Result<(Line, SocketAddr), ControlError> {
    let fits = |receiver: &&SocketAddr| from.is_none_or(|from| from.is_ipv4() == receiver.is_ipv4());
    let mut failed = None;
    for receiver in receivers.iter().filter(fits) {
        match connect(*receiver, from) {
            Ok(line) => return Ok((line, *receiver)),
            Err(error) => failed = Some(error),
        }
    }
    Err(failed.unwrap_or_else(|| {
        let why = match from {
            Some(from) => format!("the receiver has no address of the family of {}", from.ip()),
            None => "the receiver has no address".to_owned(),
        };
        ControlError::Path(why)
    }))
}

fn connect(receiver: SocketAddr, from: Option<SocketAddr>) -> Result<Line, ControlError> {
    let line = connect_control(from, receiver, PATIENCE).and_then(|stream| Line::new(stream, None));
    line.map_err(|source| ControlError::Unreachable { address: receiver.to_string(), source })
}

/// Opens the session, and returns the receiver's boot id. With a key, both ends have proved that they have it.
fn open(line: &mut Line, receiver: SocketAddr, key: Option<&Key>) -> Result<String, ControlError> {
    let (hello, sent) = greet(line, receiver)?;
    let nonce = nonce().map_err(ControlError::Broken)?;
    let message = write_message(&ControlRequest::Open(Open { nonce })).map_err(ControlError::Broken)?;
    match key {
        None if hello.key => return Err(ControlError::KeyRequired),
        Some(_) if !hello.key => return Err(ControlError::Keyless),
        Some(key) => line.seal(key, Role::Sender, &sent, message.trim_ascii_end()),
        None => {}
    }
    line.send_bytes(&message, PATIENCE)?;
    match reply(line, PATIENCE)? {
        ControlReply::Opened { boot_id } => Ok(boot_id),
        other => unexpected(&other),
    }
}

/// Receives the first message of the receiver, also as it was sent.
fn greet(line: &mut Line, receiver: SocketAddr) -> Result<(Hello, Vec<u8>), ControlError> {
    let stranger = || ControlError::Stranger(receiver.to_string());
    let sent = line.receive_line(LONGEST_REQUEST, PATIENCE).ok().flatten().ok_or_else(stranger)?;
    match serde_json::from_slice(&sent) {
        Ok(ControlReply::Hello(hello)) if hello.cutline_tg == PROTOCOL => Ok((hello, sent)),
        Ok(ControlReply::Hello(hello)) => Err(ControlError::Version { theirs: hello.cutline_tg }),
        Ok(ControlReply::Refused(why)) => Err(ControlError::Refused(why)),
        Ok(_) | Err(_) => Err(stranger()),
    }
}

fn ask(line: &mut Line, request: &ControlRequest) -> Result<ControlReply, ControlError> {
    ask_within(line, request, PATIENCE)
}

fn ask_within(
    line: &mut Line,
    request: &ControlRequest,
    time: Duration,
) -> Result<ControlReply, ControlError> {
    line.send(request, PATIENCE)?;
    reply(line, time)
}

fn reply(line: &mut Line, time: Duration) -> Result<ControlReply, ControlError> {
    match line.receive(LONGEST_REPLY, time)? {
        Some(ControlReply::Refused(why)) => Err(ControlError::Refused(why)),
        Some(reply) => Ok(reply),
        None => Err(ControlError::Broken(std::io::ErrorKind::UnexpectedEof.into())),
    }
}

fn unexpected<T>(reply: &ControlReply) -> Result<T, ControlError> {
    let shown: String = format!("{reply:?}").chars().take(60).collect();
    Err(ControlError::Unexpected(shown))
}

fn compare(line: &mut Line) -> Result<ClockEstimate, ControlError> {
    let mut exchanges = Vec::new();
    for _ in 0..EXCHANGES {
        let sent = now();
        match ask(line, &ControlRequest::Clock)? {
            ControlReply::Clock { came_ns, left_ns } => exchanges.push(Exchange {
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

/// Returns the interface of the connection to the receiver with its link address, if a flow sends frames.
fn own_link(line: &Line, plans: &[FlowPlan]) -> Result<Option<(u32, LinkAddress)>, ControlError> {
    if !plans.iter().any(|plan| matches!(plan.transport, FlowTransport::Direct { .. })) {
        return Ok(None);
    }
    let local = line.stream().local_addr().map_err(ControlError::Broken)?;
    let failed = |why| ControlError::Path(format!("frames cannot be sent: {why}"));
    link_of(local.ip()).map(Some).map_err(failed)
}

/// Returns the address of the receiver of frames.
fn receiver_of_frames(
    (interface, _): (u32, LinkAddress),
    to: Option<FramesTo>,
    receiver: SocketAddr,
) -> Result<SocketAddr, ControlError> {
    let missing = || ControlError::Path("the receiver has sent no address for frames".to_owned());
    let FramesTo { link, port } = to.ok_or_else(missing)?;
    check_on_link(receiver.ip(), link).map_err(ControlError::Path)?;
    Ok(DirectAddress { interface, link, port }.socket_addr())
}

/// Returns a plan with the address of the receiver.
fn addressed(plan: FlowPlan, data: SocketAddr, frames: Option<SocketAddr>) -> FlowPlan {
    match (&plan.transport, frames) {
        (FlowTransport::Direct { .. }, Some(to)) => FlowPlan { to, from: None, ..plan },
        _ => FlowPlan { to: data, ..plan },
    }
}

/// Reply to the request for a run.
struct Started {
    port: u16,
    token: u64,
    frames_to: Option<FramesTo>,
}

fn ask_to_start(
    line: &mut Line,
    plans: &[FlowPlan],
    params: SendParams,
    link: Option<(u32, LinkAddress)>,
) -> Result<Started, ControlError> {
    let flows = plans.iter().map(|plan| plan.id).max().map_or(0, |last| last.saturating_add(1));
    let start = RunRequest {
        flows,
        until_ns: params.duration.as_nanos(),
        interval_ns: params.interval.map(Duration::as_nanos),
        seed: params.streams.seed(),
        receive_buffer: params.datagrams.receive_buffer,
        frames_from: link.map(|(_, link)| link),
        reverse: ReverseFlows::of(plans),
    };
    let message = write_message(&ControlRequest::Start(start)).map_err(ControlError::Broken)?;
    if message.len() as u64 > LONGEST_START - 100 {
        let why = "the plan of the receiver's flows is too long: use fewer flows, or a shorter trace";
        return Err(ControlError::Path(why.to_owned()));
    }
    line.send_bytes(&message, PATIENCE)?;
    match reply(line, PATIENCE)? {
        ControlReply::Ready { port, token, frames_to } => Ok(Started { port, token, frames_to }),
        other => unexpected(&other),
    }
}

/// Opens the connections of the flows that the receiver sends, and proves their paths.
fn open_paths(
    line: &mut Line,
    plans: &[FlowPlan],
    token: u64,
    stop: &AtomicBool,
) -> Result<Called, ControlError> {
    if plans.is_empty() {
        return Ok(Called::default());
    }
    let called = call(plans, token, PATIENCE, stop).map_err(ControlError::Path)?;
    match ask(line, &ControlRequest::Gather)? {
        ControlReply::Gathered => Ok(called),
        other => unexpected(&other),
    }
}

/// Begins the run, and returns its zero.
fn begin(line: &mut Line, clock: &ClockReport) -> Result<Instant, ControlError> {
    let zero = now() + LEAD + clock.before.round_trip * 2;
    let offset = clock.offset();
    let begin = Begin { zero_ns: offset.theirs(zero).as_nanos(), offset_ns: offset.as_nanos() };
    match ask(line, &ControlRequest::Begin(begin))? {
        ControlReply::Begun => Ok(zero),
        other => unexpected(&other),
    }
}

/// Sends signs of life to the receiver at intervals.
struct Beat {
    next: Instant,
}

impl Beat {
    fn new() -> Self {
        Self { next: now() }
    }

    /// Sends a message if it is time. The reader of a connection notices its loss.
    fn send(&mut self, line: &mut Line) {
        if now() >= self.next {
            let _lost = line.send(&ControlRequest::Alive, PATIENCE);
            self.next = now().saturating_add(BEAT);
        }
    }
}

/// End of watching the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watched {
    /// The time is over, or a stop was requested.
    Over,
    /// The receiver has sent a message.
    Message,
}

/// Waits for the packets in flight.
fn pause(line: &mut Line, time: Duration, stop: &AtomicBool) -> Result<Watched, ControlError> {
    watch(line, time, stop, &AtomicBool::new(false))
}

/// Watches the connection until `time` is over, or `stop` or `done` is set. Returns an error if the connection is lost.
fn watch(
    line: &mut Line,
    time: Duration,
    stop: &AtomicBool,
    done: &AtomicBool,
) -> Result<Watched, ControlError> {
    let end = now().saturating_add(time);
    let mut beat = Beat::new();
    while !stop.load(Ordering::Relaxed) && !done.load(Ordering::Relaxed) {
        let left = end.saturating_since(now());
        if left.is_zero() {
            break;
        }
        match line.wait(left.min(LOOK))? {
            Waited::Nothing => beat.send(line),
            Waited::Message => return Ok(Watched::Message),
            Waited::End => return Err(ControlError::Broken(std::io::ErrorKind::UnexpectedEof.into())),
        }
    }
    Ok(Watched::Over)
}
