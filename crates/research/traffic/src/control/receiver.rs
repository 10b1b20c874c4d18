//! The receiver's side of a session. The meter runs in a separate thread.

use super::key::{Key, token};
use super::line::{Line, Waited};
use super::message::{
    Begin, ControlReply, ControlRequest, FramesTo, LONGEST_REQUEST, LONGEST_SILENCE, LONGEST_START, Report,
    RunRequest,
};
use super::prefix::Prefix;
use super::reverse::{ReverseFlows, fixed_rate};
use super::session_listener::{Entered, SessionListener};
use super::{ControlError, boot_id};
use crate::TrafficError;
use crate::generator::Generator;
use crate::host::{HostUse, HostWatch};
use crate::meter::{FrameMeter, Meter, MeterParams};
use crate::plan::{DatagramOptions, FlowPlan, FlowTransport};
use crate::rendezvous::{Gathered, Gathering};
use crate::report::{MeterReport, SenderReport, Window};
use crate::socket::{buffer_size, detect_absence, listen_for_frames};
use cutline_direct::{DirectAddress, DirectSocket};
use cutline_signal::clock::ClockOffset;
use cutline_sys::address::with_port;
use cutline_sys::now;
use cutline_sys::reactor::LONGEST_WAIT;
use cutline_sys::thread::{SetOnPanic, joined};
use cutline_units::{Duration, Instant, Rate, Streams};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The interval at which the stop flag and new connections are checked.
const LOOK: Duration = Duration::from_millis(100);
/// The longest time from the beginning of a session to `start`, with the clock comparison.
const PREPARATION: Duration = Duration::from_secs(30);
/// The longest silence of a sender after the run.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest time for a message that has begun to arrive, or for a short reply.
const MESSAGE: Duration = Duration::from_secs(10);
/// The largest distance of the run's zero from the present time.
const FARTHEST_ZERO: Duration = Duration::from_secs(60);
/// The shortest interval.
const LEAST_INTERVAL: Duration = Duration::from_millis(1);
/// The largest number of intervals of all flows together. Each takes some 60 bytes of memory.
const MOST_INTERVALS: u64 = 4_000_000;
/// The largest number of bytes that wait in this process for all TCP connections that it sends to. Each message takes some 16
/// bytes of memory, however short it is.
const MOST_WAITING: u64 = 16 << 20;

/// The parameters of a receiver: the hosts that may measure, and limits.
#[derive(Clone, Debug)]
pub struct ReceiverParams {
    /// The port of the traffic; with 0 the kernel chooses a free port for each session.
    pub data_port: u16,
    /// The key that senders must have; `None` for none.
    pub key: Option<Key>,
    /// The addresses of senders; empty for all.
    pub allow: Vec<Prefix>,
    /// The largest number of flows of a session.
    pub most_flows: u32,
    /// The longest duration of sending.
    pub longest_run: Duration,
    /// The largest payload rate of all datagrams that the receiver sends to a sender. Flows of a fixed rate above it are refused
    /// before the run; datagrams above it during the run are not sent.
    pub most_rate: Rate,
    /// The largest number of connections of one address, or of one IPv6 network, within a minute.
    pub most_connections: u32,
}

impl Default for ReceiverParams {
    fn default() -> Self {
        Self {
            data_port: 0,
            key: None,
            allow: Vec::new(),
            most_flows: 10_000,
            longest_run: Duration::from_secs(3600),
            most_rate: Rate::from_mbps(100),
            most_connections: 60,
        }
    }
}

/// Serves senders, one at a time.
#[derive(Debug)]
pub struct Receiver {
    listener: SessionListener,
    params: ReceiverParams,
}

/// The result of a session with a sender.
#[derive(Debug)]
pub struct SenderSession {
    /// The sender's address and port.
    pub peer: SocketAddr,
    /// The planned duration of sending.
    pub until: Duration,
    /// The width of the intervals.
    pub interval: Option<Duration>,
    /// The measurements of the flows that it received; `None` if the session ended before the run.
    pub report: Option<MeterReport>,
    /// The measurements of the flows that it sent.
    pub sent: Vec<SenderReport>,
    /// The error that ended the session early.
    pub error: Option<ControlError>,
}

