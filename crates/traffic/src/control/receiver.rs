//! The receiver's side of a session. The meter runs in a separate thread.

use super::door::{Door, Entered};
use super::key::{Key, token};
use super::line::{Line, Waited};
use super::message::{LONGEST_REQUEST, Reply, Request, Start};
use super::prefix::Prefix;
use super::{ControlError, boot_id};
use crate::TrafficError;
use crate::meter::{Meter, MeterParams};
use crate::report::{MeterReport, Window};
use cutline_sys::now;
use cutline_sys::reactor::LONGEST_WAIT;
use cutline_units::{Duration, Instant};
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

/// The parameters of a receiver: who may measure, and how much.
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
}

impl Default for ReceiverParams {
    fn default() -> Self {
        Self {
            data_port: 0,
            key: None,
            allow: Vec::new(),
            most_flows: 10_000,
            longest_run: Duration::from_secs(3600),
        }
    }
}

/// Serves senders, one at a time.
#[derive(Debug)]
pub struct Receiver {
    door: Door,
    params: ReceiverParams,
}

/// The result of a session with a sender.
#[derive(Debug)]
pub struct Session {
    /// The sender's address and port.
    pub peer: SocketAddr,
    /// The planned duration of sending.
    pub until: Duration,
    /// The width of the intervals.
    pub interval: Option<Duration>,
    /// The measurements; `None` if the session ended before the run.
    pub report: Option<MeterReport>,
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
        Ok(Self { door: Door::new(listeners, params.key, params.allow.clone()), params })
    }

    /// Returns the addresses and ports on which the receiver listens.
    ///
    /// # Errors
    /// Returns an error if the system does not report an address.
    pub fn addresses(&self) -> Result<Vec<SocketAddr>, TrafficError> {
        let addresses: io::Result<_> = self.door.listeners().iter().map(TcpListener::local_addr).collect();
        addresses.map_err(TrafficError::system("cannot read the address of the listening socket"))
    }

    /// Returns the number of connections that were refused so far.
    pub const fn refused(&self) -> u64 {
        self.door.refused()
    }

    /// Waits for the next sender and serves it to the end. Returns `None` if `stop` is set before a sender was let in.
    ///
    /// # Errors
    /// Returns an error if the receiver cannot accept connections. An error of a session is in the [`Session`].
    pub fn session(&mut self, stop: &AtomicBool) -> Result<Option<Session>, TrafficError> {
        while !stop.load(Ordering::Relaxed) {
            self.door.wait(LONGEST_WAIT);
            let entered = self.door.look(false).map_err(TrafficError::system("cannot listen for senders"))?;
            if let Some(entered) = entered {
                return Ok(Some(self.serve(entered, stop)));
            }
        }
        Ok(None)
    }

    fn serve(&mut self, entered: Entered, stop: &AtomicBool) -> Session {
        let Entered { mut line, peer } = entered;
        let mut session = Session { peer, until: Duration::ZERO, interval: None, report: None, error: None };
        let done = line.send(&Reply::Opened { boot_id: boot_id() }, MESSAGE).and_then(|()| {
            let Some(Request::Start(start)) = answer(&mut line, &mut self.door, PREPARATION, stop)? else {
                return Err(ControlError::Unexpected("a message other than `clock` and `start`".to_owned()));
            };
            self.measure(&mut line, start, stop, &mut session)
        });
        session.error = done.err();
        session
    }

    fn measure(
        &mut self,
        line: &mut Line,
        start: Start,
        stop: &AtomicBool,
        session: &mut Session,
    ) -> Result<(), ControlError> {
        let refuse = |line: &mut Line, why: String| {
            // The sender may be gone already.
            let _gone = line.send(&Reply::Refused(why.clone()), MESSAGE);
            ControlError::Unexpected(why)
        };
        let checked = check(start, &self.params, session.peer.ip());
        let (zero, params) = checked.map_err(|why| refuse(line, why))?;
        let local = line.stream().local_addr().map_err(ControlError::Broken)?;
        let data = SocketAddr::new(local.ip(), self.params.data_port);
        let meter = Meter::bind(data, params).map_err(|error| refuse(line, error.to_string()))?;
        let until = Duration::from_nanos(start.until_ns);
        (session.until, session.interval) = (until, params.interval);
        line.send(&Reply::Ready { port: meter.address().port(), token: params.token }, MESSAGE)?;
        let ended = AtomicBool::new(false);
        let last = until + PATIENCE;
        let (answered, report) = thread::scope(|scope| {
            let meter = scope.spawn(|| meter.run(zero, last, &ended));
            let patience = zero.saturating_add(last).saturating_since(now());
            let answered = answer(line, &mut self.door, patience, stop);
            ended.store(true, Ordering::Relaxed);
            (answered, meter.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        let report = session.report.insert(report?);
        match answered? {
            // Without a request the receiver was stopped; the sender still gets the report.
            Some(Request::Finish) | None => line.send(&Reply::Report(Box::new(report.clone())), PATIENCE),
            Some(_) => Err(ControlError::Unexpected("a second `start`".to_owned())),
        }
    }
}

/// Answers `clock` requests until another request arrives, and returns that one. Returns `None` if `stop` is set. Other senders
/// are refused meanwhile. However many requests arrive, it lasts no longer than `patience`.
fn answer(
    line: &mut Line,
    door: &mut Door,
    patience: Duration,
    stop: &AtomicBool,
) -> Result<Option<Request>, ControlError> {
    let gone = || ControlError::Broken(io::ErrorKind::UnexpectedEof.into());
    let tired = now().saturating_add(patience);
    loop {
        let waited = line.wait(LOOK)?;
        let came_ns = now().as_nanos();
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        if now() >= tired {
            return Err(ControlError::Unexpected(format!("no further request within {patience}")));
        }
        match waited {
            Waited::Nothing => {
                // An error of the listening socket must not end a session. The next one reports it.
                let _later = door.look(true);
                continue;
            }
            Waited::End => return Err(gone()),
            Waited::Message => {}
        }
        match line.receive(LONGEST_REQUEST, MESSAGE)?.ok_or_else(gone)? {
            Request::Clock => {
                let left_ns = now().as_nanos();
                line.send(&Reply::Clock { came_ns, left_ns }, MESSAGE)?;
            }
            other => return Ok(Some(other)),
        }
    }
}

/// Checks the run that a sender asks for, and returns its zero and the meter's parameters.
fn check(start: Start, allowed: &ReceiverParams, peer: IpAddr) -> Result<(Instant, MeterParams), String> {
    let Start { flows, zero_ns, until_ns, interval_ns } = start;
    let (most_flows, longest_run) = (allowed.most_flows, allowed.longest_run);
    let zero = Instant::from_nanos(zero_ns);
    let away = Duration::from_nanos(zero_ns.abs_diff(now().as_nanos()));
    let (until, interval) = (Duration::from_nanos(until_ns), interval_ns.map(Duration::from_nanos));
    if !(1..=most_flows).contains(&flows) {
        return Err(format!("flows = {flows}: must be 1..{most_flows} (its --max-flows)"));
    }
    if away > FARTHEST_ZERO {
        return Err(format!("the run's zero is {away} from now: must be at most {FARTHEST_ZERO}"));
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
    let token = token().map_err(|error| format!("it has no random numbers: {error}"))?;
    Ok((zero, MeterParams { flows, window: Window::ALL, interval, token, peer: Some(peer) }))
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
        let mut door = Door::new(Vec::new(), None, Vec::new());
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
            let ended = answer(&mut line, &mut door, patience, &AtomicBool::new(false));
            assert!(matches!(ended, Err(ControlError::Unexpected(_))), "{ended:?}");
            drop(line);
        });
        assert!(now().saturating_since(began) < Duration::from_secs(5));
    }
}