impl Receiver {
    /// Listens on all of `addresses` for senders.
    ///
    /// # Errors
    /// Returns an error if an address is not available.
    pub fn bind(addresses: &[SocketAddr], params: ReceiverParams) -> Result<Self, TrafficError> {
        let listen = |address: &SocketAddr| {
            let listener = TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let listen = |address: &SocketAddr| {
            listen(address).map_err(TrafficError::system(format!("cannot listen on {address}")))
        };
        let listeners = addresses.iter().map(listen).collect::<Result<_, _>>()?;
        let listener =
            SessionListener::new(listeners, params.key, params.allow.clone(), params.most_connections);
        Ok(Self { listener, params })
    }

    /// Returns the addresses and ports on which the receiver listens.
    ///
    /// # Errors
    /// Returns an error if the system does not report an address.
    pub fn addresses(&self) -> Result<Vec<SocketAddr>, TrafficError> {
        let addresses: io::Result<_> =
            self.listener.listeners().iter().map(TcpListener::local_addr).collect();
        addresses.map_err(TrafficError::system("cannot read the address of the listening socket"))
    }

    /// Returns the number of connections that were refused so far.
    pub const fn refused(&self) -> u64 {
        self.listener.refused()
    }

    /// Waits for the next sender and serves it to the end. Returns `None` if `stop` is set before a sender was let in.
    ///
    /// # Errors
    /// Returns an error if the receiver cannot accept connections. An error of a session is in the [`SenderSession`].
    pub fn session(&mut self, stop: &AtomicBool) -> Result<Option<SenderSession>, TrafficError> {
        while !stop.load(Ordering::Relaxed) {
            self.listener.wait(LONGEST_WAIT);
            let entered =
                self.listener.look(false).map_err(TrafficError::system("cannot listen for senders"))?;
            if let Some(entered) = entered {
                return Ok(Some(self.serve(entered, stop)));
            }
        }
        Ok(None)
    }

    fn serve(&mut self, entered: Entered, stop: &AtomicBool) -> SenderSession {
        let Entered { mut line, peer } = entered;
        let (until, interval) = (Duration::ZERO, None);
        let mut session =
            SenderSession { peer, until, interval, report: None, sent: Vec::new(), error: None };
        let done = line.send(&ControlReply::Opened { boot_id: boot_id() }, MESSAGE).and_then(|()| {
            // A peer that vanishes must not be sent to for the rest of the run.
            detect_absence(line.stream()).map_err(ControlError::Broken)?;
            let mut phase = Phase { line: &mut line, listener: &mut self.listener, stop };
            let Some(ControlRequest::Start(start)) = phase.answer(PREPARATION, LONGEST_START)? else {
                return Err(ControlError::Unexpected("a message other than `clock` and `start`".to_owned()));
            };
            measure(&mut phase, &self.params, &start, &mut session)
        });
        session.error = done.err();
        session
    }
}

/// Serves a run: checks it, collects the paths of the flows to send, receives and sends, and reports.
fn measure(
    phase: &mut Phase<'_>,
    allowed: &ReceiverParams,
    start: &RunRequest,
    session: &mut SenderSession,
) -> Result<(), ControlError> {
    let checked = check(start, allowed, session.peer);
    let Run { plans, params } = checked.map_err(|why| phase.refuse(why))?;
    let local = phase.line.stream().local_addr().map_err(ControlError::Broken)?;
    let data = with_port(local, allowed.data_port);
    let meter = Meter::bind(data, params).map_err(|error| phase.refuse(error.to_string()))?;
    let frames = start.frames_from.map(|_| listen_for_frames(local.ip(), start.receive_buffer));
    let frames =
        frames.transpose().map_err(|why| phase.refuse(format!("it cannot receive frames: {why}")))?;
    let frames_to = frames.as_ref().map(DirectSocket::local);
    let frames_to = frames_to.map(|DirectAddress { link, port, .. }| FramesTo { link, port });
    let until = Duration::from_nanos(start.until_ns);
    (session.until, session.interval) = (until, params.interval);
    let address = meter.address();
    let ready = ControlReply::Ready { port: address.port(), token: params.token, frames_to };
    phase.line.send(&ready, MESSAGE)?;
    let gathered = gather(phase, meter, &plans, params, session.peer.ip())?;
    let Some(ControlRequest::Begin(Begin { zero_ns, offset_ns })) =
        phase.answer(PREPARATION, LONGEST_REQUEST)?
    else {
        return Err(ControlError::Unexpected("a message other than `clock` and `begin`".to_owned()));
    };
    let zero = Instant::from_nanos(zero_ns);
    let away = Duration::from_nanos(zero_ns.abs_diff(now().as_nanos()));
    if away > FARTHEST_ZERO {
        return Err(
            phase.refuse(format!("the run's zero is {away} from now: must be at most {FARTHEST_ZERO}"))
        );
    }
    let Gathered { listener, datagrams, sockets, strangers } = gathered;
    let buffer = frames.as_ref().map_or_else(|| buffer_size(&datagrams), buffer_size);
    let frames = frames.zip(start.frames_from).map(|(socket, peer)| FrameMeter::new(socket, peer));
    let meter = Meter::new(listener, datagrams, address, params).with_frames(frames);
    let generator = Generator::new(plans, Streams::new(start.seed))?
        .with_clock(ClockOffset::from_nanos(offset_ns.saturating_neg()))
        .with_token(params.token)
        .with_buffer_waits(PATIENCE)
        .with_sockets(sockets)
        .with_ceiling(allowed.most_rate);
    let generator = match params.interval {
        Some(width) => generator.with_intervals(width),
        None => generator,
    };
    phase.line.send(&ControlReply::Begun, MESSAGE)?;
    let ended = AtomicBool::new(false);
    let last = until + PATIENCE;
    let (answered, sent, received) = thread::scope(|scope| {
        let _end = SetOnPanic(&ended);
        let meter = scope.spawn(|| {
            let watch = HostWatch::begin();
            let received = meter.run(zero, last, &ended);
            (received, HostUse { receive_buffer: buffer, ..watch.end() })
        });
        let generator = scope.spawn(|| generator.run(zero, until, &ended));
        let patience = zero.saturating_add(last).saturating_since(now());
        let answered = phase.answer_within(patience, LONGEST_REQUEST, Some(LONGEST_SILENCE));
        ended.store(true, Ordering::Relaxed);
        (answered, joined(generator), joined(meter))
    });
    session.sent = sent?;
    let (received, host) = received;
    let received = session.report.insert(received?);
    received.strangers = received.strangers.saturating_add(strangers);
    match answered? {
        // Without a request the receiver was stopped; the sender still gets the report.
        Some(ControlRequest::Finish) | None => {
            let report = Report { received: received.clone(), sent: session.sent.clone(), host };
            phase.line.send(&ControlReply::Report(Box::new(report)), PATIENCE)
        }
        Some(_) => Err(ControlError::Unexpected("a second `start`".to_owned())),
    }
}

/// Collects the connections and proven paths of the flows to send, until the sender requests their completeness.
fn gather(
    phase: &mut Phase<'_>,
    meter: Meter,
    plans: &[FlowPlan],
    params: MeterParams,
    peer: IpAddr,
) -> Result<Gathered, ControlError> {
    let broken =
        |error: io::Error| ControlError::Traffic(TrafficError::system("cannot open the paths")(error));
    let sockets = meter.into_sockets().expect("a meter that was bound listens");
    let mut gathering = Gathering::new(sockets, plans, params.token, peer);
    if !plans.is_empty() {
        let (asked, ended) = (AtomicBool::new(false), AtomicBool::new(false));
        let (answered, missing) = thread::scope(|scope| {
            let _end = SetOnPanic(&ended);
            let missing = scope.spawn(|| gathering.run(&asked, &ended));
            let answered = phase.answer(PREPARATION, LONGEST_REQUEST);
            let flag = if matches!(answered, Ok(Some(ControlRequest::Gather))) { &asked } else { &ended };
            flag.store(true, Ordering::Relaxed);
            (answered, joined(missing))
        });
        let Some(ControlRequest::Gather) = answered? else {
            return Err(ControlError::Unexpected("a message other than `clock` and `gather`".to_owned()));
        };
        if missing > 0 {
            return Err(
                phase.refuse(format!("{missing} of the {} flows that it sends have no path", plans.len()))
            );
        }
        phase.line.send(&ControlReply::Gathered, MESSAGE)?;
    }
    gathering.finish().map_err(broken)
}

/// Connection of a session, and the work that must not wait meanwhile.
struct Phase<'s> {
    line: &'s mut Line,
    listener: &'s mut SessionListener,
    stop: &'s AtomicBool,
}

impl Phase<'_> {
    /// Answers `clock` and notes `alive` requests until another request arrives, of at most `longest` bytes, and returns that one. Returns `None`
    /// if `stop` is set. Other senders are refused meanwhile. However many requests arrive, it lasts no longer than `patience`.
    fn answer(&mut self, patience: Duration, longest: u64) -> Result<Option<ControlRequest>, ControlError> {
        self.answer_within(patience, longest, None)
    }

    /// As [`answer`](Self::answer), for a sender that must not be silent for longer than `silence`.
    fn answer_within(
        &mut self,
        patience: Duration,
        longest: u64,
        silence: Option<Duration>,
    ) -> Result<Option<ControlRequest>, ControlError> {
        let gone = || ControlError::Broken(io::ErrorKind::UnexpectedEof.into());
        let tired = now().saturating_add(patience);
        let mut heard = now();
        loop {
            let waited = self.line.wait(LOOK)?;
            let came_ns = now().as_nanos();
            if self.stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            if now() >= tired {
                return Err(ControlError::Unexpected(format!("no further request within {patience}")));
            }
            match waited {
                Waited::Nothing => {
                    if let Some(silence) = silence.filter(|silence| now() >= heard.saturating_add(*silence)) {
                        return Err(ControlError::Silent(silence));
                    }
                    // An error of the listening socket must not end a session. The next one reports it.
                    let _later = self.listener.look(true);
                    continue;
                }
                Waited::End => return Err(gone()),
                Waited::Message => heard = now(),
            }
            match self.line.receive(longest, MESSAGE)?.ok_or_else(gone)? {
                ControlRequest::Clock => {
                    let left_ns = now().as_nanos();
                    self.line.send(&ControlReply::Clock { came_ns, left_ns }, MESSAGE)?;
                }
                ControlRequest::Alive => {}
                other => return Ok(Some(other)),
            }
        }
    }

    /// Refuses a request, and returns the error of the session.
    fn refuse(&mut self, why: String) -> ControlError {
        // The sender may be gone already.
        let _gone = self.line.send(&ControlReply::Refused(why.clone()), MESSAGE);
        ControlError::Unexpected(why)
    }
}

/// A run that is allowed.
struct Run {
    /// The flows to send.
    plans: Vec<FlowPlan>,
    params: MeterParams,
}

/// Checks the run that a sender requests.
fn check(start: &RunRequest, allowed: &ReceiverParams, peer: SocketAddr) -> Result<Run, String> {
    let RunRequest { flows, until_ns, interval_ns, receive_buffer, seed: _, frames_from: _, ref reverse } =
        *start;
    let (most_flows, longest_run) = (allowed.most_flows, allowed.longest_run);
    let (until, interval) = (Duration::from_nanos(until_ns), interval_ns.map(Duration::from_nanos));
    if !(1..=most_flows).contains(&flows) {
        return Err(format!("flows = {flows}: must be 1..{most_flows} (its --max-flows)"));
    }
    if until > longest_run {
        return Err(format!("duration = {until}: must be at most {longest_run} (its --max-duration)"));
    }
    if let Some(interval) = interval {
        let intervals = (until + PATIENCE).as_nanos().div_ceil(interval.as_nanos().max(1));
        let fits = intervals.saturating_mul(flows.into()) <= MOST_INTERVALS;
        if interval < LEAST_INTERVAL || !fits {
            return Err(format!(
                "interval = {interval}: must be at least {LEAST_INTERVAL}, and long enough for at most \
                 {MOST_INTERVALS} intervals of all flows together"
            ));
        }
    }
    if let Some(bytes) = receive_buffer.filter(|bytes| !(1..=DatagramOptions::LARGEST_BUFFER).contains(bytes))
    {
        let most = DatagramOptions::LARGEST_BUFFER;
        return Err(format!("receive_buffer = {bytes} B: must be 1..{most} B"));
    }
    let plans = check_reverse(reverse, flows, allowed.most_rate, peer)?;
    let token = token().map_err(|error| format!("it has no random numbers: {error}"))?;
    let peer = Some(peer.ip());
    let params = MeterParams { flows, window: Window::ALL, interval, token, receive_buffer, peer };
    Ok(Run { plans, params })
}

/// Checks the flows that a sender asks the receiver to send, and returns their plans. They go to sockets that the sender opens;
/// `peer` represents these until then.
fn check_reverse(
    groups: &[ReverseFlows],
    flows: u32,
    most_rate: Rate,
    peer: SocketAddr,
) -> Result<Vec<FlowPlan>, String> {
    let count: usize = groups.iter().map(|group| group.members.len()).sum();
    if count > flows as usize {
        return Err(format!("flows = {flows}: must be at least the {count} that it sends"));
    }
    let mut plans = Vec::with_capacity(count);
    for group in groups {
        plans.extend(group.plans(peer)?);
    }
    let mut rate = Rate::ZERO;
    for plan in &mut plans {
        if plan.id >= flows {
            return Err(format!("flow = {}: must be below {flows}, the number of flows", plan.id));
        }
        rate = Rate::from_bps(rate.as_bps().saturating_add(fixed_rate(plan).as_bps()));
        if let FlowTransport::Tcp(options) = &mut plan.transport {
            check_congestion_control(options.congestion_control.as_deref())?;
            let most = MOST_WAITING / count as u64;
            options.write_queue = Some(options.write_queue.map_or(most, |bytes| bytes.min(most)));
        }
    }
    if rate > most_rate {
        return Err(format!("rate = {rate} of UDP: must be at most {most_rate} (its --max-rate)"));
    }
    // The numbers must be unique.
    Generator::new(plans.clone(), Streams::new(0)).map_err(|error| error.to_string())?;
    Ok(plans)
}

/// Refuses a congestion control that the kernel has not loaded: a sender must not load modules here.
fn check_congestion_control(name: Option<&str>) -> Result<(), String> {
    let Some(name) = name else { return Ok(()) };
    let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let available = available.unwrap_or_default();
    if available.split_whitespace().any(|known| known == name) {
        return Ok(());
    }
    Err(format!("congestion control {name:?}: it has {}", available.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpStream;

    #[test]
    fn requests_do_not_prolong_a_phase() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut line = Line::new(listener.accept().unwrap().0, None).unwrap();
        let mut listener = SessionListener::new(Vec::new(), None, Vec::new(), 60);
        let began = now();
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut replies = BufReader::new(sender.try_clone().unwrap());
                let mut count = 0;
                while sender.write_all(b"\"clock\"\n").is_ok() {
                    count +=
                        usize::from(replies.read_line(&mut String::new()).is_ok_and(|length| length > 0));
                }
                assert!(count > 10, "{count} requests were answered");
            });
            let patience = Duration::from_millis(300);
            let stop = AtomicBool::new(false);
            let mut phase = Phase { line: &mut line, listener: &mut listener, stop: &stop };
            let ended = phase.answer(patience, LONGEST_REQUEST);
            assert!(matches!(ended, Err(ControlError::Unexpected(_))), "{ended:?}");
            drop(line);
        });
        assert!(now().saturating_since(began) < Duration::from_secs(60));
    }
}
